//! Decides the step of a sync for each file. Pure: it reads and writes nothing.
//!
//! For every file, three contents are compared: the base (the last content on which this replica and the log agreed), the local content, and
//! theirs (the log's content now). [`take_in`] decides the steps after which the base can become theirs. [`pending`] then lists the
//! differences that the next commit carries.
//!
//! | base | local | theirs | step |
//! |---|---|---|---|
//! | a | a | b | take b |
//! | a | b | a | nothing; `pending` publishes b |
//! | a | b | c | merge b and c |
//! | a | a | deleted | remove |
//! | a | b | deleted | keep b, because an edit wins over a deletion |
//! | a | deleted | b | take b back, because an edit wins over a deletion |

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use haversack_store::{InvalidLocator, Locator};
use serde::{Deserialize, Serialize};

use crate::ids::ContentHash;
use crate::log::Files;
use crate::log::files::Entry;
use crate::sync::Hold;
use crate::sync::outgoing::DeletionRecord;
use crate::sync::planted::{Planted, has};
use crate::sync::renames::{self, Rename};

/// The last agreement of a replica with the log: the log's files at the last applied position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases<'a> {
    pub(crate) files: &'a Files,
    /// Files that are not in the working directory. That they are not there means nothing.
    pub(crate) absent: &'a BTreeMap<Locator, AbsenceReason>,
    /// An earlier content of the log that a working file still goes back to:
    ///
    /// - The log deleted the file, and it stayed here, because it had been changed or because its deletion is held. Another device that
    ///   changed such a file started from the same content.
    /// - The log has a newer content that could not be written here ([`AbsenceReason::Refused`]). The working file is merged over this one.
    pub(crate) before: &'a BTreeMap<Locator, ContentHash>,
    /// Files whose deletion by another device is held: they stay here and are not sent, until the user decides or edits them.
    pub(crate) held: &'a BTreeSet<Locator>,
}

/// Why a file of the log is not in the working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AbsenceReason {
    /// It was not fetched yet.
    Unfetched,
    /// It could not be written here: this disk cannot hold its name, or something that is no writable file is in its place.
    Refused,
    /// The log names a content that is missing.
    Missing,
    /// It belongs into another directory.
    Unbound,
}

impl Bases<'_> {
    fn hash(&self, locator: &Locator) -> Option<ContentHash> {
        self.files.get(locator).map(|content| content.hash)
    }

    /// Returns the content that a file had when the log deleted it, if that deletion is held.
    fn held(&self, locator: &Locator) -> Option<ContentHash> {
        self.before.get(locator).copied().filter(|_| self.held.contains(locator))
    }

    fn is_absent(&self, locator: &Locator) -> bool {
        self.absent.contains_key(locator)
    }

    /// Returns the earlier content that the working file goes back to, if a newer one could not be written here.
    fn refused(&self, locator: &Locator) -> Option<ContentHash> {
        self.before.get(locator).copied().filter(|_| self.is_absent(locator))
    }

    /// Returns the files that should be in the working directory and are not, and the files there that the log does not have.
    pub(crate) fn gone_and_new(&self, local: &Contents) -> (Vec<Named>, Vec<Named>) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for file in self.beside(local) {
            match (file.base, file.local) {
                (Some(base), None) if !self.absent.contains_key(base.name) => {
                    gone.push((base.locator(), base.content.hash));
                }
                (None, Some(file)) => new.push(file.clone()),
                (Some(_), _) | (None, None) => {}
            }
        }
        (gone, new)
    }

    /// Tells the files of the working directory and the bases side by side, in order.
    fn beside<'b>(&'b self, local: &'b Contents) -> impl Iterator<Item = BasePair<'b>> {
        let mut bases = self.files.entries().peekable();
        let mut local = local.iter().peekable();
        std::iter::from_fn(move || {
            let order = match (bases.peek(), local.peek()) {
                (Some(base), Some((locator, _))) => base.name.cmp(locator.as_str()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let base = if order.is_le() { bases.next() } else { None };
            let local = if order.is_ge() { local.next() } else { None };
            Some(BasePair { base, local })
        })
    }
}

/// A file and its content.
pub(crate) type Named = (Locator, ContentHash);

/// A file, as it should be and as it is.
struct BasePair<'a> {
    base: Option<Entry<'a>>,
    local: Option<&'a (Locator, ContentHash)>,
}

