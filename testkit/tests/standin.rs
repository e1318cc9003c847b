//! The stand-ins, asked over a bare connection.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use cuegate_testkit::standin::{Act, Body, Reply, Scenario, Standin};
use serde_json::{Value, json};

/// A response as it came.
#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
    /// Whether it came to the end that its head promised.
    whole: bool,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The data of its events, without the mark at the end of Chat Completions.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let data = data.filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap_or(Value::Null)).collect()
    }

    /// Its pieces at a place in the events, put together.
    fn joined(&self, pointer: &str) -> String {
        let events = self.events();
        events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
    }
}

fn connect(standin: &Standin) -> TcpStream {
    TcpStream::connect(standin.url().strip_prefix("http://").unwrap()).unwrap()
}

/// Sends the bytes of a request and reads until the connection ends, in whatever way.
fn raw(standin: &Standin, request: &str) -> Response {
    let mut stream = connect(standin);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Response { status: 0, head: text, body: String::new(), whole: false };
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let (body, whole) = match length {
        Some(length) => (body.to_owned(), length.parse() == Ok(body.len())),
        None => dechunked(&bytes[head.len() + 4..]),
    };
    Response { status, head: head.to_owned(), body, whole }
}

fn dechunked(mut bytes: &[u8]) -> (String, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (String::from_utf8(body).unwrap(), true);
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    (String::from_utf8_lossy(&body).into_owned(), false)
}

const APIS: [&str; 3] = ["/v1/messages", "/v1/responses", "/v1/chat/completions"];

