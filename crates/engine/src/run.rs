//! The state of a run: the fold of its events.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_flow::{BlobRef, Str};
use serde::{Deserialize, Serialize};

use crate::{
    budget::Ledger,
    command::{CommandId, Said},
    event::Event,
    facts::{AskKind, EndState, Hold, Part, Remedy, RowEnd, Started, TreeState, Usage, WaitKind, Waiting},
    verdict::{Known, Probing},
};

/// Where a run stands. It holds digests and small facts, never long texts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// How many records were applied: the number of the next one.
    pub seq: u64,
    /// What it began with; `None` before the first record.
    pub started: Option<Arc<Started>>,
    /// Whether it goes on.
    pub state: State,
    /// The step that control stands on.
    pub node: Option<Node>,
    /// The visit that is open: it ends when control comes to another step that counts.
    pub visit: Option<Visit>,
    /// Iterations entered.
    pub iterations: u32,
    /// Iterations finished.
    pub finished: u32,
    /// Visits by step.
    pub visits: BTreeMap<Str, u32>,
    /// Counters of bounded edges.
    pub counters: BTreeMap<Str, u32>,
    /// Who handed off to a step.
    pub origins: BTreeMap<Str, Str>,
    /// Data that steps left, by step and name; the newest visit wins.
    pub handoffs: BTreeMap<Str, BTreeMap<Str, Kept>>,
    /// The last answer's summary.
    pub summary: Option<BlobRef>,
    /// The last answer of a step, whoever judged or checked it.
    pub said: Option<Said>,
    /// What is known of the parts of the verdict, by their places.
    pub conditions: BTreeMap<Str, Known>,
    /// What a person was asked last.
    pub question: Option<BlobRef>,
    /// Heads of conversations, by key.
    pub sessions: BTreeMap<Str, Head>,
    /// Finished top-level steps since a monitor last acted.
    pub history: Vec<Str>,
    /// Asks that were answered, so that a repeated answer is not charged twice.
    pub settled: BTreeSet<CommandId>,
    /// The tree that the run stands on.
    pub tree: Option<TreeState>,
    /// The record in which somebody last looked at the tree after stopping what was at work there.
    pub looked: Option<u64>,
    /// What was used up.
    pub usage: Usage,
    /// What may be used up, and what pending asks have set aside.
    pub ledger: Ledger,
    /// The most iterations, as the last resume set it.
    pub iterations_max: u32,
    /// How often a bad answer is asked again, as the last resume set it.
    pub repairs_max: u32,
}

/// A conversation as the last journaled answer left it.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The provider's name for it.
    pub id: String,
    /// What the provider reported for the whole of it.
    pub totals: Option<Usage>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum State {
    /// Nothing happened yet.
    #[default]
    New,
    /// It goes on.
    Running,
    /// It waits.
    Suspended(Waiting),
    /// It ended.
    Ended {
        /// How.
        state: EndState,
        /// Why.
        reason: String,
        /// Where an exhausted run goes on with a higher limit.
        hold: Option<Hold>,
    },
}

/// The step that control stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub step: Str,
    /// The record that entered it.
    pub entered: u64,
    /// What it does.
    pub work: Work,
}

/// What a step does at the moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// It was entered; nothing is pending yet.
    Entered,
    /// It asks.
    Asking(Asking),
    /// It runs its commands; this one is pending.
    Running {
        /// Since this record.
        seq: u64,
        /// Which command.
        index: u16,
    },
    /// Its members ask.
    Joining(Vec<Member>),
    /// It waits for a person.
    Person,
    /// It is over, and the run looks around before the next step.
    Probing(Probing),
}

/// A pending ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// The record that made it pending.
    pub seq: u64,
    /// What for.
    pub kind: AskKind,
    /// Faults since the last answer.
    pub faults: u32,
    /// Rejected answers in this attempt.
    pub repairs: u32,
    /// Not before this time, in milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// How long limits of the provider were waited for so far, in milliseconds.
    pub waited_ms: u64,
    /// What is said instead of the step's own prompt.
    pub follow: Option<Follow>,
    /// The answer that another step judges.
    pub judging: Option<Judging>,
}

/// What is said in a conversation that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// What is said.
    pub say: Vec<Part>,
    /// What the agent said before, for a provider that cannot continue a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<BlobRef>,
}

/// An answer whose outcome another step decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judging {
    /// The step that decides.
    pub judge: Str,
    /// The place of the reader that asked it, to go on from there.
    pub reader: u16,
    /// The answer.
    pub answer: BlobRef,
}

