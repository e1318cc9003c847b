//! Performs the effects of a step of the definition. Each try looks first whether it was done.

use std::{collections::BTreeMap, path::Path};

use cuegate_engine::{Delay, Effect, EffectResult, StepEffectKind};
use cuegate_journal::RunId;
use serde_json::{Value, json};

use crate::{
    effect_plan::EffectPlan,
    error::Error,
    github::{
        Fence, Github, PullRequest,
        effects::{RunComment, create_marked_issue, effect_result_of_error},
    },
    task_queue::NewTask,
    worktree::remote_branches::{
        ConflictedFile, RemoteBranches, RemoteMerge, ResolvedFile, create_on_remote, merge_on_remote,
    },
};

/// What an effect of a step needs.
pub(super) struct StepEffectContext<'c> {
    pub(super) run: &'c RunId,
    pub(super) effect: &'c Effect,
    pub(super) kind: StepEffectKind,
    /// Its values by name.
    pub(super) values: &'c BTreeMap<String, String>,
    pub(super) plan: &'c EffectPlan,
    /// The project.
    pub(super) repo: &'c Path,
    /// The file that notes that a request is sent.
    pub(super) sent: &'c Path,
    pub(super) fence: &'c Fence,
}

impl StepEffectContext<'_> {
    /// Does it.
    ///
    /// # Errors
    /// When git cannot be started.
    pub(super) fn perform(&self) -> Result<EffectResult, Error> {
        if self.kind == StepEffectKind::EnqueueTask {
            return self.enqueue();
        }
        let github = match super::effects::github_of(self.plan) {
            Ok(github) => github,
            Err(result) => return Ok(result),
        };
        let Some(number) = self.number("pr") else {
            let said = format!("`{}` is no number of a pull request", self.value("pr"));
            return Ok(EffectResult::Failed { said });
        };
        Ok(match self.kind {
            StepEffectKind::CommentPullRequest => self.comment(github, number),
            StepEffectKind::ClosePullRequest => close_pull_request(github, number),
            StepEffectKind::MergePullRequest => merge_pull_request(github, number),
            StepEffectKind::SyncPullRequest => self.sync(github, number)?,
            StepEffectKind::EnqueueTask => unreachable!("it needs no pull request"),
        })
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |value| value.trim())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name).parse().ok().filter(|number| *number > 0)
    }

    /// The key of the effect, which no other one has.
    fn key(&self) -> String {
        format!("{}/{}", self.run, self.effect.id)
    }

    fn comment(&self, github: &Github, number: u64) -> EffectResult {
        let text = self.value("body");
        if text.is_empty() {
            return EffectResult::Failed { said: "the comment is empty".to_owned() };
        }
        let (key, texts, looks) = (self.key(), [text.to_owned()], self.effect.looks);
        let comment = RunComment {
            run: &key,
            issue: number,
            texts: &texts,
            url: None,
            unknown: false,
            looks,
            sent: self.sent,
        };
        comment.write(github)
    }

    /// Merges the base of a pull request into its branch.
    fn sync(&self, github: &Github, number: u64) -> Result<EffectResult, Error> {
        let pull = match github.pull(number) {
            Ok(pull) => pull,
            Err(error) => return Ok(effect_result_of_error(&error)),
        };
        if let Some(why) = find_obstacle(&pull) {
            return Ok(EffectResult::Failed { said: why });
        }
        (self.fence)().map_err(Error::Task)?;
        let branches =
            RemoteBranches { remote: &self.plan.remote, into: &pull.head.name, from: &pull.base.name };
        let message =
            format!("Merge {} into {}\n\nRun {} of cuegate.", pull.base.name, pull.head.name, self.run);
        let resolved = match self.resolved_files() {
            Ok(files) => files,
            Err(said) => return Ok(EffectResult::Failed { said }),
        };
        let (url, into) = (Some(pull.html_url.clone()), &pull.head.name);
        Ok(match merge_on_remote(self.repo, branches, &message, &resolved)? {
            RemoteMerge::UpToDate => {
                EffectResult::Done { said: format!("`{into}` has all of `{}`", pull.base.name), url }
            }
            RemoteMerge::Pushed(_) => {
                EffectResult::Done { said: format!("merged `{}` into `{into}`", pull.base.name), url }
            }
            RemoteMerge::Conflicts(files) => {
                let paths: Vec<String> = files.iter().map(|file| format!("`{}`", file.path)).collect();
                let of = |file: &ConflictedFile| json!({ "path": file.path, "text": file.text });
                let listed = Value::Array(files.iter().map(of).collect()).to_string();
                EffectResult::Conflicted { said: format!("conflicts in {}", paths.join(", ")), files: listed }
            }
            RemoteMerge::Refused(said) => EffectResult::Failed { said },
        })
    }

    /// What an agent made of files with conflicts: a list of objects with `path` and `content`.
    fn resolved_files(&self) -> Result<Vec<ResolvedFile>, String> {
        let text = self.value("files");
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let files: Vec<Value> =
            serde_json::from_str(text).map_err(|error| format!("the resolved files are no list: {error}"))?;
        let file = |file: &Value| {
            let text = |key: &str| file[key].as_str().map(str::to_owned);
            Some(ResolvedFile { path: text("path")?, text: text("content")? })
        };
        let resolved: Option<Vec<ResolvedFile>> = files.iter().map(file).collect();
        resolved.ok_or_else(|| "a resolved file has no `path` or no `content`".to_owned())
    }

    /// Adds a task to the queue, with an issue and a base branch if they are wanted.
    fn enqueue(&self) -> Result<EffectResult, Error> {
        let failed = |said: String| Ok(EffectResult::Failed { said });
        let Some(queue) = &self.plan.queue else {
            return failed("this run has no queue of tasks".to_owned());
        };
        let text = self.value("task");
        if text.is_empty() {
            return failed("the task is empty".to_owned());
        }
        let is_set = |name: &str| self.value(name) == "true";
        let named = |name: &str| Some(self.value(name).to_owned()).filter(|text| !text.is_empty());
        let mut base = named("base_branch");
        let mut branch = named("branch");
        if let (Some(name), Some(from)) = (&base, named("create_from")) {
            (self.fence)().map_err(Error::Task)?;
            if let Err(why) = create_on_remote(self.repo, &self.plan.remote, name, &from)? {
                return failed(why);
            }
        }
        let mut issue = self.number("issue_number");
        let mut url = None;
        let wanted: Value = serde_json::from_str(self.value("issue")).unwrap_or_default();
        if issue.is_none() && wanted["create"] == true {
            let github = match super::effects::github_of(self.plan) {
                Ok(github) => github,
                Err(result) => return Ok(result),
            };
            let labels = wanted["labels"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let labels: Vec<&str> = labels.filter(|label| !label.trim().is_empty()).collect();
            let title = named("title").unwrap_or_else(|| title_of(text));
            match create_marked_issue(
                github,
                &self.key(),
                (&title, text, &labels),
                self.effect.looks,
                self.sent,
            ) {
                Ok(created) => {
                    issue = Some(created.number);
                    url = Some(created.html_url);
                }
                Err(result) => return Ok(result),
            }
        }
        let pull_request = self.number("pr");
        if let Some(number) = pull_request {
            let github = match super::effects::github_of(self.plan) {
                Ok(github) => github,
                Err(result) => return Ok(result),
            };
            match github.pull(number) {
                Ok(pull) if pull.is_own() => {
                    branch = Some(pull.head.name.clone());
                    base = base.or(Some(pull.base.name));
                }
                Ok(_) => return failed(format!("the branch of #{number} is in another repository")),
                Err(error) => return Ok(effect_result_of_error(&error)),
            }
        }
        let task = NewTask {
            key: self.key(),
            text: text.to_owned(),
            workflow: self.value("workflow").to_owned(),
            issue,
            pull_request,
            in_worktree: is_set("worktree") || pull_request.is_some(),
            branch,
            base,
            proposes: is_set("auto_pr"),
            is_draft: is_set("draft_pr"),
            is_managed: is_set("managed_pr"),
        };
        (self.fence)().map_err(Error::Task)?;
        Ok(match queue.add(&task) {
            Ok(name) => {
                let said = format!("added the task `{name}`");
                match issue {
                    Some(number) => EffectResult::Created { said, url, number },
                    None => EffectResult::Done { said, url },
                }
            }
            // Another program may be writing it. What else is wrong with the list does not mend itself.
            Err(why) if self.effect.faults == 0 => {
                EffectResult::Later { delay: Delay::Fault, why, after_ms: None }
            }
            Err(said) => EffectResult::Failed { said },
        })
    }
}

