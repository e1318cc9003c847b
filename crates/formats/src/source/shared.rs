//! What readers of parts of a definition change together, also from several threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that is shared by reference and changed by whoever has it for the moment. Held briefly: what one thread does
/// with it is never waited for by work.
#[derive(Debug, Default)]
pub(crate) struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// The value, for as long as the guard lives.
    ///
    /// A thread that panicked with it leaves it as it was then: the panic goes on in the thread that waits for that one.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, when nobody shares it any more.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Shared<T> {
    /// A copy of the value.
    pub(crate) fn get(&self) -> T {
        self.lock().clone()
    }
}