/// Contents by place, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    sorted: Vec<(Locator, ContentHash)>,
}

impl Contents {
    pub(crate) fn get(&self, locator: &Locator) -> Option<ContentHash> {
        let at = self.sorted.binary_search_by(|(other, _)| other.cmp(locator)).ok()?;
        Some(self.sorted[at].1)
    }

    pub(crate) fn contains_key(&self, locator: &Locator) -> bool {
        self.get(locator).is_some()
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.sorted.binary_search_by(|(other, _)| other.as_str().cmp(name)).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Locator, ContentHash)> {
        self.sorted.iter()
    }

    pub(crate) fn extend(&mut self, contents: Vec<(Locator, ContentHash)>) {
        let mut all = std::mem::take(&mut self.sorted);
        all.extend(contents);
        *self = Contents::from(all);
    }

    /// Records new contents of files; `None` for files that are gone.
    pub(crate) fn note(&mut self, now: &BTreeMap<Locator, Option<ContentHash>>) {
        self.sorted.retain(|(locator, _)| !now.contains_key(locator));
        self.extend(now.iter().filter_map(|(locator, hash)| Some((locator.clone(), (*hash)?))).collect());
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Locator) -> bool) {
        self.sorted.retain(|(locator, _)| keep(locator));
    }
}

impl FromIterator<(Locator, ContentHash)> for Contents {
    fn from_iter<T: IntoIterator<Item = (Locator, ContentHash)>>(contents: T) -> Contents {
        Contents::from(contents.into_iter().collect::<Vec<_>>())
    }
}

impl From<Vec<(Locator, ContentHash)>> for Contents {
    fn from(mut sorted: Vec<(Locator, ContentHash)>) -> Contents {
        // A look finds them in order.
        if !sorted.is_sorted_by(|(one, _), (next, _)| one < next) {
            sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
            sorted.dedup_by(|(later, _), (earlier, _)| later == earlier);
        }
        Contents { sorted }
    }
}

/// The new version of each file that incoming changes name.
pub(crate) type TheirFiles = BTreeMap<Locator, Theirs>;

/// The log's change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theirs {
    /// It has this content.
    Has(ContentHash),
    /// It was deleted; before that it had this content, if that is not the base.
    Deleted { last: Option<ContentHash> },
}

impl Theirs {
    fn hash(self) -> Option<ContentHash> {
        match self {
            Theirs::Has(hash) => Some(hash),
            Theirs::Deleted { .. } => None,
        }
    }

    fn last(self) -> Option<ContentHash> {
        match self {
            Theirs::Has(_) => None,
            Theirs::Deleted { last } => last,
        }
    }
}

/// Tells if the incoming changes reach the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is, as far as is known.
    End,
    /// There may be more.
    Middle,
}

/// A step for one working file. After it, the base becomes theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Replace our content by theirs. Ours did not change since the base.
    Take { locator: Locator, expected: Option<ContentHash>, theirs: ContentHash },
    /// Delete the file. It did not change here since the base. If a user changes it at the same moment, it stays, merged with the changes
    /// that the other side made before the deletion.
    Remove { locator: Locator, expected: ContentHash, last: Option<ContentHash> },
    /// Both changed it: the merge of the two replaces ours.
    Merge { locator: Locator, base: Option<ContentHash>, ours: ContentHash, theirs: ContentHash },
    /// Our content is theirs already; only the base moves.
    Agree { locator: Locator },
    /// Both sides created it, and the log has more commits: wait, and merge with the file at the end of the log.
    Wait { locator: Locator },
    /// One side deleted a file that the other changed: the whole change wins.
    EditWins { locator: Locator, winner: Winner },
    /// A new file of ours has a name that differs from one of theirs only by case: ours gets another one first.
    MakeWay { from: Locator, to: Locator, expected: ContentHash },
    /// They renamed a file that was changed here: the merge of both comes under the new name, and the old name goes.
    FollowTheirRename {
        from: Locator,
        to: Locator,
        base: Option<ContentHash>,
        ours: ContentHash,
        theirs: ContentHash,
    },
    /// They changed a file that was renamed here: their change is merged into the file under its new name. The old name stays gone.
    FollowOurRename { from: Locator, to: Locator, base: ContentHash, theirs: ContentHash },
}

