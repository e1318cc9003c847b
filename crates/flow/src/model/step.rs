//! The nodes and edges of a flow.
//!
//! Generic over how a step is referred to: by [`Name`] while a definition is read (the name may be wrong),
//! by [`crate::model::StepId`] afterwards (it cannot be).

use crate::{
    Str,
    diagnostics::Span,
    model::{Boundary, CounterId, Dangling, FieldPath, Guard, SchemaId, Template},
};

/// A reference as a definition writes it, not yet known to lead anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name as written.
    pub text: Str,
    /// Where it is written.
    pub span: Span,
}

impl Name {
    /// A name at a place.
    pub fn new(text: &str, span: Span) -> Name {
        Name { text: text.into(), span }
    }
}

/// A node: something that is done, a gate that turns it into one outcome, an edge for each outcome.
#[derive(Debug, Clone)]
pub struct Step<R> {
    /// Its name, unique in the flow.
    pub name: Str,
    /// What people call it.
    pub title: Str,
    /// Where it is defined.
    pub span: Span,
    /// Whether entering it is a visit and an iteration. A step that does not count belongs to the visit
    /// that led to it.
    pub counts: bool,
    /// What is done.
    pub act: Act<R>,
    /// How that becomes an outcome.
    pub gate: Gate<R>,
    /// What an agent may touch meanwhile.
    pub boundary: Boundary,
    /// Data an answer leaves for later steps.
    pub handoff: Vec<Handoff>,
    /// Data of earlier steps that it needs.
    pub inputs: Vec<Input>,
    /// Where it goes from here: for an outcome, the first edge on it whose bound is not used up.
    pub edges: Vec<Edge<R>>,
}

/// What a step does.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a flow has a few dozen acts, and most of them ask")]
pub enum Act<R> {
    /// Asks an agent.
    Ask(Ask),
    /// Enters all members at once and waits for them.
    All {
        /// The members, in definition order. Their edges are not followed.
        members: Vec<R>,
        /// How many may be at work at the same time, at least 1.
        width: u16,
    },
    /// Runs commands in order until one fails.
    Exec {
        /// The commands, at least one.
        commands: Vec<Validator>,
    },
    /// Waits for a person's answer.
    Person {
        /// What they are asked.
        question: Template,
    },
}

/// How an agent is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What the ask is for.
    pub role: Role,
    /// What it is told.
    pub prompt: Template,
    /// What it is told once, before everything else.
    pub system: Option<Template>,
    /// What its answer must look like.
    pub schema: Option<SchemaId>,
    /// The model, by the definition's name for it.
    pub model: Option<Str>,
    /// Whose persona it takes, for providers and scripts that tell agents apart.
    pub persona: Option<Str>,
    /// Other names by which scripts know that persona: what its file is called.
    pub persona_names: Vec<Str>,
    /// Which conversation it continues.
    pub session: SessionRule,
    /// Files that its answer owes, in the order in which they are asked for.
    pub reports: Vec<Report>,
    /// Where a structured answer says several things at once. Such an answer may also come as plain text.
    pub fused: Option<Fused>,
    /// With what an answer in plain text begins that says why its agent cannot proceed, and nothing else. An empty
    /// answer is none where this is said.
    pub blocked_mark: Option<Str>,
    /// What has to pass before its outcome counts; of members only.
    pub guard: Option<Guard>,
}

/// A file that an answer owes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its name, as written; it is known to be a safe relative path.
    pub name: Str,
    /// What is said when it is asked for by itself, in the conversation of the answer that owes it.
    pub request: Template,
    /// Where it is declared.
    pub span: Span,
}

/// Where the parts of a structured answer stand that names its outcome, speaks and reports at once.
///
/// Text without such an answer is not a bad answer: its outcome is read by other readers, and its reports are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fused {
    /// What the agent says: what later steps read as its answer.
    pub response: FieldPath,
    /// The reports: an object with a text for each name.
    pub reports: FieldPath,
    /// Why the agent cannot proceed; then nothing else counts.
    pub blocked: FieldPath,
}

/// What an ask is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Does the work of a step.
    Work,
    /// Decides between outcomes for another step.
    Judge,
    /// Checks the work of another step.
    Check,
}

/// Which conversation an ask continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRule {
    /// The one of this key, if there is one; it replaces that one's head.
    Continue(Str),
    /// A new one that becomes the head of this key.
    Renew(Str),
    /// A branch of the one of this key, which stays as it was.
    Branch(Str),
    /// A new one that nobody continues.
    Fresh,
}

