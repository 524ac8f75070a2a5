//! A remote whose old commits lose their contents, and the devices that meet it.

use std::time::Duration;

use futures_lite::future::block_on;
use haversack::history::{History, PastContent};
use haversack::ids::Position;
use haversack::log::{Form, MAX_INLINE_BYTES, Segment, layout};
use haversack::store::{BackendExt, Condition, Locator};
use haversack::sync::{Context, Impatient, Intervals, Mirror, Report, SyncError};

use super::World;
use crate::subjects::at;

/// Folds and shortens as soon as possible.
const SHORT: Intervals = Intervals {
    checkpoint_commits: 4,
    segment_commits: 4,
    keep_positions: Duration::ZERO,
    keep_contents: Some(Duration::ZERO),
    rebuilt_files: 2,
};

impl World {
    fn sync_short(&self, device: &str) -> Report {
        self.with(device, async |replica, context| {
            replica.sync(Context { intervals: SHORT, ..context }).await
        })
        .expect("synced")
    }

    /// Looks at everything, folds the log and drops its old contents.
    fn shorten(&self, device: &str) -> Report {
        self.with(device, async |replica, context| {
            replica.reconcile(Context { intervals: SHORT, ..context }, Mirror::Off).await
        })
        .expect("shortened")
    }

    /// Publishes a commit for each number; each replaces one file and makes another.
    fn write_history(&self, numbers: std::ops::RangeInclusive<usize>) {
        for number in numbers {
            self.put("laptop", "log.md", format!("# Log\n\nentry {number}\n"));
            self.put("laptop", &format!("notes/{number}.md"), format!("note {number}\n"));
            assert_eq!(self.sync_short("laptop").published, 1);
        }
    }

    fn names(&self, directory: &Locator) -> Vec<String> {
        let all = block_on(self.open("remote").list_all(directory)).expect("listed");
        all.iter().map(|locator| locator.name().to_owned()).collect()
    }

    fn segments(&self) -> Vec<Segment> {
        let remote = self.open("remote");
        let all = block_on(remote.list_all(&layout::segments())).expect("listed");
        let read = |locator: &Locator| block_on(remote.read(locator)).expect("there").bytes;
        all.iter().map(|locator| Segment::decode(&read(locator)).expect("a segment")).collect()
    }

    fn have_same_files(&self, one: &str, other: &str) {
        assert_eq!(self.keys(one), self.keys(other));
        for key in self.keys(one) {
            assert_eq!(self.text(one, &key), self.text(other, &key), "{key}");
        }
    }
}

#[test]
fn old_commits_lose_their_contents_and_new_devices_get_all_files() {
    let world = World::new();
    world.write_history(1..=10);
    assert!(world.segments().iter().all(Segment::is_whole));
    world.shorten("laptop");
    assert!(world.segments().iter().all(|segment| !segment.is_whole()));
    assert_eq!(world.names(&layout::checkpoints()), ["0000000000000010"], "older ones are gone");
    world.sync("desktop");
    world.have_same_files("laptop", "desktop");
    assert_eq!(world.sync("desktop"), Report::default());
    // The history goes on.
    world.put("desktop", "log.md", "# Log\n\nthe desktop's\n");
    assert_eq!(world.sync("desktop").published, 1);
    assert_eq!(world.sync("laptop").taken, 1);
    world.have_same_files("laptop", "desktop");
    let before = world.segments();
    world.shorten("laptop");
    assert_eq!(world.segments(), before, "nothing more is old enough to be in a segment");
}

#[test]
fn objects_that_nothing_names_are_deleted() {
    let world = World::new();
    let large = |fill: &str| fill.repeat(MAX_INLINE_BYTES + 1);
    world.put("laptop", "large.md", large("a"));
    world.sync_short("laptop");
    world.put("laptop", "large.md", large("b"));
    world.put("laptop", "other.md", large("c"));
    world.sync_short("laptop");
    world.write_history(1..=9);
    let before = world.names(&layout::objects()).len();
    world.shorten("laptop");
    let after = world.names(&layout::objects());
    assert!(after.len() < before, "{before} objects before, {after:?} after");
    world.sync("desktop");
    world.have_same_files("laptop", "desktop");
    // The deleted content can come back.
    world.put("desktop", "large.md", large("a"));
    world.sync("desktop");
    world.sync("laptop");
    world.sync("tablet");
    world.have_same_files("laptop", "tablet");
}

