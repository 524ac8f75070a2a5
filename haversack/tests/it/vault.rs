//! A folder that a sync client replicates: devices that meet in it through their bridges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_lite::future::block_on;
use haversack::clock::Clock;
use haversack::home::{self, Home, HomeReport, Meeting, Round, Work};
use haversack::ids::{ContentHash, Ids, Timestamp};
use haversack::store::{Backend, BackendExt, Bytes, Condition, InMemory, Locator, SplitBackend};
use haversack::sync::{Author, Context, Impatient, Mirror, Patience, Replica, Report, SyncError};
use haversack::vault::{Bridge, Entry, Mine, TransferStats};

/// Ids that are never returned twice.
struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> [u8; 16] {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes = [7; 16];
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

/// A clock that stands still, so many minutes after the beginning.
struct Stopped(i64);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(1_789_000_000_000 + self.0 * 60_000)
    }
}

/// Has time for so many steps.
struct Hurried(AtomicUsize);

impl Hurried {
    fn for_steps(steps: usize) -> Hurried {
        Hurried(steps.into())
    }
}

#[async_trait]
impl Patience for Hurried {
    async fn wait(&self, _: usize) -> bool {
        false
    }

    fn has_time(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A device with its copy of the folder.
struct Device {
    name: &'static str,
    ids: Counting,
    files: Arc<dyn Backend>,
    state: Arc<dyn Backend>,
    home: Arc<dyn Backend>,
    folder: Arc<InMemory>,
}

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

impl Device {
    fn new(name: &'static str, seed: u64) -> Device {
        let backend = || Arc::new(InMemory::new());
        Device {
            name,
            ids: Counting(seed.into()),
            files: backend(),
            state: backend(),
            home: backend(),
            folder: backend(),
        }
    }

    fn write(&self, key: &str, text: &str) {
        let written =
            block_on(self.files.write(&at(key), Bytes::copy_from_slice(text.as_bytes()), Condition::Any));
        let _ = written.expect("written");
    }

    fn text(&self, key: &str) -> Option<String> {
        block_on(self.files.read_text(&at(key))).expect("text")
    }

    /// Does one round of this device's home, some minutes after the beginning.
    fn round(&self, round: &Round<'_>, minutes: i64) -> Result<HomeReport, SyncError> {
        let author = Author { device: self.name.to_owned(), agent: None, session: None };
        let clock = Stopped(minutes);
        let context = Context::new(&clock, &self.ids, &author);
        let home = Home::new(self.name, self.files.clone(), self.state.clone(), Vec::new());
        let meeting = Meeting::folder(self.folder.clone(), self.home.clone());
        block_on(home::sync(&home, &meeting, context, round)).map_err(|stopped| stopped.error)
    }

    /// Syncs; returns the entries that were carried.
    fn sync(&self) -> Result<TransferStats, SyncError> {
        let round = Round { mirror: Mirror::Off, ..Round::new(Work::Sync) };
        self.round(&round, 0).map(|report| report.transfers)
    }

    /// Puts back what the folder has lost.
    fn mend(&self) -> usize {
        let mended = block_on(async {
            Bridge::open(self.folder.clone(), self.home.clone(), &self.ids).await?.mend().await
        });
        mended.expect("mended")
    }

    /// Appends arrived entries to this device's own log, and nothing else: the sync was killed then.
    fn take_in(&self, patience: &dyn Patience) -> TransferStats {
        let author = Author { device: self.name.to_owned(), agent: None, session: None };
        let context = Context { patience, ..Context::new(&Stopped(0), &self.ids, &author) };
        let carried = block_on(async {
            let mut bridge = Bridge::open(self.folder.clone(), self.home.clone(), &self.ids).await?;
            bridge.take_in_only(context).await
        });
        carried.expect("taken in")
    }

    fn delete(&self, key: &str) {
        block_on(self.files.delete(&at(key), Condition::Any)).expect("deleted");
    }

    /// Looks at every plain file in the folder too, some minutes after the beginning.
    fn look(&self, mine: Mine, minutes: i64) -> Report {
        self.round(&Round { mine, ..Round::new(Work::Full) }, minutes).expect("looked at").sync
    }

    /// The same by hand, step by step, with an interruption before the new entries are carried.
    fn look_and(&self, mine: Mine, minutes: i64, before_told: impl FnOnce()) -> Report {
        self.look_with(&Impatient, mine, minutes, before_told)
    }

    /// The same, as long as there is time.
    fn look_with(
        &self,
        patience: &dyn Patience,
        mine: Mine,
        minutes: i64,
        before_told: impl FnOnce(),
    ) -> Report {
        let author = Author { device: self.name.to_owned(), agent: None, session: None };
        let clock = Stopped(minutes);
        let context = Context { patience, ..Context::new(&clock, &self.ids, &author) };
        let looked = block_on(async {
            let mut bridge = Bridge::open(self.folder.clone(), self.home.clone(), &self.ids).await?;
            bridge.prepare(context).await?;
            let remote = Arc::new(SplitBackend::new(self.home.clone(), self.folder.clone()));
            let mut replica =
                Replica::open(self.files.clone(), self.state.clone(), remote, &self.ids).await?;
            replica.sync(context).await?;
            bridge.carry(context).await?;
            let origins = bridge.origins(context, mine.clone()).await?;
            let known = Context { origins: &origins, ..context };
            let report = replica.reconcile(known, Mirror::On).await?;
            before_told();
            bridge.carry(context).await?;
            let origins = bridge.origins(context, mine).await?;
            replica.mirror(Context { origins: &origins, ..context }).await?;
            bridge.await_files(context, &report.awaited).await?;
            Ok::<Report, SyncError>(report)
        });
        looked.expect("looked at")
    }

    /// Lets a plain file lie in the folder.
    fn put(&self, key: &str, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let _ = block_on(self.folder.write(&at(key), bytes, Condition::Any)).expect("written");
    }

    /// Returns the plain files in the folder.
    fn plain(&self) -> Vec<String> {
        let all = block_on(self.folder.list_all(&Locator::root())).expect("listed").into_iter();
        all.filter(|locator| !locator.is_reserved()).map(|locator| locator.to_string()).collect()
    }

    fn in_folder(&self) -> Vec<Locator> {
        let ours = Locator::reserved(".haversack").expect("ours");
        block_on(self.folder.list_all(&ours)).expect("listed")
    }

    /// Returns the name of its log.
    fn own_log(&self) -> String {
        let bridge = block_on(Bridge::open(self.folder.clone(), self.home.clone(), &self.ids));
        bridge.expect("opened").replica().to_string()
    }

    /// Returns the files of its log in its folder.
    fn own_files(&self) -> Vec<Locator> {
        let within = format!("/log/{}/", self.own_log());
        self.in_folder().into_iter().filter(|locator| locator.as_str().contains(&within)).collect()
    }
}

/// Lets everything that one folder has and the other does not arrive there.
fn carry(from: &Device, to: &Device) {
    for locator in from.in_folder() {
        let bytes = block_on(from.folder.read(&locator)).expect("read").bytes;
        drop(block_on(to.folder.write(&locator, bytes, Condition::Absent)));
    }
}

fn both_ways(one: &Device, other: &Device) {
    carry(one, other);
    carry(other, one);
}

#[test]
fn what_one_device_writes_the_other_gets() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes/lighthouse.md", "- the lamp is lit\n");
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    assert_eq!(desk.text("notes/lighthouse.md").as_deref(), Some("- the lamp is lit\n"));
    laptop.write("notes/lighthouse.md", "- the lamp is lit\n- from the laptop\n");
    desk.write("notes/lighthouse.md", "- from the desk\n- the lamp is lit\n");
    for _ in 0..3 {
        laptop.sync().expect("synced");
        desk.sync().expect("synced");
        both_ways(&laptop, &desk);
    }
    let merged = "- from the desk\n- the lamp is lit\n- from the laptop\n";
    assert_eq!(laptop.text("notes/lighthouse.md").as_deref(), Some(merged));
    assert_eq!(desk.text("notes/lighthouse.md").as_deref(), Some(merged));
    let before = laptop.in_folder();
    assert_eq!(laptop.sync().expect("synced"), TransferStats::default());
    assert_eq!(laptop.in_folder(), before, "who has nothing to say writes nothing");
}

/// Every device writes below its own name only, and whatever is there reads as an entry.
#[test]
fn every_device_has_a_log_of_its_own() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    for round in 0..4 {
        laptop.write("state/watched_chats", &format!("l{round}\n"));
        desk.write("MEMORY.md", &format!("# Memory\n- [d{round}](d{round}.md) — d{round}\n"));
        laptop.sync().expect("synced");
        both_ways(&laptop, &desk);
        desk.sync().expect("synced");
        both_ways(&laptop, &desk);
    }
    let mut writers = std::collections::BTreeSet::new();
    for locator in laptop.in_folder().iter().filter(|locator| locator.as_str().contains("/log/")) {
        let bytes = block_on(laptop.folder.read(locator)).expect("read").bytes;
        let entry = Entry::decode(&bytes).expect("an entry");
        assert!(locator.as_str().contains(&entry.replica.to_string()));
        writers.insert(entry.replica);
    }
    assert_eq!(writers.len(), 2);
}

