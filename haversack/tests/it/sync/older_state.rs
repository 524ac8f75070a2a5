//! A state that an older Haversack wrote is read, and written again in today's format.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_lite::future::block_on;
use haversack::store::{Backend, BackendExt, Bytes, Condition, InMemory, Locator};
use haversack::sync::{Dump, Replica, dump};

use super::Counting;
use crate::subjects::at;

const IDENTITY: &[u8] = include_bytes!("../../fixtures/state-1/identity");
const SNAPSHOT: &[u8] = include_bytes!("../../fixtures/state-1/snapshot");
const JOURNAL: &[u8] = include_bytes!("../../fixtures/state-1/journal-1");

fn state() -> Arc<InMemory> {
    let state = Arc::new(InMemory::new());
    for (name, bytes) in [("identity", IDENTITY), ("snapshot", SNAPSHOT), ("journal-1", JOURNAL)] {
        let _ =
            block_on(state.write(&at(name), Bytes::from_static(bytes), Condition::Absent)).expect("written");
    }
    state
}

fn known(state: &Arc<InMemory>) -> Dump {
    block_on(dump(state.clone())).expect("read").expect("a replica")
}

fn version(state: &InMemory) -> String {
    let snapshot = block_on(state.read(&at("snapshot"))).expect("there").bytes;
    let line = snapshot.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}

#[test]
fn a_snapshot_of_the_first_format_is_read_and_written_again() {
    let state = state();
    let before = known(&state);
    let names: Vec<(&str, u64)> = before.bases.iter().map(|base| (base.at.as_str(), base.size)).collect();
    assert_eq!(names, [("d/ü.md", 6), ("last.md", 4), ("ports.md", 24)]);
    assert_eq!(before.position.map(|position| position.number()), Some(2));
    assert_eq!(version(&state), "haversack-snapshot 1", "looking changes nothing");
    let (files, remote) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let opened = block_on(Replica::open(files, state.clone(), remote, &Counting(AtomicU64::new(1))));
    let replica = opened.expect("opened");
    let held: Vec<Locator> = replica.log_files().keys().collect();
    assert_eq!(held, ["d/ü.md", "last.md", "ports.md"].map(at));
    drop(replica);
    assert_eq!(version(&state), "haversack-snapshot 2");
    let journals = block_on(state.list_all(&Locator::root())).expect("listed");
    assert!(!journals.iter().any(|locator| locator.as_str().starts_with("journal-")), "{journals:?}");
    assert_eq!(known(&state), before);
}
