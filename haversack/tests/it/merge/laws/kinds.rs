//! The laws again, for every kind, on files as agents and programs write them.
//!
//! Each thing that a file says has a word of its own, so that afterwards it can be told what became of it: what a side added is
//! there, what a side took away and the other left alone is not, and an untouched thing is there once.

mod conflicts;

use std::collections::{BTreeMap, BTreeSet};

use haversack::conflict::{Keep, find, of_copy, settle};
use haversack::document::Document;
use haversack::merge::{Merged, Rule, conflict_name};
use haversack::store::Locator;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use self::conflicts::settled;
use super::super::both;
use super::config;

/// A file on two devices, and the words that must and must not be in what they come to.
#[derive(Clone, Debug)]
struct Meeting {
    name: &'static str,
    rule: Rule,
    base: Option<String>,
    laptop: String,
    desktop: String,
    there: BTreeSet<String>,
    gone: BTreeSet<String>,
}

/// Checks everything that holds for every kind.
fn check(meeting: &Meeting) -> TestCaseResult {
    let Meeting { name, rule, base, laptop, desktop, there, gone } = meeting;
    let locator = Locator::parse(name).expect("a locator");
    let base = base.as_deref().map(str::as_bytes);
    let [laptop, desktop] = [laptop.as_bytes(), desktop.as_bytes()];
    prop_assert_eq!(Rule::of(&locator, base.into_iter().chain([laptop, desktop])), *rule);
    let merged = both(*rule, base, laptop, desktop);
    let text = std::str::from_utf8(&merged.bytes).expect("text stays text");
    let copy =
        merged.copy.as_ref().map(|copy| String::from_utf8_lossy(copy).into_owned()).unwrap_or_default();

    for side in [laptop, desktop] {
        let again = both(*rule, base, &merged.bytes, side);
        prop_assert_eq!(
            std::str::from_utf8(&again.bytes).expect("text"),
            text,
            "merged again with {}",
            String::from_utf8_lossy(side)
        );
        prop_assert_eq!(&both(*rule, Some(side), &merged.bytes, side).bytes, &merged.bytes);
    }
    for marker in ["<<<<<<<", "=======", ">>>>>>>"] {
        prop_assert!(!text.lines().any(|line| line.starts_with(marker)), "{}", text);
    }
    let found = words(text);
    for word in there {
        let is_kept = found.contains_key(word.as_str()) || words(&copy).contains_key(word.as_str());
        prop_assert!(is_kept, "{} is lost in\n{}", word, text);
    }
    for word in gone {
        prop_assert!(!found.contains_key(word.as_str()), "{} came back in\n{}", word, text);
    }
    prop_assert!(parses(name, text), "does not parse:\n{}", text);
    check_conflicts(&locator, &merged, there)
}

/// Checks that what is there twice is found, and can be settled in every way without touching anything else.
fn check_conflicts(locator: &Locator, merged: &Merged, there: &BTreeSet<String>) -> TestCaseResult {
    let text = std::str::from_utf8(&merged.bytes).expect("text");
    let conflicts = find(locator, text);
    prop_assert_eq!(!conflicts.is_empty(), merged.both_kept && merged.copy.is_none(), "{}", text);
    if let Some(copy) = &merged.copy {
        let name = conflict_name(locator, copy).expect("a name");
        prop_assert!(of_copy(&name, copy, locator, Some(&merged.bytes)).is_some());
    }
    let ways = [Keep::Both, Keep::Passage(1), Keep::Passage(2)];
    for keep in ways.into_iter().filter(|_| !conflicts.is_empty()) {
        for conflict in &conflicts {
            let next = settle(text, conflict, keep).expect("at least two passages");
            let is_gone = find(locator, &next).iter().all(|other| other.id != conflict.id);
            prop_assert!(is_gone, "{:?} in\n{}\nbecame\n{}", keep, text, next);
        }
        let settled = settled(locator, text, keep)?;
        let found = words(&settled);
        let is_lost = |word: &&String| !found.contains_key(word.as_str());
        if keep == Keep::Both {
            prop_assert_eq!(there.iter().find(is_lost), None, "{}", settled);
        }
        prop_assert!(parses(locator.as_str(), &settled), "does not parse:\n{}", settled);
    }
    Ok(())
}

/// Returns how often each word is there that the generators made.
fn words(text: &str) -> BTreeMap<&str, usize> {
    let mut words = BTreeMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.starts_with('w')) {
        *words.entry(word).or_default() += 1;
    }
    words
}

