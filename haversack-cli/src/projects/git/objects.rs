//! Commits in a repository's own object database, read without starting git.
//!
//! A checkout proves which project it is by a commit that the project's record names. The look-up of one commit:
//!
//! 1. Read the loose object `objects/ab/cdef…`, if it is there.
//! 2. Otherwise search every `objects/pack/*.idx` for the name, read the entry in the `.pack` beside it, and apply its deltas.
//! 3. Hash the content. Only content with the right hash counts.
//!
//! Nothing outside of the repository counts: alternates are not read and links are not followed. An unpacked archive can name the
//! objects of another checkout on this machine, but it cannot contain them.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ring::digest;

/// The largest object that is read; a commit has a few hundred bytes.
const MAX_OBJECT_BYTES: usize = 4 * 1024 * 1024;

/// The longest chain of deltas; git itself makes chains of at most 50.
const MAX_DELTAS: usize = 64;

/// The number of packs that are searched.
const MAX_PACKS: usize = 1_000;

/// The types of entries in a pack.
const COMMIT: u8 = 1;
const DELTA_BY_OFFSET: u8 = 6;
const DELTA_BY_NAME: u8 = 7;

/// The name of an object: a SHA-1 or SHA-256 hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectId(Vec<u8>);

impl ObjectId {
    /// Reads a name of 40 or 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<ObjectId> {
        if !matches!(text.len(), 40 | 64) || !text.is_ascii() {
            return None;
        }
        let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok());
        pairs.collect::<Option<Vec<u8>>>().map(ObjectId)
    }

    /// Returns true if this is the name of a commit with this content.
    fn is_name_of(&self, commit: &[u8]) -> bool {
        let algorithm = if self.0.len() == 20 { &digest::SHA1_FOR_LEGACY_USE_ONLY } else { &digest::SHA256 };
        let mut hash = digest::Context::new(algorithm);
        hash.update(format!("commit {}\0", commit.len()).as_bytes());
        hash.update(commit);
        hash.finish().as_ref() == self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The object database of one repository.
pub(crate) struct Objects {
    directory: PathBuf,
    packs: OnceCell<Vec<Pack>>,
}

impl Objects {
    /// Returns the object database below the directory that git keeps for a repository; `None` if it is a link or not there.
    pub(crate) fn of(common: &Path) -> Option<Objects> {
        let directory = common.join("objects");
        let is_own = is_directory(common) && is_directory(&directory);
        is_own.then(|| Objects { directory, packs: OnceCell::new() })
    }

    /// Returns the content of a commit, if the database has it and its hash is right.
    pub(crate) fn commit(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let found = self.loose(id).or_else(|| self.packs().iter().find_map(|pack| pack.commit(id)));
        found.filter(|content| id.is_name_of(content))
    }

    fn loose(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let name = id.to_string();
        let directory = self.directory.join(&name[..2]);
        let file = directory.join(&name[2..]);
        if !is_directory(&directory) || !is_file(&file) {
            return None;
        }
        let mut packed = Vec::new();
        File::open(file).ok()?.take(MAX_OBJECT_BYTES as u64).read_to_end(&mut packed).ok()?;
        let content = inflate(&packed, MAX_OBJECT_BYTES)?;
        let body = content.iter().position(|byte| *byte == 0)? + 1;
        content.starts_with(b"commit ").then(|| content[body..].to_vec())
    }

    fn packs(&self) -> &[Pack] {
        self.packs.get_or_init(|| {
            let directory = self.directory.join("pack");
            if !is_directory(&directory) {
                return Vec::new();
            }
            let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let indexes = entries.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
            indexes.take(MAX_PACKS).filter_map(|index| Pack::open(&index)).collect()
        })
    }
}

/// A pack and its index.
struct Pack {
    index: RefCell<File>,
    pack: RefCell<File>,
    /// For each first byte, the number of names up to and including that byte.
    fanout: Vec<u32>,
}

/// An entry of a pack, before its deltas are applied.
struct Entry {
    kind: u8,
    size: usize,
    /// The offset of its data.
    data: u64,
}

impl Pack {
    fn open(index: &Path) -> Option<Pack> {
        let pack = index.with_extension("pack");
        if !is_file(index) || !is_file(&pack) {
            return None;
        }
        let (mut index, pack) = (File::open(index).ok()?, File::open(pack).ok()?);
        let start = read_at(&mut index, 0, 8 + 256 * 4)?;
        if start[..8] != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return None;
        }
        let fanout = start[8..].chunks_exact(4).map(number).collect();
        Some(Pack { index: RefCell::new(index), pack: RefCell::new(pack), fanout })
    }

    fn commit(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let (kind, content) = self.object(self.find(id)?, id.0.len(), MAX_DELTAS)?;
        (kind == COMMIT).then_some(content)
    }

    /// Returns the offset of an object in the pack.
    fn find(&self, id: &ObjectId) -> Option<u64> {
        let mut index = self.index.borrow_mut();
        let first = usize::from(*id.0.first()?);
        let all = u64::from(*self.fanout.last()?);
        let mut low = if first == 0 { 0 } else { u64::from(self.fanout[first - 1]) };
        let mut high = u64::from(self.fanout[first]);
        let (names, length) = (8 + 256 * 4, id.0.len() as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            let name = read_at(&mut index, names + middle * length, id.0.len())?;
            match name.as_slice().cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    // Behind the names: a checksum of four bytes each, offsets of four bytes each, then long offsets of eight bytes.
                    let offsets = names + all * (length + 4);
                    let offset = number(&read_at(&mut index, offsets + middle * 4, 4)?);
                    if offset & 0x8000_0000 == 0 {
                        return Some(u64::from(offset));
                    }
                    let long = offsets + all * 4 + u64::from(offset & 0x7fff_ffff) * 8;
                    let bytes = read_at(&mut index, long, 8)?;
                    return Some(u64::from(number(&bytes[..4])) << 32 | u64::from(number(&bytes[4..])));
                }
            }
        }
        None
    }

    /// Returns the type and content of the object at an offset.
    fn object(&self, offset: u64, name_bytes: usize, deltas_left: usize) -> Option<(u8, Vec<u8>)> {
        let Entry { kind, size, data } = self.entry(offset)?;
        let base = match kind {
            DELTA_BY_OFFSET => {
                let (distance, length) = distance(&self.read(data, 10)?)?;
                Some((offset.checked_sub(distance)?, data + length))
            }
            DELTA_BY_NAME => {
                let name = self.read(data, name_bytes).filter(|name| name.len() == name_bytes)?;
                Some((self.find(&ObjectId(name))?, data + name_bytes as u64))
            }
            _ => None,
        };
        let Some((base, data)) = base else {
            return Some((kind, self.inflated(data, size)?));
        };
        let (kind, base) = self.object(base, name_bytes, deltas_left.checked_sub(1)?)?;
        Some((kind, apply(&base, &self.inflated(data, size)?)?))
    }

    fn entry(&self, offset: u64) -> Option<Entry> {
        let start = self.read(offset, 16)?;
        let first = *start.first()?;
        let mut size = usize::from(first & 0x0f);
        let (mut shift, mut length) = (4, 1);
        let mut byte = first;
        while byte & 0x80 != 0 {
            byte = *start.get(length)?;
            size |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            length += 1;
        }
        (size <= MAX_OBJECT_BYTES).then_some(Entry {
            kind: (first >> 4) & 0x07,
            size,
            data: offset + length as u64,
        })
    }

    fn inflated(&self, offset: u64, size: usize) -> Option<Vec<u8>> {
        // Data that cannot be compressed grows a little.
        let packed = self.read(offset, size + size / 1_000 + 64)?;
        inflate(&packed, size).filter(|content| content.len() == size)
    }

    /// Reads up to so many bytes.
    fn read(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut pack = self.pack.borrow_mut();
        pack.seek(SeekFrom::Start(offset)).ok()?;
        let mut read = Vec::with_capacity(bytes);
        (&mut *pack).take(bytes as u64).read_to_end(&mut read).ok()?;
        Some(read)
    }
}

