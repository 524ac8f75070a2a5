//! The files and directories of a simulated disk: as programs see them, and as they would be found if the
//! machine stopped.

mod content;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use haversack_store::device_local::fs::{Name, NodeKind, Stat, Target};

use self::content::Content;
use crate::random::Random;

/// The number of a file, directory or link; never used twice.
pub(crate) type InodeId = u64;

/// The root directory.
pub(crate) const ROOT: InodeId = 1;

/// New meanings of names, taking effect together: directory, name, what it leads to.
pub(crate) type Change = Vec<(InodeId, String, Option<InodeId>)>;

/// The thing at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file with this content.
    File(Vec<u8>),
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// Everything on a disk.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    nodes: BTreeMap<InodeId, Node>,
    /// Changes of names that may not be durable, in the order they were made.
    log: Vec<Change>,
    last_inode: InodeId,
    ticks: i64,
}

#[derive(Clone, Debug)]
struct Node {
    body: Body,
    mode: u32,
    modified: i64,
    changed: i64,
}

#[derive(Clone, Debug)]
enum Body {
    File(Content),
    Directory(Names),
    Link,
}

#[derive(Clone, Debug, Default)]
struct Names {
    volatile: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
}

impl Image {
    pub(crate) fn new() -> Image {
        let mut image = Image { nodes: BTreeMap::new(), log: Vec::new(), last_inode: 0, ticks: 0 };
        let root = image.new_directory();
        debug_assert_eq!(root, ROOT);
        image
    }

    pub(crate) fn new_file(&mut self, mode: u32) -> InodeId {
        self.add(Body::File(Content::default()), mode)
    }

    pub(crate) fn new_directory(&mut self) -> InodeId {
        self.add(Body::Directory(Names::default()), 0o700)
    }

    pub(crate) fn new_link(&mut self) -> InodeId {
        self.add(Body::Link, 0o777)
    }

    fn add(&mut self, body: Body, mode: u32) -> InodeId {
        self.last_inode += 1;
        let now = self.tick();
        self.nodes.insert(self.last_inode, Node { body, mode, modified: now, changed: now });
        self.last_inode
    }

    /// Advances the only clock there is: it ticks with every change.
    fn tick(&mut self) -> i64 {
        self.ticks += 1;
        self.ticks
    }

    fn node(&self, inode: InodeId) -> io::Result<&Node> {
        self.nodes.get(&inode).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names_of(&self, dir: InodeId) -> io::Result<&Names> {
        match &self.node(dir)?.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) | Body::Link => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn content_of(&self, file: InodeId) -> io::Result<&Content> {
        match &self.node(file)?.body {
            Body::File(content) => Ok(content),
            Body::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
            Body::Link => Err(link_in_the_way()),
        }
    }

    fn write_content<T>(&mut self, file: InodeId, write: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        self.content_of(file)?;
        let now = self.tick();
        match self.nodes.get_mut(&file) {
            Some(Node { body: Body::File(content), modified, changed, .. }) => {
                (*modified, *changed) = (now, now);
                Ok(write(content))
            }
            _ => unreachable!("it was a file a moment ago"),
        }
    }

    // Content.

    pub(crate) fn read(&self, file: InodeId) -> io::Result<Vec<u8>> {
        Ok(self.content_of(file)?.bytes().to_vec())
    }

    pub(crate) fn append(&mut self, file: InodeId, bytes: &[u8]) -> io::Result<()> {
        self.write_content(file, |content| content.append(bytes))
    }

    pub(crate) fn truncate(&mut self, file: InodeId, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.write_content(file, |content| content.resize(size))
    }

    pub(crate) fn sync_file(&mut self, file: InodeId) -> io::Result<()> {
        self.content_of(file)?;
        if let Some(Node { body: Body::File(content), .. }) = self.nodes.get_mut(&file) {
            content.sync();
        }
        Ok(())
    }

    // Names.

    pub(crate) fn child(&self, dir: InodeId, name: &str) -> Option<InodeId> {
        self.names_of(dir).ok()?.volatile.get(name).copied()
    }

    /// Returns what `name` leads to, or why that cannot be told.
    pub(crate) fn find(&self, dir: InodeId, name: &str) -> io::Result<InodeId> {
        self.names_of(dir)?.volatile.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn find_dir(&self, dir: InodeId, name: &str) -> io::Result<InodeId> {
        let inode = self.find(dir, name)?;
        self.names_of(inode).map(|_| inode)
    }

    /// Returns the file to open for reading: anything but a link.
    pub(crate) fn find_readable(&self, dir: InodeId, name: &str) -> io::Result<InodeId> {
        let inode = self.find(dir, name)?;
        match self.node(inode)?.body {
            Body::Link => Err(link_in_the_way()),
            Body::File(_) | Body::Directory(_) => Ok(inode),
        }
    }

    /// Returns the file to open for writing: nothing but a file.
    pub(crate) fn find_writable(&self, dir: InodeId, name: &str) -> io::Result<InodeId> {
        let inode = self.find(dir, name)?;
        self.content_of(inode).map(|_| inode)
    }

    pub(crate) fn is_file(&self, inode: InodeId) -> bool {
        self.content_of(inode).is_ok()
    }

    /// Fails unless a new name can be made in `dir`.
    pub(crate) fn expect_free(&self, dir: InodeId, name: &str) -> io::Result<()> {
        let names = self.names_of(dir)?;
        // A directory that was removed is still open for us, but nothing can be made in it.
        if dir != ROOT && self.links(dir) == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        match names.volatile.contains_key(name) {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => Ok(()),
        }
    }

    pub(crate) fn rename(
        &mut self,
        from: (InodeId, &str),
        to: (InodeId, &str),
        target: Target,
    ) -> io::Result<()> {
        let moved = self.find(from.0, from.1)?;
        let (from_name, to_name) = (from.1.to_owned(), to.1.to_owned());
        match target {
            Target::Free => self.expect_free(to.0, to.1)?,
            Target::Exchanged => {
                let other = self.find(to.0, to.1)?;
                self.change(vec![(from.0, from_name, Some(other)), (to.0, to_name, Some(moved))]);
                return Ok(());
            }
            Target::Replaced => match self.expect_free(to.0, to.1) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let replaced = self.find(to.0, to.1)?;
                    // Two names of one file: the system says yes and does nothing.
                    if replaced == moved {
                        return Ok(());
                    }
                    self.check_replace(moved, replaced)?;
                }
                result => result?,
            },
        }
        self.change(vec![(from.0, from_name, None), (to.0, to_name, Some(moved))]);
        Ok(())
    }

