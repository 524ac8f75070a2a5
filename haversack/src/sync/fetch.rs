//! Reads the log after the last applied position: one by one at first, then many at a time, and long ranges from segments.

use haversack_store::Bytes;

use super::plan::Reach;
use super::planted::{Planted, has};
use super::progress::Stage;
use super::remote::At;
use super::state::Head;
use super::{Asking, Context, Replica, SyncError, other_store};
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{Carried, Commit, Misplaced, Notice, What};
use crate::many::{MAX_AT_ONCE, Work, many};

/// The most commits that are applied at a time.
const MAX_TAKEN_COMMITS: usize = 256;

/// The most bytes that are applied at a time, unless one commit alone has more: commits and the contents they name. They are in
/// memory together.
const MAX_TAKEN_BYTES: usize = 16 * 1024 * 1024;

/// After so many commits it pays to ask for segments.
const WORTH_A_SEGMENT: usize = 16;

/// A commit as it was read.
pub(super) struct Taken {
    pub(super) commit: Commit,
    pub(super) head: Head,
    pub(super) bytes: Bytes,
}

/// The commits that a replica applies next.
pub(super) enum NextCommits {
    /// These, and the reach of the log after them.
    Read(Vec<Taken>, Reach),
    /// The next commit is there without its contents.
    Abridged,
}

/// Commits that follow one another.
struct Chain {
    store: StoreId,
    next: Option<Position>,
    previous: ContentHash,
    bytes: usize,
    /// The bytes of the largest commit, with the contents that it names.
    largest: usize,
    taken: Vec<Taken>,
    /// The new place of the store, if the log ends with a commit that names it.
    moved: Option<SyncError>,
    /// True if the next commit has its contents no more.
    is_abridged: bool,
}

impl Chain {
    /// Returns true if another commit of the largest size so far would be too much.
    fn is_full(&self) -> bool {
        self.taken.len() >= MAX_TAKEN_COMMITS || self.bytes.saturating_add(self.largest) > MAX_TAKEN_BYTES
    }

    /// Returns how many commits to read together next: as many as we have read so far, if so many of the largest size still fit.
    fn at_once(&self) -> usize {
        let fitting = MAX_TAKEN_BYTES.saturating_sub(self.bytes) / self.largest.max(1);
        self.taken.len().min(fitting).clamp(1, MAX_AT_ONCE)
    }

    /// Takes the next commit, if it is the next.
    fn add(&mut self, at: At) -> Result<(), SyncError> {
        let Some(position) = self.next else { return Ok(()) };
        let commit = at.commit().map_err(|why| SyncError::Damaged {
            what: format!("the commit at position {} ({})", position.number(), layout::commit(position)),
            why,
        })?;
        commit.belongs(self.store, position, self.previous).map_err(|why| match why {
            // The other log does not contain the commit that we built on.
            Misplaced::Past { .. } => SyncError::WentBack { position },
            Misplaced::Store { found } => SyncError::OtherStore { expected: self.store, found },
            Misplaced::Position { .. } => SyncError::Unfit { position, why: why.to_string() },
        })?;
        if let Some(Notice::Moved { url }) = commit.notice {
            // We do not apply this commit: the log continues at the new place with the same position.
            self.moved = Some(SyncError::Moved { url, device: commit.device, time: commit.time });
            self.next = None;
            return Ok(());
        }
        if at.is_abridged() {
            self.is_abridged = true;
            self.next = None;
            return Ok(());
        }
        let hash = at.hash();
        let bytes = at.bytes.len().saturating_add(named_bytes(&commit));
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
        let version = at.version.map(|version| version.to_string());
        self.taken.push(Taken { commit, head: Head { position, hash, version }, bytes: at.bytes });
        (self.next, self.previous) = (position.next(), hash);
        Ok(())
    }
}

