//! Backends as a device sees them: every effect is a moment in which others can act, and the way to the remote is bad.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use haversack_store::{
    Appended, Backend, Bytes, Capabilities, Condition, ConflictStrategy, Durability, Error, ErrorKind, Guard,
    InMemory, Info, Listing, Locator, Object, Operation, Pages, Result, TouchMark, Written,
};

use crate::random::Random;

/// A moment in which others act: pending once.
struct Moment {
    passed: bool,
}

impl Future for Moment {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.passed {
            return Poll::Ready(());
        }
        self.passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn moment() -> Moment {
    Moment { passed: false }
}

/// How bad the way to the remote is: of a hundred requests, how many meet each fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    pub(crate) lost_requests: usize,
    pub(crate) lost_answers: usize,
    pub(crate) delayed: usize,
    pub(crate) repeated: usize,
    pub(crate) refused: usize,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    RequestLost,
    AnswerLost,
    Delayed,
    Repeated,
    Refused,
}

/// The remote and everything that is on its way to it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) remote: Arc<InMemory>,
    state: Mutex<WireState>,
}

#[derive(Debug)]
struct WireState {
    random: Random,
    weather: Weather,
    /// Writes that will land later, whoever has forgotten them.
    late: Vec<(Locator, Bytes)>,
    writes: usize,
}

impl Wire {
    pub(crate) fn new(random: Random, weather: Weather) -> Arc<Wire> {
        let state = WireState { random, weather, late: Vec::new(), writes: 0 };
        Arc::new(Wire { remote: Arc::new(InMemory::new()), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the weather clear up for good.
    pub(crate) fn clear_up(&self) {
        self.state().weather = Weather::default();
    }

    /// Returns how many writes were asked for so far.
    pub(crate) fn writes(&self) -> usize {
        self.state().writes
    }

    /// Lets one write that is still on its way arrive; returns whether there was one.
    pub(crate) fn deliver_late(&self) -> bool {
        let late = {
            let mut state = self.state();
            let count = state.late.len();
            if count == 0 {
                return false;
            }
            let at = state.random.between(0, count - 1);
            state.late.swap_remove(at)
        };
        // Nobody waits for the answer any more.
        drop(haversack_store::block_on(self.remote.write(&late.0, late.1, Condition::Absent)));
        true
    }

    fn fate(&self) -> Fate {
        let mut state = self.state();
        let mut rest = state.random.between(0, 99);
        let Weather { lost_requests, lost_answers, delayed, repeated, refused } = state.weather;
        for (share, fate) in [
            (lost_requests, Fate::RequestLost),
            (lost_answers, Fate::AnswerLost),
            (delayed, Fate::Delayed),
            (repeated, Fate::Repeated),
            (refused, Fate::Refused),
        ] {
            if rest < share {
                return fate;
            }
            rest -= share;
        }
        Fate::Arrives
    }

    fn refusal(&self) -> ErrorKind {
        let kinds = [ErrorKind::Busy, ErrorKind::Unavailable, ErrorKind::Denied, ErrorKind::Conflict];
        kinds[self.state().random.between(0, kinds.len() - 1)]
    }
}

fn no_answer(operation: Operation, locator: &Locator) -> Error {
    Error::new(ErrorKind::Unavailable, operation, locator, "no answer")
}

/// The remote as one device reaches it.
#[derive(Debug)]
pub(crate) struct Link {
    wire: Arc<Wire>,
    online: Arc<Mutex<bool>>,
}

impl Link {
    pub(crate) fn new(wire: Arc<Wire>, online: Arc<Mutex<bool>>) -> Link {
        Link { wire, online }
    }

    fn is_online(&self) -> bool {
        *self.online.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a device's own effects end up.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) contents: Arc<InMemory>,
    /// An append whose caller does not know yet that it happened, and where it began.
    unfinished: Mutex<Option<(Locator, u64)>>,
}

impl Disk {
    /// Cuts an append short that was under way when its process died.
    pub(crate) fn tear(&self, random: &mut Random) {
        let unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((locator, offset)) = unfinished else { return };
        let Ok(object) = haversack_store::block_on(self.contents.read(&locator)) else { return };
        let begun = usize::try_from(offset).expect("small files");
        let kept = random.between(begun, object.bytes.len());
        let torn = object.bytes.slice(..kept);
        drop(haversack_store::block_on(self.contents.write(&locator, torn, Condition::Any)));
    }

    /// Forgets what was under way: its process lives.
    fn know(&self) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A device's own storage, one effect at a time.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    disk: Arc<Disk>,
}

impl Stepped {
    pub(crate) fn new(disk: Arc<Disk>) -> Stepped {
        Stepped { disk }
    }
}

/// Does an effect between two moments: a process can die before it, and after it without knowing.
macro_rules! effect {
    ($self:ident, $call:expr) => {{
        moment().await;
        let result = $call.await;
        moment().await;
        $self.disk.know();
        result
    }};
}

#[async_trait]
impl Backend for Stepped {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        moment().await;
        self.disk.contents.read(locator).await
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        effect!(self, self.disk.contents.write(locator, bytes, condition))
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        moment().await;
        let appended = self.disk.contents.append(locator, bytes, durability).await;
        if let Ok(appended) = &appended {
            let unfinished = Some((locator.clone(), appended.offset));
            *self.disk.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = unfinished;
        }
        moment().await;
        self.disk.know();
        appended
    }

    async fn barrier(&self) -> Result<()> {
        self.disk.contents.barrier().await
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        moment().await;
        self.disk.contents.list(locator).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.disk.contents.scan(prefix, after)
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        moment().await;
        self.disk.contents.info(locator).await
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        self.disk.contents.touch_mark().await
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        effect!(self, self.disk.contents.delete(locator, condition))
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        effect!(self, self.disk.contents.rename(from, to))
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        effect!(self, self.disk.contents.exchange(one, other))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        effect!(self, self.disk.contents.mkdir(locator))
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        moment().await;
        self.disk.contents.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        self.disk.contents.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.disk.contents.conflict_strategy()
    }
}

/// Refuses what sync does not ask of a remote.
fn not_asked<T>(operation: Operation, locator: &Locator) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, operation, locator, "sync does not need it of a remote"))
}

