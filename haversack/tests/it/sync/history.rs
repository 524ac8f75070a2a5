//! The history of a store, with and without its remote.

use futures_lite::future::block_on;
use haversack::history::archive::{self, Bounds};
use haversack::history::{History, PastContent};
use haversack::ids::{Position, Timestamp};
use haversack::store::{BackendExt, Bytes, Condition};
use haversack::sync::{Impatient, Recent};

use super::World;
use crate::subjects::at;

const ALL: Bounds = Bounds { bytes: u64::MAX, oldest: Timestamp(i64::MIN) };

/// Syncs a device and keeps what it saw.
fn sync(world: &World, device: &str, bounds: Bounds) {
    let (store, recent) = world
        .with(device, async |replica, context| {
            replica.sync(context).await?;
            Ok((
                replica.store().expect("met"),
                replica.take_recent().into_iter().filter_map(Recent::read).collect(),
            ))
        })
        .expect("synced");
    let state = world.open(&format!("{device}/state"));
    block_on(archive::keep(&*state, store, recent, bounds)).expect("kept");
}

fn held(world: &World, device: &str, path: &str, after: u64, with_remote: bool) -> PastContent {
    let state = world.open(&format!("{device}/state"));
    let store = world.with(device, async |replica, _| Ok(replica.store().expect("met"))).expect("opened");
    let remote = with_remote.then(|| world.open("remote"));
    block_on(async {
        let mut history = History::open(state, remote, store, &Impatient).await.expect("opened");
        history.held(&at(path), Position::new(after)).await.expect("looked")
    })
}

fn content(text: &str) -> PastContent {
    PastContent::Content(Bytes::copy_from_slice(text.as_bytes()))
}

/// A log of five commits: made, extended, replaced, deleted, made again.
fn world() -> World {
    with_history(World::new())
}

fn with_history(world: World) -> World {
    let texts = ["one\n", "one\ntwo\n", "three\n"];
    for text in texts {
        world.put("laptop", "notes.md", text);
        world.put("laptop", "other.md", format!("beside {text}"));
        sync(&world, "laptop", ALL);
    }
    world.delete("laptop", "notes.md");
    sync(&world, "laptop", ALL);
    world.put("laptop", "notes.md", "again\n");
    sync(&world, "laptop", ALL);
    world
}

#[test]
fn every_content_can_be_had_without_the_remote() {
    let world = world();
    let expected = [
        content("one\n"),
        content("one\ntwo\n"),
        content("three\n"),
        PastContent::Nothing,
        content("again\n"),
    ];
    for (expected, after) in expected.into_iter().zip(1..) {
        assert_eq!(held(&world, "laptop", "notes.md", after, false), expected, "after {after}");
    }
    assert_eq!(held(&world, "laptop", "notes.md", 0, false), PastContent::Nothing);
    assert_eq!(held(&world, "laptop", "never.md", 5, false), PastContent::Nothing);
}

#[test]
fn unknown_is_not_nothing() {
    let world = world();
    // It joins, and keeps nothing of what it took in.
    world.sync("desktop");
    for after in 1..=5 {
        assert_eq!(held(&world, "desktop", "notes.md", after, false), PastContent::Unknown, "after {after}");
    }
    assert_eq!(held(&world, "desktop", "notes.md", 4, true), PastContent::Nothing);
    assert_eq!(held(&world, "desktop", "notes.md", 2, true), content("one\ntwo\n"));
}

