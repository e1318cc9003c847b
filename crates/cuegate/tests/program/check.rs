//! `check`, `explain` and `show`.

use crate::{
    agent::registry::{Registry, small},
    support::{Project, Ran, tidy},
};
use insta::assert_snapshot;
use serde_json::json;

/// A project with nothing but this agent.
fn with(registry: &Registry) -> Project {
    let project = Project::empty();
    registry.write(&project);
    project
}

/// Four mistakes in three files.
fn broken() -> Registry {
    small()
        .with("work", json!({"colour": "red"}))
        .with("close", json!({"transitions": {"repeat": {"target": "close"}}}))
        .prompt("close", "You said {uv-wrods}.\n")
        .runner(json!({"verdict": {"config": {"maxIterations": "many"}}}))
}

#[test]
fn a_definition_behind_a_link_is_named_as_typed() {
    use std::os::unix::fs::symlink;
    let project = Project::example();
    let elsewhere = tempfile::tempdir().unwrap();
    let piece = "name: p\ninitial_movement: a\nmovements:\n  - name: a\n    instruction: Work on it\n    \
                 rules: [{condition: done, next: nowhere}]\n";
    project.write("shared/piece.txt", piece);
    std::fs::create_dir_all(project.path().join(".takt/pieces")).unwrap();
    symlink("../../shared/piece.txt", project.path().join(".takt/pieces/own.yaml")).unwrap();
    let check = |typed: &str| {
        let ran = project.run(&["check", typed]);
        ran.stdout + &ran.stderr
    };
    for typed in [".takt/pieces/own.yaml", "own"] {
        let found = check(typed);
        assert!(found.contains("--> .takt/pieces/own.yaml:6:"), "{found}");
    }
    symlink(project.path().join(".agent/fixer"), project.path().join(".agent/twin")).unwrap();
    assert_eq!(project.run(&["check", "twin"]).code, 0, "{}", check("twin"));
    // A link out of the project is refused, as those inside a definition are.
    std::fs::write(elsewhere.path().join("out.yaml"), piece).unwrap();
    std::fs::create_dir(elsewhere.path().join("agent")).unwrap();
    std::fs::write(elsewhere.path().join("agent/agent.json"), "{}").unwrap();
    symlink(elsewhere.path().join("out.yaml"), project.path().join(".takt/pieces/out.yaml")).unwrap();
    symlink(elsewhere.path().join("agent"), project.path().join(".agent/far")).unwrap();
    for typed in ["out", ".takt/pieces/out.yaml", ".agent/far"] {
        let ran = project.run(&["check", typed]);
        assert!(ran.code != 0 && ran.stderr.contains("[escapes-root]"), "{typed}: {}", ran.stderr);
    }
}

#[test]
fn a_finding_in_a_built_in_prompt_is_at_its_fallback_key() {
    let project = Project::example();
    let registry = ".agent/fixer/steps_registry.json";
    let text = project.read(registry);
    let at = text.find("\"c3\": \"fix\"").unwrap();
    let text =
        format!("{}\"c3\": \"gone\", \"fallbackKey\": \"initial_issue\"{}", &text[..at], &text[at + 11..]);
    project.write(registry, &text);
    let ran = project.run(&["check", "fixer", "--json"]);
    assert!(!ran.stdout.contains("built-in/"), "{}", ran.stdout);
    let findings = ran.json()["diagnostics"].as_array().unwrap().clone();
    let line = text.lines().position(|line| line.contains("fallbackKey")).unwrap() + 1;
    let found =
        findings.iter().find(|finding| finding["hint"].to_string().contains("of the built-in prompt"));
    let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!((&found["file"], &found["line"]), (&registry.into(), &line.into()), "{found:#}");
}

#[test]
fn a_sound_definition() {
    let project = Project::example();
    let ran = project.run(&["check", "fixer"]);
    assert_eq!(
        (ran.code, &*ran.stdout, &*ran.stderr),
        (0, "", "fixer: Climpt agent, `closing` generation\nsound: 0 errors, 0 warnings\n")
    );
    assert!(!project.path().join(".cuegate").exists(), "checking leaves nothing behind");
}

