//! The tests of the seam against real disks and real processes.

mod broken;
mod conform;
