//! How the gates of the older definition read the answers of a script.

use cuegate_dialect::OlderAnswers;
use cuegate_engine::{Reading, found, read};
use cuegate_flow::{Flow, Outcome, Step, StepId};
use serde_json::Value;

/// The older flow.
pub(super) struct Older<'f>(pub(super) &'f Flow);

impl Older<'_> {
    fn step(&self, name: &str) -> Option<&Step<StepId>> {
        self.0.find(name).map(|id| self.0.step(id))
    }
}

impl OlderAnswers for Older<'_> {
    fn object(&self, step: &str, text: &str) -> Option<Value> {
        found(self.0, self.step(step)?, None, text)
    }

    fn passes(&self, check: &str, output: Option<&Value>, text: &str) -> bool {
        let Some(step) = self.step(check) else { return false };
        let reading = read(self.0, step, output, text, 0);
        matches!(reading, Ok(Reading::Outcome { outcome: Outcome::Named(name), .. }) if *name == *"ok")
    }
}
