//! State that readers share, also across threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that several threads change by reference. Hold the lock briefly, never while doing other work.
#[derive(Debug, Default)]
pub(crate) struct SharedCell<T>(Mutex<T>);

impl<T> SharedCell<T> {
    /// Locks the value until the guard is dropped.
    ///
    /// A lock poisoned by a panic is used as it is: the panic continues in the thread that joins the panicked one.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unwraps the value.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> SharedCell<T> {
    /// A copy of the value.
    pub(crate) fn get(&self) -> T {
        self.lock().clone()
    }
}
