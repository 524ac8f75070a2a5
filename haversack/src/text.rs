//! Edits of text, literal to the character: no pattern, no expansion, no guess.
//!
//! Lines end at `\n` and nowhere else; a final line without one counts, an empty rest after the last one
//! does not.

use memchr::{memchr_iter, memmem};

/// The most occurrences that a refusal names: enough to tell them apart, few enough to read.
const MAX_NAMED_OCCURRENCES: usize = 100;

/// The size of the blocks in which newlines are counted.
const COUNTED_BYTES: usize = 4096;

/// A text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewText {
    pub(crate) text: String,
    /// The first line that changed, counted from 1.
    pub(crate) line: usize,
}

/// Why a text was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    EmptyOld,
    OldNotFound,
    OldNotUnique(Occurrences),
    LineOutOfRange { line: usize, lines: usize },
}

/// The occurrences of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrences {
    /// The line each occurrence begins in, counted from 1; the first hundred.
    pub lines: Vec<usize>,
    /// True if there are more than `lines` names.
    pub more: bool,
}

/// Decides if a text that is inserted into gets a final newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ends as it did before.
    Kept,
    /// It ends in a newline.
    Newline,
}

/// Replaces the only occurrence of `old`.
///
/// Occurrences that overlap are several: which one was meant cannot be told.
pub(crate) fn replace_once(text: &str, old: &str, new: &str) -> Result<NewText, Refusal> {
    if old.is_empty() {
        return Err(Refusal::EmptyOld);
    }
    if text == old {
        return Ok(NewText { text: new.to_owned(), line: 1 });
    }
    let finder = memmem::Finder::new(old);
    let mut found = overlapping(text, &finder);
    let Some(at) = found.next() else {
        return Err(Refusal::OldNotFound);
    };
    let line_at = |at: usize| memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
    if let Some(second) = found.next() {
        let named = [at, second].into_iter().chain(found.by_ref()).take(MAX_NAMED_OCCURRENCES);
        let lines = named.map(line_at).collect();
        return Err(Refusal::OldNotUnique(Occurrences { lines, more: found.next().is_some() }));
    }
    let mut edited = String::with_capacity(text.len() - old.len() + new.len());
    edited.push_str(&text[..at]);
    edited.push_str(new);
    edited.push_str(&text[at + old.len()..]);
    Ok(NewText { text: edited, line: line_at(at) })
}

fn overlapping<'a>(text: &'a str, finder: &'a memmem::Finder<'a>) -> impl Iterator<Item = usize> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        from = at + 1;
        Some(at)
    })
}

/// Inserts `insert` as whole lines after line `after`; 0 is the top.
///
/// A final newline of `insert` is the end of its last line, not an empty line more.
pub(crate) fn insert_lines(
    text: &str,
    after: usize,
    insert: &str,
    ending: Ending,
) -> Result<NewText, Refusal> {
    let Some(at) = line_end(text, after) else {
        return Err(Refusal::LineOutOfRange { line: after, lines: count_lines(text) });
    };
    let insert = insert.strip_suffix('\n').unwrap_or(insert);
    let (before, rest) = text.split_at(at);
    let ended = text.is_empty() || text.ends_with('\n');
    let mut edited = String::with_capacity(text.len() + insert.len() + 2);
    edited.push_str(before);
    if !before.is_empty() && !before.ends_with('\n') {
        edited.push('\n');
    }
    edited.push_str(insert);
    // An empty line at the end shows only by its newline.
    if !rest.is_empty() || ended || insert.is_empty() || ending == Ending::Newline {
        edited.push('\n');
    }
    edited.push_str(rest);
    if ending == Ending::Newline && !edited.ends_with('\n') {
        edited.push('\n');
    }
    Ok(NewText { text: edited, line: after + 1 })
}

/// Returns the number of lines.
pub(crate) fn count_lines(text: &str) -> usize {
    let newlines = memchr_iter(b'\n', text.as_bytes()).count();
    if text.is_empty() || text.ends_with('\n') { newlines } else { newlines + 1 }
}

/// Returns where line `number` ends, its newline included; `None` if there are fewer lines.
fn line_end(text: &str, number: usize) -> Option<usize> {
    if number == 0 {
        return Some(0);
    }
    match nth_newline(text.as_bytes(), number) {
        Some(newline) => Some(newline + 1),
        None => (count_lines(text) == number).then_some(text.len()),
    }
}

