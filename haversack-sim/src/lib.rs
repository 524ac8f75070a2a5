//! A disk that crashes, forgets and fails on purpose: the ground on which Haversack's promises are tested.
//!
//! [`SimDisk`] implements the seam [`Fs`](haversack_store::device_local::fs::Fs) in memory. Everything that
//! happens on it follows from a seed and the calls made: no clock, no thread, no real file.
//!
//! # Modelled
//! - A volatile and a durable state of every file and directory. Content becomes durable by `sync_files`,
//!   names by `sync_dir`; what one directory was told becomes durable in the order it was told.
//! - A process that dies before any call, in the middle of a write or of a note ([`SimDisk::crash_after`],
//!   [`Crash::Kill`]).
//! - A machine that stops ([`Crash::PowerLoss`]): of the changes of names that were not synced some first
//!   ones survive, per directory; content that was not synced is old, new, cut short or zeros. Bytes that
//!   were durable and not touched since stay. The note is lost, an older one or the last one.
//! - Calls that fail ([`SimDisk::fail_at`]), writes that take only a few bytes
//!   ([`SimDisk::write_at_most`]), a filesystem that cannot exchange ([`Exchange`]).
//! - Programs that take no lock and act between any two calls ([`SimDisk::at_call`], [`Editor`]), through a
//!   name or through a descriptor opened long before.
//! - Hard links, symbolic links (as things in the way), permissions as numbers.
//!
//! # Not modelled
//! - Two of our processes at once, and therefore batches of several writers.
//! - A sync that fails and marks the lost pages clean: here a later sync writes them.
//! - Rename over two directories that is half durable: journalling filesystems do not do that.
//! - Other devices, quotas, case-insensitive names, access rights, the cost of anything.
//!
//! [`Mutant`] breaks a disk in ways that the tests must notice, so that they are known to look.

mod disk;
mod editor;
mod image;
mod mutant;
mod random;
mod schedule;
pub mod sync;

pub use disk::{Crash, Exchange, Names, SimDir, SimDisk, SimFile, SimLock};
pub use editor::{Descriptor, Editor};
pub use image::Seen;
pub use mutant::{Flaw, Mutant};
pub use random::Random;
pub use schedule::{Call, Verb};
