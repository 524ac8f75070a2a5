//! Conveniences over any backend: text, existence, whole listings.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use futures_lite::StreamExt;

use crate::backend::{Appended, Backend, Condition, Durability, Info, Odd, Page, Pages, Written};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;

/// Conveniences over the verbs of [`Backend`]. They are implemented for every backend.
#[async_trait]
pub trait BackendExt: Backend {
    /// Returns the text at `locator`, `None` if nothing is there.
    ///
    /// Content that is not UTF-8 is [`Invalid`](ErrorKind::Invalid): reading it as text would change it.
    async fn read_text(&self, locator: &Locator) -> Result<Option<String>> {
        let object = match self.read(locator).await {
            Ok(object) => object,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match String::from_utf8(object.bytes.into()) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                Err(Error::new(ErrorKind::Invalid, Operation::Read, locator, "it is not UTF-8 text")
                    .with_source(error))
            }
        }
    }

    /// Writes text, whatever is there.
    async fn write_text(&self, locator: &Locator, text: &str) -> Result<Written> {
        self.write(locator, Bytes::copy_from_slice(text.as_bytes()), Condition::Any).await
    }

    /// Adds text to the end, durably.
    async fn append_text(&self, locator: &Locator, text: &str) -> Result<Appended> {
        self.append(locator, Bytes::copy_from_slice(text.as_bytes()), Durability::Now).await
    }

    /// Returns true if an object or a directory is there.
    async fn exists(&self, locator: &Locator) -> Result<bool> {
        match self.info(locator).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns all objects at or below `prefix`, in key order, and what could not be served.
    async fn scan_all(&self, prefix: &Locator) -> Result<Page> {
        let mut all = Page::default();
        let mut pages = self.scan(prefix, None);
        while let Some(page) = pages.next().await {
            let page = page?;
            all.infos.extend(page.infos);
            all.odd.extend(page.odd);
        }
        Ok(all)
    }

    /// Returns the locators of all objects at or below `prefix`, in key order.
    async fn list_all(&self, prefix: &Locator) -> Result<Vec<Locator>> {
        Ok(self.scan_all(prefix).await?.infos.into_iter().map(|info| info.locator).collect())
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}

/// The most objects in one page of a scan.
pub(crate) const PAGE_OBJECTS: usize = 1000;

/// Returns a scan over what is in memory already, cut into pages.
pub(crate) fn pages_of(infos: Vec<Info>, odd: Vec<Odd>) -> Pages<'static> {
    let mut rest = VecDeque::from(infos);
    let mut odd = Some(odd);
    Box::pin(futures_lite::stream::iter(std::iter::from_fn(move || {
        let odd = odd.take();
        if rest.is_empty() && odd.as_ref().is_none_or(Vec::is_empty) {
            return None;
        }
        let infos = rest.drain(..rest.len().min(PAGE_OBJECTS)).collect();
        Some(Ok(Page { infos, odd: odd.unwrap_or_default() }))
    })))
}
