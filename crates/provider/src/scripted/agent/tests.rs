use std::time::Duration;

use super::{ScriptedProgram, ScriptedProvider};
use crate::{
    Answer, AskKind, Fault, FaultClass, Launch, Permission, PreparedAsk, Provider, Request, Session, Usage,
    scripted::Script,
};

fn request() -> Request {
    Request {
        id: "run/7/0".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: "do it".to_owned(),
        system: None,
        schema: None,
        model: Some("large".to_owned()),
        session: None,
        permission: Permission::Plan,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: ".".into(),
        timeout_ms: 60_000,
        cap: crate::Cap::default(),
        unattended: false,
        scratch: ".".into(),
    }
}

fn provider(entries: &str, program: bool) -> ScriptedProvider {
    let script = Script::parse(&format!("answers: {entries}"), "s.yaml").unwrap();
    let program = program.then(|| ScriptedProgram { exe: "cuegate".into(), args: vec!["__scripted".into()] });
    ScriptedProvider::new(script, program)
}

async fn local(provider: &ScriptedProvider, request: &Request) -> Result<Answer, Fault> {
    match provider.prepare(request)? {
        PreparedAsk::Local(answer) => answer.await,
        PreparedAsk::Process { .. } => panic!("it needs no program"),
    }
}

fn process(provider: &ScriptedProvider) -> Option<Launch> {
    match provider.prepare(&request()) {
        Ok(PreparedAsk::Process { launch, .. }) => Some(launch),
        _ => None,
    }
}

#[tokio::test]
async fn an_answer_has_the_content_of_its_entry() {
    let provider = provider(
        "[{output: {a: 1}, text: hello, usage: {input_tokens: 5, output_tokens: 6, cost_usd: 0.5},
           blocked: no key}, {}]",
        true,
    );
    let answer = local(&provider, &request()).await.unwrap();
    assert!(answer.receipt.as_ref().is_some_and(|receipt| receipt.contains(":0:")), "{:?}", answer.receipt);
    assert_eq!(
        Answer { receipt: None, ..answer },
        Answer {
            handshake: None,
            output: Some(serde_json::json!({"a": 1})),
            text: "hello".to_owned(),
            usage: Usage { input_tokens: 5, output_tokens: 6, cost_usd: Some(0.5), ..Usage::default() },
            session: Some("scripted-0c2373c8c0160ea0".to_owned()),
            totals: None,
            model: Some("scripted".to_owned()),
            edited: false,
            blocked: Some("no key".to_owned()),
            asks_person: None,
            receipt: None,
        }
    );
    let empty = local(&provider, &request()).await.unwrap();
    assert_eq!((empty.output, empty.text.as_str(), empty.usage), (None, "", Usage::default()));
}

#[tokio::test]
async fn an_entry_can_ask_a_person_and_then_answer() {
    let provider = provider("[{step: fix, asks_user: which one?, output: {a: 1}}, {}]", false);
    let asked = local(&provider, &request()).await.unwrap();
    assert_eq!((asked.asks_person.as_deref(), asked.output), (Some("which one?"), None));
    let answered = local(&provider, &request()).await.unwrap();
    assert_eq!((answered.asks_person, answered.output), (None, Some(serde_json::json!({"a": 1}))));
    assert_eq!(local(&provider, &request()).await.unwrap().output, None, "the next entry");
}

#[tokio::test]
async fn an_entry_addresses_a_judge_by_the_step_that_it_is_for() {
    let provider = provider("[{step: fix, text: work}, {step: fix, kind: judge, text: verdict}]", false);
    let judge = Request {
        step: "fix@judge".to_owned(),
        subject: Some("fix".to_owned()),
        kind: AskKind::Judge,
        ..request()
    };
    assert_eq!(local(&provider, &judge).await.unwrap().text, "verdict");
    assert_eq!(local(&provider, &request()).await.unwrap().text, "work");
}

#[tokio::test]
async fn an_entry_can_have_another_answer_at_a_step() {
    let provider = provider("[{times: 2, output: {a: 1}, text: one, at: {check: {output: {b: 2}}}}]", false);
    let at_fix = local(&provider, &request()).await.unwrap();
    assert_eq!((at_fix.output, at_fix.text.as_str()), (Some(serde_json::json!({"a": 1})), "one"));
    let at_check = local(&provider, &Request { step: "check".to_owned(), ..request() }).await.unwrap();
    assert_eq!((at_check.output, at_check.text.as_str()), (Some(serde_json::json!({"b": 2})), ""));
    assert!(local(&provider, &request()).await.is_err(), "both used the same entry");
}

#[tokio::test]
async fn session_ids_are_derived_from_the_ask() {
    let provider = provider("[{times: 3}, {session: mine}]", false);
    let continued =
        |fork| Request { session: Some(Session { id: "s1".to_owned(), fork, totals: None }), ..request() };
    let mut sessions = Vec::new();
    for request in [request(), continued(false), continued(true), continued(false)] {
        sessions.push(local(&provider, &request).await.unwrap().session.unwrap());
    }
    assert_eq!(sessions[1..], ["s1", &sessions[0], "mine"]);
}

