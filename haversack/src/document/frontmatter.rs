//! Reads the frontmatter of a text: splits it at its two rules, then reads the fields between them.

use std::collections::HashSet;
use std::fmt;

use super::{MAX_DEPTH, MAX_FRONTMATTER_BYTES, Value};

/// The fields at the top of a text, between two rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontmatter<'a> {
    /// The first rule, with its line ending.
    pub opening: &'a str,
    /// The lines between the rules, in order.
    pub entries: Vec<Entry<'a>>,
    /// The second rule.
    pub closing: &'a str,
}

/// A text split at the two rules of its frontmatter. The lines between them may be anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuledText<'a> {
    /// The first rule, with its line ending.
    pub(crate) opening: &'a str,
    /// The lines between the rules.
    pub(crate) between: &'a str,
    /// The second rule, with its line ending if it has one.
    pub(crate) closing: &'a str,
    /// The text below the second rule.
    pub(crate) body: &'a str,
}

impl<'a> RuledText<'a> {
    /// Splits a text without byte-order mark; `None` if it does not begin with a rule, or has no second one.
    pub(crate) fn split(text: &'a str) -> Option<RuledText<'a>> {
        let mut lines = text.split_inclusive('\n');
        let opening = lines.next().filter(|line| is_rule(line) && line.ends_with('\n'))?;
        let mut end = opening.len();
        for line in lines {
            let start = end;
            end += line.len();
            if is_rule(line) {
                let between = &text[opening.len()..start];
                return Some(RuledText { opening, between, closing: line, body: &text[end..] });
            }
        }
        None
    }
}

/// Returns true if a text begins with the rule of a frontmatter.
pub(crate) fn begins_with_rule(text: &str) -> bool {
    text.lines().next().is_some_and(is_rule)
}

fn is_rule(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Some lines of a frontmatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A field with everything below it.
    Field(Field<'a>),
    /// A comment or a blank line.
    Other(&'a str),
}

impl<'a> Entry<'a> {
    /// Returns the field, if it is one.
    pub fn field(&self) -> Option<&Field<'a>> {
        match self {
            Entry::Field(field) => Some(field),
            Entry::Other(_) => None,
        }
    }

    /// Returns the lines it was read from.
    pub fn raw(&self) -> &'a str {
        match self {
            Entry::Field(field) => field.raw,
            Entry::Other(raw) => raw,
        }
    }
}

/// A field: its name and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The text before the colon.
    pub name: &'a str,
    /// Its lines, the first with the name, all with their endings.
    pub raw: &'a str,
}

impl<'a> Field<'a> {
    /// Returns the value of the field.
    pub fn value(&self) -> Value {
        Value::read(self.after_colon())
    }

    /// Returns the fields below this one; `None` if its value is not a list of fields.
    pub fn children(&self) -> Option<Vec<Entry<'a>>> {
        let (head, below) = self.after_colon().split_once('\n')?;
        let is_empty = head.trim().is_empty() || head.trim_start().starts_with('#');
        let indent = below.lines().find(|line| !line.trim().is_empty()).map(indentation)?;
        (is_empty && indent > 0).then(|| entries(below, indent)).flatten()
    }

    fn after_colon(&self) -> &'a str {
        self.raw.trim_start().split_once(':').map_or("", |(_, rest)| rest)
    }
}

impl<'a> Frontmatter<'a> {
    /// Reads the frontmatter at the start of a text; returns the text below it as well.
    pub(super) fn read(text: &'a str) -> Option<(Frontmatter<'a>, &'a str)> {
        let RuledText { opening, between, closing, body } = RuledText::split(text)?;
        if text.len() - body.len() > MAX_FRONTMATTER_BYTES {
            return None;
        }
        Some((Frontmatter { opening, entries: entries(between, 0)?, closing }, body))
    }
}

impl fmt::Display for Frontmatter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.opening)?;
        self.entries.iter().try_for_each(|entry| f.write_str(entry.raw()))?;
        f.write_str(self.closing)
    }
}

