//! The cost bound of a run: printed before the start, and never exceeded; the key that lowers it; the budget prompt.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, small},
    support::Project,
};

/// Stands in for Claude Code: says at once that all is done.
const STAND_IN: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '99.1.0 (Claude Code)'; exit 0; }
case "$(cat)" in *"Do work"*) way=handoff ;; *) way=closing ;; esac
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"","structured_output":{"next_action":{"action":"'$way'"}},"usage":{"input_tokens":1,"output_tokens":1},"total_cost_usd":0.01,"modelUsage":{"m":{"inputTokens":1,"outputTokens":1,"costUSD":0.01}}}'
"#;

/// A project in which an agent answers that could cost money.
fn costly(more: &str) -> Project {
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    let program = project.path().join("stand-in");
    fs::write(&program, STAND_IN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "{more}\n[providers.claude]\nprogram = {:?}\n[providers.claude.env]\nANTHROPIC_API_KEY = \"of-a-test\"\n",
        program.display().to_string()
    );
    project.write("cuegate.toml", &config);
    project
}

const ASKED: &str = "Spending limit in dollars [5]: ";
const COSTLY: [&str; 4] = ["run", "agent", "--provider", "claude"];

#[test]
fn prompts_for_a_dollar_budget_if_costs_are_unbounded() {
    let project = costly("");
    let Some(ran) = project.at_terminal(&COSTLY, "a lot\n2.50\n") else { return };
    let shown = ran.stdout.replace('\r', "");
    assert_eq!(ran.code, 0, "{shown}");
    assert!(shown.contains("at most 40 calls, usually 2–3. Spending limit"), "{shown}");
    assert!(shown.contains("an amount of US dollars must be greater than 0"), "{shown}");
    assert_eq!(shown.matches(ASKED).count(), 2, "{shown}");
    let status = project.status();
    assert_eq!((&status["state"], &status["budget"]["usd"]), (&json!("completed"), &json!(2.5)));

    // The proposal counts what the last run cost.
    let ran = project.at_terminal(&COSTLY, "\n").unwrap();
    assert_eq!((ran.code, &project.status()["budget"]["usd"]), (0, &json!(1.0)), "{}", ran.stdout);
    assert!(ran.stdout.contains("the last run of `agent` here: $0.01"), "{}", ran.stdout);
    let ran = project.at_terminal(&COSTLY, "none\n").unwrap();
    assert_eq!((ran.code, &project.status()["budget"]["usd"]), (0, &Value::Null), "{}", ran.stdout);
    let before = project.runs();
    let ran = project.at_terminal(&COSTLY, "\u{4}").unwrap();
    assert_eq!(ran.code, 130, "{}", ran.stdout);
    assert!(ran.stdout.contains("no budget was given"), "{}", ran.stdout);
    assert_eq!(project.runs(), before, "nothing was begun");
}