/// A long log is few files, and who joins then has everything.
#[test]
fn a_long_log_is_folded() {
    let laptop = Device::new("laptop", 0);
    for number in 0..300 {
        laptop.write(
            "interactions/2026-11-16.jsonl",
            &(0..=number).map(|n| format!("{{\"id\":\"e{n}\"}}\n")).collect::<String>(),
        );
        laptop.sync().expect("synced");
    }
    let files = laptop.in_folder().len();
    assert!(files < 200, "{files} files");
    let desk = Device::new("desk", 1_000_000);
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    assert_eq!(desk.text("interactions/2026-11-16.jsonl"), laptop.text("interactions/2026-11-16.jsonl"));
}

/// Contents that are too large for a commit are beside it, and are waited for.
#[test]
fn large_contents_come_with_their_entry() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    let large = "lighthouse\n".repeat(60_000);
    laptop.write("notes/long.md", &large);
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    let object =
        desk.in_folder().into_iter().find(|at| at.as_str().contains("/objects/")).expect("an object");
    let bytes = block_on(desk.folder.read(&object)).expect("read").bytes;
    block_on(desk.folder.delete(&object, Condition::Any)).expect("deleted");
    let carried = desk.sync().expect("synced");
    assert_eq!((desk.text("notes/long.md"), carried.waiting.len()), (None, 1));
    let _ = block_on(desk.folder.write(&object, bytes, Condition::Absent)).expect("arrived");
    desk.sync().expect("synced");
    assert_eq!(desk.text("notes/long.md"), Some(large));
}

