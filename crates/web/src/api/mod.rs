//! `/api/v1`: one function per route. [`crate::build_openapi_document`] describes the same routes.

mod control;
mod read;
mod stream;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::FromRequestParts,
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cuegate_journal::RunId;
use cuegate_observe::{Problem, Project};
use serde::{Deserialize as _, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::{auth::Access, hub::Hub};

/// The parts of a path; what cannot be read is a problem as any other.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Path(path.0)).map_err(|why| ApiError(Problem::new(400, why.body_text())))
    }
}

/// The query of a request, as [`Path`].
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Query(query.0)).map_err(|why| ApiError(Problem::new(400, why.body_text())))
    }
}

/// What the routes share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) project: Arc<dyn Project>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) access: Arc<Access>,
    /// Whether runs can be changed.
    pub(crate) control: bool,
}

impl App {
    /// Does blocking work, such as reading the journal, beside the server.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        let failed = |error| Err(Problem::new(500, format!("the request failed: {error}")));
        done.unwrap_or_else(failed).map_err(ApiError)
    }

    /// The run with this id or prefix.
    fn find(&self, typed: &str) -> Result<RunId, Problem> {
        let found = self.project.observer().find(typed)?;
        found.ok_or_else(|| {
            Problem::new(404, format!("there is no run `{}`", cuegate_view::clean_to_one_line(typed)))
        })
    }
}

/// Reads the number of a record: those above the largest of the journal are refused, as the description of the API says.
pub(super) fn read_seq<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::<u64>::deserialize(deserializer)? {
        Some(number) if i64::try_from(number).is_err() => {
            Err(serde::de::Error::custom(format!("{number} is larger than any record's number")))
        }
        number => Ok(number),
    }
}

/// The routes of the API.
pub(crate) fn build_routes() -> Router<App> {
    Router::new()
        .route("/api/v1/session", get(read::serve_session))
        .route("/api/v1/openapi.json", get(read::serve_description))
        .route("/api/v1/links", post(read::create_link))
        .route("/api/v1/definitions", get(read::serve_definitions))
        .route("/api/v1/agents", get(read::serve_agents))
        .route("/api/v1/fleet", get(read::serve_fleet))
        .route("/api/v1/batches", get(read::serve_batches))
        .route("/api/v1/batches/{batch}", get(read::serve_batch))
        .route("/api/v1/stream", get(stream::stream_runs))
        .route("/api/v1/runs", get(read::serve_runs).post(control::start_run))
        .route("/api/v1/runs/{run}", get(read::serve_run))
        .route("/api/v1/runs/{run}/spans", get(read::serve_spans))
        .route("/api/v1/runs/{run}/events", get(read::serve_events))
        .route("/api/v1/runs/{run}/stream", get(stream::stream_run))
        .route("/api/v1/runs/{run}/working", get(read::serve_running_commands))
        .route("/api/v1/runs/{run}/graph", get(read::serve_graph))
        .route("/api/v1/runs/{run}/why", get(read::serve_why))
        .route("/api/v1/runs/{run}/findings", get(read::serve_findings))
        .route("/api/v1/runs/{run}/report", get(read::serve_run_report))
        .route("/api/v1/runs/{run}/reports/{name}", get(read::written_report))
        .route("/api/v1/runs/{run}/diff", get(read::serve_diff))
        .route("/api/v1/runs/{run}/compare/{other}", get(read::serve_comparison))
        .route("/api/v1/runs/{run}/answer", post(control::answer_question))
        .route("/api/v1/runs/{run}/cancel", post(control::cancel_run))
        .route("/api/v1/runs/{run}/pause", post(control::pause_run))
        .route("/api/v1/runs/{run}/resume", post(control::resume_run))
        .route("/api/v1/runs/{run}/retry", post(control::retry_run))
        .route("/api/v1/runs/{run}/fork", post(control::fork_run))
        .route("/api/v1/runs/{run}/apply", post(control::apply_changes))
        .route("/api/v1/runs/{run}/undo", post(control::undo_changes))
        .route("/api/v1/runs/{run}/reviewed", post(control::mark_reviewed))
        .route("/api/v1/runs/{run}/blobs/{digest}", get(read::serve_blob))
        .method_not_allowed_fallback(async || ApiError(Problem::new(405, "this method is not allowed here")))
}

/// A JSON object, escaped so that no byte of an agent controls what shows it.
pub(crate) struct Json(pub(crate) Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let text = cuegate_view::safe_json(&self.0.to_string());
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}

/// Why a request failed, as an answer.
pub(crate) struct ApiError(pub(crate) Problem);

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> ApiError {
        ApiError(problem)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0.to_json())).into_response()
    }
}

/// A text that a browser shows as text, whatever it contains.
pub(crate) fn respond_with_text(text: String, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