#[test]
fn late_device_merges_over_its_base() {
    let world = World::new();
    world.put("laptop", "facts.md", "- one\n- two\n- three\n");
    world.sync_short("laptop");
    world.sync("desktop");
    // While it is away: a line goes, one comes; here another one comes.
    world.put("laptop", "facts.md", "- one\n- three\n- four\n");
    world.write_history(1..=10);
    world.shorten("laptop");
    world.put("desktop", "facts.md", "- zero\n- one\n- two\n- three\n");
    world.put("desktop", "mine.md", "mine\n");
    let report = world.sync("desktop");
    assert_eq!((report.taken, report.published), (10, 1));
    assert_eq!(world.text("desktop", "facts.md").as_deref(), Some("- zero\n- one\n- three\n- four\n"));
    world.sync("laptop");
    world.have_same_files("laptop", "desktop");
    assert_eq!(world.text("laptop", "mine.md").as_deref(), Some("mine\n"));
}

#[test]
fn late_device_deletes_what_others_deleted() {
    let world = World::new();
    for name in ["gone.md", "edited.md", "kept.md"] {
        world.put("laptop", name, format!("{name}\n"));
    }
    world.sync_short("laptop");
    world.sync("desktop");
    world.delete("laptop", "gone.md");
    world.delete("laptop", "edited.md");
    world.sync_short("laptop");
    world.write_history(1..=10);
    world.shorten("laptop");
    world.put("desktop", "edited.md", "edited.md\nan edit wins over a deletion\n");
    world.sync("desktop");
    assert_eq!(world.text("desktop", "gone.md"), None);
    world.sync("laptop");
    world.have_same_files("laptop", "desktop");
    assert!(world.text("laptop", "edited.md").is_some_and(|text| text.contains("an edit wins")));
}

/// A device whose history is another one notices that at the first commit after its own.
#[test]
fn device_of_another_history_is_refused() {
    let world = World::new();
    world.write_history(1..=1);
    world.sync("desktop");
    world.write_history(2..=10);
    world.shorten("laptop");
    // The first segment is replaced by that of another log, of which the device has not built its base.
    let other = World::new();
    other.put("laptop", "other.md", "other\n");
    other.write_history(1..=10);
    other.shorten("laptop");
    let place = layout::segment(Position::FIRST, Position::new(4).expect("a position"));
    let foreign = block_on(other.open("remote").read(&place)).expect("there").bytes;
    let _ = block_on(world.open("remote").write(&place, foreign, Condition::Any)).expect("written");
    let before = world.text("desktop", "log.md");
    let trouble = world.with("desktop", async |replica, context| replica.sync(context).await);
    assert!(trouble.is_err(), "{trouble:?}");
    assert_eq!(world.text("desktop", "log.md"), before);
}

#[test]
fn without_a_checkpoint_an_abridged_log_is_trouble_and_not_nothing() {
    let world = World::new();
    world.write_history(1..=1);
    world.sync("desktop");
    world.write_history(2..=10);
    world.shorten("laptop");
    let remote = world.open("remote");
    for place in block_on(remote.list_all(&layout::checkpoints())).expect("listed") {
        block_on(remote.delete(&place, Condition::Any)).expect("deleted");
    }
    for device in ["desktop", "tablet"] {
        let trouble = world.with(device, async |replica, context| replica.sync(context).await);
        assert!(matches!(trouble, Err(SyncError::Damaged { .. })), "{device}: {trouble:?}");
    }
}

#[test]
fn history_of_abridged_commits_names_authors_and_files() {
    let world = World::new();
    world.write_history(1..=10);
    world.shorten("laptop");
    let store = world.with("laptop", async |replica, _| Ok(replica.store().expect("met"))).expect("opened");
    // A device that has no archive of its own.
    let (state, remote) = (world.open("reader/state"), world.open("remote"));
    block_on(async {
        let mut history = History::open(state, Some(remote), store, &Impatient).await.expect("opened");
        let second = Position::new(2).expect("a position");
        let commit = history.commit(second).await.expect("read").expect("there");
        assert_eq!(commit.device, "laptop");
        let files: Vec<&str> = commit.changes.iter().map(|change| change.locator.as_str()).collect();
        assert_eq!(files, ["log.md", "notes/2.md"]);
        let held = history.held(&at("log.md"), Some(second)).await.expect("read");
        assert_eq!(held, PastContent::Dropped);
    });
    let segment = &world.segments()[0];
    let stored = haversack::log::StoredCommit::decode(&segment.commits[0]).expect("abridged");
    assert_eq!(stored.form, Form::Abridged);
}

#[test]
fn damaged_checkpoint_is_written_again() {
    let world = World::new();
    world.write_history(1..=10);
    world.shorten("laptop");
    let remote = world.open("remote");
    let place = layout::checkpoint(Position::new(10).expect("a position"));
    let bytes = block_on(remote.read(&place)).expect("there").bytes;
    let _ = block_on(remote.write(&place, bytes.slice(..bytes.len() / 2), Condition::Any)).expect("cut");
    assert!(world.with("desktop", async |replica, context| replica.sync(context).await).is_err());
    world.shorten("laptop");
    world.sync("desktop");
    world.have_same_files("laptop", "desktop");
}
