//! A program that knows nothing of us: it takes no lock and acts between any two of our calls.

use crate::image::{Image, InodeId, Seen};

/// The actions of another program on a [`SimDisk`](crate::SimDisk), by path from the root.
///
/// Nothing it does is synced unless it says so. A directory it names must be there.
#[derive(Debug)]
pub struct Editor<'a> {
    image: &'a mut Image,
}

/// A file that a program has open, whatever becomes of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(InodeId);

impl<'a> Editor<'a> {
    pub(crate) fn new(image: &'a mut Image) -> Editor<'a> {
        Editor { image }
    }

    /// Opens the file at `path`.
    pub fn open(&mut self, path: &str) -> Descriptor {
        let (dir, name) = self.place(path);
        Descriptor(self.image.child(dir, name).expect("the file to open is there"))
    }

    /// Replaces the whole content through a descriptor.
    pub fn write(&mut self, descriptor: Descriptor, bytes: &[u8]) {
        let result =
            self.image.truncate(descriptor.0, 0).and_then(|()| self.image.append(descriptor.0, bytes));
        result.expect("an open file can be written");
    }

    /// Saves by writing another file and renaming it over `path`, or creates it.
    pub fn replace(&mut self, path: &str, bytes: &[u8]) {
        let (dir, name) = self.place(path);
        let file = self.image.new_file(0o644);
        self.image.append(file, bytes).expect("a new file can be written");
        self.image.change(vec![(dir, name.to_owned(), Some(file))]);
    }

    /// Saves by cutting the file at `path` to nothing and writing it anew, or creates it.
    pub fn overwrite(&mut self, path: &str, bytes: &[u8]) {
        match self.file_at(path) {
            Some(file) => self.write(Descriptor(file), bytes),
            None => self.replace(path, bytes),
        }
    }

    /// Adds to the end of the file at `path`, or creates it.
    pub fn append(&mut self, path: &str, bytes: &[u8]) {
        match self.file_at(path) {
            Some(file) => self.image.append(file, bytes).expect("a file can be written"),
            None => self.replace(path, bytes),
        }
    }

    /// Removes the name `path`, if it is there.
    pub fn remove(&mut self, path: &str) {
        let (dir, name) = self.place(path);
        if self.image.child(dir, name).is_some() {
            self.image.change(vec![(dir, name.to_owned(), None)]);
        }
    }

    /// Gives the file at `path` the name `new` in the same directory, in one step.
    pub fn rename(&mut self, path: &str, new: &str) {
        let file = self.file_at(path).expect("the file to rename is there");
        let ((dir, name), (_, new_name)) = (self.place(path), self.place(new));
        self.image.change(vec![(dir, name.to_owned(), None), (dir, new_name.to_owned(), Some(file))]);
    }

    /// Puts a symbolic link in the place of whatever is at `path`.
    pub fn replace_by_link(&mut self, path: &str) {
        let (dir, name) = self.place(path);
        let link = self.image.new_link();
        self.image.change(vec![(dir, name.to_owned(), Some(link))]);
    }

    /// Puts an empty directory at `path`, in the place of whatever is there.
    pub fn make_dir(&mut self, path: &str) {
        let (dir, name) = self.place(path);
        let made = self.image.new_directory();
        self.image.change(vec![(dir, name.to_owned(), Some(made))]);
    }

    /// Gives the file at `path` a second name.
    pub fn link(&mut self, path: &str, second: &str) {
        let file = self.file_at(path).expect("the file to link is there");
        let (dir, name) = self.place(second);
        self.image.change(vec![(dir, name.to_owned(), Some(file))]);
    }

    /// Makes the file at `path` durable, and the names of the directories on the way to it; if it is gone, that it is.
    pub fn sync_at(&mut self, path: &str) {
        if let Some(file) = self.file_at(path) {
            self.image.sync_file(file).expect("a file can be synced");
        }
        let ends = path.match_indices('/').map(|(at, _)| at + 1);
        for end in std::iter::once(0).chain(ends) {
            let (dir, _) = self.place(&path[..end]);
            self.image.sync_dir(dir).expect("a directory can be synced");
        }
    }

    /// Makes everything on the disk durable.
    pub fn sync(&mut self) {
        self.image.sync_all();
    }

    /// Returns what is at `path` now.
    pub fn look(&self, path: &str) -> Option<Seen> {
        self.image.look(path)
    }

    fn file_at(&self, path: &str) -> Option<InodeId> {
        let (dir, name) = self.image.resolve(path)?;
        let inode = self.image.child(dir, name)?;
        self.image.is_file(inode).then_some(inode)
    }

    fn place<'p>(&self, path: &'p str) -> (InodeId, &'p str) {
        self.image.resolve(path).expect("the directory is there")
    }
}
