//! Cuts a memory into passages, the units of the index. Pure.
//!
//! 1. Markdown: a passage is a paragraph, a list item, a table or a block of code. It knows the headings above it. Long ones are cut between lines.
//! 2. JSON lines: a passage is one event, with the texts in it.
//! 3. The words of the file's name and frontmatter belong to the first passage. `name` and `description` count as title, other fields as text.
//!
//! Passages of a file are in its order, so that neighbours in the index are neighbours in the file.

use std::collections::HashMap;

use haversack::document::{Document, Value};
use haversack::store::Locator;
use haversack::tidy::AgeFields;
use jiff::civil::Date;

use super::dates::{dates, days_of, words_of};
use super::tokens::{Side, each, term};

/// A paragraph of more words is cut at the end of a line.
const MAX_WORDS: usize = 150;

/// A list item of more words is a passage; shorter ones are joined.
const MIN_ITEM_WORDS: usize = 20;

/// The part of a passage that the model reads, in bytes.
const MAX_MEANING_BYTES: usize = 1000;

/// The most passages of one file. The last one takes all the rest.
const MAX_CHUNKS: usize = 60_000;

/// Fields whose words count as title.
const TITLE_FIELDS: [&str; 3] = ["name", "title", "description"];

/// Fields that say when the memory is from, the most telling first.
const DAY_FIELDS: [&str; 5] = ["date", "updated", "modified", "last_updated", "created"];

/// A memory, cut into passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutFile {
    /// The day that the memory is about, if its name or fields say so.
    pub(crate) day: Option<Date>,
    /// The first day on which the memory is out of date by its fields, as days since 1970; 0 if it is not.
    pub(crate) outdated_from: u16,
    /// The fields that count as title.
    pub(crate) title: String,
    /// The passages, in their order; at least one.
    pub(crate) chunks: Vec<Chunk>,
}

/// A passage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The first and the last line, from 1.
    pub(crate) lines: (u32, u32),
    /// The day that the passage is about, as days since 1970.
    pub(crate) day: Option<u16>,
    /// The number of its words.
    pub(crate) length: u16,
    /// The heading above it.
    pub(crate) heading: String,
    /// The occurrences of each term in the text and in the title.
    pub(crate) terms: HashMap<String, Occurrences>,
}

/// The occurrences of a term in a passage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occurrences {
    pub(crate) text: u16,
    pub(crate) title: u16,
}

impl Chunk {
    fn add(&mut self, text: &str, part: fn(&mut Occurrences) -> &mut u16) {
        each(text, Side::Memory, |word| {
            let count = part(self.terms.entry(term(word)).or_default());
            *count = count.saturating_add(1);
            self.length = self.length.saturating_add(1);
        });
    }

    fn add_text(&mut self, text: &str) {
        self.add(text, |occurrences| &mut occurrences.text);
    }

    fn add_title(&mut self, text: &str) {
        self.add(text, |occurrences| &mut occurrences.title);
    }

    /// Adds the words of dates, and takes the first as the passage's day.
    fn add_dates(&mut self, found: &[Date]) {
        for word in found.iter().flat_map(|date| words_of(*date)) {
            let occurrences = self.terms.entry(term(&word)).or_default();
            occurrences.text = occurrences.text.max(1);
        }
        self.day = self.day.or(found.first().map(|date| days_of(*date)));
    }
}

