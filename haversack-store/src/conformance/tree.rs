//! Directories, listings, scans and renames.

use std::collections::BTreeSet;
use std::thread;

use super::{Bench, Checked, at, ensure, ensure_eq, ensure_refused};
use crate::{Condition, Durability, Entry, EntryKind, ErrorKind, Locator};

fn fill(bench: &Bench<'_>, keys: &[&str]) -> Checked {
    for key in keys {
        let _ = bench.store.write(&at(key), (*key).to_owned(), Condition::Any)?;
    }
    Ok(())
}

fn keys_after(bench: &Bench<'_>, prefix: &Locator, after: Option<&Locator>) -> crate::Result<Vec<String>> {
    let mut keys = Vec::new();
    bench.store.scan(prefix, after, |page| {
        keys.extend(page.infos.into_iter().map(|info| info.locator.to_string()));
        Ok(())
    })?;
    Ok(keys)
}

pub(super) fn listing_children(bench: &Bench<'_>) -> Checked {
    fill(bench, &["b.md", "a/deep/x.md", "a/y.md", "c.md", "B/z.md", "a.md"])?;
    let entry = |key: &str, kind| Entry { locator: at(key), kind };
    let root = bench.store.list(&Locator::root())?;
    let expected = vec![
        entry("B", EntryKind::Directory),
        entry("a", EntryKind::Directory),
        entry("a.md", EntryKind::File),
        entry("b.md", EntryKind::File),
        entry("c.md", EntryKind::File),
    ];
    // Some disks cannot hold both `b.md` and `B`, and a backend may say so at once.
    ensure_eq(root.entries, expected, "the root's children")?;
    let below = vec![entry("a/deep", EntryKind::Directory), entry("a/y.md", EntryKind::File)];
    ensure_eq(bench.store.list(&at("a"))?.entries, below, "the children of a")
}

pub(super) fn listing_nothing(bench: &Bench<'_>) -> Checked {
    ensure_eq(bench.store.list(&Locator::root())?.entries, vec![], "an empty root")?;
    fill(bench, &["a/file.md"])?;
    for key in ["nothing", "a/nothing", "a/file.md", "a/file.md/below"] {
        ensure_eq(bench.store.list(&at(key))?.entries, vec![], format_args!("listing {key}"))?;
        let scanned = keys_after(bench, &at(key), None)?;
        let expected: &[&str] = if key == "a/file.md" { &["a/file.md"] } else { &[] };
        ensure_eq(&scanned[..], &expected.iter().map(|k| (*k).to_owned()).collect::<Vec<_>>()[..], key)?;
    }
    Ok(())
}

pub(super) fn informing(bench: &Bench<'_>) -> Checked {
    for (key, content) in [("a/empty", ""), ("a/text.md", "caf\u{e9}\r\n"), ("a/one", "1")] {
        let _ = bench.store.write(&at(key), content, Condition::Any)?;
        let info = bench.store.info(&at(key))?;
        ensure_eq(info.size_bytes, content.len() as u64, format_args!("size of {key}"))?;
        ensure_eq(info.kind, EntryKind::File, format_args!("kind of {key}"))?;
        ensure_eq(info.locator, at(key), "the locator of an info")?;
    }
    let _ = bench.store.append(&at("a/one"), "23", Durability::Now)?;
    ensure_eq(bench.store.info(&at("a/one"))?.size_bytes, 3, "size after an append")?;
    for directory in [at("a"), Locator::root()] {
        let info = bench.store.info(&directory)?;
        ensure_eq((info.kind, info.size_bytes), (EntryKind::Directory, 0), "a directory")?;
    }
    Ok(())
}

