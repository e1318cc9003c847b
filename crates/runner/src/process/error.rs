use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong around a child. How the child itself ended is no error but a [`super::Finished`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused something in the command's folder.
    #[error("failed to {doing} `{}`", path.display())]
    Io {
        /// The verb: what was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it was refused.
        #[source]
        source: io::Error,
    },
    /// The shim could not be started.
    #[error("failed to start the shim `{}`", exe.display())]
    Shim {
        /// The program that was to be the shim.
        exe: PathBuf,
        /// Why it did not start.
        #[source]
        source: io::Error,
    },
    /// A former command in this folder still holds the lock, even after its processes were killed.
    #[error("failed to lock `{}`: a former command still runs there", dir.display())]
    Busy {
        /// The command's folder.
        dir: PathBuf,
    },
    /// The shim ended without recording how its child ended. Its child and, on Linux, all that came from it are gone.
    #[error("failed to learn how the command in `{}` ended: its shim {status}{}{log}", dir.display(), if log.is_empty() { "" } else { ": " })]
    Lost {
        /// The command's folder.
        dir: PathBuf,
        /// How the shim ended, in words.
        status: String,
        /// The end of what the shim said on stderr, at most 2 KiB.
        log: String,
    },
}

impl Error {
    /// Whether the same start may well succeed a little later.
    pub fn can_retry(&self) -> bool {
        matches!(self, Error::Busy { .. } | Error::Lost { .. })
    }
}

/// Adds to an IO error what was tried on which path; for `map_err`.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}
