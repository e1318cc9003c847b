//! Checks what works on this machine and how to fix the rest. It calls a remote service only to try a login, where that
//! costs nothing.

mod agent;
mod journal;
mod machine;
mod self_test;

use std::{panic::resume_unwind, path::Path, thread, time::Duration};

use cuegate_provider::{Capabilities, Inspection, Login, LoginRequest, driven::DRIVEN_NAMES};
use cuegate_runner::{StateDir, get_status};
use cuegate_view::clean_to_one_line;
use serde_json::{Value, json};

use crate::Failure;
use crate::config::Config;
use crate::github;
use crate::providers;
use crate::run::start_run::Program;

pub(crate) use agent::try_agent;
pub(crate) use journal::verify_run;
pub use self_test::{AttackOutcome, SelfTestResult, self_test};

/// How long a service may take to answer whether a login is valid.
const LOGIN_MAX: Duration = Duration::from_secs(5);

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    /// It works.
    Good,
    /// Runs work without it, with fewer features.
    Less,
    /// No run works without it, or none with this provider.
    Bad,
}

impl CheckStatus {
    /// The word in the output.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckStatus::Good => "ok",
            CheckStatus::Less => "less",
            CheckStatus::Bad => "no",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorFinding {
    /// What was checked.
    pub name: String,
    /// The result.
    pub standing: CheckStatus,
    /// What was found.
    pub found: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Whether it is a provider; one working provider is enough.
    pub provider: bool,
}

impl DoctorFinding {
    /// A configuration that cannot be read, and why.
    pub(crate) fn of_config(failure: Failure) -> DoctorFinding {
        let found = DoctorFinding::of_machine("config", CheckStatus::Bad, failure.message, None);
        DoctorFinding { hint: failure.hint, ..found }
    }

