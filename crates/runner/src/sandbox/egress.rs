//! The one way out of a room: a socket, with the proxy behind it.

use std::{
    collections::BTreeSet,
    fs,
    os::{fd::AsRawFd, unix::fs::DirBuilderExt},
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

use super::proxy::{Guests, serve};
use crate::{drive::Heard, error, error::Error};

/// The folder of the socket, in the folder of its command.
const FOLDER: &str = "door";
/// The socket in there.
pub(super) const SOCKET: &str = "way";
/// How many connections one room may have at a time.
const CONNECTIONS_MAX: usize = 256;
/// About how many places that one command was kept from anybody is told. The rest is more of the same.
const TOLD_MAX: usize = 40;
/// How long somebody may take to listen.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// Tells what those in one room are kept from, each place once.
pub(crate) struct Teller {
    by: CommandId,
    heard: mpsc::Sender<Heard>,
    told: Mutex<BTreeSet<String>>,
}

impl Teller {
    /// One for a command.
    pub(crate) fn new(by: CommandId, heard: mpsc::Sender<Heard>) -> Teller {
        Teller { by, heard, told: Mutex::default() }
    }

    /// Comes back when it is on its way: before the program in the room learns of it, and could end over it.
    pub(super) async fn refused(&self, to: &str, why: &str) {
        let is_new = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < TOLD_MAX && told.insert(to.to_owned())
        };
        if is_new {
            let heard = Heard::Refused { by: self.by, to: to.to_owned(), why: why.to_owned() };
            // Who does not listen any more has stopped the run.
            let _ = timeout(TOLD_WITHIN, self.heard.send(heard)).await;
        }
    }
}

/// A door that is open until it is dropped.
pub(crate) struct Egress {
    folder: PathBuf,
    serving: JoinHandle<()>,
}

impl Egress {
    /// Opens one in the folder of a command.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub(crate) fn open(command: &Path, guests: Guests, teller: Teller) -> Result<Egress, Error> {
        let folder = command.join(FOLDER);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(error::io("create", &folder))?;
        let socket = folder.join(SOCKET);
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error::io("remove", &socket)(error));
            }
            _ => {}
        }
        // The name of a socket has at most 107 bytes, and a project may lie deep: it is named by way of its folder.
        let held = fs::File::open(&folder).map_err(error::io("open", &folder))?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).join(SOCKET);
        let listener = UnixListener::bind(short).map_err(error::io("listen on", &socket))?;
        drop(held);
        Ok(Egress { folder, serving: tokio::spawn(accept(listener, Arc::new(guests), Arc::new(teller))) })
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        // Whoever is in the room has ended, and their connections end with the task's.
        self.serving.abort();
    }
}

async fn accept(listener: UnixListener, guests: Arc<Guests>, teller: Arc<Teller>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, and then all that it serves ends.
    let mut served = JoinSet::new();
    loop {
        while served.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((inside, _)) = listener.accept().await else {
            // Too many open files: that passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (guests, teller) = (Arc::clone(&guests), Arc::clone(&teller));
        served.spawn(async move {
            serve(inside, &guests, &teller).await;
            drop(place);
        });
    }
}
