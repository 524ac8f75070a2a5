//! Indexes and files that are not as they should be.

use std::fs;

use haversack::kind::Kinds;
use haversack::store::{BackendExt, DeviceLocal, ErrorKind as StoreErrorKind, InMemory, block_on};
use haversack_recall::{ErrorKind, Health, MemorySearch, Place, Query, Thoroughness, health};
use rusqlite::Connection;

use crate::{OnDisk, ask, at, copy, names, once, query, write};

/// A memory of some files, with its index.
fn indexed() -> OnDisk {
    let memory = OnDisk::new();
    for number in 0..40 {
        write(
            &memory.files,
            &format!("{number}.md"),
            format!("Lamp {number} turns.\n\nThe keeper of lamp {number} sleeps.\n").as_bytes(),
        );
    }
    assert_eq!(memory.found("lamp 7 keeper")[0], "7.md");
    memory
}

/// Merges SQLite's log into the file.
fn settle(memory: &OnDisk) {
    let db = Connection::open(memory.index()).expect("opened");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("merged");
}

#[test]
fn index_that_is_cut_or_overwritten_is_made_again() {
    let memory = indexed();
    settle(&memory);
    let whole = fs::read(memory.index()).expect("read");
    let expected = once(&memory.files, &query("lamp 7 keeper"));
    let lengths =
        [0, 1, 15, 16, 99, 100, 101, 4095, 4096, 4097, whole.len() / 2, whole.len() - 4096, whole.len() - 1];
    let cut = lengths.map(|length| whole[..length].to_vec());
    let garbage = vec![b'x'; 5000];
    let mut scribbled = whole.clone();
    scribbled[4096..].fill(0x5a);
    let anywhere = (0..whole.len()).step_by(whole.len() / 37).map(|length| whole[..length + 3].to_vec());
    for bytes in cut.into_iter().chain(anywhere).chain([garbage, scribbled]) {
        for rest in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{rest}", memory.index().display())));
        }
        fs::write(memory.index(), &bytes).expect("written");
        let recalled = ask(&memory.search(), &memory.files, &query("lamp 7 keeper"));
        assert_eq!(recalled, expected, "cut to {} bytes", bytes.len());
        assert!(
            matches!(health(&memory.index(), Thoroughness::Everything), Health::Healthy { .. }),
            "{}",
            bytes.len()
        );
    }
}

/// Returns the files of an index whose latest changes are in SQLite's log only: the database and the log.
fn with_log() -> (OnDisk, Vec<u8>, Vec<u8>) {
    let memory = indexed();
    settle(&memory);
    // SQLite empties the log when the last process closes the index.
    let open = Connection::open(memory.index()).expect("opened");
    let _: i64 = open.query_row("SELECT count(*) FROM file", [], |row| row.get(0)).expect("read");
    for number in 40..80 {
        write(&memory.files, &format!("{number}.md"), format!("Lamp {number} turns.\n").as_bytes());
    }
    assert_eq!(memory.found("lamp 77")[0], "77.md");
    let read = |name: String| fs::read(name).expect("read");
    let (file, log) =
        (read(memory.index().display().to_string()), read(format!("{}-wal", memory.index().display())));
    assert!(log.len() > 4096, "{}", log.len());
    drop(open);
    (memory, file, log)
}

#[test]
fn index_or_log_that_is_cut_beside_the_other_is_made_again() {
    let (memory, file, log) = with_log();
    let expected = once(&memory.files, &query("lamp 7 keeper"));
    let lengths = |whole: &[u8]| -> Vec<usize> {
        let fixed = [0, 1, 24, 31, 32, 33, 56, 99, 100, 4096, whole.len() / 2, whole.len() - 1, whole.len()];
        fixed.into_iter().chain((0..whole.len()).step_by(whole.len() / 23)).collect()
    };
    let of_file = lengths(&file).into_iter().map(|length| (&file[..length], &log[..]));
    let of_log = lengths(&log).into_iter().map(|length| (&file[..], &log[..length]));
    let of_both = [3, 4, 7].map(|part| (&file[..file.len() / part], &log[..log.len() / part]));
    for (file, log) in of_file.chain(of_log).chain(of_both) {
        drop(fs::remove_file(format!("{}-shm", memory.index().display())));
        fs::write(memory.index(), file).expect("written");
        fs::write(format!("{}-wal", memory.index().display()), log).expect("written");
        let case = format!("database of {} bytes, log of {} bytes", file.len(), log.len());
        assert_eq!(ask(&memory.search(), &memory.files, &query("lamp 7 keeper")), expected, "{case}");
        let health = health(&memory.index(), Thoroughness::Everything);
        assert!(matches!(health, Health::Healthy { size, .. } if size.files == 80), "{case}: {health:?}");
    }
}

