//! All files at one position, so that a device need not read the log from its start.

use std::collections::BTreeMap;
use std::fmt;

use haversack_store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use super::bounded;
use super::change::{Carried, carried, check_whole};
use super::mark::{Mismatch, StateMark};
use super::odd::{self, Oddity, Twins};
use super::pack::{ContentLocation, MAX_PACK_BYTES};
use crate::frame::{self, BadFrame, Framed, Parts, Unfit, as_number};
use crate::ids::{ContentHash, Position, StoreId};

/// The largest checkpoint.
pub(super) const MAX_CHECKPOINT_BYTES: usize = 128 * 1024 * 1024;

/// The most files of one checkpoint: twice what the engine promises to carry.
pub const MAX_CHECKPOINT_FILES: usize = 200_000;

const KIND: &str = "checkpoint";
pub(crate) const VERSION: u32 = 1;

/// The state after a commit.
///
/// Any device may write one, so we believe it only if the log confirms it: [`Checkpoint::commit`] must be the hash of the bytes at
/// its position, and [`Checkpoint::state`] the mark that this commit carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The store it belongs to.
    pub store: StoreId,
    /// The position it is the state after.
    pub position: Position,
    /// The hash of the bytes at that position.
    pub commit: ContentHash,
    /// The mark of the state.
    pub state: StateMark,
    /// The files.
    pub files: BTreeMap<Locator, FileState>,
    /// Files under names that are refused here, sorted by name. A device that has any writes no checkpoint, and leaves that to devices that can read them.
    pub odd: Vec<OddFile>,
}

/// The content of a file, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The content's name.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub size: u64,
    /// Its location.
    pub place: ContentLocation,
}

/// A file under a name that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddFile {
    /// The name as it was found: not to be printed as it is.
    pub key: String,
    /// Why it is refused.
    pub why: Oddity,
    /// Its content.
    pub file: FileState,
}

impl fmt::Display for OddFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.tell(&self.key, f)
    }
}

impl Checkpoint {
    /// Returns the bytes of the checkpoint.
    pub fn encode(&self) -> Result<Bytes, Unfit> {
        if !self.odd.is_empty() {
            return Err(Unfit::wrong("a name in it is refused"));
        }
        if self.files.len() > MAX_CHECKPOINT_FILES {
            return Err(Unfit::TooLarge { what: "files", limit: as_number(MAX_CHECKPOINT_FILES) });
        }
        self.verify().map_err(|mismatch| Unfit::wrong(mismatch.to_string()))?;
        let mut twins = Twins::default();
        let mut packs = Packs::default();
        let mut files = Vec::with_capacity(self.files.len());
        let mut contents: Vec<&[u8]> = Vec::new();
        for (locator, file) in &self.files {
            let known = odd::file(locator.as_str()).and_then(|locator| twins.admit(&locator));
            known.map_err(|why| Unfit::wrong(why.to_string()))?;
            file.check()?;
            let mut line = Line {
                at: locator.to_string(),
                hash: file.hash,
                size: file.size,
                pack: None,
                object: None,
                inline: None,
            };
            match &file.place {
                ContentLocation::Pack { object, offset } => line.pack = Some((packs.index(object), *offset)),
                ContentLocation::Object(hash) => line.object = Some(*hash),
                ContentLocation::Inline(bytes) => {
                    line.inline = Some(as_number(bytes.len()));
                    contents.push(bytes);
                }
            }
            files.push(line);
        }
        let (store, position, commit, state, packs) =
            (self.store, self.position, self.commit, self.state, packs.names);
        let heading = Heading { store, position, commit, state, packs, files };
        frame::encode(KIND, VERSION, &heading, &contents, MAX_CHECKPOINT_BYTES)
    }

