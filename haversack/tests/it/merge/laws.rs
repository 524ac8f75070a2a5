//! The laws that every merge obeys, tried on texts with few different lines, so that they meet often.
//!
//! `PROPTEST_CASES` says how many texts each law is tried on, here and below; `cargo xtask soak` says a million.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};

use haversack::merge::Rule;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::both;

/// The default number of texts for a law.
const CASES: u32 = 1000;

/// Returns how laws are tried.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    // The library's default.
    let is_asked = asked.cases != 256;
    ProptestConfig { cases: if is_asked { asked.cases } else { CASES }, ..asked }
}

/// A side's changes of a base: the removed lines, and the lines put into the gaps around them.
#[derive(Clone, Debug)]
struct Script {
    removed: Vec<bool>,
    added: Vec<Vec<String>>,
}

impl Script {
    fn apply(&self, base: &[String]) -> Vec<String> {
        let mut lines = self.added[0].clone();
        for (number, line) in base.iter().enumerate() {
            if !self.removed[number] {
                lines.push(line.clone());
            }
            lines.extend(self.added[number + 1].iter().cloned());
        }
        lines
    }
}

fn script(lines: usize, words: &'static [&'static str]) -> impl Strategy<Value = Script> {
    let added = prop_oneof![
        3 => Just(Vec::new()),
        2 => vec(select(words).prop_map(str::to_owned), 1..4),
    ];
    (vec(prop::bool::weighted(0.3), lines), vec(added, lines + 1))
        .prop_map(|(removed, added)| Script { removed, added })
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

const PROSE: &[&str] = &["a", "b", "c", "- item", "- other", "", "# head", "---", "> quote"];

const EVENTS: &[&str] = &[
    r#"{"id":"1","ts":"1"}"#,
    r#"{"id":"1","ts":"1","v":2}"#,
    r#"{"id":"1","ts":"3"}"#,
    r#"{"id":"2"}"#,
    r#"{"id":"2","v":2}"#,
    r#"{"id":"3","ts":"2"}"#,
    r#"{"ts":"2"}"#,
    r#"{"e":1}"#,
    r#"["1"]"#,
    "half",
];

/// Two sides of a base that share its words: everything can be mistaken for everything.
fn alike(words: &'static [&'static str]) -> impl Strategy<Value = (Vec<String>, Script, Script)> {
    vec(select(words).prop_map(str::to_owned), 0..7).prop_flat_map(move |base| {
        let lines = base.len();
        (Just(base), script(lines, words), script(lines, words))
    })
}

/// Two sides of a base that has none of their words, and no line twice: what happened to it can be told.
fn apart() -> impl Strategy<Value = (Vec<String>, Script, Script)> {
    (0_usize..7).prop_flat_map(|lines| {
        let base: Vec<String> = (0..lines).map(|number| format!("base {number}")).collect();
        (Just(base), script(lines, PROSE), script(lines, PROSE))
    })
}

/// Texts with all kinds of endings.
fn with_endings(lines: Vec<String>) -> impl Strategy<Value = String> {
    let ends = select(&["\n", "\n", "\r\n"][..]);
    let last = select(&["\n", "", "\r\n", "\r"][..]);
    (vec(ends, lines.len()), last).prop_map(move |(ends, last)| {
        let mut text = String::new();
        for (number, (line, end)) in lines.iter().zip(ends).enumerate() {
            text.push_str(line);
            text.push_str(if number + 1 == lines.len() { last } else { end });
        }
        text
    })
}

fn ragged() -> impl Strategy<Value = (String, String, String)> {
    alike(PROSE).prop_flat_map(|(base, laptop, desktop)| {
        let sides = (laptop.apply(&base), desktop.apply(&base));
        (with_endings(base), with_endings(sides.0), with_endings(sides.1))
    })
}

