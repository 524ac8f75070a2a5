//! Renames: both halves travel together, and an edit of the other device follows the new name.

use haversack::sync::{Deletions, Open};

use super::{NoSecrets, World};

/// Returns two devices that both have these files.
fn shared(files: &[(&str, &str)]) -> World {
    let world = World::new();
    for (key, text) in files {
        world.put("laptop", key, (*text).to_owned());
    }
    world.sync("laptop");
    world.sync("desktop");
    world
}

fn converge(world: &World) {
    for device in ["laptop", "desktop", "laptop", "desktop"] {
        world.sync(device);
    }
    assert_eq!(world.keys("laptop"), world.keys("desktop"));
    for device in ["laptop", "desktop"] {
        let report = world.sync(device);
        assert_eq!((report.published, report.taken), (0, 0), "the {device} is quiet");
    }
}

#[test]
fn renamed_file_that_is_held_back_is_deleted_nowhere() {
    let world = shared(&[("ports.md", "staging 5433\nproduction 5434\n"), ("other.md", "x\n")]);
    world.rename("laptop", "ports.md", "services.md");
    world.put("laptop", "services.md", "secret\nstaging 5433\nproduction 5434\n");
    let report = world.try_sync("laptop", &NoSecrets, Deletions::Cautious).expect("synced");
    assert_eq!((report.published, report.held.len()), (0, 1), "{report:?}");
    world.sync("desktop");
    assert_eq!(world.keys("desktop"), ["other.md", "ports.md"]);
    // Once the new name may be sent, both halves are in one commit.
    world.put("laptop", "services.md", "staging 5433\nproduction 5434\n");
    let report = world.try_sync("laptop", &NoSecrets, Deletions::Cautious).expect("synced");
    assert_eq!((report.published, report.held.len()), (1, 0), "{report:?}");
    world.sync("desktop");
    assert_eq!(world.keys("desktop"), ["other.md", "services.md"]);
}

#[test]
fn renamed_file_whose_secret_the_remote_has_is_sent() {
    let world = shared(&[("token.md", "secret but allowed\n"), ("other.md", "x\n")]);
    world.rename("laptop", "token.md", "key.md");
    struct KnowsSent;
    impl haversack::sync::Gate for KnowsSent {
        fn holds(&self, at: &haversack::store::Locator, content: &[u8]) -> Option<haversack::sync::Hold> {
            NoSecrets.holds(at, content)
        }
        fn still_holds(
            &self,
            at: &haversack::store::Locator,
            content: &[u8],
            sent: &[u8],
        ) -> Option<haversack::sync::Hold> {
            NoSecrets.holds(at, content).filter(|_| sent != content)
        }
    }
    let report = world.try_sync("laptop", &KnowsSent, Deletions::Cautious).expect("synced");
    assert_eq!((report.published, report.held.len()), (1, 0), "{report:?}");
    world.sync("desktop");
    assert_eq!(world.keys("desktop"), ["key.md", "other.md"]);
}

#[test]
fn rename_on_one_device_and_edit_on_the_other_leave_one_file() {
    for (from, to) in [("notes.md", "ideas.md"), ("notes.md", "NOTES.md"), ("notes.md", "deep/er/notes.md")] {
        for first in ["laptop", "desktop"] {
            let world = shared(&[(from, "one\ntwo\nthree\n"), ("other.md", "x\n")]);
            world.rename("laptop", from, to);
            world.put("desktop", from, "one\ntwo\nthree\nfour\n");
            world.sync(first);
            converge(&world);
            let mut expected = vec![to, "other.md"];
            expected.sort_unstable();
            assert_eq!(world.keys("laptop"), expected, "{to}, the {first} first");
            assert_eq!(world.text("laptop", to).as_deref(), Some("one\ntwo\nthree\nfour\n"));
        }
    }
}

