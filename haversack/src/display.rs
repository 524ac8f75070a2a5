//! Makes text of other machines harmless before a person or a model reads it.
//!
//! Anyone who may write to a remote chooses the names of devices, agents and sessions, the causes of changes and the names of files. A terminal obeys
//! escape sequences in such a name, a newline in it looks like a line of ours, and a bidirectional override shows it in another order. So these
//! characters are shown as escapes: `\u{1b}`.
//!
//! | function | for | keeps | result |
//! |---|---|---|---|
//! | [`one_line`] | names and causes | nothing of the above | one line of at most [`MAX_CHARACTERS`] |
//! | [`lines`] | lines that we print | newlines, tabs | as long as the text |
//! | [`json`] | JSON that we print | newlines between values | the same JSON value |
//!
//! A [`Commit`](crate::log::Commit) has [`one_line`] applied when it is read, so code that shows one need not do it again.

use std::borrow::Cow;

/// The most characters of a name that are shown.
pub const MAX_CHARACTERS: usize = 200;

/// Returns a name in one line, without invisible characters and without characters that a terminal obeys.
///
/// A longer name is cut, and ends with `…`. What is harmless already stays as it is, so it does no harm to apply this twice.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let mut shown = escaped(text, |before, c, after| is_harmful(c) || is_unseen(before, c, after), escape);
    if let Some((end, _)) = shown.char_indices().nth(MAX_CHARACTERS - 1)
        && shown[end..].chars().nth(1).is_some()
    {
        shown = Cow::Owned(format!("{}…", &shown[..end]));
    }
    shown
}

/// Returns lines without characters that a terminal obeys; newlines and tabs stay.
///
/// Invisible characters that some languages need stay too: this is also applied to passages of the user's own text.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |_, c, after| is_harmful_in_lines(c, after), escape)
}

/// Returns JSON text that means the same and holds no character that a terminal obeys.
pub fn json(text: &str) -> Cow<'_, str> {
    let as_json = |c: char, to: &mut String| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            to.push_str(&format!("\\u{unit:04x}"));
        }
    };
    escaped(text, |_, c, after| is_harmful_in_lines(c, after), as_json)
}

/// Returns true if a character in a name is one that a terminal obeys, or that changes how the text around it is read.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn is_harmful_in_lines(c: char, after: Option<char>) -> bool {
    match c {
        '\n' | '\t' => false,
        // The end of a line, as some systems write it. Anywhere else it overwrites the line.
        '\r' => after != Some('\n'),
        _ => is_harmful(c),
    }
}

/// Returns true if a character in a name cannot be seen, so that two names look the same.
///
/// Joiners stay between letters that need them: some scripts and emoji are written with them, Latin is not.
fn is_unseen(before: Option<char>, c: char, after: Option<char>) -> bool {
    match c {
        '\u{200c}' | '\u{200d}' => {
            let needs =
                |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !matches!(c, '\u{200c}' | '\u{200d}'));
            !(needs(before) && needs(after))
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{180e}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}' => true,
        _ => false,
    }
}

fn escape(c: char, to: &mut String) {
    match c {
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        _ => to.extend(c.escape_unicode()),
    }
}

/// Returns a text with some of its characters escaped; borrowed if there are none.
fn escaped(
    text: &str,
    is_escaped: impl Fn(Option<char>, char, Option<char>) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    // Nearly every text is plain.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut shown: Option<String> = None;
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match (is_escaped(before, c, rest.peek().map(|(_, c)| *c)), &mut shown) {
            (true, shown) => escape(c, shown.get_or_insert_with(|| text[..at].to_owned())),
            (false, Some(shown)) => shown.push(c),
            (false, None) => {}
        }
        before = Some(c);
    }
    shown.map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_line_escapes_what_a_terminal_obeys() {
        for (text, shown) in [
            ("laptop", "laptop"),
            ("the desk, at home", "the desk, at home"),
            ("Büro 日本", "Büro 日本"),
            ("", ""),
            ("lap\ntop", "lap\\ntop"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{9b}b\u{7f}", "a\\u{9b}b\\u{7f}"),
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
            ("a\u{2028}b\u{feff}\u{e0041}", "a\\u{2028}b\\u{feff}\\u{e0041}"),
            // A joiner in Latin makes two names look the same; in Persian and in emoji it is needed.
            ("lap\u{200d}top", "lap\\u{200d}top"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("👩\u{200d}🚀", "👩\u{200d}🚀"),
        ] {
            assert_eq!(one_line(text), shown);
        }
        let long = one_line(&"x".repeat(MAX_CHARACTERS + 1)).into_owned();
        assert_eq!((long.chars().count(), long.ends_with("x…")), (MAX_CHARACTERS, true));
        assert_eq!(one_line(&"x".repeat(MAX_CHARACTERS)), "x".repeat(MAX_CHARACTERS));
    }

    #[test]
    fn lines_keep_newlines_and_tabs() {
        assert_eq!(lines("one\n\ttwo\r\nthree"), "one\n\ttwo\r\nthree");
        assert_eq!(lines("over\rwritten\u{1b}[2J\u{202e}"), "over\\rwritten\\u{1b}[2J\\u{202e}");
        assert_eq!(lines("שלום\u{200f}!"), "שלום\u{200f}!");
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{9b}\u{e0041}\u{1b}\n", "list": [1, "ü"] });
        let shown = json(&format!("{value:#}")).into_owned();
        assert!(!shown.contains(|c| is_harmful(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    proptest! {
        #[test]
        fn one_line_is_bounded_harmless_and_stable(text in any::<String>()) {
            let once = one_line(&text).into_owned();
            prop_assert!(once.chars().count() <= MAX_CHARACTERS);
            prop_assert!(!once.contains(is_harmful));
            prop_assert_eq!(one_line(&once), once.clone());
        }
    }
}
