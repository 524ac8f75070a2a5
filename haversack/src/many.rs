//! Many requests under way at a time, a bounded number of them.

use std::future::Future;
use std::pin::Pin;

use futures_util::{StreamExt, TryStreamExt, stream};
use haversack_store::aside;

/// The most requests to a remote at a time.
pub(crate) const MAX_AT_ONCE: usize = 16;

/// The number of working files that are put in place together: a disk makes that many durable at once.
pub(crate) const MAX_FILES_AT_ONCE: usize = 2_048;

/// Something that is under way.
pub(crate) type Work<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Does many things, a bounded number of them at a time, and returns what came of them in their order; the first error ends it.
///
/// Each future is made when its turn comes: a hundred thousand waiting futures would take as much memory as their files.
pub(crate) fn many<'a, T: Send + 'a, E: Send + 'a>(
    at_once: usize,
    work: impl IntoIterator<Item = Work<'a, T, E>, IntoIter: Send + 'a>,
) -> Work<'a, Vec<T>, E> {
    // Boxed: the compiler cannot tell for every lifetime that the closures of an iterator may go to another thread.
    Box::pin(stream::iter(set_aside(work.into_iter())).buffered(at_once).try_collect())
}

/// Lets things be done at a time that a thread which waits would do one by one.
fn set_aside<'a, T: 'a, E: 'a>(
    mut work: impl Iterator<Item = Work<'a, T, E>>,
) -> impl Iterator<Item = Work<'a, T, E>> {
    let (first, second) = (work.next(), work.next());
    // A single task need not wait for others.
    let is_alone = second.is_none();
    first.into_iter().chain(second).chain(work).map(move |one| -> Work<'a, T, E> {
        if is_alone { one } else { Box::pin(aside(one)) }
    })
}
