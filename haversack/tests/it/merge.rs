//! Merges of two devices' files.

mod golden;
mod laws;

use haversack::merge::{Merged, Rule, Side, conflict_name, merge};
use haversack::store::{Locator, MAX_SEGMENT_BYTES};

fn both(rule: Rule, base: Option<&[u8]>, laptop: &[u8], desktop: &[u8]) -> Merged {
    let laptop = Side { bytes: laptop, device: "laptop" };
    let desktop = Side { bytes: desktop, device: "desktop" };
    let merged = merge(rule, base, laptop, desktop);
    assert_eq!(merged, merge(rule, base, desktop, laptop), "the sides have no rank");
    merged
}

fn text(merged: &Merged) -> &str {
    assert_eq!(merged.copy, None);
    std::str::from_utf8(&merged.bytes).expect("text")
}

fn locator(raw: &str) -> Locator {
    Locator::parse(raw).expect("a locator")
}

#[derive(Debug)]
struct Case {
    name: &'static str,
    base: Option<&'static str>,
    laptop: &'static str,
    desktop: &'static str,
    merged: &'static str,
}

/// Checks a table of cases, and that a change met twice is taken in once.
fn check(rule: Rule, both_kept: &[&str], cases: &[Case]) {
    for case in cases {
        let Case { name, base, laptop, desktop, merged } = case;
        let base = base.map(str::as_bytes);
        let outcome = both(rule, base, laptop.as_bytes(), desktop.as_bytes());
        assert_eq!(text(&outcome), *merged, "{name}");
        assert_eq!(outcome.both_kept, both_kept.contains(name), "{name}");
        for side in [laptop, desktop] {
            let again = both(rule, base, &outcome.bytes, side.as_bytes());
            assert_eq!(text(&again), *merged, "{name}: again with {side:?}");
        }
    }
}

