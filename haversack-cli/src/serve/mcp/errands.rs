//! Carries what a long-lived server wrote to the other machines, and theirs here, without anybody waiting for it.
//!
//! It hands wishes to the home's one [background process](crate::background): soon after a write, so that several go together, and
//! now and then while questions are asked, so that answers are fresh.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::agents::journal::Journal;
use crate::background;
use crate::background::wishes::Wish;
use crate::settings::Settings;

/// How long further writes are waited for.
const GATHER: Duration = Duration::from_millis(300);

/// How long what other machines wrote may be unknown to somebody who asks.
const FRESH: Duration = Duration::from_secs(60);

/// Whoever goes to the other machines.
pub(crate) struct Errands {
    /// Tells the thread that there is something to do; `None` once it was told to end.
    sender: Mutex<Option<Sender<()>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    asked: Mutex<Option<Instant>>,
    settings: Settings,
}

impl Errands {
    /// Returns somebody who has nothing to do yet.
    pub(crate) fn new(settings: &Settings) -> Errands {
        Errands {
            sender: Mutex::new(None),
            thread: Mutex::new(None),
            asked: Mutex::new(None),
            settings: settings.clone(),
        }
    }

    /// Something was written: it is sent soon.
    pub(crate) fn wrote(&self) {
        self.run();
    }

    /// Something was asked: if nobody asked for a while, it is looked for what is new.
    pub(crate) fn asked(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if asked.is_none_or(|then| now.duration_since(then) >= FRESH) {
            *asked = Some(now);
            self.run();
        }
    }

    fn run(&self) {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.as_ref().is_some_and(|sender| sender.send(()).is_ok()) {
            return;
        }
        let (new, errands) = channel();
        let _ = new.send(());
        *sender = Some(new);
        let settings = self.settings.clone();
        let thread =
            std::thread::Builder::new().name("errands".to_owned()).spawn(move || work(&settings, &errands));
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
    }

    /// Ends: what is still to be sent is handed over now.
    pub(crate) fn end(&self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(thread.join());
        }
    }
}

/// Gathers errands, and hands them over when there are no more for a moment.
fn work(settings: &Settings, errands: &Receiver<()>) {
    while errands.recv().is_ok() {
        while errands.recv_timeout(GATHER).is_ok() {}
        // Who wrote what is signed: the wish itself is nobody's.
        if let Err(error) = background::hand_over(settings, &Wish::default()) {
            Journal::of(settings).note("mcp", None, &format!("failed: {}", error.message));
        }
    }
}
