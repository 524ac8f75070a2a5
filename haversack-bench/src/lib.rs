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
use std::path::PathBuf;

/// A developer reads every error of a benchmark, so any error will do.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The environment variable with the program that is measured: `cargo xtask bench NAME --program FILE` sets it.
const PROGRAM: &str = "HAVERSACK_BENCH_PROGRAM";

/// Returns the program that is measured: the named one, or else the one that cargo built for the benchmark.
pub fn program(built: &str) -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| built.into(), PathBuf::from)
}
