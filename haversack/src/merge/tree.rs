//! Data that is made of maps, lists and values, merged by path.
//!
//! A map merges by its keys, a list by its members: a map among them is known by its `id` or `name`, anything else by what it
//! says. Of two times of which both sides changed one the newest is taken, of two counts the greatest.
//!
//! Other values that both sides changed cannot be told apart, and there is no place in data for a note. So one side is taken for all of
//! them, and the other's file is kept beside.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::keyed::{Found, Judge, identified, order, survivors};
use super::{fields, moment};

/// A value with everything below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree {
    /// A value as it is written.
    Leaf(String),
    /// A comment, which is known by what it says.
    Comment(String),
    /// Values by their keys, as they are written; no key is there twice.
    Map(Vec<(String, Tree)>),
    /// Values in order.
    List(List),
}

/// Values in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List {
    pub(super) members: Vec<Tree>,
    /// Whether it is written in one line.
    pub(super) is_inline: bool,
}

/// What two trees came to.
pub(super) struct Grown {
    pub(super) tree: Tree,
    /// The side whose values did not stay.
    pub(super) lost: Option<usize>,
}

/// Merges two trees.
pub(super) fn merge(base: Option<&Tree>, sides: [&Tree; 2]) -> Grown {
    let grow = |prefer: usize| {
        let mut merging = Merging { prefer, path: Vec::new(), clashes: Vec::new() };
        let tree = merging.merge(base, sides[0], sides[1]);
        (tree, merging.clashes)
    };
    let (tree, mut clashes) = grow(0);
    clashes.sort();
    let order = clashes.iter().map(|clash| clash.values[0].cmp(&clash.values[1])).find(|order| order.is_ne());
    match order {
        None => Grown { tree, lost: None },
        Some(Ordering::Less) => Grown { tree: grow(1).0, lost: Some(0) },
        Some(_) => Grown { tree, lost: Some(1) },
    }
}

/// A path at which both sides have another value.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Clash {
    path: Vec<String>,
    values: [Tree; 2],
}

struct Merging {
    prefer: usize,
    path: Vec<String>,
    clashes: Vec<Clash>,
}

impl Merging {
    fn merge(&mut self, base: Option<&Tree>, first: &Tree, second: &Tree) -> Tree {
        if first == second || base == Some(second) {
            return first.clone();
        }
        if base == Some(first) {
            return second.clone();
        }
        match (first, second) {
            (Tree::Map(first), Tree::Map(second)) => {
                let base = if let Some(Tree::Map(base)) = base { base.as_slice() } else { &[] };
                Tree::Map(self.merge_maps(base, first, second))
            }
            (Tree::List(first), Tree::List(second)) => {
                let base = if let Some(Tree::List(base)) = base { base.members.as_slice() } else { &[] };
                Tree::List(self.merge_lists(base, first, second))
            }
            _ => self.choose(first, second).clone(),
        }
    }

    fn merge_maps(
        &mut self,
        base: &[(String, Tree)],
        first: &[(String, Tree)],
        second: &[(String, Tree)],
    ) -> Vec<(String, Tree)> {
        let values = [base, first, second]
            .map(|map| map.iter().map(|(key, value)| (key.as_str(), value)).collect::<HashMap<_, _>>());
        let mut merged: HashMap<&str, Tree> = HashMap::new();
        for key in first.iter().chain(second).map(|(key, _)| key.as_str()) {
            if merged.contains_key(key) {
                continue;
            }
            let [before, one, other] = values.each_ref().map(|map| map.get(key).copied());
            let value = match (before, one, other) {
                (_, Some(one), Some(other)) => {
                    self.path.push(key.to_owned());
                    let value = self.merge(before, one, other);
                    self.path.pop();
                    value
                }
                (None, one, other) => one.or(other).cloned().expect("it is a key of one of them"),
                (Some(before), one, other) => match one.or(other).filter(|value| *value != before) {
                    Some(changed) => changed.clone(),
                    None => continue,
                },
            };
            merged.insert(key, value);
        }
        let keys: Vec<&str> = merged.keys().copied().collect();
        let numbers: HashMap<&str, u32> = (0_u32..).zip(&keys).map(|(number, key)| (*key, number)).collect();
        let ids = |map: &[(String, Tree)]| -> Vec<u32> {
            map.iter().filter_map(|(key, _)| numbers.get(key.as_str()).copied()).collect()
        };
        let compare = |one: u32, other: u32| keys[one as usize].cmp(keys[other as usize]);
        let in_order = order(&ids(base), [&ids(first), &ids(second)], &compare);
        let take = |number: u32| {
            merged.remove_entry(keys[number as usize]).map(|(key, value)| (key.to_owned(), value))
        };
        in_order.into_iter().filter_map(take).collect()
    }

