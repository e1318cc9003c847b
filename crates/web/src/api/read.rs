//! The routes that only read.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use cuegate_flow::model::BlobRef;
use cuegate_runner::now_ms;
use cuegate_view::{LogOptions, TimeZone, event_json, why_json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, App, Json, Path, Query, respond_with_text};
use cuegate_observe::Problem;

use crate::{markdown, openapi::build_openapi_document};

/// The most visits of one page of spans.
const VISITS_MAX: usize = 1000;
/// The most records of one answer.
const RECORDS_MAX: u64 = 2000;

type Answer = Result<Json, ApiError>;

pub(super) async fn serve_session(State(app): State<App>) -> Json {
    // A server that is away is told on the page of the fleet.
    let has_fleet =
        app.run_blocking(|app| Ok(app.project.fleet().map_or(true, |fleet| fleet.is_some()))).await;
    let has_batches = app.run_blocking(|app| app.project.has_batches()).await;
    Json(json!({
        "schema": "cuegate/session/v1",
        "project": app.project.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "control": app.control,
        "fleet": has_fleet.unwrap_or(false),
        "batches": has_batches.unwrap_or(false),
    }))
}

pub(super) async fn create_link(State(app): State<App>) -> Json {
    Json(json!({ "schema": "cuegate/link/v1", "token": app.access.new_link() }))
}

pub(super) async fn serve_description() -> Json {
    Json(build_openapi_document())
}

pub(super) async fn serve_definitions(State(app): State<App>) -> Answer {
    app.run_blocking(|app| app.project.definitions()).await.map(Json)
}

pub(super) async fn serve_agents(State(app): State<App>) -> Answer {
    app.run_blocking(|app| app.project.agents()).await.map(Json)
}

pub(super) async fn serve_fleet(State(app): State<App>) -> Answer {
    let none = || Problem::new(404, "no fleet uses the journal of this project");
    app.run_blocking(move |app| app.project.fleet()?.ok_or_else(none)).await.map(Json)
}

pub(super) async fn serve_batches(State(app): State<App>) -> Answer {
    app.run_blocking(|app| app.project.batches()).await.map(Json)
}

pub(super) async fn serve_batch(State(app): State<App>, Path(batch): Path<String>) -> Answer {
    app.run_blocking(move |app| app.project.batch(&batch)).await.map(Json)
}

pub(super) async fn serve_runs(State(app): State<App>) -> Answer {
    app.run_blocking(|app| Ok(app.project.observer().runs_json()?)).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct RunQuery {
    steps: Option<bool>,
}

pub(super) async fn serve_run(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<RunQuery>,
) -> Answer {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let observer = app.project.observer();
        let texts = |blob: &BlobRef| observer.text(&run, blob);
        let view = app.hub.with_run(&run, |reader| match query.steps {
            Some(false) => Ok(reader.view()),
            _ => reader.view_with_visits(observer),
        })??;
        let mut object = view.to_json(&texts);
        object["reviewed"] = json!(app.project.is_reviewed(&run));
        if query.steps == Some(false)
            && let Some(object) = object.as_object_mut()
        {
            object.shift_remove("steps");
        }
        Ok(object)
    };
    app.run_blocking(read).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct SpansQuery {
    from: Option<usize>,
    count: Option<usize>,
}

pub(super) async fn serve_spans(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<SpansQuery>,
) -> Answer {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let count = query.count.unwrap_or(VISITS_MAX).min(VISITS_MAX);
        app.hub.with_run(&run, |reader| {
            let from = query.from.unwrap_or_else(|| reader.spans().visits().saturating_sub(count));
            let mut object = reader.spans().to_json(run.as_str(), from, count);
            object["records"] = json!(reader.count());
            object
        })
    };
    app.run_blocking(read).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct EventsQuery {
    #[serde(default, deserialize_with = "super::read_seq")]
    from_seq: Option<u64>,
    #[serde(default, deserialize_with = "super::read_seq")]
    to_seq: Option<u64>,
    full: Option<bool>,
}

pub(super) async fn serve_events(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Answer {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let from = query.from_seq.unwrap_or(0);
        let last = from.saturating_add(RECORDS_MAX - 1);
        let to = query.to_seq.unwrap_or(last).min(last);
        let observer = app.project.observer();
        let texts = |blob: &BlobRef| observer.text(&run, blob);
        let options = LogOptions { full: query.full.unwrap_or(false) };
        let read = app.hub.with_run(&run, |reader| {
            let mut events: Vec<Value> = Vec::new();
            reader.read_records(observer, from, |record| {
                let is_in = record.seq <= to;
                if is_in {
                    events.extend(event_json(run.as_str(), record, &texts, options));
                }
                is_in && record.seq < to
            })?;
            let count = reader.count();
            Ok::<Value, cuegate_runner::Error>(
                json!({ "schema": "cuegate/events/v1", "run": run.as_str(), "records": count, "events": events }),
            )
        })?;
        Ok(read?)
    };
    app.run_blocking(read).await.map(Json)
}

pub(super) async fn serve_running_commands(State(app): State<App>, Path(run): Path<String>) -> Answer {
    app.run_blocking(move |app| app.hub.working(&app.find(&run)?)).await.map(Json)
}

pub(super) async fn serve_graph(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let svg = app.run_blocking(move |app| app.project.graph(&app.find(&run)?)).await?;
    Ok(respond_with_text(svg, "image/svg+xml"))
}

pub(super) async fn serve_why(State(app): State<App>, Path(run): Path<String>) -> Answer {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let observer = app.project.observer();
        let texts = |blob: &BlobRef| observer.text(&run, blob);
        let view = app.hub.with_run(&run, |reader| reader.view_with_visits(observer))??;
        Ok(why_json(&view, &texts, now_ms(), &TimeZone::system()))
    };
    app.run_blocking(read).await.map(Json)
}

