//! A budget, asked for before a run begins that nothing keeps from spending any amount.

use cuegate_engine::Budget;
use cuegate_flow::analysis::cost_bound::Certificate;

use super::prompt_user;
use crate::{
    Failure,
    cli::{args::Run, print},
    config::{Config, Count, Usd},
    exit,
    start_run::Wishes,
};

/// What somebody at the terminal allows: money where it is counted (`in_money`), else tokens. Nobody is asked where money
/// or tokens are bounded, where whoever answers costs nothing, where it is settled that no budget is wanted, and where
/// nobody is there.
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
    if bounded || settled || !costs(&wishes.provider, config) || !print::is_interactive() {
        return Ok(None);
    }
    print::line("the most that this run can do:");
    for line in shown().lines() {
        print::line(&format!("  {line}"));
    }
    let unit = if in_money { "US dollars" } else { "tokens" };
    loop {
        let said = prompt_user::line(&format!("budget in {unit} (an empty line for none): "))?;
        let Some(said) = said else {
            return Err(Failure {
                message: "nobody said a budget".to_owned(),
                hint: Some("nothing was started".to_owned()),
                code: exit::INTERRUPTED,
            });
        };
        if said.is_empty() {
            print::line(
                "without a budget; `--unlimited`, or `unlimited = true` below `[budget]`, settles it",
            );
            return Ok(None);
        }
        match limit(&said, in_money) {
            Ok(budget) => return Ok(Some(budget)),
            Err(why) => print::line(&why),
        }
    }
}

/// A budget of what somebody typed.
fn limit(said: &str, in_money: bool) -> Result<Budget, String> {
    Ok(match in_money {
        true => Budget { usd_micro: Some(said.parse::<Usd>()?.micro), ..Budget::default() },
        false => {
            let tokens = said.parse::<Count>().map_err(|why| format!("a number of tokens {why}"))?;
            Budget { tokens: Some(tokens.0), ..Budget::default() }
        }
    })
}

/// Whether asks of a provider can cost money: not those of a script, and not those of a service on this machine or in its
/// own network.
fn costs(provider: &str, config: &Config) -> bool {
    match provider {
        "scripted" => false,
        "openai" => !config.providers.openai.as_ref().is_some_and(|settings| settings.is_near()),
        _ => true,
    }
}
