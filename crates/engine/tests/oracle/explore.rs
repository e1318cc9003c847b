//! Explores every configuration that runs of a flow can reach, with `decide` alone, by answering everything its gates
//! accept. It uses no state graph, so its results are what runs really do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cuegate_engine::{
    Answer, AskCommand, AskKind, AskRequest, Command, Completion, EndState, Event, ExecResult, Exit,
    PendingAsk, Run, Start, State, Work, decide, list_pending_commands,
};
use cuegate_flow::{
    Str,
    model::{Act, Flow, Gate, Outcome, OutcomeReader, Selector, Source, Step, StepId, Target},
};
use cuegate_testkit::world::started;
use serde_json::{Map, Value, json};

/// The maximum number of explored configurations. Larger flows are not compared.
const CONFIGURATIONS_MAX: usize = 4_000;

/// The results over all runs of a flow.
#[derive(Debug, Default)]
pub struct Explored {
    /// The number of configurations.
    pub configurations: usize,
    /// Whether there are more than the maximum.
    pub truncated: bool,
    /// Steps that were entered, or asked as members or judges.
    pub met: BTreeSet<Str>,
    /// Steps after which no run finishes.
    pub trapped: BTreeSet<Str>,
    /// Steps entered without a required value: the step, the step that should provide it, and its name.
    pub unassigned: BTreeSet<Need>,
    /// Steps whose valid answers select no step.
    pub unselected: BTreeSet<Str>,
    /// Why runs failed.
    pub failures: BTreeSet<String>,
    /// Monitors that acted.
    pub monitors: BTreeSet<Str>,
    /// The outcomes of steps.
    pub decided: BTreeSet<(Str, Str)>,
    /// Prompts sent without a report that they read, and with it.
    pub unwritten: BTreeSet<(Str, bool)>,
    /// The fewest iterations after which a run completed.
    pub completed: Option<u32>,
    /// Exhausted edges that would have been taken, by step and index, and the fewest iterations before that.
    pub used_up: BTreeMap<(Str, usize), u32>,
    /// Whether runs can loop forever without a person or a monitor.
    pub endless: bool,
}

/// A step and a required value: its provider and its name.
pub type Need = (Str, Str, Str);

struct Configuration {
    run: Run,
    /// The step whose visit is open.
    at: Option<Str>,
    came_from: Vec<Cause>,
    goal: bool,
}

/// A transition to a configuration.
struct Cause {
    from: usize,
    /// The number of added iterations.
    iterations: u32,
    /// Whether a person answered, or a monitor acted.
    attended: bool,
}

/// Explores a sound or unsound flow. Its inputs are not required: `needs` has the inputs that would be, so that runs
/// continue without them.
pub fn explore(flow: &Flow, needs: &[Need]) -> Explored {
    let mut explorer = Explorer {
        flow,
        needs,
        all: Vec::new(),
        known: HashMap::new(),
        used_up: Vec::new(),
        found: Explored::default(),
        mumbles: true,
    };
    let mut begin = started(flow);
    begin.repairs_max = 0;
    let start = Completion::Start(Box::new(Start { started: begin }));
    explorer.follow(&Run::default(), start, None, "start");
    let mut next = 0;
    while next < explorer.all.len() {
        if explorer.all.len() > CONFIGURATIONS_MAX {
            explorer.found.truncated = true;
            break;
        }
        let run = explorer.all[next].run.clone();
        for (completion, said) in explorer.completions(&run) {
            explorer.follow(&run, completion, Some(next), &said);
        }
        next += 1;
    }
    explorer.finish()
}

/// All answers to the pending commands, with their descriptions.
pub fn completions(flow: &Flow, run: &Run) -> Vec<(Completion, String)> {
    Explorer {
        flow,
        needs: &[],
        all: Vec::new(),
        known: HashMap::new(),
        found: Explored::default(),
        used_up: Vec::new(),
        mumbles: false,
    }
    .completions(run)
}

