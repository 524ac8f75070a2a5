//! The entries of all logs, without their contents: who changed which file, having read what.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use haversack_store::Locator;

use super::entry::Entry;
use super::heads::Heads;
use crate::ids::{CommitId, ContentHash, Position, ReplicaId};
use crate::log::{Content, What};
use crate::sync::planted::{Planted, has};

/// An entry's place: whose log, and which of its entries, the first being 1.
pub(super) type Numbered = (ReplicaId, u64);

/// An entry without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EntryInfo {
    seen: Heads,
    device: String,
    /// The id of its commit, and where that is in its author's own order.
    commit: Option<(CommitId, Position)>,
    touched: BTreeMap<Locator, Touch>,
    shown: Vec<(Locator, ContentHash)>,
}

/// Tells if two devices changed a file without seeing each other's content: a sync client may have replaced one content by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crossed {
    No,
    Yes,
}

/// An entry's change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// The content after it; `None` if it was deleted.
    pub(super) after: Option<Content>,
    /// The content that it extends, if it only appends.
    extends: Option<ContentHash>,
    /// True if it won over a deletion.
    stood: bool,
}

/// The entries that are there, without their contents.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    entries: BTreeMap<Numbered, EntryInfo>,
    /// The entries that contain a commit: more than one if a device was copied before it sent the commit.
    commits: HashMap<CommitId, Vec<Numbered>>,
    /// Of those, the ones that are more than one.
    twins: Vec<Vec<Numbered>>,
    /// The entries by the ids that they have in other devices' orders.
    taken: HashMap<CommitId, Numbered>,
    /// The ids that first parts of entries have in other devices' orders.
    first_parts: HashSet<CommitId>,
    /// For every file the entries that changed it.
    touching: HashMap<Locator, BTreeMap<ReplicaId, Vec<u64>>>,
}

impl Logs {
    /// Adds an entry; one that is there stays as it is.
    pub fn add(&mut self, entry: &Entry) {
        let at = (entry.replica, entry.number);
        if self.entries.contains_key(&at) {
            return;
        }
        let mut known = EntryInfo {
            seen: entry.seen.clone(),
            device: String::new(),
            commit: None,
            touched: BTreeMap::new(),
            shown: entry.shown.clone(),
        };
        if let Some(commit) = &entry.commit {
            known.device.clone_from(&commit.device);
            known.commit = Some((commit.id, commit.position));
            let twins = self.commits.entry(commit.id).or_default();
            twins.push(at);
            if twins.len() > 1 {
                self.twins.retain(|others| !others.contains(&twins[0]));
                self.twins.push(twins.clone());
            }
            self.taken.insert(taken_id(at), at);
            // Only an entry with twins, for example a rename by case, is imported as two commits.
            let mut names = BTreeSet::new();
            if commit.changes.iter().any(|change| change.what.after().is_none())
                && !commit.changes.iter().all(|change| names.insert(change.locator.folded()))
            {
                self.first_parts.insert(first_part_id(at));
            }
            for change in &commit.changes {
                let (extends, stood) = match &change.what {
                    What::Append { base, .. } => (Some(*base), false),
                    What::Put { from, .. } => (None, from.is_some()),
                    What::Delete { .. } => (None, false),
                };
                let touch = Touch { after: change.what.after(), extends, stood };
                known.touched.insert(change.locator.clone(), touch);
                let numbers =
                    self.touching.entry(change.locator.clone()).or_default().entry(at.0).or_default();
                let place = numbers.partition_point(|number| *number < at.1);
                numbers.insert(place, at.1);
            }
        }
        self.entries.insert(at, known);
    }

    /// Returns how many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if some entry changed a file.
    pub fn is_touched(&self, locator: &Locator) -> bool {
        self.touching.contains_key(locator)
    }

    /// Returns true if an entry is there.
    pub fn has(&self, at: Numbered) -> bool {
        self.entries.contains_key(&at)
    }

    /// Returns the entry of a commit in a device's home log: an imported one, or one that the device wrote, under any of its names.
    pub fn of_commit(&self, id: CommitId, names: &[ReplicaId]) -> Option<Numbered> {
        let wrote = self.commits.get(&id).into_iter().flatten().find(|(replica, _)| names.contains(replica));
        self.taken.get(&id).or(wrote).copied()
    }

    /// Returns true if a commit of a device's home log is the first part of an entry that was imported as two commits.
    pub fn is_first_part(&self, id: CommitId) -> bool {
        self.first_parts.contains(&id)
    }

    /// Returns where an entry's commit is in its author's own order.
    pub fn position(&self, at: Numbered) -> Option<Position> {
        Some(self.entries.get(&at)?.commit?.1)
    }

    /// Returns the replicas whose logs are there.
    pub fn replicas(&self) -> BTreeSet<ReplicaId> {
        self.entries.keys().map(|(replica, _)| *replica).collect()
    }

    /// Returns the number of a log's last entry here; 0 if there is none.
    pub fn last(&self, replica: ReplicaId) -> u64 {
        let log = self.entries.range((replica, 0)..=(replica, u64::MAX));
        log.last().map_or(0, |((_, number), _)| *number)
    }

