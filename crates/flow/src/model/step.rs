//! The steps and edges of a flow.
//!
//! Generic over step references: [`Name`] while a definition is read (it may not resolve), [`crate::model::StepId`]
//! afterwards (it always does).

use cuegate_ask::McpServer;
use serde_json::Value;

use crate::{
    Str,
    diagnostics::Span,
    model::{
        Boundary, Case, CounterId, DanglingTarget, FieldPath, MemberGate, SchemaId, Source, SystemWork,
        Template,
    },
};

/// A reference as a definition writes it; it may not resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name as written.
    pub text: Str,
    /// Where it is written.
    pub span: Span,
}

impl Name {
    /// A name with its position.
    pub fn new(text: &str, span: Span) -> Name {
        Name { text: text.into(), span }
    }
}

/// A step: an act, a gate that turns its result into one outcome, and edges for each outcome.
#[derive(Debug, Clone)]
pub struct Step<R> {
    /// Its name, unique in the flow.
    pub name: Str,
    /// Its display name.
    pub title: Str,
    /// Where it is defined.
    pub span: Span,
    /// Whether entering it starts a visit and an iteration. A step that does not count belongs to the visit that led to
    /// it.
    pub counts: bool,
    /// The action.
    pub act: Act<R>,
    /// How the result becomes an outcome.
    pub gate: Gate<R>,
    /// The permissions of the agent.
    pub boundary: Boundary,
    /// Values of the answer that are kept for later steps.
    pub handoff: Vec<Handoff>,
    /// Values of earlier steps that it needs.
    pub inputs: Vec<Input>,
    /// The steps that are asked first when a visit begins, in order. Their handoff values say which members work and which
    /// parts a prompt has. Their own gates and edges are not followed.
    pub selectors: Vec<R>,
    /// For a member: it is skipped when this value is empty, `false` or `null`.
    pub when: Option<Source>,
    /// The transitions: for an outcome, the first edge on it whose limit is not used up applies.
    pub edges: Vec<Edge<R>>,
}

/// The action of a step.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a flow has a few dozen acts, and most of them ask")]
pub enum Act<R> {
    /// Asks an agent.
    Ask(Ask),
    /// Enters all members at once and waits for them.
    All {
        /// The members, in definition order. Their edges are not followed.
        members: Vec<R>,
        /// The most members that work at the same time, at least 1.
        width: u16,
    },
    /// Runs commands in order until one fails.
    Exec {
        /// The commands, at least one.
        commands: Vec<Validator>,
    },
    /// Waits for a person's answer.
    Person { question: Template },
    /// Cuegate reads and acts itself.
    System(SystemWork),
}

/// How an agent is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What the ask is for.
    pub role: Role,
    pub prompt: Template,
    /// The system prompt.
    pub system: Option<Template>,
    /// The schema of the answer.
    pub schema: Option<SchemaId>,
    /// The model, by the definition's name for it.
    pub model: Option<Str>,
    /// The models from a number of visits on, in ascending order.
    pub later_models: Vec<(u32, Str)>,
    /// What the definition says about the agent.
    pub agent_keys: AgentKeys,
    /// The persona, for providers and scripts that distinguish agents.
    pub persona: Option<Str>,
    /// Other names of the persona in scripts: the name of its file.
    pub persona_names: Vec<Str>,
    /// Which session it continues.
    pub session: SessionRule,
    /// The reports that the answer must provide, in the order in which they are requested.
    pub reports: Vec<Report>,
    /// The parts of a structured answer that combines outcome, text and reports. Such an answer may also come as plain
    /// text.
    pub fused: Option<CombinedFields>,
    /// The prefix of a plain-text answer in which the agent says why it cannot proceed. With a prefix set, an empty
    /// answer is invalid.
    pub blocked_mark: Option<Str>,
    /// The time to wait before the first ask of a visit, in milliseconds.
    pub delay_ms: u64,
    /// Commands that must pass before the outcome counts; only for members.
    pub guard: Option<MemberGate>,
}

