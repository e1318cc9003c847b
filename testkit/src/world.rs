//! A simulated world without processes: it answers every command by a rule, drives a run, and can crash at any point.

use cuegate_engine::{
    Answer, AskCommand, AskKind, Budget, Command, CommandId, Completion, Delay, Effect, EffectResult, Event,
    ExecResult, Exit, Fault, FaultClass, FinalizePlan, GithubTarget, Moment, Place, ProbeResult, ReadResult,
    Record, ResumeSettings, Run, RunStarted, Start, State, Usage, WaitKind, list_pending_commands,
};
use cuegate_flow::{
    Str,
    model::{Act, BlobRef, Flow, Verdict},
};
use serde_json::json;

/// A run with its journal and state.
pub struct Case<'f> {
    /// The flow.
    pub flow: &'f Flow,
    /// The state.
    pub run: Run,
    /// The journal as serialized records.
    pub records: Vec<String>,
    /// The journal as events, read back from the records.
    pub events: Vec<Vec<Event>>,
    /// The time, in milliseconds since 1970.
    pub now: i64,
}

/// Default start options of a run.
pub fn started(flow: &Flow) -> RunStarted {
    let on_issue = flow.conduct.issue.is_some();
    RunStarted {
        hidden: Default::default(),
        machine: None,
        key: None,
        budget: Budget::default(),
        notional: false,
        program: "0.0.0".to_owned(),
        flow: flow.name.clone(),
        dialect: flow.dialect.to_owned(),
        path: "test".to_owned(),
        base: String::new(),
        file: None,
        sources: Vec::new(),
        fence_key: Default::default(),
        params: flow.verdict.places().into_iter().filter_map(|(_, part)| named_by(part)).collect(),
        task: None,
        set: Vec::new(),
        provider: "scripted".to_owned(),
        model: None,
        agents: Default::default(),
        script: None,
        iterations_max: flow.limits.iterations_max,
        repairs_max: 1,
        same_answers_max: None,
        same_files_max: None,
        wait_max_ms: 60_000,
        poll_interval_ms: Some(0),
        load: Default::default(),
        sandboxed: false,
        settings: None,
        programs: Default::default(),
        asks_max: None,
        report_dir: None,
        review_base: None,
        finalize: on_issue.then(|| FinalizePlan {
            push: Some("origin".to_owned()),
            pull_request: true,
            ..FinalizePlan::default()
        }),
        github: on_issue.then(|| GithubTarget {
            api: "http://localhost".to_owned(),
            repository: "owner/name".to_owned(),
            issue: Some(7),
            title: None,
            is_pull_request: false,
        }),
        failed_before: Vec::new(),
        place: Place { work: "/work".to_owned(), owned: on_issue, ..Place::default() },
        tree: None,
    }
}

/// The parameter that names the resource of a verdict.
fn named_by(part: &Verdict) -> Option<(Str, BlobRef)> {
    match part {
        Verdict::Poll(poll) => Some((poll.param.clone(), BlobRef::for_bytes(b"out/report.md"))),
        _ => None,
    }
}

impl<'f> Case<'f> {
    /// A run of a flow before its start.
    pub fn new(flow: &'f Flow) -> Case<'f> {
        Case { flow, run: Run::default(), records: Vec::new(), events: Vec::new(), now: 1_000 }
    }

    /// Lets the run go on with a completion and journals its events; returns whether there were any.
    pub fn complete(&mut self, completion: Completion) -> bool {
        self.now += 7;
        let decision = self.run.advance(self.flow, self.now, completion);
        if decision.events.is_empty() {
            return false;
        }
        let record = Record { v: Record::VERSION, events: decision.events };
        let written = serde_json::to_string(&record).expect("a record can be written");
        self.events.push(serde_json::from_str::<Record>(&written).expect("a record can be read").events);
        self.records.push(written);
        true
    }

    /// As above, after some milliseconds of driven time, without serializing the record.
    pub fn decide(&mut self, driven_ms: u64, completion: Completion) -> bool {
        self.now += 7;
        let moment = Moment { at_ms: self.now, driven_ms };
        let decision = self.run.advance(self.flow, moment, completion);
        if decision.events.is_empty() {
            return false;
        }
        self.events.push(decision.events);
        true
    }

    /// Starts the run.
    pub fn start(&mut self) {
        self.start_within(Budget::default());
    }

    /// Starts the run with limits.
    pub fn start_within(&mut self, budget: Budget) {
        let started = RunStarted { budget, ..started(self.flow) };
        self.complete(Completion::Start(Box::new(Start { started })));
    }

    /// Simulates a crash: rebuilds the state from the journal.
    pub fn crash(&mut self) {
        self.run = Run::fold(self.events.iter().map(Vec::as_slice));
    }

    /// The pending commands.
    pub fn pending(&self) -> Vec<Command> {
        list_pending_commands(self.flow, &self.run)
    }

    /// Whether the run ended.
    pub fn ended(&self) -> bool {
        matches!(self.run.state, State::Ended { .. })
    }

    /// Resumes a suspended run, as a person would.
    pub fn unblock(&mut self) -> bool {
        let State::Suspended(waiting) = &self.run.state else { return false };
        match waiting.kind {
            WaitKind::Person => {
                self.complete(Completion::PersonAnswered { text: "go on".to_owned(), found: None })
            }
            _ => self.complete(Completion::Resumed(Box::<ResumeSettings>::default())),
        }
    }
}

/// A deterministic number from a seed and some text.
pub fn roll(seed: u64, what: &str) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in what.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 29)
}

