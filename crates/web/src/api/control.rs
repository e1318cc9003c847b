//! The routes that change runs. They need `--allow-control`.

use std::collections::BTreeMap;

use axum::{
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{App, Failed, Json, Path};
use cuegate_observe::{Control, Problem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answering {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Starting {
    definition: String,
    task: Option<String>,
    #[serde(default)]
    args: BTreeMap<String, String>,
    folder: Option<String>,
    budget_usd: Option<f64>,
    budget_tokens: Option<u64>,
}

pub(super) async fn answer(
    State(app): State<App>,
    Path(run): Path<String>,
    body: Bytes,
) -> Result<Response, Failed> {
    let answering: Answering = parsed(&app, &body)?;
    if answering.text.trim().is_empty() {
        return Err(Problem::new(400, "the answer is empty").into());
    }
    control(&app, move |app| Ok(Control::Answer { run: app.find(&run)?, text: answering.text })).await
}

pub(super) async fn cancel(State(app): State<App>, Path(run): Path<String>) -> Result<Response, Failed> {
    control(&app, move |app| Ok(Control::Cancel { run: app.find(&run)? })).await
}

pub(super) async fn pause(State(app): State<App>, Path(run): Path<String>) -> Result<Response, Failed> {
    control(&app, move |app| Ok(Control::Pause { run: app.find(&run)? })).await
}

pub(super) async fn resume(State(app): State<App>, Path(run): Path<String>) -> Result<Response, Failed> {
    control(&app, move |app| Ok(Control::Resume { run: app.find(&run)? })).await
}

pub(super) async fn start(State(app): State<App>, body: Bytes) -> Result<Response, Failed> {
    let starting: Starting = parsed(&app, &body)?;
    let start = Control::Start {
        definition: starting.definition,
        task: starting.task,
        args: starting.args,
        folder: starting.folder,
        budget_usd: starting.budget_usd,
        budget_tokens: starting.budget_tokens,
    };
    control(&app, move |_| Ok(start)).await
}

async fn control(
    app: &App,
    wanted: impl FnOnce(&App) -> Result<Control, Problem> + Send + 'static,
) -> Result<Response, Failed> {
    allowed(app)?;
    let done = app.blocking(move |app| app.project.control(wanted(app)?)).await?;
    Ok((StatusCode::ACCEPTED, Json(done)).into_response())
}

fn allowed(app: &App) -> Result<(), Problem> {
    if app.control {
        return Ok(());
    }
    let hint = "start the server with `cuegate serve --allow-control`".to_owned();
    Err(Problem { hint: Some(hint), ..Problem::new(403, "this server only shows runs") })
}

fn parsed<T: DeserializeOwned>(app: &App, body: &[u8]) -> Result<T, Problem> {
    allowed(app)?;
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(400, format!("the body is not what is expected: {error}")))
}
