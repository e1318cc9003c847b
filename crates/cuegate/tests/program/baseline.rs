//! Validators run once before the first ask.

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario},
};
use serde_json::json;

use crate::{agent::registry::small, agents::Set, support::Ran};

/// A run by Claude of an agent whose validator runs this command. The agent writes `fixed`.
fn run(command: &str, config: &str, more: &[&str]) -> (Set, Ran) {
    let registry = small()
        .runner(json!({"boundaries": {"permissionMode": "acceptEdits"}}))
        .validator(command, json!({"action": "retry", "maxAttempts": 1}));
    let answer = |action: &str| json!({"next_action": {"action": action}});
    let scenario = Scenario::new()
        .usage(10, 0, 10)
        .reply(Reply::to("Do work").write("fixed", "x").json(answer("handoff")))
        .reply(Reply::to("Do close").json(answer("closing")).for_ever());
    let set = Set::of("claude", registry.project(json!([])), scenario);
    let toml = set.project.read("cuegate.toml");
    set.project.write("cuegate.toml", &format!("{config}\n{toml}"));
    let ran = set.run(&[&["run", "agent", "--provider", "claude"], more].concat());
    set.project.all_gone();
    (set, ran)
}

#[test]
fn a_validator_that_fails_before_any_change_is_reported() {
    if !offline::inside() {
        return;
    }
    let command = "echo made by the validator > made.log; test -e fixed || { echo No module named pytest >&2; exit 1; }";
    let said = "validator `proof` fails before any change: exit 1\n  | No module named pytest\n";
    let (set, ran) = run(command, "", &[]);
    assert_eq!(ran.code, 0, "{}\n{:?}", ran.stderr, set.standin.unmatched());
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    // What the validator wrote is not the agent's.
    assert_eq!(set.project.status()["steps"][0]["changed_files"], json!(["fixed"]));

    let (set, ran) = run(command, "[run]\nbaseline = \"refuse\"", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(said) && ran.stderr.contains("`--no-baseline`"), "{}", ran.stderr);
    assert_eq!((set.standin.requests().len(), set.project.runs()), (0, 0), "nothing was asked");

    for (config, more) in [("[run]\nbaseline = \"off\"", &[][..]), ("", &["--no-baseline"])] {
        let (_, ran) = run(command, config, more);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("before any change"), "{}", ran.stderr);
    }
    let (_, ran) = run("true", "", &[]);
    assert!(ran.code == 0 && !ran.stderr.contains("before any change"), "{}", ran.stderr);
}
