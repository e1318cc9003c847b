//! What events are made of: the words of the journal that are not events themselves.

use std::collections::BTreeMap;

use cuegate_flow::{Str, model::BlobRef};
use serde::{Deserialize, Serialize};

use crate::{
    budget::Budget,
    run::{Follow, Judging},
};

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_unlimited(budget: &Budget) -> bool {
    !budget.limits()
}

/// What an ask was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// The work of a step.
    Work,
    /// A report that a step owes.
    Report,
    /// A decision between outcomes.
    Judge,
    /// A check of another step's work.
    Check,
    /// A second try after an answer that could not be used.
    Repair,
    /// Work after a failed validator.
    Remedy,
}

impl AskKind {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            AskKind::Work => "work",
            AskKind::Report => "report",
            AskKind::Judge => "judge",
            AskKind::Check => "check",
            AskKind::Repair => "repair",
            AskKind::Remedy => "remedy",
        }
    }
}

/// What an ask used up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; `None` = not known, which is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// How an ask was put, where providers differ in what they can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Put {
    /// How the agent was held to the schema; `None` where the ask has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaBy>,
    /// How the conversation went on.
    #[serde(default)]
    pub session: SessionBy,
}

/// How an agent was held to a schema. Its answer is validated all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaBy {
    /// The provider holds the model to it.
    Provider,
    /// It stood in the prompt.
    Prompt,
}

/// How a conversation went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionBy {
    /// It began.
    #[default]
    New,
    /// The provider continued it.
    Continued,
    /// The provider branched off from it: it stays as it was if the ask is cut.
    Forked,
    /// The provider cannot continue one: what was said before stood in the prompt.
    Retold,
}

/// A request to ask an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskRequest {
    /// The step that waits for the answer.
    pub step: Str,
    /// The member of a parallel step, by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u16>,
    /// Its purpose.
    pub kind: AskKind,
    /// The earliest start, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<i64>,
    /// The total wait for rate limits in this ask so far, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ms: u64,
    /// The message that replaces the prompt, in the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "AskContext::is_own")]
    pub context: AskContext,
}

impl AskRequest {
    /// A first request of a step's own answer.
    pub(crate) fn own(step: &Str, member: Option<u16>, kind: AskKind) -> AskRequest {
        AskRequest {
            step: step.clone(),
            member,
            kind,
            not_before_ms: None,
            waited_ms: 0,
            follow: None,
            context: AskContext::Own,
        }
    }
}

/// What an ask is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskContext {
    /// The answer of the step itself.
    #[default]
    Own,
    /// The verdict of a judge about an answer.
    Judge(Judging),
    /// A report that an answer owes.
    Report(Owing),
}

impl AskContext {
    fn is_own(&self) -> bool {
        *self == AskContext::Own
    }

    /// The judged answer.
    pub fn judging(&self) -> Option<&Judging> {
        match self {
            AskContext::Judge(judging) => Some(judging),
            _ => None,
        }
    }

    /// The answer that owes the report.
    pub fn owing(&self) -> Option<&Owing> {
        match self {
            AskContext::Report(owing) => Some(owing),
            _ => None,
        }
    }
}

/// A piece of a prompt, in the order in which it is joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    /// Text as it is.
    Text(Str),
    /// A kept value.
    Blob {
        /// Which.
        blob: BlobRef,
        /// When an agent or a command wrote it: what it is labelled with between its fences.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<Str>,
    },
}

/// A file that the definition was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceBlob {
    /// Its path in the project.
    pub path: String,
    /// Its content.
    pub blob: BlobRef,
}

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Place {
    /// The folder agents work in.
    pub work: String,
    /// Whether the run owns it and may restore it: a worktree made for it.
    #[serde(default)]
    pub owned: bool,
    /// The branch of an owned worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether it was dirty at the start.
    #[serde(default)]
    pub dirty: bool,
}

