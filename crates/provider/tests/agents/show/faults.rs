//! Faults of the service.

use std::time::{SystemTime, UNIX_EPOCH};

use cuegate_provider::{Fault, FaultClass, Request};
use cuegate_testkit::standin::{Act, Body, Reply, Scenario};
use serde_json::json;

use crate::scene::{Scene, Who};

/// The fault of an ask whose service always sends this reply.
fn fault(who: Who, reply: Reply) -> Fault {
    let scene = Scene::new(who, Scenario::new().reply(reply.for_ever()));
    scene.say("Go.").fault().clone()
}

fn class(who: Who, reply: Reply) -> FaultClass {
    fault(who, reply).class
}

/// The connection is refused, or the name of the host is unknown.
pub fn unreachable(who: Who) {
    let fault = Scene::unreachable(who).say("Go.").fault().clone();
    // A service on this machine is not running; waiting does not start it.
    let class = if who == Who::openai { FaultClass::MissingProgram } else { FaultClass::Network };
    assert_eq!(fault.class, class, "{}", fault.message);
    if who == Who::claude {
        let nowhere = [("ANTHROPIC_BASE_URL", "http://no-such-host.invalid")];
        let scene = Scene::with_env(who, Scenario::new(), &nowhere);
        let fault = scene.say("Go.").fault().clone();
        assert_eq!(fault.class, FaultClass::Network, "{}", fault.message);
    }
}

pub fn bad_request(who: Who) {
    let fault = fault(who, Reply::any().status_with(400, Body::Message("no such field".to_owned()), &[]));
    assert_eq!(fault.class, FaultClass::Refused);
    assert!(fault.message.contains("no such field"), "{}", fault.message);
}

pub fn login(who: Who) {
    assert_eq!(class(who, Reply::any().status(401)), FaultClass::Auth);
    if who != Who::scripted {
        assert_eq!(class(who, Reply::any().status(403)), FaultClass::Auth);
    }
}

pub fn unknown_model(who: Who) {
    let body =
        json!({ "error": { "type": "not_found_error", "code": "model_not_found", "message": "model: x" } });
    assert_eq!(class(who, Reply::any().status_with(404, Body::Json(body), &[])), FaultClass::UnknownModel);
}

pub fn limit(who: Who) {
    let fault = fault(who, Reply::any().status(429));
    assert_eq!((fault.class, fault.resets_in_ms), (FaultClass::RateLimited, None));
}

/// The service sends the reset time in the form that the program passes on.
pub fn limit_with_its_end(who: Who) {
    const HOUR_S: u64 = 3_600;
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + HOUR_S;
    let (body, headers, env) = match who {
        // For a subscription; for a key the program reports no time.
        Who::claude => (
            Body::Api,
            vec![
                ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-reset", end.to_string()),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
            ],
            vec![("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_OAUTH_TOKEN", "standin")],
        ),
        Who::codex => {
            let error = json!({ "type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": end, "resets_in_seconds": HOUR_S });
            (Body::Json(json!({ "error": error })), Vec::new(), Vec::new())
        }
        _ => (Body::Api, vec![("retry-after", HOUR_S.to_string())], Vec::new()),
    };
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let scenario = Scenario::new().reply(Reply::any().status_with(429, body, &headers).for_ever());
    let scene = Scene::with_env(who, scenario, &env);
    let fault = scene.say("Go.").fault().clone();
    assert_eq!(fault.class, FaultClass::RateLimited);
    // Codex reports only the minute, at the end of which the limit ends, and the machine may be slow.
    let resets = fault.resets_in_ms.unwrap_or_else(|| panic!("{fault:?}"));
    assert!((HOUR_S - 300) * 1_000 < resets && resets <= (HOUR_S + 60) * 1_000, "{fault:?}");
}

pub fn failing(who: Who) {
    assert_eq!(class(who, Reply::any().status(500)), FaultClass::Overloaded);
    assert_eq!(class(who, Reply::any().status(529)), FaultClass::Overloaded);
}

/// The engine decides about retries.
pub fn one_try(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().status(529).for_ever()));
    scene.say("Go.").fault();
    assert_eq!(scene.standin.answered().len(), 1);
}

pub fn refusal(who: Who) {
    assert_eq!(
        class(who, Reply::any().act(Act::Refuse("I can't help with that.".to_owned()))),
        FaultClass::Refused
    );
}

pub fn overflow(who: Who) {
    assert_eq!(class(who, Reply::any().act(Act::ContextOverflow)), FaultClass::ContextOverflow);
}

/// An incomplete answer is a fault.
pub fn half_a_stream(who: Who) {
    let class = class(who, Reply::any().text("This is only ha").act(Act::DropMidStream));
    assert!(is_passing(class), "{class:?}");
}

pub fn garbage(who: Who) {
    let class = class(who, Reply::any().act(Act::Garbage));
    assert!(is_passing(class), "{class:?}");
}

pub fn failure_in_the_middle(who: Who) {
    let reply = Reply::any().text("This is only ha").act(Act::FailMidStream("overloaded_error".to_owned()));
    let class = class(who, reply);
    assert!(is_passing(class), "{class:?}");
}

/// Whether the engine retries after this fault.
fn is_passing(class: FaultClass) -> bool {
    matches!(
        class,
        FaultClass::Crashed | FaultClass::Malformed | FaultClass::Overloaded | FaultClass::Network
    )
}

/// A structured ask that fails has a fault, not an answer without structured output.
pub fn failing_structured(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().status(529).for_ever()));
    let asked = scene.put(&Request { schema: Some(super::schema()), ..scene.ask("Go.") });
    assert_eq!(asked.class(), FaultClass::Overloaded);
}
