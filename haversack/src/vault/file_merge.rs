//! Merges the logs of all devices into the content of one file. Pure.
//!
//! 1. Find the tips: the last changes of the file that no later change has seen ([`Logs::tips`]).
//! 2. If all tips have the same content, that is the result.
//! 3. Otherwise merge the tips one after the other, in a fixed order. The base of each merge is the state that the authors of both sides had read,
//!    which is computed in the same way.
//!
//! Example (each letter is a line): entry 1 of the laptop writes `a`. The desktop reads it and writes `ab`; the laptop, without reading that, writes `ca`. The tips are
//! the desktop's `ab` and the laptop's `ca`. Both authors had read `a`, so the base is `a` and the result is `cab`.
//!
//! The result depends on the set of entries only, not on the order in which they arrived or on the device that computes it.

use std::collections::{BTreeSet, HashMap};

use haversack_store::{Bytes, Locator};

use super::heads::Heads;
use super::logs::{Logs, Numbered};
use crate::ids::ContentHash;
use crate::log::Content;
use crate::merge::{Merged, Rule, Side, merge};
use crate::sync::planted::{Planted, has};

/// The merged state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// It is not there.
    Absent {
        /// The content before its deletion, if not all authors had seen the deletion.
        before: Option<Bytes>,
    },
    /// It holds what one entry wrote.
    FromEntry {
        /// That entry.
        by: Numbered,
        /// The content.
        content: Content,
    },
    /// It was put together from what several wrote.
    Merged {
        /// The merged content.
        bytes: Bytes,
        /// Contents that could not be put into it, each for a copy beside it.
        copies: Vec<Bytes>,
    },
}

/// Returns the heads of all complete entries: the entries, and all entries that their authors had read, have arrived.
///
/// An entry whose author had read something that has not arrived is waited for, and so are those after it.
pub fn available(logs: &Logs) -> Heads {
    let all = logs.replicas().into_iter().map(|replica| (replica, logs.last(replica)));
    let all = all.fold(Heads::default(), |heads, (replica, last)| heads.with(replica, last));
    let order = logs.between(&Heads::default(), &all);
    order.into_iter().fold(Heads::default(), |heads, (replica, number)| heads.with(replica, number))
}

/// Returns the entries whose content for a file must be at hand to [`merge_file()`] it; none if nothing has to be merged.
pub(super) fn ingredients(logs: &Logs, locator: &Locator, heads: &Heads) -> BTreeSet<Numbered> {
    let mut found = BTreeSet::new();
    let mut met = BTreeSet::new();
    let mut left = vec![logs.tips(locator, heads)];
    while let Some(tips) = left.pop() {
        // Only merged contents and their bases have to be read.
        if (found.is_empty() && is_plain(logs, locator, &tips)) || !met.insert(tips.clone()) {
            continue;
        }
        found.extend(tips.iter().copied());
        let mut known = Heads::default();
        for (index, tip) in tips.iter().enumerate() {
            let knows = logs.with_twins(logs.knows(*tip));
            if logs.is_deletion(locator, *tip) {
                left.push(logs.tips(locator, &logs.seen(*tip)));
            }
            if index > 0 {
                let start = logs.start(locator, &tips[..index], *tip, known.meet(&knows));
                left.push(logs.tips(locator, &start));
            }
            known = known.join(&knows);
        }
    }
    found
}

/// Returns true if all tips have the same content, so that no merge is needed.
fn is_plain(logs: &Logs, locator: &Locator, tips: &[Numbered]) -> bool {
    let after =
        |tip: &Numbered| logs.touch(*tip, locator).and_then(|touch| touch.after).map(|after| after.hash);
    tips.windows(2).all(|pair| after(&pair[0]) == after(&pair[1]))
}

/// Returns the merged state of a file for a reader that has read the logs up to `heads`.
///
/// `heads` must be [`available`], or the heads of an entry's author; `contents` has the contents of the [`ingredients`].
pub fn merge_file(
    logs: &Logs,
    locator: &Locator,
    heads: &Heads,
    contents: &HashMap<ContentHash, Bytes>,
) -> FileOutcome {
    merge_file_cached(logs, locator, heads, contents, &mut MergeCache::default())
}

