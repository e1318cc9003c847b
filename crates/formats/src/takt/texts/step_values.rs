//! The values that steps hand on to texts and rules: data of answers, and what system steps read and did.

use std::{cell::RefCell, collections::BTreeSet};

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{EFFECT_FIELDS, FieldPath, LIST_FIELDS, ReadKind, Source, SystemRead},
};
use serde_json::Value;

use crate::codes;
use crate::findings::Findings;
use crate::suggest::{find_nearest_name, quote_names};
use crate::takt::answer_schema::STRUCTURED;
use crate::takt::routing::condition::Condition;
use crate::takt::routing::expression::{Reference, Scope};
use crate::takt::routing::rules::Rule;

/// The field of a planned task that is made of others, if the answer does not have it.
pub(crate) const TASK_TEXT: &str = "task_markdown";
/// The fields that it is made of, with their headings.
pub(crate) const TASK_PARTS: [(&str, &str); 3] =
    [("summary", "Summary"), ("goals", "Goals"), ("acceptance_criteria", "Acceptance Criteria")];

/// The fields of what a system step reads that are lists.
const LISTS: [&str; 2] = ["labels", "comments"];

/// The end of the key of a list that is handed on as lines.
pub(crate) const LINES: &str = "@lines";

/// The key of a list that is handed on as lines.
pub(crate) fn lines_key(field: &str) -> String {
    format!("{field}{LINES}")
}

/// What the steps of a workflow hand on, and what of it is read.
#[derive(Debug, Default)]
pub(crate) struct StepValues {
    /// The steps whose answers hold data, with the schemas of these.
    pub(crate) structured: Vec<(Str, Value)>,
    pub(crate) system: Vec<SystemValues>,
    /// The values that are read: steps and keys.
    handed: RefCell<BTreeSet<(Str, Str)>>,
}

/// What a system step hands on.
#[derive(Debug)]
pub(crate) struct SystemValues {
    pub(crate) step: Str,
    pub(crate) reads: Vec<SystemRead>,
    pub(crate) effects: Vec<&'static str>,
}

