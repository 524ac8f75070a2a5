//! The proof that a checkout is the project whose address it names.
//!
//! Anyone can write your repository's address into the `.git/config` of an archive. A checkout that is opened here therefore shows a
//! commit of the project before it gets the project's memory:
//!
//! 1. A directory that the user named, or a memory that the user shares among all projects, needs no proof.
//! 2. A checkout that the user agreed to (`haversack project bind`) needs no proof.
//! 3. A project that the store does not know yet needs no proof: there is no memory to protect.
//! 4. Otherwise the checkout's own objects must contain a commit that the project's record names.
//!
//! The record is a file of the store, `state/projects/<id>.set`. It has a line for each commit (`tip <hash>` for the branches of the
//! remote at the time of each binding, `root <hash>` for the first commits of the history) and the repository's `address`. The
//! background process finds the roots.
//!
//! A checkout that was made by `git init` has no branch of the remote before its first fetch or push. Then the tip of its own main branch is recorded, if
//! the record names no commit yet. The owner of the first checkout decides this, as for the branches of the remote: an archive
//! of a project that the store knows is not bound, so it records nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haversack::store::{Bytes, Locator, block_on};

use super::git::Repository;
use super::git::history;
use super::git::objects::{ObjectId, Objects};
use super::registry::{self, Consent, ProjectRegistry, Seen};
use super::{identity, prefix_of};
use crate::error::CommandError;
use crate::home::mounts::{self, Mount};
use crate::home::store::{PROJECT_RECORDS, open};
use crate::settings::Settings;

/// The number of lines that the record of a project grows to; roots are added beyond it.
const MAX_LINES: usize = 64;

/// The longest record that is read.
const MAX_RECORD_BYTES: usize = 64 * 1024;

/// Why a checkout counts as its project, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The user named the directory, or shares one memory among all projects.
    NotNeeded,
    /// The user agreed to this checkout.
    Agreed,
    /// The store does not know the project yet.
    New,
    /// The project was bound in this directory before, and its record names no commit.
    SeenHere,
    /// The checkout has a commit that the record names.
    Commit,
    /// The checkout proves nothing.
    Missing(Missing),
}

/// Why a proof is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The `.git` file names a repository that does not list this checkout.
    NotListed,
    /// The clone is shallow, and its few commits are unknown.
    Shallow,
    /// No commit of the record is in the checkout.
    NoCommit,
}

impl Missing {
    /// Returns the reason as part of a sentence about the checkout.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Missing::NotListed => "its .git file points to a repository that does not list it as a checkout",
            Missing::Shallow => "it is a shallow clone without a commit that we know",
            Missing::NoCommit => "it has no commit that we know of this project",
        }
    }
}

/// Returns how a checkout proves that it is the project with this id.
pub(crate) fn of(
    settings: &Settings,
    registry: &ProjectRegistry,
    repository: &Repository,
    id: &str,
) -> Proof {
    let Repository { root, checkout, common, is_own, .. } = repository;
    let is_agreed = |path| registry.agrees(id, &Consent::Checkout(path));
    if is_agreed(checkout.clone()) || *is_own && is_agreed(root.clone()) {
        return Proof::Agreed;
    }
    if !is_own {
        return Proof::Missing(Missing::NotListed);
    }
    let record = Record::of(settings, id);
    if !record.is_there && !is_known(settings, id) {
        return Proof::New;
    }
    if record.commits.is_empty() && registry.seen.iter().any(|seen| seen.id == id && seen.root == *root) {
        return Proof::SeenHere;
    }
    let objects = Objects::of(common);
    let has = |id: &ObjectId| objects.as_ref().is_some_and(|objects| objects.commit(id).is_some());
    if record.commits.iter().any(has) {
        return Proof::Commit;
    }
    Proof::Missing(if repository.is_shallow() { Missing::Shallow } else { Missing::NoCommit })
}

