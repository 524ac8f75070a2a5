//! One replica's batch of changes, all or nothing, at one position of the log.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fmt;

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use super::bounded;
use super::change::{FileChange, Line, OddChange};
use super::mark::StateMark;
use super::notice::{MAX_ADDRESS_BYTES, Notice};
use super::odd::{self, Twins};
use crate::display::one_line;
use crate::frame::{self, BadFrame, Framed, Parts, Unfit, as_number};
use crate::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId, Timestamp};

/// The largest commit: it is read into memory whole, by the smallest device.
pub const MAX_COMMIT_BYTES: usize = 16 * 1024 * 1024;

/// The most changes of one commit.
pub const MAX_CHANGES: usize = 10_000;

/// The longest name of a device, an agent or a session, and the longest cause, in bytes; longer ones are cut when they are written.
pub const MAX_LABEL_BYTES: usize = 200;

const KIND: &str = "commit";
const VERSION: u32 = 1;

/// The version of a commit that ends a log: a Haversack that does not know that a log can end must not go on after it.
pub(crate) const ENDING_VERSION: u32 = 2;

/// One replica's batch of changes.
///
/// The device, agent, session and cause of a commit that was read are harmless to show: [`one_line`] was applied to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The store it belongs to.
    pub store: StoreId,
    /// Its place in the order.
    pub position: Position,
    /// Its id, by which its author knows it.
    pub id: CommitId,
    /// The hash of the bytes at the position before; of no bytes for the first.
    pub previous: ContentHash,
    /// The replica that made it.
    pub replica: ReplicaId,
    /// The device's name.
    pub device: String,
    /// The agent.
    pub agent: Option<String>,
    /// The session of the agent.
    pub session: Option<String>,
    /// When it was made, to be shown.
    pub time: Timestamp,
    /// Why, in words.
    pub cause: String,
    /// The mark of the state after it.
    pub state: StateMark,
    /// Its changes, at most one for each file.
    pub changes: Vec<FileChange>,
    /// Changes under names that are refused here; we never write any.
    pub odd: Vec<OddChange>,
    /// Its message about the store itself.
    pub notice: Option<Notice>,
}

impl Commit {
    /// Returns the bytes of the commit, which are the same every time.
    pub fn encode(&self) -> Result<Bytes, Unfit> {
        self.check()?;
        if !self.odd.is_empty() {
            return Err(Unfit::wrong("a name in it is refused"));
        }
        let mut twins = Twins::default();
        for change in &self.changes {
            odd::file(change.locator.as_str()).map_err(|why| Unfit::wrong(why.to_string()))?;
            change.what.check()?;
            if change.what.after().is_some() {
                twins.admit(&change.locator).map_err(|why| Unfit::wrong(why.to_string()))?;
            }
        }
        let heading = Heading {
            store: self.store,
            position: self.position,
            id: self.id,
            previous: self.previous,
            replica: self.replica,
            device: label(&self.device),
            agent: self.agent.as_deref().map(label),
            session: self.session.as_deref().map(label),
            time: self.time,
            cause: label(&self.cause),
            state: self.state,
            rebuild: match &self.notice {
                Some(Notice::Rebuild { position, is_complete }) => {
                    Some(RebuildLine { position: *position, complete: *is_complete })
                }
                Some(Notice::Moved { .. }) | None => None,
            },
            moved: match &self.notice {
                Some(Notice::Moved { url }) => Some(url.clone()),
                Some(Notice::Rebuild { .. }) | None => None,
            },
            changes: self.changes.iter().map(Line::of).collect(),
        };
        let version = if heading.moved.is_some() { ENDING_VERSION } else { VERSION };
        let inline = self.changes.iter().filter_map(|change| change.what.inline());
        let contents: Vec<&[u8]> = inline.map(|bytes| &bytes[..]).collect();
        frame::encode(KIND, version, &heading, &contents, MAX_COMMIT_BYTES)
    }

    /// Returns the commit without what it does.
    pub(crate) fn heading(&self) -> Commit {
        let (device, agent, session) = (self.device.clone(), self.agent.clone(), self.session.clone());
        Commit {
            device,
            agent,
            session,
            cause: self.cause.clone(),
            changes: Vec::new(),
            odd: Vec::new(),
            notice: None,
            ..*self
        }
    }

    /// Reads the bytes of a commit and believes nothing that can be checked.
    ///
    /// A change under a name that is refused is in [`Commit::odd`]; anything else that is wrong refuses the whole commit.
    pub fn decode(bytes: &Bytes) -> Result<Commit, BadFrame> {
        let Framed { version, heading, contents } =
            frame::decode::<Heading>(KIND, ENDING_VERSION, bytes, MAX_COMMIT_BYTES)?;
        match (version, heading.moved.is_some()) {
            (ENDING_VERSION, false) => return Err(BadFrame::Newer { version }),
            (VERSION, true) => return Err(BadFrame::damaged("a commit of version 1 cannot end a log")),
            _ => {}
        }
        Commit::from_heading(heading, contents)
    }

