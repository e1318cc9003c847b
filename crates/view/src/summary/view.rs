//! The result of the fold over a run.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_engine::{
    AgentPlan, EndState, FaultClass, HiddenText, Ledger, Machine, Place, Reports, RunForked, RunStarted,
    SuspensionCause, ToolCall, ToolResult, Usage, WaitKind,
};
use cuegate_flow::{Str, model::BlobRef};

use super::{
    action_blocks::{ActionRows, EffectRow},
    answer_modes::AnswerModes,
    asks::AskCounts,
    pending_command::PendingCommand,
};
use crate::text::clean_to_one_line;

/// Whether a process drives the run. The journal's lease shows this, the records do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// A live process holds the lease.
    Alive,
    /// The process that held the lease is dead.
    Dead,
    /// No process holds the lease.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// It has neither ended nor been suspended.
    Running,
    /// It waits for a person, a provider or a repair.
    Suspended(SuspensionCause),
    /// It has ended.
    Ended(EndState),
}

impl RunState {
    /// The printed word.
    pub fn as_str(&self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Suspended(_) => "suspended",
            RunState::Ended(EndState::Completed) => "completed",
            RunState::Ended(EndState::Aborted) => "aborted",
            RunState::Ended(EndState::Failed) => "failed",
            RunState::Ended(EndState::Exhausted) => "exhausted",
            RunState::Ended(EndState::Cancelled) => "cancelled",
        }
    }
}

/// An ended visit, an ended member of a parallel step, or a monitor's judge.
///
/// Each answered ask belongs to exactly one row, so the rows of an ended run add up to its totals: the row of a
/// parallel step excludes the asks of its members.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitRow {
    /// The record that ended it.
    pub seq: u64,
    pub step: Str,
    /// Which visit of the step, from 1; a member's is that of its parallel step.
    pub visit: u32,
    /// Which attempt in this visit, from 1.
    pub attempt: u32,
    /// The iteration of the run; `None` for members and judges of monitors, which do not count.
    pub iteration: Option<u32>,
    /// Its outcome; `None` when there was none.
    pub outcome: Option<Str>,
    /// The next step, or `@completed` and the like; `None` for members.
    pub target: Option<Str>,
    /// The monitor that chose the target.
    pub overridden_by: Option<Str>,
    /// The validator whose failure led to this visit.
    pub remedy: Option<Str>,
    /// The session at its end.
    pub session: Option<Str>,
    /// The agent that answered last.
    pub agent: Option<Str>,
    /// The model that answered last.
    pub model: Option<Str>,
    /// The number of answered asks of all kinds.
    pub asks: u64,
    /// Their usage, failed tries included.
    pub usage: Usage,
    /// Files that changed during the visit.
    pub changed_files: Box<[String]>,
    /// Files that changed against the step's permission.
    pub violations: Box<[String]>,
    /// When it was entered, in milliseconds since 1970.
    pub entered_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// The parallel step that it is a member of.
    pub parent: Option<Str>,
    /// Why a member has no outcome.
    pub why: Option<Str>,
    /// The check of this work.
    pub check: Option<Box<CheckOutcome>>,
}

impl VisitRow {
    /// From entry to end, in milliseconds; waiting included.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.ended_ms.saturating_sub(self.entered_ms)).unwrap_or(0)
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutcome {
    /// Its outcome.
    pub result: Str,
    /// Its reason.
    pub message: Option<String>,
    /// The definition's name of the transition.
    pub way: Option<Str>,
}

/// From how many same visits on a step repeats itself.
pub(super) const REPEATS_MIN: u32 = 3;

/// A question of an agent or of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRow {
    pub question: BlobRef,
    /// The answer; `None` while it is open.
    pub answer: Option<BlobRef>,
    /// Whether the definition answered it, not a person.
    pub by_definition: bool,
}

/// An ask that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRow {
    /// The step that was asked.
    pub step: Str,
    /// The open visit's number.
    pub visit: u32,
    /// The class of the fault.
    pub class: FaultClass,
    /// The agent that failed.
    pub agent: String,
    /// The error message.
    pub message: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// A use of a tool by an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRow {
    /// The step that was asked.
    pub step: Str,
    /// The open visit's number.
    pub visit: u32,
    /// The use.
    pub call: ToolCall,
}

/// A validator that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatorRow {
    /// The record.
    pub seq: u64,
    /// The step whose visit it judges.
    pub step: Str,
    /// That visit's number.
    pub visit: u32,
    /// The validator's name.
    pub validator: Str,
    /// Its command on one line.
    pub command: String,
    /// Whether it passed.
    pub passed: bool,
    /// How it ended: `exit 1`.
    pub ended: String,
    /// Its standard output.
    pub stdout: BlobRef,
    /// Its standard error.
    pub stderr: BlobRef,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// The current value of a handoff field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRow {
    pub step: Str,
    /// The field.
    pub key: Str,
    pub value: BlobRef,
    /// The value itself, when it is short enough to inline.
    pub scalar: Option<Str>,
}

