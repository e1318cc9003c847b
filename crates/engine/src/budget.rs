//! The budget of a run: its limits, its usage, and the reservations of pending asks.
//!
//! Every ask reserves its maximum usage before it starts and is settled at what it used, also when it is interrupted:
//! agents report their usage while they work. Where nobody knows what an ask used, it is settled at its whole
//! reservation. The sum of usage and reservations therefore never exceeds the budget, whatever is killed at any time.

use std::collections::BTreeMap;

use cuegate_ask::{AskLimit, Usage};
use serde::{Deserialize, Serialize};

use crate::{command::CommandId, event::Event, event_types::RunResumed};

/// The limits of a run, from its start; `None` = unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// The cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micro: Option<u64>,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Asks of every kind, including failed and interrupted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<u64>,
    /// The driven time since this limit was first set, in milliseconds. Time without a driving process and time in
    /// which the machine sleeps do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_ms: Option<u64>,
    /// The maximum cost of one ask, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_usd_micro: Option<u64>,
    /// The maximum number of tokens of one ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_tokens: Option<u64>,
}

impl Budget {
    /// The default maximum cost of one ask under a limited budget: five US dollars, or a fifth of the budget if less.
    pub const ASK_USD_MICRO: u64 = 5_000_000;
    /// The default maximum tokens of one ask under a limited budget, or a fifth of the budget if less. Agents send their
    /// whole session in each turn, so a long ask uses millions.
    pub const ASK_TOKENS: u64 = 5_000_000;
    /// The number of asks of unknown usage that a budget pays by default.
    const SHARES: u64 = 5;

    /// Whether there is any limit.
    pub fn limits(&self) -> bool {
        *self != Budget::default()
    }

    /// This budget with the limits that `other` sets.
    pub fn with(self, other: Budget) -> Budget {
        Budget {
            usd_micro: other.usd_micro.or(self.usd_micro),
            tokens: other.tokens.or(self.tokens),
            asks: other.asks.or(self.asks),
            driven_ms: other.driven_ms.or(self.driven_ms),
            ask_usd_micro: other.ask_usd_micro.or(self.ask_usd_micro),
            ask_tokens: other.ask_tokens.or(self.ask_tokens),
        }
    }

    /// The maximum cost of one ask, in millionths of a US dollar; `None` = unlimited.
    pub fn ask_usd(&self) -> Option<u64> {
        self.ask_usd_micro
            .or(self.usd_micro.map(|all| all.div_ceil(Budget::SHARES).min(Budget::ASK_USD_MICRO)))
    }

    /// The maximum number of tokens of one ask; `None` = unlimited.
    pub fn ask_tokens(&self) -> Option<u64> {
        self.ask_tokens.or(self.tokens.map(|all| all.div_ceil(Budget::SHARES).min(Budget::ASK_TOKENS)))
    }
}

/// An amount of each limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpentBudget {
    /// Millionths of a US dollar. An unknown cost counts as its whole reservation.
    pub usd_micro: u64,
    pub tokens: u64,
    pub asks: u64,
    /// Milliseconds driven.
    pub driven_ms: u64,
}

/// The reservation of an ask: its maximum usage. `None` = unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Share {
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micro: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// An ask that reached a limit of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// The description.
    pub what: String,
    /// The limit.
    pub of: AskLimit,
    /// The reservation of the ask, or what it used if that is more.
    pub share: Share,
}

/// The account of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// The limits.
    pub budget: Budget,
    /// The usage.
    pub spent: SpentBudget,
    /// The unmeasured part of the usage: the reservations of asks whose usage nobody knows.
    pub unseen: Share,
    /// The reservations of pending asks.
    pub reserved: BTreeMap<CommandId, Share>,
    /// The last ask that reached a limit of its own. No further ask starts until the run is resumed.
    pub overspent: Option<Excess>,
    /// The number of answered asks.
    pub answered: u64,
    /// The maximum number of answers by the cost bound of the definition; `None` = unknown.
    pub asks_max: Option<u64>,
}

/// Why no further ask can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The cost limit.
    Usd,
    Tokens,
    Asks,
    /// The time limit.
    Time,
    /// The previous ask exceeded its reservation.
    Overspent,
}

impl Ledger {
    /// Whether asks need a reservation.
    pub fn limits(&self) -> bool {
        self.budget.limits()
    }

