//! What a replica remembers between syncs: who it is, how far it has read, and what it last agreed on.
//!
//! In a backend of its own, beside the working files:
//!
//! - `identity` who the replica is.
//! - `snapshot` position, mark and bases; `journal-<n>` what moved since the `n`-th snapshot, a line for each advance. An advance
//!   is one line: position and bases move together or not at all. A line that was cut short by a crash did not happen. What
//!   can be read may not be on the disk yet, if its writer was killed: nothing is built on it before it is ([`State::make_durable`]).
//! - `publishing` the bytes of the commit under way, from before the first attempt until its position is known to be taken.
//! - `applying` what is being done to working files, from before the first until their bases have moved.
//! - `passing` a sync client's copy that was put into the file it is a copy of, and is a working file until that is in the history.
//! - `objects/<hash>` the contents of the bases, one by one or many in one pack.
//! - `removals` how many deletions of other devices were carried out here lately; losing it makes the guard against many of them forget.
//! - `deletions` which files disappeared here lately, and which deletions wait for the user; losing it makes that guard forget.
//! - `upkeep` how far the log was folded when this replica last looked; losing it costs a request.
//! - `stat-cache` which fingerprint had which content; losing it costs time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Durability, Error as StoreError, ErrorKind, Locator, Operation,
    Result as StoreResult,
};
use serde::{Deserialize, Serialize};

use super::incoming::Removals;
use super::outgoing::DeletionRecord;
use super::plan::{Bases, Elsewhere};
use super::planted::{Planted, has};
use super::scan::{self, StatCache};
use super::snapshot::{self, Packed, Packs};
use super::upkeep::Upkeep;
use crate::frame::{self, Framed};
use crate::ids::{CommitId, ContentHash, Ids, Position, ReplicaId, StoreId};
use crate::log::{self, Content, MAX_PACK_BYTES, Place, StateMark, pack, unpack};

/// The largest file of the state that is read.
const MAX_STATE_BYTES: usize = 256 * 1024 * 1024;

/// A journal that is longer than this is folded into a snapshot, unless it is short beside the snapshot there is.
const MAX_JOURNAL_BYTES: u64 = 64 * 1024;

/// A journal that is longer than this part of the snapshot is folded into another: so whoever moves all bases in many steps writes them
/// down a few times, not with every step.
const JOURNAL_SHARE: u64 = 4;

/// How many contents are asked for before all that are here are listed.
const MANY_CONTENTS: usize = 64;

/// The format of everything here but the snapshot and the stat cache.
const VERSION: u32 = 1;

/// Who a replica is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) replica: ReplicaId,
    /// It was made just now, and nobody has looked yet at what an earlier one may have left in the working directory.
    #[serde(skip_serializing_if = "is_settled", default)]
    fresh: bool,
}

/// What a replica has read of the log, and what it agreed on with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The store that the log belongs to, once it was met.
    pub(crate) store: Option<StoreId>,
    /// The last position that was taken in.
    pub(crate) head: Option<Head>,
    /// The log's files at that position: they are the bases.
    pub(crate) log: log::State,
    /// Files of the log that are not in the working directory, and why.
    pub(crate) elsewhere: BTreeMap<Locator, Elsewhere>,
    /// Earlier contents that working files still go back to ([`Bases::before`]).
    pub(crate) before: BTreeMap<Locator, ContentHash>,
    /// Of those, the files that stayed because their deletion is held.
    pub(crate) held: BTreeSet<Locator>,
    /// What somebody had put into the mirror by hand that was taken in.
    pub(crate) foreign: BTreeMap<Locator, ContentHash>,
    /// The checkpoint that this replica started from: it knows where the contents of files are that were not fetched yet.
    pub(crate) joined: Option<Position>,
    /// Which attempt at working files moved the bases last.
    pub(super) attempt: Option<String>,
    /// In which packs of the state contents are.
    pub(super) packed: Packs,
}

impl Known {
    pub(crate) fn bases(&self) -> Bases<'_> {
        Bases { files: self.log.files(), elsewhere: &self.elsewhere, before: &self.before, held: &self.held }
    }
}

/// The last position that was taken in, and the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) position: Position,
    pub(crate) hash: ContentHash,
    /// What the remote calls that object, to see in a listing that it is still the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) version: Option<String>,
}