#[test]
fn lines_meet_in_one_text() {
    let changed_twice = [
        "fact, same line",
        "index, same entry described anew",
        "both created, with front matter",
        "replaced by more lines that begin and end alike",
        "overlapping passages",
    ];
    check(
        Rule::Prose,
        &changed_twice,
        &[
            Case {
                name: "index, both append",
                base: Some("# Index\n- [a](a.md)\n"),
                laptop: "# Index\n- [a](a.md)\n- [c](c.md)\n",
                desktop: "# Index\n- [a](a.md)\n- [b](b.md)\n",
                merged: "# Index\n- [a](a.md)\n- [b](b.md)\n- [c](c.md)\n",
            },
            Case {
                name: "index, same append",
                base: Some("- [a](a.md)\n- [old](old.md)\n"),
                laptop: "- [a](a.md)\n- [old](old.md)\n- [b](b.md)\n",
                desktop: "- [a](a.md)\n- [b](b.md)\n",
                merged: "- [a](a.md)\n- [b](b.md)\n",
            },
            Case {
                name: "index, same append and different ones",
                base: Some("- a\n"),
                laptop: "- a\n- shared\n- from laptop\n",
                desktop: "- a\n- from desktop\n- shared\n",
                merged: "- a\n- from desktop\n- shared\n- from laptop\n",
            },
            Case {
                name: "index, delete beside an add",
                base: Some("- a\n- b\n- c\n"),
                laptop: "- a\n- c\n",
                desktop: "- a\n- b\n- new\n- c\n",
                merged: "- a\n- new\n- c\n",
            },
            Case {
                name: "index, delete above an append",
                base: Some("- a\n- b\n"),
                laptop: "- a\n",
                desktop: "- a\n- b\n- new\n",
                merged: "- a\n- new\n",
            },
            Case {
                name: "index, same entry described anew",
                base: Some("- [a](a.md) old\n- b\n"),
                laptop: "- [a](a.md) lamp\n- b\n",
                desktop: "- [a](a.md) lens\n- b\n",
                merged: "- [a](a.md) lamp\n> [also, from desktop:]\n- [a](a.md) lens\n- b\n",
            },
            Case {
                name: "log, prepend on the same day",
                base: Some("# Log\n\n## 2026-10-01\n- lit the lamp\n"),
                laptop: "# Log\n\n## 2026-10-02\n- fog at noon\n\n## 2026-10-01\n- lit the lamp\n",
                desktop: "# Log\n\n## 2026-10-02\n- a ship passed\n\n## 2026-10-01\n- lit the lamp\n",
                merged: "# Log\n\n## 2026-10-02\n- a ship passed\n- fog at noon\n\n## 2026-10-01\n- lit the lamp\n",
            },
            Case {
                name: "log, append on different days",
                base: Some("## 2026-10-01\n- one\n"),
                laptop: "## 2026-10-01\n- one\n\n## 2026-10-03\n- three\n",
                desktop: "## 2026-10-01\n- one\n\n## 2026-10-02\n- two\n",
                merged: "## 2026-10-01\n- one\n\n## 2026-10-02\n- two\n\n## 2026-10-03\n- three\n",
            },
            Case {
                name: "log, paragraphs stay apart",
                base: Some("Start.\n"),
                laptop: "Start.\n\nThe lens is clean.\nThe oil is full.\n",
                desktop: "Start.\n\nThe fog lifted.\nAll quiet.\n",
                merged: "Start.\n\nThe fog lifted.\nAll quiet.\n\nThe lens is clean.\nThe oil is full.\n",
            },
            Case {
                name: "commitments, one moves and another is added",
                base: Some("## Open\n- c-1 paint\n\n## Delivered\n"),
                laptop: "## Open\n\n## Delivered\n- c-1 paint\n",
                desktop: "## Open\n- c-1 paint\n- c-2 oil\n\n## Delivered\n",
                merged: "## Open\n- c-2 oil\n\n## Delivered\n- c-1 paint\n",
            },
            Case {
                name: "commitments, both deliver",
                base: Some("## Open\n- c-1\n- c-2\n\n## Delivered\n- c-0\n"),
                laptop: "## Open\n- c-2\n\n## Delivered\n- c-0\n- c-1\n",
                desktop: "## Open\n- c-1\n\n## Delivered\n- c-0\n- c-2\n",
                merged: "## Open\n\n## Delivered\n- c-0\n- c-2\n- c-1\n",
            },
            Case {
                name: "fact, edits apart",
                base: Some("Port: 5433\nHost: harbour\nUser: keeper\n"),
                laptop: "Port: 5434\nHost: harbour\nUser: keeper\n",
                desktop: "Port: 5433\nHost: harbour\nUser: guard\n",
                merged: "Port: 5434\nHost: harbour\nUser: guard\n",
            },
            Case {
                name: "fact, edits of neighbouring lines keep their places",
                base: Some("one\ntwo\nthree\n"),
                laptop: "one\nZWEI\nthree\n",
                desktop: "one\ntwo\nDREI\n",
                merged: "one\nZWEI\nDREI\n",
            },
            Case {
                name: "fact, same line",
                base: Some("The lamp turns every 5 s.\nIt is white.\n"),
                laptop: "The lamp turns every 10 s.\nIt is white.\n",
                desktop: "The lamp turns every 15 s.\nIt is white.\n",
                merged: "The lamp turns every 10 s.\n> [also, from desktop:]\nThe lamp turns every 15 s.\nIt is white.\n",
            },
            Case {
                name: "front matter, same field",
                base: Some("---\nname: lamp\nupdated: 1\n---\nBody\n"),
                laptop: "---\nname: lamp\nupdated: 3\n---\nBody\n",
                desktop: "---\nname: lamp\nupdated: 2\n---\nBody\n",
                merged: "---\nname: lamp\nupdated: 3\n---\nBody\n",
            },
            Case {
                name: "an edit wins over a delete",
                base: Some("a\nb\nc\n"),
                laptop: "a\nc\n",
                desktop: "a\nB\nc\n",
                merged: "a\nB\nc\n",
            },
            Case {
                name: "both delete",
                base: Some("a\nb\nc\nd\n"),
                laptop: "a\nd\n",
                desktop: "a\nc\n",
                merged: "a\n",
            },
            Case {
                name: "replaced by more lines that begin and end alike",
                base: Some("a\nold\nz\n"),
                laptop: "a\nsame\nx\nend\nz\n",
                desktop: "a\nsame\ny\nend\nz\n",
                merged: "a\nsame\nx\n> [also, from desktop:]\ny\nend\nz\n",
            },
            Case {
                name: "overlapping passages",
                base: Some("1\n2\n3\n4\n"),
                laptop: "one\ntwo\n3\n4\n",
                desktop: "1\nzwei\ndrei\n4\n",
                merged: "one\ntwo\n> [also, from desktop, 2 lines for the 2 above:]\nzwei\ndrei\n4\n",
            },
            Case {
                name: "no newline at the end",
                base: Some("a\nb"),
                laptop: "a\nb\nc",
                desktop: "a\nb\nd",
                merged: "a\nb\nc\nd",
            },
            Case {
                name: "the final newline goes while another appends",
                base: Some("a\nb\n"),
                laptop: "a\nb",
                desktop: "a\nb\nc\n",
                merged: "a\nb\nc\n",
            },
            Case {
                name: "the missing newline is the file's own",
                base: Some("a\r\nb"),
                laptop: "x\r\na\r\nb\r\nc",
                desktop: "a\r\nb\r\nd",
                merged: "x\r\na\r\nb\r\nc\r\nd",
            },
            Case {
                name: "both created",
                base: None,
                laptop: "# Lighthouse\nthe lamp\nshared\n",
                desktop: "# Lighthouse\nshared\nthe stairs\n",
                merged: "# Lighthouse\nthe lamp\nshared\nthe stairs\n",
            },
            Case {
                name: "both created, with front matter",
                base: None,
                laptop: "---\nname: lamp\n---\n\nIt turns.\n",
                desktop: "---\nname: lens\n---\n\nIt shines.\n",
                merged: "---\nname: lens\n---\n\n> [also, from laptop, as a field:]\n> name: lamp\n\nIt shines.\nIt turns.\n",
            },
            Case {
                name: "both created, one is empty",
                base: None,
                laptop: "",
                desktop: "a\n",
                merged: "a\n",
            },
            Case {
                name: "other endings on one side",
                base: Some("a\nb\nc\n"),
                laptop: "a\r\nb\r\nc\r\n",
                desktop: "a\nB\nc\n",
                merged: "a\r\nB\r\nc\r\n",
            },
            Case {
                name: "other endings on one side, which writes as well",
                base: Some("a\r\nb\r\n"),
                laptop: "a\nb\nc\n",
                desktop: "x\r\na\r\nb\r\n",
                merged: "x\na\nb\nc\n",
            },
            Case {
                name: "legitimate duplicates",
                base: Some("## Mon\n- walked\n\n## Tue\n- walked\n"),
                laptop: "## Mon\n- walked\n\n## Tue\n- walked\n\n## Wed\n- walked\n",
                desktop: "## Mon\n- walked\n- read\n\n## Tue\n- walked\n",
                merged: "## Mon\n- walked\n- read\n\n## Tue\n- walked\n\n## Wed\n- walked\n",
            },
            Case {
                name: "items keep what is below them",
                base: Some("# List\n"),
                laptop: "# List\n- a\n  - one\n- c\n  three\n",
                desktop: "# List\n- b\n  - two\n",
                merged: "# List\n- a\n  - one\n- b\n  - two\n- c\n  three\n",
            },
        ],
    );
}

