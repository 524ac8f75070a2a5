//! Merges commitments: promises and their state.
//!
//! A commitment is known by its id: `c-12` at its start, alone or in brackets, or `^c-12` at its end. One without an id is
//! identified by its words, as in the base; the merge writes no id into the file. It has parts, each merged on its own: a
//! checkbox, a date, its text, a mark at the end. A commitment delivered on one device is delivered. If both devices reworded it, both
//! texts stay.
//!
//! A commitment without an id that one side reworded and the other side changed is still one: before the merge, [`linked`] gives both and the base the
//! same id, which is taken out of the result. Two texts are the same commitment if most of their words are the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::note::{self, About, Mark};
use super::outline::{self, Newest, Shape};
use super::pieces::Cut;
use super::sections::heading;
use super::texts::last_pair;
use super::{Outcome, Part, by_lines, items};

/// The beginning of the ids that [`linked`] gives; the merged text has none of them.
const LINK: &str = " ^haversack-0m";

/// The share of words, in percent, that two texts of one commitment have in common.
const ALIKE: usize = 70;

/// Merges two lists of commitments; `None` if one of them cannot be cut.
pub(super) fn merge(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let Some([base_text, first, second]) = base.and_then(|base| linked(base, sides.map(|side| side.text)))
    else {
        return merge_items(base, sides);
    };
    let linked = [Part { text: &first, ..sides[0] }, Part { text: &second, ..sides[1] }];
    let merged = merge_items(Some(&base_text), linked)?;
    Some(Outcome { text: without_links(&merged.text), ..merged })
}

fn merge_items(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let join = |base: Option<&str>, first: &str, second: &str| {
        joined(base, Part { text: first, ..sides[0] }, Part { text: second, ..sides[1] })
    };
    let shape = Shape {
        cut: Cut::Blocks,
        identity: |item| id(item).or_else(|| items::words(item)),
        section: heading,
        rank: items::settled,
        newest: Newest::First,
        join: &join,
    };
    outline::merge(base, sides.map(|side| side.text), &shape)
}

/// Returns the base and both sides with ids at the commitments that one side reworded and the other changed; `None` if there are none.
fn linked(base: &str, sides: [&str; 2]) -> Option<[String; 3]> {
    if [base, sides[0], sides[1]].iter().any(|text| text.contains(LINK)) {
        return None;
    }
    let before = plain_items(base);
    let [first, second] = sides.map(plain_items);
    let mut links: [BTreeMap<usize, usize>; 3] = Default::default();
    for (words, at) in &before {
        let (Some(at), number) = (*at, links[0].len()) else { continue };
        let line = |text: &str, at: usize| text.lines().nth(at).unwrap_or_default().to_owned();
        let [kept_first, kept_second] = [&first, &second].map(|items| items.get(words).copied().flatten());
        let (kept, reworded, is_first_kept) = match (kept_first, kept_second) {
            (Some(kept), None) => (kept, most_alike(words, &second, &before, &links[2]), true),
            (None, Some(kept)) => (kept, most_alike(words, &first, &before, &links[1]), false),
            _ => continue,
        };
        let Some(reworded) = reworded else { continue };
        let kept_text = if is_first_kept { sides[0] } else { sides[1] };
        // If the other side left it as it was, the new words are all that happened.
        if line(kept_text, kept) == line(base, at) {
            continue;
        }
        let (in_first, in_second) = if is_first_kept { (kept, reworded) } else { (reworded, kept) };
        for (link, at) in links.iter_mut().zip([at, in_first, in_second]) {
            link.insert(at, number);
        }
    }
    if links[0].is_empty() {
        return None;
    }
    let with = |text: &str, links: &BTreeMap<usize, usize>| {
        let lines = text.split_inclusive('\n').enumerate().map(|(at, line)| match links.get(&at) {
            Some(number) => {
                let (words, end) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
                format!("{words}{LINK}{number}{end}")
            }
            None => line.to_owned(),
        });
        lines.collect::<String>()
    };
    Some([with(base, &links[0]), with(sides[0], &links[1]), with(sides[1], &links[2])])
}

/// Returns the lines of the items without an id, by their words; `None` for words that several of them have.
fn plain_items(text: &str) -> BTreeMap<String, Option<usize>> {
    let mut items = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let is_item = line.starts_with(['-', '*', '+']) && id(line).is_none();
        if let Some(words) = items::words(line).filter(|_| is_item) {
            items.entry(words.into_owned()).and_modify(|known| *known = None).or_insert(Some(at));
        }
    }
    items
}

