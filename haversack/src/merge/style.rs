//! How a text is written, apart from what it says: line endings, the form of its letters, the byte-order mark.
//!
//! Rules that look at what a text says merge it without these, and what comes out is written as the file was: a style that a
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

/// Whether a letter and its accent are one character or two.
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
    /// Reads a text; `None` if it is none.
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

/// Tells whether letters are written in the usual form.
fn is_composed(text: &str) -> bool {
    // Most of what is not ASCII has no other form: Latin letters, dashes and quotes, marks and arrows, Chinese.
    let has_one_form = |c: char| matches!(c, ..'\u{300}' | '\u{2010}'..='\u{2027}' | '\u{2500}'..='\u{27bf}' | '\u{4e00}'..='\u{9fff}');
    text.is_ascii() || text.chars().all(has_one_form) || is_nfc(text)
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
