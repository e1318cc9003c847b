//! What a step's intents are called in the newer generation.

use cuegate_flow::FieldPath;
use serde_json::Value;

use super::super::generation::Generation;
use super::super::kinds::{Intent, StepKind};
use super::super::step::StepDefinition;
use super::super::transition::Transition;

/// The intents of a step that its agent can decide: what each was and what it is now.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// Where an answer holds its intent.
    pub(super) field: FieldPath,
    /// Older and newer intent.
    pairs: Vec<(Intent, Intent)>,
}

impl Words {
    /// The words of a step. `can_say` is what its schema lets its agent say. Intents that the newer generation does
    /// not allow such a step are left out.
    pub(super) fn of(step: &StepDefinition<'_>, field: FieldPath, can_say: &dyn Fn(Intent) -> bool) -> Words {
        let mut pairs: Vec<(Intent, Intent)> = Vec::new();
        for (intent, _) in step.gate.iter().flat_map(|gate| &gate.intents) {
            if !can_say(*intent) || pairs.iter().any(|(known, _)| known == intent) {
                continue;
            }
            pairs.extend(newer(*intent, step).map(|newer| (*intent, newer)));
        }
        Words { field, pairs }
    }

    /// The newer intents, each once.
    pub(super) fn intents(&self) -> Vec<Intent> {
        let mut intents: Vec<Intent> = Vec::new();
        for (_, newer) in &self.pairs {
            if !intents.contains(newer) {
                intents.push(*newer);
            }
        }
        intents
    }

    /// What an intent has become; nothing where the step cannot decide it any more.
    pub(super) fn get(&self, older: Intent) -> Option<Intent> {
        self.pairs.iter().find(|(known, _)| *known == older).map(|(_, newer)| *newer)
    }

    /// What an agent says now that said this; nothing where it can say it as before. What meant nothing there, and would
    /// mean something now, is turned into what means nothing.
    pub(super) fn said(&self, value: &Value) -> Option<String> {
        let word = value.as_str()?.trim().to_lowercase();
        let older = Generation::Complete.intent(&word).or_else(|| Generation::Complete.aliased(&word));
        let newer = match older {
            Some(Intent::Abort) => Some(Intent::Abort),
            Some(older) => self.get(older),
            None => None,
        };
        let understood = Generation::Closing.intent(&word).or_else(|| Generation::Closing.aliased(&word));
        let understood =
            understood.filter(|intent| *intent == Intent::Abort || self.intents().contains(intent));
        match newer {
            Some(newer) => (understood != Some(newer)).then(|| newer.as_str().to_owned()),
            None => understood.is_some().then(|| format!("no intent: {word}")),
        }
    }
}

/// What an intent of a step is called now.
fn newer(intent: Intent, step: &StepDefinition<'_>) -> Option<Intent> {
    let closes = step.kind == Some(StepKind::Closure);
    match (intent, closes) {
        (Intent::Complete, true) => Some(Intent::Closing),
        (Intent::Complete, false) => Some(Intent::Handoff),
        // A closure step goes back by `repeat` alone.
        (Intent::Next, true) => (!has(step, Intent::Repeat) || same_way(step)).then_some(Intent::Repeat),
        (Intent::Jump, true) => None,
        (other, _) => Some(other),
    }
}

fn has(step: &StepDefinition<'_>, intent: Intent) -> bool {
    step.gate.iter().flat_map(|gate| &gate.intents).any(|(known, _)| *known == intent)
}

/// Whether `next` and `repeat` lead to the same single step.
fn same_way(step: &StepDefinition<'_>) -> bool {
    let transition = |intent| step.transitions.iter().flatten().find(move |known| known.intent == intent);
    let only = |transition: &Transition<'_>| match &transition.rule {
        super::super::transition::Rule::Step(target) => Some(target.text.to_owned()),
        _ => None,
    };
    let (next, repeat) = (transition(Intent::Next).and_then(only), transition(Intent::Repeat).and_then(only));
    next.is_some() && next == repeat
}
