//! Asks performed by a real process: the example `openai_agent`, which `cargo test` builds.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
};

use cuegate_provider::{
    Activity, Answer, AnswerReader, AskKind, Cap, Fault, FaultClass, Permission, PreparedAsk, ProgramEnd,
    Provider as _, Request,
    openai::{OpenAiProgram, OpenAiProvider, OpenAiSettings},
};
use serde_json::json;

const KEY: &str = "sk-0123456789abcdef";
/// Variables that set or disable a proxy.
const PROXIES: [&str; 8] = [
    "ALL_PROXY",
    "all_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
];

fn program() -> OpenAiProgram {
    let test = env::current_exe().unwrap();
    let exe = test.ancestors().nth(2).map(|target| target.join("examples/openai_agent")).unwrap();
    assert!(
        exe.exists(),
        "{} is missing; `cargo build -p cuegate-provider --examples` makes it",
        exe.display()
    );
    OpenAiProgram { exe, args: vec!["__openai".into()] }
}

fn request() -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "judge".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Judge,
        prompt: "Is it good?".to_owned(),
        system: None,
        schema: Some(json!({"type": "object"})),
        model: Some("m".to_owned()),
        session: None,
        permission: Permission::Plan,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: ".".into(),
        timeout_ms: 60_000,
        cap: Cap::default(),
        unattended: false,
        scratch: ".".into(),
    }
}

/// Starts the program of an ask. The key's variable is `PATH`, which exists in every environment, so the provider
/// accepts it; the program's own `PATH` contains the key.
fn start(settings: OpenAiSettings, proxies: &[(&str, &str)]) -> (Child, Box<dyn AnswerReader>) {
    let settings = OpenAiSettings { key_env: Some("PATH".to_owned()), ..settings };
    let prepared = OpenAiProvider::new(settings, program()).prepare(&request()).unwrap();
    let PreparedAsk::Process { launch, reader } = prepared else { panic!("a program") };
    let mut command = Command::new(&launch.program);
    for name in PROXIES {
        command.env_remove(name);
    }
    let mut child = command
        .args(&launch.args)
        .env("PATH", KEY)
        .envs(proxies.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&launch.stdin).unwrap();
    (child, reader)
}

/// Runs the program of an ask as a runner does.
fn ask(settings: OpenAiSettings, proxies: &[(&str, &str)]) -> Result<Answer, Fault> {
    let (child, mut reader) = start(settings, proxies);
    let output = child.wait_with_output().unwrap();
    output.stdout.split(|byte| *byte == b'\n').for_each(|line| drop(reader.line(line)));
    reader.end(ProgramEnd::Exit(output.status.code().unwrap()), &output.stderr)
}

/// Reads a request: the headers, and the body by its `Content-Length`.
fn read_request(stream: &mut BufReader<TcpStream>) -> String {
    let (mut text, mut length) = (String::new(), 0);
    while !text.ends_with("\r\n\r\n") {
        let from = text.len();
        assert!(stream.read_line(&mut text).unwrap() > 0, "it hung up: {text}");
        if let Some(value) = text[from..].to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
    data: {\"choices\": [{\"delta\": {\"content\": \"{\\\"ok\\\": \"}}]}\n\n\
    data: {\"choices\": [{\"delta\": {\"content\": \"true}\"}, \"finish_reason\": \"stop\"}]}\n\n\
    data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 12, \"completion_tokens\": 5}}\n\n\
    data: [DONE]\n\n";

fn listen() -> (TcpListener, OpenAiSettings) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, OpenAiSettings::new(base))
}

fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    BufReader::new(listener.accept().unwrap().0)
}

#[test]
fn a_real_process_asks_and_answers() {
    let (listener, settings) = listen();
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        let request = read_request(&mut stream);
        stream.get_mut().write_all(ANSWER.as_bytes()).unwrap();
        request
    });
    // Requests to this machine ignore the proxy.
    let answer = ask(settings, &[("HTTP_PROXY", "http://127.0.0.1:1"), ("ALL_PROXY", "http://127.0.0.1:1")]);
    let answer = answer.unwrap();
    assert_eq!(answer.output, Some(json!({"ok": true})));
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (12, 5));
    let request = server.join().unwrap().to_lowercase();
    assert!(request.contains(&format!("authorization: bearer {KEY}\r\n")), "{request}");
}

#[test]
fn remote_services_are_reached_through_the_proxy_of_the_environment() {
    let (listener, _) = listen();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut stream = accept(&listener);
        let wanted = read_request(&mut stream);
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let request = read_request(&mut stream);
        stream.get_mut().write_all(ANSWER.as_bytes()).unwrap();
        (wanted, request)
    });
    let settings =
        || OpenAiSettings { key_over_http: true, ..OpenAiSettings::new("http://service.invalid/v1") };
    assert!(ask(settings(), &[("HTTP_PROXY", &proxy)]).is_ok());
    let (wanted, request) = server.join().unwrap();
    assert!(wanted.starts_with("CONNECT service.invalid:80 HTTP/1.1\r\n"), "{wanted}");
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n") && !wanted.contains(KEY),
        "{request}"
    );

    // Nothing listens on port 1.
    let fault = ask(settings(), &[("ALL_PROXY", "http://127.0.0.1:1")]).unwrap_err();
    assert_eq!(fault.class, FaultClass::Network);
    assert!(fault.message.starts_with("the proxy cannot connect to http://service.invalid/v1: "), "{fault}");
}

#[test]
fn a_killed_process_disconnects_and_does_not_expose_the_key() {
    let (listener, settings) = listen();
    let (mut child, mut reader) = start(settings, &[]);
    let mut stream = accept(&listener);
    read_request(&mut stream);
    let half = "HTTP/1.1 200 OK\r\n\r\ndata: {\"choices\": [{\"delta\": {\"content\": \"half\\n\"}}]}\n\n";
    stream.get_mut().write_all(half.as_bytes()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = Vec::new();
    output.read_until(b'\n', &mut line).unwrap();
    let said = Activity::Text { text: "half".to_owned() };
    assert_eq!(reader.line(line.trim_ascii_end()).first(), Some(&said), "text is reported as it arrives");
    let arguments = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&arguments).contains(KEY));
    child.kill().unwrap();
    child.wait().unwrap();
    // The service notices the closed connection.
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    let fault = reader.end(ProgramEnd::TimedOut, b"").unwrap_err();
    assert_eq!(fault.class, FaultClass::Timeout);
    assert!(fault.usage.output_tokens > 0 && fault.usage.input_tokens > 0, "{:?}", fault.usage);
}

#[test]
fn an_invalid_job_is_rejected() {
    let output = Command::new(program().exe).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("failed to read the job: "));
}
