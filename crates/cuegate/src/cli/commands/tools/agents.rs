//! `agents`: which agents there are, and what each can do here.

use clap::Args;
use cuegate_provider::{Capabilities, Login};
use cuegate_view::{clean_to_one_line, pad_right};
use serde_json::{Value, json};

use crate::cli::commands::ProjectPlace;
use crate::cli::print;
use crate::config;
use crate::doctor::{AgentFacts, describe_login, inspect_agents};
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
    let usual = config.run.provider.clone();
    if args.json {
        let working: Vec<&str> =
            agents.iter().filter(|one| one.problem.is_none()).map(|one| one.name.as_str()).collect();
        let details: Vec<Value> = agents.iter().map(json_of_agent).collect();
        print::print_json(&json!({
            "schema": "cuegate/agents/v1", "agents": working, "default": usual, "details": details,
        }));
        return Ok(exit::DONE);
    }
    let width = agents.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in &agents {
        let mark = if usual.as_deref() == Some(&one.name) { "*" } else { " " };
        let name = pad_right(&one.name, width);
        if let Some((problem, hint)) = &one.problem {
            print::print_data(&format!("{mark} {name}  does not work here: {}", clean_to_one_line(problem)));
            print::print_data(&format!("  {:width$}  → {}", "", clean_to_one_line(hint)));
            continue;
        }
        print::print_data(&format!("{mark} {name}  {}", clean_to_one_line(&describe_place(one))));
        print::print_data(&format!("  {:width$}  {}", "", describe_capabilities(&one.capabilities)));
    }
    print::print_line(match &usual {
        Some(_) => "* is used if `--provider` names none",
        None => "`--provider` names one, or `provider` in `[run]` of cuegate.toml",
    });
    Ok(exit::DONE)
}

/// Program, version, login and model.
fn describe_place(agent: &AgentFacts) -> String {
    let inspection = &agent.inspection;
    let login = match &inspection.login {
        Login::NotNeeded => "no login needed".to_owned(),
        login => format!("login: {}", describe_login(login)),
    };
    let model = inspection.model.as_ref().map(|model| format!("model {model}"));
    let parts = [inspection.version.clone(), inspection.at.clone(), Some(login), model];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What it can do, and what Cuegate does in its place.
fn describe_capabilities(can: &Capabilities) -> String {
    let words = [
        (can.edits, "edits files", "only answers"),
        (can.schema, "keeps to a schema", "gets the schema in the prompt"),
        (can.sessions, "continues conversations", "is told again what was said"),
        (can.fork, "forks them", ""),
        (can.tools, "limits its tools", "has its own tools"),
        (can.cost, "reports costs", "needs prices for a budget in dollars"),
    ];
    let words = words.map(|(has, yes, no)| if has { yes } else { no });
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn json_of_agent(agent: &AgentFacts) -> Value {
    let can = &agent.capabilities;
    json!({
        "name": agent.name, "works": agent.problem.is_none(), "at": agent.inspection.at,
        "version": agent.inspection.version, "login": describe_login(&agent.inspection.login),
        "model": agent.inspection.model,
        "problem": agent.problem.as_ref().map(|(problem, _)| problem),
        "hint": agent.problem.as_ref().map(|(_, hint)| hint),
        "can": {
            "edits": can.edits, "schema": can.schema, "sessions": can.sessions, "fork": can.fork,
            "tools": can.tools, "cost": can.cost,
        },
    })
}
