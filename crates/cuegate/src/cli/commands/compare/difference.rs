//! What differs between two sides.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::model::sandbox::{SandboxPolicy, SandboxRule};

use super::{
    facts::{Bound, StepFacts, WorkflowFacts},
    revision::is_text,
};

/// The longest command that is told, in characters.
const COMMAND_MAX: usize = 120;

/// What became of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    New,
    Deleted,
    /// From this name.
    Renamed(String),
    Changed,
    Same,
}

/// What differs in one workflow, and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WorkflowDifference {
    pub(super) name: String,
    pub(super) fate: Fate,
    pub(super) changes: Vec<Change>,
    pub(super) before: Option<Bound>,
    pub(super) after: Option<Bound>,
    /// How many errors it has now.
    pub(super) errors: usize,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) text: String,
    /// Whether agents may do more than before.
    pub(super) widens: bool,
}

pub(super) fn plain_change(text: String) -> Change {
    Change { text, widens: false }
}

/// Compares the workflows of two sides, in order of their names.
pub(super) fn compare_workflows(
    before: &BTreeMap<String, WorkflowFacts>,
    after: &BTreeMap<String, WorkflowFacts>,
) -> Vec<WorkflowDifference> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let gone: Vec<&String> = before.keys().filter(|name| !after.contains_key(*name)).collect();
    let mut renamed: BTreeSet<&String> = BTreeSet::new();
    let mut found: Vec<WorkflowDifference> = Vec::new();
    for name in &names {
        let (old, new) = (before.get(*name), after.get(*name));
        let difference = match (old, new) {
            (Some(old), Some(new)) if old.errors + new.errors > 0 => {
                // What has errors is read in part: nothing of it can be compared.
                let (fate, mut changes) = match old == new {
                    true => (Fate::Same, Vec::new()),
                    false => (Fate::Changed, Vec::new()),
                };
                if old.errors > 0 && new.errors == 0 {
                    changes.push(plain_change("it had errors before".to_owned()));
                    changes.extend(list_new_rights(new, before));
                }
                difference_of(name, fate, changes, Some(old), Some(new))
            }
            (Some(old), Some(new)) => {
                let mut changes = list_changes(old, new);
                if changes.is_empty() && old.bound == new.bound {
                    changes = list_unexplained_files(old, new);
                }
                let is_same = changes.is_empty() && old.bound == new.bound && old.errors == new.errors;
                let fate = if is_same { Fate::Same } else { Fate::Changed };
                difference_of(name, fate, changes, Some(old), Some(new))
            }
            (None, Some(new)) => {
                let same = gone.iter().find(|gone| {
                    !renamed.contains(*gone)
                        && new.errors == 0
                        && before[**gone].without_names(gone, name) == new.without_names(gone, name)
                });
                match same {
                    Some(gone) => {
                        renamed.insert(gone);
                        difference_of(
                            name,
                            Fate::Renamed((*gone).clone()),
                            Vec::new(),
                            Some(&before[*gone]),
                            Some(new),
                        )
                    }
                    None => difference_of(name, Fate::New, list_new_rights(new, before), None, Some(new)),
                }
            }
            (Some(old), None) => difference_of(name, Fate::Deleted, Vec::new(), Some(old), None),
            (None, None) => continue,
        };
        found.push(difference);
    }
    found.retain(|one| one.fate != Fate::Deleted || !renamed.contains(&one.name));
    found
}

fn difference_of(
    name: &str,
    fate: Fate,
    changes: Vec<Change>,
    before: Option<&WorkflowFacts>,
    after: Option<&WorkflowFacts>,
) -> WorkflowDifference {
    WorkflowDifference {
        name: name.to_owned(),
        fate,
        changes,
        before: before.filter(|facts| facts.errors == 0).map(|facts| facts.bound),
        after: after.filter(|facts| facts.errors == 0).map(|facts| facts.bound),
        errors: after.map_or(0, |facts| facts.errors),
    }
}

/// Files that differ where nothing of the workflow does. A text is compared by what it means; of another file, such as a program,
/// nothing is known.
fn list_unexplained_files(before: &WorkflowFacts, after: &WorkflowFacts) -> Vec<Change> {
    let paths: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
    let differing = paths.into_iter().filter(|path| before.files.get(*path) != after.files.get(*path));
    let changes = differing.map(|path| Change {
        text: format!("`{path}` differs, and nothing else of the workflow does"),
        widens: !is_text(path),
    });
    changes.collect()
}

