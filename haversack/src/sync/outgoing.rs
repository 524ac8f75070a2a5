//! Deletions that a replica finds in its working directory: many at once wait for the user's answer.
//!
//! A directory that was lost (`rm -rf`, a disk that is not mounted, a broken program) looks like a user who deleted everything. So a replica
//! counts the files that disappear, for each project, since the user's last answer and for at most a day:
//!
//! 1. Not counted: files that our own verbs deleted, and files whose content has another name now.
//! 2. The count is compared with the files that the project had when the counting began. New files do not change that number.
//! 3. If the count is very many ([`is_very_many`]), the deletions wait. They are not sent.
//! 4. A waiting deletion keeps waiting until the file comes back or the user answers: `sync --allow-deletes`, or
//!    `restore --deleted`. A new day does not let it go.
//!
//! Example: 8 files are synced, the directory is lost, and a session writes one new file. 8 of 8 files are gone, so the 8 deletions wait and
//! the new file is sent.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Backend, Locator, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::incoming::{self, COUNTED_MILLISECONDS};
use super::plan::{self, Bases, Contents, Pending};
use super::planted::{Planted, has};
use super::renames::{self, Rename};
use super::state::State;
use crate::ids::Timestamp;
use crate::signed::Signatures;

/// From this number on, deletions wait if they are half of a project's files.
const HALF_FROM: usize = 3;

/// The deletions that were sent lately, and those that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeletionRecord {
    /// The time of the first one.
    since: Option<Timestamp>,
    projects: BTreeMap<String, Project>,
    /// The files that wait for the user's answer.
    waiting: BTreeSet<String>,
}

/// The deletions in one project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Project {
    /// The number of files when the counting began.
    files: usize,
    /// The files that were deleted since.
    deleted: BTreeSet<String>,
}

/// The decision about the files that disappeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// All files are gone at once: the directory was emptied or is not there. That is no deletion.
    Vanished,
    /// These files wait; the others were deleted. The record is to be written before they are sent.
    Waiting(Vec<Locator>, DeletionRecord),
}

/// Returns true if so many deletions are very many beside the files that there were.
fn is_very_many(deleted: usize, files: usize) -> bool {
    plan::is_many(deleted, || files) || deleted >= HALF_FROM && deleted * 2 >= files
}

/// Decides the same, with the earlier deletions in the state.
pub(super) async fn look(
    state: &State,
    now: Timestamp,
    signed: Option<&dyn Backend>,
    local: &Contents,
    pending: &Pending,
) -> StoreResult<Judgement> {
    let bases = state.known.bases();
    if pending.deleted.is_empty() {
        return Ok(Judgement::Waiting(Vec::new(), DeletionRecord::default()));
    }
    let signatures = match signed {
        Some(signed) => Signatures::read(signed).await?,
        None => Signatures::default(),
    };
    let record = state.deletions().await?;
    let renames = renames::in_directory(bases, local);
    let meant = |locator: &Locator| signatures.is_deleted_by_verb(locator);
    Ok(judge(record, now, bases, local, pending, &renames, meant))
}

