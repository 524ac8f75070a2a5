//! How bad the way to the remote is, and the moments in which others act.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::random::Random;

/// A moment in which others act: pending once, and awake again at once.
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

/// Lets others act.
pub(crate) fn moment() -> impl Future<Output = ()> + Send {
    Moment { passed: false }
}

/// Of a hundred requests, how many meet each fate; and whether listings are old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    pub(crate) lost_requests: usize,
    pub(crate) lost_answers: usize,
    pub(crate) delayed: usize,
    pub(crate) repeated: usize,
    pub(crate) refused: usize,
    /// The number of requests that begin a time without access for this device.
    pub(crate) denied: usize,
    /// The most newest writes that a listing misses.
    pub(crate) stale: usize,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    RequestLost,
    AnswerLost,
    Delayed,
    Repeated,
    Refused,
    Denied,
}

impl Weather {
    /// Returns a weather of some kinds and not others.
    pub(crate) fn swarm(random: &mut Random) -> Weather {
        let mut share = |most: usize| if random.coin() { random.between(0, most) } else { 0 };
        Weather {
            lost_requests: share(15),
            lost_answers: share(15),
            delayed: share(10),
            repeated: share(10),
            refused: share(10),
            denied: share(4),
            stale: share(3),
        }
    }

    /// Decides about one request.
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        let mut rest = random.between(0, 99);
        for (share, fate) in [
            (self.lost_requests, Fate::RequestLost),
            (self.lost_answers, Fate::AnswerLost),
            (self.delayed, Fate::Delayed),
            (self.repeated, Fate::Repeated),
            (self.refused, Fate::Refused),
            (self.denied, Fate::Denied),
        ] {
            if rest < share {
                return fate;
            }
            rest -= share;
        }
        Fate::Arrives
    }

    /// Returns the kinds of bad weather one by one, each to be switched off.
    pub(crate) fn kinds(&mut self) -> [&mut usize; 7] {
        [
            &mut self.lost_requests,
            &mut self.lost_answers,
            &mut self.delayed,
            &mut self.repeated,
            &mut self.refused,
            &mut self.denied,
            &mut self.stale,
        ]
    }
}
