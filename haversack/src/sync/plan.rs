//! What a sync does to each file, decided without doing anything.
//!
//! Three contents are compared for every file: the base (what this replica and the log last agreed on), the local one and
//! theirs (what the log says now). [`take_in`] decides what happens to the working files so that afterwards the base can be
//! theirs; [`pending`] tells what then still differs, which is what the next commit carries.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use haversack_store::{InvalidLocator, Locator};
use serde::{Deserialize, Serialize};

use crate::ids::ContentHash;
use crate::log::Files;
use crate::log::files::Entry;
use crate::sync::Hold;
use crate::sync::planted::{Planted, has};

/// What a replica and the log last agreed on: the log's files at the position that was taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases<'a> {
    pub(crate) files: &'a Files,
    /// Files that are not in the working directory. That they are not there means nothing.
    pub(crate) elsewhere: &'a BTreeMap<Locator, Elsewhere>,
    /// The last content of files that the log deleted and that stayed here, because they had been changed or because their deletion is
    /// held. Another device that changed such a file started from the same content.
    pub(crate) before: &'a BTreeMap<Locator, ContentHash>,
    /// Files whose deletion by another device is held: they stay here and are not sent, until the user decides or edits them.
    pub(crate) held: &'a BTreeSet<Locator>,
}

/// Why a file of the log is not in the working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Elsewhere {
    /// It was not fetched yet.
    Unfetched,
    /// This disk cannot hold its name.
    Refused,
    /// The log names a content that is not to be had.
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

    fn is_elsewhere(&self, locator: &Locator) -> bool {
        self.elsewhere.contains_key(locator)
    }

    /// Tells the files of the working directory and the bases side by side, in order.
    fn beside<'b>(&'b self, local: &'b Contents) -> impl Iterator<Item = Beside<'b>> {
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
            Some(Beside { base, local })
        })
    }
}

/// A file, as it should be and as it is.
struct Beside<'a> {
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

/// What the log brought about the files it names.
pub(crate) type Brought = BTreeMap<Locator, Theirs>;

/// What the log says about a file.
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

/// Whether what the log brought is all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is, as far as is known.
    End,
    /// There may be more.
    Middle,
}

/// What is done to one working file before its base becomes theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Their content replaces ours, which nobody changed since the base.
    Take { locator: Locator, expected: Option<ContentHash>, theirs: ContentHash },
    /// The file goes: nobody here changed it since the base. If somebody does while it goes, it stays, with what was changed
    /// on their side before the deletion.
    Remove { locator: Locator, expected: ContentHash, last: Option<ContentHash> },
    /// Both changed it: the merge of the two replaces ours.
    Merge { locator: Locator, base: Option<ContentHash>, ours: ContentHash, theirs: ContentHash },
    /// Ours is what it should be; only the base moves.
    Agree { locator: Locator },
    /// Both made it, and more of the log is to come: they are put together with what all of it comes to.
    Wait { locator: Locator },
    /// One side deleted what the other changed: the change wins, whole.
    EditWins { locator: Locator, winner: Winner },
    /// A new file of ours has a name that differs from one of theirs only by case: ours gets another one first.
    MakeWay { from: Locator, to: Locator, expected: ContentHash },
}

/// Whose change stood against a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winner {
    /// Ours: the file stays, with what was changed on their side before the deletion, and is sent as a new one.
    Ours { last: Option<ContentHash> },
    /// Theirs: the file comes back.
    Theirs(ContentHash),
}

