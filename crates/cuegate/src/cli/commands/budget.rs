//! Prompts for a budget before a run whose cost has no limit.

use cuegate_engine::Budget;
use cuegate_flow::analysis::cost_bound::Certificate;

use super::prompt_user;
use crate::{
    Failure,
    cli::{args::Run, print},
    config::{Config, Count, Usd},
    exit, providers,
    start_run::Wishes,
};

/// Prompts for a budget: in US dollars if prices are known (`in_money`), else in tokens. Does not prompt if cost or
/// tokens are bounded, the provider is free, or `unlimited` is set.
///
/// # Errors
/// Without an interactive terminal, if nothing limits the run: nobody would notice what it spends.
pub(super) fn wanted(
    args: &Run,
    wishes: &Wishes,
    most: &Certificate,
    in_money: bool,
    shown: impl FnOnce() -> String,
    config: &Config,
) -> Result<Option<Budget>, Failure> {
    let bounded = most.usd_micro.is_some() || most.tokens.is_some();
    let settled = args.unlimited || config.budget.unlimited;
    if bounded || settled || !providers::costs(&wishes.provider, config) {
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
    print::line("upper bounds of this run:");
    for line in shown().lines() {
        print::line(&format!("  {line}"));
    }
    let unit = if in_money { "US dollars" } else { "tokens" };
    loop {
        let typed = prompt_user::line(&format!("budget in {unit} (empty line: no budget): "))?;
        let Some(typed) = typed else {
            return Err(Failure {
                message: "no budget was given".to_owned(),
                hint: Some("the run was not started".to_owned()),
                code: exit::INTERRUPTED,
            });
        };
        if typed.is_empty() {
            print::line("no budget; `--unlimited`, or `unlimited = true` in `[budget]`, skips this prompt");
            return Ok(None);
        }
        match limit(&typed, in_money) {
            Ok(budget) => return Ok(Some(budget)),
            Err(why) => print::line(&why),
        }
    }
}

/// Parses a typed budget.
fn limit(typed: &str, in_money: bool) -> Result<Budget, String> {
    Ok(match in_money {
        true => Budget { usd_micro: Some(typed.parse::<Usd>()?.micro), ..Budget::default() },
        false => {
            let tokens = typed.parse::<Count>().map_err(|why| format!("the token budget {why}"))?;
            Budget { tokens: Some(tokens.0), ..Budget::default() }
        }
    })
}
