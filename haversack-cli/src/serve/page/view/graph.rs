//! Graph: nodes and memories and what leads from one to another, as `haversack graph draw` lays it out.
//!
//! The picture needs no script: its boxes are links. The script adds pan and zoom.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::display::one_line;
use haversack::graph::draw::{Arrow, BOX_HEIGHT, Picture, PictureBox, Placed, cut};
use haversack::store::Locator;
use maud::{Markup, html};

use crate::app::graph::{LeftOut, around_at_most};
use crate::app::memories::Catalogue;
use crate::error::CommandError;
use crate::projects::names::Names;
use crate::serve::page::data::PageData;
use crate::serve::page::form::{Fields, encoded};
use crate::serve::page::shell::{Section, View, memory_address};
use crate::ui::moments::counted;

/// The most boxes in the picture: a view stays small to load.
const MAX_BOXES: usize = 120;

/// The number of steps that are shown around a memory.
const STEPS: usize = 2;

/// The longest list of links in words.
const MAX_LISTED: usize = 150;

/// The group of nodes, which lie in no project.
const NODES: &str = "nodes";

/// The room around the boxes, in pixels.
const MARGIN: f64 = 24.0;

/// The number of colours.
const COLOURS: usize = 6;

struct Drawn {
    /// The groups that have links, with their number of boxes.
    groups: BTreeMap<String, usize>,
    group: String,
    /// The id of the box in the middle, if the user asked for one.
    center: Option<String>,
    /// True if the memory that the user asked for has no link.
    is_alone: bool,
    picture: Picture,
    left_out: usize,
}

/// Returns the group of a box: its project, its directory, or the nodes.
fn group_of(id: &str) -> String {
    if id.starts_with("mem_") {
        return NODES.to_owned();
    }
    let project =
        Locator::parse(id).ok().and_then(|locator| haversack_recall::project_of(&locator).map(str::to_owned));
    project.unwrap_or_else(|| id.split_once('/').map_or("/", |(directory, _)| directory).to_owned())
}

fn gather(data: &PageData, fields: &Fields) -> Result<(Drawn, Arc<Catalogue>), CommandError> {
    let catalogue = data.catalogue()?;
    let whole = data.graph(&catalogue)?;
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut linked: Vec<&str> = whole.arrows.iter().flat_map(|arrow| [&*arrow.from, &*arrow.to]).collect();
    linked.extend(whole.boxes.iter().map(|one| one.id.as_str()).filter(|id| id.starts_with("mem_")));
    linked.sort_unstable();
    linked.dedup();
    for id in &linked {
        *groups.entry(group_of(id)).or_default() += 1;
    }
    let wanted = fields.get("around");
    let wanted = wanted.strip_suffix(".md").unwrap_or(wanted);
    let center = whole.boxes.iter().find(|one| one.id == wanted).map(|one| one.id.clone());
    let largest = groups.iter().max_by_key(|(_, count)| **count).map(|(group, _)| group.clone());
    let group = match (&center, fields.get("group")) {
        (Some(center), _) => group_of(center),
        (None, group) if groups.contains_key(group) => group.to_owned(),
        (None, _) => largest.unwrap_or_default(),
    };
    let of_group = match &center {
        Some(_) => whole.as_ref().clone(),
        None => {
            let boxes = whole.boxes.iter().filter(|one| group_of(&one.id) == group).cloned();
            // An arrow without both of its boxes is left out below.
            Picture { boxes: boxes.collect(), arrows: whole.arrows.clone() }
        }
    };
    let (picture, LeftOut { boxes: left_out }) =
        around_at_most(&of_group, center.as_deref(), STEPS, MAX_BOXES);
    let is_alone = center.is_none() && !wanted.is_empty();
    Ok((Drawn { groups, group, center, is_alone, picture, left_out }, catalogue))
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let (drawn, catalogue) = gather(data, fields)?;
    let names = data.names();
    let body = html! {
        h1 { "Graph" }
        @if drawn.picture.boxes.is_empty() {
            p { "No memory links to another one yet. A link is written as " code { "[[name]]" } "." }
        } @else {
            form.line action="graph" {
                label { "Project or directory"
                    select name="group" {
                        @for (group, count) in &drawn.groups {
                            option value=(group) selected[*group == drawn.group] { (group_title(&names, group)) " (" (count) ")" }
                        }
                    }
                }
                button { "Show" }
                button type="button" data-zoom="in" hidden { "Closer" }
                button type="button" data-zoom="out" hidden { "Farther" }
                button type="button" data-zoom="whole" hidden { "Whole picture" }
            }
            @if let Some(center) = &drawn.center {
                p.dim { "What is within " (STEPS) " steps of " (one_line(center.rsplit('/').next().unwrap_or(center))) ". " a href=(format!("graph?group={}", encoded(&drawn.group))) { "Show all" } }
            }
            @if drawn.is_alone { p { "That memory has no link of the form " code { "[[name]]" } "." } }
            @if drawn.left_out > 0 { p.dim { "The " (MAX_BOXES) " with the most links are drawn; " (drawn.left_out) " others are not." } }
            (picture(&drawn.picture, &catalogue))
            details {
                summary { (counted(drawn.picture.numbered().count(), "link")) " in words" }
                ul {
                    @for (from, to, arrow) in drawn.picture.numbered().take(MAX_LISTED) {
                        li { (named(&drawn.picture.boxes[from], &catalogue)) " " span.dim { (one_line(&arrow.label)) } " → " (named(&drawn.picture.boxes[to], &catalogue)) }
                    }
                    @if drawn.picture.numbered().count() > MAX_LISTED { li.dim { "and " (drawn.picture.numbered().count() - MAX_LISTED) " more" } }
                }
            }
        }
    };
    Ok(View { section: Section::Graph, title: "Graph".to_owned(), body })
}