/// Returns the total size of the contents that a commit names and does not carry.
fn named_bytes(commit: &Commit) -> usize {
    let named = commit.changes.iter().filter_map(|change| match &change.what {
        What::Put { content: Carried::Object(_), size, .. } => Some(*size),
        What::Append { added: Carried::Object(_), size, .. } => Some(*size),
        What::Put { .. } | What::Append { .. } | What::Delete { .. } => None,
    });
    // A hostile writer can make sizes up. A size that is too large only ends this part of the log.
    usize::try_from(named.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

impl Replica {
    /// Returns the position after the last applied one, and the hash that a commit there must name.
    pub(super) fn next(&self) -> (Position, ContentHash) {
        match &self.state.known.head {
            None => (Position::FIRST, ContentHash::of(b"")),
            Some(head) => (head.position.next().unwrap_or(Position::LAST), head.hash),
        }
    }

    /// Reads a bounded number of commits after the last applied one; returns true if there are more.
    pub(super) async fn read_log(
        &self,
        context: Context<'_>,
        store: StoreId,
    ) -> Result<NextCommits, SyncError> {
        let (first, previous) = self.next();
        let last = match context.asking {
            Asking::FromLast if self.state.known.head.is_some() => match self.last_listed(context).await? {
                Some(last) => Some(last),
                None => return Ok(NextCommits::Read(Vec::new(), Reach::End)),
            },
            Asking::FromLast | Asking::ForNext => None,
        };
        match self.read_until(context, store, first, previous, last).await {
            Err(SyncError::OtherStore { expected, found }) => {
                let file = self.remote.store_file(context.patience).await?;
                let file = file.filter(|file| file.store == found);
                Err(file
                    .map_or(SyncError::OtherStore { expected, found }, |file| other_store(expected, &file)))
            }
            read => read,
        }
    }

    /// Reads the commits from a position on, up to `last` if that is known to be the end.
    async fn read_until(
        &self,
        context: Context<'_>,
        store: StoreId,
        first: Position,
        previous: ContentHash,
        last: Option<Position>,
    ) -> Result<NextCommits, SyncError> {
        let mut chain = Chain {
            store,
            next: Some(first),
            previous,
            bytes: 0,
            largest: 0,
            taken: Vec::new(),
            moved: None,
            is_abridged: false,
        };
        let mut segments = None;
        // Most of the time there is nothing, or one.
        let mut at_once = 1;
        while let Some(next) = chain.next.filter(|_| !chain.is_full()) {
            if last.is_some_and(|last| next > last) {
                return Ok(NextCommits::Read(chain.taken, Reach::End));
            }
            context.progress.at(Stage::Reading, chain.taken.len(), None);
            if chain.taken.len() >= WORTH_A_SEGMENT {
                let segments = match &mut segments {
                    Some(segments) => segments,
                    None => segments.insert(self.segments(context).await?),
                };
                if self.read_segment(context, segments, next, &mut chain).await? {
                    continue;
                }
            }
            let positions = (0..at_once as u64).filter_map(|ahead| Position::new(next.number() + ahead));
            let positions = positions.filter(|position| last.is_none_or(|last| *position <= last));
            for at in self.read_positions(context, positions.collect()).await? {
                match at {
                    Some(at) => chain.add(at)?,
                    // The commits behind it may have been created since: read them again.
                    None => return Ok(NextCommits::Read(chain.taken, Reach::End)),
                }
            }
            at_once = chain.at_once();
        }
        match chain.moved {
            Some(moved) if chain.taken.is_empty() => Err(moved),
            // Apply the commits from before the move first.
            Some(_) => Ok(NextCommits::Read(chain.taken, Reach::End)),
            None if chain.is_abridged && has(Planted::AbridgedIsTheEnd) => {
                Ok(NextCommits::Read(chain.taken, Reach::End))
            }
            None if chain.is_abridged && chain.taken.is_empty() => Ok(NextCommits::Abridged),
            None => Ok(NextCommits::Read(chain.taken, Reach::Middle)),
        }
    }

    /// Returns the last position of the log if it is after the last applied one, which must still be there.
    async fn last_listed(&self, context: Context<'_>) -> Result<Option<Position>, SyncError> {
        let Some(head) = &self.state.known.head else { return Ok(None) };
        let after = Position::new(head.position.number() - 1).map(layout::commit);
        let items = self.remote.items(context.patience, &layout::commits(), after.as_ref()).await?;
        let commits = items.iter().filter_map(|(item, info)| match item {
            Item::Commit(position) => Some((*position, info)),
            _ => None,
        });
        let commits: Vec<_> = commits.collect();
        let mut later =
            commits.iter().map(|(position, _)| *position).filter(|position| *position > head.position);
        if let Some(found) = later.next() {
            let next = self.next().0;
            // Positions are created in order: if a later one is there, the next one was, before it was listed.
            if found != next && self.remote.at(context.patience, next).await?.is_none() {
                return Err(SyncError::Gap { missing: next, found });
            }
            // The next commit itself shows if it was built on ours.
            return Ok(Some(later.next_back().unwrap_or(found)));
        }
        let listed = commits.iter().find(|(position, _)| *position == head.position);
        let version = listed.and_then(|(_, info)| info.version.as_ref()).map(|version| version.as_str());
        // A directory tells no versions, and one that was read from a segment has none: then it is read.
        let is_same = version.is_some() && version == head.version.as_deref();
        if !is_same {
            self.check_head(context).await?;
        }
        Ok(None)
    }

    /// Returns the reason why our last position in the remote has changed; `other` is the store whose commit is there.
    pub(super) async fn what_happened(
        &self,
        context: Context<'_>,
        position: Position,
        other: Option<StoreId>,
    ) -> Result<SyncError, SyncError> {
        let Some(expected) = self.state.known.store else { return Ok(SyncError::WentBack { position }) };
        let file = self.remote.store_file(context.patience).await?;
        let is_empty = file.is_none()
            && other.is_none()
            && self.remote.items(context.patience, &layout::commits(), None).await?.is_empty();
        Ok(match (file, other) {
            (Some(file), _) if file.store != expected => other_store(expected, &file),
            (_, Some(found)) if found != expected => SyncError::OtherStore { expected, found },
            _ if is_empty => SyncError::Wiped { expected },
            _ => SyncError::WentBack { position },
        })
    }

    /// Returns the objects at positions.
    pub(super) async fn read_positions(
        &self,
        context: Context<'_>,
        positions: Vec<Position>,
    ) -> Result<Vec<Option<At>>, SyncError> {
        let mut reads: Vec<Work<'_, Option<At>, SyncError>> = Vec::with_capacity(positions.len());
        for position in positions {
            reads.push(Box::pin(self.remote.at(context.patience, position)));
        }
        many(MAX_AT_ONCE, reads).await
    }

    /// Returns which ranges of the log are in segments.
    pub(super) async fn segments(
        &self,
        context: Context<'_>,
    ) -> Result<Vec<(Position, Position)>, SyncError> {
        let items = self.remote.items(context.patience, &layout::segments(), None).await?;
        let ranges = items.into_iter().filter_map(|(item, _)| match item {
            Item::Segment { first, last } => Some((first, last)),
            _ => None,
        });
        Ok(ranges.collect())
    }

    /// Takes commits from the segment that has the next one; returns whether there was one.
    ///
    /// A segment is a shortcut: one that is damaged or does not fit is left alone, and the positions are read.
    async fn read_segment(
        &self,
        context: Context<'_>,
        segments: &mut Vec<(Position, Position)>,
        next: Position,
        chain: &mut Chain,
    ) -> Result<bool, SyncError> {
        let covers = |(first, last): &(Position, Position)| (*first..=*last).contains(&next);
        let Some(index) = segments.iter().position(covers) else { return Ok(false) };
        let (first, last) = segments[index];
        let segment = match self.remote.segment(context.patience, first, last).await {
            Ok(Some(segment)) if segment.store == chain.store => segment,
            Err(SyncError::Remote(error)) => return Err(SyncError::Remote(error)),
            Ok(_) | Err(_) => {
                segments.swap_remove(index);
                return Ok(false);
            }
        };
        let mut added = false;
        while let Some(bytes) = chain.next.filter(|_| !chain.is_full()).and_then(|next| segment.get(next)) {
            if chain.add(At { bytes: bytes.clone(), version: None }).is_err() {
                segments.swap_remove(index);
                return Ok(added);
            }
            added = true;
        }
        Ok(added)
    }
}
