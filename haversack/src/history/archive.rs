//! The archive: commits that this device has read or made. With it, `log` and `undo` work without a remote.
//!
//! `history/<store>/<first>-<last>` in the state are [segments](Segment) of one store, written after a sync. Losing one costs a request. Many
//! small segments are merged into few large ones. The oldest are deleted when they are too old or too many.
//!
//! A device that leaves a store for another one keeps both archives. Earlier programs wrote all segments to `history/<first>-<last>`; the first
//! [`keep`] moves those to their stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use haversack_store::{Backend, BackendExt, Bytes, Condition, ErrorKind, Locator, Result as StoreResult};

use crate::ids::{ContentHash, Position, StoreId, Timestamp};
use crate::log::{Commit, Segment};

/// More files than this are put together.
const MAX_FILES: usize = 32;

/// Segments of less than this are put together with their neighbours.
const SMALL_BYTES: u64 = 2 * 1024 * 1024;

/// The amount of history that a device keeps in addition to its remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes.
    pub bytes: u64,
    /// Commits that were archived before this moment are removed.
    pub oldest: Timestamp,
}

/// A file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The store whose directory it is in; `None` for a file of an earlier program, which can be of any store.
    store: Option<StoreId>,
    first: Position,
    last: Position,
    size_bytes: u64,
    /// The time when it was written, if the storage knows.
    written: Option<Timestamp>,
}

impl Range {
    /// Returns true if a position is in it.
    pub fn contains(&self, position: Position) -> bool {
        self.first <= position && position <= self.last
    }

    fn locator(&self) -> Locator {
        let positions = format!("{}-{}", self.first.key(), self.last.key());
        match self.store {
            Some(store) => place(&format!("history/{store}/{positions}")),
            None => place(&format!("history/{positions}")),
        }
    }
}