/// Returns the name of a group as people see it.
fn group_title(names: &Names, group: &str) -> String {
    if group == "/" || group == NODES {
        return group.to_owned();
    }
    let inside = Locator::parse(&format!("claude_memory/{group}/x")).ok();
    let shown = inside.map(|inside| names.show(&inside));
    let shown = shown.as_deref().and_then(|shown| shown.strip_suffix("/x")).unwrap_or(group);
    one_line(shown.strip_prefix("claude_memory/").unwrap_or(shown)).into_owned()
}

/// Returns the address of the file behind a box; `None` if it has none.
fn address(one: &PictureBox, catalogue: &Catalogue) -> Option<String> {
    let memory = format!("{}.md", one.id);
    let content = format!("_content/nodes/{}.md", one.id);
    let file = [memory, content]
        .iter()
        .filter_map(|path| Locator::parse(path).ok())
        .find(|file| catalogue.get(file).is_some());
    file.map(|file| memory_address(&file))
}

fn named(one: &PictureBox, catalogue: &Catalogue) -> Markup {
    html! {
        @match address(one, catalogue) {
            Some(address) => { a href=(address) { (one_line(&one.label)) } }
            None => { (one_line(&one.label)) }
        }
    }
}

fn picture(picture: &Picture, catalogue: &Catalogue) -> Markup {
    let places = picture.lay_out();
    let mut kinds: Vec<&str> = picture.boxes.iter().map(|one| one.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let colour = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap_or(0) % COLOURS;
    let edge = |least: fn(f64, f64) -> f64, of: &dyn Fn(&Placed) -> f64| {
        places.iter().map(of).reduce(least).unwrap_or(0.0)
    };
    let left = edge(f64::min, &|place| place.x - place.width / 2.0) - MARGIN;
    let top = edge(f64::min, &|place| place.y - BOX_HEIGHT / 2.0) - MARGIN;
    let width = edge(f64::max, &|place| place.x + place.width / 2.0) + MARGIN - left;
    let height = edge(f64::max, &|place| place.y + BOX_HEIGHT / 2.0) + MARGIN - top;
    html! {
        div.graph {
            svg role="group" aria-label="Memories and their links" viewBox=(format!("{left:.0} {top:.0} {width:.0} {height:.0}")) {
                defs { marker #tip viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto" { path.tip d="M0 0L10 5L0 10z" {} } }
                @for (from, to, arrow) in picture.numbered().filter(|(from, to, _)| from != to) { (line(&places[from], &places[to], arrow)) }
                @for (one, place) in picture.boxes.iter().zip(&places) {
                    @let drawn = html! {
                        title { (one_line(&one.label)) ", " (one_line(&one.kind)) }
                        rect class=(format!("box t{}{}", colour(&one.kind), if one.is_missing { " missing" } else { "" }))
                            x=(format!("{:.0}", place.x - place.width / 2.0)) y=(format!("{:.0}", place.y - BOX_HEIGHT / 2.0))
                            width=(format!("{:.0}", place.width)) height=(BOX_HEIGHT) rx="7" {}
                        text.name text-anchor="middle" x=(format!("{:.0}", place.x)) y=(format!("{:.0}", place.y + 4.5)) { (cut(&one.label)) }
                    };
                    @match address(one, catalogue) {
                        Some(address) => { a href=(address) aria-label=(one_line(&one.label)) { (drawn) } }
                        None => { g { (drawn) } }
                    }
                }
            }
        }
        ul.legend aria-label="Kinds" {
            @for kind in &kinds {
                li { svg width="16" height="14" aria-hidden="true" { rect class=(format!("box t{}", colour(kind))) x="1" y="1" width="14" height="12" rx="3" {} } (one_line(kind)) }
            }
        }
    }
}

/// Returns an arrow between two boxes. `links` and `lists` go without saying.
fn line(from: &Placed, to: &Placed, arrow: &Arrow) -> Markup {
    let (x1, y1) = from.border_towards(to.x, to.y);
    let (x2, y2) = to.border_towards(from.x, from.y);
    // A slight bend keeps the two directions between the same boxes apart.
    let (middle_x, middle_y) = ((x1 + x2) / 2.0 - (y2 - y1) * 0.08, (y1 + y2) / 2.0 + (x2 - x1) * 0.08);
    let is_told = !["links", "lists", ""].contains(&arrow.label.as_str());
    html! {
        path.edge d=(format!("M{x1:.0} {y1:.0}Q{middle_x:.0} {middle_y:.0} {x2:.0} {y2:.0}")) marker-end="url(#tip)" {}
        @if is_told {
            text.verb text-anchor="middle" x=(format!("{:.0}", (x1 + x2) / 4.0 + middle_x / 2.0)) y=(format!("{:.0}", (y1 + y2) / 4.0 + middle_y / 2.0)) { (cut(&arrow.label)) }
        }
    }
}
