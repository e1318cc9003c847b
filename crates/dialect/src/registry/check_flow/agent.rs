//! What an agent says about the check flow that it runs.

use cuegate_flow::{Diagnostic, Span};

use crate::codes;
use crate::findings::Findings;
use crate::json::{Json, Kind};
use crate::registry::behavior::Modern;
use crate::registry::generation::Generation;

/// The verdict under which a run ends where its flow does: a check flow knows no other.
const ENDS_WITH_FLOW: &str = "detect:graph";

/// Compares what an agent says about the end of a run with the registry that it names.
pub(crate) fn compare(modern: &Modern, generation: Generation, found: &Findings) {
    let report = |span: Span, message: String, hint: &str| {
        found.push(Diagnostic::error(codes::STEP_FLOW_MISMATCH, span, message).hint(hint));
    };
    match (generation, modern.step_flow) {
        (Generation::Check, None) => {
            let kind = verdict(&modern.json).and_then(|verdict| verdict.get("type"));
            if let Some(kind) = kind.filter(|kind| kind.as_text().is_some_and(|text| text != ENDS_WITH_FLOW))
            {
                let word = kind.as_text().unwrap_or_default();
                let message = format!("a check flow ends where a check says `complete`, not by `{word}`");
                report(kind.span, message, "write `\"completionType\": \"stepFlow\"`");
            }
        }
        (Generation::Closing | Generation::Complete, Some(span)) => {
            let message =
                format!("`stepFlow` runs a check flow, and the registry is one of {}", generation.name());
            report(
                span,
                message,
                "give every step a `check`, or name the completion type that the registry needs",
            );
        }
        _ => {}
    }
}

/// The limit of iterations that an agent writes. One that is no number has been reported.
pub(crate) fn written_limit(agent: &Json) -> Option<u32> {
    match &verdict(agent)?.get("config")?.get("maxIterations")?.kind {
        Kind::Number(number) => {
            number.as_u64().and_then(|limit| u32::try_from(limit).ok()).filter(|limit| *limit > 0)
        }
        _ => None,
    }
}

fn verdict(agent: &Json) -> Option<&Json> {
    agent.get("runner")?.get("verdict")
}