/// Two sides that add, remove and reword paragraphs with blank lines between them.
fn paragraphs() -> impl Strategy<Value = (String, String, String)> {
    #[derive(Clone, Copy, Debug)]
    enum Fate {
        Kept,
        Removed,
        Reworded,
        Continued,
    }
    let fate =
        select(&[Fate::Kept, Fate::Kept, Fate::Kept, Fate::Removed, Fate::Reworded, Fate::Continued][..]);
    let new = prop_oneof![3 => Just(""), 1 => select(&["p\n\n", "q\n\n", "p\nq\n\n", "- item\n", "```\np\n```\n\n"][..])];
    let side = move |device: &'static str| {
        vec((fate.clone(), new.clone()), 1..7).prop_map(move |fates| {
            let text = |(number, (fate, new)): (usize, &(Fate, &str))| match fate {
                Fate::Kept => format!("base {number}\n\n{new}"),
                Fate::Removed => (*new).to_owned(),
                Fate::Reworded => format!("base {number} of {device}\n\n{new}"),
                Fate::Continued => format!("base {number}\nand on, on {device}\n\n{new}"),
            };
            fates.iter().enumerate().map(text).collect::<String>()
        })
    };
    let base = (1_usize..7).prop_map(|lines| (0..lines).map(|number| format!("base {number}\n\n")).collect());
    (base, side("laptop"), side("desktop"))
}

/// Two sides that put lines elsewhere, remove some and add their own; the base has no line twice.
fn shuffled() -> impl Strategy<Value = (Vec<String>, [Vec<String>; 2])> {
    fn side(base: Vec<String>) -> impl Strategy<Value = Vec<String>> {
        let lines = base.len();
        // The new place of each line; removed lines go beyond the end.
        let places = vec(prop_oneof![4 => Just(None), 2 => (0..=lines).prop_map(Some)], lines);
        let removed = vec(prop::bool::weighted(0.2), lines);
        let added = vec((0..=lines, select(&["p", "q", "", "- item"][..])), 0..3);
        (places, removed, added).prop_map(move |(places, removed, added)| {
            let stays =
                places.iter().enumerate().map(|(number, place)| (place.unwrap_or(number), &base[number]));
            let mut all: Vec<(usize, String)> = stays
                .zip(&removed)
                .filter(|(_, removed)| !**removed)
                .map(|((place, line), _)| (place, line.clone()))
                .collect();
            all.extend(added.iter().map(|(place, line)| (*place, (*line).to_owned())));
            all.sort_by_key(|(place, _)| *place);
            all.into_iter().map(|(_, line)| line).collect()
        })
    }
    let line = select(&["", "", "", "# ", "- ", "  - "][..]);
    vec(line, 0..8).prop_flat_map(|marks| {
        let base: Vec<String> =
            marks.iter().enumerate().map(|(number, mark)| format!("{mark}base {number}")).collect();
        (Just(base.clone()), [side(base.clone()), side(base)])
    })
}

fn prose(base: &str, laptop: &str, desktop: &str) -> String {
    merged(Rule::Prose, Some(base), laptop, desktop)
}

/// Merges in both orders, which [`both`] compares.
fn merged(rule: Rule, base: Option<&str>, laptop: &str, desktop: &str) -> String {
    let merged = both(rule, base.map(str::as_bytes), laptop.as_bytes(), desktop.as_bytes());
    String::from_utf8(merged.bytes.to_vec()).expect("text stays text")
}

fn counts<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

fn is_in_order(short: &[String], long: &[&str]) -> bool {
    let mut rest = long.iter();
    short.iter().all(|line| rest.any(|other| other == line))
}

/// Returns every order in which three devices can meet: who publishes first, second and last.
fn orders() -> [[usize; 3]; 6] {
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
}

/// Returns what three devices come to, in one order, if the last reads the log at once and if it reads it step by step.
fn three(rule: Rule, base: &str, texts: &[String; 3], [one, two, last]: [usize; 3]) -> [String; 2] {
    let second = merged(rule, Some(base), &texts[two], &texts[one]);
    let at_once = merged(rule, Some(base), &texts[last], &second);
    let step = merged(rule, Some(base), &texts[last], &texts[one]);
    [at_once, merged(rule, Some(&texts[one]), &step, &second)]
}

fn insertions(words: &'static [&'static str]) -> impl Strategy<Value = (Vec<String>, [Script; 3])> {
    (0_usize..4).prop_flat_map(move |lines| {
        let base: Vec<String> = (0..lines).map(|number| format!("base {number}")).collect();
        let script =
            || script(lines, words).prop_map(move |script| Script { removed: vec![false; lines], ..script });
        (Just(base), [script(), script(), script()])
    })
}

