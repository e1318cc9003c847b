//! The schema of a step's answer: resolved, compared with what the gate allows, with `abort` added.

use std::borrow::Cow;
use std::collections::HashMap;

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{FieldPath, KeyLookup, Schema},
};
use serde_json::Value;

use super::allow_abort::{bars_abort, excuse_abort, list_abort};
use super::satisfiable::{WrittenSchema, check_presence, intent_places, list_values, pointer_of};
use super::step_id::check_step_id;
use super::unsatisfiable_intents::check_bars;
use crate::climpt::generation::Generation;
use crate::climpt::kinds::Intent;
use crate::climpt::registry::step_definition::{GateDefinition, SchemaReference, StepDefinition};
use crate::climpt::schemas::answer_words::{bind_step_id, check_words, say_intents};
use crate::codes;
use crate::schemas::close_object_schemas;
use crate::schemas::{SchemaFault, UnresolvedSchema, resolve_in_draft};
use crate::source::files::join_path;
use crate::source::loader::SourceLoader;
use crate::source::shared::SharedCell;
use crate::suggest::{find_nearest_name, or_hint, quote_names};
use crate::values::json::{Entry, Text};

/// Schemas by file, name and the places of intents; each with the file that it was found in.
type SchemasByReference = HashMap<(String, String, Vec<String>), (Schema, Str)>;

/// The schemas of the answers of a registry's steps. Many steps may name the same one, which is then made once.
pub(crate) struct AnswerSchemas<'a, 'f> {
    bases: Vec<String>,
    loader: &'a SourceLoader<'f>,
    known: SharedCell<SchemasByReference>,
}

impl<'a, 'f> AnswerSchemas<'a, 'f> {
    /// The schemas in files below some bases.
    pub(crate) fn new(bases: Vec<String>, loader: &'a SourceLoader<'f>) -> AnswerSchemas<'a, 'f> {
        AnswerSchemas { bases, loader, known: SharedCell::default() }
    }

    /// The schema of a step's answer, when all is well with it; findings say what is not.
    pub(crate) fn schema(&self, step: &StepDefinition<'_>) -> Option<Schema> {
        let (reference, loader) = (step.schema?, self.loader);
        let (mut schema, file) = self.shared(step, &reference)?;
        let written = WrittenSchema { step: step.id, reference: &reference, file: &file, loader };
        if !check_step_id(step, schema.value(), &written, || names_in(&reference, &self.bases, loader)) {
            return None;
        }
        let mut lists_intents = true;
        if let Some(gate) = &step.gate {
            // That `abort` is there already changes nothing: it counts on neither side.
            if let Some(pointer) = gate.schema_pointer.filter(|_| !gate.misread) {
                lists_intents = check_intents(step, gate, pointer, schema.value(), loader);
            }
        }
        if step.generation == Generation::Complete {
            schema = for_step(step, &written, schema)?;
        }
        if let Some(gate) = &step.gate {
            check_field(step.id, gate, &schema, loader);
            if !check_bars(step, gate, &schema, loader) && lists_intents {
                check_presence(step, gate, &schema, loader);
            }
            check_target(step.id, gate, &schema, loader);
            let open = || self.resolve(step, &reference).and_then(|(open, _)| Schema::new(open).ok());
            check_handoff(step.id, gate, &schema, open, loader);
            for place in intent_places(gate) {
                if bars_abort(&schema, &place) {
                    let mut sent = schema.value().clone();
                    excuse_abort(&mut sent, &place);
                    schema = Schema::new(sent).unwrap_or(schema);
                }
            }
        }
        Some(schema)
    }

