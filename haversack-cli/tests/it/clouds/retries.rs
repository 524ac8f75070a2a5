//! A request that a cloud does not answer is sent at most four times in all, whichever layer repeats it.

use std::collections::BTreeMap;

use haversack_servers::{Act, Seen};

use super::Place;
use crate::machines::Machines;

/// The most times that one request may be sent.
const MAX_TRIES: usize = 4;

/// Runs `sync` with a change to send against a storage that misbehaves, and returns how often each failing request was sent.
fn failing_requests(
    place: &Place,
    misbehave: impl Fn(&Seen) -> Option<Act> + Send + Sync + 'static,
    wait_seconds: &str,
) -> BTreeMap<String, usize> {
    let machines = place.laptop_and_desktop(&[("ports.md", "staging listens on 5433\n")]);
    machines.write("laptop", "lamp.md", "white\n");
    place.front.script(move |seen| misbehave(seen).unwrap_or(Act::Pass));
    place.front.forget();
    let mut sync = machines.command("laptop", &["sync"]);
    sync.env("HAVERSACK_CLOUD_WAIT_SECONDS", wait_seconds);
    let shown = place.shown(&machines, &mut sync);
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    let mut times = BTreeMap::new();
    for seen in place.front.seen() {
        if seen.status.is_none_or(|status| status >= 500) {
            *times.entry(format!("{} {}", seen.method, seen.path)).or_default() += 1;
        }
    }
    assert!(!times.is_empty(), "nothing failed");
    times
}

#[track_caller]
fn assert_tried_four_times(times: &BTreeMap<String, usize>) {
    assert_eq!(times.values().max(), Some(&MAX_TRIES), "{times:#?}");
}

#[test]
fn read_with_503_is_tried_four_times() {
    let times = failing_requests(&Place::gcs(), |_| Some(Act::answer(503, "")), "30");
    assert_tried_four_times(&times);
}

#[test]
fn write_with_503_is_tried_four_times() {
    let refuse_writes = |seen: &Seen| seen.is_write().then(|| Act::answer(503, ""));
    assert_tried_four_times(&failing_requests(&Place::gcs(), refuse_writes, "30"));
}

#[test]
fn write_whose_check_gets_503_is_tried_four_times() {
    let refuse = |seen: &Seen| (seen.is_write() || seen.method == "HEAD").then(|| Act::answer(503, ""));
    assert_tried_four_times(&failing_requests(&Place::gcs(), refuse, "30"));
}

/// Returns true for a write of a plain copy or of `manifest.json`, and not of something below `.haversack/`.
fn is_plain_write(seen: &Seen) -> bool {
    seen.is_write() && !seen.path.contains(".haversack")
}

/// Syncs against a storage that answers every write of `refused` with 503, and returns how often each of them was sent.
fn plain_writes(refused: fn(&Seen) -> bool) -> BTreeMap<String, usize> {
    let place = Place::gcs();
    let machines = Machines::new();
    for (path, text) in [("ports.md", "staging\n"), ("tide.md", "high\n"), ("lamp.md", "white\n")] {
        machines.write("laptop", path, text);
    }
    place.add(&machines, "laptop", &[]);
    place.done(&machines, "laptop", &["sync"]);
    // A bound directory is another replica, which writes plain copies of its own.
    let directory = machines.env.path("laptop-project");
    std::fs::create_dir_all(&directory).expect("made");
    place.done(&machines, "laptop", &["mount", "add", &directory.display().to_string(), "claude_memory/x"]);
    std::fs::write(directory.join("fact.md"), "one\n").expect("written");
    machines.write("laptop", "ports.md", "live\n");
    std::fs::remove_file(machines.path("laptop", "tide.md")).expect("removed");
    place.front.script(move |seen| if refused(seen) { Act::answer(503, "") } else { Act::Pass });
    place.front.forget();
    let mut sync = machines.command("laptop", &["sync"]);
    sync.env("HAVERSACK_CLOUD_WAIT_SECONDS", "30");
    // The plain copies are derived, so the sync itself succeeds.
    let shown = place.shown(&machines, &mut sync);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    let mut times = BTreeMap::new();
    for seen in place.front.seen().iter().filter(|seen| refused(seen)) {
        *times.entry(format!("{} {}", seen.method, seen.path)).or_default() += 1;
    }
    times
}

#[test]
fn plain_copy_with_503_is_tried_four_times() {
    assert_tried_four_times(&plain_writes(is_plain_write));
}

#[test]
fn manifest_with_503_is_tried_four_times() {
    let is_manifest = |seen: &Seen| is_plain_write(seen) && seen.path.contains("manifest");
    assert_tried_four_times(&plain_writes(is_manifest));
}

#[test]
fn removal_of_a_plain_copy_with_503_is_tried_four_times() {
    assert_tried_four_times(&plain_writes(|seen| is_plain_write(seen) && seen.method == "DELETE"));
}

#[test]
fn read_without_answer_is_tried_four_times() {
    let times = failing_requests(&Place::gcs(), |_| Some(Act::Hang), "1");
    assert_tried_four_times(&times);
}
