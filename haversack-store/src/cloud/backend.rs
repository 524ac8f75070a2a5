//! The backend over a container.
//!
//! # Invariants
//! 1. A write with a condition carries a mark of its own. If the answer is lost, or says that the condition did not hold, the mark that is
//!    there tells whether it was ours; only what a read shows not to be there is sent again, the same bytes under the same mark
//!    (`clouds::answers`). A conflict is certain: where ours may have been done and overtaken since, the answer is that it is not known.
//! 2. Only an object that is known not to be there is [`NotFound`](ErrorKind::NotFound): no container, no account and a proxy's own page are
//!    other answers (`clouds::refusals`).
//! 3. A key that is no locator is reported, and the rest of its page is served.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderValue;
use reqwest::{Method, Url};

use super::listing::{self, KeyPage, Listed};
use super::local_locks::LocalLocks;
use super::refusal::{refused, unanswered};
use super::service::{Query, Service};
use super::wire::{Answer, Ask, Repeat, Wire, chance};
use crate::backend::{
    Appended, Backend, Condition, Durability, Entry, EntryKind, Guard, Info, Listing, Object, Odd, Page,
    Pages, Written,
};
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::ext::BackendExt;
use crate::locator::Locator;
use crate::refuse::{check_rename, condition_failed, nothing_there, root_refused};
use crate::version::{Fingerprint, TouchMark, Version};

/// The guarantees of every cloud.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    concurrent_writers: true,
    conflict_files: false,
    encryption: false,
    sync: false,
    create_if_absent: true,
    update_if_match: true,
    conditional_delete: true,
    flat_append: false,
    empty_directories: false,
    tree: false,
    atomic_rename: false,
    exchange: false,
    durable: true,
    refuses_case_twins: false,
};

/// The largest object that is read or written; all of it is held in memory.
const MAX_OBJECT_BYTES: usize = 1024 * 1024 * 1024;

/// The largest page of a list.
const MAX_PAGE_BYTES: usize = 64 * 1024 * 1024;

/// The most times that an append starts again because another program wrote.
const MAX_APPENDS: u32 = 64;

/// The most times that a conditional write is sent after collisions.
const MAX_COLLISIONS: u32 = 8;

/// The most times that a conditional write is sent to a storage that does not tell the outcome.
const MAX_SILENT: u32 = 4;

/// The first pause of a writer that lost.
const STEP_ASIDE: Duration = Duration::from_millis(10);

/// Objects in a container of a cloud.
#[derive(Debug)]
pub(crate) struct Cloud {
    service: Service,
    pub(super) wire: Arc<Wire>,
    /// Keeps the processes of this machine apart; a cloud has no locks.
    locks: LocalLocks,
}

/// The result of a write without an answer.
enum Outcome {
    Ours(Version),
    Others(Version),
    Nothing,
}

impl Cloud {
    pub(crate) fn new(service: Service, wire: Wire, locks: &str) -> Cloud {
        let locks = LocalLocks::new(locks, service.base.as_ref());
        Cloud { service, wire: Arc::new(wire), locks }
    }

    fn ask(&self, method: Method, url: Url) -> Ask {
        Ask {
            method,
            url,
            headers: Vec::new(),
            body: Bytes::new(),
            repeat: Repeat::Freely,
            limit: MAX_OBJECT_BYTES,
        }
    }

    fn at(&self, method: Method, locator: &Locator) -> Ask {
        self.ask(method, self.service.object(&self.service.address.key(locator)))
    }

    async fn send(&self, operation: Operation, locator: &Locator, ask: Ask) -> Result<Answer> {
        let answered = self.wire.ask(ask).await;
        answered.map_err(|none| unanswered(operation, locator.as_str(), &self.service.address, none))
    }

    fn refused(&self, operation: Operation, locator: &Locator, answer: &Answer) -> Error {
        refused(operation, locator.as_str(), &self.service.address, answer)
    }

    /// Returns the version of an answer that must have one.
    fn version(&self, operation: Operation, locator: &Locator, answer: &Answer) -> Result<Version> {
        self.service.version(answer).ok_or_else(|| {
            let message = "the storage does not say which version it is";
            Error::new(ErrorKind::Unsupported, operation, locator, message)
        })
    }

