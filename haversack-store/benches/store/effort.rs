//! The length of a run.

use std::time::Duration;

/// The amounts of work in a run.
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
