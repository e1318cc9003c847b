//! The fold over the records of a run.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{
    AskKind, AskRequest, CommandId, EndState, Event, FaultClass, ReportVersion, RowEnd, RunResumed,
    SuspensionCause, ToolCall, WaitKind,
};
use cuegate_flow::Str;

use super::action_blocks::EffectState;
use super::open_rows::{OpenRow, PendingAsk, add_usage_saturating, apply_row_end};
use super::pending_command::PendingCommand;
use super::view::{
    CheckOutcome, FaultRow, HandoffRow, Liveness, OpenVisit, QuestionRow, RunState, RunView, ToolRow,
    ValidatorRow, VisitRow,
};
use crate::names::Names;
use crate::stamped::StampedRecord;
use crate::text::command_name;

/// The prefix of a monitor's judge step, which has its own rows.
const MONITOR: &str = "monitor:";

/// Folds all records of a run at once.
pub fn run_view(run: &str, records: &[StampedRecord], live: Liveness) -> RunView {
    let mut fold = RunFold::new(run);
    for record in records {
        fold.apply(record);
    }
    fold.into_view(live)
}

/// An incremental fold.
#[derive(Debug, Clone)]
pub struct RunFold {
    pub(super) view: RunView,
    /// The visit that has not ended.
    pub(super) open: Option<OpenRow>,
    /// The current step when it does not count as an iteration.
    aside: Option<OpenRow>,
    /// Asks that are pending.
    pub(super) requests: BTreeMap<CommandId, PendingAsk>,
    commands: BTreeMap<Option<u16>, PendingCommand>,
    /// Pending checks of the completion rule.
    looks: Vec<PendingCommand>,
    /// The time of the last requested or finished action.
    acted_ms: Option<i64>,
    /// How often each step outside the iteration count was entered: the events do not number these visits.
    aside_visits: BTreeMap<Str, u32>,
    pub(super) changed: BTreeSet<String>,
    /// The record that entered the current step.
    entered: u64,
    /// The record of the last ask that was cut off, and its member.
    cut_at: Option<(u64, Option<u16>)>,
    pub(super) names: Names,
    /// The last answer of each step, and how often in a row it came without a changed file.
    pub(super) repeats: BTreeMap<Str, (String, u32)>,
    /// The files as they were seen last, and after which visit each state of them was there first.
    pub(super) tree: Option<String>,
    pub(super) trees: BTreeMap<String, (Str, u32)>,
    /// The files on which a validator passed last.
    proved_tree: Option<String>,
}

impl RunFold {
    /// A run without records.
    pub fn new(run: &str) -> RunFold {
        RunFold {
            view: RunView::new(run),
            open: None,
            aside: None,
            requests: BTreeMap::new(),
            commands: BTreeMap::new(),
            looks: Vec::new(),
            acted_ms: None,
            aside_visits: BTreeMap::new(),
            changed: BTreeSet::new(),
            entered: 0,
            cut_at: None,
            names: Names::default(),
            repeats: BTreeMap::new(),
            tree: None,
            trees: BTreeMap::new(),
            proved_tree: None,
        }
    }

    /// The state of the run now; the fold goes on.
    pub fn view(&self, live: Liveness) -> RunView {
        self.clone().into_view(live)
    }

    /// The state of the run after its last record.
    pub fn into_view(self, live: Liveness) -> RunView {
        let pending = self.pending();
        let in_flight = self.in_flight(self.view.last_ms.unwrap_or_default());
        let mut view = self.view;
        view.live = live;
        view.changed_files = self.changed.into_iter().collect();
        view.open = self.open.map(|open| OpenVisit {
            step: open.step,
            visit: open.visit,
            attempt: open.attempt,
            entered_ms: open.entered_ms,
            remedy: open.remedy,
        });
        view.pending = pending;
        // A call that was cut off is recorded when the run is resumed, but its cost is unknown already.
        let cut = matches!(
            view.state,
            RunState::Suspended(SuspensionCause { kind: WaitKind::Interrupted, .. })
                | RunState::Ended(EndState::Exhausted)
        );
        if cut || view.died() {
            view.unknown += in_flight;
        }
        let shares = &view.ledger.reserved;
        view.wanting = self.requests.keys().filter(|ask| !shares.contains_key(ask)).count() as u64;
        view
    }

    /// The state of the run.
    pub fn state(&self) -> &RunState {
        &self.view.state
    }

    /// The pending asks.
    pub(crate) fn asks(&self) -> Vec<CommandId> {
        self.requests.keys().copied().collect()
    }

