//! The contents that entries carry: found, put together, and carried on.

use haversack_store::{Bytes, Locator};

use super::bridge::{Bridge, local};
use super::file_merge::{FileOutcome, ingredients, merge_file_cached};
use super::heads::Heads;
use super::logs::Numbered;
use crate::frame::BadFrame;
use crate::ids::ContentHash;
use crate::log::{Carried, Commit, Content, MAX_INLINE_BYTES, What};
use crate::sync::{Impatient, SyncError};

/// After so many appends a file is carried whole again.
const MAX_APPENDS: usize = 64;

/// The most bytes of content inside one commit.
const MAX_INLINE_TOTAL: usize = 8 * 1024 * 1024;

impl Bridge {
    /// Returns a commit whose appends extend what some entry wrote, and not too many of them: others put no merge together for it.
    pub(super) async fn carried_whole(
        &mut self,
        mut commit: Commit,
        seen: &Heads,
    ) -> Result<Commit, SyncError> {
        let mut inline = 0;
        for change in &mut commit.changes {
            let What::Append { base, hash, size, added, .. } = &change.what else { continue };
            let chain = self.read().await?.logs.extended(&change.locator, seen, base);
            if chain.is_some_and(|(_, length)| length < MAX_APPENDS) {
                continue;
            }
            let before = self.content(&change.locator, seen).await?;
            let added = self.carried(added).await?;
            let whole =
                Bytes::from([&before.unwrap_or_default()[..], &added.unwrap_or_default()[..]].concat());
            let content = Content { hash: *hash, size: *size };
            if !content.is_of(&whole) {
                let why =
                    format!("an append to {} extends content that the logs do not have", change.locator);
                return Err(SyncError::Unfit { position: commit.position, why });
            }
            change.what = self.put(whole, &mut inline).await?;
        }
        Ok(commit)
    }

    /// Returns a change that puts a content into a file, beside the commit if it is large.
    pub(super) async fn put(&self, bytes: Bytes, inline: &mut usize) -> Result<What, SyncError> {
        let (hash, size) = (ContentHash::of(&bytes), bytes.len() as u64);
        let fits = bytes.len() <= MAX_INLINE_BYTES && *inline + bytes.len() <= MAX_INLINE_TOTAL;
        let content = match fits {
            true => {
                *inline += bytes.len();
                Carried::Inline(bytes)
            }
            false => Carried::Object(self.log.put_object(&Impatient, &bytes).await.map_err(local)?),
        };
        Ok(What::Put { hash, size, content, from: None })
    }

    /// Returns a change that deletes a file. Its content before the deletion need not be its present one.
    pub(super) async fn gone(&self, now: Content, before: Option<Bytes>) -> Result<What, SyncError> {
        let before = before.filter(|before| !now.is_of(before));
        let before = match before {
            Some(before) => Some(self.log.put_object(&Impatient, &before).await.map_err(local)?),
            None => None,
        };
        Ok(What::Delete { before })
    }

    async fn carried(&self, carried: &Carried) -> Result<Option<Bytes>, SyncError> {
        match carried {
            Carried::Inline(bytes) => Ok(Some(bytes.clone())),
            Carried::Object(hash) => self.log.object(&Impatient, hash).await.map_err(local),
        }
    }

    /// Returns the merged state of a file.
    pub(super) async fn made(&mut self, locator: &Locator, heads: &Heads) -> Result<FileOutcome, SyncError> {
        let needed = ingredients(&self.read().await?.logs, locator, heads);
        for at in needed {
            // It is among the contents then.
            self.written(at, locator).await?;
        }
        self.read().await?;
        let read = self.read.as_mut().expect("it was just read");
        Ok(merge_file_cached(&read.logs, locator, heads, &self.contents, &mut read.cache))
    }

    /// Returns the merged content of a file.
    async fn content(&mut self, locator: &Locator, heads: &Heads) -> Result<Option<Bytes>, SyncError> {
        match self.made(locator, heads).await? {
            FileOutcome::Absent { .. } => Ok(None),
            FileOutcome::FromEntry { by, .. } => self.written(by, locator).await,
            FileOutcome::Merged { bytes, .. } => Ok(Some(bytes)),
        }
    }

    /// Returns an entry's content of a file, assembled with the content that it extends.
    async fn written(&mut self, by: Numbered, locator: &Locator) -> Result<Option<Bytes>, SyncError> {
        let mut parts: Vec<Bytes> = Vec::new();
        let mut at = by;
        let mut wanted = None;
        loop {
            let Some(what) = self.change(at, locator).await? else { return Ok(None) };
            let Some(content) = what.after() else { return Ok(None) };
            let hash = *wanted.get_or_insert(content.hash);
            if let Some(known) = self.contents.get(&content.hash) {
                parts.push(known.clone());
            } else {
                match &what {
                    What::Delete { .. } => return Ok(None),
                    What::Put { content, .. } => parts.extend(self.carried(content).await?),
                    What::Append { base, added, .. } => {
                        parts.extend(self.carried(added).await?);
                        let read = self.read().await?;
                        let before = read.logs.extended(locator, &read.logs.seen(at), base);
                        let Some((before, _)) = before else { return Ok(None) };
                        at = before;
                        continue;
                    }
                }
            }
            let whole: Vec<u8> = parts.iter().rev().flat_map(|part| part.iter().copied()).collect();
            let whole = Bytes::from(whole);
            if ContentHash::of(&whole) != hash {
                let why = BadFrame::damaged("a content is not the one that is named");
                return Err(SyncError::Damaged { what: "an entry that is kept here".to_owned(), why });
            }
            self.contents.insert(hash, whole.clone());
            return Ok(Some(whole));
        }
    }

    /// Returns an entry's change of a file.
    async fn change(&mut self, at: Numbered, locator: &Locator) -> Result<Option<What>, SyncError> {
        let entry = self.read().await?.kept.entry(at).await?;
        let changes =
            entry.as_deref().and_then(|entry| entry.commit.as_ref()).map(|commit| &commit.changes[..]);
        // The changes are in the order of their names, as a publisher writes them. If not, we search all of them.
        let changes = changes.unwrap_or_default();
        let found = match changes.binary_search_by(|change| change.locator.cmp(locator)) {
            Ok(at) => changes.get(at),
            Err(_) => changes.iter().find(|change| change.locator == *locator),
        };
        Ok(found.map(|change| change.what.clone()))
    }

    /// Returns the change that gives a file an entry's content, from its present one.
    pub(super) async fn written_now(
        &mut self,
        by: Numbered,
        locator: &Locator,
        now: Option<Content>,
        inline: &mut usize,
    ) -> Result<Option<What>, SyncError> {
        let what = self.change(by, locator).await?;
        let extends = match &what {
            Some(What::Append { base, base_size, .. }) => Some(Content { hash: *base, size: *base_size }),
            Some(What::Put { .. } | What::Delete { .. }) | None => None,
        };
        match what {
            Some(What::Append { .. }) if extends != now => {
                let whole = self.written(by, locator).await?.unwrap_or_default();
                self.put(whole, inline).await.map(Some)
            }
            Some(What::Put { content: Carried::Inline(bytes), .. }) => {
                self.put(bytes, inline).await.map(Some)
            }
            what => Ok(what),
        }
    }
}