/// Two cases of the law below that once broke it.
#[test]
fn a_line_put_elsewhere_by_both_or_removed_by_one() {
    let merged = |laptop: &str, desktop: &str| {
        let lines =
            |numbers: &str| numbers.chars().map(|number| format!("base {number}\n")).collect::<String>();
        prose(&lines("012"), &lines(laptop), &lines(desktop))
    };
    assert_eq!(merged("2", "210"), "base 2\n");
    assert_eq!(merged("102", "21").matches("base 1").count(), 1);
}

/// One side put a line elsewhere that the other removed, and both added the same line, each in another place.
#[test]
fn what_stands_beside_a_line_that_is_gone_is_taken_in_once() {
    let (base, laptop, desktop) = ("base 0\nbase 1\n", "base 0\np\n", "base 1\np\nbase 0\n");
    let once = prose(base, laptop, desktop);
    assert_eq!(once, "p\nbase 0\np\n");
    assert_eq!([laptop, desktop].map(|side| prose(base, &once, side)), [once.clone(), once]);
}

/// The vault's seed 86162908: of a line that was there twice, each side took out another one.
#[test]
fn a_line_that_was_there_twice_stays_once() {
    let text = prose("a\nb\n> quote\nc\na\n", "a\nb\n> quote\nc\n", "b\n> quote\nc\na\n");
    assert_eq!(text, "a\nb\n> quote\nc\n");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_sides_have_no_rank((base, laptop, desktop) in ragged()) {
        for rule in [Rule::Prose, Rule::JsonLines, Rule::Whole] {
            both(rule, Some(base.as_bytes()), laptop.as_bytes(), desktop.as_bytes());
            both(rule, None, laptop.as_bytes(), desktop.as_bytes());
        }
    }

    #[test]
    fn unchanged_side_is_not_parsed((base, side, _) in ragged()) {
        for rule in [Rule::Prose, Rule::JsonLines, Rule::Whole] {
            for (base, laptop, desktop) in [(Some(&base), &side, &base), (Some(&base), &side, &side), (None, &side, &side)] {
                let merged = both(rule, base.map(|base| base.as_bytes()), laptop.as_bytes(), desktop.as_bytes());
                prop_assert_eq!(&merged.bytes[..], side.as_bytes());
                prop_assert!(merged.copy.is_none() && !merged.both_kept);
            }
        }
    }

    #[test]
    fn text_stays_text((base, laptop, desktop) in ragged()) {
        let text = prose(&base, &laptop, &desktop);
        for line in text.lines() {
            prop_assert!(!["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| line.starts_with(mark)));
        }
        // No line is glued to another: each is from somewhere, or a note.
        let known: BTreeSet<&str> = [&base, &laptop, &desktop].iter().flat_map(|text| text.split('\n')).map(|line| line.trim_end_matches('\r')).collect();
        for line in text.split('\n').map(|line| line.trim_end_matches('\r')) {
            prop_assert!(line.is_empty() || known.contains(line) || line.contains(" [also, from "), "{:?} in {:?}", line, text);
        }
    }

    #[test]
    fn a_new_line_is_never_lost((base, laptop, desktop) in ragged()) {
        for base in [Some(&base), None] {
            let text = merged(Rule::Prose, base.map(String::as_str), &laptop, &desktop);
            let old = base.map(|base| counts(base.lines().map(|line| line.trim_end_matches('\r')))).unwrap_or_default();
            let now = counts(text.lines().map(|line| line.trim_end_matches('\r')));
            for side in [&laptop, &desktop] {
                for (line, count) in counts(side.lines().map(|line| line.trim_end_matches('\r'))) {
                    prop_assert!(old.contains_key(line) || now.get(line).is_some_and(|now| *now >= count), "{:?} in {:?}", line, text);
                }
            }
        }
    }

    #[test]
    fn a_line_that_both_still_have_is_there((base, laptop, desktop) in ragged()) {
        let text = merged(Rule::Prose, Some(&base), &laptop, &desktop);
        let lines = |text| counts(str::lines(text).map(|line| line.trim_end_matches('\r')));
        let (now, there) = (lines(&text), lines(&desktop));
        for (line, _) in lines(&laptop).iter().filter(|(line, _)| there.contains_key(*line)) {
            let is_mute = !line.contains(char::is_alphanumeric);
            prop_assert!(is_mute || now.contains_key(line), "{:?} in {:?}", line, text);
        }
    }

    #[test]
    fn merge_loses_and_revives_no_line((base, laptop, desktop) in apart()) {
        let text = prose(&joined(&base), &joined(&laptop.apply(&base)), &joined(&desktop.apply(&base)));
        let lines: Vec<&str> = text.lines().collect();
        let is_kept = |number: &usize| !laptop.removed[*number] && !desktop.removed[*number];
        let kept: Vec<usize> = (0..base.len()).filter(is_kept).collect();
        let of_base: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("base ")).collect();
        prop_assert_eq!(of_base, kept.iter().map(|number| base[*number].as_str()).collect::<Vec<_>>());

        let stretches: Vec<&[&str]> = lines.split(|line| line.starts_with("base ")).collect();
        let starts = std::iter::once(0).chain(kept.iter().map(|number| number + 1));
        let ends = kept.iter().copied().chain([base.len()]);
        for ((start, end), stretch) in starts.zip(ends).zip(stretches) {
            let [first, second] = [&laptop, &desktop].map(|side| side.added[start..=end].concat());
            prop_assert!(is_in_order(&first, stretch), "{:?} in {:?}", first, text);
            prop_assert!(is_in_order(&second, stretch), "{:?} in {:?}", second, text);
            let notes = stretch.iter().filter(|line| line.contains("[also, from ")).count();
            prop_assert!(stretch.len() - notes <= first.len() + second.len());
        }
    }

    #[test]
    fn change_merged_twice_is_merged_once((base, laptop, desktop) in apart()) {
        let [laptop, desktop] = [laptop, desktop].map(|side| joined(&side.apply(&base)));
        let base = joined(&base);
        let once = prose(&base, &laptop, &desktop);
        prop_assert_eq!(&prose(&base, &once, &desktop), &once);
        prop_assert_eq!(&prose(&base, &once, &laptop), &once);
        prop_assert_eq!(&prose(&desktop, &once, &desktop), &once);
    }

    #[test]
    fn a_line_put_elsewhere_is_there_once((base, sides) in shuffled()) {
        let text = prose(&joined(&base), &joined(&sides[0]), &joined(&sides[1]));
        for line in &base {
            let is_kept = sides.iter().all(|side| side.contains(line));
            prop_assert_eq!(text.lines().filter(|other| other == line).count(), usize::from(is_kept), "{} in {}", line, text);
        }
    }

    #[test]
    fn lines_put_elsewhere_are_taken_in_once((base, sides) in shuffled()) {
        let as_fact = |lines: &[String]| format!("---\nname: lamp\n---\n\n{}", joined(lines).replace('\n', "\n\n"));
        for write in [&joined as &dyn Fn(&[String]) -> String, &as_fact] {
            let [laptop, desktop] = sides.each_ref().map(|side| write(side));
            let base = write(&base);
            let once = prose(&base, &laptop, &desktop);
            prop_assert_eq!(&prose(&base, &once, &desktop), &once);
            prop_assert_eq!(&prose(&base, &once, &laptop), &once);
        }
    }

    #[test]
    fn files_made_apart_meet_once((_, laptop, desktop) in ragged()) {
        let once = merged(Rule::Prose, None, &laptop, &desktop);
        prop_assert_eq!(&merged(Rule::Prose, None, &once, &desktop), &once);
        prop_assert_eq!(&merged(Rule::Prose, None, &once, &laptop), &once);
    }

    #[test]
    fn paragraph_merged_twice_is_merged_once((base, laptop, desktop) in paragraphs()) {
        let once = prose(&base, &laptop, &desktop);
        prop_assert_eq!(&prose(&base, &once, &desktop), &once);
        prop_assert_eq!(&prose(&base, &once, &laptop), &once);
    }

    #[test]
    fn three_devices_come_to_the_same_lines((base, scripts) in insertions(PROSE)) {
        let texts = scripts.map(|script| joined(&script.apply(&base)));
        let base = joined(&base);
        let all: Vec<String> = orders().into_iter().flat_map(|order| three(Rule::Prose, &base, &texts, order)).collect();
        for text in &all {
            prop_assert_eq!(text.lines().collect::<BTreeSet<_>>(), all[0].lines().collect::<BTreeSet<_>>());
        }
    }

    #[test]
    fn three_devices_come_to_the_same_list((base, scripts) in insertions(&["- a", "- b", "- c", "- d"])) {
        let mut next = 0;
        let texts = scripts.map(|mut script| {
            for line in script.added.iter_mut().flatten() {
                next += 1;
                line.push_str(&format!(" {next}"));
            }
            joined(&script.apply(&base))
        });
        let base = joined(&base);
        let [first, _] = three(Rule::Prose, &base, &texts, [0, 1, 2]);
        for order in orders() {
            for text in three(Rule::Prose, &base, &texts, order) {
                prop_assert_eq!(&text, &first);
            }
        }
    }

    #[test]
    fn json_lines_stay_json((base, laptop, desktop) in alike(&EVENTS[..9])) {
        let text = merged(Rule::JsonLines, Some(&joined(&base)), &joined(&laptop.apply(&base)), &joined(&desktop.apply(&base)));
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        for line in text.lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
        }
    }

    #[test]
    fn no_event_is_lost_and_none_comes_back((base, laptop, desktop) in alike(EVENTS)) {
        let sides = [laptop.apply(&base), desktop.apply(&base)];
        let text = merged(Rule::JsonLines, Some(&joined(&base)), &joined(&sides[0]), &joined(&sides[1]));
        let (now, before) = (counts(text.lines()), counts(base.iter().map(String::as_str)));
        let sides = sides.each_ref().map(|side| counts(side.iter().map(String::as_str)));
        for line in EVENTS {
            let count = |counts: &BTreeMap<&str, usize>| counts.get(line).copied().unwrap_or(0);
            let (now, before, [first, second]) = (count(&now), count(&before), sides.each_ref().map(count));
            let (most, least) = (first.max(second), first.min(second));
            if least >= before {
                prop_assert_eq!(now, most, "{} was added", line);
            } else if most <= before {
                prop_assert_eq!(now, least, "{} was removed", line);
            } else {
                prop_assert!((least..=most).contains(&now));
            }
        }
    }

    #[test]
    fn event_merged_twice_is_merged_once((base, laptop, desktop) in alike(EVENTS)) {
        let [laptop, desktop] = [laptop, desktop].map(|side| joined(&side.apply(&base)));
        let base = joined(&base);
        for base in [Some(base.as_str()), None] {
            let once = merged(Rule::JsonLines, base, &laptop, &desktop);
            prop_assert_eq!(&merged(Rule::JsonLines, base, &once, &desktop), &once);
            prop_assert_eq!(&merged(Rule::JsonLines, base, &once, &laptop), &once);
        }
    }

    #[test]
    fn three_devices_come_to_the_same_events((base, scripts) in insertions(&["1", "2", "3", ""])) {
        let event = |number: usize, ts: &str| match ts {
            "" => format!("{{\"id\":\"{number}\"}}"),
            ts => format!("{{\"id\":\"{number}\",\"ts\":\"{ts}\"}}"),
        };
        let mut next = 0;
        let texts = scripts.map(|mut script| {
            for line in script.added.iter_mut().flatten() {
                next += 1;
                *line = event(next, line);
            }
            joined(&script.apply(&base))
        });
        let base = joined(&base);
        let [first, _] = three(Rule::JsonLines, &base, &texts, [0, 1, 2]);
        for order in orders() {
            let [at_once, by_steps] = three(Rule::JsonLines, &base, &texts, order);
            prop_assert_eq!(&at_once, &first);
            // The log's lines keep their places, because their order tells which came first.
            prop_assert_eq!(counts(by_steps.lines()), counts(first.lines()));
        }
    }
}
