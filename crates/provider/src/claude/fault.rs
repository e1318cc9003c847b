//! Classifies faults.
//!
//! A failure of the service has subtype `success` with `is_error`, so the subtype does not decide.

use jiff::Zoned;
use serde_json::Value;

use super::wire::text;
use crate::{
    AskLimit, Fault, FaultClass,
    program::{resets, wording::quote},
};

/// What the stream reported about an error before the result.
#[derive(Debug, Default)]
pub(super) struct ErrorReport {
    /// The program's error code: `rate_limit`, `authentication_failed`, `model_not_found`, …
    pub code: String,
    /// The limit that truncated the answer: `output_limit` or `context_window`.
    pub cut: String,
    /// The Unix time in seconds at which the limit ends.
    pub resets_at: Option<i64>,
    /// The service refused to continue.
    pub refused: bool,
}

/// The fault of an error result.
pub(super) fn of_result(result: &Value, said: &ErrorReport, now: &Zoned) -> Fault {
    let message = message(result);
    let class = class(result, said, &message.to_lowercase());
    let mut fault = Fault::new(class, format!("claude: {}", quote(message.as_bytes())));
    if text(result, "/subtype") == "error_max_budget_usd" {
        fault.limit = Some(AskLimit::Usd);
    }
    if class == FaultClass::RateLimited {
        let by_words = || resets::in_ms(&message, now);
        fault.resets_in_ms = said.resets_at.map(|epoch| resets::until_ms(epoch, now)).or_else(by_words);
    }
    fault
}

fn message(result: &Value) -> String {
    if text(result, "/stop_reason") == "max_tokens" && result["is_error"] == false {
        return format!("the answer was cut off at its maximum length: {}", text(result, "/result"));
    }
    let errors = result.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    match (text(result, "/result"), errors.is_empty()) {
        ("", true) => format!("result `{}`", text(result, "/subtype")),
        ("", false) => errors.join("; "),
        (said, _) => said.to_owned(),
    }
}

/// What the program says if it cannot reach its service, in lower case.
const UNREACHABLE: [&str; 5] =
    ["unable to connect", "connection error", "econnrefused", "econnreset", "enotfound"];

fn class(result: &Value, said: &ErrorReport, message: &str) -> FaultClass {
    let status = result.get("api_error_status").and_then(Value::as_u64).unwrap_or_default();
    let terminal = text(result, "/terminal_reason");
    if matches!(text(result, "/subtype"), "error_max_turns" | "error_max_budget_usd") {
        return FaultClass::OverCap;
    }
    if said.refused || text(result, "/stop_reason") == "refusal" {
        return FaultClass::Refused;
    }
    if text(result, "/stop_reason") == "max_tokens" && result["is_error"] == false {
        return FaultClass::Malformed;
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
        return FaultClass::Network;
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
        // A retry would fail the same way; a person must intervene.
        400..=499 => FaultClass::Refused,
        _ if UNREACHABLE.iter().any(|words| message.contains(words)) => FaultClass::Network,
        _ if is_limit(message) => FaultClass::RateLimited,
        _ => match status_in(message) {
            Some(401 | 403) => FaultClass::Auth,
            Some(429) => FaultClass::RateLimited,
            Some(500..=599) => FaultClass::Overloaded,
            _ if message.contains("overloaded") => FaultClass::Overloaded,
            _ => FaultClass::Crashed,
        },
    }
}

/// Whether a message says that a limit of the service or of the plan is reached.
pub(super) fn is_limit(message: &str) -> bool {
    let message = message.to_lowercase();
    ["rate limit", "usage limit", "hit your limit", "hit your session limit", "limit reached"]
        .iter()
        .any(|words| message.contains(words))
}

/// The status in a message like `API Error: 529 …`.
fn status_in(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("api error")?;
    let digits = rest.trim_start_matches([':', ' ', '(']);
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The fault of a program that failed to start and printed the reason to standard error.
pub(super) fn of_stderr(stderr: &[u8]) -> Option<Fault> {
    let said = String::from_utf8_lossy(stderr);
    let fault = |class, hint: &str| Some(Fault::new(class, format!("claude: {}{hint}", quote(stderr))));
    if said.contains("cannot be used with root") {
        let hint = "; run as another user, or set IS_SANDBOX=1 if the agent may do everything as root";
        return fault(FaultClass::Refused, hint);
    }
    if said.contains("unknown option") {
        return fault(FaultClass::MissingProgram, "; this version is not supported");
    }
    if said.contains("--json-schema is not a valid JSON Schema") {
        return fault(FaultClass::Refused, "");
    }
    None
}
