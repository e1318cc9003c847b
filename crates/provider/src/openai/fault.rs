//! Classifies trouble with a service. Services differ in their status codes but largely agree in their messages, so
//! both are considered.

use serde_json::Value;

use super::wire::{RequestTrouble, TroubleKind};
use crate::{Fault, FaultClass, Problem};

/// The maximum number of characters quoted from a service's message.
const SAID_MAX: usize = 500;

/// The service, as far as messages need it.
#[derive(Debug, Clone)]
pub(super) struct ServiceContext {
    /// The URL of the API.
    pub base: String,
    /// Whether it runs on this machine.
    pub is_local: bool,
    pub key_env: Option<String>,
    pub model: String,
}

pub(super) fn fault_of_trouble(trouble: &RequestTrouble, service: &ServiceContext) -> Fault {
    let mut fault = problem_of_trouble(trouble, service).into_fault();
    fault.resets_in_ms = trouble.resets_in_ms.filter(|_| can_pass(fault.class));
    fault
}

/// The problem and how to fix it.
pub(super) fn problem_of_trouble(trouble: &RequestTrouble, service: &ServiceContext) -> Problem {
    match trouble.what {
        TroubleKind::Status(status) => problem_of_service_error(Some(status), &trouble.said, service),
        TroubleKind::Reported => problem_of_service_error(None, &trouble.said, service),
        what => transport_problem(what, &trouble.said, service),
    }
}

impl Problem {
    /// The fault of an ask with this problem.
    pub(super) fn into_fault(self) -> Fault {
        let Problem { what, hint, class } = self;
        Fault::new(class, if hint.is_empty() { what } else { format!("{what} ({hint})") })
    }
}

/// Whether a later retry can succeed.
fn can_pass(class: FaultClass) -> bool {
    matches!(class, FaultClass::RateLimited | FaultClass::Overloaded | FaultClass::Network)
}

/// The problem of trouble without a response.
fn transport_problem(what: TroubleKind, said: &str, service: &ServiceContext) -> Problem {
    let ServiceContext { base, is_local, key_env, .. } = service;
    let said = shorten_text(said);
    let key = key_env.as_deref().unwrap_or("key_env");
    let (class, what, hint) = match what {
        TroubleKind::NoKey => (
            FaultClass::Auth,
            format!("the environment variable `{said}` is not set"),
            format!("set `{said}` to the key of the service, or change `key_env`"),
        ),
        TroubleKind::ConnectionRefused | TroubleKind::Unreachable if *is_local => (
            FaultClass::MissingProgram,
            format!("no server is running at {base}: {said}"),
            "start the server, or correct `base_url`".to_owned(),
        ),
        // A remote service or the network may recover; meanwhile the user sees the message.
        TroubleKind::ConnectionRefused | TroubleKind::Unreachable => (
            FaultClass::Network,
            format!("{base} is unreachable: {said}"),
            "check the network and `base_url`".to_owned(),
        ),
        TroubleKind::Tls => (
            FaultClass::MissingProgram,
            format!("TLS connection to {base} failed: {said}"),
            "start `base_url` with `http://` if the service has no TLS; set `SSL_CERT_FILE` to trust more certificates"
                .to_owned(),
        ),
        TroubleKind::Proxy => (
            FaultClass::Network,
            format!("the proxy cannot connect to {base}: {said}"),
            "check `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`".to_owned(),
        ),
        TroubleKind::Silent => (FaultClass::Timeout, format!("{base} timed out: {said}"), String::new()),
        TroubleKind::BrokeOff => (FaultClass::Crashed, format!("the answer of {base} was interrupted: {said}"), String::new()),
        TroubleKind::Unsendable => (
            FaultClass::MissingProgram,
            format!("the request to {base} is invalid: {said}"),
            format!("correct the settings, or the key in `{key}`"),
        ),
        TroubleKind::Garbled | TroubleKind::Status(_) | TroubleKind::Reported => {
            (FaultClass::Malformed, format!("{base} sent an invalid response: {said}"), String::new())
        }
    };
    Problem { what, hint, class }
}

/// The problem of an error that the service reported, by an HTTP status or inside an answer.
fn problem_of_service_error(status: Option<u16>, body: &str, service: &ServiceContext) -> Problem {
    let said = ServiceError::parse(body);
    let status = status.or(said.status);
    let class = classify_service_error(status, &said);
    let code = status.map(|status| format!(" {status}")).unwrap_or_default();
    let words = if said.message.is_empty() { "no message".to_owned() } else { shorten_text(&said.message) };
    let what = format!("{} answered{code}: {words}", service.base);
    Problem { what, hint: hint_of_service_error(class, status, &said, service), class }
}

/// The parsed error of a service.
struct ServiceError {
    message: String,
    /// Its code, type and status.
    code: String,
    /// Code and message, in lower case.
    all: String,
    /// The HTTP status in the error, which is the only one inside a stream.
    status: Option<u16>,
}

