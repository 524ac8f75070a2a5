//! The contract of a storage: the verbs over locators.
//!
//! # Invariants
//! Each is a case of the [conformance suite](crate#conformance), named in brackets.
//!
//! 1. Bytes come back exactly as they went in (`exact_bytes`, `large_object`).
//! 2. A reader sees a complete old or a complete new object (`readers_never_see_half`); the tail of an
//!    append under way excepted, and what is being prepared.
//! 3. A conditional write that does not hold changes nothing (`update_if_match`, `create_if_absent`).
//! 4. Of racing conditional writes exactly those win that saw the state they replaced
//!    (`counter_of_sixteen`, `racing_creates`).
//! 5. No write, rename or delete destroys content that its caller did not name or see: what another
//!    program put there meanwhile is returned as [`Displaced`] or makes the call a
//!    [`Conflict`](crate::ErrorKind::Conflict).
//! 6. An acknowledged call is durable, if the backend declares so (`survives_reopening`); an append
//!    with [`Durability::AtBarrier`] only after the next [`Backend::barrier`].
//! 7. Nothing outside the root is touched, whatever the names and links inside it.
//!
//! A backend drives itself: its futures complete under any executor, so that neither the engine nor
//! [`Blocking`](crate::Blocking) needs to know one.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_lite::Stream;

use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::version::{Fingerprint, TouchMark, Version};

/// The pages of a scan, one by one.
pub type Pages<'a> = Pin<Box<dyn Stream<Item = Result<Page>> + Send + 'a>>;

/// The future of a method of [`Backend`].
pub type BackendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A storage of bytes.
///
/// Only what a backend must decide is here; conveniences are in [`BackendExt`](crate::BackendExt).
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns the bytes at `locator` and the version they are.
    ///
    /// Nothing there is [`NotFound`](crate::ErrorKind::NotFound), a directory is
    /// [`Invalid`](crate::ErrorKind::Invalid).
    async fn read(&self, locator: &Locator) -> Result<Object>;

    /// Replaces or creates the object, atomically: no reader sees a part-written one.
    ///
    /// Directories on the way are made. A condition that does not hold is
    /// [`Conflict`](crate::ErrorKind::Conflict) and changes nothing. A new name that some platform cannot hold,
    /// or that differs from an existing one only by case, is [`Invalid`](crate::ErrorKind::Invalid).
    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written>;

    /// Writes objects that no reader looks for before this returns; then all of them are complete and durable.
    ///
    /// Only names of our own can be prepared, anything else is [`Invalid`](crate::ErrorKind::Invalid); what is there is replaced.
    /// After an error or a crash any of them may be there, in part too: that is what makes it cheaper than as many writes.
    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        check_own(&objects)?;
        for (locator, bytes) in objects {
            let _ = self.write(&locator, bytes, Condition::Any).await?;
        }
        Ok(())
    }

    /// Adds bytes to the end of the object, creating it if need be.
    ///
    /// Appends of several writers never mix; either all of `bytes` is added or, on an error, none.
    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended>;

    /// Makes every append before it durable, and every name that a process gave or took before it died.
    async fn barrier(&self) -> Result<()>;

    /// Returns the immediate children, sorted by key; none if `locator` is absent or an object.
    async fn list(&self, locator: &Locator) -> Result<Listing>;

    /// Returns every object at or below `prefix` whose key is greater than `after`, in key order.
    ///
    /// Contents are not read. What is written meanwhile may or may not be seen.
    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a>;

    /// Returns what is known about the object or directory without reading it.
    ///
    /// Nothing there is [`NotFound`](crate::ErrorKind::NotFound).
    async fn info(&self, locator: &Locator) -> Result<Info>;

    /// Returns a mark after which a fingerprint taken earlier can be trusted.
    ///
    /// See [`Fingerprint::is_settled`].
    async fn touch_mark(&self) -> Result<TouchMark>;

    /// Removes an object or an empty directory.
    ///
    /// With [`Condition::Any`] deleting what is not there succeeds; with [`Condition::Matches`] it is a
    /// [`Conflict`](crate::ErrorKind::Conflict). A directory with something in it is
    /// [`Invalid`](crate::ErrorKind::Invalid). With [`Condition::Absent`] only an empty directory is removed: an object
    /// there is a [`Conflict`](crate::ErrorKind::Conflict) and stays, and if nothing is there the call succeeds.
    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()>;

    /// Moves an object or a directory to a name that is free; directories on the way are made.
    ///
    /// If the target exists it is a [`Conflict`](crate::ErrorKind::Conflict) and nothing moves.
    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()>;

    /// Lets two objects change places, in one step: no reader sees either name without an object.
    ///
    /// A caller that prepares new content beside an object and exchanges the two can tell afterwards if the exchange
    /// happened, from the place of the new content. It also holds the displaced content, by any writer. If one of the two is missing, it is
    /// [`NotFound`](crate::ErrorKind::NotFound), a directory is [`Invalid`](crate::ErrorKind::Invalid); a storage that
    /// cannot do it is [`Unsupported`](crate::ErrorKind::Unsupported).
    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()>;

    /// Makes a directory and those above it; one that is there already is fine.
    async fn mkdir(&self, locator: &Locator) -> Result<()>;

    /// Takes the named lock of this place, shared by all processes, waiting at most `wait`.
    ///
    /// Names are lower-case letters, digits and dashes. A lock that stays taken is
    /// [`Busy`](crate::ErrorKind::Busy). It is released when the guard is dropped or the process ends.
    /// Locks order the callers that take them. They do not prevent reads or writes.
    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard>;

    /// Returns what this backend promises.
    fn capabilities(&self) -> Capabilities;

    /// Returns how this backend reconciles writes that did not see each other.
    fn conflict_strategy(&self) -> ConflictStrategy;
}

