//! The most that a run can do, as `cuegate/price/v1` and as text.

use cuegate_flow::{BoundedBy, Certificate};
use serde_json::{Map, Value, json};

use crate::{
    format::{count, money, plural},
    text::{clean, labelled},
};

/// How many legs of the dearest walk are told.
const LEGS_MAX: usize = 12;

fn usd(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// A bound as a JSON object of `cuegate/price/v1`. What is not bounded is null; read and written tokens are each bounded
/// by the bound of both together.
pub fn price_json(found: &Certificate) -> Value {
    let kinds: Map<String, Value> =
        found.by_role.iter().map(|(role, most)| (role.as_str().to_owned(), json!(most))).collect();
    let path: Vec<Value> =
        found.path.iter().map(|(step, times)| json!({"step": step, "times": times})).collect();
    json!({
        "schema": "cuegate/price/v1",
        "bounded": found.unbounded_because.is_empty(),
        "max": {
            "visits": found.visits, "iterations": found.iterations, "asks": found.asks, "asks_by_kind": kinds,
            "tokens": found.tokens, "input_tokens": found.tokens, "output_tokens": found.tokens,
            "cost_usd": found.usd_micro.map(usd),
        },
        "assumptions": found.assumptions,
        "unbounded_because": found.unbounded_because,
        "dearest": path,
        "bounded_by": match found.bounded_by {
            BoundedBy::Iterations => "iterations",
            BoundedBy::Shape => "shape",
            BoundedBy::Budget => "budget",
        },
        "lever": found.lever.as_ref().map(|lever| {
            json!({"key": lever.key, "from": lever.from, "to": lever.to, "asks": lever.asks})
        }),
    })
}

/// A bound as text.
pub fn price(found: &Certificate) -> String {
    let kinds: Vec<String> =
        found.by_role.iter().map(|(role, most)| format!("{} {}", role.as_str(), count(*most))).collect();
    let mut lines = vec![
        labelled("iterations", &count(found.iterations)),
        labelled("visits", &count(found.visits)),
        labelled("asks", &count(found.asks)),
        labelled("of these", &format!("at most {}", kinds.join(", "))),
        labelled("tokens", &found.tokens.map_or("not bounded".to_owned(), count)),
        labelled("money", &found.usd_micro.map_or("not bounded".to_owned(), |micro| money(Some(usd(micro))))),
        labelled("dearest", &clean(&walk(found))),
        labelled(
            "bounded by",
            match found.bounded_by {
                BoundedBy::Iterations => "the limit of iterations",
                BoundedBy::Shape => "the flow: no way through it is longer",
                BoundedBy::Budget => "the budget",
            },
        ),
    ];
    if let Some(lever) = &found.lever {
        let text = format!(
            "{} from {} to {}: then at most {}",
            lever.key,
            count(lever.from),
            count(lever.to),
            plural(lever.asks, "ask")
        );
        lines.push(labelled("lower", &text));
    }
    lines.extend(found.assumptions.iter().map(|what| labelled("assuming", &clean(what))));
    lines.extend(found.unbounded_because.iter().map(|what| labelled("unbounded", &clean(what))));
    lines.join("\n") + "\n"
}

fn walk(found: &Certificate) -> String {
    let leg = |(step, times): &(cuegate_flow::Str, u64)| match times {
        1 => step.to_string(),
        times => format!("{step} ×{times}"),
    };
    let mut legs: Vec<String> = found.path.iter().take(LEGS_MAX).map(leg).collect();
    let more: u64 = found.path.iter().skip(LEGS_MAX).map(|(_, times)| times).sum();
    if more > 0 {
        legs.push(format!("{} more", count(more)));
    }
    legs.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::{price, price_json};
    use crate::testing::{piece, registry};
    use cuegate_flow::{Rate, Terms};

    #[test]
    fn a_bounded_one() {
        let flow = registry();
        let rates = flow.default_model.iter().map(|model| (model.clone(), Rate { input: 5.0, output: 25.0 }));
        let terms = Terms {
            iterations_max: 8,
            repairs_max: 1,
            ask_usd_micro: Some(2_000_000),
            ask_tokens: Some(1_000_000),
            rates: rates.collect(),
            ..Terms::default()
        };
        let found = cuegate_flow::price(&flow, &terms);
        insta::assert_snapshot!(price(&found), @"");
        insta::assert_snapshot!(price_json(&found), @"");
    }

    #[test]
    fn an_unbounded_one() {
        let terms = Terms { iterations_max: 30, ..Terms::default() };
        insta::assert_snapshot!(price(&cuegate_flow::price(&piece(), &terms)), @"");
    }
}
