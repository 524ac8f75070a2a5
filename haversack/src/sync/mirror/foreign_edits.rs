//! Imports what people changed in the mirror by hand.

use std::collections::{BTreeMap, BTreeSet};

use futures_lite::StreamExt;
use haversack_store::{Bytes, Condition, ErrorKind, Info, Locator, Version};

use super::THE_MIRROR;
use crate::frame::shown;
use crate::ids::{ContentHash, Position, StoreId};
use crate::log;
use crate::manifest::Manifest;
use crate::merge::{Rule, Side, merge};
use crate::sync::places::OurPlaces;
use crate::sync::plan::{Elsewhere, Reach};
use crate::sync::remote::patiently;
use crate::sync::state::{Advance, BaseLine, Head};
use crate::sync::take_in::{IncomingChanges, Work};
use crate::sync::{Context, ForeignFiles, Origin, Replica, Report, Trouble};

/// The largest object that somebody else put there and that is looked at: it is held in memory.
const MAX_FOREIGN_BYTES: u64 = 256 * 1024 * 1024;

/// What somebody wrote by hand, and what it was made from.
pub(super) struct Edit {
    pub(super) locator: Locator,
    pub(super) bytes: Bytes,
    pub(super) base: Base,
    pub(super) lies: Lies,
}

/// Where an edit lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lies {
    /// In the place of the file: once it was taken in, it may be replaced.
    There,
    /// In a copy beside it.
    Beside,
}

/// What an edit was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// This: what the edit lacks of it was taken out.
    Known(Option<ContentHash>),
    /// Something like this, as far as anybody can tell: what the edit lacks of it may never have been there.
    Guessed(Option<Bytes>),
}