/// Bases that move, together with how far the log was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advance {
    pub(crate) store: StoreId,
    pub(crate) head: Head,
    /// The mark that all files must have afterwards.
    pub(crate) mark: StateMark,
    /// The attempt at working files that this ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) attempt: Option<String>,
    /// The checkpoint that this is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) joined: Option<Position>,
    pub(crate) bases: Vec<BaseLine>,
}

/// A base as it is written: place, content, size, and whether the file is here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseLine {
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) hash: Option<ContentHash>,
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) elsewhere: Option<Elsewhere>,
    /// An earlier content that the working file still goes back to ([`Bases::before`]).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) before: Option<ContentHash>,
    /// True if the file stayed because its deletion is held.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) held: bool,
    /// The pack that has the content, and where in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) pack: Option<(ContentHash, u64)>,
    /// What somebody had put into the mirror by hand that was taken in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) foreign: Option<ContentHash>,
}

impl BaseLine {
    pub(crate) fn new(at: &str, content: Option<Content>) -> BaseLine {
        let (hash, size) = (content.map(|content| content.hash), content.map_or(0, |content| content.size));
        BaseLine { at: at.to_owned(), hash, size, ..BaseLine::default() }
    }

    fn content(&self) -> Option<Content> {
        self.hash.map(|hash| Content { hash, size: self.size })
    }

    /// Returns the content that is in a pack, and where.
    fn packed(&self) -> Option<(ContentHash, Packed)> {
        let ((pack, offset), hash) = (self.pack?, self.hash.or(self.before)?);
        Some((hash, Packed { pack, offset, size: self.size }))
    }
}

fn is_settled(fresh: &bool) -> bool {
    !fresh
}

fn nothing(count: &usize) -> bool {
    *count == 0
}

fn is_zero(size: &u64) -> bool {
    *size == 0
}

/// The commit that is being published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publishing {
    pub(crate) position: Position,
    pub(crate) bytes: Bytes,
    /// The bases that come of it.
    pub(crate) bases: Vec<BaseLine>,
}

/// Something that is being done to working files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Applying {
    /// Tells the reserved names of one attempt from those of another.
    pub(crate) attempt: String,
    /// How many of the moves, from the first, have to be carried out in order.
    #[serde(skip_serializing_if = "nothing", default)]
    pub(crate) in_order: usize,
    pub(crate) moves: Vec<Move>,
    /// How the bases move when all of it is done.
    pub(crate) advance: Advance,
}

/// A sync client's copy that is among the working files only to be in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passing {
    pub(crate) at: String,
    pub(crate) hash: ContentHash,
}

/// What is done to one working file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) at: String,
    /// What was there; `None` for nothing.
    pub(crate) expected: Option<ContentHash>,
    /// What comes there; `None` for nothing.
    pub(crate) new: Option<ContentHash>,
    /// Of a file that goes: what it held on the other side before it was deleted, if that is not what was there. Of a file that comes where
    /// nothing was: what both sides go back to, should the user have it under another spelling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) last: Option<ContentHash>,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// With a whole line.
    Whole,
    /// With a line that a crash cut short: it did not happen.
    CutShort,
}

/// The state of one replica.
#[derive(Debug)]
pub(crate) struct State {
    backend: Arc<dyn Backend>,
    pub(crate) identity: Identity,
    pub(crate) known: Known,
    snapshot: u64,
    snapshot_bytes: u64,
    journal_bytes: u64,
    /// Whether all that was read is known to be on the disk.
    is_durable: bool,
    /// Whether the snapshot has an older format.
    is_old: bool,
    recent_pack: Mutex<Option<(ContentHash, Bytes)>>,
}

#[derive(Serialize, Deserialize)]
struct PublishingHeading {
    position: Position,
    bases: Vec<BaseLine>,
}

impl State {
    /// Loads the state, making an identity for a replica that has none.
    pub(crate) async fn load(backend: Arc<dyn Backend>, ids: &dyn Ids) -> StoreResult<State> {
        let found = match State::look(backend.clone()).await? {
            Some(found) => Some(found),
            None => {
                let identity = Identity { replica: ReplicaId::from_bytes(ids.next()), fresh: true };
                write_frame(&*backend, "identity", &identity, &[]).await?;
                State::look(backend.clone()).await?
            }
        };
        let Some((mut state, journal)) = found else {
            let message = "it is not there after it was written";
            return Err(StoreError::new(ErrorKind::Internal, Operation::Read, &place("identity"), message));
        };
        // The next line must not be written behind one that was cut short; and a snapshot of an older format takes long to read.
        if journal == Journal::CutShort || state.is_old {
            state.fold().await?;
        }
        Ok(state)
    }