fn parses(name: &str, text: &str) -> bool {
    if name.ends_with(".json") {
        return serde_json::from_str::<Value>(text).is_ok();
    }
    if name.ends_with(".yaml") {
        return serde_saphyr::from_str::<Value>(text).is_ok();
    }
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return true };
    let Some((fields, _)) = rest.split_once("\n---") else { return false };
    Document::read(text).frontmatter.is_some()
        && serde_saphyr::from_str::<BTreeMap<String, Value>>(fields).is_ok()
}

/// A side's change of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Removed,
    Reworded,
    Moved,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Kept),
        2 => Just(Fate::Removed),
        2 => Just(Fate::Reworded),
        2 => Just(Fate::Moved),
    ]
}

/// A side's changes of a list in two sections.
#[derive(Clone, Debug)]
struct Edits {
    fates: Vec<Fate>,
    /// New items: section, position, and whether the other side may have made the same.
    added: Vec<(usize, usize, Option<usize>)>,
    is_reversed: bool,
    style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    crlf: bool,
    below_heading: bool,
    ended: bool,
}

fn style() -> impl Strategy<Value = Style> {
    (prop::bool::weighted(0.1), prop::bool::weighted(0.2), prop::bool::weighted(0.9))
        .prop_map(|(crlf, below_heading, ended)| Style { crlf, below_heading, ended })
}

fn edits(items: usize) -> impl Strategy<Value = Edits> {
    let added = (0_usize..2, 0_usize..4, prop_oneof![2 => Just(None), 1 => (0_usize..2).prop_map(Some)]);
    (vec(fate(), items), vec(added, 0..4), prop::bool::weighted(0.05), style())
        .prop_map(|(fates, added, is_reversed, style)| Edits { fates, added, is_reversed, style })
}

/// An item: what it is known by, and its word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    key: String,
    word: String,
}

type Sections = [Vec<Item>; 2];

fn base_sections(items: usize) -> Sections {
    let mut sections = Sections::default();
    for number in 0..items {
        sections[number % 2].push(Item { key: format!("b{number}"), word: format!("wb{number}") });
    }
    sections
}

impl Edits {
    fn apply(&self, items: usize, device: &str) -> Sections {
        let mut sections = Sections::default();
        for number in 0..items {
            let mut item = Item { key: format!("b{number}"), word: format!("wb{number}") };
            let section = match self.fates[number] {
                Fate::Removed => continue,
                Fate::Kept => number % 2,
                Fate::Moved => 1 - number % 2,
                Fate::Reworded => {
                    item.word = format!("w{device}b{number}");
                    number % 2
                }
            };
            sections[section].push(item);
        }
        let mut shared = BTreeSet::new();
        for (number, (section, position, same)) in self.added.iter().enumerate() {
            let item = match same {
                Some(same) if shared.insert(*same) => {
                    Item { key: format!("s{same}"), word: format!("ws{same}") }
                }
                _ => Item { key: format!("{device}{number}"), word: format!("w{device}{number}") },
            };
            let list = &mut sections[*section];
            list.insert((*position).min(list.len()), item);
        }
        if self.is_reversed {
            sections[0].reverse();
        }
        sections
    }

    /// Adds what must be there because of this side, and what must not.
    fn tell(&self, other: &Edits, device: &str, there: &mut BTreeSet<String>, gone: &mut BTreeSet<String>) {
        for (number, (own, other)) in self.fates.iter().zip(&other.fates).enumerate() {
            match (own, other) {
                (Fate::Removed, Fate::Kept | Fate::Removed) | (Fate::Reworded, Fate::Kept | Fate::Moved) => {
                    gone.insert(format!("wb{number}"));
                }
                (Fate::Kept | Fate::Moved, Fate::Kept | Fate::Moved) => {
                    there.insert(format!("wb{number}"));
                }
                _ => {}
            }
            if *own == Fate::Reworded {
                there.insert(format!("w{device}b{number}"));
            }
        }
        for section in self.apply(self.fates.len(), device) {
            there.extend(section.into_iter().map(|item| item.word).filter(|word| !word.starts_with("wb")));
        }
    }
}

