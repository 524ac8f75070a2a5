//! The plain objects beside the log, and edits of them by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_lite::future::block_on;
use haversack::manifest::Manifest;
use haversack::store::{Backend, BackendExt, Condition, Locator, Pages, forward_backend};
use haversack::sync::{Deletions, Mirror, Mirrored, Open, Report, SyncError};

use super::World;
use super::lab::Lab;
use crate::subjects::at;

impl World {
    fn mirror(&self, device: &str) -> Mirrored {
        self.with(device, async |replica, context| replica.mirror(context).await).expect("mirrored")
    }

    fn reconcile(&self, device: &str) -> Report {
        self.with(device, async |replica, context| replica.reconcile(context, Mirror::On).await)
            .expect("reconciled")
    }

    fn plain(&self, key: &str) -> Option<String> {
        block_on(self.open("remote").read_text(&at(key))).expect("text")
    }

    /// Puts an object into the mirror, as a person who does not know the mirror.
    fn put_plain(&self, key: &str, text: &str) {
        let _ = block_on(self.open("remote").write_text(&at(key), text)).expect("written");
    }

    fn manifest(&self) -> Manifest {
        let object = block_on(self.open("remote").read(&manifest_place())).expect("there");
        Manifest::decode(&object.bytes).expect("whole")
    }
}

fn manifest_place() -> Locator {
    Locator::reserved("manifest.json").expect("ours")
}

#[test]
fn files_are_there_as_plain_objects() {
    let world = World::new();
    world.put("laptop", "behavioral/MEMORY.md", "- ports\n");
    world.put("laptop", "old.md", "old\n");
    world.sync("laptop");
    assert_eq!(world.mirror("laptop").written, 2);
    assert_eq!(world.plain("behavioral/MEMORY.md").as_deref(), Some("- ports\n"));
    let manifest = world.manifest();
    assert_eq!(manifest.position.map(|position| position.number()), Some(1));
    assert_eq!(manifest.entries["behavioral/MEMORY.md"].size, 8);
    assert_eq!(world.mirror("laptop"), Mirrored::default(), "nothing is left to do");
    world.sync("desktop");
    world.delete("desktop", "old.md");
    world.put("desktop", "behavioral/MEMORY.md", "- ports\n- people\n");
    world.sync("desktop");
    let mirrored = world.mirror("desktop");
    assert_eq!((mirrored.written, mirrored.removed), (1, 1));
    assert_eq!(world.plain("old.md"), None);
    assert_eq!(world.mirror("laptop"), Mirrored::default(), "who is behind leaves it alone");
}

/// Objects are written several at a time; a name must be free before something comes below it.
#[test]
fn what_goes_makes_way_for_what_comes() {
    let world = World::new();
    for number in 0..8 {
        world.put("laptop", &format!("topic{number}"), "a file\n");
    }
    world.sync("laptop");
    assert_eq!(world.mirror("laptop").written, 8);
    for number in 0..8 {
        world.delete("laptop", &format!("topic{number}"));
        world.put("laptop", &format!("topic{number}/one.md"), "in a directory\n");
    }
    world.try_sync("laptop", &Open, Deletions::Allowed).expect("synced");
    let mirrored = world.mirror("laptop");
    assert_eq!((mirrored.written, mirrored.removed, mirrored.refused), (8, 8, vec![]));
    for number in 0..8 {
        assert_eq!(world.plain(&format!("topic{number}/one.md")).as_deref(), Some("in a directory\n"));
    }
}

#[test]
fn unreadable_manifest_is_rewritten() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    world.mirror("laptop");
    let remote = world.open("remote");
    for text in ["", "{", "\0\0\0\0", "{\n  \"schema_version\": 1,\n  \"upd"] {
        let _ = block_on(remote.write_text(&manifest_place(), text)).expect("damaged");
        world.mirror("laptop");
        assert_eq!(world.manifest().entries.len(), 1);
    }
    let newer = "{\"schema_version\": 2, \"entries\": {}}";
    let _ = block_on(remote.write_text(&manifest_place(), newer)).expect("written");
    let trouble = world.with("laptop", async |replica, context| replica.mirror(context).await);
    assert!(matches!(trouble, Err(SyncError::Damaged { .. })), "{trouble:?}");
}

