//! A small agent of either generation, changed a little and driven: what was asked, with what, and where that led.

use std::collections::BTreeMap;

use cuegate_engine::{
    Answer, AskCommand, Command, Completion, EndState, Event, ExecResult, Exit, ProbeResult, PromptPart, Run,
    Start, State, decide, list_pending_commands,
};
use cuegate_flow::{
    checks::check_draft,
    diagnostics::Severity,
    model::{BlobRef, Flow},
};
use cuegate_formats::{AgentOptions, Generation, load_agent};
use cuegate_testkit::world::started;
use serde_json::{Map, Value, json};

use crate::support::{Project, findings_of};

/// The folder of the small agent.
pub const DIR: &str = ".agent/small";

/// An agent of three steps: `initial.fix`, `continuation.fix` and the one that ends the run.
#[derive(Clone)]
pub struct Small {
    generation: Generation,
    agent: Value,
    registry: Value,
    schemas: Map<String, Value>,
    files: Project,
    given: Vec<(String, String)>,
    task: Option<String>,
}

/// The small agent of a generation.
pub fn small(generation: Generation) -> Small {
    let agent = json!({
        "version": "1.0.0", "name": "small", "displayName": "Small", "description": "Of a test",
        "runner": {
            "flow": {"systemPromptPath": "prompts/system.md"},
            "verdict": {"type": "detect:graph"},
            "boundaries": {"permissionMode": "acceptEdits"}
        }
    });
    let registry = json!({
        "agentId": "small", "version": "1.0.0", "c1": "steps", "entryStep": "initial.fix", "steps": {}
    });
    let files = Project::from([(format!("{DIR}/prompts/system.md"), b"You fix things.".to_vec())]);
    let small =
        Small { generation, agent, registry, schemas: Map::new(), files, given: Vec::new(), task: None };
    let end = small.end();
    let to_end = if generation == Generation::Complete { "complete" } else { "handoff" };
    small
        .step(
            "initial.fix",
            json!({"next": {"target": "continuation.fix"}, "repeat": {"target": "initial.fix"}}),
        )
        .step(
            "continuation.fix",
            json!({"next": {"target": "continuation.fix"}, "repeat": {"target": "continuation.fix"},
                to_end: {"target": end}}),
        )
        .step(end, json!({small_ending(generation): {"target": null}, "repeat": {"target": end}}))
}

/// The intent that ends a run of a generation.
fn small_ending(generation: Generation) -> &'static str {
    if generation == Generation::Complete { "complete" } else { "closing" }
}