/// A visit that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenVisit {
    pub step: Str,
    /// Which visit of it.
    pub visit: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Since when, in milliseconds since 1970.
    pub entered_ms: i64,
    /// The validator whose failure led to it.
    pub remedy: Option<Str>,
}

/// The run of which another one is a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkSource {
    pub run: String,
    /// The moment, in words.
    pub moment: String,
    /// The number of records that both have.
    pub records: u64,
    /// The number of ended visits that both have.
    pub visits: usize,
    /// What it had spent until then, in US dollars, if that is known.
    pub cost_usd: Option<f64>,
    /// What it had requested outside of its working tree until then: the fork repeats nothing of it.
    pub effects: Vec<EffectRow>,
    /// The keys of the conversations that started anew.
    pub new_sessions: Vec<Str>,
}

/// The state and history of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    pub run: String,
    /// Whether a person marked it as reviewed; the caller looks it up.
    pub is_reviewed: bool,
    /// The definition's name.
    pub flow: Str,
    /// Its format.
    pub dialect: String,
    /// The path of the definition as given.
    pub path: String,
    /// The digest of the task.
    pub task_blob: Option<BlobRef>,
    /// The task; the caller looks it up.
    pub task: Option<String>,
    pub state: RunState,
    /// The reason of the end or the suspension; `None` while it runs.
    pub reason: Option<String>,
    /// Whether a process drives it.
    pub live: Liveness,
    pub provider: String,
    /// The agents beside that.
    pub agents: AgentPlan,
    /// The requested model of the usual agent, else the model with which it answered last.
    pub model: Option<String>,
    /// The validators that failed before the first call.
    pub failed_before: Vec<String>,
    /// The issue or pull request that it works on, with its title.
    pub issue: Option<(u64, String)>,
    /// What was hidden in its task and removed.
    pub hidden: HiddenText,
    /// The run of which it is a fork.
    pub fork: Option<ForkSource>,
    /// The folder that it works in.
    pub place: Place,
    /// The machine that drives it, or drove it last, if its journal is shared with others.
    pub machine: Option<Machine>,
    /// Whether git tracks changes there.
    pub git: bool,
    /// Iterations entered.
    pub iterations: u32,
    /// The most iterations.
    pub iterations_max: u32,
    /// Files that a step changed against its boundary.
    pub violations: BTreeSet<String>,
    /// Files of the main checkout that changed while a run worked in its own worktree, by the agent or someone else.
    pub main_checkout: BTreeSet<String>,
    /// The number of further such files.
    pub main_checkout_more: u64,
    /// What agents changed in their git folder and the run did not take over, in words.
    pub left_in_git: BTreeSet<String>,
    /// What the snapshots of its working tree leave out, beside what git ignores.
    pub snapshot_gaps: BTreeSet<String>,
    /// The tools that agents used, in the order of their answers.
    pub tools: Vec<ToolRow>,
    /// The number of further uses, which the journal does not keep.
    pub tools_more: u64,
    /// The hosts with their ports that the sandbox refused, and how often.
    pub denied_hosts: BTreeMap<Str, u64>,
    /// Ended visits, in the order of their ends.
    pub rows: Vec<VisitRow>,
    /// How many rows there were, forgotten ones included.
    pub ended_visits: usize,
    /// The step of the last visit, and how often in a row it answered the same and changed no file; `None` below three
    /// times.
    pub repeats: Option<(Str, u32)>,
    /// The last visit that changed files, if they are as after an earlier one, and that one; 0 is the start of the run.
    pub circle: Option<((Str, u32), (Str, u32))>,
    /// The visit that has not ended.
    pub open: Option<OpenVisit>,
    /// Pending commands, in the order of members; empty when it does not run.
    pub pending: Vec<PendingCommand>,
    /// When this was looked at, in milliseconds since 1970: what waits until then waits.
    pub seen_ms: Option<i64>,
    /// Answered asks.
    pub asks: AskCounts,
    /// The usage, late answers and failed tries included.
    pub usage: Usage,
    /// Answered asks, late ones included, whose cost is unknown and missing from the usage.
    pub unpriced: u64,
    /// Asks that were cut off before they answered.
    pub cut: u64,
    /// Asks without an answer and with unknown usage: they were cut off or failed.
    pub unknown: u64,
    /// Asks that wait for a share of the budget.
    pub wanting: u64,
    /// Schema and session modes of the answered asks.
    pub ways: AnswerModes,
    /// The budget and the usage that counts against it.
    pub ledger: Ledger,
    /// Whether the login is a subscription, which makes the cost notional.
    pub notional: bool,
    /// Requested actions and schema checks.
    pub acts: ActionRows,
    /// Failed asks.
    pub faults: Vec<FaultRow>,
    /// Whether files changed after a validator passed last.
    pub is_proof_outdated: bool,
    /// Validators that ran.
    pub validators: Vec<ValidatorRow>,
    /// Handoff values, in the order of their first write.
    pub handed: Vec<HandoffRow>,
    /// Reports of steps.
    pub reports: Reports,
    /// What an agent said last.
    pub summary: Option<BlobRef>,
    /// What an agent said last that may change files.
    pub work_summary: Option<BlobRef>,
    /// The questions to a person and to the definition, with their answers, in order.
    pub questions: Vec<QuestionRow>,
    /// The last question to a person.
    pub question: Option<BlobRef>,
    /// Whether an answer is recorded that the run has not read yet.
    pub is_answered: bool,
    /// Files that changed while no process drove the run, by the agent or by a person.
    pub meanwhile: BTreeSet<String>,
    /// The files that differ between the start and the end, if the caller has compared them.
    pub difference: Option<BTreeMap<String, LineCount>>,
    /// The changed files from which gates take what they run, if the caller has compared them.
    pub gate_files: Vec<GateFile>,
    /// Where the commits of the run and its files differ, in words after each path, if the caller has compared them.
    pub committed_otherwise: Vec<(String, &'static str)>,
    /// New files that git does not show, and so no diff, if the caller has looked for them.
    pub hidden_files: Vec<String>,
    /// Every file that changed, sorted.
    pub changed_files: Vec<String>,
    /// The last entered step.
    pub final_step: Option<Str>,
    /// Whether every validator before the end passed; `None` before the end.
    pub validated: Option<bool>,
    /// The validators that did not pass in a completed run, as a sentence.
    pub unvalidated: Option<String>,
    /// The start time, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// The end time, in milliseconds since 1970; `None` while the run has not ended.
    pub ended_ms: Option<i64>,
    /// The time of the last record.
    pub last_ms: Option<i64>,
    /// When it stopped, while it is at rest.
    pub rests_since_ms: Option<i64>,
    /// How long it was at rest between its start and its last record: it waited for a person, a limit or its next resume.
    pub rested_ms: u64,
    /// The number of records.
    pub records: u64,
}

