use serde_json::json;

use super::*;
use crate::{AskKind, Cap, McpServer, Session};

fn request() -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: "fix it".to_owned(),
        system: None,
        schema: None,
        model: None,
        session: None,
        permission: Permission::Default,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: "/work".into(),
        timeout_ms: 1,
        cap: Cap::default(),
        unattended: false,
        scratch: "/scratch".into(),
    }
}

fn args(settings: &CodexSettings, request: &Request) -> Vec<String> {
    build_launch(settings, request, false).args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
}

/// The arguments that differ from those of a plain ask.
fn more(change: impl FnOnce(&mut Request)) -> Vec<String> {
    let mut changed = request();
    change(&mut changed);
    let plain = args(&CodexSettings::default(), &request());
    let mut args = args(&CodexSettings::default(), &changed);
    args.retain(|arg| !plain.contains(arg));
    args
}

fn stdin_of(change: impl FnOnce(&mut Request)) -> String {
    let mut changed = request();
    change(&mut changed);
    String::from_utf8(build_launch(&CodexSettings::default(), &changed, false).stdin).unwrap()
}

#[test]
fn a_plain_ask() {
    insta::assert_snapshot!(args(&CodexSettings::default(), &request()).join("\n"), @r#"
    exec
    --json
    --skip-git-repo-check
    --disable=plugins
    --disable=apps
    --ignore-user-config
    --ignore-rules
    --config=approval_policy="never"
    --config=analytics.enabled=false
    --config=check_for_update_on_startup=false
    --config=sandbox_mode="read-only"
    -
    "#);
    assert_eq!(stdin_of(|_| {}), "fix it");
}

#[test]
fn settings_of_the_user() {
    let settings = CodexSettings {
        program: "/opt/codex".into(),
        model: Some("gpt-x".to_owned()),
        service: Some("azure".to_owned()),
        user_config: true,
        config: vec!["model_reasoning_effort=\"low\"".to_owned()],
        env: vec![("CODEX_HOME".to_owned(), "/home/x".to_owned())],
        ..CodexSettings::default()
    };
    insta::assert_snapshot!(args(&settings, &request()).join("\n"), @r#"
    exec
    --json
    --skip-git-repo-check
    --disable=plugins
    --disable=apps
    --config=approval_policy="never"
    --config=analytics.enabled=false
    --config=check_for_update_on_startup=false
    --config=model_reasoning_effort="low"
    --config=model_provider="azure"
    --config=model_providers.azure.request_max_retries=0
    --config=model_providers.azure.stream_max_retries=0
    --config=sandbox_mode="read-only"
    --model=gpt-x
    -
    "#);
    assert_eq!(build_launch(&settings, &request(), false).env, [("CODEX_HOME".into(), "/home/x".into())]);
}

#[test]
fn permissions_map_to_sandbox_modes() {
    assert!(more(|ask| ask.permission = Permission::Plan).is_empty());
    assert_eq!(
        more(|ask| ask.permission = Permission::AcceptEdits),
        ["--config=sandbox_mode=\"workspace-write\""]
    );
    assert_eq!(
        more(|ask| ask.permission = Permission::BypassPermissions),
        ["--dangerously-bypass-approvals-and-sandbox"]
    );
}

#[test]
fn a_list_of_read_only_tools_is_a_read_only_sandbox() {
    let tools = |names: &[&str], permission| {
        let names = Some(names.iter().map(|name| (*name).to_owned()).collect());
        more(|ask| (ask.tools, ask.permission) = (names, permission))
    };
    for permission in [Permission::AcceptEdits, Permission::BypassPermissions] {
        assert!(tools(&["Read", "Grep"], permission).is_empty());
        assert!(tools(&[], permission).is_empty());
    }
    assert_eq!(
        tools(&["Read", "Bash(git *)"], Permission::AcceptEdits),
        ["--config=sandbox_mode=\"workspace-write\""]
    );
}

#[test]
fn a_session_is_resumed_or_forked() {
    let session = |fork| Some(Session { id: "t-1".to_owned(), fork, totals: None });
    let args = |session| args(&CodexSettings::default(), &Request { session, ..request() });
    assert_eq!(args(session(false))[..2], ["exec", "resume"]);
    assert_eq!(args(session(true))[..2], ["exec", "fork"]);
    assert_eq!(args(session(true)).last_chunk(), Some(&["t-1".to_owned(), "-".to_owned()]));
}

#[test]
fn instructions_are_in_the_prompt_of_a_continued_session() {
    let system = "say \"hi\"\nand \\ \u{7f}";
    assert_eq!(
        more(|ask| ask.system = Some(system.to_owned())),
        ["--config=developer_instructions=\"say \\\"hi\\\"\\nand \\\\ \\u007f\""]
    );
    assert_eq!(stdin_of(|ask| ask.system = Some(system.to_owned())), "fix it");
    let session = Some(Session { id: "t-1".to_owned(), fork: false, totals: None });
    let continued = |ask: &mut Request| (ask.system, ask.session) = (Some("be kind".to_owned()), session);
    assert_eq!(stdin_of(continued), "<instructions>\nbe kind\n</instructions>\n\nfix it");
    let long = "x".repeat(ARGUMENT_MAX + 1);
    assert!(more(|ask| ask.system = Some(long.clone())).is_empty());
    assert!(stdin_of(|ask| ask.system = Some(long.clone())).contains(&long));
}

#[test]
fn a_schema_is_passed_as_a_file() {
    let fits = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    assert_eq!(more(|ask| ask.schema = Some(fits.clone())), ["--output-schema=/scratch/schema.json"]);
    let files =
        build_launch(&CodexSettings::default(), &Request { schema: Some(fits), ..request() }, false).files;
    assert_eq!(
        files,
        [(
            "schema.json".to_owned(),
            br#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#
                .to_vec()
        )]
    );
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert!(more(|ask| ask.schema = Some(map.clone())).is_empty());
}

#[test]
fn a_model_is_passed_by_name() {
    assert_eq!(more(|ask| ask.model = Some("gpt-x".to_owned())), ["--model=gpt-x"]);
}

#[test]
fn an_effort_is_a_setting() {
    let effort = more(|ask| ask.effort = Some("high".to_owned()));
    assert_eq!(effort, ["--config=model_reasoning_effort=\"high\""]);
}

#[test]
fn keys_of_servers_are_no_arguments() {
    let server = |name: &str, transport: Value| McpServer {
        name: name.to_owned(),
        transport: serde_json::from_value(transport).unwrap(),
    };
    let mut asked = request();
    asked.tool_servers = vec![
        server("a", json!({ "command": "x", "args": ["y z"], "env": { "PLAIN": "1", "KEY": "${PATH}" } })),
        server(
            "b",
            json!({ "url": "https://h/mcp", "headers": { "X-Plain": "1", "Authorization": "B ${PATH}" } }),
        ),
    ];
    let launch = build_launch(&CodexSettings::default(), &asked, false);
    let args: Vec<String> = launch.args.into_iter().map(|arg| arg.into_string().unwrap()).collect();
    let servers: Vec<&str> =
        args.iter().filter_map(|arg| arg.strip_prefix("--config=mcp_servers.")).collect();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(
        servers,
        [
            "a.env_vars=[\"CUEGATE_MCP_0_0\"]",
            "a.command=\"sh\"",
            r#"a.args=["-c","export KEY=\"$CUEGATE_MCP_0_0\"; unset CUEGATE_MCP_0_0; exec \"$0\" \"$@\"","x","y z"]"#,
            "a.env={\"PLAIN\"=\"1\"}",
            "a.default_tools_approval_mode=\"approve\"",
            "b.url=\"https://h/mcp\"",
            "b.http_headers={\"X-Plain\"=\"1\"}",
            "b.env_http_headers={\"Authorization\"=\"CUEGATE_MCP_1_0\"}",
            "b.default_tools_approval_mode=\"approve\"",
        ]
    );
    assert!(launch.env.contains(&("CUEGATE_MCP_0_0".into(), path.clone().into())));
    assert!(launch.env.contains(&("CUEGATE_MCP_1_0".into(), format!("B {path}").into())));
}

/// Cuegate's sandbox replaces the program's own.
#[test]
fn in_a_sandbox_it_has_no_sandbox_of_its_own() {
    let plain = |change: fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        let launch = build_launch(&CodexSettings::default(), &request, true);
        let args: Vec<String> = launch.args.into_iter().map(|arg| arg.into_string().unwrap()).collect();
        (
            may_write_files(&request),
            args.into_iter().filter(|arg| arg.contains("sandbox")).collect::<Vec<_>>(),
        )
    };
    let none = || vec!["--config=sandbox_mode=\"danger-full-access\"".to_owned()];
    assert_eq!(plain(|_| {}), (false, none()));
    assert_eq!(plain(|ask| ask.permission = Permission::AcceptEdits), (true, none()));
    let reader = |ask: &mut Request| {
        ask.permission = Permission::AcceptEdits;
        ask.tools = Some(vec!["Read".to_owned()]);
    };
    assert_eq!(plain(reader), (false, none()));
}
