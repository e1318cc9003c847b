//! Upper bounds on a run, as `cuegate/price/v1` and as text.

use cuegate_flow::{
    Str,
    analysis::cost_bound::{Certificate, Sensitivity, WalkEnd, WalkMeasure},
    diagnostics::{Sources, Span},
};
use serde_json::{Map, Value, json};

use crate::{
    format::{format_count, format_money, plural},
    text::{clean_to_one_line, format_labelled_line},
};

/// How many steps of the worst path are printed.
const STEPS_MAX: usize = 12;

fn usd_of_micros(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// A bound as a JSON object of `cuegate/price/v1`. Unbounded values are null. Input and output tokens each have the
/// bound of their sum.
pub fn price_json(found: &Certificate, sources: &Sources) -> Value {
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
            "cost_usd": found.usd_micro.map(usd_of_micros),
        },
        "assumptions": found.assumptions,
        "unbounded_because": found.unbounded_because,
        "dearest": path,
        "dearest_by": match found.by {
            WalkMeasure::Asks => "asks",
            WalkMeasure::Money => "cost_usd",
        },
        "bounded_by": match found.bounded_by {
            WalkEnd::Iterations => "iterations",
            WalkEnd::Shape => "shape",
            WalkEnd::Budget => "budget",
        },
        "lever": found.lever.as_ref().map(|lever| sensitivity_json(lever, sources)),
    })
}

fn sensitivity_json(lever: &Sensitivity, sources: &Sources) -> Value {
    let place = lever.span.and_then(|span| Some((sources.get(span.file)?, sources.locate(span))));
    json!({
        "key": lever.key,
        "file": place.map(|(file, _)| file.given()),
        "line": place.map(|(_, at)| at.line),
        "column": place.map(|(_, at)| at.column),
        "from": lever.from,
        "to": lever.to,
        "asks": lever.asks,
        "tokens": lever.tokens,
        "cost_usd": lever.usd_micro.map(usd_of_micros),
    })
}

/// The key whose reduction lowers the bound most, its new value and the resulting bound.
fn describe_reduction(lever: &Sensitivity, sources: &Sources) -> String {
    let file = |span: Span| Some((sources.get(span.file)?, sources.locate(span).line));
    let place = match lever.span {
        Some(span) => {
            file(span).map_or(String::new(), |(file, line)| format!(" ({}:{line})", file.display_path()))
        }
        None if lever.key.starts_with("--") => String::new(),
        None => " (`[run]` in cuegate.toml)".to_owned(),
    };
    // The files of a built-in definition are written anew by each run.
    let (key, place) = match (place.contains(".cuegate/starters/"), &*lever.key) {
        (true, "maxIterations" | "max_iterations") => ("--max-iterations", String::new()),
        (true, key) => (key, " (after `cuegate init`)".to_owned()),
        (false, key) => (key, place),
    };
    let cost = lever
        .usd_micro
        .map_or(String::new(), |micro| format!(", {}", format_money(Some(usd_of_micros(micro)))));
    let (from, to) = (format_count(lever.from), format_count(lever.to));
    format!("`{}`{place} from {from} to {to}: then at most {}{cost}", key, plural(lever.asks, "call"))
}

/// A bound as text.
pub fn render_cost_bound(found: &Certificate, sources: &Sources) -> String {
    let kinds: Vec<String> = found
        .by_role
        .iter()
        .map(|(role, most)| format!("{} {}", crate::status::kind_word(role.as_str()), format_count(*most)))
        .collect();
    let mut lines = vec![
        format_labelled_line("iterations", &format_count(found.iterations)),
        format_labelled_line("visits", &format_count(found.visits)),
        format_labelled_line("calls", &format_count(found.asks)),
        format_labelled_line("by kind", &format!("at most {}", kinds.join(", "))),
        format_labelled_line("tokens", &found.tokens.map_or("not bounded".to_owned(), format_count)),
        format_labelled_line(
            "money",
            &found
                .usd_micro
                .map_or("not bounded".to_owned(), |micro| format_money(Some(usd_of_micros(micro)))),
        ),
        format_labelled_line(
            "worst path",
            &match found.by {
                WalkMeasure::Asks => clean_to_one_line(&worst_path(found)),
                WalkMeasure::Money => format!("{} (by cost)", clean_to_one_line(&worst_path(found))),
            },
        ),
        format_labelled_line(
            "limited by",
            match found.bounded_by {
                WalkEnd::Iterations => "the iteration limit",
                WalkEnd::Shape => "the flow: it has no longer path",
                WalkEnd::Budget => "the budget",
            },
        ),
    ];
    if let Some(lever) = &found.lever {
        let text = clean_to_one_line(&describe_reduction(lever, sources));
        lines.push(format_labelled_line("to reduce", &text));
    }
    for (label, texts) in [("assumptions", &found.assumptions), ("unbounded", &found.unbounded_because)] {
        for (index, text) in texts.iter().enumerate() {
            lines.push(format_labelled_line(if index == 0 { label } else { "" }, &clean_to_one_line(text)));
        }
    }
    lines.join("\n") + "\n"
}

