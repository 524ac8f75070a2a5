//! A memory file: the fields at its top, and its text.
//!
//! Everything here is a view of the bytes: put together again, a [`Document`] is the text it was read from, whatever its line
//! endings, the order of its fields, its comments and its odd spellings (`reading_changes_nothing`).
//!
//! The frontmatter is read by lines, not by a YAML library. What is needed of it is little: which fields there are, which lines
//! belong to each, what a plain value says, and the one level below `metadata`, where Claude Code puts every field that it does not
//! know. An untouched line must never come out differently, but a library that parses and prints does
//! just that. So a field keeps its lines verbatim, and whatever is below it is not looked into.
//!
//! Reading is bounded ([`MAX_FRONTMATTER_BYTES`], [`MAX_DEPTH`]) and knows no anchors, aliases or tags, by which a small YAML text
//! becomes a large value. A frontmatter that has any of this, or a field twice, is none: the file is plain text
//! (`unparsed_frontmatter_is_plain_text`).

mod frontmatter;
mod value;

use std::fmt;

pub use self::frontmatter::{Entry, Field, Frontmatter};
pub(crate) use self::frontmatter::{RuledText, begins_with_rule};
pub use self::value::Value;
pub(crate) use self::value::{ListItem, list_items};

/// The most bytes of a frontmatter, including its rules.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;

/// How deeply the values of a frontmatter can be nested.
pub const MAX_DEPTH: usize = 16;

/// The field below which Claude Code puts what it does not know.
pub const METADATA: &str = "metadata";

/// A text as it is in a memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// The byte-order mark, if the text begins with one.
    pub mark: &'a str,
    /// The fields between two rules at the top.
    pub frontmatter: Option<Frontmatter<'a>>,
    /// Everything below.
    pub body: &'a str,
}

impl<'a> Document<'a> {
    /// Reads a text; one without a frontmatter that is understood is all body.
    pub fn read(text: &'a str) -> Document<'a> {
        let (mark, rest) = split_mark(text);
        match Frontmatter::read(rest) {
            Some((frontmatter, body)) => Document { mark, frontmatter: Some(frontmatter), body },
            None => Document { mark, frontmatter: None, body: rest },
        }
    }

    /// Returns a field at the top level or below `metadata`.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let named = |entries: &[Entry<'a>], name: &str| {
            entries.iter().filter_map(Entry::field).find(|field| field.name == name).cloned()
        };
        let fields = &self.frontmatter.as_ref()?.entries;
        named(fields, name).or_else(|| named(&named(fields, METADATA)?.children()?, name))
    }

    /// Returns the value of a field at the top level or below `metadata`.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.field(name).map(|field| field.value())
    }

    /// Returns the value of a field if it is one plain text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Other => None,
        }
    }
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mark)?;
        if let Some(frontmatter) = &self.frontmatter {
            write!(f, "{frontmatter}")?;
        }
        f.write_str(self.body)
    }
}

/// Returns the part of a text below its frontmatter, even if we cannot read the fields; all of a text without frontmatter.
pub fn body_of(text: &str) -> &str {
    RuledText::split(split_mark(text).1).map_or(text, |ruled| ruled.body)
}

