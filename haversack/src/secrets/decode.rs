//! Rewrites encoded and disguised parts of a content as plain text, so that the rules can be tried on them too.
//!
//! 1. [`edits`] finds escapes (`\_`, `\u005f`, `\x5f`, `%5F`, `&#95;`), invisible characters, line continuations and joined strings
//!    (`"a" + "b"`). [`DecodedText::rewrite`] copies the text around them with each one resolved.
//! 2. [`DecodedText::decode_runs`] finds long runs of base64 or hexadecimal digits and adds the text that they encode, if it is text.
//! 3. Each byte of the result knows which bytes of the content it was made from, so that a finding has the line of its source.
//!
//! For example, `use ghp\_1a2b` becomes `use ghp_1a2b`, and `cGFzc3dvcmQ6…` becomes `password: …`.
//!
//! Encoded text inside of encoded text is not decoded again. The result is at most about as long as the content, so the time stays linear.

use std::ops::Range;

use memchr::{memchr_iter, memchr3_iter};

/// The text that encoded parts of a content stand for.
#[derive(Default)]
pub(super) struct DecodedText {
    /// The text; two line ends part what comes from different places.
    pub(super) text: Vec<u8>,
    /// The origins of the parts of the text, in the order of the text.
    pieces: Vec<Piece>,
}

/// A part of a decoded text, up to where the next one begins.
struct Piece {
    /// Its start in the text.
    start: usize,
    /// The bytes of the content that it comes from.
    source: Range<usize>,
    /// True if it is a copy of these bytes.
    is_copy: bool,
}

/// Resolves one escape or separator.
struct Edit {
    /// The bytes of the content that are replaced.
    source: Range<usize>,
    /// The byte that they encode, if any.
    byte: Option<u8>,
}

/// The number of bytes copied before and after an edit; a rule looks at 256.
const CONTEXT_BYTES: usize = 384;

/// The fewest digits that are decoded: shorter ones are words and names.
const MIN_RUN_DIGITS: usize = 24;

/// The fewest hexadecimal digits that are decoded: 16 bytes.
const MIN_HEX_DIGITS: usize = 32;

/// The shortest line that may be one of several that were broken at a fixed width.
const MIN_LINE_DIGITS: usize = 60;

/// The number of digits that are decoded first, to check that a run is text.
const FIRST_DIGITS: usize = 12;

/// The most spaces and line ends between two strings that are joined.
const MAX_GAP_BYTES: usize = 64;

/// Decodes what can be decoded in a content.
pub(super) fn decoded(content: &[u8]) -> DecodedText {
    let mut decoded = DecodedText::default();
    decoded.rewrite(content, &edits(content));
    decoded.decode_runs(content);
    decoded
}

impl DecodedText {
    /// Returns the bytes of the content that a part of the text was made from.
    pub(super) fn source(&self, part: &Range<usize>) -> Range<usize> {
        let piece = |at: usize| {
            let after = self.pieces.partition_point(|piece| piece.start <= at);
            &self.pieces[after.saturating_sub(1)]
        };
        let (first, last) = (piece(part.start), piece(part.end.saturating_sub(1)));
        let start = match first.is_copy {
            true => first.source.start + (part.start - first.start),
            false => first.source.start,
        };
        let end = match last.is_copy {
            true => (last.source.start + (part.end - last.start)).min(last.source.end),
            false => last.source.end,
        };
        start..end.max(start)
    }

    /// Adds what comes from some bytes of the content.
    fn push(&mut self, text: &[u8], source: Range<usize>, is_copy: bool) {
        if !text.is_empty() {
            self.pieces.push(Piece { start: self.text.len(), source, is_copy });
            self.text.extend_from_slice(text);
        }
    }

    fn copy(&mut self, content: &[u8], source: Range<usize>) {
        self.push(&content[source.clone()], source, true);
    }

    /// Parts what comes next from what came before.
    fn part(&mut self, at: usize) {
        self.push(b"\n\n", at..at, false);
    }

    /// Copies the text around edits, with the edits applied.
    fn rewrite(&mut self, content: &[u8], edits: &[Edit]) {
        // Up to where the content was copied.
        let mut copied = 0;
        for (number, edit) in edits.iter().enumerate() {
            let follows = number > 0 && edit.source.start < copied + CONTEXT_BYTES;
            if !follows {
                if number > 0 {
                    self.copy(content, copied..end_of_context(content, copied));
                    self.part(copied);
                }
                copied = start_of_context(content, edit.source.start).max(copied);
            }
            self.copy(content, copied..edit.source.start);
            self.push(edit.byte.as_slice(), edit.source.clone(), false);
            copied = edit.source.end;
        }
        if !edits.is_empty() {
            self.copy(content, copied..end_of_context(content, copied));
            self.part(copied);
        }
    }