    /// How often the last asks of a step failed in the same way.
    pub(crate) fn times_in_a_row(&self, step: &str, class: FaultClass, message: &str) -> usize {
        let is_same = |row: &&FaultRow| *row.step == *step && row.class == class && row.message == message;
        self.view.faults.iter().rev().take_while(is_same).count()
    }

    /// The pending commands in the order of members; none when the run waits or has ended.
    pub(crate) fn pending(&self) -> Vec<PendingCommand> {
        if self.view.state != RunState::Running {
            return Vec::new();
        }
        // A requested action runs before any other command.
        let acts = self.view.acts.effects.iter().find(|row| row.state == EffectState::Pending);
        if let Some(row) = acts {
            return vec![PendingCommand::Effect {
                action: row.action.clone(),
                since_ms: self.acted_ms.unwrap_or_default(),
            }];
        }
        let mut requests: Vec<&PendingAsk> = self.requests.values().collect();
        requests.sort_by_key(|request| request.member);
        let asks = requests.into_iter().map(|request| PendingCommand::Ask {
            step: request.step.clone(),
            kind: request.kind,
            since_ms: request.since_ms,
            not_before_ms: request.not_before_ms,
            agent: request.agent.clone(),
        });
        asks.chain(self.commands.values().cloned()).chain(self.looks.clone()).collect()
    }

    /// The number of asks that an agent works on.
    fn in_flight(&self, at_ms: i64) -> u64 {
        let ledger = &self.view.ledger;
        let started = self.requests.iter().filter(|(ask, request)| {
            let paid = !ledger.limits() || ledger.reserved.contains_key(ask);
            paid && !request.repeats_cut && request.not_before_ms.is_none_or(|at| at <= at_ms)
        });
        started.count() as u64
    }

    /// Applies a record.
    pub fn apply(&mut self, record: &StampedRecord) {
        for event in &record.events {
            self.apply_event(record.seq, record.at_ms, event);
        }
        record.update_unknown_changes(&mut self.view.meanwhile);
        self.view.records += 1;
        self.view.last_ms = Some(record.at_ms);
    }