impl ServiceError {
    /// Services send `{"error": {"message", "type", "code"}}`. Some send `{"error": "…"}`, the inner object alone,
    /// `{"detail"}` or plain text, and some wrap it in an array.
    fn parse(body: &str) -> ServiceError {
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let message = [error, &error["message"], &error["detail"], &value["message"], &value["detail"]];
        let message = message.into_iter().find_map(Value::as_str).unwrap_or(body.trim());
        let words = ["code", "type", "status"].map(|field| error[field].as_str().unwrap_or_default());
        let number = |field: &str| error[field].as_u64().or_else(|| error[field].as_str()?.parse().ok());
        let status =
            ["code", "status"].into_iter().find_map(number).and_then(|number| u16::try_from(number).ok());
        let code = words.join(" ").to_lowercase();
        let all = format!("{code} {}", message.to_lowercase());
        ServiceError {
            message: message.to_owned(),
            code,
            all,
            status: status.filter(|status| (400..600).contains(status)),
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }

    /// Whether its code, type or status contains one of these.
    fn is(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.code.contains(code))
    }
}

fn classify_service_error(status: Option<u16>, said: &ServiceError) -> FaultClass {
    // Permanent faults first: an exhausted account is also a 429, and an overflow is a 400 or even a 500.
    if is_overflow(status, said) {
        return FaultClass::ContextOverflow;
    }
    if status == Some(402) || said.is(&["insufficient_quota", "billing_", "insufficient_balance"]) {
        return FaultClass::Auth;
    }
    let filtered = said.is(&["content_filter", "content_policy", "moderation"]);
    if filtered || (status == Some(403) && said.has(&["moderation", "flagged"])) {
        return FaultClass::Refused;
    }
    let wrong_key = said.is(&["invalid_api_key", "authentication_error"]) || said.has(&["api key not valid"]);
    if matches!(status, Some(401 | 403 | 407)) || wrong_key {
        return FaultClass::Auth;
    }
    if is_unknown_model(status, said) {
        return FaultClass::UnknownModel;
    }
    match status {
        Some(429) => FaultClass::RateLimited,
        Some(501 | 505) => FaultClass::Refused,
        // 408, 409, 425 and server errors allow a retry.
        Some(408 | 409 | 425 | 500..) => FaultClass::Overloaded,
        // The URL is wrong or redirects.
        Some(404 | 405 | ..400) => FaultClass::MissingProgram,
        Some(_) => FaultClass::Refused,
        None if said.is(&["rate_limit", "too_many_requests"]) => FaultClass::RateLimited,
        None if said.is(&["server_error", "overloaded", "unavailable", "internal"]) => FaultClass::Overloaded,
        None if said.is(&["invalid_request"]) => FaultClass::Refused,
        None => FaultClass::Crashed,
    }
}

fn is_overflow(status: Option<u16>, said: &ServiceError) -> bool {
    let words = [
        "context_length_exceeded",
        "exceed_context_size",
        "maximum context length",
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "input is too long",
        "string_above_max_length",
    ];
    // A 429 is about tokens per minute; 401 and 403 are never about the context.
    status == Some(413) || (matches!(status, None | Some(400 | 422 | 500)) && said.has(&words))
}

fn is_unknown_model(status: Option<u16>, said: &ServiceError) -> bool {
    let missing = [
        "not found",
        "not exist",
        "unknown",
        "invalid model",
        "not a valid model",
        "no such",
        "not supported",
    ];
    said.is(&["model_not_found", "model_not_exist"])
        || (matches!(status, None | Some(400 | 404 | 422)) && said.has(&["model"]) && said.has(&missing)
            // `Unsupported parameter: … with this model` is about the parameter, not the model.
            && !said.has(&["parameter", "response_format", "json_schema"]))
}

fn hint_of_service_error(
    class: FaultClass,
    status: Option<u16>,
    said: &ServiceError,
    service: &ServiceContext,
) -> String {
    match class {
        FaultClass::Auth if status == Some(407) => "set the proxy's login in `HTTPS_PROXY`".to_owned(),
        FaultClass::Auth if status == Some(402) || said.is(&["quota", "billing", "balance"]) => {
            "the account needs payment".to_owned()
        }
        FaultClass::Auth => match &service.key_env {
            Some(name) => format!("check the key in `{name}`"),
            None => "set `key_env` to the variable with the key".to_owned(),
        },
        FaultClass::UnknownModel => format!("the requested model is `{}`", service.model),
        FaultClass::MissingProgram if status.is_some_and(|status| status < 400) => {
            "correct `base_url`: redirects are not followed, because they would receive the key".to_owned()
        }
        FaultClass::MissingProgram => "correct `base_url`, which usually ends with `/v1`".to_owned(),
        FaultClass::Refused if said.has(&["response_format", "json_schema"]) => {
            "if the service does not support schemas, set `schema = \"json_object\"` or `\"none\"`".to_owned()
        }
        FaultClass::Refused if said.has(&["max_completion_tokens", "max_tokens"]) => {
            "set `token_field` to the other name".to_owned()
        }
        FaultClass::Refused if said.has(&["stream_options"]) => {
            "the server does not support `stream_options`; update it".to_owned()
        }
        _ => String::new(),
    }
}

/// The beginning of an external text, on one line and without control characters.
pub(super) fn shorten_text(text: &str) -> String {
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut cut: String = plain.take(SAID_MAX + 1).collect();
    if let Some((end, _)) = cut.char_indices().nth(SAID_MAX) {
        cut.truncate(end);
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests;