    /// Adds the text that long runs of digits encode.
    fn decode_runs(&mut self, content: &[u8]) {
        // No run begins before this place and ends after it.
        let mut at = 0;
        // A run that begins here reaches over all these bytes, so most bytes of ordinary text are never looked at.
        while let Some(ahead) = content.get(at..at + MIN_RUN_DIGITS) {
            if let Some(before) = ahead.iter().rposition(|byte| !is_digit(byte)) {
                at += before + 1;
                continue;
            }
            let after = &content[at + MIN_RUN_DIGITS..];
            let length = after.iter().position(|byte| !is_digit(byte)).unwrap_or(after.len());
            let end = at + MIN_RUN_DIGITS + length;
            at = self.decode_run(content, at..end).max(end) + 1;
        }
    }

    /// Adds the text that a run encodes, if it is text. Returns where the run ends, with all its lines.
    fn decode_run(&mut self, content: &[u8], run: Range<usize>) -> usize {
        let hex = match &content[run.clone()] {
            [b'0', b'x' | b'X', hex @ ..] => hex,
            hex => hex,
        };
        let is_hex = hex.len() >= MIN_HEX_DIGITS && hex.len().is_multiple_of(2) && begins_as_hex_text(hex);
        if is_hex && let Some(text) = from_hex(hex).as_deref().and_then(text_of) {
            self.push(text, run.clone(), false);
            self.part(run.end);
            return run.end;
        }
        let marks = content[run.clone()].iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let start = run.start + marks;
        if !begins_as_base64_text(&content[start..run.end]) {
            return run.end;
        }
        let (digits, end) = joined_lines(content, start..run.end);
        let decoded = from_base64(&digits);
        let Some(text) = text_of(&decoded) else { return end };
        if text.iter().all(u8::is_ascii_digit) {
            // A Discord token begins with the number of its bot. No word announces it, so we give it one.
            if let Some(token) = discord_token(content, start..end) {
                self.push(b"discord token: ", token.start..token.start, false);
                self.copy(content, token);
            }
        } else if is_wide(&decoded) {
            let narrow: Vec<u8> = decoded.iter().step_by(2).copied().collect();
            self.push(&narrow, start..end, false);
        } else {
            self.push(text, start..end, false);
        }
        self.part(end);
        end
    }
}

/// Returns where to begin copying before an edit: not in the middle of a word.
fn start_of_context(content: &[u8], edit: usize) -> usize {
    let start = edit.saturating_sub(CONTEXT_BYTES);
    match content[start..edit].iter().position(u8::is_ascii_whitespace) {
        Some(before) if start > 0 => start + before,
        _ => start,
    }
}

/// Returns where to end copying after an edit: not in the middle of a word.
fn end_of_context(content: &[u8], edit: usize) -> usize {
    let end = content.len().min(edit + CONTEXT_BYTES);
    match content[edit..end].iter().rposition(u8::is_ascii_whitespace) {
        Some(length) if end < content.len() => edit + length,
        _ => end,
    }
}

/// Finds escapes and separators, in the order of the content.
fn edits(content: &[u8]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut add = |edit: Option<Edit>, until: &mut usize| {
        if let Some(edit) = edit {
            *until = edit.source.end;
            edits.push(edit);
        }
    };
    let mut until = 0;
    for at in memchr3_iter(b'\\', b'%', b'&', content) {
        if at >= until {
            let edit = match content[at] {
                b'\\' => backslash(content, at),
                b'%' => percent(content, at),
                _ => reference(content, at),
            };
            add(edit, &mut until);
        }
    }
    // Lead bytes of invisible characters and of full-width letters.
    for at in memchr3_iter(0xc2, 0xe2, 0xef, content) {
        add(invisible_or_wide(content, at), &mut until);
    }
    until = 0;
    for at in memchr_iter(b'+', content) {
        if at >= until {
            add(joint(content, at), &mut until);
        }
    }
    edits.sort_by_key(|edit| edit.source.start);
    // A string that is joined may end with an escape: then the first edit counts.
    let mut end = 0;
    edits.retain(|edit| {
        let is_free = edit.source.start >= end;
        end = end.max(edit.source.end);
        is_free
    });
    edits
}