/// A folder that is not mounted, or that its client emptied, is no deletion, and nothing begins there anew.
#[test]
fn an_empty_folder_is_left_alone() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes/lighthouse.md", "- the lamp is lit\n");
    laptop.sync().expect("synced");
    laptop.sync().expect("synced");
    let emptied = Device { folder: Arc::new(InMemory::new()), ..laptop };
    assert!(matches!(emptied.sync(), Err(SyncError::Emptied)));
    assert_eq!(emptied.in_folder(), []);
    assert_eq!(emptied.text("notes/lighthouse.md").as_deref(), Some("- the lamp is lit\n"));
}

/// Another vault in the same place is noticed.
#[test]
fn another_store_is_not_written_to() {
    let (laptop, stranger) = (Device::new("laptop", 0), Device::new("stranger", 1_000));
    for device in [&laptop, &stranger] {
        device.write("notes/lighthouse.md", "- the lamp is lit\n");
        device.sync().expect("synced");
        device.sync().expect("synced");
    }
    let swapped = Device { folder: stranger.folder.clone(), ..laptop };
    let before = stranger.in_folder();
    assert!(matches!(swapped.sync(), Err(SyncError::OtherStore { .. })));
    assert_eq!(stranger.in_folder(), before);
}

/// A device keeps a copy of everything that it has read: a file that the folder loses is no deletion, and our own files are written there again.
#[test]
fn folder_that_loses_logs_changes_nothing() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    for round in 0..3 {
        laptop.write("notes/lamp.md", &format!("- lit {round} times\n"));
        desk.write("notes/oil.md", &format!("- {round} barrels\n"));
        for device in [&laptop, &desk] {
            device.sync().expect("synced");
            both_ways(&laptop, &desk);
        }
    }
    laptop.sync().expect("synced");
    let is_log = |locator: &&Locator| locator.as_str().contains("/log/");
    let texts = || [laptop.text("notes/lamp.md"), laptop.text("notes/oil.md")];
    let (before, logs) = (texts(), laptop.in_folder());
    let logs: Vec<Locator> = logs.iter().filter(is_log).cloned().collect();
    let by_laptop = |locator: &&Locator| {
        let bytes = block_on(desk.folder.read(locator)).expect("read").bytes;
        Entry::decode(&bytes).expect("an entry").commit.is_some_and(|commit| commit.device == "laptop")
    };
    let own: Vec<Locator> = logs.iter().filter(by_laptop).cloned().collect();
    assert!(!own.is_empty() && own.len() < logs.len());
    // First it goes back by one entry of each, then all of them are gone.
    for lost in [vec![&own[own.len() - 1], &logs[0]], logs.iter().collect()] {
        for locator in lost {
            drop(block_on(laptop.folder.delete(locator, Condition::Any)));
        }
        let carried = laptop.sync().expect("synced");
        assert_eq!((texts(), carried.taken), (before.clone(), 0));
        let there = laptop.in_folder();
        assert!(own.iter().all(|locator| there.contains(locator)), "{there:?}");
    }
    both_ways(&laptop, &desk);
    assert_eq!(laptop.sync().expect("synced").taken, 0);
    assert_eq!(texts(), before);
}