impl Step {
    /// Returns the file that it is about; of a rename, the new name.
    pub(crate) fn locator(&self) -> &Locator {
        match self {
            Step::Take { locator, .. }
            | Step::Remove { locator, .. }
            | Step::Merge { locator, .. }
            | Step::Agree { locator }
            | Step::Wait { locator }
            | Step::EditWins { locator, .. } => locator,
            Step::MakeWay { to, .. }
            | Step::FollowTheirRename { to, .. }
            | Step::FollowOurRename { to, .. } => to,
        }
    }
}

/// The side whose change won over a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winner {
    /// Ours: the file stays, with the changes of the other side before the deletion, and is sent as a new one.
    Ours { last: Option<ContentHash> },
    /// Theirs: the file comes back.
    Theirs(ContentHash),
}

/// Decides what happens to every file that the log brought something about.
///
/// 1. Renames are found on both sides: ours in the working directory, theirs in the incoming changes.
/// 2. A rename on one side and an edit on the other become one file, under the new name.
/// 3. A new file of ours whose name differs from one of theirs only by case makes way.
/// 4. Every other file is decided by itself ([`decide`]).
///
/// Files that make way come first.
pub(crate) fn take_in(bases: Bases<'_>, local: &Contents, brought: &TheirFiles, reach: Reach) -> Vec<Step> {
    let (gone, new) = bases.gone_and_new(local);
    let renames = Renames { ours: renames::pair(&gone, &new), theirs: their_renames(bases, brought) };
    let unsent: HashMap<String, &(Locator, ContentHash)> =
        new.iter().map(|file| (file.0.folded(), file)).collect();
    let (mut first, mut steps) = (Vec::new(), Vec::new());
    let mut is_decided: BTreeSet<&Locator> = BTreeSet::new();
    for rename in &renames.theirs {
        if let Some(step) = follow_theirs(bases, local, brought, &renames, rename) {
            is_decided.extend([&rename.from, &rename.to]);
            steps.push(step);
        }
    }
    for rename in &renames.ours {
        let is_theirs_too = renames.theirs.iter().any(|theirs| theirs.from == rename.from);
        if !is_theirs_too && let Some(step) = follow_ours(bases, brought, rename) {
            is_decided.insert(&rename.from);
            steps.push(step);
        }
    }
    for (locator, theirs) in brought.iter().filter(|(locator, _)| !is_decided.contains(locator)) {
        if let Theirs::Has(_) = theirs
            && let Some((twin, hash)) = unsent.get(&locator.folded())
            && twin != locator
        {
            // If there is no other name for ours, theirs is the one that this disk cannot hold.
            let to = case_name(twin, hash).ok();
            first.extend(to.map(|to| Step::MakeWay { from: twin.clone(), to, expected: *hash }));
        }
        let step = decide(bases, locator, local.get(locator), *theirs, reach);
        steps.push(renames.with_base(bases, step));
    }
    first.extend(steps);
    first
}

/// The renames on both sides.
struct Renames {
    ours: Vec<Rename>,
    theirs: Vec<Rename>,
}

impl Renames {
    /// Gives a merge of two new files their common ground, if both sides renamed the same file to the same name.
    fn with_base(&self, bases: Bases<'_>, step: Step) -> Step {
        let from = |locator: &Locator| {
            let ours = self.ours.iter().find(|rename| rename.to == *locator)?;
            let theirs = self.theirs.iter().find(|rename| rename.to == *locator)?;
            bases.hash(&ours.from).filter(|_| ours.from == theirs.from)
        };
        match step {
            Step::Merge { locator, base: None, ours, theirs } => {
                let base = from(&locator);
                Step::Merge { locator, base, ours, theirs }
            }
            step => step,
        }
    }
}