/// Puts an object into another one, level by level; `null` takes a key away.
pub fn put(into: &mut Value, what: Value) {
    let Value::Object(what) = what else {
        *into = what;
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in what {
        match value {
            Value::Null => drop(into.as_object_mut().unwrap().shift_remove(&key)),
            value => put(&mut into[&key], value),
        }
    }
}

impl Small {
    /// The step that ends the run.
    pub fn end(&self) -> &'static str {
        if self.generation == Generation::Complete { "complete.fix" } else { "closure.fix" }
    }

    /// The intent that leads to it, and the one that ends the run there.
    pub fn ending(&self) -> (&'static str, &'static str) {
        let to_end = if self.generation == Generation::Complete { "complete" } else { "handoff" };
        (to_end, small_ending(self.generation))
    }

    /// Adds a step that may decide what it has transitions for, with a prompt and a schema.
    pub fn step(mut self, id: &str, transitions: Value) -> Small {
        let (c2, c3) = id.split_once('.').unwrap();
        let intents: Vec<&String> = transitions.as_object().unwrap().keys().collect();
        let action = json!({"type": "string", "enum": intents});
        let next = json!({"type": "object", "required": ["action"], "properties": {"action": action}});
        let schema = json!({"type": "object", "properties": {"next_action": next}});
        self.schemas.insert(id.to_owned(), schema);
        let mut gate = json!({"allowedIntents": intents, "intentField": "next_action.action"});
        if self.generation == Generation::Closing {
            gate["intentSchemaRef"] = json!("#/properties/next_action/properties/action");
        }
        self.registry["steps"][id] = json!({
            "stepId": id, "name": id, "c2": c2, "c3": c3,
            "outputSchemaRef": {"file": "all.json", "schema": id},
            "structuredGate": gate, "transitions": transitions
        });
        self.prompt(id, &format!("Do {id}."))
    }

    /// Puts more into a step; `null` takes a key away.
    pub fn with(mut self, step: &str, more: Value) -> Small {
        put(&mut self.registry["steps"][step], more);
        self
    }

    /// Puts more into the registry.
    pub fn registry(mut self, more: Value) -> Small {
        put(&mut self.registry, more);
        self
    }

    /// Puts more into `agent.json`.
    pub fn agent(mut self, more: Value) -> Small {
        put(&mut self.agent, more);
        self
    }

    /// Puts more into `runner` of `agent.json`.
    pub fn runner(self, more: Value) -> Small {
        self.agent(json!({ "runner": more }))
    }

    /// Gives it another verdict.
    pub fn verdict(mut self, kind: &str, config: Value) -> Small {
        self.agent["runner"]["verdict"] = json!({"type": kind, "config": config});
        self
    }

    /// Puts more properties into a step's schema.
    pub fn field(mut self, step: &str, more: Value) -> Small {
        put(&mut self.schemas[step]["properties"], more);
        self
    }

    /// Puts more into a step's schema as a whole.
    pub fn schema(mut self, step: &str, more: Value) -> Small {
        put(&mut self.schemas[step], more);
        self
    }

    /// Writes the prompt of a step where it is looked for when nothing says otherwise.
    pub fn prompt(self, step: &str, text: &str) -> Small {
        let (c2, c3) = step.split_once('.').unwrap();
        self.file(&format!("prompts/steps/{c2}/{c3}/f_default.md"), text)
    }

    /// Writes a file into its folder.
    pub fn file(mut self, path: &str, text: &str) -> Small {
        self.files.insert(format!("{DIR}/{path}"), text.as_bytes().to_vec());
        self
    }

    /// Takes a file out of its folder.
    pub fn without(mut self, path: &str) -> Small {
        assert!(self.files.remove(&format!("{DIR}/{path}")).is_some(), "{path}");
        self
    }

    /// Declares a text that is given at start, and gives it.
    pub fn given(mut self, name: &str, value: &str) -> Small {
        let declared = json!({"type": "string", "description": "Of a test", "required": true, "cli": format!("--{name}")});
        self.given.push((name.to_owned(), value.to_owned()));
        self.agent(json!({"parameters": {name: declared}}))
    }

    /// Gives it a task.
    pub fn task(mut self, task: &str) -> Small {
        self.task = Some(task.to_owned());
        self
    }

    /// Guards the end: a command that fails asks for a remedy, whose prompt is this.
    pub fn validator(self, validator: Value, prompt: &str) -> Small {
        let end = self.end();
        let condition = json!([{"validator": "proof"}]);
        let mut all = json!({"validators": {"proof": {
            "type": "command", "command": "prove", "successWhen": "exitCode:0", "failurePattern": "unproven"
        }}});
        let pattern = json!({"description": "Not proven", "edition": "failed", "adaptation": "unproven"});
        if self.generation == Generation::Complete {
            all["completionPatterns"] = json!({ "unproven": pattern });
            all["completionSteps"] = json!({end: {"stepId": end, "c2": "retry", "c3": "fix",
                "completionConditions": condition, "onFailure": {"action": "retry"}}});
        } else {
            all["failurePatterns"] = json!({ "unproven": pattern });
            all["validationSteps"] = json!({end: {"stepId": end, "name": "Proof", "c2": "retry", "c3": "fix",
                "validationConditions": condition}});
        }
        put(&mut all["validators"]["proof"], validator);
        self.registry(all).file("prompts/steps/retry/fix/f_failed_unproven.md", prompt)
    }

    /// All of its files.
    pub fn files(&self) -> Project {
        let mut files = self.files.clone();
        let mut add = |path: &str, value: &Value| {
            files.entry(format!("{DIR}/{path}")).or_insert_with(|| value.to_string().into_bytes());
        };
        add("agent.json", &self.agent);
        let registry = self.agent["runner"]["flow"]["prompts"]["registry"].as_str();
        add(registry.unwrap_or("steps_registry.json"), &self.registry);
        add("schemas/all.json", &json!({"definitions": self.schemas}));
        files
    }

    /// What is found in it.
    pub fn findings(&self) -> String {
        findings_of(load_agent(
            &self.files(),
            &AgentOptions { agent_dir: DIR.to_owned(), ..AgentOptions::default() },
        ))
    }

    /// Begins a run of it.
    pub fn drive(&self) -> Drive {
        let given: Vec<(&str, &str)> =
            self.given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = AgentOptions { agent_dir: DIR.to_owned(), ..AgentOptions::default() };
        Drive::start(&self.files(), &options, &given, self.task.as_deref())
    }
}

/// Who is asked, with what.
#[derive(Debug)]
pub struct Asked {
    pub ask: AskCommand,
    pub prompt: String,
    pub system: String,
}

/// A run that is told what happens.
pub struct Drive {
    pub flow: Flow,
    run: Run,
    now: i64,
    blobs: BTreeMap<String, Vec<u8>>,
    pub events: Vec<Event>,
}

