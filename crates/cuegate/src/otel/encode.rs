//! Spans as OTLP JSON, with the attributes of the GenAI conventions.

use cuegate_engine::EndState;
use cuegate_journal::RunId;
use cuegate_runner::Trace;
use cuegate_view::{RunState, RunView, Span, SpanKind, SpanState, Spans};
use serde_json::{Value, json};

use super::settings::OtelSettings;

/// The version of the semantic conventions whose names are used. Those for GenAI are still in development.
pub(super) const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// The kind of a span that calls another program.
const CLIENT: u8 = 3;
/// The kind of any other span.
const INTERNAL: u8 = 1;

/// Makes spans of one run.
pub(super) struct Encoder {
    run: String,
    trace: Trace,
    /// The trace and the span that started this program.
    parent: Option<(String, String)>,
    content: bool,
}

impl Encoder {
    pub(super) fn new(settings: &OtelSettings, run: &RunId, trace: Trace) -> Encoder {
        let parent = settings.parent.as_deref().and_then(|text| {
            let mut parts = text.split('-').skip(1);
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        });
        Encoder { run: run.to_string(), trace, parent, content: settings.content }
    }

    /// The whole run.
    pub(super) fn run(&self, view: &RunView) -> Value {
        let mut attributes = vec![
            encode_text_attribute("gen_ai.operation.name", "invoke_workflow"),
            encode_text_attribute("gen_ai.workflow.name", &view.flow),
            encode_text_attribute("cuegate.run.id", &self.run),
            encode_text_attribute("cuegate.run.state", view.state.as_str()),
            encode_integer_attribute("cuegate.run.iterations", u64::from(view.iterations)),
            encode_integer_attribute("cuegate.run.calls", view.asks.total()),
            encode_integer_attribute("gen_ai.usage.input_tokens", view.usage.input_tokens),
            encode_integer_attribute("gen_ai.usage.output_tokens", view.usage.output_tokens),
        ];
        attributes
            .extend(view.ledger.asks_max.map(|most| encode_integer_attribute("cuegate.run.calls_max", most)));
        attributes.extend(view.usage.cost_usd.map(|usd| encode_float_attribute("cuegate.cost_usd", usd)));
        attributes.extend(
            view.ledger
                .budget
                .usd_micro
                .map(|micro| encode_float_attribute("cuegate.budget_usd", micro as f64 / 1e6)),
        );
        attributes
            .extend(view.model.as_ref().map(|model| encode_text_attribute("gen_ai.request.model", model)));
        let state = match view.state {
            RunState::Ended(EndState::Completed) => SpanState::Ok,
            _ => SpanState::Failed,
        };
        let links: Vec<Value> =
            self.parent.iter().map(|(trace, span)| json!({ "traceId": trace, "spanId": span })).collect();
        json!({
            "traceId": self.trace.id(),
            "spanId": self.trace.span("run"),
            "name": format!("invoke_workflow {}", view.flow),
            "kind": INTERNAL,
            "startTimeUnixNano": encode_nanoseconds(view.started_ms.unwrap_or_default()),
            "endTimeUnixNano": encode_nanoseconds(view.ended_ms.unwrap_or_default()),
            "attributes": attributes,
            "links": links,
            "status": encode_span_status(state, view.reason.as_deref()),
        })
    }

