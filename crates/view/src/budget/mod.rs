//! Budgets in words and in JSON.

use cuegate_engine::{Budget, Ledger, Spent};
use serde_json::{Value, json};

use crate::format::{count, money};

const MICRO: f64 = 1e6;
const MINUTE: f64 = 60_000.0;

/// `{usd, tokens, asks, minutes}`, null where nothing is limited.
pub(crate) fn limits_json(budget: &Budget) -> Value {
    json!({
        "usd": budget.usd_micro.map(usd),
        "tokens": budget.tokens,
        "asks": budget.asks,
        "minutes": budget.driven_ms.map(minutes),
    })
}

/// The limits of a run and those of each ask.
pub(crate) fn budget_json(budget: &Budget) -> Value {
    let mut limits = limits_json(budget);
    limits["ask_usd"] = json!(budget.ask_usd_micro.map(usd));
    limits["ask_tokens"] = json!(budget.ask_tokens);
    limits
}

/// What counts against the limits.
pub(crate) fn spent_json(spent: &Spent) -> Value {
    json!({
        "usd": usd(spent.usd_micro),
        "tokens": spent.tokens,
        "asks": spent.asks,
        "minutes": minutes(spent.driven_ms),
    })
}

/// Dollars of millionths.
pub(crate) fn usd(micro: u64) -> f64 {
    micro as f64 / MICRO
}

/// Minutes in as many digits as tell them from nothing.
fn minutes(ms: u64) -> f64 {
    let scale = 10_f64.powi(digits(ms) as i32);
    (ms as f64 / MINUTE * scale).round() / scale
}

/// How many digits of a number of minutes say something.
fn digits(ms: u64) -> u32 {
    match ms {
        6_000.. => 2,
        60.. => 4,
        _ => 6,
    }
}

/// The limits alone: `$5.0000, 200,000 tokens, 40 asks, 90 min`. `None` without any.
pub fn limits(budget: &Budget) -> Option<String> {
    let parts: Vec<String> = [
        budget.usd_micro.map(|micro| money(Some(usd(micro)))),
        budget.tokens.map(|n| format!("{} tokens", count(n))),
        budget.asks.map(|n| format!("{} asks", count(n))),
        budget.driven_ms.map(|ms| format!("{} min", minutes(ms))),
        budget.ask_usd_micro.map(|micro| format!("{} an ask", money(Some(usd(micro))))),
        budget.ask_tokens.map(|n| format!("{} tokens an ask", count(n))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What was spent of each limit: `$0.0360 of $5.0000, 12 of 40 asks`. `None` where nothing is limited.
pub(crate) fn standing(ledger: &Ledger) -> Option<String> {
    let Ledger { budget, spent, .. } = ledger;
    let parts: Vec<String> = [
        budget
            .usd_micro
            .map(|most| format!("{} of {}", money(Some(usd(spent.usd_micro))), money(Some(usd(most))))),
        budget.tokens.map(|most| format!("{} of {} tokens", count(spent.tokens), count(most))),
        budget.asks.map(|most| format!("{} of {} asks", count(spent.asks), count(most))),
        budget.driven_ms.map(|most| format!("{} of {} min", minutes(spent.driven_ms), minutes(most))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The most units that a flag can say: a thousand million million.
const UNITS_MAX: u64 = 1_000_000_000_000_000;

/// The flags with which an exhausted run goes on: each limit that is used up, at least doubled. `wanting` is how many
/// asks wait for a share: what does not come to a unit for each of them is used up too.
pub(crate) fn more(ledger: &Ledger, wanting: u64) -> Vec<String> {
    let Ledger { budget, spent, overspent, .. } = ledger;
    let reserved = reserved(ledger);
    let wanting = wanting.max(1);
    let mut flags = Vec::new();
    let raised = |most: Option<u64>, spent: u64, reserved: u64, each: u64| {
        let most = most?;
        let gone = spent.saturating_add(reserved);
        let used_up = most.saturating_sub(gone) / each == 0;
        used_up.then(|| most.max(gone).saturating_mul(2).max(gone.saturating_add(each)))
    };
    if let Some(micro) = raised(budget.usd_micro, spent.usd_micro, reserved.usd_micro, wanting) {
        flags.push(format!("--budget-usd {}", typed(micro, MICRO, 6)));
    }
    if let Some(tokens) = raised(budget.tokens, spent.tokens, reserved.tokens, wanting) {
        flags.push(format!("--budget-tokens {tokens}"));
    }
    if let Some(asks) = raised(budget.asks, spent.asks, reserved.asks, 1) {
        flags.push(format!("--budget-asks {asks}"));
    }
    if let Some(ms) = raised(budget.driven_ms, spent.driven_ms, 0, 1) {
        flags.push(format!("--budget-minutes {}", typed(ms, MINUTE, digits(ms))));
    }
    if flags.is_empty() && overspent.is_some() && !capped_elsewhere(ledger) {
        if budget.usd_micro.is_some() || budget.ask_usd_micro.is_some() {
            let most = budget.ask_usd_micro.unwrap_or(Budget::ASK_USD_MICRO);
            flags.push(format!("--ask-usd {}", typed(most.saturating_mul(2), MICRO, 6)));
        }
        if budget.tokens.is_some() || budget.ask_tokens.is_some() {
            let most = budget.ask_tokens.unwrap_or(Budget::ASK_TOKENS);
            flags.push(format!("--ask-tokens {}", most.saturating_mul(2)));
        }
    }
    flags
}

/// Whether an ask was stopped at a cap that no limit of the run sets: turns, or what a model may write at once.
pub(crate) fn capped_elsewhere(ledger: &Ledger) -> bool {
    let Ledger { budget, overspent: Some(what), .. } = ledger else { return false };
    let capped = [budget.usd_micro, budget.ask_usd_micro, budget.tokens, budget.ask_tokens]
        .iter()
        .any(Option::is_some);
    // The step's name is no part of what happened.
    let said = what.split_once("at its cap: ").map_or("", |(_, said)| said).to_lowercase();
    !capped || ["turns", "output_tokens", "output tokens"].iter().any(|word| said.contains(word))
}

/// What pending asks have set aside together, however much that is.
fn reserved(ledger: &Ledger) -> Spent {
    let mut sum = Spent { asks: ledger.reserved.len() as u64, ..Spent::default() };
    for share in ledger.reserved.values() {
        sum.usd_micro = sum.usd_micro.saturating_add(share.usd_micro.unwrap_or(0));
        sum.tokens = sum.tokens.saturating_add(share.tokens.unwrap_or(0));
    }
    sum
}

/// So many units as a number that a flag takes, which is rounded up: read back it is never less.
fn typed(units: u64, per: f64, digits: u32) -> String {
    let units = units.clamp(1, UNITS_MAX);
    let scale = 10_u128.pow(digits);
    let mut scaled = (u128::from(units) * scale).div_ceil(per as u128);
    loop {
        let number = scaled as f64 / scale as f64;
        // A float that stands for a number may be a little less than that, and what is broken off is lost.
        if (number * per).floor() >= units as f64 || scaled == u128::MAX {
            return number.to_string();
        }
        scaled += 1;
    }
}

#[cfg(test)]
mod tests;