    fn of_machine(name: &str, standing: CheckStatus, found: String, hint: Option<&str>) -> DoctorFinding {
        let hint = hint.filter(|_| standing != CheckStatus::Good).map(str::to_owned);
        DoctorFinding { name: name.to_owned(), standing, found, hint, provider: false }
    }
}

/// Checks everything that runs of a project need.
pub fn check_requirements(home: &StateDir, program: &Program, config: &Config) -> Vec<DoctorFinding> {
    let root = home.root();
    let mut findings = vec![machine::check_git(root), machine::check_disk_space(root)];
    findings.extend(machine::check_journal(home));
    let mut agents = inspect_agents(program, config);
    // Four more lines that say "not found" would hide the ones that matter; `cuegate agents` lists these too.
    agents.retain(|agent| agent.problem.is_none() || is_expected(&agent.name, config));
    findings.extend(map_in_parallel(&agents, check_agent));
    findings.extend([machine::check_namespaces(), machine::check_sandbox()]);
    findings.extend(machine::propose_caches(config));
    findings.extend(check_github(root, config));
    findings
}

/// Whether the token of GitHub is accepted, in a project with a repository there. Without a token it is a fault only if the
/// settings name GitHub: runs may do without.
fn check_github(root: &Path, config: &Config) -> Option<DoctorFinding> {
    const NAME: &str = "github";
    let is_named = config.github.repository.is_some() || config.github.api.is_some();
    let connection = match github::find_connection(root, config) {
        Ok(connection) => connection,
        Err(_) if !is_named => return None,
        Err(why) => {
            let finding = DoctorFinding::of_machine(NAME, CheckStatus::Less, why.message, None);
            return Some(DoctorFinding { hint: why.hint, ..finding });
        }
    };
    let repository = &connection.target.repository;
    let (status, found) = match connection.client.login() {
        Ok(Some(login)) => (CheckStatus::Good, format!("the token of `{login}`, for {repository}")),
        Ok(None) => (CheckStatus::Good, format!("a token that belongs to no user, for {repository}")),
        Err(error) => {
            let status = if is_named { CheckStatus::Bad } else { CheckStatus::Less };
            (status, format!("the token for {repository} does not work: {error}"))
        }
    };
    let hint =
        "set `GITHUB_TOKEN` anew, or run `gh auth login`; docs/github.md lists the rights that it needs";
    Some(DoctorFinding::of_machine(NAME, status, clean_to_one_line(&found), Some(hint)))
}

/// What is known of an agent on this machine.
// No `Debug`: the login request holds a key.
#[derive(Clone)]
pub(crate) struct AgentFacts {
    pub(crate) name: String,
    pub(crate) inspection: Inspection,
    pub(crate) capabilities: Capabilities,
    /// Why it does not work, and what to do.
    pub(crate) problem: Option<(String, Option<String>)>,
    login_request: Option<LoginRequest>,
}

/// Looks at all agents, without trying their logins.
pub(crate) fn inspect_agents(program: &Program, config: &Config) -> Vec<AgentFacts> {
    let names: Vec<&str> = providers::list_provider_names(config).collect();
    map_in_parallel(&names, |name| inspect_agent(name, program, config))
}

fn inspect_agent(name: &str, program: &Program, config: &Config) -> AgentFacts {
    match providers::create_provider(name, None, program, config) {
        Ok(provider) => {
            let inspection = provider.inspect();
            let whats: Vec<&str> = inspection.problems.iter().map(|problem| problem.what.as_str()).collect();
            let hint = inspection.problems.first().map(|first| first.hint.clone());
            AgentFacts {
                name: name.to_owned(),
                capabilities: provider.capabilities(),
                problem: hint.map(|hint| (whats.join("; "), Some(hint))),
                login_request: provider.login_request(),
                inspection,
            }
        }
        Err(failure) => AgentFacts {
            name: name.to_owned(),
            inspection: Inspection::default(),
            capabilities: Capabilities::default(),
            problem: Some((failure.message, failure.hint)),
            login_request: None,
        },
    }
}

/// Whether a user would ask why the agent does not work here: not for a further agent without any settings.
fn is_expected(name: &str, config: &Config) -> bool {
    !DRIVEN_NAMES.contains(&name) || config.providers.driven(name).is_some()
}

/// The agents that work on this machine.
pub fn list_working_agents(program: &Program, config: &Config) -> Vec<String> {
    let agents = inspect_agents(program, config).into_iter().filter(|agent| agent.problem.is_none());
    agents.map(|agent| agent.name).collect()
}

/// Maps each item on a thread of its own, because each may take its full timeout.
fn map_in_parallel<I: Sync, O: Send>(items: &[I], map: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let map = &map;
    thread::scope(|scope| {
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || map(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Whether runs work here: nothing required is bad, and at least one provider works.
pub fn can_run(findings: &[DoctorFinding]) -> bool {
    let works = |finding: &&DoctorFinding| finding.standing != CheckStatus::Bad;
    findings.iter().filter(|finding| !finding.provider).all(|finding| works(&finding))
        && findings.iter().filter(|finding| finding.provider).any(|finding| works(&finding))
}

/// Tries the login of an agent, and describes its program, its login and its model.
fn check_agent(agent: &AgentFacts) -> DoctorFinding {
    let checked = |standing: CheckStatus, found: String, hint: Option<String>| DoctorFinding {
        name: agent.name.clone(),
        standing,
        found,
        hint,
        provider: true,
    };
    if let Some((what, hint)) = &agent.problem {
        return checked(CheckStatus::Bad, what.clone(), hint.clone());
    }
    let found = describe_inspection(&agent.inspection);
    let Some(request) = &agent.login_request else { return checked(CheckStatus::Good, found, None) };
    match get_status(&request.url, &request.headers, LOGIN_MAX) {
        Ok(status @ (401 | 403)) => {
            let hint = "set a valid key, or log in with the agent's own command".to_owned();
            checked(CheckStatus::Bad, format!("the login is rejected ({status}): {found}"), Some(hint))
        }
        Ok(200..=299) => checked(CheckStatus::Good, format!("{found}, login accepted"), None),
        // Other services than the vendor's may not have this list.
        Ok(_) => checked(CheckStatus::Good, found, None),
        Err(why) => checked(CheckStatus::Good, format!("{found}, login not tried: {why}"), None),
    }
}

/// Program, version, login and model.
pub(crate) fn describe_inspection(inspection: &Inspection) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(inspection.version.clone());
    parts.extend(inspection.at.clone());
    parts.push(match &inspection.login {
        Login::NotNeeded => "no login needed".to_owned(),
        login => format!("login: {}", describe_login(login)),
    });
    parts.extend(inspection.model.as_ref().map(|model| format!("model {model}")));
    parts.join(", ")
}

/// A login in words.
pub fn describe_login(login: &Login) -> String {
    match login {
        Login::NotNeeded => "none needed".to_owned(),
        Login::Key(name) => format!("the key in {name}"),
        Login::Subscription => "a subscription; costs are notional".to_owned(),
        Login::Cloud(name) => name.clone(),
        Login::Unknown => "unknown kind".to_owned(),
        Login::Missing => "missing".to_owned(),
    }
}

/// `cuegate/doctor/v1`.
pub fn to_json(findings: &[DoctorFinding]) -> Value {
    let rows: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.name,
                "provider": finding.provider,
                "standing": finding.standing.as_str(),
                "found": finding.found,
                "hint": finding.hint,
            })
        })
        .collect();
    json!({ "schema": "cuegate/doctor/v1", "ok": can_run(findings), "findings": rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(standing: CheckStatus, provider: bool) -> DoctorFinding {
        DoctorFinding { name: "x".into(), standing, found: String::new(), hint: None, provider }
    }

    #[test]
    fn one_working_provider_is_enough_but_nothing_else_may_be_bad() {
        use CheckStatus::{Bad, Good, Less};
        let git = finding(Good, false);
        assert!(can_run(&[git.clone(), finding(Bad, true), finding(Good, true), finding(Less, false)]));
        assert!(!can_run(&[git.clone(), finding(Bad, true)]));
        assert!(!can_run(&[finding(Bad, false), finding(Good, true)]));
    }
}
