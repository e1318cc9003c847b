//! OpenTelemetry: the spans and numbers of a run, sent to a collector while it is driven.
//!
//! The spans are those of the page and of `watch`, so they equal the journal's events. Their ids are made of the run and
//! its records: a resumed run continues its trace, and agents get theirs by `TRACEPARENT` before a span is sent.
//!
//! OTLP is spoken as JSON over HTTP, with our own types: the crates of OpenTelemetry bring a second HTTP client and
//! protocol buffers, and change with every version.

mod encode;
mod metrics;
mod sender;
mod settings;

use cuegate_engine::Event;
use cuegate_journal::RunId;
use cuegate_runner::{Entry, Trace};
use cuegate_view::{RunFold, SpanState, Spans, StampedRecord};

use self::{encode::Encoder, metrics::Metrics, sender::Sender};
pub use settings::OtelConfig;
use settings::OtelSettings;

/// Sends the telemetry of one run.
pub(crate) struct Telemetry {
    encoder: Encoder,
    sender: Sender,
    spans: Spans,
    fold: RunFold,
    metrics: Metrics,
    /// Whether each span was sent, by this process or, if it had ended before, by the one that drove the run then.
    sent: Vec<bool>,
}

impl Telemetry {
    /// Telemetry of a run, if it is configured. `before` are the records that other processes wrote.
    pub(crate) fn begin(
        config: &OtelConfig,
        run: &RunId,
        trace: &Trace,
        before: &[Entry],
    ) -> Option<Telemetry> {
        let settings = OtelSettings::read(config, |name| std::env::var(name).ok())?;
        let mut telemetry = Telemetry {
            encoder: Encoder::new(&settings, run, trace.clone()),
            sender: Sender::start(settings),
            spans: Spans::default(),
            fold: RunFold::new(run.as_str()),
            metrics: Metrics::default(),
            sent: Vec::new(),
        };
        for entry in before {
            telemetry.apply(entry);
        }
        telemetry.sent = telemetry.spans.all().iter().map(|span| span.state != SpanState::Open).collect();
        telemetry.metrics = Metrics::begin(cuegate_runner::now_ms());
        Some(telemetry)
    }

    fn apply(&mut self, entry: &Entry) {
        let record = StampedRecord { seq: entry.seq, at_ms: entry.at_ms, events: entry.events.clone() };
        self.spans.apply(&record);
        self.fold.apply(&record);
    }

    /// Takes a record, and sends the spans that it ended.
    pub(crate) fn record(&mut self, entry: &Entry) {
        self.apply(entry);
        self.sent.resize(self.spans.all().len(), false);
        let first = self.spans.take_changed().unwrap_or(self.spans.all().len());
        for span in &self.spans.all()[first..] {
            if span.state != SpanState::Open && !std::mem::replace(&mut self.sent[span.id], true) {
                self.sender.span(self.encoder.span(&self.spans, span));
                self.metrics.add(span);
            }
        }
        if entry.events.iter().any(|event| matches!(event, Event::Ended { .. })) {
            let view = self.fold.view(cuegate_view::Liveness::Alive);
            self.sender.span(self.encoder.run(&view));
            self.metrics.ended(view.state.as_str());
        }
        self.sender.metrics(self.metrics.to_json(entry.at_ms));
    }

    /// Sends the remaining spans and metrics. Returns the first error.
    pub(crate) fn end(self) -> Option<String> {
        self.sender.end()
    }
}
