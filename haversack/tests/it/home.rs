//! Rounds of whole homes: a memory directory and bound directories that follow one log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_lite::future::block_on;
use haversack::history::archive;
use haversack::home::{BoundDirectory, Home, HomeReport, Meeting, Round, Stopped, Work, sync};
use haversack::ids::Timestamp;
use haversack::log::{Commit, layout};
use haversack::store::{
    Backend, BackendExt, Bytes, Condition, ErrorKind, Fault, Faulty, InMemory, Locator, Pages,
    forward_backend,
};
use haversack::sync::{Author, Context, Open, SyncError};
use haversack::{Memory, Writer};
use proptest::prelude::*;

use crate::subjects::at;
use crate::sync::{Counting, Midnight};

/// A device with a memory directory and directories bound to prefixes.
struct Device {
    ids: Counting,
    memory: Arc<Faulty>,
    state: Arc<dyn Backend>,
    bound: Vec<(Locator, Arc<Faulty>, Arc<dyn Backend>)>,
    meeting: Meeting,
}

fn storage() -> Arc<dyn Backend> {
    Arc::new(InMemory::new())
}

fn directory() -> Arc<Faulty> {
    Arc::new(Faulty::new(storage()))
}

fn put(files: &dyn Backend, key: &str, text: &str) {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let _ = block_on(files.write(&at(key), bytes, Condition::Any)).expect("written");
}

fn text(files: &dyn Backend, key: &str) -> Option<String> {
    block_on(files.read_text(&at(key))).expect("text")
}

fn keys(files: &dyn Backend) -> Vec<String> {
    block_on(files.list_all(&Locator::root())).expect("listed").iter().map(Locator::to_string).collect()
}

impl Device {
    fn new(seed: u64, meeting: Meeting) -> Device {
        let ids = Counting(AtomicU64::new(seed << 32));
        Device { ids, memory: directory(), state: storage(), bound: Vec::new(), meeting }
    }

    fn bind(mut self, prefix: &str) -> Device {
        self.bound.push((at(prefix), directory(), storage()));
        self
    }

    fn home(&self) -> Home {
        let bound = self.bound.iter().map(|(prefix, files, state)| BoundDirectory {
            name: format!("bound to {prefix}"),
            prefix: prefix.clone(),
            files: Some(files.clone()),
            state: Some(state.clone()),
        });
        Home::new("memory", self.memory.clone(), self.state.clone(), bound.collect())
    }

    fn try_sync(&self, home: &Home, work: Work<'_>) -> Result<HomeReport, Stopped> {
        let author = Author { device: "laptop".to_owned(), agent: None, session: None };
        let context = Context::new(&Midnight, &self.ids, &author);
        block_on(sync(home, &self.meeting, context, &Round::new(work)))
    }

    fn sync(&self) -> HomeReport {
        self.try_sync(&self.home(), Work::Sync).expect("synced")
    }
}

/// Returns two devices that meet at one log.
fn at_one_log() -> [Device; 2] {
    let remote = storage();
    [1, 2].map(|seed| Device::new(seed, Meeting::log(remote.clone())))
}

#[test]
fn agreements_are_read_without_a_look_at_the_files() {
    let [device, _] = at_one_log();
    let device = device.bind("projects/lighthouse");
    put(&*device.memory, "notes.md", "The lamp turns every 12 s.\n");
    let before = block_on(device.home().agreements()).expect("read");
    assert!(before.iter().all(|agreement| agreement.store.is_none() && agreement.replica.is_none()));
    device.sync();
    let operations = || device.memory.operations() + device.bound[0].1.operations();
    let (home, until_then) = (device.home(), operations());
    let agreements = block_on(home.agreements()).expect("read");
    assert_eq!(operations(), until_then);
    let replicas: Vec<_> = agreements.iter().filter_map(|agreement| agreement.replica).collect();
    assert_eq!(replicas.len(), 2);
    for (directory, agreement) in home.directories().iter().zip(agreements) {
        let outlook = block_on(home.look(directory, &Open, Timestamp(0))).expect("looked");
        let looked = (outlook.replica, outlook.store, outlook.position);
        assert_eq!(looked, (agreement.replica, agreement.store, agreement.position));
    }
}

