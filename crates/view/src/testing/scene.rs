//! A run with scripted completions. Each one passes through the engine and the journal's format.

use std::collections::BTreeMap;

use cuegate_engine::{
    Answer, Budget, Command, CommandId, Completion, EffectResult, ExecResult, Exit, Fault, FaultClass,
    ProbeResult, ReadResult, Record, ResumeSettings, Run, RunStarted, Start, TreeChange, TreeState, Usage,
    decide, list_pending_commands,
};
use cuegate_flow::model::{BlobRef, Flow};
use serde_json::{Value, json};

use crate::{
    stamped::StampedRecord,
    summary::{Liveness, RunView, run_view},
};

/// 2026-11-21 12:00:00 UTC.
pub(crate) const START_MS: i64 = 1_795_262_400_000;

pub(crate) struct Scene {
    pub(crate) flow: Flow,
    pub(crate) run: Run,
    pub(crate) records: Vec<StampedRecord>,
    pub(crate) now_ms: i64,
    blobs: BTreeMap<String, String>,
}

/// The start of a run.
pub(crate) fn started(flow: &Flow) -> RunStarted {
    let begin = json!({
        "program": "0.1.0",
        "flow": flow.name,
        "dialect": flow.dialect,
        "path": format!(".agent/{}", flow.name),
        "sources": [{"path": "agent.json", "blob": BlobRef::for_bytes(b"{}")}],
        "params": {"issue": BlobRef::for_bytes(b"7")},
        "provider": "scripted",
        "iterations_max": flow.limits.iterations_max,
        "repairs_max": 1,
        "wait_max_ms": 60_000,
        "place": {"work": "/work/project", "dirty": true},
        "tree": {"tree": "t0", "head": "c0", "refs": "r0"},
    });
    // From the journal's JSON, so that new fields need no change here.
    serde_json::from_value(begin).unwrap()
}

/// An answer of a scripted agent.
pub(crate) fn answer(output: Value) -> Answer {
    Answer {
        output: Some(output),
        usage: Usage { input_tokens: 1_200, output_tokens: 300, cost_usd: Some(0.012), ..Usage::default() },
        provider: "scripted".into(),
        model: Some("stand-in-1".into()),
        session: Some("s-1".into()),
        receipt: Some("0".into()),
        duration_ms: 1_200,
        ..Answer::default()
    }
}

impl Scene {
    pub(crate) fn start(flow: Flow) -> Scene {
        Scene::start_within(flow, Budget::default())
    }

    /// A run with a budget.
    pub(crate) fn start_within(flow: Flow, budget: Budget) -> Scene {
        let started = RunStarted { budget, ..started(&flow) };
        let mut scene = Scene {
            flow,
            run: Run::default(),
            records: Vec::new(),
            now_ms: START_MS,
            blobs: BTreeMap::new(),
        };
        scene.keep("7");
        scene.complete(Completion::Start(Box::new(Start { started })));
        scene
    }

    fn keep(&mut self, text: &str) -> BlobRef {
        let blob = BlobRef::for_bytes(text.as_bytes());
        self.blobs.insert(blob.digest.clone(), text.to_owned());
        blob
    }

    pub(crate) fn complete(&mut self, completion: Completion) {
        assert!(self.try_complete(completion), "the completion changes something");
    }

    /// Whether the completion changed anything.
    fn try_complete(&mut self, completion: Completion) -> bool {
        let decision = decide(&self.flow, &self.run, self.now_ms, completion);
        if decision.events.is_empty() {
            return false;
        }
        for blob in &decision.blobs {
            self.keep(std::str::from_utf8(blob).unwrap());
        }
        self.run.apply_record(&decision.events);
        let record = Record { v: Record::VERSION, events: decision.events };
        let body = serde_json::to_vec(&record).unwrap();
        let seq = self.records.len() as u64;
        self.records.push(StampedRecord::decode(seq, self.now_ms, &body).unwrap());
        true
    }

