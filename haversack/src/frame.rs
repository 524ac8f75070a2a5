//! The frame of every file that we write: what it is, a hash of it, a line of JSON, and contents.
//!
//! ```text
//! haversack-<kind> <version>
//! <BLAKE3 of everything after this line, 64 hexadecimal digits>
//! {"the":"heading"}
//! contents, as many bytes as the heading says
//! ```
//!
//! The first line identifies such a file in an editor. A reader ignores unknown fields of the heading, so a
//! writer may add what a reader can do without; everything else takes a new version.
//!
//! # Invariants
//! - Bytes that were cut or changed anywhere are refused, never read as something else: `log::hostile::damage_is_never_read_as_something_else`.
//! - Reading is bounded by the limit that the caller names and never panics: `log::hostile::garbage_is_refused`.
//! - Everything that we write can be read: [`encode`] refuses the same bytes as [`decode`].

use std::error::Error as StdError;
use std::fmt;

use haversack_store::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::ContentHash;

/// The longest heading in bytes.
pub const MAX_HEADING_BYTES: usize = 64 * 1024 * 1024;

/// The length of another program's text in an error.
const SHOWN_CHARACTERS: usize = 80;

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed<T> {
    /// The version of its format: at least 1, at most the newest that was asked for.
    pub version: u32,
    /// The line of JSON.
    pub heading: T,
    /// The bytes after the heading.
    pub contents: Bytes,
}

/// Returns the framed bytes of a heading and of contents that follow one another.
///
/// The heading is a plain struct of strings, numbers and lists; a value that JSON cannot hold is refused.
pub fn encode(
    kind: &str,
    version: u32,
    heading: &impl Serialize,
    contents: &[&[u8]],
    limit_bytes: usize,
) -> Result<Bytes, Unfit> {
    let heading = serde_json::to_vec(heading).map_err(|error| Unfit::wrong(shown(&error.to_string())))?;
    if heading.len() > MAX_HEADING_BYTES {
        return Err(Unfit::TooLarge { what: "bytes of heading", limit: as_number(MAX_HEADING_BYTES) });
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&heading).update(b"\n");
    for part in contents {
        hasher.update(part);
    }
    let hash = ContentHash::from_bytes(*hasher.finalize().as_bytes());
    let first = format!("haversack-{kind} {version}\n{hash}\n");
    let length =
        contents.iter().map(|part| part.len()).fold(first.len() + heading.len() + 1, usize::saturating_add);
    if length > limit_bytes {
        return Err(Unfit::TooLarge { what: "bytes", limit: as_number(limit_bytes) });
    }
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(first.as_bytes());
    bytes.extend_from_slice(&heading);
    bytes.push(b'\n');
    for part in contents {
        bytes.extend_from_slice(part);
    }
    Ok(bytes.into())
}

/// Reads a frame of one kind.
///
/// Errors are checked in order of importance: another kind, a newer version (with other limits), too many bytes, damage.
pub fn decode<T: DeserializeOwned>(
    kind: &str,
    newest_version: u32,
    bytes: &Bytes,
    limit_bytes: usize,
) -> Result<Framed<T>, BadFrame> {
    let (version, start) = first_line(kind, bytes)?;
    if version > newest_version {
        return Err(BadFrame::Newer { version });
    }
    if bytes.len() > limit_bytes {
        return Err(BadFrame::TooLarge { what: "bytes", limit: as_number(limit_bytes) });
    }
    let rest = &bytes[start..];
    let Some((line, body)) = rest.split_at_checked(2 * ContentHash::BYTES + 1) else {
        return Err(BadFrame::Truncated);
    };
    let hash = line.strip_suffix(b"\n").and_then(|line| str::from_utf8(line).ok());
    let hash: Option<ContentHash> = hash.and_then(|hash| hash.parse().ok());
    let hash = hash.ok_or_else(|| BadFrame::damaged("its second line is no hash"))?;
    if body.is_empty() {
        return Err(BadFrame::Truncated);
    }
    if ContentHash::of(body) != hash {
        return Err(BadFrame::damaged("its hash does not match"));
    }
    let window = &body[..body.len().min(MAX_HEADING_BYTES + 1)];
    let Some(end) = memchr::memchr(b'\n', window) else {
        return Err(match window.len() > MAX_HEADING_BYTES {
            true => BadFrame::TooLarge { what: "bytes of heading", limit: as_number(MAX_HEADING_BYTES) },
            false => BadFrame::damaged("its heading has no end"),
        });
    };
    let heading = serde_json::from_slice(&body[..end])
        .map_err(|error| BadFrame::damaged(format!("its heading: {}", shown(&error.to_string()))))?;
    let contents = bytes.slice(bytes.len() - body.len() + end + 1..);
    Ok(Framed { version, heading, contents })
}