#[test]
fn rename_with_an_edit_by_case_merges_with_the_other_edit() {
    for first in ["laptop", "desktop"] {
        let world = shared(&[("notes.md", "one\n\ntwo\n\nthree\n"), ("other.md", "x\n")]);
        world.rename("laptop", "notes.md", "Notes.md");
        world.put("laptop", "Notes.md", "zero\n\none\n\ntwo\n\nthree\n");
        world.put("desktop", "notes.md", "one\n\ntwo\n\nthree\n\nfour\n");
        world.sync(first);
        converge(&world);
        assert_eq!(world.keys("laptop"), ["Notes.md", "other.md"], "the {first} first");
        assert_eq!(
            world.text("laptop", "Notes.md").as_deref(),
            Some("zero\n\none\n\ntwo\n\nthree\n\nfour\n")
        );
    }
}

#[test]
fn case_renames_on_both_devices_end_as_one_file() {
    let world = shared(&[("notes.md", "one\n"), ("other.md", "x\n")]);
    world.rename("laptop", "notes.md", "NOTES.md");
    world.rename("desktop", "notes.md", "Notes.md");
    world.put("desktop", "Notes.md", "one\ntwo\n");
    converge(&world);
    assert_eq!(world.keys("laptop"), ["NOTES.md", "other.md"]);
    assert_eq!(world.text("desktop", "NOTES.md").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn same_rename_on_both_devices_doubles_nothing() {
    let world = shared(&[("notes.md", "one\n\ntwo\n"), ("other.md", "x\n")]);
    for (device, text) in [("laptop", "zero\n\none\n\ntwo\n"), ("desktop", "one\n\ntwo\n\nthree\n")] {
        world.rename(device, "notes.md", "ideas.md");
        world.put(device, "ideas.md", text);
    }
    // Both halves are found by their lines only where they are published, so the content decides here.
    converge(&world);
    assert_eq!(world.keys("laptop"), ["ideas.md", "other.md"]);
}

#[test]
fn real_case_twins_both_stay() {
    let world = shared(&[("other.md", "x\n")]);
    world.put("laptop", "notes.md", "the laptop's\n");
    world.put("desktop", "NOTES.md", "the desktop's\n");
    converge(&world);
    let all: String = world.keys("laptop").iter().filter_map(|key| world.text("laptop", key)).collect();
    assert!(all.contains("the laptop's\n") && all.contains("the desktop's\n"), "{all}");
    assert_eq!(world.keys("laptop").len(), 3);
}

#[test]
fn directory_that_became_a_file_arrives_and_back() {
    let world = shared(&[("lamp/oil.md", "oil\n"), ("lamp/deep/wick.md", "wick\n"), ("other.md", "x\n")]);
    for key in ["lamp/oil.md", "lamp/deep/wick.md"] {
        world.delete("laptop", key);
    }
    world.delete("laptop", "lamp/deep");
    world.delete("laptop", "lamp");
    world.put("laptop", "lamp", "a file now\n");
    world.try_sync("laptop", &Open, Deletions::Allowed).expect("synced");
    let report = world.sync("desktop");
    assert_eq!(report.refused, [], "{report:?}");
    assert_eq!(world.text("desktop", "lamp").as_deref(), Some("a file now\n"));
    world.delete("desktop", "lamp");
    world.put("desktop", "lamp/oil.md", "oil again\n");
    world.sync("desktop");
    let report = world.sync("laptop");
    assert_eq!(
        (report.refused, world.keys("laptop")),
        (vec![], vec!["lamp/oil.md".to_owned(), "other.md".to_owned()])
    );
}

#[test]
fn directory_with_an_edited_file_is_not_replaced_by_a_file() {
    let world = shared(&[("lamp/oil.md", "oil\n"), ("other.md", "x\n")]);
    world.delete("laptop", "lamp/oil.md");
    world.delete("laptop", "lamp");
    world.put("laptop", "lamp", "a file now\n");
    world.sync("laptop");
    world.put("desktop", "lamp/oil.md", "oil\nmore oil\n");
    let report = world.sync("desktop");
    assert_eq!(report.refused.len(), 1, "{report:?}");
    assert_eq!(world.text("desktop", "lamp/oil.md").as_deref(), Some("oil\nmore oil\n"));
    assert_eq!(world.sync("desktop").held.len(), 1, "the edited file is named");
}
