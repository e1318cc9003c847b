use serde_json::json;

use super::*;
use crate::{
    Cap, Price, Prices,
    openai::{
        TokenField,
        testing::{Service as Server, prepare, provider, request, status},
    },
};

fn at(base_url: &str) -> OpenAiSettings {
    OpenAiSettings::new(base_url)
}

fn local() -> OpenAiSettings {
    at("http://localhost:1/v1")
}

/// The body of a request.
fn body(settings: OpenAiSettings, request: &Request) -> serde_json::Value {
    prepare(settings, request).map(|(job, _)| job.body).unwrap()
}

#[test]
fn capabilities_follow_the_settings() {
    let can = provider(local()).capabilities();
    assert!(can.schema && can.system_prompt && can.tools && can.progress);
    assert!(!can.sessions && !can.fork && !can.edits && !can.cost);
    let price = Price { input: 1.0, cached_input: None, output: 1.0, as_of: None };
    let priced = OpenAiSettings { prices: Prices([("m".to_owned(), price)].into()), ..local() };
    assert!(provider(priced).capabilities().cost);
    let told = |schema| provider(OpenAiSettings { schema, ..local() }).capabilities().schema;
    assert_eq!((told(SchemaMode::JsonObject), told(SchemaMode::None)), (true, false));
}

#[test]
fn anthropic_short_names_must_be_mapped() {
    let provider = provider(local());
    assert_eq!(["opus", "sonnet", "haiku"].map(|name| provider.map_model_name(name)), [None, None, None]);
    assert_eq!(provider.map_model_name("gpt-5").as_deref(), Some("gpt-5"));
    assert_eq!(provider.map_model_name("claude-opus-4").as_deref(), Some("claude-opus-4"));
}

#[test]
fn a_request_contains_the_whole_ask() {
    let mut settings = local();
    settings.temperature = Some(0.0);
    settings.extra.insert("seed".to_owned(), json!(7));
    let ask = Request {
        step: "Prüfen & mehr".to_owned(),
        system: Some("Be brief.".to_owned()),
        schema: Some(json!({"type": "object", "properties": {}, "additionalProperties": false})),
        cap: Cap { tokens: Some(1000), usd: None },
        ..request()
    };
    let text = serde_json::to_string_pretty(&body(settings, &ask)).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "model": "m",
      "messages": [
        {
          "role": "system",
          "content": "Be brief."
        },
        {
          "role": "user",
          "content": "Is it good?"
        }
      ],
      "stream": true,
      "stream_options": {
        "include_usage": true
      },
      "response_format": {
        "type": "json_schema",
        "json_schema": {
          "name": "Pr_fen___mehr",
          "strict": true,
          "schema": {
            "type": "object",
            "properties": {},
            "additionalProperties": false
          }
        }
      },
      "max_tokens": 979,
      "temperature": 0.0,
      "seed": 7
    }
    "#);
}

