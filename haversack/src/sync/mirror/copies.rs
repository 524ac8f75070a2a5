//! Takes in the copies that a sync client made of plain files.

use futures_lite::StreamExt;
use haversack_store::{Bytes, Condition, Error as StoreError, ErrorKind, Locator};

use super::foreign_edits::{Base, Edit, Lies};
use crate::ids::{ContentHash, Position};
use crate::sync::places::OurPlaces;
use crate::sync::remote::{At, patiently};
use crate::sync::state::CopyRecord;
use crate::sync::take_in::Work;
use crate::sync::{Context, ForeignFiles, Origin, Replica, Report, Sending, Trouble};

/// What became of a copy.
enum Merging {
    Done,
    /// It stays where it is, and is looked at again.
    NotYet,
}

impl Replica {
    /// Takes in the copies that a sync client made of plain files, and removes them; those that nobody was told of yet with the next mirror.
    ///
    /// What a copy holds that no device wrote is in the history under its own name, and in the file it is a copy of. A copy that is a file
    /// of the store by now is somebody's, and stays.
    pub(in crate::sync) async fn take_in_copies(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        self.finish_passing(context, report).await?;
        let list = || async {
            let mut names = Vec::new();
            let mut pages = self.remote.backend().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                names.extend(page?.infos.into_iter().map(|info| info.locator));
            }
            Ok(names)
        };
        let names = patiently(context.patience, list).await.map_err(Trouble::Remote)?;
        let ours = OurPlaces::of(self.state.known.log.files());
        for (copy, original) in context.origins.copies(&names) {
            let is_ours = |locator: &Locator| self.state.known.log.files().contains_key(locator);
            if !self.scope.contains(&copy) || is_ours(&copy) {
                continue;
            }
            let is_near = context.foreign == ForeignFiles::Anywhere || ours.contain(&original);
            if !is_near && !context.origins.is_claimed(&copy) {
                report.unrelated.push(copy);
                continue;
            }
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, &copy).await?
            else {
                continue;
            };
            let hash = ContentHash::of(&bytes);
            let suspects = [(original.clone(), hash), (copy.clone(), hash)].into();
            let is_known = !self.known_to_log(context, suspects, Position::FIRST).await?.is_empty();
            let origin = match context.origins.of(&original, &hash) {
                _ if is_known => Origin::Ours,
                // It was waited for under its own name.
                Origin::Unclear => context.origins.of(&copy, &hash),
                origin => origin,
            };
            match origin {
                // As long as no log has what took its place, it shows everybody that this was not made from it.
                Origin::Ours if !self.is_told_of(context, &original).await? => {}
                Origin::Ours => drop(self.taken.insert(copy, version)),
                Origin::Unclear => report.awaited.push((copy, hash)),
                Origin::Edit => match self.merge_copy(context, &copy, &original, bytes, report).await? {
                    Merging::Done => drop(self.taken.insert(copy, version)),
                    Merging::NotYet => {}
                },
            }
        }
        self.remove_taken(context).await
    }

    /// Removes copies that were taken in, once everybody can read in a log what they held.
    pub(super) async fn remove_taken(&mut self, context: Context<'_>) -> Result<(), Trouble> {
        if !self.is_told(context) {
            return Ok(());
        }
        while let Some((copy, version)) = self.taken.pop_first() {
            match self.remote.backend().delete(&copy, Condition::Matches(version)).await {
                Ok(()) => {}
                // It has changed since: it is looked at again.
                Err(error) if says_nothing(&error) || error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Trouble::Remote(error)),
            }
        }
        Ok(())
    }

    /// Tells whether others can read in a log all that the plain objects show.
    pub(super) fn is_told(&self, context: Context<'_>) -> bool {
        self.state.known.head.as_ref().is_none_or(|head| context.origins.is_told(head.position))
    }

    /// Tells whether a log has what lies in the place of a file, or nothing does.
    async fn is_told_of(&self, context: Context<'_>, locator: &Locator) -> Result<bool, Trouble> {
        let Some(At { bytes, .. }) = self.remote.read(context.patience, locator).await? else {
            return Ok(true);
        };
        let hash = ContentHash::of(&bytes);
        if context.origins.of(locator, &hash) == Origin::Ours {
            return Ok(true);
        }
        let suspects = [(locator.clone(), hash)].into();
        Ok(!self.known_to_log(context, suspects, Position::FIRST).await?.is_empty())
    }

    /// Puts what a copy holds into the history and into the file it is a copy of.
    ///
    /// Both happen to the working files in one step, so that whoever is killed leaves a copy that was merged; that it is still to go is
    /// written down.
    async fn merge_copy(
        &mut self,
        context: Context<'_>,
        copy: &Locator,
        original: &Locator,
        bytes: Bytes,
        report: &mut Report,
    ) -> Result<Merging, Trouble> {
        if self.local(copy).await?.is_some() {
            // Something of that name is here that does not leave this machine.
            return Ok(Merging::NotYet);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // Nobody has committed anything yet: what it holds is simply new here.
            return match self.files.write(original, bytes, Condition::Absent).await {
                Ok(_) => self.rounds(context, Sending::All, report).await.map(|()| Merging::Done),
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {
                    Ok(Merging::NotYet)
                }
                Err(error) => Err(Trouble::Local(error)),
            };
        };
        // What it was made from the client does not tell.
        let base = Base::Guessed(self.most_like(context, original, &bytes).await?);
        let mut work = Work::default();
        let hash = self.state.keep(&bytes).await.map_err(Trouble::Local)?;
        work.add(copy, None, Some(bytes.clone()));
        let passing = CopyRecord { at: copy.to_string(), hash };
        self.state.begin_passing(&passing).await.map_err(Trouble::Local)?;
        let edit = Edit { locator: original.clone(), bytes, base, lies: Lies::Beside };
        self.take_in_edits(context, store, head, vec![edit], work, report).await?;
        self.rounds(context, Sending::All, report).await?;
        if report.refused.contains(original) {
            // It has a place of its own then.
            self.state.end_passing().await.map_err(Trouble::Local)?;
            return Ok(Merging::Done);
        }
        self.finish_passing(context, report).await?;
        Ok(Merging::Done)
    }

    /// Removes the working file of a copy that was merged; what somebody has made of it since stays.
    async fn finish_passing(&mut self, context: Context<'_>, report: &mut Report) -> Result<(), Trouble> {
        let Some(passing) = self.state.passing().await.map_err(Trouble::Local)? else { return Ok(()) };
        if let Ok(copy) = Locator::parse(&passing.at) {
            let there = match self.files.read(&copy).await {
                Ok(there) => Some(there),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(Trouble::Local(error)),
            };
            if let Some(there) = there.filter(|there| ContentHash::of(&there.bytes) == passing.hash) {
                match self.files.delete(&copy, Condition::Matches(there.version)).await {
                    Ok(()) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {}
                    Err(error) => return Err(Trouble::Local(error)),
                }
                self.rounds(context, Sending::All, report).await?;
            }
        }
        self.state.end_passing().await.map_err(Trouble::Local)
    }
}

/// Tells whether what became of a write can only be seen by looking.
fn says_nothing(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Unavailable)
}
