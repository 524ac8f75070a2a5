//! Memory as HTML. The text of a memory is data: every character of it is escaped, and nothing in it becomes an element, a style or a script.
//!
//! - Characters that a browser would hide or obey (control characters, marks that change the direction) are shown by their number.
//! - Headings, lists, code and emphasis get our own elements around the escaped text.
//! - A link leads to another memory or is plain text. No address of another site is ever a link, and no image is loaded.

use std::ops::Range;

use haversack::display::is_harmful;
use maud::{Markup, html};

/// The most bytes of a text that are shown: a view stays small to load.
pub(super) const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The deepest indentation of a list that is shown.
const MAX_DEPTH: usize = 4;

/// The longest line whose marks are looked for; a mark without its end costs a look through the rest of the line.
const MAX_FORMATTED_LINE: usize = 2000;

/// Returns a text with its hidden characters made visible.
pub(super) fn visible(text: &str) -> Markup {
    let mut parts: Vec<(&str, Option<char>)> = Vec::new();
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| *c != '\n' && *c != '\t' && is_harmful(*c)) {
        parts.push((&rest[..at], Some(c)));
        rest = &rest[at + c.len_utf8()..];
    }
    parts.push((rest, None));
    html! {
        @for (plain, odd) in parts {
            (plain)
            @if let Some(odd) = odd { span.odd { "U+" (format!("{:04X}", u32::from(odd))) } }
        }
    }
}

/// Returns the beginning of a text that is short enough to show, cut between two lines if possible.
pub(super) fn beginning(text: &str) -> &str {
    beginning_within(text, MAX_SHOWN_BYTES)
}

/// Returns the beginning of a text that has at most so many bytes.
pub(super) fn beginning_within(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].rfind('\n').map_or(&text[..end], |line| &text[..=line])
}

/// Returns a text in which the words of a query are marked where a word begins with one of them.
pub(super) fn marked(text: &str, query: &str) -> Markup {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
        .collect();
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_alphanumeric();
        let begins_word = rest.starts_with(is_word);
        let end = rest.find(|c: char| is_word(c) != begins_word).unwrap_or(rest.len());
        let piece = &rest[..end];
        let lower = piece.to_lowercase();
        pieces.push((piece, begins_word && words.iter().any(|word| lower.starts_with(word.as_str()))));
        rest = &rest[end..];
    }
    html! { @for (piece, is_hit) in pieces { @if is_hit { mark { (visible(piece)) } } @else { (visible(piece)) } } }
}

/// Returns a text in which ranges of bytes are marked; a range that does not fit the text is left out.
pub(super) fn marked_at(text: &str, ranges: &[Range<usize>]) -> Markup {
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    let mut at = 0;
    for range in ranges {
        let (Some(before), Some(hit)) = (text.get(at..range.start), text.get(range.clone())) else {
            continue;
        };
        pieces.extend([(before, false), (hit, true)]);
        at = range.end;
    }
    pieces.push((&text[at..], false));
    html! { @for (piece, is_hit) in pieces { @if is_hit { mark { (visible(piece)) } } @else { (visible(piece)) } } }
}

/// A line of a memory, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'t> {
    Heading(usize, &'t str),
    Item(usize, &'t str),
    Code(&'t str),
    Fence,
    Blank,
    Plain(&'t str),
}

/// Returns a memory's text, formatted. `link` returns the address of the memory that a link leads to.
pub(super) fn formatted(text: &str, link: &dyn Fn(&str) -> Option<String>) -> Markup {
    let mut blocks: Vec<Vec<Line<'_>>> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        let line = classify(line, &mut is_code);
        let continues = |last: &Line<'_>| {
            matches!(
                (last, &line),
                (Line::Plain(_), Line::Plain(_))
                    | (Line::Item(..), Line::Item(..))
                    | (Line::Code(_), Line::Code(_))
            )
        };
        match blocks.last_mut() {
            Some(block) if block.last().is_some_and(continues) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    html! {
        @for block in &blocks {
            @match block[0] {
                Line::Heading(1, title) => { h2.m { (inline(title, link)) } }
                Line::Heading(2, title) => { h3.m { (inline(title, link)) } }
                Line::Heading(_, title) => { h4.m { (inline(title, link)) } }
                Line::Item(..) => {
                    ul.m {
                        @for line in block {
                            @if let Line::Item(depth, text) = line {
                                li class=(format!("d{depth}")) dir="auto" { (inline(text, link)) }
                            }
                        }
                    }
                }
                Line::Code(_) => {
                    pre.m tabindex="0" { @for line in block { @if let Line::Code(text) = line { (visible(text)) "\n" } } }
                }
                Line::Plain(_) => {
                    p.m dir="auto" {
                        @for (at, line) in block.iter().enumerate() {
                            @if at > 0 { br; }
                            @if let Line::Plain(text) = line { (inline(text, link)) }
                        }
                    }
                }
                Line::Fence | Line::Blank => {}
            }
        }
    }
}

fn classify<'t>(line: &'t str, is_code: &mut bool) -> Line<'t> {
    let trimmed = line.trim_start();
    if trimmed.starts_with("```") {
        *is_code = !*is_code;
        return Line::Fence;
    }
    if *is_code {
        return Line::Code(line);
    }
    if trimmed.is_empty() {
        return Line::Blank;
    }
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return Line::Heading(level, line[level..].trim());
    }
    let depth = ((line.len() - trimmed.len()) / 2).min(MAX_DEPTH);
    let after_number = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    if let Some(item) = ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark)) {
        return Line::Item(depth, item);
    }
    if after_number.len() < trimmed.len() && after_number.starts_with(". ") {
        return Line::Item(depth, trimmed);
    }
    Line::Plain(trimmed)
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Code(&'t str),
    Strong(&'t str),
    /// The shown text, the target as it is written, and the whole as it is written.
    Link(&'t str, &'t str, &'t str),
}

fn inline(text: &str, link: &dyn Fn(&str) -> Option<String>) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Text(text) => { (visible(text)) }
                Piece::Code(text) => { code { (visible(text)) } }
                Piece::Strong(text) => { strong { (visible(text)) } }
                Piece::Link(shown, target, whole) => {
                    @match link(target) {
                        Some(address) => { a href=(address) { (visible(shown)) } }
                        None => { (visible(whole)) }
                    }
                }
            }
        }
    }
}

