//! Stand-in agents: one that follows its instructions, and several that fail, each in its own way.

use cuegate_engine::{Answer, AskCommand, Fault, FaultClass, TreeChange, Usage};
use cuegate_flow::model::{FieldPath, Gate, OutcomeReader, Selector, Target};
use serde_json::{Value, json};

use super::{fake_world::FakeWorld, set_path::set_value_at_path, strategy::SteeringAim};

/// A stand-in agent: one that obeys, and others that each misbehave in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Follows its instructions and covers every transition.
    Obedient,
    /// Answers with invalid JSON.
    Malformed,
    /// Wraps its JSON in prose.
    Prose,
    /// Names a wrong step, or an outcome or target that does not exist.
    WrongStep,
    /// Omits fields.
    MissingFields,
    /// Claims success when validators fail, and writes outside its permission.
    Liar,
    /// Never answers.
    Staller,
    /// Hits its rate limit.
    RateLimited,
    /// Stops in the middle of its answer.
    Truncated,
    /// Refuses, is blocked, or asks a question.
    Refusing,
    /// Picks one of these and other failures at random.
    Random,
}

/// The result of an ask.
pub(super) enum Reply {
    /// An answer, and the files that changed during the ask.
    Said(Box<Answer>, Option<TreeChange>),
    /// An error instead of an answer.
    Fault(Fault),
}

impl Agent {
    /// All agents.
    pub const ALL: [Agent; 11] = [
        Agent::Obedient,
        Agent::Malformed,
        Agent::Prose,
        Agent::WrongStep,
        Agent::MissingFields,
        Agent::Liar,
        Agent::Staller,
        Agent::RateLimited,
        Agent::Truncated,
        Agent::Refusing,
        Agent::Random,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Agent::Obedient => "obedient",
            Agent::Malformed => "malformed",
            Agent::Prose => "prose",
            Agent::WrongStep => "wrong-step",
            Agent::MissingFields => "missing-fields",
            Agent::Liar => "liar",
            Agent::Staller => "staller",
            Agent::RateLimited => "rate-limited",
            Agent::Truncated => "truncated",
            Agent::Refusing => "refusing",
            Agent::Random => "random",
        }
    }

    /// Finds an agent by its name on the command line.
    pub fn named(name: &str) -> Option<Agent> {
        Agent::ALL.into_iter().find(|agent| agent.as_str() == name)
    }

    pub(super) fn reply(self, desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
        let itself = self != Agent::Obedient && desk.is_itself();
        if !itself {
            return Reply::Said(desk.obey(ask), None);
        }
        match self {
            Agent::Obedient => Reply::Said(desk.obey(ask), None),
            Agent::Malformed => reply_with_malformed_json(desk, ask),
            Agent::Prose => reply_with_prose(desk, ask),
            Agent::WrongStep => wrong_step(desk, ask),
            Agent::MissingFields => missing_fields(desk, ask),
            Agent::Liar => reply_with_lie(desk, ask),
            Agent::Staller => reply_with_timeout(desk),
            Agent::RateLimited => rate_limited(desk),
            Agent::Truncated => reply_with_truncation(desk, ask),
            Agent::Refusing => reply_with_refusal(desk, ask),
            Agent::Random => reply_with_random_failure(desk, ask),
        }
    }
}

/// The obedient answer as text.
fn as_text(answer: &Answer) -> String {
    match &answer.output {
        Some(output) => output.to_string(),
        None => answer.text.clone(),
    }
}

fn reply_with_malformed_json(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let mut answer = desk.obey(ask);
    let text = as_text(&answer);
    answer.output = None;
    answer.text = match desk.asked % 3 {
        // An extra comma and quote, a bare word, single quotes.
        0 => "{\"action\": \"next\",, \"stepId\"\"}".to_owned(),
        1 => format!("{{ next_action: {{ action: next }} /* {} */", text.len()),
        _ => "{'stepId': 'x', 'status': done".to_owned(),
    };
    Reply::Said(answer, None)
}

fn reply_with_prose(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let mut answer = desk.obey(ask);
    if let Some(output) = answer.output.take() {
        answer.text = match desk.asked % 2 {
            0 => format!(
                "Sure! I looked at all of it {{ twice }}.\n\n```json\n{output}\n```\n\nAnything else?"
            ),
            _ => format!("Here is what I came to: {output} Let me know."),
        };
    } else {
        answer.text = format!("Sure!\n\n{}\n\nThat is all.", answer.text);
    }
    Reply::Said(answer, None)
}

fn wrong_step(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let mut answer = desk.obey(ask);
    let flow = desk.flow.clone();
    let step = flow.find(&ask.step).map(|id| flow.step(id));
    let outcomes = step.map(|step| match &step.gate {
        Gate::Readers(readers) => readers.iter().filter_map(field_of_reader).collect(),
        _ => Vec::new(),
    });
    let mut output = answer.output.take().unwrap_or_else(|| json!({}));
    let targets = step.into_iter().flat_map(|step| &step.edges).filter_map(|edge| field_of_target(&edge.to));
    let targets: Vec<&FieldPath> = targets.filter(|path| path.get(&output).is_some()).collect();
    let mut wrong: Vec<(Vec<&FieldPath>, &str)> = vec![(outcomes.unwrap_or_default(), "no-such-outcome")];
    if !targets.is_empty() {
        wrong.push((targets, "no-such-target"));
    }
    let step_id = FieldPath::parse("stepId");
    wrong.extend(
        step_id.iter().filter(|path| path.get(&output).is_some()).map(|path| (vec![path], "no-such-step")),
    );
    // Uses one field after another that the answer contains.
    let (paths, word) = &wrong[desk.asked as usize % wrong.len()];
    paths.iter().for_each(|path| set_value_at_path(&mut output, path, json!(word)));
    answer.text = format!("[{}:99]", ask.step);
    answer.output = Some(output);
    Reply::Said(answer, None)
}