#[test]
fn postings_that_lie_are_noticed() {
    let memory = indexed();
    let expected = once(&memory.files, &query("lamp 7 keeper"));
    for damage in [
        "UPDATE posting SET passages = x'ffffff'",
        "UPDATE segment SET passages = x'00'",
        "UPDATE segment SET passages = x''",
        "DELETE FROM file WHERE locator = '7.md'",
        "UPDATE file SET locator = '../' || locator",
        "UPDATE file SET version = 'x'",
    ] {
        Connection::open(memory.index()).expect("opened").execute_batch(damage).expect("damaged");
        let recalled = ask(&memory.search(), &memory.files, &query("lamp 7 keeper"));
        assert_eq!(names(&recalled), names(&expected), "{damage}");
    }
}

#[test]
fn index_of_a_newer_version_is_left_alone() {
    let memory = indexed();
    settle(&memory);
    Connection::open(memory.index()).expect("opened").pragma_update(None, "user_version", 99).expect("set");
    let before = fs::read(memory.index()).expect("read");
    let recalled = ask(&memory.search(), &memory.files, &query("lamp 7 keeper"));
    assert_eq!((names(&recalled)[0], recalled.without_index), ("7.md", Some(ErrorKind::Newer)));
    assert_eq!(health(&memory.index(), Thoroughness::Outside), Health::Newer);
    assert!(fs::read(memory.index()).expect("read") == before);
}

#[test]
fn locked_index_is_done_without() {
    let memory = indexed();
    let db = Connection::open(memory.index()).expect("opened");
    db.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    write(&memory.files, "new.md", b"A submarine.\n");
    let recalled = ask(&memory.search(), &memory.files, &query("submarine"));
    assert_eq!((names(&recalled), recalled.without_index), (vec!["new.md"], Some(ErrorKind::Busy)));
    db.execute_batch("ROLLBACK").expect("unlocked");
    let recalled = ask(&memory.search(), &memory.files, &query("submarine"));
    assert_eq!((names(&recalled), recalled.without_index), (vec!["new.md"], None));
}

#[test]
fn index_that_cannot_be_written_is_done_without() {
    let memory = indexed();
    let blocked = MemorySearch::new(Place::File(memory.path("nowhere/default.sqlite")));
    let recalled = ask(&blocked, &memory.files, &query("lamp 7 keeper"));
    assert_eq!((names(&recalled)[0], recalled.without_index), ("7.md", Some(ErrorKind::Unwritable)));
    // A directory in the place of the file.
    let blocked = MemorySearch::new(Place::File(memory.path("memory")));
    assert_eq!(names(&ask(&blocked, &memory.files, &query("lamp 7 keeper")))[0], "7.md");
}

#[test]
fn searches_at_once_find_the_same() {
    let memory = OnDisk::new();
    for number in 0..300 {
        write(&memory.files, &format!("{number}.md"), format!("Lamp {number} turns.\n").as_bytes());
    }
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let memory = &memory;
            let _ = scope.spawn(move || {
                for number in 0..5 {
                    let file = thread * 10 + number;
                    write(&memory.files, &format!("{file}.md"), format!("Lens {file} turns.\n").as_bytes());
                    assert_eq!(memory.found(&format!("lens {file}"))[0], format!("{file}.md"));
                }
            });
        }
    });
    let size = match health(&memory.index(), Thoroughness::Everything) {
        Health::Healthy { size, .. } => size,
        other => panic!("{other:?}"),
    };
    assert_eq!((size.files, size.passages), (300, 300));
}

#[test]
fn files_that_cannot_be_indexed_are_told() {
    let files = InMemory::new();
    write(&files, "huge.md", "lamp ".repeat(300_000).as_bytes());
    write(&files, "line.md", "lamp ".repeat(200_000).as_bytes());
    write(&files, "binary.md", b"lamp \xff\xfe");
    write(&files, "small.md", b"lamp");
    let recalled = once(&files, &query("lamp"));
    let mut found = names(&recalled);
    found.sort_unstable();
    assert_eq!((found, recalled.unread.as_slice()), (vec!["line.md", "small.md"], &[at("huge.md")][..]));
    assert!(recalled.hits.iter().all(|hit| hit.passage.len() < 400));
}

#[test]
fn very_large_files_are_told_and_the_rest_is_found() {
    let files = InMemory::new();
    write(&files, "large.md", "lamp lens\n".repeat(5_000_000).as_bytes());
    write(&files, "line.jsonl", "lamp ".repeat(2_000_000).as_bytes());
    write(&files, "small.md", b"lamp");
    let recalled = once(&files, &query("lamp"));
    assert_eq!(names(&recalled), ["small.md"]);
    assert_eq!(recalled.unread, [at("large.md"), at("line.jsonl")]);
}

