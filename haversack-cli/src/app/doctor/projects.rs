//! Projects: worktrees with memory of their own that no session uses, and ids of the old form.

use std::collections::BTreeSet;

use haversack::check::Finding;

use crate::home::mounts;
use crate::projects::private;
use crate::projects::registry::PrivateUse;
use crate::projects::registry::ProjectRegistry;
use crate::projects::{id_of_prefix, identity};
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;

pub(super) fn examine(settings: &Settings) -> Vec<Finding> {
    let mut findings = worktrees(settings);
    findings.extend(old_ids(settings));
    findings
}

/// Lists ids of the old form: another repository can be made to have the same one.
fn old_ids(settings: &Settings) -> Vec<Finding> {
    let registry = ProjectRegistry::of(settings).unwrap_or_default();
    let stored = std::fs::read_dir(settings.memory().join("claude_memory")).into_iter().flatten().flatten();
    let stored = stored.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let bound = mounts::of(settings).unwrap_or_default();
    let bound = bound.iter().filter_map(|mount| id_of_prefix(&mount.prefix)).map(str::to_owned);
    let ids: BTreeSet<String> =
        stored.chain(bound).filter(|id| identity::is_old_id(id) && !registry.is_name(id)).collect();
    let each = ids.into_iter().map(|id| {
        Finding::warn(
            "projects",
            format!("{id} is an id of the old form, which another repository can be made to have"),
            format!("open a session in the project, or: haversack delete --recursive claude_memory/{id}"),
        )
    });
    each.collect()
}

fn worktrees(settings: &Settings) -> Vec<Finding> {
    // A registry that cannot be read is reported with the projects.
    let all = private::all(settings).unwrap_or_default();
    let each = all.into_iter().map(|(private, usage, files)| {
        let checkout = quoted(&tilde(settings, &private.checkout));
        let memory = tilde(settings, &private.memory);
        let files = counted(files, "file");
        let merge = |into: &str| format!("haversack project bind {into} --from {memory}");
        match usage {
            PrivateUse::InUse => {
                Finding::ok("private", format!("{checkout} has private memory: {files}, never sent"))
            }
            PrivateUse::Unused => Finding::warn(
                "private",
                format!("{checkout} has private memory that its sessions do not use: {files} in {memory}"),
                format!("haversack project private {checkout}; or merge them: {}", merge(&checkout)),
            ),
            PrivateUse::Gone => Finding::warn(
                "private",
                format!("{checkout} is gone, and its private memory is still there: {files} in {memory}"),
                format!("merge them into a project, or delete them: {}", merge("DIRECTORY")),
            ),
        }
    });
    each.collect()
}
