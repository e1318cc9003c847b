//! Detects the generation of a registry from its content, with the place of each sign.
//!
//! Keys and intents decide. Step names are conventions that other generations may share, so they decide only if nothing
//! else does.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use crate::climpt::agent::legacy::OLDER_TYPES;
use crate::codes;
use crate::findings::Findings;
use crate::source::loader::SourceLoader;
use crate::values::json::{Entry, Json, Kind};

/// A generation of step registries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Closure steps decide `closing` ("14. Steps Registry").
    #[default]
    Closing,
    /// `complete` leads to a step whose `complete` ends the run ("Step Flow Design" with structured gates).
    Complete,
    /// Separate asks check each step; `onPass` and `onFail` select the next one ("Step Flow Design" with checks).
    Check,
}

impl Generation {
    /// Its name in findings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Generation::Closing => "the “closing” generation",
            Generation::Complete => "the “complete” generation",
            Generation::Check => "the check flow",
        }
    }

    /// The name of the format in results.
    pub(crate) fn dialect(self) -> &'static str {
        match self {
            Generation::Closing => "registry-closing",
            Generation::Complete => "registry-complete",
            Generation::Check => "registry-check",
        }
    }

    /// The generation for people.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Generation::Closing => "`closing` generation",
            Generation::Complete => "`complete` generation",
            Generation::Check => "check flow",
        }
    }
}

/// A sign: something that only one generation has.
struct Sign<'j> {
    generation: Generation,
    span: Span,
    /// Its name: a key or an intent.
    what: &'j str,
    /// The step that contains it.
    step: Option<&'j str>,
    /// Whether it only separates registries with gates from check flows.
    gates: bool,
}

/// The number of signs per generation that a finding names.
const SIGNS_SHOWN_MAX: usize = 4;

/// The generation of a registry; the "closing" one by default. `otherwise` is the agent's indication, which counts when
/// the registry itself shows no sign. `None` when the file is a piece or mixes generations, which is reported.
pub(crate) fn detect_generation(
    registry: &Json,
    otherwise: Option<Generation>,
    loader: &SourceLoader<'_>,
) -> Option<Generation> {
    if let Some(entry) =
        ["movements", "initial_movement", "initial_step"].iter().find_map(|key| registry.entry(key))
    {
        let message = format!("this is a TAKT workflow, not a step registry: it has `{}`", entry.key);
        loader.found.push(
            Diagnostic::error(codes::UNSUPPORTED_YET, entry.key_span, message)
                .hint("TAKT workflows are written in YAML: save it as a `.yaml` file, and name that"),
        );
        return None;
    }
    let mut signs = collect_signs(registry);
    let mut seen = generations_of_signs(&signs);
    weaker_signs(registry, &seen, &mut signs);
    seen = generations_of_signs(&signs);
    match seen.as_slice() {
        [] => Some(by_names(registry).or(otherwise).unwrap_or(Generation::Closing)),
        [only] => Some(*only),
        several => {
            report_mixed(several, &signs, loader);
            None
        }
    }
}

/// Reports a file whose name marks it as a piece, and returns whether it is one.
pub(crate) fn is_piece_path(path: &str, span: Span, found: &Findings) -> bool {
    let piece = path.ends_with(".yaml") || path.ends_with(".yml");
    if piece {
        found.push(
            Diagnostic::error(
                codes::INVALID_VALUE,
                span,
                format!("`{path}` is a TAKT workflow; the registry of an agent is a JSON file"),
            )
            .hint(format!("check and run the workflow by itself: `cuegate check {path}`")),
        );
    }
    piece
}

