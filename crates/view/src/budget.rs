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

fn minutes(ms: u64) -> f64 {
    (ms as f64 / MINUTE * 100.0).round() / 100.0
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

/// The flags with which an exhausted run goes on: each limit that is used up, doubled.
pub(crate) fn more(ledger: &Ledger) -> Vec<String> {
    let Ledger { budget, spent, overspent, .. } = ledger;
    let reserved = ledger.reserved();
    let mut flags = Vec::new();
    let used_up =
        |most: Option<u64>, spent: u64, reserved: u64| most.filter(|most| spent + reserved >= *most);
    if let Some(most) = used_up(budget.usd_micro, spent.usd_micro, reserved.usd_micro) {
        flags.push(format!("--budget-usd {}", usd(most.max(spent.usd_micro) * 2)));
    }
    if let Some(most) = used_up(budget.tokens, spent.tokens, reserved.tokens) {
        flags.push(format!("--budget-tokens {}", most.max(spent.tokens) * 2));
    }
    if let Some(most) = used_up(budget.asks, spent.asks, reserved.asks) {
        flags.push(format!("--budget-asks {}", most.max(1) * 2));
    }
    if let Some(most) = used_up(budget.driven_ms, spent.driven_ms, 0) {
        flags.push(format!("--budget-minutes {}", minutes(most.max(1) * 2)));
    }
    if flags.is_empty() && overspent.is_some() {
        if budget.usd_micro.is_some() || budget.ask_usd_micro.is_some() {
            let most = budget.ask_usd_micro.unwrap_or(Budget::ASK_USD_MICRO);
            flags.push(format!("--ask-usd {}", usd(most * 2)));
        }
        if budget.tokens.is_some() || budget.ask_tokens.is_some() {
            let most = budget.ask_tokens.unwrap_or(Budget::ASK_TOKENS);
            flags.push(format!("--ask-tokens {}", most * 2));
        }
    }
    flags
}
