//! Budgets as text and as JSON.

use cuegate_engine::{AskLimit, Budget, Excess, Ledger, Share, SpentBudget};
use serde_json::{Value, json};

use crate::format::{format_count, format_money, plural};

const MICRO: f64 = 1e6;
const MINUTE: f64 = 60_000.0;

/// `{usd, tokens, asks, minutes}`, null where there is no limit.
pub(crate) fn limits_json(budget: &Budget) -> Value {
    json!({
        "usd": budget.usd_micro.map(usd_of_micros),
        "tokens": budget.tokens,
        "asks": budget.asks,
        "minutes": budget.driven_ms.map(minutes_of_ms),
    })
}

/// The limits of a run and those of each ask.
pub(crate) fn budget_json(budget: &Budget) -> Value {
    let mut limits = limits_json(budget);
    limits["ask_usd"] = json!(budget.ask_usd_micro.map(usd_of_micros));
    limits["ask_tokens"] = json!(budget.ask_tokens);
    limits
}

/// The usage that counts against the limits.
pub(crate) fn spent_json(spent: &SpentBudget) -> Value {
    json!({
        "usd": usd_of_micros(spent.usd_micro),
        "tokens": spent.tokens,
        "asks": spent.asks,
        "minutes": minutes_of_ms(spent.driven_ms),
    })
}

/// Converts millionths of a dollar to dollars.
pub(crate) fn usd_of_micros(micro: u64) -> f64 {
    micro as f64 / MICRO
}

/// Minutes with enough digits that a short time does not become 0.
fn minutes_of_ms(ms: u64) -> f64 {
    let scale = 10_f64.powi(decimals_of_minutes(ms) as i32);
    (ms as f64 / MINUTE * scale).round() / scale
}

/// How many digits after the point a number of minutes needs.
fn decimals_of_minutes(ms: u64) -> u32 {
    match ms {
        6_000.. => 2,
        60.. => 4,
        _ => 6,
    }
}

