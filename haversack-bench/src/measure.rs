//! Rounds, medians and ratios that a noisy machine cannot bend much.
//!
//! Contenders take turns in short rounds, so that whatever else the machine does meets all of them alike.
//! Medians of the same round are compared; the median of these comparisons is reported.

use std::time::Instant;

use crate::Outcome;

/// The duration of one operation.
pub type Nanoseconds = u64;

/// Does one round of a contender and returns how long each operation took.
pub type Contender<'a> = Box<dyn FnMut(usize) -> Outcome<Vec<Nanoseconds>> + 'a>;

/// The median of each round, by contender.
pub struct Race {
    laps: Vec<Vec<f64>>,
}

impl Race {
    /// Lets the contenders take turns for `rounds`, each time beginning with another one.
    ///
    /// A first round warms caches and is forgotten.
    pub fn run(rounds: usize, mut contenders: Vec<Contender<'_>>) -> Outcome<Race> {
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
    pub fn nanoseconds(&self, contender: usize) -> f64 {
        median(self.laps[contender].iter().copied())
    }

    /// Returns how many times as long as `other` the contender took.
    pub fn ratio(&self, contender: usize, other: usize) -> f64 {
        median(self.laps[contender].iter().zip(&self.laps[other]).map(|(ours, theirs)| ours / theirs))
    }
}

/// Returns the middle value; of an even number the mean of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// Does `work` and notes how long it took.
pub fn timed<T>(samples: &mut Vec<Nanoseconds>, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    samples.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    result
}

/// Numbers without a pattern that a directory's order could match, the same in every run.
pub struct Picks(u64);

impl Picks {
    /// Starts at the first number.
    pub fn start() -> Picks {
        Picks(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a usize")
    }
}
