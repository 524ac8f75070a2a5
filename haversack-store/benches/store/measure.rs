//! Rounds, medians and ratios that a noisy machine cannot bend much.
//!
//! Contenders take turns in short rounds, so that whatever else the machine does meets all of them alike.
//! What is compared are medians of the same round; what is reported is the median of those comparisons.

use std::time::{Duration, Instant};

use crate::Outcome;

/// How long one operation took.
pub(crate) type Nanoseconds = u64;

/// Does one round of a contender and returns how long each operation took.
pub(crate) type Contender<'a> = Box<dyn FnMut(usize) -> Outcome<Vec<Nanoseconds>> + 'a>;

/// The median of each round, by contender.
pub(crate) struct Race {
    laps: Vec<Vec<f64>>,
}

impl Race {
    /// Lets the contenders take turns for `rounds`, each time beginning with another one.
    ///
    /// A first round warms caches and is forgotten.
    pub(crate) fn run(rounds: usize, mut contenders: Vec<Contender<'_>>) -> Outcome<Race> {
        let mut laps = vec![Vec::with_capacity(rounds); contenders.len()];
        for round in 0..=rounds {
            for turn in 0..contenders.len() {
                let contender = (round + turn) % contenders.len();
                let samples = contenders[contender](round)?;
                if round > 0 {
                    laps[contender].push(median(samples.into_iter().map(|sample| sample as f64)));
                }
            }
        }
        Ok(Race { laps })
    }

    /// Returns the median of a contender's rounds in nanoseconds.
    pub(crate) fn nanoseconds(&self, contender: usize) -> f64 {
        median(self.laps[contender].iter().copied())
    }

    /// Returns how many times as long as `other` the contender took.
    pub(crate) fn ratio(&self, contender: usize, other: usize) -> f64 {
        median(self.laps[contender].iter().zip(&self.laps[other]).map(|(ours, theirs)| ours / theirs))
    }
}

/// Returns the middle value; of an even number the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// Does `work` and notes how long it took.
pub(crate) fn timed<T>(samples: &mut Vec<Nanoseconds>, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    samples.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    result
}

/// Numbers without a pattern that a directory's order could match, the same in every run.
pub(crate) struct Picks(u64);

impl Picks {
    pub(crate) fn new() -> Picks {
        Picks(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }
}

/// How much of everything a run does.
pub(crate) struct Effort {
    /// Rounds of a race on the disk, and operations in each.
    pub(crate) disk: (usize, usize),
    /// Rounds of a race in memory, and operations in each.
    pub(crate) memory: (usize, usize),
    /// Rounds of the throughput comparison, and how long each side of one lasts.
    pub(crate) throughput: (usize, Duration),
    /// Rounds of whole scans and listings.
    pub(crate) scans: usize,
    /// The most files, a multiple of 1,000.
    pub(crate) files: usize,
}

impl Effort {
    pub(crate) const FULL: Effort = Effort {
        disk: (25, 15),
        memory: (41, 100),
        throughput: (7, Duration::from_millis(300)),
        scans: 9,
        files: 100_000,
    };

    pub(crate) const QUICK: Effort = Effort {
        disk: (7, 7),
        memory: (15, 50),
        throughput: (3, Duration::from_millis(200)),
        scans: 5,
        files: 10_000,
    };
}
