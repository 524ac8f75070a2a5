use haversack_store::Locator;

use super::*;
use crate::merge::conflict_name;

fn found(text: &str) -> Vec<Conflict> {
    find(&Locator::parse("lamp.md").expect("a locator"), text)
}

/// Returns the passages of each conflict, separated by bars.
fn shown(text: &str) -> Vec<String> {
    let device =
        |passage: &Passage| passage.device.as_ref().map(|device| format!("{device}: ")).unwrap_or_default();
    let shown = |conflict: &Conflict| {
        let passages: Vec<String> =
            conflict.passages.iter().map(|passage| format!("{}{}", device(passage), passage.text)).collect();
        passages.join(" | ").replace('\n', "/")
    };
    found(text).iter().map(shown).collect()
}

/// Settles the first conflict in every way: both, 1, 2, and so on.
fn settled(text: &str) -> Vec<String> {
    let conflict = &found(text)[0];
    let ways = std::iter::once(Keep::Both).chain((1..=conflict.passages.len()).map(Keep::Passage));
    assert_eq!(settle(text, conflict, Keep::Passage(conflict.passages.len() + 1)), None);
    assert_eq!(settle(text, conflict, Keep::Passage(0)), None);
    ways.map(|keep| settle(text, conflict, keep).expect("a passage")).collect()
}

#[test]
fn passages_one_below_the_other() {
    let text = "Top.\n12 s\n> [also, from desktop:]\n15 s\nWhite.\n";
    assert_eq!(shown(text), ["12 s | desktop: 15 s"]);
    assert_eq!(found(text)[0].passages[1].lines, Some(Lines { first: 4, last: 4 }));
    assert_eq!(settled(text), ["Top.\n12 s\n15 s\nWhite.\n", "Top.\n12 s\nWhite.\n", "Top.\n15 s\nWhite.\n"]);
    let text = "a\n\nb\n\n> [also, from desktop, 1 line for the 2 above:]\nc\n\nd";
    assert_eq!(shown(text), ["a//b | desktop: c"]);
    assert_eq!(settled(text), ["a\n\nb\n\nc\n\nd", "a\n\nb\n\nd", "c\n\nd"]);
    let text = "a\r\n> [also, from desktop, 2 lines for the 1 above:]\r\nb\r\nc";
    assert_eq!(settled(text), ["a\r\nb\r\nc", "a", "b\r\nc"]);
}

#[test]
fn frontmatter_comments_are_notes_if_we_cannot_read_it() {
    let text = "---\nname: *a\n# [also, from desktop, 2 lines for the 9 above:]\nname: *b\n---\n# [also, from desktop:]\n";
    assert_eq!(shown(text), ["name: *a | desktop: name: *b"], "a heading is none");
    assert_eq!(settled(text)[2], "---\nname: *b\n---\n# [also, from desktop:]\n");
}

#[test]
fn items_keep_their_sublists() {
    let text = "- [L](l.md) — 10\n  > [also, from desktop:]\n  - [L](l.md) — 15\n- x\n";
    assert_eq!(shown(text), ["- [L](l.md) — 10 | desktop: - [L](l.md) — 15"]);
    assert_eq!(
        settled(text),
        ["- [L](l.md) — 10\n  - [L](l.md) — 15\n- x\n", "- [L](l.md) — 10\n- x\n", "- [L](l.md) — 15\n- x\n"]
    );
}

#[test]
fn item_wording_keeps_the_item_state() {
    let text = "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  > [also, from tablet, in other words:]\n  - [c-1] Paint it\n  > [also, from laptop, in other words:]\n  - [c-1] Paint red\n  More.\n";
    assert_eq!(
        shown(text),
        [
            "- [x] 2026-10-02: [c-1] Paint door ✓ | tablet: - [x] 2026-10-02: [c-1] Paint it ✓ | laptop: - [x] 2026-10-02: [c-1] Paint red ✓"
        ]
    );
    let [both, one, _, three] = &settled(text)[..] else { panic!("four ways") };
    assert_eq!(
        both,
        "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  - [c-1] Paint it\n  - [c-1] Paint red\n  More.\n"
    );
    assert_eq!(one, "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  More.\n");
    assert_eq!(three, "## Delivered\n- [x] 2026-10-02: [c-1] Paint red ✓\n  More.\n");
}

#[test]
fn fields_are_set_in_place() {
    let body = "\n> [also, from laptop, as a field:]\n> status: \"old\"\n\nText.\n";
    for (fields, now, set) in [
        ("---\nname: a\nstatus: new\n---\n", "status: new", "---\nname: a\nstatus: \"old\"\n---\n"),
        (
            "---\nmetadata:\n  status: new\n  x: 1\n---\n",
            "status: new",
            "---\nmetadata:\n  status: \"old\"\n  x: 1\n---\n",
        ),
        (
            "---\nstatus:\n  - a\n  - b\nx: 1\n---\n",
            "status:/  - a/  - b",
            "---\nstatus: \"old\"\nx: 1\n---\n",
        ),
        ("---\nname: a\n---\n", "", "---\nname: a\nstatus: \"old\"\n---\n"),
        ("", "", "---\nstatus: \"old\"\n---\n"),
    ] {
        let text = format!("{fields}{body}");
        assert_eq!(shown(&text), [format!("{now} | laptop: status: \"old\"")]);
        let [both, one, two] = &settled(&text)[..] else { panic!("three ways") };
        assert_eq!(both, &format!("{fields}\n> status: \"old\"\n\nText.\n"));
        assert_eq!(one, &format!("{fields}\nText.\n"));
        assert_eq!(two, &format!("{set}\nText.\n"));
    }
    let text = "---\ntags: a\n---\n> [also, from laptop, 3 lines as a field:]\n> tags:\n>   - a\n>   - b\n> Said somebody.";
    assert_eq!(settled(text)[2], "---\ntags:\n  - a\n  - b\n---\n> Said somebody.");
}