/// The number of a step's answers in the journal: the position in its script, stable across crashes.
pub fn answers_of(case: &Case<'_>, step: &str) -> usize {
    case.events
        .iter()
        .flatten()
        .filter(|event| match event {
            Event::Answered { step: of, .. } | Event::Faulted { step: of, .. } => **of == *step,
            Event::CommandFinished { step: of, .. } => **of == *step,
            _ => false,
        })
        .count()
}

/// The number of polls of a verdict part in the journal.
pub fn looks_of(case: &Case<'_>, part: &str) -> usize {
    let of = |event: &&Event| matches!(event, Event::Probed { condition, .. } if **condition == *part);
    case.events.iter().flatten().filter(of).count()
}

/// The world's answer to a command, by seed, step and number of earlier asks. Mostly valid; sometimes unknown words,
/// prose, missing fields, faults or blocked agents.
pub fn respond(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let id = command.id();
    match command {
        Command::Exec(exec) => {
            let nth = answers_of(case, &exec.step);
            let code = i32::from(roll(seed, &format!("{} {nth}", exec.validator.name)).is_multiple_of(3));
            let exec = ExecResult {
                exit: Exit::Code(code),
                stdout: format!("run {nth}\nof {}", exec.validator.name),
                stderr: String::new(),
                duration_ms: 3,
            };
            Completion::Executed { id, exec, seen: None }
        }
        Command::Effect(effect) if effect.program.is_none() => {
            let Effect { kind, attempt, .. } = &effect.effect;
            let said = format!("{} {attempt}", kind.word());
            let result = match roll(seed, &said) % 8 {
                0 => EffectResult::Failed { said },
                1 => EffectResult::Later { delay: Delay::Look, why: said, after_ms: None },
                2 => EffectResult::Later { delay: Delay::Limit, why: said, after_ms: Some(1) },
                3 => EffectResult::Later { delay: Delay::Fault, why: said, after_ms: None },
                _ => EffectResult::Done { said, url: None },
            };
            Completion::Acted { id, attempt: effect.effect.attempt, result, duration_ms: 2, seen: None }
        }
        Command::Effect(effect) => {
            let code = i32::from(roll(seed, &effect.effect.value.digest.to_string()).is_multiple_of(3));
            let (exit, stdout) = (Exit::Code(code), effect.effect.action.to_string());
            let exec = ExecResult { exit, stdout, stderr: String::new(), duration_ms: 2 };
            Completion::Acted {
                id,
                attempt: effect.effect.attempt,
                result: EffectResult::Ran(exec),
                duration_ms: 1,
                seen: None,
            }
        }
        Command::Read(read) => {
            let nth = answers_of(case, &read.step);
            let result = match roll(seed, &format!("read {} {nth}", read.step)) % 6 {
                0 => ReadResult::Failed { why: format!("no answer {nth}"), may_pass: true, limit: None },
                _ => ReadResult::Done { values: Some(serde_json::json!({})), duration_ms: 1 },
            };
            Completion::Read { id, result }
        }
        Command::Probe(probe) => {
            let nth = looks_of(case, &probe.condition);
            let look = match roll(seed, &format!("look {} {nth}", probe.condition)) % 8 {
                0 => ProbeResult { failed: true, said: format!("no look {nth}"), ..ProbeResult::default() },
                1 => {
                    ProbeResult { holds: true, said: format!("seen at look {nth}"), ..ProbeResult::default() }
                }
                _ => ProbeResult { said: format!("not at look {nth}"), ..ProbeResult::default() },
            };
            Completion::Probed { id, look }
        }
        Command::Ask(ask) => {
            let nth = answers_of(case, &ask.step);
            let roll = roll(seed, &format!("{} {nth}", ask.step));
            let word = word(case.flow, &ask.step, roll >> 8);
            let fault = |class| fault(id, class, nth);
            if let Some(answered) = report(ask, nth, roll).or_else(|| fused(case, ask, nth, roll, &word)) {
                return answered;
            }
            match roll % 40 {
                0 => fault(FaultClass::RateLimited),
                1 => fault(FaultClass::Crashed),
                2 => fault(FaultClass::Malformed),
                3 => fault(FaultClass::Auth),
                4 => answer(id, &ask.step, nth, |answer| answer.text = "no json here".to_owned()),
                5 => answer(id, &ask.step, nth, |answer| answer.output = Some(json!({"action": "fly"}))),
                6 => answer(id, &ask.step, nth, |answer| answer.output = Some(json!({"other": 1}))),
                7 => answer(id, &ask.step, nth, |answer| answer.blocked = Some("no access".to_owned())),
                8 => answer(id, &ask.step, nth, |answer| answer.asks_person = Some("which one?".to_owned())),
                9 | 10 => answer(id, &ask.step, nth, |answer| {
                    answer.text = format!("I think so: {{\"action\": \" {} \"}} done", word.to_uppercase());
                }),
                _ => answer(id, &ask.step, nth, |answer| {
                    if case.flow.conduct.actions.is_some() && roll.is_multiple_of(2) {
                        let block = format!("```json\n{{\"action\": \"note\", \"n\": {nth}}}\n```\n");
                        answer.text = block.repeat(usize::from(roll.is_multiple_of(6)) + 1);
                    }
                    answer.output = Some(json!({"action": word, "plan": format!("plan {nth}"),
                        "understanding": "all of it", "summary": format!("{} {nth}", ask.step)}));
                }),
            }
        }
    }
}

