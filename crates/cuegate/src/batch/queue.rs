//! Reads the queue of a batch, and claims its tasks.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cuegate_engine::{ClaimOutcome, EarlierRun, EffectKind, QueueRead, QueueSource, StopKind, Task};
use cuegate_flow::model::BlobRef;
use cuegate_formats::{TaktTask, is_takt_task_list, read_takt_tasks, read_tasks, with_takt_status};
use cuegate_journal::{Journal, Liveness, Owner, RunId};
use cuegate_runner::{
    github::Github,
    now_ms, read_batch,
    worktree::{
        claim::{self, BranchHolder, ClaimResult, Claimant},
        current_branch,
    },
};
use cuegate_view::{clean_to_one_line, format_rfc3339, shorten_end};

use super::run_of_task;
use crate::task_queue::{TASK_LIST, read_task_text};
use crate::text_file::read_text;

/// The states in which a task of TAKT's list calls for no work.
const SETTLED: [&str; 4] = ["completed", "failed", "exceeded", "pr_failed"];
/// The columns of a title.
const TITLE_MAX: usize = 72;

/// A queue that can be read.
#[derive(Clone)]
pub struct Queue {
    /// Where its tasks come from.
    pub source: QueueSource,
    /// The client, for issues.
    pub github: Option<Github>,
    /// The repository with the remote on which issues are claimed.
    pub root: PathBuf,
}

/// What the queue is read with, besides itself.
pub struct QueueContext<'k> {
    /// The journal of batches.
    pub batches: &'k dyn Journal,
    /// The journal of runs.
    pub runs: &'k dyn Journal,
    /// The batch that reads.
    pub batch: &'k RunId,
    /// The definition that its runs use.
    pub agent: &'k str,
}

impl Queue {
    /// Reads the queue.
    ///
    /// # Errors
    /// With what cannot be read, and why.
    pub fn read(&self, known: &QueueContext<'_>) -> Result<QueueRead, String> {
        match &self.source {
            QueueSource::Issues { label, remote, repository, .. } => {
                let github = self.github.as_ref().ok_or("there is no client")?;
                let issues = github
                    .open_issues(label)
                    .map_err(|error| format!("the issues of {repository} cannot be read: {error}"))?;
                let tasks: Vec<Task> = issues
                    .into_iter()
                    .map(|issue| Task {
                        key: format!("#{}", issue.number),
                        name: format!("#{}", issue.number),
                        title: shorten_end(&clean_to_one_line(&issue.title), TITLE_MAX),
                        issue: Some(issue.number),
                        labels: issue.labels.into_iter().map(|label| label.name).collect(),
                        ..Task::default()
                    })
                    .collect();
                Ok(QueueRead { claims: self.claims(&tasks, remote, known)?, tasks, before: Vec::new() })
            }
            QueueSource::File { path } if is_task_list(Path::new(path)) => {
                list_takt_tasks(&self.root, Path::new(path), known)
            }
            QueueSource::File { path } => {
                let tasks = file_tasks(Path::new(path))?;
                Ok(QueueRead { before: runs_before(known, &self.source)?, tasks, claims: Vec::new() })
            }
        }
    }

    /// The tasks that somebody has.
    fn claims(
        &self,
        tasks: &[Task],
        remote: &str,
        known: &QueueContext<'_>,
    ) -> Result<Vec<(String, String)>, String> {
        let claimed = claim::claimed_issues(&self.root, remote)
            .map_err(|error| error.to_string())?
            .map_err(|why| format!("the branches on `{remote}` cannot be read: {why}"))?;
        let mut claims = Vec::new();
        for task in tasks {
            let Some((issue, commit)) = task.issue.and_then(|issue| Some((issue, claimed.get(&issue)?)))
            else {
                continue;
            };
            claims.push((task.key.clone(), self.holder(remote, issue, &task.key, commit, known)?));
        }
        Ok(claims)
    }

    /// Describes who has an issue.
    fn holder(
        &self,
        remote: &str,
        issue: u64,
        key: &str,
        commit: &str,
        known: &QueueContext<'_>,
    ) -> Result<String, String> {
        let branch = claim::branch_of_issue(issue);
        let holder = claim::find_branch_holder(&self.root, remote, &branch, commit)
            .map_err(|error| error.to_string())?;
        Ok(match holder {
            BranchHolder::Claim(Claimant { host, batch, at }) => match own_run(known, &batch, key) {
                Some((run, state)) => {
                    format!("claimed by batch {batch} of this project, run {run}: {state}")
                }
                None => clean_to_one_line(&format!("claimed by `{host}`, batch {batch}, since {at}")),
            },
            BranchHolder::Work { author, date, subject } => {
                clean_to_one_line(&format!("`{branch}` on `{remote}` has work: {subject} ({author}, {date})"))
            }
            BranchHolder::Unknown => format!("`{branch}` exists on `{remote}`"),
        })
    }