impl Replica {
    /// Takes in what somebody changed in the mirror by hand, as if it had been changed here.
    ///
    /// Returns the objects that are not what they should be.
    pub(in crate::sync) async fn take_in_foreign(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<BTreeSet<Locator>, Trouble> {
        let mut mend = BTreeSet::new();
        // Without a manifest of ours the log alone tells which contents are ours.
        let manifest = self.index(context).await?.map(|index| index.manifest).unwrap_or_default();
        let (changed, copied) = self.changed_objects(context, &manifest, &mut mend, report).await?;
        if !changed.is_empty() && self.remote.at(context.patience, self.next().0).await?.is_some() {
            // Whoever committed that may have mirrored it: only once it was taken in can it be told from an edit.
            return Ok(mend);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // Nobody has committed anything yet: what lies there is simply new here.
            for (locator, bytes) in changed {
                let hash = ContentHash::of(&bytes);
                if context.origins.of(&locator, &hash) == Origin::Unclear {
                    report.awaited.push((locator, hash));
                    continue;
                }
                match self.files.write(&locator, bytes, Condition::Absent).await {
                    Ok(_) => report.foreign.push(locator),
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {}
                    Err(error) => return Err(Trouble::Local(error)),
                }
            }
            return Ok(mend);
        };
        let suspects = changed.iter().map(|(locator, bytes)| (locator.clone(), ContentHash::of(bytes)));
        let known = self.known_to_log(context, suspects.collect(), Position::FIRST).await?;
        let mut edits = Vec::new();
        for (locator, bytes) in changed {
            mend.insert(locator.clone());
            let hash = ContentHash::of(&bytes);
            let is_old = known.contains(&(locator.clone(), hash));
            if is_old || self.state.known.foreign.get(&locator) == Some(&hash) {
                continue;
            }
            match context.origins.of(&locator, &hash) {
                Origin::Ours => {}
                Origin::Edit => {
                    let base = manifest.entries.get(&locator).and_then(|entry| entry.hash);
                    let is_crossed = base.is_some_and(|base| context.origins.is_crossed(&locator, &base));
                    // Where a sync client made a copy, or another device wrote too, it may have been made from something else than what
                    // we put there.
                    let base = match is_crossed || copied.contains(&locator) {
                        true => Base::Guessed(self.most_like(context, &locator, &bytes).await?),
                        false => Base::Known(base),
                    };
                    edits.push(Edit { locator, bytes, base, lies: Lies::There });
                }
                Origin::Unclear => report.awaited.push((locator, hash)),
            }
        }
        self.take_in_edits(context, store, head, edits, Work::default(), report).await?;
        Ok(mend)
    }

    /// Puts what somebody wrote by hand into the working files, together with what is to be done to them anyway.
    pub(super) async fn take_in_edits(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        head: Head,
        edits: Vec<Edit>,
        mut work: Work,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        let mut bases = Vec::new();
        for Edit { locator, bytes, base, lies } in edits {
            // What somebody put in the file's own place is still known as taken in when a copy is.
            let foreign = (lies == Lies::There).then(|| ContentHash::of(&bytes));
            let (base, bytes) = match base {
                Base::Known(base) => (base, bytes),
                Base::Guessed(None) => (None, bytes),
                Base::Guessed(Some(base)) => match with_all_of(&locator, &base, &bytes) {
                    Some(all) if self.local(&locator).await?.is_some() => {
                        (Some(self.state.keep(&base).await.map_err(Trouble::Local)?), all)
                    }
                    Some(_) | None => (None, bytes),
                },
            };
            let theirs = ContentHash::of(&bytes);
            let incoming = IncomingChanges {
                state_after: log::State::empty(),
                head: head.clone(),
                touched: BTreeSet::new(),
                odd: BTreeMap::new(),
                contents: [(theirs, bytes)].into(),
                content_before_deletion: BTreeMap::new(),
                devices: [(locator.clone(), THE_MIRROR.to_owned())].into(),
                deleters: BTreeMap::new(),
                without_content: Elsewhere::Missing,
                reach: Reach::End,
                joined: None,
            };
            self.mix(context, &locator, base, &theirs, &incoming, &mut work, report).await?;
            let content = self.state.known.log.files().get(&locator);
            bases.push(BaseLine {
                elsewhere: self.state.known.elsewhere.get(&locator).copied(),
                before: self.state.known.before.get(&locator).copied(),
                held: self.state.known.held.contains(&locator),
                foreign,
                ..BaseLine::new(locator.as_str(), content)
            });
            report.foreign.push(locator);
        }
        if bases.is_empty() {
            return Ok(());
        }
        let mark = self.state.known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.carry_out(context, work, advance, report).await
    }

    /// Returns the objects that hold something else than the manifest and the log say, and those of which a sync client made copies; notes
    /// those that are not there.
    async fn changed_objects(
        &self,
        context: Context<'_>,
        manifest: &Manifest,
        mend: &mut BTreeSet<Locator>,
        report: &mut Report,
    ) -> Result<(Vec<(Locator, Bytes)>, BTreeSet<Locator>), Trouble> {
        let list = || async {
            let mut infos = Vec::new();
            let mut odd = Vec::new();
            let mut pages = self.remote.backend().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let page = page?;
                infos.extend(page.infos);
                odd.extend(page.odd);
            }
            Ok((infos, odd))
        };
        let (infos, odd): (Vec<Info>, _) =
            patiently(context.patience, list).await.map_err(Trouble::Remote)?;
        report.odd.extend(odd.into_iter().map(|odd| (odd.shown, odd.why)));
        let there: BTreeSet<&Locator> = infos.iter().map(|info| &info.locator).collect();
        let names: Vec<Locator> = infos.iter().map(|info| info.locator.clone()).collect();
        let (copies, copied): (BTreeSet<Locator>, BTreeSet<Locator>) =
            context.origins.copies(&names).into_iter().unzip();
        mend.extend(manifest.entries.keys().filter(|locator| !there.contains(locator)).cloned());
        let ours = OurPlaces::of(self.state.known.log.files());
        let is_near = |locator: &Locator| {
            context.foreign == ForeignFiles::Anywhere
                || manifest.entries.contains_key(locator)
                || ours.contain(locator)
                || context.origins.is_claimed(locator)
        };
        // What belongs to another replica of this device is for that one to take in.
        let in_scope = infos.into_iter().filter(|info| self.scope.contains(&info.locator));
        let (infos, far): (Vec<Info>, Vec<Info>) =
            in_scope.filter(|info| !copies.contains(&info.locator)).partition(|info| is_near(&info.locator));
        // The log may have had one of them before: then it is what a slow device wrote, and has to go.
        let (stale, unrelated) = self.once_in_log(context, far).await?;
        report.unrelated.extend(unrelated.into_iter().map(|info| info.locator));
        let mut changed = Vec::new();
        for info in infos.into_iter().chain(stale) {
            let entry = manifest.entries.get(&info.locator);
            let version = info.version.as_ref().map(Version::as_str);
            if version.is_some() && entry.is_some_and(|entry| entry.version.as_deref() == version) {
                continue;
            }
            if info.size_bytes > MAX_FOREIGN_BYTES {
                let why = format!("it is larger than {} MiB, and no memory", MAX_FOREIGN_BYTES / 1024 / 1024);
                report.odd.push((shown(info.locator.as_str()), why));
                continue;
            }
            let at = match self.remote.read(context.patience, &info.locator).await {
                // A file that the sync client has not brought yet stops only itself.
                Err(Trouble::Remote(error)) if error.is_content_awaited() => {
                    report.odd.push((shown(info.locator.as_str()), error.message().to_owned()));
                    continue;
                }
                at => at?,
            };
            let Some(at) = at else { continue };
            let hash = Some(ContentHash::of(&at.bytes));
            let now = self.state.known.log.files().get(&info.locator).map(|content| content.hash);
            if hash != now && hash != entry.and_then(|entry| entry.hash) {
                changed.push((info.locator, at.bytes));
            }
        }
        Ok((changed, copied))
    }
}

/// Returns an edit with everything that something had which it may not have been made from; `None` if there is no such text.
fn with_all_of(locator: &Locator, base: &Bytes, edit: &Bytes) -> Option<Bytes> {
    let side = |bytes| Side { bytes, device: THE_MIRROR };
    let merged = merge(Rule::of(locator, [&base[..], &edit[..]]), None, side(base), side(edit));
    merged.copy.is_none().then_some(merged.bytes)
}
