//! Data that is made of maps, lists and values, merged by path.
//!
//! A map merges by its keys, a list by its members: a map in a list is identified by its `id` or `name`, any other member by its
//! says. Of two times of which both sides changed one the newest is taken, of two counts the greatest.
//!
//! Other values that both sides changed cannot be reconciled, and data has no place for a note. So one side is taken for all of
//! them, and the other's file is kept beside.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use super::keyed::{Element, Judge, Named, found, identified, order, survivors};
use super::texts::{Numbering, TextSet};
use super::{fields, moment};

/// A value with everything below it; a copy of it costs nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree<'a> {
    /// A value as it is written.
    Leaf(Cow<'a, str>),
    /// A comment, which is identified by its text.
    Comment(&'a str),
    /// Values by their keys, as they are written; no key is there twice.
    Map(Map<'a>),
    /// Values in order.
    List(Rc<List<'a>>),
}

/// Values by their keys.
pub(super) type Map<'a> = Rc<Vec<(Cow<'a, str>, Tree<'a>)>>;

/// Values in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct List<'a> {
    pub(super) members: Vec<Tree<'a>>,
    /// True if it is written in one line.
    pub(super) is_inline: bool,
}

/// The result for two trees.
pub(super) struct Grown<'a> {
    pub(super) tree: Tree<'a>,
    /// The side whose values did not stay.
    pub(super) lost: Option<usize>,
}

/// Merges two trees.
pub(super) fn merge<'a>(base: Option<&Tree<'a>>, sides: [&Tree<'a>; 2]) -> Grown<'a> {
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
struct Clash<'a> {
    path: Vec<Cow<'a, str>>,
    values: [Tree<'a>; 2],
}

struct Merging<'a> {
    prefer: usize,
    path: Vec<Cow<'a, str>>,
    clashes: Vec<Clash<'a>>,
}

impl<'a> Merging<'a> {
    fn merge(&mut self, base: Option<&Tree<'a>>, first: &Tree<'a>, second: &Tree<'a>) -> Tree<'a> {
        if first == second || base == Some(second) {
            return first.clone();
        }
        if base == Some(first) {
            return second.clone();
        }
        match (first, second) {
            (Tree::Map(first), Tree::Map(second)) => {
                let base = if let Some(Tree::Map(base)) = base { base.as_slice() } else { &[] };
                Tree::Map(Rc::new(self.merge_maps(base, first, second)))
            }
            (Tree::List(first), Tree::List(second)) => {
                let base = if let Some(Tree::List(base)) = base { base.members.as_slice() } else { &[] };
                Tree::List(Rc::new(self.merge_lists(base, first, second)))
            }
            _ => self.choose(first, second).clone(),
        }
    }

    fn merge_maps(
        &mut self,
        base: &[(Cow<'a, str>, Tree<'a>)],
        first: &[(Cow<'a, str>, Tree<'a>)],
        second: &[(Cow<'a, str>, Tree<'a>)],
    ) -> Vec<(Cow<'a, str>, Tree<'a>)> {
        let mut numbers: Numbering<&str> = Numbering::default();
        let mut keys: Vec<&Cow<'a, str>> = Vec::new();
        let mut values: Vec<[Option<&Tree<'a>>; 3]> = Vec::new();
        let mut inputs = [base, first, second].map(|map| Vec::<u32>::with_capacity(map.len()));
        for (input, map) in [base, first, second].into_iter().enumerate() {
            numbers.begin();
            for (key, value) in map {
                let number = numbers.number(key);
                if number as usize == keys.len() {
                    keys.push(key);
                    values.push([None; 3]);
                }
                values[number as usize][input] = Some(value);
                inputs[input].push(number);
            }
        }
        let mut merged: Vec<Option<Tree<'a>>> = Vec::with_capacity(keys.len());
        for (key, [before, one, other]) in keys.iter().zip(values) {
            merged.push(match (before, one, other) {
                (_, Some(one), Some(other)) => {
                    self.path.push((*key).clone());
                    let value = self.merge(before, one, other);
                    self.path.pop();
                    Some(value)
                }
                (None, one, other) => one.or(other).cloned(),
                (Some(before), one, other) => one.or(other).filter(|value| *value != before).cloned(),
            });
        }
        for input in &mut inputs {
            input.retain(|number| merged[*number as usize].is_some());
        }
        let [base, first, second] = inputs;
        let compare = |one: u32, other: u32| keys[one as usize].cmp(keys[other as usize]);
        let in_order = order(&base, [&first, &second], &compare);
        let mut take = |number: u32| Some((keys[number as usize].clone(), merged[number as usize].take()?));
        in_order.iter().copied().filter_map(&mut take).collect()
    }

    fn merge_lists(&mut self, base: &[Tree<'a>], first: &List<'a>, second: &List<'a>) -> List<'a> {
        let named = |members: &[Tree<'a>]| -> Vec<Named<'a, Tree<'a>>> {
            let named = |member: &Tree<'a>| {
                let identity = identity(member);
                // Members that have the same identity are known by their turn.
                let text = if identity.is_some() { Cow::Borrowed("") } else { said(member) };
                Named { identity, text, place: 0, value: member.clone() }
            };
            members.iter().map(named).collect()
        };
        let inputs = [named(base), named(&first.members), named(&second.members)];
        let [base, one, other] = identified(found(inputs));
        let mut kept = survivors(&base, [&one, &other], self);
        let ids = |elements: &[Element<Tree<'a>>]| -> Vec<u32> {
            elements.iter().map(|element| element.id).filter(|id| kept.get(*id).is_some()).collect()
        };
        let compare = |one: u32, other: u32| kept[one].value.cmp(&kept[other].value);
        let [base, one, other] = [ids(&base), ids(&one), ids(&other)];
        let in_order = order(&base, [&one, &other], &compare);
        let members = in_order.iter().filter_map(|id| kept.take(*id)).map(|element| element.value).collect();
        List { members, is_inline: first.is_inline && second.is_inline }
    }

    fn choose<'t>(&mut self, first: &'t Tree<'a>, second: &'t Tree<'a>) -> &'t Tree<'a> {
        if let (Tree::Leaf(one), Tree::Leaf(other)) = (first, second) {
            let mut names = self.path.iter().map(|key| key.trim_matches('"'));
            let is_count = names.clone().any(|name| name == "counts");
            if is_count || names.next_back().is_some_and(fields::is_time) {
                let [one, other] = [one, other].map(|leaf| leaf.trim_matches('"'));
                return if moment::compare(one, other).is_lt() { second } else { first };
            }
        }
        self.clashes.push(Clash { path: self.path.clone(), values: [first.clone(), second.clone()] });
        if self.prefer == 0 { first } else { second }
    }
}

impl<'a> Judge<Tree<'a>> for Merging<'a> {
    fn same(&self, one: &Tree<'a>, other: &Tree<'a>) -> bool {
        one == other
    }

    fn both(&mut self, base: Option<&Tree<'a>>, first: &Tree<'a>, second: &Tree<'a>) -> Tree<'a> {
        self.path.push(identity(first).unwrap_or_default());
        let tree = self.merge(base, first, second);
        self.path.pop();
        tree
    }

    fn place(&self, first: u32, _second: u32) -> u32 {
        first
    }
}

/// Returns the identity of a list's member.
fn identity<'a>(member: &Tree<'a>) -> Option<Cow<'a, str>> {
    let Tree::Map(map) = member else { return None };
    let value =
        |wanted: &str| map.iter().find(|(key, _)| key.trim_matches('"') == wanted).map(|(_, value)| value);
    match value("id").or_else(|| value("name"))? {
        Tree::Leaf(Cow::Borrowed(leaf)) => Some(Cow::Borrowed(leaf.trim_matches(['"', '\'']))),
        Tree::Leaf(Cow::Owned(leaf)) => Some(Cow::Owned(leaf.trim_matches(['"', '\'']).to_owned())),
        Tree::Comment(_) | Tree::Map(_) | Tree::List(_) => None,
    }
}

/// Returns the text that identifies a list's member without an identity.
fn said<'a>(member: &Tree<'a>) -> Cow<'a, str> {
    match member {
        Tree::Leaf(leaf) => leaf.clone(),
        Tree::Comment(_) | Tree::Map(_) | Tree::List(_) => Cow::Owned(format!("{member:?}")),
    }
}

/// Returns true if no map has a key twice.
pub(super) fn has_single_keys(map: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    if map.len() <= FEW_KEYS {
        return (1..map.len()).all(|at| map[..at].iter().all(|(key, _)| *key != map[at].0));
    }
    let mut keys = TextSet::default();
    map.iter().all(|(key, _)| keys.insert(key))
}

/// Up to this number, keys are compared with each other instead of put into a set.
const FEW_KEYS: usize = 8;
