//! Waiting for a remote. It is handed in, because the engine has no timer and no randomness.

use async_trait::async_trait;

/// Decides how long a sync waits before it asks a remote again, and when it gives up.
#[async_trait]
pub trait Patience: Send + Sync {
    /// Waits before a request is repeated for the `repetition`-th time, longer each time and never equally long on two devices; returns
    /// true if another attempt makes sense.
    async fn wait(&self, repetition: usize) -> bool;

    /// Returns true if there is time for another step. Finished steps stay valid.
    fn has_time(&self) -> bool;
}

/// Does not wait, and takes all the time it needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impatient;

#[async_trait]
impl Patience for Impatient {
    async fn wait(&self, _: usize) -> bool {
        false
    }

    fn has_time(&self) -> bool {
        true
    }
}
