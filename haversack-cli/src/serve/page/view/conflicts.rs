//! Conflicts: the passages of two machines side by side, settled by one click.

use haversack::display::one_line;
use maud::html;

use super::edit::Outcome;
use super::memory_link;
use crate::app::conflicts::{TracedConflict, parse_keep, resolve, traced_among};
use crate::error::CommandError;
use crate::home::findings::conflicts_in;
use crate::home::{Work, local_history};
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};
use crate::serve::page::text::visible;
use crate::ui::moments::counted;

/// The most conflicts that are shown at once.
const MAX_SHOWN: usize = 50;

struct Open {
    found: Vec<TracedConflict>,
    unread: Vec<String>,
}

fn gather(data: &PageData) -> Result<Open, CommandError> {
    let files = data.catalogue()?.may_conflict();
    let (found, unread) = traced_among(data.settings(), conflicts_in(data.settings(), &files)?)?;
    Ok(Open { found, unread: unread.iter().map(ToString::to_string).collect() })
}

pub(in crate::serve::page) fn view(data: &PageData, _fields: &Fields) -> Result<View, CommandError> {
    let Open { found, unread } = gather(data)?;
    let names = data.names();
    let body = html! {
        h1 {
            @match found.len() {
                0 => { "No memory has two versions" }
                1 => { "1 passage has two versions" }
                count => { (count) " passages have two versions" }
            }
        }
        @if !unread.is_empty() {
            (notice(&html! { (counted(unread.len(), "file")) " could not be read: " (one_line(&unread[0])) }, Mood::Bad))
        }
        @if found.is_empty() { p.dim { "When two machines change one passage, both texts are kept, and they are listed here until you choose." } }
        @for conflict in found.iter().take(MAX_SHOWN) {
            @let id = &conflict.conflict.id;
            article.card aria-labelledby=(format!("conflict-{id}")) {
                h2 id=(format!("conflict-{id}")) {
                    (memory_link(&names, &conflict.conflict.locator))
                    @if let Some(lines) = conflict.lines() { span.dim.small { ", lines " (lines.first) " to " (lines.last) } }
                }
                div.sides {
                    @for (at, (title, body)) in conflict.titles().iter().zip(conflict.bodies()).enumerate() {
                        section {
                            h3 { (one_line(title)) }
                            pre tabindex="0" { (visible(&body)) }
                            form method="post" action="resolve" {
                                (data.token_field())
                                input type="hidden" name="conflict" value=(id);
                                input type="hidden" name="keep" value=(at + 1);
                                button.main aria-label=(format!("Keep this, version {}", at + 1)) { "Keep this" }
                            }
                        }
                    }
                }
                form.buttons method="post" action="resolve" {
                    (data.token_field())
                    input type="hidden" name="conflict" value=(id);
                    input type="hidden" name="keep" value="both";
                    button { "Keep both" }
                    a.button href=(memory_address(&conflict.conflict.locator)) { "Edit it myself" }
                }
            }
        }
        @if found.len() > MAX_SHOWN { p.dim { "And " (found.len() - MAX_SHOWN) " more, shown when these are settled." } }
    };
    Ok(View { section: Section::Conflicts, title: "Conflicts".to_owned(), body })
}

/// Settles one conflict.
pub(in crate::serve::page) fn settle(data: &PageData, fields: &Fields) -> Result<Outcome, CommandError> {
    let keep = parse_keep(fields.get("keep"))
        .map_err(|why| CommandError::user(why, "Use the buttons of the page"))?;
    let id = fields.get("conflict");
    // An id has letters only. A number would mean another conflict after one was settled.
    if id.is_empty() || id.bytes().any(|byte| !byte.is_ascii_lowercase()) {
        return Err(CommandError::user("the form has no conflict in it", "Use the buttons of the page"));
    }
    let settled = resolve(data.settings(), id, keep)?;
    // The file is written. A history that cannot be recorded now is recorded at the next look.
    drop(local_history::record(data.settings(), Work::Sync, "resolve"));
    data.wrote();
    Ok(match settled.left {
        0 => Outcome::GoTo(format!("{}&settled=1", memory_address(&settled.conflict.locator))),
        _ => Outcome::GoTo("conflicts".to_owned()),
    })
}
