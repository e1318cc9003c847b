//! Doing what an agent asked for in a block of its answer: by a program of the definition.

use std::time::{Duration, SystemTime};

use cuegate_engine::{Completion, EffectCommand, Exec};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Local, exit, former_start, is_cut};
use crate::{
    error::Error,
    performer::Performed,
    process::{self, Launch},
    prompt::lookup,
};

/// After how long such a program is killed: as long as a validator.
const TIMEOUT: Duration = Duration::from_secs(600);

/// How many bytes it may print: all of it goes into the journal.
const OUTPUT_MAX: u64 = 1 << 20;

/// The variable that holds the effect's key: the same for the same effect however often it is begun.
const KEY: &str = "CUEGATE_EFFECT_KEY";

impl Local {
    /// Starts the program, or takes what a former start of it left complete. One that was cut off is started again, with
    /// the same key: it is for the program to do a thing once.
    pub(super) async fn effect(
        &self,
        command: EffectCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        let effect = &command.effect;
        let dir = self.setting.home.command(&self.setting.run, effect.id);
        let finished = match process::adopt(&dir).await? {
            Some(finished) => finished,
            None => {
                self.after_cut(former_start(&dir)).await?;
                let launch = self.launch(&command)?;
                let begun = SystemTime::now();
                let mut child = process::start(&self.setting.shim, &dir, &launch).await?;
                let finished = loop {
                    tokio::select! {
                        line = child.line() => if line.is_none() { break child.wait().await?; },
                        () = is_cut(&mut cut) => break child.cancel().await?,
                    }
                };
                if finished.cut {
                    return Ok(None);
                }
                if finished.timed_out || finished.capped {
                    self.after_cut(Some(begun)).await?;
                }
                finished
            }
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

    fn launch(&self, command: &EffectCommand) -> Result<Launch, Error> {
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
        Ok(Launch {
            env: vec![(KEY.into(), key.into())],
            stdin: told.to_string().into_bytes(),
            timeout: Some(TIMEOUT),
            output_max: OUTPUT_MAX,
            ..Launch::new(self.setting.home.root().join(&*effect.path), self.setting.work.clone())
        })
    }
}
