//! Checkpoints, segments, folded positions, and files that are not fetched yet.

use std::time::Duration;

use futures_lite::future::block_on;
use haversack::ids::{ContentHash, Position};
use haversack::log::{Checkpoint, Commit, Folded, StateMark, layout};
use haversack::store::{BackendExt, Condition, Locator};
use haversack::sync::{Context, Fetching, Intervals, Report, SyncError};

use super::World;
use crate::subjects::at;

/// Folds as often as can be.
const OFTEN: Intervals = Intervals {
    checkpoint_commits: 4,
    segment_commits: 4,
    keep_positions: Duration::ZERO,
    keep_contents: None,
    rebuilt_files: 2,
};

impl World {
    fn sync_folding(&self, device: &str) -> Report {
        self.with(device, async |replica, context| {
            replica.sync(Context { intervals: OFTEN, ..context }).await
        })
        .expect("synced")
    }

    fn compact(&self, device: &str) -> usize {
        self.with(device, async |replica, context| {
            replica.compact(Context { intervals: OFTEN, ..context }).await
        })
        .expect("compacted")
    }

    /// Publishes some commits, each of which adds a line to one file and makes another.
    fn publish(&self, commits: std::ops::RangeInclusive<usize>) {
        for number in commits {
            let lines: String = (1..=number).map(|line| format!("line {line}\n")).collect();
            self.put("laptop", "log.md", lines);
            self.put("laptop", &format!("notes/{number}.md"), format!("note {number}\n"));
            assert_eq!(self.sync_folding("laptop").published, 1);
        }
    }

    fn remote_keys(&self, directory: &Locator) -> Vec<String> {
        let all = block_on(self.open("remote").list_all(directory)).expect("listed");
        all.iter().map(|locator| locator.name().to_owned()).collect()
    }

    fn same_files(&self, one: &str, other: &str) {
        assert_eq!(self.keys(one), self.keys(other));
        for key in self.keys(one) {
            assert_eq!(self.text(one, &key), self.text(other, &key), "{key}");
        }
    }
}

#[test]
fn who_joins_reads_a_checkpoint_and_what_came_after() {
    let world = World::new();
    world.publish(1..=10);
    assert_eq!(world.remote_keys(&layout::checkpoints()), ["0000000000000004", "0000000000000008"]);
    let report = world.sync("desktop");
    assert_eq!((report.taken, report.fetched), (2, 9), "two commits after the checkpoint of nine files");
    world.same_files("laptop", "desktop");
    assert_eq!(world.sync("desktop"), Report::default());
}

#[test]
fn who_joins_with_files_of_its_own_keeps_them() {
    let world = World::new();
    world.publish(1..=5);
    world.put("desktop", "log.md", "line 1\nmine\n");
    world.put("desktop", "own.md", "own\n");
    world.sync("desktop");
    world.sync("laptop");
    world.same_files("laptop", "desktop");
    let log = world.text("laptop", "log.md").expect("there");
    assert!(log.contains("mine") && log.contains("line 5"), "{log}");
    assert_eq!(world.text("laptop", "own.md").as_deref(), Some("own\n"));
}

/// Of many files not each place is looked at by itself.
#[test]
fn who_joins_a_large_memory_with_files_of_its_own_keeps_them() {
    let world = World::new();
    for number in 0..200 {
        world.put("laptop", &format!("notes-{}/{number}.md", number % 3), format!("note {number}\n"));
    }
    world.publish(1..=4);
    world.put("desktop", "notes-1/1.md", "note 1\nmine\n");
    world.put("desktop", "notes-2/2.md", "note 2\n");
    world.put("desktop", "notes-2/mine.md", "mine\n");
    // Nothing is fetched to where a directory is.
    world.put("desktop", "notes-0/3.md/mine.md", "mine\n");
    let report = world.sync("desktop");
    assert_eq!(report.fetched, 202, "all but what was here, and what is in the way");
    world.sync("laptop");
    assert_eq!(world.text("laptop", "notes-1/1.md").as_deref(), Some("note 1\nmine\n"));
    assert_eq!(world.text("laptop", "notes-2/mine.md").as_deref(), Some("mine\n"));
    assert_eq!(world.text("desktop", "notes-0/3.md/mine.md").as_deref(), Some("mine\n"));
    assert_eq!(world.text("laptop", "notes-0/3.md").as_deref(), Some("note 3\n"));
    for number in (0..200).filter(|number| *number != 3) {
        let key = format!("notes-{}/{number}.md", number % 3);
        assert_eq!(world.text("desktop", &key), world.text("laptop", &key), "{key}");
    }
}

#[test]
fn a_checkpoint_that_the_log_does_not_confirm_is_not_believed() {
    let world = World::new();
    world.publish(1..=4);
    let remote = world.open("remote");
    let place = layout::checkpoint(Position::new(4).expect("a position"));
    let bytes = block_on(remote.read(&place)).expect("there").bytes;
    let mut forged = Checkpoint::decode(&bytes).expect("whole");
    let (locator, _) = forged.files.pop_last().expect("files");
    forged.state = forged.files.iter().fold(StateMark::empty(), |mut mark, (locator, file)| {
        mark.add(locator, &file.hash);
        mark
    });
    let forged = forged.encode().expect("whole");
    let _ = block_on(remote.write(&place, forged, Condition::Any)).expect("written");
    assert_eq!(world.sync("desktop").taken, 4, "the log is read from its start");
    assert!(world.text("desktop", locator.as_str()).is_some());
    let _ = block_on(remote.write(&place, bytes.slice(..100), Condition::Any)).expect("damaged");
    world.sync("tablet");
    world.same_files("laptop", "tablet");
}