#[test]
fn an_archive_stays_small() {
    let world = World::new();
    for number in 0..80 {
        world.put("laptop", "notes.md", format!("{number}\n"));
        sync(&world, "laptop", ALL);
    }
    let state = world.open("laptop/state");
    let store = world.with("laptop", async |replica, _| Ok(replica.store().expect("met"))).expect("opened");
    let files = block_on(archive::ranges(&*state, store)).expect("listed").len();
    assert!(files <= 33, "{files} files");
    for after in [1, 40, 80] {
        let expected = content(&format!("{}\n", after - 1));
        assert_eq!(held(&world, "laptop", "notes.md", after, false), expected);
    }
    // The oldest go first.
    world.put("laptop", "notes.md", "last\n");
    sync(&world, "laptop", Bounds { bytes: 4_000, ..ALL });
    assert_eq!(held(&world, "laptop", "notes.md", 81, false), content("last\n"));
    assert_eq!(held(&world, "laptop", "notes.md", 1, false), PastContent::Unknown);
    assert_eq!(held(&world, "laptop", "notes.md", 1, true), content("0\n"));
}

/// Of very many commits only the newest are held, and still it can be told what was sent and received.
#[test]
fn every_commit_tells_which_files_it_changed() {
    const FILES: usize = 80;
    let world = World::new();
    for number in 0..FILES {
        world.put("laptop", &format!("{number}.md"), vec![b'0' + (number % 10) as u8; 250 * 1024 + number]);
    }
    for device in ["laptop", "desktop"] {
        let recent = world.with(device, async |replica, context| {
            replica.sync(context).await?;
            Ok(replica.take_recent())
        });
        let recent = recent.expect("synced");
        assert_eq!(recent.iter().map(|recent| recent.files.len()).sum::<usize>(), FILES, "{device}");
        let held = recent.iter().filter_map(|recent| recent.bytes.as_ref());
        assert!(held.map(Bytes::len).sum::<usize>() <= 16 * 1024 * 1024, "{device}");
        assert!(recent.iter().any(|recent| recent.bytes.is_none()), "{device}");
        assert!(recent.last().is_some_and(|recent| recent.bytes.is_some()), "{device}");
    }
}

#[test]
fn an_archive_that_is_damaged_is_as_good_as_none() {
    let world = world();
    let state = world.open("laptop/state");
    for locator in block_on(state.list_all(&at("history"))).expect("listed") {
        let damaged = state.write(&locator, Bytes::from_static(b"not what it was"), Condition::Any);
        let _ = block_on(damaged).expect("damaged");
    }
    assert_eq!(held(&world, "laptop", "notes.md", 2, false), PastContent::Unknown);
    assert_eq!(held(&world, "laptop", "notes.md", 2, true), content("one\ntwo\n"));
}

#[test]
fn archives_of_two_stores_are_kept_apart() {
    let one = world();
    // Its ids begin elsewhere, so it is another store.
    let other = with_history(World { ids: super::Counting(1_000.into()), ..World::new() });
    let state = one.open("laptop/state");
    let store_of = |world: &World| {
        world.with("laptop", async |replica, _| Ok(replica.store().expect("met"))).expect("opened")
    };
    // The segments of an earlier program lie in one directory.
    let first = store_of(&one);
    for range in block_on(state.list_all(&at("history"))).expect("listed") {
        block_on(state.rename(&range, &at("history").child(range.name()).expect("valid"))).expect("moved");
    }
    assert_eq!(held(&one, "laptop", "notes.md", 2, false), content("one\ntwo\n"));
    // The same positions of another store.
    let second = store_of(&other);
    let commits = (1..=5).filter_map(Position::new).map(|position| {
        let place = haversack::store::Locator::reserved(&format!(".haversack/log/{}", position.key()));
        (position, block_on(other.open("remote").read(&place.expect("ours"))).expect("there").bytes)
    });
    let commits = commits.collect();
    block_on(archive::keep(&*state, second, commits, ALL)).expect("kept");
    assert_eq!(held(&one, "laptop", "notes.md", 3, false), content("three\n"), "the first store");
    for store in [first, second] {
        let ranges = block_on(archive::ranges(&*state, store)).expect("listed");
        for at in (1..=5).filter_map(Position::new) {
            assert!(ranges.iter().any(|range| range.contains(at)), "{store} has no {at}: {ranges:?}");
        }
    }
}