/// The keys of a definition by which settings choose an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentKeys {
    /// The agent that the definition names.
    pub agent: Option<Str>,
    /// The tags of the step, in order.
    pub tags: Vec<Str>,
    /// The workflow that the step stands in, and its name there.
    pub written_as: Option<(Str, Str)>,
    /// What the program of the definition asks this for itself, by that program's word: `selector`, `loop-judge`.
    pub seat: Option<Str>,
    /// The visits, in ascending order, from which the next stage of a ladder of agents is called.
    pub promoted_at: Vec<u32>,
    /// The servers whose tools the agent gets, as far as settings allow them.
    pub tool_servers: Vec<McpServer>,
}

impl Ask {
    /// The model in a visit of its step.
    pub fn model_of(&self, visit: u32) -> Option<&Str> {
        let later = self.later_models.iter().rev().find(|(from, _)| *from <= visit);
        later.map(|(_, model)| model).or(self.model.as_ref())
    }

    /// All its models; `None` where the definition names none.
    pub fn models(&self) -> impl Iterator<Item = Option<&Str>> {
        std::iter::once(self.model.as_ref()).chain(self.later_models.iter().map(|(_, model)| Some(model)))
    }
}

/// A report that an answer must provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its name as written; a safe relative path.
    pub name: Str,
    /// The prompt that requests it separately, in the session of the answer.
    pub request: Template,
    /// Where it is declared.
    pub span: Span,
}

/// The fields of a structured answer that combines outcome, text and reports.
///
/// Text without such an answer is valid: other readers then read its outcome, and the reports are requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedFields {
    /// The text of the agent, which later steps read as its answer.
    pub response: FieldPath,
    /// The reports: an object with a text for each name.
    pub reports: FieldPath,
    /// Why the agent cannot proceed; if set, the other fields are ignored.
    pub blocked: FieldPath,
}

/// What an ask is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The work of a step.
    Work,
    /// A decision between outcomes for another step.
    Judge,
    /// A check of another step's work.
    Check,
}

/// Which session an ask continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRule {
    /// The session of this key, if it exists; the ask becomes its new head.
    Continue(Str),
    /// A new session that becomes the head of this key.
    Renew(Str),
    /// A fork of the session of this key, which stays unchanged.
    Branch(Str),
    /// A new session that no ask continues.
    Fresh,
}

/// How the result of a step becomes an outcome.
#[derive(Debug, Clone)]
pub enum Gate<R> {
    /// Readers of an answer, tried in order.
    Readers(Vec<OutcomeReader<R>>),
    /// Rules over the outcomes of all members.
    Join {
        /// Rules, tried in order.
        rules: Vec<JoinRule>,
        /// The steps that judge all members' answers, in order, when no rule matches.
        judges: Vec<R>,
    },
    /// The first case that holds; the run fails if none does.
    Cases(Vec<Case>),
    /// A command's exit: [`Outcome::Pass`] or [`Outcome::Fail`].
    Exit,
    /// Always this outcome.
    Always(Outcome),
}

/// One way to read an outcome out of an answer.
#[derive(Debug, Clone)]
pub enum OutcomeReader<R> {
    /// A field holds a word for the outcome.
    Field {
        /// The field of the word.
        path: FieldPath,
        /// Accepted words, in lower case and trimmed, and their outcomes. [`Outcome::None`] defers to the next reader.
        words: Vec<(Str, Outcome)>,
        /// The fields of the agent's reason; the first with text is kept.
        reasons: Vec<FieldPath>,
    },
    /// A tag in the text: `[NAME:3]`, any case; the last one counts.
    Tag {
        /// The name inside the brackets.
        name: Str,
        /// The number of the first outcome.
        base: u32,
        /// The outcomes by number; [`Outcome::None`] is a number without meaning.
        outcomes: Vec<Outcome>,
    },
    /// Another ask decides.
    Judge {
        /// The judge step. Its own gate yields the outcome, [`Outcome::None`] when none matches.
        step: R,
    },
    /// The text contains `NAME: word`, or consists of the word alone. Contradictory words yield no outcome.
    Said {
        /// The name before the word, in lower case.
        name: Str,
        /// Accepted words, in lower case and trimmed, and their outcomes.
        words: Vec<(Str, Outcome)>,
    },
    /// The outcome if no reader above matched or the answer violates the schema; there are no repair asks.
    Otherwise(Outcome),
    /// The outcome if no reader above matched and repairs did not help.
    Fallback(Outcome),
    /// As `Fallback`, but only in the first iteration of a run and only for an answer that names no outcome: an answer
    /// that names one and is invalid otherwise is no misunderstanding of the question.
    FirstFallback(Outcome),
    /// The failure message of a run whose answer has nothing to read an outcome from. It contains text and numeric
    /// facts.
    Silence(Template),
}

