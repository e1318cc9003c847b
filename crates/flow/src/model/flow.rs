//! Whole definitions: as read, and as checked.

use crate::{
    Str,
    diagnostics::Span,
    model::{Conduct, Dangling, Key, Name, Param, Schema, Source, Step, Verdict},
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

/// What a dialect read. Names in it may lead nowhere.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The definition's name.
    pub name: Str,
    /// Which format it was read from, as printed in results.
    pub dialect: &'static str,
    /// Where it begins.
    pub span: Span,
    /// Whether reading it found errors: then what is missing may be only what could not be read.
    pub faulted: bool,
    /// The steps of which something could not be read: where they lead on to, and what they leave, is not known.
    pub misread: Vec<Str>,
    /// Where prompts read what may not be there.
    pub reads: Vec<Read>,
    /// Variables that nobody gives of which findings say so: nothing more is said of them.
    pub told: Vec<Str>,
    /// The step that is entered first.
    pub entry: Option<Name>,
    /// What is written to be entered first and no step is: the entry stands in for it.
    pub lost_entry: Option<Dangling>,
    /// Further steps that other ways of running the definition would enter first.
    pub other_entries: Vec<Name>,
    /// All steps.
    pub steps: Vec<Step<Name>>,
    /// Compiled schemas of answers.
    pub schemas: Vec<Schema>,
    /// Counters of bounded edges.
    pub counters: Vec<Counter>,
    /// Watched cycles.
    pub monitors: Vec<Monitor<Name>>,
    /// Steps that prove the work of others: a run that passed none of them is unproven.
    pub proofs: Vec<Name>,
    /// When the run as a whole is done.
    pub verdict: Verdict,
    /// How long it may go on.
    pub limits: Limits,
    /// The model of asks that name none, where the provider knows one of that name; else it is the provider's own.
    pub default_model: Option<Str>,
    /// Values it can be given at start.
    pub params: Vec<Param>,
    /// What holds for a whole run.
    pub conduct: Conduct,
    /// The numbers in it that bound runs, in the order in which they are tried as what could be lower.
    pub keys: Vec<Key>,
}

/// A place where the prompt of a step reads a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The step.
    pub step: Str,
    /// What it reads.
    pub source: Source,
    /// Where that stands first.
    pub span: Span,
}

impl Draft {
    /// A draft with nothing in it but a name.
    pub fn empty(name: &str, dialect: &'static str) -> Draft {
        Draft {
            name: name.into(),
            dialect,
            span: Span::default(),
            faulted: false,
            misread: Vec::new(),
            reads: Vec::new(),
            told: Vec::new(),
            entry: None,
            lost_entry: None,
            other_entries: Vec::new(),
            steps: Vec::new(),
            schemas: Vec::new(),
            counters: Vec::new(),
            monitors: Vec::new(),
            proofs: Vec::new(),
            verdict: Verdict::Flow,
            limits: Limits { iterations_max: 20 },
            default_model: None,
            params: Vec::new(),
            conduct: Conduct::default(),
            keys: Vec::new(),
        }
    }
}

/// A checked definition: every name in it leads somewhere. Immutable.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The definition's name.
    pub name: Str,
    /// Which format it was read from, as printed in results.
    pub dialect: &'static str,
    /// The step that is entered first.
    pub entry: StepId,
    /// What is written to be entered first and no step is: of a flow that is not sound only.
    pub lost_entry: Option<Dangling>,
    /// All steps.
    pub steps: Vec<Step<StepId>>,
    /// Compiled schemas of answers.
    pub schemas: Vec<Schema>,
    /// Counters of bounded edges.
    pub counters: Vec<Counter>,
    /// Watched cycles.
    pub monitors: Vec<Monitor<StepId>>,
    /// Steps that prove the work of others: a run that passed none of them is unproven.
    pub proofs: Vec<StepId>,
    /// When the run as a whole is done.
    pub verdict: Verdict,
    /// How long it may go on.
    pub limits: Limits,
    /// The model of asks that name none, where the provider knows one of that name; else it is the provider's own.
    pub default_model: Option<Str>,
    /// Values it can be given at start.
    pub params: Vec<Param>,
    /// What holds for a whole run.
    pub conduct: Conduct,
    /// The numbers in it that bound runs, in the order in which they are tried as what could be lower.
    pub keys: Vec<Key>,
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

/// A cycle of steps that somebody judges when it has gone round too often.
#[derive(Debug, Clone)]
pub struct Monitor<R> {
    /// Its name in results.
    pub name: Str,
    /// The steps of one round, in order, at least two.
    pub cycle: Vec<R>,
    /// After how many whole rounds back to back it acts, at least 1.
    pub threshold: u32,
    /// The step that is entered instead of the next round.
    pub judge: R,
    /// Where it is defined.
    pub span: Span,
}

/// How long a run may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most iterations; the run is exhausted when another would begin.
    pub iterations_max: u32,
}