/// How a kind writes a list.
#[derive(Clone, Copy)]
struct List {
    name: &'static str,
    rule: Rule,
    above: &'static str,
    headings: [&'static str; 2],
    item: fn(&Item, usize) -> String,
    /// True if the words of an item are its identity, so that a reworded item is another one.
    is_known_by_words: bool,
}

impl List {
    fn write(&self, sections: &Sections, style: Style) -> String {
        let mut text = self.above.to_owned();
        for (number, (heading, items)) in self.headings.iter().zip(sections).enumerate() {
            if number > 0 {
                text.push('\n');
            }
            text.push_str(&format!("{}\n", heading.replace('%', &items.len().to_string())));
            if style.below_heading {
                text.push('\n');
            }
            for item in items {
                text.push_str(&format!("{}\n", (self.item)(item, number)));
            }
        }
        styled(text, style)
    }

    fn meeting(self) -> impl Strategy<Value = Meeting> {
        (0_usize..6).prop_flat_map(move |items| {
            (edits(items), edits(items), style(), prop::bool::weighted(0.9)).prop_map(
                move |(laptop, desktop, style, has_base)| {
                    let base = has_base.then(|| self.write(&base_sections(items), style));
                    let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
                    laptop.tell(&desktop, "l", &mut there, &mut gone);
                    desktop.tell(&laptop, "d", &mut there, &mut gone);
                    if !has_base {
                        gone.clear();
                    }
                    if self.is_known_by_words {
                        // One that moved on one device and was reworded on the other is there twice.
                        for (number, fates) in laptop.fates.iter().zip(&desktop.fates).enumerate() {
                            if matches!(fates, (Fate::Moved, Fate::Reworded) | (Fate::Reworded, Fate::Moved))
                            {
                                gone.remove(&format!("wb{number}"));
                            }
                        }
                    }
                    let [laptop_text, desktop_text] = [(&laptop, "l"), (&desktop, "d")]
                        .map(|(edits, device)| self.write(&edits.apply(items, device), edits.style));
                    Meeting {
                        name: self.name,
                        rule: self.rule,
                        base,
                        laptop: laptop_text,
                        desktop: desktop_text,
                        there,
                        gone,
                    }
                },
            )
        })
    }
}

fn styled(mut text: String, style: Style) -> String {
    if !style.ended {
        text.truncate(text.trim_end_matches('\n').len());
    }
    if style.crlf { text.replace('\n', "\r\n") } else { text }
}

const INDEX: List = List {
    name: "MEMORY.md",
    rule: Rule::Index,
    above: "# Memory\n\n",
    headings: ["## User", "## Lighthouse"],
    item: |item, _| format!("- [Note {}]({}.md) — {}", item.key, item.key, item.word),
    is_known_by_words: false,
};

const CALLBACKS: List = List {
    name: "callbacks.md",
    rule: Rule::Callbacks,
    above: "---\nname: Callbacks\ndescription: what we both know\ntype: callbacks\n---\n\n",
    headings: ["## Active", "## Retired"],
    item: |item, _| format!("- **Gull {}** (2026-10-02): {}", item.key, item.word),
    is_known_by_words: false,
};

const CARRY_FORWARD: List = List {
    name: "carry_forward.md",
    rule: Rule::CarryForward,
    above: "---\nname: Carry-forward\ndescription: what to bring up\ntype: carry_forward\n---\n\n",
    headings: ["## Pending", "## Consumed"],
    item: |item, section| {
        format!("- Ask about {}{}", item.word, if section == 1 { " (2026-10-02)" } else { "" })
    },
    is_known_by_words: true,
};

const COMMITMENTS: List = List {
    name: "running_commitments.md",
    rule: Rule::Commitments,
    above: "---\nname: Commitments\ndescription: what I promised\ntype: commitments\n---\n\n",
    headings: ["## Open", "## Delivered"],
    item: |item, section| {
        format!("- [c-{}1] Paint {}{}", item.key, item.word, if section == 1 { " ✓" } else { "" })
    },
    is_known_by_words: false,
};

const SUMMARY: List = List {
    name: "summaries/2026-10-02.md",
    rule: Rule::Summary,
    above: "# 2026-10-02\n\n",
    headings: ["## Needs you (%)", "## Handled (%)"],
    item: |item, _| format!("- Pilots: {}", item.word),
    is_known_by_words: true,
};

/// A side's changes of a text's parts: their fates, and new parts, of which the other side may have the same.
#[derive(Clone, Debug)]
struct Parts {
    fates: Vec<Fate>,
    added: Vec<usize>,
    style: Style,
}

fn parts(count: usize) -> impl Strategy<Value = Parts> {
    (vec(fate(), count), prop::sample::subsequence(vec![0_usize, 1, 2, 3], 0..3), style())
        .prop_map(|(fates, added, style)| Parts { fates, added, style })
}

/// How a kind writes a text under headings.
#[derive(Clone, Copy)]
struct Text {
    name: &'static str,
    rule: Rule,
    above: &'static str,
    order: Order,
    /// True if a heading has another one below it.
    is_nested: bool,
}

/// In which order a text has its days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    NewestFirst,
    NewestLast,
    /// Days that a device added are on top, newest first; the older days below are oldest first.
    NewOnTopOfRising,
}