/// Decides which of the files that are gone wait for the user's answer.
///
/// `meant` returns true if one of our own verbs deleted a file.
pub(crate) fn judge(
    mut record: DeletionRecord,
    now: Timestamp,
    bases: Bases<'_>,
    local: &Contents,
    pending: &Pending,
    renames: &[Rename],
    meant: impl Fn(&Locator) -> bool,
) -> Judgement {
    if has(Planted::AbsenceIsMassDeletion) {
        return Judgement::Waiting(Vec::new(), record);
    }
    let renamed: BTreeSet<&Locator> = renames.iter().map(|rename| &rename.from).collect();
    let is_counted = |locator: &&Locator| !renamed.contains(*locator) && !meant(locator);
    let gone: Vec<&Locator> = pending.deleted.iter().filter(is_counted).collect();
    let here = bases.files.len() - pending.absent;
    if gone.len() == here && here > 1 && local.is_empty() {
        return Judgement::Vanished;
    }
    let is_recent = |since: Timestamp| (0..COUNTED_MILLISECONDS).contains(&(now.0 - since.0));
    if !record.since.is_some_and(is_recent) {
        record.since = None;
        record.projects.clear();
    }
    record.waiting.retain(|name| gone.iter().any(|locator| locator.as_str() == name));
    let mut groups: BTreeMap<&str, Vec<&Locator>> = BTreeMap::new();
    for locator in gone {
        groups.entry(incoming::project_of(locator)).or_default().push(locator);
    }
    let mut waiting = Vec::new();
    for (name, gone) in groups {
        let count_files = || {
            let names = bases.files.entries().map(|entry| entry.name);
            let here = names.filter(|name| !bases.absent.contains_key(*name));
            here.filter(|file| incoming::project_in(file) == name).count()
        };
        let mut project = match record.projects.get(name) {
            Some(project) => project.clone(),
            None => Project { files: count_files(), deleted: BTreeSet::new() },
        };
        let names = gone.iter().map(|locator| locator.to_string());
        let all: BTreeSet<String> = names.chain(project.deleted.iter().cloned()).collect();
        if is_very_many(all.len(), project.files) {
            record.waiting.extend(gone.iter().map(|locator| locator.to_string()));
        }
        let (waits, goes): (Vec<&Locator>, Vec<&Locator>) =
            gone.into_iter().partition(|locator| record.waiting.contains(locator.as_str()));
        waiting.extend(waits.into_iter().cloned());
        project.deleted.extend(goes.iter().map(|locator| locator.to_string()));
        record.since.get_or_insert(now);
        record.projects.insert(name.to_owned(), project);
    }
    waiting.sort_unstable();
    Judgement::Waiting(waiting, record)
}

#[cfg(test)]
mod tests {
    use super::super::plan::pending;
    use super::super::renames::in_directory;
    use super::*;
    use crate::ids::ContentHash;
    use crate::log::{Content, Files};

    /// A replica whose files are deleted and whose sent deletions leave the bases.
    struct Scene {
        files: BTreeMap<Locator, Content>,
        local: BTreeMap<Locator, ContentHash>,
        record: DeletionRecord,
        now: i64,
    }

    fn at(name: &str) -> Locator {
        Locator::parse(name).expect("valid")
    }

    fn hash(text: &str) -> ContentHash {
        ContentHash::of(text.as_bytes())
    }

    impl Scene {
        fn new(names: impl IntoIterator<Item = String>) -> Scene {
            let names: Vec<Locator> = names.into_iter().map(|name| at(&name)).collect();
            let content = |name: &Locator| Content { hash: hash(name.as_str()), size: 1 };
            Scene {
                files: names.iter().map(|name| (name.clone(), content(name))).collect(),
                local: names.iter().map(|name| (name.clone(), hash(name.as_str()))).collect(),
                record: DeletionRecord::default(),
                now: 0,
            }
        }

        fn of(count: usize) -> Scene {
            Scene::new((0..count).map(|number| format!("f{number:03}.md")))
        }

        fn delete(&mut self, numbers: std::ops::Range<usize>) -> &mut Scene {
            for number in numbers {
                self.local.remove(&at(&format!("f{number:03}.md")));
            }
            self
        }

        /// Adds a file that is sent at once.
        fn add(&mut self, name: &str) -> &mut Scene {
            self.local.insert(at(name), hash(name));
            self.files.insert(at(name), Content { hash: hash(name), size: 1 });
            self
        }

        /// Judges; deletions that do not wait are sent. Returns the number of those that wait; `None` if all vanished.
        fn sync(&mut self, meant: impl Fn(&Locator) -> bool) -> Option<usize> {
            let (absent, before, held) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
            let files: Files = self.files.clone().into_iter().collect();
            let bases = Bases { files: &files, absent: &absent, before: &before, held: &held };
            let local: Contents = self.local.iter().map(|(name, hash)| (name.clone(), *hash)).collect();
            let pending = pending(bases, &local);
            let renames = in_directory(bases, &local);
            let judged =
                judge(self.record.clone(), Timestamp(self.now), bases, &local, &pending, &renames, meant);
            let Judgement::Waiting(waiting, record) = judged else { return None };
            self.record = record;
            for locator in pending.deleted.iter().filter(|locator| !waiting.contains(locator)) {
                self.files.remove(locator);
            }
            Some(waiting.len())
        }
    }

