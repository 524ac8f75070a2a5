//! Schedules of the sync simulator.

use crate::run::{cargo, step};

/// Runs the simulator, built for speed.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let arguments =
        ["run", "--quiet", "--release", "--package", "haversack-sim", "--bin", "haversack-sim", "--"];
    step("simulation", cargo(&arguments).args(options))
}
