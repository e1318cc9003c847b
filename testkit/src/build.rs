//! A concise builder of flows.

use std::sync::Arc;

use cuegate_flow::{
    checks::check_draft,
    diagnostics::Span,
    model::{
        Act, Ask, Boundary, CombinedFields, Conduct, Counter, CounterId, Draft, Edge, EdgeBound, Ending,
        FieldPath, Flow, Gate, Handoff, Input, JoinRule, Limits, Monitor, Name, Outcome, OutcomeReader,
        Piece, Report, Role, Schema, SchemaId, SessionRule, Source, Step, Success, Target, Template,
        Validator, Verdict,
    },
};
use serde_json::{Value, json};

/// Builds a flow step by step.
pub struct Builder {
    draft: Draft,
}

fn name(text: &str) -> Name {
    Name::new(text, Span::default())
}

/// A target by its short form: a step, or `@completed`, `@aborted`, `@failed`, `@origin`.
fn target(to: &str) -> Target<Name> {
    match to {
        "@completed" => Target::End(Ending::Completed),
        "@aborted" => Target::End(Ending::Aborted),
        "@failed" => Target::End(Ending::Failed("the definition says so".into())),
        step => Target::Step(name(step)),
    }
}

impl Builder {
    /// A flow of this name whose entry is this step.
    pub fn new(flow: &str, dialect: &'static str, entry: &str) -> Builder {
        let mut draft = Draft::empty(flow, dialect);
        draft.entry = Some(name(entry));
        Builder { draft }
    }

    /// Sets the iteration limit.
    pub fn limit(mut self, iterations_max: u32) -> Builder {
        self.draft.limits = Limits::new(iterations_max);
        self
    }

    /// Completes after this number of iterations.
    pub fn iterations(mut self, max: u32) -> Builder {
        self.draft.verdict = Verdict::Iterations(max);
        self.limit(max)
    }

    /// Completes when this verdict holds.
    pub fn verdict(mut self, verdict: Verdict) -> Builder {
        self.draft.verdict = verdict;
        self
    }

    fn step(mut self, id: &str, counts: bool, act: Act<Name>, gate: Gate<Name>) -> Builder {
        self.draft.steps.push(Step {
            name: id.into(),
            title: id.into(),
            span: Span::default(),
            counts,
            act,
            gate,
            boundary: Boundary::default(),
            handoff: Vec::new(),
            inputs: Vec::new(),
            selectors: Vec::new(),
            when: None,
            edges: Vec::new(),
        });
        self
    }

    /// A step that asks; the `action` of its answer is one of these words, or `none` if no outcome fits.
    pub fn ask(self, id: &str, role: Role, words: &[&str]) -> Builder {
        let counts = role == Role::Work;
        let outcome = |word: &str| match word {
            "none" => Outcome::None,
            word => Outcome::Named(word.into()),
        };
        let words = words.iter().map(|word| ((*word).into(), outcome(word))).collect();
        let path = FieldPath::parse("action").expect("a path");
        let reasons = vec![FieldPath::parse("reason").expect("a path")];
        let gate = Gate::Readers(vec![OutcomeReader::Field { path, words, reasons }]);
        let session = match role {
            Role::Judge => SessionRule::Fresh,
            _ => SessionRule::Continue("run".into()),
        };
        self.step(id, counts, Act::Ask(plain_ask(id, role, session)), gate)
    }

    /// A step that asks and takes any answer as `outcome`.
    pub fn tell(self, id: &str, outcome: &str) -> Builder {
        let ask = plain_ask(id, Role::Work, SessionRule::Continue("run".into()));
        self.step(id, true, Act::Ask(ask), Gate::Always(Outcome::Named(outcome.into())))
    }

    /// A parallel step.
    pub fn all(self, id: &str, members: &[&str], width: u16, rules: Vec<JoinRule>) -> Builder {
        let members = members.iter().map(|member| name(member)).collect();
        self.step(id, true, Act::All { members, width }, Gate::Join { rules, judges: Vec::new() })
    }

    /// A step that runs validators, given as `name: shell command`.
    pub fn exec(self, id: &str, commands: &[&str]) -> Builder {
        let commands = commands
            .iter()
            .map(|command| {
                let (name, command) = command.split_once(": ").expect("name: command");
                Validator {
                    name: name.into(),
                    command: command.into(),
                    success: Success::ExitCode(0),
                    extract: vec![("output".into(), cuegate_flow::model::Extractor::ErrorOutput)],
                    timeout_ms: 10_000,
                    values: Vec::new(),
                }
            })
            .collect();
        self.step(id, false, Act::Exec { commands }, Gate::Exit)
    }