/// Returns the version that the first line names, and where the second line starts.
fn first_line(kind: &str, bytes: &[u8]) -> Result<(u32, usize), BadFrame> {
    /// The most digits of a version: `u32::MAX` has ten.
    const MAX_DIGITS: usize = 10;
    let name = format!("haversack-{kind} ");
    let Some(rest) = bytes.strip_prefix(name.as_bytes()) else {
        return Err(match name.as_bytes().starts_with(bytes) {
            true => BadFrame::Truncated,
            false => BadFrame::NotOurs,
        });
    };
    let digits = rest.iter().take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == rest.len() && digits <= MAX_DIGITS {
        return Err(BadFrame::Truncated);
    }
    // A number has one spelling: without it, two different files would be read as the same.
    let plain = digits > 0 && rest[0] != b'0' && rest.get(digits) == Some(&b'\n');
    let version = str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
    match version {
        Some(version) if plain => Ok((version, name.len() + digits + 1)),
        _ => Err(BadFrame::damaged("its first line has no version")),
    }
}

/// The contents of a frame, taken one after the other.
#[derive(Debug)]
pub(crate) struct Parts {
    left: Bytes,
}

impl Parts {
    pub(crate) fn of(contents: Bytes) -> Parts {
        Parts { left: contents }
    }

    /// Returns the next `length` bytes.
    pub(crate) fn take(&mut self, length: u64) -> Result<Bytes, BadFrame> {
        match usize::try_from(length) {
            Ok(length) if length <= self.left.len() => Ok(self.left.split_to(length)),
            _ => Err(BadFrame::damaged("its contents are shorter than announced")),
        }
    }

    /// Refuses bytes that were not read.
    pub(crate) fn end(self) -> Result<(), BadFrame> {
        match self.left.is_empty() {
            true => Ok(()),
            false => Err(BadFrame::damaged("its contents are longer than announced")),
        }
    }
}

/// Why bytes cannot be read, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// They end too early: read them again, a transfer may have been cut off.
    Truncated,
    /// They are not what was written: get them from somewhere else.
    Damaged {
        /// The problem.
        what: String,
    },
    /// They are not a file of this kind: leave it alone.
    NotOurs,
    /// A newer Haversack wrote them: update.
    Newer {
        /// The version of their format.
        version: u32,
    },
    /// They hold something that only a newer Haversack knows: update.
    NewerPart {
        /// The part of the file.
        what: &'static str,
    },
    /// It has more than any writer may write: leave it alone.
    TooLarge {
        /// More of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

impl BadFrame {
    pub(crate) fn damaged(what: impl Into<String>) -> BadFrame {
        BadFrame::Damaged { what: what.into() }
    }

    /// Returns true if an update would help.
    pub fn is_newer(&self) -> bool {
        matches!(self, BadFrame::Newer { .. } | BadFrame::NewerPart { .. })
    }
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadFrame::Truncated => f.write_str("it ends too early"),
            BadFrame::Damaged { what } => write!(f, "it is damaged: {what}"),
            BadFrame::NotOurs => f.write_str("it is a file of another kind"),
            BadFrame::Newer { version } => {
                write!(f, "it was written by a newer version of Haversack (format {version})")
            }
            BadFrame::NewerPart { what } => {
                write!(f, "it holds {what} that only a newer version of Haversack knows")
            }
            BadFrame::TooLarge { what, limit } => write!(f, "it has more than {limit} {what}"),
        }
    }
}

impl StdError for BadFrame {}

/// The reason to refuse a write: the result could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is more than one file may hold: write less at once.
    TooLarge {
        /// More of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It contradicts itself: the program that made it is wrong.
    Wrong {
        /// The problem.
        what: String,
    },
}

impl Unfit {
    pub(crate) fn wrong(what: impl Into<String>) -> Unfit {
        Unfit::Wrong { what: what.into() }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::TooLarge { what, limit } => write!(f, "it would have more than {limit} {what}"),
            Unfit::Wrong { what } => write!(f, "it would not be read: {what}"),
        }
    }
}

impl StdError for Unfit {}

