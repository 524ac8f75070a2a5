//! The length of a run.

/// The amounts of work in a run.
pub(crate) struct Effort {
    /// Rounds of a race on the disk, and operations in each.
    pub(crate) disk: (usize, usize),
    /// Rounds of a race in memory, and operations in each.
    pub(crate) memory: (usize, usize),
    /// Rounds of whole listings.
    pub(crate) listings: usize,
    /// The number of contests for one file.
    pub(crate) contests: usize,
    /// The most files in one directory.
    pub(crate) files: usize,
}

impl Effort {
    pub(crate) const FULL: Effort =
        Effort { disk: (41, 15), memory: (61, 50), listings: 15, contests: 5, files: 100_000 };

    pub(crate) const QUICK: Effort =
        Effort { disk: (11, 9), memory: (15, 30), listings: 5, contests: 1, files: 10_000 };
}