    /// Learns by reading what became of the write with this mark.
    async fn learn(&self, operation: Operation, locator: &Locator, mark: &HeaderValue) -> Result<Outcome> {
        let answer = self.send(operation, locator, self.at(Method::HEAD, locator)).await?;
        if self.service.is_nothing_there(&answer) {
            return Ok(Outcome::Nothing);
        }
        if !answer.status.is_success() {
            return Err(self.refused(operation, locator, &answer));
        }
        let version = self.version(operation, locator, &answer)?;
        let is_ours = answer.headers.get(self.service.mark()) == Some(mark);
        Ok(if is_ours { Outcome::Ours(version) } else { Outcome::Others(version) })
    }

    async fn put(
        &self,
        operation: Operation,
        locator: &Locator,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Version> {
        if bytes.len() > MAX_OBJECT_BYTES {
            let message = format!("it is larger than {} MiB", MAX_OBJECT_BYTES / 1024 / 1024);
            return Err(Error::new(ErrorKind::Invalid, operation, locator, message));
        }
        let mark = mark()?;
        let mut ask = self.at(Method::PUT, locator);
        ask.body = bytes;
        ask.headers.extend(self.service.writing());
        if let Some(header) = self.service.condition(condition) {
            ask.repeat = Repeat::Never;
            ask.headers.push(header);
            ask.headers.push((self.service.mark(), mark.clone()));
        }
        let mut may_be_done = false;
        for times in 1.. {
            let trouble = match self.wire.ask(ask.clone()).await {
                Ok(answer) if answer.status.is_success() => return self.version(operation, locator, &answer),
                Ok(answer) if self.service.is_collision(&answer) => None,
                Ok(answer)
                    if self.service.is_condition_failed(&answer)
                        || self.service.is_nothing_there(&answer) =>
                {
                    Some(condition_failed(operation, locator, condition))
                }
                Ok(answer) => {
                    let error = self.refused(operation, locator, &answer);
                    // A server that failed may have done it before.
                    if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Internal) {
                        return Err(error);
                    }
                    Some(error)
                }
                Err(none) => {
                    let is_not_done = none.why.is_before_sending();
                    let error = unanswered(operation, locator.as_str(), &self.service.address, none);
                    if is_not_done {
                        return Err(error);
                    }
                    Some(error)
                }
            };
            if *condition == Condition::Any
                && let Some(error) = trouble
            {
                return Err(error);
            }
            may_be_done |= trouble.as_ref().is_some_and(|error| error.kind() != ErrorKind::Conflict);
            // The object itself tells if the write was done, and by which writer.
            let found = self.learn(operation, locator, &mark).await;
            let found = found.map_err(|error| {
                let tries = error.tries().max(times);
                unknown(operation, locator, error.with_tries(tries))
            })?;
            match (found, condition) {
                (Outcome::Ours(version), _) => return Ok(version),
                (Outcome::Others(version), Condition::Matches(expected)) if version == *expected => {}
                (Outcome::Nothing, Condition::Absent) => {}
                (Outcome::Others(_) | Outcome::Nothing, _) => {
                    let failed = condition_failed(operation, locator, condition);
                    // Our write may have been done, and another writer may have continued from there.
                    return Err(if may_be_done { unknown(operation, locator, failed) } else { failed });
                }
            }
            // As it was before: not done, unless it is still under way.
            match trouble {
                Some(error) if times >= MAX_SILENT => {
                    return Err(unknown(operation, locator, error.with_tries(times)));
                }
                None if times >= MAX_COLLISIONS => {
                    let message = "other writers were in the way again and again";
                    return Err(Error::new(ErrorKind::Busy, operation, locator, message));
                }
                Some(_) | None => step_aside(times).await,
            }
        }
        unreachable!("the tries are counted")
    }

    async fn page(&self, operation: Operation, locator: &Locator, query: Query<'_>) -> Result<KeyPage> {
        let mut ask = self.ask(Method::GET, self.service.list(query));
        ask.limit = MAX_PAGE_BYTES;
        let answer = self.send(operation, locator, ask).await?;
        if !answer.status.is_success() {
            return Err(self.refused(operation, locator, &answer));
        }
        listing::parse(self.service.address.provider, &answer.body).ok_or_else(|| {
            let message = "the storage's answer is not a list of objects";
            Error::new(ErrorKind::Internal, operation, locator, message)
        })
    }

