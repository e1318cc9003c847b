//! Random flows in the shapes that each format lowers to. Many have errors, on purpose.

use cuegate_engine::EndState;
use cuegate_flow::{
    Str,
    diagnostics::Span,
    model::{
        Act, Draft, Ending, FieldPath, Gate, Handoff, JoinPattern, JoinRule, Name, Outcome, OutcomeReader,
        Piece, Role, Schema, SchemaId, Selector, Source, Target, Template,
    },
};
use serde_json::{Value, json};

use crate::{Builder, world::roll};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Registries with closing steps.
    Closing,
    /// Registries of the older generation.
    Complete,
    /// Check flows.
    Check,
    /// Pieces.
    Piece,
}

impl Dialect {
    /// The parts of its flows, including faulty ones.
    pub fn features(self) -> &'static [&'static str] {
        const GATED: [&str; 16] = [
            "handoffs",
            "direct reads",
            "late reads",
            "fallbacks",
            "validators",
            "remedies",
            "conditions",
            "jumps",
            "counters",
            "unreachable-step",
            "unassigned-value",
            "transition-without-default",
            "missing-transition",
            "unreachable-transition",
            "measured",
            "8 steps",
        ];
        match self {
            Dialect::Closing | Dialect::Complete => &GATED,
            Dialect::Check => {
                &["counters", "unreachable-step", "missing-transition", "used up", "measured", "7 steps"]
            }
            Dialect::Piece => &[
                "parallel",
                "validators",
                "persons",
                "counters",
                "monitors",
                "unreachable-step",
                "join-never-fires",
                "monitor-never-acts",
                "unmatched-join",
                "unwritten-report",
                "unreachable-transition",
                "used up",
                "measured",
                "7 steps",
            ],
        }
    }
}

/// The maximum number of main steps; checks, judges and validators do not count.
pub const STEPS_MAX: u64 = 8;

struct Dice {
    seed: u64,
    turn: u64,
}

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.turn += 1;
        roll(self.seed, &format!("wire {}", self.turn)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn step<'s>(&mut self, steps: &'s [String]) -> &'s str {
        &steps[self.below(steps.len() as u64) as usize]
    }

    /// A random subset of these, in order.
    fn some<'p>(&mut self, from: &'p [String], one_in: u64) -> Vec<&'p str> {
        from.iter().filter(|_| self.one_in(one_in)).map(String::as_str).collect()
    }
}

/// A flow of a format.
pub fn draft(dialect: Dialect, seed: u64) -> Draft {
    let mut dice = Dice { seed: seed ^ 0x5bd1_e995, turn: dialect as u64 * 1000 };
    let steps: Vec<String> = (0..1 + dice.below(STEPS_MAX - 1)).map(|at| format!("s{at}")).collect();
    let mut draft = match dialect {
        Dialect::Closing => gated(&mut dice, &steps, "registry-closing", "closing"),
        Dialect::Complete => gated(&mut dice, &steps, "registry-complete", "complete"),
        Dialect::Check => checked(&mut dice, &steps),
        Dialect::Piece => piece(&mut dice, &steps),
    };
    without_fallback(&mut draft);
    draft
}

fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

/// A limit that no run reaches.
fn begin(dialect: &'static str, entry: &str) -> Builder {
    Builder::new("random", dialect, entry).limit(u32::MAX)
}

