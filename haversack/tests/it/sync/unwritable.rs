//! A working file that cannot be written or read stops only itself.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a link or a pipe is made on the disk itself"
)]

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use super::World;

impl World {
    fn path(&self, device: &str, key: &str) -> PathBuf {
        self.base.path().join(device).join("memory").join(key)
    }
}

/// Returns two devices that both have `MEMORY.md` and `other.md`.
fn shared() -> World {
    let world = World::new();
    world.put("laptop", "MEMORY.md", "- one\n- two\n");
    world.put("laptop", "other.md", "x\n");
    world.sync("laptop");
    world.sync("desktop");
    world
}

/// Puts something that is no file in the place of a file.
fn obstruct(world: &World, key: &str, how: &str) {
    let path = world.path("desktop", key);
    std::fs::remove_file(&path).expect("removed");
    match how {
        "link" => symlink("/dev/null", path).expect("linked"),
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().expect("started").success()),
        _ => {
            std::fs::create_dir(&path).expect("made");
            symlink("/dev/null", path.join("link")).expect("linked");
        }
    }
}

#[test]
fn link_pipe_or_directory_in_place_of_a_file_stops_only_that_file() {
    for how in ["link", "pipe", "directory"] {
        let world = shared();
        obstruct(&world, "MEMORY.md", how);
        world.put("laptop", "MEMORY.md", "- zero\n- one\n- two\n");
        world.put("laptop", "other.md", "x\ny\n");
        world.put("laptop", "new.md", "new\n");
        world.sync("laptop");
        world.put("desktop", "mine.md", "mine\n");
        for _ in 0..2 {
            let report = world.sync("desktop");
            let named = report.refused.iter().chain(report.unseen.iter().map(|(at, _)| at));
            assert!(named.into_iter().any(|at| at.as_str() == "MEMORY.md"), "{how}: {report:?}");
        }
        assert_eq!(world.text("desktop", "other.md").as_deref(), Some("x\ny\n"), "{how}");
        assert_eq!(world.text("desktop", "new.md").as_deref(), Some("new\n"), "{how}");
        world.sync("laptop");
        assert_eq!(world.text("laptop", "mine.md").as_deref(), Some("mine\n"), "{how}");
        // The user puts an edited file back. It was made from the content before.
        let path = world.path("desktop", "MEMORY.md");
        if how == "directory" {
            std::fs::remove_dir_all(&path).expect("removed");
        } else {
            std::fs::remove_file(&path).expect("removed");
        }
        std::fs::write(&path, "- one\n- three\n").expect("written");
        world.sync("desktop");
        world.sync("laptop");
        for device in ["laptop", "desktop"] {
            let text = world.text(device, "MEMORY.md");
            assert_eq!(text.as_deref(), Some("- zero\n- one\n- three\n"), "{how}, the {device}");
        }
    }
}

#[test]
fn file_comes_once_the_link_in_its_place_is_gone() {
    let world = shared();
    obstruct(&world, "MEMORY.md", "link");
    world.put("laptop", "MEMORY.md", "- zero\n- one\n- two\n");
    world.sync("laptop");
    assert_eq!(world.sync("desktop").refused.len(), 1);
    std::fs::remove_file(world.path("desktop", "MEMORY.md")).expect("removed");
    world.sync("desktop");
    assert_eq!(world.text("desktop", "MEMORY.md").as_deref(), Some("- zero\n- one\n- two\n"));
    assert_eq!(world.sync("laptop").taken, 0, "nothing was deleted");
}

/// Makes a file that even root cannot change, or lets go of it; `false` where the filesystem has no such flag.
fn immutable(world: &World, key: &str, flag: &str) -> bool {
    let path = world.path("desktop", key);
    Command::new("chattr").arg(flag).arg(path).output().is_ok_and(|output| output.status.success())
}

#[test]
fn immutable_file_stops_only_itself() {
    let world = shared();
    if !immutable(&world, "MEMORY.md", "+i") {
        return;
    }
    world.put("laptop", "MEMORY.md", "- zero\n- one\n- two\n");
    world.put("laptop", "other.md", "x\ny\n");
    world.sync("laptop");
    for _ in 0..2 {
        let report = world.sync("desktop");
        assert_eq!((report.refused.len(), report.published), (1, 0), "{report:?}");
    }
    assert_eq!(world.text("desktop", "other.md").as_deref(), Some("x\ny\n"));
    world.delete("laptop", "MEMORY.md");
    world.sync("laptop");
    let report = world.sync("desktop");
    assert_eq!(
        (report.refused.len(), report.published),
        (1, 0),
        "a deletion that cannot be carried out: {report:?}"
    );
    assert_eq!(world.text("desktop", "MEMORY.md").as_deref(), Some("- one\n- two\n"));
    assert!(immutable(&world, "MEMORY.md", "-i"));
    assert_eq!(world.sync("desktop").published, 0, "the file is not sent as a new one");
}

/// The laptop renames a file that the desktop has edited, and the desktop cannot write the new name.
#[test]
fn edit_stays_where_the_new_name_of_its_file_cannot_be_written() {
    let world = shared();
    world.put("laptop", "deep/other.md", "x\n");
    world.delete("laptop", "other.md");
    world.sync("laptop");
    world.put("desktop", "other.md", "x\nby the desktop\n");
    symlink("/dev/null", world.path("desktop", "deep")).expect("linked");
    for _ in 0..2 {
        let report = world.sync("desktop");
        assert!(report.refused.iter().any(|at| at.as_str() == "deep/other.md"), "{report:?}");
        assert_eq!(world.text("desktop", "other.md").as_deref(), Some("x\nby the desktop\n"));
    }
    std::fs::remove_file(world.path("desktop", "deep")).expect("removed");
    world.sync("desktop");
    world.sync("laptop");
    for device in ["laptop", "desktop"] {
        assert_eq!(world.text(device, "other.md").as_deref(), Some("x\nby the desktop\n"), "{device}");
        assert_eq!(world.text(device, "deep/other.md").as_deref(), Some("x\n"), "{device}");
    }
}

/// The desktop renames a file that the laptop has edited, and the edit cannot be written under the new name.
#[test]
fn edit_of_a_renamed_file_is_not_lost_if_it_cannot_be_written() {
    let world = shared();
    world.rename("desktop", "other.md", "renamed.md");
    if !immutable(&world, "renamed.md", "+i") {
        return;
    }
    world.put("laptop", "other.md", "x\nby the laptop\n");
    world.sync("laptop");
    world.sync("desktop");
    assert!(immutable(&world, "renamed.md", "-i"));
    for device in ["desktop", "laptop", "desktop"] {
        world.sync(device);
    }
    for device in ["laptop", "desktop"] {
        let files = ["other.md", "renamed.md"].map(|key| world.text(device, key).unwrap_or_default());
        assert!(files.iter().any(|text| text.contains("by the laptop")), "{device}: {files:?}");
        assert!(files[1].starts_with("x\n"), "{device}: {files:?}");
    }
}
