//! Names as people and other systems write them.

use super::{Bench, Checked, at, ensure, ensure_eq, ensure_refused};
use crate::{Condition, Durability, ErrorKind, Locator};

pub(super) fn unicode_is_one(bench: &Bench<'_>) -> Checked {
    let (composed, decomposed) = (at("caf\u{e9}/\u{e9}.md"), at("cafe\u{301}/e\u{301}.md"));
    let _ = bench.store.write(&composed, "one", Condition::Absent)?;
    ensure_eq(&bench.store.read(&decomposed)?.bytes[..], b"one", "read by the other spelling")?;
    let again = bench.store.write(&decomposed, "two", Condition::Absent);
    ensure_refused(again, ErrorKind::Conflict, "created by the other spelling")?;
    ensure_eq(bench.store.list_all(&Locator::root())?, vec![composed], "one object")
}

pub(super) fn case_twins(bench: &Bench<'_>) -> Checked {
    let _ = bench.store.write(&at("docs/README.md"), "one", Condition::Absent)?;
    let _ = bench.store.write(&at("stra\u{df}e"), "one", Condition::Absent)?;
    for twin in ["docs/readme.md", "docs/Readme.MD", "DOCS/other.md", "STRASSE"] {
        let written = bench.store.write(&at(twin), "two", Condition::Absent);
        ensure_refused(written, ErrorKind::Invalid, format_args!("create {twin}"))?;
        let appended = bench.store.append(&at(twin), "two", Durability::Now);
        ensure_refused(appended, ErrorKind::Invalid, format_args!("append to {twin}"))?;
    }
    ensure_refused(bench.store.mkdir(&at("Docs")), ErrorKind::Invalid, "a directory that is a twin")?;
    let _ = bench.store.write(&at("x"), "x", Condition::Absent)?;
    let moved = bench.store.rename(&at("x"), &at("docs/readme.MD"));
    ensure_refused(moved, ErrorKind::Invalid, "renaming to a twin")?;
    ensure_eq(&bench.store.read(&at("docs/README.md"))?.bytes[..], b"one", "the first")?;
    // Correcting the case of a name is not a twin: the old name goes away.
    bench.store.rename(&at("docs/README.md"), &at("docs/readme.md"))?;
    bench.store.delete(&at("docs/readme.md"), Condition::Any)?;
    let _ = bench.store.write(&at("docs/README.md"), "again", Condition::Absent)?;
    Ok(())
}

pub(super) fn unportable_names(bench: &Bench<'_>) -> Checked {
    for name in [
        "CON",
        "con.md",
        "nul.txt",
        "aux",
        "COM1.md",
        "LPT\u{b9}",
        "a:b",
        "x.md::$DATA",
        "x.md.",
        "x.md ",
        "C:/x",
        "what?.md",
        "a*b",
        "dir./x",
        "PRN/x",
    ] {
        let written = bench.store.write(&at(name), "x", Condition::Any);
        ensure_refused(written, ErrorKind::Invalid, format_args!("create {name:?}"))?;
        let appended = bench.store.append(&at(name), "x", Durability::Now);
        ensure_refused(appended, ErrorKind::Invalid, format_args!("append to {name:?}"))?;
        ensure_refused(bench.store.mkdir(&at(name)), ErrorKind::Invalid, format_args!("mkdir {name:?}"))?;
    }
    let _ = bench.store.write(&at("fine"), "x", Condition::Any)?;
    ensure_refused(bench.store.rename(&at("fine"), &at("aux")), ErrorKind::Invalid, "rename to aux")?;
    ensure_eq(bench.store.list_all(&Locator::root())?, vec![at("fine")], "nothing else was created")
}

pub(super) fn odd_names_are_literal(bench: &Bench<'_>) -> Checked {
    let names = [
        "...x",
        "a/...b/x",
        "~/x",
        "$HOME",
        "%2e%2e%2f",
        "..%2f",
        "-rf",
        ".tmp-1",
        ".git/config",
        " leading",
        "a b\u{a0}c",
        "\u{202e}bidi",
        "\u{ff0e}\u{ff0e}\u{ff0f}x",
        "\u{2024}\u{2024}",
        "[x]{y}(z)",
        "'q' & ;#!",
        "etc/passwd",
        "file",
        "\u{feff}bom",
    ];
    for name in names {
        let _ = bench.store.write(&at(name), name, Condition::Absent)?;
    }
    for name in names {
        ensure_eq(&bench.store.read(&at(name))?.bytes[..], name.as_bytes(), format_args!("{name:?}"))?;
    }
    let found = bench.store.list_all(&Locator::root())?;
    ensure_eq(found.len(), names.len(), "objects")?;
    ensure(names.iter().all(|name| found.contains(&at(name))), "a name came back different")
}

pub(super) fn longest_names(bench: &Bench<'_>) -> Checked {
    let segment = "s".repeat(crate::MAX_SEGMENT_BYTES);
    // Not quite the longest key: a backend may see the suite through a prefix.
    let key = vec!["k".repeat(199); 5].join("/");
    let deep = vec!["d"; 300].join("/");
    for key in [&segment, &key, &deep] {
        let locator = at(key);
        let first = bench.store.write(&locator, "one", Condition::Absent)?;
        let _ = bench.store.write(&locator, "two", Condition::Matches(first.version))?;
        ensure_eq(&bench.store.read(&locator)?.bytes[..], b"two", "content under a long name")?;
    }
    let found = bench.store.list_all(&Locator::root())?;
    ensure_eq(found.len(), 3, "objects")
}
