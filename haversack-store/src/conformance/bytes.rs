//! Cases: written bytes are read back.

use super::{Bench, Broken, Checked, at, ensure, ensure_eq, ensure_refused};
use crate::{Blocking, Condition, Durability, ErrorKind, Locator};

pub(super) fn exact_bytes(bench: &Bench<'_>) -> Checked {
    let every_byte: Vec<u8> = (0..=255).collect();
    let samples: [&[u8]; 10] = [
        b"line\nline\n",
        b"line\r\nline\r\n",
        b"mixed\r\nand\rbare\nends",
        b"no newline at the end",
        "\u{feff}caf\u{e9} \u{1f997}\r\n".as_bytes(),
        b"",
        b"\0",
        b"\n",
        &every_byte,
        b"\xff\xfe not text",
    ];
    for (number, sample) in samples.into_iter().enumerate() {
        let locator = at(&format!("samples/{number}.md"));
        let _ = bench.store.write(&locator, sample.to_vec(), Condition::Any)?;
        ensure_eq(&bench.store.read(&locator)?.bytes[..], sample, format_args!("sample {number}"))?;
    }
    Ok(())
}

pub(super) fn overwriting(bench: &Bench<'_>) -> Checked {
    let locator = at("a.md");
    for content in ["a long first content", "short", ""] {
        let written = bench.store.write(&locator, content, Condition::Any)?;
        let object = bench.store.read(&locator)?;
        ensure_eq(&object.bytes[..], content.as_bytes(), "after overwriting")?;
        ensure_eq(object.version, written.version, "version after overwriting")?;
        ensure_eq(written.displaced, None, "nobody else wrote")?;
    }
    Ok(())
}

pub(super) fn reading_nothing(bench: &Bench<'_>) -> Checked {
    let _ = bench.store.write(&at("there/x"), "x", Condition::Any)?;
    for key in ["nothing", "there/nothing", "no/such/place"] {
        ensure_refused(bench.store.read(&at(key)), ErrorKind::NotFound, format_args!("read {key}"))?;
        ensure_refused(bench.store.info(&at(key)), ErrorKind::NotFound, format_args!("info {key}"))?;
        ensure_eq(bench.store.exists(&at(key))?, false, format_args!("exists {key}"))?;
    }
    ensure_eq(bench.store.exists(&at("there/x"))?, true, "exists")
}

pub(super) fn versions(bench: &Bench<'_>) -> Checked {
    let locator = at("a.md");
    let first = bench.store.write(&locator, "one", Condition::Any)?.version;
    ensure_eq(bench.store.read(&locator)?.version, first.clone(), "version read after writing")?;
    ensure_eq(bench.store.read(&locator)?.version, first.clone(), "version read again")?;
    let second = bench.store.write(&locator, "two", Condition::Any)?.version;
    ensure(first != second, "other content has the same version")?;
    ensure_eq(bench.store.read(&locator)?.version, second.clone(), "version after the second write")?;
    if let Some(version) = bench.store.info(&locator)?.version {
        ensure_eq(version, second, "version that info knows")?;
    }
    Ok(())
}

pub(super) fn appending(bench: &Bench<'_>) -> Checked {
    let locator = at("logs/day.jsonl");
    let mut expected = Vec::new();
    for line in ["first\n", "second", "", " and more\n", "\u{1f997}\n"] {
        let appended = bench.store.append(&locator, line, Durability::Now)?;
        ensure_eq(appended.offset, expected.len() as u64, "where the appended bytes begin")?;
        expected.extend_from_slice(line.as_bytes());
        ensure_eq(&bench.store.read(&locator)?.bytes[..], &expected[..], "content after appending")?;
    }
    let before = bench.store.read(&locator)?.version;
    let _ = bench.store.append(&locator, "x", Durability::Now)?;
    ensure(bench.store.read(&locator)?.version != before, "an append left the version as it was")?;
    let _ = bench.store.mkdir(&at("dir"));
    if bench.store.exists(&at("dir"))? {
        ensure_refused(
            bench.store.append(&at("dir"), "x", Durability::Now),
            ErrorKind::Invalid,
            "a directory",
        )?;
    }
    Ok(())
}

pub(super) fn barrier(bench: &Bench<'_>) -> Checked {
    let locator = at("log");
    bench.store.barrier()?;
    for _ in 0..100 {
        let _ = bench.store.append(&locator, "line\n", Durability::AtBarrier)?;
    }
    bench.store.barrier()?;
    ensure_eq(bench.store.read(&locator)?.bytes.len(), 500, "bytes after the barrier")
}