/// Returns the renames that the log brought: files that it deleted, and new ones with the same content or nearly the same name.
fn their_renames(bases: Bases<'_>, brought: &TheirFiles) -> Vec<Rename> {
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for (locator, theirs) in brought {
        match (theirs, bases.hash(locator)) {
            (Theirs::Deleted { last }, Some(base)) => gone.push((locator.clone(), last.unwrap_or(base))),
            (Theirs::Has(hash), None) => new.push((locator.clone(), *hash)),
            (Theirs::Deleted { .. }, None) | (Theirs::Has(_), Some(_)) => {}
        }
    }
    renames::pair(&gone, &new)
}

/// Decides about a file that they renamed, if it was changed here, or renamed to another spelling of the same name.
fn follow_theirs(
    bases: Bases<'_>,
    local: &Contents,
    brought: &TheirFiles,
    renames: &Renames,
    rename: &Rename,
) -> Option<Step> {
    let theirs = brought.get(&rename.to)?.hash()?;
    // A base that was never here is no common ground: both made the file, and they renamed theirs.
    let base = match bases.is_absent(&rename.from) {
        true => bases.refused(&rename.from),
        false => bases.hash(&rename.from),
    };
    if local.contains_key(&rename.to) {
        return None;
    }
    let ours = renames.ours.iter().find(|ours| ours.from == rename.from);
    let (from, ours) = match (local.get(&rename.from), ours) {
        (Some(ours), _) => (&rename.from, ours),
        // Both renamed it, to names that differ only by case: theirs is in the log.
        (None, Some(twin)) if twin.to.folded() == rename.to.folded() => (&twin.to, local.get(&twin.to)?),
        (None, _) => return None,
    };
    if Some(ours) == base && *from == rename.from {
        return None;
    }
    Some(Step::FollowTheirRename { from: from.clone(), to: rename.to.clone(), base, ours, theirs })
}

/// Decides about a file that was renamed here, if they changed it, or changed it before they deleted it: our rename wins over that.
fn follow_ours(bases: Bases<'_>, brought: &TheirFiles, rename: &Rename) -> Option<Step> {
    let there = brought.get(&rename.from)?;
    let theirs = there.hash().or(there.last())?;
    let base = bases.hash(&rename.from)?;
    // A new name that they made and deleted again is free.
    if brought.get(&rename.to).is_some_and(|there| there.hash().is_some()) {
        return None;
    }
    // They changed the file and changed it back.
    if theirs == base {
        return Some(Step::Agree { locator: rename.from.clone() });
    }
    Some(Step::FollowOurRename { from: rename.from.clone(), to: rename.to.clone(), base, theirs })
}

fn decide(
    bases: Bases<'_>,
    locator: &Locator,
    ours: Option<ContentHash>,
    brought: Theirs,
    reach: Reach,
) -> Step {
    let theirs = brought.hash();
    // The user has not touched a file whose deletion is held: its last content is still the common ground. So is the content before one
    // that could not be written.
    let refused = bases.refused(locator);
    let base_hash = refused.or_else(|| bases.hash(locator)).or_else(|| bases.held(locator));
    // A file that was never here was not deleted here.
    let is_absent = bases.is_absent(locator);
    let locator = locator.clone();
    let ours_is_base = ours == base_hash || (is_absent && ours.is_none());
    if ours == theirs {
        return Step::Agree { locator };
    }
    if ours_is_base {
        return match (ours, theirs) {
            (_, Some(theirs)) => Step::Take { locator, expected: ours, theirs },
            (Some(expected), None) => Step::Remove { locator, expected, last: brought.last() },
            (None, None) => Step::Agree { locator },
        };
    }
    if theirs == base_hash {
        // Ours was not made from it.
        let waits = is_absent && theirs.is_some() && refused.is_none();
        return if waits { Step::Wait { locator } } else { Step::Agree { locator } };
    }
    match (ours, theirs) {
        (Some(expected), None) if has(Planted::DeletionWins) => {
            Step::Remove { locator, expected, last: None }
        }
        (Some(ours), Some(theirs)) => {
            // The file was never here, so its base content is not at hand, and no user here edited on top of it.
            let base = match base_hash {
                Some(_) if is_absent => refused,
                Some(base) => Some(base),
                None => bases.before.get(&locator).copied(),
            };
            if base.is_none() && reach == Reach::Middle {
                return Step::Wait { locator };
            }
            Step::Merge { locator, base, ours, theirs }
        }
        (None, Some(theirs)) => Step::EditWins { locator, winner: Winner::Theirs(theirs) },
        (Some(_), None) => Step::EditWins { locator, winner: Winner::Ours { last: brought.last() } },
        (None, None) => Step::Agree { locator },
    }
}

