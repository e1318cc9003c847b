//! Builds small drafts from one line per step: `name: outcome → target, outcome → target`; `end` completes.

use super::check_draft;
use crate::{diagnostics::*, model::*};

/// A deterministic pseudo-random generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

pub(crate) fn draft(text: &str) -> Draft {
    let mut draft = Draft::empty("test", "example");
    for line in text.lines() {
        let (name, edges) = line.split_once(':').unwrap();
        let mut words = Vec::new();
        let edges = edges
            .split(',')
            .map(|edge| {
                let (on, to) = edge.split_once('→').unwrap();
                let on = Outcome::Named(on.trim().into());
                words.push((on.to_string().as_str().into(), on.clone()));
                let to = match to.trim() {
                    "end" => Target::End(Ending::Completed),
                    step => Target::Step(Name::new(step, Span::default())),
                };
                Edge::new(on, to, Span::default())
            })
            .collect();
        draft.steps.push(Step {
            name: name.trim().into(),
            title: name.trim().into(),
            span: Span::default(),
            counts: true,
            act: Act::Ask(Ask {
                role: Role::Work,
                prompt: Template::default(),
                system: None,
                schema: None,
                model: None,
                later_models: Vec::new(),
                agent_keys: Default::default(),
                persona: None,
                persona_names: Vec::new(),
                session: SessionRule::Fresh,
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                delay_ms: 0,
                guard: None,
            }),
            gate: Gate::Readers(vec![OutcomeReader::Field {
                path: FieldPath::parse("action").unwrap(),
                words,
                reasons: Vec::new(),
            }]),
            boundary: Boundary::default(),
            handoff: Vec::new(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges,
        });
    }
    draft.entry = draft.steps.first().map(|step| Name::new(&step.name, Span::default()));
    draft
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

pub(crate) fn prompt(draft: &mut Draft, step: usize, pieces: Vec<Piece>) {
    if let Act::Ask(ask) = &mut draft.steps[step].act {
        ask.prompt = Template { pieces };
    }
}

pub(crate) fn hand_on(draft: &mut Draft, step: usize, key: &str) {
    let path = FieldPath::parse(key).unwrap();
    draft.steps[step].handoff.push(Handoff::new(key, path, Span::default()));
}

pub(crate) fn need(draft: &mut Draft, step: usize, from: &str, key: &str) {
    draft.steps[step].inputs.push(Input {
        name: key.into(),
        step: from.into(),
        key: key.into(),
        required: true,
        default: None,
        span: Span::default(),
    });
}

pub(crate) fn param(name: &str) -> Param {
    Param {
        name: name.into(),
        flag: format!("--{name}").into(),
        kind: ParamType::Text,
        rule: ParamRule::default(),
        required: false,
        default: None,
        description: "".into(),
        span: Span::default(),
    }
}

pub(crate) fn findings_of(draft: Draft) -> Vec<Diagnostic> {
    check_draft(draft).diagnostics
}

pub(crate) fn codes_of(draft: Draft) -> Vec<&'static str> {
    findings_of(draft).into_iter().map(|finding| finding.code).collect()
}

/// Two members with the outcomes `x` and `y`, and rules over them, called `r0` and so on, which lead to the end; and
/// optionally a judge that decides the last.
pub(crate) fn joined(patterns: Vec<JoinPattern>, judged: bool) -> Draft {
    let edges: Vec<String> = (0..patterns.len()).map(|at| format!("r{at} → end")).collect();
    let text = format!("all: {}\na: x → end, y → end\nb: x → end, y → end", edges.join(", "));
    let mut draft = draft(&text);
    let rule = |(at, pattern)| JoinRule { pattern, outcome: Outcome::Named(format!("r{at}").into()) };
    let rules: Vec<JoinRule> = patterns.into_iter().enumerate().map(rule).collect();
    let mut judges = Vec::new();
    if judged {
        let mut judge = draft.steps[0].clone();
        judge.name = "judge".into();
        judge.counts = false;
        judge.edges.clear();
        draft.steps.push(judge);
        judges.push(name("judge"));
    }
    draft.steps[0].gate = Gate::Join { rules, judges };
    draft.steps[0].act = Act::All { members: vec![name("a"), name("b")], width: 2 };
    for member in [1, 2] {
        draft.steps[member].counts = false;
        draft.steps[member].edges.clear();
    }
    draft
}

pub(crate) fn owes(draft: &mut Draft, step: usize, report: &str) {
    if let Act::Ask(ask) = &mut draft.steps[step].act {
        let request = Template::text("Write it.");
        ask.reports.push(Report { name: report.into(), request, span: Span::default() });
    }
}

pub(crate) fn schema(draft: &mut Draft, step: usize, schema: serde_json::Value) {
    draft.schemas.push(Schema::new(schema).unwrap());
    if let Act::Ask(ask) = &mut draft.steps[step].act {
        ask.schema = Some(SchemaId(draft.schemas.len() as u32 - 1));
    }
}

/// `a` works until the command of `v` passes, which extracts `found`; after a failure, `remedy` is its prompt.
pub(crate) fn failing(extractor: Extractor, remedy: Vec<Piece>) -> Draft {
    let mut draft = draft("a: done → v\nv: x → end, x → a, x → end");
    draft.counters.push(Counter { name: "remedies".into() });
    let step = &mut draft.steps[1];
    step.counts = false;
    step.act = Act::Exec {
        commands: vec![Validator {
            name: "tests".into(),
            command: "true".into(),
            success: Success::ExitCode(0),
            extract: vec![("found".into(), extractor)],
            timeout_ms: 1,
            values: Vec::new(),
        }],
    };
    step.gate = Gate::Exit;
    let on = [Outcome::Pass, Outcome::Fail(0), Outcome::Fail(0)];
    step.edges.iter_mut().zip(on).for_each(|(edge, on)| edge.on = on);
    step.edges[1].bound = Some(EdgeBound { counter: CounterId(0), max: 2 });
    step.edges[1].remedy = Some(Template { pieces: remedy });
    draft
}
