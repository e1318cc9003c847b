//! Server-sent events: the lines of a run's log as they are written, and what its agents do.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use cuegate_flow::model::BlobRef;
use cuegate_journal::RunId;
use cuegate_observe::Problem;
use cuegate_view::{Liveness, LogOptions, event_json, safe_json};
use futures_util::{Stream, stream::unfold};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use super::{ApiError, App, Path, Query};
use crate::hub::TICK;

/// The time after which a silent stream sends a comment, so that a closed one is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The most events that one read adds.
const EVENTS_MAX: usize = 500;

type Events = Sse<
    axum::response::sse::KeepAliveStream<
        std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>,
    >,
>;

/// The list of runs changed: `runs`, with `cuegate/runs/v1`.
pub(super) async fn stream_runs(State(app): State<App>) -> Events {
    struct RunsStream {
        app: App,
        changes: watch::Receiver<u64>,
        last: Option<Value>,
    }
    let state = RunsStream { changes: app.hub.subscribe(), app, last: None };
    respond_with_events(unfold(state, |mut state| async move {
        loop {
            if state.last.is_some() {
                // A process that died changes no file.
                let _ = timeout(Duration::from_secs(2), state.changes.changed()).await;
            }
            state.changes.mark_unchanged();
            let read = state.app.run_blocking(|app| Ok(app.project.observer().runs_json()?)).await;
            let value = read.unwrap_or_else(|failed| failed.0.to_json());
            if state.last.as_ref() != Some(&value) {
                let event = Event::default().event("runs").data(encode_safe_json(&value));
                state.last = Some(value);
                return Some((Ok(event), state));
            }
        }
    }))
}

#[derive(Deserialize)]
pub(super) struct StreamQuery {
    #[serde(default, deserialize_with = "super::read_seq")]
    from_seq: Option<u64>,
}

/// Where a stream is.
struct StreamPosition {
    app: App,
    run: RunId,
    changes: watch::Receiver<u64>,
    /// The next event: its record, and its index in it.
    next: (u64, usize),
    waiting: VecDeque<Event>,
    /// Whether there are records to be read at once: at the beginning, and in a long log.
    has_more: bool,
    live: Option<(Liveness, bool)>,
    working: Value,
}

/// `log`: a line of the log, whose id resumes the stream. `state`: whether a process drives the run, and whether it has an
/// answer. `working`: what is in progress.
pub(super) async fn stream_run(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Events, ApiError> {
    let run = app.run_blocking(move |app| app.find(&run)).await?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(parse_id);
    let next = match (last, query.from_seq) {
        (Some((seq, index)), _) => (seq, index.saturating_add(1)),
        (None, from) => (from.unwrap_or(0), 0),
    };
    let position = StreamPosition {
        changes: app.hub.subscribe(),
        app,
        run,
        next,
        waiting: VecDeque::new(),
        has_more: true,
        live: None,
        working: Value::Null,
    };
    Ok(respond_with_events(unfold(position, |mut position| async move {
        loop {
            if let Some(event) = position.waiting.pop_front() {
                return Some((Ok(event), position));
            }
            if !position.has_more {
                let _ = timeout(TICK, position.changes.changed()).await;
            }
            position.changes.mark_unchanged();
            let app = position.app.clone();
            // A run that cannot be read ends its stream; the client's next request is answered with the reason.
            position = app
                .run_blocking(move |_| {
                    position.read()?;
                    Ok(position)
                })
                .await
                .ok()?;
        }
    })))
}

impl StreamPosition {
    /// Queues the new events.
    fn read(&mut self) -> Result<(), Problem> {
        let (run, observer) = (self.run.clone(), self.app.project.observer());
        let texts = |blob: &BlobRef| observer.text(&run, blob);
        let (from, skipped) = self.next;
        let hub = &self.app.hub;
        let waiting = &mut self.waiting;
        let (next, count, live) = hub.with_run(&run, |reader| {
            let mut next = (from, skipped);
            let read = reader.read_records(observer, from, |record| {
                let lines = event_json(run.as_str(), record, &texts, LogOptions::default());
                let skip = if record.seq == from { skipped } else { 0 };
                for (index, line) in lines.iter().enumerate().skip(skip) {
                    let id = format!("{}.{index}", record.seq);
                    waiting.push_back(Event::default().event("log").id(id).data(encode_safe_json(line)));
                }
                next = (record.seq + 1, 0);
                waiting.len() < EVENTS_MAX
            });
            read.map(|()| (next, reader.count(), (reader.live(), reader.has_answer())))
        })??;
        self.next = next;
        self.has_more = next.0 < count;
        if self.live != Some(live) {
            self.live = Some(live);
            let state = json!({ "live": live.0 == Liveness::Alive, "answered": live.1 });
            waiting.push_back(Event::default().event("state").data(encode_safe_json(&state)));
        }
        let working = hub.working(&run)?;
        if working != self.working {
            waiting.push_back(Event::default().event("working").data(encode_safe_json(&working)));
            self.working = working;
        }
        Ok(())
    }
}

fn parse_id(id: &str) -> Option<(u64, usize)> {
    let (seq, index) = id.split_once('.')?;
    Some((seq.parse().ok()?, index.parse().ok()?))
}

fn encode_safe_json(value: &Value) -> String {
    safe_json(&value.to_string())
}

fn respond_with_events(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Events {
    let events: std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>> = Box::pin(events);
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}