    /// Applies an event of a record.
    pub(crate) fn apply_event(&mut self, seq: u64, at_ms: i64, event: &Event) {
        // The ledger forgets what was reserved when the run ends.
        let in_flight = self.in_flight(at_ms);
        self.view.ledger.apply(event);
        if let Some(seen) = event.seen_tree() {
            self.tree = Some(seen.tree.clone());
        }
        if let Event::CommandFinished { passed: true, .. } = event {
            self.proved_tree.clone_from(&self.tree);
        }
        self.view.is_proof_outdated = self.proved_tree.is_some() && self.proved_tree != self.tree;
        self.view.acts.apply(seq, event);
        match event {
            Event::RunStarted(started) => {
                self.trees.extend(started.tree.as_ref().map(|tree| (tree.tree.clone(), Default::default())));
                self.view.began(started, at_ms);
            }
            Event::Forked(fork) => self.view.forked(fork, at_ms),
            Event::StepEntered { step, counts, visit, attempt, iteration, remedy } => {
                self.entered = seq;
                let mut track = self.entered(step, *counts, *visit, *attempt, *iteration, at_ms);
                track.remedy = remedy.as_ref().map(|remedy| remedy.validator.clone());
                match counts {
                    true => self.open = Some(track),
                    false => self.aside = Some(track),
                }
            }
            Event::AskRequested(request) => self.asked(seq, at_ms, request),
            Event::CommandRequested { step, index, command, member, .. } => {
                let command = command_name(command, &format!("command {} of {step}", index + 1));
                let pending = PendingCommand::Command { command, since_ms: at_ms };
                self.commands.insert(*member, pending);
            }
            Event::ToolsUsed { ask, step, calls, more } => self.tools_used(*ask, step, calls, *more),
            Event::Answered { .. } => self.answered(event),
            Event::AskCut { ask, usage, usage_unknown, .. } => {
                self.cut_at = Some((seq, ask.member()));
                self.cut(*ask, usage, *usage_unknown);
            }
            Event::AnsweredLate { usage, .. } => {
                self.view.unpriced += u64::from(usage.cost_usd.is_none());
                add_usage_saturating(&mut self.view.usage, usage);
            }
            Event::Faulted { .. } => self.faulted(at_ms, event),
            Event::BoundaryViolated { step, paths, .. } => self.violated(step, paths),
            Event::MainCheckoutChanged { paths, more, .. } => {
                self.view.main_checkout.extend(paths.iter().cloned());
                self.view.main_checkout_more += more;
            }
            Event::LeftInGit { what } => self.view.left_in_git.extend(what.iter().cloned()),
            Event::SnapshotGaps { what } => self.view.snapshot_gaps.extend(what.iter().cloned()),
            Event::CommandFinished { .. } => self.executed(seq, event),
            Event::HandedOff { step, key, value, scalar, .. } => {
                let row = HandoffRow {
                    step: step.clone(),
                    key: key.clone(),
                    value: value.clone(),
                    scalar: scalar.clone(),
                };
                match self.view.handed.iter_mut().find(|row| row.step == *step && row.key == *key) {
                    Some(old) => *old = row,
                    None => self.view.handed.push(row),
                }
            }
            Event::ReportWritten { step, member, name, visit, content } => {
                let order = (self.entered, member.unwrap_or(0));
                let version =
                    ReportVersion { step: step.clone(), visit: *visit, content: content.clone(), order };
                self.view.reports.write(name, version);
            }
            Event::SandboxDenied { to, .. } => {
                *self.view.denied_hosts.entry(self.names.share(to)).or_default() += 1;
            }
            Event::Summarised { summary, read_only } => {
                self.view.summary = Some(summary.clone());
                if !read_only {
                    self.view.work_summary = Some(summary.clone());
                }
            }
            Event::Decided { step, outcome, reason, way, .. } => {
                let checks = |aside: &&OpenRow| aside.step == *step && aside.asked == Some(AskKind::Check);
                if let (Some(_), Some(open)) = (self.aside.as_ref().filter(checks), &mut self.open) {
                    let (result, message, way) = (outcome.clone(), reason.clone(), way.clone());
                    open.check = Some(Box::new(CheckOutcome { result, message, way }));
                }
            }
            Event::MemberEnded { index, step, outcome, why, .. } => {
                self.member_ended(seq, at_ms, *index, step, outcome.clone(), why.clone());
            }
            Event::ProbesRequested { probes, .. } => {
                let look =
                    |condition: &Str| PendingCommand::Look { condition: condition.clone(), since_ms: at_ms };
                self.looks = probes.iter().map(look).collect();
            }
            Event::Probed { condition: seen, .. } => {
                let waits = |look: &PendingCommand| !matches!(look, PendingCommand::Look { condition, .. } if condition == seen);
                self.looks.retain(waits);
            }
            Event::StepLeft { step, end } => self.left(seq, at_ms, step, end),
            Event::VisitEnded { step, visit, attempt, end, changed_files } => {
                self.visit_ended(seq, at_ms, step, (*visit, *attempt), end, changed_files);
            }
            Event::TreeSeen { changed_files, .. } => self.changed.extend(changed_files.iter().cloned()),
            Event::PersonAsked { question, .. } => {
                self.view.question = Some(question.clone());
                let row = QuestionRow { question: question.clone(), answer: None, by_definition: false };
                self.view.questions.push(row);
            }
            Event::PersonAnswered { text, .. } => {
                let open = self.view.questions.iter_mut().rev().find(|row| row.answer.is_none());
                if let Some(row) = open {
                    row.answer = Some(text.clone());
                }
                self.view.continues(at_ms);
                self.requests.values_mut().for_each(|request| request.repeats_cut = false);
            }
            Event::QuestionAnswered { question, text, .. } => self.view.questions.push(QuestionRow {
                question: question.clone(),
                answer: Some(text.clone()),
                by_definition: true,
            }),
            Event::Suspended { waiting } => {
                self.view.reason = Some(waiting.detail.clone());
                self.view.state = RunState::Suspended(waiting.clone());
                self.view.rests_since_ms = Some(at_ms);
            }
            Event::Resumed(resumed) => {
                let RunResumed { iterations_max, provider, model, agents, notional, moved, .. } = resumed;
                self.view.continues(at_ms);
                self.requests.values_mut().for_each(|request| request.not_before_ms = None);
                self.view.iterations_max = iterations_max.unwrap_or(self.view.iterations_max);
                if let Some(provider) = provider {
                    self.view.provider = provider.clone();
                }
                if model.is_some() {
                    self.view.model = model.clone();
                }
                if let Some(agents) = agents {
                    self.view.agents.clone_from(agents);
                }
                // A resumed run may use another login: an API key pays, a subscription makes the cost notional.
                self.view.notional = notional.unwrap_or(self.view.notional);
                if let Some(moved) = moved {
                    self.view.machine = Some(moved.to.clone());
                    self.view.place.work.clone_from(&moved.work);
                }
            }
            Event::Ended { state, reason, validated, stays, .. } => {
                if *state == EndState::Cancelled {
                    self.view.unknown += in_flight;
                }
                // A run that ended at its budget keeps its pending asks: a larger budget continues them.
                if !stays {
                    self.nothing_pending();
                    (self.open, self.aside) = (None, None);
                }
                self.view.state = RunState::Ended(*state);
                self.view.rests_since_ms = Some(at_ms);
                self.view.reason = Some(reason.clone());
                self.view.validated = Some(*validated);
                self.view.ended_ms = Some(at_ms);
            }
            Event::Ending(_) => {
                self.nothing_pending();
                (self.open, self.aside) = (None, None);
            }
            Event::EffectFinished(finished) => {
                self.changed.extend(finished.changed_files.iter().cloned());
                self.acted_ms = Some(at_ms);
            }
            Event::ValidationSkipped { step, failed } => {
                self.view.unvalidated = Some(match failed {
                    true => format!("{} failed and were skipped", validators_of(step)),
                    false => format!("{} did not run", validators_of(step)),
                });
            }
            Event::ActionFound { .. }
            | Event::EffectsRequested(_)
            | Event::StepEffectsRequested(_)
            | Event::EffectResent { .. } => {
                self.acted_ms = Some(at_ms);
            }
            Event::ReadsRequested(request) => {
                let since_ms = request.not_before_ms.unwrap_or(at_ms);
                let pending = PendingCommand::Command { command: "reads".to_owned(), since_ms };
                self.commands.insert(None, pending);
            }
            Event::ReadsDone(_) => drop(self.commands.remove(&None)),
            Event::Inspected { .. }
            | Event::ClosureNarrowed { .. }
            | Event::MemberSkipped { .. }
            | Event::EffectDelayed(_)
            | Event::OriginSet { .. }
            | Event::Responded { .. }
            | Event::ConditionMet { .. }
            | Event::AnswerRejected { .. }
            | Event::CounterSet { .. }
            | Event::MonitorFired { .. }
            | Event::Reserved { .. }
            | Event::AgentOut { .. }
            | Event::Overspent { .. }
            | Event::ChangedByOthers { .. }
            | Event::TimePassed { .. } => {}
        }
    }