    /// A step that asks a person.
    pub fn person(self, id: &str, question: &str) -> Builder {
        let act = Act::Person { question: Template::text(question) };
        self.step(id, false, act, Gate::Always(Outcome::Named("answered".into())))
    }

    fn last(&mut self) -> &mut Step<Name> {
        self.draft.steps.last_mut().expect("a step comes first")
    }

    /// Adds outcome readers to the last step.
    pub fn reader(mut self, reader: OutcomeReader<Name>) -> Builder {
        if let Gate::Readers(readers) = &mut self.last().gate {
            readers.push(reader);
        }
        self
    }

    /// The last step's answers must fit this schema.
    pub fn schema(mut self, schema: Value) -> Builder {
        self.draft.schemas.push(Schema::new(schema).expect("a schema of a test compiles"));
        let id = SchemaId(self.draft.schemas.len() as u32 - 1);
        if let Act::Ask(ask) = &mut self.last().act {
            ask.schema = Some(id);
        }
        self
    }

    /// The last step's answers are text; this mark means that the agent is blocked.
    pub fn blocked_mark(mut self, mark: &str) -> Builder {
        if let Act::Ask(ask) = &mut self.last().act {
            ask.blocked_mark = Some(mark.into());
        }
        self
    }

    /// The last step's answers are fused: response, reports and outcome; plain text is accepted.
    pub fn fused(mut self, reports: &[&str]) -> Builder {
        let path = |name: &str| FieldPath::parse(name).expect("a path");
        let words: Vec<String> = match &self.last().gate {
            Gate::Readers(readers) => readers
                .iter()
                .filter_map(|reader| match reader {
                    OutcomeReader::Field { words, .. } => {
                        Some(words.iter().map(|(word, _)| word.to_string()))
                    }
                    _ => None,
                })
                .flatten()
                .collect(),
            _ => Vec::new(),
        };
        let fused =
            CombinedFields { response: path("response"), reports: path("reports"), blocked: path("blocked") };
        if let Act::Ask(ask) = &mut self.last().act {
            ask.fused = Some(fused);
        }
        let each: serde_json::Map<String, Value> =
            reports.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        self.owes(reports).schema(json!({
            "type": "object",
            "required": ["action", "response"],
            "properties": {
                "action": {"enum": words},
                "response": {"type": "string"},
                "reports": {"type": "object", "properties": each},
                "blocked": {"type": "string"},
            },
        }))
    }

    /// The last step's answers must contain these reports.
    pub fn owes(mut self, reports: &[&str]) -> Builder {
        let reports = reports
            .iter()
            .map(|name| Report {
                name: (*name).into(),
                request: Template::text(&format!("Write {name}.")),
                span: Span::default(),
            })
            .collect();
        if let Act::Ask(ask) = &mut self.last().act {
            ask.reports = reports;
        }
        self
    }

    /// Adds this text to the last step's prompt.
    pub fn reads(mut self, label: &str, source: Source) -> Builder {
        if let Act::Ask(ask) = &mut self.last().act {
            ask.prompt.pieces.push(Piece::Text(format!("{label}=").into()));
            ask.prompt.pieces.push(Piece::Value(source));
            ask.prompt.pieces.push(Piece::Text("; ".into()));
        }
        self
    }

    /// Adds a heading and this value to the last step's prompt, if the value is not empty.
    pub fn filled(mut self, heading: &str, source: Source) -> Builder {
        let body = vec![Piece::Text(heading.into()), Piece::Value(source.clone())];
        if let Act::Ask(ask) = &mut self.last().act {
            ask.prompt.pieces.push(Piece::Filled { source, body });
        }
        self
    }

    /// Sets the session of the last step.
    pub fn session(mut self, rule: SessionRule) -> Builder {
        if let Act::Ask(ask) = &mut self.last().act {
            ask.session = rule;
        }
        self
    }

    /// Sets the judge that decides if no rule of the last, parallel step matches.
    pub fn or_judge(mut self, judge: &str) -> Builder {
        if let Gate::Join { judges, .. } = &mut self.last().gate {
            judges.push(name(judge));
        }
        self
    }

    /// Makes the last step read-only.
    pub fn read_only(mut self) -> Builder {
        self.last().boundary.permission = cuegate_flow::model::Permission::Plan;
        self
    }

    /// Adds a handoff field to the last step.
    pub fn leaves(mut self, key: &str) -> Builder {
        let path = FieldPath::parse(key).expect("a path");
        self.last().handoff.push(Handoff::new(key, path, Span::default()));
        self
    }

    /// Adds a required input to the last step.
    pub fn needs(mut self, step: &str, key: &str) -> Builder {
        self.last().inputs.push(Input {
            name: key.into(),
            step: step.into(),
            key: key.into(),
            required: true,
            default: None,
            span: Span::default(),
        });
        let piece = Piece::Value(Source::Input(key.into()));
        if let Act::Ask(ask) = &mut self.last().act {
            ask.prompt.pieces.push(piece);
        }
        self
    }

