//! What class of fault a message of a service or an agent tells of. Where agents pass on no more than a text, its words have
//! to do.

use cuegate_ask::FaultClass;
use jiff::Zoned;

use super::events::Trouble;
use crate::program::resets;

/// Words and the classes that they tell of; the first that fits counts. A message about a limit often has the words of an
/// overloaded service as well, and one about an overflow those of a bad request.
const WORDS: [(FaultClass, &[&str]); 8] = [
    (
        FaultClass::ContextOverflow,
        &[
            "maximum context",
            "context length",
            "contextoverflow",
            "context window",
            "too large to compact",
            "prompt is too long",
        ],
    ),
    (
        FaultClass::Auth,
        &[
            "unauthorized",
            "api key",
            "apikey",
            "authenticat",
            "not logged in",
            "login required",
            "credentials",
            "forbidden",
            "permission_denied",
        ],
    ),
    (
        FaultClass::RateLimited,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "quota",
            "usage limit",
            "resource_exhausted",
            "premium requests",
        ],
    ),
    (
        FaultClass::UnknownModel,
        &[
            "model not found",
            "unknown model",
            "no such model",
            "model_not_found",
            "invalid model",
            "not a valid model",
            "model is not supported",
        ],
    ),
    (FaultClass::Refused, &["content filter", "contentfilter", "content_filter", "refused to", "safety"]),
    (
        FaultClass::Overloaded,
        &[
            "overloaded",
            "unavailable",
            "internal server error",
            "bad gateway",
            "gateway timeout",
            "high demand",
            "server error",
            "server had an error",
        ],
    ),
    (
        FaultClass::Network,
        &[
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "fetch failed",
            "getaddrinfo",
            "network error",
            "socket hang up",
            "unable to connect",
            "connection error",
        ],
    ),
    (FaultClass::Refused, &["bad request", "invalid_request", "invalid request"]),
];

/// The class of an HTTP status.
pub(super) fn class_of_status(status: u64) -> Option<FaultClass> {
    match status {
        401 | 403 => Some(FaultClass::Auth),
        404 => Some(FaultClass::UnknownModel),
        413 => Some(FaultClass::ContextOverflow),
        402 | 429 => Some(FaultClass::RateLimited),
        500..=599 => Some(FaultClass::Overloaded),
        400..=499 => Some(FaultClass::Refused),
        _ => None,
    }
}

/// The class that a text tells of; `None` if it tells of no failure that is known.
pub(super) fn class_of_text(text: &str) -> Option<FaultClass> {
    let text = text.to_lowercase();
    let by_words = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    by_words.map(|(class, _)| *class).or_else(|| statuses_in(&text).find_map(class_of_status))
}

/// Numbers of three digits that stand alone.
fn statuses_in(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() == 3)
        .filter_map(|word| word.parse().ok())
}

/// The trouble of a failure with this text, and with the status if it is known.
pub(super) fn classify_failure(status: Option<u64>, text: &str, otherwise: FaultClass) -> Trouble {
    let by_text = class_of_text(text);
    // A bad request may be an overflow, which only its text says.
    let class = match status.and_then(class_of_status) {
        Some(FaultClass::Refused) | None => by_text.or(status.and_then(class_of_status)).unwrap_or(otherwise),
        // Gemini says 500 for what it does not know the status of.
        Some(FaultClass::Overloaded) if by_text == Some(FaultClass::UnknownModel) => FaultClass::UnknownModel,
        Some(class) => class,
    };
    Trouble { class, message: text.to_owned(), retry_after_ms: resets::in_ms(text, &Zoned::now()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_messages_have_a_class() {
        for (text, class) in [
            ("Internal error: 401 invalid api key (fake)", FaultClass::Auth),
            ("Authentication required", FaultClass::Auth),
            ("Error: 429 rate limited (fake)", FaultClass::RateLimited),
            ("[API Error: 429 You exceeded your current quota]", FaultClass::RateLimited),
            ("404 model not found", FaultClass::UnknownModel),
            ("This model's maximum context length is 8192 tokens", FaultClass::ContextOverflow),
            ("400 prompt is too long: 210000 tokens", FaultClass::ContextOverflow),
            ("500 internal (fake)", FaultClass::Overloaded),
            ("We're currently experiencing high demand", FaultClass::Overloaded),
            ("connect ECONNREFUSED 127.0.0.1:1", FaultClass::Network),
        ] {
            assert_eq!(class_of_text(text), Some(class), "{text}");
        }
        assert_eq!(class_of_text("I fixed 3 of the 12 tests in area 51."), None);
    }

    #[test]
    fn a_status_precedes_words_but_for_a_bad_request() {
        let class = |status, text| classify_failure(status, text, FaultClass::Crashed).class;
        assert_eq!(class(Some(429), "overloaded"), FaultClass::RateLimited);
        assert_eq!(class(Some(400), "maximum context length"), FaultClass::ContextOverflow);
        assert_eq!(class(Some(400), "strange"), FaultClass::Refused);
        assert_eq!(class(None, "strange"), FaultClass::Crashed);
        assert_eq!(class(Some(500), "gemini: model not found"), FaultClass::UnknownModel);
    }
}
