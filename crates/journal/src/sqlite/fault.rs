//! The one place that knows what SQLite's errors mean to a journal.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::Error;

/// What ends a query or a transaction, before it is known in which file and to what end.
#[derive(Debug)]
pub(super) enum Fault {
    /// The operation was refused, or its fault is named already.
    Named(Error),
    /// The content can't be what was written.
    Damaged(String),
    /// SQLite says so.
    Sqlite(rusqlite::Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Named(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Fault {
    /// Tells whether another process had the file locked for longer than SQLite waits.
    pub(super) fn is_busy(&self) -> bool {
        let Self::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) = self else { return false };
        matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    }

    /// Names the file and what was to be done in it (a verb: "append a record").
    pub(super) fn into_error(self, path: &Path, doing: &'static str) -> Error {
        let busy = self.is_busy();
        let path = path.to_owned();
        match self {
            Self::Named(error) => error,
            Self::Damaged(what) => Error::Damaged { path, what, source: None },
            Self::Sqlite(source) if busy => Error::Busy { path, doing, source: source.into() },
            Self::Sqlite(source) => match damage(&source) {
                Some(what) => Error::Damaged { path, what: what.to_owned(), source: Some(source.into()) },
                None => Error::Store { path, doing, source: source.into() },
            },
        }
    }
}

fn damage(error: &rusqlite::Error) -> Option<&'static str> {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::NotADatabase => Some("it is no database"),
            ErrorCode::DatabaseCorrupt => Some("its pages do not fit together"),
            _ => None,
        },
        // The tables are strict and written by this crate only, so a value of another kind was never written.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::FromSqlConversionFailure(..) => Some("a value is not of its kind"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn named(code: i32) -> Error {
        let fault = Fault::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        fault.into_error(Path::new("j.db"), "append a record")
    }

    #[test]
    fn only_waiting_is_worth_a_retry() {
        let busy = named(ffi::SQLITE_BUSY);
        assert_eq!(busy.to_string(), "journal `j.db` is busy: could not append a record");
        assert!(busy.retry_helps());
        let full = named(ffi::SQLITE_FULL);
        assert_eq!(full.to_string(), "journal `j.db`: could not append a record");
        assert!(!full.retry_helps());
    }

    #[test]
    fn damage_is_told_apart_from_failure() {
        let damaged = named(ffi::SQLITE_CORRUPT);
        assert_eq!(damaged.to_string(), "journal `j.db` is damaged: its pages do not fit together");
        assert!(damaged.hint().is_some());
        assert!(matches!(named(ffi::SQLITE_IOERR), Error::Store { .. }));
    }
}
