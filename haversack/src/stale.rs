//! What in a memory has become wrong by itself: links to files that are gone, memories past their date, citations of code that changed. Pure.
//!
//! - [`links`] reads the links of a text: `[name](file.md)` and `[[file]]`.
//! - [`citations`] reads the places of a repository that a text names: `src/port.rs:10-20`, `src/port.rs:12`, or `Cargo.toml:3`.
//! - [`cited`] returns the cited lines of a file, to be compared with those that were there when the memory was last checked.

use haversack_store::Locator;

use crate::document;

/// The longest range of a citation, in lines.
const MAX_LINES: usize = 2000;

/// A place in a repository that a memory names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// The file, below the root of the checkout.
    pub path: String,
    /// The first line, counted from 1.
    pub first: usize,
    /// The last line.
    pub last: usize,
}

impl Citation {
    /// Returns true if it names no directory: `example.org:8080` looks like `Cargo.toml:80`, so only the checkout can tell if it is a file.
    pub fn may_be_address(&self) -> bool {
        !self.path.contains('/')
    }
}

impl std::fmt::Display for Citation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}:{}", self.path, self.first),
            false => write!(f, "{}:{}-{}", self.path, self.first, self.last),
        }
    }
}

/// Returns the files of the same memory that a text links to. Addresses, anchors and paths that leave the memory are left out.
pub fn links(locator: &Locator, text: &str) -> Vec<Locator> {
    let directory = locator.parent().unwrap_or_else(Locator::root);
    let body = without_code(document::body_of(text));
    let mut targets: Vec<(String, bool)> = Vec::new();
    for (at, _) in body.match_indices("](") {
        let target = body[at + 2..].split([')', '\n']).next().unwrap_or_default();
        let target = target.split(" \"").next().unwrap_or_default().trim().trim_matches(['<', '>']);
        targets.push((target.to_owned(), false));
    }
    for (at, _) in body.match_indices("[[") {
        let inner = body[at + 2..].split(['\n']).next().unwrap_or_default();
        let Some((target, _)) = inner.split_once("]]") else { continue };
        targets.push((target.split(['|', '#']).next().unwrap_or_default().trim().to_owned(), true));
    }
    let resolve = |(target, is_wiki): (String, bool)| {
        let target = target.split('#').next().unwrap_or_default().to_owned();
        if target.is_empty() || target.contains(':') || target.starts_with('/') {
            return None;
        }
        let has_extension = target.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let target = if is_wiki && !has_extension { format!("{target}.md") } else { target };
        below(&directory, &target)
    };
    targets.into_iter().filter_map(resolve).collect()
}

/// Returns a relative path as a locator; `None` if it leaves the memory.
fn below(directory: &Locator, path: &str) -> Option<Locator> {
    let mut place = directory.clone();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => place = place.parent()?,
            name => place = place.child(&name.replace("%20", " ")).ok()?,
        }
    }
    (!place.is_root()).then_some(place)
}

/// Returns a text without its code blocks: what looks like a link in code is none.
fn without_code(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the places of a repository that a text names, without those that it names twice.
pub fn citations(text: &str) -> Vec<Citation> {
    let words = document::body_of(text).split(|c: char| c.is_whitespace() || "()[]<>\"'`,;".contains(c));
    let mut found: Vec<Citation> = words.filter_map(citation).collect();
    found.sort();
    found.dedup();
    found
}

fn citation(word: &str) -> Option<Citation> {
    let (path, lines) = word.trim_end_matches('.').rsplit_once(':')?;
    let is_path =
        path.contains('.') && !path.contains(':') && !path.starts_with(['/', '.']) && !path.contains("..");
    let name = path.rsplit('/').next()?;
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
            && ending.bytes().all(|c| c.is_ascii_alphanumeric())
    });
    let (first, last) = lines.split_once(['-', '–']).unwrap_or((lines, lines));
    let number = |text: &str| text.trim_start_matches('L').parse::<usize>().ok().filter(|number| *number > 0);
    let (first, last) = (number(first)?, number(last)?);
    let is_fit = is_path && has_extension && last >= first && last - first < MAX_LINES;
    is_fit.then(|| Citation { path: path.to_owned(), first, last })
}

/// Returns the lines of a file that a citation names, without indentation; `None` if the file is shorter.
pub fn cited(citation: &Citation, file: &str) -> Option<String> {
    let lines: Vec<&str> = file
        .lines()
        .skip(citation.first - 1)
        .take(citation.last - citation.first + 1)
        .map(str::trim)
        .collect();
    (lines.len() == citation.last - citation.first + 1).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_of_the_memory_are_found() {
        let locator = Locator::parse("lighthouse/notes/a.md").expect("valid");
        let text = "[x](ports.md) [y](../MEMORY.md#top) [[lamp]] [[door.md|the door]] [z](https://example.org/a.md) [q](#here)\n\
                    [s](../../../out.md) [t](</etc/passwd>) [u](two%20words.md \"title\")\n```\n[no](code.md)\n```\n";
        let found: Vec<String> = links(&locator, text).iter().map(Locator::to_string).collect();
        let expected = [
            "lighthouse/notes/ports.md",
            "lighthouse/MEMORY.md",
            "lighthouse/notes/two words.md",
            "lighthouse/notes/lamp.md",
            "lighthouse/notes/door.md",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn citations_are_places_of_files() {
        let text = "See `src/port.rs:10-20`, (src/port.rs:12), src/a.rs:L3. Not http://x.org/a.b:80, 10:30, a.b:c, ../x/y.rs:1, src/a.rs:9-2, example.org:8080, Cargo.toml:3.";
        let found: Vec<String> = citations(text).iter().map(Citation::to_string).collect();
        assert_eq!(
            found,
            ["Cargo.toml:3", "example.org:8080", "src/a.rs:3", "src/port.rs:10-20", "src/port.rs:12"]
        );
        let addresses = citations(text).iter().filter(|citation| citation.may_be_address()).count();
        assert_eq!(addresses, 2);
        let two = Citation { path: "a/b.rs".to_owned(), first: 2, last: 3 };
        assert_eq!(cited(&two, "one\n  two\nthree\n").as_deref(), Some("two\nthree"));
        assert_eq!(cited(&two, "one\ntwo\n"), None);
    }
}
