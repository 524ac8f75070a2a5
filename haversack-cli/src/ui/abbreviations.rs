//! Short names in messages: `lighthouse/ports.md` for `claude_memory/lighthouse-d004b9e9…/ports.md`.
//!
//! Messages are written with locators. [`Ui`](super::Ui) puts the short name in the place of each locator that has one, so that every
//! message shows the same name. Contents of files and JSON are printed as they are.

use std::borrow::Cow;

/// Short names for places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abbreviations {
    /// Place and short name; the longest place first, because one place can begin with the name of another.
    pairs: Vec<(String, String)>,
}

impl Abbreviations {
    /// Returns the abbreviations of these places, each given with its short name.
    pub(crate) fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Abbreviations {
        let mut pairs: Vec<(String, String)> = pairs.into_iter().collect();
        pairs.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
        Abbreviations { pairs }
    }

    /// Returns these abbreviations and one more.
    pub(crate) fn with(mut self, place: String, name: String) -> Abbreviations {
        self.pairs.push((place, name));
        Abbreviations::new(self.pairs)
    }

    /// Returns a text of ours with the short name of each place that has one. A place that is part of a longer path stays as it is.
    pub(crate) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for (place, name) in &self.pairs {
            if text.contains(place.as_str()) {
                text = Cow::Owned(replaced(&text, place, name));
            }
        }
        text
    }
}

fn replaced(text: &str, place: &str, name: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(place) {
        let (before, after) = (&rest[..at], &rest[at + place.len()..]);
        shown.push_str(before);
        let is_whole = !shown.ends_with(is_part_of_name) && !shown.ends_with('/') && ends_name(after);
        shown.push_str(if is_whole { name } else { place });
        rest = after;
    }
    shown + rest
}

/// Returns true if the text after a place is not the rest of a longer name. A full stop may end a sentence.
fn ends_name(after: &str) -> bool {
    let after = after.trim_start_matches('.');
    !after.starts_with(is_part_of_name)
}

fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_replace_whole_places_only() {
        let pair = |place: &str, name: &str| (place.to_owned(), name.to_owned());
        let names = Abbreviations::new([
            pair("claude_memory/light", "light"),
            pair("claude_memory/light-1f", "light-1f"),
            pair("claude_memory/light.agents", "light.agents"),
        ]);
        for (text, expected) in [
            ("Created claude_memory/light/ports.md", "Created light/ports.md"),
            ("allow 'claude_memory/light/my port.md:3'", "allow 'light/my port.md:3'"),
            ("in claude_memory/light.", "in light."),
            ("in claude_memory/light.agents/a.md", "in light.agents/a.md"),
            ("(claude_memory/light-1f)", "(light-1f)"),
            ("claude_memory/lighthouse/a.md", "claude_memory/lighthouse/a.md"),
            ("/memories/claude_memory/light/a.md", "/memories/claude_memory/light/a.md"),
            ("~/.haversack/memory/claude_memory/light/a.md", "~/.haversack/memory/claude_memory/light/a.md"),
            ("a, claude_memory/light/b, claude_memory/light/c", "a, light/b, light/c"),
        ] {
            assert_eq!(names.apply(text), expected, "{text}");
        }
    }
}
