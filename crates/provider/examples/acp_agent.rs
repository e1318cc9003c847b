//! An agent that speaks the Agent Client Protocol, for tests: its argument says how well it behaves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::zombie_processes,
    reason = "it is part of a test, and misbehaves on purpose"
)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// The answer server that the client named.
enum Answers {
    Stdio { _child: Child, stdin: ChildStdin, stdout: BufReader<ChildStdout> },
    Http { url: String, authorization: String },
}

impl Answers {
    fn start(server: &Value) -> Answers {
        let mut answers = match server["type"] == "http" {
            true => Answers::Http {
                url: server["url"].as_str().unwrap().to_owned(),
                authorization: server["headers"][0]["value"].as_str().unwrap().to_owned(),
            },
            false => Answers::spawn(server),
        };
        answers.ask("server/discover", json!({}));
        answers.ask("initialize", json!({ "protocolVersion": "2025-06-18" }));
        answers.ask("tools/list", json!({}));
        answers
    }

    fn spawn(server: &Value) -> Answers {
        let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let mut child = Command::new(server["command"].as_str().unwrap())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Answers::Stdio { _child: child, stdin, stdout }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let text = match self {
            Answers::Stdio { stdin, stdout, .. } => {
                writeln!(stdin, "{message}").unwrap();
                let mut line = String::new();
                stdout.read_line(&mut line).unwrap();
                line
            }
            Answers::Http { url, authorization } => {
                let request = ureq::post(&*url).header("Authorization", &*authorization);
                request.send(message).unwrap().body_mut().read_to_string().unwrap()
            }
        };
        serde_json::from_str(&text).unwrap()
    }

    fn submit(&mut self, answer: Value) -> bool {
        let reply = self.ask("tools/call", json!({ "name": "submit_answer", "arguments": answer }));
        reply["result"]["isError"] == false
    }
}

fn send(message: &Value) {
    let mut out = std::io::stdout();
    if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn update(session: &str, update: Value) {
    send(
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }),
    );
}

fn say(session: &str, text: &str) {
    let content = json!({ "type": "text", "text": text });
    update(session, json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
}

fn permission(id: u64, kind: &str, path: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": "s-1",
        "toolCall": { "toolCallId": "c1", "title": path, "kind": kind, "locations": [{ "path": path }] },
        "options": [
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Once", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ],
    } })
}

fn main() {
    let scenario = std::env::args().nth(1).unwrap_or_default();
    let mut answers: Option<Answers> = None;
    let mut input = std::io::stdin().lock().lines();
    let mut prompts = 0;
    while let Some(Ok(line)) = input.next() {
        let message: Value = serde_json::from_str(&line).unwrap();
        let reply = |result: Value| send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                assert!(!params["clientCapabilities"]["terminal"].as_bool().unwrap_or(false));
                reply(json!({
                    "protocolVersion": if scenario == "new-version" { 9 } else { 1 },
                    "agentInfo": { "name": "Fake", "version": "1.2.3" },
                    "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "close": {} } },
                }));
            }
            method @ ("session/new" | "session/load") => {
                if scenario == "login" {
                    let error = json!({ "code": -32000, "message": "Authentication required" });
                    send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
                    continue;
                }
                answers = params["mcpServers"].get(0).map(Answers::start);
                if method == "session/load" {
                    say("s-1", "an old answer");
                    reply(Value::Null);
                    // The replay goes on after the reply.
                    for _ in 0..20 {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        say("s-1", "an older answer");
                    }
                    continue;
                }
                reply(json!({
                    "sessionId": "s-1",
                    "configOptions": [{ "id": "model", "category": "model", "currentValue": "hosted", "options": [] }],
                }));
            }
            "session/set_config_option" => {
                let value = if scenario == "stubborn" { &Value::Null } else { &params["value"] };
                let current = if value.is_null() { json!("hosted") } else { value.clone() };
                reply(
                    json!({ "configOptions": [{ "id": "model", "category": "model", "currentValue": current }] }),
                );
            }
            "session/prompt" => {
                prompts += 1;
                turn(&scenario, prompts, &mut answers, &mut input);
                match scenario.as_str() {
                    "limit" => {
                        let body =
                            json!({ "error": { "message": "quota exceeded, try again in 30s" } }).to_string();
                        let error = json!({ "code": 429, "message": body });
                        send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
                    }
                    "cheapens" => {
                        for amount in [50.0, 0.0, 2.0] {
                            let cost = json!({ "amount": amount, "currency": "USD" });
                            let usage = json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost });
                            update("s-1", usage);
                        }
                        say("s-1", "Fine.");
                        reply(json!({ "stopReason": "end_turn" }));
                    }
                    "refuses" => reply(json!({ "stopReason": "refusal" })),
                    "error-as-turn" => reply(json!({ "stopReason": "end_turn", "usage": null })),
                    _ => {
                        let usage = json!({ "inputTokens": 80, "cachedReadTokens": 20, "outputTokens": 25 });
                        reply(json!({ "stopReason": "end_turn", "usage": usage }));
                    }
                }
            }
            "session/close" => reply(json!({})),
            _ => {}
        }
    }
}