/// The answer field that names the target of an edge.
fn field_of_target<R>(to: &Target<R>) -> Option<&FieldPath> {
    match to {
        Target::Jump { field, .. } => field.as_ref(),
        Target::Select { by: Selector::Field(path), .. } => Some(path),
        _ => None,
    }
}

fn field_of_reader<R>(reader: &OutcomeReader<R>) -> Option<&FieldPath> {
    match reader {
        OutcomeReader::Field { path, .. } => Some(path),
        _ => None,
    }
}

fn missing_fields(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let mut answer = desk.obey(ask);
    let owed = required_fields_of_ask(desk, ask);
    match &mut answer.output {
        Some(Value::Object(fields)) if !fields.is_empty() => {
            let there: Vec<String> = fields.keys().filter(|name| owed.contains(name)).cloned().collect();
            let names = if there.is_empty() { fields.keys().cloned().collect() } else { there };
            if let Some(name) = names.get(desk.asked as usize % names.len()) {
                fields.remove(name);
            }
        }
        _ => (answer.output, answer.text) = (Some(json!({})), String::new()),
    }
    Reply::Said(answer, None)
}

/// The fields that an answer needs: those that its gate reads, and those that its schema requires.
fn required_fields_of_ask(desk: &FakeWorld, ask: &AskCommand) -> Vec<String> {
    let flow = &desk.flow;
    let readers = match flow.find(&ask.step).map(|id| &flow.step(id).gate) {
        Some(Gate::Readers(readers)) => readers.as_slice(),
        _ => &[],
    };
    let read = readers.iter().filter_map(field_of_reader).filter_map(|path| path.segments().first());
    let required = ask.schema.and_then(|schema| flow.schema(schema).value().get("required")?.as_array());
    let required = required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    read.map(ToString::to_string).chain(required).collect()
}

fn reply_with_lie(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    desk.steering.set(SteeringAim::Complete);
    let mut answer = desk.obey(ask);
    answer.text.push_str("\nAll tests pass, everything is committed and done.");
    let writes = !desk.always && !ask.boundary.permission.may_write() && desk.dice.one_in(2);
    let changed = vec!["src/simulated.rs".to_owned()];
    Reply::Said(answer, writes.then(|| TreeChange { changed, ..TreeChange::default() }))
}

fn reply_with_fault(class: FaultClass, resets_in_ms: Option<u64>) -> Reply {
    Reply::Fault(Fault {
        class,
        message: "as simulated".to_owned(),
        resets_in_ms,
        usage: Usage { input_tokens: 100, ..Usage::default() },
        usage_unknown: class == FaultClass::Timeout,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    })
}

fn reply_with_timeout(desk: &mut FakeWorld) -> Reply {
    desk.clock.pass(60 * 60 * 1000);
    reply_with_fault(FaultClass::Timeout, None)
}

fn rate_limited(desk: &mut FakeWorld) -> Reply {
    let class = if desk.asked % 3 == 2 { FaultClass::Overloaded } else { FaultClass::RateLimited };
    reply_with_fault(class, desk.dice.one_in(2).then_some(15_000))
}

fn reply_with_truncation(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    if desk.asked % 3 == 2 {
        return reply_with_fault(FaultClass::Malformed, None);
    }
    let mut answer = desk.obey(ask);
    let text = as_text(&answer);
    let at = desk.dice.below(text.len().max(1));
    answer.output = None;
    answer.text = text[..text.floor_char_boundary(at)].to_owned();
    Reply::Said(answer, None)
}

fn reply_with_refusal(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let mut answer = desk.obey(ask);
    match desk.dice.below(4) {
        0 => return reply_with_fault(FaultClass::Refused, None),
        1 => answer.blocked = Some("I have no access, as simulated".to_owned()),
        2 => answer.asks_person = Some("Which one, as simulated?".to_owned()),
        _ => (answer.output, answer.text) = (None, "I cannot help with that.".to_owned()),
    }
    Reply::Said(answer, None)
}

fn reply_with_random_failure(desk: &mut FakeWorld, ask: &AskCommand) -> Reply {
    let classes = [
        FaultClass::Crashed,
        FaultClass::Auth,
        FaultClass::ContextOverflow,
        FaultClass::OverCap,
        FaultClass::UnknownModel,
        FaultClass::MissingProgram,
        FaultClass::ScriptExhausted,
        FaultClass::Violation,
    ];
    let outputs =
        [json!({}), json!({"outcome": null}), json!({"a": {"b": [[{"c": 1e300}]]}}), json!([1]), json!("x")];
    match desk.dice.below(16) {
        0 => reply_with_malformed_json(desk, ask),
        1 => reply_with_prose(desk, ask),
        2 => wrong_step(desk, ask),
        3 => missing_fields(desk, ask),
        4 => reply_with_lie(desk, ask),
        5 => reply_with_timeout(desk),
        6 => rate_limited(desk),
        7 => reply_with_truncation(desk, ask),
        8 => reply_with_refusal(desk, ask),
        9 => match desk.dice.pick(&classes) {
            Some(class) => reply_with_fault(*class, None),
            None => reply_with_timeout(desk),
        },
        10 => {
            let mut answer = desk.obey(ask);
            answer.output = desk.dice.pick(&outputs).cloned();
            Reply::Said(answer, None)
        }
        11 => {
            let mut answer = desk.obey(ask);
            answer.usage = Usage { input_tokens: 90_000_000, output_tokens: 1, ..Usage::default() };
            Reply::Said(answer, None)
        }
        _ => Reply::Said(desk.obey(ask), None),
    }
}
