//! Small flows around a case, checked as by `check` and driven as by `run`.

use std::collections::BTreeMap;

use cuegate_engine::{
    Answer, Command, Completion, Decision, EndState, Event, Run, RunStarted, Start, State, decide,
    list_pending_commands,
};
use cuegate_flow::{
    checks::check_draft,
    diagnostics::{Severity, Span},
    model::{
        Act, Ask, BlobRef, Boundary, Draft, Edge, Ending, Flow, Gate, Input, Limits, Name, Outcome, Role,
        SessionRule, Step, Target, Template, Verdict,
    },
};
use cuegate_formats::LoweredGate;
use serde_json::Value;

/// More iterations than any case has.
const ITERATIONS_MAX: u32 = 1_000;

/// A step that asks an agent.
pub(super) fn step(name: &str, gate: LoweredGate, inputs: Vec<Input>) -> Step<Name> {
    let LoweredGate { gate, handoff, edges } = gate;
    Step {
        name: name.into(),
        title: name.into(),
        span: Span::default(),
        counts: true,
        act: Act::Ask(Ask {
            agent_keys: Default::default(),
            role: Role::Work,
            prompt: Template::text("a case"),
            system: None,
            schema: None,
            model: None,
            later_models: Vec::new(),
            persona: None,
            persona_names: Vec::new(),
            session: SessionRule::Fresh,
            reports: Vec::new(),
            fused: None,
            blocked_mark: None,
            delay_ms: 0,
            guard: None,
        }),
        gate,
        boundary: Boundary::default(),
        handoff,
        inputs,
        selectors: Vec::new(),
        when: None,
        edges,
    }
}

/// A gate that leads to the same target for every answer: a step, or `@completed`.
pub(super) fn straight(next: Option<&str>) -> LoweredGate {
    let on = Outcome::Named("on".into());
    let to = match next {
        Some(name) => Target::Step(Name::new(name, Span::default())),
        None => Target::End(Ending::Completed),
    };
    LoweredGate {
        gate: Gate::Always(on.clone()),
        handoff: Vec::new(),
        edges: vec![Edge::new(on, to, Span::default())],
    }
}

/// A checked flow of these steps. The error lists the findings.
pub(super) fn flow(entry: Option<&str>, steps: Vec<Step<Name>>) -> Result<Flow, String> {
    let checked = check_draft(Draft {
        entry: entry.map(|name| Name::new(name, Span::default())),
        steps,
        // A counting verdict, so that a case does not need its own path to an end.
        verdict: Verdict::Iterations(ITERATIONS_MAX),
        limits: Limits::new(ITERATIONS_MAX),
        ..Draft::empty("case", "registry-closing")
    });
    checked.flow.ok_or_else(|| {
        let errors = checked.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
    })
}

/// A run of a flow, with its stored texts.
pub(super) struct World {
    /// The flow.
    pub(super) flow: Flow,
    /// The run.
    pub(super) run: Run,
    /// The events of the last completion.
    pub(super) events: Vec<Event>,
    kept: BTreeMap<BlobRef, String>,
}

impl World {
    /// Starts a run. An unusable answer is not repaired, because the original program asks once.
    pub(super) fn begin(flow: Flow) -> World {
        let started = RunStarted {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            flow: flow.name.clone(),
            dialect: flow.dialect.to_owned(),
            path: "case".to_owned(),
            provider: "recorded".to_owned(),
            iterations_max: ITERATIONS_MAX,
            ..RunStarted::default()
        };
        let mut world = World { flow, run: Run::default(), events: Vec::new(), kept: BTreeMap::new() };
        world.complete(Completion::Start(Box::new(Start { started })));
        world
    }

    /// Answers the current step.
    pub(super) fn answer(&mut self, output: &Value) -> Result<(), String> {
        let Some(Command::Ask(ask)) = list_pending_commands(&self.flow, &self.run).into_iter().next() else {
            return Err("nobody is asked".to_owned());
        };
        let answer = Box::new(Answer { output: Some(output.clone()), ..Answer::default() });
        self.complete(Completion::Answered { ask: ask.id, answer, seen: None });
        Ok(())
    }

    fn complete(&mut self, completion: Completion) {
        let Decision { events, blobs } = decide(&self.flow, &self.run, 0, completion);
        for blob in blobs {
            self.kept.insert(BlobRef::for_bytes(&blob), String::from_utf8_lossy(&blob).into_owned());
        }
        self.run.apply_record(&events);
        self.events = events;
    }

    /// A stored text.
    pub(super) fn text(&self, blob: &BlobRef) -> &str {
        self.kept.get(blob).map_or("", String::as_str)
    }

    /// The current step.
    pub(super) fn stands_on(&self) -> Option<&str> {
        self.run.progress.node.as_ref().map(|node| &*node.step)
    }

    /// How and why the run ended.
    pub(super) fn ended(&self) -> Option<(EndState, &str)> {
        match &self.run.state {
            State::Ended { state, reason, .. } => Some((*state, reason)),
            _ => None,
        }
    }
}
