//! Work on the steps of a definition, on all cores.
//!
//! What comes out never depends on which thread was faster.

use std::{
    num::NonZero,
    panic::resume_unwind,
    thread::{self, ScopedJoinHandle},
};

/// So much to do is worth a thread, which takes some 50 microseconds to begin: this many steps take longer.
const WORTH_A_THREAD: usize = 64;

/// Does two things that have to be done for some number of steps: at the same time where that is worth it, else the second
/// after the first.
pub fn together<A: Send, B: Send>(
    steps: usize,
    one: impl Fn() -> A + Sync,
    other: impl FnOnce() -> B,
) -> (A, B) {
    if steps < WORTH_A_THREAD {
        return (one(), other());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &one);
        let other = other();
        // Where no thread can be begun it is done here.
        (thread.map_or_else(|_| one(), join), other)
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Does the same for each of some steps, on all cores where that is worth it. What comes out is in their order.
pub fn for_each<T: Sync, R: Send>(steps: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(steps.len() / WORTH_A_THREAD);
    if threads < 2 {
        return steps.iter().map(work).collect();
    }
    let work = &work;
    thread::scope(|scope| {
        let parts = steps.chunks(steps.len().div_ceil(threads));
        let parts: Vec<_> = parts
            .map(|part| {
                let all = move || part.iter().map(work).collect::<Vec<R>>();
                (thread::Builder::new().spawn_scoped(scope, all), all)
            })
            .collect();
        // A part for which no thread can be begun is done here.
        parts.into_iter().flat_map(|(thread, all)| thread.map_or_else(|_| all(), join)).collect()
    })
}

/// Takes something large apart beside what comes next.
pub fn drop_beside<T: Send + 'static>(value: T) {
    // Where no thread can be begun, the closure is dropped here and now, with what it holds.
    let _ = thread::Builder::new().spawn(move || drop(value));
}

#[cfg(test)]
mod tests {
    use super::{for_each, together};

    #[test]
    fn what_comes_out_is_in_order_however_many_there_are() {
        for count in [0, 1, 63, 64, 127, 128, 1000] {
            let numbers: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = numbers.iter().map(|number| number * 2).collect();
            assert_eq!(for_each(&numbers, |number| number * 2), doubled);
            let sum = || numbers.iter().sum::<usize>();
            assert_eq!(together(count, sum, || numbers.len()), (sum(), count));
        }
    }

    #[test]
    fn a_panic_goes_on_in_who_waits() {
        let panics = || together(1000, || -> u8 { panic!("one") }, || ());
        assert!(std::panic::catch_unwind(panics).is_err());
        let numbers: Vec<usize> = (0..1000).collect();
        assert!(std::panic::catch_unwind(|| for_each(&numbers, |at| assert!(*at < 900))).is_err());
    }
}
