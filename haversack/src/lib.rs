//! The engine of Haversack: an AI agent's memory as plain files that its owner keeps.
//!
//! Everything here is `async` over [`dyn Backend`](store::Backend) and decides without a disk, a clock, randomness, the
//! environment or a terminal: whatever is needed of those is handed in.
//!
//! [`Memory`] is the handle with the verbs. [`memory_tool`] and [`file_storage`] are its faces: what an agent with Anthropic's memory
//! tool and what a program written against six file commands expect. [`sync`] brings devices together over a [`log`], by [`merge`];
//! [`migrate`] copies what one storage holds to another.

pub mod carried;
pub mod carry_forward;
pub mod check;
mod checklist;
pub mod clock;
pub mod commitments;
pub mod conflict;
pub mod context;
pub mod day;
pub mod digest;
pub mod display;
pub mod document;
mod error;
pub mod event;
pub mod file_storage;
// Tests forge files with it, and read the manifest of a remote.
#[cfg(not(feature = "testing"))]
#[expect(unreachable_pub, reason = "only the feature makes it public")]
mod frame;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod frame;
pub mod graph;
mod growing_hash;
mod growth;
pub mod history;
pub mod home;
pub mod ids;
pub mod index;
pub mod kind;
pub mod log;
#[cfg(not(feature = "testing"))]
#[expect(unreachable_pub, reason = "only the feature makes it public")]
mod manifest;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod manifest;
mod many;
mod memory;
pub mod memory_tool;
pub mod merge;
pub mod migrate;
pub mod names;
// The simulator switches planted mistakes on. Without the feature they are not part of the library.
#[cfg(not(feature = "planted"))]
mod planted;
#[cfg(feature = "planted")]
#[doc(hidden)]
pub mod planted;
pub mod proposal;
pub mod relationship;
pub mod remember;
mod rewrite;
pub mod schema;
pub mod secrets;
mod signed;
pub mod stale;
pub mod summary;
pub mod sync;
mod table;
mod text;
pub mod tidy;
pub mod tokens;
pub mod vault;

pub use haversack_store as store;

pub use self::error::{Error, Reason, Result, Verb};
pub use self::memory::{
    BatchReport, Change, Conflicts, Depth, Edited, MAX_TEXT_BYTES, Memory, Resolved, View,
};
pub use self::rewrite::{Rewritten, rewrite};
pub use self::signed::{Writer, writer_of};
pub use self::text::{Ending, Occurrences};

/// The README's example is compiled with the documentation's. `haversack-system` runs those of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