/// Returns true if the store has memory of a project, as far as this machine knows.
fn is_known(settings: &Settings, id: &str) -> bool {
    let Some(prefix) = prefix_of(id) else { return false };
    let is_bound = mounts::of(settings).is_ok_and(|all| all.iter().any(|mount| mount.prefix == prefix));
    is_bound || settings.memory().join(prefix.as_str()).exists()
}

/// The commits that the store knows of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Record {
    is_there: bool,
    has_root: bool,
    lines: Vec<String>,
    commits: Vec<ObjectId>,
}

impl Record {
    /// Reads a record. One that cannot be read names no commit, and so proves nothing.
    fn of(settings: &Settings, id: &str) -> Record {
        let Some(place) = place(id) else { return Record::default() };
        match std::fs::read(settings.memory().join(place.as_str())) {
            Ok(bytes) => Record::parse(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_RECORD_BYTES)])),
            Err(error) => {
                Record { is_there: error.kind() != std::io::ErrorKind::NotFound, ..Record::default() }
            }
        }
    }

    fn parse(text: &str) -> Record {
        let mut record = Record { is_there: true, ..Record::default() };
        for line in text.lines().map(str::trim) {
            let Some((kind @ ("tip" | "root" | "address"), value)) = line.split_once(' ') else { continue };
            record.lines.push(line.to_owned());
            if let Some(commit) = ObjectId::parse(value).filter(|_| kind != "address") {
                record.has_root |= kind == "root";
                // Roots first: most checkouts have them.
                let at = if kind == "root" { 0 } else { record.commits.len() };
                record.commits.insert(at, commit);
            }
        }
        record
    }
}

fn place(id: &str) -> Option<Locator> {
    Locator::parse(&format!("{PROJECT_RECORDS}/{id}.set")).ok()
}

/// Returns the directory of the records in the store.
pub(crate) fn records() -> Locator {
    Locator::parse(PROJECT_RECORDS).expect("a plain name")
}

/// Unbinds checkouts that do not prove their project to a store that this home is about to join; returns them.
///
/// A project that was new to this home may be known there. Then its checkout needs a proof, before the store's memory comes here.
pub(crate) fn unbind_unproven(
    settings: &Settings,
    records: &BTreeMap<Locator, Bytes>,
    is_known: impl Fn(&Locator) -> bool,
) -> Result<Vec<PathBuf>, CommandError> {
    let _turn = registry::turn(settings)?;
    let registry = ProjectRegistry::of(settings)?;
    let mut mounts = mounts::of(settings)?;
    let mut unproven = Vec::new();
    for Seen { id, root, memory } in &registry.seen {
        let Some(prefix) = prefix_of(id) else { continue };
        let is_bound = |mount: &Mount| mount.directory == *memory && mount.prefix == prefix;
        let Some(repository) = super::git::find(root).filter(|found| found.root == *root) else { continue };
        let is_asked = mounts.iter().any(is_bound) && !registry.is_named_here(root);
        let record = place(id).and_then(|place| records.get(&place));
        if !is_asked || record.is_none() && !is_known(&prefix) {
            continue;
        }
        let record = Record::parse(&String::from_utf8_lossy(record.map_or(&[], |bytes| bytes)));
        let is_agreed = registry.agrees(id, &Consent::Checkout(root.clone()));
        let objects = Objects::of(&repository.common);
        let has = |commit| objects.as_ref().is_some_and(|objects| objects.commit(commit).is_some());
        if is_agreed || repository.is_own && record.commits.iter().any(has) {
            continue;
        }
        mounts.retain(|mount| !is_bound(mount));
        // Its commits must not become proofs of the project.
        if let Some(place) = place(id) {
            drop(std::fs::remove_file(settings.memory().join(place.as_str())));
        }
        unproven.push(root.clone());
    }
    if !unproven.is_empty() {
        mounts::save(settings, &mounts)?;
    }
    Ok(unproven)
}