/// Decides what happens to every file that the log brought something about.
///
/// What makes way comes first.
pub(crate) fn take_in(bases: Bases<'_>, local: &Contents, brought: &Brought, reach: Reach) -> Vec<Step> {
    let mut aside = Vec::new();
    let mut steps = Vec::new();
    let unsent: BTreeMap<String, &(Locator, ContentHash)> = bases
        .beside(local)
        .filter(|file| file.base.is_none())
        .filter_map(|file| file.local)
        .map(|file| (file.0.folded(), file))
        .collect();
    for (locator, theirs) in brought {
        if let Theirs::Has(_) = theirs
            && let Some((twin, hash)) = unsent.get(&locator.folded())
            && twin != locator
        {
            // If there is no other name for ours, theirs is the one that this disk cannot hold.
            let to = case_name(twin, hash).ok();
            aside.extend(to.map(|to| Step::MakeWay { from: twin.clone(), to, expected: *hash }));
        }
        steps.push(decide(bases, locator, local.get(locator), *theirs, reach));
    }
    aside.extend(steps);
    aside
}

fn decide(
    bases: Bases<'_>,
    locator: &Locator,
    ours: Option<ContentHash>,
    brought: Theirs,
    reach: Reach,
) -> Step {
    let theirs = brought.hash();
    // The user has not touched a file whose deletion is held: its last content is still the common ground.
    let base_hash = bases.hash(locator).or_else(|| bases.held(locator));
    // What was never here was not deleted here.
    let is_elsewhere = bases.is_elsewhere(locator);
    let locator = locator.clone();
    let ours_is_base = ours == base_hash || (is_elsewhere && ours.is_none());
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
        let waits = is_elsewhere && theirs.is_some();
        return if waits { Step::Wait { locator } } else { Step::Agree { locator } };
    }
    match (ours, theirs) {
        (Some(expected), None) if has(Planted::DeletionWins) => {
            Step::Remove { locator, expected, last: None }
        }
        (Some(ours), Some(theirs)) => {
            // The content of a base that was never here is not at hand, and nobody here wrote on top of it.
            let base = match base_hash {
                Some(_) if is_elsewhere => None,
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

/// What a replica has to tell the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// New and changed files.
    pub(crate) changed: Vec<Locator>,
    /// Files that were deleted here.
    pub(crate) deleted: Vec<Locator>,
    /// Files that somebody made here while the log's were not: both have to be put together first.
    pub(crate) met: Vec<Locator>,
    /// How many of the log's files are not in the working directory, which means nothing.
    pub(crate) elsewhere: usize,
    /// Files that other devices deleted, and that stay here unchanged because their deletion is held.
    pub(crate) held_deletions: Vec<Locator>,
}

impl Pending {
    /// Tells whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.deleted.is_empty()
    }
}

/// Returns what differs between a replica and what it last agreed on with the log.
pub(crate) fn pending(bases: Bases<'_>, local: &Contents) -> Pending {
    let mut pending = Pending::default();
    for Beside { base, local } in bases.beside(local) {
        let is_same = base.zip(local).is_some_and(|(base, (_, hash))| base.content.hash == *hash);
        // Of most stores nothing is elsewhere.
        let is_elsewhere = |name: &str| !bases.elsewhere.is_empty() && bases.elsewhere.contains_key(name);
        match (base, local) {
            (Some(base), _) if is_elsewhere(base.name) => pending.elsewhere += 1,
            (_, Some(_)) if is_same => {}
            (None, Some((locator, hash))) if bases.held(locator) == Some(*hash) => {
                pending.held_deletions.push(locator.clone());
            }
            (_, Some((locator, _))) if !is_elsewhere(locator.as_str()) => {
                pending.changed.push(locator.clone());
            }
            (Some(base), None) => pending.deleted.push(base.locator()),
            (_, Some(_)) | (None, None) => {}
        }
    }
    pending.met = bases.elsewhere.keys().filter(|locator| local.contains_key(locator)).cloned().collect();
    pending
}

/// Returns the new files that other devices could not hold beside what the log has, and why.
///
/// Somebody made them past us; they stay here until they have another name.
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
fn directories(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(end, _)| &name[..end])
}

/// More deletions than this at once are asked about, if they are also more than a share of all files.
pub(crate) const MANY_DELETIONS: usize = 8;

/// Deletions of more than one in this many files at once are asked about.
pub(crate) const DELETION_SHARE: usize = 4;