/// The changes that a replica has to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// New and changed files.
    pub(crate) changed: Vec<Locator>,
    /// Files that were deleted here.
    pub(crate) deleted: Vec<Locator>,
    /// Files that are gone, so many at once that they wait for the user's answer.
    pub(crate) waiting: Vec<Locator>,
    /// The deletions to write down before these are sent.
    pub(crate) record: Option<DeletionRecord>,
    /// Files that have another name now. The old name is also in `deleted`, the new one in `changed`.
    pub(crate) renames: Vec<Rename>,
    /// Roll-ups among the changed files, also those that stay here: their sources are not deleted elsewhere before they are sent.
    pub(crate) roll_ups: Vec<Locator>,
    /// Files that a user created here before the log's files were fetched. Both must be merged first.
    pub(crate) met: Vec<Locator>,
    /// The number of the log's files that are not in the working directory, without being deleted.
    pub(crate) absent: usize,
    /// Files that other devices deleted, and that stay here unchanged because their deletion is held.
    pub(crate) held_deletions: Vec<Locator>,
}

impl Pending {
    /// Lets deletions wait.
    pub(crate) fn wait(&mut self, waiting: Vec<Locator>, record: DeletionRecord) {
        self.deleted.retain(|locator| waiting.binary_search(locator).is_err());
        (self.waiting, self.record) = (waiting, Some(record));
    }

    /// Keeps a rename here: neither its new name nor its deletion is sent.
    pub(crate) fn keep_rename(&mut self, rename: &Rename) {
        self.changed.retain(|locator| *locator != rename.to);
        self.deleted.retain(|locator| *locator != rename.from);
    }

    /// Returns true if there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.deleted.is_empty()
    }
}

/// Returns the differences between a replica and its last agreement with the log.
pub(crate) fn pending(bases: Bases<'_>, local: &Contents) -> Pending {
    let mut pending = Pending::default();
    for BasePair { base, local } in bases.beside(local) {
        let is_same = base.zip(local).is_some_and(|(base, (_, hash))| base.content.hash == *hash);
        // In most stores, no file is absent.
        let is_absent = |name: &str| !bases.absent.is_empty() && bases.absent.contains_key(name);
        match (base, local) {
            (Some(base), _) if is_absent(base.name) => pending.absent += 1,
            (_, Some(_)) if is_same => {}
            (None, Some((locator, hash))) if bases.held(locator) == Some(*hash) => {
                pending.held_deletions.push(locator.clone());
            }
            (_, Some((locator, _))) if !is_absent(locator.as_str()) => {
                pending.changed.push(locator.clone());
            }
            (Some(base), None) => pending.deleted.push(base.locator()),
            (_, Some(_)) | (None, None) => {}
        }
    }
    pending.met = bases.absent.keys().filter(|locator| local.contains_key(locator)).cloned().collect();
    pending
}

