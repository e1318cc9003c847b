//! Performs effects: runs programs of the definition, commits, merges and pushes with git, and changes GitHub.

use std::{sync::Arc, time::Duration};

use cuegate_engine::{Claim, Completion, EffectCommand, EffectKind, EffectResult, Exec, comment_text};
use cuegate_flow::Str;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Local, Setting, blocking, exit, kept_programs::ProgramInput, wait_until};
use crate::{
    error::{Error, io},
    executor::Performed,
    github::{
        Github,
        effects::{RunComment, change_labels, close, propose},
    },
    prompt_text::lookup,
    worktree::{clear_stale_locks, finalize},
};

/// The time limit of an effect program, the same as for validators.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The variable with the idempotency key of the effect, which stays the same when the program is started again.
const KEY: &str = "CUEGATE_EFFECT_KEY";

/// What effects of a run need besides the run.
#[derive(Clone, Default)]
pub struct EffectPlan {
    /// The branch from which the branch of the run started.
    pub base: Option<String>,
    /// The branch that a pull request changes, if it is another.
    pub into: Option<String>,
    /// The remote to push to.
    pub remote: String,
    /// The claim there that the work replaces.
    pub claim: Option<Claim>,
    /// Whether hooks of the repository run.
    pub hooks: bool,
    /// The first line of commit messages, and the title of the pull request.
    pub subject: String,
    /// The repository on GitHub, or why there is none.
    pub github: Option<Result<Github, String>>,
    /// The issue or pull request that the run works on.
    pub issue: Option<u64>,
    /// Writes the report of the run, for the pull request.
    pub report: Option<Arc<dyn Fn() -> String + Send + Sync>>,
}