/// A machine is gone, and the folder lost a part of its log: a device with a copy restores it, and a new machine then has everything.
#[test]
fn lost_logs_of_a_gone_machine_are_restored() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    let long = "lighthouse\n".repeat(60_000);
    laptop.write("notes/long.md", &long);
    for round in 0..3 {
        laptop.write("notes/lamp.md", &format!("- lit {round} times\n"));
        laptop.sync().expect("synced");
        carry(&laptop, &desk);
        desk.write("notes/oil.md", &format!("- {round} barrels\n"));
        desk.sync().expect("synced");
        carry(&desk, &laptop);
    }
    let whole: Vec<(Locator, Bytes)> = desk
        .in_folder()
        .into_iter()
        .map(|locator| (locator.clone(), block_on(desk.folder.read(&locator)).expect("read").bytes))
        .collect();
    let owner = laptop.own_log();
    let is_laptops = |locator: &Locator| locator.as_str().contains(&owner);
    let (logs, objects): (Vec<_>, Vec<_>) = whole
        .iter()
        .filter(|(locator, _)| is_laptops(locator))
        .partition(|(locator, _)| locator.as_str().contains("/log/"));
    assert_eq!((logs.len(), objects.len()), (3, 1));
    block_on(desk.folder.delete(&logs[0].0, Condition::Any)).expect("lost");
    block_on(desk.folder.delete(&objects[0].0, Condition::Any)).expect("lost");
    let half = logs[1].1.slice(..logs[1].1.len() / 2);
    let _ = block_on(desk.folder.write(&logs[1].0, half, Condition::Any)).expect("damaged");

    let tablet = Device::new("tablet", 2_000);
    carry(&desk, &tablet);
    tablet.sync().expect("synced");
    assert_eq!(tablet.text("notes/lamp.md"), None, "it waits for what its author had read");

    assert_eq!(desk.mend(), 2, "an entry brings what it needs");
    block_on(desk.folder.delete(&objects[0].0, Condition::Any)).expect("lost");
    assert_eq!(desk.mend(), 1);
    for (locator, bytes) in &whole {
        assert_eq!(block_on(desk.folder.read(locator)).expect("there").bytes, *bytes, "{locator}");
    }
    assert_eq!(desk.mend(), 0, "nothing is lost any more");
    let tablet = Device::new("tablet", 2_000);
    carry(&desk, &tablet);
    tablet.sync().expect("synced");
    for key in ["notes/lamp.md", "notes/oil.md", "notes/long.md"] {
        assert_eq!(tablet.text(key), desk.text(key), "{key}");
    }
    assert_eq!(tablet.text("notes/long.md"), Some(long));
}

/// A file that has not arrived yet, and a file that another device wrote under the name, are not lost.
#[test]
fn existing_log_files_are_left_alone() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes/lamp.md", "- lit\n");
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    laptop.write("notes/lamp.md", "- lit\n- and out\n");
    laptop.sync().expect("synced");
    let [first, second] = &laptop.own_files()[..] else { panic!("two entries") };
    let bytes = |locator| block_on(laptop.folder.read(locator)).expect("read").bytes;
    // A half of what the desk has never had, and a whole entry where it had another.
    let other = Entry { commit: None, ..Entry::decode(&bytes(first)).expect("an entry") };
    let other = other.encode().expect("encoded");
    let half = bytes(second).slice(..bytes(second).len() / 2);
    let _ = block_on(desk.folder.write(first, other.clone(), Condition::Any)).expect("written");
    let _ = block_on(desk.folder.write(second, half.clone(), Condition::Any)).expect("written");
    assert_eq!(desk.mend(), 0);
    let there = |locator| block_on(desk.folder.read(locator)).expect("read").bytes;
    assert_eq!((there(first), there(second)), (other, half));
}

/// A range of a log is put back as it was; what was put back before it had arrived is taken away by its owner.
#[test]
fn a_folded_log_is_put_back() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000_000));
    for number in 0..300 {
        laptop.write("state/last_seen.cursor", &format!("{number}\n"));
        laptop.sync().expect("synced");
    }
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    let is_range = |locator: &&Locator| locator.name().contains('-');
    let files = laptop.own_files();
    let range = files.iter().find(is_range).expect("folded");
    let whole = block_on(laptop.folder.read(range)).expect("read").bytes;
    let zeros = Bytes::from(vec![0; whole.len()]);
    let _ = block_on(desk.folder.write(range, zeros, Condition::Any)).expect("damaged");
    assert_eq!(desk.mend(), 1);
    assert_eq!(block_on(desk.folder.read(range)).expect("read").bytes, whole);

    block_on(desk.folder.delete(range, Condition::Any)).expect("not arrived");
    let put_back = desk.mend();
    assert!(put_back > 100, "{put_back}");
    carry(&desk, &laptop);
    assert_eq!(laptop.own_files().len(), files.len() + put_back);
    assert_eq!(laptop.mend(), 0);
    assert_eq!(laptop.own_files(), files);
}