/// A frame that may not be written is refused on reading too.
impl From<Unfit> for BadFrame {
    fn from(unfit: Unfit) -> BadFrame {
        match unfit {
            Unfit::TooLarge { what, limit } => BadFrame::TooLarge { what, limit },
            Unfit::Wrong { what } => BadFrame::Damaged { what },
        }
    }
}

/// Returns another program's text for display: cut, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns a length as the number that files and errors hold.
pub(crate) fn as_number(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Heading {
        name: String,
    }

    const LIMIT: usize = 1000;

    fn heading() -> Heading {
        Heading { name: "ü\n".to_owned() }
    }

    fn example() -> Bytes {
        encode("note", 1, &heading(), &[b"one\n", b"", b"\0\xff"], LIMIT).expect("fits")
    }

    fn read(bytes: &[u8]) -> Result<Framed<Heading>, BadFrame> {
        decode("note", 1, &Bytes::copy_from_slice(bytes), LIMIT)
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let hash = ContentHash::of(b"{\"name\":\"\xc3\xbc\\n\"}\none\n\0\xff");
        let text = format!("haversack-note 1\n{hash}\n{{\"name\":\"ü\\n\"}}\none\n");
        assert_eq!(example(), [text.as_bytes(), b"\0\xff"].concat());
        let contents = Bytes::from_static(b"one\n\0\xff");
        assert_eq!(read(&example()), Ok(Framed { version: 1, heading: heading(), contents }));
    }

    #[test]
    fn every_cut_and_every_flip_is_refused() {
        let example = example();
        for cut in 0..example.len() {
            let bad = read(&example[..cut]).expect_err("cut");
            assert!(matches!(bad, BadFrame::Truncated | BadFrame::Damaged { .. }), "cut at {cut}: {bad}");
            for bit in 0..8 {
                let mut flipped = example.to_vec();
                flipped[cut] ^= 1 << bit;
                assert!(read(&flipped).is_err(), "bit {bit} of byte {cut}");
            }
        }
    }

    #[test]
    fn what_is_wrong_tells_what_to_do() {
        let whole = |json: &str| format!("haversack-note 1\n{}\n{json}", ContentHash::of(json.as_bytes()));
        let long = "9".repeat(LIMIT);
        for (bytes, expected) in [
            ("", "it ends too early"),
            ("haversack-no", "it ends too early"),
            ("haversack-note 12", "it ends too early"),
            ("haversack-nota 1\n", "it is a file of another kind"),
            ("{}", "it is a file of another kind"),
            ("haversack-note 2\nwhatever", "it was written by a newer version of Haversack (format 2)"),
            (
                &format!("haversack-note 2\n{long}"),
                "it was written by a newer version of Haversack (format 2)",
            ),
            (&format!("haversack-note 1\n{long}"), "it has more than 1000 bytes"),
            ("haversack-note 0\n", "it is damaged: its first line has no version"),
            ("haversack-note 01\n", "it is damaged: its first line has no version"),
            ("haversack-note +1\n", "it is damaged: its first line has no version"),
            ("haversack-note 99999999999\n", "it is damaged: its first line has no version"),
            ("haversack-note 1 \n", "it is damaged: its first line has no version"),
            (&format!("haversack-note 1\n{:65}{{}}\n", ""), "it is damaged: its second line is no hash"),
            (
                &format!("haversack-note 1\n{}\n{{}}\n", ContentHash::of(b"")),
                "it is damaged: its hash does not match",
            ),
            (&whole("{}"), "it is damaged: its heading has no end"),
            (&whole("{}\n"), "it is damaged: its heading: missing field `name` at line 1 column 2"),
        ] {
            assert_eq!(read(bytes.as_bytes()).expect_err("bad").to_string(), expected, "{bytes}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        let length = example().len();
        assert!(encode("note", 1, &heading(), &[b"one\n", b"\0\xff"], length).is_ok());
        let unfit = encode("note", 1, &heading(), &[b"one\n", b"\0\xff"], length - 1).expect_err("too large");
        assert_eq!(unfit.to_string(), format!("it would have more than {} bytes", length - 1));
    }

    #[test]
    fn somebody_elses_text_is_cut_and_harmless() {
        let json = format!("{{\"name\":[\"\\u001b{}\"]}}\n", "x".repeat(500));
        let bytes = format!("haversack-note 1\n{}\n{json}", ContentHash::of(json.as_bytes()));
        let bad = read(bytes.as_bytes()).expect_err("no string").to_string();
        assert!(bad.len() < 300 && !bad.contains('\u{1b}'), "{bad}");
    }
}
