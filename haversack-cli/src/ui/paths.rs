//! Paths as people read them and as a shell takes them.

use std::path::Path;

/// Returns a path as people write it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns a text as a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_-./:@%+=,~\\".contains(character);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
