//! A bucket or directory whose old changes lose their contents.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use haversack::store::{Backend, Condition, DeviceLocal, Locator, block_on};
use haversack::sync::{Author, Context, Replica};
use haversack_system::{RandomIds, SystemClock};
use insta::assert_snapshot;

use crate::machines::Machines;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Publishes changes of one file as another machine, each a commit of its own.
fn publish(machines: &Machines, changes: usize) {
    let open = |name: &str| {
        let place = machines.env.path(name);
        Arc::new(DeviceLocal::open(place, machines.env.path("other/locks")).expect("it opens"))
    };
    let (files, state, remote) = (open("other/memory"), open("other/state"), open("remote"));
    let author = Author { device: "other".to_owned(), agent: None, session: None };
    let note = Locator::parse("lamp.md").expect("a name");
    block_on(async {
        let context = Context::new(&SystemClock, &RandomIds, &author);
        let mut replica = Replica::open(files.clone(), state, remote, &RandomIds).await.expect("opened");
        replica.sync(context).await.expect("joined");
        for number in 1..=changes {
            let text = format!("# Lamp\n\nIt was lit {number} times. {}\n", "bright ".repeat(200));
            let _ = files.write(&note, text.into(), Condition::Any).await.expect("written");
            assert_eq!(replica.sync(context).await.expect("sent").published, 1);
        }
    });
}

/// Lets all objects below a directory of the remote look as if they were written long ago.
fn age(directory: &Path, by: Duration) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let file = std::fs::File::options().append(true).open(&path).expect("opened");
        file.set_modified(SystemTime::now() - by).expect("set");
    }
}

fn bytes_in(directory: &Path) -> u64 {
    let sizes = std::fs::read_dir(directory).expect("a directory");
    sizes.map(|entry| entry.and_then(|entry| entry.metadata()).expect("an entry").len()).sum()
}

#[test]
fn old_contents_leave_the_remote_and_files_stay() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging listens on 5433\n")]);
    publish(&machines, 300);
    machines.done("laptop", &["sync"]);
    let segments = machines.env.path("remote/.haversack/segments");
    let before = bytes_in(&segments);
    age(&segments, 400 * DAY);
    machines.done("laptop", &["sync", "--full"]);
    let after = bytes_in(&segments);
    assert!(after < before / 2, "{before} bytes before, {after} after");

    // A machine that was away, and one that is new, have all files.
    machines.write("desktop", "ports.md", "staging listens on 5434\n");
    machines.done("desktop", &["sync"]);
    machines.done("tablet", &["join", &machines.url(), "--device", "tablet", "--yes"]);
    for machine in ["desktop", "tablet"] {
        assert_eq!(machines.read(machine, "lamp.md"), machines.read("laptop", "lamp.md"), "{machine}");
        assert_eq!(machines.read(machine, "ports.md").as_deref(), Some("staging listens on 5434\n"));
    }
    // The history still says who changed what.
    let log = machines.done("tablet", &["log", "3"]);
    assert!(log.contains("lamp.md") && log.contains("other"), "{log}");
    assert_snapshot!(machines.shown("tablet", &["diff", "3"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote does not keep this old version of lamp.md any more
    Hint: See how long it keeps the contents of changes: haversack remote history
    "#);
    assert_snapshot!(machines.shown("laptop", &["status", "--line"]), @r#"
    exit 0
    --- stdout
    haversack: in sync
    --- stderr
    "#);
}

#[test]
fn days_belong_to_the_store() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "staging listens on 5433\n")]);
    assert_snapshot!(machines.shown("laptop", &["remote", "history"]), @r#"
    exit 0
    --- stdout
    The remote keeps the contents of a change for 365 days.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["remote", "history", "--days", "7"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: invalid value '7' for '--days <N>': 7 is not in 30..=36500

    For more information, try '--help'.
    "#);
    assert_snapshot!(machines.shown("laptop", &["remote", "history", "--days", "90"]), @r#"
    exit 0
    --- stdout
    The remote keeps the contents of a change for 90 days.
    --- stderr
    Your other machines get this number with the next sync: haversack sync
    "#);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_snapshot!(machines.shown("desktop", &["remote", "history"]), @r#"
    exit 0
    --- stdout
    The remote keeps the contents of a change for 90 days.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["remote", "history", "--forever", "--json"]), @r#"
    exit 0
    --- stdout
    {"days":null}
    --- stderr
    "#);
}
