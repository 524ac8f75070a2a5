//! The printed content of a state and a log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};
use haversack::store::{BackendExt, DeviceLocal, Locator, block_on};
use haversack::sync::{Author, Context, Replica};
use insta::assert_snapshot;

use crate::environment::TestEnv;

struct Numbers(AtomicU64);

impl Ids for Numbers {
    fn next(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
    }
}

struct Midnight;

impl Clock for Midnight {
    fn now(&self) -> Timestamp {
        Timestamp(1_790_000_000_000)
    }
}

/// Syncs a device whose files, state and remote are directories below `base`.
fn sync(base: &Path, edit: impl FnOnce(&DeviceLocal)) {
    let open = |name: &str| Arc::new(DeviceLocal::open(base.join(name), base.join("locks")).expect("opened"));
    let files = open("files");
    edit(&files);
    let ids = Numbers(AtomicU64::new(7));
    let author =
        Author { device: "lap\ntop".to_owned(), agent: Some("claude-code".to_owned()), session: None };
    block_on(async {
        let mut replica = Replica::open(files, open("state"), open("remote"), &ids).await.expect("opened");
        replica.sync(Context::new(&Midnight, &ids, &author)).await.expect("synced");
    });
}

fn put(files: &DeviceLocal, key: &str, text: &str) {
    let locator = Locator::parse(key).expect("valid");
    drop(block_on(files.write_text(&locator, text)).expect("written"));
}

#[test]
fn what_is_inside() {
    let env = TestEnv::new();
    let base = env.path("two");
    sync(&base, |files| {
        put(files, "lighthouse/ports.md", "staging 5433\n");
        put(files, "log.jsonl", "{\"id\":\"1\"}\n");
    });
    sync(&base, |files| put(files, "log.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n"));
    let (state, remote) = (base.join("state"), base.join("remote"));
    let (state, remote) = (state.to_str().expect("plain"), remote.to_str().expect("plain"));
    assert_snapshot!(env.run(&["debug", "state", state]), @r#"
    exit 0
    --- stdout
    replica     00000000000000000000000000000007
    store       00000000000000000000000000000008
    position    2
    publishing  none
    applying    none
    journal     whole
    objects     2
    bases       2
      757b8fde         13  lighthouse/ports.md
      06e8517c         22  log.jsonl
    --- stderr
    "#);
    assert_snapshot!(env.run(&["debug", "log", remote]), @r#"
    exit 0
    --- stdout
    1  2026-09-21T14:13:20Z  laptop  import
        put           13  lighthouse/ports.md
        put           11  log.jsonl
    2  2026-09-21T14:13:20Z  laptop, claude-code  sync
        append        11  log.jsonl
    --- stderr
    "#);
    let json = env.command(&["debug", "log", remote, "--json"]).output().expect("it ran").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json[1]["changes"][0]["what"], "append");
    let json = env.command(&["debug", "state", state, "--json"]).output().expect("it ran").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["position"], 2);
}

#[test]
fn looking_makes_nothing() {
    let env = TestEnv::new();
    let nowhere = env.path("nowhere");
    let (code, nowhere) = (Some(1), nowhere.to_str().expect("plain"));
    for what in ["state", "log"] {
        let output = env.command(&["debug", what, nowhere]).output().expect("it ran");
        assert_eq!(output.status.code(), code);
    }
    assert!(!Path::new(nowhere).exists());
    let empty = env.path("empty");
    std::fs::create_dir(&empty).expect("made");
    let output = env.command(&["debug", "state", empty.to_str().expect("plain")]).output().expect("it ran");
    assert_eq!(output.status.code(), code);
}