    /// The reservation of the next of `n` asks that start together.
    ///
    /// # Errors
    /// Returns the exhausted limit if nothing is left.
    pub fn share(&self, n: u64) -> Result<Share, Lack> {
        let Ledger { budget, spent, .. } = self;
        if self.overspent.is_some() {
            return Err(Lack::Overspent);
        }
        if budget.asks.is_some_and(|asks| spent.asks.saturating_add(self.reserved.len() as u64) >= asks) {
            return Err(Lack::Asks);
        }
        if budget.driven_ms.is_some_and(|most| spent.driven_ms >= most) {
            return Err(Lack::Time);
        }
        let one = |limit: Option<u64>, spent: u64, reserved: u64, cap: Option<u64>, lack: Lack| {
            let left = limit.map(|limit| limit.saturating_sub(spent).saturating_sub(reserved));
            // The first ask gets the last unit; the others wait for what it does not use.
            match (left.map(|left| (left / n.max(1)).max(left.min(1))), cap) {
                (Some(0), _) => Err(lack),
                (Some(left), Some(cap)) => Ok(Some(left.min(cap))),
                (left, cap) => Ok(left.or(cap)),
            }
        };
        let reserved = self.reserved();
        Ok(Share {
            usd_micro: one(
                budget.usd_micro,
                spent.usd_micro,
                reserved.usd_micro,
                budget.ask_usd(),
                Lack::Usd,
            )?,
            tokens: one(budget.tokens, spent.tokens, reserved.tokens, budget.ask_tokens(), Lack::Tokens)?,
        })
    }