impl Drive {
    /// Loads and checks an agent, and begins a run of it.
    pub fn start(
        files: &Project,
        options: &AgentOptions,
        given: &[(&str, &str)],
        task: Option<&str>,
    ) -> Drive {
        let loaded = load_agent(files, options);
        let wrong: Vec<_> =
            loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let checked = check_draft(loaded.draft);
        let flow = checked.flow.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
        let mut start = started(&flow);
        let mut blobs = BTreeMap::new();
        let mut keep = |text: &str| {
            let blob = BlobRef::for_bytes(text.as_bytes());
            blobs.insert(blob.digest.clone(), text.as_bytes().to_vec());
            blob
        };
        start.params.extend(given.iter().map(|(name, value)| ((*name).into(), keep(value))));
        start.task = task.map(&mut keep);
        let mut drive = Drive { flow, run: Run::default(), now: 1_000, blobs, events: Vec::new() };
        drive.complete(Completion::Start(Box::new(Start { started: start })));
        drive
    }

    fn complete(&mut self, completion: Completion) {
        self.now += 7;
        let decision = decide(&self.flow, &self.run, self.now, completion);
        assert!(!decision.events.is_empty(), "nothing followed");
        self.run.apply_record(&decision.events);
        self.events.extend(decision.events);
        for bytes in decision.blobs {
            self.blobs.insert(BlobRef::for_bytes(&bytes).digest, bytes);
        }
    }

    /// The one ask that is pending.
    pub fn asked(&self) -> Asked {
        match &list_pending_commands(&self.flow, &self.run)[..] {
            [Command::Ask(ask)] => {
                Asked { prompt: self.text(&ask.prompt), system: self.text(&ask.system), ask: (**ask).clone() }
            }
            other => panic!("no ask: {other:?}, {:?}", self.run.state),
        }
    }

    fn text(&self, parts: &[PromptPart]) -> String {
        let part = |part: &PromptPart| match part {
            PromptPart::Text(text) => text.to_string(),
            PromptPart::Blob { blob, .. } => String::from_utf8(self.blobs[&blob.digest].clone()).unwrap(),
        };
        parts.iter().map(part).collect()
    }

    /// Who is asked.
    pub fn step(&self) -> String {
        self.asked().ask.step.to_string()
    }

    /// What is asked.
    pub fn prompt(&self) -> String {
        self.asked().prompt
    }

    /// An answer with this intent.
    pub fn say(&mut self, intent: &str) -> &mut Drive {
        self.say_with(intent, json!({}))
    }

    /// The same, with more in it.
    pub fn say_with(&mut self, intent: &str, more: Value) -> &mut Drive {
        let mut output = json!({"next_action": {"action": intent}});
        put(&mut output, more);
        self.output(output)
    }

    /// An answer.
    pub fn output(&mut self, output: Value) -> &mut Drive {
        self.answer(Answer { output: Some(output), ..Answer::default() })
    }

    /// An answer, and all there is about it.
    pub fn answer(&mut self, answer: Answer) -> &mut Drive {
        let ask = self.asked().ask.id;
        self.complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        self
    }

    /// The command that is pending ends so.
    pub fn exec(&mut self, code: i32, stdout: &str, stderr: &str) -> &mut Drive {
        let pending = list_pending_commands(&self.flow, &self.run);
        let [Command::Exec(exec)] = &pending[..] else { panic!("no command: {pending:?}") };
        let (id, stdout, stderr) = (exec.id, stdout.to_owned(), stderr.to_owned());
        let exec = ExecResult { exit: Exit::Code(code), stdout, stderr, duration_ms: 1 };
        self.complete(Completion::Executed { id, exec, seen: None });
        self
    }

    /// The model that is asked: the step's, else the flow's.
    pub fn model(&self) -> Option<String> {
        let own = self.asked().ask.model;
        own.or_else(|| self.flow.default_model.clone()).map(|model| model.to_string())
    }

    /// What the verdict looks at is like this.
    pub fn look(&mut self, holds: bool) -> &mut Drive {
        let pending = list_pending_commands(&self.flow, &self.run);
        let [Command::Probe(probe)] = &pending[..] else { panic!("no look: {pending:?}") };
        let look = ProbeResult { holds, said: "seen".to_owned(), ..ProbeResult::default() };
        self.complete(Completion::Probed { id: probe.id, look });
        self
    }

    /// Whether a command is pending.
    pub fn command(&self) -> Option<String> {
        match &list_pending_commands(&self.flow, &self.run)[..] {
            [Command::Exec(exec)] => Some(exec.validator.command.to_string()),
            _ => None,
        }
    }

    /// How it ended, and why.
    pub fn end(&self) -> Option<(EndState, String)> {
        match &self.run.state {
            State::Ended { state, reason, .. } => Some((*state, reason.to_string())),
            _ => None,
        }
    }

    /// Where the visits led, `from → to` each.
    pub fn way(&self) -> Vec<String> {
        let ended = self.events.iter().filter_map(|event| match event {
            Event::VisitEnded { step, end, .. } => {
                Some(format!("{step} → {}", end.target.as_deref().unwrap_or("?")))
            }
            _ => None,
        });
        ended.collect()
    }

    /// How often an answer was rejected.
    pub fn rejected(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::AnswerRejected { .. })).count()
    }
}
