//! `simulate`: coverage, exit codes, no side effects; and no simulated run exceeds the cost bound of its flow.

use std::{collections::BTreeMap, fs, path::Path, path::PathBuf, sync::Arc};

use cuegate::simulate::{SimulationRequest, iterations_max, made_up, simulate_flow};
use cuegate_flow::{
    checks::check_draft,
    diagnostics::Span,
    model::{
        FieldPath, Flow, JoinPattern, JoinRule, Name, Outcome, OutcomeReader, Param, ParamRule, ParamType,
        Role, Selector, Target,
    },
};
use cuegate_runner::simulation::{Agent, RunInputs};
use cuegate_testkit::{Builder, flows};
use serde_json::{Value, json};

use crate::agent::registry::{Registry, small};
use crate::support::Project;

/// What `simulate … --json` says of a definition, all of it covered or not, with nothing wrong.
fn simulated(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["simulate", "--json"], args].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args:?} {}", ran.stdout);
    let found = ran.json();
    assert_eq!((&found["schema"], &found["bugs"]), (&json!("cuegate/simulate/v1"), &json!([])), "{args:?}");
    found
}

/// The names of what is in a list of the result.
fn names(list: &Value) -> Vec<String> {
    let name =
        |item: &Value| format!("{} {}", item["kind"].as_str().unwrap(), item["name"].as_str().unwrap());
    list.as_array().unwrap().iter().map(name).collect()
}

/// Everything below a folder, with its content.
fn all_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_example_is_covered_and_nothing_is_written() {
    let project = Project::example();
    let before = all_files(project.path());
    let found = simulated(&project, &["fixer"]);
    assert_eq!(found["coverage"]["percent"], 100.0, "{found:#}");
    assert_eq!(found["agents"].as_array().unwrap().len(), Agent::ALL.len());
    assert_eq!(found["made_up"], json!({"task": "a simulated task"}));
    assert_eq!(all_files(project.path()), before, "nothing was written");
    assert!(!project.path().join(".cuegate").exists());
    assert!(crate::support::at_work_in(project.path()).is_empty(), "nothing was started");
    // Nothing but the obedient agent is needed for it.
    let alone = simulated(&project, &["fixer", "--agent", "obedient"]);
    assert_eq!((names(&alone["uncovered"]), names(&alone["not_counted"])), (vec![], vec![]), "{alone:#}");
}