pub(super) async fn serve_findings(State(app): State<App>, Path(run): Path<String>) -> Answer {
    app.run_blocking(move |app| app.project.findings(&app.find(&run)?)).await.map(Json)
}

pub(super) async fn serve_run_report(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        Ok((app.project.report(&run)?, run))
    };
    let (text, run) = app.run_blocking(read).await?;
    let name = format!("attachment; filename=\"cuegate-{run}.txt\"");
    Ok(([(header::CONTENT_DISPOSITION, name)], respond_with_text(text, "text/plain; charset=utf-8"))
        .into_response())
}

pub(super) async fn written_report(
    State(app): State<App>,
    Path((run, name)): Path<(String, String)>,
) -> Answer {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let observer = app.project.observer();
        let view = app.hub.with_run(&run, cuegate_observe::RunReader::view)?;
        let versions = view.reports.versions(&name);
        let missing = || {
            Problem::new(404, format!("run {run} has no report `{}`", cuegate_view::clean_to_one_line(&name)))
        };
        let newest = versions.last().ok_or_else(missing)?;
        let text = observer.text(&run, &newest.content).ok_or_else(missing)?;
        Ok(json!({
            "schema": "cuegate/report/v1",
            "run": run.as_str(),
            "name": name,
            "step": newest.step,
            "visit": newest.visit,
            "versions": versions.len(),
            "markdown": text,
            "html": markdown::render_html(&text),
            "cut": text.len() > markdown::TEXT_MAX,
        }))
    };
    app.run_blocking(read).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct DiffQuery {
    #[serde(default, deserialize_with = "super::read_seq")]
    from_seq: Option<u64>,
    #[serde(default, deserialize_with = "super::read_seq")]
    to_seq: Option<u64>,
}

pub(super) async fn serve_diff(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Result<Response, ApiError> {
    let records = match (query.from_seq, query.to_seq) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or(0), to.unwrap_or(u64::MAX))),
    };
    let patch = app.run_blocking(move |app| app.project.diff(&app.find(&run)?, records)).await?;
    Ok(respond_with_text(patch, "text/plain; charset=utf-8"))
}

pub(super) async fn serve_comparison(
    State(app): State<App>,
    Path((run, other)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let patch =
        app.run_blocking(move |app| app.project.compare(&app.find(&run)?, &app.find(&other)?)).await?;
    Ok(respond_with_text(patch, "text/plain; charset=utf-8"))
}

pub(super) async fn serve_blob(
    State(app): State<App>,
    Path((run, digest)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let read = move |app: &App| {
        let run = app.find(&run)?;
        let missing = || Problem::new(404, format!("run {run} has no text with this digest"));
        let digest: cuegate_journal::Digest = digest.parse().map_err(|_| missing())?;
        let journal = app.project.observer().journal()?.ok_or_else(missing)?;
        let bytes = journal.blob(&run, &digest).map_err(cuegate_runner::Error::from)?.ok_or_else(missing)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(respond_with_text(app.run_blocking(read).await?, "text/plain; charset=utf-8"))
}
