//! Sends in the background: a slow or missing collector never delays a run.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    encode::{SCHEMA, encode_text_attribute},
    settings::OtelSettings,
};

/// The most things that wait to be sent; more are lost.
const WAITING_MAX: usize = 4096;
/// The most spans in one request.
const SPANS_MAX: usize = 512;
/// How often spans are sent.
const SPANS_EVERY: Duration = Duration::from_secs(1);
/// How often numbers are sent.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time limit of what is sent at the end.
const AT_END: Duration = Duration::from_secs(3);

enum TelemetryMessage {
    Span(Value),
    Metrics(Value),
}

/// Sends spans and numbers from a thread of its own.
pub(super) struct Sender {
    messages: SyncSender<TelemetryMessage>,
    /// Tells what went wrong when everything is sent.
    ended: Receiver<Option<String>>,
    lost: u64,
}

impl Sender {
    pub(super) fn start(settings: OtelSettings) -> Sender {
        let (messages, waiting) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        std::thread::spawn(move || end.send(SenderThread::new(settings).run(&waiting)));
        Sender { messages, ended, lost: 0 }
    }

    pub(super) fn span(&mut self, span: Value) {
        self.lost += u64::from(self.messages.try_send(TelemetryMessage::Span(span)).is_err());
    }

    pub(super) fn metrics(&mut self, metrics: Value) {
        // Later numbers include these.
        let _ = self.messages.try_send(TelemetryMessage::Metrics(metrics));
    }

    /// Waits until everything is sent or failed, or the time is over. Returns what went wrong.
    pub(super) fn end(self) -> Option<String> {
        drop(self.messages);
        let problem = match self.ended.recv_timeout(AT_END) {
            Ok(problem) => problem,
            Err(RecvTimeoutError::Timeout) => Some("the collector does not answer".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Some("its thread failed".to_owned()),
        };
        problem.or_else(|| {
            (self.lost > 0).then(|| format!("{} spans were lost, as the collector is slow", self.lost))
        })
    }
}

struct SenderThread {
    settings: OtelSettings,
    spans: Vec<Value>,
    metrics: Option<Value>,
    problem: Option<String>,
}

impl SenderThread {
    fn new(settings: OtelSettings) -> SenderThread {
        SenderThread { problem: settings.problem.clone(), settings, spans: Vec::new(), metrics: None }
    }

    fn run(mut self, waiting: &Receiver<TelemetryMessage>) -> Option<String> {
        let mut next = Instant::now() + SPANS_EVERY;
        let mut numbers = Instant::now() + METRICS_EVERY;
        loop {
            match waiting.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(TelemetryMessage::Span(span)) => self.spans.push(span),
                Ok(TelemetryMessage::Metrics(metrics)) => self.metrics = Some(metrics),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.send_spans();
                    self.send_metrics();
                    return self.problem;
                }
            }
            if self.spans.len() >= SPANS_MAX || Instant::now() >= next {
                self.send_spans();
                next = Instant::now() + SPANS_EVERY;
            }
            if Instant::now() >= numbers {
                self.send_metrics();
                numbers = Instant::now() + METRICS_EVERY;
            }
        }
    }

    fn send_spans(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        let Some(address) = self.settings.traces.clone().filter(|_| !spans.is_empty()) else { return };
        let scope = self.scope("spans", Value::Array(spans));
        self.send(
            &address,
            &json!({ "resourceSpans": [{ "resource": self.resource(), "scopeSpans": [scope] }] }),
        );
    }

    fn send_metrics(&mut self) {
        let metrics =
            self.metrics.take().filter(|metrics| metrics.as_array().is_some_and(|all| !all.is_empty()));
        let (Some(address), Some(metrics)) = (self.settings.metrics.clone(), metrics) else { return };
        let scope = self.scope("metrics", metrics);
        self.send(
            &address,
            &json!({ "resourceMetrics": [{ "resource": self.resource(), "scopeMetrics": [scope] }] }),
        );
    }

    fn resource(&self) -> Value {
        json!({ "attributes": self.settings.resource.iter().map(|(key, value)| encode_text_attribute(key, value)).collect::<Vec<_>>() })
    }

    fn scope(&self, what: &str, content: Value) -> Value {
        let mut scope = json!({
            "scope": { "name": "cuegate", "version": env!("CARGO_PKG_VERSION") },
            "schemaUrl": SCHEMA,
        });
        scope[what] = content;
        scope
    }

    /// Sends once; the first problem is kept.
    fn send(&mut self, address: &str, body: &Value) {
        if let Err(why) = cuegate_runner::post_json(address, &self.settings.headers, body, PATIENCE) {
            self.problem.get_or_insert(format!("`{address}`: {why}"));
        }
    }
}
