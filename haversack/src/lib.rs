//! The engine of Haversack: an AI agent's memory as plain files that its owner keeps.
//!
//! Everything here is `async` over [`dyn Backend`](store::Backend) and decides without a disk, a clock, randomness, the
//! environment or a terminal: whatever is needed of those is handed in.

pub mod check;

pub use haversack_store as store;

/// The README's example is compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