/// A rule of a join: yields its outcome when its pattern matches; the first match counts.
#[derive(Debug, Clone)]
pub struct JoinRule {
    /// The pattern over the members' outcomes.
    pub pattern: JoinPattern,
    /// The outcome of a match.
    pub outcome: Outcome,
}

/// A pattern over the outcomes of the members that were not skipped. A member that failed, was blocked or timed out has
/// no outcome, which [`Outcome::None`] matches.
#[derive(Debug, Clone)]
pub enum JoinPattern {
    /// Every member has this outcome.
    All(Outcome),
    /// The members have these, in definition order.
    Each(Vec<Outcome>),
    /// Some member has one of these.
    Any(Vec<Outcome>),
}

/// A result of a step. Each step has a finite set of outcomes.
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

/// A transition on an outcome.
#[derive(Debug, Clone)]
pub struct Edge<R> {
    /// The outcome.
    pub on: Outcome,
    /// The target.
    pub to: Target<R>,
    /// The most times it is taken; then the next edge on the same outcome applies.
    pub bound: Option<EdgeBound>,
    /// Counters that are reset when it is taken.
    pub resets: Vec<CounterId>,
    /// The prompt that replaces the target's own: a remedy.
    pub remedy: Option<Template>,
    /// Whether the target records this step as the origin that remedies return to.
    pub hands_off: bool,
    /// Whether it re-enters the same visit (one more attempt) instead of starting another.
    pub again: bool,
    /// Whether the format adds it to every step. The author did not write such an edge as an exit.
    pub implied: bool,
    /// The definition's name for this transition, for results.
    pub label: Option<Str>,
    /// The written targets that are not steps; only in unsound flows.
    pub dangling: Vec<DanglingTarget>,
    /// Where it is defined.
    pub span: Span,
}

impl<R> Edge<R> {
    /// Whether the edge may be taken, where `count` gives the value of a counter. Of the open edges of an outcome, the first
    /// one is taken.
    pub fn is_open(&self, count: impl FnOnce(CounterId) -> u32) -> bool {
        self.bound.is_none_or(|bound| bound.allows(count(bound.counter)))
    }

    /// Whether the edge is open before it was ever taken.
    pub fn is_ever_open(&self) -> bool {
        self.is_open(|_| 0)
    }

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
pub struct EdgeBound {
    /// The counter it counts on.
    pub counter: CounterId,
    /// The most times; 0 closes the edge.
    pub max: u32,
}

impl EdgeBound {
    /// Whether the edge may be taken once more after `taken` times.
    pub fn allows(self, taken: u32) -> bool {
        taken < self.max
    }
}

/// The target of an edge.
#[derive(Debug, Clone)]
pub enum Target<R> {
    Step(R),
    /// Out of the flow.
    End(Ending),
    /// Back to the step that handed off to this visit's step, otherwise to this visit's step itself.
    Origin {
        /// Every possible origin step.
        among: Vec<R>,
    },
    /// The step that a value selects.
    Select {
        /// The source of the value.
        by: Selector,
        /// The value as text, and its step.
        cases: Vec<(Str, R)>,
        /// The step for every other value and for a missing one.
        default: Option<R>,
    },
    /// To the step that the answer names.
    Jump {
        /// The field of the name in the answer; `None` when the definition names the only target.
        field: Option<FieldPath>,
        /// The steps that may be named.
        among: Vec<R>,
        /// The step if the answer names none.
        default: Option<R>,
    },
}

/// The source of a selecting value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A field of the answer being routed.
    Field(FieldPath),
    /// The handoff value of this name: from the answer being routed, otherwise the newest of the run.
    Handoff(Str),
}

/// How a run ends by its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It reached its goal.
    Completed,
    /// It gave up in a way that the definition provides for.
    Aborted,
    /// It violated the named rule of the definition.
    Failed(Str),
}