    const VERB: fn(&Locator) -> bool = |_| true;
    const NO_VERB: fn(&Locator) -> bool = |_| false;

    #[test]
    fn many_deletions_wait() {
        for (all, gone, waiting) in [
            (100, 0, Some(0)),
            (10, 3, Some(0)),
            (10, 4, Some(0)),
            (10, 5, Some(5)),
            (5, 2, Some(0)),
            (6, 3, Some(3)),
            (100, 25, Some(0)),
            (100, 26, Some(26)),
            (10, 9, Some(9)),
            (10, 10, None),
            (2, 2, None),
            (1, 1, Some(0)),
        ] {
            assert_eq!(Scene::of(all).delete(0..gone).sync(NO_VERB), waiting, "{gone} of {all}");
        }
    }

    #[test]
    fn new_files_do_not_let_deletions_go() {
        let mut scene = Scene::of(8);
        assert_eq!(scene.delete(0..8).add("new.md").sync(NO_VERB), Some(8));
        for number in 0..40 {
            assert_eq!(scene.add(&format!("new{number}.md")).sync(NO_VERB), Some(8));
        }
        scene.now += 2 * COUNTED_MILLISECONDS;
        assert_eq!(scene.sync(NO_VERB), Some(8), "another day is no answer");
        scene.add("f000.md");
        assert_eq!(scene.sync(NO_VERB), Some(7), "a file that is back is not deleted");
    }

    #[test]
    fn deletions_are_counted_for_a_day() {
        let mut scene = Scene::of(40);
        assert_eq!(scene.delete(0..8).sync(NO_VERB), Some(0));
        assert_eq!(scene.delete(8..16).sync(NO_VERB), Some(8));
        let mut scene = Scene::of(40);
        assert_eq!(scene.delete(0..8).sync(NO_VERB), Some(0));
        scene.now += COUNTED_MILLISECONDS;
        assert_eq!(scene.delete(8..16).sync(NO_VERB), Some(0));
        scene.now -= 3 * COUNTED_MILLISECONDS;
        assert_eq!(scene.delete(16..20).sync(NO_VERB), Some(0), "a clock that went back begins anew");
    }

    #[test]
    fn deletions_that_are_tried_again_count_once() {
        let mut scene = Scene::of(10);
        scene.delete(0..2);
        for _ in 0..5 {
            let before = scene.files.clone();
            assert_eq!(scene.sync(NO_VERB), Some(0));
            scene.files = before;
        }
    }

    #[test]
    fn deletions_of_verbs_and_renames_are_meant() {
        assert_eq!(Scene::of(8).delete(0..7).sync(VERB), Some(0));
        assert_eq!(Scene::of(8).delete(0..8).sync(VERB), Some(0), "an empty memory may be meant");
        let mut scene = Scene::of(8);
        for number in 0..8 {
            let content = scene.local.remove(&at(&format!("f{number:03}.md"))).expect("there");
            scene.local.insert(at(&format!("moved/{number}.md")), content);
        }
        assert_eq!(scene.sync(NO_VERB), Some(0));
    }

    #[test]
    fn deletions_are_counted_by_project() {
        let name = |project: &str, number: usize| format!("claude_memory/{project}/{number}.md");
        let mut scene =
            Scene::new((0..6).map(|number| name("a", number)).chain((0..40).map(|n| name("b", n))));
        for number in 0..3 {
            scene.local.remove(&at(&name("a", number)));
            scene.local.remove(&at(&name("b", number)));
        }
        assert_eq!(scene.sync(NO_VERB), Some(3));
        assert!(scene.record.waiting.iter().all(|name| name.contains("/a/")));
    }
}