/// Returns the line of the new item whose words are most like those of an item; `None` if none is like it.
fn most_alike(
    words: &str,
    items: &BTreeMap<String, Option<usize>>,
    before: &BTreeMap<String, Option<usize>>,
    taken: &BTreeMap<usize, usize>,
) -> Option<usize> {
    let new = items.iter().filter(|(other, _)| !before.contains_key(*other));
    let free = new.filter_map(|(other, at)| Some((other, (*at)?))).filter(|(_, at)| !taken.contains_key(at));
    let scored = free.map(|(other, at)| (likeness(words, other), std::cmp::Reverse(at)));
    scored.max().filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, at)| at.0)
}

/// Returns the share of the words of two texts that both have, in percent.
fn likeness(one: &str, other: &str) -> usize {
    let [mut one, other] = [one, other].map(|text| text.split_whitespace().collect::<Vec<_>>());
    let all = one.len() + other.len();
    let mut common = 0;
    for word in other {
        if let Some(at) = one.iter().position(|same| *same == word) {
            one.swap_remove(at);
            common += 2;
        }
    }
    100 * common / all.max(1)
}

/// Returns a text without the ids of [`linked`].
fn without_links(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.find(LINK) {
        Some(at) => {
            let digits = line[at + LINK.len()..].bytes().take_while(u8::is_ascii_digit).count();
            [&line[..at], &line[at + LINK.len() + digits..]].concat()
        }
        None => line.to_owned(),
    });
    lines.collect()
}

/// Returns an item with other words, and the same identity and state.
pub(crate) fn reworded(item: &str, words: &str) -> String {
    let Parts { bullet, checkbox, date, text: _, mark, id, below } = Parts::of(item);
    [bullet, checkbox, date, words, mark, id, below].concat()
}

/// Returns the words of an item that stands for nothing else.
pub(crate) fn words_of(item: &str) -> &str {
    items::without_bullet(item)
}

/// A commitment in its parts; put together they are the item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) bullet: &'a str,
    pub(crate) checkbox: &'a str,
    pub(crate) date: &'a str,
    pub(crate) text: &'a str,
    pub(crate) mark: &'a str,
    pub(crate) id: &'a str,
    /// The lines below the first.
    pub(crate) below: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(item: &'a str) -> Parts<'a> {
        let (line, below) = item.split_at(item.find('\n').unwrap_or(item.len()));
        let rest = items::without_bullet(line);
        let bullet = &line[..line.len() - rest.len()];
        let (checkbox, rest) = items::without_checkbox(rest);
        let (date, rest) = items::without_date(rest);
        let (rest, id) = match last_pair(rest, *b" ^") {
            Some(at) if !rest[at + 2..].contains(' ') => rest.split_at(at),
            _ => rest.split_at(rest.len()),
        };
        let text = rest.trim_end_matches(['✓', '✔', '✅', ' ']);
        Parts { bullet, checkbox, date, text, mark: &rest[text.len()..], id, below }
    }
}

fn joined(base: Option<&str>, first: Part<'_>, second: Part<'_>) -> Outcome {
    let before = base.map(Parts::of);
    let [one, other] = [first, second].map(|side| Parts::of(side.text));
    let merged = |part: for<'a> fn(&Parts<'a>) -> &'a str| {
        let (first, second) = (part(&one), part(&other));
        match before.as_ref().map(part) {
            Some(before) if before == first => second,
            Some(before) if before == second => first,
            // A checked box, a later date and a mark are the greater.
            _ => first.max(second),
        }
    };
    let mut before_below = before.map_or("", |before| before.below).to_owned();
    for (side, words) in [(one, other.text), (other, one.text)] {
        // A side that has in the text the words that the other side has in a note did not remove them: treat the note as new.
        if before.is_some_and(|before| before.text != side.text) && has_below(side.below, words) {
            before_below = without_note(&before_below, words);
        }
    }
    let below =
        by_lines(&before_below, Part { text: one.below, ..first }, Part { text: other.below, ..second });
    let Text { text, also } =
        chosen(before.map(|before| before.text), one, other, [first.device, second.device]);
    let line = [
        merged(|parts| parts.bullet),
        merged(|parts| parts.checkbox),
        merged(|parts| parts.date),
        text,
        merged(|parts| parts.mark),
        merged(|parts| parts.id),
    ]
    .concat();
    let also_kept = also.is_some();
    let also = also.map(|also| format!("\n{also}")).unwrap_or_default();
    Outcome { text: format!("{line}{also}{}", below.text), both_kept: below.both_kept || also_kept }
}