fn list_changes(before: &WorkflowFacts, after: &WorkflowFacts) -> Vec<Change> {
    let mut changes = Vec::new();
    let keys: BTreeSet<&String> = before.whole.keys().chain(after.whole.keys()).collect();
    for key in keys {
        if before.whole.get(key) != after.whole.get(key) {
            let text = match key.as_str() {
                "limits" => {
                    let limit = |facts: &WorkflowFacts| {
                        facts.whole.get(key).map(|limits| limits["iterations_max"].to_string())
                    };
                    format!(
                        "at most {} iterations, was {}",
                        limit(after).unwrap_or_default(),
                        limit(before).unwrap_or_default()
                    )
                }
                "verdict" => "when it is complete".to_owned(),
                "params" => "its parameters".to_owned(),
                "monitors" => "its loop monitors".to_owned(),
                "entry" => "its first step".to_owned(),
                "conduct" => "its settings of the run".to_owned(),
                other => format!("its {other}"),
            };
            changes.push(plain_change(text));
        }
    }
    if before.usual != after.usual {
        let agent = |facts: &WorkflowFacts| {
            facts.usual.as_ref().map_or_else(|| "the one that is found".to_owned(), ToString::to_string)
        };
        let name = |facts: &WorkflowFacts| facts.usual.as_ref().map(|choice| choice.agent.clone());
        changes.push(Change {
            text: format!("its usual agent: {}, was {}", agent(after), agent(before)),
            widens: name(before) != name(after),
        });
    }
    changes.extend(compare_sandboxes(&before.sandbox, &after.sandbox));
    changes.extend(compare_lists("its runs also", "its runs no longer", &before.effects, &after.effects));
    for (name, old) in &before.steps {
        match after.steps.get(name) {
            None => changes.push(plain_change(format!("`{name}` is gone"))),
            Some(new) => changes.extend(compare_steps(name, old, new)),
        }
    }
    for (name, new) in after.steps.iter().filter(|(name, _)| !before.steps.contains_key(*name)) {
        let permission =
            new.permission.map_or_else(String::new, |permission| format!(" ({})", permission.as_str()));
        changes.push(Change {
            text: format!("`{name}` is new{permission}"),
            // A step that may do what another one may already do widens nothing.
            widens: new.permission.is_some() && !before.steps.values().any(|old| !is_wider(old, new)),
        });
        changes.extend(list_new_commands(name, &StepFacts::default(), new));
        changes.extend(compare_servers(name, &StepFacts::default(), new));
    }
    changes
}

/// What a new workflow lets agents do that no workflow did before.
fn list_new_rights(new: &WorkflowFacts, before: &BTreeMap<String, WorkflowFacts>) -> Vec<Change> {
    let widest = |facts: &WorkflowFacts| facts.steps.values().filter_map(|step| step.permission).max();
    let mut changes = compare_sandboxes(&SandboxRule::Unstated, &new.sandbox);
    let known: BTreeSet<String> = before.values().flat_map(|facts| facts.effects.clone()).collect();
    changes.extend(
        new.effects
            .difference(&known)
            .map(|effect| Change { text: format!("its runs also {effect}"), widens: true }),
    );
    let known = StepFacts {
        commands: before
            .values()
            .flat_map(|facts| facts.steps.values())
            .flat_map(|step| step.commands.clone())
            .collect(),
        ..StepFacts::default()
    };
    changes.extend(new.steps.iter().flat_map(|(name, step)| list_new_commands(name, &known, step)));
    let known = StepFacts {
        servers: before
            .values()
            .flat_map(|facts| facts.steps.values())
            .flat_map(|step| step.servers.clone())
            .collect(),
        ..StepFacts::default()
    };
    let servers = new.steps.iter().flat_map(|(name, step)| compare_servers(name, &known, step));
    changes.extend(servers.filter(|change| change.widens));
    if let Some(permission) = widest(new).filter(|_| widest(new) > before.values().filter_map(widest).max()) {
        changes.push(Change { text: format!("its agents may {}", permission.as_str()), widens: true });
    }
    changes
}

fn compare_sandboxes(before: &SandboxRule, after: &SandboxRule) -> Vec<Change> {
    let (old, new) = match (before, after) {
        (SandboxRule::Required(old), SandboxRule::Required(new)) => (old, new),
        (old, new) if old == new => return Vec::new(),
        (_, SandboxRule::Required(_)) => return vec![plain_change("it requires a sandbox".to_owned())],
        (_, SandboxRule::Unstated) => {
            let widens = *before != SandboxRule::Off;
            return vec![Change { text: "it requires no sandbox".to_owned(), widens }];
        }
        (_, SandboxRule::Off) => {
            return vec![Change { text: "it runs without a sandbox".to_owned(), widens: true }];
        }
    };
    let hosts = |policy: &SandboxPolicy| policy.network.hosts().iter().map(ToString::to_string).collect();
    let paths = |policy: &SandboxPolicy| policy.writable.iter().map(ToString::to_string).collect();
    let mut changes =
        compare_lists("its agents may reach", "its agents no longer reach", &hosts(old), &hosts(new));
    changes.extend(compare_lists(
        "its agents may write",
        "its agents no longer write",
        &paths(old),
        &paths(new),
    ));
    changes
}

