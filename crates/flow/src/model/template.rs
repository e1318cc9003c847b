//! Prompts with holes.

use crate::Str;

/// A prompt, parsed once. Inserted text is never parsed again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// What it is made of, in order.
    pub pieces: Vec<Piece>,
}

/// A part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as written.
    Text(Str),
    /// A value of the run.
    Value(Source),
    /// A value that the failing validator left.
    Failure(Str),
    /// The current item of the enclosing [`Piece::Each`], or a field of it.
    Item(Option<Str>),
    /// One body or the other, by whether a failure value is there and not empty.
    If {
        /// Name of the failure value.
        name: Str,
        /// Shown when it has content.
        then: Vec<Piece>,
        /// Shown otherwise.
        otherwise: Vec<Piece>,
    },
    /// The body once per item of a failure value.
    Each {
        /// Name of the failure value.
        name: Str,
        /// Shown per item.
        body: Vec<Piece>,
    },
    /// The body, when a value of the run has something in it: a heading needs no empty section below it.
    Filled {
        /// The value.
        source: Source,
        /// Shown then.
        body: Vec<Piece>,
    },
}

/// Where a value in a prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A value given when the run starts: a declared parameter or one of `--set`.
    Param(Str),
    /// The task text or what standard input held.
    Task,
    /// A declared input of the step: data that an earlier step handed on.
    Input(Str),
    /// Data that a step handed on, read directly.
    Handoff {
        /// The step that left it.
        step: Str,
        /// The name it left it under.
        key: Str,
    },
    /// The newest content of a report, else a remark that there is none yet.
    Report(Str),
    /// A fact the engine knows.
    Fact(Fact),
}

/// What the engine itself can put into a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The number of this iteration, from 1.
    Iteration,
    /// Finished iterations.
    CompletedIterations,
    /// The most iterations there can be.
    MaxIterations,
    /// Iterations left, this one included.
    Remaining,
    /// The last answer's summary, else its text. It does not exist before the first answer.
    PreviousSummary,
    /// All of the last answer: of a parallel step, those of all its members. It is empty before the first.
    PreviousResponse,
    /// Which visit of this step it is, from 1.
    Visit,
    /// The folder that the run's reports are kept in, for agents that read them.
    ReportDir,
    /// What persons answered so far, the oldest first.
    UserInputs,
    /// How many whole rounds of its cycle the monitor saw that asks.
    Rounds,
    /// How many answers of checking steps the verdict counted.
    Checks,
}

impl Template {
    /// A template that is plain text.
    pub fn text(text: &str) -> Template {
        Template { pieces: vec![Piece::Text(text.into())] }
    }

    /// Every value it reads, in order, also inside conditions and repetitions.
    pub fn sources(&self) -> Vec<&Source> {
        let mut found = Vec::new();
        collect(&self.pieces, &mut found);
        found
    }
}

fn collect<'t>(pieces: &'t [Piece], found: &mut Vec<&'t Source>) {
    for piece in pieces {
        match piece {
            Piece::Value(source) => found.push(source),
            Piece::If { then, otherwise, .. } => {
                collect(then, found);
                collect(otherwise, found);
            }
            Piece::Each { body, .. } | Piece::Filled { body, .. } => collect(body, found),
            Piece::Text(_) | Piece::Failure(_) | Piece::Item(_) => {}
        }
    }
}
