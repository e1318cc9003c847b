//! The program with the real agents: Claude Code and Codex as they are installed by `cargo xtask agents`, talking to a
//! stand-in of their API where there is no network.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario, Standin},
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use crate::support::{Project, Ran, at_work_in, rows};

/// The model of the example: its first fix is wrong, as that of the script is.
pub fn fixer() -> Scenario {
    let fix = |formula: &str, message: &str, when: &str, change: &str| {
        let script = format!(
            "#!/bin/sh\n# Prints degrees Fahrenheit for whole degrees Celsius.\necho $(({formula}))\n"
        );
        Reply::to(when).write("convert.sh", &script).shell(&format!("git commit -qam '{message}'")).json(json!({
            "stepId": "continuation.fix", "summary": "Corrected the formula and committed.", "change": change,
            "next_action": {"action": "handoff", "reason": "The formula is right now."}
        }))
    };
    let close = json!({
        "stepId": "closure.fix", "summary": "Everything is done.",
        "next_action": {"action": "closing", "reason": "The test passes and all is committed."}
    });
    Scenario::new()
        .usage(1_000, 500, 50)
        .reply(Reply::to("# Find the cause").shell("sh test.sh; cat convert.sh").json(json!({
            "stepId": "initial.fix", "summary": "The offset has the wrong sign.",
            "analysis": {"cause": "It subtracts 32.", "plan": "Turn the minus into a plus."},
            "next_action": {"action": "next", "reason": "The cause is clear."}
        })))
        .reply(fix("$1 * 5 / 9 + 32", "Fix the conversion", "# Fix it", "Rewrote the formula."))
        .reply(Reply::to("# Close").times(4).json(close))
        .reply(
            fix("$1 * 9 / 5 + 32", "Multiply by 9/5", "# The test still fails", "Multiplies by 9/5.")
                .times(2),
        )
}

/// A project whose agents ask the stand-in.
pub struct Set {
    pub project: Project,
    pub standin: Standin,
}

impl Set {
    pub fn of(provider: &'static str, project: Project, scenario: Scenario) -> Set {
        let standin = Standin::start(scenario);
        let toml = match provider {
            "codex" => {
                let lines: Vec<String> = standin
                    .codex_args()
                    .iter()
                    .filter(|word| word.starts_with("model_providers.") || word.starts_with("sandbox_"))
                    .map(|word| format!("  '{word}',\n"))
                    .collect();
                format!("[providers.codex]\nservice = \"standin\"\nconfig = [\n{}]\n", lines.concat())
            }
            "openai" => format!(
                "[providers.openai]\nbase_url = \"{}\"\nkey_env = \"OPENAI_API_KEY\"\nmodel = \"small\"\n",
                standin.openai_base()
            ),
            _ => String::new(),
        };
        project.write("cuegate.toml", &format!("{toml}[budget]\nunlimited = true\n"));
        project.write(".git/info/exclude", "/cuegate.toml\n");
        Set { project, standin }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        let bin = offline::agents().bin;
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.envs(self.standin.claude_env()).envs(self.standin.codex_env()).env("CODEX_API_KEY", "none");
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }
}

/// The rows of the example, whoever is asked.
pub const ROWS: &str = "\
initial.fix: next → continuation.fix
continuation.fix: handoff → closure.fix
closure.fix: closing → continuation.fix
continuation.fix (remedy): handoff → closure.fix
closure.fix: closing → @completed";