/// How what a step did becomes an outcome.
#[derive(Debug, Clone)]
pub enum Gate<R> {
    /// Readers of an answer, tried in order.
    Readers(Vec<Reader<R>>),
    /// Over the outcomes of all members.
    Join {
        /// Rules, tried in order.
        rules: Vec<JoinRule>,
        /// When none of them fits: steps that are asked about what all members said, tried in order.
        judges: Vec<R>,
    },
    /// A command's exit: [`Outcome::Pass`] or [`Outcome::Fail`].
    Exit,
    /// Whatever came, this outcome.
    Always(Outcome),
}

/// One way to read an outcome out of an answer.
#[derive(Debug, Clone)]
pub enum Reader<R> {
    /// A field holds a word for the outcome.
    Field {
        /// Where the word stands.
        path: FieldPath,
        /// Accepted words, already in lower case and trimmed, and the outcome each means. [`Outcome::None`] leaves it to
        /// the next reader.
        words: Vec<(Str, Outcome)>,
        /// Where the agent's own reason stands; the first that holds text is kept.
        reasons: Vec<FieldPath>,
    },
    /// A tag in the text: `[NAME:3]`, any case; the last one counts.
    Tag {
        /// The name inside the brackets.
        name: Str,
        /// The number of the first outcome.
        base: u32,
        /// The outcomes by number; [`Outcome::None`] is a number that means nothing.
        outcomes: Vec<Outcome>,
    },
    /// Another ask decides.
    Judge {
        /// The step that is asked. Its own gate yields the outcome, [`Outcome::None`] when none fits.
        step: R,
    },
    /// The text says it: `NAME: word` anywhere, or nothing but the word. Where it says different things, it says nothing.
    Said {
        /// What stands before the word, in lower case.
        name: Str,
        /// Accepted words, already in lower case and trimmed, and the outcome each means.
        words: Vec<(Str, Outcome)>,
    },
    /// When nothing above could be read, or the answer does not fit the schema, this: the agent is not asked again.
    Otherwise(Outcome),
    /// When nothing above could be read and repairs did not help, this.
    Fallback(Outcome),
    /// The same, but only in the first iteration of a run, and only for an answer that names no outcome: one that
    /// names it and is wrong otherwise is no misunderstanding of the question.
    FirstFallback(Outcome),
    /// What a run fails with when an answer holds nothing to read an outcome from. It holds text and facts that are
    /// numbers.
    Silence(Template),
}

/// A rule of a join: the outcome when its pattern fits, the first that fits counts.
#[derive(Debug, Clone)]
pub struct JoinRule {
    /// What the members' outcomes must look like.
    pub pattern: JoinPattern,
    /// The outcome then.
    pub outcome: Outcome,
}

/// What the outcomes of members must look like. A member that failed, was blocked or timed out has no outcome.
#[derive(Debug, Clone)]
pub enum JoinPattern {
    /// Every member has this outcome.
    All(Outcome),
    /// The members have these, in definition order.
    Each(Vec<Outcome>),
    /// Some member has one of these.
    Any(Vec<Outcome>),
}

/// What a step can result in. The set of a step is finite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// An outcome by the definition's name for it.
    Named(Str),
    /// All commands passed.
    Pass,
    /// The command of this index failed, timed out or could not be run.
    Fail(u16),
    /// Nothing matched.
    None,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Named(name) => f.write_str(name),
            Outcome::Pass => f.write_str("pass"),
            Outcome::Fail(index) => write!(f, "fail({index})"),
            Outcome::None => f.write_str("none"),
        }
    }
}

/// Where an outcome leads.
#[derive(Debug, Clone)]
pub struct Edge<R> {
    /// On which outcome.
    pub on: Outcome,
    /// Where to.
    pub to: Target<R>,
    /// How often at most; the next edge on the same outcome is taken afterwards.
    pub bound: Option<Bound>,
    /// Counters that start anew when it is taken.
    pub resets: Vec<CounterId>,
    /// The prompt that the target is asked with instead of its own: a remedy.
    pub remedy: Option<Template>,
    /// Whether the target remembers who led to it, as the origin that remedies go back to.
    pub hands_off: bool,
    /// Whether it re-enters the same visit (one more attempt) instead of starting another.
    pub again: bool,
    /// Whether it exists everywhere by the format's rules. Such an edge is no way out that an author meant.
    pub implied: bool,
    /// What the definition calls this way, where results tell it.
    pub label: Option<Str>,
    /// What it is written to lead to and no step is: of a flow that is not sound only.
    pub dangling: Vec<Dangling>,
    /// Where it is defined.
    pub span: Span,
}

impl<R> Edge<R> {
    /// A plain edge.
    pub fn new(on: Outcome, to: Target<R>, span: Span) -> Edge<R> {
        Edge {
            on,
            to,
            bound: None,
            resets: Vec::new(),
            remedy: None,
            hands_off: false,
            again: false,
            implied: false,
            label: None,
            dangling: Vec::new(),
            span,
        }
    }
}

