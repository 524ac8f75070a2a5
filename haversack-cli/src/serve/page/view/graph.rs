//! Graph: the memories of a project and the links between them, as a picture.
//!
//! The places are computed here, so the picture is the same on every visit and needs no script. The script adds pan and zoom.

use std::collections::BTreeMap;

use haversack::display::one_line;
use haversack::store::Locator;
use maud::{Markup, html};

use crate::app::memories::Listed;
use crate::error::CommandError;
use crate::serve::page::data::{Listing, PageData};
use crate::serve::page::form::Fields;
use crate::serve::page::shell::{Section, View, memory_address};
use crate::ui::moments::counted;

/// The most memories that are drawn; those with the most links.
const MAX_NODES: usize = 120;

/// How often the places are improved.
const ROUNDS: usize = 220;

/// The side of the square in which the places are computed.
const SIDE: f64 = 1000.0;

/// The longest name in the picture.
const MAX_NAME_CHARACTERS: usize = 28;

/// The longest list of links in words.
const MAX_LISTED: usize = 200;

struct Drawn {
    group: String,
    /// The other groups that have links, with their number of memories.
    groups: BTreeMap<String, usize>,
    nodes: Vec<Node>,
    edges: Vec<(usize, usize)>,
    left_out: usize,
}

struct Node {
    locator: Locator,
    title: String,
    links: usize,
    place: (f64, f64),
    /// The number of its kind's colour.
    color: usize,
}

fn gather(data: &PageData, wanted: &str) -> Result<Drawn, CommandError> {
    let catalogue = data.catalogue()?;
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for listed in catalogue.iter().filter(|listed| degree(&catalogue, listed) > 0) {
        *groups.entry(listed.group().to_owned()).or_default() += 1;
    }
    let largest = groups.iter().max_by_key(|(_, count)| **count).map(|(group, _)| group.clone());
    let group = if groups.contains_key(wanted) { wanted.to_owned() } else { largest.unwrap_or_default() };
    let mut members: Vec<(usize, &Listed)> = catalogue
        .iter()
        .filter(|listed| listed.group() == group)
        .map(|listed| (degree(&catalogue, listed), listed))
        .collect();
    members.retain(|(links, _)| *links > 0);
    members.sort_by_key(|(links, listed)| (std::cmp::Reverse(*links), listed.locator.clone()));
    let left_out = members.len().saturating_sub(MAX_NODES);
    members.truncate(MAX_NODES);
    let mut kinds: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for (links, listed) in &members {
        if !kinds.contains(&listed.kind.as_str()) {
            kinds.push(&listed.kind);
        }
        let color = kinds.iter().position(|kind| *kind == listed.kind).unwrap_or(0) % 6;
        let (locator, title) = (listed.locator.clone(), listed.title.clone());
        nodes.push(Node { locator, title, links: *links, place: (0.0, 0.0), color });
    }
    let at: BTreeMap<&Locator, usize> =
        members.iter().enumerate().map(|(at, (_, listed))| (&listed.locator, at)).collect();
    let mut edges = Vec::new();
    for (from, (_, listed)) in members.iter().enumerate() {
        for target in catalogue.links_of(&listed.locator) {
            if let Some(to) = at.get(target)
                && !edges.contains(&(*to, from))
            {
                edges.push((from, *to));
            }
        }
    }
    for (node, place) in nodes.iter_mut().zip(places(members.len(), &edges)) {
        node.place = place;
    }
    Ok(Drawn { group, groups, nodes, edges, left_out })
}

fn degree(catalogue: &Listing<'_>, listed: &Listed) -> usize {
    catalogue.links_of(&listed.locator).len() + catalogue.links_to(&listed.locator).count()
}

