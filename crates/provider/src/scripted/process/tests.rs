use std::{cell::Cell, fs, path::Path, time::Duration};

use super::{AfterJob, ScriptedEnd, ScriptedJob, perform_job};
use crate::{
    Activity, Answer, AskKind, Fault, FaultClass, Permission, PreparedAsk, ProgramEnd, Provider, Request,
    scripted::{Script, ScriptedProgram, ScriptedProvider},
};

fn provider(entry: &str) -> ScriptedProvider {
    let script = Script::parse(&format!("answers: [{entry}, {{text: next}}]"), "s.yaml").unwrap();
    ScriptedProvider::new(script, Some(ScriptedProgram { exe: "/bin/cuegate".into(), args: Vec::new() }))
}

fn prepare(provider: &ScriptedProvider) -> PreparedAsk {
    let request = Request {
        id: "r1".to_owned(),
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
        permission: Permission::Plan,
        tools: None,
        tool_servers: Vec::new(),
        effort: None,
        work: ".".into(),
        timeout_ms: 1000,
        cap: crate::Cap::default(),
        unattended: false,
        scratch: ".".into(),
    };
    provider.prepare(&request).unwrap()
}

/// Performs an entry in a tree as the child does, but in this process.
fn play(
    provider: &ScriptedProvider,
    tree: &Path,
) -> (Vec<Activity>, AfterJob, String, Result<Answer, Fault>) {
    let PreparedAsk::Process { launch, mut reader } = prepare(provider) else { panic!("a program") };
    let job: ScriptedJob = serde_json::from_slice(&launch.stdin).unwrap();
    let mut out = Vec::new();
    let after = perform_job(job, tree, &mut out, |_| ()).unwrap();
    let ended = match after {
        AfterJob::Exit => ProgramEnd::Exit(0),
        AfterJob::Kill => ProgramEnd::Signal(9),
        AfterJob::Wait => ProgramEnd::TimedOut,
    };
    let activities = out.split(|byte| *byte == b'\n').flat_map(|line| reader.line(line)).collect();
    (activities, after, String::from_utf8(out).unwrap(), reader.end(ended, b""))
}

fn tree() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

/// Whether the first entry is used up, so that the next one answers.
fn is_used_up(provider: &ScriptedProvider) -> bool {
    matches!(prepare(provider), PreparedAsk::Local(_))
}

#[test]
fn an_entry_edits_runs_reports_and_answers() {
    let (_folder, tree) = tree();
    let provider = provider(
        "{writes: [{path: src/a.txt, content: hi}], runs: [cat src/a.txt, exit 3], text: done, output: {x: 0.1},
          usage: {input_tokens: 3, cost_usd: 0.012}}",
    );
    let (activities, after, out, answer) = play(&provider, &tree);
    assert_eq!(fs::read_to_string(tree.join("src/a.txt")).unwrap(), "hi");
    assert_eq!(after, AfterJob::Exit);
    let tool = |id: &str, name: &str, target: &str| Activity::Tool {
        id: id.to_owned(),
        name: name.to_owned(),
        target: target.to_owned(),
    };
    let ended = |id: &str, failed, output: &str| Activity::ToolEnded {
        id: id.to_owned(),
        failed,
        output: output.to_owned(),
    };
    assert_eq!(
        activities,
        [
            tool("write-0", "write", "src/a.txt"),
            ended("write-0", false, ""),
            tool("run-0", "run", "cat src/a.txt"),
            ended("run-0", false, "hi"),
            tool("run-1", "run", "exit 3"),
            ended("run-1", true, "`exit 3` failed (exit status: 3)"),
        ]
    );
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.edited), ("done", true));
    assert_eq!((answer.output, answer.usage.cost_usd), (Some(serde_json::json!({"x": 0.1})), Some(0.012)));
    assert!(out.lines().count() == 7 && out.ends_with("}\n"), "{out}");
    assert!(is_used_up(&provider));
}

#[test]
fn the_delay_follows_the_edits() {
    let (_folder, tree) = tree();
    let edited = Cell::new(None);
    let writes = vec![super::FileWrite { path: "a".to_owned(), content: String::new() }];
    let job = ScriptedJob { writes, runs: Vec::new(), delay_ms: 50, end: ScriptedEnd::Never };
    let after =
        perform_job(job, &tree, &mut Vec::new(), |time| edited.set(Some((time, tree.join("a").exists()))))
            .unwrap();
    assert_eq!((after, edited.get()), (AfterJob::Wait, Some((Duration::from_millis(50), true))));
}

#[test]
fn a_write_outside_the_tree_is_a_violation() {
    let (_folder, tree) = tree();
    let provider = provider(
        "{writes: [{path: a, content: x}, {path: ../b, content: x}, {path: c, content: x}], runs: [touch d],
          text: done, usage: {output_tokens: 4}}",
    );
    let (activities, _, _, answer) = play(&provider, &tree);
    let fault = answer.unwrap_err();
    assert_eq!((fault.class, fault.usage.output_tokens), (FaultClass::Violation, 4));
    assert_eq!(fault.message, "the path `../b` leads out of the working tree");
    assert!(fault.receipt.is_some());
    assert_eq!(
        (activities.len(), fs::read_dir(&tree).unwrap().count()),
        (2, 1),
        "only the first was written"
    );
    assert!(is_used_up(&provider));
}

#[test]
fn a_failed_write_reports_the_reason() {
    let (_folder, tree) = tree();
    fs::create_dir(tree.join("a")).unwrap();
    let (_, _, _, answer) = play(&provider("{writes: [{path: a, content: x}]}"), &tree);
    let fault = answer.unwrap_err();
    assert_eq!(fault.class, FaultClass::Crashed);
    assert!(fault.message.starts_with("failed to write `a`: "), "{fault}");
}