#[test]
fn a_schema_is_sent_by_schema_mode() {
    let format = |schema: SchemaMode, asked: serde_json::Value| {
        let ask = Request { schema: Some(asked), ..request() };
        let body = body(OpenAiSettings { schema, ..local() }, &ask);
        let prompt = body["messages"][0]["content"].as_str().unwrap().to_owned();
        (body.get("response_format").cloned(), prompt)
    };
    let open = json!({"type": "object"});
    let (by_schema, prompt) = format(SchemaMode::JsonSchema, open.clone());
    let by_schema = by_schema.unwrap();
    assert_eq!(by_schema["json_schema"], json!({"name": "judge", "strict": false, "schema": open}));
    assert_eq!(prompt, "Is it good?");
    let (as_json, prompt) = format(SchemaMode::JsonObject, open.clone());
    assert_eq!(as_json, Some(json!({"type": "json_object"})));
    assert!(prompt.starts_with("Is it good?\n\n") && prompt.contains(r#"{"type":"object"}"#), "{prompt}");
    assert_eq!(format(SchemaMode::None, open), (None, "Is it good?".to_owned()));
    assert_eq!(body(local(), &request()).get("response_format"), None);
}

#[test]
fn an_ask_keeps_to_its_cap() {
    let price = Price { input: 1.0, cached_input: None, output: 10.0, as_of: None };
    // 400 bytes are about 100 tokens, which cost 0.0001 dollars.
    let ask = |tokens, usd| Request { prompt: "x".repeat(400), cap: Cap { tokens, usd }, ..request() };
    let bound = |settings: OpenAiSettings, ask: Request| {
        let body = body(settings, &ask);
        body.get("max_tokens").and_then(serde_json::Value::as_u64)
    };
    let priced = || OpenAiSettings { prices: Prices([("m".to_owned(), price)].into()), ..local() };
    let at_most = |tokens| OpenAiSettings { max_output_tokens: Some(tokens), ..priced() };
    assert_eq!(bound(priced(), ask(None, None)), None);
    assert_eq!(bound(priced(), ask(Some(1000), None)), Some(900));
    assert_eq!(bound(priced(), ask(None, Some(0.0021))), Some(200));
    assert_eq!(bound(priced(), ask(Some(150), Some(0.0021))), Some(50));
    assert_eq!(bound(local(), ask(None, Some(0.0021))), None, "the cost is unknown without a price");
    assert_eq!(bound(at_most(30), ask(Some(1000), None)), Some(30));
    assert_eq!(bound(at_most(30), ask(None, None)), Some(30));
    assert_eq!(bound(at_most(3000), ask(Some(1000), None)), Some(900));
    let new = OpenAiSettings { token_field: TokenField::MaxCompletionTokens, ..at_most(30) };
    assert_eq!(body(new, &ask(None, None))["max_completion_tokens"], json!(30));

    let over = |tokens, usd| prepare(priced(), &ask(tokens, usd)).err().unwrap();
    assert_eq!(over(Some(100), None).class, FaultClass::OverCap);
    insta::assert_snapshot!(over(Some(100), None), @"the request is about 100 tokens; its limit of 100 tokens leaves nothing for an answer");
    insta::assert_snapshot!(over(None, Some(0.00005)), @"the request is about 100 tokens; its limit of 0.00005 USD leaves nothing for an answer");
}

#[test]
fn invalid_settings_fail_the_ask() {
    let fault =
        |settings| prepare(settings, &request()).err().map(|fault| format!("{:?}: {fault}", fault.class));
    let nameless = prepare(local(), &Request { model: None, ..request() }).err().unwrap();
    assert_eq!(nameless.class, FaultClass::UnknownModel);
    let keyless = OpenAiSettings { key_env: Some("CUEGATE_TEST_KEY_THAT_IS_NOT_SET".to_owned()), ..local() };
    let told = [fault(at("nowhere")), fault(keyless), fault(local())].map(|fault| format!("{fault:?}"));
    insta::assert_snapshot!(told.join("\n"), @r#"
    Some("MissingProgram: `base_url` is not the URL of an API: it does not start with `https://` or `http://` (use a URL such as `https://api.example.com/v1` or `http://localhost:8080/v1`)")
    Some("Auth: the environment variable `CUEGATE_TEST_KEY_THAT_IS_NOT_SET` is not set (set `CUEGATE_TEST_KEY_THAT_IS_NOT_SET` to the key of the service, or change `key_env`)")
    None
    "#);
    let named = OpenAiSettings { model: Some("mine".to_owned()), ..local() };
    let ask = Request { model: None, ..request() };
    assert_eq!(body(named, &ask)["model"], "mine");
}

#[test]
fn the_launch_does_not_contain_the_key() {
    let path = std::env::var("PATH").unwrap();
    let provider = provider(OpenAiSettings { key_env: Some("PATH".to_owned()), ..local() });
    let Ok(PreparedAsk::Process { launch, .. }) = provider.prepare(&request()) else { panic!("a program") };
    assert!(!format!("{launch:?}").contains(&path));
    assert!(!String::from_utf8_lossy(&launch.stdin).contains(&path));
    assert!(!format!("{provider:?} {:?}", provider.inspect()).contains(&path));
}

#[test]
fn a_local_server_is_probed() {
    const PATIENT: Duration = Duration::from_secs(60);
    let server = Server::new(&[status("200 OK", "", r#"{"data": []}"#)]);
    let base = server.base.clone();
    let settings =
        OpenAiSettings { model: Some("m".to_owned()), key_env: Some("PATH".to_owned()), ..at(&server.base) };
    let found = provider(settings).look(PATIENT);
    assert_eq!(found.problems, []);
    assert_eq!((found.at, found.model.as_deref()), (Some(base), Some("m")));
    assert_eq!(found.login, Login::Key("PATH".to_owned()));
    let asked = server.request();
    assert!(asked.starts_with("GET /v1/models HTTP/1.1\r\n"), "{asked}");

    let problems = |pieces: &[String]| provider(at(&Server::new(pieces).base)).look(PATIENT).problems;
    assert_eq!(problems(&[status("404 Not Found", "", "")]), [], "listing models is optional");
    assert_eq!(problems(&[status("401 Unauthorized", "", "")])[0].class, FaultClass::Auth);
    assert_eq!(problems(&["SSH-2.0-x\r\n\r\n".to_owned()])[0].class, FaultClass::Malformed);
    let busy = Server::silent_after(&[""; 0]);
    let found = provider(at(&busy.base)).look(Duration::from_millis(20));
    assert_eq!(found.problems, [], "it may be busy");
}

#[test]
fn a_missing_local_server_is_a_problem() {
    // Nothing listens on port 1.
    let found = provider(local()).inspect();
    assert_eq!((found.problems[0].class, found.login), (FaultClass::MissingProgram, Login::NotNeeded));
    assert_eq!(found.problems[0].hint, "start the server, or correct `base_url`");
}

#[test]
fn inspect_contacts_no_remote_service() {
    // The reserved TLD `.invalid` never resolves. A lookup or a request would take seconds or be reported as a problem.
    assert_eq!(provider(at("https://api.example.invalid/v1")).inspect().problems, []);
    let wrong = provider(OpenAiSettings {
        key_env: Some("CUEGATE_TEST_KEY_THAT_IS_NOT_SET".to_owned()),
        ..at("nowhere")
    });
    let found = wrong.inspect();
    assert_eq!((found.problems.len(), found.login), (2, Login::Missing));
}