pub(super) fn making_directories(bench: &Bench<'_>) -> Checked {
    for _ in 0..2 {
        bench.store.mkdir(&at("a/b/c"))?;
    }
    bench.store.mkdir(&Locator::root())?;
    ensure_eq(bench.store.info(&at("a/b"))?.kind, EntryKind::Directory, "a directory on the way")?;
    ensure_eq(bench.store.list(&at("a/b"))?.entries.len(), 1, "children of a/b")?;
    ensure_eq(bench.store.list_all(&Locator::root())?, vec![], "objects in empty directories")?;
    bench.store.delete(&at("a/b/c"), Condition::Any)?;
    ensure_eq(bench.store.exists(&at("a/b/c"))?, false, "a directory that was deleted")?;
    let _ = bench.store.write(&at("file"), "x", Condition::Any)?;
    ensure_refused(bench.store.mkdir(&at("file")), ErrorKind::Invalid, "mkdir over an object")
}

pub(super) fn full_directories_stay(bench: &Bench<'_>) -> Checked {
    fill(bench, &["a/b.md"])?;
    ensure_refused(bench.store.delete(&at("a"), Condition::Any), ErrorKind::Invalid, "a full directory")?;
    ensure_eq(&bench.store.read(&at("a/b.md"))?.bytes[..], b"a/b.md", "what is in it")
}

pub(super) fn files_are_not_directories(bench: &Bench<'_>) -> Checked {
    fill(bench, &["file", "dir/x"])?;
    ensure_refused(bench.store.read(&at("dir")), ErrorKind::Invalid, "reading a directory")?;
    ensure_refused(bench.store.read(&Locator::root()), ErrorKind::Invalid, "reading the root")?;
    for condition in [Condition::Any, Condition::Absent] {
        let written = bench.store.write(&at("dir"), "x", condition);
        ensure_refused(written, ErrorKind::Invalid, "writing to a directory")?;
    }
    let root = bench.store.write(&Locator::root(), "x", Condition::Any);
    ensure_refused(root, ErrorKind::Invalid, "writing to the root")?;
    let below = bench.store.write(&at("file/below"), "x", Condition::Any);
    ensure_refused(below, ErrorKind::Invalid, "writing below an object")?;
    let appended = bench.store.append(&at("file/below"), "x", Durability::Now);
    ensure_refused(appended, ErrorKind::Invalid, "appending below an object")?;
    ensure_refused(bench.store.read(&at("file/below")), ErrorKind::NotFound, "reading below an object")?;
    ensure_refused(bench.store.info(&at("file/below")), ErrorKind::NotFound, "looking below an object")?;
    bench.store.delete(&at("file/below"), Condition::Any)?;
    ensure_eq(bench.store.list(&at("file/below"))?.entries, vec![], "children of nothing")?;
    ensure_eq(&bench.store.read(&at("file"))?.bytes[..], b"file", "the object")?;
    ensure_eq(&bench.store.read(&at("dir/x"))?.bytes[..], b"dir/x", "what is in the directory")
}

pub(super) fn renaming(bench: &Bench<'_>) -> Checked {
    fill(bench, &["a.md", "other.md"])?;
    let version = bench.store.read(&at("a.md"))?.version;
    bench.store.rename(&at("a.md"), &at("new/place/b.md"))?;
    ensure_refused(bench.store.read(&at("a.md")), ErrorKind::NotFound, "the old name")?;
    let moved = bench.store.read(&at("new/place/b.md"))?;
    ensure_eq(&moved.bytes[..], b"a.md", "content under the new name")?;
    let _ = bench.store.write(&at("new/place/b.md"), "x", Condition::Matches(moved.version.clone()))?;
    // If a rename has several steps, the object under the new name was written again.
    let is_one_step = bench.store.backend().capabilities().atomic_rename;
    ensure(moved.version == version || !is_one_step, "a rename changed the version")
}

