//! `show`: a definition as the flow that will run.

use super::check::load_sound_definition;
use crate::agents::{AgentFlags, describe_plan, plan_without_machine};
use crate::cli::commands::diagnostics::{count_errors_and_warnings, plural_ending};
use crate::cli::commands::shared_args::{AgentArgs, DefinitionArgs};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::{Failure, config, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a definition as the flow that will run.
pub(in crate::cli::commands) fn show_definition(
    place: &ProjectPlace,
    args: &ShowArgs,
) -> Result<u8, Failure> {
    let (definition, flow) =
        load_sound_definition(place, &args.definition.path, &args.definition.set, args.definition.phases)?;
    let config = config::load_config(place.home.root())?;
    let AgentArgs { provider, model, roles } = &args.agents;
    let flags = AgentFlags { chain: provider.as_ref(), model: model.as_deref(), roles };
    let (usual, planned) = plan_without_machine(&flow, &flags, place.home.root(), &config)?;
    if args.json {
        let mut json = cuegate_view::show_json(&flow);
        json["agents"] = cuegate_view::json_of_agents(usual.as_ref(), &planned.plan);
        print::print_json(&json);
    } else {
        print::print_data(&cuegate_view::render_flow(&flow));
        let others = describe_plan(&flow, &usual.clone().unwrap_or_default(), &planned.plan, &|_| None);
        let usual = usual.map(|usual| format!("{usual}, unless another is named below"));
        let lines: Vec<String> = match others.is_empty() {
            true => Vec::new(),
            false => usual.into_iter().chain(others).collect(),
        };
        if !lines.is_empty() {
            print::print_data("agents:");
        }
        for line in lines {
            print::print_data(&format!("  {}", cuegate_view::clean_to_one_line(&line)));
        }
        let (_, warnings) = count_errors_and_warnings(&definition.diagnostics, false);
        if warnings > 0 {
            print::print_line(&format!(
                "{warnings} warning{}: see `cuegate check {}`",
                plural_ending(warnings),
                args.definition.path
            ));
        }
    }
    Ok(exit::DONE)
}
