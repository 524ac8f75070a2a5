//! The environment variables that Haversack reads, all of them.

/// The directory that Haversack keeps everything in; `--home` wins over it.
pub(crate) const HOME: &str = "HAVERSACK_HOME";