/// Seed 3075816 of the vault's schedules: the lamp is removed by a device that had not heard of the file's deletion. With that, nothing is
/// left that the deletion had not seen, so the file goes. Another device's change at that time stays, without the lamp.
#[test]
fn removed_line_stays_removed_after_an_edit_of_a_deleted_file() {
    let key = "state/watched_chats";
    for (edited, stays) in [("lamp\n", ""), ("oil\nlamp\nrope\n", "oil\nrope\n")] {
        let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
        laptop.write("other", "first\n");
        laptop.sync().expect("synced");
        carry(&laptop, &desk);
        desk.sync().expect("synced");
        laptop.write(key, "oil\n");
        desk.write(key, "lamp\n");
        laptop.sync().expect("synced");
        desk.sync().expect("synced");
        carry(&laptop, &desk);
        carry(&desk, &laptop);
        desk.sync().expect("synced");
        desk.write(key, "oil\n");
        desk.sync().expect("synced");
        laptop.delete(key);
        laptop.sync().expect("synced");
        assert_eq!(laptop.text(key).as_deref(), Some("lamp\noil\n"), "what nobody saw deleted stood");
        carry(&desk, &laptop);
        assert_ne!(laptop.take_in(&Impatient), TransferStats::default(), "the removal arrives");
        laptop.write(key, edited);
        for _ in 0..3 {
            laptop.sync().expect("synced");
            desk.sync().expect("synced");
            both_ways(&laptop, &desk);
        }
        assert_eq!(laptop.text(key).unwrap_or_default(), stays);
        assert_eq!(desk.text(key), laptop.text(key));
    }
}

/// A conflict copy need not have been made from anything that is known: it adds, and takes nothing away.
#[test]
fn conflict_copy_removes_no_line() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    laptop.put("notes (a teammate's conflicted copy 2026-11-16).md", "# Lighthouse\n- from the desk\n");
    laptop.look(Mine::Everything, 0);
    let text = laptop.text("notes.md").expect("there");
    assert!(text.contains("- from the laptop\n") && text.contains("- from the desk\n"), "{text}");
    assert_eq!(laptop.plain(), ["notes.md"]);
}

/// The user keeps other files in the same folder: neither they nor the copies that the client makes of them become memory.
#[test]
fn unrelated_copies_are_left_alone() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes/lamp.md", "the lamp\n");
    laptop.look(Mine::Nothing, 0);
    let copy = "taxes/2025 (a teammate's conflicted copy 2026-11-16).md";
    laptop.put("taxes/2025.md", "mine\n");
    laptop.put(copy, "theirs\n");
    for mine in [Mine::Nothing, Mine::Everything] {
        let report = laptop.look(mine, 60);
        assert_eq!(report.unrelated, [at(copy), at("taxes/2025.md")]);
    }
    assert_eq!(laptop.plain(), ["notes/lamp.md", copy, "taxes/2025.md"]);
    assert_eq!(laptop.text("taxes/2025.md"), None);
    // A user who names the very file wants it.
    let named = Mine::These([(at("taxes/2025.md"), ContentHash::of(b"mine\n"))].into());
    laptop.look(named, 60);
    assert_eq!(laptop.text("taxes/2025.md").as_deref(), Some("mine\n"));
}

/// If a client made a copy of our file and replaced it by another one, the new one was not made from ours.
#[test]
fn replacing_file_removes_no_line() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    laptop.put("notes 2.md", "# Lighthouse\n- from the laptop\n");
    laptop.put("notes.md", "# Lighthouse\n- from the desk\n");
    // Its origin is not known yet: until then, the copy stays.
    assert_eq!(laptop.look(Mine::Nothing, 0).awaited.len(), 1);
    assert_eq!(laptop.plain(), ["notes 2.md", "notes.md"]);
    laptop.look(Mine::Nothing, 2);
    let text = laptop.text("notes.md").expect("there");
    assert!(text.contains("- from the laptop\n") && text.contains("- from the desk\n"), "{text}");
    // Seed 70841702: it was taken in just now, and others may not know of that yet.
    assert_eq!(laptop.plain(), ["notes 2.md", "notes.md"]);
    laptop.look(Mine::Nothing, 2);
    assert_eq!(laptop.plain(), ["notes.md"]);
    // Without a copy it was made from what was there.
    let by_hand = "# Lighthouse\n- from the desk\n";
    laptop.put("notes.md", by_hand);
    laptop.look(Mine::These([(at("notes.md"), ContentHash::of(by_hand.as_bytes()))].into()), 2);
    assert_eq!(laptop.text("notes.md").as_deref(), Some("# Lighthouse\n- from the desk\n"));
}

