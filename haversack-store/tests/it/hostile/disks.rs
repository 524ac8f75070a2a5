//! Full, limited and read-only disks.

use std::path::{Path, PathBuf};
use std::process::Command;

use haversack_store::{Blocking, Condition, DeviceLocal, Durability, ErrorKind};
use tempfile::TempDir;

use super::{Scene, at};

/// A small disk in memory; `None` where this test may not mount.
struct SmallDisk {
    base: TempDir,
}

impl SmallDisk {
    #[expect(clippy::print_stderr, reason = "a skipped test must be visible in its output")]
    fn mount() -> Option<SmallDisk> {
        let base = TempDir::new().expect("a temporary directory");
        let disk = SmallDisk { base };
        std::fs::create_dir(disk.path()).expect("made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(disk.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(disk),
            _ => {
                eprintln!("skipped: mounting a small disk needs privileges");
                std::mem::forget(disk);
                None
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.base.path().join("disk")
    }

    fn store(&self) -> Blocking {
        open(&self.path(), self.base.path())
    }

    fn remount(&self, option: &str) {
        let mut mount = Command::new("mount");
        let done = mount.args(["-o", &format!("remount,{option}")]).arg(self.path()).status();
        assert!(done.expect("it ran").success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.path()).status());
    }
}

fn open(disk: &Path, beside: &Path) -> Blocking {
    let backend = DeviceLocal::open(disk.join("memory"), beside.join("locks")).expect("it opens");
    Blocking::new(std::sync::Arc::new(backend))
}

#[test]
fn a_full_disk_leaves_the_old_content() {
    let Some(disk) = SmallDisk::mount() else { return };
    let store = disk.store();
    let (notes, log) = (at("notes.md"), at("log.md"));
    let version = store.write(&notes, "old", Condition::Absent).expect("written").version;
    let _ = store.append(&log, "line\n", Durability::Now).expect("appended");
    let big = vec![b'x'; 512 * 1024];
    let full = |what: &str, result: Result<(), haversack_store::Error>| {
        let error = result.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Full, "{what}: {error:?}");
        assert!(error.to_string().ends_with("the disk is full"), "{error}");
        assert_eq!(store.read_text(&notes).expect("read").as_deref(), Some("old"), "{what}");
        assert_eq!(store.read_text(&log).expect("read").as_deref(), Some("line\n"), "{what}");
        assert_eq!(super::working_names(&disk.path()), Vec::<PathBuf>::new(), "{what}");
    };
    full("replace", store.write(&notes, big.clone(), Condition::Matches(version.clone())).map(drop));
    full("overwrite", store.write(&notes, big.clone(), Condition::Any).map(drop));
    full("create", store.write(&at("new.md"), big.clone(), Condition::Absent).map(drop));
    full("append", store.append(&log, big.clone(), Durability::Now).map(drop));
    full("append later", store.append(&log, big, Durability::AtBarrier).map(drop));

    // Full to the last byte: what needs no space still works, and everything does once there is some.
    let filler = disk.path().join("filler");
    let mut size = 256 * 1024;
    while size > 0 {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&filler).expect("opened");
        if std::io::Write::write_all(&mut file, &vec![b'f'; size]).is_err() {
            size /= 2;
        }
    }
    let small = store.write(&notes, vec![b'y'; 8192], Condition::Matches(version.clone()));
    full("replace on a full disk", small.map(drop));
    store.delete(&log, Condition::Any).expect("deleting needs no space");
    std::fs::remove_file(filler).expect("removed");
    let _ = store.write(&notes, vec![b'y'; 8192], Condition::Matches(version)).expect("there is space again");
}

#[test]
fn a_read_only_disk_is_said_to_be_one() {
    let Some(disk) = SmallDisk::mount() else { return };
    let store = disk.store();
    let version = store.write(&at("notes.md"), "old", Condition::Absent).expect("written").version;
    disk.remount("ro");
    let results = [
        ("replace", store.write(&at("notes.md"), "new", Condition::Matches(version.clone())).map(drop)),
        ("create", store.write(&at("new.md"), "new", Condition::Absent).map(drop)),
        ("append", store.append(&at("notes.md"), "new", Durability::Now).map(drop)),
        ("delete", store.delete(&at("notes.md"), Condition::Any)),
        ("delete what was read", store.delete(&at("notes.md"), Condition::Matches(version.clone()))),
        ("rename", store.rename(&at("notes.md"), &at("new.md"))),
        ("mkdir", store.mkdir(&at("dir"))),
    ];
    for (verb, result) in results {
        let error = result.expect_err(verb);
        assert_eq!(error.kind(), ErrorKind::Denied, "{verb}: {error:?}");
    }
    assert_eq!(store.read_text(&at("notes.md")).expect("read").as_deref(), Some("old"));
    disk.remount("rw");
    let _ = store.write(&at("notes.md"), "new", Condition::Matches(version)).expect("writable again");
}

#[test]
fn a_limit_on_file_sizes_leaves_the_old_content() {
    let scene = Scene::new();
    let _ = scene.store.write(&at("notes.md"), "old", Condition::Absent).expect("written");
    let _ = scene.store.append(&at("log.md"), "line\n", Durability::Now).expect("appended");
    // The limit is the process's, in blocks of 512 bytes; the signal for it must be ignored to get an error.
    let child = super::processes::child(scene.base.path(), "limited", "");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]);
    limited.arg(child.get_program()).args(child.get_args());
    limited.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(scene.store.read_text(&at("notes.md")).expect("read").as_deref(), Some("old"));
    assert_eq!(scene.store.read_text(&at("log.md")).expect("read").as_deref(), Some("line\n"));
    assert_eq!(super::working_names(&scene.root()), Vec::<PathBuf>::new());
}
