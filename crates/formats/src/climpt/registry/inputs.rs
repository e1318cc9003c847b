//! Reads the inputs of a step: `"inputs": { "approach": { "from": "initial.issue.approach" } }`.

use std::collections::HashMap;
use std::sync::OnceLock;

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{Input, Param},
};
use serde_json::Value;

use super::gate_lowering::handoff_of;
use super::index::StepIndex;
use super::step_definition::StepDefinition;
use crate::climpt::agent::parameters::normalize_variable_name;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Fields, Json};

/// An input, and the second variable name that reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredInput {
    pub input: Input,
    /// Step and key in one word: `initial_issue_approach`.
    pub variable: String,
}

impl DeclaredInput {
    /// What remains of a declaration with an unreadable source: the name. Prompts that read it are correct, so the
    /// error is reported once.
    fn unreadable(entry: &Entry) -> DeclaredInput {
        let (name, nothing) = (entry.key.clone(), Str::from(""));
        let span = entry.value.span;
        let (step, key) = (nothing.clone(), nothing);
        DeclaredInput {
            variable: String::new(),
            input: Input { name, step, key, required: true, default: None, span },
        }
    }

    /// Whether its source could be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.input.step.is_empty()
    }
}

/// Reads the inputs of a step, in a registry of these steps with their index. The result includes unreadable inputs.
pub(crate) fn read_inputs(
    id: &str,
    entries: &[&Entry],
    (kept, index): (&HandoffNames<'_, '_>, &StepIndex<'_>),
    found: &Findings,
) -> Vec<DeclaredInput> {
    let mut inputs = Vec::new();
    for entry in entries {
        let Some(mut declared) = read_input(id, entry, index, found) else {
            inputs.push(DeclaredInput::unreadable(entry));
            continue;
        };
        // The whole path may name a field that is stored under its last segment.
        if let Some(key) = index.place(&declared.input.step).and_then(|at| kept.key(at, &declared.input.key))
        {
            declared.input.key = key;
        }
        inputs.push(declared);
    }
    inputs
}

/// The storage names of handoff values, computed once for each step that an input reads from.
pub(crate) struct HandoffNames<'s, 'j> {
    steps: &'s [StepDefinition<'j>],
    /// By step: the storage name of each path that is not a name itself.
    by_path: Vec<OnceLock<HashMap<String, Str>>>,
}

impl<'s, 'j> HandoffNames<'s, 'j> {
    /// The storage names of these steps.
    pub(crate) fn of(steps: &'s [StepDefinition<'j>]) -> HandoffNames<'s, 'j> {
        HandoffNames { steps, by_path: steps.iter().map(|_| OnceLock::new()).collect() }
    }

    /// The name under which a step stores the value at a path, if the path is not a name itself.
    fn key(&self, at: usize, path: &str) -> Option<Str> {
        let find = || {
            let left = handoff_of(&self.steps[at]);
            let mut by_path = HashMap::new();
            for left in &left {
                by_path.entry(left.path.to_string()).or_insert_with(|| left.key.clone());
            }
            left.iter().for_each(|left| _ = by_path.remove(&*left.key));
            by_path
        };
        self.by_path[at].get_or_init(find).get(path).cloned()
    }
}

fn read_input(id: &str, entry: &Entry, steps: &StepIndex<'_>, found: &Findings) -> Option<DeclaredInput> {
    let fields = Fields::of(&entry.value, &format!("`inputs.{}`", entry.key), Some(id), found)?;
    let from = fields.required("from");
    let written = fields.boolean("required");
    // An unreadable `required` may be `false`.
    let required = written.map_or(fields.nullable("required").is_none(), |(required, _)| required);
    let default = fields.entry("default").and_then(|default| {
        let text = default.value.scalar_text();
        if text.is_none() {
            fields.wrong_type("default", &default.value, "a text, a number or `true` or `false`");
        }
        text
    });
    if let (Some((true, span)), Some(_)) = (written, &default) {
        let message = format!("`{}` has a default, so `required` has no effect", entry.key);
        fields.push(
            Diagnostic::warning(codes::UNUSED_KEY, span, message).hint("remove `required`, or the default"),
        );
    }
    let from = from.and_then(|from| {
        let parts = split_step_and_key(from.text, steps);
        if parts.is_none() {
            let message = format!("`{}` names no step and key", from.text);
            fields.push(
                Diagnostic::error(codes::INVALID_VALUE, from.span, message)
                    .hint("write the step's name, a dot and the name the data is left under"),
            );
        }
        parts.map(|(step, key)| (step, key, from.span))
    });
    fields.finish();
    let (step, key, span) = from?;
    Some(DeclaredInput {
        variable: variable_of(step, key),
        input: Input { name: entry.key.clone(), step: step.into(), key: key.into(), required, default, span },
    })
}

