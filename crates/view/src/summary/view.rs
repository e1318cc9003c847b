//! What the fold of a run yields.

use cuegate_engine::{
    AskKind, EndState, FaultClass, Ledger, Place, Reports, Started, Usage, WaitKind, Waiting,
};
use cuegate_flow::{Str, model::BlobRef};

use super::{action_blocks::Acts, answer_modes::Ways, asks::Asks};

/// Whether somebody drives a run at the moment. The records cannot say; the journal's lease does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// A living process holds the run.
    Alive,
    /// The process that held it is dead.
    Dead,
    /// Nobody holds it.
    None,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// It goes on.
    Running,
    /// It waits.
    Suspended(Waiting),
    /// It ended.
    Ended(EndState),
}

impl RunState {
    /// The word that is printed.
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

/// A visit that ended, a member that did, or a judge of a monitor.
///
/// Each answered ask belongs to exactly one row, so the rows of an ended run add up to its totals: a parallel
/// step's own row holds no asks of its members.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The record in which it ended.
    pub seq: u64,
    /// The step.
    pub step: Str,
    /// Which visit of the step, from 1; a member's is that of its parallel step.
    pub visit: u32,
    /// Which attempt in this visit, from 1.
    pub attempt: u32,
    /// Which iteration of the run; `None` for members and judges of monitors, which are none.
    pub iteration: Option<u32>,
    /// Its outcome; `None` when there was none.
    pub outcome: Option<Str>,
    /// The step it went on to, or `@completed` and the like; `None` for members.
    pub target: Option<Str>,
    /// The monitor that chose the target.
    pub overridden_by: Option<Str>,
    /// The validator whose failure led to this visit.
    pub remedy: Option<Str>,
    /// The conversation at its end.
    pub session: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// How many asks were answered in it, of all kinds.
    pub asks: u64,
    /// What they used up, faulty tries included.
    pub usage: Usage,
    /// Files that changed meanwhile.
    pub changed_files: Vec<String>,
    /// Files that changed where none may.
    pub violations: Vec<String>,
    /// When it was entered, in milliseconds since 1970.
    pub entered_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// The parallel step that it is a member of.
    pub parent: Option<Str>,
    /// Why a member has no outcome.
    pub why: Option<String>,
    /// What the check of this work said.
    pub check: Option<Check>,
}

impl Row {
    /// From entering to ending, in milliseconds; waiting included.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.ended_ms.saturating_sub(self.entered_ms)).unwrap_or(0)
    }
}

/// What a check said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its outcome.
    pub result: Str,
    /// Its reason.
    pub message: Option<String>,
    /// What the definition calls the way that it took.
    pub way: Option<Str>,
}

/// An ask that found no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRow {
    /// The step that was asked.
    pub step: Str,
    /// The open visit's number.
    pub visit: u32,
    /// What kind of fault.
    pub class: FaultClass,
    /// What happened.
    pub message: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
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
    /// Whether it passed.
    pub passed: bool,
    /// How it ended, in words.
    pub ended: String,
    /// What it printed.
    pub stdout: BlobRef,
    /// What it printed to standard error.
    pub stderr: BlobRef,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// Data that a step left, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedRow {
    /// The step.
    pub step: Str,
    /// The name.
    pub key: Str,
    /// The value.
    pub value: BlobRef,
    /// The value itself, when it is short.
    pub scalar: Option<Str>,
}

/// A visit that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The step.
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

