//! Checks an agent's settings against the check flow that it runs.

use cuegate_flow::diagnostics::{Diagnostic, Span};

use super::lower::EXECUTIONS_MAX;
use crate::climpt::agent::legacy::ModernAgent;
use crate::climpt::generation::Generation;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Json, Kind};

/// The verdict type that ends a run where its flow ends: a check flow supports no other.
const ENDS_WITH_FLOW: &str = "detect:graph";

/// Compares the agent's completion settings with the registry that it names.
pub(crate) fn check_agent_completion(modern: &ModernAgent, generation: Generation, found: &Findings) {
    let report = |span: Span, message: String, hint: &str| {
        found.push(Diagnostic::error(codes::MIXED_GENERATIONS, span, message).hint(hint));
    };
    match (generation, modern.step_flow) {
        (Generation::Check, None) => {
            let kind = verdict_of_agent(&modern.json).and_then(|verdict| verdict.get("type"));
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

/// The execution limit that an agent sets, capped at the document's maximum. A value that is not a number has been
/// reported.
pub(crate) fn written_limit(agent: &Json, found: &Findings) -> Option<u32> {
    let written = verdict_of_agent(agent)?.get("config")?.get("maxIterations")?;
    let Kind::Number(number) = &written.kind else { return None };
    let limit = number.as_u64().filter(|limit| *limit > 0)?;
    if limit > u64::from(EXECUTIONS_MAX) {
        let message =
            format!("a check flow ends after {EXECUTIONS_MAX} executions, so {limit} has no effect");
        found.push(
            Diagnostic::warning(codes::UNUSED_KEY, written.span, message)
                .hint(format!("write at most {EXECUTIONS_MAX}, or remove it")),
        );
    }
    u32::try_from(limit.min(u64::from(EXECUTIONS_MAX))).ok()
}

fn verdict_of_agent(agent: &Json) -> Option<&Json> {
    agent.get("runner")?.get("verdict")
}
