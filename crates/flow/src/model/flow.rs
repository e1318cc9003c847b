//! Definitions: as read ([`Draft`]) and as checked ([`Flow`]).

use crate::{
    Str,
    diagnostics::Span,
    model::{Conduct, DanglingTarget, LimitKey, Name, Param, Schema, Source, Step, Verdict},
};

/// Names a step of a [`Flow`]: its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u32);

/// Names a schema of a flow: its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub u32);

/// Names a counter of a flow: its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub u32);

/// A counter that bounded edges count on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// What it counts, for people and for the journal.
    pub name: Str,
}

/// A definition as its format reads it. Names in it may not resolve.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The definition's name.
    pub name: Str,
    /// Which format it was read from, as printed in results.
    pub dialect: &'static str,
    /// Where the definition begins.
    pub span: Span,
    /// What reading could not make sense of.
    pub flaws: DraftFlaws,
    /// The prompt positions that read values.
    pub reads: Vec<PromptRead>,
    /// The step that is entered first.
    pub entry: Option<Name>,
    /// Further entry steps that other ways to run the definition use.
    pub other_entries: Vec<Name>,
    pub steps: Vec<Step<Name>>,
    /// Compiled schemas of answers.
    pub schemas: Vec<Schema>,
    /// Counters of bounded edges.
    pub counters: Vec<Counter>,
    /// Watched cycles.
    pub monitors: Vec<Monitor<Name>>,
    /// Steps that prove the work of other steps: a run that passed none of them is unproven.
    pub proofs: Vec<Name>,
    /// When the run is complete.
    pub verdict: Verdict,
    /// The limits of a run.
    pub limits: Limits,
    /// The model of asks that name none, if the provider knows it; otherwise the agent's own model applies.
    pub default_model: Option<Str>,
    /// The parameters that a run accepts at its start.
    pub params: Vec<Param>,
    /// The settings of a whole run.
    pub conduct: Conduct,
    /// The numbers that limit runs, in the order in which the sensitivity analysis tries to lower them.
    pub keys: Vec<LimitKey>,
}

/// What reading could not make sense of, so that checks do not report what follows from it.
#[derive(Debug, Clone, Default)]
pub struct DraftFlaws {
    /// Whether reading reported errors; missing entries may then be entries that failed to parse.
    pub is_faulted: bool,
    /// The steps that failed to parse in part; their transitions and their handoff values are unknown.
    pub misread: Vec<Str>,
    /// Undefined variables that other findings have reported; later checks skip them.
    pub reported_variables: Vec<Str>,
    /// The written entry if it is not a step; the draft's entry is then a placeholder.
    pub lost_entry: Option<DanglingTarget>,
}

/// A place where the prompt of a step reads a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRead {
    pub step: Str,
    /// What it reads.
    pub source: Source,
    /// The first position that reads it.
    pub span: Span,
}

impl Draft {
    /// A draft with nothing in it but a name.
    pub fn empty(name: &str, dialect: &'static str) -> Draft {
        Draft {
            name: name.into(),
            dialect,
            span: Span::default(),
            flaws: DraftFlaws::default(),
            reads: Vec::new(),
            entry: None,
            other_entries: Vec::new(),
            steps: Vec::new(),
            schemas: Vec::new(),
            counters: Vec::new(),
            monitors: Vec::new(),
            proofs: Vec::new(),
            verdict: Verdict::Flow,
            limits: Limits::new(20),
            default_model: None,
            params: Vec::new(),
            conduct: Conduct::default(),
            keys: Vec::new(),
        }
    }
}

/// A checked definition: every name in it resolves. Immutable.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The definition's name.
    pub name: Str,
    /// Which format it was read from, as printed in results.
    pub dialect: &'static str,
    /// The step that is entered first.
    pub entry: StepId,
    /// The written entry if it is not a step; only in unsound flows.
    pub lost_entry: Option<DanglingTarget>,
    pub steps: Vec<Step<StepId>>,
    /// Compiled schemas of answers.
    pub schemas: Vec<Schema>,
    /// Counters of bounded edges.
    pub counters: Vec<Counter>,
    /// Watched cycles.
    pub monitors: Vec<Monitor<StepId>>,
    /// Steps that prove the work of others: a run that passed none of them is unproven.
    pub proofs: Vec<StepId>,
    /// When the run is complete.
    pub verdict: Verdict,
    /// The limits of a run.
    pub limits: Limits,
    /// The model of asks that name none, if the provider knows it; otherwise the agent's own model applies.
    pub default_model: Option<Str>,
    /// The parameters that a run accepts at its start.
    pub params: Vec<Param>,
    /// The settings of a whole run.
    pub conduct: Conduct,
    /// The numbers that limit runs, in the order in which the sensitivity analysis tries to lower them.
    pub keys: Vec<LimitKey>,
}

impl Flow {
    /// The step of this id.
    pub fn step(&self, id: StepId) -> &Step<StepId> {
        &self.steps[id.0 as usize]
    }

    /// The step of this name.
    pub fn find(&self, name: &str) -> Option<StepId> {
        self.steps.iter().position(|step| &*step.name == name).map(|index| StepId(index as u32))
    }

    /// The schema of this id.
    pub fn schema(&self, id: SchemaId) -> &Schema {
        &self.schemas[id.0 as usize]
    }

    /// The counter of this id.
    pub fn counter(&self, id: CounterId) -> &Counter {
        &self.counters[id.0 as usize]
    }
}

/// A cycle of steps that a judge reviews after a number of rounds.
#[derive(Debug, Clone)]
pub struct Monitor<R> {
    /// Its name in results.
    pub name: Str,
    /// The stages of one round, in order, at least two. A stage is one step, or several whose consecutive visits count
    /// once: those of a called workflow.
    pub cycle: Vec<Vec<R>>,
    /// Steps whose visits neither count nor break a round.
    pub ignored: Vec<R>,
    /// The number of consecutive rounds after which it acts, at least 1.
    pub threshold: u32,
    /// The step that is entered instead of the next round.
    pub judge: R,
    /// Where it is defined.
    pub span: Span,
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most iterations; the run is exhausted when another would begin.
    pub iterations_max: u32,
    /// Whether the definition sets no iteration limit (`max_steps: infinite`), so that runs are expected to end at this one.
    pub is_endless: bool,
}

impl Limits {
    /// A limit that is only a safety net.
    pub fn new(iterations_max: u32) -> Limits {
        Limits { iterations_max, is_endless: false }
    }
}