/// The path with the highest bound; a repeated part is printed once with its count.
fn worst_path(found: &Certificate) -> String {
    let step_text = |(step, times): &(Str, u64)| match times {
        1 => step.to_string(),
        times => format!("{step} ×{times}"),
    };
    let (mut parts, mut at, mut printed) = (Vec::new(), 0, 0);
    while at < found.path.len() && printed < STEPS_MAX {
        let (length, rounds) = leading_cycle(&found.path[at..]);
        let names: Vec<String> = found.path[at..at + length].iter().map(step_text).collect();
        parts.push(match rounds {
            1 => names.join(" → "),
            rounds => format!("({}) ×{rounds}", names.join(" → ")),
        });
        at += length * rounds;
        printed += length;
    }
    let more: u64 = found.path.iter().skip(at).map(|(_, times)| times).sum();
    if more > 0 {
        parts.push(format!("{} more", format_count(more)));
    }
    parts.join(" → ")
}

/// The cycle that a path starts with: its length and how often it repeats. `(1, 1)` without a repetition.
fn leading_cycle(path: &[(Str, u64)]) -> (usize, usize) {
    let longest = STEPS_MAX.min(path.len() / 2);
    let rounds = |length: usize| {
        let first = &path[..length];
        (length, path.chunks_exact(length).take_while(|round| *round == first).count())
    };
    let all = (1..=longest).map(rounds).filter(|(_, rounds)| *rounds > 1);
    // The cycle that covers most of the path; among equal ones the shortest.
    all.min_by_key(|(length, rounds)| (std::cmp::Reverse(length * rounds), *length)).unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use super::{price_json, render_cost_bound};
    use crate::testing::{piece, registry};
    use cuegate_flow::{
        analysis::cost_bound::{Rate, Terms},
        diagnostics::Sources,
    };

    #[test]
    fn bounded_flow() {
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
        let found = cuegate_flow::analysis::cost_bound::price_flow(&flow, &terms);
        insta::assert_snapshot!(render_cost_bound(&found, &Sources::default()), @"
        iterations  8
        visits      8
        calls       16
        by kind     at most work 8, repair 8, retry 2
        tokens      48,000,000
        money       $96.00
        worst path  initial.fix → (continuation.fix → closure.fix) ×2 → continuation.fix ×2 → initial.fix
        limited by  the iteration limit
        to reduce   `--max-iterations` from 8 to 4: then at most 8 calls, $48.00
        assumptions at most 8 iterations
                    an invalid answer is retried once
                    a failed agent call is tried at most 3 times: it counts as 1 call, and each try is paid
                    no person answers questions or extends the run
                    a call uses at most 1000000 tokens
                    a call costs at most $2.00
        ");
        insta::assert_snapshot!(price_json(&found, &Sources::default()), @r#"{"schema":"cuegate/price/v1","bounded":true,"max":{"visits":8,"iterations":8,"asks":16,"asks_by_kind":{"work":8,"repair":8,"remedy":2},"tokens":48000000,"input_tokens":48000000,"output_tokens":48000000,"cost_usd":96.0},"assumptions":["at most 8 iterations","an invalid answer is retried once","a failed agent call is tried at most 3 times: it counts as 1 call, and each try is paid","no person answers questions or extends the run","a call uses at most 1000000 tokens","a call costs at most $2.00"],"unbounded_because":[],"dearest":[{"step":"initial.fix","times":1},{"step":"continuation.fix","times":1},{"step":"closure.fix","times":1},{"step":"continuation.fix","times":1},{"step":"closure.fix","times":1},{"step":"continuation.fix","times":2},{"step":"initial.fix","times":1}],"dearest_by":"asks","bounded_by":"iterations","lever":{"key":"--max-iterations","file":null,"line":null,"column":null,"from":8,"to":4,"asks":8,"tokens":24000000,"cost_usd":48.0}}"#);
    }

    #[test]
    fn unbounded_flow() {
        let terms = Terms { iterations_max: 30, ..Terms::default() };
        insta::assert_snapshot!(render_cost_bound(&cuegate_flow::analysis::cost_bound::price_flow(&piece(), &terms), &Sources::default()), @"
        iterations  30
        visits      45
        calls       66
        by kind     at most work 45, judge 21
        tokens      not bounded
        money       not bounded
        worst path  plan → (reviewers → fix) ×14 → reviewers
        limited by  the iteration limit
        to reduce   `--max-iterations` from 30 to 15: then at most 32 calls
        assumptions at most 30 iterations
                    an invalid answer is not retried
                    a failed agent call is tried at most 3 times: it counts as 1 call, and each try is paid
                    no person answers questions or extends the run
        unbounded   the tokens of a call have no limit: set `--call-tokens` or a token budget
                    the cost of a call of the agent's own model is unknown: set `--call-usd`, a cost budget, or prices and `--call-tokens`
        ");
    }
}