pub(super) fn preparing(bench: &Bench<'_>) -> Checked {
    let own = |number: usize| {
        Locator::reserved(&format!(".haversack/incoming/{number}")).expect("one of our own names")
    };
    let _ = bench.store.write(&own(1), "left by somebody who died", Condition::Any)?;
    let contents = ["one", "", "three\r\n"];
    bench
        .store
        .prepare(contents.iter().enumerate().map(|(number, text)| (own(number), (*text).into())).collect())?;
    for (number, text) in contents.iter().enumerate() {
        ensure_eq(
            &bench.store.read(&own(number))?.bytes[..],
            text.as_bytes(),
            format_args!("object {number}"),
        )?;
    }
    bench.store.prepare(Vec::new())?;
    let mixed = bench.store.prepare(vec![(own(3), "ours".into()), (at("notes.md"), "not ours".into())]);
    ensure_refused(mixed, ErrorKind::Invalid, "a name that is not our own")?;
    ensure_eq(bench.store.exists(&at("notes.md"))?, false, "a name that is not our own")
}

pub(super) fn large_object(bench: &Bench<'_>) -> Checked {
    let mut content = vec![0_u8; 64 << 20];
    for (block, chunk) in (0_u64..).zip(content.chunks_mut(8)) {
        chunk.copy_from_slice(&block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    let locator = at("large.bin");
    let written = bench.store.write(&locator, content.clone(), Condition::Any)?;
    let object = bench.store.read(&locator)?;
    ensure(object.bytes[..] == content[..], "64 MiB came back different")?;
    ensure_eq(object.version, written.version, "its version")?;
    ensure_eq(bench.store.info(&locator)?.size_bytes, 64 << 20, "its size")
}

pub(super) fn text(bench: &Bench<'_>) -> Checked {
    let locator = at("note.md");
    ensure_eq(bench.store.read_text(&locator)?, None, "text of nothing")?;
    let _ = bench.store.write_text(&locator, "caf\u{e9}\r\n")?;
    let _ = bench.store.append_text(&locator, "more")?;
    ensure_eq(bench.store.read_text(&locator)?, Some("caf\u{e9}\r\nmore".to_owned()), "text")?;
    let _ = bench.store.write(&locator, vec![0xff, 0xfe], Condition::Any)?;
    ensure_refused(bench.store.read_text(&locator), ErrorKind::Invalid, "text that is not UTF-8")
}

pub(super) fn survives_reopening(bench: &Bench<'_>) -> Checked {
    let _ = bench.store.write(&at("a/b.md"), "kept", Condition::Absent)?;
    let _ = bench.store.append(&at("a/log"), "line\n", Durability::Now)?;
    let again = Blocking::new(bench.subject.open());
    ensure_eq(&again.read(&at("a/b.md"))?.bytes[..], b"kept", "a write after reopening")?;
    ensure_eq(&again.read(&at("a/log"))?.bytes[..], b"line\n", "an append after reopening")?;
    let version = bench.store.read(&at("a/b.md"))?.version;
    let _ = again.write(&at("a/b.md"), "seen by both", Condition::Matches(version))?;
    ensure_eq(&bench.store.read(&at("a/b.md"))?.bytes[..], b"seen by both", "through the first handle")
}

pub(super) fn fingerprints(bench: &Bench<'_>) -> Checked {
    let locator = at("a.md");
    let mark_now = || crate::block_on(bench.store.backend().touch_mark());
    let _ = bench.store.write(&locator, "one", Condition::Any)?;
    let before = bench.store.info(&locator)?.fingerprint;
    ensure_eq(bench.store.info(&locator)?.fingerprint, before, "fingerprint of an untouched object")?;
    // A file that has settled by the mark must show every later change, even one of the same size.
    let mut settled = before.is_settled(&mark_now()?);
    for _ in 0..500 {
        if settled {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        settled = before.is_settled(&mark_now()?);
    }
    ensure(settled, "the fingerprint never settles")?;
    let _ = bench.store.write(&locator, "two", Condition::Any)?;
    let after = bench.store.info(&locator)?.fingerprint;
    ensure(after != before, "other content of the same size has the same fingerprint")?;
    after
        .to_string()
        .parse()
        .map_err(|_| Broken("a fingerprint does not survive storing".to_owned()))
        .and_then(|parsed: crate::Fingerprint| ensure_eq(parsed, after, "a stored fingerprint"))
}
