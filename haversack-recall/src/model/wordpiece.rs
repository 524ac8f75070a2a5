//! Cuts a text into the pieces of words that the model knows. Pure.
//!
//! 1. Control characters are dropped, accents are taken off, and letters become small.
//! 2. A word ends at white space. Each punctuation mark and each Chinese character is a word of its own.
//! 3. A word becomes the longest pieces of the vocabulary from left to right: "beacons" is `beacon`, `##s`. A word that has no such pieces is `[UNK]`.
//!
//! The pieces are those of the `BertTokenizer` with which the model was trained; tests compare the numbers.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Longer words are not looked up.
const MAX_WORD_CHARACTERS: usize = 100;

const UNKNOWN: &str = "[UNK]";
const START: &str = "[CLS]";
const END: &str = "[SEP]";

/// The pieces that the model knows, by their spelling.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    pieces: HashMap<String, u32>,
    unknown: u32,
    start: u32,
    end: u32,
}

impl Vocabulary {
    /// Reads a vocabulary: a piece in each line. `None` if it lacks a piece that every text needs.
    pub(crate) fn read(text: &str) -> Option<Vocabulary> {
        let pieces: HashMap<String, u32> = text.lines().map(str::to_owned).zip(0..).collect();
        let piece = |name: &str| pieces.get(name).copied();
        let (unknown, start, end) = (piece(UNKNOWN)?, piece(START)?, piece(END)?);
        Some(Vocabulary { pieces, unknown, start, end })
    }

    /// Returns how many pieces there are.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the numbers of a text's pieces, with the marks of its start and end; `most` at most.
    pub(crate) fn pieces(&self, text: &str, most: usize) -> Vec<u32> {
        let mut found = vec![self.start];
        let mut word = String::new();
        // Stop at the last piece: the rest of the text is not needed.
        for c in text.nfd() {
            if found.len() >= most {
                break;
            }
            if is_dropped(c) || is_combining_mark(c) {
                continue;
            }
            let is_alone = is_punctuation(c) || is_chinese(c);
            if c.is_whitespace() || is_alone {
                self.add(&word, &mut found);
                word.clear();
                if is_alone {
                    self.add(c.encode_utf8(&mut [0; 4]), &mut found);
                }
            } else {
                word.extend(c.to_lowercase());
            }
        }
        self.add(&word, &mut found);
        found.truncate(most.saturating_sub(1));
        found.push(self.end);
        found
    }

    /// Appends the pieces of a word.
    fn add(&self, word: &str, found: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        if word.chars().count() > MAX_WORD_CHARACTERS {
            found.push(self.unknown);
            return;
        }
        let before = found.len();
        let mut start = 0;
        let mut candidate = String::new();
        while start < word.len() {
            let longest = word[start..].char_indices().rev().find_map(|(at, c)| {
                let end = start + at + c.len_utf8();
                candidate.clear();
                candidate.push_str(if start > 0 { "##" } else { "" });
                candidate.push_str(&word[start..end]);
                Some((*self.pieces.get(&candidate)?, end))
            });
            let Some((piece, end)) = longest else {
                found.truncate(before);
                found.push(self.unknown);
                return;
            };
            found.push(piece);
            start = end;
        }
    }
}

/// Returns true if a character is no part of a text: control characters and marks without width.
fn is_dropped(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffd}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}'
    );
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || is_format
}

/// Returns true if a character is punctuation, as Unicode and the model's authors have it.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(
            c,
            '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{37e}' | '\u{387}' | '\u{55a}'..='\u{55f}' | '\u{589}' | '\u{58a}' | '\u{5be}' | '\u{5c0}'
                | '\u{5c3}' | '\u{5c6}' | '\u{5f3}' | '\u{5f4}' | '\u{609}' | '\u{60a}' | '\u{60c}' | '\u{60d}' | '\u{61b}' | '\u{61d}'..='\u{61f}'
                | '\u{66a}'..='\u{66d}' | '\u{6d4}' | '\u{964}' | '\u{965}' | '\u{970}' | '\u{e4f}' | '\u{e5a}' | '\u{e5b}' | '\u{2010}'..='\u{2027}'
                | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}' | '\u{207d}' | '\u{207e}' | '\u{208d}' | '\u{208e}'
                | '\u{2308}'..='\u{230b}' | '\u{2329}' | '\u{232a}' | '\u{2768}'..='\u{2775}' | '\u{27e6}'..='\u{27ef}' | '\u{2e00}'..='\u{2e4f}'
                | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{3030}' | '\u{303d}' | '\u{30a0}' | '\u{30fb}'
                | '\u{fe10}'..='\u{fe19}' | '\u{fe30}'..='\u{fe52}' | '\u{fe54}'..='\u{fe61}' | '\u{fe63}' | '\u{fe68}' | '\u{fe6a}' | '\u{fe6b}'
                | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' | '\u{ff20}'
                | '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}' | '\u{ff5f}'..='\u{ff65}'
        )
}

/// Returns true if a character is Chinese, each of which the model reads alone.
fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2ceaf}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        Vocabulary::read("[PAD]\n[UNK]\n[CLS]\n[SEP]\nbeacon\n##s\nthe\n.\ncafe\n灯\n##.\nso\n##so")
            .expect("it has all")
    }

    #[test]
    fn words_become_their_longest_pieces() {
        let vocabulary = vocabulary();
        assert_eq!(vocabulary.pieces("The  Beacons.", 10), [2, 6, 4, 5, 7, 3]);
        assert_eq!(vocabulary.pieces("Café caf\u{e9}s", 10), [2, 8, 8, 5, 3]);
        assert_eq!(vocabulary.pieces("灯灯the\u{200b}", 10), [2, 9, 9, 6, 3]);
        assert_eq!(vocabulary.pieces("sos soso beaconx", 10), [2, 11, 5, 11, 12, 1, 3]);
        assert_eq!(vocabulary.pieces("", 10), [2, 3]);
    }

    #[test]
    fn long_texts_and_words_are_cut() {
        let vocabulary = vocabulary();
        assert_eq!(vocabulary.pieces(&"the ".repeat(100_000), 4), [2, 6, 6, 3]);
        assert_eq!(vocabulary.pieces(&"s".repeat(200), 4), [2, 1, 3]);
        assert!(Vocabulary::read("the\n").is_none());
    }
}