struct Text<'a> {
    text: &'a str,
    /// The other text under a note.
    also: Option<String>,
}

fn chosen<'a>(base: Option<&str>, first: Parts<'a>, second: Parts<'a>, devices: [&str; 2]) -> Text<'a> {
    let text = |text| Text { text, also: None };
    if first.text == second.text || base == Some(second.text) {
        return text(first.text);
    }
    if base == Some(first.text) {
        return text(second.text);
    }
    for (one, other) in [(first, second), (second, first)] {
        if has_below(one.below, other.text) || one.text.contains(other.text) {
            return text(one.text);
        }
    }
    let (above, below, device) = match first.text <= second.text {
        true => (first.text, second.text, devices[1]),
        false => (second.text, first.text, devices[0]),
    };
    let note = note::write(Mark::Quote, device, About::Words);
    Text { text: above, also: Some(format!("  {note}\n  - {below}")) }
}

/// Returns true if a line says these words.
fn says(line: &str, words: &str) -> bool {
    items::without_bullet(line.trim_start()) == words
}

/// Returns true if words are in the lines below an item.
fn has_below(below: &str, words: &str) -> bool {
    !words.is_empty() && below.lines().any(|line| says(line, words))
}

/// Returns the lines below an item without those that say these words, each with the note above it.
fn without_note(below: &str, words: &str) -> String {
    let lines: Vec<&str> = below.split('\n').collect();
    let goes = |at: usize| lines.get(at).is_some_and(|line| says(line, words));
    let is_note = |at: usize| note::read(lines[at]).is_some_and(|note| note.about == About::Words);
    let stays = (0..lines.len()).filter(|at| !(goes(*at) || is_note(*at) && goes(at + 1)));
    stays.map(|at| lines[at]).collect::<Vec<_>>().join("\n")
}

/// Returns the id of a commitment.
pub(crate) fn id(item: &str) -> Option<Cow<'_, str>> {
    let line = item.lines().next()?;
    let line = line.trim_end();
    if let Some(at) = last_pair(line, *b" ^") {
        let id = &line[at + 2..];
        return is_id(id).then_some(Cow::Borrowed(id));
    }
    let rest = items::without_checkbox(items::without_bullet(line)).1;
    let word = rest.split_whitespace().next()?;
    let id = word.trim_end_matches(':').trim_matches(['[', ']', '(', ')']);
    is_id(id).then_some(Cow::Borrowed(id))
}

/// Returns true if a word is letters, a dash, and letters or digits with a digit among them.
fn is_id(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
    let Some([b'-', number @ ..]) = word.as_bytes().get(letters..) else { return false };
    (1..=12).contains(&letters)
        && (1..=36).contains(&number.len())
        && number.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && number.iter().any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_where_people_put_them() {
        for item in
            ["- c-12 paint", "- [c-12] paint", "- (c-12): paint", "- [ ] c-12: paint", "* [x] paint ^c-12"]
        {
            assert_eq!(id(item).as_deref(), Some("c-12"), "{item}");
        }
        for item in ["- paint", "- 2026-10-02: paint", "- re-paint", "- [x] paint", "-"] {
            assert_eq!(id(item), None, "{item}");
        }
    }

    #[test]
    fn a_note_goes_with_its_words() {
        let below = "\n  more\n  > [also, from desk, in other words:]\n  - red\n  - green";
        assert_eq!(without_note(below, "red"), "\n  more\n  - green");
        assert_eq!(without_note(below, "green"), "\n  more\n  > [also, from desk, in other words:]\n  - red");
        assert_eq!(without_note(below, "blue"), below);
    }

    #[test]
    fn the_parts_are_the_whole() {
        for item in [
            "- [x] 2026-10-02: c-1 paint the door ✓ ^c-1\n  below",
            "- paint",
            "-",
            "12. 2026-10-02 — ✓",
            "* [ ]  ü ✅",
        ] {
            let Parts { bullet, checkbox, date, text, mark, id, below } = Parts::of(item);
            assert_eq!([bullet, checkbox, date, text, mark, id, below].concat(), item);
        }
    }
}