    /// The answered asks and the cost bound, once there are more answers than the bound allows. That is a bug of the
    /// bound: it is reported and stops nothing, because the budget limits what a run spends.
    pub fn beyond_bound(&self) -> Option<(u64, u64)> {
        self.asks_max.filter(|most| self.answered > *most).map(|most| (self.answered, most))
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => {
                self.budget = started.budget;
                self.asks_max = started.asks_max;
            }
            Event::Forked(fork) => {
                let Ledger { answered, asks_max, .. } = *self;
                *self = Ledger { budget: fork.budget, answered, asks_max, ..Ledger::default() };
            }
            Event::Reserved { ask, share } => {
                self.reserved.insert(*ask, *share);
            }
            Event::Answered { ask, usage, .. } => {
                self.settle(*ask, usage);
                self.answered += 1;
            }
            Event::AnsweredLate { ask, usage } => self.settle(*ask, usage),
            Event::PersonAnswered { asks_max, .. } => self.asks_max = asks_max.or(self.asks_max),
            Event::Faulted { ask, usage, usage_unknown: true, .. }
            | Event::AskCut { ask, usage, usage_unknown: true, .. } => self.settle_unknown(*ask, usage),
            Event::Faulted { ask, usage, .. } | Event::AskCut { ask, usage, .. } => {
                // The service did not read a token, so the cost is known to be zero.
                let is_nothing = tokens_of_usage(usage) == 0 && usage.cost_usd.is_none();
                let cost_usd = if is_nothing { Some(0.0) } else { usage.cost_usd };
                self.settle(*ask, &Usage { cost_usd, ..*usage });
            }
            Event::Overspent { what, of, share, .. } => {
                self.overspent = Some(Excess { what: what.clone(), of: *of, share: *share });
            }
            Event::TimePassed { ms } => {
                self.spent.driven_ms = self.spent.driven_ms.saturating_add(*ms);
            }
            Event::Resumed(resumed) => {
                let RunResumed { budget, asks_max, .. } = resumed;
                self.asks_max = asks_max.or(self.asks_max);
                self.budget = self.budget.with(budget.unwrap_or_default());
                self.overspent = None;
                self.forgive_unseen();
            }
            _ => {}
        }
    }

    /// Takes back the reservations of asks whose usage nobody knows, if they alone used the budget up: a person who resumes
    /// the run has seen what happened.
    fn forgive_unseen(&mut self) {
        if !matches!(self.share(1), Err(Lack::Usd | Lack::Tokens)) {
            return;
        }
        let Share { usd_micro, tokens } = std::mem::take(&mut self.unseen);
        self.spent.usd_micro = self.spent.usd_micro.saturating_sub(usd_micro.unwrap_or(0));
        self.spent.tokens = self.spent.tokens.saturating_sub(tokens.unwrap_or(0));
    }

    /// A description of the limit that prevents the run from continuing with these limits; `None` if it can.
    pub fn lacks(&self, more: Budget) -> Option<String> {
        let mut ledger = Ledger { budget: self.budget.with(more), overspent: None, ..self.clone() };
        ledger.forgive_unseen();
        ledger.share(1).err().map(|lack| ledger.describe(lack))
    }

    /// The sum of all reservations.
    pub fn reserved(&self) -> SpentBudget {
        let sum = |of: fn(&Share) -> Option<u64>| {
            self.reserved.values().filter_map(of).fold(0_u64, u64::saturating_add)
        };
        SpentBudget {
            usd_micro: sum(|share| share.usd_micro),
            tokens: sum(|share| share.tokens),
            asks: self.reserved.len() as u64,
            driven_ms: 0,
        }
    }

    /// Settles an answered ask at its usage. An unknown cost is settled at the reservation.
    fn settle(&mut self, ask: CommandId, usage: &Usage) {
        let share = self.reserved.remove(&ask).unwrap_or_default();
        let usd = usage.cost_usd.and_then(convert_usd_to_micro).or(share.usd_micro).unwrap_or(0);
        self.charge(usd, tokens_of_usage(usage));
    }

    /// Settles an ask of unknown usage at its reservation, or at its observed usage if that is more.
    fn settle_unknown(&mut self, ask: CommandId, seen: &Usage) {
        let share = self.reserved.remove(&ask).unwrap_or_default();
        let (usd_seen, tokens_seen) =
            (seen.cost_usd.and_then(convert_usd_to_micro).unwrap_or(0), tokens_of_usage(seen));
        let usd = usd_seen.max(share.usd_micro.unwrap_or(0));
        let all = tokens_seen.max(share.tokens.unwrap_or(0));
        let more =
            |unseen: Option<u64>, n: u64| (n > 0).then(|| unseen.unwrap_or(0).saturating_add(n)).or(unseen);
        self.unseen.usd_micro = more(self.unseen.usd_micro, usd - usd_seen);
        self.unseen.tokens = more(self.unseen.tokens, all - tokens_seen);
        self.charge(usd, all);
    }

    fn charge(&mut self, usd_micro: u64, tokens: u64) {
        self.spent.usd_micro = self.spent.usd_micro.saturating_add(usd_micro);
        self.spent.tokens = self.spent.tokens.saturating_add(tokens);
        self.spent.asks = self.spent.asks.saturating_add(1);
    }

    /// A description of the usage beyond the reservation; `None` if the ask kept to it.
    pub(crate) fn beyond(&self, ask: CommandId, usage: &Usage) -> Option<String> {
        let share = self.reserved.get(&ask)?;
        if let (Some(most), Some(cost)) = (share.usd_micro, usage.cost_usd.and_then(convert_usd_to_micro))
            && cost > most
        {
            return Some(format!("{} of at most {}", format_dollars(cost), format_dollars(most)));
        }
        let used = tokens_of_usage(usage);
        share.tokens.filter(|most| used > *most).map(|most| format!("{used} of at most {most} tokens"))
    }

    /// The limit that an ask reached, and its reservation, or what it used if that is more. The ask must not be settled
    /// yet.
    pub(crate) fn reached(&self, ask: CommandId, usage: &Usage) -> (AskLimit, Share) {
        let share = self.reserved.get(&ask).copied().unwrap_or_default();
        let cost = usage.cost_usd.and_then(convert_usd_to_micro);
        let of = if share.usd_micro.zip(cost).is_some_and(|(most, cost)| cost >= most) {
            AskLimit::Usd
        } else if share.tokens.is_some_and(|most| tokens_of_usage(usage) >= most) {
            AskLimit::Tokens
        } else {
            AskLimit::Other
        };
        let most = |share: Option<u64>, used: Option<u64>| share.map(|share| share.max(used.unwrap_or(0)));
        let share = Share {
            usd_micro: most(share.usd_micro, cost),
            tokens: most(share.tokens, Some(tokens_of_usage(usage))),
        };
        (of, share)
    }

    /// A description of the exhausted limit.
    pub(crate) fn describe(&self, lack: Lack) -> String {
        let Ledger { budget, spent, .. } = self;
        match lack {
            Lack::Usd => {
                let unseen = self.unseen.usd_micro.unwrap_or(0);
                let all = format_dollars(budget.usd_micro.unwrap_or(0));
                let seen = format_dollars(spent.usd_micro.saturating_sub(unseen));
                format!(
                    "the budget of {all} is used up: {seen} were spent{}",
                    describe_unmeasured_usage(unseen, &format_dollars(unseen))
                )
            }
            Lack::Tokens => {
                let unseen = self.unseen.tokens.unwrap_or(0);
                let (all, seen) = (budget.tokens.unwrap_or(0), spent.tokens.saturating_sub(unseen));
                let lost = describe_unmeasured_usage(unseen, &unseen.to_string());
                format!("the budget of {all} tokens is used up: {seen} were spent{lost}")
            }
            Lack::Asks => {
                let all = budget.asks.unwrap_or(0);
                format!("the budget of {all} call{} is used up", if all == 1 { "" } else { "s" })
            }
            Lack::Time => {
                format!("the budget of {} is used up", format_minutes(budget.driven_ms.unwrap_or(0)))
            }
            Lack::Overspent => self.overspent.as_ref().map(|excess| excess.what.clone()).unwrap_or_default(),
        }
    }
}

