//! Memories: the list by project, kind and age, and the search.

use std::collections::BTreeMap;

use haversack::day::Day;
use haversack::display::one_line;
use haversack::ids::Timestamp;
use haversack::store::Locator;
use haversack_recall::{Hit, Recalled, Unit};
use maud::{Markup, html};

use super::{labels, shown_name, size, when};
use crate::app::memories::{Catalogue, Listed};
use crate::app::recall::{NotRecalled, RecallRequest};
use crate::error::CommandError;
use crate::projects::border;
use crate::projects::names::Names;
use crate::serve::page::data::PageData;
use crate::serve::page::form::{Fields, encoded};
use crate::serve::page::shell::{Mood, Section, View, memory_address, notice};
use crate::serve::page::text::{marked, marked_at};
use crate::ui::moments::counted;

/// The number of memories on a page of the list.
const PAGE: usize = 100;

/// The number of hits that a search shows.
const MAX_HITS: usize = 40;

/// The number of hits that are asked for if some of them are left out by their age or directory, which the index does not know.
const MAX_SIEVED: usize = 400;

/// The most memories that a search shows for their name alone.
const MAX_NAMED: usize = 10;

/// The name of the group of memories in no directory.
const TOP: &str = "/";

const DAY_MILLISECONDS: i64 = 24 * 3600 * 1000;

/// The choices of age: name, text, youngest and oldest in days.
const AGES: [(&str, &str, i64, i64); 4] = [
    ("week", "last 7 days", 0, 7),
    ("month", "last 30 days", 0, 30),
    ("quarter", "last 90 days", 0, 90),
    ("old", "older than 90 days", 90, i64::MAX),
];

/// The choices of the user.
struct Wanted<'f> {
    query: &'f str,
    group: &'f str,
    kind: &'f str,
    age: &'f str,
    page: usize,
}