    /// What is the same for all steps that name a schema and have their intents at the same places in it.
    fn shared(&self, step: &StepDefinition<'_>, reference: &SchemaReference<'_>) -> Option<(Schema, Str)> {
        let places: Vec<String> = step.gate.iter().flat_map(intent_places).collect();
        let key = (reference.file.text.to_owned(), reference.schema.text.to_owned(), places);
        if let Some(known) = self.known.lock().get(&key) {
            return Some(known.clone());
        }
        let (mut open, file) = self.resolve(step, reference)?;
        close_object_schemas(&mut open);
        let written = WrittenSchema { step: step.id, reference, file: &file, loader: self.loader };
        let closed = compile_schema(&written, open)?;
        if !written.admits(&closed) {
            return None;
        }
        let mut sent = closed.into_value();
        for place in &key.2 {
            list_values(&mut sent, place);
            if step.generation != Generation::Complete {
                list_abort(&mut sent, place);
            }
        }
        let found = (compile_schema(&written, sent)?, Str::from(file.as_str()));
        self.known.lock().insert(key, found.clone());
        Some(found)
    }

    fn resolve(&self, step: &StepDefinition<'_>, reference: &SchemaReference<'_>) -> Option<(Value, String)> {
        let (bases, loader) = (self.bases.as_slice(), self.loader);
        let mut fault = None;
        for base in bases {
            match resolve_in_draft(loader, base, reference.file.text, reference.schema.text) {
                Ok(value) => {
                    return Some((value, join_path(base, reference.file.text)?));
                }
                // The next base is for files that are not in this one, not for schemas that are wrong here.
                Err(broken) if matches!(broken.fault, SchemaFault::NoFile(_)) => {
                    fault = fault.or(Some(broken))
                }
                Err(other) => {
                    fault = Some(other);
                    break;
                }
            }
        }
        let UnresolvedSchema { fault, at } = fault?;
        // Two failures in a row would have stopped a run under this name; here it does not begin.
        let message = match step.generation {
            Generation::Complete => format!("FAILED_SCHEMA_RESOLUTION: {fault}"),
            Generation::Closing | Generation::Check => fault.to_string(),
        };
        // What is wrong in the file of the schema stands there, for whichever steps it is.
        let (file, schema) = (at.unwrap_or(reference.file.span), at.unwrap_or(reference.schema.span));
        let finding = match &fault {
            // What is wrong with the file has been said, once.
            SchemaFault::Unreadable(_) => return None,
            SchemaFault::Escapes(_) => Diagnostic::error(codes::ESCAPES_ROOT, file, message)
                .hint("keep schemas below the schema base"),
            SchemaFault::NoFile(_) if at.is_some() => {
                Diagnostic::error(codes::UNRESOLVED_SCHEMA, file, message)
                    .hint("correct the `$ref`: it names a file beside the one that it stands in")
            }
            SchemaFault::NoFile(_) => Diagnostic::error(codes::UNRESOLVED_SCHEMA, file, message)
                .hint("name a file below the schema base"),
            // What the step itself names, or what a reference in that schema does.
            SchemaFault::Malformed { .. } | SchemaFault::NotFound { .. } if at.is_some() => {
                Diagnostic::error(codes::UNRESOLVED_SCHEMA, schema, message)
                    .hint("correct the `$ref`, or define what it names")
            }
            SchemaFault::Malformed { .. } | SchemaFault::NotFound { .. } => {
                let finding = Diagnostic::error(codes::UNRESOLVED_SCHEMA, schema, message);
                let name = "name a key of `definitions`, of `$defs` or of the top level, or give a pointer like `#/$defs/name`";
                let known = names_in(reference, bases, loader);
                let known = known.iter().map(String::as_str);
                or_hint(finding, reference.schema.text, known, || name.to_owned())
            }
            SchemaFault::External(_) => Diagnostic::error(codes::UNRESOLVED_SCHEMA, schema, message)
                .hint("copy that schema into a file"),
            SchemaFault::Circular(_) | SchemaFault::TooMuch(_) => {
                Diagnostic::error(codes::UNRESOLVED_SCHEMA, schema, message)
                    .hint("an answer is sent a finite schema: unroll it")
            }
        };
        loader.found.push(finding.step(step.id));
        None
    }
}

