//! Which subject is compared by which adapter, and what counts as the same.

use serde_json::Value;

use super::{
    case::{Case, Expected},
    direct, entry, inputs, interpret, route, stepflow,
};

/// What we did with a case.
#[derive(Debug)]
pub(super) enum Got {
    /// We came to this.
    Value(Value),
    /// We refused: a finding of severity error, a bad answer, a run that failed.
    Refused(String),
}

/// How a subject is compared.
pub(super) struct Adapter {
    /// Does what the case asks. An error says that the adapter cannot read the case, which is never the same.
    pub(super) run: fn(&Value) -> Result<Got, String>,
    /// Whether a result of the original program for an input and ours are the same.
    pub(super) same: fn(input: &Value, theirs: &Value, ours: &Value) -> bool,
}

/// The adapter of a subject, when it is compared.
pub(super) fn adapter(subject: &str) -> Option<Adapter> {
    let run: fn(&Value) -> Result<Got, String> = match subject {
        "StepGateInterpreter.interpret" => {
            return Some(Adapter { run: interpret::interpret, same: interpret::same });
        }
        "gen1_stepflow_runner" => return Some(Adapter { run: stepflow::run, same: stepflow::same }),
        "WorkflowRouter.route" => return Some(Adapter { run: route::route, same: route::same }),
        "FlowOrchestrator.getStepIdForIteration" => entry::step_of_iteration,
        "StepContext.toUV" => inputs::variables,
        "SchemaResolver.resolve" => direct::schema,
        "checkSuccessCondition" => direct::success,
        "inferStepKind" => direct::kind,
        "tryParseJsonFromText" => direct::json_in_text,
        "parseChangedFiles" => |input| direct::extracted("parseChangedFiles", input),
        "parseStagedFiles" => |input| direct::extracted("parseStagedFiles", input),
        "parseUnstagedFiles" => |input| direct::extracted("parseUnstagedFiles", input),
        "parseUntrackedFiles" => |input| direct::extracted("parseUntrackedFiles", input),
        _ => return None,
    };
    Some(Adapter { run, same: |_, theirs, ours| theirs == ours })
}

/// Compares a case. The error is what we did instead.
pub(super) fn compare(adapter: &Adapter, case: &Case) -> Result<(), String> {
    match ((adapter.run)(&case.input), &case.expected) {
        (Err(fault), _) => Err(format!("the adapter cannot read the case: {fault}")),
        // Texts are ours; that it is refused is what counts.
        (Ok(Got::Refused(_)), Expected::Error(_)) => Ok(()),
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

/// A member of an input that has to be there.
pub(super) fn member<'v>(input: &'v Value, name: &str) -> Result<&'v Value, String> {
    input.get(name).ok_or_else(|| format!("it has no `{name}`"))
}

/// A text of an input that has to be there.
pub(super) fn text<'v>(input: &'v Value, name: &str) -> Result<&'v str, String> {
    member(input, name)?.as_str().ok_or_else(|| format!("its `{name}` is no text"))
}
