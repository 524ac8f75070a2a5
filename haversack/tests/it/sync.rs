//! Two devices and a remote on real disks; what goes wrong is the simulator's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::future::block_on;
use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};
use haversack::log::Commit;
use haversack::names::harmless;
use haversack::store::{Backend, BackendExt, Bytes, Condition, DeviceLocal, Locator};
use haversack::sync::{Author, Context, Deletions, Gate, Hold, Open, Recent, Replica, Report, SyncError};
use tempfile::TempDir;

use crate::subjects::at;

mod damage;
mod damaged_state;
mod folding;
mod growth;
mod held;
mod history;
mod hostile;
mod incoming;
mod lab;
mod lost_remote;
mod mirror;
mod older_state;
mod renames;
mod scope;
mod shorten;
mod swaps;
mod unwritable;

/// Ids that count.
pub(crate) struct Counting(pub(crate) AtomicU64);

impl Ids for Counting {
    fn next(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
    }
}

/// A clock that stands still.
pub(crate) struct Midnight;

impl Clock for Midnight {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

/// Holds back what looks like a secret.
struct NoSecrets;

impl Gate for NoSecrets {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        content.starts_with(b"secret").then(|| Hold::whole("it looks like a secret"))
    }
}

/// Devices that share a directory.
pub(crate) struct World {
    base: TempDir,
    ids: Counting,
}

impl World {
    fn new() -> World {
        World { base: TempDir::new().expect("a temporary directory"), ids: Counting(AtomicU64::new(1)) }
    }

    fn open(&self, name: &str) -> Arc<dyn Backend> {
        let place = self.base.path().join(name);
        Arc::new(DeviceLocal::open(place, self.base.path().join("locks")).expect("it opens"))
    }

    fn files(&self, device: &str) -> Arc<dyn Backend> {
        self.open(&format!("{device}/memory"))
    }

    fn put(&self, device: &str, key: &str, bytes: impl Into<Bytes>) {
        let _ = block_on(self.files(device).write(&at(key), bytes.into(), Condition::Any)).expect("written");
    }

    fn delete(&self, device: &str, key: &str) {
        block_on(self.files(device).delete(&at(key), Condition::Any)).expect("deleted");
    }

    fn rename(&self, device: &str, from: &str, to: &str) {
        block_on(self.files(device).rename(&at(from), &at(to))).expect("renamed");
    }

    fn text(&self, device: &str, key: &str) -> Option<String> {
        block_on(self.files(device).read_text(&at(key))).expect("text")
    }

    fn keys(&self, device: &str) -> Vec<String> {
        let all = block_on(self.files(device).list_all(&Locator::root())).expect("listed");
        all.iter().map(Locator::to_string).collect()
    }