    /// Returns the heads of an entry's author, with the entry itself.
    pub fn knows(&self, at: Numbered) -> Heads {
        let seen = self.entries.get(&at).map(|entry| entry.seen.clone()).unwrap_or_default();
        seen.with(at.0, at.1)
    }

    /// Adds the entries of other logs with the same commits: a commit is in two logs if its device was restored from a backup.
    pub(super) fn with_twins(&self, mut heads: Heads) -> Heads {
        if self.twins.is_empty() {
            return heads;
        }
        loop {
            let before = heads.clone();
            for twins in &self.twins {
                if twins.iter().any(|(replica, number)| heads.of(*replica) >= *number) {
                    // A log is known from its start.
                    let next = twins.iter().filter(|(replica, number)| before.of(*replica) + 1 == *number);
                    heads = next.fold(heads, |heads, (replica, number)| heads.with(*replica, *number));
                }
            }
            if heads == before {
                return heads;
            }
        }
    }

    /// Returns the files that an entry changed.
    pub fn files(&self, at: Numbered) -> impl Iterator<Item = &Locator> {
        self.entries.get(&at).into_iter().flat_map(|entry| entry.touched.keys())
    }

    /// Returns the entries within `heads` that are not within `read`, each after those that its author had read.
    pub fn between(&self, read: &Heads, heads: &Heads) -> Vec<Numbered> {
        let mut order = Vec::new();
        let mut read = read.clone();
        loop {
            let before = order.len();
            for (replica, last) in heads.each() {
                let mut next = read.of(replica) + 1;
                while next <= last
                    && let Some(entry) = self.entries.get(&(replica, next))
                    && (read.covers(&entry.seen) || has(Planted::GapsAreRead))
                {
                    order.push((replica, next));
                    read = read.with(replica, next);
                    next += 1;
                }
            }
            if order.len() == before {
                return order;
            }
        }
    }

    /// Returns every content that some device wrote for a file, or announced, within `heads`.
    pub fn contents(&self, heads: &Heads) -> impl Iterator<Item = (Locator, ContentHash)> {
        let within = self.entries.iter().filter(|(at, _)| at.1 <= heads.of(at.0));
        within.flat_map(|(_, entry)| {
            let touched = entry.touched.iter();
            let wrote = touched.filter_map(|(locator, touch)| Some((locator.clone(), touch.after?.hash)));
            wrote.chain(entry.shown.iter().cloned())
        })
    }

    /// Returns every content that a device wrote for a file, or announced, within `heads`, and if it was [`Crossed`].
    pub fn crossings(
        &self,
        heads: &Heads,
        own: &BTreeSet<ReplicaId>,
    ) -> HashMap<(Locator, ContentHash), Crossed> {
        let mut found: HashMap<(Locator, ContentHash), Crossed> = HashMap::new();
        let within = self.entries.iter().filter(|(at, _)| at.1 <= heads.of(at.0));
        for (at, entry) in within {
            let knows = self.with_twins(entry.seen.clone().with(at.0, at.1));
            let wrote =
                entry.touched.iter().filter_map(|(locator, touch)| Some((locator, touch.after?.hash)));
            let shown = entry.shown.iter().map(|(locator, hash)| (locator, *hash));
            for (locator, hash) in wrote.chain(shown) {
                let others = self.touching.get(locator).into_iter().flatten();
                let mut others = others.filter(|(replica, _)| !own.contains(replica));
                let is_crossed = others.any(|(replica, numbers)| {
                    let within = numbers.partition_point(|number| *number <= heads.of(*replica));
                    within.checked_sub(1).is_some_and(|last| numbers[last] > knows.of(*replica))
                });
                let crossed = if is_crossed { Crossed::Yes } else { Crossed::No };
                let before = found.entry((locator.clone(), hash)).or_insert(crossed);
                *before = (*before).max(crossed);
            }
        }
        found
    }

    /// Returns true if a content is a file's last one within `heads`, but not within `later`.
    pub fn is_replaced(&self, locator: &Locator, hash: &ContentHash, heads: &Heads, later: &Heads) -> bool {
        let after = |tip: &Numbered| self.touch(*tip, locator).and_then(|touch| touch.after);
        let mut tips = self.tips(locator, heads);
        tips.retain(|tip| after(tip).is_some_and(|content| content.hash == *hash));
        let left = self.tips(locator, later);
        !tips.is_empty() && !tips.iter().any(|tip| left.contains(tip))
    }