impl Text {
    fn write(&self, days: &BTreeMap<usize, Vec<String>>, style: Style) -> String {
        let mut text = self.above.to_owned();
        let mut days: Vec<_> = days.iter().collect();
        match self.order {
            Order::NewestLast => {}
            Order::NewestFirst => days.reverse(),
            // Days of the base are odd.
            Order::NewOnTopOfRising => days.sort_by_key(|(day, _)| match *day % 2 {
                0 => (0, 100 - *day),
                _ => (1, **day),
            }),
        }
        for (number, (day, lines)) in days.into_iter().enumerate() {
            text.push_str(if number > 0 { "\n" } else { "" });
            text.push_str(&format!("## 2026-10-{day:02}\n"));
            text.push_str(if self.is_nested { "\n### MISSED\n" } else { "" });
            text.push_str(if style.below_heading { "\n" } else { "" });
            lines.iter().for_each(|line| text.push_str(&format!("- said {line}\n")));
        }
        styled(text, style)
    }

    fn meeting(self) -> impl Strategy<Value = Meeting> {
        (0_usize..5).prop_flat_map(move |count| {
            (parts(count), parts(count), style()).prop_map(move |(laptop, desktop, style)| {
                let of_base =
                    |number: usize| (number * 2 + 1, vec![format!("wb{number}"), "walked".to_owned()]);
                let base: BTreeMap<usize, Vec<String>> = (0..count).map(of_base).collect();
                let side = |parts: &Parts, device: &str| {
                    let mut days = base.clone();
                    for (number, fate) in parts.fates.iter().enumerate() {
                        let day = number * 2 + 1;
                        match fate {
                            Fate::Kept => {}
                            Fate::Removed => drop(days.remove(&day)),
                            Fate::Reworded => days.entry(day).or_default()[0] = format!("w{device}b{number}"),
                            // Continued, where it does not move.
                            Fate::Moved => days.entry(day).or_default().push(format!("w{device}c{number}")),
                        }
                    }
                    for day in &parts.added {
                        days.insert(
                            day * 2 + 2,
                            vec![format!("w{device}{day}"), "walked".to_owned(), format!("ws{day}")],
                        );
                    }
                    days
                };
                let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
                for (number, fates) in laptop.fates.iter().zip(&desktop.fates).enumerate() {
                    let word = format!("wb{number}");
                    match fates {
                        (Fate::Kept | Fate::Moved, Fate::Kept | Fate::Moved) => {
                            there.insert(word);
                        }
                        (Fate::Removed, Fate::Kept | Fate::Removed)
                        | (Fate::Kept, Fate::Removed)
                        | (Fate::Reworded, Fate::Kept | Fate::Moved | Fate::Reworded)
                        | (Fate::Kept | Fate::Moved, Fate::Reworded) => {
                            gone.insert(word);
                        }
                        _ => {}
                    }
                }
                let sides = [side(&laptop, "l"), side(&desktop, "d")];
                let new = sides.iter().flat_map(|days| days.values().flatten());
                there.extend(
                    new.filter(|word| {
                        word.starts_with("wl") || word.starts_with("wd") || word.starts_with("ws")
                    })
                    .cloned(),
                );
                Meeting {
                    name: self.name,
                    rule: self.rule,
                    base: Some(self.write(&base, style)),
                    laptop: self.write(&sides[0], laptop.style),
                    desktop: self.write(&sides[1], desktop.style),
                    there,
                    gone,
                }
            })
        })
    }
}

const LOG: Text = Text {
    name: "self_observations.md",
    rule: Rule::Log,
    above: "---\nname: Self\ndescription: what I noticed\ntype: self_observations\n---\n\n",
    order: Order::NewestFirst,
    is_nested: true,
};

const PREPEND: Text = Text {
    name: "voice_calibration.md",
    rule: Rule::Prepend,
    above: "---\nname: Voice\ndescription: what landed\ntype: voice_calibration\n---\n\n",
    order: Order::NewestFirst,
    is_nested: true,
};

const PREPEND_TO_RISING: Text = Text { order: Order::NewOnTopOfRising, ..PREPEND };