/// An object as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The content.
    pub bytes: Bytes,
    /// The state it is, for a later [`Condition::Matches`].
    pub version: Version,
}

/// The condition of a write or delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    Any,
    /// No object may be there.
    Absent,
    /// Exactly this state must be there.
    Matches(Version),
}

/// When an append must have reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before the call returns.
    Now,
    /// Before the next [`Backend::barrier`] returns.
    AtBarrier,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "displaced content belongs to another program"]
pub struct Written {
    /// The state that was written.
    pub version: Version,
    /// Content that another program put there after the state in the condition.
    pub displaced: Option<Displaced>,
}

/// Content of another program that a write moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// The content.
    pub bytes: Bytes,
    /// Its place until the caller has merged it and deletes it.
    pub kept: Locator,
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "displaced content belongs to another program"]
pub struct Appended {
    /// The size of the object before, which is where the appended bytes begin.
    pub offset: u64,
    /// Content that another program put there, if the append had to replace the object.
    pub displaced: Option<Displaced>,
}

/// The immediate children of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The children, sorted by key.
    pub entries: Vec<Entry>,
    /// Entries that cannot be served.
    pub odd: Vec<Odd>,
}

/// One child of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its locator.
    pub locator: Locator,
    /// Its kind.
    pub kind: EntryKind,
}

/// The thing at a locator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// An object with content.
    File,
    /// A directory.
    Directory,
}

/// A part of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The objects, in key order.
    pub infos: Vec<Info>,
    /// Entries that cannot be served.
    pub odd: Vec<Odd>,
}

/// Something in the place of an object that cannot be served as one; it is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// Its locator, if it is in the place of an object or directory. The content there and below was not read, and is not absent.
    pub at: Option<Locator>,
    /// Its name, made printable.
    pub shown: String,
    /// Why it is not served.
    pub why: String,
}

/// An object's properties that are known without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its locator.
    pub locator: Locator,
    /// Its kind.
    pub kind: EntryKind,
    /// The size of the content; 0 for a directory.
    pub size_bytes: u64,
    /// When it was last changed, for display and retention only.
    pub modified: Option<SystemTime>,
    /// Its version, where the backend knows it without reading.
    pub version: Option<Version>,
    /// A mark that changes when the content does.
    pub fingerprint: Fingerprint,
}

/// A lock that is held until this is dropped.
#[must_use = "dropping the guard releases the lock"]
pub struct Guard {
    _held: Box<dyn Any + Send + Sync>,
}

impl Guard {
    /// Returns a guard that releases by dropping `held`.
    pub fn new(held: impl Any + Send + Sync) -> Guard {
        Guard { _held: Box::new(held) }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Refuses to prepare objects that are not ours: half of one could be seen.
pub(crate) fn check_own(objects: &[(Locator, Bytes)]) -> Result<()> {
    match objects.iter().find(|(locator, _)| !locator.is_reserved()) {
        None => Ok(()),
        Some((locator, _)) => {
            let message = "only names of our own can be prepared";
            Err(Error::new(ErrorKind::Invalid, Operation::Write, locator, message))
        }
    }
}
