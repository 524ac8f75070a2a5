//! Directories bound to prefixes: one backend seen below a prefix, and several of them as one.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_lite::StreamExt;

use crate::backend::{
    Appended, Backend, Condition, Displaced, Durability, Entry, EntryKind, Info, Listing, Object, Odd, Page,
    Pages, Written,
};
use crate::error::{Error, ErrorKind, Operation, Result, seen_as, seen_as_either};
use crate::ext::{BackendExt, pages_of};
use crate::fence::is_fenced;
use crate::forward_backend;
use crate::locator::Locator;

/// A backend whose root is seen as a directory: what [`Prefixed`](crate::Prefixed) does, the other way round.
///
/// Nothing is outside of that directory, and nothing can be put there. Haversack's own names at the root are those of the inner backend.
#[derive(Clone, Debug)]
pub struct Mounted {
    inner: Arc<dyn Backend>,
    prefix: Locator,
    /// True if names that are [fenced](is_fenced) cannot be created.
    has_fence: bool,
}

impl Mounted {
    /// Returns `inner` as seen below `prefix`.
    pub fn new(inner: Arc<dyn Backend>, prefix: Locator) -> Mounted {
        Mounted { inner, prefix, has_fence: false }
    }

    /// Refuses to create names that are [fenced](is_fenced): another program reads the directory.
    pub fn fenced(self) -> Mounted {
        Mounted { has_fence: true, ..self }
    }

    /// Returns the place in the inner backend; `None` if it is outside.
    fn find(&self, locator: &Locator) -> Option<Locator> {
        let below = locator.below(&self.prefix);
        below.or_else(|| locator.is_reserved().then(|| locator.clone()))
    }

    /// Returns the place in the inner backend, which must be inside to be changed.
    fn inner(&self, operation: Operation, locator: &Locator) -> Result<Locator> {
        self.find(locator).ok_or_else(|| {
            let message = format!("only files below \"{}\" are in this directory", self.prefix);
            Error::new(ErrorKind::Invalid, operation, locator, message)
        })
    }

    /// Returns the place in the inner backend of something that is created or replaced.
    fn created(&self, operation: Operation, locator: &Locator) -> Result<Locator> {
        let inner = self.inner(operation, locator)?;
        if self.has_fence && locator.is_within(&self.prefix) && is_fenced(inner.as_str()) {
            let message = "another program would read a file of this name as its settings or instructions";
            return Err(Error::new(ErrorKind::Invalid, operation, locator, message));
        }
        Ok(inner)
    }

    fn outer(&self, locator: &Locator) -> Option<Locator> {
        self.prefix.join(locator).ok()
    }

    fn odd(&self, odd: Vec<Odd>) -> Vec<Odd> {
        odd.into_iter().map(|odd| Odd { at: odd.at.and_then(|at| self.outer(&at)), ..odd }).collect()
    }

    fn displaced(&self, displaced: Option<Displaced>) -> Option<Displaced> {
        displaced
            .map(|Displaced { bytes, kept }| Displaced { kept: self.outer(&kept).unwrap_or(kept), bytes })
    }

