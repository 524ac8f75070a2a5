//! Ageing inside of one file: items and sections that leave, move or are marked. Pure.
//!
//! Every function returns the new text and the parts that left or moved; `None` if the file stays as it is. All other bytes stay.

use std::collections::BTreeSet;

use super::age::{AgeFields, PINNED};
use super::parts::{Chunk, Section, chunks, latest_day, sections};
use crate::day::Day;
use crate::document::{self, Document, Value, scalar};

/// A file after a rule, and the parts that the rule took or moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Aged {
    pub(super) text: String,
    pub(super) parts: Vec<String>,
}

/// The field that lists the threads at rest.
const DORMANT: &str = "dormant";

fn split(text: &str) -> (&str, Vec<Section<'_>>) {
    let body = document::body_of(text);
    (&text[..text.len() - body.len()], sections(body))
}

fn aged(above: &str, bodies: Vec<String>, parts: Vec<String>) -> Option<Aged> {
    if parts.is_empty() { None } else { Some(Aged { text: above.to_owned() + &bodies.concat(), parts }) }
}

/// Takes items out of the sections with a name. `leaves` gets the items of such a section and returns the numbers of those that leave.
fn without_items(text: &str, name: &str, leaves: impl Fn(&[Chunk<'_>]) -> BTreeSet<usize>) -> Option<Aged> {
    let (above, sections) = split(text);
    let mut gone = Vec::new();
    let bodies = sections.iter().map(|section| {
        if !section.is_named(name) {
            return [section.heading, section.body].concat();
        }
        let chunks = chunks(section.body);
        let items: Vec<usize> =
            (0..chunks.len()).filter(|at| chunks[*at].is_item && !chunks[*at].is_placeholder()).collect();
        let of_items: Vec<Chunk<'_>> = items.iter().map(|at| chunks[*at]).collect();
        let leaving: BTreeSet<usize> = leaves(&of_items).into_iter().map(|at| items[at]).collect();
        gone.extend(leaving.iter().map(|at| chunks[*at].text.trim_end().to_owned()));
        let left =
            chunks.iter().enumerate().filter(|(at, _)| !leaving.contains(at)).map(|(_, chunk)| chunk.text);
        section.heading.to_owned() + &left.collect::<String>()
    });
    let bodies = bodies.collect();
    aged(above, bodies, gone)
}

/// Takes out the items of a section that nothing has mentioned for more than `days` days. With 0 days, all items leave. An item without a day stays.
pub(super) fn old_items_leave(text: &str, name: &str, days: u32, today: Day) -> Option<Aged> {
    without_items(text, name, |items| {
        let is_old = |item: &Chunk<'_>| days == 0 || is_older(item.text, days, today);
        (0..items.len()).filter(|at| is_old(&items[*at])).collect()
    })
}

/// Takes out all items of a section but the newest `keep`. An item without a day counts as new; of the same day, the upper one is newer.
pub(super) fn items_beyond_leave(text: &str, name: &str, keep: u32, today: Day) -> Option<Aged> {
    without_items(text, name, |items| {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|at| {
            let day = latest_day(items[*at].text, today);
            (day.is_some(), std::cmp::Reverse(day), *at)
        });
        order.into_iter().skip(usize::try_from(keep).unwrap_or(usize::MAX)).collect()
    })
}

/// Moves the items of a section that nothing has mentioned for more than `days` days below the heading `to`, and notes the day with them.
pub(super) fn old_items_move(text: &str, from: &str, to: &str, days: u32, today: Day) -> Option<Aged> {
    let taken = old_items_leave(text, from, days.max(1), today)?;
    let mut moved = String::new();
    for item in &taken.parts {
        let (first, more) = item.split_at(item.find('\n').unwrap_or(item.len()));
        moved.push_str(&format!("{} (retired {today}){more}\n", first.trim_end()));
    }
    let text = with_lines_below(&taken.text, to, &moved);
    Some(Aged { text, parts: taken.parts })
}

/// Adds lines at the end of the first section with a name; makes the section if there is none.
fn with_lines_below(text: &str, name: &str, lines: &str) -> String {
    let (above, sections) = split(text);
    let mut out = above.to_owned();
    let mut is_added = false;
    for (at, section) in sections.iter().enumerate() {
        out.push_str(section.heading);
        out.push_str(section.body);
        if !is_added && section.is_named(name) {
            is_added = true;
            out.truncate(out.trim_end().len());
            let is_empty = section.body.trim().is_empty();
            out.push_str(if is_empty { "\n\n" } else { "\n" });
            out.push_str(lines);
            if at + 1 < sections.len() {
                out.push('\n');
            }
        }
    }
    if !is_added {
        out.truncate(out.trim_end().len());
        out.push_str(&format!("\n\n## {name}\n\n{lines}"));
    }
    out
}

fn is_older(text: &str, days: u32, today: Day) -> bool {
    latest_day(text, today).is_some_and(|day| today.days_since(day) > days.cast_signed())
}

fn is_past(section: &Section<'_>, days: u32, today: Day) -> bool {
    section.day().is_some_and(|day| today.days_since(day) > days.cast_signed())
}

/// Takes out the sections of days that are more than `days` days ago.
pub(super) fn old_days_leave(text: &str, days: u32, today: Day) -> Option<Aged> {
    let (above, sections) = split(text);
    let (old, left): (Vec<_>, Vec<_>) = sections.iter().partition(|section| is_past(section, days, today));
    let join = |section: &&Section<'_>| [section.heading, section.body].concat();
    aged(
        above,
        left.iter().map(join).collect(),
        old.iter().map(|old| join(old).trim_end().to_owned()).collect(),
    )
}

/// Takes out the sections of days that are more than `days` days ago; the rules in them go below the heading `into`.
pub(super) fn old_days_leave_rules(text: &str, into: &str, days: u32, today: Day) -> Option<Aged> {
    let (_, all) = split(text);
    let known = super::digest::words(text.rsplit_once(&format!("## {into}")).map_or("", |(_, below)| below));
    let mut rules = String::new();
    for section in all.iter().filter(|section| is_past(section, days, today)) {
        let day = section.title.and_then(|title| title.get(..10)).unwrap_or_default();
        for rule in rules_in(section.body) {
            if !known.contains(&super::digest::words(&rule)) {
                rules.push_str(&format!("- {rule} ({day})\n"));
            }
        }
    }
    let left = old_days_leave(text, days, today)?;
    let text = if rules.is_empty() { left.text } else { with_rules(&left.text, into, &rules) };
    Some(Aged { text, parts: left.parts })
}

/// Adds rules below their heading. A new heading stands above all days.
fn with_rules(text: &str, into: &str, rules: &str) -> String {
    let (above, sections) = split(text);
    if sections.iter().any(|section| section.is_named(into)) {
        return with_lines_below(text, into, rules);
    }
    let (top, days) = sections.split_first().expect("a text has a first part");
    let days: String = days.iter().map(|day| [day.heading, day.body].concat()).collect();
    let top = [above, top.heading, top.body].concat();
    let gap = if days.is_empty() { "" } else { "\n" };
    format!("{}\n\n## {into}\n\n{rules}{gap}{days}", top.trim_end())
}

/// Returns the texts below the headings of rules, each in one line.
fn rules_in(body: &str) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    let mut is_rule = false;
    for line in body.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            is_rule = heading.to_lowercase().contains("rule");
            if is_rule {
                rules.push(String::new());
            }
        } else if is_rule && !line.trim().is_empty() {
            let rule = rules.last_mut().expect("the heading added one");
            let words = Chunk { text: line.trim(), is_item: true }.words();
            rule.push_str(if rule.is_empty() { "" } else { " " });
            rule.push_str(words.trim());
        }
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// Lists the threads that nothing has touched for more than `days` days in the frontmatter; a thread that goes on again leaves the list.
pub(super) fn threads_rest(text: &str, days: u32, today: Day) -> Option<Aged> {
    let document = Document::read(text);
    document.frontmatter.as_ref()?;
    let resting: Vec<String> = sections(document.body)
        .iter()
        .filter(|section| {
            is_older(section.body, days, today) || section.title.is_some() && is_past(section, days, today)
        })
        .filter_map(|section| section.title.map(str::to_owned))
        .collect();
    let before = match document.value(DORMANT) {
        Some(Value::List(names)) => names,
        Some(Value::Text(name)) if !name.is_empty() => vec![name],
        _ => Vec::new(),
    };
    // A thread without any day says nothing about its age: a mark by hand stays.
    let titles: Vec<&str> = sections(document.body)
        .iter()
        .filter(|section| latest_day(section.body, today).is_none())
        .filter_map(|section| section.title)
        .collect();
    let by_hand = before.iter().filter(|name| titles.contains(&name.as_str()) && !resting.contains(name));
    let resting: Vec<String> = resting.iter().chain(by_hand).cloned().collect();
    if resting.iter().collect::<BTreeSet<_>>() == before.iter().collect::<BTreeSet<_>>() {
        return None;
    }
    let changed: Vec<String> =
        resting.iter().filter(|name| !before.contains(name)).map(|name| format!("dormant: {name}")).collect();
    let awake =
        before.iter().filter(|name| !resting.contains(name)).map(|name| format!("active again: {name}"));
    let parts: Vec<String> = changed.into_iter().chain(awake).collect();
    let names: Vec<String> = resting.iter().map(|name| scalar(name)).collect();
    let text = with_field(text, DORMANT, &format!("[{}]", names.join(", ")))?;
    Some(Aged { text, parts })
}

