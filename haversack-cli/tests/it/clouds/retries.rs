//! A request that a cloud does not answer is sent at most four times in all, whichever layer repeats it.

use std::collections::BTreeMap;

use haversack_servers::{Act, Seen};

use super::Place;

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

#[test]
fn read_without_answer_is_tried_four_times() {
    let times = failing_requests(&Place::gcs(), |_| Some(Act::Hang), "1");
    assert_tried_four_times(&times);
}