/// A description of the unmeasured usage.
fn describe_unmeasured_usage(unseen: u64, amount: &str) -> String {
    match unseen {
        0 => String::new(),
        _ => format!(", plus {amount} reserved for calls of unknown usage"),
    }
}

/// The input and output tokens of a usage.
fn tokens_of_usage(usage: &Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// Dollars in millionths, rounded up; `None` for an invalid amount.
pub fn convert_usd_to_micro(usd: f64) -> Option<u64> {
    // Floats are inexact, so less than a billionth of a dollar is not rounded up.
    let micro = (usd * 1e6 - 1e-3).ceil();
    (-1.0..1e18).contains(&micro).then_some(micro.max(0.0) as u64)
}

/// Dollars with two digits, or four below a cent: `$2.50`, `$0.0012`.
fn format_dollars(micro: u64) -> String {
    let usd = micro as f64 / 1e6;
    if micro == 0 || micro >= 9_950 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// `90 min`, `0.5 min`; less than half a minute in seconds.
fn format_minutes(ms: u64) -> String {
    match ms {
        0..30_000 => format!("{} s", ms as f64 / 1_000.0),
        _ => format!("{} min", (ms as f64 / 600.0).round() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seq: u64) -> CommandId {
        CommandId::Step { seq }
    }

    fn used(tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens: tokens, output_tokens: 0, cost_usd, ..Usage::default() }
    }

    #[test]
    fn costs_are_rounded_up_and_invalid_amounts_are_rejected() {
        assert_eq!(convert_usd_to_micro(0.005), Some(5_000));
        assert_eq!(convert_usd_to_micro(0.1 + 0.2), Some(300_000));
        assert_eq!(convert_usd_to_micro(0.000_000_4), Some(1));
        assert_eq!(convert_usd_to_micro(0.0), Some(0));
        assert_eq!(
            (convert_usd_to_micro(f64::NAN), convert_usd_to_micro(-1.0), convert_usd_to_micro(f64::INFINITY)),
            (None, None, None)
        );
    }

    #[test]
    fn asks_that_start_together_share_the_rest() {
        let budget = Budget {
            usd_micro: Some(900),
            ask_usd_micro: Some(450),
            tokens: Some(1_000),
            ask_tokens: Some(300),
            ..Budget::default()
        };
        let mut ledger = Ledger { budget, ..Ledger::default() };
        for n in (1..=3).rev() {
            let share = ledger.share(n).unwrap();
            assert_eq!(share, Share { usd_micro: Some(300), tokens: Some(300) });
            ledger.reserved.insert(id(n), share);
        }
        assert_eq!(ledger.share(1), Err(Lack::Usd));
        ledger.settle(id(1), &used(10, Some(0.000_1)));
        assert_eq!(ledger.share(1), Ok(Share { usd_micro: Some(200), tokens: Some(300) }));
    }

    #[test]
    fn unknown_usage_is_settled_at_the_reservation() {
        let (ask_usd_micro, ask_tokens) = (Some(50), Some(25));
        let budget =
            Budget { usd_micro: Some(100), tokens: Some(50), ask_usd_micro, ask_tokens, ..Budget::default() };
        let mut ledger = Ledger { budget, ..Ledger::default() };
        let share = ledger.share(2).unwrap();
        ledger.reserved.insert(id(1), share);
        ledger.reserved.insert(id(2), ledger.share(1).unwrap());
        ledger.settle(id(1), &used(5, None));
        assert_eq!((ledger.spent.usd_micro, ledger.spent.tokens), (50, 5));
        ledger.settle_unknown(id(2), &used(40, None));
        assert_eq!((ledger.spent.usd_micro, ledger.spent.tokens, ledger.spent.asks), (100, 45, 2));
        assert_eq!(ledger.share(1), Err(Lack::Usd));
    }

    #[test]
    fn a_cap_alone_limits_each_ask_but_not_the_run() {
        let budget = Budget { ask_usd_micro: Some(7), ..Budget::default() };
        let ledger = Ledger {
            budget,
            spent: SpentBudget { usd_micro: 1_000, ..SpentBudget::default() },
            ..Ledger::default()
        };
        assert_eq!(ledger.share(1), Ok(Share { usd_micro: Some(7), tokens: None }));
    }
}