/// How often an edge may be taken until its counter is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The counter it counts on.
    pub counter: CounterId,
    /// The most times; 0 closes the edge.
    pub max: u32,
}

/// Where an edge leads.
#[derive(Debug, Clone)]
pub enum Target<R> {
    /// To a step.
    Step(R),
    /// Out of the flow.
    End(Ending),
    /// Back to the step that handed off to this visit's step, else to this visit's step itself.
    Origin {
        /// Every step that can be the one.
        among: Vec<R>,
    },
    /// Wherever a value selects.
    Select {
        /// Where the value comes from.
        by: Selector,
        /// The value as text, and where it leads.
        cases: Vec<(Str, R)>,
        /// For every other value and for none.
        default: Option<R>,
    },
    /// To the step that the answer names.
    Jump {
        /// Where the name stands in the answer; `None` when the definition names the only target.
        field: Option<FieldPath>,
        /// The steps that may be named.
        among: Vec<R>,
        /// When the answer names none.
        default: Option<R>,
    },
}

/// Where a selecting value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A field of the answer being routed.
    Field(FieldPath),
    /// Handed-on data of this name: of the answer being routed, else the newest of the run.
    Handoff(Str),
}

/// How a run ends by its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It reached its goal.
    Completed,
    /// It gave up in a way the definition provides.
    Aborted,
    /// It broke a rule of the definition, which is named.
    Failed(Str),
}

/// Data an answer leaves for later steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// The name it is kept under.
    pub key: Str,
    /// Where it stands in the answer.
    pub path: FieldPath,
    /// Where this is declared.
    pub span: Span,
}

/// Data of an earlier step that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name its prompt uses.
    pub name: Str,
    /// The step that leaves it.
    pub step: Str,
    /// The name that step leaves it under.
    pub key: Str,
    /// Whether the run fails when it is not there.
    pub required: bool,
    /// What is used when it is not there.
    pub default: Option<Str>,
    /// Where this is declared.
    pub span: Span,
}

/// A command that judges the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator {
    /// Its name.
    pub name: Str,
    /// What the shell runs.
    pub command: Str,
    /// When it passes.
    pub success: Success,
    /// What is taken out of its output for the failure prompt, by name.
    pub extract: Vec<(Str, Extractor)>,
    /// After how many milliseconds it is killed, which is a failure.
    pub timeout_ms: u64,
}

/// When a command passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    /// It printed nothing to standard output and exited 0, or 1 with nothing on standard error either.
    Empty,
    /// It exited with this code.
    ExitCode(i32),
}

impl Success {
    /// Whether a finished command passed. A killed one has no exit code and never does.
    pub fn holds(self, exit: Option<i32>, stdout: &str, stderr: &str) -> bool {
        match self {
            Success::ExitCode(code) => exit == Some(code),
            Success::Empty => {
                let quiet = exit == Some(0) || (exit == Some(1) && stderr.trim().is_empty());
                quiet && stdout.trim().is_empty()
            }
        }
    }
}

/// What can be taken out of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extractor {
    /// All of standard output.
    Stdout,
    /// All of standard error.
    Stderr,
    /// Standard error, or standard output when that is empty.
    ErrorOutput,
    /// The exit code.
    ExitCode,
    /// Paths changed in the index or the working tree (`git status --porcelain`).
    ChangedFiles,
    /// Paths that git does not know (`git status --porcelain`).
    UntrackedFiles,
    /// Paths changed in the index (`git status --porcelain`).
    StagedFiles,
    /// Paths changed in the working tree only (`git status --porcelain`).
    UnstagedFiles,
    /// Names of failed tests.
    FailedTests,
    /// Errors of a type checker: file, line, column, message.
    TypeErrors,
    /// Files that errors name.
    Files,
    /// Findings of a linter: file, line, rule, message.
    LintErrors,
    /// Files that a formatter would change.
    UnformattedFiles,
    /// The difference a formatter would make.
    Diff,
    /// The branch a command names.
    BranchName,
    /// What a command says about the remote branch.
    RemoteStatus,
    /// What a command says about merging.
    MergeStatus,
    /// An extractor nobody knows: always empty, and a finding says so.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::Success;

    #[test]
    fn empty_needs_a_quiet_exit() {
        let empty = |exit, out, err| Success::Empty.holds(exit, out, err);
        assert!(empty(Some(0), "\n", "a warning"));
        assert!(!empty(Some(0), "M a", ""));
        assert!(empty(Some(1), "", ""), "grep that finds nothing");
        assert!(!empty(Some(1), "", "fatal: not a repository"));
        assert!(!empty(Some(127), "", ""));
        assert!(!empty(None, "", ""), "killed");
    }
}