    fn absent(operation: Operation, locator: &Locator) -> Error {
        Error::new(ErrorKind::NotFound, operation, locator, "nothing is there")
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Mounted {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        match self.find(locator) {
            Some(inner) => seen_as(locator, self.inner.read(&inner).await),
            None => Err(Mounted::absent(Operation::Read, locator)),
        }
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        let inner = self.created(Operation::Write, locator)?;
        let written = seen_as(locator, self.inner.write(&inner, bytes, condition).await)?;
        Ok(Written { displaced: self.displaced(written.displaced), ..written })
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        let inner =
            |(locator, bytes): (Locator, Bytes)| Ok((self.created(Operation::Write, &locator)?, bytes));
        let inner: Vec<(Locator, Bytes)> = objects.into_iter().map(inner).collect::<Result<_>>()?;
        self.inner.prepare(inner).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        let inner = self.created(Operation::Append, locator)?;
        let appended = seen_as(locator, self.inner.append(&inner, bytes, durability).await)?;
        Ok(Appended { displaced: self.displaced(appended.displaced), ..appended })
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let Some(inner) = self.find(locator) else {
            let above = next_below(&self.prefix, locator);
            let entries = above.map(|locator| Entry { locator, kind: EntryKind::Directory });
            return Ok(Listing { entries: entries.into_iter().collect(), odd: Vec::new() });
        };
        let listing = seen_as(locator, self.inner.list(&inner).await)?;
        if locator.is_reserved() && !locator.is_within(&self.prefix) {
            return Ok(listing);
        }
        let entries = listing.entries.into_iter();
        let entries =
            entries.filter_map(|entry| Some(Entry { locator: self.outer(&entry.locator)?, ..entry }));
        Ok(Listing { entries: entries.collect(), odd: self.odd(listing.odd) })
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        if prefix.is_reserved() && !prefix.is_within(&self.prefix) {
            return self.inner.scan(prefix, after);
        }
        let root = Locator::root();
        let inner = match self.find(prefix) {
            Some(inner) => inner,
            None if self.prefix.is_within(prefix) => root,
            None => return pages_of(Vec::new(), Vec::new()),
        };
        let after_inner = after.and_then(|after| after.below(&self.prefix));
        if after.is_some() && after_inner.is_none() && after >= Some(&self.prefix) {
            // It comes after all of it.
            return pages_of(Vec::new(), Vec::new());
        }
        let pages = self.inner.scan(&inner, after_inner.as_ref().filter(|after| !after.is_root()));
        Box::pin(pages.map(move |page| {
            let Page { infos, odd } = page?;
            let infos = infos.into_iter();
            let infos = infos.filter_map(|info| Some(Info { locator: self.outer(&info.locator)?, ..info }));
            Ok(Page { infos: infos.collect(), odd: self.odd(odd) })
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let inner = match self.find(locator) {
            Some(inner) => inner,
            None if self.prefix.is_within(locator) => Locator::root(),
            None => return Err(Mounted::absent(Operation::Info, locator)),
        };
        let info = seen_as(locator, self.inner.info(&inner).await)?;
        Ok(Info { locator: locator.clone(), ..info })
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        let inner = self.inner(Operation::Delete, locator)?;
        seen_as(locator, self.inner.delete(&inner, condition).await)
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        let inner_from = self.inner(Operation::Rename, from)?;
        let inner_to = self.created(Operation::Rename, to)?;
        seen_as_either(
            [(&inner_from, from), (&inner_to, to)],
            self.inner.rename(&inner_from, &inner_to).await,
        )
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        let inner_one = self.created(Operation::Exchange, one)?;
        let inner_other = self.created(Operation::Exchange, other)?;
        let exchanged = self.inner.exchange(&inner_one, &inner_other).await;
        seen_as_either([(&inner_one, one), (&inner_other, other)], exchanged)
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        let inner = self.created(Operation::Mkdir, locator)?;
        seen_as(locator, self.inner.mkdir(&inner).await)
    }

    forward_backend!(self => self.inner; barrier, touch_mark, lock, capabilities, conflict_strategy);
}

/// Returns the child of `locator` on the way to `prefix`, if it is on the way.
fn next_below(prefix: &Locator, locator: &Locator) -> Option<Locator> {
    let rest = prefix.below(locator).filter(|rest| !rest.is_root())?;
    locator.join(&Locator::parse(rest.segments().next()?).ok()?).ok()
}

/// A backend with others in the place of some of its directories.
///
/// The backend's own files in those places are hidden. Locks are those of the backend.
#[derive(Clone, Debug)]
pub struct Overlay {
    base: Arc<dyn Backend>,
    mounts: Vec<(Locator, Arc<dyn Backend>)>,
}

impl Overlay {
    /// Returns `base` with the root of each of `mounts` at its prefix; where two have one prefix, the first counts.
    pub fn new(base: Arc<dyn Backend>, mounts: Vec<(Locator, Arc<dyn Backend>)>) -> Overlay {
        Overlay::over(base, mounts, |under| under)
    }

    /// Returns the same, with directories that other programs read: names that are [fenced](is_fenced) cannot be created in them.
    pub fn fenced(base: Arc<dyn Backend>, mounts: Vec<(Locator, Arc<dyn Backend>)>) -> Overlay {
        Overlay::over(base, mounts, Mounted::fenced)
    }

    fn over(
        base: Arc<dyn Backend>,
        mounts: Vec<(Locator, Arc<dyn Backend>)>,
        finish: impl Fn(Mounted) -> Mounted,
    ) -> Overlay {
        let mut seen: Vec<(Locator, Arc<dyn Backend>)> = Vec::new();
        for (prefix, backend) in mounts {
            if !seen.iter().any(|(other, _)| *other == prefix) {
                let under = finish(Mounted::new(backend, prefix.clone()));
                seen.push((prefix, Arc::new(under)));
            }
        }
        // The deepest is asked first.
        seen.sort_by(|(one, _), (other, _)| other.cmp(one));
        Overlay { base, mounts: seen }
    }

    fn at(&self, locator: &Locator) -> &dyn Backend {
        match self.mounts.iter().find(|(prefix, _)| locator.is_within(prefix)) {
            Some((_, mount)) => &**mount,
            None => &*self.base,
        }
    }

    fn is_on_the_way(&self, locator: &Locator) -> bool {
        self.mounts.iter().any(|(prefix, _)| prefix.is_within(locator))
    }

    /// Returns the backend that has both places.
    fn both(&self, operation: Operation, one: &Locator, other: &Locator) -> Result<&dyn Backend> {
        let (first, second) = (self.at(one), self.at(other));
        let is_above = |locator: &Locator| {
            self.mounts.iter().any(|(prefix, _)| prefix != locator && prefix.is_within(locator))
        };
        if is_above(one) || is_above(other) {
            let message = "a directory is bound there, and stays where it is";
            return Err(Error::new(ErrorKind::Unsupported, operation, one, message));
        }
        if std::ptr::addr_eq(first, second) {
            return Ok(first);
        }
        let message = format!("\"{other}\" is in another directory: create it there, then delete this one");
        Err(Error::new(ErrorKind::Unsupported, operation, one, message))
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Overlay {
    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        for (locator, bytes) in objects {
            self.at(&locator).prepare(vec![(locator.clone(), bytes)]).await?;
        }
        Ok(())
    }

    async fn barrier(&self) -> Result<()> {
        self.base.barrier().await?;
        for (_, mount) in &self.mounts {
            mount.barrier().await?;
        }
        Ok(())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let Listing { entries, odd } = self.at(locator).list(locator).await?;
        let mut all: BTreeMap<Locator, EntryKind> =
            entries.into_iter().map(|entry| (entry.locator, entry.kind)).collect();
        for (prefix, _) in &self.mounts {
            if let Some(child) = next_below(prefix, locator) {
                all.insert(child, EntryKind::Directory);
            }
        }
        let entries = all.into_iter().map(|(locator, kind)| Entry { locator, kind });
        Ok(Listing { entries: entries.collect(), odd })
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        if prefix.is_reserved() || !self.is_on_the_way(prefix) {
            return self.at(prefix).scan(prefix, after);
        }
        let (prefix, after) = (prefix.clone(), after.cloned());
        let all = async move {
            let Page { mut infos, mut odd } = self.base.scan_all(&prefix).await?;
            infos.retain(|info| !self.mounts.iter().any(|(mount, _)| info.locator.is_within(mount)));
            for (mount, backend) in &self.mounts {
                if mount.is_within(&prefix) || prefix.is_within(mount) {
                    let page = backend.scan_all(&prefix).await?;
                    infos.extend(page.infos);
                    odd.extend(page.odd);
                }
            }
            infos.retain(|info| after.as_ref().is_none_or(|after| info.locator > *after));
            infos.sort_by(|one, other| one.locator.cmp(&other.locator));
            Ok((infos, odd))
        };
        let all = futures_lite::stream::once_future(all);
        Box::pin(all.flat_map(|all| match all {
            Ok((infos, odd)) => pages_of(infos, odd),
            Err(error) => Box::pin(futures_lite::stream::once(Err(error))),
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        match self.at(locator).info(locator).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            info => return info,
        }
        match self.mounts.iter().find(|(prefix, _)| prefix.is_within(locator)) {
            Some((_, mount)) => mount.info(locator).await,
            None => Err(Mounted::absent(Operation::Info, locator)),
        }
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if !self.is_on_the_way(locator) {
            return self.at(locator).delete(locator, condition).await;
        }
        // The directory itself belongs to the program that bound it, and stays.
        let listing = self.list(locator).await?;
        let is_bound = |entry: &Entry| self.is_on_the_way(&entry.locator);
        if listing.odd.is_empty() && listing.entries.iter().all(is_bound) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Invalid, Operation::Delete, locator, "the directory is not empty"))
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        self.both(Operation::Rename, from, to)?.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        self.both(Operation::Exchange, one, other)?.exchange(one, other).await
    }

    forward_backend!(self, locator => self.at(locator); read, write, append, mkdir);
    forward_backend!(self => self.base; touch_mark, lock, capabilities, conflict_strategy);
}
