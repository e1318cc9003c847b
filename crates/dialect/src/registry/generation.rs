//! Tells definitions of other formats from those of this one, so that they get one clear finding instead of a
//! hundred about keys that are right in their own.

use cuegate_flow::{Diagnostic, Span};

use crate::codes;
use crate::findings::Findings;
use crate::json::{Json, Kind};

/// Reports that a registry is of another format; whether it is.
pub(crate) fn is_other_format(registry: &Json, found: &Findings) -> bool {
    let Some((span, name, sign)) = other_format(registry) else { return false };
    found.push(
        Diagnostic::error(
            codes::UNSUPPORTED_YET,
            span,
            format!("this is {name}, which is not supported yet: {sign}"),
        )
        .hint("this version runs registries whose closure steps decide `closing`"),
    );
    true
}

/// Reports that a file is a piece by its name; whether it is.
pub(crate) fn is_piece_path(path: &str, span: Span, found: &Findings) -> bool {
    let piece = path.ends_with(".yaml") || path.ends_with(".yml");
    if piece {
        found.push(
            Diagnostic::error(
                codes::UNSUPPORTED_YET,
                span,
                format!("`{path}` is a piece, which is not supported yet"),
            )
            .hint("this version runs agents with a `steps_registry.json`"),
        );
    }
    piece
}

fn other_format(registry: &Json) -> Option<(Span, &'static str, String)> {
    piece(registry).or_else(|| check_flow(registry)).or_else(|| complete_generation(registry))
}

fn piece(registry: &Json) -> Option<(Span, &'static str, String)> {
    let entry = ["movements", "initial_movement"].iter().find_map(|key| registry.entry(key))?;
    Some((entry.key_span, "a piece", format!("it has `{}`", entry.key)))
}

fn check_flow(registry: &Json) -> Option<(Span, &'static str, String)> {
    const NAME: &str = "a registry of the check flow";
    for step in registry.get("steps")?.pairs() {
        if let Some(entry) = ["check", "onPass", "onFail"].iter().find_map(|key| step.value.entry(key)) {
            return Some((entry.key_span, NAME, format!("its step `{}` has `{}`", step.key, entry.key)));
        }
        let digits = step.key.strip_prefix("s_").unwrap_or_default();
        if (4..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some((step.key_span, NAME, format!("its step is called `{}`", step.key)));
        }
    }
    None
}

fn complete_generation(registry: &Json) -> Option<(Span, &'static str, String)> {
    const NAME: &str = "a registry of the “complete” generation";
    if let Some(entry) = ["completionSteps", "completionType"].iter().find_map(|key| registry.entry(key)) {
        return Some((entry.key_span, NAME, format!("it has `{}`", entry.key)));
    }
    for step in registry.get("steps")?.pairs() {
        if step.key.starts_with("complete.") {
            return Some((step.key_span, NAME, format!("it has the step `{}`", step.key)));
        }
        let transition = step.value.get("transitions").and_then(|transitions| transitions.entry("complete"));
        let intent = step.value.get("structuredGate").and_then(|gate| gate.get("allowedIntents")).and_then(
            |intents| match &intents.kind {
                Kind::List(words) => words.iter().find(|word| word.as_text() == Some("complete")),
                _ => None,
            },
        );
        if let Some(span) = transition.map(|entry| entry.key_span).or(intent.map(|word| word.span)) {
            return Some((span, NAME, format!("its step `{}` decides `complete`", step.key)));
        }
    }
    None
}