/// What to make of files that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// They were deleted.
    Deleted,
    /// So many that somebody should say so: they wait.
    Ask,
    /// Every one of them, all at once: the directory was emptied or is not there. That is no deletion.
    Vanished,
}

/// Tells whether so many deletions are very many beside the files that there were.
pub(crate) fn is_many(deleted: usize, files: impl FnOnce() -> usize) -> bool {
    deleted > MANY_DELETIONS && deleted * DELETION_SHARE > files()
}

/// Judges how many of the files that should be in a working directory are not.
pub(crate) fn judge_gone(bases: Bases<'_>, local: &Contents, pending: &Pending) -> Gone {
    let here = bases.files.len() - pending.elsewhere;
    let gone = pending.deleted.len();
    if has(Planted::AbsenceIsMassDeletion) {
        Gone::Deleted
    } else if gone == here && gone > 1 && local.is_empty() {
        Gone::Vanished
    } else if is_many(gone, || here) {
        Gone::Ask
    } else {
        Gone::Deleted
    }
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

    /// Bases that are all here, or all elsewhere.
    struct World {
        files: Files,
        elsewhere: BTreeMap<Locator, Elsewhere>,
        before: BTreeMap<Locator, ContentHash>,
        held: BTreeSet<Locator>,
    }

    impl World {
        fn here(files: impl IntoIterator<Item = (Locator, Content)>) -> World {
            World {
                files: files.into_iter().collect(),
                elsewhere: BTreeMap::new(),
                before: BTreeMap::new(),
                held: BTreeSet::new(),
            }
        }

        fn bases(&self) -> Bases<'_> {
            Bases { files: &self.files, elsewhere: &self.elsewhere, before: &self.before, held: &self.held }
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
        // What was changed and changed back is still not what ours was made from.
        let elsewhere = [(at("f"), Elsewhere::Unfetched)].into();
        let world = World { elsewhere, ..World::here([(at("f"), content("t"))]) };
        for reach in [Reach::Middle, Reach::End] {
            assert_eq!(take_in(world.bases(), &local, &brought, reach), wait);
        }
    }

    #[test]
    fn what_was_never_here_was_not_deleted() {
        let elsewhere = [(at("f"), Elsewhere::Unfetched)].into();
        let world = World { elsewhere, ..World::here([(at("f"), content("b"))]) };
        let brought = BTreeMap::from([(at("f"), Theirs::Has(hash("t")))]);
        let steps = take_in(world.bases(), &Contents::default(), &brought, Reach::End);
        assert_eq!(steps, [Step::Take { locator: at("f"), expected: None, theirs: hash("t") }]);
        assert!(pending(world.bases(), &Contents::default()).is_empty());
        let made = Contents::from_iter([(at("f"), hash("o"))]);
        assert_eq!(
            pending(world.bases(), &made),
            Pending { met: vec![at("f")], elsewhere: 1, ..Pending::default() }
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

    #[test]
    fn many_files_gone_are_not_simply_deleted() {
        let judged = |all: usize, gone: usize| {
            let world = World::here((0..all).map(|n| (at(&format!("f{n}")), content("b"))));
            let local: Contents = (gone..all).map(|n| (at(&format!("f{n}")), hash("b"))).collect();
            judge_gone(world.bases(), &local, &pending(world.bases(), &local))
        };
        assert_eq!(judged(100, 0), Gone::Deleted);
        assert_eq!(judged(10, 3), Gone::Deleted);
        assert_eq!(judged(10, 8), Gone::Deleted, "few");
        assert_eq!(judged(100, 25), Gone::Deleted, "a small share");
        assert_eq!(judged(100, 26), Gone::Ask);
        assert_eq!(judged(10, 9), Gone::Ask);
        assert_eq!(judged(10, 10), Gone::Vanished);
        assert_eq!(judged(2, 2), Gone::Vanished);
        assert_eq!(judged(1, 1), Gone::Deleted, "the only file may be deleted");
    }
}
