//! What logs of single writers come to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use haversack_store::{Bytes, Locator};

use super::entry::Entry;
use super::heads::Heads;
use crate::ids::{CommitId, ContentHash, Position, ReplicaId};
use crate::log::{Content, What};
use crate::merge::{Merged, Rule, Side, merge};
use crate::sync::planted::{Planted, has};

/// An entry's place: whose log, and which of its entries, the first being 1.
pub type Numbered = (ReplicaId, u64);

/// What is known about an entry without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    seen: Heads,
    device: String,
    /// The id of its commit, and where that is in its author's own order.
    commit: Option<(CommitId, Position)>,
    touched: BTreeMap<Locator, Touch>,
    shown: Vec<(Locator, ContentHash)>,
}

/// Whether another device changed a file without having seen a content of it: a sync client may put what that one wrote in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crossed {
    No,
    Yes,
}

/// What an entry did to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Touch {
    after: Option<Content>,
    /// What it extends, if it only adds to the end.
    extends: Option<ContentHash>,
    /// It stood against a deletion.
    stood: bool,
}

/// The entries that are there, without their contents.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    entries: BTreeMap<Numbered, Known>,
    /// The entries that brought a commit: more than one if a device was copied before it had told anybody.
    commits: HashMap<CommitId, Vec<Numbered>>,
    /// Of those, the ones that are more than one.
    twins: Vec<Vec<Numbered>>,
    /// The entries by the ids that they have in other devices' orders.
    taken: HashMap<CommitId, Numbered>,
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
        let mut known = Known {
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

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Tells whether some entry changed a file.
    pub fn is_touched(&self, locator: &Locator) -> bool {
        self.touching.contains_key(locator)
    }

    /// Tells whether an entry is there.
    pub fn has(&self, at: Numbered) -> bool {
        self.entries.contains_key(&at)
    }

    /// Returns the entry that a commit of a device's own order is: one that it took in, or one that it wrote, under any of its names.
    pub fn of_commit(&self, id: CommitId, names: &[ReplicaId]) -> Option<Numbered> {
        let wrote = self.commits.get(&id).into_iter().flatten().find(|(replica, _)| names.contains(replica));
        self.taken.get(&id).or(wrote).copied()
    }

    /// Returns where an entry's commit is in its author's own order.
    pub fn position(&self, at: Numbered) -> Option<Position> {
        Some(self.entries.get(&at)?.commit?.1)
    }

    /// Returns the replicas whose logs are there.
    pub fn replicas(&self) -> BTreeSet<ReplicaId> {
        self.entries.keys().map(|(replica, _)| *replica).collect()
    }

    /// Returns the number of a log's last entry that is there; 0 if there is none.
    pub fn last(&self, replica: ReplicaId) -> u64 {
        let log = self.entries.range((replica, 0)..=(replica, u64::MAX));
        log.last().map_or(0, |((_, number), _)| *number)
    }

    /// Returns everything that an entry knows of: what its author had read, and itself.
    pub fn knows(&self, at: Numbered) -> Heads {
        let seen = self.entries.get(&at).map(|entry| entry.seen.clone()).unwrap_or_default();
        seen.with(at.0, at.1)
    }

    /// Returns what whoever has read this much knows of, besides in other logs: one commit is in two of them if its device went back.
    fn with_twins(&self, mut heads: Heads) -> Heads {
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

    /// Returns every content that some device wrote for a file, or announced, within `heads`, and whether it was [`Crossed`].
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

    /// Tells whether a content that entries last wrote for a file, within `heads`, is what none of them wrote last within `later`.
    pub fn is_replaced(&self, locator: &Locator, hash: &ContentHash, heads: &Heads, later: &Heads) -> bool {
        let after = |tip: &Numbered| self.touch(*tip, locator).and_then(|touch| touch.after);
        let mut tips = self.tips(locator, heads);
        tips.retain(|tip| after(tip).is_some_and(|content| content.hash == *hash));
        let left = self.tips(locator, later);
        !tips.is_empty() && !tips.iter().any(|tip| left.contains(tip))
    }

    /// Returns what the devices are called that wrote something.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self.entries.values().map(|entry| entry.device.as_str()).collect();
        names.into_iter().filter(|name| !name.is_empty())
    }

    fn touch(&self, at: Numbered, locator: &Locator) -> Option<Touch> {
        self.entries.get(&at)?.touched.get(locator).copied()
    }

    /// Returns the entry whose content an append extends, and how many appends lie between it and a whole content.
    ///
    /// `None` if what its author had is not what one entry wrote.
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

    /// Returns what the author of an entry had read.
    pub fn seen(&self, at: Numbered) -> Heads {
        self.entries.get(&at).map(|entry| entry.seen.clone()).unwrap_or_default()
    }

    /// Returns how far was read what tips of a file started from, of which both sides know this much.
    ///
    /// If it was deleted there, and both sides stood against that or did not know of it, they started from what it was before.
    fn start(&self, locator: &Locator, ours: &[Numbered], theirs: Numbered, both: Heads) -> Heads {
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

    /// Tells whether an entry deleted a file.
    fn is_deletion(&self, locator: &Locator, at: Numbered) -> bool {
        self.touch(at, locator).is_some_and(|touch| touch.after.is_none())
    }

    /// Tells whether what an entry made of a file goes back to a change that stood against a deletion: its author said so, or had
    /// one of these deletions before it, and what stood against it.
    fn stood(&self, locator: &Locator, tip: Numbered, gone: &[Numbered]) -> bool {
        let mut left = vec![tip];
        let mut met = BTreeSet::new();
        while let Some(at) = left.pop() {
            if !met.insert(at) {
                continue;
            }
            match self.touch(at, locator) {
                Some(touch) if touch.stood => return true,
                // Whoever deletes what stood had it, too.
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
    fn tips(&self, locator: &Locator, heads: &Heads) -> Vec<Numbered> {
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

/// Returns the id that an entry's commit has in the order of whoever took it in.
pub(super) fn taken_id((replica, number): Numbered) -> CommitId {
    let hash = ContentHash::of(format!("{replica} {number}").as_bytes()).to_bytes();
    let mut id = [0; CommitId::BYTES];
    id.copy_from_slice(&hash[..CommitId::BYTES]);
    CommitId::from_bytes(id)
}

/// What a file comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is not there.
    Nothing {
        /// What it held before it was deleted, if that was not seen by all.
        before: Option<Bytes>,
    },
    /// It holds what one entry wrote.
    Whole {
        /// That entry.
        by: Numbered,
        /// What it wrote.
        content: Content,
    },
    /// It was put together from what several wrote.
    Merged {
        /// What it holds.
        bytes: Bytes,
        /// Contents that could not be put into it, each for a copy beside it.
        copies: Vec<Bytes>,
    },
}

/// Returns the most that can be read of what is there: every entry of it, and everything that its author had read, is there.
///
/// An entry whose author had read something that has not arrived is waited for, and so are those after it.
pub fn available(logs: &Logs) -> Heads {
    let all = logs.replicas().into_iter().map(|replica| (replica, logs.last(replica)));
    let all = all.fold(Heads::default(), |heads, (replica, last)| heads.with(replica, last));
    let order = logs.between(&Heads::default(), &all);
    order.into_iter().fold(Heads::default(), |heads, (replica, number)| heads.with(replica, number))
}

/// Returns the entries whose content for a file must be at hand to [`weave()`] it; none if nothing has to be merged.
pub fn ingredients(logs: &Logs, locator: &Locator, heads: &Heads) -> BTreeSet<Numbered> {
    let mut found = BTreeSet::new();
    let mut met = BTreeSet::new();
    let mut left = vec![logs.tips(locator, heads)];
    while let Some(tips) = left.pop() {
        // Only what is merged, or is the start of a merge, has to be read.
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

/// Tells whether tips come to what one of them wrote.
fn is_plain(logs: &Logs, locator: &Locator, tips: &[Numbered]) -> bool {
    let after =
        |tip: &Numbered| logs.touch(*tip, locator).and_then(|touch| touch.after).map(|after| after.hash);
    tips.windows(2).all(|pair| after(&pair[0]) == after(&pair[1]))
}

/// Returns what a file comes to, for whoever has read the logs up to `heads`.
///
/// `heads` must be [`available`], or what an entry's author had read; `contents` has those of the [`ingredients`].
pub fn weave(logs: &Logs, locator: &Locator, heads: &Heads, contents: &HashMap<ContentHash, Bytes>) -> Made {
    weave_again(logs, locator, heads, contents, &mut WovenBefore::default())
}

/// Does what [`weave()`] does, with what was woven before.
pub(super) fn weave_again(
    logs: &Logs,
    locator: &Locator,
    heads: &Heads,
    contents: &HashMap<ContentHash, Bytes>,
    woven: &mut WovenBefore,
) -> Made {
    let tips = logs.tips(locator, heads);
    if is_plain(logs, locator, &tips) {
        let last = tips.last().and_then(|tip| Some((*tip, logs.touch(*tip, locator)?.after?)));
        return last.map_or(Made::Nothing { before: None }, |(by, content)| Made::Whole { by, content });
    }
    let woven = Weaver { logs, locator, contents, woven: woven.of(logs, locator) }.at(heads);
    match woven.bytes {
        None => Made::Nothing { before: woven.before },
        Some(bytes) => {
            let hash = ContentHash::of(&bytes);
            // An edit that stood against a deletion, or a side that had everything, is still what one entry wrote.
            let same = tips.iter().find_map(|tip| {
                let content = logs.touch(*tip, locator)?.after.filter(|content| content.hash == hash)?;
                Some((*tip, content))
            });
            match same {
                Some((by, content)) if woven.copies.is_empty() => Made::Whole { by, content },
                _ => Made::Merged { bytes, copies: woven.copies },
            }
        }
    }
}

/// Of how many files at most it is remembered what was woven.
const MAX_WOVEN_FILES: usize = 1_000;

/// What was woven of the same entries before: what one merge comes to, the next one starts from.
#[derive(Debug, Default)]
pub(super) struct WovenBefore {
    /// How many entries there were; one more may tell that two bring one commit.
    entries: usize,
    files: HashMap<Locator, HashMap<Vec<Numbered>, Woven>>,
}

impl WovenBefore {
    /// Returns what was woven of a file.
    fn of(&mut self, logs: &Logs, locator: &Locator) -> &mut HashMap<Vec<Numbered>, Woven> {
        if self.entries != logs.len() || self.files.len() > MAX_WOVEN_FILES {
            *self = WovenBefore { entries: logs.len(), files: HashMap::new() };
        }
        self.files.entry(locator.clone()).or_default()
    }
}

/// Weaves one file; common starts are met again and again.
struct Weaver<'a> {
    logs: &'a Logs,
    locator: &'a Locator,
    contents: &'a HashMap<ContentHash, Bytes>,
    /// What was woven already, by the entries it was woven of.
    woven: &'a mut HashMap<Vec<Numbered>, Woven>,
}

#[derive(Clone, Debug, Default)]
struct Woven {
    bytes: Option<Bytes>,
    /// If it was deleted, what it held before.
    before: Option<Bytes>,
    copies: Vec<Bytes>,
}

impl Weaver<'_> {
    fn at(&mut self, heads: &Heads) -> Woven {
        let tips = self.logs.tips(self.locator, heads);
        if let Some(woven) = self.woven.get(&tips) {
            return woven.clone();
        }
        let mut all = Woven::default();
        let mut known = Heads::default();
        let mut devices: Vec<&str> = Vec::new();
        for (index, tip) in tips.iter().enumerate() {
            let touch = self.logs.touch(*tip, self.locator);
            let theirs = touch.and_then(|touch| self.contents.get(&touch.after?.hash).cloned());
            let device = self.logs.entries.get(tip).map_or("", |entry| entry.device.as_str());
            let knows = self.logs.with_twins(self.logs.knows(*tip));
            let before = match self.logs.is_deletion(self.locator, *tip) {
                true => self.at(&self.logs.seen(*tip)).bytes,
                false => None,
            };
            if index == 0 {
                all = Woven { bytes: theirs, before, copies: Vec::new() };
                devices.push(device);
            } else {
                let start = self.logs.start(self.locator, &tips[..index], *tip, known.meet(&knows));
                let base = self.at(&start).bytes.filter(|_| !has(Planted::NoCommonStart));
                let ours = Version { bytes: all.bytes.take(), before: all.before.take() };
                let theirs = Version { bytes: theirs, before };
                if theirs.bytes.is_none() {
                    // Whoever deleted it saw what is put beside it, too.
                    all.copies.retain(|copy| Some(copy) != base.as_ref());
                }
                let names = devices.join(", ");
                let met =
                    three_way(self.locator, base.as_ref(), (ours.clone(), &names), (theirs.clone(), device));
                all.copies.extend(met.copies);
                (all.bytes, all.before) = (met.bytes, met.before);
                let now = Version { bytes: all.bytes.clone(), before: all.before.clone() };
                // Only whose words are in it are named in notes. A deletion that took nothing from it would change it otherwise, and so
                // bring it back to whoever deletes it next.
                if now == theirs && now != ours {
                    devices = vec![device];
                } else if now != ours {
                    devices.push(device);
                }
            }
            known = known.join(&knows);
        }
        if all.bytes.is_none() && !all.copies.is_empty() {
            // What was deleted is not what was to lie beside it: that has the place to itself.
            all = Woven { bytes: Some(all.copies.remove(0)), before: None, copies: all.copies };
        }
        self.woven.insert(tips, all.clone());
        all
    }
}

/// What one side made of a file.
#[derive(Clone, PartialEq, Eq)]
struct Version {
    /// What it holds; `None` if it was deleted.
    bytes: Option<Bytes>,
    /// What it held before that.
    before: Option<Bytes>,
}

/// Puts together what two made of a file.
///
/// An edit stands against a deletion that did not see it, whole, with what was changed on the other side before the deletion.
fn three_way(
    locator: &Locator,
    base: Option<&Bytes>,
    (ours, our_device): (Version, &str),
    (theirs, their_device): (Version, &str),
) -> Woven {
    let gone = |before| Woven { bytes: None, before, copies: Vec::new() };
    let met = |ours, theirs| both_ways(locator, base, (ours, our_device), (theirs, their_device));
    match (ours.bytes, theirs.bytes) {
        // What either took out before it was deleted does not come back with what stands against the other deletion.
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
) -> Woven {
    let only = |bytes| Woven { bytes, before: None, copies: Vec::new() };
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
    Woven { bytes: Some(bytes), before: None, copies: copy.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{StoreId, Timestamp};
    use crate::log::{Carried, Commit, FileChange, StateMark};

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
            };
            let replica = ReplicaId::from_bytes([log; 16]);
            let seen = heads(seen);
            self.logs.add(&Entry { replica, number, seen, commit: Some(commit), shown: Vec::new() });
        }

        /// Returns the lines that all of it comes to.
        fn comes_to(&self) -> Option<String> {
            let heads = available(&self.logs);
            let hash = match weave(&self.logs, &self.file, &heads, &self.contents) {
                Made::Nothing { .. } => return None,
                Made::Merged { bytes, copies } => {
                    let copies = copies.iter().map(shown);
                    return Some(
                        [shown(&bytes)].into_iter().chain(copies).collect::<Vec<_>>().join(" beside "),
                    );
                }
                Made::Whole { content, .. } => content.hash,
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

    /// Seed 3060048 of the vault's schedules: two devices had made the file too, so that it stood against its deletion with what it had held; one
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
        // What was made anew after the deletion is another matter.
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(5, (2, 1), &[(1, 2)], Some("old two "));
        story.entry(6, (3, 1), &[(1, 2)], Some("three "));
        assert_eq!(story.comes_to().as_deref(), Some("old three two"));
    }

    /// Seed 70134810 of the vault's schedules: what one device removed while another deleted the file came back with a change that stood against
    /// the deletion, because a third had made the file anew.
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
    /// came back with a change that stood against both.
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
    /// there. So the file was another one, and stood against whoever deleted it next.
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

    /// Seed 3075816 of the vault's schedules: a removal leaves nothing that a deletion had not seen. What the file held then is not what it
    /// held before the removal was known.
    #[test]
    fn what_goes_with_a_removal_is_known() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("old "));
        story.entry(2, (1, 2), &[(1, 1)], None);
        story.entry(3, (2, 1), &[], Some("two "));
        assert_eq!(story.comes_to().as_deref(), Some("old two"));
        story.entry(4, (2, 2), &[(1, 1), (2, 1)], Some("old "));
        let made = weave(&story.logs, &story.file, &available(&story.logs), &story.contents);
        let Made::Nothing { before } = made else { panic!("{made:?}") };
        assert_eq!(before.as_ref().map(shown).as_deref(), Some("old"));
    }

    /// Seed 3009334 of the vault's schedules: a device went back to before it had told of a commit, told of it again under its new name, and
    /// deleted the file; under the old name it was nobody's to delete.
    #[test]
    fn a_commit_told_twice_is_one() {
        let mut story = Story::of(LINES);
        story.entry(1, (1, 1), &[], Some("first "));
        story.entry(2, (1, 2), &[(1, 1)], Some("first second "));
        story.entry(2, (2, 1), &[(1, 1)], Some("first second "));
        assert_eq!(story.comes_to().as_deref(), Some("first second"));
        story.entry(3, (2, 2), &[(1, 1), (2, 1)], None);
        assert_eq!(story.comes_to(), None);
        // What the device did under its old name afterwards stands.
        story.entry(4, (1, 3), &[(1, 2)], Some("first second third "));
        assert_eq!(story.comes_to().as_deref(), Some("first second third"));
    }

    /// Seed 3017503 of the vault's schedules: two that cannot be put together lay beside each other, and when one was deleted, both were.
    #[test]
    fn what_lies_beside_a_deleted_file_takes_its_place() {
        // Whichever of the two has the place.
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
