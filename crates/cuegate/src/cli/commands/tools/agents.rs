//! `agents`: which agents there are, and what each can do here.

use clap::Args;
use cuegate_provider::Capabilities;
use cuegate_view::{clean_to_one_line, pad_right};
use serde_json::{Value, json};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::config::{self, Config};
use crate::doctor::{AgentFacts, describe_inspection, describe_login, inspect_agents};
use crate::run::start_run::Program;
use crate::{Failure, exit};

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(in crate::cli::commands) fn list_agents(place: &ProjectPlace, args: &AgentsArgs) -> Result<u8, Failure> {
    let config = config::load_config(place.home.root())?;
    let agents = inspect_agents(&Program::current()?, &config);
    let usual = default_agent(&agents, &config);
    let usual = usual.as_deref();
    if args.json {
        print::print_json(&json_of_agents(&agents, usual));
        return Ok(exit::DONE);
    }
    let width = agents.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in &agents {
        let mark = if usual == Some(one.name.as_str()) { "*" } else { " " };
        let name = pad_right(&one.name, width);
        if let Some((problem, hint)) = &one.problem {
            print::print_data(&format!("{mark} {name}  does not work here: {}", clean_to_one_line(problem)));
            if let Some(hint) = hint {
                print::print_data(&format!("  {:width$}  → {}", "", clean_to_one_line(hint)));
            }
            continue;
        }
        let facts = describe_inspection(&one.inspection);
        print::print_data(&format!("{mark} {name}  {}", clean_to_one_line(&facts)));
        print::print_data(&format!("  {:width$}  {}", "", describe_capabilities(&one.capabilities)));
    }
    print::print_line(match usual {
        Some(_) => "* is used if `--provider` names none",
        None => "`--provider` names one, or `provider` in `[run]` of cuegate.toml",
    });
    Ok(exit::DONE)
}

/// `cuegate/agents/v1`.
pub(in crate::cli::commands) fn read_agents_json(program: &Program, config: &Config) -> Value {
    let agents = inspect_agents(program, config);
    let mut object = json_of_agents(&agents, default_agent(&agents, config).as_deref());
    let budget = &config.budget;
    object["budget"] = json!({
        "usd": budget.usd.map(|usd| usd.micro as f64 / 1e6), "tokens": budget.tokens.map(|count| count.0),
        "calls": budget.calls.map(|count| count.0), "minutes": budget.minutes.map(|minutes| minutes.ms as f64 / 60_000.0),
    });
    object["worktree"] = json!(config.worktree.root.is_some() || !config.worktree.setup.0.is_empty());
    object
}

/// The agent of runs that name none: the configured one, or the only one that works here.
fn default_agent(agents: &[AgentFacts], config: &Config) -> Option<String> {
    let mut working = agents.iter().filter(|one| one.problem.is_none()).map(|one| &one.name);
    let only = working.next().filter(|_| working.next().is_none());
    let configured = config.run.provider.as_ref().and_then(|chain| chain.0.first());
    configured.map(|choice| choice.agent.clone()).or_else(|| only.cloned())
}

/// What it can do, and what Cuegate does in its place.
fn describe_capabilities(can: &Capabilities) -> String {
    let words = [
        (can.edits, "edits files", "only answers"),
        (can.schema, "keeps to a schema", "gets the schema in the prompt"),
        (can.sessions, "continues conversations", "gets earlier answers in the prompt"),
        (can.fork, "forks them", ""),
        (can.tools, "limits its tools", "has its own tools"),
        (can.cost, "reports costs", "needs prices for a budget in dollars"),
    ];
    let words = words.map(|(has, yes, no)| if has { yes } else { no });
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn json_of_agents(agents: &[AgentFacts], usual: Option<&str>) -> Value {
    let working = agents.iter().filter(|one| one.problem.is_none()).map(|one| &one.name);
    json!({
        "schema": "cuegate/agents/v1", "agents": working.collect::<Vec<_>>(), "default": usual,
        "details": agents.iter().map(json_of_agent).collect::<Vec<_>>(),
    })
}

fn json_of_agent(agent: &AgentFacts) -> Value {
    let can = &agent.capabilities;
    json!({
        "name": agent.name, "works": agent.problem.is_none(), "at": agent.inspection.at,
        "version": agent.inspection.version, "login": describe_login(&agent.inspection.login),
        "model": agent.inspection.model,
        "problem": agent.problem.as_ref().map(|(problem, _)| problem),
        "hint": agent.problem.as_ref().and_then(|(_, hint)| hint.as_ref()),
        "can": {
            "edits": can.edits, "schema": can.schema, "sessions": can.sessions, "fork": can.fork,
            "tools": can.tools, "cost": can.cost,
        },
    })
}
