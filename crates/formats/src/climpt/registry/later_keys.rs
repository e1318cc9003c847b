//! Keys of the registries of Climpt 1.13.27 and later, converted to those of the "closing" generation, which say the same.
//! All places are kept, so that each setting has one reader.

use std::sync::Arc;

use cuegate_flow::diagnostics::Diagnostic;

use crate::climpt::kinds::StepKind;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Json, Kind};

/// The parts of an address that belong to a step itself.
const PARTS: [&str; 4] = ["c2", "c3", "edition", "adaptation"];

/// The registry with the keys of the "closing" generation.
pub(crate) fn convert_later_keys(registry: &Json, found: &Findings) -> Arc<Json> {
    let mut json = registry.clone();
    let c1 = json.get("c1").and_then(Json::as_text).map(str::to_owned);
    let mut addressed = None;
    for_each_entry(&mut json, "steps", |step| {
        let is_kind = |json: &Json| json.as_text().is_some_and(|word| StepKind::WORDS.contains(&word));
        if step.value.get("kind").is_some_and(is_kind) {
            rename_key(&mut step.value, "kind", "stepKind");
        }
        flatten_address(step, c1.as_deref(), &mut addressed, found);
    });
    if let (None, Some(c1), Kind::Object(entries)) = (&c1, addressed, &mut json.kind) {
        entries.push(c1);
    }
    for_each_entry(&mut json, "entryStepMapping", |entry| entries_of(entry, found));
    for_each_entry(&mut json, "validators", |validator| {
        // Which list names a validator says when it runs.
        let is_known = |json: &Json| matches!(json.as_text(), Some("postllm" | "preflight"));
        if validator.value.get("phase").is_some_and(is_known) {
            remove_entry(&mut validator.value, "phase");
        }
    });
    for_each_entry(&mut json, "validationSteps", |validation| convert_conditions(validation, found));
    Arc::new(json)
}

/// Moves the parts of `address` into the step. The first part is the registry's.
fn flatten_address(step: &mut Entry, c1: Option<&str>, first: &mut Option<Entry>, found: &Findings) {
    if !step.value.get("address").is_some_and(|address| matches!(address.kind, Kind::Object(_))) {
        return;
    }
    let Some(mut address) = remove_entry(&mut step.value, "address") else { return };
    for part in PARTS {
        let Kind::Object(entries) = &mut step.value.kind else { return };
        if entries.iter().all(|entry| &*entry.key != part) {
            entries.extend(remove_entry(&mut address.value, part));
        }
    }
    if let Some(own) = remove_entry(&mut address.value, "c1") {
        let known = c1.or_else(|| first.as_ref().and_then(|entry| entry.value.as_text()));
        match (own.value.as_text(), known) {
            (Some(own), Some(known)) if own == known => {}
            (Some(own_c1), Some(known)) => {
                let message = format!("`c1` of `{}` is `{own_c1}`, that of other steps `{known}`", step.key);
                let finding = Diagnostic::error(codes::UNSUPPORTED_YET, own.value.span, message);
                found.push(finding.hint("keep the prompts of all steps in one folder"));
            }
            _ => *first = Some(own),
        }
    }
    // Keys that remain have no meaning: the reader of steps reports `address` as unknown.
    if let (false, Kind::Object(entries)) = (address.value.pairs().is_empty(), &mut step.value.kind) {
        entries.push(address);
    }
}

/// Replaces `{initial, continuation}` by the first: later iterations begin where the transitions lead.
fn entries_of(entry: &mut Entry, found: &Findings) {
    let Some(initial) = entry.value.get("initial").filter(|initial| initial.as_text().is_some()).cloned()
    else {
        return;
    };
    if let Some(other) = entry.value.get("continuation").filter(|next| next.as_text() != initial.as_text()) {
        let statement = format!("`continuation` of `{}` is not used: the transitions lead on", entry.key);
        found.left_out(other.span, statement, "let a transition lead to it");
    }
    entry.value = initial;
}

/// Renames the conditions after an answer. Those before it are refused, because a run must not start without them.
fn convert_conditions(validation: &mut Entry, found: &Findings) {
    rename_key(&mut validation.value, "postLLMConditions", "validationConditions");
    if let Some(Json { kind: Kind::List(conditions), .. }) =
        get_mut(&mut validation.value, "validationConditions")
    {
        for condition in conditions {
            if condition.get("params").is_some_and(is_empty_object) {
                remove_entry(condition, "params");
            }
        }
    }
    let Some(Json { kind: Kind::List(before), .. }) = validation.value.get("preflightConditions") else {
        return;
    };
    let has_some = !before.is_empty();
    if let Some(before) = remove_entry(&mut validation.value, "preflightConditions").filter(|_| has_some) {
        let message = format!("`preflightConditions` of `{}` are not supported yet", validation.key);
        let finding = Diagnostic::error(codes::UNSUPPORTED_YET, before.key_span, message);
        found.push(finding.hint("check them before the run, or in `postLLMConditions`"));
    }
}

fn is_empty_object(json: &Json) -> bool {
    matches!(&json.kind, Kind::Object(entries) if entries.is_empty())
}

/// Does something with each entry of a map.
fn for_each_entry(json: &mut Json, key: &str, mut with: impl FnMut(&mut Entry)) {
    if let Some(Json { kind: Kind::Object(entries), .. }) = get_mut(json, key) {
        entries.iter_mut().for_each(&mut with);
    }
}

fn get_mut<'j>(json: &'j mut Json, key: &str) -> Option<&'j mut Json> {
    let Kind::Object(entries) = &mut json.kind else { return None };
    entries.iter_mut().find(|entry| &*entry.key == key).map(|entry| &mut entry.value)
}

fn remove_entry(json: &mut Json, key: &str) -> Option<Entry> {
    let Kind::Object(entries) = &mut json.kind else { return None };
    let at = entries.iter().position(|entry| &*entry.key == key)?;
    Some(entries.remove(at))
}

/// Renames a key, unless the object has the other one too.
fn rename_key(json: &mut Json, from: &str, to: &str) {
    if json.get(to).is_some() {
        return;
    }
    let Kind::Object(entries) = &mut json.kind else { return };
    if let Some(entry) = entries.iter_mut().find(|entry| &*entry.key == from) {
        entry.key = to.into();
    }
}
