//! What trouble with a service means for the ask. Services differ in their status codes and agree, more or less, in
//! their words, so both are looked at.

use serde_json::Value;

use super::wire::{Trouble, What};
use crate::{Fault, FaultClass, Problem};

/// How much of a service's words a message repeats, in characters.
const SAID_MAX: usize = 500;

/// What is known about the service.
#[derive(Debug, Clone)]
pub(super) struct Service {
    /// The address of the API.
    pub base: String,
    /// Whether it is on this machine.
    pub is_local: bool,
    pub key_env: Option<String>,
    pub model: String,
}

/// The fault that trouble is.
pub(super) fn fault(trouble: &Trouble, service: &Service) -> Fault {
    let mut fault = problem(trouble, service).into_fault();
    fault.resets_in_ms = trouble.resets_in_ms.filter(|_| can_pass(fault.class));
    fault
}

/// What is wrong, and what to do about it.
pub(super) fn problem(trouble: &Trouble, service: &Service) -> Problem {
    match trouble.what {
        What::Status(status) => answered(Some(status), &trouble.said, service),
        What::Reported => answered(None, &trouble.said, service),
        what => on_the_way(what, &trouble.said, service),
    }
}

impl Problem {
    /// As an ask fails with it.
    pub(super) fn into_fault(self) -> Fault {
        let Problem { what, hint, class } = self;
        Fault::new(class, if hint.is_empty() { what } else { format!("{what} ({hint})") })
    }
}

/// Whether waiting can help at all.
fn can_pass(class: FaultClass) -> bool {
    matches!(class, FaultClass::RateLimited | FaultClass::Overloaded)
}

/// Trouble on the way.
fn on_the_way(what: What, said: &str, service: &Service) -> Problem {
    let Service { base, is_local, key_env, .. } = service;
    let said = brief(said);
    let key = key_env.as_deref().unwrap_or("key_env");
    let (class, what, hint) = match what {
        What::NoKey => (
            FaultClass::Auth,
            format!("the environment variable `{said}` is not set"),
            format!("set `{said}` to the key of the service, or change `key_env`"),
        ),
        What::ConnectionRefused | What::Unreachable if *is_local => (
            FaultClass::MissingProgram,
            format!("no server answers at {base}: {said}"),
            "start it, or correct `base_url`".to_owned(),
        ),
        // Somebody else's machine, or the way there: it comes back by itself, or the user reads this while waiting.
        What::ConnectionRefused | What::Unreachable => (
            FaultClass::Overloaded,
            format!("{base} cannot be reached: {said}"),
            "is there a network, and is `base_url` right?".to_owned(),
        ),
        What::Tls => (
            FaultClass::MissingProgram,
            format!("no encrypted connection to {base}: {said}"),
            "begin `base_url` with `http://` if it speaks that; `SSL_CERT_FILE` names a file of certificates to trust"
                .to_owned(),
        ),
        What::Proxy => (
            FaultClass::MissingProgram,
            format!("the proxy does not lead to {base}: {said}"),
            "see `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`".to_owned(),
        ),
        What::Silent => (FaultClass::Timeout, format!("{base} was silent for too long: {said}"), String::new()),
        What::BrokeOff => (FaultClass::Crashed, format!("the answer of {base} broke off: {said}"), String::new()),
        What::Unsendable => (
            FaultClass::MissingProgram,
            format!("the request to {base} cannot be written: {said}"),
            format!("correct the settings, or the key in `{key}`"),
        ),
        What::Garbled | What::Status(_) | What::Reported => {
            (FaultClass::Malformed, format!("what {base} sent cannot be read: {said}"), String::new())
        }
    };
    Problem { what, hint, class }
}