    /// Applies a random possible completion; the dice are a linear congruential generator.
    pub(crate) fn wander(&mut self, dice: &mut u64) {
        let mut roll = |sides: usize| {
            *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*dice >> 33) as usize % sides
        };
        self.now_ms += roll(5_000) as i64;
        let commands = list_pending_commands(&self.flow, &self.run);
        let completion = match (roll(20), commands.is_empty()) {
            (0, _) => Completion::Interrupted { seen: None },
            (1, _) if roll(4) == 0 => Completion::Cancelled { seen: None },
            (2 | 3, _) | (4..12, true) => {
                let resume = ResumeSettings { iterations_max: Some(30), ..ResumeSettings::default() };
                Completion::Resumed(Box::new(resume))
            }
            (_, true) => Completion::PersonAnswered { text: "go on".into(), found: None },
            (what, false) => {
                let command = &commands[roll(commands.len())];
                let id = command.id();
                match (command, what) {
                    (Command::Read(_), _) => {
                        let values = Some(json!({ "n": what }));
                        Completion::Read { id, result: ReadResult::Done { values, duration_ms: 1 } }
                    }
                    (Command::Exec(_), _) => {
                        let exec = ExecResult {
                            exit: Exit::Code(roll(2) as i32),
                            stdout: String::new(),
                            stderr: "e".into(),
                            duration_ms: 5,
                        };
                        Completion::Executed { id, exec, seen: None }
                    }
                    (Command::Effect(_), _) => {
                        let exec = ExecResult {
                            exit: Exit::Code(0),
                            stdout: "acted".into(),
                            stderr: String::new(),
                            duration_ms: 5,
                        };
                        Completion::Acted {
                            id,
                            attempt: 0,
                            result: EffectResult::Ran(exec),
                            duration_ms: 1,
                            seen: None,
                        }
                    }
                    (Command::Probe(_), _) => {
                        let look = ProbeResult {
                            holds: roll(4) == 0,
                            said: "seen".into(),
                            ..ProbeResult::default()
                        };
                        Completion::Probed { id, look }
                    }
                    (Command::Ask(_), 4 | 5) => {
                        use FaultClass::{Auth, Crashed, RateLimited};
                        let fault = Fault {
                            class: [Auth, Crashed, RateLimited][roll(3)],
                            message: "it did not work out, for a reason that takes a long line to tell"
                                .into(),
                            resets_in_ms: [None, Some(1_000), Some(1_000_000)][roll(3)],
                            usage: Usage {
                                input_tokens: 3,
                                output_tokens: 0,
                                cost_usd: None,
                                ..Usage::default()
                            },
                            usage_unknown: false,
                            continued: false,
                            receipt: None,
                            tools: Default::default(),
                            limit: None,
                        };
                        Completion::Faulted { ask: id, fault, seen: None }
                    }
                    (Command::Ask(_), what) => {
                        const WORDS: [&str; 10] = [
                            "next",
                            "handoff",
                            "closing",
                            "ready",
                            "approved",
                            "needs_fix",
                            "done",
                            "healthy",
                            "repeat",
                            "unclear",
                        ];
                        let mut answer = answer(json!({"action": WORDS[roll(10)]}));
                        if what == 6 {
                            answer.blocked = Some("the door is shut".into());
                        }
                        let tree = TreeState {
                            tree: format!("t{what}"),
                            head: Some("c0".into()),
                            refs: "r0".into(),
                            ..TreeState::default()
                        };
                        let seen = TreeChange {
                            tree,
                            changed: vec![format!("f{}", roll(5))],
                            ..TreeChange::default()
                        };
                        let seen = (what < 9).then_some(seen);
                        Completion::Answered { ask: id, answer: Box::new(answer), seen }
                    }
                }
            }
        };
        self.try_complete(completion);
    }

    fn first(&self) -> CommandId {
        list_pending_commands(&self.flow, &self.run).first().map(Command::id).expect("something is pending")
    }

    fn later(&mut self, ms: i64) -> &mut Scene {
        self.now_ms += ms;
        self
    }

    /// Answers the first pending ask.
    pub(crate) fn says(&mut self, output: Value) -> &mut Scene {
        self.answer_with_changes(output, &[])
    }

    pub(crate) fn answer_with_changes(&mut self, output: Value, files: &[&str]) -> &mut Scene {
        let mut answer = answer(output);
        answer.prompt = Some(self.keep("Fix issue 7.\nKeep it small.\n"));
        answer.system_prompt = Some(self.keep(&"You are careful. ".repeat(300)));
        let changed: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let tree = TreeState {
            tree: format!("t{}", self.records.len()),
            head: Some("c0".into()),
            refs: "r0".into(),
            ..TreeState::default()
        };
        let seen = (!changed.is_empty()).then_some(TreeChange { tree, changed, ..TreeChange::default() });
        let ask = self.first();
        self.later(1_200).complete(Completion::Answered { ask, answer: Box::new(answer), seen });
        self
    }

    /// Answers the ask of this member.
    pub(crate) fn member_says(&mut self, member: u16, output: Value) -> &mut Scene {
        let ids = list_pending_commands(&self.flow, &self.run);
        let ask =
            ids.iter().map(Command::id).find(|id| id.member() == Some(member)).expect("the member is asked");
        let mut answer = answer(output);
        answer.session = Some(format!("s-m{member}"));
        self.later(900).complete(Completion::Answered { ask, answer: Box::new(answer), seen: None });
        self
    }

    /// Fails the first pending ask.
    pub(crate) fn faults(
        &mut self,
        class: FaultClass,
        message: &str,
        resets_in_ms: Option<u64>,
    ) -> &mut Scene {
        let fault = Fault {
            class,
            message: message.into(),
            resets_in_ms,
            usage: Usage { input_tokens: 10, output_tokens: 0, cost_usd: None, ..Usage::default() },
            usage_unknown: false,
            continued: false,
            receipt: None,
            tools: Default::default(),
            limit: None,
        };
        let ask = self.first();
        self.later(50).complete(Completion::Faulted { ask, fault, seen: None });
        self
    }

    /// Ends the pending command.
    pub(crate) fn exits(&mut self, code: i32, stdout: &str) -> &mut Scene {
        let exec = ExecResult {
            exit: Exit::Code(code),
            stdout: stdout.into(),
            stderr: String::new(),
            duration_ms: 200,
        };
        let id = self.first();
        self.later(200).complete(Completion::Executed { id, exec, seen: None });
        self
    }

    pub(crate) fn happens(&mut self, completion: Completion) -> &mut Scene {
        self.later(5_000).complete(completion);
        self
    }

    pub(crate) fn person_says(&mut self, text: &str) -> &mut Scene {
        self.happens(Completion::PersonAnswered { text: text.into(), found: None })
    }

    pub(crate) fn view(&self) -> RunView {
        self.view_as(Liveness::Alive)
    }

    pub(crate) fn view_as(&self, live: Liveness) -> RunView {
        run_view("r1", &self.records, live)
    }

    pub(crate) fn text(&self, blob: &BlobRef) -> Option<String> {
        self.blobs.get(&blob.digest).cloned()
    }

    /// A validator that fails once, a remedy, and completion.
    pub(crate) fn remedied() -> Scene {
        let mut scene = Scene::start(super::registry());
        scene
            .answer_with_changes(
                json!({"action": "next", "approach": "small steps", "summary": "Understood."}),
                &["src/a.txt"],
            )
            .says(json!({"action": "finish"}))
            .answer_with_changes(json!({"action": "handoff"}), &["src/a.txt", "src/b.txt"])
            .says(json!({"action": "closing"}))
            .exits(1, "running 3 tests\n\u{1b}[31mtest a ... FAILED\u{1b}[0m\n```\n")
            .faults(FaultClass::RateLimited, "slow down", Some(2_000))
            .answer_with_changes(json!({"action": "handoff"}), &["src/b.txt"])
            .says(json!({"action": "closing", "summary": "All is\nwell."}))
            .exits(0, "ok\n")
            .exits(0, "");
        scene
    }

    /// Two rounds of review and fix, a monitor that acts, and completion.
    pub(crate) fn reviewed() -> Scene {
        let mut scene = Scene::start(super::piece());
        scene.says(json!({"action": "ready"}));
        for _ in 0..2 {
            scene
                .member_says(1, json!({"action": "needs_fix"}))
                .member_says(0, json!({"action": "approved"}))
                .answer_with_changes(json!({"action": "done"}), &["src/a.txt"]);
        }
        scene
            .says(json!({"action": "healthy", "reason": "it converges"}))
            .member_says(0, json!({"action": "approved"}))
            .member_says(1, json!({"action": "approved"}));
        scene
    }
}