#[test]
fn file_that_vanishes_after_the_look_is_no_hit() {
    let memory = indexed();
    fs::remove_file(memory.path("memory/7.md")).expect("removed");
    let asked = query("lamp 7 keeper");
    let as_indexed = block_on(MemorySearch::recall_as_indexed(&memory.index(), &memory.files, &asked));
    assert!(!names(&as_indexed.expect("looked")).contains(&"7.md"));
    // A file that changed is shown as it is now.
    fs::write(memory.path("memory/8.md"), "Empty.\n").expect("written");
    let asked = query("lamp 8 keeper");
    let as_indexed = block_on(MemorySearch::recall_as_indexed(&memory.index(), &memory.files, &asked));
    let as_indexed = as_indexed.expect("looked");
    let changed = as_indexed.hits.iter().find(|hit| hit.locator == at("8.md")).expect("it is in the index");
    assert!(!changed.passage.contains("keeper"), "{changed:?}");
}

#[test]
fn memory_that_is_gone_is_an_error() {
    let gone = tempfile::tempdir().expect("made");
    let locks = tempfile::tempdir().expect("made");
    let files = DeviceLocal::open(gone.path().join("memory"), locks.path()).expect("opened");
    assert!(block_on(files.read_text(&at("x.md"))).expect("looked").is_none());
    fs::remove_dir_all(gone.path()).expect("removed");
    let search = MemorySearch::new(Place::Memory);
    let error =
        block_on(search.recall(&files, Kinds::built_in(), &query("lamp"))).expect_err("it is not there");
    assert_eq!(error.kind(), ErrorKind::Files);
    assert!(error.into_files().is_ok_and(|error| error.kind() != StoreErrorKind::Conflict));
}

/// Runs a test once more as a user for whom permissions count, if it runs as the superuser. Returns true in the process in which they count.
#[cfg(unix)]
fn permissions_count(test: &str) -> bool {
    let probe = tempfile::NamedTempFile::new().expect("made");
    set_mode(probe.path(), 0o000);
    if fs::read(probe.path()).is_err() {
        return true;
    }
    let program = std::env::current_exe().expect("a test");
    let mut command = std::process::Command::new("setpriv");
    let _ = command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    match command.args(["--exact", test]).output() {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
        }
        Err(error) => skip(&format!("{test}: setpriv cannot be run ({error})")),
    }
    false
}

#[cfg(unix)]
#[expect(clippy::disallowed_macros, clippy::print_stderr, reason = "a test that is left out says so")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

#[cfg(unix)]
fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

#[cfg(unix)]
#[test]
fn unreadable_file_is_told_and_the_rest_is_found() {
    if !permissions_count("damage::unreadable_file_is_told_and_the_rest_is_found") {
        return;
    }
    let memory = indexed();
    set_mode(&memory.path("memory/7.md"), 0o000);
    let recalled = ask(&memory.search(), &memory.files, &Query { limit: 50, ..query("lamp") });
    assert_eq!((recalled.hits.len(), recalled.unread), (39, vec![at("7.md")]));
}

#[cfg(unix)]
#[test]
fn read_only_index_is_done_without() {
    if !permissions_count("damage::read_only_index_is_done_without") {
        return;
    }
    for (is_directory_read_only, is_file_read_only) in [(true, false), (false, true), (true, true)] {
        let memory = indexed();
        settle(&memory);
        for rest in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{rest}", memory.index().display())));
        }
        if is_file_read_only {
            set_mode(&memory.index(), 0o400);
        }
        if is_directory_read_only {
            set_mode(&memory.path("index"), 0o500);
        }
        write(&memory.files, "new.md", b"A submarine.\n");
        let recalled = ask(&memory.search(), &memory.files, &query("submarine"));
        assert_eq!((names(&recalled), recalled.without_index), (vec!["new.md"], Some(ErrorKind::Unwritable)));
        // A hook gets the answer of the index as it stands, or none.
        let asked = query("lamp 7 keeper");
        if let Ok(recalled) =
            block_on(MemorySearch::recall_as_indexed(&memory.index(), &memory.files, &asked))
        {
            assert_eq!(names(&recalled)[0], "7.md");
        }
        // With the permissions back, the index takes in the change.
        set_mode(&memory.path("index"), 0o700);
        // SQLite gives the files beside the index its mode.
        for file in fs::read_dir(memory.path("index")).expect("listed").flatten() {
            set_mode(&file.path(), 0o600);
        }
        let recalled = ask(&memory.search(), &memory.files, &query("submarine"));
        assert_eq!((names(&recalled), recalled.without_index), (vec!["new.md"], None));
    }
}

#[test]
fn copied_index_answers() {
    let memory = indexed();
    settle(&memory);
    copy(&memory.index(), &memory.path("index/other.sqlite"));
    let search = MemorySearch::new(Place::File(memory.path("index/other.sqlite")));
    assert_eq!(names(&ask(&search, &memory.files, &query("lamp 7 keeper")))[0], "7.md");
}