    /// The commit of a claim; `None` for a file, whose tasks are claimed by the lock of the file.
    ///
    /// # Errors
    /// When git fails.
    pub fn claim_commit(&self, task: &Task, batch: &RunId) -> Result<Option<String>, String> {
        let QueueSource::Issues { .. } = self.source else { return Ok(None) };
        let Owner { host, .. } = Owner::current();
        let by = Claimant { host, batch: batch.to_string(), at: format_rfc3339(now_ms()) };
        claim::create_claim_commit(&self.root, &task.key, &by).map(Some).map_err(|error| error.to_string())
    }

    /// Claims a task.
    ///
    /// # Errors
    /// When nobody can tell whether it is claimed.
    pub fn claim(&self, task: &Task, commit: &str, known: &QueueContext<'_>) -> Result<ClaimOutcome, String> {
        let (QueueSource::Issues { remote, .. }, Some(issue)) = (&self.source, task.issue) else {
            return Ok(ClaimOutcome::Won);
        };
        if let Some(by) = self.no_longer_wanted(task, issue, known)? {
            return Ok(ClaimOutcome::Lost { by });
        }
        let branch = claim::branch_of_issue(issue);
        let pushed =
            claim::push_claim(&self.root, remote, &branch, commit).map_err(|error| error.to_string())?;
        match pushed.map_err(|why| format!("{} cannot be claimed on `{remote}`: {why}", task.key))? {
            ClaimResult::Yes => Ok(ClaimOutcome::Won),
            ClaimResult::No => {
                let is = claim::on_remote(&self.root, remote, &branch).map_err(|error| error.to_string())?;
                let by = match is {
                    Ok(Some(commit)) => self.holder(remote, issue, &task.key, &commit, known)?,
                    _ => format!("`{branch}` exists on `{remote}`"),
                };
                Ok(ClaimOutcome::Lost { by })
            }
        }
    }

    /// Why an issue of the queue is not worked on: it was closed or lost its label since the queue was read, or it has a pull
    /// request that was merged.
    fn no_longer_wanted(
        &self,
        task: &Task,
        number: u64,
        known: &QueueContext<'_>,
    ) -> Result<Option<String>, String> {
        let QueueSource::Issues { label, .. } = &self.source else { return Ok(None) };
        let github = self.github.as_ref().ok_or("there is no client")?;
        let failed = |error| format!("{} cannot be read: {error}", task.key);
        let issue = github.issue(number).map_err(failed)?;
        if issue.state == "closed" {
            return Ok(Some("it was closed since the queue was read".to_owned()));
        }
        if !issue.labels.iter().any(|known| known.name.eq_ignore_ascii_case(label)) {
            return Ok(Some(format!("it lost the label `{label}` since the queue was read")));
        }
        let hint = format!("`cuegate run {} --issue {number}` works on it once more", known.agent);
        let merged = github.pulls_of(&claim::branch_of_issue(number)).map_err(failed)?;
        if let Some(pull) = merged.iter().find(|pull| pull.merged_at.is_some()) {
            return Ok(Some(format!("its pull request #{} was merged; {hint}", pull.number)));
        }
        for (run, url) in find_proposals(known, &self.source, &task.key)? {
            // A rejected proposal leaves the issue to others.
            let number = url.rsplit('/').next().and_then(|number| number.parse().ok());
            let pull = number.map(|number| github.pull(number));
            let is_rejected = |pull: &cuegate_runner::github::PullRequest| {
                pull.state == "closed" && pull.merged_at.is_none()
            };
            if !pull.is_some_and(|pull| pull.as_ref().is_ok_and(is_rejected)) {
                return Ok(Some(format!("run {run} proposed {url}; {hint}")));
            }
        }
        Ok(None)
    }

