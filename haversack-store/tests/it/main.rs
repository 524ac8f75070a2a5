//! The tests of the seam against real disks and real processes.

mod agent_identity;
mod anthropic;
mod broken;
mod cached;
mod clouds;
mod conform;
mod derived;
#[cfg(unix)]
mod hostile;
mod runtimes;
mod seam;
mod selection;

/// Returns how often to do something: rather often, or very often in a soak.
#[expect(clippy::disallowed_methods, reason = "xtask tells a soak from a test by the environment")]
pub(crate) fn times(test: usize, soak: usize) -> usize {
    if std::env::var_os("HAVERSACK_SOAK").is_some() { soak } else { test }
}
