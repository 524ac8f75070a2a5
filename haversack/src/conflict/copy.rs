//! Finds the conflict of a file with its copy.

use std::collections::HashMap;

use haversack_store::Locator;

use super::{Conflict, ConflictLines, Copy, Passage, id};
use crate::merge::conflict_name;

/// Returns the conflict of a file with its copy; `None` if the copy has changed.
///
/// The name of a copy contains the hash of its content. A changed copy is thus an ordinary file.
pub fn of_copy(
    copy: &Locator,
    content: &[u8],
    original: &Locator,
    original_content: Option<&[u8]>,
) -> Option<Conflict> {
    if conflict_name(original, content).ok()? != *copy {
        return None;
    }
    let as_text =
        |bytes| std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).unwrap_or_default();
    let [one, other] = [original_content.unwrap_or_default(), content].map(as_text);
    let passage = |text| Passage { device: None, lines: None, text };
    let state = original_content.map(|bytes| blake3::hash(bytes).to_hex().to_string()).unwrap_or_default();
    Some(Conflict {
        id: id(original, &[copy.to_string(), state], 1),
        locator: original.clone(),
        passages: vec![passage(own_lines(one, other)), passage(own_lines(other, one))],
        copy: Some(Copy {
            locator: copy.clone(),
            size_bytes: content.len(),
            original_bytes: original_content.map(<[u8]>::len),
        }),
        place: ConflictLines::Copy,
    })
}

/// Returns the locator of a copy's original; `None` if the name is not a copy's.
pub fn original_name(copy: &Locator) -> Option<Locator> {
    let name = copy.name();
    let (stem, rest) = name.rsplit_once(".conflict-")?;
    let (hash, extension) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parent = copy.parent().unwrap_or_else(Locator::root);
    is_hash.then(|| parent.child(&format!("{stem}{extension}")).ok()).flatten()
}

/// Returns the lines of a text that another text lacks.
fn own_lines(text: &str, other: &str) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    other.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    let mut own = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match counts.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => own.push(line),
        }
    }
    own.join("\n")
}
