//! Lets the home's one [background process](crate::background) sync for a long-lived server, so that no call waits for the remote.
//!
//! - After a write: once there was no other write for 300 ms, so that several are sent together.
//! - After an event in the interaction log: with the next write, or after 5 seconds, or once 4 KB have gathered ([`Batching`]). A chat makes many small
//!   events, and a commit for each would fill the log.
//! - While questions are asked: at most once a minute, so that answers are fresh.
//!
//! A server that is killed loses nothing: the next sync sends every file that differs from its base.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haversack::clock::Clock;
use haversack::sync::{Batching, Due};
use haversack_system::SystemClock;

use crate::agents::journal::Journal;
use crate::background;
use crate::background::requests::SyncRequest;
use crate::settings::Settings;

/// The time that we wait for further writes.
const GATHER: Duration = Duration::from_millis(300);

/// The time after which a question starts a sync.
const FRESH: Duration = Duration::from_secs(60);

/// Requests syncs from the background process.
pub(crate) struct SyncScheduler {
    /// Sends triggers to the thread; `None` after the end.
    sender: Mutex<Option<Sender<Trigger>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    asked: Mutex<Option<Instant>>,
    settings: Settings,
}

impl SyncScheduler {
    /// Returns a scheduler without a request.
    pub(crate) fn new(settings: &Settings) -> SyncScheduler {
        SyncScheduler {
            sender: Mutex::new(None),
            thread: Mutex::new(None),
            asked: Mutex::new(None),
            settings: settings.clone(),
        }
    }

    /// Notes a write: it is sent soon.
    pub(crate) fn wrote(&self) {
        self.run(Trigger::Sync);
    }

    /// Notes that the interaction log grew: its events are sent together.
    pub(crate) fn logged(&self, bytes: u64) {
        self.run(Trigger::Growth(bytes));
    }

    /// Notes a question: if the last one was long ago, requests a sync.
    pub(crate) fn asked(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if asked.is_none_or(|then| now.duration_since(then) >= FRESH) {
            *asked = Some(now);
            self.run(Trigger::Sync);
        }
    }

    fn run(&self, trigger: Trigger) {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.as_ref().is_some_and(|sender| sender.send(trigger).is_ok()) {
            return;
        }
        let (new, triggers) = channel();
        let _ = new.send(trigger);
        *sender = Some(new);
        let settings = self.settings.clone();
        let thread = std::thread::Builder::new()
            .name("sync scheduler".to_owned())
            .spawn(move || work(&settings, &triggers));
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
    }

    /// Ends: hands waiting requests over now.
    pub(crate) fn end(&self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(thread.join());
        }
    }
}

/// A reason to sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    /// A file was written, or news may have arrived.
    Sync,
    /// The interaction log grew by so many bytes.
    Growth(u64),
}

/// Gathers errands, and hands them over when they are due.
fn work(settings: &Settings, triggers: &Receiver<Trigger>) {
    let mut batching = Batching::default();
    let mut is_ended = false;
    while !is_ended {
        let next = match batching.due(SystemClock.now()) {
            Due::Never => triggers.recv().map_err(RecvTimeoutError::from),
            Due::In(wait) => triggers.recv_timeout(wait),
            Due::Now => Err(RecvTimeoutError::Timeout),
        };
        match next {
            Ok(Trigger::Growth(bytes)) => {
                batching.wrote(SystemClock.now(), bytes);
                continue;
            }
            Ok(Trigger::Sync) => while triggers.recv_timeout(GATHER).is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            // The server ends: events that wait are handed over now.
            Err(RecvTimeoutError::Disconnected) => {
                is_ended = true;
                if batching.due(SystemClock.now()) == Due::Never {
                    break;
                }
            }
        }
        batching.begin();
        // The writers are signed in the state: the wish itself needs no name.
        if let Err(error) = background::hand_over(settings, &SyncRequest::default()) {
            Journal::of(settings).note("mcp", None, &format!("failed: {}", error.message));
        }
    }
}
