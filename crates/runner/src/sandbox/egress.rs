//! The egress of a sandbox: a Unix socket with the proxy behind it, the only way to the network.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    collections::BTreeSet,
    fs,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cuegate_engine::CommandId;
use tokio::{
    net::UnixListener,
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::proxy::{AllowList, serve_connection};
use crate::{drive::ExecutorMessage, error, error::Error};

/// The beginning of the name of the socket's folder.
const FOLDER: &str = "cuegate-egress-";
/// The name of the socket.
pub(super) const SOCKET: &str = "way";
/// The limit of concurrent connections of one sandbox.
const CONNECTIONS_MAX: usize = 256;
/// The limit of refused hosts that are reported for one command.
const REPORTS_MAX: usize = 40;
/// The age after which the folder of a socket that nobody listens on is removed.
const STALE_AFTER: Duration = Duration::from_secs(60);
/// Time limit for the receiver to accept a report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports the connections that one sandbox refuses, each host once.
pub(crate) struct RefusalReporter {
    by: CommandId,
    heard: mpsc::Sender<ExecutorMessage>,
    reported: Mutex<BTreeSet<String>>,
}

impl RefusalReporter {
    /// Creates the reporter of a command.
    pub(crate) fn new(by: CommandId, heard: mpsc::Sender<ExecutorMessage>) -> RefusalReporter {
        RefusalReporter { by, heard, reported: Mutex::default() }
    }

    /// Where warnings about the command go.
    pub(super) fn channel(&self) -> mpsc::Sender<ExecutorMessage> {
        self.heard.clone()
    }

    /// Returns when the report is sent, so that it precedes the end of a program that fails because of the refusal.
    pub(super) async fn refused(&self, to: &str, why: &str) {
        let is_new = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            reported.len() < REPORTS_MAX && reported.insert(to.to_owned())
        };
        if is_new {
            let heard = ExecutorMessage::Refused { by: self.by, to: to.to_owned(), why: why.to_owned() };
            // Fails if the run is being stopped.
            let _ = timeout(REPORT_TIMEOUT, self.heard.send(heard)).await;
        }
    }
}

/// An open egress. It closes when dropped.
pub(crate) struct Egress {
    folder: tempfile::TempDir,
    serving: JoinHandle<()>,
}

impl Egress {
    /// Opens the egress in a folder of its own. It is in a temporary folder, which every sandbox replaces, so that no
    /// other sandbox reaches it.
    ///
    /// # Errors
    /// When the socket cannot be created.
    pub(crate) fn open(allow_list: AllowList, reporter: RefusalReporter) -> Result<Egress, Error> {
        let temporary = std::env::temp_dir();
        let folder = tempfile::Builder::new()
            .prefix(FOLDER)
            .tempdir_in(&temporary)
            .map_err(error::io_error_at("create a folder in", &temporary))?;
        let socket = folder.path().join(SOCKET);
        // A socket path has at most 107 bytes, and `TMPDIR` can be longer: use a short path through `/proc/self/fd`.
        let held = fs::File::open(folder.path()).map_err(error::io_error_at("open", folder.path()))?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).join(SOCKET);
        let listener = UnixListener::bind(short).map_err(error::io_error_at("listen on", &socket))?;
        drop(held);
        Ok(Egress {
            folder,
            serving: tokio::spawn(accept_connections(listener, Arc::new(allow_list), Arc::new(reporter))),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of egresses whose processes were killed.
pub fn remove_stale_egresses() {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        let is_egress = entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes());
        let age = about.modified().ok().and_then(|made| made.elapsed().ok()).unwrap_or_default();
        if is_egress && about.is_dir() && about.uid() == user && age > STALE_AFTER {
            let answers = std::os::unix::net::UnixStream::connect(path.join(SOCKET));
            if answers.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        // The processes in the sandbox have ended. Aborting the task closes their connections.
        self.serving.abort();
    }
}

async fn accept_connections(
    listener: UnixListener,
    allow_list: Arc<AllowList>,
    reporter: Arc<RefusalReporter>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, which ends all connections.
    let mut served = JoinSet::new();
    loop {
        while served.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else {
            // Too many open files, which is temporary.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (allow_list, reporter) = (Arc::clone(&allow_list), Arc::clone(&reporter));
        served.spawn(async move {
            serve_connection(client, &allow_list, &reporter).await;
            drop(permit);
        });
    }
}
