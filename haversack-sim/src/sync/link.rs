//! The remote as one device reaches it: every request is a moment in which others act, and meets a fate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_lite::stream;
use haversack_store::{
    Appended, Backend, Bytes, Capabilities, Condition, ConflictStrategy, Durability, Error, ErrorKind, Guard,
    Info, Listing, Locator, Object, Operation, Page, Pages, Result, TouchMark, Written,
};

use super::store::{Model, Store, Times};
use super::weather::{Fate, Weather, moment};
use crate::random::Random;

/// The most objects in one page of a listing: few, so that there are several pages.
const PAGE_OBJECTS: usize = 3;

/// The most requests for which a device is not let in.
const MAX_DENIED: usize = 4;

/// The remote and everything that is on its way to it.
#[derive(Debug)]
pub(crate) struct Wire {
    state: Mutex<WireState>,
}

#[derive(Debug)]
struct WireState {
    store: Store,
    weather: Weather,
    /// Requests that arrive later, after their senders have forgotten them.
    late: Vec<Late>,
    changes: usize,
    /// The fates of requests, for reading.
    happened: Vec<String>,
    /// The contents that devices sent, whether or not they arrived.
    sent: Vec<(Locator, Bytes)>,
}

/// A change that is still on its way.
#[derive(Debug)]
struct Late {
    locator: Locator,
    /// The new content; `None` to delete.
    bytes: Option<Bytes>,
    condition: Condition,
}

impl Late {
    fn arrive(self, store: &mut Store, random: &mut Random) {
        // The sender does not wait for the answer any more.
        match self.bytes {
            Some(bytes) => drop(store.write(&self.locator, bytes, &self.condition, random)),
            None => drop(store.delete(&self.locator, &self.condition, random)),
        }
    }
}

impl Wire {
    pub(crate) fn new(model: Model, weather: Weather, times: Times) -> Arc<Wire> {
        let weather = model.weather(weather);
        let store = Store::new(model, times);
        let state = WireState {
            store,
            weather,
            late: Vec::new(),
            changes: 0,
            happened: Vec::new(),
            sent: Vec::new(),
        };
        Arc::new(Wire { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the weather clear up for good.
    pub(crate) fn clear_up(&self) {
        self.state().weather = Weather::default();
    }

    /// Returns how many changes were asked for so far.
    pub(crate) fn changes(&self) -> usize {
        self.state().changes
    }

    /// Returns what happened to requests since the last time.
    pub(crate) fn happened(&self) -> Vec<String> {
        std::mem::take(&mut self.state().happened)
    }

    /// Returns the contents that devices sent since the last time.
    pub(crate) fn take_sent(&self) -> Vec<(Locator, Bytes)> {
        std::mem::take(&mut self.state().sent)
    }

    /// Returns an object, as it is.
    pub(crate) fn object(&self, locator: &Locator) -> Option<Bytes> {
        self.state().store.read(locator).ok().map(|object| object.bytes)
    }

    /// Lets one request that is still on its way arrive; returns where, if there was one.
    pub(crate) fn deliver_late(&self, random: &mut Random) -> Option<Locator> {
        let mut state = self.state();
        let last = state.late.len().checked_sub(1)?;
        let late = state.late.swap_remove(random.between(0, last));
        let locator = late.locator.clone();
        late.arrive(&mut state.store, random);
        Some(locator)
    }

    /// Puts something there past all devices.
    pub(crate) fn put(&self, locator: &Locator, bytes: Bytes, random: &mut Random) {
        drop(self.state().store.write(locator, bytes, &Condition::Any, random));
    }

    /// Puts other objects in the place of all; returns those that were there. Requests that are on their way never arrive.
    pub(crate) fn replace(
        &self,
        objects: &BTreeMap<Locator, Bytes>,
        random: &mut Random,
    ) -> BTreeMap<Locator, Bytes> {
        let mut state = self.state();
        state.late.clear();
        let before = state.store.take();
        for (locator, bytes) in objects {
            drop(state.store.write(locator, bytes.clone(), &Condition::Any, random));
        }
        before
    }

    /// Returns everything below `prefix`, as it is.
    pub(crate) fn all(&self, prefix: &Locator) -> Vec<(Locator, Bytes)> {
        let state = self.state();
        state.store.all(prefix).map(|(locator, bytes)| (locator.clone(), bytes.clone())).collect()
    }
}

/// Tells if a device is connected, and has access.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) is_offline: bool,
    denied: usize,
}

/// The remote as one sync of a device reaches it.
#[derive(Debug)]
pub(crate) struct Link {
    wire: Arc<Wire>,
    connection: Arc<Mutex<Connection>>,
    device: usize,
    /// The source of faults.
    faults: Mutex<Random>,
    /// How the store answers where it has a choice.
    choices: Mutex<Random>,
}

impl Link {
    pub(crate) fn new(
        wire: Arc<Wire>,
        connection: Arc<Mutex<Connection>>,
        device: usize,
        faults: Random,
        choices: Random,
    ) -> Link {
        Link { wire, connection, device, faults: Mutex::new(faults), choices: Mutex::new(choices) }
    }

    fn note(&self, operation: Operation, locator: &Locator, what: &str) {
        let device = self.device;
        self.wire.state().happened.push(format!("{device}:   {operation} {locator}: {what}"));
    }

    /// Decides what becomes of a request; an error means that it does not get to the store.
    fn fate(&self, operation: Operation, locator: &Locator) -> Result<Fate> {
        let fail = |kind, why: &str| {
            self.note(operation, locator, why);
            Err(Error::new(kind, operation, locator, why))
        };
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_offline {
            return fail(ErrorKind::Unavailable, "offline");
        }
        if connection.denied > 0 {
            connection.denied -= 1;
            return fail(ErrorKind::Denied, "403 not let in");
        }
        let weather = self.wire.state().weather;
        let model = self.wire.state().store.model;
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fate = weather.fate(&mut faults);
        match fate {
            Fate::Refused => {
                let (kind, why) = model.refusal(operation, &mut faults);
                fail(kind, why)
            }
            Fate::Denied => {
                connection.denied = faults.between(0, MAX_DENIED - 1);
                fail(ErrorKind::Denied, "401 not let in")
            }
            Fate::RequestLost => fail(ErrorKind::Unavailable, "the request is lost"),
            Fate::Arrives | Fate::AnswerLost | Fate::Delayed | Fate::Repeated => Ok(fate),
        }
    }

    /// Sends a request that changes nothing: a repetition gives the same answer, and a late one has no effect.
    fn ask<T>(
        &self,
        operation: Operation,
        locator: &Locator,
        look: impl FnOnce(&Store, &mut Random) -> Result<T>,
    ) -> Result<T> {
        match self.fate(operation, locator)? {
            Fate::Arrives | Fate::Repeated => {
                let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
                look(&self.wire.state().store, &mut choices)
            }
            _ => Err(self.no_answer(operation, locator, "the answer is lost")),
        }
    }

    /// Asks for a change.
    fn change<T>(
        &self,
        operation: Operation,
        locator: &Locator,
        late: impl FnOnce() -> Late,
        change: impl Fn(&mut Store, &mut Random) -> Result<T>,
    ) -> Result<T> {
        self.wire.state().changes += 1;
        let fate = self.fate(operation, locator)?;
        let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
        let mut change = || change(&mut self.wire.state().store, &mut choices);
        match fate {
            Fate::Delayed => {
                self.wire.state().late.push(late());
                Err(self.no_answer(operation, locator, "delayed"))
            }
            Fate::AnswerLost => {
                drop(change());
                Err(self.no_answer(operation, locator, "the answer is lost"))
            }
            Fate::Repeated => {
                drop(change());
                self.wire.state().late.push(late());
                let result = change();
                self.note(operation, locator, "done twice, and once more later");
                result
            }
            _ => {
                let result = change();
                let shown = result.as_ref().err().map_or("done".to_owned(), |error| error.to_string());
                self.note(operation, locator, &shown);
                result
            }
        }
    }

    fn no_answer(&self, operation: Operation, locator: &Locator, why: &str) -> Error {
        self.note(operation, locator, why);
        Error::new(ErrorKind::Unavailable, operation, locator, "no answer")
    }
}

/// The progress of a scan.
enum Scan {
    After(Option<Locator>),
    Over,
}

/// Refuses what no store of objects can do.
fn not_asked<T>(operation: Operation, locator: &Locator) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, operation, locator, "sync does not need it of a remote"))
}

