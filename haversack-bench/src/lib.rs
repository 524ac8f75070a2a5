//! The common parts of Haversack's benchmarks: rounds, tables and a bare C loop for comparison.
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

/// A developer reads every error of a benchmark, so any error will do.
pub type Outcome<T> = Result<T, Box<dyn Error>>;