/// What the "complete" generation binds to one step.
fn for_step(step: &StepDefinition<'_>, written: &WrittenSchema<'_, '_>, shared: Schema) -> Option<Schema> {
    let mut sent = shared.into_value();
    bind_step_id(step, written.reference, &mut sent, written.loader);
    if let Some(gate) = &step.gate {
        if let Some(pointer) = gate.schema_pointer {
            list_abort(&mut sent, pointer.text.trim_start_matches('#'));
        }
        if let Some((field, _)) = &gate.field {
            let pointer = pointer_of(field);
            if !gate.misread {
                check_words(step, gate, &pointer, &sent, written.loader);
            }
            say_intents(&mut sent, &pointer);
            list_abort(&mut sent, &pointer);
        }
    }
    compile_schema(written, sent)
}

/// The names of the schemas in the first file that is there, as pointers where a pointer is written.
fn names_in(reference: &SchemaReference<'_>, bases: &[String], loader: &SourceLoader<'_>) -> Vec<String> {
    let paths = bases.iter().filter_map(|base| join_path(base, reference.file.text));
    let Some(file) = paths.filter_map(|path| loader.json(&path).ok().flatten()).next() else {
        return Vec::new();
    };
    let is_pointer = reference.schema.text.starts_with("#/");
    let holders = ["definitions", "$defs"].into_iter().filter_map(|key| Some((key, file.get(key)?)));
    let names = holders.flat_map(|(key, holder)| holder.pairs().iter().map(move |entry| (key, entry)));
    let name = |(key, entry): (&str, &Entry)| match is_pointer {
        true => format!("#/{key}/{}", entry.key.replace('~', "~0").replace('/', "~1")),
        false => entry.key.to_string(),
    };
    names.map(name).collect()
}

fn compile_schema(written: &WrittenSchema<'_, '_>, schema: Value) -> Option<Schema> {
    match Schema::new(schema) {
        Ok(schema) => Some(schema),
        Err(error) => {
            let place = written.place(error.pointer());
            let message = format!("`{}` is not a valid JSON Schema: {error}", place.schema);
            written.loader.found.push(
                Diagnostic::error(codes::UNRESOLVED_SCHEMA, place.span, message)
                    .step(written.step)
                    .hint("correct the schema"),
            );
            None
        }
    }
}

/// The enum that the pointer leads to lists exactly what the gate allows; `abort` counts on neither side. Whether there is
/// one.
fn check_intents(
    step: &StepDefinition<'_>,
    gate: &GateDefinition<'_>,
    pointer: Text<'_>,
    schema: &Value,
    loader: &SourceLoader<'_>,
) -> bool {
    let id = step.id;
    let push = |message: String, hint: String| {
        loader
            .found
            .push(Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, pointer.span, message).step(id).hint(hint));
    };
    let Some(listed) = enum_values_of_schema(find_at_pointer(schema, pointer.text.trim_start_matches('#')))
    else {
        push(
            format!("`{}` leads to no `enum` in the schema of `{id}`", pointer.text),
            "point to the `enum` that lists the intents".to_owned(),
        );
        return false;
    };
    let abort = Intent::Abort.as_str();
    let allowed: Vec<&str> =
        gate.intents.iter().map(|(intent, _)| intent.as_str()).filter(|word| *word != abort).collect();
    let listed: Vec<&str> = listed.iter().map(String::as_str).filter(|word| *word != abort).collect();
    let not_listed: Vec<&str> = allowed.iter().filter(|word| !listed.contains(word)).copied().collect();
    // That a transition leads on from what is not allowed is said of the transition.
    let leads_on = |word: &str| {
        let all = step.transitions.iter().flatten();
        all.into_iter().any(|transition| transition.intent.as_str() == word)
    };
    let is_lost = |word: &&&str| !allowed.contains(*word) && !leads_on(word);
    let not_allowed: Vec<&str> = listed.iter().filter(is_lost).copied().collect();
    let difference = match (not_listed.is_empty(), not_allowed.is_empty()) {
        (true, true) => return true,
        (false, true) => format!("the schema does not list {}", quote_names(&not_listed)),
        (true, false) => format!("the schema also lists {}", quote_names(&not_allowed)),
        (false, false) => {
            format!("the schema lists {} instead of {}", quote_names(&not_allowed), quote_names(&not_listed))
        }
    };
    // The schema is what an agent is told, so that it names intents as definitions do.
    let alias = not_allowed.iter().find(|word| Generation::Closing.aliased(word).is_some());
    push(
        format!("`{id}` allows {}, but {difference}", quote_names(&allowed)),
        match alias {
            Some(word) => Generation::Closing.suggestion(word),
            None if not_allowed.len() == 1
                && let Some(near) = find_nearest_name(not_allowed[0], not_listed.iter().copied()) =>
            {
                format!("let the schema list `{near}` instead of `{}`", not_allowed[0])
            }
            None => "`allowedIntents` and the schema's `enum` have to agree".to_owned(),
        },
    );
    true
}

