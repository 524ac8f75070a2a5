//! Walks along connections: neighbours, bounded traversals, shortest paths. Pure.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::Direction;
use super::index::Index;
use super::record::Connection;

/// The limits of a walk.
#[derive(Clone, Debug)]
pub struct Traversal {
    /// The direction in which connections are followed.
    pub direction: Direction,
    /// Only connections of this type.
    pub connection_type: Option<String>,
    /// The most steps from the first node.
    pub max_steps: usize,
    /// The most nodes, including the first one.
    pub max_nodes: usize,
}

/// A node that a walk reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node.
    pub id: String,
    /// Its distance in steps.
    pub steps: usize,
    /// The connection that led there; `None` for the first node.
    pub by: Option<String>,
}

/// Returns the connections of a node, each with the node at its other end; the oldest first.
pub(super) fn neighbours<'a>(
    index: &'a Index,
    id: &'a str,
    connection_type: Option<&'a str>,
    direction: Direction,
) -> impl Iterator<Item = (&'a Arc<Connection>, &'a str)> {
    let fits = move |connection: &&Arc<Connection>| {
        connection_type.is_none_or(|wanted| connection.connection_type == wanted)
    };
    let mut connections: Vec<&Arc<Connection>> = index.connections_of(id).filter(fits).collect();
    connections.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
    connections.into_iter().flat_map(move |connection| {
        let out = (connection.from == id && direction != Direction::In).then_some(connection.to.as_str());
        let back = (connection.to == id && direction != Direction::Out).then_some(connection.from.as_str());
        // A connection of a node with itself is one step, not two.
        let back = if out == back { None } else { back };
        [out, back].into_iter().flatten().map(move |other| (connection, other))
    })
}

/// Returns what is reached from a node, nearest first; every node once, whatever circles there are.
pub(super) fn traverse(index: &Index, id: &str, traversal: &Traversal) -> Vec<Step> {
    let mut reached = vec![Step { id: id.to_owned(), steps: 0, by: None }];
    let mut seen: HashSet<String> = HashSet::from([id.to_owned()]);
    let mut at = 0;
    while let Some(Step { id, steps, .. }) = reached.get(at).cloned() {
        at += 1;
        if steps == traversal.max_steps {
            break;
        }
        for (connection, other) in
            neighbours(index, &id, traversal.connection_type.as_deref(), traversal.direction)
        {
            if reached.len() >= traversal.max_nodes {
                return reached;
            }
            if seen.insert(other.to_owned()) {
                reached.push(Step {
                    id: other.to_owned(),
                    steps: steps + 1,
                    by: Some(connection.id.clone()),
                });
            }
        }
    }
    reached
}

/// Returns a path with the fewest steps; `None` if there is none.
pub(super) fn shortest_path(
    index: &Index,
    from: &str,
    to: &str,
    connection_type: Option<&str>,
    direction: Direction,
) -> Option<Vec<String>> {
    let mut came_from: HashMap<String, String> = HashMap::new();
    let mut queue = VecDeque::from([from.to_owned()]);
    let mut seen: HashSet<String> = HashSet::from([from.to_owned()]);
    while let Some(id) = queue.pop_front() {
        if id == to {
            let mut path = vec![id];
            while let Some(before) = path.last().and_then(|last| came_from.get(last)) {
                path.push(before.clone());
            }
            path.reverse();
            return Some(path);
        }
        for (_, other) in neighbours(index, &id, connection_type, direction) {
            if seen.insert(other.to_owned()) {
                came_from.insert(other.to_owned(), id.clone());
                queue.push_back(other.to_owned());
            }
        }
    }
    None
}
