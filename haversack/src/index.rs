//! Keeps the index of a memory, `MEMORY.md`, within what a session reads of it. Pure.
//!
//! Claude Code reads the first [`MAX_LINES`] lines or [`MAX_BYTES`] bytes of the index and cuts the rest at a line. [`review`] tells what is cut,
//! what is listed twice, and what is missing on either side; [`tidied`] puts the memories that are used most on top, merges double entries and lists
//! what is not listed.

use std::collections::{BTreeMap, BTreeSet};

use crate::merge::link_target;

/// The file.
pub const FILE: &str = "MEMORY.md";

/// The number of lines that a session reads.
pub const MAX_LINES: usize = 200;

/// The number of bytes that a session reads.
pub const MAX_BYTES: usize = 25_000;

/// The findings about an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// Its lines.
    pub lines: usize,
    /// Its bytes.
    pub bytes: usize,
    /// The lines that no session sees.
    pub cut: Vec<String>,
    /// Files that are listed more than once.
    pub doubled: Vec<String>,
    /// Files that are listed and do not exist.
    pub dead: Vec<String>,
    /// Files that exist and are not listed.
    pub unlisted: Vec<String>,
}

impl Review {
    /// Returns true if there is nothing to do.
    pub fn is_well(&self) -> bool {
        let Review { lines: _, bytes: _, cut, doubled, dead, unlisted } = self;
        [cut, doubled, dead, unlisted].into_iter().all(Vec::is_empty)
    }
}

/// An index that is longer than what a session reads of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The lines that it has.
    pub lines: usize,
    /// The lines of them that a session reads.
    pub read: usize,
}

/// Tells whether an index is too long; `None` if a session reads all of it.
pub fn overflow(index: &str) -> Option<Overflow> {
    let lines = index.lines().count();
    let read = lines_read(index);
    (read < lines).then_some(Overflow { lines, read })
}

/// Returns the number of lines of an index that a session reads.
fn lines_read(index: &str) -> usize {
    let mut bytes = 0;
    let fitting = index.split_inclusive('\n').take(MAX_LINES).take_while(|line| {
        bytes += line.len();
        bytes <= MAX_BYTES
    });
    fitting.count()
}

/// Reviews an index. `files` are the memory files of its directory, without the index itself.
pub fn review(index: &str, files: &BTreeSet<String>) -> Review {
    let read = lines_read(index);
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    index.lines().filter_map(target).for_each(|file| *listed.entry(file).or_default() += 1);
    Review {
        lines: index.lines().count(),
        bytes: index.len(),
        cut: index.lines().skip(read).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
        doubled: listed.iter().filter(|(_, count)| **count > 1).map(|(file, _)| file.clone()).collect(),
        dead: listed.keys().filter(|file| !files.contains(*file)).cloned().collect(),
        unlisted: files.iter().filter(|file| !listed.contains_key(*file)).cloned().collect(),
    }
}

/// Returns an index in order: below each heading the memories that are used most come first, a memory is listed once, with the longest of its lines,
/// and `entries` are the lines of files that are not listed. Lines that list no memory stay, and so do lines of files that do not exist: the file may
/// not have arrived yet.
pub fn tidied(index: &str, uses: &BTreeMap<String, u64>, entries: &[String]) -> String {
    let mut longest: BTreeMap<String, &str> = BTreeMap::new();
    for line in index.lines() {
        if let Some(file) = target(line) {
            let kept = longest.entry(file).or_insert(line);
            if line.len() > kept.len() {
                *kept = line;
            }
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut run: Vec<(u64, String)> = Vec::new();
    let mut written = BTreeSet::new();
    let finish = |run: &mut Vec<(u64, String)>, lines: &mut Vec<String>| {
        // The sort is stable: memories that are used as often keep their order.
        run.sort_by_key(|(uses, _)| std::cmp::Reverse(*uses));
        lines.extend(run.drain(..).map(|(_, line)| line));
    };
    for line in index.lines() {
        match target(line) {
            Some(file) => {
                if written.insert(file.clone()) {
                    let count = uses.get(&file).copied().unwrap_or_default();
                    run.push((count, longest.get(&file).map_or(line, |line| *line).to_owned()));
                }
            }
            None => {
                finish(&mut run, &mut lines);
                lines.push(line.to_owned());
            }
        }
    }
    finish(&mut run, &mut lines);
    lines.extend(entries.iter().cloned());
    let line_end = if index.contains("\r\n") { "\r\n" } else { "\n" };
    lines.into_iter().map(|line| format!("{line}{line_end}")).collect()
}

/// Returns the memory file that a line of the index lists: a list item that links to a file of the same directory.
fn target(line: &str) -> Option<String> {
    if !line.trim_start().starts_with(['-', '*', '+']) {
        return None;
    }
    let target = link_target(line)?;
    let target = target.split('#').next().unwrap_or_default();
    let is_file = !target.contains("://") && !target.starts_with(['/', '~']) && !target.contains("..");
    let name = if target.contains('.') { target.to_owned() } else { format!("{target}.md") };
    (is_file && name.ends_with(".md")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "# Memory\n\n- [Lamp](lamp.md) — white\n- [Tide](./tide.md) — twice a day\n- [The lamp](lamp.md) — white, and turns every 10 s\n- [[ghost]] — gone\n- [Docs](https://example.org/x.md)\n\n## People\n- [Ann](relationship_ann.md)\n";

    fn files(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn review_finds_both_sorts_of_orphans_and_doubles() {
        let review = review(INDEX, &files(&["lamp.md", "tide.md", "relationship_ann.md", "new.md"]));
        assert_eq!(review.doubled, ["lamp.md"]);
        assert_eq!(review.dead, ["ghost.md"]);
        assert_eq!(review.unlisted, ["new.md"]);
        assert_eq!(review.cut, Vec::<String>::new());
        assert!(!review.is_well());
        assert_eq!((review.lines, review.bytes), (10, INDEX.len()));
    }

    #[test]
    fn lines_beyond_what_a_session_reads_are_cut() {
        let long: String = (0..230).map(|number| format!("- [{number}]({number}.md)\n")).collect();
        assert_eq!(overflow(&long), Some(Overflow { lines: 230, read: 200 }));
        assert_eq!(review(&long, &BTreeSet::new()).cut.len(), 30);
        let wide = format!("- [a](a.md) {}\n", "x".repeat(987)).repeat(30);
        assert_eq!(overflow(&wide), Some(Overflow { lines: 30, read: 25 }));
        assert_eq!(overflow(&"- x\n".repeat(200)), None);
        assert_eq!(overflow(""), None);
    }

    #[test]
    fn tidied_index_has_the_used_on_top_and_loses_no_other_line() {
        let uses = BTreeMap::from([("tide.md".to_owned(), 3), ("ghost.md".to_owned(), 1)]);
        let tidied_text = tidied(INDEX, &uses, &["- [New](new.md) — new".to_owned()]);
        let expected = "# Memory\n\n- [Tide](./tide.md) — twice a day\n- [[ghost]] — gone\n- [The lamp](lamp.md) — white, and turns every 10 s\n- [Docs](https://example.org/x.md)\n\n## People\n- [Ann](relationship_ann.md)\n- [New](new.md) — new\n";
        assert_eq!(tidied_text, expected);
        assert_eq!(tidied(&tidied_text, &uses, &[]), tidied_text);
        let windows = INDEX.replace('\n', "\r\n");
        let tidied_windows = tidied(&windows, &uses, &["- [New](new.md) — new".to_owned()]);
        assert_eq!(tidied_windows, expected.replace('\n', "\r\n"));
    }
}
