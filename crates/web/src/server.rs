//! The server: checks each request, then answers it with the page or the API.

use std::{future::Future, io, sync::Arc};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderName, HeaderValue, Method, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};

use cuegate_observe::{Problem, Project};
use serde_json::json;

use crate::{
    api::{self, ApiError, App},
    assets,
    auth::{Access, Refusal},
    connections,
    hub::Hub,
};

/// Where the token of a link is exchanged for that of a session.
const SESSION: &str = "/api/v1/session";

/// The largest body of a request, in bytes.
const BODY_MAX: usize = 1 << 20;

/// Headers of every answer. No script, style, image or connection but our own; no page may show ours in a frame.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Where the server listens.
pub enum Listener {
    /// A port of this machine.
    Port(std::net::TcpListener),
    /// A socket file.
    Socket(std::os::unix::net::UnixListener),
}

/// A server of a project's runs.
pub struct Server {
    project: Arc<dyn Project>,
    access: Arc<Access>,
    control: bool,
    used: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Clone)]
struct RequestGuard {
    access: Arc<Access>,
    used: Arc<dyn Fn() + Send + Sync>,
}

impl Server {
    /// A server. `control`: whether runs can be changed. `used` is called when the link was used.
    pub fn new(
        project: Arc<dyn Project>,
        access: Arc<Access>,
        control: bool,
        used: impl Fn() + Send + Sync + 'static,
    ) -> Server {
        Server { project, access, control, used: Arc::new(used) }
    }

    /// Serves until `stop` is ready. Open streams are closed then. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: Listener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let hub = Arc::new(Hub::new(Arc::clone(&self.project)));
        let app = App {
            project: self.project,
            hub: Arc::clone(&hub),
            access: Arc::clone(&self.access),
            control: self.control,
        };
        let guard = RequestGuard { access: self.access, used: self.used };
        let router: Router = api::build_routes()
            .fallback(serve_page)
            .with_state(app)
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .layer(middleware::from_fn_with_state(guard, guard_request));
        let watching = tokio::spawn(hub.watch_journal());
        let served = async {
            match listener {
                Listener::Port(listener) => {
                    listener.set_nonblocking(true)?;
                    connections::serve_port(tokio::net::TcpListener::from_std(listener)?, router).await
                }
                Listener::Socket(listener) => {
                    listener.set_nonblocking(true)?;
                    connections::serve_socket(tokio::net::UnixListener::from_std(listener)?, router).await
                }
            }
        };
        let ended = tokio::select! {
            ended = served => ended.map(drop),
            () = stop => Ok(()),
        };
        watching.abort();
        ended
    }
}

/// Checks a request before anything else looks at it.
async fn guard_request(State(guard): State<RequestGuard>, request: Request, next: Next) -> Response {
    let mut response = admit_request(guard, request, next).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn admit_request(guard: RequestGuard, request: Request, next: Next) -> Response {
    if let Err(refusal) = guard.access.comes_from_us(request.method(), request.headers()) {
        return response_of_refusal(refusal);
    }
    let path = request.uri().path();
    if path == SESSION && *request.method() == Method::POST {
        return match guard.access.redeem(request.headers()) {
            Some(token) => {
                (guard.used)();
                Json(json!({ "schema": "cuegate/login/v1", "token": token })).into_response()
            }
            None => response_of_refusal(Refusal::Session),
        };
    }
    let has_session = guard.access.has_session(request.headers());
    if let Some(connection) = connections::connection_of(&request).filter(|_| has_session) {
        connection.prove();
    }
    // The files of the page hold nothing of a project, and a browser asks for them without the session.
    if has_session || !path.starts_with("/api/") {
        next.run(request).await
    } else {
        response_of_refusal(Refusal::Session)
    }
}

fn response_of_refusal(refusal: Refusal) -> Response {
    let (status, message) = match refusal {
        Refusal::Host => (403, "the request names another host than this server"),
        Refusal::Origin => (403, "the request comes from another page"),
        Refusal::Session => (
            401,
            "the request has no session: open the link that `cuegate serve` or `cuegate serve --open` prints",
        ),
    };
    ApiError(Problem::new(status, message)).into_response()
}

/// Any other path is a file of the page.
async fn serve_page(request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api/") {
        return ApiError(Problem::new(404, "there is no such resource")).into_response();
    }
    match *request.method() {
        Method::GET | Method::HEAD => assets::serve_asset(path),
        _ => ApiError(Problem::new(405, "this method is not allowed here")).into_response(),
    }
}