#[test]
fn three_devices_make_a_pile() {
    let text = "12\n> [also, from desktop:]\n15\n> [also, from tablet, 1 line for the 3 above:]\n20\nrest\n";
    assert_eq!(shown(text), ["12 | desktop: 15 | tablet: 20"]);
    assert_eq!(settled(text), ["12\n15\n20\nrest\n", "12\nrest\n", "15\nrest\n", "20\nrest\n"]);
    let text = "- c\n  > [also, from tablet, 3 lines for the 1 above:]\n  - a\n    > [also, from desktop:]\n    - b\n      more\n";
    assert_eq!(shown(text), ["- c | tablet: - a | desktop: - b"]);
    assert_eq!(settled(text)[3], "- b\n      more\n");
}

#[test]
fn conflict_within_a_passage_is_settled_alone() {
    let text = "a\nb\n> [also, from desktop:]\nB\nc\n> [also, from tablet, 1 line for the 5 above:]\nd\n";
    assert_eq!(shown(text), ["b | desktop: B", "a/b/> [also, from desktop:]/B/c | tablet: d"]);
    let settled = settled(text);
    assert_eq!(settled[1], "a\nb\nc\n> [also, from tablet, 1 line for the 3 above:]\nd\n");
    assert_eq!(shown(&settled[1]), ["a/b/c | tablet: d"]);
    assert_eq!(shown(&settled[0]), ["a/b/B/c | tablet: d"]);
}

#[test]
fn lookalike_notes_do_no_harm() {
    for text in [
        "",
        "> [also, from desktop]\n",
        "He said:\n> also, from desktop:\nyes\n",
        "# [also, from desktop:]\n",
        "x > [also, from desktop:]\n",
    ] {
        assert_eq!(shown(text), [""; 0], "{text}");
    }
    // The lines above or below the note are missing, or fewer than it says.
    for (text, one, two) in [
        ("> [also, from the archive:]\n", "", ""),
        ("> [also, from the archive:]\nIt burned.\n", "", "It burned.\n"),
        (
            "---\nname: a\n---\n> [also, from the archive:]\nIt burned.\n",
            "---\nname: a\n---\n",
            "---\nname: a\n---\nIt burned.\n",
        ),
        ("a\n> [also, from the archive, 7 lines for the 9 above:]\nb\n", "a\n", "b\n"),
        (
            "a\n> [also, from the archive, 18446744073709551615 lines for the 18446744073709551615 above:]\n",
            "a\n",
            "",
        ),
        ("> [also, from the archive, in other words:]\n", "", ""),
        ("> [also, from the archive, 2 lines as a field:]\n\n> no", "> no", "> no"),
    ] {
        assert_eq!(settled(text)[1..], [one, two], "{text}");
    }
}

#[test]
fn ids_depend_on_the_passages() {
    let one = "12\n> [also, from desktop:]\n15\n";
    let ids = |text: &str| found(text).into_iter().map(|conflict| conflict.id).collect::<Vec<_>>();
    let id = ids(one);
    assert_eq!(id[0].len(), ID_LETTERS);
    assert!(id[0].bytes().all(|byte| LETTERS.contains(&byte)), "{id:?}");
    assert_eq!(ids(&format!("Above.\n\n{one}Below.\n")), id);
    assert_ne!(ids(&one.replace("15", "16")), id);
    let twice = ids(&format!("{one}and\n{one}"));
    assert_eq!(twice[0], id[0]);
    assert_ne!(twice[1], id[0]);
    assert_ne!(find(&Locator::parse("lens.md").expect("a locator"), one)[0].id, id[0]);
}

#[test]
fn copies_are_known_by_name_and_content() {
    let locator = |name: &str| Locator::parse(name).expect("a locator");
    let original = locator("a/sketch.png");
    let copy = conflict_name(&original, b"\0new").expect("a name");
    assert_eq!(original_name(&copy), Some(original.clone()));
    for no in [
        "sketch.png",
        "a.conflict-1234567.png",
        "a.conflict-1234567g.png",
        "conflict-12345678",
        "a.conflict-12345678x",
    ] {
        assert_eq!(original_name(&locator(no)), None, "{no}");
    }
    let conflict = of_copy(&copy, b"\0new", &original, Some(b"\0older")).expect("a conflict");
    assert_eq!(conflict.copy, Some(Copy { locator: copy.clone(), size_bytes: 4, original_bytes: Some(6) }));
    assert_eq!(of_copy(&copy, b"\0changed", &original, None), None);
    let gone = of_copy(&copy, b"\0new", &original, None).expect("a conflict");
    assert_ne!(gone.id, conflict.id);
    assert_eq!(settle("", &gone, Keep::Both), None);
    let json = locator("x.json");
    let [ours, theirs] =
        ["{\n  \"a\": 1,\n  \"b\": 1\n}\n", "{\n  \"a\": 2,\n  \"b\": 1\n}\n"].map(str::as_bytes);
    let copy = conflict_name(&json, theirs).expect("a name");
    let conflict = of_copy(&copy, theirs, &json, Some(ours)).expect("a conflict");
    assert_eq!(
        conflict.passages.iter().map(|passage| passage.text.trim()).collect::<Vec<_>>(),
        ["\"a\": 1,", "\"a\": 2,"]
    );
}
