//! Finds the original of a file that a sync client put aside because it could not upload it. Pure.
//!
//! Google Drive moves such files out of the folder into one directory for all failed uploads. Mostly the
//! file's name is all that is left of its path. A name proves nothing, so we import only a text that was clearly made from a file of the memory.
//! Log files need no rescue: their device keeps them at home and writes them to the folder again.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::copies::conflict_copy;
use crate::ids::ContentHash;
use crate::store::Locator;

/// The least number of bytes that a text shares with the text that it was made from.
const MIN_SHARED_BYTES: usize = 32;

/// The names and contents that logs know.
#[derive(Clone, Debug, Default)]
pub struct Named {
    by_name: HashMap<String, BTreeSet<Locator>>,
    contents: HashSet<ContentHash>,
}

impl Named {
    /// Returns an index of the contents that logs name.
    pub fn of(named: impl IntoIterator<Item = (Locator, ContentHash)>) -> Named {
        let mut all = Named::default();
        for (locator, hash) in named {
            all.contents.insert(hash);
            let name = locator.name().to_lowercase();
            all.by_name.entry(name).or_default().insert(locator);
        }
        all
    }

    /// Returns true if a log has the content: then nothing of it is lost.
    pub fn has(&self, content: &[u8]) -> bool {
        self.contents.contains(&ContentHash::of(content))
    }

    /// Returns the files that one may have been which was put aside, by the path it has there.
    ///
    /// If several have its name, those that share most of the directories with it.
    pub fn candidates(&self, path: &[&str]) -> Vec<Locator> {
        let Some((name, above)) = path.split_last() else { return Vec::new() };
        // If a file of its name existed there, the client added a number.
        let without_number = conflict_copy(name).map(|copy| copy.original.to_lowercase());
        let found = self.by_name.get(&name.to_lowercase());
        let Some(found) = found.or_else(|| self.by_name.get(&without_number?)) else { return Vec::new() };
        let shared = |locator: &Locator| {
            let directories: Vec<&str> =
                locator.segments().take(locator.segments().count().saturating_sub(1)).collect();
            let both = directories.iter().rev().zip(above.iter().rev());
            both.take_while(|(one, other)| one.to_lowercase() == other.to_lowercase()).count()
        };
        let most = found.iter().map(shared).max().unwrap_or_default();
        found.iter().filter(|locator| shared(locator) == most).cloned().collect()
    }
}

/// Returns true if a text was clearly made from another one: it contains at least half of it, and more than a heading.
pub fn is_made_from(text: &str, other: &str) -> bool {
    let lines = |text: &'_ str| -> HashSet<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let (text, other) = (lines(text), lines(other));
    let bytes: usize = other.iter().map(String::len).sum();
    let shared: usize = other.intersection(&text).map(String::len).sum();
    shared >= MIN_SHARED_BYTES && shared * 2 >= bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(keys: &[&str]) -> Named {
        let each = |key: &&str| {
            (Locator::parse(key).expect("a plain name"), ContentHash::of(format!("{key} v1").as_bytes()))
        };
        Named::of(keys.iter().map(each))
    }

    fn candidates(named: &Named, path: &str) -> Vec<String> {
        let path: Vec<&str> = path.split('/').collect();
        named.candidates(&path).iter().map(Locator::to_string).collect()
    }

    #[test]
    fn a_file_is_looked_for_by_its_name_and_what_is_left_of_its_path() {
        let named = named(&["notes/lighthouse.md", "a/x/index.md", "b/x/index.md", "c/index.md"]);
        assert_eq!(candidates(&named, "lighthouse.md"), ["notes/lighthouse.md"]);
        assert_eq!(candidates(&named, "1234/LightHouse.md"), ["notes/lighthouse.md"]);
        assert_eq!(candidates(&named, "lighthouse (1).md"), ["notes/lighthouse.md"]);
        assert_eq!(candidates(&named, "1234/index.md"), ["a/x/index.md", "b/x/index.md", "c/index.md"]);
        assert_eq!(candidates(&named, "1234/x/index.md"), ["a/x/index.md", "b/x/index.md"]);
        assert_eq!(candidates(&named, "1234/b/x/index.md"), ["b/x/index.md"]);
        for strange in ["", "other.md", "lighthouse.txt", "notes", "lighthouse.md/x"] {
            assert_eq!(candidates(&named, strange), [""; 0], "{strange}");
        }
        assert!(named.has(b"c/index.md v1") && !named.has(b"c/index.md v2"));
    }

    #[test]
    fn a_text_is_made_from_another_if_it_has_most_of_it() {
        let ours = "# Lighthouse\n\n- the lamp is lit at dusk\n- the oil is low in november\n";
        let edited = "# Lighthouse\n\n- the lamp is lit at dusk\n- the oil is low in november\n- by hand\n";
        assert!(is_made_from(edited, ours));
        assert!(is_made_from("# Lighthouse\n- the lamp is lit at dusk\n", ours), "some of it was taken out");
        for other in ["", "# Lighthouse\n- another one altogether\n", "- the oil is low in november\n"] {
            assert!(!is_made_from(other, ours), "{other}");
        }
        assert!(!is_made_from("# Notes\n- of somebody else\n", "# Notes\n"), "a heading says nothing");
    }
}
