//! The adapter of each subject, and when two results are equal.

use serde_json::Value;

use super::{
    case::{Case, Expected},
    checked, direct, entry, inputs, interpret, older, route, runs, settings, stepflow, verdict,
};

/// Our result for a case.
#[derive(Debug)]
pub(super) enum Got {
    /// We returned this value.
    Value(Value),
    /// We failed: a finding of severity error, an unusable answer or a failed run.
    Refused(String),
}

/// How a subject is compared.
pub(super) struct Adapter {
    /// Runs the case. An error means that the adapter cannot read the case, which is always a difference.
    pub(super) run: fn(&Value) -> Result<Got, String>,
    /// Whether the results of the original program and ours are equal for an input.
    pub(super) same: fn(input: &Value, theirs: &Value, ours: &Value) -> bool,
    /// Whether a result of the original program means that it failed.
    pub(super) refused: fn(theirs: &Value) -> bool,
}

/// An adapter for a subject whose results are never failures.
fn adapting(
    run: fn(&Value) -> Result<Got, String>,
    same: fn(&Value, &Value, &Value) -> bool,
) -> Option<Adapter> {
    Some(Adapter { run, same, refused: |_| false })
}

/// The adapter of a subject; `None` if it is not compared.
pub(super) fn adapter(subject: &str) -> Option<Adapter> {
    let run: fn(&Value) -> Result<Got, String> = match subject {
        "StepGateInterpreter.interpret" => {
            return adapting(interpret::interpret, interpret::same);
        }
        "WorkflowRouter.route" => return adapting(route::route, route::same),
        "runs_end_to_end_v1.13.14" => {
            return Some(Adapter { run: runs::run, same: runs::same, refused: runs::refused });
        }
        "FormatValidator.validate" => return adapting(direct::format, direct::same_format),
        "applyDefaults" => return adapting(settings::defaults, settings::same_defaults),
        "isBashCommandAllowed" => return adapting(settings::command, settings::same_command),
        "validateCrossReferences" => return adapting(checked::references, checked::same),
        "validateFlowReachability" => return adapting(checked::ways, checked::same),
        "validateHandoffInputs" => return adapting(checked::inputs, checked::same),
        "validateRegistrySchema" => return adapting(checked::shaped, checked::same),
        "validateUvReachability" => return adapting(checked::variables, checked::same),
        "validate" | "validateAgentSchema" | "validateComplete" => {
            return adapting(checked::agent, checked::same);
        }
        "validateStepKindIntents" => checked::kinds,
        "validateIntentSchemaRef" => checked::intent_schema,
        "validateStepRegistry" => checked::described,
        "validateEntryStepMapping" => checked::entries,
        "gen2_complete_gate_router" => return adapting(older::decide, older::same),
        "gen1_stepflow_runner" => return adapting(stepflow::run, stepflow::same),
        "FlowOrchestrator.getStepIdForIteration" => entry::step_of_iteration,
        "StepContext.toUV" => inputs::variables,
        "SchemaResolver.resolve" => direct::schema,
        "checkSuccessCondition" => direct::success,
        "inferStepKind" => direct::kind,
        "count:check.isFinished" => |input| verdict::counted(input, "checkCount", "maxChecks"),
        "count:iteration.isFinished" => |input| verdict::counted(input, "currentIteration", "maxIterations"),
        "detect:keyword.isFinished" => verdict::keyword,
        "detect:structured.isFinished" => verdict::signal,
        "tryParseJsonFromText" => direct::json_in_text,
        "parseTestOutput" => {
            return adapting(|input| direct::extracted("parseTestOutput", input), direct::same_tests);
        }
        "parseTypeErrors" => |input| direct::extracted("parseTypeErrors", input),
        "parseChangedFiles" => |input| direct::extracted("parseChangedFiles", input),
        "parseStagedFiles" => |input| direct::extracted("parseStagedFiles", input),
        "parseUnstagedFiles" => |input| direct::extracted("parseUnstagedFiles", input),
        "parseUntrackedFiles" => |input| direct::extracted("parseUntrackedFiles", input),
        _ => return None,
    };
    adapting(run, |_, theirs, ours| theirs == ours)
}

/// Compares a case. The error is our differing result.
pub(super) fn compare(adapter: &Adapter, case: &Case) -> Result<(), String> {
    match ((adapter.run)(&case.input), &case.expected) {
        (Err(fault), _) => Err(format!("the adapter cannot read the case: {fault}")),
        // Messages differ; both must fail.
        (Ok(Got::Refused(_)), Expected::Error(_)) => Ok(()),
        (Ok(Got::Refused(_)), Expected::Value(theirs)) if (adapter.refused)(theirs) => Ok(()),
        (Ok(Got::Refused(why)), Expected::Value(_)) => Err(format!("refused: {why}")),
        (Ok(Got::Value(ours)), Expected::Error(_)) => Err(ours.to_string()),
        (Ok(Got::Value(ours)), Expected::Value(theirs)) => {
            if (adapter.same)(&case.input, theirs, &ours) {
                Ok(())
            } else {
                Err(ours.to_string())
            }
        }
    }
}

/// A required member of an input.
pub(super) fn member<'v>(input: &'v Value, name: &str) -> Result<&'v Value, String> {
    input.get(name).ok_or_else(|| format!("it has no `{name}`"))
}

/// A required text of an input.
pub(super) fn text<'v>(input: &'v Value, name: &str) -> Result<&'v str, String> {
    member(input, name)?.as_str().ok_or_else(|| format!("its `{name}` is no text"))
}