#[async_trait]
impl Backend for Link {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        moment().await;
        self.ask(Operation::Read, locator, |store, _| store.read(locator))
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        moment().await;
        self.wire.state().sent.push((locator.clone(), bytes.clone()));
        let late =
            || Late { locator: locator.clone(), bytes: Some(bytes.clone()), condition: condition.clone() };
        let result = self.change(Operation::Write, locator, late, |store, random| {
            store.write(locator, bytes.clone(), &condition, random)
        });
        moment().await;
        result
    }

    async fn append(&self, locator: &Locator, _: Bytes, _: Durability) -> Result<Appended> {
        not_asked(Operation::Append, locator)
    }

    async fn barrier(&self) -> Result<()> {
        not_asked(Operation::Barrier, &Locator::root())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        moment().await;
        let stale = self.wire.state().weather.stale;
        self.ask(Operation::List, locator, |store, random| {
            Ok(store.children(locator, random.between(0, stale) as u64))
        })
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let prefix = prefix.clone();
        Box::pin(stream::unfold(Scan::After(after.cloned()), move |scan| {
            let prefix = prefix.clone();
            async move {
                let Scan::After(after) = scan else { return None };
                moment().await;
                let stale = self.wire.state().weather.stale;
                let page = self.ask(Operation::Scan, &prefix, |store, random| {
                    let missed = random.between(0, stale) as u64;
                    Ok(store.page(&prefix, after.as_ref(), missed, random.between(1, PAGE_OBJECTS)))
                });
                match page {
                    Ok(infos) => {
                        let last = infos.last()?.locator.clone();
                        Some((Ok(Page { infos, odd: Vec::new() }), Scan::After(Some(last))))
                    }
                    Err(error) => Some((Err(error), Scan::Over)),
                }
            }
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        moment().await;
        self.ask(Operation::Info, locator, |store, _| store.info(locator))
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        not_asked(Operation::Info, &Locator::root())
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        moment().await;
        let late = || Late { locator: locator.clone(), bytes: None, condition: condition.clone() };
        let result = self.change(Operation::Delete, locator, late, |store, random| {
            store.delete(locator, &condition, random)
        });
        moment().await;
        result
    }

    async fn rename(&self, from: &Locator, _: &Locator) -> Result<()> {
        not_asked(Operation::Rename, from)
    }

    async fn exchange(&self, one: &Locator, _: &Locator) -> Result<()> {
        not_asked(Operation::Exchange, one)
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        not_asked(Operation::Mkdir, locator)
    }

    async fn lock(&self, name: &str, _: Duration) -> Result<Guard> {
        let message = "a remote has no locks";
        Err(Error::at(ErrorKind::Unsupported, Operation::Lock, name, message))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            concurrent_writers: true,
            create_if_absent: true,
            update_if_match: true,
            conditional_delete: true,
            durable: true,
            ..Capabilities::default()
        }
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }
}