struct Explorer<'f> {
    flow: &'f Flow,
    needs: &'f [Need],
    all: Vec<Configuration>,
    known: HashMap<String, usize>,
    /// Exhausted edges with their configurations.
    used_up: Vec<(usize, (Str, usize))>,
    found: Explored,
    /// Whether to give invalid answers to gates with a fallback.
    mumbles: bool,
}

impl Explorer<'_> {
    fn follow(&mut self, run: &Run, completion: Completion, from: Option<usize>, said: &str) {
        let decision = decide(self.flow, run, 1_000, completion);
        assert!(!decision.events.is_empty(), "an answer to what is pending decides something: {said}");
        let mut next = run.clone();
        next.apply_record(&decision.events);
        for event in &decision.events {
            self.note(event, run, &next);
            if let (Event::Decided { step, outcome, .. }, Some(from)) = (event, from) {
                self.note_used_up(run, from, step, outcome);
            }
        }
        let person = matches!(&run.state, State::Suspended(_));
        let acted = decision.events.iter().any(|event| matches!(event, Event::MonitorFired { .. }));
        let key = key(self.flow, self.needs, &next);
        let next_iterations = next.progress.iterations;
        let goal = goal(&decision.events);
        let at = match self.known.get(&key) {
            Some(at) => *at,
            None => {
                let at = self.all.len();
                let visited = next.progress.visit.as_ref().map(|visit| visit.step.clone());
                if let State::Ended { state: EndState::Failed, reason, .. } = &next.state {
                    self.found.failures.insert(reason.clone());
                }
                self.all.push(Configuration { run: next, at: visited, came_from: Vec::new(), goal });
                self.known.insert(key, at);
                at
            }
        };
        self.all[at].goal |= goal;
        if let Some(from) = from {
            let iterations = next_iterations - run.progress.iterations;
            self.all[at].came_from.push(Cause { from, iterations, attended: person || acted });
        }
    }

    /// The exhausted edges of an outcome.
    fn note_used_up(&mut self, run: &Run, at: usize, step: &Str, outcome: &Str) {
        let edges = &self.flow.step(self.flow.find(step).expect("a step decided")).edges;
        for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.on.to_string() == **outcome) {
            let Some(bound) = edge.bound.filter(|bound| bound.max > 0) else { break };
            let count =
                run.progress.counters.get(&self.flow.counter(bound.counter).name).copied().unwrap_or(0);
            if count < bound.max {
                break;
            }
            self.used_up.push((at, (step.clone(), index)));
        }
    }

    fn note(&mut self, event: &Event, before: &Run, run: &Run) {
        if let Event::StepEntered { step, remedy, .. } = event {
            // A command step reads values in its failure prompt.
            let failed = before.progress.node.as_ref().filter(|_| remedy.is_some()).map(|node| &node.step);
            let is_exec = |step: &Str| {
                self.flow.find(step).is_some_and(|id| matches!(self.flow.step(id).act, Act::Exec { .. }))
            };
            let reads = |of: &Str| (of == step && !is_exec(of)) || failed == Some(of);
            let missing = |(_, from, key): &&Need| {
                run.context.handoffs.get(from).is_none_or(|kept| !kept.contains_key(key))
            };
            let missing = self.needs.iter().filter(|(of, ..)| reads(of)).filter(missing);
            self.found.unassigned.extend(missing.cloned());
            let entered = self.flow.find(step).and_then(|id| read_by(self.flow.step(id)));
            if let Some(name) = entered {
                self.found.unwritten.insert((step.clone(), run.context.reports.versions(name).is_empty()));
            }
        }
        match event {
            Event::StepEntered { step, .. } | Event::AskRequested(AskRequest { step, .. }) => {
                self.found.met.insert(step.clone());
            }
            Event::AnswerRejected { step, why, .. } if why.starts_with("`status` is ") => {
                self.found.unselected.insert(step.clone());
            }
            Event::MonitorFired { monitor, .. } => {
                self.found.monitors.insert(monitor.clone());
            }
            Event::Decided { step, outcome, .. } => {
                self.found.decided.insert((step.clone(), outcome.clone()));
            }
            _ => {}
        }
    }

    /// All answers to the pending commands. Members answer in turn; other tests show that their order does not matter.
    fn completions(&self, run: &Run) -> Vec<(Completion, String)> {
        if let State::Suspended(_) = &run.state {
            let text = "go on".to_owned();
            return vec![(Completion::PersonAnswered { text, found: None }, "a person answers".to_owned())];
        }
        let commands = list_pending_commands(self.flow, run);
        let Some(command) = commands.first() else { return Vec::new() };
        match command {
            Command::Exec(exec) => [0, 1]
                .into_iter()
                .map(|code| {
                    let done = ExecResult {
                        exit: Exit::Code(code),
                        stdout: String::new(),
                        stderr: String::new(),
                        duration_ms: 1,
                    };
                    let said = format!("{} exits {code}", exec.step);
                    (Completion::Executed { id: exec.id, exec: done, seen: None }, said)
                })
                .collect(),
            Command::Ask(ask) => self
                .answers(ask)
                .into_iter()
                .map(|(answer, said)| {
                    let said = format!("{} says {said}", ask.step);
                    (Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }, said)
                })
                .collect(),
            other => panic!("no flow here looks or acts: {other:?}"),
        }
    }

    fn answers(&self, ask: &AskCommand) -> Vec<(Answer, String)> {
        let text = |text: &str| Answer { text: text.to_owned(), ..Answer::default() };
        if ask.kind == AskKind::Report {
            return vec![(text("# Report"), "a report".to_owned())];
        }
        let step = self.flow.step(self.flow.find(&ask.step).expect("a step is asked"));
        let items: Vec<&Str> = step.handoff.iter().filter_map(|handoff| handoff.item.as_ref()).collect();
        if !items.is_empty() {
            return selections(&items);
        }
        let Gate::Readers(readers) = &step.gate else {
            return vec![(text("done"), "something".to_owned())];
        };
        let mut answers = Vec::new();
        let member_of = |parent: &Step<StepId>| match &parent.act {
            Act::All { members, .. } => members.iter().any(|member| self.flow.step(*member).name == ask.step),
            _ => false,
        };
        if self.flow.steps.iter().any(member_of) {
            // A member may fail; the others then decide.
            answers.push((text("mumble"), "nothing".to_owned()));
        }
        for reader in readers {
            match reader {
                OutcomeReader::Fallback(_) | OutcomeReader::FirstFallback(_) if self.mumbles => {
                    answers.push((text("mumble"), "nothing".to_owned()));
                }
                OutcomeReader::Field { words, .. } => {
                    for (word, outcome) in words {
                        answers.extend(self.outputs(step.name.clone(), word, outcome));
                    }
                }
                OutcomeReader::Judge { .. } => {
                    answers.push((text("hard to say"), "nothing clear".to_owned()))
                }
                _ => {}
            }
        }
        answers
    }

    /// Answers with one outcome word: each combination of handoff values that the schema allows, and each target.
    fn outputs(&self, name: Str, word: &str, outcome: &Outcome) -> Vec<(Answer, String)> {
        let step = self.flow.step(self.flow.find(&name).expect("it is a step"));
        let Act::Ask(ask) = &step.act else { return Vec::new() };
        let schema = ask.schema.map(|id| self.flow.schema(id).value().clone()).unwrap_or_default();
        let mut objects = vec![Map::from_iter([("action".to_owned(), json!(word))])];
        for key in ["plan", "status"] {
            let Some(property) = schema["properties"].get(key) else { continue };
            let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
            let values = property["enum"].as_array().cloned().unwrap_or_else(|| vec![json!("a plan")]);
            let null = property["type"].as_array().map(|_| Value::Null);
            let values = values.into_iter().chain(null).map(Some);
            let values: Vec<Option<Value>> = values.chain((!required).then_some(None)).collect();
            objects = product(objects, key, &values);
        }
        let jumps = step.edges.iter().find_map(|edge| match &edge.to {
            Target::Jump { among, .. } if edge.on == *outcome => Some(among),
            _ => None,
        });
        if let Some(among) = jumps {
            let names: Vec<Value> =
                among.iter().map(|id: &StepId| json!(*self.flow.step(*id).name)).collect();
            let names: Vec<Option<Value>> = names.into_iter().chain([json!("nowhere")]).map(Some).collect();
            objects = product(objects, "to", &names);
        }
        let answer = |object: Map<String, Value>| {
            let said = Value::Object(object.clone()).to_string();
            (Answer { output: Some(Value::Object(object)), ..Answer::default() }, said)
        };
        objects.into_iter().map(answer).collect()
    }

    fn finish(mut self) -> Explored {
        self.found.configurations = self.all.len();
        let least = self.least();
        let completed =
            |at: &usize| matches!(self.all[*at].run.state, State::Ended { state: EndState::Completed, .. });
        self.found.completed = (0..self.all.len()).filter(completed).map(|at| least[at]).min();
        for (at, edge) in std::mem::take(&mut self.used_up) {
            let known = self.found.used_up.entry(edge).or_insert(u32::MAX);
            *known = (*known).min(least[at]);
        }
        self.found.endless = self.goes_round();
        self.found.trapped = self.trapped(|configuration| configuration.goal);
        self.found
    }

    /// The fewest iterations to reach each configuration.
    fn least(&self) -> Vec<u32> {
        let mut next = vec![Vec::new(); self.all.len()];
        for (to, configuration) in self.all.iter().enumerate() {
            configuration.came_from.iter().for_each(|cause| next[cause.from].push((to, cause.iterations)));
        }
        let mut least = vec![u32::MAX; self.all.len()];
        least[0] = self.all[0].run.progress.iterations;
        let mut queue = std::collections::VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            for (to, iterations) in &next[at] {
                if least[at] + iterations < least[*to] {
                    least[*to] = least[at] + iterations;
                    queue.push_back(*to);
                }
            }
        }
        least
    }

    /// Whether these configurations contain a cycle. Removes configurations without predecessors until none is left.
    fn goes_round(&self) -> bool {
        let count = self.all.len();
        let (mut before, mut next) = (vec![0; count], vec![Vec::new(); count]);
        for (to, configuration) in self.all.iter().enumerate() {
            for cause in configuration.came_from.iter().filter(|cause| !cause.attended) {
                before[to] += 1;
                next[cause.from].push(to);
            }
        }
        let mut queue: Vec<usize> = (0..count).filter(|at| before[*at] == 0).collect();
        let mut taken = queue.len();
        while let Some(at) = queue.pop() {
            for to in &next[at] {
                before[*to] -= 1;
                if before[*to] == 0 {
                    queue.push(*to);
                    taken += 1;
                }
            }
        }
        taken < count
    }

    /// The steps from which no run reaches such a configuration.
    fn trapped(&self, is_end: impl Fn(&Configuration) -> bool) -> BTreeSet<Str> {
        let mut can: Vec<bool> = self.all.iter().map(is_end).collect();
        let mut queue: Vec<usize> = (0..can.len()).filter(|at| can[*at]).collect();
        while let Some(at) = queue.pop() {
            for Cause { from, .. } in &self.all[at].came_from {
                if !std::mem::replace(&mut can[*from], true) {
                    queue.push(*from);
                }
            }
        }
        let (mut finishing, mut standing) = (BTreeSet::new(), BTreeSet::new());
        for (configuration, can) in self.all.iter().zip(can) {
            let Some(step) = configuration.at.clone() else { continue };
            if !matches!(configuration.run.state, State::Ended { .. }) {
                standing.insert(step.clone());
            }
            if can {
                finishing.insert(step);
            }
        }
        standing.difference(&finishing).cloned().collect()
    }
}

