//! Replicas that hold a part of a store.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::ids::Timestamp;
use haversack::log::{Checkpoint, layout};
use haversack::store::{Backend, BackendExt, Locator, Mounted};
use haversack::sync::{Author, Context, Intervals, Open, Replica, Report, Scope, look};

use super::{Midnight, World};
use crate::subjects::at;

/// Syncs a device within a scope.
fn sync(world: &World, device: &str, files: Arc<dyn Backend>, scope: &Scope) -> Report {
    sync_folding(world, device, files, scope, Intervals::default())
}

fn sync_folding(
    world: &World,
    device: &str,
    files: Arc<dyn Backend>,
    scope: &Scope,
    intervals: Intervals,
) -> Report {
    let author = Author { device: device.to_owned(), agent: None, session: None };
    block_on(async {
        let state = world.open(&format!("{device}/state"));
        let mut replica = Replica::open(files, state, world.open("remote"), &world.ids)
            .await
            .expect("it opens")
            .with_scope(scope.clone());
        let context = Context { intervals, ..Context::new(&Midnight, &world.ids, &author) };
        replica.sync(context).await.expect("synced")
    })
}

fn all_but(prefix: &str) -> Scope {
    Scope::default().except([at(prefix)])
}

#[test]
fn a_scope_has_what_is_below_its_prefix_and_no_exception() {
    let scope = Scope::within(at("a")).except([at("a/b")]);
    for (name, is_in) in [("a/x", true), ("a/b/x", false), ("a/bc", true), ("ab/x", false), ("x", false)] {
        assert_eq!(scope.contains(&at(name)), is_in, "{name}");
    }
    assert!(Scope::default().contains(&Locator::root()));
}

#[test]
fn what_is_outside_is_neither_put_in_place_nor_deleted() {
    let world = World::new();
    world.put("laptop", "root.md", "root\n");
    world.put("laptop", "project/fact.md", "fact\n");
    world.sync("laptop");
    let scope = all_but("project");
    sync(&world, "desktop", world.files("desktop"), &scope);
    assert_eq!(world.keys("desktop"), ["root.md"]);
    // Changes of it pass by, and go on.
    world.put("laptop", "project/fact.md", "another\n");
    world.put("laptop", "project/new.md", "new\n");
    world.put("desktop", "root.md", "root\n\ndesktop\n");
    world.sync("laptop");
    let report = sync(&world, "desktop", world.files("desktop"), &scope);
    assert_eq!((report.taken, report.published), (1, 1));
    assert_eq!(sync(&world, "desktop", world.files("desktop"), &scope), Report::default());
    world.sync("laptop");
    assert_eq!(world.keys("laptop"), ["project/fact.md", "project/new.md", "root.md"]);
    // A file there that is none of its business is not looked at.
    world.put("desktop", "project/mine.md", "mine\n");
    assert_eq!(sync(&world, "desktop", world.files("desktop"), &scope).published, 0);
    let state = world.open("desktop/state");
    let outlook =
        block_on(look(&*world.files("desktop"), state, &scope, &Open, Timestamp(0), None)).expect("looked");
    assert_eq!((outlook.files, outlook.waiting()), (1, 0));
}

/// No replica of a home with a bound directory keeps all contents. The missing ones come from the log.
#[test]
fn replicas_with_scopes_write_checkpoints() {
    let world = World::new();
    let often = Intervals { checkpoint_commits: 3, segment_commits: 3, ..Intervals::default() };
    let bound = || -> Arc<dyn Backend> { Arc::new(Mounted::new(world.files("bound"), at("project"))) };
    let large: String = (0..40_000).map(|line| format!("line {line} of a large file\n")).collect();
    world.put("memory", "same.md", "it stays\n");
    world.put("bound", "large.md", large.clone());
    let mut log = String::new();
    for number in 1..=7 {
        log.push_str(&format!("line {number}\n"));
        world.put("memory", "root.md", format!("root {number}\n"));
        world.put("bound", "log.md", log.clone());
        sync_folding(&world, "memory", world.files("memory"), &all_but("project"), often);
        sync_folding(&world, "bound", bound(), &Scope::within(at("project")), often);
    }
    let checkpoints = block_on(world.open("remote").list_all(&layout::checkpoints())).expect("listed");
    let names: Vec<&str> = checkpoints.iter().map(Locator::name).collect();
    assert_eq!(names, [3, 6, 9, 12].map(|number| format!("{number:016}")));
    for place in &checkpoints {
        let bytes = block_on(world.open("remote").read(place)).expect("there").bytes;
        assert_eq!(Checkpoint::decode(&bytes).expect("whole").files.len(), 4, "{place}");
    }
    let report = sync(&world, "desktop", world.files("desktop"), &Scope::default());
    assert_eq!(
        (report.taken, report.fetched, report.missing),
        (2, 4, Vec::new()),
        "all but what came after it"
    );
    assert_eq!(world.text("desktop", "project/log.md"), Some(log));
    assert_eq!(world.text("desktop", "project/large.md"), Some(large));
    assert_eq!(world.text("desktop", "root.md").as_deref(), Some("root 7\n"));
    assert_eq!(world.text("desktop", "same.md").as_deref(), Some("it stays\n"));
}

#[test]
fn a_directory_below_a_prefix_is_a_device_of_its_own() {
    let world = World::new();
    world.put("laptop", "project/fact.md", "fact\n");
    world.put("laptop", "root.md", "root\n");
    world.sync("laptop");
    let bound = || -> Arc<dyn Backend> { Arc::new(Mounted::new(world.files("bound"), at("project"))) };
    let scope = Scope::within(at("project"));
    sync(&world, "bound", bound(), &scope);
    assert_eq!(world.keys("bound"), ["fact.md"]);
    world.put("bound", "fact.md", "fact\n\nbound\n");
    world.put("bound", "deep/new.md", "new\n");
    sync(&world, "bound", bound(), &scope);
    world.sync("laptop");
    assert_eq!(world.text("laptop", "project/fact.md").as_deref(), Some("fact\n\nbound\n"));
    assert_eq!(world.text("laptop", "project/deep/new.md").as_deref(), Some("new\n"));
    world.delete("laptop", "project/deep/new.md");
    world.sync("laptop");
    sync(&world, "bound", bound(), &scope);
    assert_eq!(world.keys("bound"), ["fact.md"]);
}

#[test]
fn a_scope_that_changes_lets_files_go_and_fetches_them_again() {
    let world = World::new();
    world.put("laptop", "root.md", "root\n");
    world.put("laptop", "project/fact.md", "fact\n");
    world.sync("laptop");
    world.sync("desktop");
    assert_eq!(world.keys("desktop").len(), 2);
    // The prefix is bound to another directory now: its file was moved away.
    world.delete("desktop", "project/fact.md");
    let report = sync(&world, "desktop", world.files("desktop"), &all_but("project"));
    assert_eq!(report.published, 0, "that is no deletion");
    world.sync("laptop");
    assert_eq!(world.keys("laptop").len(), 2);
    // And back.
    world.put("laptop", "project/fact.md", "fact\n\nlater\n");
    world.sync("laptop");
    world.sync("desktop");
    assert_eq!(world.text("desktop", "project/fact.md").as_deref(), Some("fact\n\nlater\n"));
    assert_eq!(world.sync("desktop"), Report::default());
}