/// Cuts a memory into passages.
pub(crate) fn cut(locator: &Locator, text: &str) -> CutFile {
    let document = Document::read(text);
    let mut title = named(locator);
    let mut title_fields = String::new();
    let mut fields = String::new();
    let mut day = dates(locator.name()).first().copied();
    for field in document
        .frontmatter
        .iter()
        .flat_map(|frontmatter| &frontmatter.entries)
        .filter_map(|entry| entry.field())
    {
        let values = match field.value() {
            Value::Text(text) => text,
            Value::List(values) => values.join(" "),
            // Several lines, or fields below: the words of the values, without the names of fields.
            Value::Other => match field.children() {
                Some(children) => children
                    .iter()
                    .filter_map(|entry| entry.field())
                    .map(|field| value_of(field.raw))
                    .collect::<Vec<_>>()
                    .join(" "),
                None => value_of(field.raw).to_owned(),
            },
        };
        let into = if TITLE_FIELDS.contains(&field.name) { &mut title_fields } else { &mut fields };
        into.push(' ');
        into.push_str(&values);
    }
    title.push_str(&title_fields);
    let field_day = |name: &&str| dates(&document.text(name)?).first().copied();
    day = day.or_else(|| DAY_FIELDS.iter().find_map(field_day));
    let body_line = 1 + text[..text.len() - document.body.len()].matches('\n').count();
    let mut chunks = if is_events(locator) { events(text) } else { paragraphs(document.body, body_line) };
    if chunks.is_empty() {
        let last = u32::try_from(text.lines().count().max(1)).unwrap_or(u32::MAX);
        chunks.push(Chunk { lines: (1, last), ..Chunk::default() });
    }
    chunks[0].add_title(&title);
    chunks[0].add_text(&fields);
    chunks[0].add_dates(&dates(&fields));
    for chunk in &mut chunks {
        chunk.day = chunk.day.or(day.map(days_of));
    }
    if let Some(day) = day {
        chunks[0].add_dates(&[day]);
    }
    CutFile { day, outdated_from: outdated_from(&document), title: title_fields.trim().to_owned(), chunks }
}

fn value_of(raw: &str) -> &str {
    raw.split_once(':').map_or("", |(_, value)| value)
}

/// Returns the texts from which the vectors of a file's passages are made: each passage with its heading, the first one with the title of its file. A date
/// in a heading says nothing about the meaning. The passage before is left out: with it, vectors measured worse.
pub(crate) fn meanings(locator: &Locator, text: &str, file: &CutFile) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_events = is_events(locator);
    let passage = |chunk: &Chunk| {
        let (first, last) = chunk.lines;
        let number = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
        let lines = lines.iter().take(number(last)).skip(number(first).saturating_sub(1));
        let mut passage = String::new();
        for line in lines {
            match serde_json::from_str::<serde_json::Value>(line) {
                Ok(event) if is_events => add_strings(&event, &mut passage),
                _ => passage.push_str(line.trim()),
            }
            passage.push(' ');
            if passage.len() > MAX_MEANING_BYTES {
                break;
            }
        }
        let end = passage.floor_char_boundary(MAX_MEANING_BYTES);
        passage[..end].trim_end().to_owned()
    };
    let with_title = |(at, chunk): (usize, &Chunk)| {
        let title = if at == 0 { file.title.as_str() } else { "" };
        let heading = if dates(&chunk.heading).is_empty() { chunk.heading.as_str() } else { "" };
        let passage = passage(chunk);
        let parts = [title, heading, passage.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    };
    file.chunks.iter().enumerate().map(with_title).collect()
}

/// Appends the texts in an event.
fn add_strings(value: &serde_json::Value, into: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            into.push_str(text);
            into.push(' ');
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| add_strings(value, into)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| add_strings(value, into)),
        serde_json::Value::Number(_) | serde_json::Value::Null | serde_json::Value::Bool(_) => {}
    }
}

fn is_events(locator: &Locator) -> bool {
    locator.name().rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("jsonl"))
}

/// Returns the words of a file's place: its name and its directories, without the id of a project.
fn named(locator: &Locator) -> String {
    let mut words = String::new();
    for segment in locator.segments() {
        let is_last = segment == locator.name();
        let segment =
            if is_last { segment.rsplit_once('.').map_or(segment, |(stem, _)| stem) } else { segment };
        // A project's id ends in a hash, which is no word of a query.
        let segment = match segment.rsplit_once('-') {
            Some((name, hash))
                if !is_last && hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                name
            }
            _ => segment,
        };
        words.push_str(segment);
        words.push(' ');
    }
    words
}

/// Returns the first day on which a memory is out of date by its fields; 0 if it never is.
fn outdated_from(document: &Document<'_>) -> u16 {
    let age = AgeFields::in_document(document);
    match (age.outdated_on_every_day(), age.stale_after()) {
        (Some(_), _) => 1,
        // A memory is stale from the day after.
        (None, Some(day)) => dates(&day.plus(1).to_string()).first().map_or(0, |day| days_of(*day).max(1)),
        (None, None) => 0,
    }
}

fn events(text: &str) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        if chunks.len() == MAX_CHUNKS {
            chunks.pop();
        }
        let mut chunk = Chunk { lines: (number, number), ..Chunk::default() };
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(event) => add_texts(&event, &mut chunk),
            Err(_) => chunk.add_text(line),
        }
        chunk.add_dates(&dates(line));
        chunks.push(chunk);
    }
    chunks
}