#[test]
fn a_note_is_one_line_whatever_the_device_is_called() {
    for (name, note) in [
        ("my\nlaptop\u{1b}[2J", "> [also, from my\\nlaptop\\u{1b}[2J:]"),
        ("\u{202e}laptop", "> [also, from \\u{202e}laptop:]"),
        ("", "> [also, from another device:]"),
    ] {
        let merged = merge(
            Rule::Prose,
            Some(b"x\n"),
            Side { bytes: b"a\n", device: "desktop" },
            Side { bytes: b"b\n", device: name },
        );
        assert_eq!(text(&merged), format!("a\n{note}\nb\n"));
    }
}

#[test]
fn events_meet_in_one_log() {
    check(
        Rule::JsonLines,
        &["one event, changed differently", "one id, two events"],
        &[
            Case {
                name: "both append",
                base: Some("{\"id\":\"1\",\"ts\":\"10:00\"}\n"),
                laptop: "{\"id\":\"1\",\"ts\":\"10:00\"}\n{\"id\":\"2\",\"ts\":\"10:02\"}\n{\"id\":\"4\",\"ts\":\"10:04\"}\n",
                desktop: "{\"id\":\"1\",\"ts\":\"10:00\"}\n{\"id\":\"3\",\"ts\":\"10:03\"}\n",
                merged: "{\"id\":\"1\",\"ts\":\"10:00\"}\n{\"id\":\"2\",\"ts\":\"10:02\"}\n{\"id\":\"3\",\"ts\":\"10:03\"}\n{\"id\":\"4\",\"ts\":\"10:04\"}\n",
            },
            Case {
                name: "no newline at the end",
                base: Some("{\"n\":1}"),
                laptop: "{\"n\":1}\n{\"n\":3}",
                desktop: "{\"n\":1}\n{\"n\":2}",
                merged: "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n",
            },
            Case {
                name: "without ts each side keeps its order",
                base: Some(""),
                laptop: "{\"e\":\"start\",\"on\":\"laptop\"}\n{\"e\":\"end\",\"on\":\"laptop\"}\n",
                desktop: "{\"e\":\"start\",\"on\":\"desktop\"}\n{\"e\":\"end\",\"on\":\"desktop\"}\n",
                merged: "{\"e\":\"start\",\"on\":\"desktop\"}\n{\"e\":\"end\",\"on\":\"desktop\"}\n{\"e\":\"start\",\"on\":\"laptop\"}\n{\"e\":\"end\",\"on\":\"laptop\"}\n",
            },
            Case {
                name: "one is removed, one changed, one added",
                base: Some("{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3\"}\n"),
                laptop: "{\"id\":\"2\"}\n{\"id\":\"3\",\"done\":true}\n",
                desktop: "{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3\"}\n{\"id\":\"4\"}\n",
                merged: "{\"id\":\"2\"}\n{\"id\":\"3\",\"done\":true}\n{\"id\":\"4\"}\n",
            },
            Case {
                name: "removed by one, changed by the other",
                base: Some("{\"id\":\"1\"}\n{\"id\":\"2\"}\n"),
                laptop: "{\"id\":\"2\"}\n",
                desktop: "{\"id\":\"1\",\"done\":true}\n{\"id\":\"2\"}\n",
                merged: "{\"id\":\"1\",\"done\":true}\n{\"id\":\"2\"}\n",
            },
            Case {
                name: "one event, changed differently",
                base: Some("{\"id\":\"1\"}\n{\"id\":\"2\"}\n"),
                laptop: "{\"id\":\"1\",\"by\":\"laptop\"}\n{\"id\":\"2\"}\n",
                desktop: "{\"id\":\"1\",\"by\":\"desktop\"}\n{\"id\":\"2\"}\n",
                merged: "{\"id\":\"1\",\"by\":\"desktop\"}\n{\"id\":\"1\",\"by\":\"laptop\"}\n{\"id\":\"2\"}\n",
            },
            Case {
                name: "one id, two events",
                base: None,
                laptop: "{\"id\":\"1\",\"by\":\"laptop\"}\n",
                desktop: "{\"id\":\"1\",\"by\":\"desktop\"}\n",
                merged: "{\"id\":\"1\",\"by\":\"desktop\"}\n{\"id\":\"1\",\"by\":\"laptop\"}\n",
            },
            Case {
                name: "an id that comes again is no change of the first",
                base: Some("{\"id\":\"1\",\"s\":\"open\"}\n{\"id\":\"2\",\"s\":\"open\"}\n"),
                laptop: "{\"id\":\"1\",\"s\":\"open\"}\n{\"id\":\"2\",\"s\":\"open\"}\n{\"id\":\"1\",\"s\":\"begun\"}\n",
                desktop: "{\"id\":\"1\",\"s\":\"open\"}\n{\"id\":\"2\",\"s\":\"open\"}\n{\"id\":\"1\",\"s\":\"done\"}\n",
                merged: "{\"id\":\"1\",\"s\":\"open\"}\n{\"id\":\"2\",\"s\":\"open\"}\n{\"id\":\"1\",\"s\":\"begun\"}\n{\"id\":\"1\",\"s\":\"done\"}\n",
            },
            Case {
                name: "the same line twice is two events",
                base: Some("{\"e\":\"tick\"}\n"),
                laptop: "{\"e\":\"tick\"}\n{\"e\":\"tick\"}\n{\"e\":\"tick\"}\n",
                desktop: "{\"e\":\"tick\"}\n{\"e\":\"tick\"}\n",
                merged: "{\"e\":\"tick\"}\n{\"e\":\"tick\"}\n{\"e\":\"tick\"}\n",
            },
            Case {
                name: "both only put them in another order",
                base: Some("{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3\"}\n"),
                laptop: "{\"id\":\"1\"}\n{\"id\":\"3\"}\n{\"id\":\"2\"}\n",
                desktop: "{\"id\":\"2\"}\n{\"id\":\"1\"}\n{\"id\":\"3\"}\n",
                merged: "{\"id\":\"1\"}\n{\"id\":\"3\"}\n{\"id\":\"2\"}\n",
            },
            Case {
                name: "what is no JSON stays, what is blank goes, an array has no id",
                base: Some("half a li\n\n"),
                laptop: "half a li\r\n[\"10:00\", \"1\"]\r\n",
                desktop: "half a li\n\n{\"id\":7}\n",
                merged: "half a li\n[\"10:00\", \"1\"]\n{\"id\":7}\n",
            },
        ],
    );
}

