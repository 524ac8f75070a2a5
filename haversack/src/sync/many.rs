//! Many requests under way at a time, a bounded number of them.

use std::future::Future;
use std::pin::Pin;

use futures_util::{StreamExt, TryStreamExt, stream};
use haversack_store::aside;

/// How many requests to a remote are under way at a time.
pub(super) const MAX_AT_ONCE: usize = 16;

/// How many working files are given their names at a time: a disk makes that many durable together.
pub(super) const MAX_FILES_AT_ONCE: usize = 2_048;

/// Something that is under way.
pub(super) type Work<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Does many things, a bounded number of them at a time, and returns what came of them in their order; the first error ends it.
pub(super) async fn many<'a, T: Send + 'a, E: Send + 'a>(
    at_once: usize,
    work: Vec<Work<'a, T, E>>,
) -> Result<Vec<T>, E> {
    stream::iter(set_aside(work)).buffered(at_once).try_collect().await
}

/// Lets things be done at a time that a thread which waits would do one by one.
fn set_aside<'a, T: 'a, E: 'a>(work: Vec<Work<'a, T, E>>) -> Vec<Work<'a, T, E>> {
    // Who is alone waits for nobody.
    if work.len() < 2 {
        return work;
    }
    work.into_iter().map(|one| -> Work<'a, T, E> { Box::pin(aside(one)) }).collect()
}
