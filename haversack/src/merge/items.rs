//! Merges lists of items with an identity: the index, callbacks, items carried forward, summaries.
//!
//! An entry of the index is identified by its link, a callback by its title, any other item by its words. An item that went below
//! another heading has moved, and one that was reworded where its title stands is the same; both can happen on different devices.

use std::borrow::Cow;

use super::outline::{self, Newest, Shape, join_items};
use super::pieces::{Class, Cut, Piece, Pieces};
use super::sections::heading;
use super::texts::last_pair;
use super::{Outcome, Part, moment};

/// Merges two indexes; `None` if one of them cannot be cut.
pub(super) fn index(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    merge(base, sides, link_target, heading, |_| 0)
}

/// Merges two lists of callbacks; a callback that is in use on one side is in use.
pub(super) fn callbacks(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    merge(base, sides, title_or_words, heading, |heading| u8::from(heading.to_lowercase().contains("active")))
}

/// Merges two lists of items to be raised; an item that was raised on one side was raised.
pub(super) fn carry_forward(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    merge(base, sides, words, heading, settled)
}

/// Merges two summaries of a day, and counts the items below each heading again.
pub(super) fn summary(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let merged = merge(base, sides, words, uncounted, settled)?;
    Some(Outcome { text: recounted(&merged.text), ..merged })
}

fn merge(
    base: Option<&str>,
    sides: [Part<'_>; 2],
    identity: fn(&str) -> Option<Cow<'_, str>>,
    section: fn(&str) -> Cow<'_, str>,
    rank: fn(&str) -> u8,
) -> Option<Outcome> {
    let join = |base: Option<&str>, first: &str, second: &str| {
        join_items(base, Part { text: first, ..sides[0] }, Part { text: second, ..sides[1] })
    };
    let shape = Shape { cut: Cut::Blocks, identity, section, rank, newest: Newest::First, join: &join };
    outline::merge(base, sides.map(|side| side.text), &shape)
}

/// Returns a number above 0 if the items below a heading are done.
pub(super) fn settled(heading: &str) -> u8 {
    let heading = heading.to_lowercase();
    u8::from(
        ["delivered", "done", "closed", "consumed", "raised", "handled"]
            .iter()
            .any(|word| heading.contains(word)),
    )
}

/// Returns the link of an entry.
pub(crate) fn link_target(item: &str) -> Option<Cow<'_, str>> {
    let line = item.lines().next()?;
    let target = match (line.find("]("), line.find("[[")) {
        (Some(at), wiki) if wiki.is_none_or(|wiki| at < wiki) => line[at + 2..].split(')').next()?,
        (_, Some(at)) => line[at + 2..].split(']').next()?.split('|').next()?,
        _ => return None,
    };
    let target = target.trim().trim_matches(['<', '>']);
    let target = target.split(" \"").next().unwrap_or(target);
    let target = target.strip_prefix("./").unwrap_or(target);
    (!target.is_empty()).then_some(Cow::Borrowed(target))
}

/// Returns the title of an item: the bold text at its start.
fn title(item: &str) -> Option<Cow<'_, str>> {
    let rest = without_bullet(item.lines().next()?).strip_prefix("**")?;
    let title = rest[..rest.find("**")?].trim().trim_end_matches(':').to_lowercase();
    (!title.is_empty()).then_some(Cow::Owned(title))
}

fn title_or_words(item: &str) -> Option<Cow<'_, str>> {
    title(item).or_else(|| words(item))
}

/// Returns the words of an item, without what changes when it is settled: marks, dates, remarks in brackets at the end.
pub(crate) fn words(item: &str) -> Option<Cow<'_, str>> {
    let line = without_checkbox(without_bullet(item.lines().next()?)).1;
    let mut text = without_date(line).1.trim();
    loop {
        let shorter = text.trim_end_matches(['✓', '✔', '✅', '.', ';', ',', '—', '-', '–', ':', ' ']);
        let shorter = match shorter.strip_suffix(')').and_then(|inner| inner.rfind('(')) {
            Some(open) => &shorter[..open],
            None => match last_pair(shorter, *b" ^") {
                Some(at) if !shorter[at + 2..].contains(' ') => &shorter[..at],
                _ => shorter,
            },
        };
        if shorter.len() == text.len() {
            break;
        }
        text = shorter;
    }
    if is_plain(text) {
        return (!text.is_empty()).then(|| Cow::Owned(text.to_ascii_lowercase()));
    }
    let mut words = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '~')) {
        match c {
            c if c.is_whitespace() => {
                if !words.is_empty() && !words.ends_with(' ') {
                    words.push(' ');
                }
            }
            c if c.is_ascii() => words.push(c.to_ascii_lowercase()),
            c => words.extend(c.to_lowercase()),
        }
    }
    words.truncate(words.trim_end().len());
    (!words.is_empty()).then_some(Cow::Owned(words))
}