    fn merge_lists(&mut self, base: &[Tree], first: &List, second: &List) -> List {
        let found = |member: &Tree| {
            let identity = identity(member);
            // Members that have the same identity are known by their turn.
            let text = if identity.is_some() { String::new() } else { said(member) };
            Found { identity, text: text.into(), place: 0, value: member.clone() }
        };
        let found = |members: &[Tree]| -> Vec<Found<'static, Tree>> { members.iter().map(found).collect() };
        let [base, one, other] = identified([found(base), found(&first.members), found(&second.members)]);
        let mut kept = survivors(&base, [&one, &other], self);
        let ids = |elements: &[super::keyed::Element<Tree>]| -> Vec<u32> {
            elements.iter().map(|element| element.id).filter(|id| kept.contains_key(id)).collect()
        };
        let compare = |one: u32, other: u32| kept[&one].value.cmp(&kept[&other].value);
        let in_order = order(&ids(&base), [&ids(&one), &ids(&other)], &compare);
        let members =
            in_order.into_iter().filter_map(|id| kept.remove(&id)).map(|element| element.value).collect();
        List { members, is_inline: first.is_inline && second.is_inline }
    }

    fn choose<'t>(&mut self, first: &'t Tree, second: &'t Tree) -> &'t Tree {
        if let (Tree::Leaf(one), Tree::Leaf(other)) = (first, second) {
            let name = |key: &String| key.trim_matches('"').to_owned();
            let is_time = self.path.last().map(name).is_some_and(|name| fields::is_time(&name));
            let is_count = self.path.iter().map(name).any(|name| name == "counts");
            if is_time || is_count {
                let [one, other] = [one, other].map(|leaf| leaf.trim_matches('"'));
                return if moment::compare(one, other).is_lt() { second } else { first };
            }
        }
        self.clashes.push(Clash { path: self.path.clone(), values: [first.clone(), second.clone()] });
        if self.prefer == 0 { first } else { second }
    }
}

impl Judge<Tree> for Merging {
    fn same(&self, one: &Tree, other: &Tree) -> bool {
        one == other
    }

    fn both(&mut self, base: Option<&Tree>, first: &Tree, second: &Tree) -> Tree {
        self.path.push(identity(first).unwrap_or_default());
        let tree = self.merge(base, first, second);
        self.path.pop();
        tree
    }

    fn place(&self, first: u32, _second: u32) -> u32 {
        first
    }
}

/// Returns what a member of a list is known by.
fn identity(member: &Tree) -> Option<String> {
    let Tree::Map(map) = member else { return None };
    let value =
        |wanted: &str| map.iter().find(|(key, _)| key.trim_matches('"') == wanted).map(|(_, value)| value);
    match value("id").or_else(|| value("name"))? {
        Tree::Leaf(leaf) => Some(leaf.trim_matches(['"', '\'']).to_owned()),
        Tree::Comment(_) | Tree::Map(_) | Tree::List(_) => None,
    }
}

/// Returns what a member of a list is known by if it has no identity.
fn said(member: &Tree) -> String {
    match member {
        Tree::Leaf(leaf) => leaf.clone(),
        Tree::Comment(_) | Tree::Map(_) | Tree::List(_) => format!("{member:?}"),
    }
}

/// Tells whether all keys of all maps are there once.
pub(super) fn has_single_keys(map: &[(String, Tree)]) -> bool {
    let mut keys = HashSet::new();
    map.iter().all(|(key, _)| keys.insert(key))
}