    /// Opens a device's replica and does something with it.
    fn with<T>(
        &self,
        device: &str,
        work: impl AsyncFnOnce(&mut Replica, Context<'_>) -> Result<T, SyncError>,
    ) -> Result<T, SyncError> {
        let author = Author { device: device.to_owned(), agent: None, session: None };
        let state = self.open(&format!("{device}/state"));
        block_on(async {
            let mut replica =
                Replica::open(self.files(device), state, self.open("remote"), &self.ids).await?;
            work(&mut replica, Context::new(&Midnight, &self.ids, &author)).await
        })
    }

    fn try_sync(&self, device: &str, gate: &dyn Gate, deletions: Deletions) -> Result<Report, SyncError> {
        self.with(device, async |replica, context| replica.sync(Context { gate, deletions, ..context }).await)
    }

    fn sync(&self, device: &str) -> Report {
        self.try_sync(device, &Open, Deletions::Cautious).expect("synced")
    }
}

#[test]
fn what_one_device_writes_the_other_has() {
    let world = World::new();
    world.put("laptop", "lighthouse/ports.md", "staging 5433\n");
    world.put("laptop", "large.bin", vec![7; 700_000]);
    assert_eq!(world.sync("laptop").published, 1);
    let report = world.sync("desktop");
    assert_eq!((report.taken, report.published), (1, 0));
    assert_eq!(world.text("desktop", "lighthouse/ports.md").as_deref(), Some("staging 5433\n"));
    let large = block_on(world.files("desktop").read(&at("large.bin"))).expect("fetched");
    assert_eq!(large.bytes, vec![7; 700_000]);
    assert_eq!(world.sync("laptop"), Report::default(), "nothing is left to do");
}

#[test]
fn changes_of_both_are_merged() {
    let world = World::new();
    world.put("laptop", "MEMORY.md", "- ports\n- people\n");
    world.put("laptop", "log.jsonl", "{\"id\":\"1\"}\n");
    world.put("laptop", "old.md", "old\n");
    world.sync("laptop");
    world.sync("desktop");
    world.put("laptop", "MEMORY.md", "- ports\n- people\n- laptop's\n");
    world.put("laptop", "log.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    world.delete("laptop", "old.md");
    world.put("desktop", "MEMORY.md", "- ports\n- people\n- desktop's\n");
    world.put("desktop", "log.jsonl", "{\"id\":\"1\"}\n{\"id\":\"3\"}\n");
    world.sync("laptop");
    let report = world.sync("desktop");
    assert_eq!(report.merged, [at("MEMORY.md"), at("log.jsonl")]);
    world.sync("laptop");
    for device in ["laptop", "desktop"] {
        let index = "- ports\n- people\n- desktop's\n- laptop's\n";
        assert_eq!(world.text(device, "MEMORY.md").as_deref(), Some(index), "{device}");
        let log = "{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3\"}\n";
        assert_eq!(world.text(device, "log.jsonl").as_deref(), Some(log), "{device}");
        assert_eq!(world.keys(device), ["MEMORY.md", "log.jsonl"], "{device}: what was deleted stays so");
    }
}

#[test]
fn a_binary_file_that_both_changed_is_there_twice() {
    let world = World::new();
    world.put("laptop", "map.png", &b"\x89PNG laptop\0"[..]);
    world.put("desktop", "map.png", &b"\x89PNG desktop\0"[..]);
    for device in ["laptop", "desktop", "laptop"] {
        world.sync(device);
    }
    let keys = world.keys("laptop");
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(keys[0].starts_with("map.conflict-") && keys[1] == "map.png", "{keys:?}");
    assert_eq!(world.keys("desktop"), keys);
}

#[test]
fn names_that_differ_by_case_step_aside() {
    let world = World::new();
    world.put("laptop", "README.md", "laptop's\n");
    world.put("desktop", "readme.md", "desktop's\n");
    for device in ["laptop", "desktop", "laptop"] {
        world.sync(device);
    }
    let keys = world.keys("laptop");
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(keys[1].starts_with("readme.case-"), "{keys:?}");
    assert_eq!(world.keys("desktop"), keys);
    assert_eq!(world.text("laptop", &keys[1]).as_deref(), Some("desktop's\n"));
}

#[test]
fn what_is_held_back_stays_and_is_listed() {
    let world = World::new();
    world.put("laptop", "a.md", "fine\n");
    world.put("laptop", "key.md", "secret 123\n");
    let report = world.try_sync("laptop", &NoSecrets, Deletions::Cautious).expect("synced");
    assert_eq!(report.held, [(at("key.md"), Hold::whole("it looks like a secret"))]);
    world.sync("desktop");
    assert_eq!(world.keys("desktop"), ["a.md"]);
}

#[test]
fn very_many_deletions_wait_and_an_emptied_directory_deletes_nothing() {
    let world = World::new();
    for number in 0..20 {
        world.put("laptop", &format!("{number}.md"), "x\n");
    }
    world.sync("laptop");
    for number in 0..10 {
        world.delete("laptop", &format!("{number}.md"));
    }
    assert_eq!(world.sync("laptop").waiting_deletions.len(), 10);
    world.sync("desktop");
    assert_eq!(world.keys("desktop").len(), 20);
    for number in 10..20 {
        world.delete("laptop", &format!("{number}.md"));
    }
    let vanished = world.try_sync("laptop", &Open, Deletions::Cautious);
    assert!(matches!(vanished, Err(SyncError::Vanished)), "{vanished:?}");
    world.try_sync("laptop", &Open, Deletions::Allowed).expect("meant");
    // The other machine holds them too, until its user says the same.
    assert_eq!(world.sync("desktop").held_deletions.len(), 20);
    world.try_sync("desktop", &Open, Deletions::Allowed).expect("meant");
    assert_eq!(world.keys("desktop"), Vec::<String>::new());
}

/// Seed 51 of `random_machines::real_use`: deletions that waited were sent without an answer, because other devices had added files since.
#[test]
fn waiting_deletions_wait_also_when_there_is_nothing_to_send() {
    let world = World::new();
    for number in 0..6 {
        world.put("laptop", &format!("old{number}.md"), format!("begin {number}\n"));
    }
    world.sync("laptop");
    world.sync("desktop");
    for number in 0..4 {
        world.delete("laptop", &format!("old{number}.md"));
    }
    assert_eq!(world.sync("laptop").waiting_deletions.len(), 4);
    for number in 0..9 {
        world.put("desktop", &format!("new{number}.md"), format!("more {number}\n"));
    }
    world.sync("desktop");
    for _ in 0..2 {
        assert_eq!(world.sync("laptop").waiting_deletions.len(), 4);
    }
    world.sync("desktop");
    assert_eq!(world.text("desktop", "old0.md").as_deref(), Some("begin 0\n"));
}

#[test]
fn a_remote_that_went_back_or_is_another_is_not_written_to() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    let remote = world.open("remote");
    let first = Locator::reserved(".haversack/log/0000000000000001").expect("ours");
    let bytes = block_on(remote.read(&first)).expect("there").bytes;
    block_on(remote.delete(&first, Condition::Any)).expect("deleted");
    world.put("laptop", "a.md", "two\n");
    let trouble = world.try_sync("laptop", &Open, Deletions::Cautious);
    assert!(matches!(trouble, Err(SyncError::WentBack { .. })), "{trouble:?}");
    let _ = block_on(remote.write(&first, bytes, Condition::Absent)).expect("put back");
    assert_eq!(world.sync("laptop").published, 1);
    for locator in block_on(remote.list_all(&Locator::reserved(".haversack").expect("ours"))).expect("listed")
    {
        block_on(remote.delete(&locator, Condition::Any)).expect("replaced");
    }
    world.put("tablet", "b.md", "another store\n");
    world.sync("tablet");
    world.put("laptop", "a.md", "three\n");
    let trouble = world.try_sync("laptop", &Open, Deletions::Cautious);
    assert!(matches!(trouble, Err(SyncError::OtherStore { .. })), "{trouble:?}");
    assert_eq!(world.keys("laptop"), ["a.md"]);
}

#[test]
fn only_one_process_syncs_a_replica() {
    let world = World::new();
    let state = world.open("laptop/state");
    let _first =
        block_on(Replica::open(world.files("laptop"), state.clone(), world.open("remote"), &world.ids));
    let second = block_on(Replica::open(world.files("laptop"), state, world.open("remote"), &world.ids));
    assert!(matches!(second, Err(SyncError::Busy)), "{second:?}");
}

#[test]
fn names_that_hold_a_secret_are_hidden_in_commits() {
    let world = World::new();
    world.put("laptop", "lamp.md", "white\n");
    world.sync("laptop");
    world.put("laptop", "ports.md", "staging 5433\n");
    let token = |letter: &str| format!("gh{}_{letter}7Rt2LmXw9ZcK4vB8nHs1DfG6jYp3TaE5uQo", "p");
    let author = Author {
        device: format!("laptop {}", token("a")),
        agent: Some(token("b")),
        session: Some(format!("{}\u{1b}", token("c"))),
    };
    let recent = world
        .with("laptop", async |replica, context| {
            replica.sync(Context { author: &author, ..context }).await?;
            Ok(replica.take_recent())
        })
        .expect("synced");
    let [(_, bytes)] = &recent.into_iter().filter_map(Recent::read).collect::<Vec<_>>()[..] else {
        panic!("one commit")
    };
    let commit = Commit::decode(bytes).expect("a commit");
    assert_eq!(commit.device, harmless(&author.device));
    assert_eq!(commit.agent, author.agent.as_deref().map(harmless));
    assert_eq!(commit.session, author.session.as_deref().map(harmless));
    let names = [Some(commit.device), commit.agent, commit.session];
    assert!(names.iter().flatten().all(|name| name.starts_with("hidden-")), "{names:?}");
}