#[test]
fn prompts_for_a_token_budget_if_prices_are_unknown() {
    let project = costly("");
    let program = project.path().join("stand-in");
    fs::write(&program, "#!/bin/sh\necho codex-cli 99.1.0\n").unwrap();
    let home = project.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let config = format!(
        "[providers.codex]\nprogram = {:?}\n[providers.codex.env]\nCODEX_API_KEY = \"of-a-test\"\nCODEX_HOME = {:?}\nTMPDIR = {:?}\n",
        program.display().to_string(),
        home.display().to_string(),
        project.path().join("tmp").display().to_string()
    );
    project.write("cuegate.toml", &config);
    let Some(ran) = project.at_terminal(&["run", "agent", "--provider", "codex"], "0\n\u{4}") else { return };
    assert_eq!(ran.code, 130, "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("Limit of tokens [2000000]: ").count(), 2, "{}", ran.stdout);
    assert!(!ran.stdout.contains(ASKED), "{}", ran.stdout);
}

#[test]
fn an_unattended_run_needs_a_limit() {
    let project = costly("");
    let ran = project.run(&COSTLY);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error: nothing limits what this unattended run may spend"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("`--budget-usd 5`") && ran.stderr.contains("`--unlimited`"),
        "{}",
        ran.stderr
    );
    assert_eq!(project.runs(), 0);
    let ran = project.run(&[&COSTLY[..], &["--unlimited"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("cost, tokens and time are not limited"), "{}", ran.stderr);
    for limit in ["--budget-usd=9", "--budget-tokens=90000", "--budget-minutes=9", "--budget-calls=9"] {
        let ran = project.run(&[&COSTLY[..], &[limit]].concat());
        assert_eq!(ran.code, 0, "{limit}: {}", ran.stderr);
    }
    for config in ["[budget]\nusd = 9", "[budget]\nunlimited = true"] {
        let ran = costly(config).run(&COSTLY);
        assert_eq!(ran.code, 0, "{config}: {}", ran.stderr);
    }
}

#[test]
fn does_not_prompt_without_need_or_terminal() {
    let project = costly("");
    let never = |project: &Project, args: &[&str]| {
        let Some(ran) = project.at_terminal(args, "") else { return };
        assert!(ran.code == 0 && !ran.stdout.contains(ASKED), "{args:?}: {}", ran.stdout);
    };
    never(&project, &begin(&[]));
    never(&project, &[&COSTLY[..], &["--unlimited"]].concat());
    never(&project, &[&COSTLY[..], &["--budget-tokens", "90000"]].concat());
    never(&project, &[&COSTLY[..], &["--budget-usd", "9"]].concat());
    never(&costly("[budget]\nunlimited = true"), &COSTLY);
}

#[test]
fn price_names_the_key_that_lowers_the_bound_most() {
    let project = costly("");
    let priced = |args: &[&str]| project.run(&[&["price", "agent", "--json"], args].concat()).json();
    let lever = |args: &[&str]| priced(args)["lever"].clone();
    let found = lever(&["--call-usd", "0.50"]);
    assert_eq!(
        (&found["key"], &found["from"], &found["to"]),
        (&json!("maxIterations"), &json!(20), &json!(10))
    );
    let (file, line) = (found["file"].as_str().unwrap(), found["line"].as_u64().unwrap());
    let text = project.read(file);
    assert!(text.lines().nth(line as usize - 1).unwrap().contains("20"), "{found}");
    assert_eq!(found["cost_usd"].as_f64().unwrap(), found["asks"].as_f64().unwrap() * 3.0 * 0.5);
    // What it says comes true: the lower value is priced the same.
    let lowered = text.replace("20", "10");
    project.write(file, &lowered);
    assert_eq!(priced(&[])["max"]["asks"], found["asks"]);
    // A flag over it is what can be lowered.
    assert_eq!(lever(&["--max-iterations", "30"])["key"], "--max-iterations");
    let shown = project.run(&["price", "agent"]).stdout;
    assert!(shown.contains(&format!("to reduce   `maxIterations` ({file}:{line}) from 10 to 5")), "{shown}");
}

/// Gates that are mended twice and a limit: what bounds the piece is neither more nor other than what its author wrote.
#[test]
fn the_bound_of_a_piece_includes_gate_retries() {
    let project = Project::empty();
    let piece = "name: p\nmax_iterations: 12\ninitial_movement: a\nmovements:\n  - name: a\n    edit: true\n    \
                 instruction_template: Do it\n    quality_gates: [{ command: \"true\" }]\n    rules:\n      - \
                 { condition: Done, next: COMPLETE }\n";
    project.write("p.yaml", piece);
    let priced = || project.run(&["price", "p.yaml", "--json", "--repairs", "0"]).json();
    let found = priced();
    assert_eq!(
        (&found["max"]["iterations"], &found["bounded_by"]),
        (&json!(3), &json!("shape")),
        "{found:#}"
    );
    assert_eq!(found["max"]["asks_by_kind"]["remedy"], 2);
    let lever = &found["lever"];
    assert_eq!((&lever["key"], &lever["file"]), (&json!("quality_gate_retries"), &Value::Null), "{found:#}");
    project.write(
        "p.yaml",
        &piece.replace("    rules:\n", "    rules:\n      - { condition: Again, next: a }\n"),
    );
    let found = priced();
    let lever = &found["lever"];
    let place = (&lever["file"], &lever["line"], &lever["to"]);
    assert_eq!(
        (&lever["key"], place),
        (&json!("max_iterations"), (&json!("p.yaml"), &json!(2), &json!(6))),
        "{found:#}"
    );
}

/// Interactive runs have more rules; the bound covers both variants.
#[test]
fn the_bound_covers_interactive_and_headless_runs() {
    let project = Project::empty();
    let piece = "name: p\nmax_iterations: 2\ninitial_movement: a\nmovements:\n  - name: a\n    instruction_template: \
                 Do it\n    rules:\n      - { condition: One, next: b }\n      - { condition: Two, next: c, \
                 interactive_only: true }\n  - name: b\n    instruction_template: Judge it\n    rules:\n      - \
                 { condition: ai(\"good\"), next: COMPLETE }\n      - { condition: Other, next: COMPLETE }\n  - \
                 name: c\n    instruction_template: Ask them\n    output_contracts: { report: [{ name: r.md, \
                 format: Say it }] }\n    rules:\n      - { condition: Done, next: COMPLETE }\n";
    project.write("p.yaml", piece);
    let priced = || project.run(&["price", "p.yaml", "--json"]);
    let found = priced().json();
    let kinds = &found["max"]["asks_by_kind"];
    assert_eq!((&kinds["report"], &kinds["judge"]), (&json!(1), &json!(3)), "{found:#}");
    // With a person it leads to where there is no way on.
    let trapped = piece
        .replace("      - { condition: Done, next: COMPLETE }\n", "      - { condition: Done, next: c }\n");
    project.write("p.yaml", &trapped);
    let refused = priced();
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("error[no-way-to-end]")
            && refused.stderr.contains("(when a person is there)")
    );
    assert!(refused.stdout.is_empty());
}

#[test]
fn only_providers_that_exist_are_priced() {
    let project = costly("[run]\nprovider = \"nobody\"\n");
    let refused = project.run(&["price", "agent"]);
    assert!(refused.stderr.contains("unknown agent `nobody`"), "{refused:?}");
    assert_eq!(project.run(&["price", "agent", "--provider", "claude"]).code, 0);
}

#[test]
fn a_run_stays_within_its_bound() {
    let project = costly("");
    let most = project.run(&["price", "agent", "--json"]).json()["max"]["asks"].clone();
    assert_eq!(project.run(&begin(&[])).code, 0);
    assert_eq!(project.events("run_started")[0]["asks_max"], most);
}

#[test]
fn prices_say_how_old_they_are() {
    let project = Project::example();
    let prices = |date: &str| {
        project.write("cuegate.toml", &format!("[prices.m]\ninput = 1\noutput = 2\nas_of = \"{date}\"\n[prices.other]\ninput = 1\noutput = 2\nas_of = \"2019-01-01\"\n"));
        project.run(&["price", "fixer", "--provider", "codex", "--model", "m"])
    };
    let old = prices("2020-01-01");
    assert!(
        old.stdout.contains("prices      of 2020-01-01, ")
            && old.stdout.contains("look whether they still hold"),
        "{}{}",
        old.stdout,
        old.stderr
    );
    let json = project.run(&["price", "fixer", "--provider", "codex", "--model", "m", "--json"]).json();
    assert_eq!(json["prices_as_of"], "2020-01-01");
    let wrong = prices("soon");
    assert!(wrong.code == 2 && wrong.stderr.contains("`soon` is no date"), "{}", wrong.stderr);
}