/// Steps with gates; the last one ends the run after its validators, with the intent `end`.
fn gated(dice: &mut Dice, steps: &[String], dialect: &'static str, end: &'static str) -> Draft {
    let mut build = begin(dialect, &steps[0]);
    let last = !dice.one_in(8);
    let mut originators = Vec::new();
    let mut selects = false;
    for (at, step) in steps.iter().enumerate() {
        let jumps = dice.one_in(4);
        let hands = last && dice.one_in(2);
        let gives_up = dice.one_in(3);
        let mut words = vec!["next"];
        words.extend(dice.one_in(2).then_some("repeat"));
        words.extend(jumps.then_some("jump"));
        words.extend(hands.then_some("handoff"));
        words.extend(gives_up.then_some("abort"));
        build = build.ask(step, Role::Work, &words);
        let leaves_plan = dice.one_in(2);
        let leaves_status = dice.one_in(3);
        build = build.schema(schema(dice, &words, leaves_plan, leaves_status));
        if leaves_plan {
            build = build.leaves("plan");
        }
        if leaves_status {
            build = build.leaves("status");
        }
        if dice.one_in(4) {
            let next = Outcome::Named(dice.pick(&words).into());
            build = build.reader(match dialect {
                "registry-complete" => OutcomeReader::FirstFallback(next),
                _ => OutcomeReader::Fallback(next),
            });
        }
        build = need(dice, build, steps, at);
        build = match dice.below(6) {
            0 if leaves_status => {
                selects = true;
                build.edge("next", select(dice, steps), |_| {})
            }
            _ => build.to("next", dice.step(steps)),
        };
        for word in &words {
            build = match *word {
                "repeat" => build.to("repeat", step),
                "jump" => {
                    let among = dice.some(steps, 2).into_iter().map(name).collect();
                    let field = FieldPath::parse("to");
                    build.edge("jump", Target::Jump { field, among, default: None }, |_| {})
                }
                "handoff" => {
                    originators.push(step.as_str());
                    build.hands_off("handoff", "last")
                }
                "abort" => build.edge("abort", Target::End(Ending::Aborted), |edge| edge.implied = true),
                _ => build,
            };
        }
        build = stray(dice, build, steps, "next");
    }
    if !last {
        return build.draft();
    }
    let repeats = dice.one_in(2);
    let words = if repeats { vec![end, "repeat"] } else { vec![end] };
    build = build.ask("last", Role::Work, &words).schema(schema(dice, &words, false, false));
    build = need(dice, build, steps, steps.len());
    if repeats {
        let back = dice.one_in(2);
        build = build.to("repeat", if back { dice.step(steps) } else { "last" });
    }
    if dice.one_in(3) {
        return build.to(end, "@completed").draft();
    }
    build = build.to(end, "last@v").exec("last@v", &["test: true"]).on(Outcome::Pass, "@completed");
    let max = dice.below(3) as u32;
    match dice.below(4) {
        0 => {}
        1 => build = build.on(Outcome::Fail(0), "@completed"),
        // `check` does not track values together with the origin.
        _ if selects => build = build.on(Outcome::Fail(0), "@failed"),
        _ => {
            build =
                build.remedy(Outcome::Fail(0), &originators, "remedies", max).on(Outcome::Fail(0), "@failed")
        }
    }
    let reads = dice.one_in(3).then(|| left(dice.step(steps)));
    let mut draft = build.draft();
    let remedies =
        draft.steps.iter_mut().flat_map(|step| &mut step.edges).filter_map(|edge| edge.remedy.as_mut());
    remedies.for_each(|remedy| remedy.pieces.extend(reads.clone().map(Piece::Value)));
    draft
}

/// Where a step that falls back is read directly nothing is said: those that are do not fall back.
fn without_fallback(draft: &mut Draft) {
    let mut read: Vec<Str> = Vec::new();
    for step in &draft.steps {
        let prompt = match &step.act {
            Act::Ask(ask) => Some(&ask.prompt),
            _ => None,
        };
        let texts = prompt.into_iter().chain(step.edges.iter().filter_map(|edge| edge.remedy.as_ref()));
        read.extend(texts.flat_map(read_by).map(|(step, _)| step));
    }
    for step in draft.steps.iter_mut().filter(|step| read.contains(&step.name)) {
        if let Gate::Readers(readers) = &mut step.gate {
            readers.retain(|reader| {
                !matches!(reader, OutcomeReader::Fallback(_) | OutcomeReader::FirstFallback(_))
            });
        }
    }
}

