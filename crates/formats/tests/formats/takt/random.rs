//! Random pieces, random answers, interrupts anywhere: every run ends with a named result, within its limits and its
//! price, and interrupts do not change the result.

use std::collections::BTreeMap;

use cuegate_engine::{
    Answer, AskCommand, AskKind, Command, CommandId, Completion, EndState, Event, ExecResult, Exit, Fault,
    FaultClass, Start, State, Usage,
};
use cuegate_flow::{
    analysis::cost_bound::{Certificate, Terms, price_flow},
    checks::check_draft,
    diagnostics::Severity,
    model::{Act, Flow, Gate, Outcome, OutcomeReader},
};
use cuegate_formats::Phases;
use cuegate_testkit::world::{Case, answers_of, roll, started};
use serde_json::{Map, Value, json};

use crate::support::Project;
use crate::takt::takt_support::{FILE, load};

const SEEDS: u64 = 360;
const SCRIPTS: u64 = 2;
const DECISIONS_MAX: usize = 3_000;
const REPAIRS_MAX: u32 = 1;

/// The random choices of a seed.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.thrown += 1;
        (roll(self.seed, &format!("d{}", self.thrown)) % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A YAML text under construction.
struct Yaml {
    text: String,
}

impl Yaml {
    fn line(&mut self, deep: usize, line: &str) {
        self.text.push_str(&" ".repeat(deep));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds the line if `is` is true.
    fn maybe(&mut self, deep: usize, is: bool, line: &str) {
        if is {
            self.line(deep, line);
        }
    }
}

const PLACES: [&str; 8] = [
    "{task}",
    "{previous_response}",
    "{iteration}",
    "{movement_iteration}",
    "{report_dir}",
    "{report:one.md}",
    "{user_inputs}",
    "{other}",
];

/// A piece of one to four movements.
pub fn random(seed: u64) -> Project {
    let mut dice = Dice { seed, thrown: 0 };
    let count = dice.pick(&[1, 2, 2, 3, 4]);
    let names: Vec<String> = (0..count).map(|index| format!("m{index}")).collect();
    let mut yaml = Yaml { text: String::new() };
    yaml.line(0, "name: random");
    yaml.line(0, &format!("max_iterations: {}", 1 + dice.below(14)));
    yaml.line(0, "initial_movement: m0");
    yaml.line(0, "personas: { p: You are one of two people., q: You are the other one. }");
    yaml.line(0, "movements:");
    for index in 0..count {
        if dice.one_in(3) {
            parallel(&mut dice, &mut yaml, index, &names);
        } else {
            movement(&mut dice, &mut yaml, index, &names);
        }
    }
    if dice.one_in(2) {
        monitors(&mut dice, &mut yaml, &names);
    }
    [(FILE.to_owned(), yaml.text.into_bytes())].into()
}

fn next(dice: &mut Dice, names: &[String]) -> String {
    match dice.below(9) {
        0 | 1 => "COMPLETE".to_owned(),
        2 => "ABORT".to_owned(),
        _ => names[dice.below(names.len())].clone(),
    }
}

/// The keys that movements and members share.
fn body(dice: &mut Dice, yaml: &mut Yaml, deep: usize) {
    let edits = dice.one_in(2);
    yaml.line(deep, &format!("edit: {edits}"));
    let mode = if edits { dice.pick(&["edit", "full"]) } else { "readonly" };
    yaml.maybe(deep, dice.one_in(4), &format!("permission_mode: {mode}"));
    yaml.maybe(deep, dice.one_in(3), "session: refresh");
    let persona = format!("persona: {}", dice.pick(&["p", "q"]));
    yaml.maybe(deep, dice.one_in(2), &persona);
    yaml.maybe(deep, dice.one_in(4), "pass_previous_response: false");
    yaml.maybe(deep, dice.one_in(5), "allowed_tools: [Read]");
    yaml.line(
        deep,
        &format!("instruction_template: \"Do {} and {}\"", dice.pick(&PLACES), dice.pick(&PLACES)),
    );
    if dice.one_in(2) {
        yaml.line(deep, "output_contracts:");
        yaml.line(deep + 2, "report:");
        yaml.line(deep + 4, "- { name: one.md, format: \"# One of {iteration}\" }");
        yaml.maybe(deep + 4, dice.one_in(2), "- Two: two.md");
    }
}

fn movement(dice: &mut Dice, yaml: &mut Yaml, index: usize, names: &[String]) {
    yaml.line(2, &format!("- name: m{index}"));
    body(dice, yaml, 4);
    if dice.one_in(3) {
        yaml.line(4, "quality_gates:");
        yaml.line(6, "- All is well");
        yaml.line(6, "- { command: \"true\" }");
        yaml.maybe(6, dice.one_in(2), "- { command: \"false\", timeout_ms: 1000 }");
    }
    yaml.line(4, "rules:");
    let last = index + 1 == names.len();
    for rule in 0..1 + dice.below(4) {
        let condition = match dice.below(4) {
            0 => format!("ai(\"it is {rule}\")"),
            1 if rule > 0 => "Rule 0".to_owned(),
            _ => format!("Rule {rule}"),
        };
        let next = match rule {
            0 if last => "COMPLETE".to_owned(),
            0 | 1 if dice.one_in(2) => names[(index + 1) % names.len()].clone(),
            _ => next(dice, names),
        };
        yaml.line(6, &format!("- condition: '{condition}'"));
        yaml.line(8, &format!("next: {next}"));
        if dice.one_in(5) {
            yaml.line(8, "requires_user_input: true");
            yaml.maybe(8, dice.one_in(2), "interactive_only: true");
            yaml.maybe(8, dice.one_in(2), "appendix: What of it?");
        }
    }
}

fn parallel(dice: &mut Dice, yaml: &mut Yaml, index: usize, names: &[String]) {
    yaml.line(2, &format!("- name: m{index}"));
    yaml.line(4, "parallel:");
    let members = 2 + dice.below(2);
    for member in 0..members {
        yaml.line(6, &format!("- name: m{index}-{member}"));
        body(dice, yaml, 8);
        if dice.one_in(3) {
            yaml.line(8, "quality_gates:");
            yaml.line(10, "- { command: \"true\" }");
            yaml.maybe(10, dice.one_in(2), "- { command: \"false\", timeout_ms: 1000 }");
        }
        yaml.line(8, "rules:");
        for rule in ["approved", "needs_fix", "ai(\"it is odd\")"] {
            yaml.maybe(10, !rule.starts_with("ai") || dice.one_in(4), &format!("- condition: '{rule}'"));
        }
    }
    yaml.line(4, "rules:");
    let each: Vec<&str> = (0..members).map(|_| dice.pick(&["\"approved\"", "\"needs_fix\""])).collect();
    let mut rules = vec![format!("all({})", each.join(", ")), "any(\"needs_fix\")".to_owned()];
    if dice.one_in(2) {
        rules[0] = "all(\"approved\")".to_owned();
    }
    if dice.one_in(5) {
        rules.remove(1);
    }
    if dice.one_in(2) {
        rules.push(dice.pick(&["ai(\"they differ\")", "They differ"]).to_owned());
    }
    let last = index + 1 == names.len();
    for (rule, condition) in rules.iter().enumerate() {
        let next = match rule {
            0 if last => "COMPLETE".to_owned(),
            1 if dice.one_in(2) => names[(index + 1) % names.len()].clone(),
            _ => next(dice, names),
        };
        yaml.line(6, &format!("- condition: '{condition}'"));
        yaml.line(8, &format!("next: {next}"));
        yaml.maybe(8, dice.one_in(6), "requires_user_input: true");
    }
}

fn monitors(dice: &mut Dice, yaml: &mut Yaml, names: &[String]) {
    if names.len() < 2 {
        return;
    }
    yaml.line(0, "loop_monitors:");
    for first in 0..1 + dice.below(2) {
        let second = (first + 1) % names.len();
        yaml.line(2, &format!("- cycle: [{}, {}]", names[first], names[second]));
        yaml.maybe(4, !dice.one_in(4), &format!("threshold: {}", 1 + first % 2));
        yaml.line(4, "judge:");
        yaml.maybe(6, dice.one_in(2), "persona: q");
        yaml.maybe(6, dice.one_in(2), "instruction_template: \"{cycle_count} times\"");
        yaml.line(6, "rules:");
        for rule in ["Healthy", "Stuck"] {
            yaml.line(8, &format!("- condition: {rule}"));
            yaml.line(10, &format!("next: {}", next(dice, names)));
        }
    }
}

/// The flow of a seed, if it has no errors.
fn flow_of(seed: u64) -> Option<Flow> {
    let loaded = load(&random(seed), |options| {
        options.phases = if seed.is_multiple_of(3) { Phases::Separate } else { Phases::Fused };
        options.interactive = seed.is_multiple_of(2);
        options.width = 1 + (seed % 3) as u16;
        options.quality_gate_retries = (seed % 4) as u32;
    });
    if loaded.has_errors() {
        return None;
    }
    let checked = check_draft(loaded.draft);
    checked.flow.filter(|_| checked.diagnostics.iter().all(|finding| finding.severity != Severity::Error))
}

/// A word that a step's schema accepts, and its tag.
fn word(flow: &Flow, step: &str, roll: u64) -> (String, String) {
    let step = flow.step(flow.find(step).unwrap());
    let mut word = ("approved".to_owned(), String::new());
    if let Act::Ask(ask) = &step.act
        && let Some(schema) = ask.schema
        && let Some(words) = flow.schema(schema).value()["properties"]["outcome"]["enum"].as_array()
    {
        word.0 = words[roll as usize % words.len()].as_str().unwrap().to_owned();
    }
    let Gate::Readers(readers) = &step.gate else { return word };
    for reader in readers {
        if let OutcomeReader::Tag { name, base, outcomes } = reader {
            let at = roll as usize % outcomes.len().max(1);
            if outcomes.get(at).is_some_and(|outcome| *outcome != Outcome::None) {
                word.1 = format!("[{name}:{}]", at as u32 + base);
            }
        }
    }
    word
}

fn respond(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let id = command.id();
    match command {
        Command::Exec(exec) => {
            let nth = answers_of(case, &exec.step);
            let exit = match roll(seed, &format!("{} {nth}", exec.step)) % 6 {
                0 if nth.is_multiple_of(3) => Exit::TimedOut,
                1 => Exit::Code(1),
                _ => Exit::Code(0),
            };
            let exec =
                ExecResult { exit, stdout: format!("run {nth}"), stderr: String::new(), duration_ms: 1 };
            Completion::Executed { id, exec, seen: None }
        }
        Command::Ask(ask) => asked(case, seed, ask),
        Command::Probe(_) | Command::Effect(_) | Command::Read(_) => {
            unreachable!("pieces ask for none of them")
        }
    }
}

/// The answer to an ask: mostly a valid one in some form, sometimes an invalid one.
fn asked(case: &Case<'_>, seed: u64, ask: &AskCommand) -> Completion {
    let nth = answers_of(case, &ask.step);
    let roll = roll(seed, &format!("{} {nth}", ask.step));
    let (word, tag) = word(case.flow, &ask.step, roll >> 9);
    let Act::Ask(about) = &case.flow.step(case.flow.find(&ask.step).unwrap()).act else { unreachable!() };
    let reports: Map<String, Value> = about
        .reports
        .iter()
        .map(|report| (report.name.to_string(), json!(format!("{word} {nth}"))))
        .collect();
    let mut whole = json!({"outcome": word});
    if about.fused.is_some() {
        whole["response"] = json!(format!("said {nth}"));
    }
    if !reports.is_empty() {
        whole["reports"] = Value::Object(reports);
    }
    let say = |output: Value| answer(ask, Some(output), String::new());
    let text = |text: String| answer(ask, None, text);
    if ask.kind == AskKind::Report && roll % 48 > 8 {
        return text(if roll.is_multiple_of(9) { String::new() } else { format!("# Report {nth}") });
    }
    match roll % 72 {
        0 => fault(ask.id, FaultClass::RateLimited, nth),
        1 => fault(ask.id, FaultClass::Crashed, nth),
        2 => fault(ask.id, FaultClass::Malformed, nth),
        3 if helped(seed) => fault(ask.id, FaultClass::Auth, nth),
        4 if helped(seed) => say(json!({"blocked": "no access", "outcome": word})),
        5 if helped(seed) => blocked(ask),
        6 => say(json!({"outcome": "fly", "response": "-"})),
        7 => say(json!({"other": 1})),
        8 => text("{\"outcome\": ".to_owned()),
        9 => say(json!({"outcome": word, "response": 7})),
        10..=13 => text(format!("All is said: {{ }} {tag}")),
        14 | 15 => text("It is hard to say.".to_owned()),
        16 => text(format!("As it is asked: {whole}")),
        17 => say(json!({"outcome": format!(" {} ", word.to_uppercase()), "response": "-"})),
        _ => say(whole),
    }
}

/// Whether agents of this seed ask persons for help.
fn helped(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

fn answer(ask: &AskCommand, output: Option<Value>, text: String) -> Completion {
    let usage = Usage { input_tokens: 10, output_tokens: 1, cost_usd: Some(0.25), ..Usage::default() };
    let answer = Answer {
        output,
        text,
        usage,
        provider: "scripted".to_owned(),
        session: Some(format!("of {}", ask.step)),
        ..Answer::default()
    };
    Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
}

fn blocked(ask: &AskCommand) -> Completion {
    let answer = Answer {
        asks_person: Some("which one?".to_owned()),
        provider: "scripted".to_owned(),
        ..Answer::default()
    };
    Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
}

fn fault(ask: CommandId, class: FaultClass, nth: usize) -> Completion {
    let fault = Fault {
        class,
        message: "as scripted".to_owned(),
        resets_in_ms: nth.is_multiple_of(2).then_some(100),
        usage: Usage { input_tokens: 5, ..Usage::default() },
        usage_unknown: false,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    };
    Completion::Faulted { ask, fault, seen: None }
}

/// Counts of a run, as a price counts them.
#[derive(Debug, Default, Clone)]
struct Done {
    asks: BTreeMap<&'static str, u64>,
    visits: u64,
    iterations: u64,
}

fn done(case: &Case<'_>) -> Done {
    let mut done = Done { iterations: u64::from(case.run.progress.iterations), ..Done::default() };
    for event in case.events.iter().flatten() {
        match event {
            Event::Answered { kind, .. } => *done.asks.entry(kind.as_str()).or_default() += 1,
            // Members count as visits, the parallel step itself does not.
            Event::MemberEnded { .. } => done.visits += 1,
            Event::StepEntered { step, counts: true, attempt: 1, .. } => {
                let act = &case.flow.step(case.flow.find(step).unwrap()).act;
                done.visits += u64::from(!matches!(act, Act::All { .. }));
            }
            _ => {}
        }
    }
    done
}

/// Checks that no count exceeds the price.
fn within(found: &Certificate, done: &Done, about: &str) {
    let asks: u64 = done.asks.values().sum();
    assert!(asks <= found.asks, "{about}: {asks} asks, at most {}", found.asks);
    for (kind, times) in &done.asks {
        let most = found.by_role.iter().find(|(role, _)| role.as_str() == *kind).map_or(0, |(_, most)| *most);
        assert!(*times <= most, "{about}: {times} {kind}, at most {most}");
    }
    assert!(done.visits <= found.visits, "{about}: {} visits, at most {}", done.visits, found.visits);
    assert!(done.iterations <= found.iterations, "{about}: {} > {}", done.iterations, found.iterations);
}

/// The result of a run.
struct Ran<'f> {
    case: Case<'f>,
    /// The counts before the first help of a person that the flow does not define.
    alone: Done,
    /// The number of interrupted asks.
    cuts: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Never,
    /// Everything outside the journal is lost, occasionally or at each step.
    Lost(u64),
    /// Running asks are interrupted occasionally.
    Begun,
}

fn run(flow: &Flow, seed: u64, cut: Cut) -> Ran<'_> {
    let mut case = Case::new(flow);
    let mut started = started(flow);
    started.report_dir = Some("/reports".into());
    started.repairs_max = REPAIRS_MAX;
    case.complete(Completion::Start(Box::new(Start { started })));
    let (mut alone, mut cuts) = (None, 0);
    for nth in 0..DECISIONS_MAX {
        assert!(case.run.progress.iterations <= flow.limits.iterations_max, "seed {seed}");
        if case.ended() {
            let alone = alone.unwrap_or_else(|| done(&case));
            return Ran { case, alone, cuts };
        }
        if let State::Suspended(_) = &case.run.state {
            let by_flow =
                matches!(&case.run.progress.node, Some(node) if node.work == cuegate_engine::Work::Person);
            if !by_flow && alone.is_none() {
                alone = Some(done(&case));
            }
            assert!(case.unblock(), "seed {seed}: {:?}", case.run.state);
            continue;
        }
        let pending = case.pending();
        assert!(!pending.is_empty(), "seed {seed}: nothing is wanted in {:?}", case.run.progress.node);
        if matches!(cut, Cut::Lost(every) if roll(seed, &format!("cut {nth}")).is_multiple_of(every)) {
            case.crash();
            assert_eq!(case.pending(), pending, "seed {seed}: the same state wants the same");
        }
        let command = &pending[roll(seed, &format!("which {}", answered(&case))) as usize % pending.len()];
        let again = cut == Cut::Begun && roll(seed, &format!("begun {nth}")).is_multiple_of(5);
        if let (true, Command::Ask(ask)) = (again, command) {
            let usage = Usage::default();
            assert!(case.complete(Completion::Cut {
                ask: ask.id,
                usage,
                usage_unknown: false,
                spoilt: nth.is_multiple_of(2),
                tools: Default::default()
            }));
            cuts += 1;
            continue;
        }
        let completion = respond(&case, seed, command);
        assert!(case.complete(completion), "seed {seed}: what is pending is decided");
    }
    panic!("seed {seed}: no end after {DECISIONS_MAX} decisions");
}

/// The number of answers, which interrupts do not change.
fn answered(case: &Case<'_>) -> usize {
    let counts = |event: &&Event| {
        matches!(event, Event::Answered { .. } | Event::Faulted { .. } | Event::CommandFinished { .. })
    };
    case.events.iter().flatten().filter(counts).count()
}

/// The end of a run, and its steps.
fn end_of(case: &Case<'_>) -> (EndState, Vec<String>) {
    let State::Ended { state, .. } = &case.run.state else { unreachable!("it ended") };
    let rows = case.events.iter().flatten().filter_map(|event| match event {
        Event::VisitEnded { step, visit, attempt, end, .. } => {
            Some(format!("{step} {visit}.{attempt} → {}", end.target.as_deref().unwrap_or("-")))
        }
        Event::MemberEnded { step, outcome, .. } => Some(format!("{step} {outcome:?}")),
        _ => None,
    });
    // Members end in any order: an interrupted one is asked after the commands of others.
    let mut rows: Vec<String> = rows.collect();
    for members in rows.split_mut(|row| row.contains(" → ")) {
        members.sort();
    }
    (*state, rows)
}

#[test]
fn every_run_ends_within_its_limits_and_price_despite_interrupts() {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut note = |what: &str| *seen.entry(what.to_owned()).or_default() += 1;
    for piece in 0..SEEDS {
        let Some(flow) = flow_of(piece) else {
            note("unsound");
            continue;
        };
        note("sound");
        let terms = Terms {
            iterations_max: flow.limits.iterations_max,
            repairs_max: REPAIRS_MAX,
            ..Terms::default()
        };
        let found = price_flow(&flow, &terms);
        for script in 0..SCRIPTS {
            let seed = piece * 1_000 + script;
            let whole = run(&flow, seed, Cut::Never);
            within(&found, &whole.alone, &format!("seed {seed}"));
            let cut = run(&flow, seed, Cut::Lost(1 + script * 2));
            assert_eq!(cut.case.records, whole.case.records, "seed {seed}");
            let cut = run(&flow, seed, Cut::Begun);
            assert_eq!(end_of(&cut.case), end_of(&whole.case), "seed {seed}");
            if cut.cuts > 0 {
                note("cut");
            }
            note(&format!("{:?}", end_of(&whole.case).0));
            for kind in done(&whole.case).asks.keys() {
                note(kind);
            }
            for event in whole.case.events.iter().flatten() {
                match event {
                    Event::MonitorFired { .. } => note("monitor"),
                    Event::PersonAnswered { .. } => note("person"),
                    Event::MemberEnded { blocked: true, .. } => note("blocked member"),
                    Event::MemberEnded { outcome: None, .. } => note("failed member"),
                    Event::Faulted { .. } => note("fault"),
                    Event::AnswerRejected { .. } => note("rejected"),
                    Event::ReportWritten { .. } => note("written"),
                    _ => {}
                }
            }
        }
    }
    assert!(seen.get("sound").is_some_and(|sound| *sound >= 300), "{seen:?}");
    let often = [
        "Completed",
        "Failed",
        "Aborted",
        "Exhausted",
        "work",
        "report",
        "judge",
        "repair",
        "remedy",
        "cut",
        "monitor",
        "person",
        "blocked member",
        "failed member",
        "fault",
        "rejected",
        "written",
    ];
    for what in often {
        assert!(seen.get(what).is_some_and(|times| *times > 10), "{what} hardly occurred: {seen:?}");
    }
}
