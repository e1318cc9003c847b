//! `price`.

use crate::cli::commands::shared_args::{AgentArgs, DefinitionArgs};
use cuegate_engine::{AgentChoice, RecordedLoadOptions};
use cuegate_flow::{
    analysis::cost_bound::{Terms, price_any},
    model::Flow,
};

use cuegate_view::PlannedEffect;

use super::check;
use crate::agents::{AgentFlags, describe_plan, list_planned_calls, plan_without_machine};
use crate::cli::commands::shared_args::RunLimits;
use crate::cli::commands::{ProjectPlace, open_disk_files};
use crate::cli::commands::{diagnostics, read_options};
use crate::cli::{print, set_values};
use crate::config::Config;
use crate::definition::{CompiledDefinition, combine_variants, each_way, inspect_definition};
use crate::run::limits::{ModelChoice, cost_terms_of_flow};
use crate::{Failure, config, exit, providers};
use clap::Args;
use jiff::{Timestamp, civil::Date, tz::TimeZone};

#[derive(Debug, Args)]
pub(crate) struct PriceArgs {
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    /// The iteration limit [default: the definition's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// How often an unusable answer is requested again, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) repairs: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The models that a run asks, as the definition, the flags and the configuration name them; with their agents if there
/// are several.
fn collect_asked_models(flow: &Flow, asked: ModelChoice<'_>, config: &Config) -> Vec<String> {
    let usual = AgentChoice {
        agent: asked.provider.unwrap_or_default().to_owned(),
        model: asked.model.map(str::to_owned),
        effort: None,
    };
    let plan = asked.plan.cloned().unwrap_or_default();
    let mut names = Vec::new();
    for call in list_planned_calls(flow, &usual, &plan) {
        let agent = &call.choice.agent;
        let configured = asked.provider.and_then(|_| providers::own_model(agent, config));
        let default = configured.or(flow.default_model.as_deref()).unwrap_or("the agent's own");
        let of_call: Vec<&str> = match &call.choice.model {
            Some(model) => vec![model],
            None => call.ask.models().map(|model| model.map_or(default, |model| &**model)).collect(),
        };
        names.extend(of_call.into_iter().map(|model| match plan.is_usual() {
            true => model.to_owned(),
            false => format!("{agent}:{model}"),
        }));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// For how long a price is believed without a word, in days.
const PRICES_LAST_DAYS: i32 = 90;

/// The date of the oldest configured price of the `models` that may be asked, as far as their prices have one.
fn find_oldest_price(
    flow: &Flow,
    asked: ModelChoice<'_>,
    models: &[String],
    config: &Config,
) -> Option<Date> {
    let usual = AgentChoice {
        agent: asked.provider.unwrap_or_default().to_owned(),
        model: asked.model.map(str::to_owned),
        effort: None,
    };
    let plan = asked.plan.cloned().unwrap_or_default();
    let agents = list_planned_calls(flow, &usual, &plan).into_iter().map(|call| call.choice.agent);
    let mut agents: Vec<String> = agents.collect();
    agents.sort_unstable();
    agents.dedup();
    let prices = agents.iter().map(|agent| providers::prices_of(Some(agent), config));
    // With several agents a model is named `AGENT:MODEL`.
    let is_asked =
        |model: &String| models.iter().any(|name| name == model || name.ends_with(&format!(":{model}")));
    let asked = prices.flat_map(|prices| prices.0).filter(|(model, _)| is_asked(model));
    asked.filter_map(|(_, price)| price.as_of).min()
}

/// Prints upper bounds on what a run of a definition can do and cost.
pub(in crate::cli::commands) fn price_definition(
    place: &ProjectPlace,
    args: &PriceArgs,
) -> Result<u8, Failure> {
    let location = place.locate(&args.definition.path)?;
    let mut how =
        read_options::read_load_options(place, &args.definition.path, &location, args.definition.phases)?;
    how.iterations_max = args.max_iterations.or(how.iterations_max);
    let names = set_values::parse_set_names(&args.definition.set)?;
    let config = config::load_config(place.home.root())?;
    let budget = config.budget.budget().with(args.limits.budget());
    let files = open_disk_files(&location)?;
    let (base, file) = (&location.base, location.file.as_deref());
    let (alone, there) = each_way(&files, base, file, |interactive| {
        let mut definition = inspect_definition(
            &files,
            base,
            file,
            &names,
            &RecordedLoadOptions { interactive, ..how.clone() },
        );
        location.show_in(&mut definition.sources);
        definition
    });
    set_values::look_at(&alone, &args.definition.set, &names)?;
    let unsound = |definition: &CompiledDefinition| {
        diagnostics::print_diagnostics(&definition.diagnostics, &definition.sources, false);
        Err(Failure::usage(
            format!("`{}` has errors", args.definition.path),
            format!("fix the errors above, then run `cuegate check {}`", args.definition.path),
        ))
    };
    // Rules that ask a person exist only in interactive runs; the bound must hold for both variants.
    let is_sound = |definition: &CompiledDefinition| definition.flow.is_some();
    let ways = match there {
        Some(there) if is_sound(&alone) && is_sound(&there) => vec![alone, there],
        Some(there) => return unsound(&combine_variants(alone, there)),
        None if is_sound(&alone) => vec![alone],
        None => return unsound(&alone),
    };
    let Some(flow) = ways.iter().find_map(|way| way.flow.as_deref()) else { return unsound(&ways[0]) };
    let AgentArgs { provider, model, roles } = &args.agents;
    let flags = AgentFlags { chain: provider.as_ref(), model: model.as_deref(), roles };
    let (wanted, planned) = plan_without_machine(flow, &flags, place.home.root(), &config)?;
    let asked = ModelChoice {
        provider: wanted.as_ref().map(|usual| usual.agent.as_str()),
        model: wanted.as_ref().and_then(|usual| usual.model.as_deref()).or(args.agents.model.as_deref()),
        plan: Some(&planned.plan),
    };
    let flows: Vec<(&Flow, Terms)> = ways
        .iter()
        .filter_map(|way| way.flow.as_deref())
        .map(|flow| {
            (flow, cost_terms_of_flow(flow, asked, &budget, args.max_iterations, args.repairs, &config))
        })
        .collect();
    let flows: Vec<(&Flow, &Terms)> = flows.iter().map(|(flow, terms)| (*flow, terms)).collect();
    let Some((first, others)) = flows.split_first() else { return unsound(&ways[0]) };
    let (found, dearest) = price_any(*first, others);
    let sources = &ways[dearest].sources;
    let models = collect_asked_models(first.0, asked, &config);
    let dated = find_oldest_price(first.0, asked, &models, &config);
    if args.json {
        let mut json = cuegate_view::price_json(&found, sources);
        json["models"] = models.into();
        json["prices_as_of"] = dated.map(|date| date.to_string()).into();
        json["agents"] = cuegate_view::json_of_agents(wanted.as_ref(), &planned.plan);
        json["effects"] = check::effects_of_definition(&ways[0]).iter().map(PlannedEffect::to_json).collect();
        print::print_json(&json);
    } else {
        print::print_data(&format!("model       {}", models.join(", ")));
        if let Some(date) = dated {
            let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
            let days = (today - date).get_days();
            let old = match days > PRICES_LAST_DAYS {
                true => format!(", {days} days ago: look whether they still hold"),
                false => String::new(),
            };
            print::print_data(&format!("prices      of {date}{old}"));
        }
        let usual = wanted.unwrap_or_default();
        let lines = describe_plan(first.0, &usual, &planned.plan, &|_| None);
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { "agents" } else { "" };
            print::print_data(&format!("{label:11} {}", cuegate_view::clean_to_one_line(line)));
        }
        print::print_data(&cuegate_view::render_cost_bound(&found, sources));
        for effect in check::effects_of_definition(&ways[0]) {
            print::print_data(&format!("effect      {}", cuegate_view::clean_to_one_line(&effect.line())));
        }
    }
    // The process exits now; freeing a large definition first would waste time.
    std::mem::forget(ways);
    Ok(exit::DONE)
}
