//! Maps SQLite's errors to errors of the journal.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::Error;

/// A failure of a query or transaction, without the file and the operation.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of the journal.
    Named(Error),
    /// The content is damaged.
    Damaged(String),
    /// An error of SQLite.
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
    /// Returns whether another process kept the file locked for longer than SQLite waits.
    pub(super) fn is_busy(&self) -> bool {
        let Self::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) = self else { return false };
        matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    }

    /// Adds the file and the operation (a verb: "append a record").
    pub(super) fn into_error(self, path: &Path, doing: &'static str) -> Error {
        let busy = self.is_busy();
        let path = path.to_owned();
        match self {
            Self::Named(error) => error,
            Self::Damaged(what) => Error::Damaged { path, what, source: None },
            Self::Sqlite(source) if busy => Error::Busy { path, doing, source: source.into() },
            Self::Sqlite(source) => match describe_damage(&source) {
                Some(what) => Error::Damaged { path, what: what.to_owned(), source: Some(source.into()) },
                None => Error::Store { path, doing, source: source.into() },
            },
        }
    }
}

fn describe_damage(error: &rusqlite::Error) -> Option<&'static str> {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::NotADatabase => Some("it is not a database"),
            ErrorCode::DatabaseCorrupt => Some("its pages are inconsistent"),
            _ => None,
        },
        // The tables are strict and only this crate writes them, so a value of another type is damage.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::FromSqlConversionFailure(..) => Some("a value has the wrong type"),
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
    fn a_retry_only_helps_when_busy() {
        let busy = named(ffi::SQLITE_BUSY);
        assert_eq!(busy.to_string(), "journal `j.db` is busy: could not append a record");
        assert!(busy.retry_helps());
        let full = named(ffi::SQLITE_FULL);
        assert_eq!(full.to_string(), "journal `j.db`: could not append a record");
        assert!(!full.retry_helps());
    }

    #[test]
    fn damage_and_failure_are_different_errors() {
        let damaged = named(ffi::SQLITE_CORRUPT);
        assert_eq!(damaged.to_string(), "journal `j.db` is damaged: its pages are inconsistent");
        assert!(damaged.hint().is_some());
        assert!(matches!(named(ffi::SQLITE_IOERR), Error::Store { .. }));
    }
}