fn report_mixed(generations: &[Generation], signs: &[Sign<'_>], loader: &SourceLoader<'_>) {
    let parts: Vec<String> = generations
        .iter()
        .map(|generation| {
            let of: Vec<&Sign<'_>> = signs.iter().filter(|sign| sign.generation == *generation).collect();
            let mut shown: Vec<String> =
                of.iter().take(SIGNS_SHOWN_MAX).map(|sign| place_of(sign, loader)).collect();
            if of.len() > SIGNS_SHOWN_MAX {
                shown.push(format!("{} more", of.len() - SIGNS_SHOWN_MAX));
            }
            let name =
                if of.iter().all(|sign| sign.gates) { "a registry with gates" } else { generation.name() };
            format!("{name} has {}", shown.join(", "))
        })
        .collect();
    // The rarer signs are probably the ones added to a registry of the other generation.
    let count = |generation: &Generation| signs.iter().filter(|sign| sign.generation == *generation).count();
    let rarest = generations.iter().min_by_key(|generation| count(generation));
    let at = signs.iter().find(|sign| Some(&sign.generation) == rarest);
    loader.found.push(
        Diagnostic::error(
            codes::MIXED_GENERATIONS,
            at.map_or(registry_start(signs), |sign| sign.span),
            format!("this registry mixes generations: {}", parts.join("; ")),
        )
        .hint("keep the words of one generation"),
    );
}

fn registry_start(signs: &[Sign<'_>]) -> Span {
    signs.first().map(|sign| sign.span).unwrap_or_default()
}

fn place_of(sign: &Sign<'_>, loader: &SourceLoader<'_>) -> String {
    let line = loader.line_of(sign.span);
    match sign.step {
        Some(step) => format!("`{}` of `{step}` (line {line})", sign.what),
        None => format!("`{}` (line {line})", sign.what),
    }
}

/// Keys of a registry that only one generation has.
const KEYS: [(&str, Generation); 5] = [
    ("validationSteps", Generation::Closing),
    ("failurePatterns", Generation::Closing),
    ("completionSteps", Generation::Complete),
    ("completionPatterns", Generation::Complete),
    ("completionType", Generation::Complete),
];

/// Keys of a step.
const STEP_KEYS: [(&str, Generation); 4] = [
    ("stepKind", Generation::Closing),
    ("check", Generation::Check),
    ("onPass", Generation::Check),
    ("onFail", Generation::Check),
];

/// Keys of a gate.
const GATE_KEYS: [(&str, Generation); 2] =
    [("failFast", Generation::Closing), ("intentSchemaRef", Generation::Closing)];

/// Keys of a step that has a gate, of either generation.
const GATED_STEP_KEYS: [(&str, Generation); 6] = [
    ("structuredGate", Generation::Closing),
    ("transitions", Generation::Closing),
    ("outputSchemaRef", Generation::Closing),
    ("stepId", Generation::Closing),
    ("uvVariables", Generation::Closing),
    ("fallbackKey", Generation::Closing),
];

/// Keys of a check flow that are too common to identify one.
const CHECKED_KEYS: [(&str, Generation); 1] = [("basePath", Generation::Check)];

/// The same for keys of its steps.
const CHECKED_STEP_KEYS: [(&str, Generation); 3] =
    [("id", Generation::Check), ("prompt", Generation::Check), ("iterations", Generation::Check)];

/// Intents, wherever a step names them.
const INTENTS: [(&str, Generation); 4] = [
    ("closing", Generation::Closing),
    ("handoff", Generation::Closing),
    ("escalate", Generation::Closing),
    ("complete", Generation::Complete),
];

fn collect_signs(registry: &Json) -> Vec<Sign<'_>> {
    let mut signs = Vec::new();
    collect_key_signs(registry, &KEYS, None, &mut signs);
    for step in registry.get("steps").map(Json::pairs).unwrap_or_default() {
        let id = Some(&*step.key);
        collect_key_signs(&step.value, &STEP_KEYS, id, &mut signs);
        keys_of(step, "transitions", &INTENTS, &mut signs);
        let Some(gate) = step.value.get("structuredGate") else { continue };
        collect_key_signs(gate, &GATE_KEYS, id, &mut signs);
        let listed = match gate.get("allowedIntents").map(|listed| &listed.kind) {
            Some(Kind::List(words)) => words.as_slice(),
            _ => &[],
        };
        for word in listed.iter().chain(gate.get("fallbackIntent")) {
            let intent = INTENTS.iter().find(|(intent, _)| word.as_text() == Some(intent));
            signs.extend(intent.map(|(what, generation)| Sign {
                generation: *generation,
                span: word.span,
                what,
                step: id,
                gates: false,
            }));
        }
    }
    signs.sort_by_key(|sign| sign.span.start);
    signs
}

fn generations_of_signs(signs: &[Sign<'_>]) -> Vec<Generation> {
    let mut seen: Vec<Generation> = signs.iter().map(|sign| sign.generation).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// Adds signs that decide nothing alone, but contradict the generation that the others decided.
fn weaker_signs<'j>(registry: &'j Json, seen: &[Generation], signs: &mut Vec<Sign<'j>>) {
    let steps = registry.get("steps").map(Json::pairs).unwrap_or_default();
    // If there are signs of another generation, its reader reports each such verdict type with its name there.
    if seen.is_empty() {
        for entry in registry.get("entryStepMapping").map(Json::pairs).unwrap_or_default() {
            let older = OLDER_TYPES.iter().find(|(older, _)| *older == &*entry.key);
            signs.extend(older.map(|(what, _)| Sign {
                generation: Generation::Complete,
                span: entry.key_span,
                what,
                step: None,
                gates: false,
            }));
        }
    }
    match seen {
        [Generation::Check] => {
            let before = signs.len();
            for step in steps {
                collect_key_signs(&step.value, &GATED_STEP_KEYS, Some(&step.key), signs);
            }
            signs[before..].iter_mut().for_each(|sign| sign.gates = true);
        }
        [_, ..] => {
            collect_key_signs(registry, &CHECKED_KEYS, None, signs);
            for step in steps {
                collect_key_signs(&step.value, &CHECKED_STEP_KEYS, Some(&step.key), signs);
            }
        }
        [] => {}
    }
    signs.sort_by_key(|sign| sign.span.start);
}

fn keys_of<'j>(
    step: &'j Entry,
    key: &str,
    known: &'static [(&'static str, Generation)],
    signs: &mut Vec<Sign<'j>>,
) {
    if let Some(inner) = step.value.get(key) {
        collect_key_signs(inner, known, Some(&step.key), signs);
    }
}