/// Places nodes so that linked ones are near each other and others are apart. The same links give the same places.
fn places(count: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let wanted = SIDE / (count.max(1) as f64).sqrt() * 0.9;
    let mut places: Vec<(f64, f64)> = (0..count)
        .map(|at| {
            // A spiral: no two nodes begin in one place.
            let (turn, radius) = (at as f64 * 2.399_963, (at as f64 + 0.5).sqrt() * wanted * 0.6);
            (SIDE / 2.0 + radius * turn.cos(), SIDE / 2.0 + radius * turn.sin())
        })
        .collect();
    for round in 0..ROUNDS {
        let mut moves = vec![(0.0, 0.0); count];
        let mut push = |from: usize, to: usize, strength: &dyn Fn(f64) -> f64| {
            let (dx, dy) = (places[to].0 - places[from].0, places[to].1 - places[from].1);
            let distance = dx.hypot(dy).max(1.0);
            let force = strength(distance) / distance;
            moves[from].0 += dx * force;
            moves[from].1 += dy * force;
            moves[to].0 -= dx * force;
            moves[to].1 -= dy * force;
        };
        for from in 0..count {
            for to in from + 1..count {
                push(from, to, &|distance| -wanted * wanted / distance);
            }
        }
        for (from, to) in edges {
            push(*from, *to, &|distance| distance * distance / wanted);
        }
        let longest = SIDE / 10.0 * (1.0 - round as f64 / ROUNDS as f64) + 0.5;
        for (place, (dx, dy)) in places.iter_mut().zip(moves) {
            let pull = ((SIDE / 2.0 - place.0) * 0.04, (SIDE / 2.0 - place.1) * 0.04);
            let (dx, dy) = (dx + pull.0, dy + pull.1);
            let length = dx.hypot(dy).max(1.0);
            let step = length.min(longest) / length;
            *place = (place.0 + dx * step, place.1 + dy * step);
        }
    }
    places
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let drawn = gather(data, fields.get("group"))?;
    let names = data.names();
    let body = html! {
        h1 { "Graph" }
        @if drawn.nodes.is_empty() {
            p { "No memory links to another one yet. A link is written as " code { "[[name]]" } " or " code { "[title](file.md)" } "." }
        } @else {
            form.line action="graph" {
                label { "Project or directory"
                    select name="group" {
                        @for (group, count) in &drawn.groups {
                            option value=(group) selected[*group == drawn.group] { (one_line(group)) " (" (count) ")" }
                        }
                    }
                }
                button { "Show" }
                button type="button" data-zoom="in" hidden { "Closer" }
                button type="button" data-zoom="out" hidden { "Farther" }
                button type="button" data-zoom="whole" hidden { "Whole picture" }
            }
            @if drawn.left_out > 0 { p.dim { "The " (MAX_NODES) " memories with the most links are drawn; " (drawn.left_out) " others are not." } }
            div.graph { (picture(&drawn)) }
            details {
                summary { (counted(drawn.edges.len(), "link")) " in words" }
                ul {
                    @for (from, to) in drawn.edges.iter().take(MAX_LISTED) {
                        li { (super::memory_link(&names, &drawn.nodes[*from].locator)) " → " (super::memory_link(&names, &drawn.nodes[*to].locator)) }
                    }
                    @if drawn.edges.len() > MAX_LISTED { li.dim { "and " (drawn.edges.len() - MAX_LISTED) " more" } }
                }
            }
        }
    };
    Ok(View { section: Section::Graph, title: "Graph".to_owned(), body })
}

fn picture(drawn: &Drawn) -> Markup {
    let edge = |least: fn(f64, f64) -> f64, of: fn(&Node) -> f64, start: f64| {
        drawn.nodes.iter().map(of).fold(start, least)
    };
    let (left, top) =
        (edge(f64::min, |node| node.place.0, SIDE) - 90.0, edge(f64::min, |node| node.place.1, SIDE) - 50.0);
    let (right, bottom) =
        (edge(f64::max, |node| node.place.0, 0.0) + 90.0, edge(f64::max, |node| node.place.1, 0.0) + 50.0);
    let whole =
        format!("{left:.0} {top:.0} {:.0} {:.0}", (right - left).max(200.0), (bottom - top).max(200.0));
    html! {
        svg role="group" aria-label="Memories and their links" viewBox=(whole) {
            @for (from, to) in &drawn.edges {
                @let (from, to) = (&drawn.nodes[*from].place, &drawn.nodes[*to].place);
                line.edge x1=(format!("{:.0}", from.0)) y1=(format!("{:.0}", from.1)) x2=(format!("{:.0}", to.0)) y2=(format!("{:.0}", to.1)) {}
            }
            @for node in &drawn.nodes {
                @let radius = (6 + node.links.isqrt() * 3).min(24);
                a.node href=(memory_address(&node.locator)) aria-label=(one_line(&node.title)) {
                    circle class=(format!("s{}", node.color)) cx=(format!("{:.0}", node.place.0)) cy=(format!("{:.0}", node.place.1)) r=(radius) {}
                    text text-anchor="middle" x=(format!("{:.0}", node.place.0)) y=(format!("{:.0}", node.place.1 + radius as f64 + 16.0)) {
                        (short(&node.title))
                    }
                }
            }
        }
    }
}

fn short(title: &str) -> String {
    let title = one_line(title);
    match title.chars().count() > MAX_NAME_CHARACTERS {
        true => format!("{}…", title.chars().take(MAX_NAME_CHARACTERS - 1).collect::<String>()),
        false => title.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_nodes_are_nearer_than_others_and_places_repeat() {
        let edges = [(0, 1), (1, 2), (3, 4)];
        let places = places(6, &edges);
        assert_eq!(places, super::places(6, &edges));
        let distance =
            |from: usize, to: usize| (places[from].0 - places[to].0).hypot(places[from].1 - places[to].1);
        assert!(distance(0, 1) < distance(0, 3), "{places:?}");
        assert!(distance(3, 4) < distance(4, 5), "{places:?}");
        assert!(places.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
    }
}