    /// Whether a task that this batch took before still belongs to it; `None` if nobody has it.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn is_held(
        &self,
        task: &Task,
        commit: Option<&str>,
        run: Option<&str>,
        known: &QueueContext<'_>,
    ) -> Result<Option<ClaimOutcome>, String> {
        if matches!(&self.source, QueueSource::File { path } if is_task_list(Path::new(path))) {
            return Ok(Some(ClaimOutcome::Won));
        }
        let (QueueSource::Issues { remote, .. }, Some(issue)) = (&self.source, task.issue) else {
            let others = runs_before(known, &self.source)?;
            let other = others.into_iter().find(|other| other.task == task.key && Some(&*other.run) != run);
            return Ok(Some(match other {
                Some(other) => {
                    ClaimOutcome::Lost { by: format!("run {} worked on it: {}", other.run, other.state) }
                }
                None => ClaimOutcome::Won,
            }));
        };
        let branch = claim::branch_of_issue(issue);
        let is = claim::on_remote(&self.root, remote, &branch).map_err(|error| error.to_string())?;
        let is = is.map_err(|why| format!("`{branch}` on `{remote}` cannot be read: {why}"))?;
        let Some(is) = is else { return Ok(None) };
        let own_work = run.map(|run| format!("cuegate/{run}"));
        let is_own = Some(&*is) == commit
            || own_work
                .is_some_and(|own| claim::is_commit_on_branch(&self.root, &own, &is).unwrap_or_default());
        if is_own {
            return Ok(Some(ClaimOutcome::Won));
        }
        let by = self.holder(remote, issue, &task.key, &is, known)?;
        Ok(Some(ClaimOutcome::Lost { by }))
    }

    /// Gives a claim back. Unless `whatever` is set, only if the issue does not call for work any more: it is closed, or
    /// has lost the label. Returns whether the branch of the claim is gone; work on it is never deleted.
    ///
    /// # Errors
    /// With the reason why that could not be done.
    pub fn release(&self, task: &Task, commit: &str, whatever: bool) -> Result<bool, String> {
        let (QueueSource::Issues { remote, label, .. }, Some(number)) = (&self.source, task.issue) else {
            return Ok(true);
        };
        if !whatever {
            let github = self.github.as_ref().ok_or("there is no client")?;
            let issue =
                github.issue(number).map_err(|error| format!("{} cannot be read: {error}", task.key))?;
            let is_labelled = issue.labels.iter().any(|known| known.name.eq_ignore_ascii_case(label));
            if issue.state == "open" && is_labelled {
                return Ok(false);
            }
        }
        let branch = claim::branch_of_issue(number);
        let released =
            claim::release_claim(&self.root, remote, &branch, commit).map_err(|error| error.to_string())?;
        released.map_err(|why| format!("the claim of {} stays: {why}", task.key))
    }
}

/// Whether a file is the list of tasks of TAKT.
pub(super) fn is_task_list(path: &Path) -> bool {
    path.ends_with(TASK_LIST)
}

/// The pending tasks of TAKT's list, and why some of them are not taken.
fn list_takt_tasks(repo: &Path, path: &Path, known: &QueueContext<'_>) -> Result<QueueRead, String> {
    let shown = path.display();
    let text = read_text(path).map_err(|error| format!("failed to read `{shown}`: {error}"))?;
    let listed = read_takt_tasks(&path.to_string_lossy(), &text)
        .map_err(|error| format!("{shown}:{}: {}; {}", error.line, error.message, error.hint))?;
    let root = path.ancestors().nth(2).unwrap_or(Path::new("."));
    let here = current_branch(repo).ok().flatten();
    let is_settled = |task: &TaktTask| SETTLED.contains(&task.status.as_str());
    let (mut tasks, mut left) = (Vec::new(), Vec::new());
    for listed in listed.into_iter().filter(|listed| !is_settled(listed)) {
        let task = read_task_text(root, &listed);
        let is_pending = listed.status == "pending";
        let why = match (&task, &listed.workflow, &listed.branch, &listed.base) {
            _ if listed.status == "running" => match find_interrupted_run(&listed, known) {
                Some(run) => Some(format!("its run was interrupted: `cuegate resume {run}` goes on")),
                None => continue,
            },
            _ if !is_pending => Some(format!("line {}: `{}` is no status", listed.line, listed.status)),
            (Err(why), ..) => Some(why.clone()),
            (_, Some(other), ..) if other != known.agent => Some(format!("it is for the workflow `{other}`")),
            (_, _, Some(branch), _) => {
                Some(format!("it continues the branch `{branch}`: `takt run` does that"))
            }
            (_, _, _, Some(base)) if here.as_ref() != Some(base) => {
                Some(format!("it starts from the branch `{base}`: check that out"))
            }
            // Otherwise it would be done again by the next batch.
            _ if with_takt_status(&path.to_string_lossy(), &text, &listed.name, "running", "probe")
                .is_none() =>
            {
                Some(format!(
                    "line {}: its status cannot be changed: write each key on a line of its own",
                    listed.line
                ))
            }
            _ => None,
        };
        left.extend(why.map(|why| (listed.name.clone(), why)));
        let text = task.unwrap_or_default();
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        tasks.push(Task {
            key: listed.name.clone(),
            name: listed.name,
            title: shorten_end(&clean_to_one_line(&first), TITLE_MAX),
            text: Some(text),
            ..Task::default()
        });
    }
    // The list says itself what is done.
    Ok(QueueRead { before: Vec::new(), tasks, claims: left })
}

/// The run of a task that is noted as running, if no process goes on with it.
fn find_interrupted_run(task: &TaktTask, known: &QueueContext<'_>) -> Option<RunId> {
    let run: RunId = task.run.as_ref()?.parse().ok()?;
    let is = super::run_of(known.runs, run.as_str()).ok()?;
    let holder = known.runs.holder(&run).ok().flatten();
    let lives = holder.is_some_and(|lease| lease.owner.liveness() != Liveness::Dead);
    (is.stop == StopKind::Suspended && !lives).then_some(run)
}

