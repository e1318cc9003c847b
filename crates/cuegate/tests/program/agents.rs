//! The program with the real agents: Claude Code and Codex as they are installed by `cargo xtask agents`, talking to a
//! stand-in of their API where there is no network.

use std::process::Command;

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario, Standin},
};
use serde_json::json;

use crate::support::{Project, Ran, rows};

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
        .reply(Reply::to("# Close").times(2).json(close))
        .reply(fix("$1 * 9 / 5 + 32", "Multiply by 9/5", "# The test still fails", "Multiplies by 9/5."))
}

/// A project whose agents ask the stand-in.
pub struct Set {
    pub project: Project,
    pub standin: Standin,
    provider: &'static str,
}

impl Set {
    pub fn of(provider: &'static str, project: Project, scenario: Scenario) -> Set {
        let standin = Standin::start(scenario);
        let toml = match provider {
            "codex" => {
                let lines: Vec<String> = standin
                    .codex_args()
                    .iter()
                    .filter(|word| word.starts_with("model_providers."))
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
        project.write("cuegate.toml", &toml);
        project.write(".git/info/exclude", "/cuegate.toml\n");
        Set { project, standin, provider }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        let bin = offline::agents().bin;
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", bin.display()));
        match self.provider {
            "claude" => command.envs(self.standin.claude_env()),
            _ => command.envs(self.standin.codex_env()).env("CODEX_API_KEY", "none"),
        };
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }
}

/// The rows of the example, whoever is asked.
const ROWS: &str = "\
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
    let (_, result) = example_by("claude", &[]);
    eprintln!("{result:#}");
}

#[test]
fn codex_does_the_main_job() {
    if !offline::inside() {
        return;
    }
    let (_, result) = example_by("codex", &[]);
    eprintln!("{result:#}");
}
