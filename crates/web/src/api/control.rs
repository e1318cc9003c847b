//! The routes that change runs. They need `--allow-control`.

use axum::{
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{ApiError, App, Json, Path};
use cuegate_observe::{Control, Problem, StartRequest};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewedBody {
    reviewed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    text: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RetryBody {
    #[serde(default)]
    say: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    before: Option<String>,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    model: Option<String>,
}

pub(super) async fn answer_question(
    State(app): State<App>,
    Path(run): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let answering: AnswerBody = parse_control_body(&app, &body)?;
    if answering.text.trim().is_empty() {
        return Err(Problem::new(400, "the answer is empty").into());
    }
    control_run(&app, move |app| Ok(Control::Answer { run: app.find(&run)?, text: answering.text })).await
}

pub(super) async fn cancel_run(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    control_run(&app, move |app| Ok(Control::Cancel { run: app.find(&run)? })).await
}

pub(super) async fn pause_run(State(app): State<App>, Path(run): Path<String>) -> Result<Response, ApiError> {
    control_run(&app, move |app| Ok(Control::Pause { run: app.find(&run)? })).await
}

pub(super) async fn resume_run(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    control_run(&app, move |app| Ok(Control::Resume { run: app.find(&run)? })).await
}

pub(super) async fn apply_changes(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    control_run(&app, move |app| Ok(Control::Apply { run: app.find(&run)? })).await
}

pub(super) async fn undo_changes(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    control_run(&app, move |app| Ok(Control::Undo { run: app.find(&run)? })).await
}

pub(super) async fn retry_run(
    State(app): State<App>,
    Path(run): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let retrying = if body.is_empty() {
        check_control_allowed(&app).map(|()| RetryBody::default())
    } else {
        parse_control_body(&app, &body)
    }?;
    let say = retrying.say.filter(|text| !text.trim().is_empty());
    if say.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Problem::new(400, "the text has a NUL character").into());
    }
    control_run(&app, move |app| Ok(Control::Retry { run: app.find(&run)?, say })).await
}

pub(super) async fn fork_run(
    State(app): State<App>,
    Path(run): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let ForkBody { at, before, answer, model } = parse_control_body(&app, &body)?;
    let texts = [&at, &before, &answer, &model];
    if texts.into_iter().flatten().any(|text| text.contains('\0') || text.trim().is_empty()) {
        return Err(Problem::new(400, "a text is empty or has a NUL character").into());
    }
    let (moment, before) = match (at, before) {
        (Some(at), None) => (at, false),
        (None, Some(before)) => (before, true),
        _ => return Err(Problem::new(400, "give either `at` or `before`").into()),
    };
    control_run(&app, move |app| Ok(Control::Fork { run: app.find(&run)?, moment, before, answer, model }))
        .await
}

pub(super) async fn start_run(State(app): State<App>, body: Bytes) -> Result<Response, ApiError> {
    let start: Box<StartRequest> = parse_control_body(&app, &body)?;
    control_run(&app, move |_| Ok(Control::Start(start))).await
}

pub(super) async fn mark_reviewed(
    State(app): State<App>,
    Path(run): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let ReviewedBody { reviewed } = parse_control_body(&app, &body)?;
    control_run(&app, move |app| Ok(Control::MarkReviewed { run: app.find(&run)?, is_reviewed: reviewed }))
        .await
}

async fn control_run(
    app: &App,
    wanted: impl FnOnce(&App) -> Result<Control, Problem> + Send + 'static,
) -> Result<Response, ApiError> {
    check_control_allowed(app)?;
    let done = app.run_blocking(move |app| app.project.control(wanted(app)?)).await?;
    Ok((StatusCode::ACCEPTED, Json(done)).into_response())
}

fn check_control_allowed(app: &App) -> Result<(), Problem> {
    if app.control {
        return Ok(());
    }
    let hint = "start the server with `cuegate serve --allow-control`".to_owned();
    Err(Problem { hint: Some(hint), ..Problem::new(403, "this server only shows runs") })
}

fn parse_control_body<T: DeserializeOwned>(app: &App, body: &[u8]) -> Result<T, Problem> {
    check_control_allowed(app)?;
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(400, format!("the body is not what is expected: {error}")))
}
