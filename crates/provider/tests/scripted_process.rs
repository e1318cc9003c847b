//! Scripted entries performed by a real process: the example `scripted_agent`, which `cargo test` builds.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cuegate_provider::{
    Activity, Answer, AskKind, Fault, FaultClass, Permission, PreparedAsk, ProgramEnd, Provider as _,
    Request,
    scripted::{Script, ScriptedProgram, ScriptedProvider},
};

fn program() -> ScriptedProgram {
    let test = env::current_exe().unwrap();
    let exe = test.ancestors().nth(2).map(|target| target.join("examples/scripted_agent")).unwrap();
    assert!(
        exe.exists(),
        "{} is missing; `cargo build -p cuegate-provider --examples` makes it",
        exe.display()
    );
    ScriptedProgram { exe, args: vec!["__scripted".into()] }
}

fn request(work: &Path) -> Request {
    Request {
        id: "run/1".to_owned(),
        step: "fix".to_owned(),
        subject: None,
        persona: None,
        persona_names: Vec::new(),
        readable: Vec::new(),
        kind: AskKind::Work,
        prompt: String::new(),
        system: None,
        schema: None,
        model: None,
        session: None,
        permission: Permission::AcceptEdits,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: work.to_owned(),
        timeout_ms: 60_000,
        cap: cuegate_provider::Cap::default(),
        unattended: false,
        scratch: ".".into(),
    }
}

/// Runs the program of an entry as a runner does. Kills the program after the first activity for which `stop` holds.
fn ask(entry: &str, tree: &Path, stop: impl Fn(&Activity) -> bool) -> (Vec<Activity>, Result<Answer, Fault>) {
    let script = Script::parse(&format!("answers: [{entry}]"), "s.yaml").unwrap();
    let provider = ScriptedProvider::new(script, Some(program()));
    let request = request(tree);
    let Ok(PreparedAsk::Process { launch, mut reader }) = provider.prepare(&request) else {
        panic!("a program")
    };
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .current_dir(&request.work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&launch.stdin).unwrap();
    let (mut activities, mut stopped) = (Vec::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).split(b'\n') {
        for activity in reader.line(&line.unwrap()) {
            if stop(&activity) {
                child.kill().unwrap();
                stopped = true;
            }
            activities.push(activity);
        }
    }
    let output = child.wait_with_output().unwrap();
    let ended = match (stopped, output.status.code(), output.status.signal()) {
        (true, ..) => ProgramEnd::TimedOut,
        (false, Some(code), _) => ProgramEnd::Exit(code),
        (false, None, signal) => ProgramEnd::Signal(signal.unwrap_or_default()),
    };
    (activities, reader.end(ended, &output.stderr))
}

fn tree() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn a_real_process_edits_and_answers() {
    let (_folder, tree) = tree();
    let entry =
        "{writes: [{path: a/b.txt, content: hi}], runs: [cat a/b.txt > c.txt, pwd], delay_ms: 1, text: done}";
    let (activities, answer) = ask(entry, &tree, |_| false);
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.edited), ("done", true));
    assert_eq!(fs::read_to_string(tree.join("c.txt")).unwrap(), "hi");
    assert_eq!(activities.len(), 6, "{activities:?}");
}

#[test]
fn a_real_process_crashes() {
    let (_folder, tree) = tree();
    let (_, answer) = ask("{writes: [{path: a, content: x}], error: crashed}", &tree, |_| false);
    let fault = answer.unwrap_err();
    assert_eq!(fault.class, FaultClass::Crashed);
    assert_eq!(fault.message, "no answer from the scripted agent: killed by signal 9");
    assert!(tree.join("a").exists());
}

#[test]
fn a_real_process_hangs_until_it_is_killed() {
    let (_folder, tree) = tree();
    let wrote = |activity: &Activity| matches!(activity, Activity::Tool { name, .. } if name == "write");
    let (_, answer) = ask("{writes: [{path: a, content: x}], error: hang}", &tree, wrote);
    assert_eq!(answer.unwrap_err().class, FaultClass::Timeout);
    assert!(tree.join("a").exists());
}

#[test]
fn a_real_process_sends_an_incomplete_answer() {
    let (_folder, tree) = tree();
    let (_, answer) = ask("{runs: ['true'], error: malformed}", &tree, |_| false);
    assert_eq!(answer.unwrap_err().class, FaultClass::Malformed);
}

#[test]
fn an_invalid_job_is_rejected() {
    let program = program();
    let output = Command::new(program.exe).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("failed to read a scripted job: "));
}