/// Reads the distance to the base of a delta; returns it and how many bytes it took.
fn distance(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut distance = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        distance = distance.checked_shl(7)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((distance, at as u64 + 1));
        }
        distance += 1;
    }
    None
}

/// Applies a delta to its base.
fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    let base_size = size(delta, &mut at)?;
    let result_size = size(delta, &mut at).filter(|size| *size <= MAX_OBJECT_BYTES)?;
    if base_size != base.len() {
        return None;
    }
    let mut result = Vec::with_capacity(result_size);
    while let Some(&instruction) = delta.get(at) {
        at += 1;
        if instruction & 0x80 == 0 {
            // Insert: so many bytes of the delta itself.
            let length = usize::from(instruction);
            result.extend_from_slice(delta.get(at..at.checked_add(length).filter(|_| length > 0)?)?);
            at += length;
        } else {
            // Copy: the bits say which bytes of offset and length follow.
            let mut part = |bits: std::ops::Range<u32>| {
                let mut value = 0;
                for (shift, bit) in bits.enumerate() {
                    if instruction & (1 << bit) != 0 {
                        value |= usize::from(*delta.get(at)?) << (8 * shift);
                        at += 1;
                    }
                }
                Some(value)
            };
            let (offset, length) = (part(0..4)?, part(4..7)?);
            let length = if length == 0 { 0x10000 } else { length };
            result.extend_from_slice(base.get(offset..offset.checked_add(length)?)?);
        }
        if result.len() > result_size {
            return None;
        }
    }
    (result.len() == result_size).then_some(result)
}

/// Reads a size in groups of seven bits, the lowest first.
fn size(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        size |= usize::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
}