/// As above, but agents never exceed their budget share.
pub fn thrifty(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let mut completion = respond(case, seed, command);
    let Command::Ask(ask) = command else { return completion };
    let usage = match &mut completion {
        Completion::Answered { answer, .. } => &mut answer.usage,
        Completion::Faulted { fault, .. } => &mut fault.usage,
        _ => return completion,
    };
    if let Some(most) = ask.share.usd_micro {
        usage.cost_usd = usage.cost_usd.map(|cost| cost.min(most as f64 / 1e6));
    }
    if let Some(most) = ask.share.tokens {
        usage.input_tokens = usage.input_tokens.min(most);
        usage.output_tokens = usage.output_tokens.min(most - usage.input_tokens);
    }
    completion
}

/// The answer to a report ask, mostly valid.
fn report(ask: &AskCommand, nth: usize, roll: u64) -> Option<Completion> {
    let asked = ask.kind == AskKind::Report && roll % 40 > 8;
    asked.then(|| {
        answer(ask.id, &ask.step, nth, |answer| {
            answer.text = if roll.is_multiple_of(9) { String::new() } else { format!("# Report {nth}") };
        })
    })
}

/// A fused answer, mostly: complete, without its reports, or as plain text.
fn fused(case: &Case<'_>, ask: &AskCommand, nth: usize, roll: u64, word: &str) -> Option<Completion> {
    let step = case.flow.step(case.flow.find(&ask.step)?);
    let Act::Ask(about) = &step.act else { return None };
    if about.fused.is_none() || roll % 40 < 9 {
        return None;
    }
    let reports: serde_json::Map<String, serde_json::Value> = about
        .reports
        .iter()
        .map(|report| (report.name.to_string(), json!(format!("{word} {nth}"))))
        .collect();
    Some(answer(ask.id, &ask.step, nth, |answer| match roll % 7 {
        0 => answer.text = format!("All is said. [{}:1]", ask.step.to_uppercase()),
        1 => answer.text = "It is as it is: { }".to_owned(),
        2 => answer.output = Some(json!({"blocked": "no access", "action": word, "response": "-"})),
        3 => answer.output = Some(json!({"action": word, "response": "in short"})),
        _ => {
            answer.output =
                Some(json!({"action": word, "response": format!("said {nth}"), "reports": reports}))
        }
    }))
}

fn answer(id: CommandId, step: &str, nth: usize, change: impl FnOnce(&mut Answer)) -> Completion {
    let mut answer = Answer {
        usage: Usage { input_tokens: 100, output_tokens: 10, cost_usd: Some(0.25), ..Usage::default() },
        provider: "scripted".to_owned(),
        session: Some(format!("{step}-{nth}")),
        receipt: Some(format!("{step}:{nth}")),
        ..Answer::default()
    };
    change(&mut answer);
    Completion::Answered { ask: id, answer: Box::new(answer), seen: None }
}

fn fault(ask: CommandId, class: FaultClass, nth: usize) -> Completion {
    let fault = Fault {
        class,
        message: "as scripted".to_owned(),
        resets_in_ms: nth.is_multiple_of(2).then_some(100),
        usage: Usage { input_tokens: 5, output_tokens: 0, cost_usd: None, ..Usage::default() },
        usage_unknown: false,
        continued: false,
        receipt: None,
        tools: Default::default(),
        limit: None,
    };
    Completion::Faulted { ask, fault, seen: None }
}

/// One of the words that a step's gate accepts.
fn word(flow: &Flow, step: &str, roll: u64) -> String {
    use cuegate_flow::model::{Gate, OutcomeReader};
    let Some(id) = flow.find(step) else { return "next".to_owned() };
    let Gate::Readers(readers) = &flow.step(id).gate else { return "done".to_owned() };
    for reader in readers {
        if let OutcomeReader::Field { words, .. } = reader {
            return words[roll as usize % words.len()].0.to_string();
        }
    }
    "next".to_owned()
}