    /// Returns the names of the devices that wrote entries.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self.entries.values().map(|entry| entry.device.as_str()).collect();
        names.into_iter().filter(|name| !name.is_empty())
    }

    pub(super) fn touch(&self, at: Numbered, locator: &Locator) -> Option<Touch> {
        self.entries.get(&at)?.touched.get(locator).copied()
    }

    /// Returns the entry whose content an append extends, and how many appends lie between it and a whole content.
    ///
    /// `None` if its author's base is not one entry's content.
    pub fn extended(&self, locator: &Locator, seen: &Heads, base: &ContentHash) -> Option<(Numbered, usize)> {
        let [tip] = self.tips(locator, seen)[..] else { return None };
        let touch = self.touch(tip, locator)?;
        if touch.after.map(|content| content.hash) != Some(*base) {
            return None;
        }
        let (mut at, mut touch, mut length) = (tip, touch, 0);
        while let Some(base) = touch.extends {
            let seen = &self.entries.get(&at)?.seen;
            let [before] = self.tips(locator, seen)[..] else { return None };
            (at, touch, length) = (before, self.touch(before, locator)?, length + 1);
            if touch.after.map(|content| content.hash) != Some(base) {
                return None;
            }
        }
        Some((tip, length))
    }

    /// Returns the name of an entry's device.
    pub(super) fn device(&self, at: Numbered) -> &str {
        self.entries.get(&at).map_or("", |entry| entry.device.as_str())
    }

    /// Returns the heads of an entry's author.
    pub fn seen(&self, at: Numbered) -> Heads {
        self.entries.get(&at).map(|entry| entry.seen.clone()).unwrap_or_default()
    }

    /// Returns how far was read what tips of a file started from, of which both sides know this much.
    ///
    /// If the file was deleted there, and both sides won over the deletion or did not know of it, the base is the content before the deletion.
    pub(super) fn start(&self, locator: &Locator, ours: &[Numbered], theirs: Numbered, both: Heads) -> Heads {
        let gone = self.tips(locator, &both);
        let is_gone = |tip: &Numbered| self.is_deletion(locator, *tip);
        let stood = |tip: &Numbered| self.stood(locator, *tip, &gone);
        let is_unaware = |tip: &Numbered| {
            let knows = self.with_twins(self.knows(*tip));
            gone.iter().all(|(replica, number)| knows.of(*replica) < *number)
        };
        if gone.is_empty()
            || !gone.iter().all(is_gone)
            || !stood(&theirs)
            || !ours.iter().any(|tip| is_unaware(tip) || stood(tip))
        {
            return both;
        }
        gone.iter().fold(Heads::default(), |heads, tip| heads.join(&self.seen(*tip)))
    }

    /// Returns true if an entry deleted a file.
    pub(super) fn is_deletion(&self, locator: &Locator, at: Numbered) -> bool {
        self.touch(at, locator).is_some_and(|touch| touch.after.is_none())
    }

    /// Returns true if an entry's content goes back to a change that won over a deletion: its author says so, or had
    /// one of these deletions in its history, and the change that won over it.
    fn stood(&self, locator: &Locator, tip: Numbered, gone: &[Numbered]) -> bool {
        let mut left = vec![tip];
        let mut met = BTreeSet::new();
        while let Some(at) = left.pop() {
            if !met.insert(at) {
                continue;
            }
            match self.touch(at, locator) {
                Some(touch) if touch.stood => return true,
                // The author of the deletion had seen the earlier content too.
                Some(touch) if touch.after.is_some() || at == tip => {
                    let before = self.tips(locator, &self.seen(at));
                    let stands = |tip: &Numbered| !self.is_deletion(locator, *tip);
                    if before.iter().any(|tip| gone.contains(tip)) && before.iter().any(stands) {
                        return true;
                    }
                    left.extend(before);
                }
                Some(_) | None => {}
            }
        }
        false
    }

    /// Returns the entries that changed a file last: within `heads`, each unseen by the others.
    pub(super) fn tips(&self, locator: &Locator, heads: &Heads) -> Vec<Numbered> {
        let Some(logs) = self.touching.get(locator) else { return Vec::new() };
        let last: Vec<Numbered> = logs
            .iter()
            .filter_map(|(replica, numbers)| {
                let within = numbers.partition_point(|number| *number <= heads.of(*replica));
                Some((*replica, *numbers.get(within.checked_sub(1)?)?))
            })
            .collect();
        let knows: Vec<Heads> = last.iter().map(|tip| self.with_twins(self.knows(*tip))).collect();
        let covers = |one: usize, other: usize| knows[one].of(last[other].0) >= last[other].1;
        // Of two that bring one commit, the first counts.
        let is_seen = |tip: usize| {
            let mut others = (0..last.len()).filter(|other| *other != tip);
            others.any(|other| covers(other, tip) && (other < tip || !covers(tip, other)))
        };
        (0..last.len()).filter(|tip| !is_seen(*tip)).map(|tip| last[tip]).collect()
    }
}

/// Returns the id of an entry's commit in the home log of a device that has imported it.
pub(super) fn taken_id((replica, number): Numbered) -> CommitId {
    commit_id(&format!("{replica} {number}"))
}

/// Returns the id that the first part of an entry has in the order of a device that took the entry in as two commits.
pub(super) fn first_part_id((replica, number): Numbered) -> CommitId {
    commit_id(&format!("{replica} {number} first part"))
}

fn commit_id(name: &str) -> CommitId {
    let hash = ContentHash::of(name.as_bytes()).to_bytes();
    let mut id = [0; CommitId::BYTES];
    id.copy_from_slice(&hash[..CommitId::BYTES]);
    CommitId::from_bytes(id)
}
