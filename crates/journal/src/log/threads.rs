//! Looks at many runs at once.

use std::{panic, thread};

/// Below this many items a thread costs more than it saves.
const ITEMS_MIN: usize = 128;
/// More threads wait for each other's folders.
const THREADS_MAX: usize = 8;

/// Maps items in their order, many of them on several threads.
pub fn map_on_threads<I: Sync, O: Send>(items: &[I], map: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let threads = threads.min(items.len() / ITEMS_MIN);
    if threads < 2 {
        return items.iter().map(map).collect();
    }
    let map = &map;
    thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(map).collect::<Vec<O>>())).collect();
        let join = |part: thread::ScopedJoinHandle<'_, Vec<O>>| {
            part.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        };
        parts.into_iter().flat_map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_stays() {
        for count in [0, 1, ITEMS_MIN, 2 * ITEMS_MIN, 1_001] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map_on_threads(&items, |item| item + 1), (1..=count).collect::<Vec<_>>());
        }
    }
}
