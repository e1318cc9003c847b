//! Two flows: one with validators and remedies, one with a parallel step and a monitor.

use cuegate_flow::{checks::*, diagnostics::*, model::*};
use serde_json::json;

fn edge(on: &str, to: &str) -> Edge<Name> {
    let to = match to {
        "@completed" => Target::End(Ending::Completed),
        "@aborted" => Target::End(Ending::Aborted),
        step => Target::Step(name(step)),
    };
    Edge::new(Outcome::Named(on.into()), to, Span::default())
}

fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

fn path(text: &str) -> FieldPath {
    FieldPath::parse(text).unwrap()
}

/// A step with an ask whose outcome is read from `action`.
fn ask(step: &str, title: &str, prompt: Template, edges: Vec<Edge<Name>>) -> Step<Name> {
    let words = edges.iter().map(|edge| (edge.on.to_string().as_str().into(), edge.on.clone())).collect();
    Step {
        name: step.into(),
        title: title.into(),
        span: Span::default(),
        counts: true,
        act: Act::Ask(Ask {
            role: Role::Work,
            prompt,
            system: None,
            schema: None,
            model: None,
            later_models: Vec::new(),
            agent_keys: Default::default(),
            persona: None,
            persona_names: Vec::new(),
            session: SessionRule::Continue("main".into()),
            reports: Vec::new(),
            fused: None,
            blocked_mark: None,
            delay_ms: 0,
            guard: None,
        }),
        gate: Gate::Readers(vec![OutcomeReader::Field {
            path: path("action"),
            words,
            reasons: vec![path("reason")],
        }]),
        boundary: Boundary::default(),
        handoff: Vec::new(),
        inputs: Vec::new(),
        selectors: Vec::new(),
        when: None,
        edges,
    }
}

fn ask_of(step: &mut Step<Name>) -> &mut Ask {
    match &mut step.act {
        Act::Ask(ask) => ask,
        _ => panic!("the step asks"),
    }
}

/// Checks a draft and returns its flow.
fn checked(draft: Draft) -> Flow {
    let checked = check_draft(draft);
    let found = checked.diagnostics;
    checked.flow.unwrap_or_else(|| panic!("{found:#?}"))
}

/// initial.fix → continuation.fix ⇢ closure.fix → validators → completed, or back with at most two remedies.
pub(crate) fn registry() -> Flow {
    let mut draft = Draft::empty("iterator", "registry-closing");
    draft.entry = Some(name("initial.fix"));
    draft.counters = vec![Counter { name: "remedies:closure.fix".into() }];
    draft.schemas = vec![Schema::new(json!({"type": "object", "required": ["action"]})).unwrap()];
    draft.limits.iterations_max = 8;
    draft.params = vec![
        Param {
            name: "issue".into(),
            flag: "--issue".into(),
            kind: ParamType::Number,
            rule: ParamRule::default(),
            required: true,
            default: None,
            description: "The issue to work on".into(),
            span: Span::default(),
        },
        Param {
            name: "label".into(),
            flag: "--label".into(),
            kind: ParamType::Text,
            rule: ParamRule::default(),
            required: false,
            default: Some("bug".into()),
            description: "Which issues".into(),
            span: Span::default(),
        },
    ];
    let abort = || Edge { implied: true, ..edge("abort", "@aborted") };
    let pieces = vec![
        Piece::Text("Fix issue ".into()),
        Piece::Value(Source::Param("issue".into())),
        Piece::Text(".\nKeep it small.\n".into()),
    ];
    let edges = vec![edge("next", "continuation.fix"), edge("repeat", "initial.fix"), abort()];
    let mut initial = ask("initial.fix", "Understand the issue", Template { pieces }, edges);
    ask_of(&mut initial).schema = Some(SchemaId(0));
    initial.handoff.push(Handoff::new("approach", path("approach"), Span::default()));

    let pieces = vec![Piece::Text("Go on: ".into()), Piece::Value(Source::Input("approach".into()))];
    let handoff = Edge { hands_off: true, ..edge("handoff", "closure.fix") };
    let select = Target::Select {
        by: Selector::Field(path("next")),
        cases: vec![("again".into(), name("initial.fix"))],
        default: Some(name("continuation.fix")),
    };
    let next = Edge::new(Outcome::Named("next".into()), select, Span::default());
    let edges = vec![next, handoff, abort()];
    let mut continuation = ask("continuation.fix", "Fix it", Template { pieces }, edges);
    continuation.inputs.push(Input {
        name: "approach".into(),
        step: "initial.fix".into(),
        key: "approach".into(),
        required: false,
        default: Some("none yet".into()),
        span: Span::default(),
    });

    let edges = vec![edge("closing", "closure.fix/validators"), abort()];
    let mut closure = ask("closure.fix", "Close", Template::text("Wrap up."), edges);
    closure.boundary =
        Boundary { permission: Permission::Plan, tools: Tools::Only(vec!["Read".into(), "Grep".into()]) };
    draft.steps = vec![initial, continuation, closure, validators()];
    checked(draft)
}