#[test]
fn unchanged_side_is_not_parsed() {
    for rule in [Rule::Prose, Rule::JsonLines, Rule::Whole] {
        for odd in [&b"a\r\rb"[..], b"\n\n \n{", b"\xff\0", b"", b"{\"id\":1}\n\n\r\n{\"id\":1}"] {
            for (base, laptop, desktop) in [
                (Some(&b"base\n"[..]), odd, &b"base\n"[..]),
                (Some(odd), odd, odd),
                (Some(b"base\n"), odd, odd),
                (None, odd, odd),
            ] {
                let merged = both(rule, base, laptop, desktop);
                assert_eq!(merged, Merged { bytes: odd.to_vec().into(), copy: None, both_kept: false });
            }
        }
    }
}

#[test]
fn what_does_not_merge_is_kept_beside() {
    let merged = both(Rule::Whole, Some(b"\0"), b"\0one", b"\0two");
    let copy = merged.copy.clone().expect("the other content");
    let mut contents = [&merged.bytes[..], &copy[..]];
    contents.sort_unstable();
    assert_eq!(contents, [&b"\0one"[..], b"\0two"]);
    assert!(merged.both_kept);
    assert_eq!(both(Rule::Whole, Some(b"\0"), &merged.bytes, &copy), merged, "met again");
}

