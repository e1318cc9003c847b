//! Reads what a step of the definition needs: the task, the branch, the queue, and issues and pull requests on GitHub.

use std::time::Instant;

use cuegate_engine::{Completion, ReadCommand, ReadLimit, ReadResult, remove_hidden_markdown};
use cuegate_flow::model::{PullRequestFilter, ReadKind};
use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};

use super::{LocalExecutor, is_cut, wait_until};
use crate::{
    effect_plan::EffectPlan,
    error::Error,
    executor::CommandResult,
    github::{Github, GithubError, Issue, PullRequest},
    prompt_text::read_stored_text,
    worktree::branch_worktree::current_branch,
};

/// The mark in the text of a pull request that a run made, as TAKT writes it.
pub(super) const MANAGED: &str = "<!-- takt:managed -->";

/// Why something cannot be read.
struct ReadError {
    why: String,
    /// Whether it may succeed later.
    may_pass: bool,
    limit: Option<ReadLimit>,
}

impl From<GithubError> for ReadError {
    fn from(error: GithubError) -> ReadError {
        let may_pass = !matches!(error, GithubError::Refused { .. });
        let limit = match &error {
            GithubError::Limited { after_ms, .. } => Some(ReadLimit { after_ms: *after_ms }),
            _ => None,
        };
        ReadError { why: error.to_string(), may_pass, limit }
    }
}

impl LocalExecutor {
    /// Reads what a step needs, once its time has come.
    pub(super) async fn read(
        &self,
        command: ReadCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, Error> {
        if !wait_until(command.not_before_ms, &*self.setting.clock, &mut cut).await {
            return Ok(None);
        }
        let (journal, run) = (&*self.setting.journal, &self.setting.run);
        let task = command.task.as_ref().map(|task| read_stored_text(journal, run, task)).transpose()?;
        let (work, plan) = (self.setting.work.clone(), self.setting.effects.clone());
        let (id, own) = (command.id, self.setting.run.to_string());
        let (sender, receiver) = oneshot::channel();
        let began = Instant::now();
        // A thread of its own, so that stopping a run does not wait for the answer of a service.
        std::thread::spawn(move || {
            let branch = || current_branch(&work).map_err(|error| error.to_string());
            let reader = Reader { plan: &plan, task: task.as_deref(), branch: &branch, own: &own };
            let _ = sender.send(reader.read_all(&command));
        });
        let read = tokio::select! {
            read = receiver => read.map_err(|error| Error::Task(error.to_string()))?,
            () = is_cut(&mut cut) => return Ok(None),
        };
        let result = match read {
            Ok(values) => {
                let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                ReadResult::Done { values: Some(Value::Object(values)), duration_ms }
            }
            Err(ReadError { why, may_pass, limit }) => ReadResult::Failed { why, may_pass, limit },
        };
        Ok(Some(CommandResult { completion: Completion::Read { id, result }, texts: Vec::new() }))
    }
}

struct Reader<'r> {
    plan: &'r EffectPlan,
    task: Option<&'r str>,
    /// The branch of the working tree; `None` for a detached HEAD.
    branch: &'r dyn Fn() -> Result<Option<String>, String>,
    /// The run.
    own: &'r str,
}