/// The limits alone, with those of one call that follow from them: `$5.00 ($1.00 per call), 40 calls, 90 min`. `None`
/// without any.
pub fn format_budget_limits(budget: &Budget) -> Option<String> {
    let parts: Vec<String> = [
        budget.usd_micro.map(|micro| match budget.ask_usd_micro {
            Some(_) => format_money(Some(usd_of_micros(micro))),
            None => {
                let one = budget.ask_usd().unwrap_or(micro);
                format!(
                    "{} ({} per call)",
                    format_money(Some(usd_of_micros(micro))),
                    format_money(Some(usd_of_micros(one)))
                )
            }
        }),
        budget.tokens.map(|n| match budget.ask_tokens {
            Some(_) => plural(n, "token"),
            None => format!(
                "{} ({} per call)",
                plural(n, "token"),
                format_count(budget.ask_tokens().unwrap_or(n))
            ),
        }),
        budget.asks.map(|n| plural(n, "call")),
        budget.driven_ms.map(|ms| format!("{} min", minutes_of_ms(ms))),
        budget.ask_usd_micro.map(|micro| format!("{} per call", format_money(Some(usd_of_micros(micro))))),
        budget.ask_tokens.map(|n| format!("{} per call", plural(n, "token"))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The usage of each limit: `$0.0360 of $5.0000, 12 of 40 asks`. `None` without any limit.
pub(crate) fn format_limit_usage(ledger: &Ledger) -> Option<String> {
    let Ledger { budget, spent, .. } = ledger;
    let parts: Vec<String> = [
        budget.usd_micro.map(|most| {
            format!(
                "{} of {}",
                format_money(Some(usd_of_micros(spent.usd_micro))),
                format_money(Some(usd_of_micros(most)))
            )
        }),
        budget.tokens.map(|most| format!("{} of {}", format_count(spent.tokens), plural(most, "token"))),
        budget.asks.map(|most| format!("{} of {}", format_count(spent.asks), plural(most, "call"))),
        budget
            .driven_ms
            .map(|most| format!("{} of {} min", minutes_of_ms(spent.driven_ms), minutes_of_ms(most))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The largest number of units that a flag can hold.
const UNITS_MAX: u64 = 1_000_000_000_000_000;

/// The flags that let an exhausted run continue: each used-up limit, at least doubled.
///
/// `wanting` is the number of asks that wait for a share of the budget. A limit that leaves less than one unit for each
/// of them counts as used up.
pub(crate) fn suggest_budget_flags(ledger: &Ledger, wanting: u64) -> Vec<String> {
    // A resume takes back what was only reserved.
    let is_unseen = ledger.unseen != Share::default();
    if is_unseen && ledger.overspent.is_none() && ledger.lacks(Budget::default()).is_none() {
        return Vec::new();
    }
    let Ledger { budget, spent, overspent, .. } = ledger;
    let reserved = sum_reserved_shares(ledger);
    let wanting = wanting.max(1);
    let mut flags = Vec::new();
    let raised = |most: Option<u64>, spent: u64, reserved: u64, each: u64| {
        let most = most?;
        let gone = spent.saturating_add(reserved);
        let used_up = most.saturating_sub(gone) / each == 0;
        used_up.then(|| most.max(gone).saturating_mul(2).max(gone.saturating_add(each)))
    };
    if let Some(micro) = raised(budget.usd_micro, spent.usd_micro, reserved.usd_micro, wanting) {
        flags.push(format!("--budget-usd {}", typed_usd(micro)));
    }
    if let Some(tokens) = raised(budget.tokens, spent.tokens, reserved.tokens, wanting) {
        flags.push(format!("--budget-tokens {tokens}"));
    }
    if let Some(asks) = raised(budget.asks, spent.asks, reserved.asks, 1) {
        flags.push(format!("--budget-calls {asks}"));
    }
    if let Some(ms) = raised(budget.driven_ms, spent.driven_ms, 0, 1) {
        flags.push(format!("--budget-minutes {}", format_flag_value(ms, MINUTE, decimals_of_minutes(ms))));
    }
    if let Some(excess) = overspent.as_ref().filter(|_| flags.is_empty()) {
        flags.extend(more_for_a_call(ledger, &reserved, excess));
    }
    flags
}

/// The flags with which a call that reached its own limit can be repeated: they allow twice its reservation, by a
/// higher limit of each call, a higher budget of the run, or both.
fn more_for_a_call(ledger: &Ledger, reserved: &SpentBudget, excess: &Excess) -> Vec<String> {
    let Ledger { budget, spent, .. } = ledger;
    let raised = |share: Option<u64>, own: Option<u64>, most: Option<u64>, gone: u64| {
        let wanted = share.unwrap_or(1).saturating_mul(2);
        let call = own.is_some_and(|own| own < wanted).then_some(wanted);
        let run = most.filter(|most| most.saturating_sub(gone) < wanted);
        (call, run.map(|most| gone.saturating_add(wanted).max(most)))
    };
    let mut flags = Vec::new();
    match excess.of {
        AskLimit::Usd => {
            let gone = spent.usd_micro.saturating_add(reserved.usd_micro);
            let (call, run) = raised(excess.share.usd_micro, budget.ask_usd(), budget.usd_micro, gone);
            flags.extend(call.map(|micro| format!("--call-usd {}", typed_usd(micro))));
            flags.extend(run.map(|micro| format!("--budget-usd {}", typed_usd(micro))));
        }
        AskLimit::Tokens => {
            let gone = spent.tokens.saturating_add(reserved.tokens);
            let (call, run) = raised(excess.share.tokens, budget.ask_tokens(), budget.tokens, gone);
            flags.extend(call.map(|tokens| format!("--call-tokens {tokens}")));
            flags.extend(run.map(|tokens| format!("--budget-tokens {tokens}")));
        }
        AskLimit::Other => {}
    }
    flags
}

/// Whether a call stopped at a limit outside of the budget: the agent's turns, or the model's longest answer.
pub(crate) fn capped_elsewhere(ledger: &Ledger) -> bool {
    ledger.overspent.as_ref().is_some_and(|excess| excess.of == AskLimit::Other)
}

/// The sum of the shares that pending asks have reserved; it saturates.
fn sum_reserved_shares(ledger: &Ledger) -> SpentBudget {
    let mut sum = SpentBudget { asks: ledger.reserved.len() as u64, ..SpentBudget::default() };
    for share in ledger.reserved.values() {
        sum.usd_micro = sum.usd_micro.saturating_add(share.usd_micro.unwrap_or(0));
        sum.tokens = sum.tokens.saturating_add(share.tokens.unwrap_or(0));
    }
    sum
}

/// Formats millionths of a dollar for a flag, rounded up to cents; below a cent with all digits.
fn typed_usd(micro: u64) -> String {
    format_flag_value(micro, MICRO, if micro < 10_000 { 6 } else { 2 })
}

/// Formats units for a flag, rounded up so that parsing the flag never yields less.
fn format_flag_value(units: u64, per: f64, digits: u32) -> String {
    let units = units.clamp(1, UNITS_MAX);
    let scale = 10_u128.pow(digits);
    let mut scaled = (u128::from(units) * scale).div_ceil(per as u128);
    loop {
        let number = scaled as f64 / scale as f64;
        // A float may be slightly below the number it represents, and the parser truncates.
        if (number * per).floor() >= units as f64 || scaled == u128::MAX {
            return number.to_string();
        }
        scaled += 1;
    }
}

#[cfg(test)]
mod tests;