/// Resolves a backslash: an escape of JSON or of a program, of Markdown, or a line that goes on.
fn backslash(content: &[u8], at: usize) -> Option<Edit> {
    // JSON inside of JSON has two or more.
    let slashes = content[at..].iter().take(4).take_while(|byte| **byte == b'\\').count();
    let after = &content[at + slashes..];
    let edit = |length: usize, byte| Some(Edit { source: at..at + slashes + length, byte });
    match *after {
        [b'u', b'0', b'0', high, low, ..] => edit(5, Some(printable(high, low)?)),
        [b'x', high, low, ..] => edit(3, Some(printable(high, low)?)),
        [b'\n', ..] | [b'\r', b'\n', ..] if slashes == 1 => {
            let is_gap = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            edit(after.iter().take(MAX_GAP_BYTES).take_while(is_gap).count(), None)
        }
        [b'_' | b'-' | b'.' | b'*' | b'~' | b'#' | b'!' | b'+' | b'=' | b'/' | b':' | b'@' | b'$', ..]
            if slashes == 1 =>
        {
            edit(0, None)
        }
        _ => None,
    }
}

/// Resolves a byte that is encoded for an address, once or twice.
fn percent(content: &[u8], at: usize) -> Option<Edit> {
    let edit = |length: usize, byte| Some(Edit { source: at..at + length, byte: Some(byte) });
    match content[at + 1..] {
        [b'2', b'5', high, low, ..] if printable(high, low).is_some() => edit(5, printable(high, low)?),
        [high, low, ..] => edit(3, printable(high, low)?),
        _ => None,
    }
}

/// The longest character reference that is resolved.
const MAX_REFERENCE_BYTES: usize = 10;

/// Resolves a character reference of HTML.
fn reference(content: &[u8], at: usize) -> Option<Edit> {
    let after = &content[at + 1..content.len().min(at + MAX_REFERENCE_BYTES)];
    let length = after.iter().position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&after[..length]).ok()?;
    let byte = match name {
        "lowbar" => b'_',
        "colon" => b':',
        "sol" => b'/',
        "commat" => b'@',
        "equals" => b'=',
        "period" => b'.',
        "dash" | "hyphen" => b'-',
        name => {
            let number = name.strip_prefix('#')?;
            match number.strip_prefix(['x', 'X']) {
                Some(hex) => u8::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            }
        }
    };
    is_printable(byte).then_some(Edit { source: at..at + 1 + length + 1, byte: Some(byte) })
}