fn file_tasks(path: &Path) -> Result<Vec<Task>, String> {
    let shown = path.display();
    let text = read_text(path).map_err(|error| format!("failed to read `{shown}`: {error}"))?;
    if is_takt_task_list(&text) {
        return Err(format!(
            "{shown} is a list of tasks of TAKT: work it off as `{TASK_LIST}` of the project"
        ));
    }
    let listed = read_tasks(&path.to_string_lossy(), &text)
        .map_err(|error| format!("{shown}:{}: {}; {}", error.line, error.message, error.hint))?;
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let task = |listed: cuegate_formats::ListedTask| {
        let content = serde_json::json!([listed.text, listed.set]).to_string();
        let digest = BlobRef::for_bytes(content.as_bytes()).digest[..12].to_owned();
        let times = seen.entry(digest.clone()).and_modify(|times| *times += 1).or_insert(1);
        let key = if *times == 1 { digest } else { format!("{digest}-{times}") };
        let first = listed.text.lines().next().unwrap_or_default();
        Task {
            key,
            name: format!("line {}", listed.line),
            title: shorten_end(&clean_to_one_line(first), TITLE_MAX),
            text: Some(listed.text),
            set: listed.set,
            ..Task::default()
        }
    };
    Ok(listed.into_iter().map(task).collect())
}

/// The run of a batch of this project on a task, and its state.
fn own_run(known: &QueueContext<'_>, batch: &str, key: &str) -> Option<(String, String)> {
    let (batch, ..) = read_batch(known.batches, &batch.parse().ok()?).ok()?;
    let taken = batch.taken.iter().find(|taken| taken.task.key == key)?;
    let state = run_of_task(known.runs, taken)?.map_or_else(|why| why, |is| is.state);
    Some((taken.run.clone()?, state))
}

/// The pull requests that runs of earlier batches on the same queue opened for a task, with these runs.
fn find_proposals(
    known: &QueueContext<'_>,
    source: &QueueSource,
    key: &str,
) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let others = known.batches.runs().map_err(|error| format!("earlier batches cannot be read: {error}"))?;
    for other in others.into_iter().filter(|other| other.run != *known.batch) {
        let (batch, ..) = read_batch(known.batches, &other.run)
            .map_err(|error| format!("batch {} cannot be read: {error}", other.run))?;
        if batch.started.as_ref().is_none_or(|begun| begun.source != *source) {
            continue;
        }
        for run in
            batch.taken.iter().filter(|taken| taken.task.key == key).filter_map(|taken| taken.run.clone())
        {
            let Ok(id) = run.parse::<RunId>() else { continue };
            let Ok(view) = crate::project::view_of(known.runs, &id) else { continue };
            let opened = view.acts.effects.iter().filter(|row| row.kind == EffectKind::PullRequest);
            found.extend(opened.filter_map(|row| Some((run.clone(), row.url.clone()?))));
        }
    }
    Ok(found)
}

/// Whether a process that is known to live goes on with a run.
fn is_worked_on(runs: &dyn Journal, run: &str) -> Result<bool, String> {
    let Ok(id) = run.parse::<RunId>() else { return Ok(false) };
    let holder = runs.holder(&id).map_err(|error| format!("run {run} cannot be read: {error}"))?;
    Ok(holder.is_some_and(|lease| lease.owner.liveness() == Liveness::Alive))
}

/// The runs of earlier batches of the same definition on the tasks of the same file.
fn runs_before(known: &QueueContext<'_>, source: &QueueSource) -> Result<Vec<EarlierRun>, String> {
    let mut before = Vec::new();
    let others = known.batches.runs().map_err(|error| format!("earlier batches cannot be read: {error}"))?;
    for other in others {
        if other.run == *known.batch {
            continue;
        }
        let (batch, ..) = read_batch(known.batches, &other.run)
            .map_err(|error| format!("batch {} cannot be read: {error}", other.run))?;
        let same =
            batch.started.as_ref().is_some_and(|begun| begun.source == *source && begun.agent == known.agent);
        if !same {
            continue;
        }
        for taken in &batch.taken {
            let (Some(run), Some(is)) = (&taken.run, run_of_task(known.runs, taken)) else { continue };
            let is = is?;
            if is.stop != StopKind::NotStarted {
                let (task, run) = (taken.task.key.clone(), run.clone());
                let is_stuck = is.stop == StopKind::Suspended && !is_worked_on(known.runs, &run)?;
                before.push(EarlierRun { task, run, state: is.state, is_stuck });
            }
        }
    }
    Ok(before)
}