/// Why a reference names nothing.
pub(crate) struct UnknownValue {
    /// What it names instead, after "names".
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl StepValues {
    /// The values that are read: steps and keys.
    pub(crate) fn handed(&self) -> BTreeSet<(Str, Str)> {
        self.handed.borrow().clone()
    }

    /// The step and the key of a value, which is handed on from now on. `prefixes`: what the names of steps begin with that are
    /// meant, in this order.
    ///
    /// # Errors
    /// When there is no such value.
    pub(crate) fn find(
        &self,
        reference: &Reference,
        prefixes: &[String],
    ) -> Result<(Str, Str), UnknownValue> {
        let Reference { scope, step, field } = reference;
        let names = |step: &str| prefixes.iter().map(|prefix| format!("{prefix}{step}")).collect::<Vec<_>>();
        let wanted = names(step);
        let (step, key): (&Str, Str) = match scope {
            Scope::Structured => {
                let known: Vec<&str> = self.structured.iter().map(|(name, _)| &**name).collect();
                let found = wanted
                    .iter()
                    .find_map(|name| self.structured.iter().find(|(known, _)| **known == **name));
                let Some((name, schema)) = found else {
                    return Err(unknown_step(step, &known, "with `structured_output`"));
                };
                check_field(schema, field)?;
                (name, field.as_str().into())
            }
            Scope::Context | Scope::Effect => {
                let is_meant = |known: &&SystemValues| match scope {
                    Scope::Context => !known.reads.is_empty(),
                    _ => !known.effects.is_empty(),
                };
                let known: Vec<&str> = self.system.iter().filter(is_meant).map(|one| &*one.step).collect();
                let found = wanted.iter().find_map(|name| self.system.iter().find(|one| *one.step == **name));
                let Some(found) = found.filter(is_meant) else {
                    let what =
                        if *scope == Scope::Context { "with `system_inputs`" } else { "with `effects`" };
                    return Err(unknown_step(step, &known, what));
                };
                match scope {
                    Scope::Context => check_read(found, field)?,
                    _ => check_effect(found, field)?,
                }
                (&found.step, format!("{}.{field}", scope.as_str()).into())
            }
        };
        self.hand_on(step, &key);
        Ok((step.clone(), key))
    }

    /// The title of the planned task whose text this is, if its answer has one.
    pub(crate) fn title_of_task(&self, text: &str, prefixes: &[String]) -> Option<Source> {
        let written = text.trim().strip_prefix("{structured:")?.strip_suffix('}')?;
        let task = Reference::parse(Scope::Structured, written).filter(|task| task.field == TASK_TEXT)?;
        let title = Reference { field: "title".to_owned(), ..task };
        let is_step = |name: &Str| prefixes.iter().any(|prefix| **name == *format!("{prefix}{}", title.step));
        let (_, schema) = self.structured.iter().find(|(name, _)| is_step(name))?;
        schema["properties"].get("title")?;
        let (step, key) = self.find(&title, prefixes).ok()?;
        Some(Source::Handoff { step, key })
    }

    /// Lets a step hand on a value.
    pub(crate) fn hand_on(&self, step: &Str, key: &Str) {
        self.handed.borrow_mut().insert((step.clone(), key.clone()));
    }

    /// Whether a value is the text of a planned task that is made of other fields of the answer.
    pub(crate) fn is_made_text(&self, reference: &Reference, prefixes: &[String]) -> bool {
        let Reference { scope: Scope::Structured, step, field } = reference else { return false };
        let is_step = |name: &Str| prefixes.iter().any(|prefix| **name == *format!("{prefix}{step}"));
        let has = |schema: &Value, field: &str| schema["properties"].get(field).is_some();
        field == TASK_TEXT
            && self.structured.iter().any(|(name, schema)| {
                is_step(name)
                    && !has(schema, TASK_TEXT)
                    && TASK_PARTS.iter().all(|(field, _)| has(schema, field))
            })
    }
}

fn unknown_step(step: &str, known: &[&str], what: &str) -> UnknownValue {
    UnknownValue {
        message: format!("`{step}` is no step {what}"),
        hint: match find_nearest_name(step, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("no step is one {what}"),
            None => format!("name one of {}", quote_names(known)),
        },
    }
}

fn unknown_field(what: &str, field: &str, known: &[&str]) -> UnknownValue {
    UnknownValue {
        message: format!("{what} has no `{field}`"),
        hint: match find_nearest_name(field, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "it has no fields".to_owned(),
            None => format!("it has {}", quote_names(known)),
        },
    }
}

/// Checks the fields that the answer alone decides about. Those of decisions are checked with all other values.
pub(crate) fn check_fields_of_rules(rules: &[&Rule<'_>], data: &Value, found: &Findings) {
    for rule in rules {
        let Condition::Field(path, _) = &rule.kind else { continue };
        let path = path.to_string();
        let field = path.strip_prefix(STRUCTURED).unwrap_or(&path).trim_start_matches('.');
        if let Err(unknown) = check_field(data, field) {
            let message = format!("`{}`: {}", rule.condition.text, unknown.message);
            let finding = Diagnostic::error(codes::INVALID_CONDITION, rule.condition.span, message);
            found.push(finding.hint(unknown.hint));
        }
    }
}

/// Checks a path into data, as far as their schema says what they can have.
fn check_field(schema: &Value, field: &str) -> Result<(), UnknownValue> {
    if FieldPath::parse(field).is_none() {
        return Ok(());
    }
    let (mut at, mut what) = (schema, "its `structured_output`".to_owned());
    for part in field.split('.') {
        let known: Vec<&str> = match (at["type"].as_str(), at["properties"].as_object()) {
            (Some("array"), _) if part.parse::<usize>().is_ok() => {
                at = &at["items"];
                continue;
            }
            (Some("array"), _) => LIST_FIELDS.to_vec(),
            (_, Some(properties)) if properties.contains_key(part) => {
                (at, what) = (&properties[part], format!("`{part}`"));
                continue;
            }
            (_, Some(properties)) if at["additionalProperties"] == false => {
                properties.keys().map(String::as_str).collect()
            }
            (Some("string" | "number" | "integer" | "boolean" | "null"), _) => Vec::new(),
            // The schema leaves it open.
            _ => return Ok(()),
        };
        return match known.contains(&part) {
            true => Ok(()),
            false => Err(unknown_field(&what, part, &known)),
        };
    }
    Ok(())
}

fn check_read(step: &SystemValues, field: &str) -> Result<(), UnknownValue> {
    let (name, rest) = field.split_once('.').unwrap_or((field, ""));
    let Some(read) = step.reads.iter().find(|read| *read.name == *name) else {
        let known: Vec<&str> = step.reads.iter().map(|read| &*read.name).collect();
        return Err(unknown_field(&format!("`{}`", step.step), name, &known));
    };
    let (first, below) = rest.split_once('.').unwrap_or((rest, ""));
    let is_list = matches!(read.what, ReadKind::PullRequests(_) | ReadKind::Issues { .. });
    let is_item = is_list && first.parse::<usize>().is_ok();
    if rest.is_empty() || is_item {
        return Ok(());
    }
    if read.what.fields().contains(&first) {
        let below = below.split('.').next().unwrap_or_default();
        let has_items = LISTS.contains(&first);
        let known = if has_items { &LIST_FIELDS[..] } else { &[] };
        let is_item = has_items && below.parse::<usize>().is_ok();
        return match below.is_empty() || is_item || known.contains(&below) {
            true => Ok(()),
            false => Err(unknown_field(&format!("`{first}`"), below, known)),
        };
    }
    let known = if is_list { &LIST_FIELDS[..] } else { read.what.fields() };
    Err(unknown_field(&format!("`{name}`"), first, known))
}

fn check_effect(step: &SystemValues, field: &str) -> Result<(), UnknownValue> {
    let (name, rest) = field.split_once('.').unwrap_or((field, ""));
    if !step.effects.contains(&name) {
        return Err(unknown_field(&format!("`{}`", step.step), name, &step.effects));
    }
    match EFFECT_FIELDS.contains(&rest) {
        true => Ok(()),
        false => Err(unknown_field(&format!("`{name}`"), rest, &EFFECT_FIELDS)),
    }
}