/// Returns the files of a store's archive, and those of earlier programs, sorted by position.
pub async fn ranges(state: &dyn Backend, store: StoreId) -> StoreResult<Vec<Range>> {
    let of_store = format!("history/{store}/");
    let mut ranges = Vec::new();
    for locator in state.list_all(&place("history")).await? {
        let store = match locator.as_str().strip_prefix(&of_store) {
            Some(_) => Some(store),
            None if locator.segments().count() == 2 => None,
            None => continue,
        };
        let Some((first, last)) = locator.name().split_once('-') else { continue };
        let (Ok(first), Ok(last)) = (Position::from_key(first), Position::from_key(last)) else { continue };
        match state.info(&locator).await {
            Ok(info) => {
                let written = info.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let written = written.and_then(|since| i64::try_from(since.as_millis()).ok()).map(Timestamp);
                ranges.push(Range { store, first, last, size_bytes: info.size_bytes, written });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    ranges.sort_by_key(|range| range.first);
    Ok(ranges)
}

/// Moves the files of earlier programs to the archives of their stores.
async fn move_to_stores(state: &dyn Backend, there: &[Range]) -> StoreResult<()> {
    for range in there.iter().filter(|range| range.store.is_none()) {
        let Some(segment) = read(state, *range).await? else {
            // A file that cannot be read is of no use.
            state.delete(&range.locator(), Condition::Any).await?;
            continue;
        };
        let moved = Range { store: Some(segment.store), ..*range };
        match state.rename(&range.locator(), &moved.locator()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // The store has these commits already.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                state.delete(&range.locator(), Condition::Any).await?;
            }
            renamed => renamed?,
        }
    }
    Ok(())
}

/// Reads the commits of one store from the archive, by position.
pub(crate) struct Reader {
    state: Arc<dyn Backend>,
    store: StoreId,
    ranges: Vec<Range>,
    /// The segment that was read last: who asks for one position asks for the next one too.
    segment: Option<Segment>,
}

impl Reader {
    /// Opens the archive of a store.
    pub(crate) async fn open(state: Arc<dyn Backend>, store: StoreId) -> StoreResult<Reader> {
        let ranges = ranges(&*state, store).await?;
        Ok(Reader { state, store, ranges, segment: None })
    }

    /// Returns the bytes of a commit; `None` if the archive does not have it.
    pub(crate) async fn bytes(&mut self, position: Position) -> StoreResult<Option<Bytes>> {
        let at_hand = self.segment.as_ref().and_then(|segment| segment.get(position));
        if let Some(bytes) = at_hand {
            return Ok(Some(bytes.clone()));
        }
        for range in self.ranges.iter().filter(|range| range.contains(position)) {
            let segment = read(&*self.state, *range).await?;
            let segment = segment.filter(|segment| segment.store == self.store);
            if let Some(bytes) = segment.as_ref().and_then(|segment| segment.get(position).cloned()) {
                self.segment = segment;
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Returns the first position from which on the archive has every commit up to `last`.
    pub(crate) fn first_before(&self, last: Position) -> Position {
        let mut first = last;
        for range in self.ranges.iter().rev() {
            if range.last.number() + 1 >= first.number() {
                first = first.min(range.first);
            }
        }
        first
    }
}

/// Returns a file of the archive; one that cannot be read is as good as none.
async fn read(state: &dyn Backend, range: Range) -> StoreResult<Option<Segment>> {
    match state.read(&range.locator()).await {
        Ok(object) => Ok(Segment::decode(&object.bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns when files got the contents that they are said to have, as far as the archive tells: the time of the newest commit that changed
/// the file, if it gave it that content.
pub(crate) async fn times(
    state: &dyn Backend,
    store: StoreId,
    mut wanted: BTreeMap<Locator, ContentHash>,
) -> StoreResult<BTreeMap<Locator, Timestamp>> {
    let mut times = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(times);
    }
    for range in ranges(state, store).await?.into_iter().rev() {
        let Some(segment) = read(state, range).await?.filter(|segment| segment.store == store) else {
            continue;
        };
        for bytes in segment.commits.iter().rev() {
            let Ok(commit) = Commit::decode(bytes) else { continue };
            times.extend(times_in(&commit, &mut wanted));
            if wanted.is_empty() {
                return Ok(times);
            }
        }
    }
    Ok(times)
}

/// Returns the files that a commit gave their wanted contents, each with the commit's time. Every file that it changed is not wanted any
/// more, because older commits do not tell of its content now.
pub(crate) fn times_in<'a>(
    commit: &'a Commit,
    wanted: &'a mut BTreeMap<Locator, ContentHash>,
) -> impl Iterator<Item = (Locator, Timestamp)> + 'a {
    commit.changes.iter().filter_map(move |change| {
        let hash = wanted.remove(&change.locator)?;
        let is_it = change.what.after().is_some_and(|content| content.hash == hash);
        is_it.then(|| (change.locator.clone(), commit.time))
    })
}

/// Adds commits, and keeps the archive within its bounds.
pub async fn keep(
    state: &dyn Backend,
    store: StoreId,
    mut commits: Vec<(Position, Bytes)>,
    bounds: Bounds,
) -> StoreResult<()> {
    if commits.is_empty() {
        return Ok(());
    }
    let mut there = ranges(state, store).await?;
    if there.iter().any(|range| range.store.is_none()) {
        move_to_stores(state, &there).await?;
        there = ranges(state, store).await?;
    }
    commits.sort_by_key(|(position, _)| *position);
    commits.dedup_by_key(|(position, _)| *position);
    if let Some(first) = first_other(state, store, &there, &commits).await? {
        cut(state, store, &there, first).await?;
        there = ranges(state, store).await?;
    }
    commits.retain(|(position, _)| !there.iter().any(|range| range.contains(*position)));
    for run in commits.chunk_by(|(one, _), (other, _)| one.next() == Some(*other)) {
        there.extend(write(state, store, run.to_vec()).await?);
    }
    there.sort_by_key(|range| range.first);
    if there.len() > MAX_FILES {
        put_together(state, store, &there).await?;
        there = ranges(state, store).await?;
    }
    prune(state, &there, bounds).await
}

/// Returns the first position at which the archive has another commit than the log has now: the remote was restored from an older
/// backup, or another store took its place.
async fn first_other(
    state: &dyn Backend,
    store: StoreId,
    there: &[Range],
    commits: &[(Position, Bytes)],
) -> StoreResult<Option<Position>> {
    for range in there {
        let inside = commits.iter().filter(|(position, _)| range.contains(*position));
        let inside: Vec<&(Position, Bytes)> = inside.collect();
        let Some((first, _)) = inside.first() else { continue };
        let Some(segment) = read(state, *range).await?.filter(|segment| segment.store == store) else {
            return Ok(Some(*first));
        };
        let is_other = |(position, bytes): &&&(Position, Bytes)| segment.get(*position) != Some(bytes);
        if let Some((other, _)) = inside.iter().find(is_other) {
            return Ok(Some(*other));
        }
    }
    Ok(None)
}

/// Removes the commits from a position on; with them all of another store.
async fn cut(state: &dyn Backend, store: StoreId, there: &[Range], first: Position) -> StoreResult<()> {
    for range in there.iter().filter(|range| range.last >= first) {
        let segment = read(state, *range).await?.filter(|segment| segment.store == store);
        if let Some(segment) = segment {
            let positions = (segment.first.number()..).filter_map(Position::new);
            let before = positions.zip(segment.commits).take_while(|(position, _)| *position < first);
            let _ = write(state, store, before.collect()).await?;
        }
        state.delete(&range.locator(), Condition::Any).await?;
    }
    Ok(())
}

/// Writes commits that follow one another; those that do not fit together are left to the remote.
async fn write(
    state: &dyn Backend,
    store: StoreId,
    run: Vec<(Position, Bytes)>,
) -> StoreResult<Option<Range>> {
    let (Some((first, _)), Some((last, _))) = (run.first(), run.last()) else { return Ok(None) };
    let (first, last) = (*first, *last);
    let segment = Segment { store, first, last, commits: run.into_iter().map(|(_, bytes)| bytes).collect() };
    let Ok(bytes) = segment.encode() else { return Ok(None) };
    let range = Range { store: Some(store), first, last, size_bytes: bytes.len() as u64, written: None };
    let _ = state.write(&range.locator(), bytes, Condition::Any).await?;
    Ok(Some(range))
}

/// Makes few large files of many small ones.
async fn put_together(state: &dyn Backend, store: StoreId, there: &[Range]) -> StoreResult<()> {
    let small: Vec<Range> = there.iter().copied().filter(|range| range.size_bytes < SMALL_BYTES).collect();
    for run in small.chunk_by(|one, other| one.last.next() == Some(other.first)) {
        if run.len() < 2 {
            continue;
        }
        let mut commits = Vec::new();
        for range in run {
            let Some(segment) = read(state, *range).await?.filter(|segment| segment.store == store) else {
                commits.clear();
                break;
            };
            let positions = (segment.first.number()..).filter_map(Position::new);
            commits.extend(positions.zip(segment.commits));
        }
        if write(state, store, commits).await?.is_some() {
            for range in run {
                state.delete(&range.locator(), Condition::Any).await?;
            }
        }
    }
    Ok(())
}

/// Lets the oldest go.
async fn prune(state: &dyn Backend, there: &[Range], bounds: Bounds) -> StoreResult<()> {
    let mut total: u64 = there.iter().map(|range| range.size_bytes).sum();
    for range in there {
        let is_older = range.written.is_some_and(|written| written < bounds.oldest);
        if total <= bounds.bytes && !is_older {
            break;
        }
        state.delete(&range.locator(), Condition::Any).await?;
        total -= range.size_bytes;
    }
    Ok(())
}

fn place(name: &str) -> Locator {
    Locator::parse(name).expect("a plain name")
}