/// Values that every run has, by the names under which prompts read them.
const OF_EVERY_RUN: [&str; 6] =
    ["iteration", "completed_iterations", "max_iterations", "remaining", "previous_summary", "task"];

/// Reports inputs that hide a parameter of the same name: prompts of their step cannot read it any more.
pub(crate) fn check_shadows(inputs: &[(&str, Vec<DeclaredInput>)], params: &[Param], found: &Findings) {
    let mut by_name = HashMap::new();
    for param in params {
        by_name.entry(normalize_variable_name(&param.name)).or_insert(param);
    }
    for (step, DeclaredInput { input, .. }) in
        inputs.iter().flat_map(|(step, inputs)| inputs.iter().map(move |input| (step, input)))
    {
        let param = by_name.get(&normalize_variable_name(&input.name));
        let message = match (param, OF_EVERY_RUN.into_iter().find(|known| *known == &*input.name)) {
            (Some(param), _) => {
                format!("the input `{}` of `{step}` hides the parameter `{}`", input.name, param.name)
            }
            (None, Some(known)) => format!("the input `{known}` of `{step}` hides what every run calls so"),
            (None, None) => continue,
        };
        found.push(
            Diagnostic::warning(codes::SHADOWED_VARIABLE, input.span, message)
                .step(step)
                .hint("give the input another name"),
        );
    }
}

/// Splits `from` into step and key: the longest step name that it begins with, else the text before the last dot.
fn split_step_and_key<'t>(from: &'t str, steps: &StepIndex<'_>) -> Option<(&'t str, &'t str)> {
    match steps.prefix(from) {
        Some(step) => Some((&from[..step.len()], &from[step.len() + 1..])),
        None => from.rsplit_once('.').filter(|(step, key)| !step.is_empty() && !key.is_empty()),
    }
}

/// The inputs that an `inputs` object declares, in a registry of these steps, and the variables that read them.
pub fn expand_inputs(inputs: &Value, steps: &[&str]) -> (Vec<DeclaredInput>, Vec<Diagnostic>) {
    let (found, json) = (Findings::default(), Json::from(inputs));
    let steps = StepIndex::of(steps.iter().copied());
    let declared = json.pairs().iter().filter_map(|entry| read_input("", entry, &steps, &found)).collect();
    (declared, found.into_parts().0)
}

/// The variable that reads a handoff value of a step: `initial_issue_approach`.
pub(crate) fn variable_of(step: &str, key: &str) -> String {
    format!("{step}_{key}").replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::expand_inputs;
    use serde_json::json;

    #[test]
    fn from_is_split_at_the_longest_step() {
        let steps = ["initial", "initial.issue", "s_a"];
        let cases = [
            ("initial.issue.approach", "initial.issue", "approach", "initial_issue_approach"),
            ("initial.issue.progress.done", "initial.issue", "progress.done", "initial_issue_progress_done"),
            ("initial.other", "initial", "other", "initial_other"),
            ("missing.step.count", "missing.step", "count", "missing_step_count"),
            ("s_a.finding", "s_a", "finding", "s_a_finding"),
        ];
        for (from, step, key, variable) in cases {
            let (declared, found) = expand_inputs(&json!({"x": {"from": from}}), &steps);
            assert!(found.is_empty(), "{from}");
            let input = &declared[0].input;
            assert_eq!((&*input.step, &*input.key, declared[0].variable.as_str()), (step, key, variable));
            assert!(input.required && input.default.is_none(), "required unless said otherwise");
        }
    }

    #[test]
    fn what_names_no_key_is_said() {
        for from in ["nokey", ".x", "x."] {
            let (declared, found) = expand_inputs(&json!({"bad": {"from": from}}), &[]);
            assert!(declared.is_empty());
            assert_eq!(found[0].code, "invalid-value");
        }
        let (declared, _) =
            expand_inputs(&json!({"n": {"from": "a.b", "required": false, "default": 3}}), &[]);
        assert_eq!(declared[0].input.default.as_deref(), Some("3"));
    }
}
