//! Doing what an agent asked for in a block of its answer: by a program of the definition.

use std::time::Duration;

use cuegate_engine::{Completion, EffectCommand, Exec};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Local, exit, kept_programs::Given};
use crate::{error::Error, executor::Performed, prompt_text::lookup};

/// After how long such a program is killed: as long as a validator.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The variable that holds the effect's key: the same for the same effect however often it is begun.
const KEY: &str = "CUEGATE_EFFECT_KEY";

impl Local {
    /// Starts the program, or takes what a former start of it left complete. One that was cut off is started again, with
    /// the same key: it is for the program to do a thing once.
    pub(super) async fn effect(
        &self,
        command: EffectCommand,
        cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        let effect = &command.effect;
        let given = self.given(&command)?;
        let Some(finished) = self.kept(effect.id, &command.program, given, cut).await? else {
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

    fn given(&self, command: &EffectCommand) -> Result<Given, Error> {
        let effect = &command.effect;
        let value = lookup(&*self.setting.journal, &effect.value)?;
        let key = format!("{}/{}", self.setting.run, effect.id);
        let told = json!({
            "run": self.setting.run.to_string(),
            "key": key,
            "step": effect.step,
            "visit": effect.visit,
            "iteration": effect.iteration,
            "action": effect.action,
            "value": serde_json::from_str::<Value>(&value).unwrap_or(Value::String(value)),
        });
        Ok(Given { stdin: told.to_string(), env: vec![(KEY.into(), key.into())], timeout: TIMEOUT })
    }
}