/// Seed 70945588 of the vault's schedules: a client replaced our file by another device's, and a user edited it there. Lines that the
/// other device never had were not removed.
#[test]
fn edit_of_another_devices_file_removes_no_line() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("oil.md", "- low\n");
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    desk.write("notes.md", "# Lighthouse\n- from the desk\n");
    desk.sync().expect("synced");
    carry(&desk, &laptop);
    laptop.put("notes.md", "# Lighthouse\n- from the desk\n- by hand\n");
    laptop.look(Mine::Everything, 0);
    let text = laptop.text("notes.md").expect("there");
    for line in ["- from the laptop\n", "- from the desk\n", "- by hand\n"] {
        assert!(text.contains(line), "{text}");
    }
    // A user removed a line that every device had seen.
    laptop.put("notes.md", "# Lighthouse\n- by hand\n");
    laptop.look(Mine::Everything, 0);
    assert_eq!(laptop.text("notes.md").as_deref(), Some("# Lighthouse\n- by hand\n"));
}

/// Seed 70952101 of the vault's schedules: of three contents that cannot be merged, one wins when everything is read, and loses before. A device that
/// builds on the present winner does not lose it.
#[test]
fn temporary_merge_loser_gets_a_copy() {
    let mut contents = ["a", "b", "c", "d", "e"].map(|name| format!("\0{name}\n"));
    // The least hash wins.
    contents.sort_by_key(|content| ContentHash::of(content.as_bytes()));
    let [again, replaced, desks, sheds, laptops] = &contents;
    for steps in 1..=4 {
        let devices = [Device::new("laptop", 0), Device::new("desk", 1_000), Device::new("shed", 2_000)];
        let [laptop, desk, shed] = &devices;
        laptop.write("oil.md", "- low\n");
        for device in &devices {
            carry(laptop, device);
            device.sync().expect("synced");
        }
        for (device, content) in [(laptop, laptops), (desk, desks), (shed, replaced), (shed, sheds)] {
            device.write("sketch.bin", content);
            device.sync().expect("synced");
        }
        carry(desk, laptop);
        carry(shed, laptop);
        laptop.take_in(&Hurried::for_steps(steps));
        laptop.write("sketch.bin", again);
        laptop.sync().expect("synced");
        let names = block_on(laptop.files.list_all(&Locator::root())).expect("listed");
        let held: Vec<_> = names.iter().filter_map(|name| laptop.text(name.as_str())).collect();
        for content in [again, desks, sheds] {
            assert!(held.iter().any(|held| held == content), "{steps}: {content:?} is not in {held:?}");
        }
    }
}

/// Seed 73663538 of the vault's schedules: what a run has kept and had no time to take in, the next one takes in, though nothing new arrives.
#[test]
fn what_there_was_no_time_for_is_taken_in_by_the_next_run() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes.md", "- from the laptop\n");
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    desk.write("oil.md", "- low\n");
    desk.sync().expect("synced");
    carry(&desk, &laptop);
    assert_eq!(laptop.take_in(&Hurried::for_steps(0)).taken, 0);
    assert_eq!(laptop.sync().expect("synced").taken, 1);
    assert_eq!(laptop.text("oil.md").as_deref(), Some("- low\n"));
    assert_eq!(laptop.sync().expect("synced"), TransferStats::default());
}

/// Seed 22818 of the vault's schedules: an edit was taken in, there was no time to tell of it, and it was taken out of the folder all the same; then its
/// device was put back from a backup.
#[test]
fn mirror_edit_is_kept_until_published() {
    for steps in 0..12 {
        let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
        laptop.write("oil.md", "- low\n");
        laptop.look(Mine::Nothing, 0);
        laptop.put("notes.md", "- by hand\n");
        laptop.look_with(&Hurried::for_steps(steps), Mine::Everything, 0, || ());
        // Even if the laptop is lost, its folder has the edit.
        carry(&laptop, &desk);
        for key in laptop.plain() {
            let plain = block_on(laptop.folder.read_text(&at(&key))).expect("read").expect("there");
            desk.put(&key, &plain);
        }
        desk.look(Mine::Everything, 0);
        assert_eq!(desk.text("notes.md").as_deref(), Some("- by hand\n"), "{steps} steps");
    }
}

/// Seed 83349192 of the vault's schedules: a copy was taken in and went; then its device was put back from a backup before it had told of it.
#[test]
fn conflict_copy_is_kept_until_published() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    let copy = "notes.sync-conflict-20261116-101112-ABCDEFG.md";
    laptop.put(copy, "# Lighthouse\n- from a copy\n");
    laptop.look_and(Mine::Everything, 0, || {
        assert!(laptop.text("notes.md").is_some_and(|text| text.contains("- from a copy\n")));
        assert_eq!(laptop.plain(), ["notes.md", copy]);
    });
    assert_eq!(laptop.plain(), ["notes.md"]);
}

