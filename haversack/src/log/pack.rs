//! Packs: many small contents in one object, so that a checkpoint is a few requests and not thousands.

use haversack_store::Bytes;

use super::files::Content;
use crate::frame::as_number;
use crate::ids::ContentHash;

/// The largest pack; a content that is larger is an object of its own.
pub const MAX_PACK_BYTES: usize = 8 * 1024 * 1024;

/// Contents one after the other, stored as the object of its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// Its name.
    pub hash: ContentHash,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The location of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentLocation {
    /// In a pack.
    Pack {
        /// The pack's name.
        object: ContentHash,
        /// The offset of the content in it.
        offset: u64,
    },
    /// In the object of this name, alone.
    Object(ContentHash),
    /// In the checkpoint.
    Inline(Bytes),
}

/// Returns the packs of some contents in their order, and the place of each content.
///
/// A content that does not fit into any pack is no part of one: its place is the object of its own name.
pub fn pack(contents: &[Bytes]) -> (Vec<Pack>, Vec<ContentLocation>) {
    let mut packs = Vec::new();
    let mut places = Vec::with_capacity(contents.len());
    let mut open = Vec::new();
    // Their offsets in the open pack, whose name is known only when it is full.
    let mut waiting: Vec<(usize, u64)> = Vec::new();
    for content in contents {
        if content.len() > MAX_PACK_BYTES {
            places.push(ContentLocation::Object(ContentHash::of(content)));
            continue;
        }
        if open.len() + content.len() > MAX_PACK_BYTES {
            close(&mut open, &mut waiting, &mut packs, &mut places);
        }
        let offset = as_number(open.len());
        waiting.push((places.len(), offset));
        places.push(ContentLocation::Inline(Bytes::new()));
        open.extend_from_slice(content);
    }
    close(&mut open, &mut waiting, &mut packs, &mut places);
    (packs, places)
}

fn close(
    open: &mut Vec<u8>,
    waiting: &mut Vec<(usize, u64)>,
    packs: &mut Vec<Pack>,
    places: &mut [ContentLocation],
) {
    if open.is_empty() {
        // Empty contents need no pack, and their placeholder says just that.
        waiting.clear();
        return;
    }
    let bytes = Bytes::from(std::mem::take(open));
    let hash = ContentHash::of(&bytes);
    for (index, offset) in waiting.drain(..) {
        places[index] = ContentLocation::Pack { object: hash, offset };
    }
    packs.push(Pack { hash, bytes });
}

/// Returns one content of a pack, if it is there.
pub(crate) fn unpack(pack: &Bytes, offset: u64, content: &Content) -> Option<Bytes> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(content.size).ok()?)?;
    if end > pack.len() {
        return None;
    }
    let bytes = pack.slice(start..end);
    (ContentHash::of(&bytes) == content.hash).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_of(bytes: &[u8]) -> Content {
        Content { hash: ContentHash::of(bytes), size: as_number(bytes.len()) }
    }

    #[test]
    fn contents_come_out_of_packs_as_they_went_in() {
        let large = |byte: u8, length: usize| Bytes::from(vec![byte; length]);
        let contents = [
            Bytes::from_static(b"one"),
            Bytes::new(),
            large(b'a', MAX_PACK_BYTES + 1),
            large(b'b', MAX_PACK_BYTES - 3),
            Bytes::from_static(b"two"),
            large(b'c', MAX_PACK_BYTES),
            Bytes::from_static(b"one"),
        ];
        let (packs, places) = pack(&contents);
        assert_eq!(
            packs.iter().map(|pack| pack.bytes.len()).collect::<Vec<_>>(),
            [MAX_PACK_BYTES, 3, MAX_PACK_BYTES, 3]
        );
        for (content, place) in contents.iter().zip(&places) {
            match place {
                ContentLocation::Pack { object, offset } => {
                    let pack = packs.iter().find(|pack| pack.hash == *object).expect("packed");
                    assert_eq!(ContentHash::of(&pack.bytes), pack.hash);
                    assert_eq!(unpack(&pack.bytes, *offset, &content_of(content)).as_ref(), Some(content));
                }
                ContentLocation::Object(hash) => {
                    assert_eq!((*hash, content.len()), (ContentHash::of(content), MAX_PACK_BYTES + 1))
                }
                ContentLocation::Inline(bytes) => assert_eq!(bytes, content),
            }
        }
        assert_eq!(pack(&[]), (vec![], vec![]));
        assert_eq!(pack(&[Bytes::new()]), (vec![], vec![ContentLocation::Inline(Bytes::new())]));
    }

    #[test]
    fn nothing_else_comes_out_of_a_pack() {
        let pack = Bytes::from_static(b"onetwo");
        assert_eq!(unpack(&pack, 3, &content_of(b"two")).as_deref(), Some(&b"two"[..]));
        assert_eq!(unpack(&pack, 2, &content_of(b"two")), None);
        assert_eq!(unpack(&pack, 4, &content_of(b"two")), None);
        assert_eq!(unpack(&pack, u64::MAX, &content_of(b"two")), None);
        assert_eq!(unpack(&pack, 1, &Content { size: u64::MAX, ..content_of(b"two") }), None);
    }
}