/// An error that the service reported: with an HTTP status, or inside an answer.
fn answered(status: Option<u16>, body: &str, service: &Service) -> Problem {
    let said = Said::of(body);
    let status = status.or(said.status);
    let class = class(status, &said);
    let code = status.map(|status| format!(" {status}")).unwrap_or_default();
    let words = if said.message.is_empty() { "nothing more".to_owned() } else { brief(&said.message) };
    let what = format!("{} answered{code}: {words}", service.base);
    Problem { what, hint: hint(class, status, &said, service), class }
}

/// An error in the words of a service.
struct Said {
    message: String,
    /// Its code and type.
    code: String,
    /// All of it, in lower case.
    all: String,
    /// An HTTP status that stands in it: inside a stream there is no other place for it.
    status: Option<u16>,
}

impl Said {
    /// Services write `{"error": {"message", "type", "code"}}`; `{"error": "…"}`, the inner part alone, `{"detail"}`
    /// and bare text are met too, and so is an array around all that.
    fn of(body: &str) -> Said {
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
        Said {
            message: message.to_owned(),
            code,
            all,
            status: status.filter(|status| (400..600).contains(status)),
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }

    /// Whether its code or type is one of these; its message may say anything.
    fn is(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.code.contains(code))
    }
}

fn class(status: Option<u16>, said: &Said) -> FaultClass {
    // What cannot pass comes first: a limit of the account is a 429 too, and an overflow a 400 or even a 500.
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
        // 408, 409 and 425 say "again", as all of the server's own do.
        Some(408 | 409 | 425 | 500..) => FaultClass::Overloaded,
        // The address is wrong, or leads elsewhere.
        Some(404 | 405 | ..400) => FaultClass::MissingProgram,
        Some(_) => FaultClass::Refused,
        None if said.is(&["rate_limit", "too_many_requests"]) => FaultClass::RateLimited,
        None if said.is(&["server_error", "overloaded", "unavailable", "internal"]) => FaultClass::Overloaded,
        None if said.is(&["invalid_request"]) => FaultClass::Refused,
        None => FaultClass::Crashed,
    }
}

fn is_overflow(status: Option<u16>, said: &Said) -> bool {
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
    // 429 speaks of tokens a minute, 401 and 403 of nothing of the kind.
    status == Some(413) || (matches!(status, None | Some(400 | 422 | 500)) && said.has(&words))
}

fn is_unknown_model(status: Option<u16>, said: &Said) -> bool {
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
            // `Unsupported parameter: … with this model` is about the parameter.
            && !said.has(&["parameter", "response_format", "json_schema"]))
}

fn hint(class: FaultClass, status: Option<u16>, said: &Said, service: &Service) -> String {
    match class {
        FaultClass::Auth if status == Some(407) => "log in to the proxy, see `HTTPS_PROXY`".to_owned(),
        FaultClass::Auth if status == Some(402) || said.is(&["quota", "billing", "balance"]) => {
            "the account has to be paid for before it goes on".to_owned()
        }
        FaultClass::Auth => match &service.key_env {
            Some(name) => format!("see the key in `{name}`"),
            None => "set `key_env` to the variable that holds its key".to_owned(),
        },
        FaultClass::UnknownModel => format!("it was asked for `{}`", service.model),
        FaultClass::MissingProgram if status.is_some_and(|status| status < 400) => {
            "redirects are not followed, because the key would go along: correct `base_url`".to_owned()
        }
        FaultClass::MissingProgram => "correct `base_url`, which as a rule ends with `/v1`".to_owned(),
        FaultClass::Refused if said.has(&["response_format", "json_schema"]) => {
            "if it knows no schemas, set `schema = \"json_object\"` or `\"none\"`".to_owned()
        }
        FaultClass::Refused if said.has(&["max_completion_tokens", "max_tokens"]) => {
            "`token_field` says which of the two names is sent".to_owned()
        }
        FaultClass::Refused if said.has(&["stream_options"]) => "the server is too old".to_owned(),
        _ => String::new(),
    }
}

/// The beginning of what others said, in one line and without what a terminal would obey.
pub(super) fn brief(text: &str) -> String {
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