/// A schema of answers; some handoff fields are optional.
fn schema(dice: &mut Dice, words: &[&str], plan: bool, status: bool) -> Value {
    let mut required = vec!["action"];
    let mut properties = json!({"action": {"enum": words}, "to": {"type": "string"}});
    if plan {
        let kinds = if dice.one_in(4) { json!(["string", "null"]) } else { json!("string") };
        properties["plan"] = json!({"type": kinds});
        required.extend((!dice.one_in(3)).then_some("plan"));
    }
    if status {
        let values =
            dice.pick(&[&[Some("a"), Some("b")][..], &[Some("a")], &[Some("a"), Some("b"), Some("c")]]);
        let null = dice.one_in(6).then_some(&None);
        properties["status"] = json!({"enum": values.iter().chain(null).collect::<Vec<_>>()});
        required.extend((!dice.one_in(3)).then_some("status"));
    }
    json!({"type": "object", "required": required, "properties": properties})
}

fn need(dice: &mut Dice, build: Builder, steps: &[String], at: usize) -> Builder {
    if at == 0 || !dice.one_in(4) {
        return build;
    }
    let from = dice.step(steps);
    if dice.one_in(3) {
        return build.reads("plan", left(from));
    }
    build.needs(from, "plan")
}

/// A direct read of a step's plan.
fn left(step: &str) -> Source {
    Source::Handoff { step: step.into(), key: "plan".into() }
}

/// The targets of a handoff status; not every value has one.
fn select(dice: &mut Dice, steps: &[String]) -> Target<Name> {
    let mut cases = Vec::new();
    for value in ["a", "b", "c"] {
        if !dice.one_in(4) {
            cases.push((value.into(), name(dice.step(steps))));
        }
    }
    let default = (!dice.one_in(4)).then(|| name(dice.step(steps)));
    Target::Select { by: Selector::Handoff("status".into()), cases, default }
}

/// Steps of a check flow: rounds of executions and checks.
fn checked(dice: &mut Dice, steps: &[String]) -> Draft {
    let mut build = begin("registry-check", &steps[0]);
    for step in steps {
        let check = format!("{step}/check");
        let (min, max, retries) = (format!("{step} min"), format!("{step} max"), format!("{step} retries"));
        build = build.tell(step, "done");
        let times = dice.below(3) as u32;
        if times > 0 {
            build = build.bounded_again("done", step, &min, times);
        }
        build = build.to("done", &check).ask(&check, Role::Check, &["ok", "ng"]);
        build = build.to("ok", way(dice, steps)).resets(&[&min, &max, &retries]);
        build = match dice.below(4) {
            0 => build.bounded_again("ng", step, &max, 1 + dice.below(2) as u32).to("ng", way(dice, steps)),
            1 => build.bounded_again("ng", step, &retries, 1).resets(&[&min, &max]).to("ng", "@failed"),
            2 => build.bounded_again("ng", step, &max, 1),
            _ => build.to("ng", way(dice, steps)).resets(&[&min, &max, &retries]),
        };
    }
    build.draft()
}

fn way<'s>(dice: &mut Dice, steps: &'s [String]) -> &'s str {
    match dice.below(8) {
        0 => "@completed",
        1 => "@failed",
        2 => "@aborted",
        _ => dice.step(steps),
    }
}

/// Movements: rules, parallel members, judges, persons, commands, monitors, reports.
fn piece(dice: &mut Dice, steps: &[String]) -> Draft {
    let mut build = begin("takt", &steps[0]);
    for (at, step) in steps.iter().enumerate() {
        build = if dice.one_in(4) {
            parallel(dice, build, steps, step)
        } else {
            movement(dice, build, steps, step, at)
        };
    }
    if steps.len() > 1 && dice.one_in(2) {
        let length = 2 + dice.below(2) as usize;
        let mut cycle: Vec<&str> = steps.iter().map(String::as_str).collect();
        for at in 0..cycle.len() {
            let other = dice.below(cycle.len() as u64) as usize;
            cycle.swap(at, other);
        }
        cycle.truncate(length.min(steps.len()));
        build = build.monitor(&cycle, 1 + dice.below(2) as u32, "watch");
        build = build.ask("watch", Role::Judge, &["healthy", "stuck"]);
        build = build.to("healthy", dice.step(steps)).to("stuck", rule(dice, steps));
    }
    let mut draft = build.draft();
    let members = |step: &cuegate_flow::model::Step<Name>| match &step.act {
        Act::All { members, .. } => members.iter().map(|member| member.text.clone()).collect(),
        _ => Vec::new(),
    };
    let members: Vec<_> = draft.steps.iter().flat_map(members).collect();
    for step in draft.steps.iter_mut().filter(|step| members.contains(&step.name)) {
        step.counts = false;
    }
    widen_monitors(dice, &mut draft, steps);
    select_members(dice, &mut draft);
    draft
}

