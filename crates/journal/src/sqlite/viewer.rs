//! Reads a journal without changing any file.
//!
//! In write-ahead mode SQLite needs the log and its index, and a reader creates them if they are missing. So a journal
//! at rest, which has no log, is opened as immutable: without locks and new files, also in a read-only folder. A writer
//! may start at any time, so data from a journal at rest only counts if it was at rest before and after the read;
//! otherwise it is read again, with the log.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use super::files::{self, RestMetadata};
use super::open::configure_connection;
use super::record_counts::RecordCounts;
use super::schema::Format;
use crate::Error;

/// A read-only connection.
#[derive(Debug)]
pub(super) struct Viewer {
    path: PathBuf,
    connection: Connection,
    /// The metadata of the file when it was opened as immutable; `None` if the log is read as well.
    rest: Option<RestMetadata>,
}

impl Viewer {
    /// Opens the journal at `path`.
    pub(super) fn open(path: &Path, counts: &RecordCounts) -> Result<Self, Error> {
        let path = match files::resolve_links(path) {
            Err(missing @ Error::Missing { .. }) => {
                counts.refuse_lost_journal(path)?;
                return Err(missing);
            }
            resolved => resolved?,
        };
        files::refuse_cut(&path)?;
        let connected = connect_read_only(&path).and_then(|connected| {
            let (connection, rest) = connected;
            let mut viewer = Self { path: path.clone(), connection, rest };
            match viewer.read(|connection| Format::of(&connection.unchecked_transaction()?))? {
                // The file exists but its tables do not yet.
                Format::Empty => {
                    counts.refuse_lost_journal(&path)?;
                    Err(Error::Missing { path: path.clone() }.into())
                }
                Format::Foreign => Err(Error::Foreign { path: path.clone() }.into()),
                Format::Version(_) => Ok(viewer),
            }
        });
        connected.map_err(|fault| fault.into_error(&path, "open it"))
    }

    /// Runs `query`, again if a writer starts meanwhile.
    pub(super) fn read<T>(&mut self, query: impl Fn(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        loop {
            let answer = query(&self.connection);
            match self.rest {
                Some(rest) if RestMetadata::of(&self.path)? != Some(rest) => {
                    (self.connection, self.rest) = connect_read_only(&self.path)?;
                }
                _ => return answer,
            }
        }
    }
}

fn connect_read_only(path: &Path) -> Result<(Connection, Option<RestMetadata>), Fault> {
    let rest = RestMetadata::of(path)?;
    let mode = if rest.is_some() { "mode=ro&immutable=1" } else { "mode=ro" };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri_of_path(path, mode), flags)?;
    configure_connection(&connection)?;
    Ok((connection, rest))
}

/// Formats a path as an SQLite URI. Escapes all special characters, including slashes: two leading slashes would name a
/// host.
fn uri_of_path(path: &Path, query: &str) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?" + query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_escaped_in_the_uri() {
        assert_eq!(
            uri_of_path(Path::new("//a b/ü?#%.db"), "mode=ro"),
            "file:%2F%2Fa%20b%2F%C3%BC%3F%23%25.db?mode=ro"
        );
    }
}
