//! Benchmarks, each beside its peer in the same run.

use crate::run::{cargo, step};

/// Runs the benchmark of the local store; its tables go to stdout.
pub(crate) fn store(options: &[&str]) -> Result<(), String> {
    let arguments = ["bench", "--quiet", "--package", "haversack-store", "--bench", "store", "--"];
    step("bench store", cargo(&arguments).args(options))
}