    fn nothing_pending(&mut self) {
        self.requests.clear();
        self.looks.clear();
        self.commands.clear();
    }

    fn entered(
        &mut self,
        step: &Str,
        counts: bool,
        visit: u32,
        attempt: u32,
        iteration: u32,
        at_ms: i64,
    ) -> OpenRow {
        self.nothing_pending();
        self.aside = None;
        if !counts {
            let visits = self.aside_visits.entry(step.clone()).or_default();
            *visits += 1;
            return OpenRow::new(step, *visits, attempt, None, at_ms);
        }
        self.view.iterations = iteration;
        self.view.final_step = Some(step.clone());
        let fresh = OpenRow::new(step, visit, attempt, Some(iteration), at_ms);
        // A visit entered again without having ended stays one row and keeps its usage.
        match self.open.take() {
            Some(open) if open.step == *step && open.visit == visit => {
                OpenRow { attempt, iteration: Some(iteration), members: BTreeMap::new(), ..open }
            }
            _ => fresh,
        }
    }

    fn asked(&mut self, seq: u64, at_ms: i64, request: &AskRequest) {
        let AskRequest { step, member, kind, not_before_ms, agent, .. } = request;
        let (member, kind, not_before_ms) = (*member, *kind, *not_before_ms);
        // A step or a member has at most one pending ask: the newest.
        self.requests.retain(|_, request| request.member != member);
        let repeats_cut = self.cut_at == Some((seq, member));
        let request = PendingAsk {
            step: step.clone(),
            member,
            kind,
            since_ms: at_ms,
            not_before_ms,
            agent: agent.as_ref().map(|choice| choice.agent.clone()),
            repeats_cut,
        };
        self.requests.insert(CommandId::new(seq, member), request);
        if let Some(aside) = &mut self.aside {
            aside.asked.get_or_insert(kind);
        } else if let (Some(index), Some(open)) = (member, &mut self.open) {
            let (visit, attempt) = (open.visit, open.attempt);
            let track = || OpenRow::new(step, visit, attempt, None, at_ms);
            open.members.entry(index).or_insert_with(track);
        }
    }

    /// The usual agent.
    pub(crate) fn provider(&self) -> &str {
        &self.view.provider
    }

    /// The request of a pending ask.
    pub(crate) fn request(&self, ask: CommandId) -> Option<&PendingAsk> {
        self.requests.get(&ask)
    }

    /// The step and number of the open visit.
    pub(crate) fn visiting(&self) -> Option<(&Str, u32)> {
        self.open.as_ref().map(|open| (&open.step, open.visit))
    }