    /// Reads the bytes of a checkpoint and checks all that can be checked without the log.
    ///
    /// A file under a name that is refused is in [`Checkpoint::odd`]; anything else that is wrong refuses the whole.
    pub fn decode(bytes: &Bytes) -> Result<Checkpoint, BadFrame> {
        let Framed { heading, contents, .. } =
            frame::decode::<Heading>(KIND, VERSION, bytes, MAX_CHECKPOINT_BYTES)?;
        let Heading { store, position, commit, state, packs, files: lines } = heading;
        if lines.len() > MAX_CHECKPOINT_FILES || packs.len() > MAX_CHECKPOINT_FILES {
            return Err(BadFrame::TooLarge { what: "files", limit: as_number(MAX_CHECKPOINT_FILES) });
        }
        if !lines.is_sorted_by(|one, next| one.at < next.at) {
            return Err(BadFrame::damaged("its files are not in order, or one is there twice"));
        }
        let mut parts = Parts::of(contents);
        let mut twins = Twins::default();
        let mut files = Vec::with_capacity(lines.len());
        let mut odd = Vec::new();
        for line in lines {
            let file = line.read(&packs, &mut parts)?;
            match odd::file(&line.at).and_then(|locator| twins.admit(&locator).map(|()| locator)) {
                Ok(locator) => files.push((locator, file)),
                Err(why) => odd.push(OddFile { key: line.at, why, file }),
            }
        }
        parts.end()?;
        let checkpoint =
            Checkpoint { store, position, commit, state, files: files.into_iter().collect(), odd };
        checkpoint.verify().map_err(|mismatch| BadFrame::damaged(mismatch.to_string()))?;
        Ok(checkpoint)
    }

    /// Refuses a mark that is not that of the files.
    pub fn verify(&self) -> Result<(), Mismatch> {
        let mut found = StateMark::empty();
        for (locator, file) in &self.files {
            found.add(locator, &file.hash);
        }
        for odd in &self.odd {
            found.add_key(&odd.key, &odd.file.hash);
        }
        match found == self.state {
            true => Ok(()),
            false => Err(Mismatch::Mark { expected: self.state, found }),
        }
    }
}

impl FileState {
    /// Refuses what contradicts itself.
    fn check(&self) -> Result<(), Unfit> {
        match &self.place {
            ContentLocation::Pack { offset, .. } => match offset.checked_add(self.size) {
                Some(end) if end <= as_number(MAX_PACK_BYTES) => Ok(()),
                _ => Err(Unfit::TooLarge { what: "bytes of a pack", limit: as_number(MAX_PACK_BYTES) }),
            },
            ContentLocation::Object(hash) => check_whole(&self.hash, self.size, &Carried::Object(*hash)),
            ContentLocation::Inline(bytes) => {
                check_whole(&self.hash, self.size, &Carried::Inline(bytes.clone()))
            }
        }
    }
}

/// The packs that a checkpoint names, each once: a hash is longer than the rest of most lines.
#[derive(Debug, Default)]
struct Packs {
    names: Vec<ContentHash>,
    indexes: BTreeMap<ContentHash, usize>,
}

impl Packs {
    fn index(&mut self, object: &ContentHash) -> usize {
        *self.indexes.entry(*object).or_insert_with(|| {
            self.names.push(*object);
            self.names.len() - 1
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    store: StoreId,
    position: Position,
    commit: ContentHash,
    state: StateMark,
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_CHECKPOINT_FILES>")]
    packs: Vec<ContentHash>,
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_CHECKPOINT_FILES>")]
    files: Vec<Line>,
}

/// A file as it stands in the heading. A kind of place that is not known leaves all three empty.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: String,
    hash: ContentHash,
    size: u64,
    /// The number of the pack, counted from 0, and the offset in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<(usize, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline: Option<u64>,
}

impl Line {
    fn read(&self, packs: &[ContentHash], parts: &mut Parts) -> Result<FileState, BadFrame> {
        let place = match (self.pack, self.object, self.inline) {
            (Some((index, offset)), None, None) => {
                let object = packs.get(index).ok_or_else(|| BadFrame::damaged("a pack is not named"))?;
                ContentLocation::Pack { object: *object, offset }
            }
            (Some(_), _, _) => return Err(BadFrame::damaged("one content is in two places")),
            (None, object, inline) => match carried(inline, object, parts)? {
                Carried::Object(hash) => ContentLocation::Object(hash),
                Carried::Inline(bytes) => ContentLocation::Inline(bytes),
            },
        };
        let file = FileState { hash: self.hash, size: self.size, place };
        file.check()?;
        Ok(file)
    }
}