/// An edit and a copy of one file are imported together, and the edit is replaced by the merge: no device imports it again.
#[test]
fn an_edit_is_replaced_although_a_copy_was_taken_in_after_it() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    laptop.put("notes.sync-conflict-20261116-101112-ABCDEFG.md", "# Lighthouse\n- from a copy\n");
    laptop.put("notes.md", "# Lighthouse\n- by hand\n");
    laptop.look(Mine::Everything, 0);
    let text = laptop.text("notes.md").expect("there");
    for line in ["- from the laptop\n", "- from a copy\n", "- by hand\n"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(laptop.plain(), ["notes.md"]);
    let plain = block_on(laptop.folder.read_text(&at("notes.md"))).expect("read");
    assert_eq!(plain, Some(text));
}

/// Seed 3086197 of the vault's schedules: a device put an edit together with what it had, and the merge into the folder, and was put back from
/// a backup before its log was there. Others took the merge for an edit, with a line in it that one of them had removed.
#[test]
fn what_is_shown_was_told_before() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    let plain = || block_on(laptop.folder.read_text(&at("notes.md"))).expect("read");
    assert_eq!(plain(), laptop.text("notes.md"));
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n- and more\n");
    laptop.sync().expect("synced");
    let edit = "# Lighthouse\n- by hand\n- from the laptop\n";
    laptop.put("notes.md", edit);
    laptop.look_and(Mine::Everything, 0, || {
        let text = laptop.text("notes.md").unwrap_or_default();
        assert!(text.contains("by hand") && text.contains("and more"), "{text}");
        assert_eq!(plain().as_deref(), Some(edit), "nobody can know yet what they come to");
    });
    assert_eq!(plain(), laptop.text("notes.md"));
}

/// Seed 15927 of the vault's schedules: another device's change arrived after a device had looked, and was carried together with that device's own. A device that has
/// not applied it yet does not overwrite the other's plain file.
#[test]
fn device_behind_the_log_writes_no_plain_file() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes.md", "# Lighthouse\n");
    laptop.look(Mine::Nothing, 0);
    carry(&laptop, &desk);
    desk.look(Mine::Nothing, 0);
    let desks = "# Lighthouse\n- from the desk\n";
    desk.write("notes.md", desks);
    desk.look(Mine::Nothing, 0);
    laptop.put("notes.md", "# Lighthouse\n- by hand\n");
    laptop.look_and(Mine::Everything, 0, || {
        carry(&desk, &laptop);
        laptop.put("notes.md", desks);
    });
    let plain = || block_on(laptop.folder.read_text(&at("notes.md"))).expect("read").expect("there");
    assert_eq!(plain(), desks);
    laptop.look(Mine::Nothing, 0);
    assert!(plain().contains("- by hand\n") && plain().contains("- from the desk\n"), "{}", plain());
}

