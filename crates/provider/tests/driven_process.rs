//! Agents that the child drives, as processes: the examples `agent_driver` and `acp_agent`, which `cargo test` builds.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cuegate_provider::{
    Activity, Answer, AskKind, Cap, Fault, FaultClass, Permission, PreparedAsk, ProgramEnd, Provider as _,
    Request, Session, Usage,
    driven::{AnswerTransport, DrivenAgent, DrivenSettings, DriverProgram},
};
use serde_json::json;

fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let exe = test.ancestors().nth(2).map(|target| target.join("examples").join(name)).unwrap();
    assert!(
        exe.exists(),
        "{} is missing; `cargo build -p cuegate-provider --examples` makes it",
        exe.display()
    );
    exe
}

struct Scene {
    folder: tempfile::TempDir,
    settings: DrivenSettings,
    request: Request,
}

impl Scene {
    fn new(scenario: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let command = vec![example("acp_agent").display().to_string(), scenario.to_owned()];
        let settings = DrivenSettings { command, sessions: true, ..DrivenSettings::default() };
        let request = Request {
            id: "run/1".to_owned(),
            step: "review".to_owned(),
            subject: None,
            persona: None,
            persona_names: Vec::new(),
            readable: Vec::new(),
            kind: AskKind::Work,
            prompt: "Is it good?".to_owned(),
            system: None,
            schema: Some(json!({
                "type": "object", "properties": { "verdict": { "type": "string" } }, "required": ["verdict"]
            })),
            model: None,
            session: None,
            permission: Permission::AcceptEdits,
            tools: None,
            tool_servers: Vec::new(),
            effort: None,
            work: folder.path().to_owned(),
            timeout_ms: 60_000,
            cap: Cap::default(),
            unattended: true,
            scratch: folder.path().join("files"),
        };
        Scene { folder, settings, request }
    }

    fn in_words(mut self) -> Scene {
        self.request.schema = None;
        self
    }

    fn call(&self) -> (Vec<Activity>, Result<Answer, Fault>) {
        let program = DriverProgram {
            exe: example("agent_driver"),
            args: vec!["__driver".into()],
            answer_server: vec!["__answer".to_owned()],
        };
        let agent = DrivenAgent::new("fake", self.settings.clone(), program);
        let PreparedAsk::Process { launch, mut reader } = agent.prepare(&self.request).unwrap() else {
            panic!("a program")
        };
        let mut child = Command::new(&launch.program)
            .args(&launch.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&launch.stdin).unwrap();
        let mut activities = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).split(b'\n') {
            activities.extend(reader.line(&line.unwrap()));
        }
        let mut stderr = Vec::new();
        child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        let end = match status.code() {
            Some(code) => ProgramEnd::Exit(code),
            None => ProgramEnd::Signal(status.signal().unwrap()),
        };
        let left = fs::read_dir(self.request.scratch.join("driver")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "the folder of the call is removed");
        (activities, reader.end(end, &stderr))
    }

    fn fault(&self) -> Fault {
        self.call().1.unwrap_err()
    }
}

#[test]
fn an_answer_is_submitted_and_corrected() {
    let scene = Scene::new("submits");
    let (activities, answer) = scene.call();
    let answer = answer.unwrap();
    assert_eq!(answer.output, Some(json!({ "verdict": "good" })));
    assert_eq!((answer.text.as_str(), answer.session.as_deref()), ("Done.", Some("s-1")));
    assert_eq!(answer.handshake.as_deref(), Some("Fake 1.2.3, ACP 1; close, load"));
    let used = Usage {
        input_tokens: 100,
        cached_input_tokens: 20,
        output_tokens: 25,
        cost_usd: None,
        is_estimated: false,
    };
    assert_eq!(answer.usage, used);
    let tool = Activity::Tool { id: "t1".into(), name: "shell".into(), target: "make test".into() };
    assert!(activities.contains(&tool), "{activities:?}");
    let is_refused =
        |activity: &Activity| matches!(activity, Activity::Retry { reason } if reason.contains("/verdict"));
    assert!(activities.iter().any(is_refused), "{activities:?}");
}

#[test]
fn an_agent_that_forgets_its_answer_is_reminded() {
    let answer = Scene::new("forgets").call().1.unwrap();
    assert_eq!(answer.output, Some(json!({ "verdict": "good" })));
    assert_eq!(answer.usage.input_tokens, 200, "of both turns");
}