#[test]
fn manifest_of_another_program_is_left_alone() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    let remote = world.open("remote");
    for text in ["{\"name\": \"my app\", \"icons\": []}", "[1]", "not JSON"] {
        let _ = block_on(remote.write_text(&manifest_place(), text)).expect("written");
        assert_eq!(world.mirror("laptop").foreign, [manifest_place()], "{text}");
        assert_eq!(world.reconcile("laptop").not_mirrored, [manifest_place()], "{text}");
        let there = block_on(remote.read(&manifest_place())).expect("there").bytes;
        assert_eq!(there, text.as_bytes());
        assert_eq!(world.plain("a.md"), None, "no plain copy is written without an index");
    }
}

#[test]
fn unrelated_files_are_left_alone() {
    let world = World::new();
    world.put_plain("taxes/2025.md", "mine\n");
    world.put_plain("loose.md", "mine\n");
    world.put_plain("claude_memory/loose.md", "mine\n");
    assert_eq!(
        world.reconcile("laptop").unrelated,
        [at("claude_memory/loose.md"), at("loose.md"), at("taxes/2025.md")],
        "a store without files has no places but those that we lay out"
    );
    world.put("laptop", "notes/lamp.md", "lamp\n");
    world.sync("laptop");
    world.mirror("laptop");
    for place in ["notes/new/x.md", "behavioral/x.md", "claude_memory/lighthouse/x.md"] {
        world.put_plain(place, "by hand\n");
    }
    let report = world.reconcile("laptop");
    assert_eq!(
        report.foreign,
        [at("behavioral/x.md"), at("claude_memory/lighthouse/x.md"), at("notes/new/x.md")]
    );
    assert_eq!(report.unrelated, [at("claude_memory/loose.md"), at("loose.md"), at("taxes/2025.md")]);
    assert_eq!(world.text("laptop", "taxes/2025.md"), None);
    assert_eq!(world.plain("taxes/2025.md").as_deref(), Some("mine\n"));
    world.put("laptop", "ports.md", "8080\n");
    world.sync("laptop");
    assert_eq!(
        world.reconcile("laptop").foreign,
        [at("loose.md")],
        "the store has files without a directory now"
    );
}

/// The last file of a directory was deleted, and a slow device writes its plain copy again: it is ours, and goes.
#[test]
fn stale_object_of_a_deleted_directory_is_removed() {
    let world = World::new();
    world.put("laptop", "notes/lamp.md", "lamp\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.delete("laptop", "notes/lamp.md");
    world.put("laptop", "b.md", "b\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.put_plain("notes/lamp.md", "lamp\n");
    assert_eq!(world.reconcile("laptop").unrelated, Vec::<Locator>::new());
    assert_eq!((world.plain("notes/lamp.md"), world.text("laptop", "notes/lamp.md")), (None, None));
}

#[test]
fn foreign_edit_is_not_overwritten() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.put_plain("a.md", "one\nby hand\n");
    world.put_plain("new.md", "made by hand\n");
    world.put("laptop", "a.md", "zero\none\n");
    world.sync("laptop");
    assert_eq!(world.mirror("laptop").foreign, [at("a.md")]);
    assert_eq!(world.plain("a.md").as_deref(), Some("one\nby hand\n"));
    let report = world.reconcile("laptop");
    assert_eq!(report.foreign, [at("a.md"), at("new.md")]);
    assert_eq!(world.text("laptop", "a.md").as_deref(), Some("zero\none\nby hand\n"));
    assert_eq!(world.plain("a.md"), world.text("laptop", "a.md"));
    world.sync("desktop");
    assert_eq!(world.text("desktop", "new.md").as_deref(), Some("made by hand\n"));
    assert_eq!(world.reconcile("laptop"), Report::default(), "and then it is quiet");
}

#[test]
fn mirror_edit_is_imported_once() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.put_plain("a.md", "one\nby hand\n");
    world.reconcile("laptop");
    // The user takes it out again; the object is as it was, because nothing was mirrored since.
    world.put("laptop", "a.md", "one\n");
    world.put_plain("a.md", "one\nby hand\n");
    world.sync("laptop");
    world.reconcile("laptop");
    assert_eq!(world.text("laptop", "a.md").as_deref(), Some("one\n"), "the log knows this text");
    assert_eq!(world.plain("a.md").as_deref(), Some("one\n"));
}

