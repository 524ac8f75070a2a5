//! Data, as a program writes it: nodes that are known by their ids.

use serde_json::{Value, json};

use super::Wish;
use crate::random::Random;
use crate::sync::unit::key;

/// Returns what a registry becomes; `None` if it cannot be read.
pub(super) fn edit(wish: Wish, before: &str, unit: &str, random: &mut Random) -> Option<String> {
    let mut registry: Value = match before.trim() {
        "" => json!({ "nodes": [] }),
        text => serde_json::from_str(text).ok()?,
    };
    let nodes = registry.get_mut("nodes")?.as_array_mut()?;
    let one = (!nodes.is_empty()).then(|| random.between(0, nodes.len() - 1));
    match (wish, one) {
        (Wish::Remove, Some(one)) => drop(nodes.remove(one)),
        (Wish::Reword, Some(one)) => nodes[one]["title"] = unit.into(),
        (Wish::Move, Some(one)) => {
            let node = nodes.remove(one);
            nodes.insert(random.between(0, nodes.len()), node);
        }
        _ => {
            let at = random.between(0, nodes.len());
            nodes.insert(at, json!({ "id": key(unit), "title": unit }));
        }
    }
    Some(serde_json::to_string_pretty(&registry).expect("it prints") + "\n")
}