/// Returns the new files that other devices could not hold beside the log's files, with the reasons.
///
/// A program created them without our verbs. They stay here until they get another name.
pub(crate) fn unfit_names(bases: Bases<'_>, pending: &Pending) -> Vec<(Locator, Hold)> {
    let is_new = |locator: &&Locator| !bases.files.contains_key(*locator);
    let new: Vec<&Locator> = pending.changed.iter().filter(is_new).collect();
    if new.is_empty() {
        return Vec::new();
    }
    let names: HashSet<String> = new.iter().map(|locator| locator.folded()).collect();
    let ways: HashSet<&str> = names.iter().flat_map(|name| directories(name)).collect();
    let is_near = |name: &str| {
        names.contains(name) || ways.contains(name) || directories(name).any(|above| names.contains(above))
    };
    let mut folded: BTreeMap<String, Locator> = BTreeMap::new();
    for entry in bases.files.entries() {
        let name = Locator::fold(entry.name);
        let stays = || pending.deleted.binary_search_by(|gone| gone.as_str().cmp(entry.name)).is_err();
        if is_near(&name) && stays() {
            folded.insert(name.into_owned(), entry.locator());
        }
    }
    let mut unfit = Vec::new();
    for locator in new {
        let name = locator.folded();
        let below = format!("{name}/");
        let above = directories(&name).find_map(|above| folded.get(above));
        let beneath = folded.range(below.clone()..).next().filter(|(key, _)| key.starts_with(&below));
        let why = if let Err(reason) = locator.check_portable() {
            reason.to_string()
        } else if let Some(twin) = folded.get(&name) {
            format!("its name differs from \"{twin}\" only by case")
        } else if let Some(file) = above {
            format!("\"{file}\" is a file elsewhere, not a directory")
        } else if let Some((_, file)) = beneath {
            format!("it is a directory elsewhere: \"{file}\"")
        } else {
            folded.insert(name, locator.clone());
            continue;
        };
        unfit.push((locator.clone(), Hold::whole(why)));
    }
    unfit
}

/// Returns the names of the directories that a name goes through.
pub(crate) fn directories(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(end, _)| &name[..end])
}

/// More deletions than this at once are asked about, if they are also more than a share of all files.
pub(crate) const MANY_DELETIONS: usize = 8;

/// Deletions of more than one in this many files at once are asked about.
pub(crate) const DELETION_SHARE: usize = 4;

/// Returns true if so many deletions are very many beside the files that there were.
pub(crate) fn is_many(deleted: usize, files: impl FnOnce() -> usize) -> bool {
    deleted > MANY_DELETIONS && deleted * DELETION_SHARE > files()
}