/// Cuts a line into its parts. A mark without its end is text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    if text.len() > MAX_FORMATTED_LINE {
        return vec![Piece::Text(text)];
    }
    let mut pieces = Vec::new();
    let (mut rest, mut plain) = (text, 0);
    let mut at = 0;
    while at < rest.len() {
        let here = &rest[at..];
        let found = special(here);
        match found {
            Some((piece, length)) => {
                if at > plain {
                    pieces.push(Piece::Text(&rest[plain..at]));
                }
                pieces.push(piece);
                rest = &rest[at + length..];
                (plain, at) = (0, 0);
            }
            None => at += here.chars().next().map_or(1, char::len_utf8),
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Returns the part that begins here, and its length.
fn special(here: &str) -> Option<(Piece<'_>, usize)> {
    if let Some(rest) = here.strip_prefix("[[") {
        let inside = rest.split_once("]]")?.0;
        let shown = inside.rsplit('|').next().unwrap_or(inside);
        return Some((Piece::Link(shown, inside, &here[..inside.len() + 4]), inside.len() + 4));
    }
    if let Some(rest) = here.strip_prefix('[') {
        let (shown, after) = rest.split_once("](")?;
        let target = after.split_once(')')?.0;
        let length = shown.len() + target.len() + 4;
        let is_link = !shown.is_empty() && !shown.contains(['[', ']']);
        return is_link.then_some((Piece::Link(shown, target, &here[..length]), length));
    }
    if let Some(rest) = here.strip_prefix('`') {
        let inside = rest.split_once('`')?.0;
        return (!inside.is_empty()).then_some((Piece::Code(inside), inside.len() + 2));
    }
    if let Some(rest) = here.strip_prefix("**") {
        let inside = rest.split_once("**")?.0;
        return (!inside.is_empty()).then_some((Piece::Strong(inside), inside.len() + 4));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        formatted(text, &|target| (target == "ports").then(|| "memory?path=ports.md".to_owned()))
            .into_string()
    }

    #[test]
    fn nothing_in_a_memory_becomes_an_element() {
        let hostile = "# <script>alert(1)</script>\n- <img src=x onerror=alert(1)>\n\n\"><b>[x](javascript:alert(1)) ![i](https://evil.example/i.png)\n```\n</pre><script>\n```\n[[\"><svg onload=alert(1)>]] `<i>` **<u>**";
        let html = shown(hostile);
        for opening in ["<script", "<img", "<b>", "<svg", "<i>", "<u>", "href"] {
            assert!(!html.contains(opening), "{opening}: {html}");
        }
        assert!(html.contains("javascript:alert(1)"), "it is shown as text: {html}");
    }

    #[test]
    fn hidden_characters_are_shown_by_number() {
        assert_eq!(
            visible("a\u{202e}b\u{1b}[31m").into_string(),
            "a<span class=\"odd\">U+202E</span>b<span class=\"odd\">U+001B</span>[31m"
        );
    }

    #[test]
    fn text_is_formatted() {
        assert_eq!(
            shown("# Ports\nuses `5433`\nsee [[ports]] and [[lamp]]\n\n- **one**\n  - two\n"),
            "<h2 class=\"m\">Ports</h2><p class=\"m\" dir=\"auto\">uses <code>5433</code><br>see <a href=\"memory?path=ports.md\">ports</a> and [[lamp]]</p><ul class=\"m\"><li class=\"d0\" dir=\"auto\"><strong>one</strong></li><li class=\"d1\" dir=\"auto\">two</li></ul>"
        );
    }

    #[test]
    fn marks_without_an_end_are_text_and_no_text_is_lost() {
        for text in ["[[", "[a](b", "`x", "**y", "[[a]", "ä[", "[]()", "****", "``"] {
            let joined: String = pieces(text)
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => *text,
                    other => panic!("{text}: {other:?}"),
                })
                .collect();
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn ranges_are_marked_and_those_that_do_not_fit_are_left_out() {
        let html = marked_at("läuchtturm port <b>", &[12..16, 2..3, 90..95]).into_string();
        assert_eq!(html, "läuchtturm <mark>port</mark> &lt;b&gt;");
    }

    #[test]
    fn words_of_a_query_are_marked_where_words_begin() {
        let html = marked("The port of Ports, export <b>", "port b").into_string();
        assert_eq!(html, "The <mark>port</mark> of <mark>Ports</mark>, export &lt;b&gt;");
    }
}
