//! Worktrees that have memory of their own: whether their sessions use it.

use haversack::check::Finding;

use crate::moments::counted;
use crate::projects::private::{self, Standing};
use crate::projects::tilde;
use crate::settings::Settings;

pub(super) fn examine(settings: &Settings) -> Vec<Finding> {
    // A book that cannot be read is told of where projects are.
    let all = private::all(settings).unwrap_or_default();
    let each = all.into_iter().map(|(private, standing, files)| {
        let checkout = tilde(settings, &private.checkout);
        let memory = tilde(settings, &private.memory);
        let files = counted(files, "file");
        let merge = |into: &str| format!("haversack project bind {into} --from {memory}");
        match standing {
            Standing::InUse => {
                Finding::ok("private", format!("{checkout} has memory of its own: {files}, never sent"))
            }
            Standing::Unused => Finding::warn(
                "private",
                format!("{checkout} has memory of its own that its sessions do not use: {files} in {memory}"),
                format!("haversack project private {checkout}; or merge them: {}", merge(&checkout)),
            ),
            Standing::Gone => Finding::warn(
                "private",
                format!("{checkout} is gone, and left memory of its own: {files} in {memory}"),
                format!("merge them into a project, or delete them: {}", merge("DIRECTORY")),
            ),
        }
    });
    each.collect()
}
