//! A line on which what was asked is done, and the answer is lost: every change is in the log once.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use haversack::log::{Carried, What};
use haversack_servers::{Act, Answer, Seen};

use super::devices::{Device, log, settle};
use super::{Place, in_each_cloud, times};

in_each_cloud!(every_change_is_in_the_log_once);

const DEVICES: usize = 3;

/// The number of commits of all devices together.
fn commits() -> usize {
    times(60, 10_000)
}

/// The fate of a request: most writes are done, and the client gets another answer or none.
fn bad_line(seen: &Seen) -> Act {
    // Spread by number, so that no device always has the same luck.
    let chance = seen.number.wrapping_mul(2_654_435_761) >> 7;
    match (seen.is_write(), chance % 8, chance % 211) {
        (true, 0 | 1, _) => Act::CommitThenAnswer(Answer::new(503)),
        (true, 2 | 3, _) => Act::CommitThenDrop,
        (true, 4, _) => Act::answer(503, "nothing was done"),
        (true, 5, _) => Act::Drop,
        (true, 6, _) => Act::Delay(Duration::from_millis(15)),
        (false, _, 0) => Act::Drop,
        (false, _, 1) => Act::answer(500, ""),
        (false, _, 2) => Act::Slow { bytes_per_second: 20_000 },
        (true | false, ..) => Act::Pass,
    }
}

fn every_change_is_in_the_log_once(place: &Place) {
    let devices: Vec<Device> =
        (0..DEVICES).map(|number| Device::new(format!("device-{number}"), place)).collect();
    place.front.script(bad_line);
    let each = commits() / DEVICES;
    thread::scope(|scope| {
        for device in &devices {
            scope.spawn(move || {
                for number in 0..each {
                    // No other device changes these files: a merge would be a false conflict.
                    device.append(&format!("{}.md", device.name), &format!("{}-{number:05}\n", device.name));
                    if number % 10 == 0 {
                        device.write(&format!("notes/{}-{number:05}.md", device.name), format!("{number}\n"));
                    }
                    let report = device.synced();
                    assert!(report.merged.is_empty() && report.edits_won.is_empty(), "{report:?}");
                    assert!(report.missing.is_empty() && report.held.is_empty(), "{report:?}");
                }
            });
        }
    });
    place.front.script(|_| Act::Pass);
    let files = settle(&devices);
    for device in &devices {
        let expected: String = (0..each).map(|number| format!("{}-{number:05}\n", device.name)).collect();
        assert_eq!(files[&format!("{}.md", device.name)], expected, "on {}", place.backend);
    }
    assert_eq!(files.len(), DEVICES + DEVICES * each.div_ceil(10), "on {}", place.backend);
    // Each line was added by one commit, and by no other.
    let mut added: BTreeMap<String, usize> = BTreeMap::new();
    let log = log(place);
    for change in log.iter().flat_map(|commit| &commit.changes) {
        let carried = match &change.what {
            What::Put { content, .. } => content,
            What::Append { added, .. } => added,
            What::Delete { .. } => panic!("nobody deleted {}", change.locator),
        };
        let Carried::Inline(bytes) = carried else { panic!("{} is small", change.locator) };
        for line in String::from_utf8_lossy(bytes).lines() {
            *added.entry(format!("{} {line}", change.locator)).or_default() += 1;
        }
    }
    let twice: Vec<_> = added.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "on {}: {twice:?}", place.backend);
    assert_eq!(added.len(), DEVICES * each + DEVICES * each.div_ceil(10), "on {}", place.backend);
    assert_eq!(log.len(), DEVICES * each, "one commit for each sync on {}", place.backend);
}