/// Returns true if a text is words of ASCII with one space between them, and no marks.
fn is_plain(text: &str) -> bool {
    let mut above = b' ';
    let mut goes_on = |byte: u8| match std::mem::replace(&mut above, byte) {
        b' ' if byte == b' ' => false,
        _ => byte.is_ascii() && !matches!(byte, b'\t'..=b'\r' | b'*' | b'_' | b'`' | b'~'),
    };
    text.bytes().all(&mut goes_on) && !text.ends_with(' ')
}

/// Returns an item behind its bullet or number.
pub(super) fn without_bullet(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.get(digits + 1..).unwrap_or_default().trim_start_matches(' ')
}

/// Splits a text behind its checkbox.
pub(super) fn without_checkbox(text: &str) -> (&str, &str) {
    let is_box = matches!(text.as_bytes(), [b'[', b' ' | b'x' | b'X' | b'-' | b'/', b']', b' ', ..]);
    if is_box { text.split_at(4) } else { text.split_at(0) }
}

/// Splits a text behind the date at its start and what parts it from the rest.
pub(super) fn without_date(text: &str) -> (&str, &str) {
    if !text.get(..10).is_some_and(moment::is_date) {
        return text.split_at(0);
    }
    let rest = text[10..].trim_start_matches([':', ' ', '—', '–', '-', ',']);
    text.split_at(text.len() - rest.len())
}

/// Splits a heading like `## Needs you (3)` before its number.
fn counted(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim_end().strip_suffix(')')?;
    let open = inner.rfind(" (")?;
    let number = &inner[open + 2..];
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| (&inner[..open], number))
}

/// Returns the identity of a heading whose number changes.
fn uncounted(line: &str) -> Cow<'_, str> {
    heading(counted(line).map_or(line, |(name, _)| name))
}

/// Writes into each heading with a number how many items are below it.
fn recounted(text: &str) -> String {
    let mut cut = Pieces::of(text, Cut::Blocks);
    let pieces: Vec<Piece<'_>> = cut.by_ref().collect();
    if cut.ended().is_none() {
        return text.to_owned();
    }
    let mut new = text.to_owned();
    for (at, piece) in pieces.iter().enumerate().rev().filter(|(_, piece)| piece.class == Class::Heading) {
        let Some((name, _)) = counted(piece.text) else { continue };
        let below = pieces[at + 1..].iter().take_while(|other| other.class != Class::Heading);
        let items = below.filter(|other| other.class == Class::Item && !is_placeholder(other.text)).count();
        new.replace_range(piece.start..piece.start + piece.text.len(), &format!("{name} ({items})"));
    }
    new
}

/// Returns true if an item only says that there is none.
fn is_placeholder(item: &str) -> bool {
    matches!(without_bullet(item).trim(), "—" | "-" | "(none)" | "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_known_by_what_they_are_about() {
        let target = link_target;
        assert_eq!(target("- [Lamp](lamp.md) — turns").as_deref(), Some("lamp.md"));
        assert_eq!(target("- [Lamp](./lamp.md \"Lamp\")").as_deref(), Some("lamp.md"));
        assert_eq!(target("- [[lamp|Lamp]] and [x](y)").as_deref(), Some("lamp"));
        assert_eq!(target("- no link"), None);
        assert_eq!(title("- **Foghorn:** (2026-10-02) it said moo").as_deref(), Some("foghorn"));
        assert_eq!(title("- a **bold** word"), None);
        for same in [
            "- Paint the door",
            "- [x] 2026-10-02: Paint the door ✓",
            "* paint **the** door (a1b2c3d) ✓",
            "3. 2026-10-02 — Paint  the door. (asked twice) (2026-10-03)",
            "- [ ] Paint the door ^c-7",
        ] {
            assert_eq!(words(same).as_deref(), Some("paint the door"), "{same}");
        }
        assert_eq!(words("- (none right now)"), None);
        assert_eq!(words("-"), None);
    }

    #[test]
    fn counts_follow_the_items() {
        let text = "# Day\n\n## Needs you (7)\n- a\n- b\n\n## Handled (1)\n- —\n\n## Heads up\n- c\n";
        let counted = "# Day\n\n## Needs you (2)\n- a\n- b\n\n## Handled (0)\n- —\n\n## Heads up\n- c\n";
        assert_eq!(recounted(text), counted);
    }
}
