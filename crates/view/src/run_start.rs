//! What `run` says before it begins.

use crate::text::{clean, labelled};

/// What a person has to know before an agent starts to work for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beginning {
    /// The folder that agents work in.
    pub work: String,
    /// Whether it holds changes that are not committed.
    pub dirty: bool,
    /// Whether git tells what changes there.
    pub git: bool,
    /// The branch of a worktree made for the run; `None` when it works in place.
    pub branch: Option<String>,
    /// Who is asked.
    pub provider: String,
    /// The model, when one is named.
    pub model: Option<String>,
    /// How the provider is logged in, when that is known.
    pub login: Option<String>,
    /// What agents may do at most.
    pub permission: String,
    /// What holds them to it.
    pub sandbox: String,
    /// The most that the run can do and cost.
    pub most: String,
    /// Whose agent settings are loaded.
    pub settings: String,
    /// What the definition asks for and this version does not do.
    pub unsupported: Vec<String>,
    /// What the definition asks for and this provider cannot do.
    pub cannot: Vec<String>,
}

/// The lines, one a fact.
pub fn beginning(facts: &Beginning) -> Vec<String> {
    let mut lines = vec![
        line("works in", &place(facts)),
        line("asks", &agent(facts)),
        line("may", &format!("{}, held by {}", facts.permission, facts.sandbox)),
        line("at most", &facts.most),
        line("settings", &facts.settings),
    ];
    lines.extend(facts.unsupported.iter().map(|what| line("not yet", what)));
    lines.extend(facts.cannot.iter().map(|what| line("note", what)));
    lines
}

fn line(label: &str, text: &str) -> String {
    labelled(label, &clean(text))
}

fn place(facts: &Beginning) -> String {
    match (&facts.branch, facts.dirty) {
        (Some(branch), _) => format!("{}, a worktree of its own on branch {branch}", facts.work),
        (None, _) if !facts.git => {
            format!("{}, in place, outside of git: nobody sees what changes, nor whether it may", facts.work)
        }
        (None, true) => format!("{}, in place, beside uncommitted changes", facts.work),
        (None, false) => format!("{}, in place, clean", facts.work),
    }
}

fn agent(facts: &Beginning) -> String {
    let mut text = facts.provider.clone();
    match &facts.model {
        Some(model) => text.push_str(&format!(", model {model}")),
        None => text.push_str(", its default model"),
    }
    if let Some(login) = &facts.login {
        text.push_str(&format!(", login: {login}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Beginning, beginning};

    #[test]
    fn every_fact_has_a_line() {
        let facts = Beginning {
            work: "/home/me/project".into(),
            dirty: true,
            git: true,
            provider: "claude".into(),
            model: Some("sonnet".into()),
            login: Some("subscription".into()),
            permission: "acceptEdits".into(),
            sandbox: "bubblewrap".into(),
            most: "20 iterations, 23 asks, $4.60".into(),
            settings: "the project's only".into(),
            unsupported: vec!["tool list of `review`: this provider has none".into()],
            ..Beginning::default()
        };
        insta::assert_snapshot!(beginning(&facts).join("\n"), @"
        works in    /home/me/project, in place, beside uncommitted changes
        asks        claude, model sonnet, login: subscription
        may         acceptEdits, held by bubblewrap
        at most     20 iterations, 23 asks, $4.60
        settings    the project's only
        not yet     tool list of `review`: this provider has none
        ");
    }

    #[test]
    fn a_worktree_names_its_branch() {
        let facts = Beginning {
            work: "/tmp/wt".into(),
            branch: Some("cuegate/r1".into()),
            provider: "scripted".into(),
            permission: "plan".into(),
            sandbox: "nothing".into(),
            ..Beginning::default()
        };
        insta::assert_snapshot!(beginning(&facts)[..3].join("\n"), @"
        works in    /tmp/wt, a worktree of its own on branch cuegate/r1
        asks        scripted, its default model
        may         plan, held by nothing
        ");
    }
}
