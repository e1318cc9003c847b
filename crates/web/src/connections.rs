//! Accepts connections, and bounds those of clients that have shown no session: any program of this machine can connect.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Router, extract::Request};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    task::AbortHandle,
};

/// The time limit of the head of a request, and of a connection without a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections without a session. The oldest is closed for a new one.
const UNPROVEN_MAX: usize = 64;
/// The pause after a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The connections that have shown no session, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    unproven: Mutex<VecDeque<(u64, AbortHandle)>>,
}

/// The connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    number: u64,
    all: Arc<Connections>,
}

impl Connection {
    /// It has shown a session.
    pub(crate) fn prove(&self) {
        self.all.lock().retain(|(number, _)| *number != self.number);
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, AbortHandle)>> {
        self.unproven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection in a task of its own.
    fn spawn(
        self: &Arc<Self>,
        number: u64,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        router: Router,
    ) {
        let connection = Connection { number, all: Arc::clone(self) };
        let service = service_of_connection(router, connection);
        let mut unproven = self.lock();
        let task = tokio::spawn(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            // Either end may close at any time.
            let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
        });
        unproven.retain(|(_, task)| !task.is_finished());
        if unproven.len() >= UNPROVEN_MAX
            && let Some((_, oldest)) = unproven.pop_front()
        {
            oldest.abort();
        }
        unproven.push_back((number, task.abort_handle()));
    }
}

/// The service of one connection: its requests know which one they are of.
fn service_of_connection(
    router: Router,
    connection: Connection,
) -> axum::routing::RouterIntoService<hyper::body::Incoming, ()> {
    router.layer(axum::Extension(connection)).into_service()
}

/// Serves the connections to a port, without end.
pub(crate) async fn serve_port(listener: TcpListener, router: Router) -> io::Result<Infallible> {
    let all = Arc::new(Connections::default());
    for number in 0.. {
        let (stream, _) = accept_next(|| listener.accept()).await;
        let _ = stream.set_nodelay(true);
        all.spawn(number, stream, router.clone());
    }
    Err(io::ErrorKind::Other.into())
}

/// Serves the connections to a socket file, without end.
pub(crate) async fn serve_socket(listener: UnixListener, router: Router) -> io::Result<Infallible> {
    let all = Arc::new(Connections::default());
    for number in 0.. {
        let (stream, _) = accept_next(|| listener.accept()).await;
        all.spawn(number, stream, router.clone());
    }
    Err(io::ErrorKind::Other.into())
}

/// Accepts a connection. A failure is that of one connection, or passes.
async fn accept_next<T, F: Future<Output = io::Result<T>>>(mut next: impl FnMut() -> F) -> T {
    loop {
        match next().await {
            Ok(accepted) => return accepted,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The connection of a request.
pub(crate) fn connection_of(request: &Request) -> Option<&Connection> {
    request.extensions().get::<Connection>()
}
