//! Many devices write to one file at once: everything is kept, with few retries.

use std::io::Write;
use std::sync::Barrier;
use std::thread;

use super::devices::{Device, log, settle};
use super::{Place, times};

const DEVICES: usize = 16;

/// The number of writes of each device.
fn writes() -> usize {
    times(6, 50)
}

/// The most attempts that a commit may take, on average.
const MAX_ATTEMPTS: f64 = 6.0;

/// Lets all devices write at once; returns what was lost, and how many attempts a commit took on average.
fn crowd(place: &Place) -> (Vec<String>, f64) {
    let devices: Vec<Device> =
        (0..DEVICES).map(|number| Device::new(format!("device-{number:02}"), place)).collect();
    devices[0].write("notes.md", "# Notes\n\n");
    devices[0].synced();
    place.front.forget();
    let start = Barrier::new(DEVICES);
    thread::scope(|scope| {
        for device in &devices {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for number in 0..writes() {
                    device.append("notes.md", &format!("{}-{number:03} was here\n\n", device.name));
                    device.synced();
                }
            });
        }
    });
    let is_attempt = |path: &str| path.contains(".haversack/log/");
    let seen = place.front.seen();
    let attempts = seen.iter().filter(|seen| seen.method == "PUT" && is_attempt(&seen.path)).count();
    let commits = log(place).len() - 1;
    let average = attempts as f64 / commits as f64;
    let requests = seen.len() as f64 / commits as f64;
    let told = format!("{DEVICES} devices x {} writes on {}", writes(), place.backend);
    let costs = format!("{commits} commits, {average:.2} attempts and {requests:.1} requests each");
    drop(writeln!(std::io::stderr(), "{told}: {costs}"));
    let files = settle(&devices);
    let lines = files["notes.md"].lines();
    let mut lost = Vec::new();
    for device in &devices {
        for number in 0..writes() {
            let token = format!("{}-{number:03} was here", device.name);
            match lines.clone().filter(|line| *line == token).count() {
                1 => {}
                count => lost.push(format!("{token}: {count} times")),
            }
        }
    }
    (lost, average)
}

#[test]
fn nothing_is_lost_on_azure() {
    let Some(place) = Place::azure() else { return };
    let (lost, average) = crowd(&place);
    assert_eq!(lost, Vec::<String>::new());
    assert!(average <= MAX_ATTEMPTS, "{average:.2} attempts for each commit");
}

#[test]
fn nothing_is_lost_on_gcs() {
    let (lost, average) = crowd(&Place::gcs());
    assert_eq!(lost, Vec::<String>::new());
    assert!(average <= MAX_ATTEMPTS, "{average:.2} attempts for each commit");
}

#[test]
fn what_is_lost_on_s3_is_only_reported() {
    // The server of the tests has no lock of its own: two writers can both create one object.
    let Some(place) = Place::s3() else { return };
    let crowded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| crowd(&place)));
    let told = match crowded {
        Ok((lost, _)) => format!("{} lines were lost: {lost:?}", lost.len()),
        Err(_) => "the log forked".to_owned(),
    };
    drop(writeln!(std::io::stderr(), "s3, by a server without locks: {told}"));
}