fn validators() -> Step<Name> {
    let command = |name: &str, command: &str, success| Validator {
        name: name.into(),
        command: command.into(),
        success,
        extract: vec![("output".into(), Extractor::Stdout)],
        timeout_ms: 600_000,
        values: Vec::new(),
    };
    let mut edges = vec![Edge::new(Outcome::Pass, Target::End(Ending::Completed), Span::default())];
    for index in 0..2 {
        let back = Target::Origin { among: vec![name("continuation.fix"), name("closure.fix")] };
        edges.push(Edge {
            bound: Some(EdgeBound { counter: CounterId(0), max: 2 }),
            remedy: Some(Template::text("It failed.\nMend it.")),
            ..Edge::new(Outcome::Fail(index), back, Span::default())
        });
        let end = Target::End(Ending::Failed("validators of `closure.fix` failed".into()));
        edges.push(Edge::new(Outcome::Fail(index), end, Span::default()));
    }
    Step {
        name: "closure.fix/validators".into(),
        title: "closure.fix/validators".into(),
        span: Span::default(),
        counts: false,
        act: Act::Exec {
            commands: vec![
                command("tests", "cargo test", Success::ExitCode(0)),
                command("clean", "git status --porcelain", Success::Empty),
            ],
        },
        gate: Gate::Exit,
        boundary: Boundary::default(),
        handoff: Vec::new(),
        inputs: Vec::new(),
        selectors: Vec::new(),
        when: None,
        edges,
    }
}

/// plan → reviewers (security, style) → fix → reviewers …, watched by a monitor; a person may be asked.
pub(crate) fn piece() -> Flow {
    let mut draft = Draft::empty("review", "takt");
    draft.entry = Some(name("plan"));
    draft.limits.iterations_max = 12;
    let text = Template::text("Do it.");
    let plan =
        ask("plan", "plan", text.clone(), vec![edge("ready", "reviewers"), edge("unclear", "ask_user")]);
    let member = |step: &str| {
        let mut member = ask(
            step,
            step,
            text.clone(),
            vec![edge("approved", "@completed"), edge("needs_fix", "@completed")],
        );
        member.edges.clear();
        member.boundary.permission = Permission::Plan;
        ask_of(&mut member).session = SessionRule::Fresh;
        ask_of(&mut member).persona = Some("reviewer".into());
        member
    };
    let named = |outcome: &str| Outcome::Named(outcome.into());
    let rule = |pattern, outcome: &str| JoinRule { pattern, outcome: named(outcome) };
    let reviewers = Step {
        act: Act::All { members: vec![name("security"), name("style")], width: 2 },
        gate: Gate::Join {
            judges: Vec::new(),
            rules: vec![
                rule(JoinPattern::All(named("approved")), "all(\"approved\")"),
                rule(JoinPattern::Any(vec![named("needs_fix")]), "any(\"needs_fix\")"),
            ],
        },
        edges: vec![edge("all(\"approved\")", "@completed"), edge("any(\"needs_fix\")", "fix")],
        ..ask("reviewers", "reviewers", Template::default(), Vec::new())
    };
    let mut judge = ask(
        "monitor:reviewers+fix",
        "",
        text.clone(),
        vec![edge("healthy", "reviewers"), edge("stuck", "plan")],
    );
    judge.counts = false;
    ask_of(&mut judge).role = Role::Judge;
    ask_of(&mut judge).session = SessionRule::Fresh;
    let person = Step {
        counts: false,
        act: Act::Person { question: Template::text("What is meant?\nSay more.") },
        gate: Gate::Always(named("answered")),
        edges: vec![edge("answered", "plan")],
        ..ask("ask_user", "", Template::default(), Vec::new())
    };
    let mut fix = ask("fix", "fix", text.clone(), vec![edge("done", "reviewers")]);
    if let Gate::Readers(readers) = &mut fix.gate {
        readers.push(OutcomeReader::Judge { step: name("fix/judge") });
    }
    let mut fix_judge = ask("fix/judge", "", text.clone(), vec![edge("done", "reviewers")]);
    fix_judge.counts = false;
    fix_judge.edges.clear();
    ask_of(&mut fix_judge).role = Role::Judge;
    ask_of(&mut fix_judge).session = SessionRule::Fresh;
    draft.steps = vec![plan, reviewers, member("security"), member("style"), fix, fix_judge, judge, person];
    draft.monitors = vec![Monitor {
        name: "monitor:reviewers+fix".into(),
        cycle: vec![vec![name("reviewers")], vec![name("fix")]],
        ignored: Vec::new(),
        threshold: 2,
        judge: name("monitor:reviewers+fix"),
        span: Span::default(),
    }];
    checked(draft)
}
