//! Time, handed in: the engine never reads a clock by itself.

use crate::ids::Timestamp;

/// The source of the time.
pub trait Clock: Send + Sync {
    /// Returns the time, to be shown and for retention: nothing else may depend on it.
    fn now(&self) -> Timestamp;
}
