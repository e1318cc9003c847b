//! Why there is no answer.
//!
//! A failure of the service ends as subtype `success` with `is_error`: the subtype decides nothing here.

use jiff::Zoned;
use serde_json::Value;

use super::wire::text;
use crate::{
    Fault, FaultClass,
    program::{resets, wording::quote},
};

/// What the stream said about an error before its result.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The program's word for it: `rate_limit`, `authentication_failed`, `model_not_found`, …
    pub code: String,
    /// What cut the answer short: `output_limit` or `context_window`.
    pub cut: String,
    /// When the limit ends, in seconds since 1970.
    pub resets_at: Option<i64>,
    /// The service declined to go on.
    pub refused: bool,
}

/// The fault of a result that is an error.
pub(super) fn of_result(result: &Value, said: &Said, now: &Zoned) -> Fault {
    let message = message(result);
    let class = class(result, said, &message.to_lowercase());
    let mut fault = Fault::new(class, format!("claude: {}", quote(message.as_bytes())));
    if class == FaultClass::RateLimited {
        let by_words = || resets::in_ms(&message, now);
        fault.resets_in_ms = said.resets_at.map(|epoch| resets::until_ms(epoch, now)).or_else(by_words);
    }
    fault
}

fn message(result: &Value) -> String {
    let errors = result.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    match (text(result, "/result"), errors.is_empty()) {
        ("", true) => format!("it ended as `{}`", text(result, "/subtype")),
        ("", false) => errors.join("; "),
        (said, _) => said.to_owned(),
    }
}

fn class(result: &Value, said: &Said, message: &str) -> FaultClass {
    let status = result.get("api_error_status").and_then(Value::as_u64).unwrap_or_default();
    let terminal = text(result, "/terminal_reason");
    if matches!(text(result, "/subtype"), "error_max_turns" | "error_max_budget_usd") {
        return FaultClass::OverCap;
    }
    if said.refused || text(result, "/stop_reason") == "refusal" {
        return FaultClass::Refused;
    }
    let too_long = ["prompt is too long", "context window limit", "context limit"];
    if matches!(terminal, "prompt_too_long" | "blocking_limit" | "rapid_refill_breaker")
        || said.cut == "context_window"
        || status == 413
        || too_long.iter().any(|words| message.contains(words))
    {
        return FaultClass::ContextOverflow;
    }
    if text(result, "/api_error") == "connection_failed" {
        return FaultClass::Overloaded;
    }
    match said.code.as_str() {
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "account_on_hold"
        | "verification_required"
        | "billing_error"
        | "cloud_credential_error" => return FaultClass::Auth,
        "model_not_found" => return FaultClass::UnknownModel,
        "rate_limit" => return FaultClass::RateLimited,
        "overloaded" | "server_error" => return FaultClass::Overloaded,
        "max_output_tokens" => return FaultClass::OverCap,
        _ => {}
    }
    match status {
        401 | 403 => FaultClass::Auth,
        404 => FaultClass::UnknownModel,
        // "model: no-such-model"
        400 if message.contains("model:") => FaultClass::UnknownModel,
        429 => FaultClass::RateLimited,
        500..=599 => FaultClass::Overloaded,
        // The same request would be refused again: a person has to look at it.
        400..=499 => FaultClass::Refused,
        _ => FaultClass::Crashed,
    }
}

/// The fault of a program that said on standard error only why it does not start.
pub(super) fn of_stderr(stderr: &[u8]) -> Option<Fault> {
    let said = String::from_utf8_lossy(stderr);
    let fault = |class, hint: &str| Some(Fault::new(class, format!("claude: {}{hint}", quote(stderr))));
    if said.contains("cannot be used with root") {
        let hint = "; run as another user, or set IS_SANDBOX=1 yourself where everything may be done as root";
        return fault(FaultClass::Refused, hint);
    }
    if said.contains("unknown option") {
        return fault(FaultClass::MissingProgram, "; this version of it is not one that is known to work");
    }
    if said.contains("--json-schema is not a valid JSON Schema") {
        return fault(FaultClass::Refused, "");
    }
    None
}
