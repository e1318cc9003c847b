//! Parses recorded output of real programs, so that a changed parser shows without an installed program.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use cuegate_provider::{
    Activity, Answer, AskKind, Cap, Fault, Permission, PreparedAsk, ProgramEnd, Provider, Request, Session,
    claude::{self, Claude},
    codex::{self, Codex},
};
use serde_json::{Value, json};

/// The folder of recordings beside the repository or in `CUEGATE_SHARED`, if it exists.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn streams() -> Option<PathBuf> {
    let root = env::var_os("CUEGATE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = root.join("fixtures/agents");
    if !folder.exists() {
        eprintln!("skipped: {} is not there (set CUEGATE_SHARED)", folder.display());
        return None;
    }
    Some(folder)
}

fn request(session: Option<Session>) -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "work".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: String::new(),
        system: None,
        // The schema of the recordings of Codex.
        schema: Some(json!({
            "type": "object",
            "properties": {
                "verdict": { "type": "string", "enum": ["approved", "needs_fix"] },
                "summary": { "type": "string" },
                "issues": { "type": "integer" },
            },
            "required": ["verdict", "summary", "issues"],
            "additionalProperties": false,
        })),
        model: None,
        session,
        permission: Permission::Default,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: "/repo".into(),
        timeout_ms: 1,
        cap: Cap::default(),
        unattended: false,
        scratch: "/scratch".into(),
    }
}

/// Parses a stream. The program exited with this code, or was killed.
fn read(
    provider: &dyn Provider,
    session: Option<Session>,
    stream: &[u8],
    exit: Option<i32>,
) -> (Vec<Activity>, Result<Answer, Fault>) {
    let Ok(PreparedAsk::Process { mut reader, .. }) = provider.prepare(&request(session)) else {
        panic!("a program")
    };
    let activities = stream.split(|byte| *byte == b'\n').flat_map(|line| reader.line(line)).collect();
    (activities, reader.end(exit.map_or(ProgramEnd::Signal(15), ProgramEnd::Exit), b""))
}

/// The result of every stream of a program, one per line.
fn all(provider: &dyn Provider) -> Option<String> {
    let folder = streams()?;
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("MANIFEST.json")).unwrap()).unwrap();
    let mut lines = BTreeMap::new();
    for entry in manifest["files"].as_array().unwrap() {
        let name = entry["file"].as_str().unwrap();
        let own = name.strip_prefix(provider.name()).and_then(|name| name.strip_suffix(".jsonl"));
        let Some(scenario) = own.filter(|name| !name.contains("requests") && !name.contains("streamjson"))
        else {
            continue;
        };
        let exit = entry["exit"].as_i64().map(|code| i32::try_from(code).unwrap());
        let (activities, end) = read(provider, None, &fs::read(folder.join(name)).unwrap(), exit);
        lines.insert(scenario[1..].to_owned(), format!("{} | {}\n", seen(&activities), outcome(&end)));
    }
    Some(lines.into_iter().map(|(name, line)| format!("{name}: {line}")).collect())
}