/// Does the same as [`merge_file()`], with cached results.
pub(super) fn merge_file_cached(
    logs: &Logs,
    locator: &Locator,
    heads: &Heads,
    contents: &HashMap<ContentHash, Bytes>,
    merged: &mut MergeCache,
) -> FileOutcome {
    let tips = logs.tips(locator, heads);
    if is_plain(logs, locator, &tips) {
        let last = tips.last().and_then(|tip| Some((*tip, logs.touch(*tip, locator)?.after?)));
        return last.map_or(FileOutcome::Absent { before: None }, |(by, content)| FileOutcome::FromEntry {
            by,
            content,
        });
    }
    let merged = FileMerger { logs, locator, contents, merged: merged.of(logs, locator) }.at(heads);
    match merged.bytes {
        None => FileOutcome::Absent { before: merged.before },
        Some(bytes) => {
            let hash = ContentHash::of(&bytes);
            // An edit that won over a deletion, or a side that contained everything, is still one entry's content.
            let same = tips.iter().find_map(|tip| {
                let content = logs.touch(*tip, locator)?.after.filter(|content| content.hash == hash)?;
                Some((*tip, content))
            });
            match same {
                Some((by, content)) if merged.copies.is_empty() => FileOutcome::FromEntry { by, content },
                _ => FileOutcome::Merged { bytes, copies: merged.copies },
            }
        }
    }
}

/// The most files with cached results.
const MAX_CACHED_FILES: usize = 1_000;

/// Cached results of merges: later merges of the same entries start from them.
#[derive(Debug, Default)]
pub(super) struct MergeCache {
    /// The number of entries. A new entry can show that two entries contain one commit, which makes the cache invalid.
    entries: usize,
    files: HashMap<Locator, HashMap<Vec<Numbered>, MergedFile>>,
}

impl MergeCache {
    /// Returns the cached results of a file.
    fn of(&mut self, logs: &Logs, locator: &Locator) -> &mut HashMap<Vec<Numbered>, MergedFile> {
        if self.entries != logs.len() || self.files.len() > MAX_CACHED_FILES {
            *self = MergeCache { entries: logs.len(), files: HashMap::new() };
        }
        self.files.entry(locator.clone()).or_default()
    }
}

/// Weaves one file; common starts are met again and again.
struct FileMerger<'a> {
    logs: &'a Logs,
    locator: &'a Locator,
    contents: &'a HashMap<ContentHash, Bytes>,
    /// The results so far, by the merged entries.
    merged: &'a mut HashMap<Vec<Numbered>, MergedFile>,
}

#[derive(Clone, Debug, Default)]
struct MergedFile {
    bytes: Option<Bytes>,
    /// The content before its deletion, if it was deleted.
    before: Option<Bytes>,
    copies: Vec<Bytes>,
}

impl FileMerger<'_> {
    fn at(&mut self, heads: &Heads) -> MergedFile {
        let tips = self.logs.tips(self.locator, heads);
        if let Some(merged) = self.merged.get(&tips) {
            return merged.clone();
        }
        let mut all = MergedFile::default();
        let mut known = Heads::default();
        let mut devices: Vec<&str> = Vec::new();
        for (index, tip) in tips.iter().enumerate() {
            let touch = self.logs.touch(*tip, self.locator);
            let theirs = touch.and_then(|touch| self.contents.get(&touch.after?.hash).cloned());
            let device = self.logs.device(*tip);
            let knows = self.logs.with_twins(self.logs.knows(*tip));
            let before = match self.logs.is_deletion(self.locator, *tip) {
                true => self.at(&self.logs.seen(*tip)).bytes,
                false => None,
            };
            if index == 0 {
                all = MergedFile { bytes: theirs, before, copies: Vec::new() };
                devices.push(device);
            } else {
                let start = self.logs.start(self.locator, &tips[..index], *tip, known.meet(&knows));
                let base = self.at(&start).bytes.filter(|_| !has(Planted::NoCommonStart));
                let ours = Version { bytes: all.bytes.take(), before: all.before.take() };
                let theirs = Version { bytes: theirs, before };
                if theirs.bytes.is_none() {
                    // The author of the deletion had seen the copies too.
                    all.copies.retain(|copy| Some(copy) != base.as_ref());
                }
                let names = devices.join(", ");
                let met =
                    three_way(self.locator, base.as_ref(), (ours.clone(), &names), (theirs.clone(), device));
                all.copies.extend(met.copies);
                (all.bytes, all.before) = (met.bytes, met.before);
                let now = Version { bytes: all.bytes.clone(), before: all.before.clone() };
                // Notes name only devices whose words are in the text. Otherwise a deletion that removed nothing would change the text, and the
                // text would come back for the device that deletes it next.
                if now == theirs && now != ours {
                    devices = vec![device];
                } else if now != ours {
                    devices.push(device);
                }
            }
            known = known.join(&knows);
        }
        if all.bytes.is_none() && !all.copies.is_empty() {
            // The file itself was deleted, but not the copies beside it: the first copy takes the file's place.
            all = MergedFile { bytes: Some(all.copies.remove(0)), before: None, copies: all.copies };
        }
        self.merged.insert(tips, all.clone());
        all
    }
}