/// Returns where a newline is, the first of them has the number 1; `None` if there are fewer.
///
/// Newlines are counted many times faster than found, so it is looked for only in the part that must have it.
pub(crate) fn nth_newline(text: &[u8], number: usize) -> Option<usize> {
    let mut left = number.checked_sub(1)?;
    for (part, bytes) in text.chunks(COUNTED_BYTES).enumerate() {
        let newlines = memchr_iter(b'\n', bytes).count();
        if left < newlines {
            return Some(part * COUNTED_BYTES + memchr_iter(b'\n', bytes).nth(left)?);
        }
        left -= newlines;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(text: &str, old: &str, new: &str) -> Result<String, Refusal> {
        replace_once(text, old, new).map(|edited| edited.text)
    }

    fn not_unique(lines: &[usize]) -> Result<String, Refusal> {
        Err(Refusal::OldNotUnique(Occurrences { lines: lines.to_vec(), more: false }))
    }

    #[test]
    fn replacing_is_literal() {
        assert_eq!(replaced("port 5433\n", "5433", "5434"), Ok("port 5434\n".to_owned()));
        assert_eq!(replaced("price X here", "X", "$& $$ $` \\1"), Ok("price $& $$ $` \\1 here".to_owned()));
        assert_eq!(replaced("a.c abc", "a.c", "x"), Ok("x abc".to_owned()));
        assert_eq!(replaced("one\r\ntwo\r\n", "one\r\ntwo", "1"), Ok("1\r\n".to_owned()));
        assert_eq!(replaced("gone", "gone", ""), Ok(String::new()));
        assert_eq!(replaced("für 日本", "日", "月"), Ok("für 月本".to_owned()));
    }

    #[test]
    fn what_is_not_exactly_once_is_refused() {
        assert_eq!(replaced("a", "", "x"), Err(Refusal::EmptyOld));
        assert_eq!(replaced("", "a", "x"), Err(Refusal::OldNotFound));
        assert_eq!(replaced("x\nab\nab ab\n", "ab", "c"), not_unique(&[2, 3, 3]));
        assert_eq!(replaced("aaa", "aa", "b"), not_unique(&[1, 1]), "overlapping");
        let many = replace_once(&"e\n".repeat(1000), "e", "x").expect_err("many");
        let Refusal::OldNotUnique(occurrences) = many else { panic!("{many:?}") };
        assert_eq!((occurrences.lines.len(), occurrences.more), (MAX_NAMED_OCCURRENCES, true));
    }

    #[test]
    fn the_changed_line_is_told() {
        assert_eq!(replace_once("a\nb\nc", "b\nc", "x").map(|edited| edited.line), Ok(2));
        assert_eq!(insert_lines("a\nb", 1, "x", Ending::Kept).map(|edited| edited.line), Ok(2));
    }

    #[test]
    fn inserting_makes_whole_lines() {
        use Ending::{Kept, Newline};
        let inserted = |text, after, insert, ending| {
            insert_lines(text, after, insert, ending).map(|edited| edited.text).expect("in range")
        };
        for (text, after, insert, kept, newline) in [
            ("line1\nline3", 1, "line2", "line1\nline2\nline3", "line1\nline2\nline3\n"),
            ("a\n", 0, "x", "x\na\n", "x\na\n"),
            ("a\n", 1, "x\n", "a\nx\n", "a\nx\n"),
            ("a", 1, "x", "a\nx", "a\nx\n"),
            ("a", 0, "x", "x\na", "x\na\n"),
            ("", 0, "x", "x\n", "x\n"),
            ("", 0, "", "\n", "\n"),
            ("a\nb\n", 1, "", "a\n\nb\n", "a\n\nb\n"),
            ("a\nb\n", 1, "x\n\n", "a\nx\n\nb\n", "a\nx\n\nb\n"),
            ("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n", "a\r\nx\r\nb\r\n"),
            ("\n", 1, "x", "\nx\n", "\nx\n"),
        ] {
            assert_eq!(inserted(text, after, insert, Kept), kept, "{text:?} {after} {insert:?}");
            assert_eq!(inserted(text, after, insert, Newline), newline, "{text:?} {after} {insert:?}");
        }
    }

    #[test]
    fn a_line_out_of_range_is_refused() {
        let refused = |text, after| insert_lines(text, after, "x", Ending::Kept).expect_err("out of range");
        assert_eq!(refused("", 1), Refusal::LineOutOfRange { line: 1, lines: 0 });
        assert_eq!(refused("a\nb\n", 3), Refusal::LineOutOfRange { line: 3, lines: 2 });
        assert_eq!(refused("a\nb", usize::MAX), Refusal::LineOutOfRange { line: usize::MAX, lines: 2 });
    }

    #[test]
    fn newlines_are_found_by_their_number() {
        let text: String = (0..3_000).map(|line| format!("{}\n", "x".repeat(line % 7))).collect();
        let expected: Vec<usize> = memchr_iter(b'\n', text.as_bytes()).collect();
        assert!(text.len() > 2 * COUNTED_BYTES);
        let found: Vec<usize> =
            (1..=3_000).filter_map(|number| nth_newline(text.as_bytes(), number)).collect();
        assert_eq!(found, expected);
        for (text, number) in [(text.as_bytes(), 0), (text.as_bytes(), 3_001), (b"", 1), (b"a", 1)] {
            assert_eq!(nth_newline(text, number), None, "{number}");
        }
    }

    proptest! {
        #[test]
        fn every_line_survives_an_insert(text in "[ab\n]{0,12}", insert in "[xy]{0,4}", after in 0_usize..14) {
            if let Ok(edited) = insert_lines(&text, after, &insert, Ending::Kept) {
                let mut lines: Vec<&str> = edited.text.lines().collect();
                prop_assert_eq!(lines.remove(after), insert.as_str());
                prop_assert_eq!(lines, text.lines().collect::<Vec<_>>());
            } else {
                prop_assert!(after > count_lines(&text));
            }
        }

        #[test]
        fn replacing_what_was_put_in_gives_the_old_text_back(head in "[ab\n]{0,9}", tail in "[ab\n]{0,9}") {
            let text = format!("{head}§old§{tail}");
            let there = replaced(&text, "§old§", "§new§").expect("once");
            prop_assert_eq!(replaced(&there, "§new§", "§old§").expect("once"), text);
        }
    }
}
