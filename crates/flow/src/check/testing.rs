//! Builds small drafts from a line a step: `name: outcome → target, outcome → target`; `end` completes.

use super::check;
use crate::*;

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
                persona: None,
                persona_names: Vec::new(),
                session: SessionRule::Fresh,
                reports: Vec::new(),
                fused: None,
                blocked_mark: None,
                guard: None,
            }),
            gate: Gate::Readers(vec![Reader::Field {
                path: FieldPath::parse("action").unwrap(),
                words,
                reasons: Vec::new(),
            }]),
            boundary: Boundary::default(),
            handoff: Vec::new(),
            inputs: Vec::new(),
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
    draft.steps[step].handoff.push(Handoff { key: key.into(), path, span: Span::default() });
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
    check(draft).diagnostics
}

pub(crate) fn codes_of(draft: Draft) -> Vec<&'static str> {
    findings_of(draft).into_iter().map(|finding| finding.code).collect()
}