impl Local {
    /// Tries an effect. A program that was cut off is started again with the same key; the program must avoid doing the
    /// work twice.
    pub(super) async fn effect(
        &self,
        command: EffectCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        let effect = &command.effect;
        if !wait_until(effect.not_before_ms, &*self.setting.clock, &mut cut).await {
            return Ok(None);
        }
        let (result, duration_ms) = match &command.program {
            Some(program) => {
                let input = self.program_input(&command)?;
                let Some(finished) = self.run_program(effect.id, program, input, cut).await? else {
                    return Ok(None);
                };
                let exec = Exec {
                    exit: exit(&finished),
                    stdout: super::text_of(&finished.stdout),
                    stderr: super::text_of(&finished.stderr),
                    duration_ms: finished.elapsed_ms,
                };
                (EffectResult::Ran(exec), finished.elapsed_ms)
            }
            None => {
                let began = std::time::Instant::now();
                let result = self.built_in(&command).await?;
                (result, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
            }
        };
        let seen = match effect.kind {
            EffectKind::Exec { .. } => self.seen(command.tree.as_ref()).await?,
            EffectKind::Commit | EffectKind::Merge => self.seen(None).await?,
            _ => None,
        };
        let completion =
            Completion::Acted { id: effect.id, attempt: effect.attempt, result, duration_ms, seen };
        Ok(Some(Performed { completion, texts: Vec::new() }))
    }

    /// Tries an effect that needs no program of the definition.
    async fn built_in(&self, command: &EffectCommand) -> Result<EffectResult, Error> {
        let Setting { run, home, work, branch, effects: plan, journal, .. } = &self.setting;
        let effect = command.effect.clone();
        let note = home.command(run, effect.id).join("sent");
        let mut texts = Vec::new();
        if effect.kind == EffectKind::Comment {
            for block in command.comments.iter().chain([&effect.value]) {
                let block = lookup(&**journal, block)?;
                let block: Value = serde_json::from_str(&block).unwrap_or_default();
                texts.extend(comment_text(&block).map(str::to_owned));
            }
        }
        let (run, repo, work, url) =
            (run.clone(), home.root().to_owned(), work.clone(), command.comment_url.clone());
        let unknown = command.comment_unknown;
        let merge_lock_file = home.dir().join("merge.lock");
        // A git of a former start may have been killed.
        let since = self.setting.suspect.filter(|_| effect.kind.finalizes());
        let (branch, plan) = (branch.clone().unwrap_or_default(), plan.clone());
        blocking(move || {
            for folder in [&work, &repo] {
                if let Some(since) = since {
                    clear_stale_locks(folder, since)?;
                }
            }
            let (base, hooks) = (plan.base.as_deref(), plan.hooks);
            let claim = plan.claim.as_ref();
            let at = finalize::Branches { work: &work, branch: &branch, base, hooks, claim };
            let message = format!("{}\n\nRun {run} of cuegate.", plan.subject);
            Ok(match &effect.kind {
                EffectKind::Commit => of_git(finalize::commit(&at, &message)?),
                EffectKind::Merge => {
                    // Runs of one project that end together merge one after the other.
                    let _lock = merge_lock(&merge_lock_file)?;
                    of_git(finalize::merge(&repo, &at, &message, &note)?)
                }
                EffectKind::Push => of_git(finalize::push(&repo, &at, &plan.remote)?),
                kind => {
                    let github = match &plan.github {
                        Some(Ok(github)) => github,
                        Some(Err(why)) => return Ok(EffectResult::Failed { said: why.clone() }),
                        None => {
                            return Ok(EffectResult::Failed {
                                said: "the run has no repository on GitHub".into(),
                            });
                        }
                    };
                    if *kind == EffectKind::PullRequest {
                        return pull_request(github, &repo, &at, &plan);
                    }
                    let Some(issue) = plan.issue else {
                        let said = "the run works on no issue; start it with `--issue N`".to_owned();
                        return Ok(EffectResult::Failed { said });
                    };
                    let run = run.as_str();
                    let (url, looks) = (url.as_deref(), effect.looks);
                    match kind {
                        EffectKind::Labels { add, remove } if add.is_empty() && remove.is_empty() => {
                            EffectResult::Failed { said: "the block names no label".to_owned() }
                        }
                        EffectKind::Labels { add, remove } => {
                            change_labels(github, issue, &words(add), &words(remove))
                        }
                        EffectKind::Close => close(github, issue),
                        _ if texts.is_empty() => {
                            EffectResult::Failed { said: "the block has no `body`".to_owned() }
                        }
                        _ => {
                            let comment =
                                RunComment { run, issue, texts: &texts, url, unknown, looks, sent: &note };
                            comment.write(github)
                        }
                    }
                }
            })
        })
        .await
    }

    fn program_input(&self, command: &EffectCommand) -> Result<ProgramInput, Error> {
        let effect = &command.effect;
        let value = lookup(&*self.setting.journal, &effect.value)?;
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

/// Proposes the pushed branch of the run.
fn pull_request(
    github: &Github,
    repo: &std::path::Path,
    at: &finalize::Branches<'_>,
    plan: &EffectPlan,
) -> Result<EffectResult, Error> {
    let Some(into) = plan.into.as_deref().or(at.base) else {
        let said = "the run started at no branch; name the target with `prTarget`".to_owned();
        return Ok(EffectResult::Failed { said });
    };
    if !finalize::has_changes(repo, at, into, &plan.remote)? {
        let said = format!("nothing to propose: `{into}` has every commit of the run");
        return Ok(EffectResult::Done { said, url: None });
    }
    let mut body = plan.report.as_ref().map(|report| report()).unwrap_or_default();
    if let Some(issue) = plan.issue {
        body = format!("For #{issue}.\n\n{body}");
    }
    Ok(propose(github, at.on_remote(), into, &plan.subject, &body))
}

/// Waits for the merges of other runs. The lock ends with the file.
fn merge_lock(path: &std::path::Path) -> Result<std::fs::File, Error> {
    let file = std::fs::File::create(path).map_err(io("create", path))?;
    file.lock().map_err(io("lock", path))?;
    Ok(file)
}

fn of_git(done: finalize::Outcome) -> EffectResult {
    match done {
        Ok(said) => EffectResult::Done { said, url: None },
        Err(said) => EffectResult::Failed { said },
    }
}

fn words(labels: &[Str]) -> Vec<&str> {
    labels.iter().map(|label| &**label).collect()
}
