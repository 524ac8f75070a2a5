//! The formats do not change by accident: today's encoder writes exactly the files in `tests/fixtures/log/`.
//!
//! A test that fails here says that devices of two versions would not understand each other. A format changes with a new version, a new
//! fixture beside the old one, and a decision in `docs/adr/`.

use haversack::log::{Checkpoint, Commit, Segment, StoreFile};
use haversack::store::Bytes;

use super::examples;

const COMMIT: &[u8] = include_bytes!("../../fixtures/log/commit-1");
const CHECKPOINT: &[u8] = include_bytes!("../../fixtures/log/checkpoint-1");
const SEGMENT: &[u8] = include_bytes!("../../fixtures/log/segment-1");
const STORE_FILE: &[u8] = include_bytes!("../../fixtures/log/store-1.json");

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_commit() {
    let (_, example, _) = examples::two_commits();
    assert_eq!(shown(&example.encode().expect("fits")), shown(COMMIT));
    assert_eq!(Commit::decode(&Bytes::from_static(COMMIT)), Ok(example));
}

#[test]
fn a_checkpoint() {
    let example = examples::checkpoint();
    assert_eq!(shown(&example.encode().expect("fits")), shown(CHECKPOINT));
    assert_eq!(Checkpoint::decode(&Bytes::from_static(CHECKPOINT)), Ok(example));
}

#[test]
fn a_segment() {
    let example = examples::segment();
    assert_eq!(shown(&example.encode().expect("fits")), shown(SEGMENT));
    assert_eq!(Segment::decode(&Bytes::from_static(SEGMENT)), Ok(example));
}

#[test]
fn a_store_file() {
    let example = examples::store_file();
    assert_eq!(shown(&example.encode()), shown(STORE_FILE));
    assert_eq!(StoreFile::decode(&Bytes::from_static(STORE_FILE)), Ok(example));
}