fn example_by(provider: &'static str, more: &[&str]) -> (Set, serde_json::Value) {
    let set = Set::of(provider, Project::example(), fixer());
    let begin = ["run", "fixer", "The test fails. Make it pass.", "--json", "--provider", provider];
    let ran = set.run(&[&begin[..], more].concat());
    let asked = set.standin.requests().len();
    assert_eq!(ran.code, 0, "{asked} requests, unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    let result = ran.json();
    assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
    assert_eq!((&result["asks"]["work"], &result["asks"]["remedy"]), (&json!(4), &json!(1)));
    assert_eq!(set.standin.unmatched(), [""; 0]);
    assert_eq!(set.project.git(&["log", "--format=%s"]), "Multiply by 9/5\nFix the conversion\nbegin\n");
    set.project.all_gone();
    (set, result)
}

#[test]
fn claude_does_the_main_job() {
    if !offline::inside() {
        return;
    }
    let (set, result) = example_by("claude", &["--budget-usd", "5"]);
    // What the stand-in's tokens cost by the program's own count, each conversation's total taken apart.
    assert_eq!(result["spent"]["asks"], 5);
    assert!(result["cost_usd"].as_f64().unwrap() > 0.0 && result["unpriced_asks"].is_null(), "{result:#}");
    let tokens = &result["tokens"];
    let requests = set.standin.answered().len() as u64;
    assert_eq!((&tokens["input"], &tokens["output"]), (&json!(requests * 1_500), &json!(requests * 50)));
    let status = set.run(&["status", "last"]).stdout;
    assert!(
        status.contains("5 answers used the agent's JSON Schema mode; 1 new session, 4 forked"),
        "{status}"
    );
}

#[test]
fn codex_does_the_main_job() {
    if !offline::inside() {
        return;
    }
    let (set, result) = example_by("codex", &["--budget-tokens", "100000"]);
    let tokens = &result["tokens"];
    let requests = set.standin.answered().len() as u64;
    assert_eq!((&tokens["input"], &tokens["output"]), (&json!(requests * 1_500), &json!(requests * 50)));
    assert_eq!(
        (&result["cost_usd"], &result["unpriced_asks"]),
        (&json!(null), &json!(5)),
        "unknown is not zero"
    );
}

/// How many of these sessions have a file below the home folder.
fn kept_sessions(ids: &[String]) -> usize {
    let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap());
    let mut folders = vec![home.join(".claude/projects"), home.join(".codex/sessions")];
    let mut names = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => names.push_str(&entry.file_name().to_string_lossy()),
            }
        }
    }
    ids.iter().filter(|id| names.contains(id.as_str())).count()
}

/// The conversation of a fork goes on from its moment, in another folder.
fn forks_its_conversation(provider: &'static str) {
    let (set, result) = example_by(provider, &[]);
    let run = result["run"].as_str().unwrap();
    let asked = set.standin.answered().len();
    let ran = set.run(&["fork", run, "--before", "continuation.fix#2", "--json"]);
    assert_eq!(ran.code, 0, "unmatched {:?}\n{}", set.standin.unmatched(), ran.stderr);
    let fork = ran.json();
    assert_eq!(rows(&fork), ROWS, "{}", ran.stderr);
    assert_eq!((&fork["asks"]["work"], &fork["asks"]["remedy"]), (&json!(1), &json!(1)));
    let status = set.run(&["status", "last"]).stdout;
    assert!(status.contains("2 forked"), "two calls continue copies of the conversation: {status}");
    let first = set.standin.answered()[asked].body.to_string();
    assert!(first.contains("Rewrote the formula."), "{first}");
    assert!(!first.contains("Multiplies by 9/5."), "nothing of what came later: {first}");
    let head = set.project.git(&["log", "--format=%s"]);
    assert_eq!(head, "Multiply by 9/5\nFix the conversion\nbegin\n", "the origin stays");
    set.project.all_gone();
    // What the agent keeps of the fork goes with its worktree, and nothing else.
    let sessions = |run: &str, from: u64| -> Vec<String> {
        let log = set.run(&["log", run, "--json"]).stdout;
        let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let late = events.filter(|event| event["seq"].as_u64() >= Some(from));
        late.filter_map(|event| Some(event["session"].as_str()?.to_owned())).collect()
    };
    let own = sessions("last", fork["fork"]["records"].as_u64().unwrap());
    let others = sessions(run, 0);
    assert_eq!((own.len(), others.len()), (2, 5));
    assert_eq!((kept_sessions(&own), kept_sessions(&others)), (2, 5));
    let cleaned = set.run(&["clean", "last"]);
    assert_eq!(cleaned.code, 0, "{}", cleaned.stderr);
    assert_eq!((kept_sessions(&own), kept_sessions(&others)), (0, 5));
}

#[test]
fn claude_forks_its_conversation() {
    if offline::inside() {
        forks_its_conversation("claude");
    }
}

#[test]
fn codex_forks_its_conversation() {
    if offline::inside() {
        forks_its_conversation("codex");
    }
}