fn inflate(packed: &[u8], max_bytes: usize) -> Option<Vec<u8>> {
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, max_bytes).ok()
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read_at(file: &mut File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut read = vec![0; bytes];
    file.read_exact(&mut read).ok()?;
    Some(read)
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nBegin\n";

    fn id_of(commit: &[u8]) -> ObjectId {
        let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(format!("commit {}\0", commit.len()).as_bytes());
        hash.update(commit);
        ObjectId(hash.finish().as_ref().to_vec())
    }

    /// Writes a loose object under any name.
    fn write_loose(common: &Path, id: &ObjectId, commit: &[u8]) {
        let name = id.to_string();
        let directory = common.join("objects").join(&name[..2]);
        fs::create_dir_all(&directory).expect("made");
        let content = [format!("commit {}\0", commit.len()).as_bytes(), commit].concat();
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&content, 6);
        fs::write(directory.join(&name[2..]), packed).expect("written");
    }

    #[test]
    fn loose_commit_counts_only_with_its_own_hash() {
        let common = tempfile::tempdir().expect("made");
        let id = id_of(TEXT);
        write_loose(common.path(), &id, TEXT);
        let objects = Objects::of(common.path()).expect("there");
        assert_eq!(objects.commit(&id).as_deref(), Some(TEXT));
        // Another commit under a name that it does not have.
        let other = id_of(b"tree 0\n\nSecret\n");
        assert_eq!(objects.commit(&other), None);
        write_loose(common.path(), &other, TEXT);
        assert_eq!(objects.commit(&other), None);
    }

    #[cfg(unix)]
    #[test]
    fn linked_objects_and_alternates_prove_nothing() {
        let (own, other) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        let id = id_of(TEXT);
        write_loose(own.path(), &id, TEXT);
        std::os::unix::fs::symlink(own.path().join("objects"), other.path().join("objects")).expect("linked");
        assert!(Objects::of(other.path()).is_none());
        let third = tempfile::tempdir().expect("made");
        fs::create_dir_all(third.path().join("objects/info")).expect("made");
        let alternates = own.path().join("objects").display().to_string();
        fs::write(third.path().join("objects/info/alternates"), alternates).expect("written");
        assert_eq!(Objects::of(third.path()).expect("there").commit(&id), None);
        let name = id.to_string();
        let whole = own.path().join("objects").join(&name[..2]);
        std::os::unix::fs::symlink(whole, third.path().join("objects").join(&name[..2])).expect("linked");
        assert_eq!(Objects::of(third.path()).expect("there").commit(&id), None);
    }

    #[test]
    fn deltas_are_applied() {
        let base = b"the lamp is white";
        // Base of 17 bytes, result of 16: copy 12 from 0, insert "red" and a newline.
        let delta = [17, 16, 0x90, 12, 4, b'r', b'e', b'd', b'\n'];
        assert_eq!(apply(base, &delta).as_deref(), Some(&b"the lamp is red\n"[..]));
        for broken in [&delta[..8], &[17, 16, 0x90, 18][..], &[16, 16][..], &[17, 1, 0][..], &[][..]] {
            assert_eq!(apply(base, broken), None, "{broken:?}");
        }
    }

    #[test]
    fn names_of_objects_are_hexadecimal() {
        let name = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(ObjectId::parse(name).expect("a name").to_string(), name);
        for bad in ["", "4b825d", &name[1..], &name.replace('4', "g"), &"ä".repeat(20)] {
            assert_eq!(ObjectId::parse(bad), None, "{bad}");
        }
    }

    /// Makes a repository with the system's git, if it is there; returns the names of its commits, the newest first.
    fn with_git(root: &Path, format: &str) -> Option<Vec<String>> {
        let git = |arguments: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.arg("-C").arg(root).args(arguments).env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1");
            for who in ["AUTHOR", "COMMITTER"] {
                git.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
            }
            git.output().ok().filter(|output| output.status.success())
        };
        git(&["init", "--quiet", &format!("--object-format={format}")])?;
        let long = "The lamp is white, the tower is high, and the sea is wide. ".repeat(20);
        for number in 0..20 {
            git(&["commit", "--quiet", "--allow-empty", "-m", &format!("{number}\n\n{long}")])?;
        }
        git(&["gc", "--quiet", "--aggressive"])?;
        let listed = git(&["rev-list", "HEAD"])?;
        Some(String::from_utf8(listed.stdout).expect("text").lines().map(str::to_owned).collect())
    }

    #[test]
    fn packed_commits_of_real_repositories_are_found() {
        for format in ["sha1", "sha256"] {
            let root = tempfile::tempdir().expect("made");
            let Some(commits) = with_git(root.path(), format) else {
                // Without git there is no pack to read.
                return;
            };
            let objects = Objects::of(&root.path().join(".git")).expect("there");
            for commit in &commits {
                let content = objects.commit(&ObjectId::parse(commit).expect("a name")).expect("found");
                assert!(content.starts_with(b"tree "), "{commit}");
            }
            let absent = commits[0].replace(['0', '1', '2'], "3");
            assert_eq!(objects.commit(&ObjectId::parse(&absent).expect("a name")), None);
        }
    }
}
