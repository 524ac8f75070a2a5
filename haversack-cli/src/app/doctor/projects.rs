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
    let mut findings = bounded(worktrees(settings), "haversack project list");
    findings.extend(bounded(old_ids(settings), "haversack ls"));
    findings
}

/// The most findings of one sort that are told one by one.
const MAX_EACH: usize = 5;

/// Returns the worst findings of one sort, and one that counts the others. `listed_by` is the command that lists them.
fn bounded(mut findings: Vec<Finding>, listed_by: &str) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    let others = findings.split_off(findings.len().min(MAX_EACH));
    if let Some(Finding { subject, verdict, .. }) = others.first() {
        let detail = format!("… and {} more like it: {listed_by}", others.len());
        findings.push(Finding { subject, verdict: *verdict, detail, cure: None });
    }
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

#[cfg(test)]
mod tests {
    use haversack::check::Verdict;

    use super::*;

    #[test]
    fn many_findings_are_counted_and_the_worst_are_told() {
        let fine = (1..=6).map(|number| Finding::ok("private", number.to_string()));
        let all: Vec<Finding> = fine.chain([Finding::warn("private", "bad", "mend it")]).collect();
        let told = bounded(all.clone(), "haversack project list");
        let details: Vec<&str> = told.iter().map(|finding| finding.detail.as_str()).collect();
        assert_eq!(details, ["bad", "1", "2", "3", "4", "… and 2 more like it: haversack project list"]);
        assert_eq!(told.last().map(|finding| finding.verdict), Some(Verdict::Ok));
        assert_eq!(bounded(all[..5].to_vec(), "").len(), 5);
    }
}
