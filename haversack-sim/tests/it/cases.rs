//! The operations under test: what each does to the files that were there before.

use std::collections::{BTreeMap, BTreeSet};

use haversack_sim::SimDisk;
use haversack_store::{Blocking, Condition, Displaced, Durability, Error, Locator, Version, block_on};

pub(crate) const OLD: &[u8] = b"what was acknowledged\nand must not be lost\n";
pub(crate) const NEW: &[u8] = b"what is written instead\n";
pub(crate) const LINES: &[u8] = b"line one\nline two\n";
pub(crate) const LINE: &[u8] = b"one more line\n";

/// Contents by key.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Files and directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) files: Files,
    pub(crate) dirs: BTreeSet<String>,
}

impl Tree {
    fn put(&mut self, key: &str, bytes: &[u8]) {
        self.files.insert(key.to_owned(), bytes.to_vec());
        self.put_dirs(key.rsplit_once('/').map_or("", |(parents, _)| parents));
    }

    fn put_dirs(&mut self, key: &str) {
        let ends = key.match_indices('/').map(|(at, _)| at).chain([key.len()]);
        self.dirs.extend(ends.filter(|end| *end > 0).map(|end| key[..end].to_owned()));
    }
}

/// One operation of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    CreateAbsent,
    WriteAny,
    WriteMatches,
    WriteNested,
    AppendExisting,
    AppendCreating,
    AppendLinked,
    AppendAtBarrier,
    DeleteAny,
    DeleteMatches,
    RenameFile,
    RenameToNewDirectory,
    RenameDirectory,
    Exchange,
    MkdirNested,
    TouchMark,
}

impl Case {
    /// Every case but [`Case::RenameToNewDirectory`], which has a test of its own.
    pub(crate) const ALL: [Case; 15] = [
        Case::CreateAbsent,
        Case::WriteAny,
        Case::WriteMatches,
        Case::WriteNested,
        Case::AppendExisting,
        Case::AppendCreating,
        Case::AppendLinked,
        Case::AppendAtBarrier,
        Case::DeleteAny,
        Case::DeleteMatches,
        Case::RenameFile,
        Case::RenameDirectory,
        Case::Exchange,
        Case::MkdirNested,
        Case::TouchMark,
    ];

