//! Simulated runs: the real loop over a journal in memory.

use std::{
    collections::BTreeMap,
    error::Error as _,
    sync::{Arc, Mutex},
    time::Instant,
};

use cuegate_engine::{
    Budget, Event, Place, RecordedLoadOptions, Run, RunStarted, Start, State, WaitKind, Work,
    list_pending_commands,
};
use cuegate_flow::{
    analysis::{
        cost_bound::{Terms, price_without_sensitivity},
        state_graph::StateGraph,
    },
    model::{BlobRef, Flow},
};
use cuegate_journal::{Journal, RunId, memory::MemoryJournal};
use tokio::sync::{mpsc, watch};

use super::{
    agent::Agent,
    fake_executor::{FakeExecutor, lock_ignoring_poison},
    fake_world::FakeWorld,
    random::SimulationRng,
};
use crate::{
    drive::{InboxMessage, Notice, drive_run},
    error::Error,
    replay::replay_run,
    run_writer::{Entry, RunWriter, read_records},
};

/// How many questions of agents are answered in a run; the next one suspends it.
const ANSWERS_MAX: usize = 2;
/// How many questions of the definition are answered in a run.
const QUESTIONS_MAX: usize = 500;

/// The inputs of every run of a simulation.
#[derive(Debug, Clone, Default)]
pub struct RunInputs {
    /// The definition's path as typed.
    pub path: String,
    /// Values by variable name.
    pub params: BTreeMap<String, String>,
    /// The task text.
    pub task: Option<String>,
    /// The iteration limit.
    pub iterations_max: u32,
    /// How often an unusable answer is repaired.
    pub repairs_max: u32,
    /// How the definition was loaded.
    pub load: RecordedLoadOptions,
}

#[derive(Debug, Clone)]
pub struct SimulatedRun {
    /// The agent that answered.
    pub agent: Agent,
    /// The index of the run among those of this agent, from 0.
    pub number: u64,
    /// The journal records.
    pub records: Vec<Entry>,
    /// The number of records before the first answer to a question that the definition does not ask.
    pub alone: usize,
    /// The budget of the run.
    pub budget: Budget,
    /// The final state.
    pub run: Run,
    /// Violated invariants.
    pub faults: Vec<String>,
}

/// Simulated runs of a flow with one kind of agent. Each run aims at what earlier runs did not cover.
pub struct Simulation {
    flow: Arc<Flow>,
    begin: RunInputs,
    agent: Agent,
    seed: u64,
    walks: u64,
    /// The bound on asks that its runs must observe.
    asks_max: Option<u64>,
    deadline: Option<Instant>,
    desk: Arc<Mutex<FakeWorld>>,
}

impl Simulation {
    /// Creates a simulation. The same seed gives the same runs. `reach` must be computed for the iteration limit of
    /// the runs.
    pub fn new(reach: Arc<StateGraph>, begin: RunInputs, agent: Agent, seed: u64) -> Simulation {
        let (flow, desk) = (reach.flow().clone(), Arc::new(Mutex::new(FakeWorld::new(reach, agent))));
        let RunInputs { iterations_max, repairs_max, .. } = begin;
        let asks_max =
            price_without_sensitivity(&flow, &Terms { iterations_max, repairs_max, ..Terms::default() })
                .asks_max();
        Simulation { flow, begin, agent, seed, walks: 0, asks_max, deadline: None, desk }
    }

    /// Interrupts a run at this time.
    #[must_use]
    pub fn until(self, deadline: Option<Instant>) -> Simulation {
        Simulation { deadline, ..self }
    }

    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// Whether there are uncovered items that its runs have not aimed at yet.
    pub fn is_eager(&self) -> bool {
        self.agent == Agent::Obedient && lock_ignoring_poison(&self.desk).steering.is_eager()
    }

    /// Executes the next run.
    ///
    /// # Errors If the run cannot start.
    pub async fn walk(&mut self) -> Result<SimulatedRun, Error> {
        let number = self.walks;
        self.walks += 1;
        let dice = SimulationRng::new(self.seed, self.agent.as_str(), number);
        let mut budget = Budget::default();
        if self.agent == Agent::Random && number % 3 == 2 {
            budget.asks = Some(1 + dice.clone().roll() % 12);
        }
        let clock = {
            let mut desk = lock_ignoring_poison(&self.desk);
            // In the first run the agent misbehaves in every ask.
            desk.begin(dice, number == 0);
            desk.clock.clone()
        };
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
        let id = RunId::try_from("simulated".to_owned()).expect("it is one");
        let (started, texts) = self.started(budget);
        let (mut book, entry) = RunWriter::begin_by(
            clock,
            journal.clone(),
            &id,
            self.flow.clone(),
            Start { started },
            texts,
            None,
        )?;
        let world =
            FakeExecutor::new(self.desk.clone(), journal.clone(), id.clone(), self.begin.iterations_max);
        let world = Arc::new(world);
        world.saw(&entry.events);
        let (alone, trouble) = drive_simulated_run(&mut book, &world, self.deadline).await;
        let records = read_records(&*journal, &id)?;
        let run = book.run().clone();
        let mut faults: Vec<String> = trouble.map(|error| error.to_string()).into_iter().collect();
        faults.extend(check_invariants(&self.flow, &run, &records));
        faults.extend(match replay_run(&*journal, &id, &self.flow, &mut |_| None) {
            Ok((_, None)) => None,
            Ok((_, Some(divergence))) => {
                Some(format!("record {}, decided again, is another one: {divergence:?}", divergence.seq))
            }
            Err(error) => Some(format!("the run cannot be replayed: {error}: {:?}", error.source())),
        });
        let alone = alone.unwrap_or(records.len());
        Ok(SimulatedRun { agent: self.agent, number, records, alone, budget, run, faults })
    }