/// Adds the tips of the remote's branches to the record of a project, after its checkout was bound; without any, the tip of its main branch.
pub(crate) fn record_tips(
    settings: &Settings,
    repository: &Repository,
    id: &str,
) -> Result<(), CommandError> {
    let record = Record::of(settings, id);
    let room = MAX_LINES.saturating_sub(record.lines.len());
    let address = repository.remote().as_deref().and_then(identity::normalise);
    let address = address.map(|address| format!("address {address}"));
    let mut tips = history::tips(repository);
    if tips.is_empty() && record.commits.is_empty() {
        tips.extend(history::own_tip(repository));
    }
    let tips = tips.into_iter().map(|tip| format!("tip {tip}"));
    let lines = address.into_iter().chain(tips);
    let new: Vec<String> = lines.filter(|line| !record.lines.contains(line)).take(room).collect();
    add(settings, id, &new)
}

/// Returns true if the store's record of a project names no commit: no clone on another machine can prove that it is the project.
pub(crate) fn names_no_commit(settings: &Settings, id: &str) -> bool {
    Record::of(settings, id).commits.is_empty()
}

/// Returns the ids of all projects that the store knows, with the addresses of their repositories.
pub(crate) fn addresses(settings: &Settings) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(settings.memory().join(PROJECT_RECORDS)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ids = names.filter_map(|name| Some(name.strip_suffix(".set")?.to_owned()));
    let with_addresses = ids.flat_map(|id| {
        let lines = Record::of(settings, &id).lines;
        let addresses = lines.into_iter().filter_map(|line| Some(line.strip_prefix("address ")?.to_owned()));
        addresses.map(move |address| (id.clone(), address)).collect::<Vec<_>>()
    });
    with_addresses.collect()
}

/// Finds the roots of every bound checkout whose record has none, and adds them. Walks history: for the background process only.
pub(crate) fn record_roots(settings: &Settings) -> Result<(), CommandError> {
    let registry = ProjectRegistry::of(settings)?;
    for seen in &registry.seen {
        let Some(repository) = super::git::find(&seen.root).filter(|found| found.root == seen.root) else {
            continue;
        };
        let record = Record::of(settings, &seen.id);
        let tips = history::tips(&repository);
        // The only tip that is known can be a local one, which the user amended before the first push.
        let known: Vec<&str> = record.lines.iter().filter_map(|line| line.strip_prefix("tip ")).collect();
        let is_known = |tip: &ObjectId| known.contains(&tip.to_string().as_str());
        let is_pushed_since = known.len() == 1 && !tips.is_empty() && !tips.iter().any(is_known);
        if !record.is_there || record.has_root && !is_pushed_since || repository.is_shallow() {
            continue;
        }
        if !matches!(of(settings, &registry, &repository, &seen.id), Proof::Commit | Proof::Agreed) {
            continue;
        }
        if is_pushed_since {
            record_tips(settings, &repository, &seen.id)?;
        }
        if record.has_root {
            continue;
        }
        let from = if tips.is_empty() { record.commits } else { tips };
        let roots: Vec<String> =
            history::roots(&repository, from).into_iter().map(|root| format!("root {root}")).collect();
        add(settings, &seen.id, &roots)?;
    }
    Ok(())
}

fn add(settings: &Settings, id: &str, lines: &[String]) -> Result<(), CommandError> {
    let Some(place) = place(id).filter(|_| !lines.is_empty()) else { return Ok(()) };
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    block_on(open(settings)?.append(&place, text))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_lines_that_name_no_commit_are_passed_over() {
        let (root, tip) = ("1".repeat(40), "2".repeat(64));
        let text = format!("tip {tip}\nroot {root}\n\ntip\nroot x\nother {root}\n<<<<\n");
        let record = Record::parse(&text);
        let commits: Vec<String> = record.commits.iter().map(ToString::to_string).collect();
        assert_eq!(commits, [root, tip]);
        assert!(record.has_root && record.is_there);
        assert!(Record::parse("").commits.is_empty());
    }
}
