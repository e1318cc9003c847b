use std::io;
use std::path::{Path, PathBuf};

/// Errors of process handling. How the child itself ended is not an error, see [`super::FinishedCommand`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A file operation in the command's folder failed.
    #[error("failed to {doing} `{}`", path.display())]
    Io {
        /// The attempted operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The shim could not be started.
    #[error("failed to start the shim `{}`", exe.display())]
    Shim {
        /// The program of the shim.
        exe: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A former command still holds the lock of the folder, although its processes were killed.
    #[error("failed to lock `{}`: a former command is still running there", dir.display())]
    Busy {
        /// The command's folder.
        dir: PathBuf,
    },
    /// The shim ended without recording how its child ended. Its child and, on Linux, all descendants have ended.
    #[error("failed to learn how the command in `{}` ended: its shim {status}{}{log}", dir.display(), if log.is_empty() { "" } else { ": " })]
    Lost {
        /// The command's folder.
        dir: PathBuf,
        /// How the shim ended, in words.
        status: String,
        /// The end of the shim's stderr, at most 2 KiB.
        log: String,
    },
}

impl ProcessError {
    /// Whether a retry may succeed a little later.
    pub fn can_retry(&self) -> bool {
        matches!(self, ProcessError::Busy { .. } | ProcessError::Lost { .. })
    }
}

/// Adds the operation and the path to an IO error; for `map_err`.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProcessError {
    let path = path.to_owned();
    move |source| ProcessError::Io { doing, path, source }
}
