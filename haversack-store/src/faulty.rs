//! A backend that fails on purpose, for tests of whatever is built on one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::backend::{
    Appended, Backend, Condition, Durability, Guard, Info, Listing, Object, Pages, Written,
};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::forward_backend;
use crate::locator::Locator;
use crate::version::TouchMark;

/// The fault of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It works.
    None,
    /// It fails before anything is done.
    Refused(ErrorKind),
    /// It is done, but its answer is lost.
    AnswerLost,
    /// It is done twice, as when a request is repeated on the way; the answer is the second one's.
    Repeated,
}

/// A backend whose next operations meet the faults that were planned for them.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Backend>,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    faults: VecDeque<Fault>,
    operations: usize,
}

impl Faulty {
    /// Returns `inner` without any fault planned.
    pub fn new(inner: Arc<dyn Backend>) -> Faulty {
        Faulty { inner, plan: Mutex::default() }
    }

    /// Plans the faults of the next operations, in order; after them everything works.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults = faults.into_iter().collect();
    }

    /// Returns how many operations were asked for so far, a scan counting as one.
    pub fn operations(&self) -> usize {
        self.state().operations
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Fault {
        let mut state = self.state();
        state.operations += 1;
        state.faults.pop_front().unwrap_or(Fault::None)
    }
}

fn refused(kind: ErrorKind, operation: Operation, place: &str) -> Error {
    Error::at(kind, operation, place, "a fault was injected")
}

/// Does an operation with its fault.
macro_rules! with_fault {
    ($self:ident, $operation:ident, $place:expr, $call:expr) => {
        match $self.next() {
            Fault::None => $call.await,
            Fault::Refused(kind) => Err(refused(kind, Operation::$operation, $place)),
            Fault::AnswerLost => {
                drop($call.await);
                Err(refused(ErrorKind::Unavailable, Operation::$operation, $place))
            }
            Fault::Repeated => {
                drop($call.await);
                $call.await
            }
        }
    };
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Faulty {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        with_fault!(self, Read, locator.as_str(), self.inner.read(locator))
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        with_fault!(
            self,
            Write,
            locator.as_str(),
            self.inner.write(locator, bytes.clone(), condition.clone())
        )
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        let first = objects.first().map_or("", |(locator, _)| locator.as_str());
        with_fault!(self, Write, first, self.inner.prepare(objects.clone()))
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        with_fault!(self, Append, locator.as_str(), self.inner.append(locator, bytes.clone(), durability))
    }

    async fn barrier(&self) -> Result<()> {
        with_fault!(self, Barrier, "", self.inner.barrier())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        with_fault!(self, List, locator.as_str(), self.inner.list(locator))
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        match self.next() {
            Fault::None | Fault::Repeated => self.inner.scan(prefix, after),
            Fault::Refused(kind) => {
                let error = refused(kind, Operation::Scan, prefix.as_str());
                Box::pin(futures_lite::stream::once(Err(error)))
            }
            Fault::AnswerLost => {
                let error = refused(ErrorKind::Unavailable, Operation::Scan, prefix.as_str());
                Box::pin(futures_lite::stream::once(Err(error)))
            }
        }
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        with_fault!(self, Info, locator.as_str(), self.inner.info(locator))
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        with_fault!(self, Info, "", self.inner.touch_mark())
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        with_fault!(self, Delete, locator.as_str(), self.inner.delete(locator, condition.clone()))
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        with_fault!(self, Rename, from.as_str(), self.inner.rename(from, to))
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        with_fault!(self, Exchange, one.as_str(), self.inner.exchange(one, other))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        with_fault!(self, Mkdir, locator.as_str(), self.inner.mkdir(locator))
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        match self.next() {
            Fault::None | Fault::Repeated => self.inner.lock(name, wait).await,
            Fault::Refused(kind) => Err(refused(kind, Operation::Lock, name)),
            Fault::AnswerLost => {
                drop(self.inner.lock(name, wait).await);
                Err(refused(ErrorKind::Unavailable, Operation::Lock, name))
            }
        }
    }

    forward_backend!(self => self.inner; capabilities, conflict_strategy);
}
