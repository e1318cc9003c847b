//! `fallbackIntent` acted in a run's first iteration only. The newer one acts at every visit of its step, so that the
//! entry gets a copy of itself for its first visit.

use cuegate_flow::{Act, Draft, Name, Source as Value, Step, Target};

use super::super::kinds::Intent;
use super::super::validators::targets_of;
use super::{Migration, Source};

/// The entry of a run, whose fallback acts.
#[derive(Debug)]
pub(super) struct First {
    /// The step.
    pub(super) id: String,
    /// What it falls back to, in the older words.
    pub(super) intent: Intent,
    /// What the copy for the first visit is called; `None` where the step itself serves.
    pub(super) copy: Option<String>,
    /// Whether it acts at later visits as well, because the step cannot have a copy.
    stays: bool,
    /// Whether it acts when validators send work back to it.
    remedied: bool,
}

/// The entry, when it falls back to something.
pub(super) fn first(source: &Source<'_, '_, '_>) -> Option<First> {
    let draft = &source.loaded.draft;
    let entry = draft.entry.as_ref()?;
    let step = source.registry.steps.iter().find(|step| *step.id == *entry.text)?;
    let (intent, _) = step.gate.as_ref()?.fallback?;
    let again = draft.steps.iter().any(|other| leads_to(other, step.id));
    let remedied = draft.steps.iter().any(|other| sends_back_to(other, step.id));
    let stays = again && is_read(draft, step.id);
    let taken = |name: &String| draft.steps.iter().any(|step| *step.name == **name);
    let mut names =
        std::iter::successors(Some(format!("{}.first", step.id)), |name| Some(format!("{name}.first")));
    let copy = names.find(|name| !taken(name)).filter(|_| again && !stays);
    Some(First { id: step.id.to_owned(), intent, copy, stays, remedied })
}

fn sends_back_to(step: &Step<Name>, id: &str) -> bool {
    step.edges.iter().any(|edge| match &edge.to {
        Target::Origin { among } => among.iter().any(|name| *name.text == *id),
        _ => false,
    })
}

/// Whether a step leads to the entry, but for work that is sent back.
fn leads_to(step: &Step<Name>, id: &str) -> bool {
    !sends_back_to(step, id) && targets_of(step).any(|target| *target.text == *id)
}

/// Whether what a step leaves is read: then it has to be left under one name.
fn is_read(draft: &Draft, id: &str) -> bool {
    let reads = |source: &&Value| matches!(source, Value::Handoff { step, .. } if **step == *id);
    draft.steps.iter().any(|step| {
        let prompt = match &step.act {
            Act::Ask(ask) => ask.prompt.sources().iter().any(reads),
            _ => false,
        };
        let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
        prompt
            || remedies.into_iter().any(|remedy| remedy.sources().iter().any(reads))
            || step.inputs.iter().any(|input| *input.step == *id)
    })
}

/// Says what the newer fallback does besides.
pub(super) fn note(first: &First, migration: &mut Migration) {
    let place = format!("steps.{}", first.copy.as_ref().unwrap_or(&first.id));
    let word = first.intent.as_str();
    let text = format!(
        "`fallbackIntent` `{word}` also stands in for an answer that names an intent and is wrong otherwise, which ended the \
         run before: make `failFast` true and remove it where that is worse than no fallback"
    );
    migration.note(&place, text, true);
    if first.stays {
        let text = format!(
            "`fallbackIntent` `{word}` acts at every visit and no longer at the first only: the step cannot have a copy for \
             its first visit, because others read what it leaves"
        );
        migration.note(&place, text, true);
    } else if first.remedied {
        let text = format!(
            "`fallbackIntent` `{word}` acts as well when validators send work back to this step; it acted in the first \
             iteration only"
        );
        migration.note(&place, text, true);
    } else if let Some(copy) = &first.copy {
        let text =
            format!("`{copy}` stands for the first visit of `{}`, where its `fallbackIntent` acts", first.id);
        migration.note(&place, text, false);
    }
}