const DRAFTS: Text = Text {
    name: "unsent_drafts.md",
    rule: Rule::Log,
    above: "---\nname: Drafts\ndescription: what I did not send\ntype: unsent_drafts\n---\n\n",
    order: Order::NewestLast,
    is_nested: false,
};

const THREADS: Text = Text {
    name: "philosophical_threads.md",
    rule: Rule::Threads,
    above: "---\nname: Threads\ndescription: what goes on\ntype: philosophical_threads\n---\n\n",
    order: Order::NewestLast,
    is_nested: false,
};

const ROLL_UP: Text = Text {
    name: "compacted/2026-10.md",
    rule: Rule::RollUp,
    above: "# 2026-10\n\n",
    order: Order::NewestLast,
    is_nested: false,
};

/// A digest of one session, or of two that met.
fn digest() -> impl Strategy<Value = Meeting> {
    let side = || (select(&["aaaa", "bbbb"][..]), vec(0_usize..9, 1..4), 0_usize..24);
    (prop::option::of(side()), side(), side()).prop_map(|(base, laptop, desktop)| {
        let write = |(session, arcs, hour): &(&str, Vec<usize>, usize), device: &str| {
            let above = format!(
                "---\nname: session-2026-10-02\ndescription: a day\nmetadata: \n  node_type: memory\n  type: session_digest\n  originSessionId: {session}\n  modified: 2026-10-02T{hour:02}:00:00.000Z\n---\n"
            );
            let arcs: String = arcs.iter().enumerate().map(|(number, arc)| format!("{}. Did w{device}{arc}\n", number + 1)).collect();
            format!("{above}\n## Arcs\n{arcs}\n## Left open\n- nothing\n")
        };
        let there = [(&laptop, "l"), (&desktop, "d")].iter().flat_map(|((_, arcs, _), device)| arcs.iter().map(move |arc| format!("w{device}{arc}"))).collect();
        Meeting {
            name: "session_digest_2026-10-02.md",
            rule: Rule::Digest,
            base: base.as_ref().map(|base| write(base, "b")),
            laptop: write(&laptop, "l"),
            desktop: write(&desktop, "d"),
            there,
            gone: BTreeSet::new(),
        }
    })
}

/// The fields of a fact, and how Claude Code would have left them.
#[derive(Clone, Debug)]
struct Fact {
    description: usize,
    status: Option<usize>,
    tags: Vec<usize>,
    stamp: Option<(usize, usize)>,
    paragraphs: Vec<String>,
    style: Style,
}

impl Fact {
    fn write(&self, device: &str) -> String {
        let tags: Vec<String> = self.tags.iter().map(|tag| format!("t{tag}")).collect();
        let status = |space: &str| {
            self.status.map(|status| format!("{space}status: wst{status}\n")).unwrap_or_default()
        };
        let device = if self.description == 0 { "" } else { device };
        let above =
            format!("---\nname: lamp\ndescription: \"about wde{}{device}: the lamp\"\n", self.description);
        let fields = match self.stamp {
            None => format!("{above}type: project\n{}tags: [{}]\n", status(""), tags.join(", ")),
            Some((session, hour)) => {
                let tags: String = tags.iter().map(|tag| format!("\n    - {tag}")).collect();
                let tags = if tags.is_empty() { " []".to_owned() } else { tags };
                format!(
                    "{above}metadata: \n  node_type: memory\n  type: project\n{}  tags:{tags}\n  originSessionId: s{session}\n  modified: 2026-10-02T{hour:02}:00:00.000Z\n",
                    status("  ")
                )
            }
        };
        styled(format!("{fields}---\n\n{}", self.paragraphs.join("\n\n") + "\n"), self.style)
    }
}

fn fact(device: &'static str) -> impl Strategy<Value = (Fact, Vec<Fate>)> {
    let stamp = prop::option::weighted(0.5, (0_usize..3, 0_usize..24));
    let tags = prop::sample::subsequence(vec![0_usize, 1, 2, 3], 0..4);
    let paragraphs = (vec(fate(), 4), vec(0_usize..3, 0..2));
    (0_usize..3, prop::option::of(0_usize..3), tags, stamp, paragraphs, style()).prop_map(
        move |(description, status, tags, stamp, (fates, new), style)| {
            let paragraph = |(number, fate): (usize, &Fate)| match fate {
                Fate::Kept => vec![format!("Paragraph wb{number} stands.")],
                Fate::Removed => Vec::new(),
                Fate::Reworded => vec![format!("Paragraph w{device}b{number} stands.")],
                Fate::Moved => {
                    vec![format!("Paragraph wb{number} stands."), format!("After it w{device}c{number}.")]
                }
            };
            let mut paragraphs: Vec<String> = fates.iter().enumerate().flat_map(paragraph).collect();
            paragraphs.extend(new.iter().map(|new| format!("New w{device}n{new}.")));
            (Fact { description, status, tags, stamp, paragraphs, style }, fates)
        },
    )
}