    /// Reads who the replica is; `None` if there is no state.
    pub(crate) async fn replica(backend: &dyn Backend) -> StoreResult<Option<ReplicaId>> {
        Ok(read_frame::<Identity>(backend, "identity").await?.map(|(identity, _)| identity.replica))
    }

    /// Reads the state and changes nothing; `None` if there is none.
    pub(crate) async fn look(backend: Arc<dyn Backend>) -> StoreResult<Option<(State, Journal)>> {
        let Some((identity, _)) = read_frame::<Identity>(&*backend, "identity").await? else {
            return Ok(None);
        };
        let mut state = State {
            backend,
            identity,
            known: Known::default(),
            snapshot: 0,
            snapshot_bytes: 0,
            journal_bytes: 0,
            is_durable: false,
            is_old: false,
            recent_pack: Mutex::new(None),
        };
        if let Some(framed) =
            read_version::<snapshot::Heading>(&*state.backend, "snapshot", snapshot::VERSION).await?
        {
            state.snapshot = framed.heading.number;
            state.snapshot_bytes = framed.contents.len() as u64;
            state.is_old = framed.version < snapshot::VERSION;
            let known = snapshot::read(framed.heading, &framed.contents);
            state.known = known.ok_or_else(|| damaged("bases", "one of them"))?;
        }
        let journal = state.replay().await?;
        Ok(Some((state, journal)))
    }

    /// Tells whether nobody has looked yet at what an earlier replica may have left in the working directory.
    pub(crate) fn is_fresh(&self) -> bool {
        self.identity.fresh
    }

    /// Notes that somebody has.
    pub(crate) async fn settle_in(&mut self) -> StoreResult<()> {
        if self.identity.fresh {
            self.identity.fresh = false;
            write_frame(&*self.backend, "identity", &self.identity, &[]).await?;
        }
        Ok(())
    }

    fn journal(&self) -> Locator {
        place(&format!("journal-{}", self.snapshot))
    }

