//! Runs effects: a program of the definition performs what an agent requested in an action block.

use std::time::Duration;

use cuegate_engine::{CommandId, Completion, EffectCommand, Exec, Exit, FinalizeStep};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Local, Setting, exit, kept_programs::ProgramInput};
use crate::{error::Error, executor::Performed, prompt_text::lookup, worktree::finalize};

/// The time limit of an effect program, the same as for validators.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The variable with the idempotency key of the effect, which stays the same when the program is started again.
const KEY: &str = "CUEGATE_EFFECT_KEY";

impl Local {
    /// Runs the program, or adopts the complete result of a former start. A program that was cut off is started again
    /// with the same key; the program must avoid doing the work twice.
    pub(super) async fn effect(
        &self,
        command: EffectCommand,
        cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        let effect = &command.effect;
        let program = match (effect.finalize, &command.program) {
            (Some(step), _) => return self.finalize(effect.id, step).await.map(Some),
            (None, Some(program)) => program,
            (None, None) => return Ok(None),
        };
        let input = self.program_input(&command)?;
        let Some(finished) = self.run_program(effect.id, program, input, cut).await? else {
            return Ok(None);
        };
        let seen = self.seen(command.tree.as_ref()).await?;
        let exec = Exec {
            exit: exit(&finished),
            stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
            duration_ms: finished.elapsed_ms,
        };
        let completion = Completion::Acted { id: effect.id, exec, seen };
        Ok(Some(Performed { completion, texts: Vec::new() }))
    }

    /// Commits, merges or pushes the work of the run.
    async fn finalize(&self, id: CommandId, step: FinalizeStep) -> Result<Performed, Error> {
        let Setting { run, home, work, branch, finalize: plan, .. } = &self.setting;
        let (run, repo, work) = (run.clone(), home.root().to_owned(), work.clone());
        let (branch, plan) = (branch.clone().unwrap_or_default(), plan.clone());
        let began = std::time::Instant::now();
        let done = tokio::task::spawn_blocking(move || {
            let at = finalize::Branches { work: &work, branch: &branch, base: plan.base.as_deref() };
            let message = format!("{}\n\nRun {run} of cuegate.", plan.subject);
            match step {
                FinalizeStep::Commit => finalize::commit(&at, &message),
                FinalizeStep::Merge => finalize::merge(&repo, &at, &message),
                FinalizeStep::Push => finalize::push(&repo, &at, &plan.remote),
            }
        });
        let done = done.await.map_err(|error| Error::Io {
            doing: "finish",
            path: home.root().to_owned(),
            source: std::io::Error::other(error),
        })??;
        let (exit, stdout, stderr) = match done {
            Ok(did) => (Exit::Code(0), did, String::new()),
            Err(why) => (Exit::Code(1), String::new(), why),
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let exec = Exec { exit, stdout, stderr, duration_ms };
        let seen = self.seen(None).await?;
        Ok(Performed { completion: Completion::Acted { id, exec, seen }, texts: Vec::new() })
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