/// The working tree at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TreeState {
    /// The tree object that holds everything that git does not ignore.
    pub tree: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// A digest of all branches and tags.
    #[serde(default)]
    pub refs: String,
}

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Started {
    /// The program that started it, by version.
    pub program: String,
    /// The definition's name.
    pub flow: Str,
    /// Its format.
    pub dialect: String,
    /// What was loaded, as it was typed.
    pub path: String,
    /// The folder of the definition among its files.
    #[serde(default)]
    pub base: String,
    /// The file that was named in that folder, when it was not the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Every file that was read to load it.
    pub sources: Vec<SourceBlob>,
    /// Values given at start, by variable name, defaults filled in.
    pub params: BTreeMap<Str, BlobRef>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<BlobRef>,
    /// Names given with `--set`: they count as declared when the definition is loaded again.
    #[serde(default)]
    pub set: Vec<String>,
    /// Who is asked.
    pub provider: String,
    /// The model, when one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<SourceBlob>,
    /// The most iterations.
    pub iterations_max: u32,
    /// How often a bad answer is asked again.
    pub repairs_max: u32,
    /// How long a limit of the provider is waited for, in milliseconds.
    pub wait_max_ms: u64,
    /// What it may use up.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub budget: Budget,
    /// Whether the login is a subscription, so that what tokens cost is notional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notional: bool,
    /// After how long a resource that the verdict names is looked at again, in milliseconds; `None` = 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// How the definition was read, where its format leaves that to whoever starts it.
    #[serde(default, skip_serializing_if = "Load::is_usual")]
    pub load: Load,
    /// Whether somebody lets it run without the sandbox that the definition demands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsandboxed: bool,
    /// The most asks that its definition's price allows for: more than these are answered by no run that goes right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_max: Option<u64>,
    /// The folder that its reports are kept in, for agents that read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_dir: Option<Str>,
    /// Where it works.
    pub place: Place,
    /// The tree it starts from, where there is git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
}

/// What decides how a definition is read, besides its files: a resumed run reads it in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Load {
    /// Whether reports and outcomes are asked for apart from the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate: bool,
    /// Whether somebody was there to answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// How often a failing command of a gate is mended, when somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_retries: Option<u32>,
    /// How many members of a parallel step are at work at the same time, when somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
}

impl Load {
    fn is_usual(&self) -> bool {
        *self == Load::default()
    }
}

/// What a member of a parallel step has come to, unless a command says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The outcome.
    pub outcome: Str,
    /// What it said.
    pub answer: BlobRef,
}

/// The prompt of a visit after a failed validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The step whose validators failed.
    pub of: Str,
    /// The validator that failed.
    pub validator: Str,
    /// What is asked in place of the step's own prompt.
    pub prompt: Vec<PromptPart>,
}

/// What was said in a step, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoken {
    /// The step.
    pub step: Str,
    /// What its agent said; `None` when nothing came that could be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<BlobRef>,
    /// Its outcome, of a member of a parallel step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Str>,
    /// Whether it said that it cannot proceed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Why it cannot, in a member's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An answer that owes a report, while that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owing {
    /// The place of the report among those that the step owes.
    pub report: u16,
    /// What the agent said.
    pub answer: BlobRef,
    /// What follows when nothing is owed any more.
    pub then: Then,
}

/// What follows when an answer owes nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Its outcome was read.
    Decided {
        /// Which.
        outcome: Str,
        /// The agent's own reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Another step decides.
    Judge {
        /// Which.
        judge: Str,
        /// The place of the reader that says so.
        reader: u16,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// For what kind of thing.
    pub kind: WaitKind,
    /// In words.
    pub detail: String,
    /// Until when, in milliseconds since 1970, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// What kind of thing a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A person's answer.
    Person,
    /// A limit of the provider to pass.
    Quota,
    /// Somebody to mend something: a key, a program, a script.
    Environment,
    /// Nothing: it was interrupted.
    Interrupted,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// It reached its goal.
    Completed,
    /// It gave up in a way the definition provides.
    Aborted,
    /// A rule of the definition was broken.
    Failed,
    /// A limit stopped it; a higher one lets it go on.
    Exhausted,
    /// Somebody cancelled it.
    Cancelled,
}

/// Where a row of the results ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEnd {
    /// The outcome, when there was one.
    pub outcome: Option<Str>,
    /// The step it went on to, or `@completed` and the like.
    pub target: Option<Str>,
    /// The monitor that chose the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<Str>,
}

/// The step that an exhausted run would have entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The step.
    pub step: Str,
    /// With what prompt, when not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The attempt, when the same visit goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u32>,
}