    fn check_replace(&self, moved: InodeId, replaced: InodeId) -> io::Result<()> {
        match (self.names_of(moved).is_ok(), self.names_of(replaced)) {
            (false, Ok(_)) => Err(io::ErrorKind::IsADirectory.into()),
            (true, Err(_)) => Err(io::ErrorKind::NotADirectory.into()),
            (true, Ok(names)) if !names.volatile.is_empty() => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn unlink(&mut self, dir: InodeId, name: &str) -> io::Result<()> {
        let inode = self.find(dir, name)?;
        if self.names_of(inode).is_ok() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.change(vec![(dir, name.to_owned(), None)]);
        Ok(())
    }

    pub(crate) fn remove_dir(&mut self, dir: InodeId, name: &str) -> io::Result<()> {
        let inode = self.find_dir(dir, name)?;
        if !self.names_of(inode)?.volatile.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change(vec![(dir, name.to_owned(), None)]);
        Ok(())
    }

    /// Changes names now; they become durable when one of their directories is synced.
    pub(crate) fn change(&mut self, change: Change) {
        let now = self.tick();
        for (dir, name, inode) in &change {
            if let Some(node) = self.nodes.get_mut(dir) {
                (node.modified, node.changed) = (now, now);
                if let Body::Directory(names) = &mut node.body {
                    set(&mut names.volatile, name, *inode);
                }
            }
        }
        self.log.push(change);
    }

    pub(crate) fn sync_dir(&mut self, dir: InodeId) -> io::Result<()> {
        self.names_of(dir)?;
        let mut dirs = BTreeSet::from([dir]);
        let (mut synced, mut left) = (Vec::new(), Vec::new());
        // Backwards, so that what came before a synced change in any of its directories comes along.
        for change in std::mem::take(&mut self.log).into_iter().rev() {
            if change.iter().any(|(dir, ..)| dirs.contains(dir)) {
                dirs.extend(change.iter().map(|(dir, ..)| *dir));
                synced.push(change);
            } else {
                left.push(change);
            }
        }
        synced.into_iter().rev().for_each(|change| self.make_durable(&change));
        self.log = left.into_iter().rev().collect();
        Ok(())
    }

    fn make_durable(&mut self, change: &Change) {
        for (dir, name, inode) in change {
            if let Some(Node { body: Body::Directory(names), .. }) = self.nodes.get_mut(dir) {
                set(&mut names.durable, name, *inode);
            }
        }
    }

    pub(crate) fn sync_all(&mut self) {
        for change in std::mem::take(&mut self.log) {
            self.make_durable(&change);
        }
        for node in self.nodes.values_mut() {
            if let Body::File(content) = &mut node.body {
                content.sync();
            }
        }
    }

    /// Stops the machine: what was not synced is decided by chance.
    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        let mut lost = BTreeSet::new();
        for change in std::mem::take(&mut self.log) {
            let survives = random.coin() && !change.iter().any(|(dir, ..)| lost.contains(dir));
            if survives {
                self.make_durable(&change);
            } else {
                lost.extend(change.iter().map(|(dir, ..)| *dir));
            }
        }
        for node in self.nodes.values_mut() {
            match &mut node.body {
                Body::File(content) => content.lose_power(random),
                Body::Directory(names) => names.volatile.clone_from(&names.durable),
                Body::Link => {}
            }
        }
        let reachable = self.reachable();
        self.nodes.retain(|inode, _| reachable.contains(inode));
    }

    fn reachable(&self) -> BTreeSet<InodeId> {
        let (mut reachable, mut left) = (BTreeSet::new(), vec![ROOT]);
        while let Some(inode) = left.pop() {
            if reachable.insert(inode) {
                left.extend(self.names_of(inode).into_iter().flat_map(|names| names.volatile.values()));
            }
        }
        reachable
    }

    // Looking.

    pub(crate) fn stat(&self, inode: InodeId) -> io::Result<Stat> {
        let node = self.node(inode)?;
        let size = match &node.body {
            Body::File(content) => content.bytes().len() as u64,
            Body::Directory(_) | Body::Link => 0,
        };
        // Not whole seconds: those would look like a filesystem that counts in seconds.
        let moment = |tick: i64| 1_000_000_000 + tick * 1_000 + 1;
        Ok(Stat {
            kind: node.kind(),
            size,
            mode: node.mode,
            links: self.links(inode),
            inode,
            device: 1,
            modified_ns: moment(node.modified),
            changed_ns: moment(node.changed),
        })
    }

    /// Returns how many names lead to `inode`.
    fn links(&self, inode: InodeId) -> u64 {
        let all = self.nodes.keys().filter_map(|dir| self.names_of(*dir).ok());
        all.flat_map(|names| names.volatile.values()).filter(|child| **child == inode).count() as u64
    }

    pub(crate) fn names(&self, dir: InodeId, limit: usize) -> io::Result<Vec<Name>> {
        let names = self.names_of(dir)?.volatile.iter().take(limit);
        names
            .map(|(name, inode)| Ok(Name { text: Ok(name.clone()), kind: self.node(*inode)?.kind() }))
            .collect()
    }

    /// Returns the directory of `path` and the name in it; `None` if the directory is not there.
    pub(crate) fn resolve<'p>(&self, path: &'p str) -> Option<(InodeId, &'p str)> {
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        let segments = parents.split('/').filter(|segment| !segment.is_empty());
        let dir = segments.into_iter().try_fold(ROOT, |dir, segment| self.child(dir, segment))?;
        self.names_of(dir).ok().map(|_| (dir, name))
    }

