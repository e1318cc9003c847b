//! Routes the recorded answers of a run through another flow.
//!
//! A result belongs to a command by its place in the flow (step, visit, member, purpose, how often it was asked there), not
//! by its place in the journal. It counts only for a command of the same content: nobody knows what an agent would have
//! answered to another prompt.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use cuegate_engine::{
    AskCommand, Command, Completion, Moment, PromptPart, RecordedDecision, Run, RunForked, RunStarted, Start,
    State, WaitKind, list_pending_commands,
};
use cuegate_flow::{
    Str,
    model::{Act, Flow},
};
use cuegate_journal::{Journal, RunId};

use super::{FlowLoader, StampedDecision, flow_for, read_each_decision};
use crate::{error::Error, run_writer::Entry};

/// What the recording of a run says about another flow.
#[derive(Debug, Clone, PartialEq)]
pub struct EditedReplay {
    /// The run in that flow, as far as the recording reaches.
    pub run: Run,
    /// Its records. They were never written.
    pub entries: Vec<Entry>,
    /// How many recorded results were used, of how many.
    pub used: usize,
    pub recorded: usize,
    /// Calls whose recorded answer was used although what they ask differs now: the step, the visit, and what
    /// differs.
    pub asked_otherwise: Vec<(String, u32, &'static str)>,
    pub stop: ReplayStop,
}

/// Where a recording does not go on.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayStop {
    /// The run ended in the other flow, too.
    Ended,
    /// It waits for a person, who was not asked this.
    Waits,
    /// It does something that the recording has no result of.
    Needs {
        step: String,
        visit: u32,
        /// Whether an agent is to be called; otherwise a command, a look or an effect.
        is_call: bool,
        /// Why no recorded result counts.
        why: String,
    },
}

/// The place of a command in a flow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CommandPlace {
    step: Str,
    visit: u32,
    /// The name of the member of a parallel step.
    member: Option<Str>,
    /// What is done there: the purpose of a call, a command by its number, and so on.
    doing: String,
}

/// A recorded result.
struct Recording {
    seq: u64,
    moment: Moment,
    command: Command,
    /// The working tree after the result before it.
    tree: Option<String>,
    completion: Completion,
}

/// What a run did that nobody asked for by a command: a person's answer, a resume.
struct Turn {
    seq: u64,
    moment: Moment,
    completion: Completion,
}

/// The recording of a run.
#[derive(Default)]
struct Tape {
    started: Option<Moment>,
    /// The results by place, in their order.
    results: BTreeMap<CommandPlace, Vec<Recording>>,
    turns: Vec<Turn>,
    /// Where the run went on as another one, by the number of the record.
    forks: Vec<(u64, Moment, Box<RunForked>)>,
    count: usize,
}

/// Replays a run in another flow, started with `start`. With `same_answers`, recorded results count also where the prompt, the
/// command or the files differ.
///
/// # Errors
/// When the journal cannot be read, or a record does not say what was decided about.
pub fn replay_in_flow(
    journal: &dyn Journal,
    id: &RunId,
    recorded: &Arc<Flow>,
    edited: &Flow,
    start: RunStarted,
    load: &mut FlowLoader<'_>,
    same_answers: bool,
) -> Result<EditedReplay, Error> {
    let mut tape = read_tape(journal, id, recorded, load)?;
    let moment = tape.started.take().unwrap_or_default();
    let mut player = Player {
        recorded,
        edited,
        same_answers,
        moment,
        tree: None,
        last: 0,
        replay: EditedReplay {
            run: Run::default(),
            entries: Vec::new(),
            used: 0,
            recorded: tape.count,
            asked_otherwise: Vec::new(),
            stop: ReplayStop::Ended,
        },
        tape,
    };
    let start = Completion::Start(Box::new(Start { started: start }));
    player.tree = tree_after(&start);
    player.decide(moment, start);
    player.replay.stop = player.play();
    Ok(player.replay)
}