#[test]
fn folded_positions_are_read_from_their_segments() {
    let world = World::new();
    world.publish(1..=1);
    world.sync("desktop");
    world.publish(2..=10);
    assert_eq!(
        world.remote_keys(&layout::segments()),
        ["0000000000000001-0000000000000004", "0000000000000005-0000000000000008"]
    );
    assert_eq!(world.compact("laptop"), 8);
    assert_eq!(world.compact("laptop"), 0, "it is done once");
    let remote = world.open("remote");
    let first = block_on(remote.read(&layout::commit(Position::FIRST))).expect("still there").bytes;
    assert!(Folded::is_at(&first));
    assert_eq!(world.sync("desktop").taken, 9, "from position 2 on");
    world.same_files("laptop", "desktop");
    world.put("desktop", "log.md", "new\n");
    assert_eq!(world.sync("desktop").published, 1);
    assert_eq!(world.sync("laptop").taken, 1);
}

#[test]
fn without_its_segment_a_folded_position_is_trouble_and_not_nothing() {
    let world = World::new();
    world.publish(1..=1);
    world.sync("desktop");
    world.publish(2..=5);
    world.compact("laptop");
    let remote = world.open("remote");
    for locator in block_on(remote.list_all(&layout::segments())).expect("listed") {
        block_on(remote.delete(&locator, Condition::Any)).expect("deleted");
    }
    let trouble = world.with("desktop", async |replica, context| replica.sync(context).await);
    assert!(matches!(trouble, Err(SyncError::Damaged { .. })), "{trouble:?}");
}

#[test]
fn a_damaged_segment_costs_nothing_while_the_positions_are_there() {
    let world = World::new();
    world.publish(1..=20);
    let remote = world.open("remote");
    for place in block_on(remote.list_all(&layout::checkpoints())).expect("listed") {
        block_on(remote.delete(&place, Condition::Any)).expect("deleted");
    }
    let last = Locator::reserved(".haversack/segments/0000000000000017-0000000000000020").expect("ours");
    let bytes = block_on(remote.read(&last)).expect("there").bytes;
    let _ = block_on(remote.write(&last, bytes.slice(..bytes.len() / 2), Condition::Any)).expect("cut");
    assert_eq!(world.sync("desktop").taken, 20);
    world.same_files("laptop", "desktop");
}

#[test]
fn a_gap_in_the_log_is_not_written_into() {
    let world = World::new();
    world.publish(1..=1);
    world.sync("desktop");
    world.publish(2..=4);
    let remote = world.open("remote");
    let second = layout::commit(Position::new(2).expect("a position"));
    block_on(remote.delete(&second, Condition::Any)).expect("deleted");
    world.put("desktop", "mine.md", "mine\n");
    let trouble = world.with("desktop", async |replica, context| replica.sync(context).await);
    assert!(matches!(trouble, Err(SyncError::Gap { .. })), "{trouble:?}");
    assert!(block_on(remote.info(&second)).is_err(), "nothing was written there");
    assert_eq!(world.text("desktop", "mine.md").as_deref(), Some("mine\n"));
}

#[test]
fn what_is_not_fetched_is_not_absent() {
    let world = World::new();
    world.publish(1..=4);
    let lazily = |device: &str| {
        world
            .with(device, async |replica, context| {
                let context = Context { fetching: Fetching::WhenAsked, ..context };
                let report = replica.sync(context).await?;
                Ok((report, replica.unfetched().len()))
            })
            .expect("synced")
    };
    let (report, unfetched) = lazily("desktop");
    assert_eq!((report.taken, report.fetched, unfetched), (0, 0, 5));
    assert_eq!(world.keys("desktop"), Vec::<String>::new());
    assert_eq!(lazily("desktop"), (Report::default(), 5), "nothing was deleted, nothing is sent");
    world
        .with("desktop", async |replica, context| replica.fetch(context, &[at("notes/2.md")]).await)
        .expect("fetched");
    assert_eq!(world.text("desktop", "notes/2.md").as_deref(), Some("note 2\n"));
    // A user creates a file that exists, but not here: both are kept.
    world.put("desktop", "notes/3.md", "made here\n");
    let (report, unfetched) = lazily("desktop");
    assert_eq!((report.published, unfetched), (1, 3));
    let both = world.text("desktop", "notes/3.md").expect("there");
    assert!(both.contains("made here") && both.contains("note 3"), "{both}");
    // An append to a file that is not here brings the whole file.
    world.put("laptop", "log.md", "line 1\nline 2\nline 3\nline 4\nline 5\n");
    world.sync("laptop");
    lazily("desktop");
    assert_eq!(world.text("desktop", "log.md"), world.text("laptop", "log.md"));
    world.sync("desktop");
    world.same_files("laptop", "desktop");
}

#[test]
fn one_file_can_go_ahead_and_a_pull_sends_nothing() {
    let world = World::new();
    world.put("laptop", "a.md", "a\n");
    world.put("laptop", "b.md", "b\n");
    let pulled = world.with("laptop", async |replica, context| replica.pull(context).await);
    assert_eq!(pulled.expect("pulled").published, 0);
    world
        .with("laptop", async |replica, context| replica.push_one(context, &at("b.md")).await)
        .expect("pushed");
    world.sync("desktop");
    assert_eq!(world.keys("desktop"), ["b.md"]);
    let commit = block_on(world.open("remote").read(&layout::commit(Position::FIRST))).expect("there");
    let commit = Commit::decode(&commit.bytes).expect("whole");
    assert_eq!(commit.changes.len(), 1);
    assert_eq!(commit.previous, ContentHash::of(b""));
}