pub(super) fn exchanging(bench: &Bench<'_>) -> Checked {
    fill(bench, &["a/one.md", "two.md", "dir/x"])?;
    let versions = [bench.store.read(&at("a/one.md"))?.version, bench.store.read(&at("two.md"))?.version];
    bench.store.exchange(&at("a/one.md"), &at("two.md"))?;
    let now = [bench.store.read(&at("a/one.md"))?, bench.store.read(&at("two.md"))?];
    ensure_eq(&now[0].bytes[..], b"two.md", "the first place")?;
    ensure_eq(&now[1].bytes[..], b"a/one.md", "the second place")?;
    ensure(now[0].version == versions[1] && now[1].version == versions[0], "an exchange changed a version")?;
    let own = Locator::reserved(".haversack/incoming/1").expect("one of ours");
    let _ = bench.store.write(&own, "prepared", Condition::Absent)?;
    bench.store.exchange(&own, &at("two.md"))?;
    ensure_eq(&bench.store.read(&at("two.md"))?.bytes[..], b"prepared", "what was prepared")?;
    ensure_eq(&bench.store.read(&own)?.bytes[..], b"a/one.md", "what it displaced")?;
    for (one, other) in [("two.md", "none.md"), ("none.md", "two.md"), ("none.md", "no/where.md")] {
        let refused = bench.store.exchange(&at(one), &at(other));
        ensure_refused(refused, ErrorKind::NotFound, format_args!("{one} and {other}"))?;
    }
    for other in ["dir", ""] {
        let refused = bench.store.exchange(&at("two.md"), &at(other));
        ensure_refused(refused, ErrorKind::Invalid, format_args!("an object and {other:?}"))?;
    }
    ensure_eq(&bench.store.read(&at("two.md"))?.bytes[..], b"prepared", "after refusals")?;
    ensure_eq(bench.store.exists(&at("no"))?, false, "a directory for nothing")
}

pub(super) fn renaming_directories(bench: &Bench<'_>) -> Checked {
    fill(bench, &["a/1.md", "a/b/2.md", "ab.md"])?;
    bench.store.rename(&at("a"), &at("x/y"))?;
    let found = keys_after(bench, &Locator::root(), None)?;
    ensure_eq(
        found,
        vec!["ab.md".to_owned(), "x/y/1.md".to_owned(), "x/y/b/2.md".to_owned()],
        "after renaming",
    )?;
    ensure_eq(&bench.store.read(&at("x/y/b/2.md"))?.bytes[..], b"a/b/2.md", "its content")
}

pub(super) fn renaming_never_clobbers(bench: &Bench<'_>) -> Checked {
    fill(bench, &["a.md", "b.md", "dir/c.md"])?;
    for (from, to) in [("a.md", "b.md"), ("a.md", "dir"), ("dir", "b.md"), ("a.md", "a.md")] {
        let result = bench.store.rename(&at(from), &at(to));
        ensure_refused(result, ErrorKind::Conflict, format_args!("{from} to {to}"))?;
    }
    for key in ["a.md", "b.md", "dir/c.md"] {
        ensure_eq(&bench.store.read(&at(key))?.bytes[..], key.as_bytes(), key)?;
    }
    Ok(())
}

pub(super) fn renaming_nothing(bench: &Bench<'_>) -> Checked {
    fill(bench, &["dir/a.md"])?;
    let nothing = bench.store.rename(&at("nothing"), &at("x"));
    ensure_refused(nothing, ErrorKind::NotFound, "renaming nothing")?;
    let root = bench.store.rename(&Locator::root(), &at("x"));
    ensure_refused(root, ErrorKind::Invalid, "renaming the root")?;
    let inside = bench.store.rename(&at("dir"), &at("dir/below"));
    ensure_refused(inside, ErrorKind::Invalid, "renaming a directory into itself")?;
    ensure_eq(&bench.store.read(&at("dir/a.md"))?.bytes[..], b"dir/a.md", "what was there")
}

/// Keys whose order differs from that of their names: `-`, `.` and space sort before the slash.
const TRICKY: [&str; 9] =
    ["a-b", "a.md", "a/b", "a/b-c/d", "a/b.d/e", "a0", "b/c/d/e/f", "b/c/d-e", "\u{e9}/\u{1f997}"];

fn sorted(keys: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    keys.sort();
    keys
}

