//! Performs effects: runs programs of the definition, commits, merges and pushes with git, and changes GitHub.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use cuegate_engine::{
    Completion, Effect, EffectCommand, EffectKind, EffectResult, EffectValues, ExecResult, PromptPart,
    TreeState, comment_text,
};
use cuegate_flow::Str;
use cuegate_journal::RunId;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    ExecutorSettings, LocalExecutor, exit_of_finished, kept_programs::ProgramInput, proof::UnprovedTree,
    run_blocking, step_effects::StepEffectContext, wait_until,
};
use crate::effect_plan::EffectPlan;
use crate::{
    error::{Error, io_error_at},
    executor::CommandResult,
    github::{
        Fence, Github,
        effects::{RunComment, change_labels, close_issue, upsert_pull_request},
    },
    process,
    prompt_text::read_stored_text,
    worktree::{WorktreeError, clear_stale_locks, finalize},
};

/// The time limit of an effect program, the same as for validators.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The variable with the idempotency key of the effect: the run and the effect in it.
const KEY: &str = "CUEGATE_EFFECT_KEY";

impl LocalExecutor {
    /// Tries an effect. A program that was cut off is not started again.
    pub(super) async fn effect(
        self: &Arc<Self>,
        command: EffectCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, Error> {
        let effect = &command.effect;
        if !wait_until(effect.not_before_ms, &*self.setting.clock, &mut cut).await {
            return Ok(None);
        }
        let (result, duration_ms) = match &command.program {
            Some(program) => {
                let dir = self.setting.home.command(&self.setting.run, effect.id);
                // Nobody knows what it did until it was cut off, so it is not started again.
                if let Some((stdout, stderr)) = process::output_before_cut(&dir).await? {
                    let (stdout, stderr) = (super::text_of(&stdout), super::text_of(&stderr));
                    let result = EffectResult::CutOff { stdout, stderr };
                    let seen = self.seen(command.tree.as_ref()).await?;
                    let (id, attempt) = (effect.id, effect.attempt);
                    let completion = Completion::Acted { id, attempt, result, duration_ms: 0, seen };
                    return Ok(Some(CommandResult { completion, texts: Vec::new() }));
                }
                let input = self.program_input(&command)?;
                self.fence()().map_err(Error::Task)?;
                let Some(finished) = self.run_program(effect.id, program, input, cut).await? else {
                    return Ok(None);
                };
                let exec = ExecResult {
                    exit: exit_of_finished(&finished),
                    stdout: super::text_of(&finished.stdout),
                    stderr: super::text_of(&finished.stderr),
                    duration_ms: finished.elapsed_ms,
                };
                (EffectResult::Ran(exec), finished.elapsed_ms)
            }
            None => {
                let began = std::time::Instant::now();
                let result = match self.built_in(&command, cut).await {
                    Err(Error::Tree(WorktreeError::Stopped)) => return Ok(None),
                    result => result?,
                };
                (result, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
            }
        };
        let seen = match effect.kind {
            EffectKind::Exec { .. } => self.seen(command.tree.as_ref()).await?,
            // Hooks may change files. Otherwise the commit is the last snapshot, and the files stay.
            EffectKind::Commit if self.setting.effects.hooks => self.seen(None).await?,
            EffectKind::Merge => self.seen(None).await?,
            _ => None,
        };
        let completion =
            Completion::Acted { id: effect.id, attempt: effect.attempt, result, duration_ms, seen };
        Ok(Some(CommandResult { completion, texts: Vec::new() }))
    }

    /// Tries an effect that needs no program of the definition.
    async fn built_in(
        self: &Arc<Self>,
        command: &EffectCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<EffectResult, Error> {
        let ExecutorSettings { run, home, work, branch, effects: plan, journal, trees, .. } = &self.setting;
        let effect = command.effect.clone();
        let note = home.command(run, effect.id).join("sent");
        let mut texts = Vec::new();
        if effect.kind == EffectKind::Comment {
            for block in command.comments.iter().chain([&effect.value]) {
                let block = read_stored_text(&**journal, run, block)?;
                let block: Value = serde_json::from_str(&block).unwrap_or_default();
                texts.extend(comment_text(&block).map(str::to_owned));
            }
        }
        let (run, repo, work, url) =
            (run.clone(), home.root().to_owned(), work.clone(), command.comment_url.clone());
        let unknown = command.comment_unknown;
        let values = match effect.kind {
            EffectKind::Step(_) => self.values_of_step_effect(&effect)?,
            _ => BTreeMap::new(),
        };
        let merge_lock_file = home.dir().join("merge.lock");
        // A git of a former start may have been killed.
        let since = self.setting.suspect.filter(|_| effect.kind.finalizes());
        let (branch, plan) = (branch.clone().unwrap_or_default(), plan.clone());
        let (trees, end) = (trees.clone(), command.tree.clone());
        // A process that was stopped for long may find that another machine goes on with its run.
        let fence = self.fence();
        let plan = match plan.github {
            Some(Ok(github)) => EffectPlan { github: Some(Ok(github.with_fence(fence.clone()))), ..plan },
            _ => plan,
        };
        let (executor, command) = (self.clone(), command.clone());
        let runtime = tokio::runtime::Handle::current();
        run_blocking(move || {
            for folder in [&work, &repo] {
                if let Some(since) = since {
                    clear_stale_locks(folder, since)?;
                }
            }
            if let EffectKind::Step(kind) = effect.kind {
                let context = StepEffectContext {
                    run: &run,
                    effect: &effect,
                    kind,
                    values: &values,
                    plan: &plan,
                    repo: &repo,
                    sent: &note,
                    fence: &fence,
                };
                return context.perform();
            }
            let at = finalize::Branches {
                work: &work,
                branch: &branch,
                base: plan.base.as_deref(),
                hooks: plan.hooks,
                into: plan.into.as_deref(),
                merges: plan.merges,
                updates: plan.updates,
                is_edited: command.is_edited,
                allowed: &plan.allowed,
                claim: plan.claim.as_ref(),
            };
            let message = format!("{}\n\nRun {run} of cuegate.", plan.subject);
            let snapshots = (trees.as_ref(), plan.first.as_ref(), end.as_ref());
            let run_work = match snapshots {
                (Some(trees), Some(TreeState { tree: start, head: Some(base), .. }), Some(end)) => {
                    Some(finalize::RunWork { trees, base, start, end: &end.tree })
                }
                _ => None,
            };
            let Some(run_work) = run_work.as_ref().filter(|_| effect.kind.finalizes()) else {
                if effect.kind.finalizes() {
                    let said = "the run recorded no snapshots, so nobody can say what its work is".to_owned();
                    return Ok(EffectResult::Failed { said });
                }
                return on_issue(&plan, &effect, &texts, (&run, url.as_deref(), unknown), &note);
            };
            fence().map_err(Error::Task)?;
            let mut prove = |tree: &str, how: &str| {
                let unproved = UnprovedTree {
                    work: run_work.tree_to_commit()?,
                    tree: tree.to_owned(),
                    how: how.to_owned(),
                };
                match runtime.block_on(executor.prove(&command, &unproved, &mut cut)) {
                    Err(Error::Tree(error)) => Err(error),
                    Err(error) => Ok(Err(format!("the gates cannot run on the work{how}: {error}"))),
                    Ok(proved) => Ok(proved),
                }
            };
            Ok(match &effect.kind {
                EffectKind::Commit => of_git(finalize::commit_run_work(&at, run_work, &message)?),
                EffectKind::Merge => {
                    // Runs of one project that end together merge one after the other.
                    let _lock = merge_lock(&merge_lock_file)?;
                    of_git(finalize::merge_run_work(&repo, &at, run_work, &message, &note, &mut prove)?)
                }
                EffectKind::Push => {
                    of_git(finalize::push_run_work(&repo, &at, run_work, &plan.remote, &message, &mut prove)?)
                }
                _ => pull_request(&repo, &at, run_work, &plan)?,
            })
        })
        .await
    }

    /// The values of an effect of a step, as texts.
    fn values_of_step_effect(&self, effect: &Effect) -> Result<BTreeMap<String, String>, Error> {
        let (journal, run) = (&*self.setting.journal, &self.setting.run);
        let text = read_stored_text(journal, run, &effect.value)?;
        let values: EffectValues = serde_json::from_str(&text)
            .map_err(|error| Error::Task(format!("the values of an effect cannot be read: {error}")))?;
        let value = |(name, parts): (Str, Vec<PromptPart>)| {
            let text = parts.iter().map(|part| match part {
                PromptPart::Text(text) => Ok(text.to_string()),
                PromptPart::Blob { blob, .. } => read_stored_text(journal, run, blob),
            });
            Ok((name.to_string(), text.collect::<Result<String, Error>>()?))
        };
        values.into_iter().map(value).collect()
    }

    /// Fails if another process has taken the run over, or nobody can say.
    fn fence(&self) -> Fence {
        let ExecutorSettings { journal, lease, .. } = &self.setting;
        let (journal, lease) = (journal.clone(), lease.clone());
        Arc::new(move || match journal.holder(&lease.run) {
            Ok(Some(holder)) if holder.token == lease.token => Ok(()),
            Ok(_) => Err(format!("another process has taken run {} over", lease.run)),
            Err(error) => {
                Err(format!("whether this process still holds run {} is unknown: {error}", lease.run))
            }
        })
    }

    fn program_input(&self, command: &EffectCommand) -> Result<ProgramInput, Error> {
        let effect = &command.effect;
        let value = read_stored_text(&*self.setting.journal, &self.setting.run, &effect.value)?;
        let key = format!("{}/{}", self.setting.run, effect.id);
        let message = json!({
            "run": self.setting.run.to_string(),
            "key": key,
            "step": effect.step,
            "visit": effect.visit,
            "iteration": effect.iteration,
            "action": effect.action,
            "value": serde_json::from_str::<Value>(&value).unwrap_or(Value::String(value)),
        });
        Ok(ProgramInput { stdin: message.to_string(), env: vec![(KEY.into(), key.into())], timeout: TIMEOUT })
    }
}

/// The repository on GitHub, or the result of an effect that needs it.
pub(super) fn github_of(plan: &EffectPlan) -> Result<&Github, EffectResult> {
    match &plan.github {
        Some(Ok(github)) => Ok(github),
        Some(Err(why)) => Err(EffectResult::Failed { said: why.clone() }),
        None => Err(EffectResult::Failed { said: "the run has no repository on GitHub".to_owned() }),
    }
}

/// Changes the issue of the run: its labels, its state, or the comment of the run. `known` is the run, the address of its
/// comment, and whether nobody knows if that exists.
fn on_issue(
    plan: &EffectPlan,
    effect: &Effect,
    texts: &[String],
    (run, url, unknown): (&RunId, Option<&str>, bool),
    sent: &Path,
) -> Result<EffectResult, Error> {
    let github = match github_of(plan) {
        Ok(github) => github,
        Err(result) => return Ok(result),
    };
    let Some(issue) = plan.issue else {
        let said = "the run works on no issue; start it with `--issue N`".to_owned();
        return Ok(EffectResult::Failed { said });
    };
    Ok(match &effect.kind {
        EffectKind::Labels { add, remove } if add.is_empty() && remove.is_empty() => {
            EffectResult::Failed { said: "the block names no label".to_owned() }
        }
        EffectKind::Labels { add, remove } => {
            change_labels(github, issue, &borrow_labels(add), &borrow_labels(remove))
        }
        EffectKind::Close => close_issue(github, issue),
        _ if texts.is_empty() => EffectResult::Failed { said: "the block has no `body`".to_owned() },
        _ => {
            let (run, looks) = (run.as_str(), effect.looks);
            RunComment { run, issue, texts, url, unknown, looks, sent }.write(github)
        }
    })
}

/// Proposes the pushed branch of the run.
fn pull_request(
    repo: &Path,
    at: &finalize::Branches<'_>,
    work: &finalize::RunWork<'_>,
    plan: &EffectPlan,
) -> Result<EffectResult, Error> {
    let github = match github_of(plan) {
        Ok(github) => github,
        Err(result) => return Ok(result),
    };
    if !finalize::has_work(repo, at, work)? {
        let said = "nothing to propose: the run changed nothing".to_owned();
        return Ok(EffectResult::Done { said, url: None });
    }
    let Some(into) = plan.into.as_deref().or(at.base) else {
        let said = "the run started at no branch; name the target with `prTarget`".to_owned();
        return Ok(EffectResult::Failed { said });
    };
    match finalize::has_changes(repo, at, into, &plan.remote)? {
        Ok(true) => {}
        Ok(false) => {
            let said = format!("nothing to propose: `{into}` has every commit of the run");
            return Ok(EffectResult::Done { said, url: None });
        }
        Err(why) => {
            return Ok(EffectResult::Failed { said: format!("`{}` cannot be read: {why}", plan.remote) });
        }
    }
    let mut body = plan.report.as_ref().map(|report| report()).unwrap_or_default();
    if let Some(issue) = plan.issue {
        let word = if plan.resolves_issue { "Closes" } else { "For" };
        body = format!("{word} #{issue}.\n\n{body}");
    }
    Ok(upsert_pull_request(github, at.on_remote(), into, &plan.subject, &body))
}

/// Waits for the merges of other runs. The lock ends with the file.
fn merge_lock(path: &Path) -> Result<std::fs::File, Error> {
    let file = std::fs::File::create(path).map_err(io_error_at("create", path))?;
    file.lock().map_err(io_error_at("lock", path))?;
    Ok(file)
}

fn of_git(done: finalize::Outcome) -> EffectResult {
    match done {
        Ok(said) => EffectResult::Done { said, url: None },
        Err(said) => EffectResult::Failed { said },
    }
}

fn borrow_labels(labels: &[Str]) -> Vec<&str> {
    labels.iter().map(|label| &**label).collect()
}
