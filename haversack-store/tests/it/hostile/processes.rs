//! Several processes on one memory, some of them killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haversack_store::{Blocking, Condition, Durability, ErrorKind, Locator};

use super::{Scene, at, times};

const BASE: &str = "HAVERSACK_TEST_BASE";
const ROLE: &str = "HAVERSACK_TEST_ROLE";
const NAME: &str = "HAVERSACK_TEST_NAME";

/// Returns this test program as another process on the memory below `base`.
pub(super) fn child(base: &Path, role: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test is a program"));
    command.args(["--exact", "hostile::processes::as_child", "--nocapture", "--test-threads=1"]);
    command.env(BASE, base).env(ROLE, role).env(NAME, name).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Does what another test started this program for; nothing in an ordinary run.
#[test]
#[expect(clippy::disallowed_methods, reason = "this is how the other process is told what to do")]
fn as_child() {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(base), Some(role), Some(name)) = (variable(BASE), variable(ROLE), variable(NAME)) else {
        return;
    };
    if role == "modes" {
        let umask = u32::from_str_radix(&name, 8).expect("octal");
        let store = super::open(Path::new(&base));
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
        let _ = store.write(&at(&format!("{name}/dir/new.md")), "x", Condition::Absent).expect("written");
        let _ = store.append(&at(&format!("{name}/dir/log")), "x", Durability::Now).expect("appended");
        return;
    }
    let store = super::open(Path::new(&base));
    match role.as_str() {
        "edit" => (0..100).for_each(|number| add_line(&store, &format!("{name} {number}"))),
        "append" => (0..100).for_each(|number| {
            let line = format!("{name} {number} {}\n", "x".repeat(number * 7));
            let _ = store.append(&at("log"), line, Durability::Now).expect("appended");
        }),
        "write until killed" => (0..1_000_000).for_each(|number| {
            let line = format!("{name} {number}");
            add_line(&store, &line);
            let _ = store.append(&at("log"), format!("{line}\n"), Durability::Now).expect("appended");
            let own = at(&format!("files/{name}-{number}.md"));
            let _ = store.write(&own, line.repeat(1000), Condition::Absent).expect("written");
            // Only what was printed counts as acknowledged.
            let mut stdout = std::io::stdout().lock();
            writeln!(stdout, "ack {line}").and_then(|()| stdout.flush()).expect("somebody listens");
        }),
        "limited" => {
            let big = vec![b'x'; 64 * 1024];
            let version = store.read(&at("notes.md")).expect("read").version;
            let results = [
                store.write(&at("notes.md"), big.clone(), Condition::Matches(version)).map(drop),
                store.write(&at("notes.md"), big.clone(), Condition::Any).map(drop),
                store.append(&at("log.md"), big, Durability::Now).map(drop),
            ];
            for result in results {
                assert_eq!(result.expect_err("too large").kind(), ErrorKind::Full);
            }
        }
        other => panic!("no such role: {other}"),
    }
}

/// Adds a line to a file by compare-and-swap.
fn add_line(store: &Blocking, line: &str) {
    let locator = at("shared.md");
    loop {
        let (mut content, condition) = match store.read(&locator) {
            Ok(object) => (object.bytes.to_vec(), Condition::Matches(object.version)),
            Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), Condition::Absent),
            Err(error) => panic!("{error:?}"),
        };
        content.extend_from_slice(format!("{line}\n").as_bytes());
        match store.write(&locator, content, condition) {
            Ok(written) => return assert_eq!(written.displaced, None, "everybody takes the lock"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
        }
    }
}

fn lines(store: &Blocking, key: &str) -> Vec<String> {
    let text = store.read_text(&at(key)).expect("read").unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "torn: {text:?}");
    text.lines().map(str::to_owned).collect()
}

fn run_together(scene: &Scene, role: &str, processes: usize) {
    let children: Vec<_> = (0..processes)
        .map(|number| child(scene.base.path(), role, &format!("p{number}")).spawn().expect("started"))
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ran");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn eight_processes_keep_every_edit() {
    let scene = Scene::new();
    run_together(&scene, "edit", 8);
    let found: BTreeSet<String> = lines(&scene.store, "shared.md").into_iter().collect();
    let expected = (0..8).flat_map(|process| (0..100).map(move |number| format!("p{process} {number}")));
    assert_eq!(found, expected.collect());
    assert_eq!(lines(&scene.store, "shared.md").len(), 800);
}

#[test]
fn eight_processes_keep_every_append() {
    let scene = Scene::new();
    run_together(&scene, "append", 8);
    let found = lines(&scene.store, "log");
    assert_eq!(found.len(), 800);
    for process in 0..8 {
        // Each process's lines are there in its own order, whole.
        let prefix = format!("p{process} ");
        let own: Vec<&String> = found.iter().filter(|line| line.starts_with(&prefix)).collect();
        let expected: Vec<String> =
            (0..100).map(|number| format!("{prefix}{number} {}", "x".repeat(number * 7))).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

#[test]
fn killed_writers_lose_nothing() {
    let scene = Scene::new();
    let mut acknowledged = Vec::new();
    let mut interrupted = 0;
    for round in 0..times(200, 1_000) {
        let name = format!("r{round}");
        let mut writer = child(scene.base.path(), "write until killed", &name).spawn().expect("started");
        let mut output = BufReader::new(writer.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut acks = Vec::new();
        while acks.len() < round % 4 {
            let line = output.next().expect("it writes until it is killed");
            acks.extend(line.strip_prefix("ack ").map(str::to_owned));
        }
        // Somewhere in its next write; where exactly does not matter, there are many rounds.
        for _ in 0..(round * 7919) % 20_000 {
            std::hint::spin_loop();
        }
        writer.kill().expect("killed");
        acks.extend(output.filter_map(|line| line.strip_prefix("ack ").map(str::to_owned)));
        writer.wait().expect("ended");
        acknowledged.extend(acks);
        interrupted += usize::from(!super::working_names(&scene.root()).is_empty());
        drop(super::open(scene.base.path()));
        assert_eq!(
            super::working_names(&scene.root()),
            Vec::<PathBuf>::new(),
            "cleaned up at the next start"
        );
    }
    assert!(interrupted > 0, "no writer was killed in the middle of a write");
    let store = super::open(scene.base.path());
    for key in ["shared.md", "log"] {
        let found: BTreeSet<String> = lines(&store, key).into_iter().collect();
        let lost: Vec<&String> = acknowledged.iter().filter(|line| !found.contains(*line)).collect();
        assert!(lost.is_empty(), "of {} acknowledged, {key} lost {lost:?}", acknowledged.len());
        let whole =
            |line: &String| line.split_once(' ').is_some_and(|(_, number)| number.parse::<u64>().is_ok());
        assert!(found.iter().all(whole), "a torn line in {key}");
    }
    for line in &acknowledged {
        let (name, number) = line.split_once(' ').expect("two words");
        let own = store.read_text(&at(&format!("files/{name}-{number}.md"))).expect("read");
        assert_eq!(own, Some(line.repeat(1000)));
    }
    for locator in store.list_all(&at("files")).expect("scanned") {
        let text = store.read_text(&locator).expect("read").expect("there");
        let line = locator.name().trim_end_matches(".md").replace('-', " ");
        assert_eq!(text, line.repeat(1000), "{locator} is torn");
    }
    assert_eq!(store.list_all(&Locator::reserved(".haversack").expect("ours")).expect("scanned"), []);
}