/// A value of an answer that is kept for later steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    pub key: Str,
    /// Its path in the answer.
    pub path: FieldPath,
    /// If set, the value is whether the list at the path contains this text.
    pub item: Option<Str>,
    /// Whether the value stays once it is `true`.
    pub stays: bool,
    /// Whether a list of texts becomes one text, with a line that begins with `- ` for each.
    pub lines: bool,
    /// Where it is declared.
    pub span: Span,
}

impl Handoff {
    /// A value that is handed on as it is.
    pub fn new(key: &str, path: FieldPath, span: Span) -> Handoff {
        Handoff { key: key.into(), path, item: None, stays: false, lines: false, span }
    }

    /// The value in an answer; `None` if there is none.
    pub fn value(&self, answer: &Value) -> Option<Value> {
        let Some(value) = self.path.get(answer) else { return self.path.count(answer).map(Value::from) };
        Some(match &self.item {
            Some(item) => {
                let items = value.as_array().into_iter().flatten();
                items.filter_map(Value::as_str).any(|known| known == &**item).into()
            }
            None if self.lines => join_lines(value),
            None => value.clone(),
        })
    }
}

/// A list as lines of a text; anything else as it is.
fn join_lines(value: &Value) -> Value {
    let Some(items) = value.as_array() else { return value.clone() };
    let line = |item: &Value| format!("- {}", item.as_str().map_or_else(|| item.to_string(), str::to_owned));
    Value::String(items.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// A value of an earlier step that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name its prompt uses.
    pub name: Str,
    /// The step that provides it.
    pub step: Str,
    /// The key that the other step uses.
    pub key: Str,
    /// Whether the run fails when it is missing.
    pub required: bool,
    /// The default when it is missing.
    pub default: Option<Str>,
    /// Where it is declared.
    pub span: Span,
}

/// A command that validates the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator {
    pub name: Str,
    /// The shell command.
    pub command: Str,
    /// The success condition.
    pub success: Success,
    /// The values extracted from its output for the failure prompt, by name.
    pub extract: Vec<(Str, Extractor)>,
    /// The timeout in milliseconds; a timeout is a failure.
    pub timeout_ms: u64,
    /// Values of the run that the command reads as variables of the shell, by the name of the variable.
    pub values: Vec<(Str, Source)>,
}

/// The success condition of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    /// It printed nothing to standard output and exited 0, or 1 with nothing on standard error either.
    Empty,
    /// It printed something to standard output and exited with 0.
    NonEmpty,
    /// It exited with this code.
    ExitCode(i32),
}

impl Success {
    /// Whether a finished command passed. A killed command has no exit code and never passes.
    pub fn holds(self, exit: Option<i32>, stdout: &str, stderr: &str) -> bool {
        match self {
            Success::ExitCode(code) => exit == Some(code),
            Success::NonEmpty => exit == Some(0) && !stdout.trim().is_empty(),
            Success::Empty => {
                let quiet = exit == Some(0) || (exit == Some(1) && stderr.trim().is_empty());
                quiet && stdout.trim().is_empty()
            }
        }
    }
}

/// A value that can be extracted from a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extractor {
    /// All of standard output.
    Stdout,
    /// All of standard error.
    Stderr,
    /// Standard error, or standard output when that is empty.
    ErrorOutput,
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
    /// The branch that a command names.
    BranchName,
    /// The status of the remote branch that a command reports.
    RemoteStatus,
    /// The merge status that a command reports.
    MergeStatus,
    /// An unknown extractor: always empty; a finding reports it.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::Success;

    #[test]
    fn empty_requires_no_output() {
        let empty = |exit, out, err| Success::Empty.holds(exit, out, err);
        assert!(empty(Some(0), "\n", "a warning"));
        assert!(!empty(Some(0), "M a", ""));
        assert!(empty(Some(1), "", ""), "grep that finds nothing");
        assert!(!empty(Some(1), "", "fatal: not a repository"));
        assert!(!empty(Some(127), "", ""));
        assert!(!empty(None, "", ""), "killed");
    }

    #[test]
    fn non_empty_requires_output_of_a_command_that_succeeds() {
        let some = |exit, out| Success::NonEmpty.holds(exit, out, "");
        assert!(some(Some(0), "12\n"));
        assert!(!some(Some(0), " \n"));
        assert!(!some(Some(1), "12"));
        assert!(!some(None, "12"));
    }
}
