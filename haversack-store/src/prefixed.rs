//! A backend seen from one of its directories.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_lite::StreamExt;

use crate::backend::{
    Appended, Backend, Condition, Durability, Entry, Info, Listing, Object, Odd, Page, Pages, Written,
    check_own,
};
use crate::error::{Error, Operation, Result, seen_as, seen_as_either};
use crate::forward_backend;
use crate::locator::Locator;

/// A backend whose root is a directory of another one.
///
/// Locks are those of the whole backend, so that they also order writers outside of the directory.
#[derive(Clone, Debug)]
pub struct Prefixed {
    inner: Arc<dyn Backend>,
    prefix: Locator,
}

impl Prefixed {
    /// Returns `inner` as seen from `prefix`.
    pub fn new(inner: Arc<dyn Backend>, prefix: Locator) -> Prefixed {
        Prefixed { inner, prefix }
    }

    fn outer(&self, operation: Operation, locator: &Locator) -> Result<Locator> {
        self.prefix.join(locator).map_err(|reason| Error::invalid(operation, locator, reason))
    }
}

/// Returns the place as seen from `prefix`; `None` if it is Haversack's own there and was not asked for.
fn below(prefix: &Locator, locator: &Locator, asked: &Locator) -> Option<Locator> {
    locator.below(prefix).filter(|locator| !locator.is_reserved() || asked.is_reserved())
}

fn page_below(prefix: &Locator, page: Page, asked: &Locator) -> Page {
    let infos = page.infos.into_iter().filter_map(|info| {
        let locator = below(prefix, &info.locator, asked)?;
        Some(Info { locator, ..info })
    });
    Page { infos: infos.collect(), odd: odd_below(prefix, page.odd, asked) }
}

fn odd_below(prefix: &Locator, odd: Vec<Odd>, asked: &Locator) -> Vec<Odd> {
    let seen = |odd: Odd| Odd { at: odd.at.and_then(|at| below(prefix, &at, asked)), ..odd };
    odd.into_iter().map(seen).collect()
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Prefixed {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let outer = self.outer(Operation::Read, locator)?;
        seen_as(locator, self.inner.read(&outer).await)
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        let outer = self.outer(Operation::Write, locator)?;
        seen_as(locator, self.inner.write(&outer, bytes, condition).await)
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        check_own(&objects)?;
        // Our own names here are ordinary names in the whole backend, where readers may look.
        for (locator, bytes) in objects {
            let _ = self.write(&locator, bytes, Condition::Any).await?;
        }
        Ok(())
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        let outer = self.outer(Operation::Append, locator)?;
        seen_as(locator, self.inner.append(&outer, bytes, durability).await)
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let outer = self.outer(Operation::List, locator)?;
        let Listing { entries, odd } = seen_as(locator, self.inner.list(&outer).await)?;
        let entries = entries.into_iter().filter_map(|entry| {
            Some(Entry { locator: below(&self.prefix, &entry.locator, locator)?, kind: entry.kind })
        });
        Ok(Listing { entries: entries.collect(), odd: odd_below(&self.prefix, odd, locator) })
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let outer = self.outer(Operation::Scan, prefix);
        let after = after.map(|after| self.outer(Operation::Scan, after)).transpose();
        match (outer, after) {
            (Ok(outer), Ok(after)) => {
                let asked = prefix.clone();
                let pages = self.inner.scan(&outer, after.as_ref());
                Box::pin(pages.map(move |page| Ok(page_below(&self.prefix, page?, &asked))))
            }
            (Err(error), _) | (_, Err(error)) => Box::pin(futures_lite::stream::once(Err(error))),
        }
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let outer = self.outer(Operation::Info, locator)?;
        let info = seen_as(locator, self.inner.info(&outer).await)?;
        Ok(Info { locator: locator.clone(), ..info })
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        let outer = self.outer(Operation::Delete, locator)?;
        seen_as(locator, self.inner.delete(&outer, condition).await)
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        let outer_from = self.outer(Operation::Rename, from)?;
        let outer_to = self.outer(Operation::Rename, to)?;
        seen_as_either(
            [(&outer_from, from), (&outer_to, to)],
            self.inner.rename(&outer_from, &outer_to).await,
        )
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        let outer_one = self.outer(Operation::Exchange, one)?;
        let outer_other = self.outer(Operation::Exchange, other)?;
        let exchanged = self.inner.exchange(&outer_one, &outer_other).await;
        seen_as_either([(&outer_one, one), (&outer_other, other)], exchanged)
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        let outer = self.outer(Operation::Mkdir, locator)?;
        seen_as(locator, self.inner.mkdir(&outer).await)
    }

    forward_backend!(self => self.inner; barrier, touch_mark, lock, capabilities, conflict_strategy);
}