fn facts() -> impl Strategy<Value = Meeting> {
    (fact("b"), fact("l"), fact("d")).prop_map(
        |((mut base, _), (laptop, laptop_fates), (desktop, desktop_fates))| {
            base.description = 0;
            base.paragraphs = (0..4).map(|number| format!("Paragraph wb{number} stands.")).collect();
            let mut there: BTreeSet<String> = BTreeSet::new();
            for side in [&laptop, &desktop] {
                let new = side.paragraphs.iter().flat_map(|paragraph| words(paragraph).into_keys());
                there.extend(new.filter(|word| !word.starts_with("wb")).map(str::to_owned));
            }
            if laptop.description != 0 {
                there.insert(format!("wde{}l", laptop.description));
            }
            if desktop.description != 0 {
                there.insert(format!("wde{}d", desktop.description));
            }
            let mut gone = BTreeSet::new();
            for (number, fates) in laptop_fates.iter().zip(&desktop_fates).enumerate() {
                match fates {
                    (Fate::Kept | Fate::Moved, Fate::Kept | Fate::Moved) => {
                        there.insert(format!("wb{number}"));
                    }
                    (Fate::Removed | Fate::Reworded, _) | (_, Fate::Removed | Fate::Reworded) => {
                        gone.insert(format!("wb{number}"));
                    }
                }
            }
            Meeting {
                name: "project_lamp.md",
                rule: Rule::Prose,
                base: Some(base.write("")),
                laptop: laptop.write("l"),
                desktop: desktop.write("d"),
                there,
                gone,
            }
        },
    )
}

/// A registry of nodes, each with properties.
fn registry() -> impl Strategy<Value = Meeting> {
    let side = || (vec(fate(), 4), vec(0_usize..6, 0..3), 0_usize..24);
    (side(), side(), any::<bool>()).prop_map(|(laptop, desktop, is_pretty)| {
        let node = |word: &str, hour: usize| json!({"type": "place", "title": word, "modified": format!("2026-10-02T{hour:02}:00:00Z"), "tags": ["a", word]});
        let write = |(fates, new, hour): &(Vec<Fate>, Vec<usize>, usize), device: &str| {
            let mut nodes = serde_json::Map::new();
            for (number, fate) in fates.iter().enumerate() {
                let word = match fate {
                    Fate::Removed => continue,
                    Fate::Kept => node(&format!("wb{number}"), 0),
                    Fate::Reworded => node(&format!("w{device}b{number}"), *hour),
                    Fate::Moved => {
                        let mut node = node(&format!("wb{number}"), *hour);
                        node["more"] = json!(format!("w{device}m{number}"));
                        node
                    }
                };
                nodes.insert(format!("mem_{number}"), word);
            }
            for new in new {
                nodes.insert(format!("mem_new{new}"), json!({"title": format!("w{device}n{new}")}));
            }
            let value = json!({"nodes": nodes, "connections": {}});
            if is_pretty { format!("{value:#}\n") } else { value.to_string() }
        };
        let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for (number, fates) in laptop.0.iter().zip(&desktop.0).enumerate() {
            let word = format!("wb{number}");
            match fates {
                (Fate::Kept | Fate::Moved, Fate::Kept | Fate::Moved) => {
there.insert(word);
},
                (Fate::Removed, Fate::Kept | Fate::Removed) | (Fate::Kept, Fate::Removed) => {
gone.insert(word);
},
                _ => {}
            }
        }
        for ((fates, new, _), device) in [(&laptop, "l"), (&desktop, "d")] {
            there.extend(new.iter().map(|new| format!("w{device}n{new}")));
            let reworded = fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Reworded);
            there.extend(reworded.map(|(number, _)| format!("w{device}b{number}")));
        }
        let base = write(&(vec![Fate::Kept; 4], Vec::new(), 0), "b");
        Meeting { name: "_system/registry.json", rule: Rule::Json, base: Some(base), laptop: write(&laptop, "l"), desktop: write(&desktop, "d"), there, gone }
    })
}

