//! `cuegate/spans/v1`.

use serde_json::{Map, Value, json};

use super::{Span, Spans, SpendPoint};
use crate::{format::format_rfc3339, summary::json_of_cost};

impl Spans {
    /// Visits by their number from 0, with the spans in them, and what is the same for all: the path and the spending.
    /// At most 500 points of the spending are left, evenly chosen.
    pub fn to_json(&self, run: &str, from: usize, count: usize) -> Value {
        let spans: Vec<Value> = self.page(from, count).map(Span::to_json).collect();
        let edges = self.edges().map(|edge| json!({ "from": edge.from, "to": edge.to, "count": edge.count }));
        let steps: Map<String, Value> =
            self.counts().map(|(step, count)| (step.to_string(), json!(count))).collect();
        json!({
            "schema": "cuegate/spans/v1",
            "run": run,
            "visits": self.visits(),
            "from": from,
            "spans": spans,
            "steps": steps,
            "edges": edges.collect::<Vec<_>>(),
            "spend": thin_out_points(self.spend()).map(json_of_spend_point).collect::<Vec<_>>(),
        })
    }
}

impl Span {
    /// The span as JSON.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                object.insert(key.to_owned(), value);
            }
        };
        put("id", json!(self.id));
        put("parent", json!(self.parent));
        put("kind", json!(self.kind.as_str()));
        put("name", json!(self.name));
        put("detail", json!(Some(&self.detail).filter(|detail| !detail.is_empty())));
        put("state", json!(self.state.as_str()));
        put("outcome", json!(self.outcome));
        put("target", json!(self.target));
        if self.visit > 0 {
            put("visit", json!(self.visit));
            put("attempt", json!(self.attempt));
        }
        put("member", json!(self.command.and_then(cuegate_engine::CommandId::member)));
        put("from", json!(format_rfc3339(self.from_ms)));
        put("to", json!(self.to_ms.map(format_rfc3339)));
        put("from_seq", json!(self.from_seq));
        put("to_seq", json!(self.to_seq));
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        if tokens > 0 {
            put("tokens", json!(tokens));
        }
        put("cost_usd", json_of_cost(self.usage.cost_usd));
        put("provider", json!(self.provider));
        put("model", json!(self.model));
        Value::Object(object)
    }
}

/// The most points that JSON has.
const POINTS_MAX: usize = 500;

/// Every n-th point, the first and the last included.
fn thin_out_points(points: &[SpendPoint]) -> impl Iterator<Item = &SpendPoint> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    points
        .iter()
        .enumerate()
        .filter(move |(index, _)| index % step == 0 || *index == last)
        .map(|(_, point)| point)
}

fn json_of_spend_point(point: &SpendPoint) -> Value {
    json!({
        "at": format_rfc3339(point.at_ms),
        "spent_usd": json_of_cost(Some(point.spent_usd)),
        "reserved_usd": json_of_cost(Some(point.reserved_usd)),
        "tokens": point.tokens,
    })
}
