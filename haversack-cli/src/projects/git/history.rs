//! The commits that a project's record keeps: the tips of the remote's branches, and the roots of their history.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::objects::{ObjectId, Objects};
use super::{Repository, read};

/// The number of branches whose tips are kept.
const MAX_TIPS: usize = 16;

/// The number of files that are looked at for branches.
const MAX_REFS: usize = 2_000;

/// The number of commits that are walked to find a root.
const MAX_WALKED: usize = 400_000;

/// The branches that most people push to: their tips are kept first.
const USUAL: [&str; 4] = ["main", "master", "trunk", "develop"];

/// Returns the tips of the branches of the repository's remote, usual branches first.
pub(crate) fn tips(repository: &Repository) -> Vec<ObjectId> {
    // The name comes from a file of the repository: it must not leave the directory.
    let is_plain = |name: &String| name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let Some(remote) = repository.remote_name().filter(is_plain) else { return Vec::new() };
    let place = format!("refs/remotes/{remote}/");
    let mut branches: BTreeMap<String, ObjectId> = BTreeMap::new();
    for line in read(&repository.common.join("packed-refs")).unwrap_or_default().lines() {
        if let Some((id, name)) = line.split_once(' ')
            && let (Some(branch), Some(id)) = (name.strip_prefix(&place), ObjectId::parse(id))
        {
            branches.insert(branch.to_owned(), id);
        }
    }
    // A loose reference is newer than the packed one.
    add_loose(&repository.common.join(&place), "", &mut branches);
    let rank = |branch: &str| USUAL.iter().position(|usual| *usual == branch).unwrap_or(USUAL.len());
    let mut branches: Vec<(String, ObjectId)> = branches.into_iter().collect();
    branches.sort_by_key(|(branch, _)| rank(branch));
    let mut tips = Vec::new();
    for (_, id) in branches {
        if !tips.contains(&id) && tips.len() < MAX_TIPS {
            tips.push(id);
        }
    }
    tips
}

/// Returns the tip of the repository's own main branch: of the first usual branch that it has, or else of the branch that is checked out.
///
/// Other branches do not count: a user who reviews a stranger's branch has the stranger's commits there. A commit that is missing from
/// the repository's own objects does not count either.
pub(crate) fn own_tip(repository: &Repository) -> Option<ObjectId> {
    let head = read(&repository.common.join("HEAD")).unwrap_or_default();
    let checked_out = head.trim().strip_prefix("ref: refs/heads/").unwrap_or_default().to_owned();
    let is_plain = checked_out.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let packed = read(&repository.common.join("packed-refs")).unwrap_or_default();
    let branches = USUAL.into_iter().chain(is_plain.then_some(checked_out.as_str()));
    let mut tips = branches.filter_map(|branch| {
        let name = format!("refs/heads/{branch}");
        let file = repository.common.join(&name);
        let is_file = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let loose = is_file.then(|| read(&file)).flatten().and_then(|text| ObjectId::parse(text.trim()));
        loose.or_else(|| {
            let in_line = |line: &str| {
                let (id, other) = line.split_once(' ')?;
                ObjectId::parse(id).filter(|_| other == name)
            };
            packed.lines().find_map(in_line)
        })
    });
    let tip = tips.next()?;
    Objects::of(&repository.common)?.commit(&tip).is_some().then_some(tip)
}

fn add_loose(directory: &Path, prefix: &str, branches: &mut BTreeMap<String, ObjectId>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_REFS) {
        let Ok(kind) = entry.file_type() else { continue };
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if kind.is_dir() && branches.len() < MAX_REFS {
            add_loose(&entry.path(), &format!("{name}/"), branches);
        } else if kind.is_file()
            && let Some(id) = read(&entry.path()).and_then(|text| ObjectId::parse(text.trim()))
        {
            branches.insert(name, id);
        }
    }
}

/// Returns the roots that the first parents of some commits lead to. Walks history, so only the background process calls this.
///
/// A shallow clone has no root: the parents of its oldest commits are missing.
pub(crate) fn roots(repository: &Repository, from: Vec<ObjectId>) -> Vec<ObjectId> {
    let Some(objects) = Objects::of(&repository.common) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let mut roots = Vec::new();
    for commit in from {
        let mut next = Some(commit);
        while let Some(id) = next.take() {
            if seen.len() >= MAX_WALKED || !seen.insert(id.clone()) {
                break;
            }
            let Some(commit) = objects.commit(&id) else { break };
            match first_parent(&commit) {
                Some(parent) => next = Some(parent),
                None => roots.push(id),
            }
        }
    }
    roots
}

/// Returns the first parent that a commit names.
fn first_parent(commit: &[u8]) -> Option<ObjectId> {
    let lines = commit.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let mut lines = lines.filter_map(|line| line.strip_prefix(b"parent "));
    lines.next().and_then(|id| ObjectId::parse(std::str::from_utf8(id).ok()?))
}
