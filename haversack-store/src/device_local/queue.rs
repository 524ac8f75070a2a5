//! Writers of one process wait together: one leads and works for all who queued meanwhile.
//!
//! A thread that waits for its answer leads on the spot. A task that must not block has a thread lead that is kept for such work; many tasks
//! that one thread polls then cost a wake-up for each batch, and not several for each job.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Jobs of many threads and tasks, done in batches by whichever comes first.
#[derive(Debug)]
pub(super) struct Queue<J, R> {
    state: Mutex<State<J, R>>,
}

#[derive(Debug)]
struct State<J, R> {
    waiting: VecDeque<Waiting<J>>,
    /// For everybody who has not got an answer yet; who went away is not in it.
    answers: HashMap<u64, Answer<R>>,
    led: bool,
    next: u64,
}

/// A job that was not begun.
#[derive(Debug)]
pub(super) struct Waiting<J> {
    pub(super) job: J,
    ticket: u64,
}

#[derive(Debug)]
enum Answer<R> {
    Awaited(Option<Waker>),
    Here(R),
}

/// How jobs are done in batches.
pub(super) trait Batches<J, R> {
    /// Takes from the queue what can be done together, the front included.
    fn choose(&self, waiting: &mut VecDeque<Waiting<J>>) -> Vec<Waiting<J>>;

    /// Does jobs and returns a result for each.
    fn work(&self, jobs: Vec<J>) -> Vec<R>;

    /// Returns the result of a job whose leader panicked.
    fn lost(&self) -> R;
}

/// The time that a leader leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leads {
    OneBatch,
    WhileAnyWait,
}

impl<J, R> Queue<J, R> {
    pub(super) fn new() -> Queue<J, R> {
        let state = State { waiting: VecDeque::new(), answers: HashMap::new(), led: false, next: 0 };
        Queue { state: Mutex::new(state) }
    }

    /// Returns the result of `job`, done by this thread or by another that leads a batch with it.
    pub(super) fn submit(&self, job: J, batches: &impl Batches<J, R>) -> R {
        let place = self.enter(job);
        loop {
            match place.turn(|| Waker::from(Arc::new(Parked(thread::current())))) {
                NextStep::Done(result) => return result,
                NextStep::Lead => self.lead(batches, Leads::OneBatch),
                NextStep::Wait => thread::park(),
            }
        }
    }

    /// Returns the result of `job` without blocking; `lead` lets another thread call [`Queue::lead_all`].
    pub(super) async fn submit_aside(&self, job: J, lead: impl Fn()) -> R {
        let place = self.enter(job);
        poll_fn(|context| match place.turn(|| context.waker().clone()) {
            NextStep::Done(result) => Poll::Ready(result),
            NextStep::Lead => {
                lead();
                Poll::Pending
            }
            NextStep::Wait => Poll::Pending,
        })
        .await
    }

    /// Leads until no job waits; only for a caller that was told to lead.
    pub(super) fn lead_all(&self, batches: &impl Batches<J, R>) {
        self.lead(batches, Leads::WhileAnyWait);
    }

    fn lead(&self, batches: &impl Batches<J, R>, leads: Leads) {
        loop {
            let chosen = batches.choose(&mut self.state().waiting);
            let tickets = chosen.iter().map(|waiting| waiting.ticket).collect();
            let mut leading = Leading { queue: self, batches, tickets, results: Vec::new() };
            if !chosen.is_empty() {
                leading.results = batches.work(chosen.into_iter().map(|waiting| waiting.job).collect());
            }
            drop(leading);
            let mut state = self.state();
            if leads == Leads::OneBatch || state.waiting.is_empty() {
                return state.let_another_lead();
            }
        }
    }

    fn enter(&self, job: J) -> QueueSlot<'_, J, R> {
        let mut state = self.state();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(Waiting { job, ticket });
        state.answers.insert(ticket, Answer::Awaited(None));
        QueueSlot { queue: self, ticket }
    }

    fn state(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, R> State<J, R> {
    fn let_another_lead(&mut self) {
        self.led = false;
        if let Some(front) = self.waiting.front()
            && let Some(Answer::Awaited(Some(waker))) = self.answers.get(&front.ticket)
        {
            waker.wake_by_ref();
        }
    }
}

/// A place in the queue; dropping it leaves the queue.
struct QueueSlot<'a, J, R> {
    queue: &'a Queue<J, R>,
    ticket: u64,
}

/// The next action of the owner of a place.
enum NextStep<R> {
    Done(R),
    Lead,
    Wait,
}

impl<J, R> QueueSlot<'_, J, R> {
    /// Returns what to do next; who is to wait is woken when there is more to do.
    fn turn(&self, waker: impl FnOnce() -> Waker) -> NextStep<R> {
        let mut state = self.queue.state();
        if let Some(Answer::Here(_)) = state.answers.get(&self.ticket)
            && let Some(Answer::Here(result)) = state.answers.remove(&self.ticket)
        {
            return NextStep::Done(result);
        }
        state.answers.insert(self.ticket, Answer::Awaited(Some(waker())));
        if std::mem::replace(&mut state.led, true) { NextStep::Wait } else { NextStep::Lead }
    }
}

