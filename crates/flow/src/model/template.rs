//! Prompt templates.

use crate::Str;

/// A prompt, parsed once. Inserted text is never parsed again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// Its parts, in order.
    pub pieces: Vec<Piece>,
}

/// A part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as written.
    Text(Str),
    /// A value of the run.
    Value(Source),
    /// A value that the failed validator extracted.
    Failure(Str),
    /// The current item of the enclosing [`Piece::Each`], or a field of it.
    Item(Option<Str>),
    /// A conditional on whether a failure value exists and is not empty.
    If {
        /// Name of the failure value.
        name: Str,
        /// Shown when it has content.
        then: Vec<Piece>,
        /// Shown otherwise.
        otherwise: Vec<Piece>,
    },
    /// Repeats the body for each item of a failure value.
    Each {
        /// Name of the failure value.
        name: Str,
        /// Shown per item.
        body: Vec<Piece>,
    },
    /// The body, shown when a value of the run is neither empty nor `false` nor `null`: a heading needs no empty section
    /// below it, and a selector may have left a text out.
    Filled {
        /// The value.
        source: Source,
        body: Vec<Piece>,
    },
}

/// The source of a value in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A parameter, or a value of `--set`.
    Param(Str),
    /// The task text or standard input.
    Task,
    /// A declared input of the step: a handoff value of an earlier step.
    Input(Str),
    /// A handoff value that the prompt reads directly.
    Handoff {
        /// The step that provides it.
        step: Str,
        key: Str,
    },
    /// The newest content of a report, otherwise a note that none exists yet.
    Report(Str),
    /// A fact that the engine knows.
    Fact(Fact),
}

/// A fact that the engine provides to prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The number of this iteration, from 1.
    Iteration,
    /// Finished iterations.
    CompletedIterations,
    /// The maximum number of iterations.
    MaxIterations,
    /// Remaining iterations, this one included.
    Remaining,
    /// The summary of the last answer, otherwise its text. It does not exist before the first answer.
    PreviousSummary,
    /// The last answer; for a parallel step, the answers of all members. Empty before the first.
    PreviousResponse,
    /// Which visit of this step it is, from 1.
    Visit,
    /// The folder of the run's reports, for agents that read them.
    ReportDir,
    /// How an agent lists the files that the task has changed.
    ReviewScope,
    /// The answers of persons so far, oldest first.
    UserInputs,
    /// The number of rounds that the asking monitor has observed.
    Rounds,
    /// The number of check answers that the verdict has counted.
    Checks,
}

impl Template {
    /// A template that is plain text.
    pub fn text(text: &str) -> Template {
        Template { pieces: vec![Piece::Text(text.into())] }
    }

    /// All values that it reads, in order, also inside conditions and repetitions.
    pub fn sources(&self) -> Vec<&Source> {
        let mut found = Vec::new();
        collect_sources(&self.pieces, &mut found);
        found.into_iter().map(|(source, _)| source).collect()
    }

    /// The values that it reads also where they may be missing: not only in a part that is shown if there is one.
    pub fn unguarded_sources(&self) -> Vec<&Source> {
        let mut found = Vec::new();
        collect_sources(&self.pieces, &mut found);
        found.into_iter().filter(|(_, is_guarded)| !is_guarded).map(|(source, _)| source).collect()
    }
}

/// Collects the values that are read, and whether each stands in a part that is shown only if it is there.
fn collect_sources<'t>(pieces: &'t [Piece], found: &mut Vec<(&'t Source, bool)>) {
    for piece in pieces {
        match piece {
            Piece::Value(source) => found.push((source, false)),
            Piece::If { then, otherwise, .. } => {
                collect_sources(then, found);
                collect_sources(otherwise, found);
            }
            Piece::Each { body, .. } => collect_sources(body, found),
            Piece::Filled { source, body } => {
                let first = found.len();
                collect_sources(body, found);
                found[first..].iter_mut().for_each(|(read, is_guarded)| *is_guarded |= *read == source);
            }
            Piece::Text(_) | Piece::Failure(_) | Piece::Item(_) => {}
        }
    }
}