/// One side's version of a file.
#[derive(Clone, PartialEq, Eq)]
struct Version {
    /// The content; `None` if it was deleted.
    bytes: Option<Bytes>,
    /// The content before the deletion.
    before: Option<Bytes>,
}

/// Puts together what two made of a file.
///
/// An edit wins over a deletion that its author had not seen, merged with the changes of the other side before the deletion.
fn three_way(
    locator: &Locator,
    base: Option<&Bytes>,
    (ours, our_device): (Version, &str),
    (theirs, their_device): (Version, &str),
) -> MergedFile {
    let gone = |before| MergedFile { bytes: None, before, copies: Vec::new() };
    let met = |ours, theirs| both_ways(locator, base, (ours, our_device), (theirs, their_device));
    match (ours.bytes, theirs.bytes) {
        // Lines removed before either deletion stay removed.
        (None, None) => gone(met(ours.before, theirs.before).bytes),
        (Some(edit), None) if Some(&edit) == base => gone(theirs.before),
        (None, Some(edit)) if Some(&edit) == base => gone(ours.before),
        (Some(ours), None) => met(Some(ours), theirs.before.or_else(|| base.cloned())),
        (None, Some(theirs)) => met(ours.before.or_else(|| base.cloned()), Some(theirs)),
        (Some(ours), Some(theirs)) => met(Some(ours), Some(theirs)),
    }
}