impl Reader<'_> {
    /// All values by name. Lists of one step are read once, so that they agree.
    fn read_all(&self, command: &ReadCommand) -> Result<Map<String, Value>, ReadError> {
        let mut values = Map::new();
        let (mut pulls, mut issues) = (None, None);
        for read in &command.reads {
            let before = command.selected.get(&read.name).copied();
            let value = match &read.what {
                ReadKind::Task => match self.task.map(str::trim).filter(|task| !task.is_empty()) {
                    Some(task) => json!({ "exists": true, "body": task }),
                    None => json!({ "exists": false }),
                },
                ReadKind::Branch => match self.branch()? {
                    Some(name) => json!({ "exists": true, "name": name }),
                    None => json!({ "exists": false }),
                },
                ReadKind::PullRequest => self.read_own_pull_request()?,
                ReadKind::Issue => self.read_own_issue()?,
                ReadKind::Queue { without_own } => self.read_queue(*without_own)?,
                ReadKind::PullRequests(filter) => {
                    let all = read_once(&mut pulls, || Ok(self.github()?.open_pulls()?))?;
                    all.iter().filter(|pull| fits_filter(pull, filter)).map(describe_pull).collect()
                }
                ReadKind::NextPullRequest(filter) => {
                    let all = read_once(&mut pulls, || Ok(self.github()?.open_pulls()?))?;
                    let wanted: Vec<&PullRequest> =
                        all.iter().filter(|pull| fits_filter(pull, filter)).collect();
                    describe_selected(select_next(&wanted, before, |pull| pull.number).map(describe_pull))
                }
                ReadKind::Issues { except } => {
                    let all = read_once(&mut issues, || Ok(self.github()?.all_open_issues()?))?;
                    let left_out = except.as_ref().and_then(|name| values.get(&**name)?["number"].as_u64());
                    let others: Vec<&Issue> =
                        all.iter().filter(|issue| Some(issue.number) != left_out).collect();
                    let chosen = all.iter().find(|issue| Some(issue.number) == left_out);
                    others.iter().map(|issue| describe_listed_issue(issue, &others, chosen)).collect()
                }
                ReadKind::NextIssue => {
                    let all = read_once(&mut issues, || Ok(self.github()?.all_open_issues()?))?;
                    let wanted: Vec<&Issue> = all.iter().collect();
                    let next = select_next(&wanted, before, |issue| issue.number);
                    describe_selected(
                        next.map(|issue| json!({ "number": issue.number, "title": issue.title })),
                    )
                }
            };
            let value = if read.what == ReadKind::Task { value } else { remove_hidden_text(value) };
            values.insert(read.name.to_string(), value);
        }
        Ok(values)
    }

    fn branch(&self) -> Result<Option<String>, ReadError> {
        (self.branch)().map_err(|why| ReadError { why, may_pass: false, limit: None })
    }

    fn github(&self) -> Result<&Github, ReadError> {
        let missing = |why: String| ReadError { why, may_pass: false, limit: None };
        match &self.plan.github {
            Some(Ok(github)) => Ok(github),
            Some(Err(why)) => Err(missing(why.clone())),
            None => Err(missing("the run has no repository on GitHub".to_owned())),
        }
    }

    fn read_own_pull_request(&self) -> Result<Value, ReadError> {
        let Some(branch) = self.branch()? else { return Ok(json!({ "exists": false })) };
        let pulls = self.github()?.pulls_of(&branch)?;
        let Some(pull) = pulls.iter().find(|pull| pull.state == "open") else {
            return Ok(json!({ "exists": false, "branch": branch }));
        };
        Ok(json!({
            "exists": true, "number": pull.number, "url": pull.html_url, "branch": pull.head.name,
            "baseBranch": pull.base.name, "title": pull.title, "body": pull.body,
        }))
    }

    fn read_own_issue(&self) -> Result<Value, ReadError> {
        let Some(number) = self.plan.issue else { return Ok(json!({ "exists": false })) };
        let github = self.github()?;
        let issue = github.issue(number)?;
        let comments = github.comments(number)?;
        let comments: Vec<Value> = comments
            .iter()
            .map(|comment| json!({ "author": comment.author(), "body": comment.body }))
            .collect();
        Ok(json!({
            "exists": true, "number": issue.number, "title": issue.title, "body": issue.body,
            "labels": names_of_labels(&issue), "comments": comments,
        }))
    }

    fn read_queue(&self, without_own: bool) -> Result<Value, ReadError> {
        let Some(queue) = &self.plan.queue else {
            return Err(ReadError {
                why: "this run has no queue of tasks".to_owned(),
                may_pass: false,
                limit: None,
            });
        };
        let counts = queue.count(without_own.then_some(self.own)).map_err(|why| ReadError {
            why,
            may_pass: false,
            limit: None,
        })?;
        let total: u64 = counts.values().sum();
        let mut value = Map::from_iter([
            ("exists".to_owned(), json!(total > 0)),
            ("total_count".to_owned(), json!(total)),
        ]);
        for state in ["pending", "running", "completed", "failed", "exceeded", "pr_failed"] {
            value.insert(format!("{state}_count"), json!(counts.get(state).copied().unwrap_or(0)));
        }
        Ok(Value::Object(value))
    }
}

/// Removes what nobody sees from all texts of a value.
fn remove_hidden_text(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(remove_hidden_markdown(&text).0),
        Value::Array(values) => values.into_iter().map(remove_hidden_text).collect(),
        Value::Object(values) => {
            values.into_iter().map(|(key, value)| (key, remove_hidden_text(value))).collect()
        }
        other => other,
    }
}

/// Reads a list the first time that it is wanted, newest change first.
fn read_once<T: Changed>(
    known: &mut Option<Vec<T>>,
    read: impl FnOnce() -> Result<Vec<T>, ReadError>,
) -> Result<&Vec<T>, ReadError> {
    if known.is_none() {
        let mut all = read()?;
        all.sort_by(|left, right| right.changed().cmp(&left.changed()));
        *known = Some(all);
    }
    Ok(known.as_ref().expect("it was just read"))
}

/// Something that was changed at a time.
trait Changed {
    /// When, and its number.
    fn changed(&self) -> (&str, u64);
}

impl Changed for PullRequest {
    fn changed(&self) -> (&str, u64) {
        (&self.updated_at, self.number)
    }
}