/// An ontology: types of nodes, and types of connections with their ends.
fn ontology() -> impl Strategy<Value = Meeting> {
    let side = || (vec(fate(), 4), vec(0_usize..6, 0..3), any::<bool>());
    (side(), side()).prop_map(|(laptop, desktop)| {
        let write = |(fates, new, is_indented): &(Vec<Fate>, Vec<usize>, bool), device: &str| {
            let space = if *is_indented { "  " } else { "" };
            let mut text = "# what there is\nnode_types:\n".to_owned();
            let of_base = fates.iter().enumerate().filter(|(_, fate)| **fate != Fate::Removed);
            of_base.clone().for_each(|(number, _)| text.push_str(&format!("{space}- wb{number}\n")));
            text.push_str(&format!("{space}- always\n"));
            new.iter()
                .collect::<BTreeSet<_>>()
                .iter()
                .for_each(|new| text.push_str(&format!("{space}- w{device}n{new}\n")));
            text.push_str("connection_types:\n");
            for (number, fate) in of_base {
                let more =
                    if *fate == Fate::Reworded { format!(", w{device}e{number}") } else { String::new() };
                text.push_str(&format!("{space}- name: c{number}\n{space}  from_types: [always{more}]\n"));
                if *fate == Fate::Moved {
                    text.push_str(&format!("{space}  to_types:\n{space}  - w{device}t{number}\n"));
                }
            }
            text.push_str(&format!("{space}- name: last\n{space}  from_types: []\n"));
            text
        };
        let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for (number, fates) in laptop.0.iter().zip(&desktop.0).enumerate() {
            let word = format!("wb{number}");
            let is_removed = *fates.0 == Fate::Removed || *fates.1 == Fate::Removed;
            if is_removed {
                gone.insert(word)
            } else {
                there.insert(word)
            };
        }
        for ((fates, new, _), device) in [(&laptop, "l"), (&desktop, "d")] {
            there.extend(new.iter().map(|new| format!("w{device}n{new}")));
            for (number, fate) in fates.iter().enumerate() {
                match fate {
                    Fate::Reworded => {
                        there.insert(format!("w{device}e{number}"));
                    }
                    Fate::Moved => {
                        there.insert(format!("w{device}t{number}"));
                    }
                    Fate::Kept | Fate::Removed => {}
                }
            }
        }
        let base = write(&(vec![Fate::Kept; 4], Vec::new(), true), "b");
        Meeting {
            name: "_system/ontology.yaml",
            rule: Rule::Yaml,
            base: Some(base),
            laptop: write(&laptop, "l"),
            desktop: write(&desktop, "d"),
            there,
            gone,
        }
    })
}

fn watched() -> impl Strategy<Value = Meeting> {
    let members = || prop::sample::subsequence((0..8).collect::<Vec<usize>>(), 0..8).prop_shuffle();
    (members(), members(), members(), style()).prop_map(|(base, laptop, desktop, style)| {
        let write =
            |members: &[usize]| styled(members.iter().map(|member| format!("w{member}\n")).collect(), style);
        let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for member in 0..8 {
            let [before, one, other] = [&base, &laptop, &desktop].map(|set| set.contains(&member));
            let stays = if before { one && other } else { one || other };
            if stays {
                there.insert(format!("w{member}"))
            } else {
                gone.insert(format!("w{member}"))
            };
        }
        Meeting {
            name: "state/watched_chats",
            rule: Rule::Set,
            base: Some(write(&base)),
            laptop: write(&laptop),
            desktop: write(&desktop),
            there,
            gone,
        }
    })
}

fn marks() -> impl Strategy<Value = Meeting> {
    let mark =
        || (0_usize..24, 0_usize..60, prop::option::of(0_usize..999), select(&["Z", "+02:00", "-05:00"][..]));
    (mark(), mark(), mark()).prop_map(|marks| {
        let write = |(hour, minute, fraction, zone): &(usize, usize, Option<usize>, &str)| {
            let fraction = fraction.map(|fraction| format!(".{fraction:03}")).unwrap_or_default();
            format!("2026-10-02T{hour:02}:{minute:02}:00{fraction}{zone}\n")
        };
        let (base, laptop, desktop) = (write(&marks.0), write(&marks.1), write(&marks.2));
        Meeting {
            name: "state/email_cursor.txt",
            rule: Rule::Cursor,
            base: Some(base),
            laptop,
            desktop,
            there: BTreeSet::new(),
            gone: BTreeSet::new(),
        }
    })
}