/// Returns the name for a file whose own differs from another's only by case.
pub(crate) fn case_name(locator: &Locator, hash: &ContentHash) -> Result<Locator, InvalidLocator> {
    let (parent, name) = match locator.as_str().rsplit_once('/') {
        Some((parent, name)) => (format!("{parent}/"), name),
        None => (String::new(), locator.as_str()),
    };
    let mark = &hash.to_string()[..8];
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => Locator::parse(&format!("{parent}{stem}.case-{mark}.{extension}")),
        None => Locator::parse(&format!("{parent}{name}.case-{mark}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Content;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("valid")
    }

    fn hash(text: &str) -> ContentHash {
        ContentHash::of(text.as_bytes())
    }

    fn content(text: &str) -> Content {
        Content { hash: hash(text), size: text.len() as u64 }
    }

    /// A test world whose bases are all here, or all absent.
    struct World {
        files: Files,
        absent: BTreeMap<Locator, AbsenceReason>,
        before: BTreeMap<Locator, ContentHash>,
        held: BTreeSet<Locator>,
    }

    impl World {
        fn here(files: impl IntoIterator<Item = (Locator, Content)>) -> World {
            World {
                files: files.into_iter().collect(),
                absent: BTreeMap::new(),
                before: BTreeMap::new(),
                held: BTreeSet::new(),
            }
        }

        fn bases(&self) -> Bases<'_> {
            Bases { files: &self.files, absent: &self.absent, before: &self.before, held: &self.held }
        }
    }

    /// Decides about one file from its three texts.
    fn decided(base_text: Option<&str>, ours: Option<&str>, theirs: Option<&str>) -> Step {
        let world = World::here(base_text.map(|text| (at("f"), content(text))));
        let local = ours.map(|text| (at("f"), hash(text))).into_iter().collect::<Contents>();
        let theirs = theirs.map_or(Theirs::Deleted { last: None }, |text| Theirs::Has(hash(text)));
        let brought = [(at("f"), theirs)].into();
        take_in(world.bases(), &local, &brought, Reach::End).remove(0)
    }

    #[test]
    fn every_combination() {
        let f = || at("f");
        let agree = || Step::Agree { locator: f() };
        for (base, ours, theirs, step) in [
            (None, None, None, agree()),
            (None, None, Some("t"), Step::Take { locator: f(), expected: None, theirs: hash("t") }),
            (None, Some("o"), None, agree()),
            (None, Some("x"), Some("x"), agree()),
            (
                None,
                Some("o"),
                Some("t"),
                Step::Merge { locator: f(), base: None, ours: hash("o"), theirs: hash("t") },
            ),
            (Some("b"), None, None, agree()),
            (Some("b"), None, Some("b"), agree()),
            (Some("b"), None, Some("t"), Step::EditWins { locator: f(), winner: Winner::Theirs(hash("t")) }),
            (Some("b"), Some("b"), None, Step::Remove { locator: f(), expected: hash("b"), last: None }),
            (Some("b"), Some("b"), Some("b"), agree()),
            (
                Some("b"),
                Some("b"),
                Some("t"),
                Step::Take { locator: f(), expected: Some(hash("b")), theirs: hash("t") },
            ),
            (
                Some("b"),
                Some("o"),
                None,
                Step::EditWins { locator: f(), winner: Winner::Ours { last: None } },
            ),
            (Some("b"), Some("o"), Some("b"), agree()),
            (Some("b"), Some("x"), Some("x"), agree()),
            (
                Some("b"),
                Some("o"),
                Some("t"),
                Step::Merge { locator: f(), base: Some(hash("b")), ours: hash("o"), theirs: hash("t") },
            ),
        ] {
            assert_eq!(decided(base, ours, theirs), step, "{base:?} {ours:?} {theirs:?}");
        }
    }

    #[test]
    fn what_both_made_waits_for_the_rest_of_the_log() {
        let wait = vec![Step::Wait { locator: at("f") }];
        let local = Contents::from_iter([(at("f"), hash("o"))]);
        let brought = [(at("f"), Theirs::Has(hash("t")))].into();
        assert_eq!(take_in(World::here([]).bases(), &local, &brought, Reach::Middle), wait);
        // Although the other side changed the file back, our file was not made from that content.
        let absent = [(at("f"), AbsenceReason::Unfetched)].into();
        let world = World { absent, ..World::here([(at("f"), content("t"))]) };
        for reach in [Reach::Middle, Reach::End] {
            assert_eq!(take_in(world.bases(), &local, &brought, reach), wait);
        }
    }

    #[test]
    fn what_was_never_here_was_not_deleted() {
        let absent = [(at("f"), AbsenceReason::Unfetched)].into();
        let world = World { absent, ..World::here([(at("f"), content("b"))]) };
        let brought = BTreeMap::from([(at("f"), Theirs::Has(hash("t")))]);
        let steps = take_in(world.bases(), &Contents::default(), &brought, Reach::End);
        assert_eq!(steps, [Step::Take { locator: at("f"), expected: None, theirs: hash("t") }]);
        assert!(pending(world.bases(), &Contents::default()).is_empty());
        let made = Contents::from_iter([(at("f"), hash("o"))]);
        assert_eq!(
            pending(world.bases(), &made),
            Pending { met: vec![at("f")], absent: 1, ..Pending::default() }
        );
    }

    #[test]
    fn names_that_others_cannot_hold_stay_here() {
        let files = ["README.md", "d/e.md", "old.md", "plain"].map(|key| (at(key), content("x")));
        let world = World::here(files);
        let new = ["OLD.md", "d", "fine.md", "fine.MD", "nul.md", "plain/x.md", "readme.md"];
        let changed = new.map(at).to_vec();
        let pending = Pending { changed, deleted: vec![at("old.md")], ..Pending::default() };
        let unfit = unfit_names(world.bases(), &pending);
        let names: Vec<&str> = unfit.iter().map(|(locator, _)| locator.as_str()).collect();
        assert_eq!(names, ["d", "fine.MD", "nul.md", "plain/x.md", "readme.md"], "{unfit:?}");
    }

    #[test]
    fn who_stood_against_a_deletion_started_from_what_was_deleted() {
        let world = World { before: [(at("f"), hash("b"))].into(), ..World::here([]) };
        let local = Contents::from_iter([(at("f"), hash("o"))]);
        let brought = BTreeMap::from([(at("f"), Theirs::Has(hash("t")))]);
        let steps = take_in(world.bases(), &local, &brought, Reach::End);
        let merge =
            Step::Merge { locator: at("f"), base: Some(hash("b")), ours: hash("o"), theirs: hash("t") };
        assert_eq!(steps, [merge]);
    }

    #[test]
    fn a_new_name_that_differs_by_case_steps_aside() {
        let local = Contents::from_iter([(at("d/readme.md"), hash("ours"))]);
        let brought = BTreeMap::from([(at("d/README.md"), Theirs::Has(hash("theirs")))]);
        let steps = take_in(World::here([]).bases(), &local, &brought, Reach::End);
        let to = at(&format!("d/readme.case-{}.md", &hash("ours").to_string()[..8]));
        assert_eq!(
            steps,
            [
                Step::MakeWay { from: at("d/readme.md"), to, expected: hash("ours") },
                Step::Take { locator: at("d/README.md"), expected: None, theirs: hash("theirs") },
            ]
        );
    }

    /// Decides about a file that is `notes.md` in the log and has the text `ours` here, as `NOTES.md`.
    fn decided_after_our_rename(brought: TheirFiles) -> Vec<Step> {
        let world = World::here([(at("notes.md"), content("b"))]);
        let local = Contents::from_iter([(at("NOTES.md"), hash("o"))]);
        take_in(world.bases(), &local, &brought, Reach::End)
    }

    #[test]
    fn our_rename_takes_in_what_they_changed() {
        let followed = |theirs: &str| Step::FollowOurRename {
            from: at("notes.md"),
            to: at("NOTES.md"),
            base: hash("b"),
            theirs: hash(theirs),
        };
        let steps = decided_after_our_rename([(at("notes.md"), Theirs::Has(hash("t")))].into());
        assert_eq!(steps, [followed("t")]);
        let last = Theirs::Deleted { last: Some(hash("l")) };
        assert_eq!(decided_after_our_rename([(at("notes.md"), last)].into()), [followed("l")]);
        // They had renamed it too, and renamed it back.
        let brought = [(at("notes.md"), Theirs::Has(hash("t"))), (at("NOTES.md"), last)].into();
        assert!(decided_after_our_rename(brought).contains(&followed("t")));
    }

    #[test]
    fn our_rename_makes_no_way_for_what_they_changed_back() {
        let steps = decided_after_our_rename([(at("notes.md"), Theirs::Has(hash("b")))].into());
        assert_eq!(steps, [Step::Agree { locator: at("notes.md") }]);
    }

    #[test]
    fn file_that_both_made_follows_their_rename() {
        let absent = [(at("notes.md"), AbsenceReason::Unfetched)].into();
        let world = World { absent, ..World::here([(at("notes.md"), content("t"))]) };
        let local = Contents::from_iter([(at("notes.md"), hash("o"))]);
        let gone = (at("notes.md"), Theirs::Deleted { last: None });
        let brought = [gone, (at("NOTES.md"), Theirs::Has(hash("t")))].into();
        let (from, to) = (at("notes.md"), at("NOTES.md"));
        let (ours, theirs) = (hash("o"), hash("t"));
        let steps = take_in(world.bases(), &local, &brought, Reach::End);
        assert_eq!(steps, [Step::FollowTheirRename { from, to, base: None, ours, theirs }]);
    }

    #[test]
    fn names_for_case_twins() {
        let mark = &hash("x").to_string()[..8];
        for (name, expected) in [
            ("a.md", format!("a.case-{mark}.md")),
            ("d/a", format!("d/a.case-{mark}")),
            (".hidden", format!(".hidden.case-{mark}")),
        ] {
            assert_eq!(case_name(&at(name), &hash("x")).expect("valid").as_str(), expected);
        }
    }

    #[test]
    fn what_differs_is_pending() {
        let files = [("same", "1"), ("changed", "2"), ("gone", "3")];
        let world = World::here(files.map(|(key, text)| (at(key), content(text))));
        let local = Contents::from_iter([
            (at("same"), hash("1")),
            (at("changed"), hash("x")),
            (at("new"), hash("n")),
        ]);
        let pending = pending(world.bases(), &local);
        assert_eq!(pending.changed, [at("changed"), at("new")]);
        assert_eq!(pending.deleted, [at("gone")]);
        assert!(!pending.is_empty());
    }
}
