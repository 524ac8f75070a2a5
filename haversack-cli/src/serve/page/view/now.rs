//! Now: is all well, what needs the user, what changed since the last visit, what the last session was given.

use std::sync::Arc;

use haversack::display::one_line;
use haversack::ids::Timestamp;
use maud::{Markup, html};

use super::{change_row, when};
use crate::app::history::ChangeSummary;
use crate::app::session;
use crate::app::session::context_record::ContextRecord;
use crate::app::status::Status;
use crate::error::CommandError;
use crate::projects::names::Names;
use crate::serve::page::data::PageData;
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Mood, Section, View, notice};
use crate::ui::moments::counted;

/// The most changes that are looked at for what is new.
const MAX_CHANGES: usize = 200;

/// The most groups of changes that are shown.
const MAX_GROUPS: usize = 12;

/// The most changes of a group that are shown.
const MAX_SHOWN: usize = 8;

struct Now {
    status: Arc<Status>,
    memories: usize,
    projects: usize,
    /// The newest changes, or the reason why there are none.
    changes: Result<Vec<Arc<ChangeSummary>>, String>,
    /// True if the changes are those since the last visit.
    is_since_visit: bool,
    given: Option<ContextRecord>,
}

fn gather(data: &PageData) -> Result<Now, CommandError> {
    let status = data.status()?;
    let catalogue = data.catalogue()?;
    let memories = catalogue.len();
    let projects: std::collections::BTreeSet<&str> =
        catalogue.iter().filter_map(|listed| haversack_recall::project_of(&listed.locator)).collect();
    let projects = projects.len();
    drop(catalogue);
    let changes = data.changes().map_err(|error| error.message);
    let mut changes =
        changes.map(|known| known.changes.iter().take(MAX_CHANGES).cloned().collect::<Vec<_>>());
    let mut is_since_visit = false;
    if let (Ok(changes), Some(visit)) = (&mut changes, data.last_visit)
        && changes.iter().any(|change| change.time > visit)
    {
        changes.retain(|change| change.time > visit);
        is_since_visit = true;
    }
    if let (Ok(changes), false) = (&mut changes, is_since_visit) {
        changes.truncate(MAX_SHOWN);
    }
    let given = session::last(data.settings(), 1).into_iter().next();
    Ok(Now { status, memories, projects, changes, is_since_visit, given })
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let now = gather(data)?;
    let body = html! {
        @if fields.get("done") == "undone" {
            (notice(&html! { "Undone. Your other machines follow at their next sync. Changed your mind: " a href="undo" { "take the undo back" } }, Mood::Good))
        }
        (verdict(&now.status, &data.names()))
        @for line in &now.status.tidy {
            div.card.row {
                span.grow { "Tidying: " (one_line(line.split(": haversack").next().unwrap_or(line))) }
                @if line.contains("--review") { a.button href="inbox" { "Answer" } } @else { a.button href="tidy" { "See what would leave" } }
            }
        }
        dl.facts {
            div { dt { "Memories" } dd { (now.memories) } }
            div { dt { "Projects" } dd { (now.projects) } }
            div { dt { "Machines" } dd { (now.status.devices.len().max(1)) } }
            div { dt { "Waiting to be sent" } dd { (now.status.waiting) } }
            @if let Some(reached) = now.status.reached {
                div { dt { "Last contact" } dd { (when(now.status.now, reached)) } }
            }
        }
        div.cols {
            section.card aria-labelledby="changes" {
                h2 #changes { @if now.is_since_visit { "Changed since your last visit" } @else { "Newest changes" } }
                (changes(data, &now))
            }
            section.card aria-labelledby="given" {
                h2 #given { "What the last session was given" }
                (given(data.now(), now.given.as_ref()))
            }
        }
    };
    Ok(View { section: Section::Now, title: "Now".to_owned(), body })
}

/// Returns the verdict, and the problems with their cures.
pub(in crate::serve::page) fn verdict(status: &Status, names: &Names) -> Markup {
    // The status names files by their locators; people see the short names.
    let abbreviations = names.abbreviations();
    let shown = |text: &str| one_line(&abbreviations.apply(text)).into_owned();
    let class = if status.problems.is_empty() { "card verdict" } else { "card verdict bad" };
    html! {
        div class=(class) {
            h1 { (shown(&status.verdict())) }
            @if !status.problems.is_empty() {
                ol.rows.plain {
                    @for problem in &status.problems {
                        li {
                            div { @for line in problem.what.lines() { (shown(line)) br; } }
                            @if problem.cure == "haversack conflicts" {
                                a.button href="conflicts" { "Settle it" }
                            } @else {
                                span.dim { "→ " } code { (shown(&problem.cure)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the changes in groups, one for each machine, agent and session.
fn changes(data: &PageData, now: &Now) -> Markup {
    let changes = match &now.changes {
        Ok(changes) => changes,
        Err(why) => return html! { p.dim { (one_line(why)) } },
    };
    let names = data.names();
    let mut groups: Vec<(String, Vec<&ChangeSummary>)> = Vec::new();
    for change in changes.iter().map(Arc::as_ref) {
        let key = [Some(change.device.as_str()), change.agent.as_deref(), change.session.as_deref()];
        let key = key.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, of_group)) => of_group.push(change),
            None => groups.push((key, vec![change])),
        }
    }
    html! {
        @if groups.is_empty() { p.dim { "Nothing changed." } }
        @for (name, of_group) in groups.iter().take(MAX_GROUPS) {
            details open {
                summary { strong { (one_line(name)) } " " span.dim { (counted(of_group.len(), "change")) } }
                ol.rows.plain {
                    @for change in of_group.iter().take(MAX_SHOWN) { (change_row(&names, data.now(), change)) }
                }
                @if of_group.len() > MAX_SHOWN { p { a href="time" { "All changes" } } }
            }
        }
    }
}

/// Returns what a session was given, and its cost.
fn given(now: Timestamp, given: Option<&ContextRecord>) -> Markup {
    let Some(given) = given else {
        return html! { p.dim { "No session was given anything yet. " a href="next" { "What the next one would get" } } };
    };
    html! {
        p {
            strong { (one_line(&given.project)) } ", " (when(now, given.time)) ", about "
            strong { (counted(given.tokens, "token")) }
        }
        @if !given.portions.is_empty() { (super::next::portions(&given.portions)) }
        @if let Some(message) = &given.message { p.dim.small { "You saw: " (one_line(message)) } }
    }
}