/// Sometimes lets a monitor ignore a step, or adds a step to one of its stages.
fn widen_monitors(dice: &mut Dice, draft: &mut Draft, steps: &[String]) {
    for monitor in &mut draft.monitors {
        let is_free = |step: &&String| !monitor.cycle.iter().flatten().any(|known| *known.text == ***step);
        let free: Vec<&str> = steps.iter().filter(is_free).map(String::as_str).collect();
        if free.is_empty() {
            continue;
        }
        let step = name(dice.pick(&free));
        match dice.below(4) {
            0 => monitor.ignored.push(step),
            1 => {
                let stage = dice.below(monitor.cycle.len() as u64) as usize;
                monitor.cycle[stage].push(step);
            }
            _ => {}
        }
    }
}

/// Sometimes lets a selector choose among the members of a parallel step, and sometimes has a rule for members that failed.
fn select_members(dice: &mut Dice, draft: &mut Draft) {
    for at in 0..draft.steps.len() {
        let Act::All { members, .. } = &draft.steps[at].act else { continue };
        let members = members.clone();
        if dice.one_in(4)
            && let Gate::Join { rules, judges } = &mut draft.steps[at].gate
            && let Some(rule) = rules.first_mut().filter(|_| judges.is_empty())
        {
            rule.pattern = match dice.one_in(2) {
                true => JoinPattern::Any(vec![Outcome::None]),
                false => JoinPattern::All(Outcome::None),
            };
        }
        if !dice.one_in(3) {
            continue;
        }
        let selector = format!("{}@select", draft.steps[at].name);
        let optional = &members[dice.below(2) as usize..];
        let ids: Vec<Value> = optional.iter().map(|member| member.text.to_string().into()).collect();
        let schema = json!({
            "type": "object",
            "properties": {"selected": {"type": "array", "items": {"enum": ids}}},
            "required": ["selected"]
        });
        draft.schemas.push(Schema::new(schema).expect("a schema"));
        let schema = SchemaId(draft.schemas.len() as u32 - 1);
        let mut step = Builder::new("selector", "takt", "select")
            .ask(&selector, Role::Judge, &[])
            .draft()
            .steps
            .remove(0);
        step.gate = Gate::Always(Outcome::Named("selected".into()));
        step.handoff = optional.iter().map(|member| selected(&member.text)).collect();
        if let Act::Ask(ask) = &mut step.act {
            ask.schema = Some(schema);
        }
        draft.steps.push(step);
        draft.steps[at].selectors.push(name(&selector));
        for member in optional {
            let key = member.text.clone();
            let step = draft.steps.iter_mut().find(|step| step.name == key).expect("a member");
            step.when = Some(Source::Handoff { step: selector.as_str().into(), key });
        }
    }
}

fn selected(member: &str) -> Handoff {
    Handoff {
        item: Some(member.into()),
        ..Handoff::new(member, FieldPath::field("selected"), Span::default())
    }
}

/// Sometimes adds a dead edge: on an unknown outcome, or after an edge that covers its outcome.
fn stray(dice: &mut Dice, build: Builder, steps: &[String], word: &str) -> Builder {
    match dice.below(24) {
        0 => build.to("other", dice.step(steps)),
        1 => build.to(word, dice.step(steps)),
        2 => build.bounded("other", dice.step(steps), "nothing", 0),
        _ => build,
    }
}