/// Reads what a run was told, each result with the command that it answered.
fn read_tape(
    journal: &dyn Journal,
    id: &RunId,
    flow: &Arc<Flow>,
    load: &mut FlowLoader<'_>,
) -> Result<Tape, Error> {
    let (mut run, mut tape, mut flow, mut tree) = (Run::default(), Tape::default(), flow.clone(), None);
    let mut unloaded = None;
    read_each_decision(journal, id, |record| {
        let (moment, seq) = (record.moment(), record.seq);
        let StampedDecision { decided: RecordedDecision { completion, events }, .. } = record;
        let Some(now) = flow_for(&run, &completion, &flow, load) else {
            unloaded = Some(Error::Definition { run: id.to_string(), seq });
            return ControlFlow::Break(());
        };
        flow = now;
        let after = tree_after(&completion);
        match completion {
            Completion::Start(_) => tape.started = Some(moment),
            // Whatever was interrupted went on later, or did not.
            Completion::Interrupted { .. } | Completion::TimePassed | Completion::SandboxDenied { .. } => {}
            Completion::Forked(fork) => tape.forks.push((seq, moment, fork)),
            completion => match completion.command() {
                None => tape.turns.push(Turn { seq, moment, completion }),
                Some(command) => {
                    let pending = list_pending_commands(&flow, &run).into_iter();
                    if let Some(command) = pending.into_iter().find(|pending| pending.id() == command) {
                        let place = place_of(&flow, &run, &command);
                        tape.count += 1;
                        let tree = tree.clone();
                        let recording = Recording { seq, moment, command, tree, completion };
                        tape.results.entry(place).or_default().push(recording);
                    }
                }
            },
        }
        run.apply_record(&events);
        tree = after.or(tree.take());
        ControlFlow::Continue(())
    })?;
    tape.results.values_mut().for_each(|results| results.reverse());
    tape.turns.reverse();
    tape.forks.reverse();
    unloaded.map_or(Ok(tape), Err)
}

/// Plays a recording to a flow.
struct Player<'p> {
    recorded: &'p Flow,
    edited: &'p Flow,
    same_answers: bool,
    tape: Tape,
    /// The time of the last decision.
    moment: Moment,
    /// The working tree after the last result.
    tree: Option<String>,
    /// The last recorded result that was used.
    last: u64,
    replay: EditedReplay,
}

impl Player<'_> {
    fn play(&mut self) -> ReplayStop {
        loop {
            let run = &self.replay.run;
            let pending = match &run.state {
                State::Running => list_pending_commands(self.edited, run),
                State::Ended { .. } if !run.effects.pending.is_empty() => {
                    list_pending_commands(self.edited, run)
                }
                _ => Vec::new(),
            };
            if pending.is_empty() {
                match self.take_turn() {
                    true => continue,
                    false => return self.describe_stop(),
                }
            }
            if self.take_fork(&pending) {
                continue;
            }
            let mut misses = Vec::new();
            let found = pending.iter().filter_map(|command| match self.find_recording(command) {
                Ok(seq) => Some((seq, command)),
                Err(why) => {
                    misses.push((command, why));
                    None
                }
            });
            let next = found.min_by_key(|(seq, _)| *seq).map(|(_, command)| command.clone());
            match (next, misses.into_iter().next()) {
                (Some(command), _) => self.give_result(&command),
                (None, Some((command, why))) => {
                    let CommandPlace { step, visit, member, .. } =
                        place_of(self.edited, &self.replay.run, command);
                    let step = member.unwrap_or(step).to_string();
                    return ReplayStop::Needs {
                        step,
                        visit,
                        is_call: matches!(command, Command::Ask(_)),
                        why,
                    };
                }
                (None, None) => return self.describe_stop(),
            }
        }
    }

    /// Lets the run go on as its fork, once nothing is to come of what was recorded before.
    fn take_fork(&mut self, pending: &[Command]) -> bool {
        let Some((forked, ..)) = self.tape.forks.last() else { return false };
        let places = pending.iter().map(|command| place_of(self.edited, &self.replay.run, command));
        let next = |place: CommandPlace| Some(self.tape.results.get(&place)?.last()?.seq);
        if places.filter_map(next).any(|seq| seq < *forked) {
            return false;
        }
        let Some((_, moment, fork)) = self.tape.forks.pop() else { return false };
        let fork = Completion::Forked(Box::new(RunForked { records: self.replay.run.seq, ..*fork }));
        self.tree = tree_after(&fork).or(self.tree.take());
        self.decide(moment, fork)
    }

    fn describe_stop(&self) -> ReplayStop {
        match self.replay.run.state {
            State::Suspended(_) => ReplayStop::Waits,
            _ => ReplayStop::Ended,
        }
    }

    /// The recorded result of a command; else why there is none.
    fn find_recording(&self, command: &Command) -> Result<u64, String> {
        let place = place_of(self.edited, &self.replay.run, command);
        let Some(recording) = self.tape.results.get(&place).and_then(|results| results.last()) else {
            return Err("the recording has no result of it".to_owned());
        };
        match self.find_difference(recording, command) {
            Some(what) if !self.same_answers => Err(format!("its {what} differs")),
            _ => Ok(recording.seq),
        }
    }

    /// Gives a command its recorded result.
    fn give_result(&mut self, command: &Command) {
        let place = place_of(self.edited, &self.replay.run, command);
        let Some(recording) = self.tape.results.get_mut(&place).and_then(Vec::pop) else { return };
        if let Some(what) = self.find_difference(&recording, command) {
            let step = place.member.unwrap_or(place.step).to_string();
            self.replay.asked_otherwise.push((step, place.visit, what));
        }
        self.replay.used += 1;
        self.last = self.last.max(recording.seq);
        self.tree = tree_after(&recording.completion).or(self.tree.take());
        self.decide(recording.moment, recording.completion.for_command(command.id()));
    }

    /// Lets a person or a resume act as recorded, if that helps now.
    fn take_turn(&mut self) -> bool {
        // What came before a result that was used was for a state that is gone.
        while self.tape.turns.last().is_some_and(|turn| turn.seq < self.last) {
            self.tape.turns.pop();
        }
        let wants_person = match &self.replay.run.state {
            State::Suspended(waiting) => waiting.kind == WaitKind::Person,
            _ => false,
        };
        let fits =
            |turn: &&Turn| wants_person == matches!(turn.completion, Completion::PersonAnswered { .. });
        if self.tape.turns.last().filter(fits).is_none() {
            return false;
        }
        let Some(Turn { moment, completion, .. }) = self.tape.turns.pop() else { return false };
        self.decide(moment, completion)
    }

    /// Decides, and returns whether anything followed.
    fn decide(&mut self, moment: Moment, completion: Completion) -> bool {
        let at_ms = self.moment.at_ms.max(moment.at_ms);
        self.moment = Moment { at_ms, driven_ms: moment.driven_ms };
        let seq = self.replay.run.seq;
        let events = self.replay.run.advance(self.edited, self.moment, completion).events;
        let has_followed = !events.is_empty();
        if has_followed {
            self.replay.entries.push(Entry { seq, at_ms, events });
        }
        has_followed
    }

    /// What differs between a command and the recorded one of its place.
    fn find_difference(&self, recording: &Recording, now: &Command) -> Option<&'static str> {
        let differs = match (&recording.command, now) {
            (Command::Ask(recorded), Command::Ask(now)) => self.find_ask_difference(recorded, now),
            (Command::Exec(recorded), Command::Exec(now)) => {
                let is_same = (&recorded.validator, &recorded.values) == (&now.validator, &now.values);
                (!is_same).then_some("command")
            }
            (Command::Probe(recorded), Command::Probe(now)) => {
                (recorded.probe != now.probe).then_some("condition")
            }
            (Command::Effect(recorded), Command::Effect(now)) => {
                let is_same = (&recorded.effect.kind, &recorded.program) == (&now.effect.kind, &now.program);
                (!is_same).then_some("effect")
            }
            _ => Some("kind"),
        };
        // The same words about other files are another question.
        differs.or_else(|| (recording.tree != self.tree).then_some("working tree"))
    }

    fn find_ask_difference(&self, recorded: &AskCommand, now: &AskCommand) -> Option<&'static str> {
        let schema =
            |flow: &Flow, ask: &AskCommand| ask.schema.map(|schema| flow.schema(schema).value().clone());
        let differences = [
            ("prompt", recorded.prompt != now.prompt),
            ("system prompt", recorded.system != now.system),
            ("schema", schema(self.recorded, recorded) != schema(self.edited, now)),
            ("permission", recorded.boundary != now.boundary),
            ("model", recorded.model != now.model),
            ("session", conversation_of(recorded) != conversation_of(now)),
        ];
        differences.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what)
    }
}

