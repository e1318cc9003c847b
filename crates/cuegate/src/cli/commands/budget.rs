//! A budget of money, asked for before a run begins that nothing keeps from spending any amount.

use cuegate_flow::Certificate;

use super::question;
use crate::{
    Failure,
    begin::Wishes,
    cli::{args::Run, print},
    config::{Config, Usd},
    exit,
};

/// What somebody at the terminal allows, in millionths of a US dollar. Nobody is asked where money or tokens are bounded,
/// where whoever answers costs nothing, where it is settled that no budget is wanted, and where nobody is there.
pub(super) fn wanted(
    args: &Run,
    wishes: &Wishes,
    most: &Certificate,
    shown: impl FnOnce() -> String,
    config: &Config,
) -> Result<Option<u64>, Failure> {
    let bounded = most.usd_micro.is_some() || most.tokens.is_some();
    let settled = args.unlimited || config.budget.unlimited;
    if bounded || settled || !costs(&wishes.provider, config) || !print::is_interactive() {
        return Ok(None);
    }
    print::line("the most that this run can do:");
    for line in shown().lines() {
        print::line(&format!("  {line}"));
    }
    loop {
        let said = question::line("budget in US dollars (an empty line for none): ")?;
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
        match said.parse::<Usd>() {
            Ok(usd) => return Ok(Some(usd.micro)),
            Err(why) => print::line(&why),
        }
    }
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
