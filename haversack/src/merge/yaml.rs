//! The part of YAML that data files are written in: maps, lists and plain values, by indentation.
//!
//! Anything else (text over several lines, anchors, tags, nested brackets) is not read; such a file is not merged but kept
//! whole. Comments are kept, blank lines are not.

use std::borrow::Cow;
use std::rc::Rc;

use super::texts::last_pair;
use super::tree::{List, Tree, has_single_keys};

/// How deeply maps and lists can be nested.
const MAX_DEPTH: usize = 32;

/// A file of YAML.
pub(super) struct Yaml<'a> {
    pub(super) tree: Tree<'a>,
    /// True if it begins with a rule.
    pub(super) has_rule: bool,
}

/// Reads YAML; `None` if it is more than is read here.
pub(super) fn read(text: &str) -> Option<Yaml<'_>> {
    let mut lines = Vec::new();
    let mut has_rule = false;
    for (number, raw) in text.lines().enumerate() {
        let content = raw.trim();
        if number == 0 && raw.trim_end() == "---" {
            has_rule = true;
        } else if !content.is_empty() {
            let indent = raw.len() - raw.trim_start_matches(' ').len();
            if raw[indent..].starts_with('\t') || raw == "---" || raw == "..." {
                return None;
            }
            lines.push(Line { indent, content });
        }
    }
    // A comment belongs to the line below it.
    let mut indent = 0;
    for line in lines.iter_mut().rev() {
        if line.content.starts_with('#') {
            line.indent = indent;
        }
        indent = line.indent;
    }
    let mut rest = lines.as_slice();
    let tree = block(&mut rest, 0, 0)?;
    rest.is_empty().then_some(Yaml { tree, has_rule })
}

/// Writes YAML in the one form that it has here.
pub(super) fn write(yaml: &Yaml<'_>) -> String {
    let mut text = if yaml.has_rule { "---\n".to_owned() } else { String::new() };
    write_block(&yaml.tree, 0, &mut text);
    text
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    content: &'a str,
}

/// Reads the lines of one indentation, each with the deeper lines below it.
fn block<'a>(lines: &mut &[Line<'a>], indent: usize, depth: usize) -> Option<Tree<'a>> {
    let first = lines.iter().find(|line| !line.content.starts_with('#'));
    let is_list = first.is_some_and(|line| is_member(line.content));
    let (mut map, mut members) = (Vec::new(), Vec::new());
    while let Some(line) = lines.first().copied().filter(|line| line.indent >= indent) {
        // A list that is no deeper than its key ends with the next key.
        let next = lines.iter().find(|line| !line.content.starts_with('#'));
        if is_list && next.is_some_and(|next| next.indent == indent && !is_member(next.content)) {
            break;
        }
        if line.indent != indent || depth > MAX_DEPTH {
            return None;
        }
        if line.content.starts_with('#') {
            *lines = &lines[1..];
            match is_list {
                true => members.push(Tree::Comment(line.content)),
                false => map.push((Cow::Borrowed(line.content), Tree::Comment(line.content))),
            }
        } else if is_list {
            members.push(member(lines, line, depth)?);
        } else {
            *lines = &lines[1..];
            map.push(entry(lines, line, depth)?);
        }
    }
    match is_list {
        true => Some(Tree::List(Rc::new(List { members, is_inline: false }))),
        false => has_single_keys(&map).then(|| Tree::Map(Rc::new(map))),
    }
}

fn is_member(content: &str) -> bool {
    content.starts_with("- ")
}

fn member<'a>(lines: &mut &[Line<'a>], line: Line<'a>, depth: usize) -> Option<Tree<'a>> {
    let content = line.content.strip_prefix("- ")?.trim_start_matches(' ');
    if is_member(content) || content.starts_with('#') {
        return None;
    }
    *lines = &lines[1..];
    if key(content).is_none() {
        return leaf(content);
    }
    // The first entry of a map stands behind the dash, the others below it.
    let inner = line.indent + (line.content.len() - content.len());
    let mut map = vec![entry(lines, Line { indent: inner, content }, depth + 1)?];
    if lines.first().is_some_and(|next| next.indent == inner) {
        match block(lines, inner, depth + 1)? {
            Tree::Map(rest) => map.extend(Rc::unwrap_or_clone(rest)),
            Tree::Leaf(_) | Tree::Comment(_) | Tree::List(_) => return None,
        }
    }
    has_single_keys(&map).then(|| Tree::Map(Rc::new(map)))
}

/// Reads what belongs to a line with a key, behind it or below it.
fn entry<'a>(lines: &mut &[Line<'a>], line: Line<'a>, depth: usize) -> Option<(Cow<'a, str>, Tree<'a>)> {
    let key = key(line.content)?;
    let value = line.content[key.len() + 1..].trim_start();
    let next = lines.iter().find(|next| !next.content.starts_with('#')).filter(|next| {
        let is_list = next.indent == line.indent && is_member(next.content);
        next.indent > line.indent || is_list
    });
    let tree = match (value.is_empty(), next) {
        (true, Some(next)) => block(lines, next.indent, depth + 1)?,
        (true, None) => Tree::Leaf(Cow::Borrowed("")),
        (false, Some(next)) if next.indent > line.indent => return None,
        (false, _) => leaf(value)?,
    };
    Some((Cow::Borrowed(key), tree))
}