fn add_texts(value: &serde_json::Value, chunk: &mut Chunk) {
    match value {
        serde_json::Value::String(text) => chunk.add_text(text),
        serde_json::Value::Array(values) => values.iter().for_each(|value| add_texts(value, chunk)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| add_texts(value, chunk)),
        serde_json::Value::Number(number) => chunk.add_text(&number.to_string()),
        serde_json::Value::Null | serde_json::Value::Bool(_) => {}
    }
}

/// The text of a passage that is being collected.
#[derive(Default)]
struct Block<'a> {
    lines: Vec<&'a str>,
    first: u32,
    words: usize,
}

/// Cuts markdown. `first_line` is the number of its first line in the file.
fn paragraphs(body: &str, first_line: usize) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut headings: Vec<(usize, &str, u32)> = Vec::new();
    // The last heading has no text below it yet.
    let mut is_bare = false;
    let mut block = Block::default();
    let mut fence: Option<&str> = None;
    let first_line = u32::try_from(first_line).unwrap_or(u32::MAX);
    for (line, number) in body.lines().zip(first_line..) {
        let start = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, Some(marker)) => fence = Some(marker),
            _ => {}
        }
        let is_text = fence.is_some() || marker.is_some();
        if !is_text && start.is_empty() {
            flush(&mut block, &headings, &mut chunks);
            continue;
        }
        if !is_text && let Some(level) = heading_level(line) {
            flush(&mut block, &headings, &mut chunks);
            if is_bare {
                flush_heading(&headings, &mut chunks);
            }
            headings.retain(|(above, _, _)| *above < level);
            headings.push((level, line.trim_start_matches('#').trim(), number));
            is_bare = true;
            continue;
        }
        let is_item = !is_text && is_top_item(line);
        if block.words >= MAX_WORDS || (is_item && block.words >= MIN_ITEM_WORDS) {
            flush(&mut block, &headings, &mut chunks);
        }
        if block.lines.is_empty() {
            block.first = number;
        }
        block.words += line.split_whitespace().count();
        block.lines.push(line);
        is_bare = false;
    }
    flush(&mut block, &headings, &mut chunks);
    if is_bare {
        flush_heading(&headings, &mut chunks);
    }
    chunks
}

fn flush(block: &mut Block<'_>, headings: &[(usize, &str, u32)], chunks: &mut Vec<Chunk>) {
    let Block { lines, first, .. } = std::mem::take(block);
    if lines.is_empty() || chunks.len() >= MAX_CHUNKS {
        return;
    }
    let last = first.saturating_add(u32::try_from(lines.len() - 1).unwrap_or(u32::MAX));
    let mut chunk = Chunk { lines: (first, last), ..Chunk::default() };
    let text = lines.join("\n");
    chunk.add_text(&text);
    chunk.add_dates(&dates(&text));
    for (_, heading, _) in headings {
        chunk.add_title(heading);
        chunk.add_dates(&dates(heading));
    }
    chunk.heading = headings.last().map(|(_, heading, _)| (*heading).to_owned()).unwrap_or_default();
    chunks.push(chunk);
}

/// Adds a passage for a heading without text.
fn flush_heading(headings: &[(usize, &str, u32)], chunks: &mut Vec<Chunk>) {
    let Some((_, _, line)) = headings.last() else { return };
    let mut chunk = Chunk { lines: (*line, *line), ..Chunk::default() };
    for (_, heading, _) in headings {
        chunk.add_title(heading);
        chunk.add_dates(&dates(heading));
    }
    chunks.push(chunk);
}

