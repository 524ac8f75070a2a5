//! Finds renames: a file that is gone, and a new file that continues it.
//!
//! No program tells us that it renamed a file. We see one file less and one file more. The two are a rename if one of these holds, tried in
//! this order, and each file belongs to at most one rename:
//!
//! 1. The contents are equal, and so are the last parts of the names (`a/notes.md` → `b/notes.md`).
//! 2. The names differ only by case (`notes.md` → `NOTES.md`).
//! 3. The contents are equal.
//! 4. The new file has at least half of the lines of the old one ([`similar`]).
//!
//! A copy that a merge put beside a file (`map.conflict-1a2b3c4d.png`) continues no file.
//!
//! A rename is published in one commit, both halves or neither: otherwise other devices could delete the old name and never get the new one.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use haversack_store::{Backend, Bytes, ErrorKind, Locator, Result as StoreResult};

use super::plan::{Bases, Contents, Named, Pending};
use super::state::State;
use crate::conflict::original_name;
use crate::ids::ContentHash;

/// The most files on each side that are compared line by line.
const MAX_COMPARED_FILES: usize = 32;

/// The largest file that is compared line by line.
const MAX_COMPARED_BYTES: u64 = 256 * 1024;

/// A file that has another name now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rename {
    /// The old name.
    pub(crate) from: Locator,
    /// The new name.
    pub(crate) to: Locator,
    /// The content that the log has under the old name.
    pub(crate) before: ContentHash,
}

/// The properties that two files of a rename share: a name, a content, or both.
type Key = (String, Option<ContentHash>);

/// In what two files are alike.
#[derive(Clone, Copy)]
enum Likeness {
    ContentAndName,
    /// The names differ only by case.
    Name,
    Content,
}

impl Likeness {
    /// Returns the common properties of a rename's files; `None` for an empty file, whose content proves nothing.
    fn key(self, (locator, hash): &Named) -> Option<Key> {
        let content = Some(*hash).filter(|hash| *hash != ContentHash::of(b""));
        match self {
            Likeness::ContentAndName => Some((locator.name().to_owned(), Some(content?))),
            Likeness::Name => Some((locator.folded(), None)),
            Likeness::Content => Some((String::new(), Some(content?))),
        }
    }
}

/// Pairs files that are gone with new files by name and content.
pub(crate) fn pair(gone: &[Named], new: &[Named]) -> Vec<Rename> {
    if gone.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut renames = Vec::new();
    let is_copy: Vec<bool> = new.iter().map(|(locator, _)| original_name(locator).is_some()).collect();
    let mut is_paired = (vec![false; gone.len()], is_copy);
    for likeness in [Likeness::ContentAndName, Likeness::Name, Likeness::Content] {
        let mut waiting: HashMap<Key, VecDeque<usize>> = HashMap::new();
        for (number, file) in new.iter().enumerate().filter(|(number, _)| !is_paired.1[*number]) {
            if let Some(key) = likeness.key(file) {
                waiting.entry(key).or_default().push_back(number);
            }
        }
        for (number, file) in gone.iter().enumerate() {
            if is_paired.0[number] {
                continue;
            }
            let found = likeness.key(file).and_then(|key| waiting.get_mut(&key)?.pop_front());
            if let Some(found) = found {
                (is_paired.0[number], is_paired.1[found]) = (true, true);
                let (from, to) = (file.0.clone(), new[found].0.clone());
                renames.push(Rename { from, to, before: file.1 });
            }
        }
    }
    renames
}

/// Returns the renames in a working directory, by name and content only.
pub(crate) fn in_directory(bases: Bases<'_>, local: &Contents) -> Vec<Rename> {
    let (gone, new) = bases.gone_and_new(local);
    pair(&gone, &new)
}

/// Returns the renames in a working directory; files that are left are compared line by line.
pub(super) async fn find(
    files: &dyn Backend,
    state: &State,
    local: &Contents,
    pending: &Pending,
) -> StoreResult<Vec<Rename>> {
    let bases = state.known.bases();
    let hash = |locator: &Locator| Some((locator.clone(), bases.files.get(locator)?.hash));
    let gone: Vec<Named> = pending.deleted.iter().filter_map(hash).collect();
    let is_new = |locator: &&Locator| !bases.files.contains_key(*locator);
    let new = pending.changed.iter().filter(is_new);
    let new: Vec<Named> = new.filter_map(|locator| Some((locator.clone(), local.get(locator)?))).collect();
    let mut renames = pair(&gone, &new);
    let (from, to): (BTreeSet<&Locator>, BTreeSet<&Locator>) =
        renames.iter().map(|rename| (&rename.from, &rename.to)).unzip();
    let gone: Vec<&Named> = gone.iter().filter(|(locator, _)| !from.contains(locator)).collect();
    let is_left = |(locator, _): &&Named| !to.contains(locator) && original_name(locator).is_none();
    let new: Vec<&Named> = new.iter().filter(is_left).collect();
    if gone.is_empty() || new.is_empty() || gone.len().max(new.len()) > MAX_COMPARED_FILES {
        return Ok(renames);
    }
    let mut old_texts = Vec::new();
    for (locator, hash) in gone {
        let size = bases.files.get(locator).map_or(0, |content| content.size);
        if size <= MAX_COMPARED_BYTES
            && let Some(bytes) = state.kept(hash).await?
        {
            old_texts.push((locator.clone(), *hash, bytes));
        }
    }
    let mut new_texts = Vec::new();
    for (locator, _) in new {
        match files.info(locator).await {
            Ok(info) if info.size_bytes > MAX_COMPARED_BYTES => continue,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        }
        match files.read(locator).await {
            Ok(object) => new_texts.push((locator.clone(), object.bytes)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid) => {}
            Err(error) => return Err(error),
        }
    }
    renames.extend(similar(&old_texts, new_texts));
    Ok(renames)
}