fn key(content: &str) -> Option<&str> {
    let bytes = content.as_bytes();
    let ends = |at: &usize| bytes[*at] == b':' && matches!(bytes.get(at + 1), None | Some(b' '));
    let end = (0..bytes.len()).find(ends)?;
    let key = &content[..end];
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/');
    let is_key = key.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && !key.ends_with(' ')
        && key.chars().all(is_word);
    is_key.then_some(key)
}

fn leaf(value: &str) -> Option<Tree<'_>> {
    if let Some(inner) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        if inner.contains(['[', ']', '{', '}', '"', '\'', '#', '&', '*', '!', ':']) {
            return None;
        }
        let members: Vec<Tree<'_>> =
            inner.split(',').map(|member| Tree::Leaf(Cow::Borrowed(member.trim()))).collect();
        let is_empty = inner.trim().is_empty();
        let has_gap = !is_empty && members.contains(&Tree::Leaf(Cow::Borrowed("")));
        let list = List { members: if is_empty { Vec::new() } else { members }, is_inline: true };
        return (!has_gap).then(|| Tree::List(Rc::new(list)));
    }
    let is_closed = match value.chars().next()? {
        quote @ ('"' | '\'') => {
            value.len() > 1
                && value.ends_with(quote)
                && value.matches(quote).count() == 2
                && !value.contains('\\')
        }
        '[' | ']' | '{' | '}' | '|' | '>' | '&' | '*' | '!' | '%' | '@' | '`' | ',' | '?' | '#' => false,
        _ => last_pair(value, *b": ").is_none() && !value.ends_with(':'),
    };
    is_closed.then_some(Tree::Leaf(Cow::Borrowed(value)))
}

fn write_block(tree: &Tree<'_>, indent: usize, text: &mut String) {
    match tree {
        Tree::Leaf(_) | Tree::Comment(_) => {}
        Tree::Map(map) => {
            for (key, value) in map.iter() {
                write_space(indent, text);
                write_entry(key, value, indent, text);
            }
        }
        Tree::List(list) => {
            for member in &list.members {
                write_space(indent, text);
                match member {
                    Tree::Comment(comment) => write_line(&[comment], text),
                    Tree::Leaf(leaf) => write_line(&["- ", leaf], text),
                    Tree::List(list) => write_line(&["- ", &inline(list)], text),
                    Tree::Map(map) => {
                        text.push_str("- ");
                        for (number, (key, value)) in map.iter().enumerate() {
                            // The first entry stands behind the dash.
                            write_space(if number == 0 { 0 } else { indent + 2 }, text);
                            write_entry(key, value, indent + 2, text);
                        }
                    }
                }
            }
        }
    }
}

fn write_entry(key: &str, value: &Tree<'_>, indent: usize, text: &mut String) {
    match value {
        Tree::Comment(comment) => write_line(&[comment], text),
        Tree::Leaf(leaf) if leaf.is_empty() => write_line(&[key, ":"], text),
        Tree::Leaf(leaf) => write_line(&[key, ": ", leaf], text),
        Tree::List(list) if list.is_inline || list.members.is_empty() => {
            write_line(&[key, ": ", &inline(list)], text);
        }
        Tree::Map(map) if map.is_empty() => write_line(&[key, ": {}"], text),
        Tree::Map(_) | Tree::List(_) => {
            write_line(&[key, ":"], text);
            write_block(value, indent + 2, text);
        }
    }
}

fn write_space(indent: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn write_line(parts: &[&str], text: &mut String) {
    text.extend(parts.iter().copied().chain(["\n"]));
}

fn inline(list: &List<'_>) -> String {
    let members = list.members.iter().filter_map(|member| match member {
        Tree::Leaf(leaf) => Some(&**leaf),
        Tree::Comment(_) | Tree::Map(_) | Tree::List(_) => None,
    });
    format!("[{}]", members.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_in_one_form() {
        let odd = "---\n# the types\nnode_types:\n- person\n- place # on the map\n\nconnection_types:\n    - name: knows\n      from_types: [person, place]\n      # who is asked\n      to_types:\n      - person\n    - name: near\nempty:\nlast: \"q: x\"\n";
        let written = "---\n# the types\nnode_types:\n  - person\n  - place # on the map\nconnection_types:\n  - name: knows\n    from_types: [person, place]\n    # who is asked\n    to_types:\n      - person\n  - name: near\nempty:\nlast: \"q: x\"\n";
        assert_eq!(write(&read(odd).expect("YAML")), written);
        assert_eq!(write(&read(written).expect("YAML")), written);
        for no in [
            "a: |\n  text\n",
            "a: &x 1\n",
            "a: *x\n",
            "a: !t 1\n",
            "a: b\n  c\n",
            "a: 1\na: 2\n",
            "\ta: 1\n",
            "a: [b, [c]]\n",
            "- - a\n",
            "just text\n",
            "a: 1\n---\nb: 2\n",
            "a: 'it''s'\n",
            "a:\n   b: 1\n  c: 2\n",
        ] {
            assert!(read(no).is_none(), "{no}");
        }
    }
}