#[async_trait]
impl Backend for Link {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        moment().await;
        if !self.is_online() {
            return Err(no_answer(Operation::Read, locator));
        }
        match self.wire.fate() {
            Fate::Arrives | Fate::Repeated => self.wire.remote.read(locator).await,
            Fate::Refused => {
                let kind = self.wire.refusal();
                Err(Error::new(kind, Operation::Read, locator, "refused"))
            }
            Fate::RequestLost | Fate::AnswerLost | Fate::Delayed => Err(no_answer(Operation::Read, locator)),
        }
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        moment().await;
        self.wire.state().writes += 1;
        if !self.is_online() {
            return Err(no_answer(Operation::Write, locator));
        }
        let fate = self.wire.fate();
        let result = match fate {
            Fate::Arrives => self.wire.remote.write(locator, bytes, condition).await,
            Fate::RequestLost => Err(no_answer(Operation::Write, locator)),
            Fate::AnswerLost => {
                drop(self.wire.remote.write(locator, bytes, condition).await);
                Err(no_answer(Operation::Write, locator))
            }
            Fate::Delayed => {
                self.wire.state().late.push((locator.clone(), bytes));
                Err(no_answer(Operation::Write, locator))
            }
            Fate::Repeated => {
                drop(self.wire.remote.write(locator, bytes.clone(), condition.clone()).await);
                self.wire.state().late.push((locator.clone(), bytes.clone()));
                self.wire.remote.write(locator, bytes, condition).await
            }
            Fate::Refused => {
                let kind = self.wire.refusal();
                Err(Error::new(kind, Operation::Write, locator, "refused"))
            }
        };
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
        not_asked(Operation::List, locator)
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.wire.remote.scan(prefix, after)
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        moment().await;
        self.wire.remote.info(locator).await
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        not_asked(Operation::Info, &Locator::root())
    }

    async fn delete(&self, locator: &Locator, _: Condition) -> Result<()> {
        not_asked(Operation::Delete, locator)
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

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        self.wire.remote.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        self.wire.remote.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.wire.remote.conflict_strategy()
    }
}
