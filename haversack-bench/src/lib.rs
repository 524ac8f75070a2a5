//! What the benchmarks of Haversack share: rounds, tables and a bare C loop to be compared with.
//!
//! A benchmark prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

pub mod bare;
pub mod growth;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod peer;
pub mod report;
pub mod scratch;
pub mod table;

use std::error::Error;

/// What can go wrong in a benchmark is told to a developer, whatever it is.
pub type Outcome<T> = Result<T, Box<dyn Error>>;