/// Where a JSON pointer leads in a schema. As [`Value::pointer`], which makes two texts of each part of the pointer; this is
/// asked several times for each step.
pub(crate) fn find_at_pointer<'v>(schema: &'v Value, pointer: &str) -> Option<&'v Value> {
    split_pointer(pointer)?.try_fold(schema, |at, part| match at {
        Value::Object(map) => map.find_key(&part),
        Value::Array(items) => items.get(parse_array_index(&part)?),
        _ => None,
    })
}

/// The same, to be changed.
pub(crate) fn find_at_pointer_mut<'v>(schema: &'v mut Value, pointer: &str) -> Option<&'v mut Value> {
    split_pointer(pointer)?.try_fold(schema, |at, part| match at {
        Value::Object(map) => map.get_mut(&*part),
        Value::Array(items) => items.get_mut(parse_array_index(&part)?),
        _ => None,
    })
}

/// The parts of a JSON pointer; `None` where it is none.
fn split_pointer(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    let well = pointer.is_empty() || pointer.starts_with('/');
    let part = |part| match str::contains(part, '~') {
        true => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(part),
    };
    well.then(|| pointer.split('/').skip(1).map(part))
}

/// The place in a list that a part of a JSON pointer names.
fn parse_array_index(part: &str) -> Option<usize> {
    (part == "0" || !part.starts_with(['0', '+'])).then(|| part.parse().ok()).flatten()
}

pub(crate) fn enum_values_of_schema(schema: Option<&Value>) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let schema = schema?;
    match (schema.find_key("enum").and_then(Value::as_array), schema.find_key("const")) {
        (Some(values), _) => Some(values.iter().map(text).collect()),
        (None, Some(value)) => Some(vec![text(value)]),
        (None, None) => None,
    }
}

fn check_field(id: &str, gate: &GateDefinition<'_>, schema: &Schema, loader: &SourceLoader<'_>) {
    if let Some((field, span)) = gate.field.as_ref().filter(|(field, _)| !schema.can_produce(field)) {
        let message = format!("`intentField` of `{id}` is `{field}`, where the schema allows no value");
        let finding = Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message).step(id);
        loader.found.push(match (near_path(field, schema.value()), gate.schema_pointer) {
            (Some(near), _) => finding.did_you_mean(&near),
            (None, Some(_)) => finding.hint("name the field that `intentSchemaRef` describes"),
            (None, None) => finding
                .hint("add the field to the schema, or name the one where answers say what they decide"),
        });
        return;
    }
    // What is read has to be what was checked: otherwise free text would choose the way.
    if let (Some((field, span)), Some(pointer)) = (&gate.field, gate.schema_pointer) {
        let described =
            enum_values_of_schema(find_at_pointer(schema.value(), pointer.text.trim_start_matches('#')));
        if described.is_some() && enum_values_of_schema(schema.subschema(field)) != described {
            let message = format!(
                "`intentField` of `{id}` is `{field}`, which is not what `{}` describes",
                pointer.text
            );
            loader.found.push(
                Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message)
                    .step(id)
                    .hint("let `intentField` and `intentSchemaRef` name the same field"),
            );
        }
    }
}