#[test]
fn prints_coverage_and_uncovered_items() {
    let project = Project::example();
    let args = ["simulate", "fixer", "--agent", "obedient", "--agent", "malformed", "--runs", "2"];
    let ran = project.run(&args);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn the_obedient_agent_covers_every_starter() {
    for starter in ["minimal", "minimal-takt", "develop", "test-first", "review-only", "research"] {
        let project = Project::empty();
        project.write("Makefile", "test:\n\ttrue\n");
        project.write("tests/test_a.sh", "true\n");
        project.init();
        let ran = project.run(&["init", starter]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for phases in [&[][..], &["--phases", "separate"]] {
            if starter == "minimal" && !phases.is_empty() {
                continue;
            }
            let found = simulated(&project, &[&[starter, "--agent", "obedient"], phases].concat());
            let left = names(&found["uncovered"]);
            assert!(left.is_empty(), "{starter} {phases:?} {left:#?}");
            let barred = found["not_counted"].as_array().unwrap();
            assert!(barred.iter().all(|item| item["reason"] == "no run is longer"), "{barred:#?}");
        }
    }
}

#[test]
fn the_same_seed_prints_the_same() {
    let project = Project::example();
    let say =
        |seed: &str| project.run(&["simulate", "fixer", "--json", "--seed", seed, "--runs", "7"]).stdout;
    assert_eq!(say("9"), say("9"));
    assert_ne!(say("9"), say("10"));
}

/// An agent named twice runs once.
#[test]
fn a_repeated_agent_runs_once() {
    let twice = ["fixer", "--agent", "random", "--agent", "random", "--runs", "2"];
    let found = simulated(&Project::example(), &twice);
    assert_eq!((&found["runs"], found["agents"].as_array().unwrap().len()), (&json!(2), 1));
}

#[test]
fn exit_codes_follow_coverage_and_errors() {
    let project = Project::example();
    let run = |args: &[&str]| {
        let ran = project.run(&[&["simulate"], args].concat());
        (ran.code, ran.stderr)
    };
    let once = ["fixer", "--agent", "obedient", "--runs", "1"];
    let (code, said) = run(&[&once[..], &["--min-coverage", "100"]].concat());
    assert_eq!(code, 1);
    insta::assert_snapshot!(said, @"
    error: coverage is below the required 100%
    hint: the uncovered items are listed above; more runs (`--runs N`) may cover them
    ");
    assert_eq!(run(&[&once[..], &["--min-coverage", "10"]].concat()), (0, String::new()));
    assert_eq!(run(&["fixer", "--agent", "obedient", "--min-coverage", "100%"]).0, 0);
    for (wrong, said) in [
        (&["fixer", "--agent", "nobody"][..], "use one of obedient, malformed, prose"),
        (&["fixer", "--min-coverage", "101"], "not a percentage from 0 to 100"),
        (&["fixer", "--phases", "separate"], "`--phases` is for TAKT workflows"),
        (&["fixer", "--runs", "0"], "0 is not in"),
        (&["nothing"], "nothing"),
    ] {
        let (code, stderr) = run(wrong);
        assert_eq!(code, 2, "{wrong:?} {stderr}");
        assert!(stderr.contains(said), "{wrong:?} {stderr}");
    }
    let project =
        small().with("work", json!({"transitions": {"handoff": {"target": "nowhere"}}})).project(json!([]));
    let ran = project.run(&["simulate", "agent"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("unknown-target") && ran.stderr.contains("has errors"), "{}", ran.stderr);
}

/// A way that nothing takes is named with its line; one that nothing can take does not count.
#[test]
fn uncovered_items_are_listed_with_their_lines() {
    let project = small().project(json!([]));
    let found = simulated(&project, &["agent", "--agent", "staller", "--runs", "1"]);
    let left = found["uncovered"].as_array().unwrap();
    let edge = left.iter().find(|item| item["name"] == "work --handoff→ close").unwrap();
    assert_eq!((&edge["kind"], &edge["step"]), (&json!("edge"), &json!("work")));
    let text = project.read(".agent/agent/steps_registry.json");
    let line = text.lines().nth(edge["line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(edge["file"].as_str().unwrap().ends_with("steps_registry.json"), "{edge}");
    assert!(line.contains("handoff") || line.contains("close") || text.lines().count() == 1, "{line}");
    assert_eq!(found["coverage"]["enough"], true, "nobody wanted more");
}

#[test]
fn iteration_limits_come_from_the_definition_or_the_flag() {
    let project =
        small().runner(json!({"verdict": {"type": "detect:graph", "config": {"maxIterations": 500}}}));
    let project = project.project(json!([]));
    let limit = |more: &[&str]| {
        let found = simulated(&project, &[&["agent", "--agent", "obedient"], more].concat());
        assert!(names(&found["uncovered"]).is_empty(), "{found:#}");
        (found["iterations_max"].as_u64().unwrap(), found["observed"]["iterations"].as_u64().unwrap())
    };
    assert_eq!(limit(&[]), (60, 60));
    assert_eq!(limit(&["--max-iterations", "5"]), (5, 5));
}

/// Every dialect's shapes, with every agent: nothing that must not happen happens, and obedient agents come by all that
/// there is.
#[test]
fn no_run_exceeds_its_cost_bound() {
    let plain = flows::all().into_iter().chain([flows::acting()]).map(|flow| (flow, false));
    let all: Vec<_> = plain.chain(flows::verdicts().into_iter().map(|flow| (flow, true))).collect();
    for (flow, verdict) in all {
        let found = walked(&flow, 1, Some(12), &Agent::ALL);
        assert_eq!(found.bugs, [], "{}", flow.name);
        let alone = walked(&flow, 2, None, &[Agent::Obedient]);
        let items = alone.coverage.items.iter().filter(|item| item.hits == 0 && item.barred.is_none());
        let left: Vec<&str> = items
            .map(|item| item.name.as_str())
            // What a definition falls back to needs an agent that does not do as it is told.
            .filter(|name| !name.contains("falls back"))
            // Where a verdict counts, it ends runs before validators fail once more than they may.
            .filter(|name| !verdict || !(name.contains("more than") || name.contains("failed")))
            .collect();
        assert_eq!(left, Vec::<&str>::new(), "{} ({})", flow.name, flow.dialect);
    }
}

#[test]
fn the_time_limit_leaves_a_partial_result() {
    let mut piece = "name: long\ninitial_movement: m0\nmax_movements: 4000\nmovements:\n".to_owned();
    for index in 0..2_000 {
        let next = if index < 1_999 { format!("m{}", index + 1) } else { "COMPLETE".to_owned() };
        piece += &format!(
            "  - name: m{index}\n    edit: true\n    instruction: Do the next part of the work\n    rules:\n      \
             - condition: done\n        next: {next}\n      - condition: stuck\n        next: ABORT\n"
        );
    }
    let project = Project::empty();
    project.write("long.yaml", &piece);
    let ran = project.run(&["simulate", "long.yaml", "--json", "--time", "1", "--agent", "obedient"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = ran.json();
    assert_eq!((&found["stopped"], &found["bugs"]), (&json!(["obedient"]), &json!([])));
    assert!(!found["uncovered"].as_array().unwrap().is_empty());
    let text = project.run(&["simulate", "long.yaml", "--time", "1", "--agent", "obedient"]).stdout;
    assert!(text.contains("the time limit stopped obedient\n"), "{text}");
}

/// What simulated runs of a flow come by, begun as the command begins them.
pub fn walked(
    flow: &Arc<Flow>,
    seed: u64,
    runs: Option<u64>,
    agents: &[Agent],
) -> cuegate::simulate::SimulationResult {
    let begin = RunInputs {
        path: "test".to_owned(),
        params: made_up(flow),
        iterations_max: iterations_max(flow),
        repairs_max: 1,
        ..RunInputs::default()
    };
    simulate_flow(
        flow,
        &SimulationRequest { begin, agents: agents.to_vec(), seed, runs, time: None, progress: |_, _, _| {} },
    )
}

#[test]
fn no_run_of_a_random_flow_exceeds_its_cost_bound() {
    let (mut sound, mut ends) = (0, BTreeMap::<&str, u64>::new());
    for seed in 0..60 {
        let Some(flow) = random(seed) else { continue };
        sound += 1;
        let found = walked(&flow, seed, Some(3), &Agent::ALL);
        assert_eq!(found.bugs, [], "flow {seed}");
        for (end, times) in found.agents.iter().flat_map(|row| &row.ends) {
            *ends.entry(*end).or_default() += times;
        }
    }
    assert!(sound >= 30, "{sound}");
    let all = ["completed", "aborted", "failed", "exhausted", "waiting for a person", "waiting for an agent"];
    assert!(all.iter().all(|end| ends.contains_key(end)), "{ends:?}");
}

/// A flow by chance: loops, bounded ways, validators with remedies, parallel steps, monitors, fallbacks, persons.
pub fn random(seed: u64) -> Option<Arc<Flow>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let steps: Vec<String> = (0..2 + roll(5)).map(|index| format!("s{index}")).collect();
    let words = ["a", "b", "c", "d"];
    let mut flow =
        Builder::new(&format!("random {seed}"), "registry-closing", "s0").limit(3 + roll(12) as u32);
    for (index, step) in steps.iter().enumerate() {
        let next = steps.get(index + 1).map_or("@completed", String::as_str);
        if index > 0 && roll(4) == 0 {
            let (one, two) = (format!("{step}.x"), format!("{step}.y"));
            let named = |word: &str| Outcome::Named(word.into());
            let rules = vec![
                JoinRule { pattern: JoinPattern::All(named("a")), outcome: named("a") },
                JoinRule { pattern: JoinPattern::Any(vec![named("b")]), outcome: named("b") },
            ];
            flow = flow
                .all(step, &[&one, &two], 1 + roll(2) as u16, rules)
                .to("a", next)
                .to("b", &steps[roll(index + 1)]);
            flow = flow.ask(&one, Role::Work, &["a", "b"]).ask(&two, Role::Work, &["a", "b"]);
            continue;
        }
        let own = &words[..1 + roll(4)];
        flow = flow.ask(step, Role::Work, own);
        if roll(3) == 0 {
            flow = flow.reader(OutcomeReader::Fallback(Outcome::Named("a".into())));
        }
        if roll(3) == 0 {
            flow = flow.read_only();
        }
        let checked = format!("{step}.check");
        let checks = roll(3) == 0;
        flow = flow.hands_off("a", if checks { &checked } else { next });
        for word in &own[1..] {
            let to = match roll(5) {
                0 => "@aborted",
                1 => "ask",
                _ => steps[roll(steps.len())].as_str(),
            };
            if roll(5) == 0 {
                let field = FieldPath::parse("kind").unwrap();
                let mut to = || Name::new(&steps[roll(steps.len())], Span::default());
                let cases = vec![("x".into(), to()), ("1".into(), to())];
                let target = Target::Select { by: Selector::Field(field), cases, default: None };
                flow = flow.edge(word, target, |_| {});
                continue;
            }
            if roll(3) == 0 {
                flow = flow.bounded(
                    word,
                    &steps[roll(steps.len())],
                    &format!("{step} {word}"),
                    1 + roll(3) as u32,
                );
            }
            flow = flow.to(word, to);
        }
        if checks {
            flow = flow.exec(&checked, &["one: true", "two: true"]).on(Outcome::Pass, next);
            for place in 0..2 {
                flow = flow.remedy(Outcome::Fail(place), &[step], &checked, 1 + roll(3) as u32);
                flow = flow.on(Outcome::Fail(place), "@failed");
            }
        }
    }
    flow = flow.person("ask", "What now?").to("answered", "s0");
    if roll(2) == 0 {
        flow = flow.ask("judge", Role::Judge, &["on", "out"]).to("on", "s0").to("out", "@aborted");
        flow = flow.monitor(&["s0", "s1"], 1 + roll(2) as u32, "judge");
    }
    check_draft(flow.draft()).flow.map(Arc::new)
}

/// Whatever selects a step is said: a field of the answer, data that another step left, the name of the step.
#[test]
fn every_selected_step_is_covered() {
    let path = |text: &str| FieldPath::parse(text).unwrap();
    let name = |text: &str| Name::new(text, Span::default());
    let cases = |one: &str| vec![(one.into(), name("b")), ("2".into(), name("c"))];
    let by = |by, one: &str, default: Option<&str>| Target::Select {
        by,
        cases: cases(one),
        default: default.map(name),
    };
    let kind = json!({"type": "object", "required": ["action", "kind"], "additionalProperties": false,
        "properties": {"action": {"type": "string"}, "kind": {"enum": ["one", 2]}}});
    let flow = Builder::new("selects", "registry-closing", "a")
        .limit(12)
        .ask("a", Role::Work, &["go", "leave"])
        .schema(kind)
        .leaves("kind")
        .edge("go", by(Selector::Field(path("kind")), "one", None), |_| {})
        .to("leave", "b")
        .ask("b", Role::Work, &["on", "jump"])
        .edge("on", by(Selector::Handoff("kind".into()), "one", Some("d")), |_| {})
        .edge(
            "jump",
            Target::Jump {
                field: Some(path("to.step")),
                among: vec![name("c"), name("d")],
                default: Some(name("a")),
            },
            |_| {},
        )
        .ask("c", Role::Work, &["on"])
        .edge("on", by(Selector::Field(path("free")), "7", Some("d")), |_| {})
        .ask("d", Role::Work, &["done", "back"])
        .to("done", "@completed")
        .to("back", "a")
        .flow();
    let found = walked(&flow, 1, None, &[Agent::Obedient]);
    assert_eq!(found.bugs, []);
    let missed = found.coverage.items.iter().filter(|item| item.hits == 0);
    let missed: Vec<_> = missed.map(|item| (item.name.as_str(), item.barred.as_deref())).collect();
    // The entry always leaves one of the two that its schema lists, so that the default is never wanted.
    assert_eq!(missed, [("b --on→ d", Some("no answer can select it"))]);
}

/// Generated values satisfy the rules of their parameters.
#[test]
fn generated_values_satisfy_their_rules() {
    let rules = [
        ("n", ParamType::Number, ParamRule { min: Some(7.into()), ..ParamRule::default() }),
        (
            "c",
            ParamType::Text,
            ParamRule { choices: Some(vec!["x".into(), "y".into()]), ..ParamRule::default() },
        ),
        ("p", ParamType::Text, ParamRule { pattern: Some("^v[0-9.]+$".into()), ..ParamRule::default() }),
        ("q", ParamType::Text, ParamRule { pattern: Some("^PROJ-[0-9]{3}$".into()), ..ParamRule::default() }),
        ("b", ParamType::Boolean, ParamRule::default()),
    ];
    let mut flow = Arc::unwrap_or_clone(flows::closing());
    flow.params = rules
        .map(|(name, kind, rule)| Param {
            name: name.into(),
            flag: format!("--{name}").into(),
            kind,
            rule,
            required: true,
            default: None,
            description: "a value".into(),
            span: Span::default(),
        })
        .into();
    let found = made_up(&flow);
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), ["b", "c", "n", "p", "q"]);
    for param in &flow.params {
        assert_eq!(param.rule.complaint(&found[&*param.name]), None, "{}", param.name);
    }
}

/// Values that are given are taken, and what else is needed is generated and listed.
#[test]
fn missing_values_are_generated() {
    let project = Registry::new()
        .step("work", "work", json!({"handoff": {"target": "close"}}))
        .with("work", json!({"uvVariables": ["topic", "depth"]}))
        .prompt("work", "Look at {uv-topic}, {uv-depth} deep.\n")
        .step("close", "closure", json!({"closing": {"target": null}}))
        .agent(json!({"parameters": {
            "topic": {"type": "string", "description": "what", "required": true, "cli": "--topic"},
            "depth": {"type": "number", "description": "how", "required": true, "cli": "--depth",
                "validation": {"min": 3}},
        }}))
        .project(json!([]));
    let found = simulated(&project, &["agent", "--set", "topic=all", "--agent", "obedient"]);
    assert_eq!(found["made_up"], json!({"depth": "3"}));
    let ran = project.run(&["simulate", "agent", "--set", "depth=1"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("the value `1` of `depth` is less than 3"), "{}", ran.stderr);
}

/// Where no value is found, the generated one is not blamed on anybody.
#[test]
fn a_value_that_cannot_be_generated_is_required() {
    let project = Registry::new()
        .step("work", "work", json!({"handoff": {"target": "close"}}))
        .with("work", json!({"uvVariables": ["tick"]}))
        .prompt("work", "Look at {uv-tick}.\n")
        .step("close", "closure", json!({"closing": {"target": null}}))
        .agent(json!({"parameters": {
            "tick": {"type": "string", "description": "what", "required": true, "cli": "--tick",
                "validation": {"pattern": "^a(?!.*[a-z])[0-9]{7}$"}},
        }}))
        .project(json!([]));
    let ran = project.run(&["simulate", "agent"]);
    assert_eq!(ran.code, 2);
    let said = "no value was found that fits `tick`: `simulated`, which was generated, does not match";
    assert!(ran.stderr.contains(said) && ran.stderr.contains("`--set tick=VALUE`"), "{}", ran.stderr);
    simulated(&project, &["agent", "--set", "tick=a1234567", "--agent", "obedient", "--runs", "1"]);
}

/// The older generation and the check flow: all that there is is come by, fallbacks by those who do not obey.
#[test]
fn the_other_generations() {
    let project = crate::agent::complete::project(json!([]));
    let found = simulated(&project, &["solver"]);
    assert_eq!((&found["dialect"], names(&found["uncovered"])), (&json!("registry-complete"), vec![]));
    let falls = simulated(&project, &["solver", "--agent", "obedient"]);
    let left = falls["uncovered"].as_array().unwrap();
    assert!(!left.is_empty());
    assert!(left.iter().all(|item| item["reason"] == "takes an answer that cannot be used"), "{falls:#}");

    let project = crate::agent::check_flow::project(
        &crate::agent::check_flow::agent(),
        &crate::agent::check_flow::registry(),
    );
    let found = simulated(&project, &["code-improver"]);
    assert_eq!((&found["dialect"], names(&found["uncovered"])), (&json!("registry-check"), vec![]));
}

/// The real definitions, when they are there.
#[test]
fn real_definitions() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let corpora = std::env::var_os("CUEGATE_SHARED").map_or(beside, PathBuf::from).join("corpora");
    if !corpora.is_dir() {
        println!("skipped: {} is not there (set CUEGATE_SHARED)", corpora.display());
        return;
    }
    let project = Project::empty();
    for path in [
        "takt/en/pieces/default.yaml",
        "takt/en/pieces/magi.yaml",
        "takt/en/pieces/minimal.yaml",
        "takt/en/pieces/review-only.yaml",
        "climpt/closing/iterator",
    ] {
        let path = corpora.join(path).display().to_string();
        let found = simulated(&project, &[&path]);
        assert_eq!(names(&found["uncovered"]), Vec::<String>::new(), "{path}");
    }
    // The older one as far as it keeps to the rules of its document.
    crate::agent::complete::corrected(
        &corpora.join("climpt/complete/iterator"),
        &project.path().join(".agent/corrected"),
    );
    let found = simulated(&project, &["corrected", "--set", "issue_number=1"]);
    assert_eq!(names(&found["uncovered"]), Vec::<String>::new());
    assert!(!project.path().join(".cuegate").exists());
}
