//! The note that the holder of the write lock writes beside the lock before each change.
//!
//! If the next holder of the lock finds a note, its writer died, and the note tells where. The note
//! only saves a search: everything that must be known to judge a leftover is in its name and content.

use crate::locator::Locator;

/// The usual maximum size of an entry.
const USUAL_ENTRY_BYTES: usize = 256;

/// One thing under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnderWay {
    /// A working name beside `target` may exist.
    Temp { name: String, target: Locator },
    /// The name `at` is being given or taken.
    Name { at: Locator },
    /// `bytes` are being added to the file `inode` at `target`, which measured `offset`.
    Extend { target: Locator, inode: u64, offset: u64, bytes: Vec<u8> },
}

/// Returns the note for what is under way.
pub(super) fn encode(under_way: &[UnderWay]) -> Vec<u8> {
    let mut note = Vec::with_capacity(under_way.len() * USUAL_ENTRY_BYTES);
    for entry in under_way {
        match entry {
            UnderWay::Temp { name, target } => {
                let parts = ["temp ", name, " ", target.as_str(), "\n"];
                parts.iter().for_each(|part| note.extend_from_slice(part.as_bytes()));
            }
            UnderWay::Name { at } => note.extend_from_slice(format!("name {at}\n").as_bytes()),
            UnderWay::Extend { target, inode, offset, bytes } => {
                let length = bytes.len();
                note.extend_from_slice(format!("extend {inode} {offset} {length} {target}\n").as_bytes());
                note.extend_from_slice(bytes);
                note.push(b'\n');
            }
        }
    }
    note
}

/// Returns what a note says; what cannot be read ends it.
pub(super) fn decode(note: &[u8]) -> Vec<UnderWay> {
    let mut under_way = Vec::new();
    let mut rest = note;
    while let Some((entry, after)) = decode_one(rest) {
        under_way.push(entry);
        rest = after;
    }
    under_way
}

fn decode_one(note: &[u8]) -> Option<(UnderWay, &[u8])> {
    let end = note.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&note[..end]).ok()?;
    let rest = &note[end + 1..];
    let (word, arguments) = line.split_once(' ')?;
    match word {
        "temp" => {
            let (name, target) = arguments.split_once(' ')?;
            let target = Locator::from_stored_key(target).ok()?;
            Some((UnderWay::Temp { name: name.to_owned(), target }, rest))
        }
        "name" => Some((UnderWay::Name { at: Locator::from_stored_key(arguments).ok()? }, rest)),
        "extend" => {
            let mut fields = arguments.splitn(4, ' ');
            let inode = fields.next()?.parse().ok()?;
            let offset = fields.next()?.parse().ok()?;
            let length: usize = fields.next()?.parse().ok()?;
            let target = Locator::from_stored_key(fields.next()?).ok()?;
            let bytes = rest.get(..length)?.to_vec();
            Some((UnderWay::Extend { target, inode, offset, bytes }, rest.get(length + 1..)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_round_trip() {
        let target = Locator::parse("a dir/notes of today.md").expect("valid");
        let under_way = vec![
            UnderWay::Temp { name: ".haversack-draft-0".to_owned(), target: target.clone() },
            UnderWay::Extend {
                target: target.clone(),
                inode: 7,
                offset: 12,
                bytes: b"one\ntwo\0\n".to_vec(),
            },
            UnderWay::Name { at: target.clone() },
            UnderWay::Temp { name: ".haversack-draft-1".to_owned(), target },
        ];
        assert_eq!(decode(&encode(&under_way)), under_way);
        assert_eq!(decode(b""), []);
        assert_eq!(decode(b"temp x ../y\n"), []);
        assert_eq!(decode(b"extend 1 0 99 a\nshort\n"), []);
    }
}