/// Reads lines at an indentation as fields, each with the deeper lines below it; `None` if something else is among them.
fn entries(text: &str, indent: usize) -> Option<Vec<Entry<'_>>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut names = HashSet::new();
    // The start of the last field's lines, and of the blank lines at its end.
    let mut field: Option<(&str, usize)> = None;
    let (mut at, mut blank_from) = (0, 0);
    let mut depth = Depth::default();
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let content = line.trim_end();
        if content.is_empty() {
            continue;
        }
        let own = indentation(line);
        if content[own..].starts_with('\t') {
            return None;
        }
        let is_comment = content[own..].starts_with('#');
        let continues = match field {
            Some((_, from)) => {
                own > indent || (own == indent && is_list_below(&text[from..start], &content[own..]))
            }
            None => false,
        };
        if continues {
            depth.check(own, &content[own..])?;
        } else if own != indent && !is_comment {
            return None;
        } else {
            close(&mut entries, &mut field, text, blank_from);
            others(&mut entries, &text[blank_from..start]);
            if is_comment {
                entries.push(Entry::Other(line));
            } else {
                let name = name(&content[own..])?;
                if !names.insert(name) {
                    return None;
                }
                depth = Depth::default();
                depth.check(own, &content[own..])?;
                field = Some((name, start));
            }
        }
        blank_from = at;
    }
    close(&mut entries, &mut field, text, blank_from);
    others(&mut entries, &text[blank_from..]);
    Some(entries)
}

/// Ends the field that is being read.
fn close<'a>(entries: &mut Vec<Entry<'a>>, field: &mut Option<(&'a str, usize)>, text: &'a str, end: usize) {
    if let Some((name, from)) = field.take() {
        entries.push(Entry::Field(Field { name, raw: &text[from..end] }));
    }
}

fn others<'a>(entries: &mut Vec<Entry<'a>>, blank: &'a str) {
    entries.extend(blank.split_inclusive('\n').map(Entry::Other));
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns true if a list item that is not indented belongs to the field above.
fn is_list_below(field: &str, content: &str) -> bool {
    let head = field.lines().next().unwrap_or_default();
    let is_item = content == "-" || content.starts_with("- ");
    is_item && head.trim_end().ends_with(':')
}

/// Returns the name of the field in a line.
fn name(content: &str) -> Option<&str> {
    let end = content.match_indices(':').map(|(at, _)| at).find(|at| {
        let after = &content[at + 1..];
        after.is_empty() || after.starts_with(' ')
    })?;
    let name = &content[..end];
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | '$');
    let is_name = name.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
        && !name.ends_with(' ')
        && name.chars().all(is_word);
    is_name.then_some(name)
}

/// How deep the lines of one field go.
#[derive(Default)]
struct Depth {
    indentations: Vec<usize>,
    /// The indentation that the text of a block scalar exceeds.
    literal: Option<usize>,
}

impl Depth {
    /// Takes in a line; `None` if it is too deep, or begins a value that could stand for another.
    fn check(&mut self, indent: usize, content: &str) -> Option<()> {
        match self.literal {
            Some(above) if indent > above => return Some(()),
            _ => self.literal = None,
        }
        while self.indentations.last().is_some_and(|last| *last >= indent) {
            self.indentations.pop();
        }
        self.indentations.push(indent);
        let mut value = content;
        while let Some(rest) = value.strip_prefix("- ") {
            value = rest.trim_start_matches(' ');
            self.indentations.push(indent + content.len() - value.len());
        }
        if let Some(name) = name(value) {
            value = value[name.len() + 1..].trim_start();
        }
        if value.starts_with(['|', '>']) {
            self.literal = Some(indent);
        }
        let flow = flow_depth(value)?;
        (self.indentations.len() + flow <= MAX_DEPTH).then_some(())
    }
}

/// Returns how deep the brackets of a value go; `None` if an anchor, an alias or a tag is in it.
fn flow_depth(value: &str) -> Option<usize> {
    let stands_for_another = |text: &str| {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some('&' | '*'), Some(next)) => !next.is_whitespace(),
            (Some('!'), _) => true,
            _ => false,
        }
    };
    if stands_for_another(value) {
        return None;
    }
    if !value.starts_with(['[', '{']) {
        return Some(0);
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    for (at, c) in value.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        if matches!(c, '[' | '{' | ',' | ':') && stands_for_another(value[at + 1..].trim_start()) {
            return None;
        }
    }
    Some(deepest)
}