#[test]
fn errors_come_after_the_edits() {
    for (word, after, class) in [
        ("rate_limited", AfterJob::Exit, FaultClass::RateLimited),
        ("auth", AfterJob::Exit, FaultClass::Auth),
        ("malformed", AfterJob::Exit, FaultClass::Malformed),
        ("crashed", AfterJob::Kill, FaultClass::Crashed),
        ("hang", AfterJob::Wait, FaultClass::Timeout),
        ("timeout", AfterJob::Wait, FaultClass::Timeout),
    ] {
        let (_folder, tree) = tree();
        let entry = format!(
            "{{writes: [{{path: a, content: x}}], error: {word}, resets_in_ms: 7, usage: {{input_tokens: 2}}}}"
        );
        let provider = provider(&entry);
        let (_, happened, out, answer) = play(&provider, &tree);
        let fault = answer.unwrap_err();
        assert!(tree.join("a").exists(), "{word}");
        assert_eq!((happened, fault.class, fault.usage.input_tokens), (after, class, 2), "{word}: {out}");
        assert_eq!(fault.resets_in_ms, (word == "rate_limited" || word == "auth").then_some(7));
        assert!(fault.receipt.is_some() && is_used_up(&provider), "{word}");
    }
}

#[test]
fn every_exit_is_classified() {
    let answer = r#"{"answer":{"output":null,"text":"x","usage":{},"session":null,"model":null,"edited":true,"blocked":null,"asks_person":null,"receipt":null}}"#;
    let activity = r#"{"activity":{"activity":"text","text":"thinking"}}"#;
    let cases: [(&[&str], ProgramEnd, &str); 13] = [
        (&[activity, "", answer], ProgramEnd::Exit(0), ""),
        (&[], ProgramEnd::Exit(0), ""),
        (&[activity], ProgramEnd::Exit(0), ""),
        (&[], ProgramEnd::Exit(1), "out of cheese"),
        (&[&answer[..40]], ProgramEnd::Exit(0), ""),
        (&["hello", answer], ProgramEnd::Exit(0), ""),
        (&[answer, answer], ProgramEnd::Exit(0), ""),
        (&[r#"{"future":1}"#], ProgramEnd::Exit(0), ""),
        (&[answer], ProgramEnd::Exit(3), ""),
        (&[answer], ProgramEnd::Signal(9), ""),
        (&[answer], ProgramEnd::TimedOut, ""),
        (&[answer], ProgramEnd::TooMuchOutput, ""),
        (&[], ProgramEnd::NotStarted("no such file".to_owned()), ""),
    ];
    let mut told = String::new();
    for (lines, ended, stderr) in cases {
        let provider = provider("{runs: [ls]}");
        let PreparedAsk::Process { mut reader, .. } = prepare(&provider) else { panic!("a program") };
        for line in lines {
            reader.line(line.as_bytes());
        }
        let outcome = match reader.end(ended.clone(), stderr.as_bytes()) {
            Ok(answer) => format!("Ok: {}", answer.text),
            Err(fault) => format!("{:?}: {fault}", fault.class),
        };
        let used = if is_used_up(&provider) { "used up" } else { "free" };
        told += &format!("{} lines, {ended:?} -> {outcome} ({used})\n", lines.len());
    }
    insta::assert_snapshot!(told, @r##"
3 lines, Exit(0) -> Ok: x (used up)
0 lines, Exit(0) -> Malformed: no answer from the scripted agent: exited without a result (used up)
1 lines, Exit(0) -> Malformed: no answer from the scripted agent: exited without a result (used up)
0 lines, Exit(1) -> Crashed: no answer from the scripted agent: exited with code 1; stderr: out of cheese (used up)
1 lines, Exit(0) -> Malformed: no answer from the scripted agent: invalid output: `{"answer":{"output":null,"text":"x","usa` (used up)
2 lines, Exit(0) -> Malformed: no answer from the scripted agent: invalid output: `hello` (used up)
2 lines, Exit(0) -> Malformed: no answer from the scripted agent: invalid output: `{"answer":{"output":null,"text":"x","usage":{},"session":null,"model":null,"edited":true,"blocked":null,"asks_person":null,"receipt":null}}` (used up)
1 lines, Exit(0) -> Malformed: no answer from the scripted agent: invalid output: `{"future":1}` (used up)
1 lines, Exit(3) -> Crashed: no answer from the scripted agent: exited with code 3 (used up)
1 lines, Signal(9) -> Crashed: no answer from the scripted agent: killed by signal 9 (used up)
1 lines, TimedOut -> Timeout: no answer from the scripted agent: timed out (used up)
1 lines, TooMuchOutput -> Malformed: no answer from the scripted agent: output limit exceeded (used up)
0 lines, NotStarted("no such file") -> MissingProgram: no answer from the scripted agent: failed to start `/bin/cuegate`: no such file (free)
"##);
}

#[test]
fn a_reader_that_is_dropped_frees_its_entry() {
    let provider = provider("{runs: [ls]}");
    drop(prepare(&provider));
    assert!(!is_used_up(&provider));
}

#[test]
fn the_child_stops_when_its_reader_is_gone() {
    struct Deaf;
    impl std::io::Write for Deaf {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (_folder, tree) = tree();
    let runs = vec!["touch a".to_owned()];
    let job = ScriptedJob { writes: Vec::new(), runs, delay_ms: 0, end: ScriptedEnd::Never };
    assert!(perform_job(job, &tree, &mut Deaf, |_| ()).is_err());
    assert!(!tree.join("a").exists(), "an activity is reported before it happens");
}