impl RunView {
    /// The uses of tools that the agent's permission or list of tools did not cover.
    pub fn denied_tools(&self) -> impl Iterator<Item = &ToolRow> {
        self.tools.iter().filter(|row| row.call.result == ToolResult::Denied)
    }

    /// A run without records.
    pub(super) fn new(run: &str) -> RunView {
        RunView {
            run: run.to_owned(),
            is_reviewed: false,
            flow: "".into(),
            dialect: String::new(),
            path: String::new(),
            state: RunState::Running,
            reason: None,
            live: Liveness::None,
            provider: String::new(),
            agents: AgentPlan::default(),
            model: None,
            failed_before: Vec::new(),
            issue: None,
            hidden: HiddenText::default(),
            fork: None,
            place: Default::default(),
            machine: None,
            task_blob: None,
            task: None,
            git: true,
            iterations: 0,
            iterations_max: 0,
            violations: BTreeSet::new(),
            main_checkout: BTreeSet::new(),
            main_checkout_more: 0,
            left_in_git: BTreeSet::new(),
            snapshot_gaps: BTreeSet::new(),
            tools: Vec::new(),
            tools_more: 0,
            denied_hosts: BTreeMap::new(),
            rows: Vec::new(),
            ended_visits: 0,
            repeats: None,
            circle: None,
            open: None,
            pending: Vec::new(),
            seen_ms: None,
            asks: AskCounts::default(),
            usage: Usage::default(),
            unpriced: 0,
            cut: 0,
            unknown: 0,
            wanting: 0,
            ways: AnswerModes::default(),
            ledger: Ledger::default(),
            notional: false,
            acts: ActionRows::default(),
            faults: Vec::new(),
            is_proof_outdated: false,
            validators: Vec::new(),
            handed: Vec::new(),
            reports: Reports::default(),
            summary: None,
            work_summary: None,
            questions: Vec::new(),
            question: None,
            is_answered: false,
            meanwhile: BTreeSet::new(),
            difference: None,
            gate_files: Vec::new(),
            committed_otherwise: Vec::new(),
            hidden_files: Vec::new(),
            changed_files: Vec::new(),
            final_step: None,
            validated: None,
            unvalidated: None,
            started_ms: None,
            ended_ms: None,
            last_ms: None,
            rests_since_ms: None,
            rested_ms: 0,
            records: 0,
        }
    }