#[tokio::test(start_paused = true)]
async fn each_error_has_its_fault_class() {
    for (word, class) in [
        ("rate_limited", FaultClass::RateLimited),
        ("overloaded", FaultClass::Overloaded),
        ("auth", FaultClass::Auth),
        ("refused", FaultClass::Refused),
        ("context_overflow", FaultClass::ContextOverflow),
        ("session_lost", FaultClass::SessionLost),
        ("crashed", FaultClass::Crashed),
        ("timeout", FaultClass::Timeout),
        ("malformed", FaultClass::Malformed),
        ("hang", FaultClass::Timeout),
    ] {
        let provider = provider(&format!("[{{error: {word}, usage: {{input_tokens: 9}}}}, {{}}]"), false);
        let started = tokio::time::Instant::now();
        let fault = local(&provider, &request()).await.unwrap_err();
        assert_eq!((fault.class, fault.usage.input_tokens), (class, 9), "{word}: {fault}");
        assert!(fault.receipt.is_some_and(|receipt| receipt.contains(":0:")));
        let waited = Duration::from_secs(if class == FaultClass::Timeout { 60 } else { 0 });
        assert_eq!(started.elapsed().as_secs(), waited.as_secs(), "{word}");
        assert!(local(&provider, &request()).await.is_ok(), "a fault uses its entry up: {word}");
    }
    let provider = provider("[{error: rate_limited, resets_in_ms: 200}]", false);
    assert_eq!(local(&provider, &request()).await.unwrap_err().resets_in_ms, Some(200));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_limited_by_the_timeout() {
    let provider = provider("[{delay_ms: 50}, {delay_ms: 90000}, {text: next}]", false);
    let started = tokio::time::Instant::now();
    local(&provider, &request()).await.unwrap();
    assert!((50..60).contains(&started.elapsed().as_millis()));
    assert_eq!(local(&provider, &request()).await.unwrap_err().class, FaultClass::Timeout);
    assert_eq!(local(&provider, &request()).await.unwrap().text, "next");
}

#[tokio::test(start_paused = true)]
async fn the_own_timeout_precedes_the_caller_s() {
    let provider = provider("[{error: hang}, {text: next}]", false);
    let Ok(PreparedAsk::Local(answer)) = provider.prepare(&request()) else { panic!("local") };
    let fault =
        tokio::time::timeout(Duration::from_millis(request().timeout_ms), answer).await.unwrap().unwrap_err();
    assert_eq!(fault.class, FaultClass::Timeout, "its own timeout precedes a later one");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_ask_gets_the_same_entry_again() {
    let provider = provider("[{delay_ms: 500, text: first}, {text: second}]", false);
    drop(provider.prepare(&request()));
    let cut = tokio::time::timeout(Duration::from_millis(5), local(&provider, &request())).await;
    assert!(cut.is_err());
    assert_eq!(local(&provider, &request()).await.unwrap().text, "first");
    assert_eq!(local(&provider, &request()).await.unwrap().text, "second");
}

#[test]
fn an_immediate_answer_needs_no_runtime() {
    use std::task::{Context, Poll, Waker};

    let provider = provider("[{text: x}]", false);
    let Ok(PreparedAsk::Local(mut answer)) = provider.prepare(&request()) else { panic!("local") };
    let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(answer)) if answer.text == "x"));
}

#[test]
fn entries_that_act_hang_or_crash_run_in_a_child_process() {
    for (entry, expected) in [
        ("{text: x}", false),
        ("{delay_ms: 5}", false),
        ("{error: auth}", false),
        ("{error: timeout}", false),
        ("{error: malformed}", false),
        ("{writes: [{path: a, content: b}]}", true),
        ("{runs: [ls], delay_ms: 5}", true),
        ("{runs: [ls], error: auth}", true),
        ("{error: hang}", true),
        ("{error: crashed}", true),
    ] {
        let launch = process(&provider(&format!("[{entry}]"), true));
        assert_eq!(launch.is_some(), expected, "{entry}");
        if let Some(launch) = launch {
            assert_eq!((launch.program.to_str(), launch.args), (Some("cuegate"), vec!["__scripted".into()]));
        }
    }
}

#[test]
fn entries_that_act_fail_without_a_program() {
    let provider = provider("[{writes: [{path: a, content: b}]}]", false);
    for _ in 0..2 {
        let fault = provider.prepare(&request()).err().unwrap();
        assert_eq!(
            (fault.class, fault.receipt),
            (FaultClass::MissingProgram, None),
            "and its entry is not used up"
        );
        assert!(fault.message.contains("answer 1 for step `fix`"), "{}", fault.message);
    }
}
