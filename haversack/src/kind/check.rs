//! Finds problems of a memory file, and repairs those that need no answer from the user.

use std::fmt;

use haversack_store::{Bytes, Locator};
use serde::de::IgnoredAny;

use super::{Kind, Kinds, MERGE, as_text};
use crate::document::{Document, begins_with_rule};
use crate::merge::{Rule, note};

/// The length of a description that is taken from the text.
const MAX_DESCRIPTION_CHARS: usize = 120;

/// Something about a file that is not as its kind wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// It begins like a frontmatter, and is none that is understood.
    OddFrontmatter,
    /// A field is not there.
    MissingField {
        /// Its name.
        field: String,
        /// The kind that wants it.
        kind: String,
    },
    /// Its name says another kind than its type.
    TwoKinds {
        /// The kind by its name.
        named: String,
        /// The kind by its type.
        stated: String,
    },
    /// It is not the data that its name says.
    NotData {
        /// The expected form.
        format: &'static str,
        /// The first line that is not.
        line: usize,
    },
    /// Its last line has no ending, so that the next event would go into it.
    NoNewline,
    /// Passages of two devices stand one below the other.
    BothKept {
        /// The line of the first note.
        line: usize,
    },
    /// It states a rule of merging that there is not.
    UnknownRule {
        /// The stated value.
        stated: String,
    },
    /// Only this table says how it merges, and merging needs what every device knows.
    MergesElsewhere {
        /// The kind that says so.
        kind: String,
        /// How it would merge by that.
        here: Rule,
        /// How it does merge.
        elsewhere: Rule,
    },
}

impl Flaw {
    /// Returns true if [`repaired`] puts it right.
    pub fn is_repaired(&self) -> bool {
        match self {
            Flaw::MissingField { .. } | Flaw::NoNewline => true,
            Flaw::MergesElsewhere { here, elsewhere, .. } => here.is_of_texts() && elsewhere.is_of_texts(),
            Flaw::OddFrontmatter
            | Flaw::TwoKinds { .. }
            | Flaw::NotData { .. }
            | Flaw::BothKept { .. }
            | Flaw::UnknownRule { .. } => false,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::OddFrontmatter => f.write_str("its frontmatter is not understood, so all of it is text"),
            Flaw::MissingField { field, kind } => write!(f, "as {kind} it should have the field `{field}`"),
            Flaw::TwoKinds { named, stated } => write!(f, "by its name it is {named}, by its type {stated}"),
            Flaw::NotData { format, line } => write!(f, "it is not valid {format} in line {line}"),
            Flaw::NoNewline => f.write_str("its last line does not end"),
            Flaw::BothKept { line } => write!(f, "line {line} says that two devices wrote different things"),
            Flaw::UnknownRule { stated } => {
                let rules = Rule::ALL.iter().filter(|(_, rule)| rule.is_of_texts());
                let names: Vec<&str> = rules.map(|(name, _)| *name).collect();
                write!(f, "there is no rule {stated} to merge by, only {}", names.join(", "))
            }
            Flaw::MergesElsewhere { kind, here, elsewhere } if self.is_repaired() => {
                let (here, elsewhere) = (here.name(), elsewhere.name());
                write!(f, "as {kind} it should state `{MERGE}: {here}`, and merges as {elsewhere} until then")
            }
            Flaw::MergesElsewhere { kind, here, elsewhere } => {
                let (here, elsewhere) = (here.name(), elsewhere.name());
                write!(
                    f,
                    "as {kind} it should merge as {here}, and merges as {elsewhere}: it cannot state that"
                )
            }
        }
    }
}