#[test]
fn old_object_is_no_edit() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.put("laptop", "a.md", "one\ntwo\n");
    world.sync("laptop");
    world.mirror("laptop");
    // A write of a device that was slow arrives.
    world.put_plain("a.md", "one\n");
    assert_eq!(world.reconcile("laptop").foreign, Vec::<Locator>::new());
    assert_eq!(world.text("laptop", "a.md").as_deref(), Some("one\ntwo\n"));
    assert_eq!(world.plain("a.md").as_deref(), Some("one\ntwo\n"), "it is mended");
    world.delete("laptop", "a.md");
    world.put("laptop", "b.md", "b\n");
    world.sync("laptop");
    world.mirror("laptop");
    world.put_plain("a.md", "one\ntwo\n");
    world.reconcile("laptop");
    assert_eq!((world.plain("a.md"), world.text("laptop", "a.md")), (None, None));
}

#[test]
fn deleted_mirror_object_is_rewritten() {
    let world = World::new();
    world.put("laptop", "a.md", "one\n");
    world.sync("laptop");
    world.mirror("laptop");
    let remote = world.open("remote");
    block_on(remote.delete(&at("a.md"), Condition::Any)).expect("deleted");
    world.reconcile("laptop");
    assert_eq!(world.text("laptop", "a.md").as_deref(), Some("one\n"));
    assert_eq!(world.plain("a.md").as_deref(), Some("one\n"));
}

#[test]
fn contents_that_nobody_names_go_and_the_others_stay() {
    let world = World::new();
    for number in 0..40 {
        world.put("laptop", &format!("{number}.md"), format!("first {number}\n"));
    }
    world.sync("laptop");
    for number in 1..40 {
        world.put("laptop", &format!("{number}.md"), format!("second {number}\n"));
        world.sync("laptop");
    }
    let objects = || block_on(world.open("laptop/state").list_all(&at("objects"))).expect("listed").len();
    assert_eq!(objects(), 40, "a pack and what came after it");
    world.reconcile("laptop");
    assert_eq!(objects(), 40, "the pack was mostly not needed any more");
    // The base of what was in it is still at hand.
    world.sync("desktop");
    world.put("desktop", "0.md", "desktop\nfirst 0\n");
    world.put("laptop", "0.md", "first 0\nlaptop\n");
    world.sync("desktop");
    world.sync("laptop");
    assert_eq!(world.text("laptop", "0.md").as_deref(), Some("desktop\nfirst 0\nlaptop\n"));
}

/// Counts the listings of the whole remote.
#[derive(Debug)]
struct CountedListings {
    inner: Arc<dyn Backend>,
    listings: AtomicUsize,
}

#[deny(clippy::missing_trait_methods)]
impl Backend for CountedListings {
    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.listings.fetch_add(usize::from(prefix.is_root()), Ordering::Relaxed);
        self.inner.scan(prefix, after)
    }

    forward_backend!(self => self.inner; read, write, prepare, append, barrier, list, info, touch_mark, delete);
    forward_backend!(self => self.inner; rename, exchange, mkdir, lock, capabilities, conflict_strategy);
}

#[test]
fn reconcile_lists_the_remote_once() {
    let lab = Lab::new();
    lab.put("laptop", "ports.md", "staging: 5433\n");
    lab.sync("laptop").expect("synced");
    lab.mirror("laptop").expect("mirrored");
    lab.put_remote("ports.md", "staging: 5433\nproduction: 5432\n");
    let remote = Arc::new(CountedListings { inner: lab.remote.clone(), listings: AtomicUsize::new(0) });
    let files = lab.device("laptop").files.clone();
    let reconciled = lab.with_backends("laptop", files, remote.clone(), async |replica, context| {
        replica.reconcile(context, Mirror::On).await
    });
    assert_eq!(reconciled.expect("reconciled").foreign, [at("ports.md")], "the edit is imported");
    assert_eq!(remote.listings.load(Ordering::Relaxed), 1);
}