/// Puts together two contents of a file, of which one may not be there.
fn both_ways(
    locator: &Locator,
    base: Option<&Bytes>,
    (ours, our_device): (Option<Bytes>, &str),
    (theirs, their_device): (Option<Bytes>, &str),
) -> MergedFile {
    let only = |bytes| MergedFile { bytes, before: None, copies: Vec::new() };
    let (ours, theirs) = match (ours, theirs) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        (one, other) => return only(one.or(other)),
    };
    if ours == theirs || Some(&theirs) == base {
        return only(Some(ours));
    }
    if Some(&ours) == base {
        return only(Some(theirs));
    }
    let rule = Rule::of(locator, base.map(|base| &base[..]).into_iter().chain([&ours[..], &theirs[..]]));
    let ours = Side { bytes: &ours, device: our_device };
    let theirs = Side { bytes: &theirs, device: their_device };
    let Merged { bytes, copy, .. } = merge(rule, base.map(|base| &base[..]), ours, theirs);
    MergedFile { bytes: Some(bytes), before: None, copies: copy.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommitId, Position, ReplicaId, StoreId, Timestamp};
    use crate::log::{Carried, Commit, FileChange, StateMark, What};
    use crate::vault::entry::Entry;

    /// Logs whose entries change one file.
    struct Story {
        file: Locator,
        logs: Logs,
        contents: HashMap<ContentHash, Bytes>,
    }

    /// A set of lines.
    const LINES: &str = "state/watched_chats";

    fn heads(read: &[(u8, u64)]) -> Heads {
        let replica = |number| ReplicaId::from_bytes([number; 16]);
        read.iter().fold(Heads::default(), |heads, (log, last)| heads.with(replica(*log), *last))
    }

    impl Story {
        fn of(file: &str) -> Story {
            let file = Locator::parse(file).expect("valid");
            Story { file, logs: Logs::default(), contents: HashMap::new() }
        }

        /// Adds an entry that leaves these lines, or nothing; entries with one id bring one commit.
        fn entry(&mut self, id: u8, (log, number): (u8, u64), seen: &[(u8, u64)], lines: Option<&str>) {
            let what = match lines {
                None => What::Delete { before: None },
                Some(lines) => {
                    let bytes = Bytes::copy_from_slice(lines.replace(' ', "\n").as_bytes());
                    let (hash, size) = (ContentHash::of(&bytes), bytes.len() as u64);
                    self.contents.insert(hash, bytes.clone());
                    What::Put { hash, size, content: Carried::Inline(bytes), from: None }
                }
            };
            let commit = Commit {
                store: StoreId::from_bytes([9; 16]),
                position: Position::FIRST,
                id: CommitId::from_bytes([id; CommitId::BYTES]),
                previous: ContentHash::of(b""),
                replica: ReplicaId::from_bytes([log; 16]),
                device: format!("device {log}"),
                agent: None,
                session: None,
                time: Timestamp(0),
                cause: String::new(),
                state: StateMark::empty(),
                changes: vec![FileChange { locator: self.file.clone(), what }],
                odd: Vec::new(),
                notice: None,
            };
            let replica = ReplicaId::from_bytes([log; 16]);
            let seen = heads(seen);
            self.logs.add(&Entry { replica, number, seen, commit: Some(commit), shown: Vec::new() });
        }

        /// Returns the merged lines.
        fn comes_to(&self) -> Option<String> {
            let heads = available(&self.logs);
            let hash = match merge_file(&self.logs, &self.file, &heads, &self.contents) {
                FileOutcome::Absent { .. } => return None,
                FileOutcome::Merged { bytes, copies } => {
                    let copies = copies.iter().map(shown);
                    return Some(
                        [shown(&bytes)].into_iter().chain(copies).collect::<Vec<_>>().join(" beside "),
                    );
                }
                FileOutcome::FromEntry { content, .. } => content.hash,
            };
            self.contents.get(&hash).map(shown)
        }
    }

    fn shown(bytes: &Bytes) -> String {
        let text = String::from_utf8_lossy(bytes);
        let mut lines: Vec<&str> = text.split_whitespace().collect();
        lines.sort_unstable();
        lines.join(" ")
    }

    /// Seed 3060048 of the vault's schedules: two devices had created the file too, so that it won over its deletion with its former content; one
    /// of them removed that, and the other's next change brought it back.
    #[test]
    fn what_stood_against_a_deletion_can_be_removed() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(3, (2, 1), &[], Some("two "));
        story.entry(4, (3, 1), &[], Some("three "));
        story.entry(5, (2, 2), &[(1, 2), (2, 1)], Some("old two more "));
        story.entry(6, (3, 2), &[(1, 2), (3, 1)], Some("three "));
        assert_eq!(story.comes_to().as_deref(), Some("more three two"));
        // Seed 3064008: one of them removed it, the other the whole file.
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(3, (2, 1), &[], Some("two "));
        story.entry(4, (3, 1), &[], Some("three "));
        story.entry(5, (2, 2), &[(1, 2), (2, 1)], Some("two "));
        story.entry(6, (3, 2), &[(1, 2), (3, 1)], None);
        assert_eq!(story.comes_to().as_deref(), Some("three two"));
        // A file that was created again after the deletion is a new file.
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(5, (2, 1), &[(1, 2)], Some("old two "));
        story.entry(6, (3, 1), &[(1, 2)], Some("three "));
        assert_eq!(story.comes_to().as_deref(), Some("old three two"));
    }

    /// Seed 70134810 of the vault's schedules: a line that one device removed while another deleted the file came back with a change that won over
    /// the deletion, because a third device had created the file again.
    #[test]
    fn what_was_removed_beside_a_deletion_does_not_come_back() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (2, 1), &[(1, 1)], None);
        story.entry(3, (1, 2), &[(1, 1)], Some(""));
        story.entry(4, (4, 1), &[], Some("four "));
        story.entry(5, (4, 2), &[(1, 1), (2, 1), (4, 1)], Some("old four more "));
        assert_eq!(story.comes_to().as_deref(), Some("four more"));
        story.entry(6, (3, 1), &[(1, 1), (2, 1)], Some("three "));
        assert_eq!(story.comes_to().as_deref(), Some("four more three"));
    }

    /// Seed 73095335 of the vault's schedules: two devices deleted the file, and one of them had seen that a line was removed from it. The line
    /// came back with a change that won over both deletions.
    #[test]
    fn what_one_of_two_deletions_had_seen_removed_does_not_come_back() {
        let mut story = Story::of(LINES);
        story.entry(1, (3, 1), &[], Some("old "));
        story.entry(2, (3, 2), &[(3, 1)], Some(""));
        story.entry(3, (1, 1), &[(3, 1)], None);
        story.entry(4, (2, 1), &[(3, 2)], Some("two "));
        story.entry(5, (2, 2), &[(2, 1), (3, 2)], None);
        story.entry(6, (3, 3), &[(3, 2)], Some("three "));
        assert_eq!(story.comes_to().as_deref(), Some("three two"));
    }

    /// Seed 76133792 of the vault's schedules: a deletion took nothing from a file that others had changed, but its device was named in the note
    /// there. So the file had changed, and won over the next deletion.
    #[test]
    fn a_deletion_that_takes_nothing_changes_nothing() {
        for deleter in [1, 3, 5] {
            let mut story = Story::of("notes.md");
            story.entry(1, (6, 1), &[], Some("old "));
            story.entry(2, (2, 1), &[(6, 1)], Some("two "));
            story.entry(3, (4, 1), &[(6, 1)], Some("four "));
            let before = story.comes_to().expect("a text");
            assert!(before.contains("device"), "{before}");
            story.entry(4, (deleter, 1), &[(6, 1)], None);
            assert_eq!(story.comes_to(), Some(before));
        }
    }

    /// Seed 3075816 of the vault's schedules: after a removal, the deletion had seen everything. The content before the deletion is not the content that it
    /// held before the removal was known.
    #[test]
    fn what_goes_with_a_removal_is_known() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(3, (2, 1), &[], Some("two "));
        assert_eq!(story.comes_to().as_deref(), Some("old two"));
        story.entry(4, (2, 2), &[(1, 1), (2, 1)], Some("old "));
        let made = merge_file(&story.logs, &story.file, &available(&story.logs), &story.contents);
        let FileOutcome::Absent { before } = made else { panic!("{made:?}") };
        assert_eq!(before.as_ref().map(shown).as_deref(), Some("old"));
    }

    /// Seed 3009334 of the vault's schedules: a device went back to before it had told of a commit, told of it again under its new name, and
    /// deleted the file. Under the old name, it had no file to delete.
    #[test]
    fn a_commit_told_twice_is_one() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("first "));
        story.entry(2, (1, 2), &[(1, 1)], Some("first second "));
        story.entry(2, (2, 1), &[(1, 1)], Some("first second "));
        assert_eq!(story.comes_to().as_deref(), Some("first second"));
        story.entry(3, (2, 2), &[(1, 1), (2, 1)], None);
        assert_eq!(story.comes_to(), None);
        // Later changes of the device under its old name stay valid.
        story.entry(4, (1, 3), &[(1, 2)], Some("first second third "));
        assert_eq!(story.comes_to().as_deref(), Some("first second third"));
    }

    /// Seed 3017503 of the vault's schedules: two that cannot be put together lay beside each other, and when one was deleted, both were.
    #[test]
    fn what_lies_beside_a_deleted_file_takes_its_place() {
        // In both orders.
        for (one, other) in [("one ", "other "), ("other ", "one ")] {
            let mut story = Story::of("sketch.bin");
            story.entry(1, (3, 1), &[], Some(&format!("\0 {one}")));
            story.entry(2, (2, 1), &[], Some(&format!("\0 {other}")));
            let both = story.comes_to().expect("both");
            assert!(both.contains(one.trim()) && both.contains(other.trim()), "{both}");
            story.entry(3, (1, 1), &[(3, 1)], None);
            story.entry(4, (3, 2), &[(3, 1)], None);
            assert_eq!(story.comes_to(), Some(format!("\0 {}", other.trim())));
        }
    }
}
