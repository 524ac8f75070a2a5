//! JSON, read and written: keys in order, two spaces, one newline at the end, numbers as they were.

use std::borrow::Cow;
use std::rc::Rc;

use serde::de::IgnoredAny;

use super::tree::{List, Tree};

/// How deeply maps and lists can be nested.
const MAX_DEPTH: usize = 100;

/// Parses JSON; `None` if it is invalid, or has a key twice.
pub(super) fn read(text: &str) -> Option<Tree<'_>> {
    // Checked first: below here everything is where it belongs.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Reader { rest: text, depth: 0 }.value()
}

/// Returns true if a text is JSON.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Writes JSON in the one form that it has here.
pub(super) fn write(tree: &Tree<'_>) -> String {
    let mut text = String::new();
    write_value(tree, 0, &mut text);
    text.push('\n');
    text
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Tree<'a>> {
        self.rest = self.rest.trim_start();
        match self.rest.as_bytes().first()? {
            b'{' | b'[' if self.depth == MAX_DEPTH => None,
            open @ (b'{' | b'[') => {
                self.depth += 1;
                let tree = if *open == b'{' { self.map() } else { self.list() };
                self.depth -= 1;
                tree
            }
            b'"' => self.string().map(Tree::Leaf),
            _ => {
                let end = self.rest.find(|c: char| matches!(c, ',' | ']' | '}') || c.is_whitespace());
                Some(Tree::Leaf(Cow::Borrowed(self.take(end.unwrap_or(self.rest.len())))))
            }
        }
    }

    fn map(&mut self) -> Option<Tree<'a>> {
        let mut map = Vec::new();
        self.take(1);
        while !self.ends_with('}')? {
            let key = self.string()?;
            self.rest = self.rest.trim_start().strip_prefix(':')?;
            map.push((key, self.value()?));
        }
        map.sort_by(|(one, _), (other, _)| one.cmp(other));
        let is_twice = map.windows(2).any(|pair| pair[0].0 == pair[1].0);
        (!is_twice).then(|| Tree::Map(Rc::new(map)))
    }

    fn list(&mut self) -> Option<Tree<'a>> {
        let mut members = Vec::new();
        self.take(1);
        while !self.ends_with(']')? {
            members.push(self.value()?);
        }
        Some(Tree::List(Rc::new(List { members, is_inline: false })))
    }

    /// Takes what closes a map or list, or what parts its members.
    fn ends_with(&mut self, close: char) -> Option<bool> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix(close) {
            self.rest = rest;
            return Some(true);
        }
        self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest).trim_start();
        (!self.rest.is_empty()).then_some(false)
    }

    /// Takes a string and returns it in the one form that it has here.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let raw = self.take(end + 1);
        if !raw.contains('\\') {
            return Some(Cow::Borrowed(raw));
        }
        let string: String = serde_json::from_str(raw).ok()?;
        serde_json::to_string(&string).ok().map(Cow::Owned)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

fn write_value(tree: &Tree<'_>, depth: usize, text: &mut String) {
    let line = |depth: usize, text: &mut String| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    match tree {
        Tree::Leaf(leaf) => text.push_str(leaf),
        // There are none in JSON.
        Tree::Comment(_) => {}
        Tree::Map(map) if map.is_empty() => text.push_str("{}"),
        Tree::Map(map) => {
            let mut entries: Vec<&(Cow<'_, str>, Tree<'_>)> = map.iter().collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            text.push('{');
            for (number, (key, value)) in entries.into_iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                line(depth + 1, text);
                text.push_str(key);
                text.push_str(": ");
                write_value(value, depth + 1, text);
            }
            line(depth, text);
            text.push('}');
        }
        Tree::List(list) if list.members.is_empty() => text.push_str("[]"),
        Tree::List(list) => {
            text.push('[');
            for (number, member) in list.members.iter().enumerate() {
                text.push_str(if number == 0 { "" } else { "," });
                line(depth + 1, text);
                write_value(member, depth + 1, text);
            }
            line(depth, text);
            text.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_in_one_form() {
        let odd = "{ \"b\" : [1.50, 1e400, -0, \"\\u00e9 \\\"x\\\"\", [], {}],\n\n\"a\":null }";
        let written = "{\n  \"a\": null,\n  \"b\": [\n    1.50,\n    1e400,\n    -0,\n    \"é \\\"x\\\"\",\n    [],\n    {}\n  ]\n}\n";
        let tree = read(odd).expect("JSON");
        assert_eq!(write(&tree), written);
        assert_eq!(write(&read(written).expect("JSON")), written);
        for no in ["", "{", "{\"a\":1,}", "[1 2]", "{\"a\":1,\"\\u0061\":2}", "\"\\ud800\""] {
            assert_eq!(read(no), None, "{no}");
        }
        assert_eq!(read(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), None);
    }
}
