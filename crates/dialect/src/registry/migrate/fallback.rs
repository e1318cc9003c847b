//! `fallbackIntent` acted in a run's first iteration only. The newer one acts at every visit of its step, so that the
//! entry gets a copy of itself for its later visits.

use cuegate_flow::{Act, Draft, Name, Source as Value, Step, Target};

use serde_json::json;

use super::super::kinds::{Intent, StepKind};
use super::super::validators::targets_of;
use super::{Migration, Source};

/// The entry of a run, whose fallback acts.
#[derive(Debug)]
pub(super) struct First {
    /// The step.
    pub(super) id: String,
    /// What it falls back to, in the older words.
    pub(super) intent: Intent,
    /// What the copy for later visits is called, where there is one.
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
    // Who names it in an answer means the one step of that name; so does who reads what it leaves, or guards it.
    let named = draft.steps.iter().any(|other| jumps_to(other, step.id)) || is_read(draft, step.id);
    let stays = again && (named || step.kind == Some(StepKind::Closure));
    let taken = |name: &String| draft.steps.iter().any(|step| *step.name == **name);
    let longer = |name: &String| Some(format!("{name}.again"));
    let mut names = std::iter::successors(longer(&step.id.to_owned()), longer);
    let copy = names.find(|name| !taken(name)).filter(|_| again && !stays);
    Some(First { id: step.id.to_owned(), intent, copy, stays, remedied })
}

/// Leads transitions to the entry on to its copy.
pub(super) fn redirect(step: &mut serde_json::Value, first: Option<&First>) {
    let Some(First { id, copy: Some(copy), .. }) = first else { return };
    let lead = |target: &mut serde_json::Value| {
        if target.as_str() == Some(id) {
            *target = json!(copy);
        }
    };
    let transitions = step.get_mut("transitions").and_then(serde_json::Value::as_object_mut);
    for rule in transitions.into_iter().flat_map(|rules| rules.values_mut()) {
        rule.get_mut("target").into_iter().for_each(lead);
        let targets = rule.get_mut("targets").and_then(serde_json::Value::as_object_mut);
        targets.into_iter().flat_map(|targets| targets.values_mut()).for_each(lead);
    }
}

fn jumps_to(step: &Step<Name>, id: &str) -> bool {
    step.edges.iter().any(|edge| match &edge.to {
        Target::Jump { among, .. } => among.iter().any(|name| *name.text == *id),
        _ => false,
    })
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
    let First { id, intent, copy, stays, remedied } = first;
    let (place, word) = (format!("steps.{id}"), intent.as_str());
    let text = format!(
        "`fallbackIntent` `{word}` also stands in for an answer that names an intent and is wrong otherwise, which ended the \
         run before: remove it, with `failFast`, where that is worse than no fallback"
    );
    migration.note(&place, text, true);
    if *stays {
        let text = format!(
            "`fallbackIntent` `{word}` acts at every visit and not at the first only: others name this step, so that it \
             cannot have a copy for its later visits"
        );
        migration.note(&place, text, true);
    } else if *remedied {
        let text = format!(
            "`fallbackIntent` `{word}` acts as well when validators send work back to this step; it acted in the first \
             iteration only"
        );
        migration.note(&place, text, true);
    }
    if let Some(copy) = copy {
        let text =
            format!("`{copy}` stands for its later visits, at which its `fallbackIntent` does not act");
        migration.note(&place, text, false);
    }
}