fn collect_key_signs<'j>(
    object: &Json,
    known: &'static [(&'static str, Generation)],
    step: Option<&'j str>,
    signs: &mut Vec<Sign<'j>>,
) {
    for (what, generation) in known {
        if let Some(entry) = object.entry(what) {
            signs.push(Sign { generation: *generation, span: entry.key_span, what, step, gates: false });
        }
    }
}

/// The generation that the step names suggest; the first step that suggests one decides.
fn by_names(registry: &Json) -> Option<Generation> {
    registry.get("steps")?.pairs().iter().find_map(|step| {
        if step.key.starts_with("complete.") {
            Some(Generation::Complete)
        } else if step.key.starts_with("closure.") {
            Some(Generation::Closing)
        } else {
            is_check_id(&step.key).then_some(Generation::Check)
        }
    })
}

/// Whether a name follows the step names of check flows: `s_` and four to eight hexadecimal digits.
fn is_check_id(name: &str) -> bool {
    let digits = name.strip_prefix("s_").unwrap_or_default();
    (4..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{Generation, detect_generation};
    use crate::source::loader::SourceLoader;
    use std::collections::BTreeMap;

    /// The generation of a registry's text, and the findings.
    fn detected(text: &str) -> (Option<Generation>, Vec<String>) {
        let files = BTreeMap::from([("r.json".to_owned(), text.as_bytes().to_vec())]);
        let loader = SourceLoader::new(&files);
        let json = loader.json("r.json").unwrap().unwrap();
        let generation = detect_generation(&json, None, &loader);
        let found = loader.into_parts().0.into_parts().0;
        (generation, found.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn keys_and_intents_decide() {
        let cases = [
            ("{}", Generation::Closing),
            (
                r#"{"steps": {"a": {"structuredGate": {"allowedIntents": ["next", "closing"]}}}}"#,
                Generation::Closing,
            ),
            (
                r#"{"steps": {"a": {"structuredGate": {"allowedIntents": ["next", "complete"]}}}}"#,
                Generation::Complete,
            ),
            (r#"{"steps": {"a": {"structuredGate": {"fallbackIntent": "complete"}}}}"#, Generation::Complete),
            (r#"{"steps": {"a": {"transitions": {"complete": {"target": "b"}}}}}"#, Generation::Complete),
            (r#"{"completionSteps": {}, "steps": {}}"#, Generation::Complete),
            (r#"{"completionType": "stepMachine"}"#, Generation::Complete),
            (r#"{"steps": {"a": {"onPass": {}}}}"#, Generation::Check),
            (r#"{"steps": {"a": {"check": {}}}}"#, Generation::Check),
        ];
        for (text, expected) in cases {
            assert_eq!(detected(text), (Some(expected), Vec::new()), "{text}");
        }
    }

    #[test]
    fn names_of_steps_decide_where_nothing_else_does() {
        let cases = [
            (r#"{"steps": {"complete.a": {}}}"#, Generation::Complete),
            (r#"{"steps": {"s_a1b2": {}}}"#, Generation::Check),
            (r#"{"steps": {"s_a1": {}}}"#, Generation::Closing),
            (r#"{"steps": {"complete.a": {"stepKind": "closure"}, "s_a1b2": {}}}"#, Generation::Closing),
        ];
        for (text, expected) in cases {
            assert_eq!(detected(text), (Some(expected), Vec::new()), "{text}");
        }
    }

    #[test]
    fn a_mixture_says_which_part_belongs_where() {
        let text = "{\"steps\": {\n\"a\": {\"stepKind\": \"work\",\n\"transitions\": {\"complete\": {}}},\n\"b\": \
                    {\"stepKind\": \"closure\", \"onFail\": {}}}}";
        insta::assert_snapshot!(detected(text).1.join("\n"), @"this registry mixes generations: the “closing” generation has `stepKind` of `a` (line 2), `stepKind` of `b` (line 4); the “complete” generation has `complete` of `a` (line 3); the check flow has `onFail` of `b` (line 4)");
        assert_eq!(detected(text).0, None);
        assert_eq!(detected("{\"movements\": []}").0, None);
    }

    #[test]
    fn ordinary_keys_in_the_wrong_place_are_named_too() {
        for (text, expected) in [
            (
                r#"{"steps": {"s_a1b2": {"check": {}, "structuredGate": {}, "uvVariables": []}}}"#,
                "a registry with gates has `structuredGate` of `s_a1b2` (line 1), `uvVariables` of `s_a1b2` (line 1); \
                 the check flow has `check` of `s_a1b2` (line 1)",
            ),
            (
                r#"{"basePath": "p", "steps": {"a": {"stepKind": "work", "iterations": {}}}}"#,
                "the “closing” generation has `stepKind` of `a` (line 1); \
                 the check flow has `basePath` (line 1), `iterations` of `a` (line 1)",
            ),
        ] {
            let message = format!("this registry mixes generations: {expected}");
            assert_eq!(detected(text), (None, vec![message]), "{text}");
        }
        let typed = r#"{"entryStepMapping": {"externalState": "a"}}"#;
        assert_eq!(detected(typed), (Some(Generation::Complete), Vec::new()));
        // They decide nothing alone.
        let alone = r#"{"basePath": "p", "steps": {"a": {"prompt": {}, "transitions": {}}}}"#;
        assert_eq!(detected(alone), (Some(Generation::Closing), Vec::new()));
    }
}