/// Any rule on any text: nothing is expected but that it holds together.
fn whatever() -> impl Strategy<Value = (Rule, Option<String>, String, String)> {
    let lines = &[
        "# Head",
        "## 2026-10-02",
        "### MISSED",
        "- [a](a.md) — x",
        "- **T** y",
        "- c-1 z ✓",
        "---",
        "name: a",
        "metadata:",
        "  type: user",
        "tags: [a]",
        "",
        "text",
        "```",
        "> [also, from laptop:]",
        "> [also, from laptop, 2 lines for the 3 above:]",
        "  > [also, from laptop, in other words:]",
        "> [also, from laptop, as a field:]",
        "> name: b",
        "{\"a\":1}",
        "a: 1",
        "  - b",
        "12",
    ][..];
    let text = || {
        (vec(select(lines), 0..8), select(&["\n", "\r\n"][..]), any::<bool>()).prop_map(
            |(lines, end, ended)| {
                let mut text = lines.join(end);
                text.push_str(if ended { end } else { "" });
                text
            },
        )
    };
    let rule = select(Rule::ALL).prop_map(|(_, rule)| rule);
    (rule, prop::option::weighted(0.8, text()), text(), text())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn index(meeting in INDEX.meeting()) { check(&meeting)?; }

    #[test]
    fn callbacks(meeting in CALLBACKS.meeting()) { check(&meeting)?; }

    #[test]
    fn carry_forward(meeting in CARRY_FORWARD.meeting()) { check(&meeting)?; }

    #[test]
    fn commitments(meeting in COMMITMENTS.meeting()) { check(&meeting)?; }

    #[test]
    fn summary(meeting in SUMMARY.meeting()) { check(&meeting)?; }

    #[test]
    fn log(meeting in prop_oneof![LOG.meeting(), DRAFTS.meeting()]) { check(&meeting)?; }

    #[test]
    fn prepend(meeting in prop_oneof![PREPEND.meeting(), PREPEND_TO_RISING.meeting()]) { check(&meeting)?; }

    /// New days end on top, newest first, though the older days are oldest first.
    #[test]
    fn prepend_puts_new_days_on_top(meeting in PREPEND_TO_RISING.meeting()) {
        let [base, laptop, desktop] =
            [meeting.base.as_deref().unwrap_or_default(), &meeting.laptop, &meeting.desktop].map(str::as_bytes);
        let merged = both(meeting.rule, Some(base), laptop, desktop);
        let text = std::str::from_utf8(&merged.bytes).expect("text");
        let days = text.lines().filter_map(|line| line.trim_end().strip_prefix("## 2026-10-")?.parse::<usize>().ok());
        let days: Vec<usize> = days.collect();
        let mut sorted = days.clone();
        sorted.sort_by_key(|day| match day % 2 { 0 => (0, 100 - day), _ => (1, *day) });
        prop_assert_eq!(days, sorted, "{}", text);
    }

    #[test]
    fn threads(meeting in THREADS.meeting()) { check(&meeting)?; }

    #[test]
    fn roll_up(meeting in ROLL_UP.meeting()) { check(&meeting)?; }

    #[test]
    fn session_digest(meeting in digest()) { check(&meeting)?; }

    #[test]
    fn fact_files(meeting in facts()) { check(&meeting)?; }

    #[test]
    fn json(meeting in registry()) { check(&meeting)?; }

    #[test]
    fn yaml(meeting in ontology()) { check(&meeting)?; }

    #[test]
    fn set(meeting in watched()) { check(&meeting)?; }

    #[test]
    fn cursor(meeting in marks()) { check(&meeting)?; }

    #[test]
    fn whatever_the_text((rule, base, laptop, desktop) in whatever()) {
        let base = base.as_deref().map(str::as_bytes);
        let merged = both(rule, base, laptop.as_bytes(), desktop.as_bytes());
        prop_assert!(std::str::from_utf8(&merged.bytes).is_ok());
        for side in [&laptop, &desktop] {
            let unchanged = both(rule, Some(side.as_bytes()), side.as_bytes(), &merged.bytes);
            prop_assert_eq!(unchanged.bytes, merged.bytes.clone());
        }
        let text = std::str::from_utf8(&merged.bytes).expect("text");
        for keep in [Keep::Both, Keep::Passage(1), Keep::Passage(2)] {
            settled(&Locator::parse("lamp.md").expect("a locator"), text, keep)?;
        }
    }
}