/// Seed 3094029 of the vault's schedules: a user claims a file, and before it is read, a client replaces it by another one,
/// whose log has not arrived. The claim does not hold for that one.
#[test]
fn replaced_file_is_not_attributed_to_previous_author() {
    let laptop = Device::new("laptop", 0);
    laptop.write("notes.md", "# Lighthouse\n- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    let by_hand = "# Lighthouse\n- by hand\n- from the laptop\n";
    let said = Mine::These([(at("notes.md"), ContentHash::of(by_hand.as_bytes()))].into());
    laptop.put("notes.md", "# Lighthouse\n- from the desk\n");
    assert_eq!(laptop.look(said.clone(), 0).awaited.len(), 1);
    assert_eq!(laptop.text("notes.md").as_deref(), Some("# Lighthouse\n- from the laptop\n"));
    laptop.put("notes.md", by_hand);
    assert_eq!(laptop.look(said, 0).awaited, []);
    assert_eq!(laptop.text("notes.md").as_deref(), Some(by_hand));
}

/// An unknown file waits, a copy too: a quarter of an hour, or a minute if no other device was seen.
#[test]
fn waiting_file_is_imported_at_last() {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes.md", "- from the laptop\n");
    laptop.look(Mine::Nothing, 0);
    laptop.put("new.md", "- from somewhere\n");
    assert_eq!(laptop.look(Mine::Nothing, 0).awaited.len(), 1);
    assert_eq!(laptop.text("new.md"), None);
    laptop.look(Mine::Nothing, 1);
    assert_eq!(laptop.text("new.md").as_deref(), Some("- from somewhere\n"));
    carry(&laptop, &desk);
    desk.write("oil.md", "- low\n");
    desk.sync().expect("synced");
    carry(&desk, &laptop);
    let copy = "notes.sync-conflict-20261116-101112-ABCDEFG.md";
    laptop.put(copy, "- from a copy\n");
    for (minutes, is_awaited) in [(2, true), (16, true), (17, false)] {
        let report = laptop.look(Mine::Nothing, minutes);
        assert_eq!(!report.awaited.is_empty(), is_awaited, "{minutes}");
        assert_eq!(laptop.plain().contains(&copy.to_owned()), is_awaited, "{minutes}");
    }
    assert!(laptop.text("notes.md").expect("there").contains("- from a copy\n"));
}

/// Results of merges are in the log before they are in the folder, so that no device takes them for edits. A killed device announces them in its next run.
#[test]
fn merge_results_are_announced() {
    for is_killed in [false, true] {
        let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
        laptop.write("notes.md", "- the lamp is lit\n");
        laptop.sync().expect("synced");
        carry(&laptop, &desk);
        desk.sync().expect("synced");
        carry(&desk, &laptop);
        laptop.write("notes.md", "- the lamp is lit\n- from the laptop\n");
        laptop.sync().expect("synced");
        desk.write("notes.md", "- from the desk\n- the lamp is lit\n");
        if is_killed {
            desk.sync().expect("synced");
            carry(&laptop, &desk);
            assert_eq!(desk.take_in(&Impatient).taken, 1);
        } else {
            carry(&laptop, &desk);
        }
        desk.sync().expect("synced");
        let text = desk.text("notes.md").expect("there");
        assert!(text.contains("from the desk") && text.contains("from the laptop"), "{text}");
        let merged = (at("notes.md"), ContentHash::of(text.as_bytes()));
        let shown = desk.in_folder().into_iter().filter(|locator| locator.as_str().contains("/log/")).any(
            |locator| {
                let bytes = block_on(desk.folder.read(&locator)).expect("read").bytes;
                Entry::decode(&bytes).expect("an entry").shown.contains(&merged)
            },
        );
        assert!(shown, "killed: {is_killed}: {text}");
    }
}

/// Returns a laptop and a desk: the desk has renamed a file by case, and the laptop has edited it meanwhile. Neither knows of that yet.
fn case_rename_against_an_edit() -> (Device, Device) {
    let (laptop, desk) = (Device::new("laptop", 0), Device::new("desk", 1_000));
    laptop.write("notes.md", "begin\n\nlast\n");
    laptop.sync().expect("synced");
    carry(&laptop, &desk);
    desk.sync().expect("synced");
    both_ways(&laptop, &desk);
    laptop.sync().expect("synced");

    laptop.write("notes.md", "begin\n\nlast\n\nby the laptop\n");
    laptop.sync().expect("synced");
    desk.write("notes.md", "begin\n\nlast\n\nby the desk\n");
    desk.sync().expect("synced");
    both_ways(&laptop, &desk);
    desk.sync().expect("synced");
    let merged = desk.text("notes.md").expect("merged");
    desk.delete("notes.md");
    desk.write("NOTES.md", &merged);
    desk.sync().expect("synced");
    laptop.write("notes.md", "begin\n");
    laptop.sync().expect("synced");
    both_ways(&laptop, &desk);
    (laptop, desk)
}

/// Lets both devices sync until nothing is new; then both can still send, and each has the file under one of its names.
fn both_names_stay(laptop: &Device, desk: &Device) {
    for _ in 0..3 {
        laptop.sync().expect("synced");
        desk.sync().expect("synced");
        both_ways(laptop, desk);
    }
    let said = |text: Option<String>| -> Vec<String> {
        let text = text.expect("there");
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(said(laptop.text("notes.md")), ["begin", "by the desk"]);
    assert_eq!(said(desk.text("NOTES.md")), ["begin", "last", "by the desk", "by the laptop"]);
    for (from, to) in [(laptop, desk), (desk, laptop)] {
        from.write("oil.md", from.name);
        from.sync().expect("synced");
        both_ways(laptop, desk);
        to.sync().expect("synced");
        assert_eq!(to.text("oil.md").as_deref(), Some(from.name));
    }
}

/// Seed 51 of `random_machines::real_use`: no sync of the laptop ended any more.
#[test]
fn case_rename_against_an_edit_stops_no_sync() {
    let (laptop, desk) = case_rename_against_an_edit();
    both_names_stay(&laptop, &desk);
}

/// The laptop takes the rename in as two commits, and is killed between them.
#[test]
fn case_rename_against_an_edit_is_taken_in_whole_after_a_kill() {
    let (laptop, desk) = case_rename_against_an_edit();
    let commits = || -> Vec<Locator> {
        let own_log = Locator::reserved(".haversack/log").expect("ours");
        block_on(laptop.home.list_all(&own_log)).expect("listed")
    };
    let (standing, count) =
        (block_on(laptop.home.read(&at("standing"))).expect("read").bytes, commits().len());
    laptop.take_in(&Impatient);
    let taken = commits();
    assert_eq!(taken.len(), count + 2, "the rename is two commits");
    block_on(laptop.home.delete(&taken[taken.len() - 1], Condition::Any)).expect("not written");
    let _ = block_on(laptop.home.write(&at("standing"), standing, Condition::Any)).expect("as before");
    both_names_stay(&laptop, &desk);
}
