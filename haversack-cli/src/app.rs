//! The tasks of Haversack. Each is a function that returns data and prints nothing.
//!
//! Commands print a result or turn it into JSON, the server of the Model Context Protocol turns it into the text of a tool. A result whose text
//! is the same for both has it as a method.

pub(crate) mod archive;
pub(crate) mod at_hand;
pub(crate) mod carry;
pub(crate) mod commitments;
pub(crate) mod complete;
pub(crate) mod conflicts;
pub(crate) mod create;
pub(crate) mod devices;
pub(crate) mod digest;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod memories;
pub(crate) mod memory_stores;
pub(crate) mod mirror;
pub(crate) mod model;
pub(crate) mod passages;
pub(crate) mod projects;
pub(crate) mod prune;
pub(crate) mod recall;
pub(crate) mod remember;
pub(crate) mod restore;
pub(crate) mod review;
pub(crate) mod revise;
pub(crate) mod schedule;
pub(crate) mod session;
pub(crate) mod stale;
pub(crate) mod status;
pub(crate) mod summary;
pub(crate) mod sync;
pub(crate) mod tidy;
pub(crate) mod undo;
pub(crate) mod vectors;
mod zip;