pub(super) fn compare_lists(
    more: &str,
    less: &str,
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
) -> Vec<Change> {
    let gained = after.difference(before).map(|word| Change { text: format!("{more} {word}"), widens: true });
    gained.chain(before.difference(after).map(|word| plain_change(format!("{less} {word}")))).collect()
}

fn compare_steps(name: &str, before: &StepFacts, after: &StepFacts) -> Vec<Change> {
    let mut changes = Vec::new();
    if let (Some(old), Some(new)) = (before.permission, after.permission)
        && old != new
    {
        let text = format!("`{name}` may {}, was {}", new.as_str(), old.as_str());
        changes.push(Change { text, widens: new > old });
    }
    if before.tools != after.tools {
        let list = |tools: &Option<Vec<String>>| {
            tools.as_ref().map_or_else(|| "all".to_owned(), |tools| tools.join(", "))
        };
        let text = format!("tools of `{name}`: {}, were {}", list(&after.tools), list(&before.tools));
        changes.push(Change { text, widens: has_more_tools(before, after) });
    }
    if before.agent != after.agent {
        let agent = |facts: &StepFacts| facts.agent.clone().unwrap_or_else(|| "the usual one".to_owned());
        let text = format!("the agent of `{name}`: {}, was {}", agent(after), agent(before));
        changes.push(Change { text, widens: true });
    }
    if before.assigned != after.assigned {
        let list = |facts: &StepFacts| match facts.assigned.is_empty() {
            true => "the usual one".to_owned(),
            false => facts.assigned.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        // Without an agent of its own a step has the usual one, which is another one.
        let names = |facts: &StepFacts| -> BTreeSet<String> {
            facts.assigned.iter().map(|choice| choice.agent.clone()).collect()
        };
        let is_other = names(after).is_empty() || !names(after).is_subset(&names(before));
        changes.push(Change {
            text: format!("agents of `{name}`: {}, was {}", list(after), list(before)),
            widens: is_other,
        });
    }
    changes.extend(compare_servers(name, before, after));
    changes.extend(list_new_commands(name, before, after));
    let gone = before.commands.difference(&after.commands);
    changes.extend(gone.map(|command| {
        plain_change(format!("`{name}` no longer runs: {}", cuegate_view::shorten_end(command, COMMAND_MAX)))
    }));
    let keys: BTreeSet<&String> = before.facts.keys().chain(after.facts.keys()).collect();
    for key in keys {
        if before.facts.get(key) == after.facts.get(key) {
            continue;
        }
        changes.push(plain_change(match key.as_str() {
            "edges" => format!("the way on from `{name}`"),
            "gate" => format!("how the answer of `{name}` is read"),
            other => format!("{} of `{name}`", other.replace('_', " ")),
        }));
    }
    changes
}

/// The MCP servers of a step. One whose command or address differs is another one.
fn compare_servers(name: &str, before: &StepFacts, after: &StepFacts) -> Vec<Change> {
    let shown = |server: &String| cuegate_view::shorten_end(server, COMMAND_MAX);
    let new = after.servers.difference(&before.servers);
    let new = new.map(|server| Change {
        text: format!("`{name}` has the tools of the server {}", shown(server)),
        widens: true,
    });
    let gone = before.servers.difference(&after.servers);
    let gone = gone.map(|server| {
        plain_change(format!("`{name}` no longer has the tools of the server {}", shown(server)))
    });
    new.chain(gone).collect()
}

/// The commands of a step that were not there before. They run whatever they say.
fn list_new_commands(name: &str, before: &StepFacts, after: &StepFacts) -> Vec<Change> {
    let new = after.commands.difference(&before.commands);
    new.map(|command| Change {
        text: format!("`{name}` runs: {}", cuegate_view::shorten_end(command, COMMAND_MAX)),
        widens: true,
    })
    .collect()
}

fn has_more_tools(before: &StepFacts, after: &StepFacts) -> bool {
    match (&before.tools, &after.tools) {
        (Some(_), None) => true,
        (Some(old), Some(new)) => new.iter().any(|tool| !old.contains(tool)),
        (None, _) => false,
    }
}

/// Whether an agent may do more in one step than in the other.
fn is_wider(before: &StepFacts, after: &StepFacts) -> bool {
    after.permission > before.permission || has_more_tools(before, after)
}
