//! Work on many items by several threads.

/// The most threads that work at once, and the fewest items that are worth one.
const MAX_THREADS: usize = 4;
const WORTH_A_THREAD: usize = 32;

/// Does the same with every item, in shares on several threads if they are many. The results are in the items' order.
pub(crate) fn in_shares<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = items.len().div_ceil(threads);
    if share < WORTH_A_THREAD {
        return items.iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let shares = items.chunks(share);
        let threads: Vec<_> =
            shares.map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<R>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the work does not panic")).collect()
    })
}