#[test]
fn round_carries_bound_directories_and_the_memory() {
    let remote = storage();
    let folder = storage();
    for place in ["log", "folder"] {
        let meeting = || match place {
            "log" => Meeting::log(remote.clone()),
            _ => Meeting::folder(folder.clone(), storage()),
        };
        let laptop =
            Device::new(1, meeting()).bind("claude_memory/lighthouse").bind("claude_memory/lighthouse/deep");
        let desktop = Device::new(2, meeting()).bind("claude_memory/lighthouse");
        put(&*laptop.memory, "habits.md", "early\n");
        put(&*laptop.bound[0].1, "ports.md", "staging 5433\n");
        put(&*laptop.bound[1].1, "lamp.md", "red\n");
        let report = laptop.sync();
        assert_eq!(report.sent.len(), 3, "{place}");
        let report = desktop.sync();
        assert_eq!(report.received.len(), 3, "{place}");
        assert_eq!(keys(&*desktop.memory), ["habits.md"], "{place}");
        assert_eq!(keys(&*desktop.bound[0].1), ["deep/lamp.md", "ports.md"], "{place}");
        // The other way.
        put(&*desktop.bound[0].1, "deep/lamp.md", "red\n\ngreen\n");
        desktop.sync();
        laptop.sync();
        assert_eq!(text(&*laptop.bound[1].1, "lamp.md").as_deref(), Some("red\n\ngreen\n"), "{place}");
        assert_eq!(laptop.sync().sync.published, 0, "{place}");
    }
}

#[test]
fn two_directories_of_one_prefix_get_the_same_files() {
    let [laptop, _] = at_one_log();
    let laptop = laptop.bind("lighthouse").bind("lighthouse");
    put(&*laptop.bound[0].1, "ports.md", "staging 5433\n");
    put(&*laptop.bound[1].1, "lamp.md", "red\n");
    laptop.sync();
    laptop.sync();
    for (_, files, _) in &laptop.bound {
        assert_eq!(keys(&**files), ["lamp.md", "ports.md"]);
    }
}

#[test]
fn absent_directory_keeps_its_prefix() {
    let [laptop, desktop] = at_one_log();
    let laptop = laptop.bind("lighthouse");
    put(&*laptop.bound[0].1, "ports.md", "staging 5433\n");
    laptop.sync();
    desktop.sync();
    // The directory is not there: its files are neither deleted nor put into the memory directory.
    let (prefix, _, state) = &laptop.bound[0];
    let absent = BoundDirectory {
        name: "lighthouse".to_owned(),
        prefix: prefix.clone(),
        files: None,
        state: Some(state.clone()),
    };
    let home = Home::new("memory", laptop.memory.clone(), laptop.state.clone(), vec![absent]);
    let report = laptop.try_sync(&home, Work::Sync).expect("synced");
    assert_eq!((report.vanished, report.sync.published), (vec!["lighthouse".to_owned()], 0));
    assert_eq!(keys(&*laptop.memory), Vec::<String>::new());
    desktop.sync();
    assert_eq!(keys(&*desktop.memory), ["lighthouse/ports.md"]);
}

/// A write at a deeper prefix whose directory is not there must not land in the directory around it, which never sends it.
#[test]
fn file_of_an_absent_deeper_directory_waits_for_it() {
    let [laptop, desktop] = at_one_log();
    let laptop = laptop.bind("lighthouse").bind("lighthouse/lamp");
    let mut bound: Vec<BoundDirectory> = laptop.home().bound().to_vec();
    bound[1].files = None;
    let home = Home::new("memory", laptop.memory.clone(), laptop.state.clone(), bound);
    put(&*laptop.memory, "lighthouse/lamp/colour.md", "red\n");
    put(&*home.files(), "lighthouse/lamp/height.md", "31 m\n");
    laptop.try_sync(&home, Work::Sync).expect("synced");
    assert_eq!(keys(&*laptop.bound[0].1), Vec::<String>::new());
    // The directory is back.
    laptop.sync();
    assert_eq!(keys(&*laptop.bound[1].1), ["colour.md", "height.md"]);
    desktop.sync();
    assert_eq!(keys(&*desktop.memory), ["lighthouse/lamp/colour.md", "lighthouse/lamp/height.md"]);
}