/// What a run is doing at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// Somebody is asked.
    Ask {
        /// The step: a judge's own name is that of the step it judges.
        step: Str,
        /// What for.
        kind: AskKind,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
        /// Not before this time.
        not_before_ms: Option<i64>,
    },
    /// What an agent asked for is done.
    Effect {
        /// What.
        action: Str,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
    /// A command runs.
    Command {
        /// The step.
        step: Str,
        /// Which of its commands.
        index: u16,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
    /// It is looked whether the run is done.
    Look {
        /// At which part of the verdict, by its place.
        condition: Str,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
}

/// Where a run stands and what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// The run.
    pub run: String,
    /// The definition's name.
    pub flow: Str,
    /// Its format.
    pub dialect: String,
    /// What was loaded, as it was typed.
    pub path: String,
    /// Whether it goes on.
    pub state: RunState,
    /// Why it ended or waits; `None` while it runs.
    pub reason: Option<String>,
    /// Whether somebody drives it.
    pub live: Liveness,
    /// Who is asked.
    pub provider: String,
    /// The model that was named, else the one that answered last.
    pub model: Option<String>,
    /// Where it works.
    pub place: Place,
    /// Whether git told what changed there.
    pub git: bool,
    /// Iterations entered.
    pub iterations: u32,
    /// The most iterations.
    pub iterations_max: u32,
    /// What ended, in the order in which it did.
    pub rows: Vec<Row>,
    /// The visit that has not ended.
    pub open: Option<Open>,
    /// What it is doing, in the order of members; empty when it does not run.
    pub pending: Vec<Pending>,
    /// Answered asks.
    pub asks: Asks,
    /// What was used up, late answers and faulty tries included.
    pub usage: Usage,
    /// Answered asks, late ones included, whose cost is not known: what they cost is not in the sum.
    pub unpriced: u64,
    /// Asks that were cut off before they answered.
    pub cut: u64,
    /// Asks without an answer of which nobody knows what they used up: they were cut off, or failed at work.
    pub unknown: u64,
    /// Asks that wait for a share of the budget.
    pub wanting: u64,
    /// How asks were put.
    pub ways: Ways,
    /// What may be used up, and what counts against it.
    pub ledger: Ledger,
    /// Whether the login is a subscription, so that what tokens cost is notional.
    pub notional: bool,
    /// What agents asked for in blocks, and how answers compare with their schemas.
    pub acts: Acts,
    /// Asks that found no answer.
    pub faults: Vec<FaultRow>,
    /// Validators that ran.
    pub validators: Vec<ValidatorRow>,
    /// Data that steps left, in the order in which it was first left.
    pub handed: Vec<HandedRow>,
    /// What steps reported.
    pub reports: Reports,
    /// The last answer's summary.
    pub summary: Option<BlobRef>,
    /// What a person was asked last.
    pub question: Option<BlobRef>,
    /// Every file that changed, sorted.
    pub changed_files: Vec<String>,
    /// The step that was entered last.
    pub final_step: Option<Str>,
    /// Whether every validator that guards the end passed; `None` before the end.
    pub validated: Option<bool>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// When it ended; `None` while it can go on by itself or by somebody.
    pub ended_ms: Option<i64>,
    /// The time of the last record.
    pub last_ms: Option<i64>,
    /// How many records it has.
    pub records: u64,
}

impl RunView {
    /// A run without records.
    pub(super) fn new(run: &str) -> RunView {
        RunView {
            run: run.to_owned(),
            flow: "".into(),
            dialect: String::new(),
            path: String::new(),
            state: RunState::Running,
            reason: None,
            live: Liveness::None,
            provider: String::new(),
            model: None,
            place: Default::default(),
            git: true,
            iterations: 0,
            iterations_max: 0,
            rows: Vec::new(),
            open: None,
            pending: Vec::new(),
            asks: Asks::default(),
            usage: Usage::default(),
            unpriced: 0,
            cut: 0,
            unknown: 0,
            wanting: 0,
            ways: Ways::default(),
            ledger: Ledger::default(),
            notional: false,
            acts: Acts::default(),
            faults: Vec::new(),
            validators: Vec::new(),
            handed: Vec::new(),
            reports: Reports::default(),
            summary: None,
            question: None,
            changed_files: Vec::new(),
            final_step: None,
            validated: None,
            started_ms: None,
            ended_ms: None,
            last_ms: None,
            records: 0,
        }
    }

    /// Takes over what it began with.
    pub(super) fn began(&mut self, started: &Started, at_ms: i64) {
        self.flow = started.flow.clone();
        self.dialect = started.dialect.clone();
        self.path = started.path.clone();
        self.provider = started.provider.clone();
        self.model = started.model.clone();
        self.place = started.place.clone();
        self.git = started.tree.is_some();
        self.iterations_max = started.iterations_max;
        self.notional = started.notional;
        self.started_ms = Some(at_ms);
    }

    /// It neither waits nor has it ended any more.
    pub(super) fn goes_on(&mut self) {
        self.state = RunState::Running;
        self.reason = None;
        self.validated = None;
        self.ended_ms = None;
    }

    /// The exit code of a command that ran it so far; `None` while it runs.
    pub fn exit_code(&self) -> Option<u8> {
        match &self.state {
            RunState::Running => None,
            RunState::Ended(EndState::Completed) => Some(0),
            RunState::Ended(
                EndState::Aborted | EndState::Failed | EndState::Exhausted | EndState::Cancelled,
            ) => Some(1),
            RunState::Suspended(waiting) => Some(match waiting.kind {
                WaitKind::Person | WaitKind::Quota => 3,
                WaitKind::Environment => 4,
                WaitKind::Interrupted => 130,
            }),
        }
    }

    /// Whether its owner died while it ran.
    pub fn died(&self) -> bool {
        self.state == RunState::Running && self.live == Liveness::Dead
    }

    /// Where it stands, in words that a person reads.
    pub fn standing(&self) -> String {
        match (&self.state, self.live) {
            (RunState::Running, Liveness::Dead) => "running, but its owner died".to_owned(),
            (RunState::Running, Liveness::None) => "running, but nobody drives it".to_owned(),
            (RunState::Suspended(waiting), _) => match waiting.kind {
                WaitKind::Person => "suspended, waiting for a person".to_owned(),
                WaitKind::Quota => "suspended, waiting for the provider's limit to pass".to_owned(),
                WaitKind::Environment => "suspended until something is mended".to_owned(),
                WaitKind::Interrupted => "suspended, interrupted".to_owned(),
            },
            (state, _) => state.as_str().to_owned(),
        }
    }

    /// From its beginning to its last record, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        match (self.started_ms, self.last_ms) {
            (Some(started), Some(last)) => u64::try_from(last.saturating_sub(started)).unwrap_or(0),
            _ => 0,
        }
    }
}

/// The word of a kind of waiting.
pub(crate) fn waits_for(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Person => "person",
        WaitKind::Quota => "quota",
        WaitKind::Environment => "environment",
        WaitKind::Interrupted => "interrupted",
    }
}