    /// Takes in what the journal says has moved since the snapshot.
    async fn replay(&mut self) -> StoreResult<Journal> {
        let journal = match self.backend.read(&self.journal()).await {
            Ok(journal) => journal.bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Journal::Whole),
            Err(error) => return Err(error),
        };
        let mut rest = &journal[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let Some(advance) = parse_line(&rest[..end]) else {
                if end + 1 == rest.len() {
                    break;
                }
                return Err(damaged("journal", "a line in the middle of it"));
            };
            self.known.advance(&advance)?;
            rest = &rest[end + 1..];
        }
        self.journal_bytes = journal.len() as u64;
        Ok(if rest.is_empty() { Journal::Whole } else { Journal::CutShort })
    }

    /// Moves bases and position, together, durably.
    pub(crate) async fn advance(&mut self, advance: &Advance) -> StoreResult<()> {
        if !self.fits(advance) {
            return Err(damaged("bases", "one of them"));
        }
        let json = serde_json::to_vec(advance).expect("strings and numbers print");
        let mut bytes = format!("{} ", &ContentHash::of(&json).to_string()[..16]).into_bytes();
        bytes.extend(json);
        bytes.push(b'\n');
        let added = bytes.len() as u64;
        let _ = self.backend.append(&self.journal(), bytes.into(), Durability::Now).await?;
        self.journal_bytes += added;
        self.is_durable = true;
        self.known.advance(advance)?;
        if self.journal_bytes > MAX_JOURNAL_BYTES.max(self.snapshot_bytes / JOURNAL_SHARE) {
            self.fold().await?;
        }
        Ok(())
    }

    /// Makes durable what this process has only read; until then nothing may be done that would be wrong without it.
    ///
    /// Whoever wrote the last line of the journal, or gave a record its name, may have been killed before the disk knew of it: it can
    /// be read, and is gone when the machine stops.
    pub(crate) async fn make_durable(&mut self) -> StoreResult<()> {
        if self.is_durable || has(Planted::SeenIsDurable) {
            return Ok(());
        }
        self.backend.barrier().await?;
        if self.journal_bytes > 0 {
            let _ = self.backend.append(&self.journal(), Bytes::new(), Durability::Now).await?;
        }
        self.is_durable = true;
        Ok(())
    }

    /// Tells whether bases come to what they should: if they do not, others were there when that was written down.
    pub(crate) fn fits(&self, advance: &Advance) -> bool {
        let lines = advance.bases.iter().map(|line| (line.at.as_str(), line.hash));
        self.known.log.mark_with(lines) == advance.mark
    }

    /// Writes a snapshot; what the journal said is in it.
    async fn fold(&mut self) -> StoreResult<()> {
        let old = self.journal();
        let (heading, parts) = snapshot::write(&self.known, self.snapshot + 1);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let bytes = encode("snapshot", snapshot::VERSION, &heading, &parts)?;
        // If a snapshot got lost, a journal of that number may be left of it.
        let new = place(&format!("journal-{}", heading.number));
        self.backend.delete(&new, Condition::Any).await?;
        let _ = self.backend.write(&place("snapshot"), bytes.clone(), Condition::Any).await?;
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        snapshot::settle(&mut self.known, &heading, &bytes.slice(bytes.len() - length..));
        (self.snapshot_bytes, self.is_old) = (length as u64, false);
        self.snapshot += 1;
        self.journal_bytes = 0;
        self.is_durable = true;
        self.backend.delete(&old, Condition::Any).await
    }

    /// Forgets the store, the position and all bases, in one step; what is kept of contents stays until it is collected.
    pub(crate) async fn forget_log(&mut self) -> StoreResult<()> {
        self.known = Known { foreign: std::mem::take(&mut self.known.foreign), ..Known::default() };
        self.fold().await
    }

    /// Keeps a content for as long as a base names it.
    pub(crate) async fn keep(&self, bytes: &Bytes) -> StoreResult<ContentHash> {
        let hash = ContentHash::of(bytes);
        match self.backend.write(&object(&hash), bytes.clone(), Condition::Absent).await {
            Ok(_) => return Ok(hash),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
        // A process that was killed may have put it there, and the disk may not know of it yet.
        let _ = self.backend.write(&object(&hash), bytes.clone(), Condition::Any).await?;
        Ok(hash)
    }

    /// Keeps contents for as long as a base names them, many in one object; returns where each is, for its base to say.
    pub(crate) async fn keep_all(
        &self,
        contents: &[(ContentHash, Bytes)],
    ) -> StoreResult<BTreeMap<ContentHash, (ContentHash, u64)>> {
        let mut packed = BTreeMap::new();
        let mut rest = contents;
        while !rest.is_empty() {
            // Build one pack at a time: all packs together would be a second copy of all contents.
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
                    Place::Pack { object, offset } => {
                        packed.insert(*hash, (object, offset));
                    }
                    Place::Object(_) | Place::Inline(_) => drop(self.keep(content).await?),
                }
            }
        }
        Ok(packed)
    }

    /// Returns a content that was kept; `None` if it is not there or not what it was.
    pub(crate) async fn kept(&self, hash: &ContentHash) -> StoreResult<Option<Bytes>> {
        if let Some(packed) = self.known.packed.get(hash)
            && let Some(pack) = self.pack(&packed.pack).await?
            && let Some(bytes) = unpack(&pack, packed.offset, &Content { hash: *hash, size: packed.size })
        {
            return Ok(Some(bytes));
        }
        Ok(self.object(hash).await?.filter(|bytes| ContentHash::of(bytes) == *hash))
    }

    /// Returns those of many contents that were kept.
    pub(crate) async fn kept_of(
        &self,
        hashes: impl IntoIterator<Item = ContentHash>,
    ) -> StoreResult<BTreeMap<ContentHash, Bytes>> {
        let hashes: BTreeSet<ContentHash> = hashes.into_iter().collect();
        // Who asks for many has few of them: one listing is cheaper than to look for each in vain.
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

    /// Returns a pack; the last one is at hand, because who asks for one content of it asks for the next.
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

    /// Notes in which packs contents are that the bases will name: whoever moves the files may need them before.
    pub(crate) fn expect(&mut self, advance: &Advance) {
        let packed = advance.bases.iter().filter_map(BaseLine::packed);
        self.known.packed.extend(packed);
    }

    /// Tells whether an attempt at working files has moved its bases.
    pub(crate) fn has_ended(&self, attempt: &str) -> bool {
        self.known.attempt.as_deref() == Some(attempt)
    }

    /// Returns which fingerprint had which content at the last look.
    ///
    /// One that cannot be read is as good as none: everything is looked at.
    pub(crate) async fn cache(&self) -> StoreResult<StatCache> {
        match read_version::<scan::Heading>(&*self.backend, "stat-cache", scan::VERSION).await {
            Ok(Some(framed)) => Ok(StatCache::read(&framed).unwrap_or_default()),
            Ok(None) => Ok(StatCache::default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(StatCache::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_cache(&self, cache: &mut StatCache) -> StoreResult<()> {
        let (heading, parts) = cache.write();
        let parts = [&parts[0][..], &parts[1][..]];
        let bytes = encode("stat-cache", scan::VERSION, &heading, &parts)?;
        let _ = self.backend.write(&place("stat-cache"), bytes.clone(), Condition::Any).await?;
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        cache.was_written(&heading, bytes.slice(bytes.len() - length..));
        Ok(())
    }

    /// Removes contents that no base names; only while nothing is being published or applied.
    ///
    /// A pack of which less than half is still named is replaced by one of what is.
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

    /// Returns the contents that must be kept.
    fn named(&self) -> impl Iterator<Item = ContentHash> {
        let bases = self.known.log.files().values().map(|content| content.hash);
        bases.chain(self.known.before.values().copied())
    }

    /// Puts what is still named of packs that are mostly not into new ones.
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

    /// Returns how far the log was folded when this replica last looked; what cannot be read is looked for again.
    pub(crate) async fn upkeep(&self) -> StoreResult<Upkeep> {
        match read_frame::<Upkeep>(&*self.backend, "upkeep").await {
            Ok(found) => Ok(found.map(|(upkeep, _)| upkeep).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(Upkeep::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_upkeep(&self, upkeep: &Upkeep) -> StoreResult<()> {
        write_frame(&*self.backend, "upkeep", upkeep, &[]).await
    }

    /// Returns the deletions of other devices that were carried out here lately; a count that cannot be read is none.
    pub(crate) async fn removals(&self) -> StoreResult<Option<Removals>> {
        match read_frame::<Removals>(&*self.backend, "removals").await {
            Ok(found) => Ok(found.map(|(removals, _)| removals)),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_removals(&self, removals: &Removals) -> StoreResult<()> {
        write_frame(&*self.backend, "removals", removals, &[]).await
    }

    /// Returns the deletions that were found here lately; a record that cannot be read is none.
    pub(crate) async fn deletions(&self) -> StoreResult<DeletionRecord> {
        match read_frame::<DeletionRecord>(&*self.backend, "deletions").await {
            Ok(found) => Ok(found.map(|(deletions, _)| deletions).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(DeletionRecord::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_deletions(&self, deletions: &DeletionRecord) -> StoreResult<()> {
        write_frame(&*self.backend, "deletions", deletions, &[]).await
    }

    /// Begins to count deletions anew, those of other devices and those of this one: the user has answered.
    pub(crate) async fn forget_deletions(&self) -> StoreResult<()> {
        self.backend.delete(&place("removals"), Condition::Any).await?;
        self.backend.delete(&place("deletions"), Condition::Any).await
    }

    /// Fixes the bytes of a commit before the first attempt to publish it.
    pub(crate) async fn begin_publishing(&mut self, publishing: &Publishing) -> StoreResult<()> {
        self.make_durable().await?;
        let heading = PublishingHeading { position: publishing.position, bases: publishing.bases.clone() };
        write_frame(&*self.backend, "publishing", &heading, &[&publishing.bytes]).await
    }

    /// Returns the commit whose publishing was not finished.
    pub(crate) async fn publishing(&self) -> StoreResult<Option<Publishing>> {
        let found = read_frame::<PublishingHeading>(&*self.backend, "publishing").await?;
        let publishing = |(heading, bytes): (PublishingHeading, Bytes)| Publishing {
            position: heading.position,
            bytes,
            bases: heading.bases,
        };
        Ok(found.map(publishing))
    }

    pub(crate) async fn end_publishing(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("publishing"), Condition::Any).await
    }

    pub(crate) async fn begin_applying(&mut self, applying: &Applying) -> StoreResult<()> {
        self.make_durable().await?;
        write_frame(&*self.backend, "applying", applying, &[]).await
    }

    /// Returns what was being done to working files when a process died.
    pub(crate) async fn applying(&self) -> StoreResult<Option<Applying>> {
        let found = read_frame::<Applying>(&*self.backend, "applying").await?.map(|(applying, _)| applying);
        match found {
            // Names are made of it.
            Some(applying) if applying.attempt.parse::<CommitId>().is_err() => Err(damaged("applying", "it")),
            found => Ok(found),
        }
    }

    /// Notes that a copy is to go from the working files, before it comes there.
    pub(crate) async fn begin_passing(&mut self, passing: &Passing) -> StoreResult<()> {
        write_frame(&*self.backend, "passing", passing, &[]).await
    }

    /// Returns the copy that is still to go.
    pub(crate) async fn passing(&self) -> StoreResult<Option<Passing>> {
        Ok(read_frame::<Passing>(&*self.backend, "passing").await?.map(|(passing, _)| passing))
    }

    pub(crate) async fn end_passing(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("passing"), Condition::Any).await
    }

    pub(crate) async fn end_applying(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("applying"), Condition::Any).await
    }
}

impl Known {
    /// Returns the content that a working file goes back to.
    pub(crate) fn ground(&self, at: &str) -> Option<ContentHash> {
        let base = self.log.files().get(at).map(|content| content.hash);
        base.filter(|_| !self.elsewhere.contains_key(at)).or_else(|| self.before.get(at).copied())
    }

    fn advance(&mut self, advance: &Advance) -> StoreResult<()> {
        self.store = Some(advance.store);
        self.head = Some(advance.head.clone());
        self.joined = advance.joined.or(self.joined);
        if advance.attempt.is_some() {
            self.attempt.clone_from(&advance.attempt);
        }
        self.take(&advance.bases, advance.mark)
    }

    /// Moves bases; the mark tells whether they are what was written down.
    pub(super) fn take(&mut self, bases: &[BaseLine], mark: StateMark) -> StoreResult<()> {
        for line in bases {
            self.log.set(&line.at, line.content());
            // An odd name must not be taken for the file that it resembles.
            let Some(locator) = Locator::parse(&line.at).ok().filter(|locator| locator.as_str() == line.at)
            else {
                continue;
            };
            if let Some(foreign) = line.foreign {
                self.foreign.insert(locator.clone(), foreign);
            }
            match line.before {
                Some(before) => drop(self.before.insert(locator.clone(), before)),
                None if self.before.is_empty() => {}
                None => drop(self.before.remove(&locator)),
            }
            match line.held {
                true => drop(self.held.insert(locator.clone())),
                false if self.held.is_empty() => {}
                false => drop(self.held.remove(&locator)),
            }
            match line.elsewhere {
                Some(why) => drop(self.elsewhere.insert(locator, why)),
                None if self.elsewhere.is_empty() => {}
                None => drop(self.elsewhere.remove(&locator)),
            }
            self.packed.extend(line.packed());
        }
        if self.log.mark() == mark { Ok(()) } else { Err(damaged("bases", "one of them")) }
    }

    /// Returns what there is to say about bases besides what they hold, where that is and why they are not here.
    pub(super) fn unusual_lines(&self) -> Vec<BaseLine> {
        let files = self.foreign.iter().filter_map(|(locator, foreign)| {
            let content = self.log.files().get(locator)?;
            Some(BaseLine {
                elsewhere: self.elsewhere.get(locator).copied(),
                foreign: Some(*foreign),
                pack: self.packed.get(&content.hash).map(|packed| (packed.pack, packed.offset)),
                ..BaseLine::new(locator.as_str(), Some(content))
            })
        });
        let odd = self.log.odd().iter().map(|(key, content)| BaseLine::new(key, Some(*content)));
        let before = self.before.iter().map(|(locator, before)| {
            let content = self.log.files().get(locator);
            // The pack of a line is that of its newer content.
            let packed = self.packed.get(&content.map_or(*before, |content| content.hash));
            let mut line = BaseLine {
                before: Some(*before),
                held: self.held.contains(locator),
                foreign: self.foreign.get(locator).copied(),
                elsewhere: self.elsewhere.get(locator).copied(),
                pack: packed.map(|packed| (packed.pack, packed.offset)),
                ..BaseLine::new(locator.as_str(), content)
            };
            if content.is_none() {
                line.size = packed.map_or(0, |packed| packed.size);
            }
            line
        });
        let is_alone =
            |locator: &Locator| !self.log.files().contains_key(locator) && !self.before.contains_key(locator);
        let foreign = self.foreign.iter().filter(|(locator, _)| is_alone(locator));
        let foreign = foreign.map(|(locator, foreign)| BaseLine {
            foreign: Some(*foreign),
            ..BaseLine::new(locator.as_str(), None)
        });
        files.chain(odd).chain(before).chain(foreign).collect()
    }
}

/// Forgets everything that a replica agreed on with a log; the next sync starts anew, with a merge without base.
pub async fn forget(state: &dyn Backend) -> StoreResult<()> {
    let all = state.list_all(&Locator::root()).await?;
    let is = |name: &'static str| move |locator: &&Locator| locator.as_str().starts_with(name);
    // Whatever is left if this is cut short is an earlier state, and whole.
    for name in [
        "publishing",
        "applying",
        "passing",
        "journal-",
        "snapshot",
        "stat-cache",
        "upkeep",
        "removals",
        "deletions",
        "objects/",
        "identity",
    ] {
        for locator in all.iter().filter(is(name)) {
            state.delete(locator, Condition::Any).await?;
        }
    }
    Ok(())
}

fn place(name: &str) -> Locator {
    Locator::parse(name).expect("a plain name")
}

fn object(hash: &ContentHash) -> Locator {
    place(&format!("objects/{hash}"))
}

/// Parses a line of the journal; `None` if it was cut short.
fn parse_line(line: &[u8]) -> Option<Advance> {
    let (hash, json) = line.split_at_checked(17)?;
    let expected = format!("{} ", &ContentHash::of(json).to_string()[..16]);
    (hash == expected.as_bytes()).then(|| serde_json::from_slice(json).ok())?
}

fn damaged(what: &str, how: &str) -> StoreError {
    let message = format!("{how} is damaged: move the state away, and the next sync starts anew");
    StoreError::at(ErrorKind::Internal, Operation::Read, format!("the state's {what}"), message)
}

async fn read_frame<T: serde::de::DeserializeOwned>(
    backend: &dyn Backend,
    name: &str,
) -> StoreResult<Option<(T, Bytes)>> {
    let framed = read_version::<T>(backend, name, VERSION).await?;
    Ok(framed.map(|framed| (framed.heading, framed.contents)))
}

async fn read_version<T: serde::de::DeserializeOwned>(
    backend: &dyn Backend,
    name: &str,
    newest_version: u32,
) -> StoreResult<Option<Framed<T>>> {
    let object = match backend.read(&place(name)).await {
        Ok(object) => object,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match frame::decode::<T>(name, newest_version, &object.bytes, MAX_STATE_BYTES) {
        Ok(framed) => Ok(Some(framed)),
        Err(error) if error.is_newer() => {
            let (place, message) =
                (format!("the state's {name}"), "update Haversack, or move the state away");
            Err(StoreError::at(ErrorKind::Internal, Operation::Read, place, message).with_source(error))
        }
        Err(error) => Err(damaged(name, "it").with_source(error)),
    }
}

async fn write_frame(
    backend: &dyn Backend,
    name: &str,
    heading: &impl Serialize,
    contents: &[&[u8]],
) -> StoreResult<()> {
    let bytes = encode(name, VERSION, heading, contents)?;
    backend.write(&place(name), bytes, Condition::Any).await.map(drop)
}

fn encode(name: &str, version: u32, heading: &impl Serialize, contents: &[&[u8]]) -> StoreResult<Bytes> {
    frame::encode(name, version, heading, contents, MAX_STATE_BYTES)
        .map_err(|error| damaged(name, "what would be written").with_source(error))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may wait")]
mod tests {
    use haversack_store::{InMemory, block_on};

    use super::*;

    struct Same;

    impl Ids for Same {
        fn next(&self) -> [u8; 16] {
            [7; 16]
        }
    }

    /// Seed 500100762, before files were of many kinds: a file was deleted while a text was merged into it that had been displaced, and
    /// what had been put there was not found, because it was in a pack and its base had not moved yet.
    #[test]
    fn what_is_packed_is_found_before_its_base_moves() {
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
        assert!(contents.iter().any(|(hash, _)| found(&state, hash).is_none()), "nothing is in a pack");
        state.expect(&advance);
        for (hash, bytes) in &contents {
            assert_eq!(found(&state, hash).as_ref(), Some(bytes));
        }
    }
}
