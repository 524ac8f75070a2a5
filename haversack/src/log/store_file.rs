//! The identity of the store in a remote, in a readable file.

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use super::commit::{MAX_LABEL_BYTES, label};
use crate::display::one_line;
use crate::frame::{BadFrame, as_number, shown};
use crate::ids::{ContentHash, Position, StoreId, Timestamp};

/// The largest file that is read as one.
pub const MAX_STORE_FILE_BYTES: usize = 64 * 1024;

/// The newest layout of a remote that this Haversack knows.
pub(crate) const FORMAT: u32 = 1;

/// The identity of the store in a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFile {
    /// The store's id.
    pub store: StoreId,
    /// When it was made.
    pub created: Timestamp,
    /// The store's name for people; cut to [`MAX_LABEL_BYTES`]. A name that was read is safe to show: [`one_line`] was applied to it.
    pub name: String,
    /// The store that was here before and that this one continues; `None` for a store that began anew.
    pub predecessor: Option<Predecessor>,
}

/// The store that another one continues, because its own remote was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its id.
    pub store: StoreId,
    /// The position that the machine which began to rebuild it had taken in.
    pub position: Position,
    /// The hashes of its commits, the newest first: the last ones, and a few of those before. By them a machine tells how far it knows the same
    /// log: after a remote was restored from a backup, two can know different commits at one position.
    pub commits: Vec<(Position, ContentHash)>,
}

impl StoreFile {
    /// Returns the bytes of the file.
    pub fn encode(&self) -> Bytes {
        let name = label(&self.name);
        let check = check(&self.store, self.created, &name);
        let predecessor = self.predecessor.as_ref().map(|predecessor| {
            let Predecessor { store, position, commits } = predecessor.clone();
            PredecessorLines { store, position, check: check_predecessor(&self.store, predecessor), commits }
        });
        let lines =
            Lines { format: FORMAT, store: self.store, name, created: self.created, check, predecessor };
        let mut text = serde_json::to_vec_pretty(&lines).expect("strings and numbers print");
        text.push(b'\n');
        text.into()
    }

    /// Reads the bytes of the file.
    pub fn decode(bytes: &Bytes) -> Result<StoreFile, BadFrame> {
        /// The fields that every format has.
        #[derive(Deserialize)]
        struct Any {
            format: u32,
        }

        if bytes.len() > MAX_STORE_FILE_BYTES {
            return Err(BadFrame::TooLarge { what: "bytes", limit: as_number(MAX_STORE_FILE_BYTES) });
        }
        let any: Any = serde_json::from_slice(bytes).map_err(bad_json)?;
        match any.format {
            FORMAT => {}
            0 => return Err(BadFrame::damaged("it has no format")),
            version => return Err(BadFrame::Newer { version }),
        }
        let Lines { store, name, created, check: named, predecessor, .. } =
            serde_json::from_slice(bytes).map_err(bad_json)?;
        if name.len() > MAX_LABEL_BYTES {
            return Err(BadFrame::TooLarge { what: "bytes of a label", limit: as_number(MAX_LABEL_BYTES) });
        }
        let (predecessor, is_sound) = match predecessor {
            None => (None, true),
            Some(PredecessorLines { store: before, position, check, commits }) => {
                let predecessor = Predecessor { store: before, position, commits };
                let is_sound = check_predecessor(&store, &predecessor) == check;
                (Some(predecessor), is_sound)
            }
        };
        if check(&store, created, &name) != named || !is_sound {
            return Err(BadFrame::damaged("its check does not match"));
        }
        Ok(StoreFile { store, created, name: one_line(&name).into_owned(), predecessor })
    }
}

/// Returns the hash of all that the file says: no damaged id is taken for another store's.
fn check(store: &StoreId, created: Timestamp, name: &str) -> ContentHash {
    ContentHash::of(format!("{FORMAT} {store} {} {name}", created.0).as_bytes())
}

/// Returns the hash of what the file says about the predecessor. It is no part of the other one, so that a Haversack that knows of no
/// predecessors can still read which store this is.
fn check_predecessor(store: &StoreId, predecessor: &Predecessor) -> ContentHash {
    let mut said = format!("{FORMAT} {store} {} {}", predecessor.store, predecessor.position);
    for (position, hash) in &predecessor.commits {
        said.push_str(&format!(" {position} {hash}"));
    }
    ContentHash::of(said.as_bytes())
}

fn bad_json(error: serde_json::Error) -> BadFrame {
    match error.is_eof() {
        true => BadFrame::Truncated,
        false => BadFrame::damaged(shown(&error.to_string())),
    }
}

#[derive(Serialize, Deserialize)]
struct Lines {
    format: u32,
    store: StoreId,
    name: String,
    created: Timestamp,
    check: ContentHash,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    predecessor: Option<PredecessorLines>,
}

#[derive(Serialize, Deserialize)]
struct PredecessorLines {
    store: StoreId,
    position: Position,
    check: ContentHash,
    #[serde(default)]
    commits: Vec<(Position, ContentHash)>,
}