    fn started(&self, budget: Budget) -> (RunStarted, Vec<Vec<u8>>) {
        let begin = &self.begin;
        let mut texts = Vec::new();
        let mut keep = |text: &str| {
            texts.push(text.as_bytes().to_vec());
            BlobRef::for_bytes(text.as_bytes())
        };
        let params = begin.params.iter().map(|(name, value)| (name.as_str().into(), keep(value))).collect();
        let task = begin.task.as_deref().map(&mut keep);
        let started = RunStarted {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            flow: self.flow.name.clone(),
            dialect: self.flow.dialect.to_owned(),
            path: begin.path.clone(),
            params,
            task,
            provider: "simulated".to_owned(),
            iterations_max: begin.iterations_max,
            repairs_max: begin.repairs_max,
            wait_max_ms: 60_000,
            budget,
            poll_interval_ms: Some(0),
            load: begin.load.clone(),
            asks_max: self.asks_max,
            report_dir: Some("reports".into()),
            place: Place { work: ".".to_owned(), ..Place::default() },
            ..RunStarted::default()
        };
        (started, texts)
    }
}

/// Drives a run until it ends or cannot continue. Returns the number of records before the first answer to a question
/// that the definition does not ask.
async fn drive_simulated_run(
    book: &mut RunWriter,
    world: &Arc<FakeExecutor>,
    deadline: Option<Instant>,
) -> (Option<usize>, Option<Error>) {
    let (mut alone, mut answers, mut questions) = (None, 0, 0);
    loop {
        let (_tell, activity) = mpsc::channel(1);
        let (stop, stopped) = watch::channel(false);
        let mut tell = |notice: Notice<'_>| {
            if let Notice::Record(entry) = notice {
                world.saw(&entry.events);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let _ = stop.send(true);
            }
        };
        if let Err(error) = drive_run(book, world, activity, stopped.into(), &mut tell).await {
            return (alone, Some(error));
        }
        let State::Suspended(waiting) = &book.run().state else { return (alone, None) };
        if waiting.kind != WaitKind::Person {
            return (alone, None);
        }
        let asked_by_flow = book.run().progress.node.as_ref().is_some_and(|node| node.work == Work::Person);
        let (count, most) =
            if asked_by_flow { (&mut questions, QUESTIONS_MAX) } else { (&mut answers, ANSWERS_MAX) };
        *count += 1;
        if *count > most {
            return (alone, None);
        }
        if !asked_by_flow {
            alone.get_or_insert(book.run().seq as usize);
        }
        if let Err(error) = post_person_answer(book) {
            return (alone, Some(error));
        }
    }
}

/// Answers as a person would: through another process.
fn post_person_answer(book: &RunWriter) -> Result<(), Error> {
    let letter = InboxMessage::Answer { text: "Go on, as simulated.".to_owned() };
    let body = serde_json::to_vec(&letter).expect("a letter is plain data and can be written as JSON");
    book.journal().post(book.id(), 0, &body)?;
    Ok(())
}

/// Violated invariants: an end without a type, a state that the records do not reproduce, an exceeded budget.
fn check_invariants(flow: &Flow, run: &Run, records: &[Entry]) -> Vec<String> {
    let mut faults = Vec::new();
    match &run.state {
        State::Ended { .. } | State::Suspended(_) => {}
        State::New => faults.push("the run never began".to_owned()),
        State::Running => {
            let wanted = list_pending_commands(flow, run).len();
            faults.push(format!("the run neither ended nor waits, with {wanted} commands wanted"));
        }
    }
    let folded = Run::fold(records.iter().map(|entry| entry.events.as_slice()));
    if folded != *run {
        faults.push("the records do not give the state that the run was left in".to_owned());
    }
    let entered = records.iter().flat_map(|entry| &entry.events).filter_map(|event| match event {
        Event::StepEntered { counts: true, iteration, .. } => Some(*iteration),
        _ => None,
    });
    let begun = entered.max().unwrap_or(0);
    if begun > run.progress.iterations_max {
        faults.push(format!("{begun} iterations, at most {} are allowed", run.progress.iterations_max));
    }
    let reserved = run.spending.ledger.reserved();
    if let Some(asks) = run.spending.ledger.budget.asks
        && run.spending.ledger.spent.asks + reserved.asks > asks
    {
        faults.push(format!("more calls than the budget of {asks}"));
    }
    faults
}