/// A member of a parallel step.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its step.
    pub step: Str,
    /// Its ask, while there is one.
    pub asking: Option<Asking>,
    /// How it ended: its outcome, or nothing when it failed.
    pub ended: Option<Option<Str>>,
    /// Whether it said that it cannot proceed.
    pub blocked: bool,
}

/// An open visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    /// The step.
    pub step: Str,
    /// Which visit of it.
    pub visit: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Which iteration of the run.
    pub iteration: u32,
    /// The prompt in place of its own.
    pub remedy: Option<Remedy>,
    /// Its outcome, once decided.
    pub outcome: Option<Str>,
    /// The monitor that acted on its way out.
    pub monitor: Option<Str>,
    /// Files that changed.
    pub changed: BTreeSet<String>,
}

/// Data that a step left.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The value.
    pub value: BlobRef,
    /// The value itself, when it is short.
    pub scalar: Option<Str>,
    /// Whether it is text that an agent wrote.
    pub text: bool,
    /// The record that entered its step, and the member: the newest of a name wins, in whatever order members answer.
    pub order: (u64, u16),
}

impl Run {
    /// The state after some records.
    pub fn fold<'e>(records: impl IntoIterator<Item = &'e [Event]>) -> Run {
        let mut run = Run::default();
        for events in records {
            run.apply_record(events);
        }
        run
    }

    /// The provider's marks of the answers and faults in some records: what it needs to go on where it was. They mean
    /// something to the provider and the script that gave them only, so another one begins without.
    pub fn receipts<'e>(records: impl IntoIterator<Item = &'e [Event]>) -> Vec<String> {
        let mut receipts = Vec::new();
        let mut asked = "";
        for event in records.into_iter().flatten() {
            match event {
                Event::RunStarted(started) => asked = &started.provider,
                Event::Answered { receipt, .. } | Event::Faulted { receipt, .. } => {
                    receipts.extend(receipt.clone())
                }
                Event::Resumed { provider, script, .. } => {
                    let another = provider.as_ref().is_some_and(|name| name != asked);
                    asked = provider.as_deref().unwrap_or(asked);
                    if another || script.is_some() {
                        receipts.clear();
                    }
                }
                _ => {}
            }
        }
        receipts
    }

    /// Applies a record.
    pub fn apply_record(&mut self, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
        self.seq += 1;
    }

    /// What it began with.
    ///
    /// # Panics
    /// Before the first record: nothing asks a run that has none.
    pub fn started(&self) -> &Started {
        self.started.as_ref().expect("a run that has records has started")
    }

    /// The ask of this id, when it is pending, with the name of the step that is asked.
    pub fn asking(&self, id: CommandId) -> Option<(Str, Option<u16>, &Asking)> {
        let node = self.node.as_ref()?;
        match &node.work {
            Work::Asking(asking) if asking.seq == id.seq && id.member == 0 => {
                Some((node.step.clone(), None, asking))
            }
            Work::Joining(members) => {
                let member = members.get(id.member as usize)?;
                let asking = member.asking.as_ref().filter(|asking| asking.seq == id.seq)?;
                Some((member.step.clone(), Some(id.member), asking))
            }
            _ => None,
        }
    }

    /// Folds one event in. Events of one record are applied in order before [`Run::seq`] moves on.
    pub fn apply(&mut self, event: &Event) {
        self.ledger.apply(event);
        match event {
            Event::RunStarted(started) => {
                self.iterations_max = started.iterations_max;
                self.repairs_max = started.repairs_max;
                self.tree = started.tree.clone();
                self.started = Some(Arc::new((**started).clone()));
                self.state = State::Running;
            }
            Event::StepEntered { step, counts, visit, attempt, iteration, remedy } => {
                self.node = Some(Node { step: step.clone(), entered: self.seq, work: Work::Entered });
                if *counts {
                    self.iterations = *iteration;
                    self.visits.insert(step.clone(), *visit);
                    self.visit = Some(Visit {
                        step: step.clone(),
                        visit: *visit,
                        attempt: *attempt,
                        iteration: *iteration,
                        remedy: remedy.clone(),
                        outcome: None,
                        monitor: None,
                        changed: BTreeSet::new(),
                    });
                }
            }
            Event::OriginSet { step, origin } => {
                self.origins.insert(step.clone(), origin.clone());
            }
            Event::AskRequested { step, member, kind, not_before_ms, waited_ms, follow, judging } => {
                let asking = Asking {
                    seq: self.seq,
                    kind: *kind,
                    faults: 0,
                    repairs: 0,
                    not_before_ms: *not_before_ms,
                    waited_ms: *waited_ms,
                    follow: follow.clone(),
                    judging: judging.clone(),
                };
                self.ask_requested(step, *member, asking);
            }
            Event::CommandRequested { index, .. } => {
                let seq = self.seq;
                if let Some(node) = &mut self.node {
                    node.work = Work::Running { seq, index: *index };
                }
            }
            Event::AskCut { ask, usage, spoilt, .. } => {
                self.settled.insert(*ask);
                self.charge(usage);
                if let Some(key) = spoilt {
                    self.sessions.remove(key);
                }
            }
            Event::Answered {
                ask,
                kind,
                output,
                text,
                usage,
                session,
                session_key,
                totals,
                changed_files,
                tree,
                ..
            } => {
                if matches!(kind, AskKind::Work | AskKind::Repair | AskKind::Remedy) {
                    self.said = Some(Said { output: output.clone(), text: text.clone() });
                }
                self.settled.insert(*ask);
                self.charge(usage);
                if let (Some(session), Some(key)) = (session, session_key) {
                    self.sessions.insert(key.clone(), Head { id: session.clone(), totals: *totals });
                }
                self.saw(changed_files, tree);
                if let Some(asking) = self.asking_mut(*ask) {
                    asking.faults = 0;
                }
            }
            Event::AnsweredLate { ask, usage } => {
                self.settled.insert(*ask);
                self.charge(usage);
            }
            Event::AnswerRejected { member, .. } => {
                if let Some(asking) = self.current_asking_mut(*member) {
                    asking.repairs += 1;
                }
            }
            Event::HandedOff { step, member, key, value, scalar, text } => {
                let entered = self.node.as_ref().map_or(self.seq, |node| node.entered);
                let order = (entered, member.unwrap_or(0));
                let kept = Kept { value: value.clone(), scalar: scalar.clone(), text: *text, order };
                self.handoffs.entry(step.clone()).or_default().insert(key.clone(), kept);
            }
            Event::Summarised { summary } => self.summary = Some(summary.clone()),
            Event::Faulted { ask, usage, changed_files, tree, .. } => {
                self.settled.insert(*ask);
                self.charge(usage);
                self.saw(changed_files, tree);
                if let Some(asking) = self.asking_mut(*ask) {
                    asking.faults += 1;
                }
            }
            Event::CommandFinished { tree, .. } => self.saw(&[], tree),
            Event::TreeSeen { changed_files, tree } => {
                self.looked = Some(self.seq);
                self.saw(changed_files, &Some(tree.clone()));
            }
            Event::CounterSet { counter, value } => {
                self.counters.insert(counter.clone(), *value);
            }
            Event::Decided { outcome, .. } => {
                if let (Some(visit), Some(node)) = (&mut self.visit, &self.node)
                    && visit.step == node.step
                {
                    visit.outcome = Some(outcome.clone());
                }
            }
            Event::MemberEnded { index, outcome, blocked, .. } => {
                if let Some(Work::Joining(members)) = self.node.as_mut().map(|node| &mut node.work)
                    && let Some(member) = members.get_mut(*index as usize)
                {
                    member.asking = None;
                    member.ended = Some(outcome.clone());
                    member.blocked = *blocked;
                }
            }
            Event::MonitorFired { monitor, .. } => {
                self.history.clear();
                if let Some(visit) = &mut self.visit {
                    visit.monitor = Some(monitor.clone());
                }
            }
            Event::ConditionMet { .. } | Event::ProbesRequested { .. } | Event::Probed { .. } => {
                self.looked_around(event);
            }
            Event::StepLeft { .. } => self.node = None,
            Event::VisitEnded { step, end, .. } => self.visit_ended(step, end),
            Event::PersonAsked { question } => {
                self.question = Some(question.clone());
                if let Some(node) = &mut self.node
                    && node.work == Work::Entered
                {
                    node.work = Work::Person;
                }
            }
            Event::Suspended { waiting } => self.state = State::Suspended(waiting.clone()),
            Event::Resumed {
                iterations_max,
                repairs_max,
                provider,
                script,
                model,
                wait_max_ms,
                notional,
                found,
                ..
            } => {
                self.stand_on(found);
                self.state = State::Running;
                self.forget_faults();
                self.iterations_max = iterations_max.unwrap_or(self.iterations_max);
                self.repairs_max = repairs_max.unwrap_or(self.repairs_max);
                // A conversation is one of the provider that began it.
                let another = provider.as_ref().is_some_and(|name| *name != self.started().provider);
                if another {
                    self.sessions.clear();
                }
                if let Some(started) = self.started.as_mut().map(Arc::make_mut) {
                    started.provider = provider.clone().unwrap_or_else(|| started.provider.clone());
                    started.script = script.clone().or_else(|| started.script.clone());
                    // A name of another provider's model means nothing to this one.
                    started.model = model.clone().or_else(|| started.model.take().filter(|_| !another));
                    started.wait_max_ms = wait_max_ms.unwrap_or(started.wait_max_ms);
                    started.notional = notional.unwrap_or(started.notional);
                }
            }
            Event::Ended { state, reason, hold, stays, .. } => {
                if !stays {
                    self.node = None;
                    self.visit = None;
                }
                self.state = State::Ended { state: *state, reason: reason.clone(), hold: hold.clone() };
            }
            Event::PersonAnswered { found, .. } => {
                self.stand_on(found);
                self.state = State::Running;
            }
            Event::BoundaryViolated { .. }
            | Event::ValidationSkipped { .. }
            | Event::Reserved { .. }
            | Event::Overspent { .. }
            | Event::TimePassed { .. } => {}
        }
    }

    fn ask_requested(&mut self, step: &Str, member: Option<u16>, mut asking: Asking) {
        // Faults and repairs are counted per asked step: a judge begins with its own.
        let before = self.current_asking_mut(member).filter(|before| before.judging == asking.judging);
        if let Some(before) = before {
            (asking.faults, asking.repairs) = (before.faults, before.repairs);
        }
        let Some(node) = &mut self.node else { return };
        match member {
            None => node.work = Work::Asking(asking),
            Some(index) => {
                if !matches!(node.work, Work::Joining(_)) {
                    node.work = Work::Joining(Vec::new());
                }
                let Work::Joining(members) = &mut node.work else { return };
                match members.get_mut(index as usize) {
                    Some(member) => member.asking = Some(asking),
                    None => members.push(Member {
                        step: step.clone(),
                        asking: Some(asking),
                        ended: None,
                        blocked: false,
                    }),
                }
            }
        }
    }

    /// Somebody had time to mend what was wrong: the tries begin anew.
    fn forget_faults(&mut self) {
        match self.node.as_mut().map(|node| &mut node.work) {
            Some(Work::Asking(asking)) => asking.faults = 0,
            Some(Work::Joining(members)) => {
                members
                    .iter_mut()
                    .filter_map(|member| member.asking.as_mut())
                    .for_each(|asking| asking.faults = 0);
            }
            _ => {}
        }
    }

    fn visit_ended(&mut self, step: &Str, end: &RowEnd) {
        self.node = None;
        self.visit = None;
        self.finished += 1;
        // An exhausted run may go on to its next step: monitors then see this visit like any other.
        if end.target.as_ref().is_some_and(|target| !target.starts_with('@') || &**target == "@exhausted") {
            self.remember(step);
        }
    }

    /// The history is as long as the longest watched tail can be; older entries decide nothing.
    fn remember(&mut self, step: &Str) {
        const HISTORY_MAX: usize = 1024;
        if self.history.len() == HISTORY_MAX {
            self.history.remove(0);
        }
        self.history.push(step.clone());
    }

    pub(crate) fn saw(&mut self, changed: &[String], tree: &Option<TreeState>) {
        if let Some(visit) = &mut self.visit {
            visit.changed.extend(changed.iter().cloned());
        }
        if let Some(tree) = tree {
            self.tree = Some(tree.clone());
        }
    }

    /// What people changed while a run waited is theirs: the next visit is measured against the tree as it was
    /// found. A tree that the run owns is put back instead when an ask was cut off in it.
    fn stand_on(&mut self, found: &Option<TreeState>) {
        let was_at_work = match &self.state {
            State::Suspended(waiting) => {
                waiting.kind == WaitKind::Interrupted
                    && self.started.as_ref().is_some_and(|started| started.place.owned)
            }
            State::Ended { .. } => false,
            State::New | State::Running => true,
        };
        if !was_at_work && let Some(found) = found {
            self.tree = Some(found.clone());
        }
    }

    fn charge(&mut self, usage: &Usage) {
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        if let Some(cost) = usage.cost_usd {
            self.usage.cost_usd = Some(self.usage.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    fn current_asking_mut(&mut self, member: Option<u16>) -> Option<&mut Asking> {
        match (&mut self.node.as_mut()?.work, member) {
            (Work::Asking(asking), None) => Some(asking),
            (Work::Joining(members), Some(index)) => members.get_mut(index as usize)?.asking.as_mut(),
            _ => None,
        }
    }

    fn asking_mut(&mut self, id: CommandId) -> Option<&mut Asking> {
        let member = match &self.node.as_ref()?.work {
            Work::Joining(_) => Some(id.member),
            _ => None,
        };
        self.current_asking_mut(member).filter(|asking| asking.seq == id.seq)
    }
}
