//! Tests of recall, over real directories and over memory.

mod damage;
#[cfg(feature = "semantic")]
mod meaning;
mod scope;
mod scores;

use std::collections::BTreeSet;
use std::path::Path;

use haversack::kind::Kinds;
use haversack::store::{
    Backend, Bytes, Condition, DerivedMaintenance, DeviceLocal, InMemory, Locator, Tier, block_on,
};
use haversack_recall::{
    FoundBy, IndexedMemory, KnownFacts, MemorySearch, Place, Projects, Query, Recalled, Unit, duplicates,
};
use jiff::civil::{Date, date};

const TODAY: Date = date(2026, 11, 18);

fn at(name: &str) -> Locator {
    Locator::parse(name).expect("valid")
}

fn write(files: &dyn Backend, name: &str, bytes: &[u8]) {
    let _ = block_on(files.write(&at(name), Bytes::copy_from_slice(bytes), Condition::Any)).expect("written");
}

fn query(text: &str) -> Query {
    Query::new(text, TODAY)
}

fn ask(search: &MemorySearch, files: &dyn Backend, query: &Query) -> Recalled {
    block_on(search.recall(files, Kinds::built_in(), query)).expect("looked")
}

/// Asks once, with an index in memory.
fn once(files: &dyn Backend, query: &Query) -> Recalled {
    ask(&MemorySearch::new(Place::Memory), files, query)
}

fn names(recalled: &Recalled) -> Vec<&str> {
    recalled.hits.iter().map(|hit| hit.locator.as_str()).collect()
}

/// A memory on the disk, with a place for its index.
struct OnDisk {
    directory: tempfile::TempDir,
    files: DeviceLocal,
}