    pub(crate) fn look(&self, path: &str) -> Option<Seen> {
        let (dir, name) = self.resolve(path)?;
        self.child(dir, name).map(|inode| self.seen(inode))
    }

    fn seen(&self, inode: InodeId) -> Seen {
        match &self.nodes[&inode].body {
            Body::File(content) => Seen::File(content.bytes().to_vec()),
            Body::Directory(_) => Seen::Directory,
            Body::Link => Seen::Link,
        }
    }

    /// Returns everything below the root by its path.
    pub(crate) fn tree(&self) -> BTreeMap<String, Seen> {
        let (mut tree, mut left) = (BTreeMap::new(), vec![(ROOT, String::new())]);
        while let Some((dir, prefix)) = left.pop() {
            for (name, inode) in self.names_of(dir).into_iter().flat_map(|names| &names.volatile) {
                let seen = self.seen(*inode);
                if seen == Seen::Directory {
                    left.push((*inode, format!("{prefix}{name}/")));
                }
                tree.insert(format!("{prefix}{name}"), seen);
            }
        }
        tree
    }
}

impl Node {
    fn kind(&self) -> NodeKind {
        match self.body {
            Body::File(_) => NodeKind::File,
            Body::Directory(_) => NodeKind::Directory,
            Body::Link => NodeKind::Link,
        }
    }
}

fn set(names: &mut BTreeMap<String, InodeId>, name: &str, inode: Option<InodeId>) {
    match inode {
        Some(inode) => names.insert(name.to_owned(), inode),
        None => names.remove(name),
    };
}

fn link_in_the_way() -> io::Error {
    io::Error::other("a symbolic link is in the way")
}