impl<J, R> Drop for QueueSlot<'_, J, R> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        // A job that was begun is still completed.
        if state.answers.remove(&self.ticket).is_some() {
            state.waiting.retain(|waiting| waiting.ticket != self.ticket);
        }
    }
}

/// Hands the results of a batch out, however it ends.
struct Leading<'a, J, R, B: Batches<J, R>> {
    queue: &'a Queue<J, R>,
    batches: &'a B,
    tickets: Vec<u64>,
    results: Vec<R>,
}

impl<J, R, B: Batches<J, R>> Drop for Leading<'_, J, R, B> {
    fn drop(&mut self) {
        let mut results = self.results.drain(..);
        let mut wakers = Vec::new();
        // Dropping results without a receiver may take time.
        let mut unwanted = Vec::new();
        let mut state = self.queue.state();
        for ticket in &self.tickets {
            let result = results.next().unwrap_or_else(|| self.batches.lost());
            match state.answers.get_mut(ticket) {
                Some(answer) => {
                    if let Answer::Awaited(Some(waker)) = std::mem::replace(answer, Answer::Here(result)) {
                        wakers.push(waker);
                    }
                }
                None => unwanted.push(result),
            }
        }
        if thread::panicking() {
            state.let_another_lead();
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A thread that waits.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use futures_util::task::noop_waker;
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    /// Doubles numbers; a zero makes its leader panic.
    struct Doubles;

    const LOST: usize = 99;

    impl Batches<usize, usize> for Doubles {
        fn choose(&self, waiting: &mut VecDeque<Waiting<usize>>) -> Vec<Waiting<usize>> {
            waiting.drain(..waiting.len().min(8)).collect()
        }

        fn work(&self, jobs: Vec<usize>) -> Vec<usize> {
            assert!(!jobs.is_empty() && !jobs.contains(&0), "the leader's own mistake");
            jobs.iter().map(|job| job * 2).collect()
        }

        fn lost(&self) -> usize {
            LOST
        }
    }

    type Numbers = Arc<Queue<usize, usize>>;

    async fn aside(queue: Numbers, job: usize) -> usize {
        let lead = || {
            let queue = queue.clone();
            drop(thread::spawn(move || queue.lead_all(&Doubles)));
        };
        queue.submit_aside(job, lead).await
    }

    fn is_empty(queue: &Numbers) -> bool {
        let state = queue.state();
        state.waiting.is_empty() && state.answers.is_empty()
    }

    #[test]
    fn everybody_gets_their_own_answer() {
        let queue = Numbers::new(Queue::new());
        thread::scope(|scope| {
            for number in 1..=8 {
                let queue = &queue;
                scope.spawn(move || {
                    for round in 0..200 {
                        let job = number * 1000 + round;
                        assert_eq!(queue.submit(job, &Doubles), job * 2);
                    }
                });
                scope.spawn(move || {
                    let jobs = stream::iter((1..=200).map(|round| aside(queue.clone(), round)));
                    let answers: Vec<usize> = crate::block_on(jobs.buffered(20).collect());
                    assert!(answers.iter().zip(1..).all(|(answer, round)| *answer == round * 2));
                });
            }
        });
        assert!(is_empty(&queue));
    }

    #[test]
    fn a_leader_that_panics_leaves_nobody_waiting() {
        let queue = Numbers::new(Queue::new());
        let answers: Vec<usize> = thread::scope(|scope| {
            let one = |job| {
                let queue = &queue;
                scope.spawn(move || queue.submit(job, &Doubles))
            };
            let threads: Vec<_> = (0..8).map(one).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(LOST)).collect()
        });
        let is_right = |(job, answer): (usize, &usize)| *answer == job * 2 || *answer == LOST;
        assert!(answers.iter().enumerate().all(is_right), "{answers:?}");
        let answers = crate::block_on(join_all((0..8).map(|job| aside(queue.clone(), job))));
        assert!(answers.iter().enumerate().all(is_right), "{answers:?}");
        assert_eq!(queue.submit(5, &Doubles), 10);
    }

    #[test]
    fn who_goes_away_leaves_nothing_behind() {
        let queue = Numbers::new(Queue::new());
        let mut first = Box::pin(queue.submit_aside(1, || {}));
        let mut second = Box::pin(queue.submit_aside(2, || {}));
        let waker = noop_waker();
        let mut context = std::task::Context::from_waker(&waker);
        assert!(first.poll_unpin(&mut context).is_pending() && second.poll_unpin(&mut context).is_pending());
        // The caller that was told to lead left before any other came.
        drop(first);
        queue.lead_all(&Doubles);
        assert_eq!(second.poll_unpin(&mut context), Poll::Ready(4));
        drop(second);
        assert!(is_empty(&queue));
        queue.lead_all(&Doubles);
        assert_eq!(queue.submit(3, &Doubles), 6);
    }
}