impl<'f> Wanted<'f> {
    fn of(fields: &'f Fields) -> Wanted<'f> {
        Wanted {
            query: fields.get("q").trim(),
            group: fields.get("group"),
            kind: fields.get("kind"),
            age: fields.get("age"),
            page: fields.get("page").parse().unwrap_or(1).max(1),
        }
    }

    fn holds(&self, listed: &Listed, now: Timestamp) -> bool {
        let is_of_age = AGES.iter().find(|(name, ..)| *name == self.age).is_none_or(|(_, _, young, old)| {
            let days = listed.modified.map_or(0, |modified| (now.0 - modified.0) / DAY_MILLISECONDS);
            (*young..*old).contains(&days)
        });
        is_of_age
            && (self.group.is_empty() || group_name(listed) == self.group)
            && (self.kind.is_empty() || listed.kind == self.kind)
    }

    /// Returns the directory of the chosen group; the root if there is none.
    fn place(&self, catalogue: &Catalogue) -> Locator {
        let is_chosen = |listed: &&Listed| !self.group.is_empty() && group_name(listed) == self.group;
        let Some(listed) = catalogue.iter().find(is_chosen) else { return Locator::root() };
        let depth = match haversack_recall::project_of(&listed.locator) {
            Some(_) => 2,
            None => usize::from(self.group != TOP),
        };
        listed
            .locator
            .segments()
            .take(depth)
            .fold(Locator::root(), |place, name| place.child(name).unwrap_or(place))
    }

    /// Returns the address of another page of the same list.
    fn address(&self, page: usize) -> String {
        format!(
            "memories?group={}&kind={}&age={}&page={page}",
            encoded(self.group),
            encoded(self.kind),
            encoded(self.age)
        )
    }
}

/// Returns the name of a memory's group in a form; memories in no directory have one too.
fn group_name(listed: &Listed) -> &str {
    match listed.group() {
        "" => TOP,
        group => group,
    }
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let wanted = Wanted::of(fields);
    let body = html! {
        @if !fields.get("deleted").is_empty() {
            @let path = fields.get("deleted");
            (notice(&html! { "Deleted " (one_line(path)) ". It stays in the history: " a href=(format!("undo?path={}", encoded(path))) { "undo" } }, Mood::Good))
        }
        h1 { "Memories" }
        (choices(data, &wanted)?)
        div #results aria-live="polite" { (list(data, &wanted)?) }
    };
    Ok(View { section: Section::Memories, title: "Memories".to_owned(), body })
}

/// Returns the list alone, for the search as you type.
pub(in crate::serve::page) fn part(data: &PageData, fields: &Fields) -> Result<Markup, CommandError> {
    list(data, &Wanted::of(fields))
}

fn choices(data: &PageData, wanted: &Wanted<'_>) -> Result<Markup, CommandError> {
    let catalogue = data.catalogue()?;
    let names = data.names();
    let mut groups: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for listed in catalogue.iter() {
        groups.entry(group_name(listed)).or_insert_with(|| (group_title(&names, listed), 0)).1 += 1;
        *kinds.entry(&listed.kind).or_default() += 1;
    }
    Ok(html! {
        form.line action="memories" role="search" {
            label.wide for="query" { "Search" input #query type="search" name="q" value=(wanted.query) autocomplete="off"; }
            label { "Project or directory"
                select name="group" {
                    option value="" { "all" }
                    @for (value, (title, count)) in &groups {
                        option value=(value) selected[*value == wanted.group] { (title) " (" (count) ")" }
                    }
                }
            }
            label { "Kind"
                select name="kind" {
                    option value="" { "all" }
                    @for (kind, count) in &kinds { option value=(kind) selected[*kind == wanted.kind] { (kind) " (" (count) ")" } }
                }
            }
            label { "Changed"
                select name="age" {
                    option value="" { "any time" }
                    @for (name, text, ..) in AGES { option value=(name) selected[name == wanted.age] { (text) } }
                }
            }
            button { "Show" }
        }
    })
}

/// Returns the name of a group as people see it.
fn group_title(names: &Names, listed: &Listed) -> String {
    if haversack_recall::project_of(&listed.locator).is_none() {
        return one_line(group_name(listed)).into_owned();
    }
    let shown = shown_name(names, &listed.locator);
    shown.split('/').next().unwrap_or_default().to_owned()
}

fn list(data: &PageData, wanted: &Wanted<'_>) -> Result<Markup, CommandError> {
    match wanted.query {
        "" => browse(data, wanted),
        _ => search(data, wanted),
    }
}

fn browse(data: &PageData, wanted: &Wanted<'_>) -> Result<Markup, CommandError> {
    let catalogue = data.catalogue()?;
    let names = data.names();
    let (now, today) = (data.now(), data.settings().today());
    let mut chosen: Vec<&Listed> = catalogue.iter().filter(|listed| wanted.holds(listed, now)).collect();
    chosen.sort_by_key(|listed| std::cmp::Reverse(listed.modified));
    let pages = chosen.len().div_ceil(PAGE).max(1);
    let page = wanted.page.min(pages);
    Ok(html! {
        p.dim { (of_all(chosen.len(), catalogue.len())) }
        ol.plain.rows.card {
            @for listed in chosen.iter().skip((page - 1) * PAGE).take(PAGE) { (row(&names, (now, today), listed)) }
            @if chosen.is_empty() { li { "No memory fits. " a href="memories" { "Show all" } } }
        }
        @if pages > 1 {
            nav.tabs aria-label="Pages" {
                @if page > 1 { a href=(wanted.address(page - 1)) { "Newer" } }
                span { "Page " (page) " of " (pages) }
                @if page < pages { a href=(wanted.address(page + 1)) { "Older" } }
            }
        }
    })
}

fn of_all(chosen: usize, all: usize) -> String {
    match all {
        1 => format!("{chosen} of 1 memory"),
        _ => format!("{chosen} of {all} memories, the newest first"),
    }
}

fn row(names: &Names, (now, today): (Timestamp, Day), listed: &Listed) -> Markup {
    html! {
        li {
            div.row {
                span.grow {
                    a href=(memory_address(&listed.locator)) { (one_line(&listed.title)) }
                    br;
                    span.path.dim.small { (shown_name(names, &listed.locator)) }
                }
                (labels(listed, today))
                span.chip { (listed.kind) }
                span.num.dim.small { (size(listed.size_bytes)) }
                @if let Some(modified) = listed.modified { span.small { (when(now, modified)) } }
            }
        }
    }
}

fn search(data: &PageData, wanted: &Wanted<'_>) -> Result<Markup, CommandError> {
    let recalled = match find(data, wanted)? {
        Ok(recalled) => recalled,
        Err(why) => return Ok(html! { p { (why) } }),
    };
    let catalogue = data.catalogue()?;
    Ok(hits(data, wanted, &recalled, &catalogue))
}

/// Finds memories of all projects that are not excluded; the inner error is the reason why there is no answer.
fn find(data: &PageData, wanted: &Wanted<'_>) -> Result<Result<Recalled, String>, CommandError> {
    let catalogue = data.catalogue()?;
    let is_sieved = !wanted.age.is_empty() || wanted.group == TOP;
    let wanted = RecallRequest {
        text: wanted.query.to_owned(),
        within: wanted.place(&catalogue),
        projects: border::reach_from_anywhere(data.settings(), None),
        kinds: Some(wanted.kind.to_owned()).into_iter().filter(|kind| !kind.is_empty()).collect(),
        since: None,
        until: None,
        unit: Unit::Memory,
        limit: if is_sieved { MAX_SIEVED } else { MAX_HITS },
    };
    match data.find(wanted) {
        Ok(found) => Ok(Ok(found)),
        Err(NotRecalled::OtherProject(why)) => Ok(Err(why)),
        Err(NotRecalled::Unknown(error) | NotRecalled::CouldNotLook(error)) => Err(error),
    }
}

fn hits<'r>(data: &PageData, wanted: &Wanted<'_>, recalled: &'r Recalled, catalogue: &Catalogue) -> Markup {
    let names = data.names();
    let (now, today) = (data.now(), data.settings().today());
    let is_wanted = |locator: &Locator| catalogue.get(locator).is_none_or(|listed| wanted.holds(listed, now));
    let chosen = |hits: &'r [Hit]| hits.iter().filter(|hit| is_wanted(&hit.locator)).take(MAX_HITS).collect();
    let (hits, nearly): (Vec<&Hit>, Vec<&Hit>) = (chosen(&recalled.hits), chosen(&recalled.nearly));
    let is_near = hits.is_empty() && !nearly.is_empty();
    let hits = if is_near { nearly } else { hits };
    let named = named(wanted, catalogue, now, |locator| hits.iter().any(|hit| hit.locator == *locator));
    html! {
        p.dim {
            @match hits.len() {
                _ if is_near => { "Nothing has all the words. Nearest, in " (counted(recalled.looked_through, "file")) }
                0 => { "Nothing relevant in " (counted(recalled.looked_through, "file")) }
                count => { (counted(count, "hit")) ", best first, in " (counted(recalled.looked_through, "file")) }
            }
            @if !recalled.unread.is_empty() { ". " (counted(recalled.unread.len(), "file")) " could not be looked through, so there may be more" }
        }
        ol.plain.rows.card {
            @for hit in &hits {
                li {
                    div.row {
                        span.grow {
                            a href=(memory_address(&hit.locator)) {
                                @match catalogue.get(&hit.locator) {
                                    Some(listed) => { (marked(&one_line(&listed.title), wanted.query)) }
                                    None => { (shown_name(&names, &hit.locator)) }
                                }
                            }
                            br;
                            span.path.dim.small { (marked(&shown_name(&names, &hit.locator), wanted.query)) ":" (hit.lines.0) }
                        }
                        span.chip { (hit.kind) }
                    }
                    p.small.memory dir="auto" { (marked_at(&hit.passage, &hit.matches)) }
                    @if let Some(why) = &hit.outdated { p.small.dim { (one_line(why)) } }
                }
            }
            @for listed in &named { (row(&names, (now, today), listed)) }
            @if hits.is_empty() && named.is_empty() { li { "Try fewer or other words." } }
        }
    }
}

/// Returns memories whose title or name contains the query: while a word is typed, the index does not know it yet.
fn named<'c>(
    wanted: &Wanted<'_>,
    catalogue: &'c Catalogue,
    now: Timestamp,
    is_shown: impl Fn(&Locator) -> bool,
) -> Vec<&'c Listed> {
    let query = wanted.query.to_lowercase();
    let has_query = |listed: &&Listed| {
        listed.title.to_lowercase().contains(&query) || listed.locator.name().to_lowercase().contains(&query)
    };
    let others = catalogue.iter().filter(has_query).filter(|listed| wanted.holds(listed, now));
    others.filter(|listed| !is_shown(&listed.locator)).take(MAX_NAMED).collect()
}