#[test]
fn permissions_follow_the_step_and_never_last() {
    let said = |permission: Permission, tools: Option<&str>| {
        let mut scene = Scene::new("asks").in_words();
        scene.request.permission = permission;
        scene.request.tools = tools.map(|tool| vec![tool.to_owned()]);
        let (activities, answer) = scene.call();
        let denied = activities.iter().filter(|activity| matches!(activity, Activity::Denied { .. })).count();
        (answer.unwrap().text, denied)
    };
    // An edit outside, an edit inside, a command, reading; and files are not served.
    assert_eq!(said(Permission::AcceptEdits, None), ("no once once once -32601".to_owned(), 1));
    assert_eq!(said(Permission::BypassPermissions, None), ("once once once once -32601".to_owned(), 0));
    assert_eq!(said(Permission::Plan, None), ("no no no once -32601".to_owned(), 3));
    assert_eq!(said(Permission::Plan, Some("Bash(git:*)")), ("no no once once -32601".to_owned(), 2));
}

#[test]
fn the_replay_of_a_conversation_is_no_part_of_the_turn() {
    let mut scene = Scene::new("").in_words();
    scene.request.session = Some(Session { id: "s-1".to_owned(), fork: false, totals: None });
    assert_eq!(scene.call().1.unwrap().text, "Fine.");
}

#[test]
fn the_cost_of_a_session_never_falls() {
    let mut scene = Scene::new("cheapens").in_words();
    let answer = scene.call().1.unwrap();
    assert_eq!(answer.usage.cost_usd, Some(50.0));
    // In the next call of the session the same is told again.
    scene.request.session = Some(Session { id: "s-1".to_owned(), fork: false, totals: answer.totals });
    let answer = scene.call().1.unwrap();
    assert_eq!((answer.usage.cost_usd, answer.totals.unwrap().cost_usd), (Some(0.0), Some(50.0)));
}

#[test]
fn a_model_is_set_and_compared() {
    let mut scene = Scene::new("").in_words();
    scene.request.model = Some("mine".to_owned());
    assert_eq!(scene.call().1.unwrap().model.as_deref(), Some("mine"));
    scene.settings.command[1] = "stubborn".to_owned();
    let fault = scene.fault();
    assert_eq!(fault.class, FaultClass::UnknownModel);
    assert!(fault.message.contains("it would use `hosted`"), "{}", fault.message);
}

#[test]
fn failures_have_a_class() {
    for (scenario, class, words) in [
        ("login", FaultClass::Auth, "Authentication required"),
        ("limit", FaultClass::RateLimited, "quota exceeded"),
        ("refuses", FaultClass::Refused, "refused"),
        ("error-as-turn", FaultClass::Auth, "401"),
        ("dies", FaultClass::Crashed, "ended during `session/prompt`"),
        ("new-version", FaultClass::MissingProgram, "another version"),
    ] {
        let fault = Scene::new(scenario).in_words().fault();
        assert_eq!(fault.class, class, "{scenario}: {}", fault.message);
        assert!(fault.message.contains(words), "{scenario}: {}", fault.message);
        assert!(!fault.usage_unknown || class != FaultClass::Auth, "{scenario}");
        if scenario == "limit" {
            assert_eq!(fault.resets_in_ms, Some(30_000));
        }
    }
    let mut scene = Scene::new("").in_words();
    scene.settings.command = vec!["/nowhere/agent".to_owned()];
    assert_eq!(scene.fault().class, FaultClass::MissingProgram);
}

#[test]
fn hostile_agents_are_typed_faults() {
    for scenario in [
        "floods-permissions",
        "prints-garbage",
        "answers-wrong-ids",
        "prints-without-end",
        "prints-an-endless-line",
    ] {
        let fault = Scene::new(scenario).in_words().fault();
        assert_eq!(fault.class, FaultClass::Malformed, "{scenario}: {}", fault.message);
    }
}

#[test]
fn what_an_agent_starts_ends_with_it() {
    let scene = Scene::new("leaves-a-child").in_words();
    assert_eq!(scene.call().1.unwrap().text, "Done.");
    let in_folder =
        |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == scene.folder.path());
    let left =
        fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(|path| in_folder(path));
    assert_eq!(left.count(), 0);
}

#[test]
fn the_answer_server_also_speaks_http() {
    let mut scene = Scene::new("submits");
    scene.settings.answer = AnswerTransport::Http;
    assert_eq!(scene.call().1.unwrap().output, Some(json!({ "verdict": "good" })));
}