pub(super) fn scanning(bench: &Bench<'_>) -> Checked {
    fill(bench, &TRICKY[..])?;
    bench.store.mkdir(&at("a/empty"))?;
    ensure_eq(keys_after(bench, &Locator::root(), None)?, sorted(&TRICKY), "a scan of everything")?;
    let below = ["a/b", "a/b-c/d", "a/b.d/e"];
    ensure_eq(keys_after(bench, &at("a"), None)?, sorted(&below), "a scan of a")?;
    bench.store.scan(&Locator::root(), None, |page| {
        for info in page.infos {
            let size = bench.store.read(&info.locator)?.bytes.len() as u64;
            if info.size_bytes != size || info.kind != EntryKind::File {
                let message = "the scan's info is wrong";
                return Err(crate::Error::new(
                    ErrorKind::Internal,
                    crate::Operation::Scan,
                    &info.locator,
                    message,
                ));
            }
        }
        Ok(())
    })?;
    Ok(())
}

pub(super) fn scanning_resumes(bench: &Bench<'_>) -> Checked {
    fill(bench, &TRICKY[..])?;
    let all = sorted(&TRICKY);
    let between = ["", "a", "a/", "a/b-c", "a/bb", "b", "b/c/d", "zzz"];
    for after in all.iter().map(String::as_str).chain(between) {
        let after = at(after);
        let expected: Vec<String> = all.iter().filter(|key| key.as_str() > after.as_str()).cloned().collect();
        let found = keys_after(bench, &Locator::root(), Some(&after))?;
        ensure_eq(found, expected, format_args!("resumed after {after:?}"))?;
    }
    ensure_eq(keys_after(bench, &at("b"), Some(&at("b/c/d-e")))?, vec!["b/c/d/e/f".to_owned()], "below b")
}

pub(super) fn scanning_many(bench: &Bench<'_>) -> Checked {
    const OBJECTS: usize = 10_000;
    const WRITERS: usize = 32;
    let key = |number: usize| format!("many/{:02}/{number:05}.md", number % 37);
    let results: Vec<crate::Result<()>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for number in (writer..OBJECTS).step_by(WRITERS) {
                        let _ = bench.store.write(&at(&key(number)), "x", Condition::Any)?;
                    }
                    Ok(())
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("writers do not panic")).collect()
    });
    results.into_iter().collect::<crate::Result<()>>()?;
    let found = keys_after(bench, &at("many"), None)?;
    ensure_eq(found.len(), OBJECTS, "objects scanned")?;
    ensure(found.is_sorted(), "the scan is not in key order")?;
    ensure_eq(found.iter().collect::<BTreeSet<_>>().len(), OBJECTS, "different objects scanned")?;
    let half = at(&found[OBJECTS / 2 - 1]);
    let rest = keys_after(bench, &at("many"), Some(&half))?;
    ensure_eq(&rest[..], &found[OBJECTS / 2..], "the second half")
}

pub(super) fn own_names_are_hidden(bench: &Bench<'_>) -> Checked {
    let own = Locator::reserved(".haversack/store.json").expect("one of ours");
    let manifest = Locator::reserved("manifest.json").expect("one of ours");
    for locator in [&own, &manifest] {
        let _ = bench.store.write(locator, "{}", Condition::Absent)?;
        ensure_eq(&bench.store.read(locator)?.bytes[..], b"{}", "what is our own")?;
    }
    fill(bench, &["a.md"])?;
    ensure_eq(keys_after(bench, &Locator::root(), None)?, vec!["a.md".to_owned()], "a scan")?;
    ensure_eq(bench.store.list(&Locator::root())?.entries.len(), 1, "a listing")?;
    let below = own.parent().expect("not the root");
    ensure_eq(keys_after(bench, &below, None)?, vec![own.to_string()], "a scan of our own")?;
    ensure_eq(bench.store.list(&below)?.entries.len(), 1, "a listing of our own")
}
