//! Work on the steps of a definition, on all cores.
//!
//! What comes out never depends on which thread was faster.

use std::{num::NonZero, panic::resume_unwind, thread};

/// So much to do is worth a thread, which takes some 50 microseconds to begin: this many steps take longer.
const WORTH_A_THREAD: usize = 64;

/// Does two things that have to be done for some number of steps: at the same time where that is worth it, else the second
/// after the first.
pub fn together<A: Send, B: Send>(
    steps: usize,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    if steps < WORTH_A_THREAD {
        return (one(), other());
    }
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| resume_unwind(panic)), other)
    })
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
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>())).collect();
        let done = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.flatten().collect()
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
        let panics = || together(1000, || panic!("one"), || ());
        assert!(std::panic::catch_unwind(panics).is_err());
        let numbers: Vec<usize> = (0..1000).collect();
        assert!(std::panic::catch_unwind(|| for_each(&numbers, |at| assert!(*at < 900))).is_err());
    }
}
