//! Writers of one process wait together: one leads and works for all who queued meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// Jobs of many threads, done in batches by whichever thread comes first.
#[derive(Debug)]
pub(super) struct Queue<J, R> {
    state: Mutex<State<J, R>>,
}

#[derive(Debug)]
struct State<J, R> {
    waiting: VecDeque<Waiting<J>>,
    results: HashMap<u64, R>,
    led: bool,
    next: u64,
}

/// A job and who waits for it.
#[derive(Debug)]
pub(super) struct Waiting<J> {
    pub(super) job: J,
    ticket: u64,
    thread: Thread,
}

impl<J, R> Queue<J, R> {
    pub(super) fn new() -> Queue<J, R> {
        let state = State { waiting: VecDeque::new(), results: HashMap::new(), led: false, next: 0 };
        Queue { state: Mutex::new(state) }
    }

    /// Returns the result of `job`, done by this thread or by another that leads a batch with it.
    ///
    /// `choose` takes from the queue what can be done together, the front included; `work` does it and returns a
    /// result for each; `lost` is the result of jobs whose leader panicked.
    pub(super) fn submit(
        &self,
        job: J,
        choose: impl Fn(&mut VecDeque<Waiting<J>>) -> Vec<Waiting<J>>,
        work: impl Fn(Vec<J>) -> Vec<R>,
        lost: fn() -> R,
    ) -> R {
        let mut state = self.state();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(Waiting { job, ticket, thread: thread::current() });
        loop {
            if let Some(result) = state.results.remove(&ticket) {
                return result;
            }
            if state.led {
                drop(state);
                thread::park();
                state = self.state();
                continue;
            }
            let chosen = choose(&mut state.waiting);
            state.led = true;
            drop(state);
            let mut leading = Leading { queue: self, batch: Vec::new(), results: Vec::new(), lost };
            let mut jobs = Vec::with_capacity(chosen.len());
            for Waiting { job, ticket, thread } in chosen {
                jobs.push(job);
                leading.batch.push((ticket, thread));
            }
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
    batch: Vec<(u64, Thread)>,
    results: Vec<R>,
    lost: fn() -> R,
}

impl<J, R> Drop for Leading<'_, J, R> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let mut results = self.results.drain(..);
        for (ticket, _) in &self.batch {
            state.results.insert(*ticket, results.next().unwrap_or_else(self.lost));
        }
        state.led = false;
        // Only those are woken who have something to do: the batch, and whoever leads next.
        let next = state.waiting.front().map(|waiting| waiting.thread.clone());
        drop(state);
        let me = thread::current().id();
        for thread in next.iter().chain(self.batch.iter().map(|(_, thread)| thread)) {
            if thread.id() != me {
                thread.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<J>(waiting: &mut VecDeque<Waiting<J>>) -> Vec<Waiting<J>> {
        waiting.drain(..).collect()
    }

    #[test]
    fn everybody_gets_their_own_answer() {
        let queue: Queue<usize, usize> = Queue::new();
        thread::scope(|scope| {
            for number in 0..16 {
                let queue = &queue;
                scope.spawn(move || {
                    for round in 0..200 {
                        let job = number * 1000 + round;
                        let double = |jobs: Vec<usize>| jobs.iter().map(|job| job * 2).collect();
                        assert_eq!(queue.submit(job, all, double, || 0), job * 2);
                    }
                });
            }
        });
    }

    #[test]
    fn a_leader_that_panics_leaves_nobody_waiting() {
        let queue: Queue<usize, usize> = Queue::new();
        let answers: Vec<usize> = thread::scope(|scope| {
            let work = |jobs: Vec<usize>| {
                assert!(!jobs.contains(&0), "the leader's own mistake");
                jobs
            };
            let threads: Vec<_> = (0..8)
                .map(|job| {
                    scope.spawn({
                        let queue = &queue;
                        move || queue.submit(job, all, work, || 99)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(99)).collect()
        });
        assert!(
            answers.iter().enumerate().all(|(job, answer)| *answer == job || *answer == 99),
            "{answers:?}"
        );
        assert_eq!(queue.submit(5, all, |jobs| jobs, || 99), 5);
    }
}