type Input = std::io::Lines<std::io::StdinLock<'static>>;

fn turn(scenario: &str, prompts: u32, answers: &mut Option<Answers>, input: &mut Input) {
    let mut granted = |request: Value| {
        send(&request);
        let reply: Value = serde_json::from_str(&input.next().unwrap().unwrap()).unwrap();
        reply["result"]["outcome"]["optionId"].as_str().unwrap_or("none").to_owned()
    };
    match scenario {
        "submits" => {
            let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Run the tests", "kind": "execute",
                "status": "in_progress", "rawInput": { "command": "make test" } });
            update("s-1", call);
            update(
                "s-1",
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed" }),
            );
            update(
                "another",
                json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "foreign" } }),
            );
            let answers = answers.as_mut().unwrap();
            assert!(!answers.submit(json!({ "verdict": 3 })));
            assert!(answers.submit(json!({ "verdict": "good" })));
            say("s-1", "Done.");
        }
        // It answers in words, and gives its answer when it is reminded.
        "forgets" if prompts == 1 => say("s-1", "I think it is good."),
        "forgets" => {
            answers.as_mut().unwrap().submit(json!({ "verdict": "good" }));
        }
        "asks" => {
            let edit = granted(permission(11, "edit", "/etc/passwd"));
            let inside =
                granted(permission(12, "edit", &format!("{}/a", std::env::current_dir().unwrap().display())));
            let shell = granted(permission(13, "execute", "rm -rf /"));
            let read = granted(permission(14, "read", "/etc/hosts"));
            send(&json!({ "jsonrpc": "2.0", "id": 15, "method": "fs/write_text_file", "params": {} }));
            let fs: Value = serde_json::from_str(&input.next().unwrap().unwrap()).unwrap();
            say("s-1", &format!("{edit} {inside} {shell} {read} {}", fs["error"]["code"]));
        }
        "floods-permissions" => loop {
            send(&permission(21, "edit", "/x"));
        },
        "prints-garbage" => loop {
            send(&json!("garbage"));
            println!("{{not json");
        },
        "answers-wrong-ids" => loop {
            send(&json!({ "jsonrpc": "2.0", "id": 999, "result": { "stopReason": "end_turn" } }));
        },
        "prints-without-end" => {
            let much = "x".repeat(1 << 20);
            loop {
                send(&json!({ "jsonrpc": "2.0", "method": "noise", "params": much }));
            }
        }
        "prints-an-endless-line" => loop {
            print!("{}", "x".repeat(1 << 20));
        },
        "dies" => {
            eprintln!("segmentation fault");
            std::process::exit(3);
        }
        "error-as-turn" => say("s-1", "Error: 401 invalid api key"),
        "leaves-a-child" => {
            Command::new("sleep").arg("97").spawn().unwrap();
            say("s-1", "Done.");
        }
        _ => say("s-1", "Fine."),
    }
}