/// Each object with each value, or without one.
fn product(objects: Vec<Map<String, Value>>, key: &str, values: &[Option<Value>]) -> Vec<Map<String, Value>> {
    let with = |object: &Map<String, Value>, value: &Option<Value>| {
        let mut object = object.clone();
        object.extend(value.iter().map(|value| (key.to_owned(), value.clone())));
        object
    };
    objects.iter().flat_map(|object| values.iter().map(|value| with(object, value))).collect()
}

/// Whether a run finished as intended. Giving up, which every step may do, does not count.
fn goal(events: &[Event]) -> bool {
    let gave_up =
        events.iter().any(|event| matches!(event, Event::Decided { outcome, .. } if **outcome == *"abort"));
    events.iter().any(|event| match event {
        Event::Ended { state, .. } => cuegate_testkit::random::is_goal(*state) && !gave_up,
        _ => false,
    })
}

/// The report in a step's prompt.
fn read_by(step: &Step<StepId>) -> Option<&Str> {
    let Act::Ask(ask) = &step.act else { return None };
    ask.prompt.sources().into_iter().find_map(|source| match source {
        Source::Report(name) => Some(name),
        _ => None,
    })
}

/// Everything that the rest of a run depends on. Runs equal in it are the same configuration.
pub fn key(flow: &Flow, needs: &[Need], run: &Run) -> String {
    let visits: Vec<_> = run.progress.history.iter().filter_map(|step| flow.find(step)).collect();
    let history = flow.observed(&visits);
    let is_kept =
        |(_, from, key): &&Need| run.context.handoffs.get(from).is_some_and(|kept| kept.contains_key(key));
    let kept: BTreeSet<(&Str, &Str)> =
        needs.iter().filter(is_kept).map(|(_, from, key)| (from, key)).collect();
    let edges = || flow.steps.iter().flat_map(|step| &step.edges);
    let selecting: BTreeMap<&Str, Option<&Str>> = edges()
        .filter_map(|edge| match &edge.to {
            Target::Select { by: Selector::Handoff(key), .. } => Some((key, newest(run, key))),
            _ => None,
        })
        .collect();
    let returning = edges().any(|edge| matches!(edge.to, Target::Origin { .. }));
    let work = run.progress.node.as_ref().map(|node| match &node.work {
        Work::Joining(members) => {
            let member = |member: &cuegate_engine::Member| {
                format!("{:?} {:?}", member.ended, member.asking.as_ref().map(asked))
            };
            members.iter().map(member).collect::<Vec<_>>().join(", ")
        }
        Work::Asking(asking) => asked(asking),
        Work::Running { index, .. } => format!("command {index}"),
        other => format!("{:?}", std::mem::discriminant(other)),
    });
    let ended = match &run.state {
        State::Ended { state, reason, .. } => format!("{state:?} {reason}"),
        State::Suspended(waiting) => format!("{:?}", waiting.kind),
        _ => String::new(),
    };
    let reports: BTreeSet<&Str> = flow.steps.iter().filter_map(read_by).collect();
    let written: Vec<bool> =
        reports.iter().map(|name| !run.context.reports.versions(name).is_empty()).collect();
    format!(
        "{ended}|{:?}|{work:?}|{:?}|{:?}|{:?}|{history:?}|{kept:?}|{selecting:?}|{}|{}|{written:?}",
        run.progress.node.as_ref().map(|node| &node.step),
        run.progress.visit.as_ref().map(|visit| (&visit.step, &visit.monitor, visit.outcome.is_some())),
        run.progress.counters,
        returning.then_some(&run.progress.origins),
        run.context.again,
        run.progress.iterations == 1,
    )
}

/// The purpose of an ask, and the known state of the answer that it is about.
fn asked(asking: &PendingAsk) -> String {
    let owing = asking.context.owing().map(|owing| (owing.report, &owing.then));
    format!("{:?} {} {owing:?}", asking.kind, asking.context.judging().is_some())
}

/// The newest value of a name.
fn newest<'r>(run: &'r Run, name: &str) -> Option<&'r Str> {
    let holders = run.context.handoffs.values().filter_map(|kept| kept.get(name));
    holders.max_by_key(|kept| kept.order)?.scalar.as_ref()
}

/// The answers of a selector: every subset of its items.
fn selections(items: &[&Str]) -> Vec<(Answer, String)> {
    let subset = |set: usize| {
        let chosen: Vec<&Str> =
            items.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, item)| *item).collect();
        let said = format!("{chosen:?}");
        (Answer { output: Some(json!({"selected": chosen})), ..Answer::default() }, said)
    };
    (0..1 << items.len()).map(subset).collect()
}
