//! Classifies faults.
//!
//! A failure of the service has subtype `success` with `is_error`, so the subtype does not decide.

use jiff::Zoned;
use serde_json::Value;

use super::wire::text_at_pointer;
use crate::{
    AskLimit, Fault, FaultClass,
    program::{resets, wording::quote_output},
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
    let message = message_of_result(result);
    let class = classify_result(result, said, &message.to_lowercase());
    let mut fault = Fault::new(class, format!("claude: {}", quote_output(message.as_bytes())));
    if text_at_pointer(result, "/subtype") == "error_max_budget_usd" {
        fault.limit = Some(AskLimit::Usd);
    }
    if class == FaultClass::RateLimited {
        let by_words = || resets::in_ms(&message, now);
        fault.resets_in_ms = said.resets_at.map(|epoch| resets::until_ms(epoch, now)).or_else(by_words);
    }
    fault
}

fn message_of_result(result: &Value) -> String {
    if text_at_pointer(result, "/stop_reason") == "max_tokens" && result["is_error"] == false {
        return format!(
            "the answer was cut off at its maximum length: {}",
            text_at_pointer(result, "/result")
        );
    }
    let errors = result.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    match (text_at_pointer(result, "/result"), errors.is_empty()) {
        ("", true) => format!("result `{}`", text_at_pointer(result, "/subtype")),
        ("", false) => errors.join("; "),
        (said, _) => said.to_owned(),
    }
}

/// What the program says if it does not have the conversation, or the service rejects the messages in it, in lower case.
const SESSION_LOST: [&str; 4] = [
    "no conversation found",
    "ids were found without `tool_result`",
    "unexpected `tool_use_id` found",
    "invalid `signature` in `thinking`",
];

/// What it says if the conversation is full, in lower case.
const TOO_LONG: [&str; 4] =
    ["prompt is too long", "context window limit", "context limit", "input is too long"];

/// What it says about its login, in lower case.
const LOGIN: [&str; 4] =
    ["invalid api key", "please run /login", "credit balance is too low", "oauth token has expired"];

/// What the program says if it cannot reach its service, in lower case.
const UNREACHABLE: [&str; 5] =
    ["unable to connect", "connection error", "econnrefused", "econnreset", "enotfound"];

fn classify_result(result: &Value, said: &ErrorReport, message: &str) -> FaultClass {
    let status = result.get("api_error_status").and_then(Value::as_u64).unwrap_or_default();
    let terminal = text_at_pointer(result, "/terminal_reason");
    if matches!(text_at_pointer(result, "/subtype"), "error_max_turns" | "error_max_budget_usd") {
        return FaultClass::OverCap;
    }
    if said.refused || text_at_pointer(result, "/stop_reason") == "refusal" {
        return FaultClass::Refused;
    }
    if text_at_pointer(result, "/stop_reason") == "max_tokens" && result["is_error"] == false {
        return FaultClass::Malformed;
    }
    if SESSION_LOST.iter().any(|words| message.contains(words)) {
        return FaultClass::SessionLost;
    }
    if matches!(terminal, "prompt_too_long" | "blocking_limit" | "rapid_refill_breaker")
        || said.cut == "context_window"
        || status == 413
        || TOO_LONG.iter().any(|words| message.contains(words))
    {
        return FaultClass::ContextOverflow;
    }
    if text_at_pointer(result, "/api_error") == "connection_failed" {
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
        _ => class_by_words(message).unwrap_or(FaultClass::Crashed),
    }
}

/// The class of a message in lower case, if its words tell.
fn class_by_words(message: &str) -> Option<FaultClass> {
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    let class = match status_in(message) {
        _ if has(&SESSION_LOST) => FaultClass::SessionLost,
        _ if has(&TOO_LONG) => FaultClass::ContextOverflow,
        _ if has(&LOGIN) => FaultClass::Auth,
        _ if message.contains("issue with the selected model") => FaultClass::UnknownModel,
        _ if has(&UNREACHABLE) => FaultClass::Network,
        _ if is_limit(message) => FaultClass::RateLimited,
        Some(401 | 403) => FaultClass::Auth,
        Some(429) => FaultClass::RateLimited,
        Some(500..=599) => FaultClass::Overloaded,
        _ if message.contains("overloaded") => FaultClass::Overloaded,
        _ => return None,
    };
    Some(class)
}

/// The fault that the program explains in plain text instead of a result, as it does for limits of a plan before the
/// service is asked. Connections are left out of it: other programs' warnings speak of them.
pub(super) fn of_plain_text(said: &[u8], now: &Zoned) -> Option<Fault> {
    let text = String::from_utf8_lossy(said);
    let class = class_by_words(&text.to_lowercase()).filter(|class| *class != FaultClass::Network)?;
    let resets_in_ms = resets::in_ms(&text, now).filter(|_| class == FaultClass::RateLimited);
    Some(Fault { resets_in_ms, ..Fault::new(class, format!("claude: {}", quote_output(said))) })
}

/// Whether a message says that a limit of the service or of the plan is reached.
pub(super) fn is_limit(message: &str) -> bool {
    let message = message.to_lowercase();
    // "hit your limit", "hit your session limit", "reached your weekly limit".
    let of_yours = ["hit your ", "reached your "].iter().any(|start| {
        message
            .split_once(start)
            .is_some_and(|(_, rest)| rest.split(['.', '\n']).next().unwrap_or_default().contains("limit"))
    });
    of_yours || ["rate limit", "usage limit", "limit reached"].iter().any(|words| message.contains(words))
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
    let fault =
        |class, hint: &str| Some(Fault::new(class, format!("claude: {}{hint}", quote_output(stderr))));
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