fn seen(activities: &[Activity]) -> String {
    let words = activities.iter().filter_map(|activity| match activity {
        Activity::Text { .. } => Some("text".to_owned()),
        Activity::Tool { name, .. } => Some(name.clone()),
        Activity::Denied { name, .. } => Some(format!("no {name}")),
        Activity::Retry { .. } => Some("retry".to_owned()),
        Activity::ToolEnded { .. } | Activity::Usage(_) => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn outcome(end: &Result<Answer, Fault>) -> String {
    let brief = |text: &str| text.chars().take(60).collect::<String>();
    match end {
        Ok(answer) => {
            let said =
                answer.output.as_ref().map_or_else(|| format!("{:?}", brief(&answer.text)), Value::to_string);
            let usage = answer.usage;
            let cost = usage.cost_usd.map_or(String::new(), |cost| format!(", ${cost:.6}"));
            format!("{said} {}+{}{cost}", usage.input_tokens, usage.output_tokens)
        }
        Err(fault) => format!("{:?}: {}", fault.class, brief(&fault.message)),
    }
}

#[test]
fn claude() {
    let Some(lines) = all(&Claude::new(claude::ClaudeSettings::default())) else { return };
    insta::assert_snapshot!(lines, @r#"
    bash_accept: Bash text | "Done: canned answer from the fake server." 260+50, $0.001908
    bash_allowed: Bash text | "Done: canned answer from the fake server." 260+50, $0.001908
    budget: Bash Bash Bash | OverCap: claude: Reached maximum budget ($0.002)
    e400:  | Refused: claude: API Error: 400 bad request from fake
    e401: retry | Auth: claude: Invalid API key · Fix external API key
    e429:  | RateLimited: claude: API Error: Request rejected (429) · rate limited by 
    e429once: retry text | "Done: canned answer from the fake server." 130+25, $0.000954
    e500:  | Overloaded: claude: API Error: 500 boom. This is a server-side issue, us
    e529:  | Overloaded: claude: API Error: 529 Overloaded. This is a server-side iss
    hang: retry | Crashed: no answer from claude: exited with code 124 without a result
    maxturns: Bash Bash | OverCap: claude: Reached maximum number of turns (2)
    nosbx_out: Bash no Bash text | "Done: canned answer from the fake server." 260+50, $0.001908
    sbx_in: Bash text | "Done: canned answer from the fake server." 260+50, $0.001908
    sbx_out: Bash text | "Done: canned answer from the fake server." 260+50, $0.001908
    schema: text | {"verdict":"approved","summary":"All good","issues":0} 130+25, $0.000954
    schema_never:  | "{\"verdict\":\"maybe\",\"issues\":\"zero\"}" 650+125, $0.004770
    schema_retry: text | {"verdict":"approved","summary":"All good","issues":0} 260+50, $0.001908
    schema_text: text text | "I refuse to call the tool" 260+50, $0.001908
    schema_tools_none: text | {"verdict":"approved","summary":"All good","issues":0} 130+25, $0.000954
    sess1: text | "Done: canned answer from the fake server." 130+25, $0.000954
    sess2: text | "Done: canned answer from the fake server." 130+25, $0.000954
    sess3fork: text | "Done: canned answer from the fake server." 130+25, $0.000954
    sess4bad:  | SessionLost: claude: No conversation found with session ID: 00000000-0000
    sess5: text | {"verdict":"approved","summary":"All good","issues":0} 130+25, $0.000954
    sess6:  | "Done: canned answer from the fake server." 520+100, $0.003816
    text_plain:  | Malformed: no answer from claude: exited without a result; invalid outp
    tool_accept: text Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_bypass_issandbox: text Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_default: text Write no Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_disallowed: text Write no Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_dontask: text Write no Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_plan: text Write no Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    tool_toolsread: text Write no Write text | "Done: canned answer from the fake server." 260+50, $0.001908
    "#);
}

#[test]
fn codex() {
    let Some(lines) = all(&Codex::new(codex::CodexSettings::default())) else { return };
    insta::assert_snapshot!(lines, @r#"
    e400:  | Refused: codex: bad request from fake
    e401: retry | Auth: codex: unexpected status 401 Unauthorized: invalid x-api-key
    e429: retry | RateLimited: codex: exceeded retry limit, last status: 429 Too Many Reque
    e500: retry | Overloaded: codex: We’re currently experiencing high demand, which may c
    failed: retry | RateLimited: codex: rate limit exceeded: Rate limit reached. Please try a
    schema: text | {"verdict":"approved","summary":"All good","issues":0} 100+25
    schema_never: text | {"verdict":"maybe","issues":"zero"} 100+25
    sess1: text | "Done: canned answer from the fake server." 100+25
    sess2: text | "Done: canned answer from the fake server." 200+50
    text: text | "Done: canned answer from the fake server." 100+25
    tool_bypass: command_execution text | "Done: canned answer from the fake server." 200+50
    tool_ro: text | "Done: canned answer from the fake server." 200+50
    tool_ww: command_execution text | "Done: canned answer from the fake server." 200+50
    tool_ww_outside: text | "Done: canned answer from the fake server." 200+50
    "#);
}

/// Every ask of a session has the same usage of its own; the last one is a fork.
#[test]
fn conversations() {
    let Some(folder) = streams() else { return };
    let chain = |provider: &dyn Provider, names: &[&str]| {
        let mut session = None;
        let mut usages = Vec::new();
        for name in names {
            let stream = fs::read(folder.join(format!("{}-{name}.jsonl", provider.name()))).unwrap();
            let answer = read(provider, session, &stream, Some(0)).1.unwrap();
            usages.push(answer.usage);
            session = Some(Session { id: answer.session.unwrap(), fork: false, totals: answer.totals });
        }
        usages
    };
    let usages = chain(&Claude::new(claude::ClaudeSettings::default()), &["sess1", "sess2", "sess3fork"]);
    for usage in &usages {
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (130, 20, 25));
        assert!((usage.cost_usd.unwrap() - 0.000_954).abs() < 1e-9, "{usages:?}");
    }
    let usages = chain(&Codex::new(codex::CodexSettings::default()), &["sess1", "sess2"]);
    for usage in &usages {
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (100, 20, 25));
    }
}