    /// The key that the operation is about.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Case::CreateAbsent => "new.md",
            Case::WriteAny | Case::WriteMatches | Case::DeleteAny | Case::DeleteMatches | Case::Exchange => {
                "notes.md"
            }
            Case::WriteNested => "new/nested/file.md",
            Case::AppendExisting | Case::AppendAtBarrier => "log.md",
            Case::AppendCreating => "fresh.md",
            Case::AppendLinked => "linked.md",
            Case::RenameFile => "deep/to.md",
            Case::RenameToNewDirectory => "moved/there/to.md",
            Case::RenameDirectory => "sunk",
            Case::MkdirNested => "made/in/here",
            Case::TouchMark => "touched.md",
        }
    }

    /// A key that can be written afterwards, whatever happened.
    pub(crate) fn follow_up(self) -> String {
        match self {
            Case::MkdirNested | Case::RenameDirectory => format!("{}/after.md", self.target()),
            _ => self.target().to_owned(),
        }
    }

    /// Returns true if the operation adds to a file that is there instead of replacing it.
    pub(crate) fn extends(self) -> bool {
        matches!(self, Case::AppendExisting | Case::AppendAtBarrier)
    }

    /// Does the operation.
    pub(crate) fn run(self, store: &Blocking) -> Result<Option<Displaced>, Error> {
        let target = key(self.target());
        let old = || Condition::Matches(Version::of_content(OLD));
        match self {
            Case::CreateAbsent => Ok(store.write(&target, NEW, Condition::Absent)?.displaced),
            Case::WriteAny | Case::WriteNested => Ok(store.write(&target, NEW, Condition::Any)?.displaced),
            Case::WriteMatches => Ok(store.write(&target, NEW, old())?.displaced),
            Case::AppendExisting | Case::AppendCreating | Case::AppendLinked => {
                Ok(store.append(&target, LINE, Durability::Now)?.displaced)
            }
            Case::AppendAtBarrier => {
                let displaced = store.append(&target, LINE, Durability::AtBarrier)?.displaced;
                store.barrier().map(|()| displaced)
            }
            Case::DeleteAny => store.delete(&target, Condition::Any).map(|()| None),
            Case::DeleteMatches => store.delete(&target, old()).map(|()| None),
            Case::RenameFile | Case::RenameToNewDirectory => {
                store.rename(&key("from.md"), &target).map(|()| None)
            }
            Case::RenameDirectory => store.rename(&key("deep"), &target).map(|()| None),
            Case::Exchange => store.exchange(&key("deep/one.md"), &target).map(|()| None),
            Case::MkdirNested => store.mkdir(&target).map(|()| None),
            Case::TouchMark => block_on(store.backend().touch_mark()).map(|_| None),
        }
    }

    /// Returns what is there before the operation.
    pub(crate) fn before(self) -> Tree {
        let mut tree = Tree::default();
        let blob: Vec<u8> = (0..=255).rev().collect();
        tree.put("blob.bin", &blob);
        tree.put("deep/er/two.md", b"two\n");
        tree.put("deep/one.md", b"one\n");
        tree.put("empty.md", b"");
        tree.put("from.md", b"moves\n");
        tree.put("log.md", LINES);
        tree.put("notes.md", OLD);
        if self == Case::AppendLinked {
            tree.put("linked.md", LINES);
            tree.put("other name of linked.md", LINES);
        }
        tree
    }

    /// Returns what is there after it.
    pub(crate) fn after(self) -> Tree {
        let mut tree = self.before();
        match self {
            Case::CreateAbsent | Case::WriteAny | Case::WriteMatches | Case::WriteNested => {
                tree.put(self.target(), NEW);
            }
            Case::AppendExisting | Case::AppendLinked | Case::AppendAtBarrier => {
                tree.put(self.target(), &[LINES, LINE].concat());
            }
            Case::AppendCreating => tree.put(self.target(), LINE),
            Case::DeleteAny | Case::DeleteMatches => drop(tree.files.remove(self.target())),
            Case::RenameFile | Case::RenameToNewDirectory => {
                tree.files.remove("from.md");
                tree.put(self.target(), b"moves\n");
            }
            Case::RenameDirectory => {
                let moved = |key: &str| match key.strip_prefix("deep") {
                    Some(rest) => format!("{}{rest}", self.target()),
                    None => key.to_owned(),
                };
                tree.files = tree.files.iter().map(|(key, bytes)| (moved(key), bytes.clone())).collect();
                tree.dirs = tree.dirs.iter().map(|key| moved(key)).collect();
            }
            Case::Exchange => {
                tree.put("deep/one.md", OLD);
                tree.put(self.target(), b"one\n");
            }
            Case::MkdirNested => tree.put_dirs(self.target()),
            Case::TouchMark => {}
        }
        tree
    }

    /// Writes what is there before the operation, acknowledged file by file.
    pub(crate) fn prepare(self, disk: &SimDisk, store: &Blocking) -> Result<(), Error> {
        for (name, bytes) in &self.before().files {
            // One file grows, so that an old note about an append can come back.
            let (first, rest) = bytes.split_at(if name == "log.md" { bytes.len() / 2 } else { bytes.len() });
            let written = store.write(&key(name), first.to_vec(), Condition::Any)?;
            assert!(written.displaced.is_none());
            if !rest.is_empty() {
                let _ = store.append(&key(name), rest.to_vec(), Durability::Now)?;
            }
        }
        if self == Case::AppendLinked {
            disk.edit(|editor| {
                editor.link("linked.md", "other name of linked.md");
                editor.sync();
            });
        }
        Ok(())
    }
}

/// Returns the locator that everybody may use.
pub(crate) fn key(key: &str) -> Locator {
    Locator::parse(key).expect("the tests use valid keys")
}