/// Pairs files of which the new one has at least half of the lines of the old one; the most alike first.
fn similar(gone: &[(Locator, ContentHash, Bytes)], new: Vec<(Locator, Bytes)>) -> Vec<Rename> {
    let new: Vec<(Locator, BTreeMap<&[u8], usize>)> =
        new.iter().map(|(locator, bytes)| (locator.clone(), lines(bytes))).collect();
    let mut pairs = Vec::new();
    for (old_number, (_, _, bytes)) in gone.iter().enumerate() {
        let old = lines(bytes);
        let total: usize = old.values().sum();
        for (new_number, (_, new)) in new.iter().enumerate() {
            let common: usize =
                old.iter().map(|(line, count)| new.get(line).map_or(0, |other| *count.min(other))).sum();
            if common > 0 && common * 2 >= total {
                pairs.push((common, old_number, new_number));
            }
        }
    }
    // The most lines in common first; then in the order of the names.
    pairs.sort_by_key(|(common, old, new)| (std::cmp::Reverse(*common), *old, *new));
    let mut renames = Vec::new();
    let mut is_paired = (vec![false; gone.len()], vec![false; new.len()]);
    for (_, old, to) in pairs {
        if !is_paired.0[old] && !is_paired.1[to] {
            (is_paired.0[old], is_paired.1[to]) = (true, true);
            let (from, before, _) = &gone[old];
            renames.push(Rename { from: from.clone(), to: new[to].0.clone(), before: *before });
        }
    }
    renames
}

/// Counts the lines of a text that are not blank.
fn lines(text: &[u8]) -> BTreeMap<&[u8], usize> {
    let mut lines = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if !line.is_empty() {
            *lines.entry(line).or_default() += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("valid")
    }

    fn named(files: &[(&str, &str)]) -> Vec<Named> {
        files.iter().map(|(key, text)| (at(key), ContentHash::of(text.as_bytes()))).collect()
    }

    fn shown(renames: &[Rename]) -> Vec<(&str, &str)> {
        renames.iter().map(|rename| (rename.from.as_str(), rename.to.as_str())).collect()
    }

    #[test]
    fn renames_are_found_one_to_one() {
        let gone = named(&[
            ("a/notes.md", "x"),
            ("empty.md", ""),
            ("old.md", "y"),
            ("ports.md", "z"),
            ("same.md", "x"),
        ]);
        let new = named(&[
            ("PORTS.md", "edited"),
            ("b/notes.md", "x"),
            ("c/other.md", "x"),
            ("new.md", "y"),
            ("void.md", ""),
        ]);
        let renames = pair(&gone, &new);
        assert_eq!(
            shown(&renames),
            [
                ("a/notes.md", "b/notes.md"),
                ("ports.md", "PORTS.md"),
                ("old.md", "new.md"),
                ("same.md", "c/other.md")
            ]
        );
        assert_eq!(pair(&gone, &[]), []);
        let copy = named(&[("old.conflict-0123abcd.md", "y")]);
        assert_eq!(pair(&gone, &copy), [], "a copy that a merge made is no rename");
    }

    #[test]
    fn renames_with_an_edit_are_found_by_their_lines() {
        let text = |text: &str| Bytes::from(text.to_owned());
        let gone = [("a.md", "one\ntwo\n\nthree\nfour\n"), ("b.md", "five\nsix\n")];
        let gone = gone.map(|(key, bytes)| (at(key), ContentHash::of(bytes.as_bytes()), text(bytes)));
        let new = [("c.md", "one\nfour\n"), ("d.md", "one\ntwo\nthree\nseven\n"), ("e.md", "eight\n")];
        let new = new.map(|(key, bytes)| (at(key), text(bytes))).to_vec();
        assert_eq!(shown(&similar(&gone, new)), [("a.md", "d.md")]);
    }
}