    /// A span that has ended.
    pub(super) fn span(&self, spans: &Spans, span: &Span) -> Value {
        let parent =
            span.parent.map_or_else(|| self.trace.span("run"), |parent| self.id(&spans.all()[parent]));
        let mut attributes = vec![encode_text_attribute("cuegate.run.id", &self.run)];
        let mut kind = INTERNAL;
        let name = match span.kind {
            SpanKind::Visit => {
                attributes.push(encode_text_attribute("cuegate.step", &span.name));
                attributes.push(encode_integer_attribute("cuegate.visit", u64::from(span.visit)));
                attributes.push(encode_integer_attribute("cuegate.attempt", u64::from(span.attempt)));
                attributes.extend(
                    span.target.as_ref().map(|target| encode_text_attribute("cuegate.target", target)),
                );
                format!("step {}", span.name)
            }
            SpanKind::Ask => {
                kind = CLIENT;
                attributes.push(encode_text_attribute("gen_ai.operation.name", "invoke_agent"));
                attributes.push(encode_text_attribute("gen_ai.agent.name", &span.name));
                attributes.push(encode_text_attribute("cuegate.ask.kind", &span.detail));
                attributes.extend(span.provider.as_deref().map(|name| {
                    encode_text_attribute("gen_ai.provider.name", convention_name_of_provider(name))
                }));
                attributes.extend(
                    span.model.as_deref().map(|model| encode_text_attribute("gen_ai.response.model", model)),
                );
                let usage = span.usage;
                if usage.input_tokens + usage.output_tokens > 0 {
                    attributes
                        .push(encode_integer_attribute("gen_ai.usage.input_tokens", usage.input_tokens));
                    attributes
                        .push(encode_integer_attribute("gen_ai.usage.output_tokens", usage.output_tokens));
                    attributes.push(encode_integer_attribute(
                        "gen_ai.usage.cache_read.input_tokens",
                        usage.cached_input_tokens,
                    ));
                }
                format!("invoke_agent {}", span.name)
            }
            SpanKind::Tool => {
                attributes.push(encode_text_attribute("gen_ai.operation.name", "execute_tool"));
                attributes.push(encode_text_attribute("gen_ai.tool.name", &span.name));
                if self.content {
                    attributes.push(encode_text_attribute("cuegate.tool.target", &span.detail));
                }
                format!("execute_tool {}", span.name)
            }
            SpanKind::Validator => {
                attributes.push(encode_text_attribute("cuegate.validator", &span.name));
                format!("validator {}", span.name)
            }
            SpanKind::Effect => {
                attributes.push(encode_text_attribute("cuegate.effect", &span.detail));
                format!("effect {}", span.name)
            }
            SpanKind::Poll => format!("poll {}", span.name),
            SpanKind::Wait => format!("wait {}", span.name),
        };
        if span.kind != SpanKind::Visit {
            attributes.extend(span.usage.cost_usd.map(|usd| encode_float_attribute("cuegate.cost_usd", usd)));
        }
        attributes
            .extend(span.outcome.as_deref().map(|outcome| encode_text_attribute("cuegate.outcome", outcome)));
        if span.state == SpanState::Failed {
            attributes.push(encode_text_attribute("error.type", error_type(span)));
        }
        json!({
            "traceId": self.trace.id(),
            "spanId": self.id(span),
            "parentSpanId": parent,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": encode_nanoseconds(span.from_ms),
            "endTimeUnixNano": encode_nanoseconds(span.to_ms.unwrap_or(span.from_ms)),
            "attributes": attributes,
            "status": encode_span_status(span.state, span.outcome.as_deref()),
        })
    }

    /// The id of a span: an ask has that of its command, which its agent knows before the span is there.
    fn id(&self, span: &Span) -> String {
        match span.command {
            Some(command) => self.trace.command(command),
            None => self.trace.span(&format!("{} {}", span.kind.as_str(), span.id)),
        }
    }
}

fn convention_name_of_provider(name: &str) -> &str {
    match name {
        "claude" => "anthropic",
        "codex" | "openai" => "openai",
        other => other,
    }
}

fn error_type(span: &Span) -> &str {
    match span.kind {
        SpanKind::Ask => span.outcome.as_deref().and_then(|why| why.split(':').next()).unwrap_or("_OTHER"),
        SpanKind::Validator => "validator_failed",
        SpanKind::Visit if span.outcome.as_deref() == Some("failed") => "validator_failed",
        SpanKind::Tool if span.outcome.as_deref() == Some("denied") => "denied",
        _ => "_OTHER",
    }
}

fn encode_span_status(state: SpanState, why: Option<&str>) -> Value {
    match state {
        SpanState::Failed => json!({ "code": 2, "message": why.unwrap_or_default() }),
        SpanState::Ok => json!({ "code": 1 }),
        SpanState::Open | SpanState::Cut => json!({}),
    }
}

/// OTLP has 64-bit numbers as text.
pub(super) fn encode_nanoseconds(ms: i64) -> String {
    (i128::from(ms) * 1_000_000).to_string()
}

pub(super) fn encode_text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn encode_integer_attribute(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn encode_float_attribute(key: &str, value: f64) -> Value {
    // Without the noise of binary fractions.
    let value = (value * 1e9).round() / 1e9;
    json!({ "key": key, "value": { "doubleValue": value } })
}
