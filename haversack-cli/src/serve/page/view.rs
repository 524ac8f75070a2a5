//! The views, one module each. Each has one function that gathers data from `app` and one that shows it.

pub(super) mod change;
pub(super) mod conflicts;
pub(super) mod edit;
pub(super) mod graph;
pub(super) mod health;
pub(super) mod inbox;
pub(super) mod machines;
pub(super) mod memories;
pub(super) mod memory;
pub(super) mod next;
pub(super) mod now;
pub(super) mod pin;
pub(super) mod tidy;
pub(super) mod time;
pub(super) mod undo;

use haversack::day::Day;
use haversack::display::one_line;
use haversack::ids::Timestamp;
use haversack::store::Locator;
use haversack::tidy::Outdated;
use maud::{Markup, html};

use super::shell::memory_address;
use crate::app::history::ChangeSummary;
use crate::app::memories::Listed;
use crate::projects::names::Names;
use crate::ui::moments::{ago, counted, local};

/// Returns a moment as people say it, with the exact time behind it.
fn when(now: Timestamp, then: Timestamp) -> Markup {
    html! { time title=(local(then)) { (ago(now, then)) } }
}

/// Returns the name of a memory as people see it, on one line.
fn shown_name(names: &Names, locator: &Locator) -> String {
    one_line(&names.show(locator)).into_owned()
}

/// Returns a link to a memory.
fn memory_link(names: &Names, locator: &Locator) -> Markup {
    html! { a href=(memory_address(locator)) { (shown_name(names, locator)) } }
}

/// Returns the author of a change: machine, agent and session.
fn author(device: &str, agent: Option<&str>, session: Option<&str>) -> Markup {
    html! {
        span.chip { (one_line(device)) }
        @if let Some(agent) = agent { " " (one_line(agent)) }
        @if let Some(session) = session {
            " " span.dim.small { "session " (one_line(session).chars().take(12).collect::<String>()) }
        }
    }
}

/// Returns a change in a row: author, time, files.
fn change_row(names: &Names, now: Timestamp, change: &ChangeSummary) -> Markup {
    let more = change.count.saturating_sub(change.files.len());
    html! {
        li {
            div.row {
                span.grow {
                    a href=(format!("change?number={}", change.number)) { "Change " (change.number) }
                    " " (author(&change.device, change.agent.as_deref(), change.session.as_deref()))
                    " " span.dim { (one_line(&change.cause)) }
                }
                (when(now, change.time))
            }
            div.small {
                @for (at, (locator, what)) in change.files.iter().enumerate() {
                    @if at > 0 { ", " }
                    span.dim { (what) } " " (memory_link(names, locator))
                }
                @if more > 0 { " " span.dim { "and " (counted(more, "more file")) } }
            }
        }
    }
}

/// Returns the labels of a memory: pinned, out of date.
fn labels(listed: &Listed, today: Day) -> Markup {
    html! {
        @if listed.is_pinned() { span.chip { "pinned" } }
        @match listed.outdated(today) {
            Some(Outdated::SupersededBy(_)) => { span.chip.old { "superseded" } }
            Some(Outdated::Status(status)) => { span.chip.old { (one_line(status).to_lowercase()) } }
            Some(Outdated::StaleAfter(_)) => { span.chip.old { "stale" } }
            None => {}
        }
    }
}

/// Returns a number of bytes as people read it.
fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// Returns a difference of two texts, line by line. `None` stands for no file.
fn difference(before: Option<&[u8]>, after: Option<&[u8]>) -> Markup {
    let text = |bytes: Option<&[u8]>| std::str::from_utf8(bytes.unwrap_or_default()).map(str::to_owned);
    let (Ok(old), Ok(new)) = (text(before), text(after)) else {
        return html! { p.dim { "The content is not text." } };
    };
    if old.len() + new.len() > super::text::MAX_SHOWN_BYTES * 2 {
        return html! { p.dim { "The texts are too long to compare here: " code { "haversack diff" } } };
    }
    let diff = similar::TextDiff::from_lines(&old, &new);
    let groups = diff.grouped_ops(3);
    html! {
        div.diff tabindex="0" {
            @for (at, group) in groups.iter().enumerate() {
                @if at > 0 { span.gap { "⋯" } }
                @for op in group {
                    @for line in diff.iter_changes(op) {
                        @let text = line.value().trim_end_matches(['\n', '\r']);
                        @match line.tag() {
                            similar::ChangeTag::Insert => { span.add { "+ " (super::text::visible(text)) } }
                            similar::ChangeTag::Delete => { span.del { "− " (super::text::visible(text)) } }
                            similar::ChangeTag::Equal => { span { "  " (super::text::visible(text)) } }
                        }
                    }
                }
            }
            @if groups.is_empty() { span.gap { "No difference" } }
        }
    }
}
