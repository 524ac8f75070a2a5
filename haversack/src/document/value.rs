//! The values of fields, as far as they are plain.

/// The value of a field of a frontmatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One line of text, without quotes.
    Text(String),
    /// Several, in brackets or one below the other.
    List(Vec<String>),
    /// Anything else: it is kept, not understood.
    Other,
}

impl Value {
    /// Reads what stands behind the colon of a field, with the lines below.
    pub(crate) fn read(raw: &str) -> Value {
        if let Some(items) = list_items(raw) {
            return Value::List(items.into_iter().map(|item| item.plain).collect());
        }
        let (head, below) = raw.split_once('\n').unwrap_or((raw, ""));
        let head = head.trim();
        match below.trim().is_empty() {
            true if head.is_empty() || head.starts_with('#') => Value::Text(String::new()),
            true => scalar(head).map_or(Value::Other, Value::Text),
            false => Value::Other,
        }
    }
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListItem {
    /// The plain value.
    pub(crate) plain: String,
    /// How it is written.
    pub(crate) raw: String,
}

impl ListItem {
    fn read(raw: &str) -> Option<ListItem> {
        Some(ListItem { plain: scalar(raw)?, raw: raw.to_owned() })
    }
}

/// Reads a list behind the colon of its field; `None` if it is none, or its items are more than plain values.
pub(crate) fn list_items(raw: &str) -> Option<Vec<ListItem>> {
    let (head, below) = raw.split_once('\n').unwrap_or((raw, ""));
    let head = head.trim();
    let is_below = !below.trim().is_empty();
    match head.strip_prefix('[') {
        Some(rest) if !is_below => flow_list(rest),
        None if is_below && (head.is_empty() || head.starts_with('#')) => block_list(below),
        _ => None,
    }
}

fn block_list(below: &str) -> Option<Vec<ListItem>> {
    let lines = below.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| ListItem::read(line.strip_prefix('-').filter(|rest| rest.starts_with(' '))?.trim()))
        .collect()
}

/// Reads a list behind its first bracket.
fn flow_list(rest: &str) -> Option<Vec<ListItem>> {
    let mut items = Vec::new();
    let mut rest = rest.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            return is_nothing(after).then_some(items);
        }
        let end = match rest.chars().next()? {
            quote @ ('"' | '\'') => quoted_end(rest, quote)?,
            _ => rest.find([',', ']', '[', '{', '}', '"', '\'', '#'])?,
        };
        items.push(ListItem::read(rest[..end].trim())?);
        rest = rest[end..].trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with(']') => {}
            None => return None,
        }
    }
}

/// Reads a value of one line; `None` if it is more than that.
fn scalar(text: &str) -> Option<String> {
    let first = text.chars().next()?;
    match first {
        '"' | '\'' => {
            let end = quoted_end(text, first)?;
            let inner = &text[1..end - 1];
            let plain = if first == '\'' { inner.replace("''", "'") } else { unescaped(inner)? };
            is_nothing(&text[end..]).then_some(plain)
        }
        '[' | '{' | '|' | '>' | '&' | '*' | '!' | '%' | '@' | '`' => None,
        _ => {
            let end = text.find(" #").unwrap_or(text.len());
            let plain = text[..end].trim_end();
            (!plain.contains(": ") && !plain.ends_with(':')).then(|| plain.to_owned())
        }
    }
}

/// Returns true if nothing but a comment follows.
fn is_nothing(after: &str) -> bool {
    after.trim().is_empty() || (after.starts_with([' ', '\t']) && after.trim_start().starts_with('#'))
}

/// Returns where a quoted text ends, its quotes included.
fn quoted_end(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next()?;
        } else if c == quote {
            let is_doubled = quote == '\'' && chars.next_if(|(_, next)| *next == quote).is_some();
            if !is_doubled {
                return Some(at + 1);
            }
        }
    }
    None
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                c @ ('"' | '\\' | '/' | ' ') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_understood() {
        let text = |raw: &str| match Value::read(raw) {
            Value::Text(text) => text,
            other => panic!("{raw:?} is {other:?}"),
        };
        assert_eq!(text(" keeper # of the light"), "keeper");
        assert_eq!(text(" it's #1"), "it's");
        assert_eq!(text(" 'it''s: here' # yes"), "it's: here");
        assert_eq!(text(r#" "a \"b\"\n""#), "a \"b\"\n");
        assert_eq!(text(" ~4"), "~4");
        assert_eq!(text("  "), "");
        let list = |raw: &str| match Value::read(raw) {
            Value::List(items) => items,
            other => panic!("{raw:?} is {other:?}"),
        };
        assert_eq!(list(" [a, 'b, c', \"d\"]"), ["a", "b, c", "d"]);
        assert_eq!(list("\n  - a\n  - 'b, c'\n  - d # last\n"), ["a", "b, c", "d"]);
        assert_eq!(list(" []"), [""; 0]);
        for other in [
            " {a: b}",
            " [a, [b]]",
            " [unclosed",
            " |\n  text",
            " a\n  continued",
            "\n  key: value",
            " 'open",
            " a: b",
        ] {
            assert_eq!(Value::read(other), Value::Other, "{other:?}");
        }
    }
}