    /// Reads a commit from its heading and the contents behind it.
    pub(super) fn from_heading(heading: Heading, contents: Bytes) -> Result<Commit, BadFrame> {
        let labels =
            [Some(&heading.device), heading.agent.as_ref(), heading.session.as_ref(), Some(&heading.cause)];
        if labels.into_iter().flatten().any(|label| label.len() > MAX_LABEL_BYTES) {
            return Err(BadFrame::TooLarge { what: "bytes of a label", limit: as_number(MAX_LABEL_BYTES) });
        }
        let mut commit = Commit {
            store: heading.store,
            position: heading.position,
            id: heading.id,
            previous: heading.previous,
            replica: heading.replica,
            // Another device may have written anything here. Cleaning it now spares code that shows a commit from doing so.
            device: one_line(&heading.device).into_owned(),
            agent: heading.agent.as_deref().map(|agent| one_line(agent).into_owned()),
            session: heading.session.as_deref().map(|session| one_line(session).into_owned()),
            time: heading.time,
            cause: one_line(&heading.cause).into_owned(),
            state: heading.state,
            changes: Vec::new(),
            odd: Vec::new(),
            notice: match (heading.moved, heading.rebuild) {
                (Some(url), _) => Some(Notice::Moved { url: one_line(&url).into_owned() }),
                (None, Some(RebuildLine { position, complete })) => {
                    Some(Notice::Rebuild { position, is_complete: complete })
                }
                (None, None) => None,
            },
        };
        let mut parts = Parts::of(contents);
        let mut twins = Twins::default();
        for line in heading.changes {
            let what = line.read(&mut parts)?;
            let mut place = odd::file(&line.at);
            // A delete and a put whose names differ only by case are a renaming.
            if what.after().is_some() {
                place = place.and_then(|locator| twins.admit(&locator).map(|()| locator));
            }
            match place {
                Ok(locator) => commit.changes.push(FileChange { locator, what }),
                Err(why) => commit.odd.push(OddChange { key: line.at, why, what }),
            }
        }
        parts.end()?;
        commit.check()?;
        Ok(commit)
    }

    /// Refuses a commit that is not the one after `previous` in this store.
    pub fn belongs(
        &self,
        store: StoreId,
        position: Position,
        previous: ContentHash,
    ) -> Result<(), Misplaced> {
        if self.store != store {
            return Err(Misplaced::Store { found: self.store });
        }
        if self.position != position {
            return Err(Misplaced::Position { found: self.position, expected: position });
        }
        if self.previous != previous {
            return Err(Misplaced::Past { position });
        }
        Ok(())
    }

    /// Refuses a commit that breaks the rules, from any writer.
    fn check(&self) -> Result<(), Unfit> {
        if self.changes.len() + self.odd.len() > MAX_CHANGES {
            return Err(Unfit::TooLarge { what: "changes", limit: as_number(MAX_CHANGES) });
        }
        if (self.position == Position::FIRST) != (self.previous == ContentHash::of(b"")) {
            return Err(Unfit::wrong("only the first commit has nothing before it"));
        }
        if let Some(Notice::Moved { url }) = &self.notice {
            if url.is_empty() || url.len() > MAX_ADDRESS_BYTES {
                return Err(Unfit::TooLarge {
                    what: "bytes of an address",
                    limit: as_number(MAX_ADDRESS_BYTES),
                });
            }
            if !self.changes.is_empty() {
                return Err(Unfit::wrong("a commit that ends a log changes nothing"));
            }
        }
        let mut seen = BTreeSet::new();
        let keys = self.changes.iter().map(|change| change.locator.as_str());
        for key in keys.chain(self.odd.iter().map(|odd| odd.key.as_str())) {
            // Two changes of one file: it would be unclear which one counts.
            if !seen.insert(key) {
                return Err(Unfit::wrong("one file has two changes"));
            }
        }
        Ok(())
    }
}

/// The heading of a commit: all of it but the contents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Heading {
    store: StoreId,
    position: Position,
    id: CommitId,
    previous: ContentHash,
    replica: ReplicaId,
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    time: Timestamp,
    cause: String,
    state: StateMark,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    rebuild: Option<RebuildLine>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    moved: Option<String>,
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_CHANGES>")]
    changes: Vec<Line>,
}

impl Heading {
    /// Returns the heading of a commit, with every content inside the commit named by its hash instead.
    pub(super) fn without_contents(bytes: &Bytes) -> Result<Heading, BadFrame> {
        Commit::decode(bytes)?;
        let Framed { mut heading, contents, .. } =
            frame::decode::<Heading>(KIND, ENDING_VERSION, bytes, MAX_COMMIT_BYTES)?;
        let mut parts = Parts::of(contents);
        for line in &mut heading.changes {
            line.name_content(&mut parts)?;
        }
        Ok(heading)
    }
}

/// That a commit belongs to a rebuild, as it stands in the heading.
#[derive(Debug, Serialize, Deserialize)]
struct RebuildLine {
    position: Position,
    #[serde(default)]
    complete: bool,
}

/// Returns a label as a commit has it: harmless to show, and no longer than [`MAX_LABEL_BYTES`].
pub fn label(text: &str) -> String {
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_LABEL_BYTES)].to_owned();
    // An escape is longer than what it stands for.
    cut(&one_line(&cut(text)))
}

/// Why a commit is not the one that belongs in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It is of another store.
    Store {
        /// Of which.
        found: StoreId,
    },
    /// It is of another position.
    Position {
        /// Of which.
        found: Position,
        /// The position where the commit was found.
        expected: Position,
    },
    /// It was built on something else than what is before it: the log was changed.
    Past {
        /// The position that it names.
        position: Position,
    },
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misplaced::Store { found } => write!(f, "the commit belongs to another store ({found})"),
            Misplaced::Position { found, expected } => {
                write!(f, "the commit at position {expected} belongs at {found}")
            }
            Misplaced::Past { position } => {
                write!(f, "the commit at position {position} was built on another past")
            }
        }
    }
}

impl StdError for Misplaced {}