fn heading_level(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    ((1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(level)
}

fn is_top_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    match digits {
        0 => ["- ", "* ", "+ "].iter().any(|marker| line.starts_with(marker)),
        1..=9 => rest.starts_with(". ") || rest.starts_with(") "),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_of(name: &str, text: &str) -> CutFile {
        cut(&Locator::parse(name).expect("valid"), text)
    }

    fn lines(file: &CutFile) -> Vec<(u32, u32)> {
        file.chunks.iter().map(|chunk| chunk.lines).collect()
    }

    fn has(chunk: &Chunk, word: &str) -> (u16, u16) {
        let found = chunk.terms.get(&term(word)).copied().unwrap_or_default();
        (found.text, found.title)
    }

    #[test]
    fn markdown_is_cut_by_heading_and_paragraph() {
        let text = "---\nname: Lamp\ntags: [optics]\nmetadata:\n  type: project\n---\n\n# Lamp\n\nTurns at night.\nAlways.\n\n## Oil\n\n- whale\n- rape\n\n## Empty\n\n## Code\n```\na\n\nb\n```\n";
        let file = cut_of("claude_memory/lighthouse-d004b9e9/project_lamp.md", text);
        assert_eq!(lines(&file), [(10, 11), (15, 16), (18, 18), (21, 25)]);
        let [first, oil, empty, code] = &file.chunks[..] else { panic!("four") };
        assert_eq!(has(first, "lamp"), (0, 3), "name of the file, name field, heading");
        assert_eq!((has(first, "optics"), has(first, "project")), ((1, 0), (1, 1)));
        assert_eq!((has(first, "lighthouse"), has(first, "d004b9e9")), ((0, 1), (0, 0)));
        assert_eq!((has(oil, "whale"), has(oil, "oil"), has(oil, "lamp")), ((1, 0), (0, 1), (0, 1)));
        assert_eq!((has(empty, "empty"), has(code, "empty"), has(code, "b")), ((0, 1), (0, 0), (1, 0)));
    }

    #[test]
    fn long_paragraphs_and_items_are_cut_between_lines() {
        let line = "one two three four five six seven eight nine ten\n";
        assert_eq!(lines(&cut_of("a.md", &line.repeat(40))), [(1, 15), (16, 30), (31, 40)]);
        let items = format!("- {line}  {line}- {line}- short\n");
        assert_eq!(lines(&cut_of("a.md", &items)), [(1, 2), (3, 4)]);
    }

    #[test]
    fn events_are_passages() {
        let text =
            "{\"timestamp\":\"2026-11-18T09:00:00Z\",\"text\":\"lit the lamp\",\"n\":7}\n\nnot json lamp\n";
        let file = cut_of("interactions/2026-11-18.jsonl", text);
        assert_eq!(lines(&file), [(1, 1), (3, 3)]);
        assert_eq!((has(&file.chunks[0], "lamp"), has(&file.chunks[0], "timestamp")), ((1, 0), (0, 0)));
        assert_eq!((has(&file.chunks[0], "wednesday"), has(&file.chunks[0], "november")), ((1, 0), (1, 0)));
        assert!(file.chunks.iter().all(|chunk| chunk.day == file.day.map(days_of)));
    }

    #[test]
    fn files_without_text_have_one_passage() {
        for (text, last) in [("", 1), ("\n\n", 2), ("---\nname: x\n---\n", 3)] {
            let file = cut_of("empty.md", text);
            assert_eq!(lines(&file), [(1, last)], "{text:?}");
            assert_eq!(has(&file.chunks[0], "empty"), (0, 1));
        }
    }

    #[test]
    fn outdated_memories_say_from_when() {
        let from = |fields: &str| cut_of("a.md", &format!("---\n{fields}\n---\nx\n")).outdated_from;
        assert_eq!((from("status: Deprecated"), from("superseded_by: b.md")), (1, 1));
        assert_eq!((from("status: active"), from("name: x")), (0, 0));
        assert_eq!(from("stale_after: 2026-03-01"), days_of(jiff::civil::date(2026, 3, 2)));
    }

    #[test]
    fn meanings_have_heading_and_title() {
        let meant = |name: &str, text: &str| {
            let locator = Locator::parse(name).expect("valid");
            meanings(&locator, text, &cut(&locator, text))
        };
        let text = "---\nname: lamp\ntype: project\n---\n# Lamp\n\nTurns.\n\nStops at dawn,\nthen cools.\n";
        assert_eq!(meant("a.md", text), ["lamp\nLamp\nTurns.", "Lamp\nStops at dawn, then cools."]);
        let events = "{\"text\": \"The lamp\", \"at\": 3}\nno event\n";
        assert_eq!(meant("a.jsonl", events), ["The lamp", "no event"]);
        let long = meant("a.md", &"é".repeat(5000));
        assert_eq!(long.iter().map(String::len).collect::<Vec<_>>(), [MAX_MEANING_BYTES]);
        assert_eq!(meant("a.md", ""), [""]);
        assert_eq!(meant("a.md", "# 5 March 2026\n\nTurns.\n"), ["Turns."]);
    }
}
