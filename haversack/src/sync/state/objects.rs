//! The contents that the state keeps: each in an object of its own, or many in one pack.
//!
//! 1. A sync keeps the contents of its new bases ([`State::keep`], [`State::keep_all`]) before the bases move.
//! 2. [`State::kept`] reads a content again and checks its hash.
//! 3. [`State::collect`] deletes contents that no base names, and repacks packs that are mostly unused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use haversack_store::{BackendExt, Bytes, Condition, Durability, ErrorKind, Locator, Result as StoreResult};

use super::files::place;
use super::{Advance, BaseLine, State};
use crate::growth;
use crate::ids::ContentHash;
use crate::log::{Content, ContentLocation, MAX_PACK_BYTES, pack, unpack};
use crate::sync::snapshot::Packed;

/// Above this number of contents, we list all objects instead of reading each content in vain.
const MANY_CONTENTS: usize = 64;

impl State {
    /// Keeps a content for as long as a base names it.
    pub(crate) async fn keep(&self, bytes: &Bytes) -> StoreResult<ContentHash> {
        let hash = ContentHash::of(bytes);
        match self.backend.write(&object(&hash), bytes.clone(), Condition::Absent).await {
            Ok(_) => return Ok(hash),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
        // A killed process may have written the object without making it durable.
        let _ = self.backend.write(&object(&hash), bytes.clone(), Condition::Any).await?;
        Ok(hash)
    }

    /// Keeps contents for as long as a base names them, many in one pack. Returns the place of each packed content, for its base.
    pub(crate) async fn keep_all(
        &self,
        contents: &[(ContentHash, Bytes)],
    ) -> StoreResult<BTreeMap<ContentHash, (ContentHash, u64)>> {
        let mut packed = BTreeMap::new();
        let mut rest = contents;
        while !rest.is_empty() {
            // Build one pack at a time: all packs together would be a second copy of all contents in memory.
            let mut bytes = 0;
            let fits = |(_, content): &&(ContentHash, Bytes)| {
                bytes += content.len();
                bytes <= MAX_PACK_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (some, later) = rest.split_at(count);
            rest = later;
            let (packs, places) = pack(&some.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>());
            for pack in &packs {
                self.keep(&pack.bytes).await?;
            }
            for ((hash, content), place) in some.iter().zip(places) {
                match place {
                    ContentLocation::Pack { object, offset } => {
                        packed.insert(*hash, (object, offset));
                    }
                    ContentLocation::Object(_) | ContentLocation::Inline(_) => {
                        self.keep(content).await?;
                    }
                }
            }
        }
        Ok(packed)
    }

    /// Keeps a content in an object that can grow with it. Returns the object's name; `None` if it exists already: it may have grown since.
    pub(crate) async fn keep_growing(&self, bytes: &Bytes) -> StoreResult<Option<ContentHash>> {
        let name = growth::growing_object(&ContentHash::of(bytes));
        match self.backend.write(&object(&name), bytes.clone(), Condition::Absent).await {
            Ok(_) => Ok(Some(name)),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends to an object that ends with a base of this size. Returns false if it does not.
    pub(crate) async fn grow(&self, name: &ContentHash, base_size: u64, added: &Bytes) -> StoreResult<bool> {
        match self.backend.info(&object(name)).await {
            Ok(info) if info.size_bytes == base_size => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        let appended = self.backend.append(&object(name), added.clone(), Durability::Now).await?;
        Ok(appended.offset == base_size)
    }

    /// Returns a kept content; `None` if it is absent or damaged.
    pub(crate) async fn kept(&self, hash: &ContentHash) -> StoreResult<Option<Bytes>> {
        if let Some(packed) = self.known.packed.get(hash)
            && let Some(pack) = self.pack(&packed.pack).await?
            && let Some(bytes) = unpack(&pack, packed.offset, &Content { hash: *hash, size: packed.size })
        {
            return Ok(Some(bytes));
        }
        Ok(self.object(hash).await?.filter(|bytes| ContentHash::of(bytes) == *hash))
    }

    /// Returns the kept ones among many contents.
    pub(crate) async fn kept_of(
        &self,
        hashes: impl IntoIterator<Item = ContentHash>,
    ) -> StoreResult<BTreeMap<ContentHash, Bytes>> {
        let hashes: BTreeSet<ContentHash> = hashes.into_iter().collect();
        // Of many contents, few are here: one listing is cheaper than a failed read for each.
        let objects = match hashes.len() > MANY_CONTENTS {
            true => Some(self.backend.list(&place("objects")).await?.entries),
            false => None,
        };
        let names = objects.map(|entries| -> BTreeSet<ContentHash> {
            entries.iter().filter_map(|entry| entry.locator.name().parse().ok()).collect()
        });
        let may_be_here = |hash: &ContentHash| {
            names.as_ref().is_none_or(|names| names.contains(hash) || self.known.packed.get(hash).is_some())
        };
        let mut kept = BTreeMap::new();
        for hash in hashes.into_iter().filter(may_be_here) {
            kept.extend(self.kept(&hash).await?.map(|bytes| (hash, bytes)));
        }
        Ok(kept)
    }

    /// Returns a pack. The last pack stays in memory, because the next content is mostly in the same pack.
    async fn pack(&self, hash: &ContentHash) -> StoreResult<Option<Bytes>> {
        let recent = self.recent_pack.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, bytes)) = recent.filter(|(recent, _)| recent == hash) {
            return Ok(Some(bytes));
        }
        let pack = self.object(hash).await?;
        *self.recent_pack.lock().unwrap_or_else(PoisonError::into_inner) =
            pack.clone().map(|pack| (*hash, pack));
        Ok(pack)
    }

    async fn object(&self, hash: &ContentHash) -> StoreResult<Option<Bytes>> {
        match self.backend.read(&object(hash)).await {
            Ok(object) => Ok(Some(object.bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes the packs of new contents before their bases move, because the files that move first may need them.
    pub(crate) fn expect(&mut self, advance: &Advance) {
        let packed = advance.bases.iter().filter_map(BaseLine::packed);
        self.known.packed.extend(packed);
    }

    /// Deletes contents that no base names, unless a commit or an apply is under way. Returns the number of deleted objects.
    ///
    /// A new pack replaces a pack of which bases name less than half.
    pub(crate) async fn collect(&mut self) -> StoreResult<usize> {
        if self.publishing().await?.is_some() || self.applying().await?.is_some() {
            return Ok(0);
        }
        self.make_durable().await?;
        self.repack().await?;
        let named: BTreeSet<ContentHash> = self.named().collect();
        let packs = named.iter().filter_map(|hash| self.known.packed.get(hash)).map(|packed| packed.pack);
        let packs: BTreeSet<ContentHash> = packs.collect();
        let mut removed = 0;
        for locator in self.backend.list_all(&place("objects")).await? {
            let Ok(hash) = locator.name().parse::<ContentHash>() else { continue };
            if !packs.contains(&hash) && !named.contains(&hash) {
                self.backend.delete(&locator, Condition::Any).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the contents that bases name.
    fn named(&self) -> impl Iterator<Item = ContentHash> {
        let bases = self.known.log.files().values().map(|content| content.hash);
        bases.chain(self.known.before.values().copied())
    }

    /// Moves the named contents of packs that are mostly unused into new packs.
    async fn repack(&mut self) -> StoreResult<()> {
        let mut used: BTreeMap<ContentHash, u64> = BTreeMap::new();
        let named: BTreeSet<ContentHash> = self.named().collect();
        for packed in named.iter().filter_map(|hash| self.known.packed.get(hash)) {
            let used: &mut u64 = used.entry(packed.pack).or_default();
            *used = used.saturating_add(packed.size);
        }
        let mut sparse = BTreeSet::new();
        for (pack, used) in used {
            let size = self.pack(&pack).await?.map_or(0, |pack| pack.len() as u64);
            if used.saturating_mul(2) < size {
                sparse.insert(pack);
            }
        }
        let is_sparse = |hash: &&ContentHash| {
            self.known.packed.get(hash).is_some_and(|packed| sparse.contains(&packed.pack))
        };
        let mut contents = Vec::new();
        for hash in named.iter().filter(is_sparse) {
            contents.extend(self.kept(hash).await?.map(|bytes| (*hash, bytes)));
        }
        let places = self.keep_all(&contents).await?;
        if places.is_empty() {
            return Ok(());
        }
        for (hash, content) in &contents {
            if let Some((pack, offset)) = places.get(hash) {
                let packed = Packed { pack: *pack, offset: *offset, size: content.len() as u64 };
                self.known.packed.extend([(*hash, packed)]);
            }
        }
        self.fold().await
    }
}

fn object(hash: &ContentHash) -> Locator {
    place(&format!("objects/{hash}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may wait")]
mod tests {
    use std::sync::Arc;

    use haversack_store::{InMemory, block_on};

    use super::super::Head;
    use super::*;
    use crate::ids::{Ids, Position, StoreId};
    use crate::log::StateMark;

    struct Same;

    impl Ids for Same {
        fn next(&self) -> [u8; 16] {
            [7; 16]
        }
    }

    /// Seed 500100762, before files had kinds: a sync deleted a file while it merged a displaced text into it. The sync did not find the
    /// file's new content, because that was in a pack and its base had not moved yet.
    #[test]
    fn packed_content_is_found_before_its_base_moves() {
        let mut state = block_on(State::load(Arc::new(InMemory::new()), &Same)).expect("a new state");
        let contents = ["", "one\n", "two\n"].map(Bytes::from).map(|bytes| (ContentHash::of(&bytes), bytes));
        let places = block_on(state.keep_all(&contents)).expect("kept");
        let lines = contents.iter().map(|(hash, bytes)| {
            let content = Content { hash: *hash, size: bytes.len() as u64 };
            BaseLine { pack: places.get(hash).copied(), ..BaseLine::new("notes.md", Some(content)) }
        });
        let hash = ContentHash::of(b"");
        let advance = Advance {
            store: StoreId::from_bytes([1; 16]),
            head: Head { position: Position::FIRST, hash, version: None },
            mark: StateMark::empty(),
            attempt: None,
            joined: None,
            bases: lines.collect(),
        };
        let found = |state: &State, hash: &ContentHash| block_on(state.kept(hash)).expect("read");
        assert!(contents.iter().any(|(hash, _)| found(&state, hash).is_none()), "no content is in a pack");
        state.expect(&advance);
        for (hash, bytes) in &contents {
            assert_eq!(found(&state, hash).as_ref(), Some(bytes));
        }
    }
}