    /// Returns true if there is an object below a place.
    async fn has_children(&self, operation: Operation, locator: &Locator) -> Result<bool> {
        let prefix = format!("{}/", self.service.address.key(locator));
        let page = self
            .page(operation, locator, Query { prefix: &prefix, most: Some(1), ..Query::default() })
            .await?;
        Ok(!page.objects.is_empty())
    }

    /// Returns what begins the keys of everything below a place.
    fn prefix_below(&self, locator: &Locator) -> String {
        let key = self.service.address.key(locator);
        if key.is_empty() { key } else { key + "/" }
    }

    /// Returns the place of a key, or why it has none.
    fn place(&self, key: &str) -> std::result::Result<Locator, Odd> {
        let odd = |why: String| Odd { at: None, shown: key.escape_debug().to_string(), why };
        let below =
            self.service.address.below(key).ok_or_else(|| odd("it is not below the prefix".to_owned()))?;
        let locator = Locator::from_stored_key(below).map_err(|reason| odd(reason.to_string()))?;
        if locator.is_root() { Err(odd("it has no name".to_owned())) } else { Ok(locator) }
    }

    fn info_of(&self, locator: Locator, listed: &Listed) -> Info {
        let version = listed.version.as_deref().map(Version::new);
        let told = format!("{:?} {} {:?}", listed.version, listed.size_bytes, listed.modified);
        Info {
            locator,
            kind: EntryKind::File,
            size_bytes: listed.size_bytes,
            modified: listed.modified,
            fingerprint: Fingerprint::of_version(version.as_ref().unwrap_or(&Version::new(told))),
            version,
        }
    }

    async fn remove(&self, operation: Operation, locator: &Locator, condition: &Condition) -> Result<()> {
        let mut ask = self.at(Method::DELETE, locator);
        if let Some(header) = self.service.condition(condition) {
            ask.repeat = Repeat::Never;
            ask.headers.push(header);
        }
        let refused = match self.send(operation, locator, ask).await {
            Ok(answer) if answer.status.is_success() => return Ok(()),
            Ok(answer) if self.service.is_nothing_there(&answer) => {
                return match condition {
                    Condition::Any => Ok(()),
                    Condition::Absent | Condition::Matches(_) => {
                        Err(condition_failed(operation, locator, condition))
                    }
                };
            }
            Ok(answer) if self.service.is_condition_failed(&answer) || self.service.is_collision(&answer) => {
                return Err(condition_failed(operation, locator, condition));
            }
            Ok(answer) => self.refused(operation, locator, &answer),
            Err(error) => error,
        };
        let Condition::Matches(expected) = condition else { return Err(refused) };
        if refused.kind() != ErrorKind::Unavailable {
            return Err(refused);
        }
        match self.learn(operation, locator, &HeaderValue::from_static("")).await? {
            Outcome::Nothing => Ok(()),
            Outcome::Ours(version) | Outcome::Others(version) if version == *expected => Err(refused),
            Outcome::Ours(_) | Outcome::Others(_) => Err(condition_failed(operation, locator, condition)),
        }
    }

    /// Moves one object to a name that is free.
    async fn move_object(&self, from: &Locator, to: &Locator) -> Result<()> {
        let object = self.read(from).await?;
        self.put(Operation::Rename, to, object.bytes, &Condition::Absent).await?;
        self.remove(Operation::Rename, from, &Condition::Matches(object.version)).await
    }
}

/// Returns the error for a write that may have been done or not.
fn unknown(operation: Operation, locator: &Locator, error: Error) -> Error {
    let message = "the storage did not answer whether it carried out the request";
    let tries = error.tries();
    Error::new(ErrorKind::Unavailable, operation, locator, message).with_tries(tries).with_source(error)
}

/// Returns a mark that no other write has.
fn mark() -> Result<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = "the system has no randomness";
        Error::at(ErrorKind::Internal, Operation::Write, "a mark", message).with_source(error)
    })?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(HeaderValue::from_str(&text).expect("letters and digits"))
}

/// Lets others go first, longer each time.
async fn step_aside(times: u32) {
    let wait = STEP_ASIDE * 2_u32.pow(times.min(6));
    let wait = wait.mul_f64(chance());
    super::runtime::run(async move { tokio::time::sleep(wait).await }).await;
}

