//! The change of one file in a commit, and its encoding.

use std::fmt;

use haversack_store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use super::files::Content;
use super::odd::Oddity;
use crate::frame::{BadFrame, Parts, Unfit, as_number};
use crate::ids::ContentHash;

/// The largest content inside a commit or a checkpoint; larger ones are objects of their own.
pub const MAX_INLINE_BYTES: usize = 256 * 1024;

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub locator: Locator,
    /// The change.
    pub what: What,
}

/// A change under a name that is refused: it is reported, and nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddChange {
    /// The name as it was found: not to be printed as it is.
    pub key: String,
    /// Why it is refused.
    pub why: Oddity,
    /// The change, which is not carried out.
    pub what: What,
}

impl fmt::Display for OddChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.tell(&self.key, f)
    }
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It is made, or gets a new content.
    Put {
        /// The content's name.
        hash: ContentHash,
        /// Its size in bytes.
        size: u64,
        /// The content.
        content: Carried,
        /// The content that it was made from, if another device deleted that content and the author did not know: the edit won over the deletion.
        from: Option<ContentHash>,
    },
    /// Something is added to its end.
    Append {
        /// The name of the content it extends.
        base: ContentHash,
        /// The size of that.
        base_size: u64,
        /// The name of the whole content afterwards.
        hash: ContentHash,
        /// The size of that.
        size: u64,
        /// The appended bytes.
        added: Carried,
    },
    /// It goes.
    Delete {
        /// The object with what it held when it went, if that is not what it held in the log before: in a vault it can go with a change.
        before: Option<ContentHash>,
    },
}

/// The location of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Inside the commit.
    Inline(Bytes),
    /// In the object of this name.
    Object(ContentHash),
}

impl What {
    /// Returns what the file holds afterwards.
    pub fn after(&self) -> Option<Content> {
        match self {
            What::Put { hash, size, .. } | What::Append { hash, size, .. } => {
                Some(Content { hash: *hash, size: *size })
            }
            What::Delete { .. } => None,
        }
    }

    /// Returns the bytes that are inside the commit.
    pub(crate) fn inline(&self) -> Option<&Bytes> {
        match self {
            What::Put { content: Carried::Inline(bytes), .. }
            | What::Append { added: Carried::Inline(bytes), .. } => Some(bytes),
            What::Put { content: Carried::Object(_), .. }
            | What::Append { added: Carried::Object(_), .. }
            | What::Delete { .. } => None,
        }
    }

    /// Refuses what contradicts itself.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        match self {
            What::Put { hash, size, content, .. } => check_whole(hash, *size, content),
            What::Append { base_size, size, added, .. } => {
                let Some(length) = size.checked_sub(*base_size) else {
                    return Err(Unfit::wrong("an append makes a file smaller"));
                };
                match added {
                    Carried::Inline(bytes) => check_inline(bytes, length),
                    Carried::Object(_) => Ok(()),
                }
            }
            What::Delete { .. } => Ok(()),
        }
    }
}

/// Refuses a carried content that is not the one that is named.
pub(super) fn check_whole(hash: &ContentHash, size: u64, content: &Carried) -> Result<(), Unfit> {
    let found = match content {
        Carried::Inline(bytes) => {
            check_inline(bytes, size)?;
            ContentHash::of(bytes)
        }
        Carried::Object(object) => *object,
    };
    match found == *hash {
        true => Ok(()),
        false => Err(Unfit::wrong("a content is not the one that is named")),
    }
}

fn check_inline(bytes: &Bytes, length: u64) -> Result<(), Unfit> {
    if bytes.len() > MAX_INLINE_BYTES {
        return Err(Unfit::TooLarge { what: "bytes of one content", limit: as_number(MAX_INLINE_BYTES) });
    }
    match as_number(bytes.len()) == length {
        true => Ok(()),
        false => Err(Unfit::wrong("a content does not have the size that is named")),
    }
}

/// A change as it stands in a heading. A kind that is not known leaves all three empty.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    put: Option<PutLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<AppendLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<DeleteLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PutLine {
    hash: ContentHash,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    from: Option<ContentHash>,
}

#[derive(Debug, Serialize, Deserialize)]
struct AppendLine {
    base: ContentHash,
    base_size: u64,
    hash: ContentHash,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ContentHash>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DeleteLine {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    before: Option<ContentHash>,
}

impl Line {
    pub(super) fn of(change: &FileChange) -> Line {
        let mut line = Line { at: change.locator.to_string(), put: None, append: None, delete: None };
        match &change.what {
            What::Put { hash, size, content, from } => {
                let (inline, object) = lines_of(content);
                line.put = Some(PutLine { hash: *hash, size: *size, inline, object, from: *from });
            }
            What::Append { base, base_size, hash, size, added } => {
                let (inline, object) = lines_of(added);
                let (base, base_size, hash, size) = (*base, *base_size, *hash, *size);
                line.append = Some(AppendLine { base, base_size, hash, size, inline, object });
            }
            What::Delete { before } => line.delete = Some(DeleteLine { before: *before }),
        }
        line
    }

    /// Names the content inside the commit by its hash, and takes its bytes from the contents.
    pub(super) fn name_content(&mut self, parts: &mut Parts) -> Result<(), BadFrame> {
        let put = self.put.as_mut().map(|put| (&mut put.inline, &mut put.object));
        let append = self.append.as_mut().map(|append| (&mut append.inline, &mut append.object));
        for (inline, object) in put.into_iter().chain(append) {
            if let Some(length) = inline.take() {
                *object = Some(ContentHash::of(&parts.take(length)?));
            }
        }
        Ok(())
    }

    /// Returns what it says, with the bytes that it is about taken from the contents.
    pub(super) fn read(&self, parts: &mut Parts) -> Result<What, BadFrame> {
        let what = match (&self.put, &self.append, &self.delete) {
            (Some(put), None, None) => {
                let content = carried(put.inline, put.object, parts)?;
                What::Put { hash: put.hash, size: put.size, content, from: put.from }
            }
            (None, Some(append), None) => {
                let added = carried(append.inline, append.object, parts)?;
                let AppendLine { base, base_size, hash, size, .. } = *append;
                What::Append { base, base_size, hash, size, added }
            }
            (None, None, Some(DeleteLine { before })) => What::Delete { before: *before },
            (None, None, None) => return Err(BadFrame::NewerPart { what: "a kind of change" }),
            _ => return Err(BadFrame::damaged("one change says two things")),
        };
        what.check()?;
        Ok(what)
    }
}

fn lines_of(carried: &Carried) -> (Option<u64>, Option<ContentHash>) {
    match carried {
        Carried::Inline(bytes) => (Some(as_number(bytes.len())), None),
        Carried::Object(hash) => (None, Some(*hash)),
    }
}

/// Returns the bytes or the object that a line names.
pub(super) fn carried(
    inline: Option<u64>,
    object: Option<ContentHash>,
    parts: &mut Parts,
) -> Result<Carried, BadFrame> {
    match (inline, object) {
        (Some(length), None) => Ok(Carried::Inline(parts.take(length)?)),
        (None, Some(hash)) => Ok(Carried::Object(hash)),
        (None, None) => Err(BadFrame::NewerPart { what: "a way to carry contents" }),
        (Some(_), Some(_)) => Err(BadFrame::damaged("one content is in two places")),
    }
}
