//! Shows the part of a passage that has the words of a query. Pure.

use std::collections::HashSet;
use std::ops::Range;

use crate::query::Word;
use crate::text::tokens::{Side, each, term};

/// The most characters of a passage that are shown.
const MAX_CHARACTERS: usize = 280;

/// The number of characters of a long line that are shown before the first word of the query.
const BEFORE: usize = 60;

/// A part of a passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The first and the last line, from 1.
    pub(crate) lines: (usize, usize),
    pub(crate) text: String,
}

/// Returns the part of some lines of a text that has the most words of a query.
pub(crate) fn show(text: &str, lines: (usize, usize), words: &[Word]) -> Shown {
    let (first, last) = lines;
    let lines: Vec<&str> =
        text.lines().skip(first.saturating_sub(1)).take(last.saturating_sub(first) + 1).collect();
    let count = |line: &&str| {
        let terms = terms_of(line);
        words.iter().filter(|word| word.terms.iter().any(|(term, _)| terms.contains(term))).count()
    };
    let counts: Vec<usize> = lines.iter().map(count).collect();
    // The first of the best lines; without any, the first line.
    let best = (0..lines.len()).max_by_key(|at| (counts[*at], usize::MAX - at)).unwrap_or_default();
    let mut shown = String::new();
    let mut end = best;
    for (at, line) in lines.iter().enumerate().skip(best) {
        if !shown.is_empty() && shown.chars().count() + line.chars().count() > MAX_CHARACTERS {
            break;
        }
        end = at;
        if !line.trim().is_empty() {
            shown.push_str(if shown.is_empty() { "" } else { "\n" });
            shown.push_str(line.trim_end());
        }
    }
    Shown { lines: (first + best, first + end), text: shortened(&shown, words) }
}

/// Cuts a text to the longest that is shown, around the first word of the query.
fn shortened(text: &str, words: &[Word]) -> String {
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_owned();
    }
    let start = spans(text, words)
        .first()
        .map_or(0, |span| text[..span.start].chars().count().saturating_sub(BEFORE));
    let part: String = text.chars().skip(start).take(MAX_CHARACTERS).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if text.chars().count() > start + MAX_CHARACTERS { "…" } else { "" };
    format!("{before}{part}{after}")
}

/// Returns where the words of a query are in a text, in its order.
pub(crate) fn spans(text: &str, words: &[Word]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let terms = terms_of(&text[from..at]);
                if words.iter().any(|word| word.terms.iter().any(|(term, _)| terms.contains(term))) {
                    spans.push(from..at);
                }
                start = None;
            }
            _ => {}
        }
    }
    spans
}

/// Returns the words of a query that are in a text as they are written, by their places in the query.
pub(crate) fn written(text: &str, words: &[Word]) -> HashSet<usize> {
    let mut there = HashSet::new();
    each(text, Side::Memory, |word| {
        there.insert(word.to_owned());
    });
    words.iter().enumerate().filter(|(_, word)| there.contains(&word.word)).map(|(at, _)| at).collect()
}

fn terms_of(text: &str) -> HashSet<String> {
    let mut terms = HashSet::new();
    each(text, Side::Memory, |word| {
        terms.insert(term(word));
    });
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Words;
    use jiff::civil::date;

    fn words(query: &str) -> Vec<Word> {
        Words::of(query, date(2026, 11, 18)).words
    }

    #[test]
    fn best_line_is_shown() {
        let text = "# Lamp\n\nTurns.\nThe lamp turns at night.\nAlways.\n";
        let shown = show(text, (3, 5), &words("lamp turning"));
        assert_eq!(shown, Shown { lines: (4, 5), text: "The lamp turns at night.\nAlways.".to_owned() });
        assert_eq!(show(text, (3, 5), &words("submarine")).lines, (3, 5));
        assert_eq!(
            show(text, (9, 12), &words("lamp")),
            Shown { lines: (9, 9), text: String::new() },
            "the file became shorter"
        );
    }

    #[test]
    fn long_line_is_cut_around_the_word() {
        let text = format!("{} lamp {}", "é".repeat(1000), "z ".repeat(1000));
        let shown = show(&text, (1, 1), &words("lamp"));
        assert!(
            shown.text.starts_with('…') && shown.text.ends_with('…') && shown.text.contains(" lamp "),
            "{}",
            shown.text
        );
        assert!(shown.text.chars().count() <= MAX_CHARACTERS + 2);
    }

    #[test]
    fn words_are_found_where_they_stand() {
        let text = "Deploys: the DEPLOYMENT of staging-env";
        let found: Vec<&str> =
            spans(text, &words("deploy stage")).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found, ["Deploys", "DEPLOYMENT", "staging"]);
        assert_eq!(written("the deploys", &words("deploy deploys lamp")), HashSet::new());
        assert_eq!(written("the Lamp", &words("lamp turns")), HashSet::from([0]));
    }
}