/// Returns what is wrong with a file.
pub fn flaws(kinds: &Kinds, locator: &Locator, bytes: &[u8]) -> Vec<Flaw> {
    let Some(text) = as_text(bytes) else { return Vec::new() };
    let kind = kinds.of(locator, bytes);
    let document = Document::read(text);
    let mut flaws = Vec::new();
    let is_markdown = locator.as_str().to_lowercase().ends_with(".md");
    if is_markdown && is_odd(&document) {
        flaws.push(Flaw::OddFrontmatter);
    } else {
        let missing = kind.required.iter().filter(|field| document.value(field).is_none());
        flaws.extend(
            missing.map(|field| Flaw::MissingField { field: field.clone(), kind: kind.name.clone() }),
        );
    }
    let named = kinds.iter().find(|kind| kind.names.iter().any(|pattern| pattern.matches(locator)));
    if let Some(named) = named.filter(|named| named.name != kind.name && !named.types.is_empty()) {
        flaws.push(Flaw::TwoKinds { named: named.name.clone(), stated: kind.name.clone() });
    }
    flaws.extend(data_flaws(kind, text));
    let stated = document.text(MERGE).filter(|_| kind.rule.is_of_texts());
    match stated.filter(|stated| Rule::stated(stated).is_none()) {
        Some(stated) => flaws.push(Flaw::UnknownRule { stated }),
        None => flaws.extend(merges_elsewhere(kinds, locator, bytes)),
    }
    if let Some(line) = text.lines().position(|line| note::read(line).is_some()).filter(|_| is_markdown) {
        flaws.push(Flaw::BothKept { line: line + 1 });
    }
    flaws
}

/// Returns true if a text begins like a frontmatter that we cannot read.
fn is_odd(document: &Document<'_>) -> bool {
    document.frontmatter.is_none() && begins_with_rule(document.body)
}

fn merges_elsewhere(kinds: &Kinds, locator: &Locator, bytes: &[u8]) -> Option<Flaw> {
    // Do not add a second frontmatter above one that we do not understand.
    if is_odd(&Document::read(as_text(bytes)?)) {
        return None;
    }
    let (kind, here) = kinds.recognised(locator, bytes);
    let elsewhere = Rule::of(locator, [bytes]);
    (here != elsewhere).then(|| Flaw::MergesElsewhere { kind: kind.name.clone(), here, elsewhere })
}