impl Changed for Issue {
    fn changed(&self) -> (&str, u64) {
        (&self.updated_at, self.number)
    }
}

/// The one after the one that was selected before, so that each has its turn; the first if that is gone.
fn select_next<'a, T>(all: &[&'a T], before: Option<u64>, number: impl Fn(&T) -> u64) -> Option<&'a T> {
    let at = before.and_then(|before| all.iter().position(|one| number(one) == before));
    let next = at.map_or(0, |at| at + 1);
    all.get(next).or(all.first()).copied()
}

fn describe_selected(value: Option<Value>) -> Value {
    match value {
        Some(mut value) => {
            value["exists"] = json!(true);
            value
        }
        None => json!({ "exists": false }),
    }
}

fn describe_pull(pull: &PullRequest) -> Value {
    json!({
        "number": pull.number, "author": pull.author(), "base_branch": pull.base.name,
        "head_branch": pull.head.name, "managed_by_takt": is_managed(pull),
        "labels": pull.labels.iter().map(|label| &label.name).collect::<Vec<_>>(),
        "same_repository": pull.is_own(), "draft": pull.draft,
    })
}

fn is_managed(pull: &PullRequest) -> bool {
    pull.body.as_deref().is_some_and(|body| body.contains(MANAGED))
}

fn fits_filter(pull: &PullRequest, filter: &PullRequestFilter) -> bool {
    let PullRequestFilter { author, base, head, labels, is_managed: managed, is_own, is_draft } = filter;
    let has = |label: &cuegate_flow::Str| pull.labels.iter().any(|known| known.name == **label);
    author.as_ref().is_none_or(|author| pull.author() == &**author)
        && base.as_ref().is_none_or(|base| pull.base.name == **base)
        && head.as_ref().is_none_or(|head| matches_pattern(&pull.head.name, head))
        && labels.iter().all(has)
        && managed.is_none_or(|managed| is_managed(pull) == managed)
        && is_own.is_none_or(|own| pull.is_own() == own)
        && is_draft.is_none_or(|draft| pull.draft == draft)
}

/// Whether a text matches a pattern, in which `*` matches any text.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn names_of_labels(issue: &Issue) -> Vec<&str> {
    issue.labels.iter().map(|label| &*label.name).collect()
}

/// An issue of a list: without its texts, and with what it may have in common with others.
fn describe_listed_issue(issue: &Issue, all: &[&Issue], chosen: Option<&Issue>) -> Value {
    let related: Vec<(u64, usize)> = all
        .iter()
        .filter(|other| other.number != issue.number)
        .map(|other| (other.number, count_common_words(issue, other)))
        .filter(|(_, common)| *common > 0)
        .collect();
    let mut value = json!({
        "number": issue.number,
        "category_codes": names_of_labels(issue),
        "related_open_issue_numbers": related.iter().map(|(number, _)| number).collect::<Vec<_>>(),
        "related_open_issue_count": related.len(),
        "duplicate_candidate": !related.is_empty(),
        "max_related_issue_overlap_score": related.iter().map(|(_, common)| common).max().unwrap_or(&0),
    });
    if let Some(chosen) = chosen {
        let common = count_common_words(issue, chosen);
        value["selected_issue_overlap_score"] = json!(common);
        value["selected_issue_duplicate_candidate"] = json!(common > 0);
    }
    value
}

/// How many labels and longer words of their titles two issues share.
fn count_common_words(one: &Issue, other: &Issue) -> usize {
    let words = |issue: &Issue| -> std::collections::BTreeSet<String> {
        let title = issue.title.to_lowercase();
        let words = title.split(|char: char| !char.is_alphanumeric()).filter(|word| word.chars().count() > 2);
        words.map(str::to_owned).chain(issue.labels.iter().map(|label| format!("#{}", label.name))).collect()
    };
    words(one).intersection(&words(other)).count()
}

#[cfg(test)]
mod tests {
    use super::{matches_pattern, select_next};

    #[test]
    fn a_star_stands_for_any_text() {
        for (text, pattern, expected) in [
            ("takt/7", "takt/*", true),
            ("other/takt/7", "takt/*", false),
            ("main", "main", true),
            ("main2", "main", false),
            ("a-b-c", "a*c", true),
            ("a-b-c", "*b*", true),
            ("ab", "ab*b", false),
            ("", "*", true),
        ] {
            assert_eq!(matches_pattern(text, pattern), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn each_has_its_turn() {
        let all = [7u64, 3, 5];
        let all: Vec<&u64> = all.iter().collect();
        let next = |before| select_next(&all, before, |number| *number).copied();
        assert_eq!(
            [next(None), next(Some(7)), next(Some(5)), next(Some(9))],
            [Some(7), Some(3), Some(7), Some(7)]
        );
        assert_eq!(select_next::<u64>(&[], Some(1), |number| *number), None);
    }
}