/// The conversation that a call goes on with, and what is retold without it.
fn conversation_of(ask: &AskCommand) -> (Option<&str>, &[PromptPart]) {
    (ask.session.as_ref().map(|session| session.id.as_str()), &ask.without_session)
}

/// The working tree after a result. What an interruption left in it, or somebody changed while the run waited, was found by
/// the recorded run alone and is no part of any result.
fn tree_after(completion: &Completion) -> Option<String> {
    let tree = match completion {
        Completion::Start(start) => start.started.tree.as_ref(),
        Completion::Forked(fork) => fork.tree.as_ref(),
        result => result.command().and(result.seen()).map(|seen| &seen.tree),
    };
    tree.map(|tree| tree.tree.clone())
}

/// The place of a pending command.
fn place_of(flow: &Flow, run: &Run, command: &Command) -> CommandPlace {
    let node = run.progress.node.as_ref().map(|node| node.step.clone()).unwrap_or_default();
    let visit = run.progress.visit.as_ref().map_or(0, |visit| visit.visit);
    let member = command.id().member().and_then(|index| match &flow.step(flow.find(&node)?).act {
        Act::All { members, .. } => Some(flow.step(*members.get(usize::from(index))?).name.clone()),
        _ => None,
    });
    let doing = match command {
        Command::Ask(ask) => {
            let subject = ask.subject.as_deref().unwrap_or_default();
            format!("{} {} {subject}", ask.kind.as_str(), ask.step)
        }
        Command::Exec(exec) => format!("command {} {}", exec.step, exec.validator.name),
        Command::Probe(probe) => format!("condition {}", probe.condition),
        Command::Effect(effect) => format!("effect {}", effect.effect.kind.word()),
        Command::Read(read) => format!("read {}", read.step),
    };
    CommandPlace { step: node, visit, member, doing }
}