fn data_flaws(kind: &Kind, text: &str) -> Vec<Flaw> {
    match kind.rule {
        Rule::Json => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Vec::new(),
            Err(error) => vec![Flaw::NotData { format: "JSON", line: error.line() }],
        },
        Rule::JsonLines => {
            let is_odd =
                |line: &str| !line.trim().is_empty() && serde_json::from_str::<IgnoredAny>(line).is_err();
            let odd =
                text.lines().position(is_odd).map(|line| Flaw::NotData { format: "JSON", line: line + 1 });
            let unended = (!text.is_empty() && !text.ends_with('\n')).then_some(Flaw::NoNewline);
            odd.into_iter().chain(unended).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns a file with its flaws put right, as far as that is possible; `None` if there is nothing to do.
///
/// Only what can be told from the file is filled in: its name from its name, its description from its first line, its type from
/// its kind. Nothing that is there is changed.
pub fn repaired(kinds: &Kinds, locator: &Locator, bytes: &[u8]) -> Option<Bytes> {
    let text = as_text(bytes)?;
    let kind = kinds.of(locator, bytes);
    let document = Document::read(text);
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut added = String::new();
    let mut is_unended = false;
    for flaw in flaws(kinds, locator, bytes) {
        match flaw {
            Flaw::MissingField { field, .. } => {
                if let Some(value) = told(&field, kind, locator, &document) {
                    added.push_str(&format!("{field}: {value}{newline}"));
                }
            }
            Flaw::NoNewline => is_unended = true,
            Flaw::MergesElsewhere { here, .. } if flaw.is_repaired() => {
                added.push_str(&statement(here, newline));
            }
            Flaw::MergesElsewhere { .. }
            | Flaw::OddFrontmatter
            | Flaw::TwoKinds { .. }
            | Flaw::NotData { .. }
            | Flaw::BothKept { .. }
            | Flaw::UnknownRule { .. } => {}
        }
    }
    if added.is_empty() && !is_unended {
        return None;
    }
    let mut new = with_fields(&document, &added, newline);
    if is_unended {
        new.push_str(newline);
    }
    Some(Bytes::from(new))
}

/// Returns a new text as other devices have to see it: if only this table says how it merges, it states that.
pub fn stating(kinds: &Kinds, locator: &Locator, text: String) -> String {
    match merges_elsewhere(kinds, locator, text.as_bytes()) {
        Some(flaw @ Flaw::MergesElsewhere { here, .. }) if flaw.is_repaired() => {
            with_fields(&Document::read(&text), &statement(here, "\n"), "\n")
        }
        _ => text,
    }
}

/// Returns the field that states a rule.
fn statement(rule: Rule, newline: &str) -> String {
    format!("{MERGE}: {}{newline}", rule.name())
}

/// Returns a text with more fields after those that it has.
fn with_fields(document: &Document<'_>, added: &str, newline: &str) -> String {
    let mut new = document.mark.to_owned();
    match &document.frontmatter {
        Some(frontmatter) if !added.is_empty() => {
            new.push_str(frontmatter.opening);
            frontmatter.entries.iter().for_each(|entry| new.push_str(entry.raw()));
            new.push_str(added);
            new.push_str(frontmatter.closing);
        }
        Some(frontmatter) => new.push_str(&frontmatter.to_string()),
        None if added.is_empty() => {}
        None => new.push_str(&format!("---{newline}{added}---{newline}{newline}")),
    }
    new.push_str(document.body);
    new
}

/// Returns what a field of a file says that does not say it.
fn told(field: &str, kind: &Kind, locator: &Locator, document: &Document<'_>) -> Option<String> {
    match field {
        "name" => Some(quoted(locator.name().rsplit_once('.').map_or(locator.name(), |(stem, _)| stem))),
        "type" => kind.types.first().map(|name| quoted(name)),
        "description" => {
            let mut said =
                document.body.lines().map(|line| line.trim_start_matches(['#', '-', '*', '>', ' ']).trim());
            let first = said.find(|line| !line.is_empty())?;
            Some(quoted(&first.chars().take(MAX_DESCRIPTION_CHARS).collect::<String>()))
        }
        _ => None,
    }
}

/// Returns a text as a value of YAML.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ','))
        && !matches!(
            text.to_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "null" | "on" | "off" | "y" | "n"
        );
    if is_plain { text.trim_end().to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, text: &str) -> Vec<String> {
        let locator = Locator::parse(name).expect("a locator");
        flaws(Kinds::built_in(), &locator, text.as_bytes()).iter().map(ToString::to_string).collect()
    }

    fn mended(name: &str, text: &str) -> Option<String> {
        let locator = Locator::parse(name).expect("a locator");
        let bytes = repaired(Kinds::built_in(), &locator, text.as_bytes())?;
        Some(String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[test]
    fn flaws_are_told() {
        assert_eq!(
            shown("user_role.md", "---\nname: a\ndescription: b\nmetadata:\n  type: user\n---\n"),
            [""; 0]
        );
        assert_eq!(shown("notes.md", "anything\n"), [""; 0]);
        assert_eq!(
            shown("user_role.md", "---\nname: *a\n---\n"),
            ["its frontmatter is not understood, so all of it is text"]
        );
        assert_eq!(
            shown("user_role.md", "---\nname: a\ndescription: b\ntype: feedback\n---\n"),
            ["by its name it is user, by its type feedback"]
        );
        assert_eq!(shown("x.json", "{\n1}"), ["it is not valid JSON in line 2"]);
        assert_eq!(
            shown("x.jsonl", "{}\n{\n{}"),
            ["it is not valid JSON in line 2", "its last line does not end"]
        );
        assert_eq!(
            shown("n.md", "a\n> [also, from desktop:]\nb\n"),
            ["line 2 says that two devices wrote different things"]
        );
    }

    #[test]
    fn what_can_be_told_is_filled_in() {
        assert_eq!(
            mended("user_role.md", "# It's the keeper: always\n").as_deref(),
            Some(
                "---\nname: user_role\ndescription: 'It''s the keeper: always'\ntype: user\n---\n\n# It's the keeper: always\n"
            )
        );
        assert_eq!(
            mended("user_role.md", "---\r\nname: x # kept\r\n---\r\nBody\r\n").as_deref(),
            Some("---\r\nname: x # kept\r\ndescription: Body\r\ntype: user\r\n---\r\nBody\r\n")
        );
        assert_eq!(mended("x.jsonl", "{}").as_deref(), Some("{}\n"));
        assert_eq!(mended("x.json", "{"), None);
        assert_eq!(mended("notes.md", "text"), None);
        for (name, text) in
            [("user_role.md", "text\n"), ("x.jsonl", "{}"), ("user_role.md", "---\n---\nyes\n")]
        {
            let once = mended(name, text).expect("something to do");
            assert_eq!(shown(name, &once), [""; 0], "{once}");
            assert_eq!(mended(name, &once), None);
        }
    }

    #[test]
    fn a_rule_that_only_this_table_has_is_stated() {
        let table = "[kind.recipe]\nabout = \"how to cook\"\nnames = [\"recipes/*.md\"]\nrule = \"threads\"\n\n[kind.canvas]\nabout = \"a drawing\"\nnames = [\"*.canvas\"]\nrule = \"json\"\n\n[kind.index]\nrule = \"prose\"\n";
        let kinds = Kinds::built_in().with(table).expect("valid");
        let told = |name: &str, text: &str| -> Vec<String> {
            let locator = Locator::parse(name).expect("a locator");
            flaws(&kinds, &locator, text.as_bytes()).iter().map(ToString::to_string).collect()
        };
        let soup = Locator::parse("recipes/soup.md").expect("a locator");
        assert_eq!(
            told("recipes/soup.md", "# Soup\n"),
            ["as recipe it should state `merge: threads`, and merges as prose until then"]
        );
        let text = "---\nname: soup\n---\n\n# Soup\n";
        let stated = "---\nname: soup\nmerge: threads\n---\n\n# Soup\n";
        assert_eq!(repaired(&kinds, &soup, text.as_bytes()).as_deref(), Some(stated.as_bytes()));
        assert_eq!(stating(&kinds, &soup, text.to_owned()), stated);
        assert_eq!(told("recipes/soup.md", stated), [""; 0]);
        assert_eq!(stating(&kinds, &soup, stated.to_owned()), stated);
        assert_eq!(stating(Kinds::built_in(), &soup, text.to_owned()), text);
        // A rule stated in the file has priority over the table.
        assert_eq!(told("recipes/soup.md", "---\nmerge: log\n---\n"), [""; 0]);
        assert_eq!(
            told("recipes/soup.md", "---\nmerge: logs\n---\n"),
            [
                "there is no rule logs to merge by, only prose, index, log, prepend, threads, callbacks, carry-forward, commitments, digest, summary, roll-up"
            ]
        );
        let odd = "---\nname: *a\n---\n";
        assert_eq!(told("recipes/soup.md", odd), ["its frontmatter is not understood, so all of it is text"]);
        assert_eq!(repaired(&kinds, &soup, odd.as_bytes()), None);
        assert_eq!(stating(&kinds, &soup, odd.to_owned()), odd);
        assert_eq!(
            told("plan.canvas", "{}\n"),
            ["as canvas it should merge as json, and merges as prose: it cannot state that"]
        );
        let canvas = Locator::parse("plan.canvas").expect("a locator");
        assert_eq!(repaired(&kinds, &canvas, b"{}\n"), None);
        assert_eq!(stating(&kinds, &canvas, "{}\n".to_owned()), "{}\n");
        assert_eq!(
            told("MEMORY.md", "# Index\n"),
            ["as index it should state `merge: prose`, and merges as index until then"]
        );
    }
}