#[test]
fn a_budget_in_dollars_needs_prices() {
    if !offline::inside() {
        return;
    }
    let set = Set::of("codex", Project::example(), fixer());
    let run =
        ["run", "fixer", "Mend it.", "--provider", "codex", "--budget-usd", "1", "--model", "m-1", "--json"];
    let ran = set.run(&run);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the price of `m-1` is unknown"), "{}", ran.stderr);
    assert_eq!(set.standin.requests().len(), 0, "no agent was called");
    let toml = set.project.read("cuegate.toml");
    set.project.write("cuegate.toml", &format!("{toml}\n[prices.\"m-1\"]\ninput = 2\noutput = 10\n"));
    let ran = set.run(&run);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    let requests = set.standin.answered().len() as f64;
    let cost = requests * (1_500.0 * 2.0 + 50.0 * 10.0) / 1e6;
    assert!(
        (result["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9,
        "{} is not {cost}",
        result["cost_usd"]
    );
}

/// The provider has no tools, so the gates reject the work that its model claims to have done.
#[test]
fn a_model_without_tools_fails_the_gates() {
    if !offline::inside() {
        return;
    }
    let mut scenario = fixer();
    scenario.replies.iter_mut().for_each(|reply| reply.times = 0);
    let set = Set::of("openai", Project::example(), scenario);
    let ran = set.run(&["run", "fixer", "Mend it.", "--json", "--provider", "openai"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let result = ran.json();
    assert!(result["reason"].as_str().unwrap().contains("tests-pass"), "{result:#}");
    assert_eq!(result["provider"], "openai");
    assert!(ran.stderr.contains("openai cannot edit files"), "{}", ran.stderr);
    assert_eq!(set.standin.unmatched(), [""; 0]);
}

/// How often the program is killed while each agent is asked, if `CUEGATE_KILLS` does not say.
const KILLS: usize = 14;

#[expect(clippy::print_stderr, reason = "what the kills hit is worth seeing")]
fn killed_while_asking(provider: &'static str) {
    let wanted = crate::support::kills(KILLS);
    let (mut kills, mut runs, mut adopted) = (0, 0, 0);
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    while kills < wanted {
        let mut scenario = fixer();
        scenario.replies.iter_mut().for_each(|reply| reply.times = 0);
        let set = Set::of(provider, large(), scenario);
        runs += 1;
        assert!(runs <= wanted, "too few kills: {kills}");
        // In a worktree of its own: what a cut ask leaves half done, such as an agent's own temporary files, is put away.
        let begin = ["run", "fixer", "The test fails. Make it pass.", "--worktree", "--provider", provider];
        let mut child = set.command(&begin).spawn().unwrap();
        let mut whole: Vec<u64> = Vec::new();
        for _ in 0..10 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Every third one as soon as an agent has ended, before its answer is journaled.
            let aim = (kills % 3 != 2).then_some(random % 900);
            if !kill_while_asking(&mut child, &set.project, aim) {
                break;
            }
            kills += 1;
            if kills.is_multiple_of(2) {
                set.project.all_gone();
            }
            whole.extend(complete_asks(&set.project));
            // It may have come to its end while it was aimed at.
            let status = set.project.run(&["status", "last", "--json"]);
            let has_ended = status.code == 0 && status.json()["state"] == "completed";
            let next = if has_ended { "status" } else { "resume" };
            child = set.command(&[next, "last"]).spawn().unwrap();
            if has_ended {
                break;
            }
        }
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{kills} kills: {}", ran.stderr);
        let result = set.project.status();
        assert_eq!(rows(&result), ROWS, "{}", ran.stderr);
        assert_eq!((&result["asks"]["work"], &result["asks"]["remedy"]), (&json!(4), &json!(1)));
        // What had ended when the program was killed was taken over, not asked once more.
        let seqs = |kind: &str| -> Vec<u64> {
            set.project.events(kind).iter().filter_map(|event| event["ask"]["seq"].as_u64()).collect()
        };
        let (answered, cut) = (seqs("answered"), seqs("ask_cut"));
        for seq in whole {
            assert!(
                answered.contains(&seq) && !cut.contains(&seq),
                "ask {seq} had ended: {answered:?} {cut:?} {:?}",
                set.project.events("faulted")
            );
            adopted += 1;
        }
        set.project.all_gone();
    }
    assert!(adopted >= wanted / 10, "only {adopted} asks had just ended");
    eprintln!("{provider}: {kills} kills while it was asked, in {runs} runs; {adopted} asks had just ended");
}

/// The example's project with so many files that a snapshot takes a moment.
fn large() -> Project {
    let project = Project::example();
    for index in 0..3_000 {
        project.write(&format!("many/{}/{index}.txt", index % 40), &format!("file {index}\n"));
    }
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--amend", "--no-edit"]);
    project
}

/// Kills the program so many milliseconds after an ask began, or as soon as one has ended; false when it ended before.
fn kill_while_asking(child: &mut std::process::Child, project: &Project, wait_ms: Option<u64>) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut since = None;
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if wait_ms.is_none() && !ended_asks(project).is_empty() {
            break;
        }
        if since.is_none() && at_work_in(project.path()).iter().any(|process| is_agent(&process.words)) {
            since = Some(Instant::now());
        }
        if let (Some(since), Some(wait)) = (since, wait_ms)
            && since.elapsed() >= Duration::from_millis(wait)
        {
            break;
        }
        assert!(Instant::now() < deadline, "nobody is asked");
        std::thread::sleep(Duration::from_millis(2));
    }
    let group = Pid::from_raw(child.id() as i32).unwrap();
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().unwrap();
    true
}

fn is_agent(words: &str) -> bool {
    !words.contains("__shim") && (words.contains("claude -p") || words.contains("codex exec"))
}

/// Asks whose programs had ended by themselves when the run was killed, by the record that made them pending.
fn complete_asks(project: &Project) -> Vec<u64> {
    // The shim of an agent that had just ended writes that down although the program is dead.
    project.all_gone();
    ended_asks(project)
}

fn ended_asks(project: &Project) -> Vec<u64> {
    let runs = std::fs::read_dir(project.path().join(".cuegate/runs")).into_iter().flatten();
    let folders =
        runs.flat_map(|run| std::fs::read_dir(run.unwrap().path().join("commands")).into_iter().flatten());
    let whole = folders.filter_map(|folder| {
        let path = folder.unwrap().path();
        let exit: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path.join("exit.json")).ok()?).ok()?;
        let spec: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path.join("spec.json")).ok()?).ok()?;
        // The program, or an argument of the sandbox.
        let words = spec["args"].as_array().into_iter().flatten().chain([&spec["program"]]);
        let named = |word: &serde_json::Value, name: &str| {
            word["text"]
                .as_str()
                .is_some_and(|word| Path::new(word).file_name().is_some_and(|file| file == name))
        };
        let is_agent = words.into_iter().any(|word| named(word, "claude") || named(word, "codex"));
        let name = path.file_name()?.to_str()?.split('-').next()?.parse().ok()?;
        (exit["cut"] == false && is_agent).then_some(name)
    });
    whole.collect()
}