/// The target of a jump has to be something the answer can hold. An object that its author left open is closed when
/// it is sent, so that this is a warning, like a handed-on field there.
fn check_target(id: &str, gate: &GateDefinition<'_>, sent: &Schema, loader: &SourceLoader<'_>) {
    let jumps = gate.intents.iter().any(|(intent, _)| *intent == Intent::Jump);
    let Some((path, span)) = gate.target_field.as_ref().filter(|_| jumps) else { return };
    if sent.can_produce(path) {
        return;
    }
    let message = format!("`targetField` of `{id}` is `{path}`, which no answer of its schema can have");
    let (at, there) = follow_named_segments(path, sent.value());
    let place = if at.is_empty() { "the answer".to_owned() } else { format!("`{at}`") };
    let hint = match there.as_slice() {
        [] => format!("{place} can have no fields: add the field to the schema, or correct the path"),
        names => {
            format!(
                "{place} can have {}: add the field to the schema, or correct the path",
                quote_names(names)
            )
        }
    };
    loader.found.push(Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, *span, message).step(id).hint(hint));
}

/// How far a schema names the segments of a path, and which properties it names there.
fn follow_named_segments<'v>(path: &FieldPath, schema: &'v Value) -> (String, Vec<&'v str>) {
    let (mut at, mut walked) = (schema, Vec::new());
    for segment in path.segments() {
        let Some(next) = at.find_key("properties").and_then(|properties| properties.find_key(segment)) else {
            break;
        };
        at = next;
        walked.push(&**segment);
    }
    let names = at.find_key("properties").and_then(Value::as_object);
    (walked.join("."), names.map(|names| names.keys().map(String::as_str).collect()).unwrap_or_default())
}

/// What a path was probably meant to be, of which a schema has all but the last segment.
fn near_path(path: &FieldPath, schema: &Value) -> Option<String> {
    let (last, before) = path.segments().split_last()?;
    let holder =
        before.iter().try_fold(schema, |at, segment| at.find_key("properties")?.find_key(segment))?;
    let names = holder.find_key("properties")?.as_object()?.keys();
    let near = find_nearest_name(last, names.map(String::as_str))?;
    let whole: Vec<&str> = before.iter().map(|segment| &**segment).chain([near]).collect();
    Some(whole.join("."))
}

/// What a step declares to leave has to be something its answer can hold. An answer's top level holds what the
/// schema names. Deeper, an object that its author left open is closed only when it is sent: real definitions
/// name fields there that no answer can have, so that is a warning.
fn check_handoff(
    id: &str,
    gate: &GateDefinition<'_>,
    sent: &Schema,
    open: impl Fn() -> Option<Schema>,
    loader: &SourceLoader<'_>,
) {
    for (path, span) in &gate.handoff {
        if sent.can_produce(path) {
            continue;
        }
        let named =
            path.segments().first().is_some_and(|first| sent.value().pointer(&top_level(first)).is_some());
        let left_open = named && open().is_some_and(|open| open.can_produce(path));
        let message = format!("handoff field `{path}` of `{id}` is not in its output schema");
        let finding = if left_open {
            Diagnostic::warning(codes::SCHEMA_GATE_MISMATCH, *span, message)
        } else {
            Diagnostic::error(codes::SCHEMA_GATE_MISMATCH, *span, message)
        };
        let finding = finding.step(id);
        let otherwise = || "add the field to the schema, or correct the path".to_owned();
        loader.found.push(match near_path(path, sent.value()) {
            // In an object that its author left open it may be meant all the same.
            Some(near) if left_open => {
                finding.hint(format!("did you mean `{near}`? Else add the field to the schema"))
            }
            Some(near) => finding.did_you_mean(&near),
            None => finding.hint(otherwise()),
        });
    }
}

pub(crate) fn top_level(name: &str) -> String {
    format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"))
}