    /// Applies the start event.
    pub(super) fn began(&mut self, started: &RunStarted, at_ms: i64) {
        self.flow = started.flow.clone();
        self.dialect = started.dialect.clone();
        self.path = started.path.clone();
        self.task_blob = started.task.clone();
        self.provider = started.provider.clone();
        self.model = started.model.clone();
        self.agents.clone_from(&started.agents);
        self.failed_before = started.failed_before.clone();
        self.hidden = started.hidden;
        self.issue = started
            .github
            .as_ref()
            .and_then(|github| Some((github.issue?, clean_to_one_line(github.title.as_deref()?))));
        self.place = started.place.clone();
        self.machine.clone_from(&started.machine);
        self.git = started.tree.is_some();
        self.iterations_max = started.iterations_max;
        self.notional = started.notional;
        self.started_ms = Some(at_ms);
    }

    /// Goes on as another run. What the one before spent and did elsewhere is that one's.
    pub(super) fn forked(&mut self, fork: &RunForked, at_ms: i64) {
        let effects = std::mem::take(&mut self.acts.effects);
        self.fork = Some(ForkSource {
            run: fork.run.clone(),
            moment: fork.moment.clone(),
            records: fork.records,
            visits: self.ended_visits,
            cost_usd: self.usage.cost_usd,
            effects,
            new_sessions: fork.new_sessions.clone(),
        });
        self.place = fork.place.clone();
        self.machine.clone_from(&fork.machine);
        self.started_ms = Some(at_ms);
        (self.usage, self.asks) = (Usage::default(), AskCounts::default());
        (self.unpriced, self.cut, self.unknown) = (0, 0, 0);
        self.ways = AnswerModes::default();
    }

    /// Clears the end or the suspension.
    pub(super) fn continues(&mut self, at_ms: i64) {
        // A run that goes on without having stopped was driven by a process that died, some time after its last record.
        let since = self.rests_since_ms.take().or(self.last_ms);
        let rested = since.map_or(0, |since| at_ms.saturating_sub(since));
        self.rested_ms += u64::try_from(rested).unwrap_or(0);
        self.state = RunState::Running;
        self.reason = None;
        self.validated = None;
        self.ended_ms = None;
    }

    /// The exit code for this state; `None` while it runs.
    pub fn exit_code(&self) -> Option<u8> {
        match &self.state {
            RunState::Running => None,
            RunState::Ended(EndState::Completed) => Some(0),
            RunState::Ended(EndState::Aborted | EndState::Failed | EndState::Cancelled) => Some(1),
            RunState::Ended(EndState::Exhausted) => Some(5),
            RunState::Suspended(waiting) => Some(match waiting.kind {
                WaitKind::Person | WaitKind::Quota => 3,
                WaitKind::Environment => 4,
                WaitKind::Interrupted => 130,
            }),
        }
    }

    /// The files that agents changed, without those that were changed back.
    pub fn agent_changes(&self) -> Vec<&str> {
        let stays =
            |file: &&String| self.difference.as_ref().is_none_or(|all| all.contains_key(file.as_str()));
        self.changed_files.iter().filter(stays).map(String::as_str).collect()
    }

    /// The changed files that tools run or obey by themselves, with the names of the tools.
    pub fn self_running(&self) -> Vec<(&str, &'static str)> {
        let changed = self.agent_changes().into_iter().chain(self.command_changes());
        changed.filter_map(|path| Some((path, crate::obeyed_by(path)?))).collect()
    }

    /// The files that validators and other commands changed, and no agent.
    pub fn command_changes(&self) -> Vec<&str> {
        let all = self.difference.iter().flat_map(BTreeMap::keys);
        let by_agents: BTreeSet<&String> = self.changed_files.iter().collect();
        all.filter(|file| !by_agents.contains(file)).map(String::as_str).collect()
    }

    /// Whether the process that drove it died.
    pub fn died(&self) -> bool {
        self.state == RunState::Running && self.live == Liveness::Dead
    }
}

/// The size of a change, in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineCount {
    /// Added lines; `None` for binary files.
    pub added: Option<u64>,
    /// Removed lines; `None` for binary files.
    pub removed: Option<u64>,
}

impl LineCount {
    /// `+12 −3`; `None` for binary files and where only rights changed.
    pub(crate) fn describe(&self) -> Option<String> {
        match (self.added.unwrap_or(0), self.removed.unwrap_or(0)) {
            (0, 0) => None,
            (added, 0) => Some(format!("+{added}")),
            (0, removed) => Some(format!("−{removed}")),
            (added, removed) => Some(format!("+{added} −{removed}")),
        }
    }
}

/// A changed file that a command runs, or from which it takes what it runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GateFile {
    /// Its path, relative to the top of the working tree.
    pub path: String,
    pub command: String,
}

/// The word of a kind of waiting in JSON.
pub(crate) fn waits_for(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Person => "person",
        WaitKind::Quota => "quota",
        WaitKind::Environment => "environment",
        WaitKind::Interrupted => "interrupted",
    }
}