    /// The row of an ask: of a member, of a monitor's judge, else of the open visit.
    pub(super) fn track(&mut self, member: Option<u16>) -> Option<&mut OpenRow> {
        if self.aside.as_ref().is_some_and(|aside| aside.step.starts_with(MONITOR)) {
            return self.aside.as_mut();
        }
        let open = self.open.as_mut()?;
        match member {
            Some(index) if open.members.contains_key(&index) => open.members.get_mut(&index),
            _ => Some(open),
        }
    }

    fn tools_used(&mut self, ask: CommandId, step: &Str, calls: &[ToolCall], more: u64) {
        let member = self.requests.get(&ask).and_then(|request| request.member);
        let visit = self.track(member).map_or(1, |track| track.visit);
        let row = |call: &ToolCall| ToolRow { step: step.clone(), visit, call: call.clone() };
        self.view.tools.extend(calls.iter().map(row));
        self.view.tools_more += more;
    }

    fn violated(&mut self, step: &Str, paths: &[String]) {
        let open = self.open.as_ref();
        let member = open.and_then(|open| {
            open.members.iter().find(|(_, member)| member.step == *step).map(|(index, _)| *index)
        });
        self.view.violations.extend(paths.iter().cloned());
        if let Some(track) = self.track(member) {
            for path in paths {
                if !track.violations.contains(path) {
                    track.violations.push(path.clone());
                }
            }
        }
    }

    fn executed(&mut self, seq: u64, event: &Event) {
        let Event::CommandFinished {
            step,
            member,
            validator,
            command,
            passed,
            ended,
            stdout,
            stderr,
            duration_ms,
            changed_files,
            ..
        } = event
        else {
            return;
        };
        self.commands.remove(member);
        self.changed.extend(changed_files.iter().cloned());
        let (visited, visit) = self.visiting().map_or((step, 1), |(visited, visit)| (visited, visit));
        // A member's commands belong to the member; other commands belong to the open visit.
        let owner = if member.is_some() { step } else { visited };
        let row = ValidatorRow {
            seq,
            step: owner.clone(),
            visit,
            validator: validator.clone(),
            command: command_name(command, validator),
            passed: *passed,
            ended: ended.clone(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            duration_ms: *duration_ms,
        };
        self.view.validators.push(row);
    }

    fn member_ended(
        &mut self,
        seq: u64,
        at_ms: i64,
        index: u16,
        step: &Str,
        outcome: Option<Str>,
        why: Option<String>,
    ) {
        self.requests.retain(|_, request| request.member != Some(index));
        let Some(open) = &mut self.open else { return };
        let fresh = || OpenRow::new(step, open.visit, open.attempt, None, at_ms);
        let member = open.members.remove(&index).unwrap_or_else(fresh);
        let parent = Some(open.step.clone());
        let why = why.map(Str::from);
        self.push_row(VisitRow { outcome, why, parent, ..member.row(seq, at_ms) });
    }

    fn left(&mut self, seq: u64, at_ms: i64, step: &Str, end: &RowEnd) {
        self.nothing_pending();
        // Steps that do not count belong to the visit before them; only a monitor's judge has its own row.
        if let Some(aside) = self.aside.take().filter(|aside| aside.step == *step && aside.asks > 0)
            && step.starts_with(MONITOR)
        {
            self.push_row(apply_row_end(aside.row(seq, at_ms), end));
        }
    }

    fn visit_ended(
        &mut self,
        seq: u64,
        at_ms: i64,
        step: &Str,
        (visit, attempt): (u32, u32),
        end: &RowEnd,
        changed_files: &[String],
    ) {
        self.nothing_pending();
        self.changed.extend(changed_files.iter().cloned());
        let fresh = || OpenRow::new(step, visit, attempt, Some(self.view.iterations), at_ms);
        let mut track = self.open.take().filter(|open| open.step == *step).unwrap_or_else(fresh);
        track.changed.extend(changed_files.iter().cloned());
        // The run ended before these members finished.
        for member in track.members.values() {
            let (parent, why) = (Some(step.clone()), Some("not finished".into()));
            self.push_row(VisitRow { parent, why, ..member.row(seq, at_ms) });
        }
        self.count_repetition(&track);
        self.push_row(apply_row_end(track.row(seq, at_ms), end));
        self.aside = None;
    }
}

/// The validators of a step in words; the step that runs them is generated for the step that they guard.
fn validators_of(step: &str) -> String {
    format!("the validators of `{}`", step.split_once('@').map_or(step, |(guarded, _)| guarded))
}
