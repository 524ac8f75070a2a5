//! Very many deletions by other devices are held here, file by file, until the user decides.

use std::collections::BTreeSet;

use haversack::ids::Timestamp;
use haversack::sync::{Context, Deletions, Gate, Open, Scope, look};

use super::World;

/// Returns a world in which two devices have so many files.
fn with_files(count: usize) -> World {
    let world = World::new();
    for number in 0..count {
        world.put("laptop", &format!("{number:02}.md"), format!("memory {number}\n"));
    }
    world.sync("laptop");
    world.sync("desktop");
    world
}

/// Deletes files on the laptop, as a hostile writer with the laptop's access would.
fn delete(world: &World, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        world.delete("laptop", &format!("{number:02}.md"));
    }
    world.try_sync("laptop", &Open, Deletions::Allowed).expect("synced");
}

fn held(world: &World, device: &str) -> usize {
    let (files, state) = (world.files(device), world.open(&format!("{device}/state")));
    let look = futures_lite::future::block_on(look(
        &*files,
        state,
        &Scope::default(),
        &Open as &dyn Gate,
        Timestamp(0),
        None,
    ));
    let look = look.expect("looked");
    assert_eq!(look.waiting(), 0, "nothing is sent as new: {look:?}");
    look.held_deletions.len()
}

#[test]
fn many_incoming_deletions_are_held_and_nothing_is_sent_back() {
    let world = with_files(20);
    delete(&world, 0..19);
    for _ in 0..3 {
        let report = world.sync("desktop");
        assert_eq!((report.held_deletions.len(), report.published), (19, 0));
    }
    assert_eq!((world.keys("desktop").len(), held(&world, "desktop")), (20, 19));
    // The rest goes on.
    world.put("laptop", "new.md", "new\n");
    world.sync("laptop");
    world.sync("desktop");
    assert_eq!(world.text("desktop", "new.md").as_deref(), Some("new\n"));
    assert_eq!(world.keys("laptop"), ["19.md", "new.md"]);
}

#[test]
fn few_incoming_deletions_are_carried_out() {
    let world = with_files(20);
    delete(&world, 0..5);
    assert_eq!(world.sync("desktop").held_deletions.len(), 0);
    assert_eq!(world.keys("desktop").len(), 15);
}

#[test]
fn incoming_deletions_are_counted_across_commits() {
    let world = with_files(40);
    for from in [0, 8, 16, 24] {
        delete(&world, from..from + 8);
        world.sync("desktop");
    }
    // The first eight went; with the second eight it is more than a quarter.
    assert_eq!((world.keys("desktop").len(), held(&world, "desktop")), (32, 24));
}

#[test]
fn allowed_deletions_let_held_files_go() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    world.put("desktop", "03.md", "edited\n");
    let report = world.try_sync("desktop", &Open, Deletions::Allowed).expect("synced");
    assert_eq!(report.held_deletions.len(), 0);
    // An edit wins over the deletion.
    assert_eq!(world.keys("desktop"), ["03.md", "19.md"]);
    world.sync("laptop");
    assert_eq!(world.text("laptop", "03.md").as_deref(), Some("edited\n"));
}

#[test]
fn kept_files_are_sent_again() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    let kept = world.with("desktop", async |replica, context| replica.keep_held(context, |_| true).await);
    assert_eq!(kept.expect("kept").len(), 19);
    assert_eq!(world.sync("desktop").published, 1);
    world.sync("laptop");
    assert_eq!((world.keys("laptop").len(), held(&world, "desktop")), (20, 0));
}

#[test]
fn edited_held_file_is_sent_and_the_others_stay() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    world.put("desktop", "03.md", "memory 3\nmore\n");
    world.sync("desktop");
    world.sync("laptop");
    assert_eq!(world.text("laptop", "03.md").as_deref(), Some("memory 3\nmore\n"));
    assert_eq!((world.keys("laptop").len(), held(&world, "desktop")), (2, 18));
}

#[test]
fn held_file_that_the_user_deletes_is_forgotten() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    world.delete("desktop", "03.md");
    let report = world.sync("desktop");
    assert_eq!((report.held_deletions.len(), report.published), (18, 0));
    assert_eq!(held(&world, "desktop"), 18);
}

#[test]
fn held_file_takes_in_what_others_make_of_its_name() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    world.put("laptop", "03.md", "another beginning\n");
    world.sync("laptop");
    let report = world.sync("desktop");
    assert_eq!((report.held_deletions.len(), report.both_kept.len()), (18, 0));
    assert_eq!(world.text("desktop", "03.md").as_deref(), Some("another beginning\n"));
}

#[test]
fn moved_files_and_own_deletions_are_not_held() {
    let world = with_files(20);
    for number in 0..19 {
        world.put("laptop", &format!("deep/{number:02}.md"), format!("memory {number}\n"));
    }
    delete(&world, 0..19);
    assert_eq!(world.sync("desktop").held_deletions.len(), 0);
    assert_eq!(world.keys("desktop").len(), 20);
    // A second directory of the same home.
    let world = with_files(20);
    delete(&world, 0..19);
    let laptop = world.with("laptop", async |replica, _| Ok(replica.id())).expect("opened");
    let own = BTreeSet::from([laptop]);
    let report = world.with("desktop", async |replica, context| {
        replica.sync(Context { own_replicas: &own, ..context }).await
    });
    assert_eq!(report.expect("synced").held_deletions.len(), 0);
    assert_eq!(world.keys("desktop"), ["19.md"]);
}

#[test]
fn logs_past_their_time_are_not_held() {
    let world = World::new();
    for day in 1..=20 {
        world.put("laptop", &format!("interactions/1960-01-{day:02}.jsonl"), format!("{{\"day\":{day}}}\n"));
    }
    world.put("laptop", "root.md", "root\n");
    world.sync("laptop");
    world.sync("desktop");
    for day in 1..=20 {
        world.delete("laptop", &format!("interactions/1960-01-{day:02}.jsonl"));
    }
    world.try_sync("laptop", &Open, Deletions::Allowed).expect("synced");
    assert_eq!(world.sync("desktop").held_deletions.len(), 0);
    assert_eq!(world.keys("desktop"), ["root.md"]);
}

#[test]
fn marks_survive_a_restart_and_a_full_look() {
    let world = with_files(20);
    delete(&world, 0..19);
    world.sync("desktop");
    let full = world.with("desktop", async |replica, context| {
        replica.reconcile(context, haversack::sync::Mirror::On).await
    });
    assert_eq!(full.expect("looked").held_deletions.len(), 19);
    assert_eq!((world.keys("desktop").len(), held(&world, "desktop")), (20, 19));
    // A snapshot keeps them: many advances fold the journal.
    for number in 0..28 {
        for file in 0..10 {
            let name = format!("{file}-{}.md", "x".repeat(180));
            world.put("laptop", &name, format!("{number} {}\n", "x".repeat(50)));
        }
        world.sync("laptop");
        world.sync("desktop");
    }
    assert_eq!(held(&world, "desktop"), 19);
}
