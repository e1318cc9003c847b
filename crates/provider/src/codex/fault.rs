//! Classifies faults by the text of the program's messages, some of which are the service's own.

use jiff::Zoned;
use serde_json::Value;

use crate::{
    Fault, FaultClass,
    program::{resets, wording::quote_output},
};

/// Phrases and their classes, the most specific first.
const WORDS: [(&[&str], FaultClass); 11] = [
    (&["no rollout found", "no conversation found", "thread not found"], FaultClass::SessionLost),
    (
        &[
            "context window",
            "context_length_exceeded",
            "ran out of room",
            "413 payload too large",
            "input exceeds the maximum length",
        ],
        FaultClass::ContextOverflow,
    ),
    // Waiting does not help: the account needs payment.
    (&["quota exceeded", "insufficient_quota", "billing details"], FaultClass::Auth),
    (&["usage limit", "rate limit", "429 too many requests", "rate_limit"], FaultClass::RateLimited),
    (
        &[
            "401 unauthorized",
            "403 forbidden",
            "not logged in",
            "log in again",
            "sign in again",
            "invalid_api_key",
            "missing environment variable",
        ],
        FaultClass::Auth,
    ),
    (&["content_filter", "usage policy", "invalid_prompt", "flagged"], FaultClass::Refused),
    (&["max_output_tokens"], FaultClass::OverCap),
    (
        &["model_not_found", "404 not found", "model: ", "is not supported when using codex"],
        FaultClass::UnknownModel,
    ),
    (
        &["high demand", "at capacity", "overloaded", "unexpected status 5", "last status: 5"],
        FaultClass::Overloaded,
    ),
    (
        &[
            "error sending request",
            "failed to lookup address",
            "dns error",
            "connection refused",
            "connection reset",
            "407 proxy authentication",
        ],
        FaultClass::Network,
    ),
    (&["invalid_request_error", "unexpected status 4"], FaultClass::Refused),
];

/// Phrases of an answer that had started although no output was reported. `stream disconnected` alone also occurs if
/// the service was never reached.
const BEGUN: [&str; 2] = ["incomplete response returned", "stream closed before response.completed"];

/// The fault of a failed turn.
pub(super) fn of_turn(message: &str, now: &Zoned) -> Fault {
    let said = extract_service_message(message);
    let words = message.to_lowercase();
    let known = WORDS.iter().find(|(words_of, _)| words_of.iter().any(|word| words.contains(word)));
    let class = known.map_or(FaultClass::Crashed, |(_, class)| *class);
    let mut fault = Fault::new(class, format!("codex: {}", quote_output(said.as_bytes())));
    if class == FaultClass::RateLimited {
        fault.resets_in_ms = resets::in_ms(&said, now);
    }
    fault.usage_unknown = BEGUN.iter().any(|word| words.contains(word));
    fault
}

/// The service's message, if the program passes on a whole response body.
fn extract_service_message(message: &str) -> String {
    let body: Option<Value> = serde_json::from_str(message).ok();
    let said = body.as_ref().and_then(|body| body.pointer("/error/message")?.as_str());
    said.unwrap_or(message).to_owned()
}

/// The fault of a program that failed to start and printed the reason to standard error.
pub(super) fn of_stderr(stderr: &[u8], now: &Zoned) -> Option<Fault> {
    let said = String::from_utf8_lossy(stderr);
    let fault = of_turn(&said, now);
    // Other words of a log may come from anywhere.
    if matches!(fault.class, FaultClass::SessionLost | FaultClass::RateLimited)
        || fault.class == FaultClass::ContextOverflow && said.contains("maximum length")
    {
        return Some(fault);
    }
    let hint = if said.contains("unexpected argument") || said.contains("Unknown feature flag") {
        "; this version is not supported"
    } else if said.contains("Error loading config") || said.contains("unknown configuration field") {
        "; correct its configuration"
    } else {
        return None;
    };
    Some(Fault::new(FaultClass::MissingProgram, format!("codex: {}{hint}", quote_output(stderr))))
}

#[cfg(test)]
mod tests {
    use jiff::{civil::date, tz::TimeZone};

    use super::*;

    fn now() -> Zoned {
        date(2026, 11, 22).at(1, 45, 0, 0).to_zoned(TimeZone::UTC).unwrap()
    }

    #[test]
    fn observed_messages_are_classified() {
        let classify = |message: &str| {
            let fault = of_turn(message, &now());
            (fault.class, fault.resets_in_ms)
        };
        let url = "url: http://127.0.0.1/v1/responses";
        for (message, class, resets) in [
            ("exceeded retry limit, last status: 429 Too Many Requests", FaultClass::RateLimited, None),
            (
                "rate limit exceeded: Rate limit reached. Please try again in 11.054s.",
                FaultClass::RateLimited,
                Some(11_054),
            ),
            (
                "You’ve hit your usage limit. Upgrade to Pro, or try again at 2:45 AM.",
                FaultClass::RateLimited,
                Some(3_660_000),
            ),
            ("Quota exceeded. Check your plan and billing details.", FaultClass::Auth, None),
            (&format!("unexpected status 401 Unauthorized: no, {url}"), FaultClass::Auth, None),
            (&format!("unexpected status 403 Forbidden: no, {url}"), FaultClass::Auth, None),
            (&format!("unexpected status 404 Not Found: model: x, {url}"), FaultClass::UnknownModel, None),
            (
                &format!("unexpected status 413 Payload Too Large: x, {url}"),
                FaultClass::ContextOverflow,
                None,
            ),
            (&format!("unexpected status 418 I'm a teapot: x, {url}"), FaultClass::Refused, None),
            (
                &format!("stream disconnected before completion: error sending request for {url}"),
                FaultClass::Network,
                None,
            ),
            (&format!("unexpected status 529 <unknown status code>: x, {url}"), FaultClass::Overloaded, None),
            (
                "We’re currently experiencing high demand, which may cause temporary errors.",
                FaultClass::Overloaded,
                None,
            ),
            (
                "Codex ran out of room in the model's context window. Start a new thread or clear earlier history \
                 before retrying.",
                FaultClass::ContextOverflow,
                None,
            ),
            (
                "stream disconnected before completion: Incomplete response returned, reason: content_filter",
                FaultClass::Refused,
                None,
            ),
            (
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                FaultClass::Refused,
                None,
            ),
            ("Incomplete response returned, reason: max_output_tokens", FaultClass::OverCap, None),
            (
                "stream disconnected before completion: stream closed before response.completed",
                FaultClass::Crashed,
                None,
            ),
        ] {
            assert_eq!(classify(message), (class, resets), "{message}");
        }
    }

    #[test]
    fn an_answer_that_had_started_has_unknown_usage() {
        let unknown = |message: &str| of_turn(message, &now()).usage_unknown;
        let broken = "stream disconnected before completion:";
        assert!(unknown(&format!("{broken} stream closed before response.completed")));
        assert!(unknown(&format!("{broken} Incomplete response returned, reason: content_filter")));
        assert!(!unknown(&format!("{broken} error sending request for url (http://127.0.0.1/v1)")));
        assert!(!unknown("unexpected status 401 Unauthorized: no"));
    }

    #[test]
    fn the_message_is_extracted_from_a_response_body() {
        let body =
            r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "bad request"}}"#;
        let fault = of_turn(body, &now());
        assert_eq!((fault.class, fault.message.as_str()), (FaultClass::Refused, "codex: bad request"));
        let body = r#"{"error": {"type": "invalid_request_error", "message": "model: nope-1"}}"#;
        assert_eq!(of_turn(body, &now()).class, FaultClass::UnknownModel);
    }
}