/// Returns a text with a field in its frontmatter; `None` if it has no frontmatter.
pub(super) fn with_field(text: &str, name: &str, value: &str) -> Option<String> {
    let document = Document::read(text);
    let frontmatter = document.frontmatter.as_ref()?;
    let end = if frontmatter.opening.ends_with("\r\n") { "\r\n" } else { "\n" };
    let line = format!("{name}: {value}{end}");
    let mut out = format!("{}{}", document.mark, frontmatter.opening);
    let mut is_written = false;
    for entry in &frontmatter.entries {
        let is_ours = entry.field().is_some_and(|field| field.name == name);
        out.push_str(if is_ours { &line } else { entry.raw() });
        is_written |= is_ours;
    }
    if !is_written {
        out.push_str(&line);
    }
    out.push_str(frontmatter.closing);
    out.push_str(document.body);
    Some(out)
}

/// Returns a text without a field of its frontmatter. A frontmatter that had only this field is removed whole.
fn without_field(text: &str, name: &str) -> String {
    let document = Document::read(text);
    let Some(frontmatter) = &document.frontmatter else { return text.to_owned() };
    let others =
        frontmatter.entries.iter().filter(|entry| entry.field().is_none_or(|field| field.name != name));
    let others: String = others.map(|entry| entry.raw()).collect();
    if others.is_empty() {
        return [document.mark, document.body].concat();
    }
    [document.mark, frontmatter.opening, &others, frontmatter.closing, document.body].concat()
}

/// Returns a text that tidying leaves alone. A text without frontmatter gets one; `None` if it has one that we cannot read.
pub(super) fn pinned(text: &str) -> Option<String> {
    if let Some(pinned) = with_field(text, PINNED, "true") {
        return Some(pinned);
    }
    let Document { mark, body, .. } = Document::read(text);
    let end = if body.contains("\r\n") { "\r\n" } else { "\n" };
    // A frontmatter that we cannot read would become part of the text.
    let is_plain = !document::begins_with_rule(body);
    is_plain.then(|| format!("{mark}---{end}{PINNED}: true{end}---{end}{body}"))
}

/// Returns a text that tidying treats like every other.
pub(super) fn unpinned(text: &str) -> Option<String> {
    let without = without_field(text, PINNED);
    // Claude Code moves fields that it does not know below `metadata`. A field at the top counts before it.
    if is_pinned(without.as_bytes()) { with_field(&without, PINNED, "false") } else { Some(without) }
}

/// Returns true if a file says that tidying leaves it alone.
pub(super) fn is_pinned(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| AgeFields::of(text).is_pinned())
}
