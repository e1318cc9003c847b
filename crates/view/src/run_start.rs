//! The lines that `run` prints before its first step.

use crate::text::{clean_to_one_line, format_labelled_line};

/// The facts that a user needs before an agent starts to work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunStartFacts {
    /// The folder that agents work in.
    pub work: String,
    /// Whether that folder has uncommitted changes.
    pub dirty: bool,
    /// Whether the folder is in a git repository, so that changes are recorded and checked.
    pub git: bool,
    /// The branch of the git worktree made for the run; `None` when the run works in place.
    pub branch: Option<String>,
    /// The earlier run whose worktree it continues in.
    pub follows: Option<String>,
    /// The provider, with its version or script.
    pub provider: String,
    /// The model, when the definition or a flag names one.
    pub model: Option<String>,
    /// The provider's login, when it is known.
    pub login: Option<String>,
    /// The agents of steps with others than that, and what steps in for it.
    pub others: Vec<String>,
    /// The permissions of the steps.
    pub permission: String,
    /// The sandbox that enforces them, or that there is none.
    pub sandbox: String,
    /// Upper bounds on iterations and asks, and the budget.
    pub most: String,
    /// Which agent settings are loaded.
    pub settings: String,
    /// The commands that decide whether the work is done.
    pub verified_by: Option<String>,
    /// That no command verifies the work, when the definition edits files without one.
    pub unverified: Option<String>,
    /// What the run does to the issue and with its work.
    pub effects: Option<String>,
    /// Features of the definition that this version does not support.
    pub unsupported: Vec<String>,
    /// Features of the definition that this provider does not support.
    pub cannot: Vec<String>,
}

/// One line per fact.
pub fn render_run_start(facts: &RunStartFacts) -> Vec<String> {
    let mut lines = vec![
        format_fact_line("folder", &describe_start_folder(facts)),
        format_fact_line("agent", &describe_start_agent(facts)),
    ];
    lines.extend(facts.others.iter().map(|other| format_fact_line("", other)));
    lines.extend([
        format_fact_line("permission", &format!("{}; {}", facts.permission, facts.sandbox)),
        format_fact_line("at most", &facts.most),
        format_fact_line("settings", &facts.settings),
    ]);
    lines.extend(facts.verified_by.iter().map(|what| format_fact_line("verified by", what)));
    lines.extend(facts.effects.iter().map(|what| format_fact_line("effects", what)));
    lines.extend(facts.unverified.iter().map(|what| format_fact_line("note", what)));
    lines.extend(facts.unsupported.iter().map(|what| format_fact_line("unsupported", what)));
    lines.extend(facts.cannot.iter().map(|what| format_fact_line("note", what)));
    lines
}

/// A line of what holds for a run: a label in its column, and what it is.
pub fn format_fact_line(label: &str, text: &str) -> String {
    format_labelled_line(label, &clean_to_one_line(text))
}

fn describe_start_folder(facts: &RunStartFacts) -> String {
    match (&facts.branch, facts.dirty) {
        (Some(branch), _) if facts.follows.is_some() => {
            let first = facts.follows.as_deref().unwrap_or_default();
            format!("{}, the git worktree of run {first}, on branch {branch}", facts.work)
        }
        (Some(branch), dirty) => {
            let without = if dirty { "; your uncommitted changes are not in it" } else { "" };
            format!("{}, a new git worktree on branch {branch}{without}", facts.work)
        }
        (None, _) if !facts.git => {
            format!(
                "{}, in place, not a git repository: changes are neither recorded nor checked",
                facts.work
            )
        }
        (None, true) => format!("{}, in place, with uncommitted changes", facts.work),
        (None, false) => format!("{}, in place, no uncommitted changes", facts.work),
    }
}

fn describe_start_agent(facts: &RunStartFacts) -> String {
    let mut text = facts.provider.clone();
    match &facts.model {
        Some(model) => text.push_str(&format!(", model {model}")),
        None => text.push_str(", default model"),
    }
    if let Some(login) = &facts.login {
        text.push_str(&format!(", login: {login}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{RunStartFacts, render_run_start};

    #[test]
    fn one_line_per_fact() {
        let facts = RunStartFacts {
            work: "/home/me/project".into(),
            dirty: true,
            git: true,
            provider: "claude".into(),
            model: Some("sonnet".into()),
            login: Some("subscription".into()),
            permission: "acceptEdits".into(),
            sandbox: "a sandbox (bubblewrap)".into(),
            most: "20 iterations, 23 asks, $4.60".into(),
            settings: "the project's only".into(),
            unsupported: vec!["`quality_gates` of `review`".into()],
            cannot: vec!["tool list of `review`: this provider has none".into()],
            ..RunStartFacts::default()
        };
        insta::assert_snapshot!(render_run_start(&facts).join("\n"), @"
        folder      /home/me/project, in place, with uncommitted changes
        agent       claude, model sonnet, login: subscription
        permission  acceptEdits; a sandbox (bubblewrap)
        at most     20 iterations, 23 asks, $4.60
        settings    the project's only
        unsupported `quality_gates` of `review`
        note        tool list of `review`: this provider has none
        ");
    }

    #[test]
    fn a_worktree_names_its_branch() {
        let facts = RunStartFacts {
            work: "/tmp/wt".into(),
            branch: Some("cuegate/r1".into()),
            provider: "scripted".into(),
            permission: "plan".into(),
            sandbox: "no sandbox: commands have full access to this machine".into(),
            ..RunStartFacts::default()
        };
        insta::assert_snapshot!(render_run_start(&facts)[..3].join("\n"), @"
        folder      /tmp/wt, a new git worktree on branch cuegate/r1
        agent       scripted, default model
        permission  plan; no sandbox: commands have full access to this machine
        ");
    }
}