/// Splits the byte-order mark from a text.
fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// Returns a text of one line as a value of the frontmatter, quoted where YAML would misread it.
pub fn scalar(text: &str) -> String {
    let is_word = ["true", "false", "null", "yes", "no", "on", "off"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    let is_plain = !is_word
        && text.starts_with(|c: char| c.is_alphabetic())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMPED: &str = "---\nname: lamp-period\ndescription: \"How often: the lamp turns\"\nmetadata: \n  node_type: memory\n  type: project\n  originSessionId: 5d1f\n  modified: 2026-10-02T08:15:30.123Z\n---\n\nEvery 10 s.\n";

    #[test]
    fn fields_are_found_at_the_top_and_below_metadata() {
        let document = Document::read(STAMPED);
        assert_eq!(document.text("description").as_deref(), Some("How often: the lamp turns"));
        assert_eq!(document.text("type").as_deref(), Some("project"));
        assert_eq!(document.text("modified").as_deref(), Some("2026-10-02T08:15:30.123Z"));
        assert_eq!(document.text("metadata"), None);
        assert_eq!(document.text("absent"), None);
        assert_eq!(document.body, "\nEvery 10 s.\n");
    }

    #[test]
    fn body_is_below_the_rules_even_if_fields_cannot_be_read() {
        for (text, body) in [
            ("---\nname: a\n---\nText.\n", "Text.\n"),
            ("\u{feff}---\r\nname: *a\r\n--- \r\nText.\r\n", "Text.\r\n"),
            ("---\nname: a\n---", ""),
            ("---\n---\n", ""),
        ] {
            assert_eq!(body_of(text), body, "{text:?}");
        }
        for text in ["", "Text.\n", "---\nname: a\n", "\n---\n---\n", "----\n---\n", "---"] {
            assert_eq!(body_of(text), text);
        }
    }

    #[test]
    fn odd_files_are_read_and_kept() {
        for (text, fields) in [
            ("---\r\nname: a\r\ntype: user\r\n---\r\nbody\r\n", 2),
            ("\u{feff}---\nname: a\n---\n", 1),
            ("---\nname: a\n---", 1),
            ("---\n---\nempty\n", 0),
            ("--- \n# a comment\n\nname: 'it''s'\ntags:\n- a\n- b\n\n---\nbody", 2),
            ("---\ntext: |\n  # no comment\n\n  &no anchor\n    *deep\nnext: >-\n  folded\n---\n", 2),
            ("---\nchats: [a, 'b, c', \"d\"]\nschlüssel: wert\ntwo words: yes\n---\n", 3),
            ("---\nname: long\n  continued\n---\n", 1),
            ("---\nlink: http://x/#y\nnote: fast & simple *really*\n---\n", 2),
        ] {
            let document = Document::read(text);
            assert_eq!(document.to_string(), text);
            let frontmatter = document.frontmatter.unwrap_or_else(|| panic!("none in {text:?}"));
            let found = frontmatter.entries.iter().filter_map(Entry::field).count();
            assert_eq!(found, fields, "{text:?}");
        }
    }

    #[test]
    fn unparsed_frontmatter_is_plain_text() {
        let long = format!("---\nname: {}\n---\n", "a".repeat(MAX_FRONTMATTER_BYTES));
        let deep = format!("---\nname: {}{}\n---\n", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        let mut nested = "---\na:\n".to_owned();
        for depth in 1..=MAX_DEPTH + 1 {
            nested.push_str(&format!("{}b:\n", " ".repeat(depth)));
        }
        nested.push_str("---\n");
        let bomb = "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n";
        for text in [
            "",
            "no rule\n",
            "---\nname: a\n",
            "---\nno field\n---\n",
            "---\nname: a\nname: b\n---\n",
            "---\n\tname: a\n---\n",
            "---\nname: a\n\t- b\n---\n",
            "---\n- a\n---\n",
            "---\n{name: a}\n---\n",
            "---\n? a\n: b\n---\n",
            "---\nname: !!binary x\n---\n",
            "---\nname: *a\n---\n",
            "---\nlist:\n  - &a x\n---\n",
            "---\nmap: {a: &b c}\n---\n",
            "----\nname: a\n----\n",
            bomb,
            &long,
            &deep,
            &nested,
        ] {
            let document = Document::read(text);
            assert_eq!(document.frontmatter, None, "{text:?}");
            assert_eq!(document.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn reading_changes_nothing(text in "(\u{feff})?(---\r?\n)?([a-z#\" -]{0,6}:? ?[\\[\\]&*!|'a-z,]{0,6}\r?\n){0,8}(---\r?\n)?[a-z\n]{0,9}") {
            prop_assert_eq!(Document::read(&text).to_string(), text);
        }

        #[test]
        fn whatever_the_bytes_it_ends(text in "(---\n)?\\PC{0,60}(\n---\n)?\\PC{0,9}") {
            let document = Document::read(&text);
            prop_assert_eq!(document.to_string(), text.as_str());
            let _ = document.value("type");
        }
    }
}