#[test]
fn the_rule_is_in_the_name_and_the_content() {
    let rule = |name: &str, contents: &[&'static [u8]]| Rule::of(&locator(name), contents.iter().copied());
    assert_eq!(rule("lighthouse/notes.md", &[b"a", b"", b"\xc3\xbc"]), Rule::Prose);
    assert_eq!(rule("lighthouse/events.jsonl", &[b"{}", b"no json", b""]), Rule::JsonLines);
    assert_eq!(rule("lighthouse/Events.JSONL", &[b"{}", b"{}"]), Rule::JsonLines);
    assert_eq!(rule("jsonl", &[b"{}"]), Rule::Prose);
    for name in ["notes.md", "events.jsonl"] {
        for binary in [&b"\xff"[..], b"a\0b"] {
            assert_eq!(rule(name, &[binary, b"a", b"b"]), Rule::Whole);
            assert_eq!(rule(name, &[b"a", binary, b"b"]), Rule::Whole);
            assert_eq!(rule(name, &[b"a", b"b", binary]), Rule::Whole);
        }
    }
}

#[test]
fn a_copy_is_named_by_what_it_holds() {
    // The first digits of the published BLAKE3 hash of nothing.
    let mark = ".conflict-af1349b9";
    let named = |raw: &str| conflict_name(&locator(raw), b"").expect("a name").as_str().to_owned();
    assert_eq!(named("lighthouse/sketch.png"), format!("lighthouse/sketch{mark}.png"));
    assert_eq!(named("sketch"), format!("sketch{mark}"));
    assert_eq!(named(".sketch"), format!(".sketch{mark}"));
    assert_eq!(named("a.tar.gz"), format!("a.tar{mark}.gz"));
    let ä = "ä".repeat(126);
    assert_eq!(named(&format!("{ä}.md")), format!("{}{mark}.md", "ä".repeat(117)));
    let long = format!("a.{}", "b".repeat(250));
    assert_eq!(named(&long), format!("{}{mark}", &long[..MAX_SEGMENT_BYTES - mark.len()]));
}

#[test]
fn a_long_text_without_order_is_merged_in_bounded_time() {
    // The first is compared line by line, the second is more than that is done for.
    for lines in [5_000, 150_000] {
        let scrambled = |seed: u64| -> Vec<u8> {
            let mut state = seed;
            let mut bytes = Vec::new();
            for _ in 0..lines {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                bytes.extend([b'a' + u8::try_from(state >> 60).expect("four bits"), b'\n']);
            }
            bytes
        };
        let [base, laptop, desktop] = [1, 2, 3].map(scrambled);
        let merged = both(Rule::Prose, Some(&base), &laptop, &desktop);
        assert!(merged.bytes.len() >= laptop.len().max(desktop.len()));
    }
}
