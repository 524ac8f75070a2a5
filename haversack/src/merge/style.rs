//! The style of a text, apart from its content: line endings, composed or decomposed letters, the byte-order mark.
//!
//! Rules that parse a text merge it without its style, and the result is written in the file's style: a style that a
//! side changed is the new one.

use std::borrow::Cow;

use haversack_store::Bytes;
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfd};

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    has_mark: bool,
    endings: Endings,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Endings {
    Newline,
    ReturnNewline,
}

/// Tells if a letter and its accent are one character or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Composed,
    Decomposed,
}

/// A text apart from how it is written.
pub(super) struct Plain<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) style: Style,
}

impl<'a> Plain<'a> {
    /// Reads a text; `None` if the bytes are not a text.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Plain<'a>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (has_mark, text) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let with_return = memchr::memmem::find_iter(text.as_bytes(), b"\r\n").count();
        let is_cut = text.ends_with('\r');
        // A return on its own may become part of an ending when something is put behind it.
        if memchr::memchr_iter(b'\r', text.as_bytes()).count() > with_return + usize::from(is_cut) {
            return None;
        }
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let endings =
            if with_return > newlines - with_return { Endings::ReturnNewline } else { Endings::Newline };
        let mut text = Cow::Borrowed(text);
        if with_return > 0 {
            text = Cow::Owned(text.replace("\r\n", "\n"));
        }
        if is_cut {
            text = Cow::Owned(format!("{}\n", text.trim_end_matches('\r')));
        }
        let mut form = Form::Composed;
        if !is_composed(&text) {
            form = if is_nfd(&text) { Form::Decomposed } else { Form::Composed };
            text = Cow::Owned(text.nfc().collect());
        }
        Some(Plain { text, style: Style { has_mark, endings, form } })
    }
}

/// Returns true if letters are in the usual form.
fn is_composed(text: &str) -> bool {
    // Most characters beyond ASCII have only one form: Latin letters, dashes and quotes, marks and arrows, Chinese.
    let has_one_form = |c: char| matches!(c, ..FIRST_MARK | '\u{2010}'..='\u{2027}' | '\u{2500}'..='\u{27bf}' | '\u{4e00}'..='\u{9fff}');
    let mut at = 0;
    while let Some(next) = first_beyond_latin(&text.as_bytes()[at..]) {
        at += next;
        match text[at..].chars().next() {
            Some(c) if has_one_form(c) => at += c.len_utf8(),
            _ => return is_nfc(text),
        }
    }
    true
}

/// The first character that is put on another.
const FIRST_MARK: char = '\u{300}';

/// Returns where the first character from [`FIRST_MARK`] on begins: no byte of those before it is as large as its first one.
fn first_beyond_latin(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 256;
    const FIRST: u8 = 0xcc;
    // Whole blocks are looked through at the speed of memory, and most files have no such character.
    let mut blocks = bytes.chunks(BLOCK).enumerate();
    let (number, block) = blocks.find(|(_, block)| block.iter().copied().fold(0, u8::max) >= FIRST)?;
    block.iter().position(|byte| *byte >= FIRST).map(|at| number * BLOCK + at)
}

impl Style {
    /// Returns the style of a merge; without a base the plainer one.
    pub(super) fn merged(base: Option<Style>, first: Style, second: Style) -> Style {
        Style {
            has_mark: three(base.map(|base| base.has_mark), first.has_mark, second.has_mark),
            endings: three(base.map(|base| base.endings), first.endings, second.endings),
            form: three(base.map(|base| base.form), first.form, second.form),
        }
    }

    /// Writes a text in this style.
    pub(super) fn write(self, mut text: String) -> Bytes {
        if self.form == Form::Decomposed {
            text = text.nfd().collect();
        }
        if self.endings == Endings::ReturnNewline {
            text = text.replace('\n', "\r\n");
        }
        if self.has_mark {
            text.insert(0, '\u{feff}');
        }
        Bytes::from(text)
    }
}

fn three<T: Ord>(base: Option<T>, first: T, second: T) -> T {
    match base {
        Some(base) if base == first => second,
        Some(base) if base == second => first,
        _ => first.min(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_form_is_found_wherever_it_is() {
        for letter in [
            'a',
            'ü',
            '\u{2ff}',
            '—',
            '→',
            '灯',
            '\u{300}',
            '\u{308}',
            'ά',
            '\u{212b}',
            '\u{1d15e}',
            '\u{ac00}',
            '\u{f900}',
        ] {
            for at in [0, 1, 2, 254, 255, 256, 257, 700] {
                let text = format!("{}u{letter} — and ü{}", "x".repeat(at), "→".repeat(300));
                assert_eq!(is_composed(&text), is_nfc(&text), "{letter:?} at {at}");
            }
        }
    }
}
