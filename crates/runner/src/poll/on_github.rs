//! Polls issues and projects on GitHub.

use std::path::Path;

use cuegate_engine::has_required_fields;
use cuegate_flow::model::{Field, PollState};
use serde_json::Value;

use super::{PollResult, Poller, abbreviate_text};
use crate::github::Github;

/// Polls an issue or pull request, or a project, by its number.
pub(super) struct GithubPoller {
    /// The repository, or why there is none.
    pub(super) github: Result<Github, String>,
    /// Whether it is a project.
    pub(super) project: bool,
    /// The issue of the run, whose status in the project is read.
    pub(super) issue: Option<u64>,
}

impl Poller for GithubPoller {
    fn look(&self, which: &str, wanted: &PollState, _: &Path) -> PollResult {
        let what = if self.project { "project" } else { "issue" };
        let Ok(number) = which.trim().trim_start_matches('#').parse::<u64>() else {
            return PollResult::failed(format!("`{which}` is not the number of a {what}"));
        };
        let github = match &self.github {
            Ok(github) => github,
            Err(why) => return PollResult::failed(why.clone()),
        };
        let shown = format!("{what} #{number}");
        let found = match self.project {
            true => github.project(number, self.issue),
            false => github.issue_value(number),
        };
        match found {
            Ok(found) => compare_issue_or_project(&shown, found, wanted),
            Err(error) => PollResult::failed(format!("{shown}: {error}")),
        }
    }
}

/// Compares an issue or project with the wanted state and describes it.
fn compare_issue_or_project(shown: &str, found: Value, wanted: &PollState) -> PollResult {
    let word = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
    match wanted {
        PollState::Exists => PollResult::is(true, format!("{shown} exists")),
        PollState::Absent => PollResult::is(false, format!("{shown} exists")),
        PollState::Contains(text) => {
            let holds = word("body").contains(&**text) || word("title").contains(&**text);
            let verb = if holds { "contains" } else { "does not contain" };
            PollResult::is(holds, format!("{shown} {verb} `{text}`"))
        }
        PollState::Equals(text) => {
            let merged = found.pointer("/pull_request/merged_at").is_some_and(|at| !at.is_null());
            let states =
                [word("state"), word("state_reason"), word("status"), if merged { "merged" } else { "" }];
            let holds =
                states.iter().any(|state| !state.is_empty() && state.eq_ignore_ascii_case(text.trim()));
            let status = Some(word("status")).filter(|status| !status.is_empty());
            PollResult::is(
                holds,
                format!("{shown} is `{}`", abbreviate_text(status.unwrap_or(word("state")))),
            )
        }
        PollState::Fields(wanted) => {
            let names: Vec<String> = wanted
                .iter()
                .map(|field| {
                    format!(
                        "`{}` = {}",
                        field.name,
                        abbreviate_text(&names_of(&found[&*field.name]).to_string())
                    )
                })
                .collect();
            let holds = wanted.iter().all(|field| field_holds(&found, field));
            PollResult::is(holds, format!("{shown} has {}", names.join(", ")))
        }
    }
}

/// Whether an issue has a value. Of labels and assignees the wanted ones have to be among the present ones.
fn field_holds(found: &Value, field: &Field) -> bool {
    let (Value::Array(is), Some(wanted)) = (names_of(&found[&*field.name]), &field.value) else {
        return has_required_fields(found, std::slice::from_ref(field));
    };
    match wanted {
        Value::Array(wanted) => wanted.iter().all(|name| is.contains(name)),
        one => is.contains(one),
    }
}

/// A list of labels or users as the list of their names; other values as they are.
fn names_of(value: &Value) -> Value {
    let Value::Array(entries) = value else { return value.clone() };
    let name =
        |entry: &Value| ["name", "login"].iter().find_map(|key| entry.get(key)).unwrap_or(entry).clone();
    Value::Array(entries.iter().map(name).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_issue_is_compared_with_the_wanted_state() {
        let issue = json!({
            "number": 7, "title": "Broken", "state": "open", "labels": [{"name": "done"}, {"name": "bug"}],
        });
        let fields = |value: Value| {
            let fields = value.as_object().cloned().unwrap_or_default().into_iter();
            PollState::Fields(
                fields.map(|(name, value)| Field { name: name.into(), value: Some(value) }).collect(),
            )
        };
        for (wanted, holds) in [
            (PollState::Equals("open".into()), true),
            (PollState::Equals("closed".into()), false),
            (fields(json!({"state": "open"})), true),
            (fields(json!({"labels": ["done"]})), true),
            (fields(json!({"labels": "done", "state": "closed"})), false),
            (fields(json!({"labels": ["done", "shipped"]})), false),
            (fields(json!({"milestone": null})), false),
        ] {
            assert_eq!(
                compare_issue_or_project("issue #7", issue.clone(), &wanted).holds,
                Ok(holds),
                "{wanted:?}"
            );
        }
        let seen = compare_issue_or_project("issue #7", issue, &fields(json!({"labels": ["done"]})));
        assert_eq!(seen.description, "issue #7 has `labels` = [\"done\",\"bug\"]");
        let project = json!({"state": "open", "status": "Done"});
        assert_eq!(
            compare_issue_or_project("project #1", project, &PollState::Equals("done".into())).holds,
            Ok(true)
        );
    }
}