/// The provider that ran a finished ask reads its output, even after a switch to another provider.
#[test]
fn an_answer_of_one_provider_is_not_requested_again_from_another() {
    if !offline::inside() {
        return;
    }
    let mut scenario = fixer();
    scenario.replies.iter_mut().for_each(|reply| reply.times = 0);
    let set = Set::of("codex", large(), scenario);
    let begin = ["run", "fixer", "The test fails. Make it pass.", "--provider", "claude"];
    let mut child = set.command(&begin).spawn().unwrap();
    assert!(kill_while_asking(&mut child, &set.project, None));
    let whole = complete_asks(&set.project);
    let ran = set.run(&["resume", "last", "--provider", "codex", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answered = set.project.events("answered");
    let by =
        |seq: u64| answered.iter().find(|event| event["ask"]["seq"] == seq).map(|event| &event["provider"]);
    assert!(
        !whole.is_empty() && whole.iter().all(|seq| by(*seq) == Some(&json!("claude"))),
        "{whole:?} {answered:#?}"
    );
    assert_eq!(answered.last().unwrap()["provider"], "codex");
    assert_eq!(rows(&ran.json()), ROWS);
}

#[test]
fn claude_is_killed_while_it_works() {
    if offline::inside() {
        killed_while_asking("claude");
    }
}

#[test]
fn codex_is_killed_while_it_works() {
    if offline::inside() {
        killed_while_asking("codex");
    }
}