    /// An edge of the last step.
    pub fn to(self, on: &str, to: &str) -> Builder {
        self.edge(on, target(to), |_| {})
    }

    /// An edge of the last step that sets the target's origin.
    pub fn hands_off(self, on: &str, to: &str) -> Builder {
        self.edge(on, target(to), |edge| edge.hands_off = true)
    }

    /// A bounded edge of the last step; its counter is created on first use.
    pub fn bounded(mut self, on: &str, to: &str, counter: &str, max: u32) -> Builder {
        let counter = self.counter(counter);
        self.edge(on, target(to), |edge| edge.bound = Some(EdgeBound { counter, max }))
    }

    /// A bounded edge that continues the same visit.
    pub fn bounded_again(mut self, on: &str, to: &str, counter: &str, max: u32) -> Builder {
        let counter = self.counter(counter);
        self.edge(on, target(to), |edge| {
            edge.bound = Some(EdgeBound { counter, max });
            edge.again = true;
        })
    }

    /// A bounded edge on an unnamed outcome that continues the same visit.
    pub fn bounded_on(mut self, on: Outcome, to: &str, counter: &str, max: u32) -> Builder {
        let counter = self.counter(counter);
        let mut edge = Edge::new(on, target(to), Span::default());
        edge.bound = Some(EdgeBound { counter, max });
        edge.again = true;
        self.last().edges.push(edge);
        self
    }

    /// The last edge resets these counters.
    pub fn resets(mut self, counters: &[&str]) -> Builder {
        let ids: Vec<CounterId> = counters.iter().map(|name| self.counter(name)).collect();
        self.last().edges.last_mut().expect("an edge comes first").resets = ids;
        self
    }

    /// A bounded remedy edge back to the origin, with its own prompt.
    pub fn remedy(mut self, on: Outcome, among: &[&str], counter: &str, max: u32) -> Builder {
        let counter = self.counter(counter);
        let to = Target::Origin { among: among.iter().map(|step| name(step)).collect() };
        let mut edge = Edge::new(on, to, Span::default());
        edge.bound = Some(EdgeBound { counter, max });
        let pieces = vec![Piece::Text("Mend this:\n".into()), Piece::Failure("output".into())];
        edge.remedy = Some(Template { pieces });
        self.last().edges.push(edge);
        self
    }

    /// An edge on an unnamed outcome.
    pub fn on(mut self, on: Outcome, to: &str) -> Builder {
        self.last().edges.push(Edge::new(on, target(to), Span::default()));
        self
    }

    /// An edge of the last step.
    pub fn edge(mut self, on: &str, to: Target<Name>, change: impl FnOnce(&mut Edge<Name>)) -> Builder {
        let mut edge = Edge::new(Outcome::Named(on.into()), to, Span::default());
        change(&mut edge);
        self.last().edges.push(edge);
        self
    }

    /// Adds a loop monitor.
    pub fn monitor(mut self, cycle: &[&str], threshold: u32, judge: &str) -> Builder {
        self.draft.monitors.push(Monitor {
            name: format!("monitor:{}", cycle.join("+")).into(),
            cycle: cycle.iter().map(|step| vec![name(step)]).collect(),
            ignored: Vec::new(),
            threshold,
            judge: name(judge),
            span: Span::default(),
        });
        self
    }

    fn counter(&mut self, counter: &str) -> CounterId {
        let at = self.draft.counters.iter().position(|known| *known.name == *counter);
        CounterId(at.unwrap_or_else(|| {
            self.draft.counters.push(Counter { name: counter.into() });
            self.draft.counters.len() - 1
        }) as u32)
    }

    /// Sets the options of the whole run.
    pub fn conduct(mut self, conduct: Conduct) -> Builder {
        self.draft.conduct = conduct;
        self
    }

    /// The draft so far.
    pub fn draft(self) -> Draft {
        self.draft
    }

    /// The checked flow.
    ///
    /// # Panics
    /// When the flow has errors.
    pub fn flow(self) -> Arc<Flow> {
        let checked = check_draft(self.draft);
        Arc::new(checked.flow.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics)))
    }
}

fn plain_ask(id: &str, role: Role, session: SessionRule) -> Ask {
    Ask {
        role,
        prompt: Template::text(&format!("Do {id}. ")),
        system: None,
        schema: None,
        model: None,
        later_models: Vec::new(),
        agent_keys: Default::default(),
        persona: None,
        persona_names: Vec::new(),
        session,
        reports: Vec::new(),
        fused: None,
        blocked_mark: None,
        delay_ms: 0,
        guard: None,
    }
}