impl OnDisk {
    fn new() -> OnDisk {
        let directory = tempfile::tempdir().expect("made");
        std::fs::create_dir(directory.path().join("index")).expect("made");
        let files = DeviceLocal::open(directory.path().join("memory"), directory.path().join("locks"));
        OnDisk { files: files.expect("opened"), directory }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn index(&self) -> std::path::PathBuf {
        self.path("index/default.sqlite")
    }

    /// Returns a search as a new process has it.
    fn search(&self) -> MemorySearch {
        MemorySearch::new(Place::File(self.index()))
    }

    fn found(&self, text: &str) -> Vec<String> {
        names(&ask(&self.search(), &self.files, &query(text))).into_iter().map(str::to_owned).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::copy(from, to).expect("copied");
}

#[test]
fn changes_are_seen_by_the_next_recall() {
    let memory = OnDisk::new();
    let kept = memory.search();
    let found = |text: &str| {
        // A process that stays and one that begins find the same.
        let of_kept: Vec<String> =
            names(&ask(&kept, &memory.files, &query(text))).into_iter().map(str::to_owned).collect();
        assert_eq!(of_kept, memory.found(text));
        of_kept
    };
    assert!(found("lamp").is_empty());
    write(&memory.files, "a.md", b"the lamp\n");
    assert_eq!(found("lamp"), ["a.md"]);
    // In place, of the same size, by a program that knows nothing of us.
    std::fs::write(memory.path("memory/a.md"), "the lens\n").expect("written");
    assert!(found("lamp").is_empty());
    assert_eq!(found("lens"), ["a.md"]);
    std::fs::rename(memory.path("memory/a.md"), memory.path("memory/b.md")).expect("renamed");
    assert_eq!(found("lens"), ["b.md"]);
    std::fs::remove_file(memory.path("memory/b.md")).expect("removed");
    assert!(found("lens").is_empty());
}

#[test]
fn records_of_the_graph_are_not_found() {
    let memory = InMemory::new();
    write(&memory, "_content/nodes/mem_1.md", b"# Keeper\n\n- climbs at dawn\n");
    write(
        &memory,
        "_system/registry.json",
        b"{\"nodes\": {\"mem_1\": {\"properties\": {\"name\": \"keeper\"}}}}",
    );
    assert_eq!(names(&once(&memory, &query("keeper"))), ["_content/nodes/mem_1.md"]);
}

#[test]
fn index_after_many_changes_answers_like_a_new_one() {
    let memory = OnDisk::new();
    let words = ["lamp", "lens", "keeper", "oil", "storm", "tide"];
    for round in 0..60usize {
        for file in [round % 7, round % 11] {
            let text: String = (0..=round % 5)
                .map(|line| format!("{} {round}\n\n", words[(round + file + line) % 6]))
                .collect();
            write(&memory.files, &format!("{file}.md"), text.as_bytes());
        }
        if round % 9 == 0 {
            drop(block_on(memory.files.delete(&at(&format!("{}.md", round % 7)), Condition::Any)));
        }
        drop(memory.found("lamp"));
    }
    for word in words {
        let query = Query { limit: 50, unit: Unit::Passage, ..query(word) };
        let kept = ask(&memory.search(), &memory.files, &query);
        assert!(!kept.hits.is_empty());
        assert_eq!(kept, once(&memory.files, &query), "{word}");
    }
}

#[test]
fn hit_says_where_and_of_what_kind() {
    let files = InMemory::new();
    write(
        &files,
        "claude_memory/lighthouse/project_lamp.md",
        b"---\nname: lamp\ntype: project\n---\n\nOne.\nThe lamp turns.\n",
    );
    write(&files, "notes/other.md", b"Nothing of it.\n");
    write(&files, "image.png", b"\x89PNG lamp \xff\x00");
    let recalled = once(&files, &query("lamp turns"));
    assert_eq!(names(&recalled), ["claude_memory/lighthouse/project_lamp.md"]);
    let hit = &recalled.hits[0];
    assert_eq!((hit.lines, hit.passage.as_str(), hit.kind.as_str()), ((7, 7), "The lamp turns.", "project"));
    assert_eq!((hit.matches.as_slice(), &hit.found_by), (&[4..8, 9..14][..], &FoundBy::AllWords));
    assert_eq!((recalled.looked_through, recalled.unread.len()), (2, 0));
    let recalled = once(&files, &Query { within: at("notes"), ..query("lamp") });
    assert_eq!((names(&recalled).len(), recalled.looked_through), (0, 1));
    let recalled = once(&files, &Query { unit: Unit::Passage, ..query("lamp turns") });
    assert_eq!(recalled.hits[0].lines, (6, 7));
}

#[test]
fn hit_says_which_words_it_lacks() {
    let files = InMemory::new();
    write(&files, "deploy.md", b"We deploy to staging on Monday.\n");
    let found_by = |text: &str| once(&files, &query(text)).hits.into_iter().next().map(|hit| hit.found_by);
    assert_eq!(found_by("when do we deploy on Monday?"), Some(FoundBy::AllWords));
    assert_eq!(found_by("deployments on mondays"), Some(FoundBy::OtherForms));
    assert_eq!(found_by("release on Monday"), Some(FoundBy::OtherForms), "an equivalent");
    assert_eq!(
        found_by("deploy on Monday with a submarine"),
        Some(FoundBy::FewerWords(vec!["submarine".to_owned()]))
    );
    assert_eq!(found_by("submarine periscope"), None);
}

#[test]
fn other_words_for_the_same_are_found() {
    let files = InMemory::new();
    write(&files, "user_style.md", b"---\nname: style\n---\n\nPrefers tabs.\n");
    write(&files, "other.md", b"The keeper sleeps by day.\n");
    assert_eq!(names(&once(&files, &query("indentation preference"))), ["user_style.md"]);
}

#[test]
fn other_scripts_and_spellings_are_found() {
    let files = InMemory::new();
    write(&files, "kanji.md", "今日は灯台の話をした。\n".as_bytes());
    write(&files, "umlaut.md", "Der Leuchtturmwärter heißt Äpfel gut.\n".as_bytes());
    write(&files, "russian.md", "Маяк стоит на скале.\n".as_bytes());
    write(&files, "emoji.md", "The lamp is 🔥 and 灯 too.\n".as_bytes());
    for (text, name) in [
        ("灯台", "kanji.md"),
        ("apfel", "umlaut.md"),
        ("LEUCHTTURMWÄRTER", "umlaut.md"),
        ("маяк", "russian.md"),
        ("lamp 🔥", "emoji.md"),
    ] {
        assert_eq!(names(&once(&files, &query(text))).first(), Some(&name), "{text}");
    }
}

#[test]
fn dates_are_found_and_filter() {
    let files = InMemory::new();
    write(&files, "session_digest_2026-11-10.md", b"We chose the lens.\n");
    write(&files, "session_digest_2026-03-05.md", b"We chose the lens.\n");
    write(&files, "undated.md", b"We chose the lens.\n");
    let first = |text: &str| once(&files, &query(text)).hits[0].locator.to_string();
    assert_eq!(first("which lens did we choose last week"), "session_digest_2026-11-10.md");
    assert_eq!(first("which lens did we choose in March"), "session_digest_2026-03-05.md");
    let since = Query { since: Some(date(2026, 11, 1)), ..query("lens") };
    assert_eq!(names(&once(&files, &since)), ["session_digest_2026-11-10.md"]);
    let until = Query { until: Some(date(2026, 3, 5)), ..query("lens") };
    assert_eq!(names(&once(&files, &until)), ["session_digest_2026-03-05.md"]);
}

#[test]
fn outdated_memories_come_last() {
    let files = InMemory::new();
    write(
        &files,
        "a.md",
        b"---\nname: lens\nstatus: deprecated\n---\n\nThe lens is from Paris. Lens, lens.\n",
    );
    write(&files, "b.md", b"The lens is from here, and this text is longer than the other.\n");
    let recalled = once(&files, &query("lens"));
    assert_eq!(names(&recalled), ["b.md", "a.md"]);
    assert_eq!(recalled.hits[1].outdated.as_deref(), Some("deprecated"));
}

#[test]
fn memory_past_its_day_comes_last_from_the_next_day() {
    let files = InMemory::new();
    write(
        &files,
        "a.md",
        b"---\nname: lens\nstale_after: 2026-11-18\n---\n\nThe lens is from Paris. Lens, lens.\n",
    );
    write(&files, "b.md", b"The lens is from here, and this text is longer than the other.\n");
    let search = MemorySearch::new(Place::Memory);
    let on = |day: Date| {
        let asked = Query { today: day, ..query("lens") };
        block_on(search.recall(&files, Kinds::built_in(), &asked)).expect("recalled")
    };
    let before = on(date(2026, 11, 18));
    assert_eq!((names(&before), before.hits[0].outdated.clone()), (vec!["a.md", "b.md"], None));
    let after = on(date(2026, 11, 19));
    assert_eq!(names(&after), ["b.md", "a.md"]);
    assert_eq!(after.hits[1].outdated.as_deref(), Some("stale after 2026-11-18"));
}

#[test]
fn equally_good_hits_are_in_the_order_of_their_names() {
    let files = InMemory::new();
    let mut expected = Vec::new();
    for number in [5, 3, 9, 1, 7, 2, 8, 4, 6] {
        write(&files, &format!("{number}.md"), b"the lamp\n");
    }
    for number in 1..=5 {
        expected.push(format!("{number}.md"));
    }
    assert_eq!(names(&once(&files, &Query { limit: 5, ..query("lamp") })), expected);
}

#[test]
fn odd_queries_have_answers() {
    let files = InMemory::new();
    write(&files, "lamp.md", b"The lamp AND the lens NOT.\n");
    for text in [
        "",
        " ",
        "?!",
        "\u{0}",
        "🔥",
        "\" OR 1=1 --",
        "lamp*",
        "NEAR(lamp lens, 2)",
        "^lamp",
        "(((",
        "who are you",
        "\u{202e}lamp\u{202c}",
    ] {
        let recalled = once(&files, &query(text));
        assert_eq!(recalled.hits.is_empty(), !text.contains("lamp"), "{text:?}");
    }
    // One word of two is nearly an answer.
    let recalled = once(&files, &query("submarine lens"));
    assert_eq!((recalled.hits.len(), recalled.nearly.len()), (0, 1));
    // A memory that is about the word is an answer.
    assert_eq!(once(&files, &query("submarine lamp")).hits.len(), 1);
    let long = "lamp ".repeat(20_000);
    assert_eq!(names(&once(&files, &query(&long))), ["lamp.md"]);
    assert!(once(&files, &Query { limit: 0, ..query("lamp") }).hits.is_empty());
}

#[test]
fn same_fact_with_other_spaces_is_found() {
    let files = InMemory::new();
    write(&files, "behavioral/feedback_short.md", b"---\nname: short\n---\n\nAnswer in five lines.\n");
    let mut facts = KnownFacts::new();
    let mut same =
        |within: &str, text: &str| block_on(facts.same(&files, &at(within), text)).expect("looked");
    assert_eq!(same("behavioral", "answer in\nFIVE lines."), Some(at("behavioral/feedback_short.md")));
    assert_eq!(same("behavioral", "answer in six lines."), None);
    assert_eq!(same("elsewhere", "answer in five lines."), None);
}

#[test]
fn near_duplicates_are_found() {
    let files = InMemory::new();
    let fact =
        "The lamp of the lighthouse turns once every twelve seconds and is oiled on Mondays by the keeper.";
    write(&files, "a.md", format!("# Lamp\n\n{fact}\n").as_bytes());
    write(
        &files,
        "b.md",
        format!(
            "Something else stands here before it, and says nothing about any of that.\n\n{}\n",
            fact.replace("oiled", "cleaned")
        )
        .as_bytes(),
    );
    write(&files, "c.md", b"The lamp turns.\n");
    write(&files, "claude_memory/tower/d.md", fact.as_bytes());
    let found = |projects: &Projects| {
        let found = block_on(duplicates(&files, &Locator::root(), projects)).expect("looked");
        found
            .iter()
            .map(|pair| {
                format!(
                    "{}:{} {}:{}",
                    pair.one.locator, pair.one.lines.0, pair.other.locator, pair.other.lines.0
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&Projects::Only(BTreeSet::new())), ["a.md:3 b.md:3"]);
    assert_eq!(
        found(&Projects::all()),
        ["a.md:3 b.md:3", "a.md:3 claude_memory/tower/d.md:1", "b.md:3 claude_memory/tower/d.md:1"]
    );
}

#[test]
fn derived_tier_is_rebuilt_and_knows_changed_kinds() {
    let memory = OnDisk::new();
    write(&memory.files, "recipes/soup.md", b"Soup with oil.\n");
    let search = memory.search();
    let kind = |kinds: &Kinds| {
        let recalled = block_on(search.recall(&memory.files, kinds, &query("soup"))).expect("looked");
        recalled.hits[0].kind.clone()
    };
    assert_eq!(kind(Kinds::built_in()), "text");
    let text = "[kind.recipe]\nabout = \"how to cook\"\nnames = [\"recipes/*.md\"]\nrule = \"prose\"\n";
    let kinds = Kinds::built_in().with(text).expect("valid");
    assert_eq!(kind(&kinds), "recipe");
    let tier = IndexedMemory { search: &search, files: &memory.files, kinds: &kinds };
    block_on(tier.reindex(Tier::LocalIndex)).expect("rebuilt");
    assert!(block_on(tier.reindex(Tier::Source)).is_err());
    assert_eq!(kind(&kinds), "recipe");
}