/// A signed write that is merged with another device's change before it is sent is still in the history under its writer.
#[test]
fn merged_write_is_under_its_writer() {
    let [laptop, desktop] = at_one_log();
    for (file, text) in [("notes.md", "the lamp is lit\n"), ("sketch.bin", "\0one\n")] {
        put(&*laptop.memory, file, text);
    }
    laptop.sync();
    let writer = Writer { agent: Some("agent-a".to_owned()), session: None, cause: None };
    let memory = Memory::new(desktop.memory.clone(), desktop.state.clone()).with_writer(writer);
    block_on(memory.create(&at("notes.md"), "the door is open\n")).expect("created");
    block_on(memory.create(&at("sketch.bin"), "\0two\n")).expect("created");
    desktop.sync();
    let log = block_on(desktop.meeting.remote().list_all(&layout::commits())).expect("listed");
    let mut agents = Vec::new();
    for at in log {
        let bytes = block_on(desktop.meeting.remote().read(&at)).expect("read").bytes;
        let commit = Commit::decode(&bytes).expect("a commit");
        let told = String::from_utf8_lossy(&bytes);
        if told.contains("the door is open") || told.contains("\0two") {
            agents.push(commit.agent);
        }
    }
    assert_eq!(agents, [Some("agent-a".to_owned())]);
}

/// Binding moves the files of the memory directory away. If the directory is unbound before the next sync, nothing was deleted.
#[test]
fn unbinding_before_a_sync_deletes_nothing() {
    let [laptop, desktop] = at_one_log();
    put(&*laptop.memory, "lighthouse/ports.md", "staging 5433\n");
    laptop.sync();
    let laptop = laptop.bind("lighthouse");
    block_on(laptop.home().tidy(&laptop.ids, Duration::ZERO)).expect("tidied");
    assert_eq!(keys(&*laptop.memory), Vec::<String>::new());
    let laptop = Device { bound: Vec::new(), ..laptop };
    assert_eq!(laptop.sync().sync.published, 0);
    assert_eq!(keys(&*laptop.memory), ["lighthouse/ports.md"]);
    desktop.sync();
    assert_eq!(keys(&*desktop.memory), ["lighthouse/ports.md"]);
}

/// Counts the listings of all objects.
#[derive(Debug)]
struct CountedListings {
    inner: Arc<dyn Backend>,
    listings: AtomicU64,
}

#[async_trait]
impl Backend for CountedListings {
    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.listings.fetch_add(u64::from(prefix.is_root()), Ordering::Relaxed);
        self.inner.scan(prefix, after)
    }

    forward_backend!(self => self.inner; read, write, prepare, append, barrier, list, info, touch_mark, delete, rename, exchange);
    forward_backend!(self => self.inner; mkdir, lock, capabilities, conflict_strategy);
}

#[test]
fn full_round_lists_the_remote_once_for_all_directories() {
    let remote = Arc::new(CountedListings { inner: storage(), listings: AtomicU64::new(0) });
    let laptop =
        Device::new(1, Meeting::log(remote.clone())).bind("lighthouse").bind("harbour").bind("tower");
    for (_, files, _) in &laptop.bound {
        put(&**files, "ports.md", "staging 5433\n");
    }
    put(&*laptop.memory, "habits.md", "early\n");
    let full = || {
        let before = remote.listings.load(Ordering::Relaxed);
        let report = laptop.try_sync(&laptop.home(), Work::Full).expect("synced");
        (remote.listings.load(Ordering::Relaxed) - before, report.sync.foreign)
    };
    laptop.sync();
    assert_eq!(full(), (1, Vec::new()));
    // Edits by hand are found in each round, in every directory.
    for edited in ["lighthouse/ports.md", "tower/ports.md", "habits.md"] {
        put(&*remote.inner, edited, "by hand\n");
    }
    let (_, mut found) = full();
    found.sort();
    assert_eq!(found, [at("habits.md"), at("lighthouse/ports.md"), at("tower/ports.md")]);
    assert_eq!(full(), (1, Vec::new()));
}