/// Removes an invisible character, and makes a full-width letter a narrow one.
fn invisible_or_wide(content: &[u8], at: usize) -> Option<Edit> {
    let (length, byte) = match content[at..] {
        // Soft hyphen.
        [0xc2, 0xad, ..] => (2, None),
        // Zero-width space, joiners and marks of direction; word joiner; byte order mark.
        [0xe2, 0x80, 0x8b..=0x8f, ..] | [0xe2, 0x81, 0xa0, ..] => (3, None),
        [0xef, 0xbb, 0xbf, ..] if at > 0 => (3, None),
        [0xef, 0xbc, low @ 0x90..=0xbf, ..] => (3, Some(low - 0x60)),
        [0xef, 0xbd, low @ 0x81..=0x9a, ..] => (3, Some(low - 0x20)),
        _ => return None,
    };
    // Wide punctuation is part of many texts.
    let is_wanted = byte.is_none_or(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_wanted.then_some(Edit { source: at..at + length, byte })
}

/// Joins two strings that are added: from the quote that ends the first to the quote that begins the second.
fn joint(content: &[u8], at: usize) -> Option<Edit> {
    let is_gap = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let before = content[..at].iter().rev().take(MAX_GAP_BYTES).take_while(is_gap).count();
    let after = content[at + 1..].iter().take(MAX_GAP_BYTES).take_while(is_gap).count();
    let first = at.checked_sub(before + 1)?;
    let second = at + 1 + after;
    let is_quote = |at: usize| content.get(at).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    (is_quote(first) && is_quote(second)).then_some(Edit { source: first..second + 1, byte: None })
}

/// Returns the printable character that two hexadecimal digits stand for.
fn printable(high: u8, low: u8) -> Option<u8> {
    let byte = nibble(high)? << 4 | nibble(low)?;
    is_printable(byte).then_some(byte)
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn is_text(byte: u8) -> bool {
    is_printable(byte) || matches!(byte, b'\n' | b'\r' | b'\t')
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// True for each byte that is a digit of base64, of either alphabet.
const IS_DIGIT: [bool; 256] = {
    let mut is_digit = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        is_digit[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    is_digit
};

fn is_digit(byte: &u8) -> bool {
    IS_DIGIT[usize::from(*byte)]
}

/// True if the first bytes that hexadecimal digits stand for are text.
fn begins_as_hex_text(digits: &[u8]) -> bool {
    digits.chunks_exact(2).take(FIRST_DIGITS / 2).all(|pair| {
        matches!((nibble(pair[0]), nibble(pair[1])), (Some(high), Some(low)) if is_text(high << 4 | low))
    })
}

/// True if the first bytes that digits of base64 stand for are text.
fn begins_as_base64_text(digits: &[u8]) -> bool {
    let Some(first) = digits.first_chunk::<FIRST_DIGITS>() else { return false };
    // The first bit of the first byte is not set. Most names and hashes end here.
    if value(first[0]) >= 32 {
        return false;
    }
    let mut bytes = [0; FIRST_DIGITS / 4 * 3];
    for (group, bytes) in first.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
        let bits = group.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(value(*digit)));
        bytes.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    text_of(&bytes).is_some()
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    digits.chunks_exact(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

/// Returns the six bits that a digit of base64 stands for, in either alphabet.
fn value(digit: u8) -> u8 {
    match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    }
}

/// Decodes base64 of either alphabet; digits that do not make a whole byte are left out.
pub(super) fn from_base64(digits: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(value(*digit)));
        let [_, first, second, third] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        bytes.extend_from_slice(&[first, second, third][..group.len() - 1]);
    }
    bytes
}

/// Returns the text that decoded bytes begin with, if they begin with text.
pub(super) fn text_of(decoded: &[u8]) -> Option<&[u8]> {
    // A text may have other letters later on, but those that hold secrets begin with plain ones.
    let least = decoded.len().min(8);
    if is_wide(decoded) {
        return Some(decoded);
    }
    if least == 0 || !decoded[..least].iter().all(|byte| is_text(*byte)) {
        return None;
    }
    let length = decoded.iter().take_while(|byte| is_text(**byte) || **byte >= 0x80).count();
    Some(&decoded[..length])
}

/// True if decoded bytes are text in UTF-16.
fn is_wide(decoded: &[u8]) -> bool {
    let pairs = || decoded.chunks_exact(2).take(4);
    decoded.len() >= 8 && pairs().all(|pair| is_printable(pair[0]) && pair[1] == 0)
}

/// Returns the digits of a run and of the lines after it that go on with it, and where they end.
///
/// All lines but the last are as long as the first, and what follows a line is text too.
fn joined_lines(content: &[u8], run: Range<usize>) -> (Vec<u8>, usize) {
    let mut digits = content[run.clone()].to_vec();
    let mut end = run.end;
    if run.len() < MIN_LINE_DIGITS || !run.len().is_multiple_of(4) {
        return (digits, end);
    }
    loop {
        let after = &content[end..];
        let line_end = match after {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => break,
        };
        let is_indent = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let gap = line_end + after[line_end..].iter().take(MAX_GAP_BYTES).take_while(is_indent).count();
        let line = &after[gap..];
        let length = line.iter().take(run.len() + 1).take_while(|byte| is_digit(byte)).count();
        let begins = from_base64(&line[..length.min(FIRST_DIGITS)]);
        if length > run.len() || text_of(&begins).is_none() {
            break;
        }
        digits.extend_from_slice(&line[..length]);
        end += gap + length;
        if length < run.len() {
            break;
        }
    }
    (digits, end)
}

/// Returns the Discord token that begins with a run: the run, six letters or digits, and the signature.
fn discord_token(content: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let part = |start: usize| {
        content.get(start..).map_or(0, |rest| rest.iter().take(64).take_while(is_letter).count())
    };
    let is_dot = |at: usize| content.get(at) == Some(&b'.');
    let middle = run.end + 1;
    if !is_dot(run.end) || part(middle) != 6 || !is_dot(middle + 6) {
        return None;
    }
    let last = middle + 7;
    let length = part(last);
    (length >= 27).then_some(run.start..last + length)
}
