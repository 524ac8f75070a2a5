//! The tests of the seam against real disks and real processes.

mod broken;
mod cached;
mod clouds;
mod conform;
mod derived;
#[cfg(unix)]
mod hostile;
mod runtimes;
mod selection;
