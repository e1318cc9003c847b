//! Prompts for a budget before a run whose cost has no limit.

use cuegate_engine::Budget;
use cuegate_flow::analysis::cost_bound::Certificate;
use cuegate_view::plural;

use super::prompt_user;
use crate::cli::commands::start::run_args::RunArgs;
use crate::cli::print;
use crate::config::{Config, PositiveCount, Usd};
use crate::run::start_run::RunRequest;
use crate::run::typical_cost::{KnownCosts, describe_calls};
use crate::{Failure, exit};

/// What is proposed if no earlier run tells what is usual.
const USD_PROPOSED: u64 = 5;
const TOKENS_PROPOSED: u64 = 2_000_000;

/// What runs of the definition usually cost.
pub(in crate::cli::commands) struct UsualCost<'f> {
    /// The name of the definition.
    pub(in crate::cli::commands) flow: &'f str,
    /// What its last runs cost.
    pub(in crate::cli::commands) known: Option<KnownCosts>,
    /// How many calls it usually takes.
    pub(in crate::cli::commands) calls: Option<(u64, u64)>,
}

/// Prompts for a budget: in US dollars if prices are known (`in_money`), else in tokens. Does not prompt if cost or
/// tokens are bounded, the provider is free, or `unlimited` is set.
///
/// # Errors
/// Without an interactive terminal, if nothing limits the run: nobody would notice what it spends.
pub(in crate::cli::commands) fn prompt_for_budget(
    args: &RunArgs,
    wishes: &RunRequest,
    most: &Certificate,
    in_money: bool,
    usual: &UsualCost<'_>,
    config: &Config,
) -> Result<Option<Budget>, Failure> {
    let bounded = most.usd_micro.is_some() || most.tokens.is_some();
    let settled = args.unlimited || config.budget.unlimited;
    if bounded || settled || !wishes.may_cost_money(config) {
        return Ok(None);
    }
    if !print::is_interactive() {
        let Budget { usd_micro, tokens, asks, driven_ms, .. } = wishes.budget;
        // A limit of each call limits no run.
        if [usd_micro, tokens, asks, driven_ms].iter().any(Option::is_some) {
            return Ok(None);
        }
        let flag = if in_money { "--budget-usd 5" } else { "--budget-tokens 2000000" };
        return Err(Failure::usage(
            "nothing limits what this unattended run may spend",
            format!(
                "add a limit, such as `{flag}` or `--budget-minutes 60`; or set one in `[budget]` of cuegate.toml; \
                 or run with `--unlimited`"
            ),
        ));
    }
    if let Some(known) = usual.known.filter(|_| in_money) {
        print::print_line(&known.describe(usual.flow));
    }
    let calls = usual.calls.map(|calls| format!(", {}", describe_calls(calls))).unwrap_or_default();
    let (what, proposed) = match in_money {
        true => ("Spending limit in dollars", usual.known.map_or(USD_PROPOSED, |known| known.proposed_usd())),
        false => ("Limit of tokens", TOKENS_PROPOSED),
    };
    let question = format!("at most {}{calls}. {what} [{proposed}]: ", plural(most.asks, "call"));
    loop {
        let typed = prompt_user::read_terminal_line(&question)?;
        let Some(typed) = typed else {
            return Err(Failure {
                message: "no budget was given".to_owned(),
                hint: Some("the run was not started".to_owned()),
                code: exit::INTERRUPTED,
            });
        };
        if typed == "none" {
            print::print_line(
                "no limit; `--unlimited`, or `unlimited = true` in `[budget]`, skips this question",
            );
            return Ok(None);
        }
        let typed = if typed.is_empty() { proposed.to_string() } else { typed };
        match parse_budget(&typed, in_money) {
            Ok(budget) => return Ok(Some(budget)),
            Err(why) => print::print_line(&format!("{why}; `none` sets no limit")),
        }
    }
}

/// Parses a typed budget.
fn parse_budget(typed: &str, in_money: bool) -> Result<Budget, String> {
    Ok(match in_money {
        true => Budget { usd_micro: Some(typed.parse::<Usd>()?.micro), ..Budget::default() },
        false => {
            let tokens = typed.parse::<PositiveCount>().map_err(|why| format!("the token budget {why}"))?;
            Budget { tokens: Some(tokens.0), ..Budget::default() }
        }
    })
}