#[test]
fn all_findings_are_printed_under_their_source_lines() {
    let project = with(&broken());
    let ran = project.run(&["check", "agent"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    agent: Climpt agent, `closing` generation
    error[wrong-type]: `maxIterations` must be a number, not a text
      --> .agent/agent/agent.json:13:26
       |
    13 |         "maxIterations": "many"
       |                          ^^^^^^
       |
       = help: write a number, or leave `maxIterations` out

    error[unknown-variable]: undefined variable `wrods` in the prompt of `close`
     --> .agent/agent/prompts/steps/closure/close/f_default.md:1:10
      |
    1 | You said {uv-wrods}.
      |          ^^^^^^^^^^
      |
      = help: declare a parameter `wrods`, or give it with `--set wrods=VALUE`

    error[unknown-key]: unknown key `colour` in a step
      --> .agent/agent/steps_registry.json:35:7
       |
    35 |       "colour": "red"
       |       ^^^^^^^^
       |
       = help: remove it

    error[unreachable-transition]: `close` has a transition for `repeat`, which it does not allow
      --> .agent/agent/steps_registry.json:59:9
       |
    59 |         "repeat": {
       |         ^^^^^^^^
       |
       = help: add `repeat` to `allowedIntents`, or remove the transition

    not sound: 4 errors, 0 warnings
    "#);
}

#[test]
fn an_unknown_target_is_reported() {
    let project = with(&small().with("work", json!({"transitions": {"handoff": {"target": "clse"}}})));
    let ran = project.run(&["check", "agent"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(tidy(&project, &ran.stderr), @r#"
    agent: Climpt agent, `closing` generation
    error[unknown-target]: `work` on `handoff` leads to the undefined step `clse`
      --> .agent/agent/steps_registry.json:32:21
       |
    32 |           "target": "clse"
       |                     ^^^^^^
       |
       = help: did you mean `close`?

    not sound: 1 error, 0 warnings
    "#);
}

#[test]
fn findings_as_json() {
    let project = with(&broken());
    let ran = project.run(&["check", "agent", "--json"]);
    assert_eq!((ran.code, &*ran.stderr), (2, ""));
    let found = ran.json();
    assert_eq!(found["schema"], "cuegate/check/v1");
    assert_eq!(found["ok"], false);
    let diagnostics = found["diagnostics"].as_array().unwrap();
    let errors = diagnostics.iter().filter(|finding| finding["severity"] == "error").count();
    assert_eq!(found["errors"], errors);
    assert_eq!(found["warnings"], diagnostics.len() - errors);
    let lines: Vec<String> = diagnostics
        .iter()
        .map(|finding| {
            let file = finding["file"].as_str().unwrap().trim_start_matches(".agent/agent/");
            let code = finding["code"].as_str().unwrap();
            format!("{file}:{}:{} {code} {}", finding["line"], finding["column"], finding["step"])
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    agent.json:13:26 wrong-type null
    prompts/steps/closure/close/f_default.md:1:10 unknown-variable "close"
    steps_registry.json:35:7 unknown-key "work"
    steps_registry.json:59:9 unreachable-transition "close"
    "#);
    for finding in diagnostics {
        assert!(finding["message"].is_string() && finding["hint"].is_string(), "{finding}");
        let known = project.run(&["explain", finding["code"].as_str().unwrap()]);
        assert_eq!(known.code, 0, "{finding}");
    }
}

#[test]
fn strict_takes_warnings_for_errors() {
    let project = with(&small().with("work", json!({"priority": 1})));
    let lax = project.run(&["check", "agent"]);
    assert_eq!(lax.code, 0, "{}", lax.stderr);
    assert!(lax.stderr.contains("\nwarning[") && lax.stderr.ends_with("sound: 0 errors, 1 warning\n"));
    let strict = project.run(&["check", "agent", "--strict"]);
    assert_eq!(strict.code, 2);
    assert!(
        strict.stderr.contains("\nerror[") && strict.stderr.ends_with("not sound: 1 error, 0 warnings\n")
    );
    let json = project.run(&["check", "agent", "--strict", "--json"]).json();
    assert_eq!(
        (&json["ok"], &json["errors"], &json["diagnostics"][0]["severity"]),
        (&json!(false), &json!(1), &json!("error"))
    );
}

#[test]
fn checks_several_definitions_named_in_every_way() {
    let project = with(&small());
    for path in [
        "agent",
        ".agent/agent",
        "./.agent/agent/",
        ".agent/agent/agent.json",
        ".agent/agent/steps_registry.json",
        project.path().join(".agent/agent").to_str().unwrap(),
    ] {
        let ran = project.run(&["check", path]);
        let said = format!("{path}: Climpt agent, `closing` generation\nsound: 0 errors, 0 warnings\n");
        assert_eq!((ran.code, &*ran.stderr), (0, &*said), "{path}");
    }
    broken().write(&project);
    crate::support::copy(&project.path().join(".agent/agent"), &project.path().join(".agent/other"));
    small().write(&project);
    let both = project.run(&["check", "agent", "other"]);
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains(".agent/other/agent.json:"), "{}", both.stderr);
    let json = project.run(&["check", "agent", "other", "--json"]).json();
    let alone = project.run(&["check", "other", "--json"]).json();
    assert_eq!(json["errors"], alone["errors"]);
}

/// What is found is said of the files in which it is, and a name is that of the nearest folder.
#[test]
fn agents_of_one_name_in_two_folders() {
    let project = with(&broken());
    crate::support::copy(&project.path().join(".agent"), &project.path().join("sub/.agent"));
    small().write(&project);
    let paths = [".agent/agent", "sub/.agent/agent"];
    let both = project.run(&["check", paths[0], paths[1], "--json"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    let files = |found: &serde_json::Value| -> Vec<String> {
        let all = found["diagnostics"].as_array().unwrap().iter();
        all.map(|one| one["file"].as_str().unwrap().to_owned()).collect()
    };
    let (both, alone) = (both.json(), project.run(&["check", paths[1], "--json"]).json());
    assert!(
        !files(&both).is_empty() && files(&both).iter().all(|file| file.starts_with("sub/.agent/agent/"))
    );
    assert_eq!(both["diagnostics"], alone["diagnostics"], "nothing is said of the sound one");
    assert_eq!(project.run(&["check", "agent"]).code, 0);
    let below = Ran::of(
        project.command(&["check", "agent"]).current_dir(project.path().join("sub")).output().unwrap(),
    );
    assert_eq!(below.code, 2, "{}", below.stderr);
}

#[test]
fn from_a_folder_below_the_project() {
    let project = with(&small());
    project.init();
    project.write("src/deep/a.txt", "");
    let ran = Ran::of(
        project.command(&["check", "agent"]).current_dir(project.path().join("src/deep")).output().unwrap(),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn unknown_names_are_usage_errors() {
    let project = with(&small());
    // There, but not below `.agent`: a name does not leave it.
    crate::support::copy(&project.path().join(".agent/agent"), &project.path().join("outside"));
    for (name, quoted) in [("nobody", "`nobody`"), ("../outside", "`../outside`"), ("a/../b", "`a/../b`")] {
        let ran = project.run(&["check", name]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{name}");
        let expected = format!("error: {quoted} is not a file, a folder or the name of a definition\nhint: ");
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
    }
    let all = project.run(&["check"]);
    assert_eq!((all.code, all.stderr.lines().last()), (0, Some("sound: 0 errors, 0 warnings")));
    let none = Project::empty().run(&["check"]);
    assert!(none.code == 2 && none.stderr.contains("has no definitions"), "{}", none.stderr);
}

#[test]
fn an_agent_without_files() {
    let project = Project::empty();
    project.write(".agent/hollow/README.md", "");
    let ran = project.run(&["check", "hollow"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(tidy(&project, &ran.stderr), @"
    error[unreadable-file]: there is no `.agent/hollow/agent.json`
     --> .agent/hollow/agent.json:1:1
      |
    1 |
      | ^
      |
      = help: name a folder that holds an `agent.json`, or a registry file

    not sound: 1 error, 0 warnings
    ");
}

#[test]
fn explain_prints_a_page_for_each_finding() {
    let project = Project::empty();
    let known = project.run(&["explain", "self-next"]);
    assert_eq!((known.code, &*known.stderr), (0, ""));
    assert!(known.stdout.contains("self-next"), "{}", known.stdout);
    let unknown = project.run(&["explain", "self-nxt"]);
    assert_eq!((unknown.code, &*unknown.stdout), (2, ""));
    assert_eq!(unknown.stderr, "error: there is no finding `self-nxt`\nhint: did you mean `self-next`?\n");
    let unknown = project.run(&["explain", "zork"]);
    assert!(unknown.stderr.starts_with("error: there is no finding `zork`\nhint: there are "));
    assert!(unknown.stderr.contains("self-next"), "{}", unknown.stderr);
}

#[test]
fn show_prints_the_compiled_flow() {
    let project = with(&small().validator("test -e done", json!({"action": "retry", "maxAttempts": 2})));
    let ran = project.run(&["show", "agent"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert_snapshot!(ran.stdout, @"
    agent (registry-closing), 3 steps
      entry     work
      limit     at most 20 iterations
      run       completed when the flow ends
      all steps abort → @aborted

    work  [work]
      prompt    1 line; system prompt of 1 line
      answer    by schema; outcome from next_action.action
      allowed   acceptEdits, all tools
      session   continues run
      routes    repeat  → work
                handoff → close

    close  [work]
      prompt    1 line; system prompt of 1 line
      answer    by schema; outcome from next_action.action
      allowed   acceptEdits, all tools
      session   continues run
      routes    closing → close@validators

    close@validators  [commands] [no iteration]  Proof
      runs      proof  test -e done  passes: exit 0  10 min
      routes    all pass    → @completed
                proof fails → the step that handed off (work)  (at most 2 times; retry prompt of 2
                lines)
                then        → @failed (validator `proof` still fails after 2 retries)
    ");
    let shown = project.run(&["show", "agent", "--json"]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""));
    let flow = shown.json();
    assert_eq!(flow["schema"], "cuegate/flow/v1");
    assert_eq!(flow["entry"], "work");
    broken().write(&project);
    let unsound = project.run(&["show", "agent"]);
    assert_eq!((unsound.code, &*unsound.stdout), (2, ""));
    assert!(unsound.stderr.contains("error: `agent` has errors\nhint: "), "{}", unsound.stderr);
}

#[test]
fn set_names_declare_variables() {
    let project = with(&small().prompt("work", "Mind {uv-tone}.\n"));
    let without = project.run(&["check", "agent"]);
    assert_eq!(without.code, 2, "{}", without.stderr);
    assert!(without.stderr.contains("unknown-variable"), "{}", without.stderr);
    let with = project.run(&["check", "agent", "--set", "tone"]);
    assert_eq!(with.code, 0, "{}", with.stderr);
    assert_eq!(project.run(&["show", "agent", "--set", "tone"]).code, 0);
}

#[test]
fn set_accepts_values_and_notes_unread_names() {
    let project = with(&small().prompt("work", "Mind {uv-tone}.\n"));
    let check = |set: &[&str]| {
        let set = set.iter().flat_map(|set| ["--set", set]);
        project.run(&["check", "agent"].into_iter().chain(set).collect::<Vec<_>>())
    };
    for set in ["tone", "tone=low", "tone=a=b", "tone="] {
        let ran = check(&[set]);
        assert_eq!((ran.code, ran.stderr.contains("note:")), (0, false), "{set}: {}", ran.stderr);
    }
    assert_eq!(check(&["tune=low"]).code, 2, "another name gives nothing");
    let ran = check(&["tone", "tune=low", "other"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("reads `tune`; did you mean `tone`?\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: no prompt of the definition reads `other`\n"), "{}", ran.stderr);
    let hidden = with(&small().prompt("work", "Mind {uv-iteration}.\n"));
    let ran = hidden.run(&["check", "agent", "--set", "iteration=5"]);
    assert!(
        ran.stderr.contains("note: `--set iteration` shadows the built-in variable `iteration`\n"),
        "{}",
        ran.stderr
    );
    let ran = hidden.run(&["check", "agent", "--set", "remaining=5"]);
    assert!(ran.stderr.contains("note: no prompt of the definition reads `remaining`\n"), "{}", ran.stderr);
    let ran = check(&["=x"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("error: `--set =x` has no name"), "{}", ran.stderr);
    for verb in ["show", "price", "graph"] {
        let ran = project.run(&[verb, "agent", "--set", "tone=low", "--set", "tune"]);
        assert_eq!(ran.code, 0, "{verb}: {}", ran.stderr);
        assert!(ran.stderr.contains("reads `tune`; did you mean `tone`?"), "{verb}: {}", ran.stderr);
    }
}

#[test]
fn a_set_value_is_checked_against_its_parameter() {
    let count = json!({"type": "number", "description": "How many", "required": true, "cli": "--count",
        "validation": {"max": 9}});
    let registry = small().prompt("work", "Mind {uv-count}.\n");
    let project = with(&registry.agent(json!({"parameters": {"count": count}})));
    for (set, code) in [("count", 0), ("count=9", 0), ("count=10", 2), ("count=x", 2)] {
        let ran = project.run(&["check", "agent", "--set", set]);
        assert_eq!(ran.code, code, "{set}: {}", ran.stderr);
    }
}

#[test]
fn invalid_utf8_is_reported_readably() {
    let project = small().project(json!([]));
    std::fs::write(
        project.path().join(".agent/agent/prompts/steps/work/work/f_default.md"),
        b"Do \xff it.\n",
    )
    .unwrap();
    let ran = project.run(&["check", "agent"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[unreadable-file]"), "{}", ran.stderr);
    project.write(".agent/agent/prompts/steps/work/work/f_default.md", "---\né: [\n---\nDo it.\n");
    let ran = project.run(&["check", "agent"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn free_text_cannot_be_the_intent() {
    let gate = json!({"structuredGate": {"intentField": "next_action.reason"}});
    let project = small().with("work", gate).project(json!([]));
    let ran = project.run(&["check", "agent", "--json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.json()["diagnostics"][0]["code"], "schema-gate-mismatch");
}

#[test]
fn a_step_cannot_have_the_name_of_its_validators() {
    let project = small()
        .validator("false", json!({"action": "abort"}))
        .step("close@validators", "closure", json!({"closing": null}))
        .project(json!([]));
    let ran = project.run(&["check", "agent", "--json"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("\"step-name\""), "{}", ran.stdout);
}

#[test]
fn findings_as_github_annotations_and_sarif() {
    let project = with(&broken());
    let ran = project.run(&["check", "agent", "nobody", "--format", "github"]);
    assert_eq!((ran.code, &*ran.stderr), (2, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("::error file=.agent/agent/agent.json,line=13,col=26,title=wrong-type::"));
    assert!(lines.last().unwrap().starts_with("::error file=nobody,line=1,col=1,title=unreadable-file::"));
    let json = project.run(&["check", "agent", "nobody", "--json"]).json();
    assert_eq!(lines.len(), json["diagnostics"].as_array().unwrap().len());

    let ran = project.run(&["check", "agent", "nobody", "--format", "sarif"]);
    assert_eq!((ran.code, &*ran.stderr), (2, ""));
    let log = &ran.json()["runs"][0];
    let rules = log["tool"]["driver"]["rules"].as_array().unwrap();
    let results = log["results"].as_array().unwrap();
    assert_eq!(results.len(), lines.len());
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
    }
}

#[test]
fn a_definition_outside_the_project_is_shown_with_its_path() {
    let (project, other) = (with(&small()), with(&broken()));
    let folder = other.path().join(".agent/agent");
    let folder = folder.to_str().unwrap();
    let whole = format!("{}/agent.json", std::fs::canonicalize(folder).unwrap().display());
    let check = |more: &[&str]| project.run(&[&["check", folder], more].concat());
    let drawn = check(&[]).stderr;
    assert!(drawn.contains(&format!("--> {whole}:")), "{drawn}");
    let github = check(&["--format", "github"]).stdout;
    assert!(github.contains(&format!("file={whole},")), "{github}");
    let sarif = check(&["--format", "sarif"]).stdout;
    assert!(sarif.contains(&format!("\"uri\": \"file://{whole}\"")), "{sarif}");
    // Programs know what they asked about.
    let found = check(&["--format", "json"]).json();
    let file = found["diagnostics"][0]["file"].as_str().unwrap();
    assert!(whole.ends_with(&format!("/{file}")), "{file}");
}

#[test]
fn graphs_of_valid_and_invalid_definitions() {
    let project = Project::example();
    let ran = project.run(&["graph", "fixer"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(ran.stdout.starts_with("flowchart TD\n") && ran.stdout.contains("-->|\"handoff\"|"));
    let svg = project.run(&["graph", "fixer", "--format", "svg"]);
    assert!(svg.stdout.starts_with("<svg xmlns=") && svg.stdout.ends_with("</svg>\n"));
    assert!(project.run(&["graph", "fixer", "--format", "dot"]).stdout.starts_with("digraph \"fixer\" {"));
    assert_eq!(project.run(&["graph", "fixer", "--json"]).json()["schema"], "cuegate/graph/v1");

    let broken = with(&broken());
    let ran = broken.run(&["graph", "agent"]);
    assert_eq!((ran.code, &*ran.stderr), (2, "the definition has errors: see `cuegate check agent`\n"));
    assert!(ran.stdout.contains("error: unknown-variable"), "{}", ran.stdout);
    let nothing = Project::empty();
    std::fs::write(nothing.path().join("steps_registry.json"), "[").unwrap();
    let ran = nothing.run(&["graph", "steps_registry.json"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert!(ran.stderr.contains("has no steps to draw"), "{}", ran.stderr);
}

#[test]
fn price_prints_the_upper_bounds() {
    let project = Project::example();
    let json = |args: &[&str]| {
        let ran = project.run(&[&["price", "fixer", "--json"], args].concat());
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        ran.json()
    };
    let plain = json(&[]);
    assert_eq!(plain["schema"], "cuegate/price/v1");
    assert_eq!((&plain["max"]["iterations"], &plain["max"]["asks"]), (&json!(10), &json!(20)));
    assert_eq!(plain["bounded"], false);
    // Each flag does what it says.
    assert_eq!(json(&["--repairs", "0"])["max"]["asks"], 10);
    assert_eq!(json(&["--max-iterations", "3"])["max"]["asks"], 6);
    assert_eq!(json(&["--budget-calls", "4"])["max"]["asks"], 4);
    let capped = json(&["--call-usd", "0.5", "--call-tokens", "1000"]);
    assert_eq!((&capped["bounded"], &capped["max"]["cost_usd"]), (&json!(true), &json!(30.0)));
    assert_eq!(capped["max"]["tokens"], 60_000);
    assert_eq!(json(&["--budget-usd", "3"])["max"]["cost_usd"], 3.0);

    // Prices are configured by the provider's names of models.
    let config = "[prices.big]\ninput = 5.0\noutput = 20.0\n[models.claude]\nopus = \"big\"\n";
    std::fs::write(project.path().join("cuegate.toml"), config).unwrap();
    let priced = json(&["--provider", "claude", "--call-tokens", "1000000"]);
    assert_eq!(priced["max"]["cost_usd"], 1200.0);
    let text = project.run(&["price", "fixer"]);
    assert!(text.stdout.contains("limited by  the iteration limit"), "{}", text.stdout);

    let broken = with(&broken());
    assert_eq!(broken.run(&["price", "agent"]).code, 2);
}

/// A definition of other people gets few findings: those of one code in one file are one.
#[test]
fn real_definitions_get_few_findings() {
    let shared = std::env::var_os("CUEGATE_SHARED").map(std::path::PathBuf::from);
    let shared =
        shared.unwrap_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let pieces = ["takt/en/pieces", "takt-march/builtins/en/pieces", "takt-current/builtins/en/workflows"];
    for (max, folder) in
        [(25, "climpt/closing"), (25, "climpt/complete")].into_iter().chain(pieces.map(|it| (5, it)))
    {
        let folder = shared.join("corpora").join(folder);
        let Ok(entries) = std::fs::read_dir(&folder) else {
            eprintln!("skipped: there is no {}", folder.display());
            continue;
        };
        for entry in entries.map(|entry| entry.unwrap().path()) {
            let is_definition =
                entry.join("agent.json").is_file() || entry.extension().is_some_and(|it| it == "yaml");
            if is_definition {
                let found = Project::empty().run(&["check", "--json", entry.to_str().unwrap()]);
                let count = found.json()["diagnostics"].as_array().unwrap().len();
                assert!(count <= max, "{}: {count}", entry.display());
            }
        }
    }
}

/// Every command prints names of a definition, and of none of them anything that controls a terminal.
#[test]
fn what_a_definition_says_controls_no_terminal() {
    let project = Project::example();
    let evil = "\u{9b}31m\u{202e}end\u{200f}\u{2066}";
    let piece = format!(
        "name: \"p{evil}\"\ndescription: \"\\e[31m{evil}\"\nmax_iterations: 3\ninitial_movement: a\nmovements:\n  \
         - name: a\n    instruction: \"Do {evil}\"\n    edit: false\n    rules: [{{condition: \"done \\e]0;x\\a{evil}\", \
         next: \"nowhere {evil}\"}}]\n"
    );
    let is_unsafe = |c: char| {
        matches!(c, '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // YAML allows control characters only as escapes.
    let piece = piece.replace('\u{9b}', "\\x9b");
    let sound = piece.replace("next: \"nowhere ", "next: COMPLETE }]\n#");
    for (text, args) in [
        (&piece, &["check", "evil"][..]),
        (&piece, &["check", "evil", "--json"]),
        (&piece, &["check", "evil", "--format", "github"]),
        (&piece, &["check", "evil", "--format", "sarif"]),
        (&sound, &["check", "evil"]),
        (&sound, &["show", "evil"]),
        (&sound, &["show", "evil", "--json"]),
        (&sound, &["graph", "evil"]),
        (&sound, &["graph", "evil", "--format", "dot"]),
        (&sound, &["graph", "evil", "--format", "svg"]),
        (&sound, &["graph", "evil", "--json"]),
        (&sound, &["price", "evil"]),
        (&sound, &["list"]),
        (&sound, &["list", "--json"]),
        (&sound, &["simulate", "evil", "--json"]),
        (&sound, &["prompt", "evil", "a", "--json"]),
    ] {
        project.write(".takt/pieces/evil.yaml", text);
        let ran = project.run(args);
        assert_eq!(ran.code == 0, *text == sound, "{args:?}: {}", ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let found: Vec<char> = said.chars().filter(|c| is_unsafe(*c)).collect();
        assert!(found.is_empty(), "{args:?}: {found:?}\n{said}");
    }
    // The value is the same.
    let graph = project.run(&["graph", "evil", "--json"]).json();
    assert_eq!(graph["name"], format!("p{evil}"));
}
