//! The effect of each piece key on the draft.

use cuegate_flow::{
    checks::check_draft,
    model::{Act, Gate, Outcome, OutcomeReader, Permission, SessionRule, Target, Tools},
};
use cuegate_formats::Phases;

use crate::support::edge;
use crate::takt::takt_support::{ask, broken, changed, load, sound, step, structure};

#[test]
fn the_whole_structure() {
    insta::assert_snapshot!(structure(&load(&sound(), |_| {}).draft), @r#"
    sound (takt) enters plan ["implement"]
    Flow, at most 12 iterations
    counter 0: implement quality gates

    plan “Planner”
      Plan Only(["Read", "Grep"])
      ask Work, continues reviewer, model opus, schema Some(SchemaId(2))
      reads outcome: the plan stands=The plan stands none=none
      tag [plan:1…] The plan stands | none | none
      tag [STEP:0…] The plan stands | none | none
      judge plan@ai
      judge plan@judge
      The plan stands → implement
      ai("the task is impossible") → Aborted

    plan@ai “plan@ai” (not counted)
      Plan All
      ask Judge, Branch("reviewer"), model opus, schema Some(SchemaId(0))
      reads outcome: the task is impossible=ai("the task is impossible") none=none
      tag [JUDGE:1…] ai("the task is impossible")

    plan@judge “plan@judge” (not counted)
      Plan All
      ask Judge, Branch("reviewer"), model opus, schema Some(SchemaId(1))
      reads outcome: the plan stands=The plan stands none=none
      tag [plan:1…] The plan stands | none | none
      tag [STEP:0…] The plan stands | none | none
      tag [JUDGE:1…] The plan stands | none | none

    implement “implement”
      AcceptEdits All
      ask Work, Renew("coder"), model default, schema Some(SchemaId(4))
      reads outcome: done=Done cannot proceed=Cannot proceed
      tag [implement:1…] Done | Cannot proceed
      tag [STEP:0…] Done | Cannot proceed
      judge implement@judge
      Done → implement@gates:1
      Cannot proceed → Aborted

    implement@judge “implement@judge” (not counted)
      Plan All
      ask Judge, Branch("coder"), model default, schema Some(SchemaId(3))
      reads outcome: done=Done cannot proceed=Cannot proceed none=none
      tag [implement:1…] Done | Cannot proceed
      tag [STEP:0…] Done | Cannot proceed
      tag [JUDGE:1…] Done | Cannot proceed

    implement@gates:1 “implement@gates:1” (not counted)
      AcceptEdits All
      exec cargo test `cargo test` ExitCode(0) ["stdout: Stdout", "stderr: Stderr", "exit_code: ExitCode"]
      gate Exit
      pass → reviewers, resets [0]
      fail(0) → implement, at most 2 on counter 0
      fail(0) → Failed("the quality gate `cargo test` of `implement` fails")

    reviewers “reviewers”
      Plan All
      all of arch-review | qa-review, 4 at a time
      All(Named("approved")) is all("approved")
      Any([Named("needs_fix")]) is any("needs_fix")
      judge reviewers@ai
      all("approved") → Completed
      any("needs_fix") → implement
      ai("the reviewers contradict each other") → plan

    arch-review “arch-review”
      Plan All
      ask Work, continues reviewers/arch-review, model default, schema Some(SchemaId(6))
      reads outcome: approved needs_fix
      tag [arch-review:1…] approved | needs_fix
      tag [STEP:0…] approved | needs_fix
      judge arch-review@judge

    arch-review@judge “arch-review@judge” (not counted)
      Plan All
      ask Judge, Branch("reviewers/arch-review"), model default, schema Some(SchemaId(5))
      reads outcome: approved needs_fix none=none
      tag [arch-review:1…] approved | needs_fix
      tag [STEP:0…] approved | needs_fix
      tag [JUDGE:1…] approved | needs_fix

    qa-review “qa-review”
      Plan All
      ask Work, continues reviewers/qa-review, model default, schema Some(SchemaId(8))
      reads outcome: approved needs_fix
      tag [qa-review:1…] approved | needs_fix
      tag [STEP:0…] approved | needs_fix
      judge qa-review@judge

    qa-review@judge “qa-review@judge” (not counted)
      Plan All
      ask Judge, Branch("reviewers/qa-review"), model default, schema Some(SchemaId(7))
      reads outcome: approved needs_fix none=none
      tag [qa-review:1…] approved | needs_fix
      tag [STEP:0…] approved | needs_fix
      tag [JUDGE:1…] approved | needs_fix

    reviewers@ai “reviewers@ai” (not counted)
      Plan All
      ask Judge, Branch("reviewers"), model default, schema Some(SchemaId(9))
      reads outcome: the reviewers contradict each other=ai("the reviewers contradict each other") none=none
      tag [JUDGE:1…] ai("the reviewers contradict each other")

    monitor:implement+reviewers “monitor:implement+reviewers” (not counted)
      Plan All
      ask Judge, Fresh, model default, schema Some(SchemaId(10))
      reads outcome: healthy=Healthy unproductive=Unproductive
      tag [JUDGE:1…] Healthy | Unproductive
      tag [_loop_judge_implement_reviewers:1…] Healthy | Unproductive
      Healthy → implement
      Unproductive → Aborted
    "#);
}

#[test]
fn the_structure_of_an_interactive_piece_in_separate_phases() {
    let draft = load(&sound(), |options| {
        options.phases = Phases::Separate;
        options.interactive = true;
    })
    .draft;
    let text = structure(&draft);
    let plan = text.split("\n\n").filter(|part| part.starts_with("plan")).collect::<Vec<_>>().join("\n\n");
    insta::assert_snapshot!(plan, @r#"
    plan “Planner”
      Plan Only(["Read", "Grep"])
      ask Work, continues reviewer, model opus, schema None
      judge plan@ai
      judge plan@judge
      The plan stands → implement
      Something is unclear → plan@person:2
      ai("the task is impossible") → Aborted

    plan@ai “plan@ai” (not counted)
      Plan All
      ask Judge, Branch("reviewer"), model opus, schema Some(SchemaId(0))
      reads outcome: the task is impossible=ai("the task is impossible") none=none
      tag [JUDGE:1…] ai("the task is impossible")

    plan@judge “plan@judge” (not counted)
      Plan All
      ask Judge, Branch("reviewer"), model opus, schema Some(SchemaId(1))
      reads outcome: the plan stands=The plan stands something is unclear=Something is unclear none=none
      tag [plan:1…] The plan stands | Something is unclear | none
      tag [STEP:0…] The plan stands | Something is unclear | none
      tag [JUDGE:1…] The plan stands | Something is unclear | none

    plan@person:2 “plan@person:2” (not counted)
      Plan All
      asks a person “What is unclear?⏎- {Question 1}”
      gate Always(Named("answered"))
      answered → implement
    "#);
}

#[test]
fn the_draft_is_a_flow() {
    for (phases, interactive) in [(Phases::Fused, false), (Phases::Separate, true)] {
        let loaded = load(&sound(), |options| {
            options.phases = phases;
            options.interactive = interactive;
        });
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        assert_eq!((&*loaded.run.title, &*loaded.run.description), ("sound", "A piece with everything"));
        assert!(loaded.run.needs_task);
        let checked = check_draft(loaded.draft);
        assert!(checked.flow.is_some(), "{:?}", checked.diagnostics);
    }
}

fn permission(keys: &str) -> Permission {
    let edits = [("    edit: true\n    permission_mode: edit\n", keys)];
    step(&load(&changed(&edits), |_| {}).draft, "implement").boundary.permission
}

#[test]
fn permission_follows_mode_and_edit() {
    let cases = [
        ("    edit: true\n", Permission::AcceptEdits),
        ("    edit: false\n", Permission::Plan),
        ("", Permission::Plan),
        ("    permission_mode: edit\n", Permission::AcceptEdits),
        ("    permission_mode: full\n", Permission::BypassPermissions),
        ("    edit: true\n    permission_mode: full\n", Permission::BypassPermissions),
        ("    edit: true\n    permission_mode: readonly\n", Permission::Plan),
        ("    edit: false\n    permission_mode: readonly\n", Permission::Plan),
        ("    edit: false\n    permission_mode: full\n", Permission::Plan),
    ];
    for (keys, expected) in cases {
        assert_eq!(permission(keys), expected, "{keys:?}");
    }
}

#[test]
fn tools_model_title_and_persona() {
    let draft = load(&sound(), |_| {}).draft;
    let plan = step(&draft, "plan");
    assert_eq!(plan.boundary.tools, Tools::Only(vec!["Read".into(), "Grep".into()]));
    assert_eq!(&*plan.title, "Planner");
    let asks = ask(&draft, "plan");
    assert_eq!(asks.model.as_deref(), Some("opus"));
    assert_eq!(asks.persona.as_deref(), Some("reviewer"));
    let edits = [("  coder: ../personas/coder.md", "  coder: ../personas/reviewer.md")];
    let draft = load(&changed(&edits), |_| {}).draft;
    let coder = ask(&draft, "implement");
    assert_eq!(coder.persona.as_deref(), Some("coder"));
    assert_eq!(coder.persona_names, ["reviewer".into()], "scripts know it by its file, too");
    let draft = load(&changed(&[("[Read, Grep]", "[\"*\"]")]), |_| {}).draft;
    assert_eq!(step(&draft, "plan").boundary.tools, Tools::All);
}

#[test]
fn conversations() {
    let edits = [
        ("    persona_name: Planner\n", ""),
        ("    session: refresh\n", "    session: continue\n"),
        (
            "        edit: false\n        pass_previous_response: false\n",
            "        edit: false\n        session: refresh\n",
        ),
    ];
    let draft = load(&changed(&edits), |_| {}).draft;
    let session = |name: &str| ask(&draft, name).session.clone();
    assert_eq!(session("plan"), SessionRule::Continue("reviewer".into()), "that of the persona");
    assert_eq!(session("implement"), SessionRule::Continue("coder".into()));
    assert_eq!(
        session("arch-review"),
        SessionRule::Continue("reviewers/arch-review".into()),
        "a member's own"
    );
    assert_eq!(session("qa-review"), SessionRule::Renew("reviewers/qa-review".into()));
    assert_eq!(session("implement@judge"), SessionRule::Branch("coder".into()));
    assert_eq!(session("reviewers@ai"), SessionRule::Branch("reviewers".into()));
    assert_eq!(session("monitor:implement+reviewers"), SessionRule::Fresh);
    let draft = load(&sound(), |_| {}).draft;
    assert_eq!(ask(&draft, "implement").session, SessionRule::Renew("coder".into()));
    let draft =
        load(&changed(&[("    persona: reviewer\n    persona_name", "    persona_name")]), |_| {}).draft;
    assert_eq!(
        ask(&draft, "plan").session,
        SessionRule::Continue("plan".into()),
        "its own without a persona"
    );
}

fn words(draft: &cuegate_flow::model::Draft, name: &str) -> Vec<(String, String)> {
    let Gate::Readers(readers) = &step(draft, name).gate else { panic!("no readers") };
    let OutcomeReader::Field { words, .. } = &readers[0] else { panic!("no field") };
    words.iter().map(|(word, outcome)| (word.to_string(), outcome.to_string())).collect()
}

fn pair(word: &str, outcome: &str) -> (String, String) {
    (word.to_owned(), outcome.to_owned())
}

#[test]
fn equal_conditions_are_numbered() {
    let rules = "      - condition: Done\n        next: reviewers\n      - condition: Cannot proceed\n        next: ABORT\n";
    let edits = [(
        rules,
        "      - condition: Done\n        next: reviewers\n      - condition: done\n        next: plan\n      - condition: \" done (1) \"\n        next: plan\n      - condition: None\n        next: ABORT\n",
    )];
    let draft = load(&changed(&edits), |_| {}).draft;
    let expected = [
        pair("done (2)", "Done (2)"),
        pair("done (3)", "done (3)"),
        pair("done (1)", "done (1)"),
        pair("none (1)", "None (1)"),
    ];
    assert_eq!(words(&draft, "implement"), expected);
    let edges: Vec<String> = step(&draft, "implement").edges.iter().map(edge).collect();
    assert_eq!(edges[1], "done (3) → implement@gates:2");
    assert!(check_draft(draft).flow.is_some());
}

#[test]
fn a_multi_line_condition_becomes_one_line() {
    let lines = "      - condition: |\n          The plan\n          stands\n";
    let draft = load(&changed(&[("      - condition: The plan stands\n", lines)]), |_| {}).draft;
    assert_eq!(words(&draft, "plan")[0], pair("the plan stands", "The plan stands"));
}

#[test]
fn the_schema_requires_the_owed_fields() {
    let draft = load(&sound(), |_| {}).draft;
    let schema = |name: &str| {
        let id = ask(&draft, name).schema.unwrap();
        draft.schemas[id.0 as usize].value().clone()
    };
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema("implement")).unwrap(), @r#"
    {
      "type": "object",
      "properties": {
        "outcome": {
          "type": "string",
          "enum": [
            "Done",
            "Cannot proceed"
          ]
        },
        "response": {
          "type": "string"
        },
        "reports": {
          "type": "object",
          "properties": {
            "01-scope.md": {
              "type": "string"
            },
            "02-decisions.md": {
              "type": "string"
            }
          },
          "required": [
            "01-scope.md",
            "02-decisions.md"
          ],
          "additionalProperties": false
        },
        "blocked": {
          "type": "string"
        }
      },
      "additionalProperties": false,
      "if": {
        "required": [
          "blocked"
        ],
        "properties": {
          "blocked": {
            "pattern": "\\S"
          }
        }
      },
      "else": {
        "required": [
          "outcome",
          "response",
          "reports"
        ]
      }
    }
    "#);
    assert_eq!(
        schema("plan")["properties"]["outcome"]["enum"],
        serde_json::json!(["The plan stands", "none"])
    );
    let judge = schema("plan@ai");
    assert_eq!(judge["properties"]["outcome"]["enum"], serde_json::json!(["the task is impossible", "none"]));
    let monitor = schema("monitor:implement+reviewers");
    assert_eq!(monitor["properties"]["outcome"]["enum"], serde_json::json!(["Healthy", "Unproductive"]));
    let fused = ask(&draft, "implement").fused.clone().unwrap();
    let paths = [fused.response, fused.reports, fused.blocked].map(|path| path.to_string());
    assert_eq!(paths, ["response", "reports", "blocked"]);
}

#[test]
fn only_judged_conditions() {
    let edits = [
        ("      - condition: The plan stands\n", "      - condition: ai(\"the plan stands\")\n"),
        (
            "      - condition: ai(\"the task is impossible\")",
            "      - condition: ai(\"the task is impossible\")",
        ),
    ];
    let draft = load(&changed(&edits), |_| {}).draft;
    let schema = &draft.schemas[ask(&draft, "plan").schema.unwrap().0 as usize];
    assert_eq!(schema.value()["properties"].get("outcome"), None, "the agent does not judge itself");
    let Gate::Readers(readers) = &step(&draft, "plan").gate else { panic!() };
    let judges: Vec<&str> = readers
        .iter()
        .filter_map(|reader| match reader {
            OutcomeReader::Judge { step } => Some(&*step.text),
            _ => None,
        })
        .collect();
    assert_eq!(judges, ["plan@ai"]);
}

#[test]
fn a_movement_called_step_has_one_tag() {
    let name = [
        ("  - name: plan\n", "  - name: Step\n"),
        ("initial_movement: plan", "initial_movement: Step"),
        ("        next: plan\n", "        next: Step\n"),
    ];
    let draft = load(&changed(&name), |_| {}).draft;
    let Gate::Readers(readers) = &step(&draft, "Step").gate else { panic!() };
    let tags: Vec<(&str, u32)> = readers
        .iter()
        .filter_map(|reader| match reader {
            OutcomeReader::Tag { name, base, .. } => Some((&**name, *base)),
            _ => None,
        })
        .collect();
    assert_eq!(tags, [("Step", 1)]);
}

#[test]
fn a_rule_for_persons_leads_through_a_person_step() {
    let draft = load(&sound(), |options| options.interactive = true).draft;
    let person = step(&draft, "plan@person:2");
    assert!(!person.counts);
    assert!(
        matches!(&person.act, Act::Person { question } if crate::support::template(question) == "“What is unclear?⏎- {Question 1}”")
    );
    assert_eq!(person.edges.iter().map(edge).collect::<Vec<_>>(), ["answered → implement"]);
    let appendix = "        appendix: |\n          What is unclear?\n          - {Question 1}\n";
    let draft = load(&changed(&[(appendix, "")]), |options| options.interactive = true).draft;
    assert!(
        matches!(&step(&draft, "plan@person:2").act, Act::Person { question } if crate::support::template(question) == "“Something is unclear”")
    );
}

#[test]
fn gate_commands_precede_every_target_but_abort() {
    let edits = [
        ("        timeout_ms: 90000\n", "        timeout_ms: 90000\n      - command: cargo fmt\n"),
        (
            "      - condition: Cannot proceed\n        next: ABORT\n",
            "      - condition: Cannot proceed\n        next: ABORT\n      - condition: Again\n        next: plan\n      - condition: Which one\n        next: implement\n        requires_user_input: true\n",
        ),
    ];
    let draft = load(&changed(&edits), |options| options.quality_gate_retries = 5).draft;
    let edges = |name: &str| -> Vec<String> {
        let cut = |text: String| text.split(", with “").next().unwrap().to_owned();
        step(&draft, name).edges.iter().map(|one| cut(edge(one))).collect()
    };
    assert_eq!(
        edges("implement"),
        [
            "Done → implement@gates:1",
            "Cannot proceed → Aborted",
            "Again → implement@gates:3",
            "Which one → implement@person:4, resets [0]"
        ]
    );
    assert_eq!(edges("implement@person:4"), ["answered → implement"], "who needs a person is not done");
    assert_eq!(
        edges("implement@gates:3"),
        [
            "pass → plan, resets [0]",
            "fail(0) → implement, at most 5 on counter 0",
            "fail(0) → Failed(\"the quality gate `cargo test` of `implement` fails\")",
            "fail(1) → implement, at most 5 on counter 0",
            "fail(1) → Failed(\"the quality gate `cargo fmt` of `implement` fails\")",
        ]
    );
    assert_eq!(
        step(&draft, "implement@gates:1").edges[0].resets.len(),
        1,
        "what passed is mended anew later"
    );
    let Act::Exec { commands } = &step(&draft, "implement@gates:1").act else { panic!() };
    assert_eq!((commands[0].timeout_ms, commands[1].timeout_ms), (90_000, 600_000));
    let draft = load(&changed(&edits), |options| options.quality_gate_retries = 0).draft;
    assert_eq!(step(&draft, "implement@gates:1").edges.len(), 3, "pass, and a failure for each command");
}

#[test]
fn parallel_movements() {
    let draft = load(&sound(), |options| options.width = 1).draft;
    assert!(matches!(&step(&draft, "reviewers").act, Act::All { width: 1, .. }));
    assert_eq!(step(&draft, "reviewers").boundary.permission, Permission::Plan);
    let edits = [
        ("      - condition: all(\"approved\")\n", "      - condition: all(\"approved\", \"needs_fix\")\n"),
        ("      - condition: any(\"needs_fix\")\n", "      - condition: any(\"needs_fix\", \"approved\")\n"),
        (
            "      - condition: ai(\"the reviewers contradict each other\")\n",
            "      - condition: They contradict each other\n",
        ),
        (
            "        persona: reviewer\n        edit: false\n",
            "        persona: reviewer\n        edit: true\n",
        ),
    ];
    let draft = load(&changed(&edits), |_| {}).draft;
    let text = structure(&draft);
    let part = text.split("\n\n").find(|part| part.starts_with("reviewers ")).unwrap();
    insta::assert_snapshot!(part, @r#"
    reviewers “reviewers”
      AcceptEdits All
      all of arch-review | qa-review, 4 at a time
      Each([Named("approved"), Named("needs_fix")]) is all("approved", "needs_fix")
      Any([Named("needs_fix"), Named("approved")]) is any("needs_fix", "approved")
      judge reviewers@judge
      all("approved", "needs_fix") → Completed
      any("needs_fix", "approved") → implement
      They contradict each other → plan
    "#);
}

#[test]
fn a_member_without_rules_is_done() {
    let rules =
        "        rules:\n          - condition: approved\n          - condition: needs_fix\n    rules:\n";
    let draft = load(&changed(&[(rules, "    rules:\n")]), |_| {}).draft;
    assert!(
        matches!(&step(&draft, "qa-review").gate, Gate::Always(Outcome::Named(name)) if &**name == "done")
    );
}

#[test]
fn monitors() {
    let draft = load(&sound(), |_| {}).draft;
    let monitor = &draft.monitors[0];
    assert_eq!((&*monitor.name, monitor.threshold), ("monitor:implement+reviewers", 2));
    assert_eq!(monitor.judge.text, monitor.name);
    let cycle: Vec<&str> = monitor.cycle.iter().flatten().map(|name| &*name.text).collect();
    assert_eq!(cycle, ["implement", "reviewers"]);
    let judge = step(&draft, &monitor.name);
    assert_eq!(
        judge.edges.iter().map(edge).collect::<Vec<_>>(),
        ["Healthy → implement", "Unproductive → Aborted"]
    );
    assert!(!judge.counts);
    let draft = load(&changed(&[("    threshold: 2\n", "")]), |_| {}).draft;
    assert_eq!(draft.monitors[0].threshold, 3);
}

#[test]
fn limits_entry_and_ends() {
    let draft = load(&changed(&[("max_iterations: 12", "max_iterations: 0x20")]), |_| {}).draft;
    assert_eq!(draft.limits.iterations_max, 32);
    let draft = load(&changed(&[("initial_movement: plan", "initial_movement: implement")]), |_| {}).draft;
    assert_eq!(&*draft.entry.as_ref().unwrap().text, "implement");
    let edges = &step(&draft, "reviewers").edges;
    assert!(matches!(edges[0].to, Target::End(cuegate_flow::model::Ending::Completed)));
    let other: Vec<&str> = draft.other_entries.iter().map(|name| &*name.text).collect();
    assert_eq!(other, ["implement"], "where a rule leads that only a run with somebody there has");
}

#[test]
fn later_spellings_mean_the_same() {
    let edits = [
        ("max_iterations: 12", "max_steps: 12"),
        ("initial_movement: plan", "initial_step: plan"),
        ("\nmovements:\n", "\nsteps:\n"),
    ];
    let later = load(&changed(&edits), |_| {});
    assert!(later.diagnostics.is_empty(), "{:?}", later.diagnostics);
    assert_eq!(
        structure(&later.draft).lines().count(),
        structure(&load(&sound(), |_| {}).draft).lines().count()
    );
}

/// A block scalar is a text, even one of a single word; a plain scalar is a key of `report_formats`.
#[test]
fn a_block_scalar_is_a_text() {
    let found = |written: &str| broken(&[("          format: plan", written)]);
    assert!(found("          format: nosuchkey").contains("`format` names `nosuchkey`"));
    assert!(found("          format:\n            nosuchkey").contains("`format` names `nosuchkey`"));
    for header in ["|", "|-", ">", "|2+", ">-  # one word"] {
        let text = format!("          format: {header}\n            nosuchkey");
        assert!(!found(&text).contains("nosuchkey"), "{header}: {}", found(&text));
    }
}

/// Japanese input methods write `：`, which makes no YAML mapping.
#[test]
fn a_gate_with_a_full_width_colon_is_a_command() {
    let edits = [("      - command: cargo test\n        timeout_ms: 90000", "      - command：cargo test")];
    let commands = |draft: &cuegate_flow::model::Draft| match &step(draft, "implement@gates:1").act {
        Act::Exec { commands } => commands.iter().map(|gate| gate.command.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(commands(&load(&changed(&edits), |_| {}).draft), commands(&load(&sound(), |_| {}).draft));
}
