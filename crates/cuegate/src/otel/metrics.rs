//! Numbers of a run: sums and histograms since this process began to drive it.

use std::collections::BTreeMap;

use cuegate_view::{Span, SpanKind, SpanState};
use serde_json::{Value, json};

use super::encode::{encode_nanoseconds, encode_text_attribute};

/// The upper bounds that the conventions prescribe for tokens.
const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];
/// And for seconds.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

type Attributes = Vec<(&'static str, String)>;

/// Values by their attributes.
type Sums = BTreeMap<Attributes, f64>;

/// A histogram by its attributes.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<Attributes, Buckets>);

/// How many values are in each bucket, and their sum.
type Buckets = (Vec<u64>, f64);

/// All numbers.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    since_ms: i64,
    tokens: Histogram,
    durations: Histogram,
    cost: Sums,
    repairs: Sums,
    validators: Sums,
    runs: Sums,
}

impl Metrics {
    pub(super) fn begin(since_ms: i64) -> Metrics {
        Metrics { since_ms, ..Metrics::default() }
    }

    /// Adds a span that has ended.
    pub(super) fn add(&mut self, span: &Span) {
        let seconds = span.to_ms.unwrap_or(span.from_ms).saturating_sub(span.from_ms) as f64 / 1e3;
        match span.kind {
            SpanKind::Ask => {
                let mut of = vec![("gen_ai.operation.name", "invoke_agent".to_owned())];
                of.push(("gen_ai.agent.name", span.name.to_string()));
                of.extend(span.model.iter().map(|model| ("gen_ai.response.model", model.to_string())));
                for (kind, tokens) in
                    [("input", span.usage.input_tokens), ("output", span.usage.output_tokens)]
                {
                    if tokens > 0 {
                        let mut of = of.clone();
                        of.push(("gen_ai.token.type", kind.to_owned()));
                        self.tokens.add(of, tokens as f64, &TOKENS);
                    }
                }
                if let Some(usd) = span.usage.cost_usd {
                    *self.cost.entry(of.clone()).or_default() += usd;
                }
                if matches!(&*span.detail, "repair" | "remedy") {
                    let kind = vec![("cuegate.ask.kind", span.detail.to_string())];
                    *self.repairs.entry(kind).or_default() += 1.0;
                }
                self.durations.add(of, seconds, &SECONDS);
            }
            SpanKind::Tool => {
                let of = vec![
                    ("gen_ai.operation.name", "execute_tool".to_owned()),
                    ("gen_ai.tool.name", span.name.to_string()),
                ];
                self.durations.add(of, seconds, &SECONDS);
            }
            SpanKind::Validator => {
                let passed = (span.state == SpanState::Ok).to_string();
                let of = vec![("cuegate.validator", span.name.to_string()), ("cuegate.passed", passed)];
                *self.validators.entry(of).or_default() += 1.0;
            }
            _ => {}
        }
    }

    /// Counts the end of the run.
    pub(super) fn ended(&mut self, state: &str) {
        *self.runs.entry(vec![("cuegate.run.state", state.to_owned())]).or_default() += 1.0;
    }

    /// All of them, as OTLP has them.
    pub(super) fn to_json(&self, at_ms: i64) -> Value {
        let sum = |name: &str, unit: &str, sums: &Sums| {
            let points = sums.iter().map(|(of, value)| {
                let mut point = self.point(of, at_ms);
                point["asDouble"] = json!(value);
                point
            });
            let points: Vec<Value> = points.collect();
            (!points.is_empty()).then(|| {
                json!({ "name": name, "unit": unit,
                    "sum": { "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points } })
            })
        };
        let histogram = |name: &str, unit: &str, histogram: &Histogram, bounds: &[f64]| {
            let points = histogram.0.iter().map(|(of, (buckets, total))| {
                let mut point = self.point(of, at_ms);
                point["count"] = json!(buckets.iter().sum::<u64>().to_string());
                point["sum"] = json!(total);
                point["bucketCounts"] = buckets.iter().map(|count| json!(count.to_string())).collect();
                point["explicitBounds"] = json!(bounds);
                point
            });
            let points: Vec<Value> = points.collect();
            (!points.is_empty()).then(|| {
                json!({ "name": name, "unit": unit, "histogram": { "aggregationTemporality": 2, "dataPoints": points } })
            })
        };
        let all = [
            histogram("gen_ai.client.token.usage", "{token}", &self.tokens, &TOKENS),
            histogram("gen_ai.client.operation.duration", "s", &self.durations, &SECONDS),
            sum("cuegate.cost", "{USD}", &self.cost),
            sum("cuegate.repairs", "{ask}", &self.repairs),
            sum("cuegate.validators", "{run}", &self.validators),
            sum("cuegate.runs", "{run}", &self.runs),
        ];
        all.into_iter().flatten().collect()
    }

    fn point(&self, of: &[(&'static str, String)], at_ms: i64) -> Value {
        let attributes: Vec<Value> =
            of.iter().map(|(key, value)| encode_text_attribute(key, value)).collect();
        json!({ "attributes": attributes, "startTimeUnixNano": encode_nanoseconds(self.since_ms), "timeUnixNano": encode_nanoseconds(at_ms) })
    }
}

impl Histogram {
    fn add(&mut self, of: Attributes, value: f64, bounds: &[f64]) {
        let (buckets, total) = self.0.entry(of).or_insert_with(|| (vec![0; bounds.len() + 1], 0.0));
        let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        buckets[bucket] += 1;
        *total += value;
    }
}
