//! A value that takes long to make, and is made again beside the views that use it.
//!
//! 1. A view asks for the value. If it was made a moment ago, the view gets it.
//! 2. Else a thread makes it again, and the view waits for [`PATIENCE`]. In a store of usual size that is enough, so views are never old.
//! 3. If it is not ready by then, the view gets the earlier value, and a later view the new one.
//! 4. After [`Kept::spoil`] every view waits until the value is made anew: a user sees their own change.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::CommandError;

/// The time that a view waits for a newer value if there is an earlier one.
const PATIENCE: Duration = Duration::from_millis(25);

/// A value that is made again beside its users.
pub(super) struct Kept<T> {
    shared: Arc<Shared<T>>,
    /// The time for which a value serves without a new look.
    life: Duration,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    made: Condvar,
}

struct State<T> {
    value: Option<Arc<T>>,
    /// The moment when the making of the value began.
    since: Option<Instant>,
    /// The number of times that the value was spoiled, now and when the making of the value began.
    spoiled: u64,
    made_after: u64,
    is_underway: bool,
    /// Why the last attempt failed, for the view that waited for it.
    failed: Option<CommandError>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Kept<T> {
        Kept { shared: self.shared.clone(), life: self.life }
    }
}

impl<T: Send + Sync + 'static> Kept<T> {
    pub(super) fn new(life: Duration) -> Kept<T> {
        let state =
            State { value: None, since: None, spoiled: 0, made_after: 0, is_underway: false, failed: None };
        Kept { shared: Arc::new(Shared { state: Mutex::new(state), made: Condvar::new() }), life }
    }

    /// Returns the value. `make` gets the earlier one.
    pub(super) fn get(
        &self,
        make: impl Fn(Option<&Arc<T>>) -> Result<Arc<T>, CommandError> + Clone + Send + 'static,
    ) -> Result<Arc<T>, CommandError> {
        let asked = Instant::now();
        let mut state = self.lock();
        let wanted = state.spoiled;
        if !state.is_underway {
            // It was the failure of a look that nobody waited for.
            state.failed = None;
        }
        loop {
            let is_usable = state.value.is_some() && state.made_after >= wanted;
            let is_fresh = state.since.is_some_and(|since| since.elapsed() < self.life);
            let left = PATIENCE.saturating_sub(asked.elapsed());
            if let Some(value) = state.value.as_ref().filter(|_| is_usable && (is_fresh || left.is_zero())) {
                return Ok(value.clone());
            }
            if let Some(why) = state.failed.take() {
                return Err(why);
            }
            if !state.is_underway {
                state.is_underway = true;
                self.begin(make.clone(), state.value.clone(), state.spoiled);
            }
            state = match is_usable {
                true => {
                    let waited = self.shared.made.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                false => self.shared.made.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Notes that the value is old.
    pub(super) fn spoil(&self) {
        self.lock().spoiled += 1;
    }

    fn begin(
        &self,
        make: impl FnOnce(Option<&Arc<T>>) -> Result<Arc<T>, CommandError> + Send + 'static,
        earlier: Option<Arc<T>>,
        spoiled: u64,
    ) {
        let kept = self.clone();
        let since = Instant::now();
        std::thread::spawn(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| make(earlier.as_ref())));
            let mut state = kept.lock();
            match done.unwrap_or_else(|_| Err(CommandError::ours("a look at the memory failed"))) {
                Ok(value) => {
                    state.value = Some(value);
                    state.since = Some(since);
                    state.made_after = spoiled;
                    state.failed = None;
                }
                Err(why) => state.failed = Some(why),
            }
            state.is_underway = false;
            kept.shared.made.notify_all();
        });
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn spoiled_value_is_made_again_before_it_is_returned() {
        let kept: Kept<u32> = Kept::new(LONG);
        let count = Arc::new(AtomicU32::new(0));
        let make = {
            let count = count.clone();
            move |_: Option<&Arc<u32>>| Ok(Arc::new(count.fetch_add(1, Ordering::SeqCst)))
        };
        assert_eq!(*kept.get(make.clone()).expect("made"), 0);
        assert_eq!(*kept.get(make.clone()).expect("kept"), 0);
        kept.spoil();
        assert_eq!(*kept.get(make).expect("made"), 1);
    }

    #[test]
    fn slow_look_leaves_the_earlier_value_and_failure_reaches_a_view() {
        let kept: Kept<u32> = Kept::new(Duration::ZERO);
        assert_eq!(*kept.get(|_| Ok(Arc::new(1))).expect("made"), 1);
        let (go, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let slow = move |_: Option<&Arc<u32>>| {
            let _ = gate.lock().expect("whole").recv();
            Ok(Arc::new(2))
        };
        assert_eq!(*kept.get(slow.clone()).expect("the earlier one"), 1);
        drop(go);
        kept.spoil();
        assert_eq!(*kept.get(slow).expect("made"), 2);
        let never: Kept<u32> = Kept::new(LONG);
        assert!(never.get(|_| Err(CommandError::ours("broken"))).is_err());
        assert_eq!(*never.get(|_| Ok(Arc::new(3))).expect("made"), 3);
    }
}
