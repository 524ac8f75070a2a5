//! The names in a remote.

use haversack_store::Locator;

use crate::ids::{ContentHash, Position};

const STORE_FILE: &str = ".haversack/store.json";
const LOG: &str = ".haversack/log";
const SEGMENTS: &str = ".haversack/segments";
const CHECKPOINTS: &str = ".haversack/checkpoints";
const OBJECTS: &str = ".haversack/objects";

/// An object of ours in a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The identity of the store.
    StoreFile,
    /// One commit.
    Commit(Position),
    /// The commits of a range.
    Segment {
        /// The first of them.
        first: Position,
        /// The last of them.
        last: Position,
    },
    /// The state after a commit.
    Checkpoint(Position),
    /// A content or a pack, by its hash.
    Object(ContentHash),
}

impl Item {
    /// Returns where it is.
    pub fn locator(&self) -> Locator {
        match self {
            Item::StoreFile => store_file(),
            Item::Commit(position) => commit(*position),
            Item::Segment { first, last } => segment(*first, *last),
            Item::Checkpoint(position) => checkpoint(*position),
            Item::Object(hash) => object(hash),
        }
    }

    /// Returns what belongs at a place; `None` if it is not one of these, in its one spelling.
    pub fn at(locator: &Locator) -> Option<Item> {
        let key = locator.as_str();
        if key == STORE_FILE {
            return Some(Item::StoreFile);
        }
        let (directory, name) = key.rsplit_once('/')?;
        match directory {
            LOG => Position::from_key(name).ok().map(Item::Commit),
            SEGMENTS => {
                let (first, last) = name.split_once('-')?;
                let (first, last) = (Position::from_key(first).ok()?, Position::from_key(last).ok()?);
                (first <= last).then_some(Item::Segment { first, last })
            }
            CHECKPOINTS => Position::from_key(name).ok().map(Item::Checkpoint),
            OBJECTS => name.parse().ok().map(Item::Object),
            _ => None,
        }
    }
}

/// Returns where it is written which store this is.
pub fn store_file() -> Locator {
    ours(STORE_FILE)
}

/// Returns where the commit of a position is.
pub fn commit(position: Position) -> Locator {
    ours(&format!("{LOG}/{}", position.key()))
}

/// Returns where the commits of a range are.
pub fn segment(first: Position, last: Position) -> Locator {
    ours(&format!("{SEGMENTS}/{}-{}", first.key(), last.key()))
}

/// Returns where the state after a commit is.
pub fn checkpoint(position: Position) -> Locator {
    ours(&format!("{CHECKPOINTS}/{}", position.key()))
}

/// Returns where a content or a pack is.
pub fn object(hash: &ContentHash) -> Locator {
    ours(&format!("{OBJECTS}/{hash}"))
}

/// Returns the directory of the commits, to be listed.
pub fn commits() -> Locator {
    ours(LOG)
}

/// Returns the directory of the segments, to be listed.
pub fn segments() -> Locator {
    ours(SEGMENTS)
}

/// Returns the directory of the checkpoints, to be listed.
pub fn checkpoints() -> Locator {
    ours(CHECKPOINTS)
}

/// Returns the directory of the contents and packs, to be listed.
pub fn objects() -> Locator {
    ours(OBJECTS)
}

fn ours(key: &str) -> Locator {
    Locator::reserved(key).expect("short plain names below our own directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_place() {
        let (first, last) = (Position::FIRST, Position::new(42).expect("a position"));
        let hash = ContentHash::of(b"");
        for (item, key) in [
            (Item::StoreFile, ".haversack/store.json".to_owned()),
            (Item::Commit(last), ".haversack/log/0000000000000042".to_owned()),
            (
                Item::Segment { first, last },
                ".haversack/segments/0000000000000001-0000000000000042".to_owned(),
            ),
            (Item::Checkpoint(last), ".haversack/checkpoints/0000000000000042".to_owned()),
            (Item::Object(hash), format!(".haversack/objects/{hash}")),
        ] {
            assert_eq!(item.locator().as_str(), key);
            assert_eq!(Item::at(&item.locator()), Some(item));
            assert!(item.locator().is_reserved());
        }
    }

    #[test]
    fn other_names_are_nothing_of_ours() {
        for key in [
            ".haversack",
            ".haversack/log",
            ".haversack/log/1",
            ".haversack/log/0000000000000000",
            ".haversack/log/00000000000000042",
            ".haversack/log/0000000000000042.tmp",
            ".haversack/log/sub/0000000000000042",
            ".haversack/segments/0000000000000042-0000000000000001",
            ".haversack/segments/0000000000000042",
            ".haversack/checkpoints/latest",
            ".haversack/objects/af1349",
            ".haversack/Store.json",
            ".Haversack/store.json",
            "manifest.json",
        ] {
            assert_eq!(Item::at(&Locator::reserved(key).expect("ours")), None, "{key}");
        }
        assert_eq!(Item::at(&Locator::root()), None);
    }
}
