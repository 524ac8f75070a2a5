//! Writers of one process wait together: one leads and works for all who queued meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs of many threads, done in batches by whichever thread comes first.
#[derive(Debug)]
pub(super) struct Queue<J, R> {
    state: Mutex<State<J, R>>,
    finished: Condvar,
}

#[derive(Debug)]
struct State<J, R> {
    waiting: VecDeque<(u64, J)>,
    results: HashMap<u64, R>,
    led: bool,
    next: u64,
}

impl<J, R> Queue<J, R> {
    pub(super) fn new() -> Queue<J, R> {
        let state = State { waiting: VecDeque::new(), results: HashMap::new(), led: false, next: 0 };
        Queue { state: Mutex::new(state), finished: Condvar::new() }
    }

    /// Returns the result of `job`, done by this thread or by another that leads a batch with it.
    ///
    /// `choose` takes from the front of the queue what can be done together; `work` does it and returns a
    /// result for each; `lost` is the result of jobs whose leader panicked.
    pub(super) fn submit(
        &self,
        job: J,
        choose: impl Fn(&mut VecDeque<(u64, J)>) -> Vec<(u64, J)>,
        work: impl Fn(Vec<J>) -> Vec<R>,
        lost: fn() -> R,
    ) -> R {
        let mut state = self.state();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back((ticket, job));
        loop {
            if let Some(result) = state.results.remove(&ticket) {
                return result;
            }
            if state.led {
                state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (tickets, jobs): (Vec<u64>, Vec<J>) = choose(&mut state.waiting).into_iter().unzip();
            state.led = true;
            drop(state);
            let mut leading = Leading { queue: self, tickets, results: Vec::new(), lost };
            leading.results = work(jobs);
            drop(leading);
            state = self.state();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the results out when the leader is done, however it ends.
struct Leading<'a, J, R> {
    queue: &'a Queue<J, R>,
    tickets: Vec<u64>,
    results: Vec<R>,
    lost: fn() -> R,
}

impl<J, R> Drop for Leading<'_, J, R> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let mut results = self.results.drain(..);
        for ticket in &self.tickets {
            state.results.insert(*ticket, results.next().unwrap_or_else(self.lost));
        }
        state.led = false;
        self.queue.finished.notify_all();
    }
}