/// Asks a prompt by one of the APIs, with more fields.
fn ask(standin: &Standin, path: &str, prompt: &str, more: Value) -> Response {
    let mut body = match path {
        "/v1/responses" => json!({"model": "m", "input": prompt}),
        _ => json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = body.to_string();
    let head = "host: x\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\nanthropic-version: 1";
    raw(standin, &format!("POST {path} HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn streaming() -> Value {
    json!({"stream": true, "stream_options": {"include_usage": true}})
}

#[test]
fn every_api_says_the_same_text_whole_and_in_events() {
    let reply = Reply::to("Greet").text("Grüße an die ganze Welt").model("other").for_ever();
    let standin = Standin::start(Scenario::new().usage(70, 30, 9).reply(reply));
    let places = ["/content/0/text", "/output/0/content/0/text", "/choices/0/message/content"];
    let deltas = ["/delta/text", "/delta", "/choices/0/delta/content"];
    let ends = ["message_stop", "response.completed", ""];
    for (nth, path) in APIS.into_iter().enumerate() {
        let whole = ask(&standin, path, "Greet", json!({}));
        assert_eq!(whole.status, 200);
        assert_eq!(whole.json().pointer(places[nth]).unwrap(), "Grüße an die ganze Welt");
        assert_eq!(whole.json()["model"], "other");
        let streamed = ask(&standin, path, "Greet", streaming());
        assert!(streamed.whole && streamed.head.contains("text/event-stream"), "{streamed:?}");
        assert_eq!(streamed.joined(deltas[nth]), "Grüße an die ganze Welt");
        assert_eq!(streamed.events().last().unwrap()["type"].as_str().unwrap_or_default(), ends[nth]);
    }
}

#[test]
fn every_api_counts_as_it_does() {
    let standin = Standin::start(Scenario::new().usage(70, 30, 9).reply(Reply::any().text("x").for_ever()));
    let whole = |path| ask(&standin, path, "x", json!({})).json()["usage"].take();
    let messages = whole("/v1/messages");
    assert_eq!(messages["input_tokens"], 70);
    assert_eq!(messages["cache_read_input_tokens"], 30);
    assert_eq!(messages["output_tokens"], 9);
    let responses = whole("/v1/responses");
    assert_eq!(responses["input_tokens"], 100);
    assert_eq!(responses["input_tokens_details"]["cached_tokens"], 30);
    assert_eq!(responses["total_tokens"], 109);
    let chat = whole("/v1/chat/completions");
    assert_eq!(chat["prompt_tokens"], 100);
    assert_eq!(chat["prompt_tokens_details"]["cached_tokens"], 30);
    assert_eq!(chat["completion_tokens"], 9);

    let messages = ask(&standin, "/v1/messages", "x", streaming()).events();
    assert_eq!(messages[0]["message"]["usage"]["input_tokens"], 70);
    assert_eq!(messages[messages.len() - 2]["usage"]["output_tokens"], 9);
    let responses = ask(&standin, "/v1/responses", "x", streaming()).events();
    assert_eq!(responses.last().unwrap()["response"]["usage"]["input_tokens"], 100);
    let chat = ask(&standin, "/v1/chat/completions", "x", streaming()).events();
    assert_eq!(chat.last().unwrap()["usage"]["prompt_tokens"], 100);
    let unasked = ask(&standin, "/v1/chat/completions", "x", json!({"stream": true}));
    assert!(!unasked.body.contains("usage"), "{unasked:?}");
}

#[test]
fn the_structured_answer_comes_as_it_is_asked_for() {
    let reply = Reply::any().text("Well:").json(json!({"v": 1})).for_ever();
    let standin = Standin::start(Scenario::new().reply(reply));
    let schema = json!({"type": "json_schema", "json_schema": {"schema": {}}});
    let chat = ask(&standin, "/v1/chat/completions", "x", json!({"response_format": schema}));
    assert_eq!(chat.json()["choices"][0]["message"]["content"], r#"{"v":1}"#);
    let responses = ask(&standin, "/v1/responses", "x", json!({"text": {"format": schema}}));
    assert_eq!(responses.json()["output"][0]["content"][0]["text"], r#"{"v":1}"#);
    let tool = json!({"tools": [{"name": "StructuredOutput", "input_schema": {}}]});
    let messages = ask(&standin, "/v1/messages", "x", tool).json();
    assert_eq!(messages["content"][0]["text"], "Well:");
    assert_eq!(messages["content"][1]["input"], json!({"v": 1}));
    assert_eq!(messages["stop_reason"], "tool_use");
    let forced = json!({"tools": [{"name": "give"}], "tool_choice": {"type": "tool", "name": "give"}});
    assert_eq!(ask(&standin, "/v1/messages", "x", forced).json()["content"][1]["name"], "give");
}

#[test]
fn calls_are_streamed_in_pieces() {
    let standin =
        Standin::start(Scenario::new().reply(Reply::any().shell("echo 'a long command'").for_ever()));
    let function = json!({"name": "shell", "parameters": {"properties": {"command": {"type": "string"}}}});
    let mut more = streaming();
    more["tools"] = json!([{"type": "function", "function": function}]);
    let chat = ask(&standin, APIS[2], "x", more.clone());
    let arguments = chat.joined("/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"command":"echo 'a long command'"}"#);
    more["tools"] = json!([{"type": "function", "name": "shell", "parameters": function["parameters"]}]);
    let responses = ask(&standin, APIS[1], "x", more.clone());
    assert_eq!(responses.joined("/delta"), r#"{"command":"echo 'a long command'"}"#);
    more["tools"] = json!([{"name": "Bash"}]);
    let messages = ask(&standin, APIS[0], "x", more).joined("/delta/partial_json");
    assert_eq!(serde_json::from_str::<Value>(&messages).unwrap()["command"], "echo 'a long command'");
}

#[test]
fn a_status_comes_with_its_body_and_headers() {
    let limited = Reply::to("limit").status_with(429, Body::Api, &[("retry-after", "7")]).for_ever();
    let page = Reply::to("page").status_with(502, Body::Html("<h1>Bad gateway</h1>".to_owned()), &[]);
    let standin = Standin::start(Scenario::new().reply(limited).reply(page));
    let response = ask(&standin, APIS[0], "limit", streaming());
    assert_eq!(response.status, 429);
    assert!(response.head.contains("retry-after: 7"), "{response:?}");
    assert_eq!(response.json()["error"]["type"], "rate_limit_error");
    let response = ask(&standin, APIS[1], "limit", json!({}));
    assert_eq!(response.json()["error"]["code"], "rate_limit_exceeded");
    let response = ask(&standin, APIS[2], "page", json!({}));
    assert_eq!((response.status, response.body.as_str()), (502, "<h1>Bad gateway</h1>"));
}

#[test]
fn what_the_model_cannot_do_is_told_in_each_apis_form() {
    let scenario = Scenario::new()
        .reply(Reply::to("refuse").act(Act::Refuse("No.".to_owned())).for_ever())
        .reply(Reply::to("long").act(Act::ContextOverflow).for_ever())
        .reply(Reply::to("cut").act(Act::CutShort("Hal".to_owned())).for_ever());
    let standin = Standin::start(scenario);
    let whole = |path, prompt| ask(&standin, path, prompt, json!({})).json();
    assert_eq!(whole(APIS[0], "refuse")["stop_reason"], "refusal");
    assert_eq!(whole(APIS[1], "refuse")["output"][0]["content"][0]["refusal"], "No.");
    assert_eq!(whole(APIS[2], "refuse")["choices"][0]["message"]["refusal"], "No.");
    let streamed = |path, prompt| ask(&standin, path, prompt, streaming());
    assert_eq!(streamed(APIS[1], "refuse").joined("/delta"), "No.");
    assert_eq!(streamed(APIS[2], "refuse").joined("/choices/0/delta/refusal"), "No.");

    assert!(whole(APIS[0], "long")["error"]["message"].as_str().unwrap().starts_with("prompt is too long"));
    assert_eq!(whole(APIS[2], "long")["error"]["code"], "context_length_exceeded");
    let failed = streamed(APIS[1], "long").events();
    assert_eq!(failed[0]["response"]["error"]["code"], "context_length_exceeded");

    assert_eq!(whole(APIS[0], "cut")["stop_reason"], "max_tokens");
    assert_eq!(whole(APIS[1], "cut")["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(streamed(APIS[1], "cut").events().last().unwrap()["type"], "response.incomplete");
    assert_eq!(whole(APIS[2], "cut")["choices"][0]["finish_reason"], "length");
}

#[test]
fn responses_break_in_every_way() {
    let scenario = Scenario::new()
        .reply(Reply::to("middle").text("Half of it").act(Act::DropMidStream).for_ever())
        .reply(Reply::to("garbage").act(Act::Garbage).for_ever())
        .reply(Reply::to("failing").act(Act::FailMidStream("overloaded_error".to_owned())).for_ever())
        .reply(Reply::to("drop").act(Act::Drop).for_ever());
    let standin = Standin::start(scenario);
    for path in APIS {
        for more in [streaming(), json!({})] {
            let dropped = ask(&standin, path, "middle", more.clone());
            assert!(dropped.status == 200 && !dropped.whole && !dropped.body.is_empty(), "{dropped:?}");
            assert_eq!(ask(&standin, path, "drop", more).status, 0);
        }
        let garbage = ask(&standin, path, "garbage", streaming());
        assert!(garbage.whole && garbage.events().contains(&Value::Null), "{garbage:?}");
        let garbage = ask(&standin, path, "garbage", json!({}));
        assert!(garbage.whole && serde_json::from_str::<Value>(&garbage.body).is_err(), "{garbage:?}");
        let failing = ask(&standin, path, "failing", streaming());
        assert!(failing.whole && failing.body.contains("overloaded_error"), "{failing:?}");
        assert_eq!(ask(&standin, path, "failing", json!({})).status, 500);
    }
}

#[test]
fn a_response_that_hangs_ends_with_the_stand_in() {
    let scenario = Scenario::new()
        .reply(Reply::to("never").act(Act::Hang))
        .reply(Reply::to("begun").act(Act::HangMidStream));
    let standin = Standin::start(scenario);
    let hanging = |prompt: &str| {
        let body = json!({"model": "m", "input": prompt, "stream": true}).to_string();
        let head = "POST /v1/responses HTTP/1.1\r\nauthorization: Bearer k";
        let mut stream = connect(&standin);
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream
    };
    let (mut never, mut begun) = (hanging("never"), hanging("begun"));
    let mut first = [0; 15];
    begun.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    while standin.answered().len() < 2 {
        std::thread::yield_now();
    }
    drop(standin);
    let mut rest = Vec::new();
    let _ = never.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let _ = begun.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("response.completed"));
}

#[test]
fn slow_texts_arrive_whole() {
    let standin =
        Standin::start(Scenario::new().reply(Reply::any().act(Act::Slow(1)).text("Grüße, Öl, Ärger")));
    let slow = ask(&standin, APIS[0], "x", streaming());
    assert_eq!(slow.joined("/delta/text"), "Grüße, Öl, Ärger");
}

#[test]
fn a_prompt_without_a_reply_is_told_and_recorded() {
    let standin = Standin::start(Scenario::new().reply(Reply::to("hello").text("hi")));
    let response = ask(&standin, APIS[1], "good bye", json!({}));
    assert_eq!(response.status, 418);
    assert!(response.body.contains("no reply (left) for the prompt \\\"good bye\\\""), "{response:?}");
    assert_eq!(standin.unmatched(), ["good bye"]);
    ask(&standin, APIS[2], "hello there", json!({}));
    let answered = &standin.answered()[0];
    assert_eq!((answered.path.as_str(), answered.model(), answered.reply), (APIS[2], "m", Some(0)));
    assert_eq!(answered.headers["authorization"], "Bearer k");
}

#[test]
fn requests_that_the_real_apis_refuse_are_refused() {
    let standin = Standin::start(Scenario::new().reply(Reply::any().text("x").for_ever()));
    let post = |head: &str, body: &str| {
        let length = body.len();
        raw(&standin, &format!("POST {head}\r\ncontent-length: {length}\r\n\r\n{body}"))
    };
    let chat = "/v1/chat/completions HTTP/1.1";
    assert_eq!(post(chat, r#"{"model":"m","messages":[]}"#).status, 401);
    let keyed = format!("{chat}\r\nauthorization: Bearer k");
    assert_eq!(post(&keyed, r#"{"messages":[]}"#).status, 400);
    assert_eq!(post(&keyed, "what?").status, 400);
    let unversioned =
        post("/v1/messages HTTP/1.1\r\nx-api-key: k", r#"{"model":"m","max_tokens":1,"messages":[]}"#);
    assert!(unversioned.status == 400 && unversioned.body.contains("anthropic-version"), "{unversioned:?}");
    assert!(standin.answered().is_empty());
}

#[test]
fn probes_are_answered() {
    let standin = Standin::start(Scenario::new().usage(123, 0, 1).reply(Reply::any().model("big").text("x")));
    let get = |line: &str| raw(&standin, &format!("{line} HTTP/1.1\r\nhost: x\r\n\r\n"));
    let head = get("HEAD /");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(get("GET /v1/models?limit=9").json()["data"][0]["id"], "big");
    assert_eq!(get("GET /v1/elsewhere").status, 404);
    let count = ask(&standin, "/v1/messages/count_tokens", "x", json!({}));
    assert_eq!(count.json()["input_tokens"], 123);
    assert!(standin.answered().is_empty());
}

#[test]
fn bodies_may_come_in_chunks() {
    let standin = Standin::start(Scenario::new().reply(Reply::to("in pieces").text("x")));
    let head = "POST /v1/responses HTTP/1.1\r\nauthorization: Bearer k\r\ntransfer-encoding: chunked";
    let (one, two) = (r#"{"model":"m","inp"#, r#"ut":"in pieces"}"#);
    let chunks = format!("{:x}\r\n{one}\r\n{:X};a=b\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    assert_eq!(raw(&standin, &format!("{head}\r\n\r\n{chunks}")).status, 200);
}

#[test]
fn only_the_newest_turn_is_matched_and_tool_results_are_none_of_it() {
    let scenario = Scenario::new()
        .reply(Reply::to("first").text("old").for_ever())
        .reply(Reply::to("second").shell("ls").text("new").for_ever());
    let standin = Standin::start(scenario);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "first"}]);
    let messages = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "old"},
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>first</system-reminder>"},
            {"type": "text", "text": "second"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
        {"role": "user", "content": result},
    ]);
    let more = json!({"messages": messages, "tools": [{"name": "Bash"}]});
    assert_eq!(ask(&standin, APIS[0], "", more).json()["content"][0]["text"], "new");
}

#[test]
fn a_scenario_can_be_read() {
    let text = r#"{"usage": {"input": 1, "output": 2}, "replies": [
        {"when": "a", "times": 0, "acts": [{"shell": "ls"}, {"json": {"v": 1}}]},
        {"acts": ["hang", {"status": {"code": 529, "body": {"html": "x"}}}, {"write": {"path": "p", "content": "c"}}]}
    ]}"#;
    let scenario: Scenario = serde_json::from_str(text).unwrap();
    assert_eq!(scenario.replies[1].times, 1);
    assert_eq!(scenario.replies[1].acts[0], Act::Hang);
    assert_eq!(scenario.usage.output, 2);
    assert!(serde_json::from_str::<Scenario>(r#"{"replies": [{"acts": ["dance"]}]}"#).is_err());
    assert!(serde_json::from_str::<Scenario>(r#"{"replies": [{"akts": []}]}"#).is_err());
}
