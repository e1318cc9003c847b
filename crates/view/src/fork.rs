//! Describes the run and the moment that a fork came from.

use serde_json::{Value, json};

use crate::{
    EffectState,
    format::{format_money, plural},
    summary::{EffectRow, ForkSource, round_cost},
    text::clean_to_one_line,
};

/// The run of which it is a fork, the moment, and what that run had spent: ``run abc, after visit 2 of `fix` (3 visits, $0.40 there)``.
pub fn describe_fork(fork: &ForkSource) -> String {
    let spent = fork.cost_usd.map_or_else(String::new, |cost| format!(", {}", format_money(Some(cost))));
    let visits = plural(fork.visits as u64, "visit");
    format!("run {}, {} ({visits}{spent} there)", fork.run, clean_to_one_line(&fork.moment))
}

/// What the source run had requested outside of its working tree, and the fork does not repeat.
pub fn list_unrepeated_effects(fork: &ForkSource) -> Vec<String> {
    // What failed there may be tried again here.
    let is_done = |row: &&EffectRow| !row.is_log() && row.state != EffectState::Failed;
    fork.effects.iter().filter(is_done).map(describe_effect).collect()
}

fn describe_effect(row: &EffectRow) -> String {
    let what = match (&row.url, &row.said) {
        (Some(url), _) => format!(" ({})", clean_to_one_line(url)),
        (None, Some(said)) if row.state == EffectState::Done => format!(" ({})", clean_to_one_line(said)),
        (None, _) if row.state == EffectState::Done => String::new(),
        (None, _) => format!(" ({} in the source run)", row.state.as_str()),
    };
    format!("{}{what}", clean_to_one_line(&row.action))
}

/// The origin of a fork as `cuegate/run/v1` has it.
pub(crate) fn fork_json(fork: &ForkSource) -> Value {
    json!({
        "run": fork.run, "moment": fork.moment, "records": fork.records, "visits": fork.visits,
        "cost_usd": fork.cost_usd.map(round_cost), "not_repeated": list_unrepeated_effects(fork),
        "new_sessions": fork.new_sessions,
    })
}