#[test]
fn broken_directory_stops_only_itself() {
    let [laptop, desktop] = at_one_log();
    let laptop = laptop.bind("lighthouse");
    put(&*laptop.bound[0].1, "ports.md", "staging 5433\n");
    put(&*laptop.memory, "habits.md", "early\n");
    laptop.bound[0].1.plan(vec![Fault::Refused(ErrorKind::Denied); 1000]);
    let report = laptop.sync();
    assert_eq!(report.failed.len(), 1);
    assert_eq!(report.failed[0].directory.as_deref(), Some("bound to lighthouse"));
    desktop.sync();
    assert_eq!(keys(&*desktop.memory), ["habits.md"]);
    // Once its disk works again, nothing is missing.
    laptop.bound[0].1.plan([]);
    laptop.sync();
    desktop.sync();
    assert_eq!(keys(&*desktop.memory), ["habits.md", "lighthouse/ports.md"]);
}

#[test]
fn failed_round_keeps_its_commits_in_the_archive() {
    let [laptop, _] = at_one_log();
    let laptop = laptop.bind("lighthouse");
    put(&*laptop.bound[0].1, "ports.md", "staging 5433\n");
    laptop.sync();
    put(&*laptop.bound[0].1, "ports.md", "staging 5433\n\nproduction 5432\n");
    // The bound directory publishes, then the memory directory fails. The round asks the memory directory four things before.
    let store =
        block_on(haversack::sync::store_at(laptop.meeting.remote().clone(), &haversack::sync::Impatient));
    let store = store.expect("read").expect("there").store;
    let ranges = || block_on(archive::ranges(&*laptop.state, store)).expect("listed");
    let newest = ranges().len();
    for works in 0..40 {
        let mut faults = vec![Fault::None; works];
        faults.extend([Fault::Refused(ErrorKind::Denied); 100]);
        laptop.memory.plan(faults);
        let failed = laptop.try_sync(&laptop.home(), Work::Sync);
        laptop.memory.plan([]);
        match failed {
            Err(Stopped { error: SyncError::Local(_), .. }) if ranges().len() > newest => return,
            Err(_) => {}
            Ok(_) => break,
        }
    }
    panic!("no round failed after the bound directory had published");
}

/// Moves a file of the memory directory into the bound directory that has another file of its name; returns the merged file.
fn moved(name: &str, here: &str, there: &str) -> String {
    let (memory, bound, state) = (storage(), storage(), storage());
    put(&*memory, &format!("lighthouse/{name}"), here);
    put(&*bound, name, there);
    let directory = BoundDirectory {
        name: "lighthouse".to_owned(),
        prefix: at("lighthouse"),
        files: Some(bound.clone()),
        state: Some(state.clone()),
    };
    let home = Home::new("memory", memory.clone(), state, vec![directory]);
    let move_files = || {
        block_on(home.move_to_bound_directories(&Counting(AtomicU64::new(0)), Duration::ZERO)).expect("moved")
    };
    move_files();
    assert_eq!(keys(&*memory), Vec::<String>::new());
    let once = text(&*bound, name).expect("there");
    // A process that was killed before it deleted the file moves it again.
    put(&*memory, &format!("lighthouse/{name}"), here);
    move_files();
    assert_eq!(text(&*bound, name).as_deref(), Some(&*once), "moved twice: {here:?} {there:?}");
    once
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["red", "green", "- lamp", "## Ports", "", "5433"]), 0..8)
        .prop_map(|lines| lines.into_iter().map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No line of either side is lost, and moving twice is moving once.
    #[test]
    fn moved_file_keeps_lines_of_both_sides(here in lines(), there in lines(), name in prop::sample::select(vec!["MEMORY.md", "notes.md", "events.jsonl", "plain.txt"])) {
        let write = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let merged = moved(name, &write(&here), &write(&there));
        for line in here.iter().chain(&there) {
            prop_assert!(merged.lines().any(|other| other == line) || line.is_empty(), "{line:?} is not in {merged:?}");
        }
    }
}