/// Why nothing can be pushed to the branch of a pull request.
fn find_obstacle(pull: &PullRequest) -> Option<String> {
    if pull.state != "open" {
        return Some(format!("#{} is {}", pull.number, pull.state));
    }
    (!pull.is_own()).then(|| format!("the branch of #{} is in another repository", pull.number))
}

fn close_pull_request(github: &Github, number: u64) -> EffectResult {
    match github.close_pull(number) {
        Ok(pull) => EffectResult::Done { said: format!("closed #{number}"), url: Some(pull.html_url) },
        Err(error) => effect_result_of_error(&error),
    }
}

fn merge_pull_request(github: &Github, number: u64) -> EffectResult {
    let done = |pull: &PullRequest| EffectResult::Done {
        said: format!("merged #{number}"),
        url: Some(pull.html_url.clone()),
    };
    let pull = match github.pull(number) {
        Ok(pull) if pull.merged_at.is_some() => return done(&pull),
        Ok(pull) => pull,
        Err(error) => return effect_result_of_error(&error),
    };
    match github.merge_pull(number) {
        Ok(()) => done(&pull),
        Err(error) => effect_result_of_error(&error),
    }
}

/// The first line of a task that says something, as a title.
fn title_of(text: &str) -> String {
    const TITLE_MAX: usize = 100;
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // A heading such as `## Summary` says nothing of a task.
    let line = lines().find(|line| !line.starts_with('#')).or_else(|| lines().next());
    line.unwrap_or("Task").trim_start_matches(['#', ' ']).chars().take(TITLE_MAX).collect()
}
