//! `prompt`: what an agent would be sent.

use cuegate_flow::diagnostics::find_nearest_name;
use cuegate_flow::model::Act;
use cuegate_view::{KnownValues, prompt_preview};
use serde_json::json;

use super::check;
use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::config::PhasesChoice;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// An agent folder, a registry file, a workflow file, or a name
    pub(crate) path: String,
    /// The step [default: the first]
    pub(crate) step: Option<String>,
    /// The task
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// Set a parameter or a variable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many calls a step of a TAKT workflow takes [default: `phases` in `[takt]` of cuegate.toml, else fused]
    #[arg(long, value_enum)]
    pub(crate) phases: Option<PhasesChoice>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn preview_prompt(
    place: &ProjectPlace,
    args: &PromptArgs,
) -> Result<u8, Failure> {
    let (_, flow) = check::load_sound_definition(place, &args.path, &args.set, args.phases)?;
    let asked = || flow.steps.iter().filter(|step| matches!(step.act, Act::Ask(_)));
    let found = match &args.step {
        Some(name) => asked().find(|step| *step.name == **name),
        None => asked().next(),
    };
    let Some(step) = found else {
        let name = args.step.as_deref().unwrap_or_default();
        let all: Vec<&str> = asked().map(|step| &*step.name).collect();
        let hint = match find_nearest_name(name, all.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the steps that call an agent are {}", all.join(", ")),
        };
        return Err(Failure::usage(
            format!("`{}` has no step `{name}` that calls an agent", args.path),
            hint,
        ));
    };
    let defaults =
        flow.params.iter().filter_map(|param| Some((param.name.to_string(), param.default.clone()?)));
    let given = args.set.iter().filter_map(|pair| pair.split_once('='));
    let params = defaults
        .map(|(name, value)| (name, value.to_string()))
        .chain(given.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let known = KnownValues { task: args.task.clone(), params };
    let (system, text) = prompt_preview(&flow, step, &known).unwrap_or_default();
    if args.json {
        print::print_json(
            &json!({"schema": "cuegate/prompt/v1", "step": *step.name, "system": system, "prompt": text}),
        );
        return Ok(exit::DONE);
    }
    print::print_line(&format!("{}: ⟨…⟩ is a value that a run provides", step.name));
    if let Some(system) = system {
        print::print_line("--- system prompt");
        print::print_exact(&system);
        print::print_line("--- prompt");
    }
    print::print_exact(&text);
    Ok(exit::DONE)
}