fn rule<'s>(dice: &mut Dice, steps: &'s [String]) -> &'s str {
    match dice.below(7) {
        0 => "@completed",
        1 => "@aborted",
        _ => dice.step(steps),
    }
}

const RULES: [&str; 3] = ["r0", "r1", "r2"];

fn movement(dice: &mut Dice, build: Builder, steps: &[String], step: &str, at: usize) -> Builder {
    let words = &RULES[..1 + dice.below(3) as usize];
    let mut build = build.ask(step, Role::Work, words);
    let judged = dice.one_in(4);
    let judge = format!("{step}@judge");
    if judged {
        build = build.reader(OutcomeReader::Judge { step: name(&judge) });
    }
    if dice.one_in(3) {
        build = build.owes(&["r.md"]);
    } else if dice.one_in(3) {
        build = build.reads("report", Source::Report("r.md".into()));
    }
    let gate = format!("{step}@gate");
    let person = format!("{step}@person");
    let (mut gated, mut asked) = (false, false);
    for word in words {
        build = match dice.below(8) {
            0 if !gated => {
                gated = true;
                build.to(word, &gate)
            }
            1 if !asked => {
                asked = true;
                build.to(word, &person)
            }
            _ => build.to(word, rule(dice, steps)),
        };
    }
    build = stray(dice, build, steps, words[0]);
    if gated {
        build = build.exec(&gate, &["lint: true"]).on(Outcome::Pass, rule(dice, steps));
        let (counter, max) = (format!("gate {at}"), 1 + dice.below(2) as u32);
        build = build.bounded_on(Outcome::Fail(0), step, &counter, max).on(Outcome::Fail(0), "@failed");
    }
    if asked {
        build = build.person(&person, "What now?").to("answered", step);
    }
    if judged {
        let mut known = words.to_vec();
        known.push("none");
        build = build.ask(&judge, Role::Judge, &known);
    }
    build
}

fn parallel(dice: &mut Dice, build: Builder, steps: &[String], step: &str) -> Builder {
    let members: Vec<String> = (0..2 + dice.below(2)).map(|at| format!("{step}m{at}")).collect();
    let words: Vec<&[&str]> = members.iter().map(|_| &RULES[..1 + dice.below(3) as usize]).collect();
    let named = |word: &str| Outcome::Named(word.into());
    let rules: Vec<JoinRule> = (0..1 + dice.below(3))
        .map(|at| {
            let pattern = match dice.below(3) {
                0 => JoinPattern::All(named(dice.pick(&RULES))),
                1 => JoinPattern::Any(vec![named(dice.pick(&RULES))]),
                _ => JoinPattern::Each(members.iter().map(|_| named(dice.pick(&RULES))).collect()),
            };
            JoinRule { pattern, outcome: named(&format!("j{at}")) }
        })
        .collect();
    let names: Vec<&str> = members.iter().map(String::as_str).collect();
    let count = rules.len();
    let mut build = build.all(step, &names, 2, rules);
    let judged = dice.one_in(3);
    let judge = format!("{step}@judge");
    if judged {
        build = build.or_judge(&judge);
    }
    for at in 0..count {
        build = build.to(&format!("j{at}"), rule(dice, steps));
    }
    if judged {
        build = build.to("judged", rule(dice, steps));
    }
    for (member, words) in members.iter().zip(words) {
        build = build.ask(member, Role::Work, words);
    }
    if judged {
        build = build.ask(&judge, Role::Judge, &["judged", "none"]);
    }
    build
}

/// Ends of a run that are not errors of the definition.
pub fn is_goal(state: EndState) -> bool {
    matches!(state, EndState::Completed | EndState::Aborted)
}

/// The handoff values that a text reads.
pub fn read_by(text: &Template) -> impl Iterator<Item = (Str, Str)> {
    text.sources().into_iter().filter_map(|source| match source {
        Source::Handoff { step, key } => Some((step.clone(), key.clone())),
        _ => None,
    })
}
