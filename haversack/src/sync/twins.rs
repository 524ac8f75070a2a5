//! Completes renames that differ only by case, once nothing is in their way any more.
//!
//! A file of the log could not be written here ([`AbsenceReason::Refused`]), and the working directory has a file that the log does not have, whose
//! name differs only by case. The two are one file if it is known which content the working file goes back to:
//!
//! - The log deleted the name of the working file: another device renamed it, and something was in the way when that arrived here. The working
//!   file gets the log's name, with both changes.
//! - The log has an earlier content under its own name that could not be replaced here: the user has renamed the file since. The newer content
//!   is merged into it under its new name, and the rename is sent.
//!
//! Otherwise they are two files. The log's file gets its name. The working file makes way, as it does for a new file of the log
//! ([`Step::MakeWay`](super::plan::Step::MakeWay)), and is sent under its other name.

use std::collections::HashMap;

use haversack_store::Locator;

use super::plan::{AbsenceReason, case_name};
use super::scan::Found;
use super::state::{Advance, BaseLine};
use super::take_in::{IncomingChanges, Work};
use super::{Context, Replica, Report, SyncError};
use crate::ids::ContentHash;

impl Replica {
    /// Completes such renames; returns true if there was one.
    pub(super) async fn complete_case_renames(
        &mut self,
        context: Context<'_>,
        found: &Found,
        report: &mut Report,
    ) -> Result<bool, SyncError> {
        let refused = self.absent(AbsenceReason::Refused);
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            return Ok(false);
        };
        if refused.is_empty() {
            return Ok(false);
        }
        let known = &self.state.known;
        let is_unsent = |locator: &&Locator| !known.log.files().contains_key(*locator);
        let unsent: HashMap<String, Locator> = found
            .contents
            .iter()
            .map(|(locator, _)| locator)
            .filter(is_unsent)
            .map(|locator| (locator.folded(), locator.clone()))
            .collect();
        let (mut making_way, mut work, mut bases) = (Work::default(), Work::default(), Vec::new());
        for name in refused {
            let Some(twin) = unsent.get(&name.folded()).filter(|twin| **twin != name) else { continue };
            let known = &self.state.known;
            let Some(content) = known.log.files().get(&name) else { continue };
            let their_rename = known.before.get(twin).copied();
            let base = their_rename.or_else(|| known.before.get(&name).copied());
            let theirs = self.base_content(context, &content.hash).await?;
            let (Some(theirs), Some(ours)) = (theirs, self.local(twin).await?) else { continue };
            let Some(base) = base else {
                let Ok(to) = case_name(twin, &ContentHash::of(&ours)) else { continue };
                let expected = self.state.keep(&ours).await.map_err(SyncError::Local)?;
                self.state.keep(&theirs).await.map_err(SyncError::Local)?;
                making_way.add(&to, None, Some(ours));
                making_way.add(twin, Some(expected), None);
                work.add(&name, None, Some(theirs));
                bases.push(BaseLine::new(name.as_str(), Some(content)));
                continue;
            };
            let base = self.state.kept(&base).await.map_err(SyncError::Local)?;
            let to = if their_rename.is_some() { &name } else { twin };
            let incoming = IncomingChanges::of_contents(head.clone(), [].into());
            let merged = self.merged(context, to, base, &ours, &theirs, &incoming, report).await?;
            let expected = self.state.keep(&ours).await.map_err(SyncError::Local)?;
            self.state.keep(&merged).await.map_err(SyncError::Local)?;
            if their_rename.is_some() {
                work.add(twin, Some(expected), None);
                work.add(&name, None, Some(merged));
                bases.push(BaseLine::new(twin.as_str(), None));
            } else if merged != ours {
                work.add(twin, Some(expected), Some(merged));
            }
            bases.push(BaseLine::new(name.as_str(), Some(content)));
        }
        if bases.is_empty() {
            return Ok(false);
        }
        making_way.in_order = making_way.moves.len();
        making_way.moves.extend(work.moves);
        making_way.contents.extend(work.contents);
        let mark = self.state.known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.carry_out(context, making_way, advance, report).await?;
        Ok(true)
    }
}
