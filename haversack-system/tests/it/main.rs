//! The program of the guide `docs/guide/library.md`, run against buckets.

use std::fs;

use haversack::store::Settings;
use haversack_servers::{Gcs, Moto};

#[path = "../../examples/sync_directory.rs"]
#[expect(dead_code, reason = "the test calls the program's function, not its main")]
mod sync_directory;

const PROGRAM: &str = include_str!("../../examples/sync_directory.rs");
const GUIDE: &str = include_str!("../../../docs/guide/library.md");

/// Lets a laptop and a desktop edit one file, and checks that each gets the other's line.
fn two_directories_meet(url: &str, settings: &Settings) {
    let base = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| base.path().join(name).display().to_string();
    let sync = |device: &str| {
        let state = at(&format!("{device}-state"));
        sync_directory::sync([&at(device), &state, url, device], settings.clone()).expect("synced")
    };
    let ports = |device: &str| base.path().join(device).join("ports.md");
    fs::create_dir_all(at("laptop")).expect("made");
    fs::write(ports("laptop"), "staging 5433\n\nproduction 443\n").expect("written");
    assert_eq!(sync("laptop").sent.len(), 1);
    sync("desktop");
    assert_eq!(fs::read_to_string(ports("desktop")).expect("arrived"), "staging 5433\n\nproduction 443\n");

    fs::write(ports("laptop"), "staging 5434\n\nproduction 443\n").expect("written");
    fs::write(ports("desktop"), "staging 5433\n\nproduction 443\n\nmetrics 9100\n").expect("written");
    sync("laptop");
    sync("desktop");
    sync("laptop");
    for device in ["laptop", "desktop"] {
        let merged = fs::read_to_string(ports(device)).expect("there");
        assert_eq!(merged, "staging 5434\n\nproduction 443\n\nmetrics 9100\n", "{device}");
        let report = sync(device);
        assert_eq!((report.sync.published, report.sync.taken), (0, 0), "{device} is quiet");
    }
}

#[test]
fn program_syncs_directories_through_a_google_bucket() {
    let gcs = Gcs::start();
    let settings = [("GOOGLE_BASE_URL", gcs.endpoint().to_owned()), ("GOOGLE_BEARER_TOKEN", gcs.token())];
    two_directories_meet(&format!("gs://{}/memory", gcs.new_bucket()), &settings.into_iter().collect());
}

#[test]
fn program_syncs_directories_through_an_s3_bucket() {
    let Some(moto) = Moto::shared() else { return };
    let settings = [
        ("AWS_ENDPOINT_URL", moto.endpoint()),
        ("AWS_REGION", moto.region()),
        ("AWS_ACCESS_KEY_ID", moto.key_id()),
        ("AWS_SECRET_ACCESS_KEY", moto.secret()),
    ];
    two_directories_meet(&format!("s3://{}/memory", moto.new_bucket()), &settings.into_iter().collect());
}

#[test]
fn guide_shows_the_program() {
    assert!(GUIDE.contains(&format!("```rust,no_run\n{PROGRAM}```\n")), "copy the example into the guide");
    assert!(PROGRAM.lines().count() < 40, "a program of under 40 lines");
}