#[async_trait]
impl Backend for Cloud {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        if locator.is_root() {
            return Err(crate::refuse::is_a_directory(Operation::Read, locator));
        }
        let answer = self.send(Operation::Read, locator, self.at(Method::GET, locator)).await?;
        if answer.status.is_success() {
            let version = self.version(Operation::Read, locator, &answer)?;
            return Ok(Object { version, bytes: answer.body });
        }
        if self.service.is_nothing_there(&answer) {
            return Err(nothing_there(Operation::Read, locator));
        }
        Err(self.refused(Operation::Read, locator, &answer))
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        check_name(Operation::Write, locator)?;
        let version = self.put(Operation::Write, locator, bytes, &condition).await?;
        Ok(Written { version, displaced: None })
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, _durability: Durability) -> Result<Appended> {
        check_name(Operation::Append, locator)?;
        for times in 1..=MAX_APPENDS {
            let (before, condition) = match self.read(locator).await {
                Ok(object) => (object.bytes, Condition::Matches(object.version)),
                Err(error) if error.kind() == ErrorKind::NotFound => (Bytes::new(), Condition::Absent),
                Err(error) => return Err(error),
            };
            let mut whole = BytesMut::with_capacity(before.len() + bytes.len());
            whole.extend_from_slice(&before);
            whole.extend_from_slice(&bytes);
            match self.put(Operation::Append, locator, whole.freeze(), &condition).await {
                Ok(_) => return Ok(Appended { offset: before.len() as u64, displaced: None }),
                Err(error) if error.kind() == ErrorKind::Conflict => step_aside(times).await,
                Err(error) => return Err(error),
            }
        }
        let message = "other writers were in the way again and again";
        Err(Error::new(ErrorKind::Busy, Operation::Append, locator, message))
    }

    async fn barrier(&self) -> Result<()> {
        Ok(())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let prefix = self.prefix_below(locator);
        let mut listing = Listing::default();
        let mut token: Option<String> = None;
        loop {
            let query = Query { prefix: &prefix, shallow: true, token: token.as_deref(), ..Query::default() };
            let page = self.page(Operation::List, locator, query).await?;
            let files = page.objects.iter().filter(|object| !is_folder_mark(&object.key));
            let files = files.map(|object| (object.key.as_str(), EntryKind::File));
            let directories = page.prefixes.iter();
            let directories = directories.map(|prefix| (prefix.trim_end_matches('/'), EntryKind::Directory));
            for (key, kind) in files.chain(directories) {
                match self.place(key) {
                    Ok(place) if place.is_reserved() && !locator.is_reserved() => {}
                    Ok(place) => listing.entries.push(Entry { locator: place, kind }),
                    Err(odd) => listing.odd.push(odd),
                }
            }
            token = self.next(Operation::List, locator, token, page.next)?;
            if token.is_none() {
                break;
            }
        }
        listing.entries.sort();
        Ok(listing)
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let start = Scan { prefix: prefix.clone(), after: after.cloned(), token: None, is_done: false };
        Box::pin(futures_lite::stream::unfold(start, move |mut scan| async move {
            if scan.is_done {
                return None;
            }
            let page = self.scan_page(&mut scan).await;
            scan.is_done |= page.is_err();
            Some((page, scan))
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let directory = || Info {
            locator: locator.clone(),
            kind: EntryKind::Directory,
            size_bytes: 0,
            modified: None,
            version: None,
            fingerprint: Fingerprint::new(&[], i64::MIN),
        };
        if locator.is_root() {
            return Ok(directory());
        }
        let answer = self.send(Operation::Info, locator, self.at(Method::HEAD, locator)).await?;
        if answer.status.is_success() {
            let listed = Listed {
                key: String::new(),
                size_bytes: answer
                    .header("content-length")
                    .and_then(|size| size.parse().ok())
                    .unwrap_or_default(),
                modified: answer.header("last-modified").and_then(listing::moment),
                version: Some(self.version(Operation::Info, locator, &answer)?.as_str().to_owned()),
            };
            return Ok(self.info_of(locator.clone(), &listed));
        }
        if !self.service.is_nothing_there(&answer) {
            return Err(self.refused(Operation::Info, locator, &answer));
        }
        match self.has_children(Operation::Info, locator).await? {
            true => Ok(directory()),
            false => Err(nothing_there(Operation::Info, locator)),
        }
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        // Every state has a name of its own: nothing is too fresh to trust.
        Ok(TouchMark::new(i64::MAX))
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if locator.is_root() {
            return Err(root_refused(Operation::Delete));
        }
        // A directory's name stands for its content. Our own files are never directories.
        if !matches!(condition, Condition::Matches(_))
            && !locator.is_reserved()
            && self.has_children(Operation::Delete, locator).await?
        {
            let message = "the directory is not empty";
            return Err(Error::new(ErrorKind::Invalid, Operation::Delete, locator, message));
        }
        if condition == Condition::Absent {
            // There are no empty directories here, so nothing is to be removed.
            return match self.exists(locator).await? {
                true => Err(condition_failed(Operation::Delete, locator, &condition)),
                false => Ok(()),
            };
        }
        self.remove(Operation::Delete, locator, &condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        check_rename(from, to)?;
        check_name(Operation::Rename, to)?;
        let kind = self.info(from).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => nothing_there(Operation::Rename, from),
            _ => error,
        })?;
        if self.exists(to).await? {
            return Err(condition_failed(Operation::Rename, to, &Condition::Absent));
        }
        if kind.kind == EntryKind::File {
            return self.move_object(from, to).await;
        }
        for object in self.list_all(from).await? {
            let Some(rest) = object.below(from) else { continue };
            let target = to.join(&rest).map_err(|reason| Error::invalid(Operation::Rename, from, reason))?;
            self.move_object(&object, &target).await?;
        }
        Ok(())
    }

    async fn exchange(&self, one: &Locator, _: &Locator) -> Result<()> {
        let message = "a cloud cannot let two objects change places";
        Err(Error::new(ErrorKind::Unsupported, Operation::Exchange, one, message))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        // A directory is there as soon as something is in it.
        if locator.is_root() { Ok(()) } else { check_name(Operation::Mkdir, locator) }
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        self.locks.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }
}

/// The progress of a scan.
struct Scan {
    prefix: Locator,
    after: Option<Locator>,
    token: Option<String>,
    is_done: bool,
}

impl Cloud {
    async fn scan_page(&self, scan: &mut Scan) -> Result<Page> {
        // An object of the prefix's own name is part of the scan, so the prefix has no slash at its end.
        let prefix = self.service.address.key(&scan.prefix);
        let prefix = if scan.prefix.is_root() { self.prefix_below(&scan.prefix) } else { prefix };
        let after = scan.after.as_ref().map(|after| self.service.address.key(after));
        let query = Query {
            prefix: &prefix,
            after: after.as_deref(),
            token: scan.token.as_deref(),
            ..Query::default()
        };
        let listed = self.page(Operation::Scan, &scan.prefix, query).await?;
        let mut page = Page::default();
        for object in listed.objects.iter().filter(|object| !is_folder_mark(&object.key)) {
            match self.place(&object.key) {
                // Not every server knows how to begin after a key, and some begin with it.
                Ok(place) if scan.after.as_ref().is_some_and(|after| place <= *after) => {}
                Ok(place) if !place.is_within(&scan.prefix) => {}
                Ok(place) if place.is_reserved() && !scan.prefix.is_reserved() => {}
                Ok(place) => page.infos.push(self.info_of(place, object)),
                Err(odd) => page.odd.push(odd),
            }
        }
        if !page.infos.is_sorted_by(|one, other| one.locator < other.locator) {
            let message = "the storage's list is not in order, so we cannot know its gaps";
            return Err(Error::new(ErrorKind::Internal, Operation::Scan, &scan.prefix, message));
        }
        if let Some(last) = page.infos.last() {
            scan.after = Some(last.locator.clone());
        }
        scan.token = self.next(Operation::Scan, &scan.prefix, scan.token.take(), listed.next)?;
        scan.is_done = scan.token.is_none();
        Ok(page)
    }

    /// Returns how to go on; a list that leads back to where it was would never end.
    fn next(
        &self,
        operation: Operation,
        locator: &Locator,
        token: Option<String>,
        next: Option<String>,
    ) -> Result<Option<String>> {
        if next.is_some() && next == token {
            let message = "the storage's list repeats itself without end";
            return Err(Error::new(ErrorKind::Internal, operation, locator, message));
        }
        Ok(next)
    }
}

/// Returns true if a key is what consoles make to show an empty folder.
fn is_folder_mark(key: &str) -> bool {
    key.ends_with('/')
}

fn check_name(operation: Operation, locator: &Locator) -> Result<()> {
    if locator.is_root() {
        return Err(crate::refuse::is_a_directory(operation, locator));
    }
    locator.check_portable().map_err(|reason| Error::invalid(operation, locator, reason))
}
