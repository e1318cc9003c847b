//! The types that events consist of.

use std::collections::BTreeMap;

use cuegate_ask::AskKind;
use cuegate_flow::{Str, model::BlobRef};
use serde::{Deserialize, Serialize};

use crate::{
    agents::{AgentChoice, AgentPlan},
    budget::Budget,
    foreign::fence_key::FenceKey,
    foreign::hidden_text::HiddenText,
    place::{Machine, Place, RunMoved, TreeState},
    run::{FollowUpMessage, JudgedAnswer},
};

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_unlimited(budget: &Budget) -> bool {
    !budget.limits()
}

/// A use of a tool by an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    /// Its target, at most 200 characters: a path or a command. The reason if it was denied without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    pub result: ToolResult,
    /// Milliseconds from the start of the ask; `None` if it was read after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// The duration in milliseconds, if the agent reports the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The output, or its beginning if it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobRef>,
    /// The length of the whole output in bytes, if only its beginning is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

/// The result of a use of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// It succeeded.
    Ok,
    /// It failed.
    Failed,
    /// The permission or list of tools of the ask does not cover it.
    Denied,
    /// The agent did not report its end.
    Unknown,
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
    pub follow: Option<FollowUpMessage>,
    /// What the ask is about.
    #[serde(default, skip_serializing_if = "AskContext::is_own")]
    pub context: AskContext,
    /// The agent; `None` for the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
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
            agent: None,
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
    Judge(JudgedAnswer),
    /// A report that an answer owes.
    Report(OwedReport),
    /// The selection of members and prompt parts by this step, before the step itself works.
    Select(Str),
}

impl AskContext {
    /// The other step that is asked: a judge or a selector.
    pub fn other(&self) -> Option<&Str> {
        match self {
            AskContext::Judge(judging) => Some(&judging.judge),
            AskContext::Select(selector) => Some(selector),
            AskContext::Own | AskContext::Report(_) => None,
        }
    }

    fn is_own(&self) -> bool {
        *self == AskContext::Own
    }

    /// The judged answer.
    pub fn judging(&self) -> Option<&JudgedAnswer> {
        match self {
            AskContext::Judge(judging) => Some(judging),
            _ => None,
        }
    }

    /// The answer that owes the report.
    pub fn owing(&self) -> Option<&OwedReport> {
        match self {
            AskContext::Report(owing) => Some(owing),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPart {
    Text(Str),
    /// A stored value.
    Blob {
        /// The value.
        blob: BlobRef,
        /// The label of its fence, if an agent or a command wrote it.
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

/// What changed when a run was resumed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunResumed {
    /// The new iteration limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_max: Option<u32>,
    /// The new repair limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs_max: Option<u32>,
    /// The new provider; earlier receipts are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The new script; earlier receipts are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<SourceBlob>,
    /// The new model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The new agents beside the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentPlan>,
    /// The new longest wait for a rate limit, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_max_ms: Option<u64>,
    /// Whether a subscription pays from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notional: Option<bool>,
    /// The new budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether it continues without the sandbox that it ran in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsandboxed: bool,
    /// The cost bound in asks from now on, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_max: Option<u64>,
    /// The working tree as it was found, with partial edits of an ask that was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<TreeState>,
    /// The step at which a failed or aborted run continues. Counters start anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Str>,
    /// What a person adds to the prompt of that step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<BlobRef>,
    /// The new settings, if changed ones were adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<BlobRef>,
    /// Whether all conversations are started anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_sessions: bool,
    /// Where it goes on, if elsewhere. All conversations are started anew there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<RunMoved>>,
    /// The edited definition with which the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<AdoptedDefinition>>,
}

/// The start of a fork: a run that goes on from a moment of another one, its source run, in a working tree of its own. The
/// records before it are copies of those of the source run. What the source run spent and did outside of its working tree
/// stays with the source run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunForked {
    /// The source run.
    pub run: String,
    /// The number of its records that are copied.
    pub records: u64,
    /// The moment, in words: ``after visit 2 of `fix` ``.
    pub moment: String,
    /// Where it works.
    pub place: Place,
    /// The working tree before the first change of the source run, or of the run that that one followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_tree: Option<TreeState>,
    /// The working tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub budget: Budget,
    /// The folder of its reports, for agents that read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_dir: Option<Str>,
    /// What is done with its work when it has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalize: Option<crate::effect::FinalizePlan>,
    /// Whether it leaves GitHub alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_github: bool,
    /// The keys of conversations that cannot be continued from where they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_sessions: Vec<Str>,
    /// Where it was made, if the journal is shared with other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// An edited definition that replaces the one that a run was started with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AdoptedDefinition {
    /// The loaded path, as typed.
    pub path: String,
    /// The folder of the definition among its files.
    pub base: String,
    /// The named file in that folder, if not the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Every file that was read to load it.
    pub sources: Vec<SourceBlob>,
}

impl RunStarted {
    /// Goes on in a fork of the run.
    pub(crate) fn fork(&mut self, fork: &RunForked) {
        self.place.clone_from(&fork.place);
        self.tree.clone_from(&fork.first_tree);
        self.budget = fork.budget;
        self.report_dir.clone_from(&fork.report_dir);
        self.machine.clone_from(&fork.machine);
        self.finalize.clone_from(&fork.finalize);
        self.github.take_if(|_| fork.no_github);
    }

    /// Goes on with an edited definition.
    pub fn adopt(&mut self, definition: &AdoptedDefinition) {
        self.path.clone_from(&definition.path);
        self.base.clone_from(&definition.base);
        self.file.clone_from(&definition.file);
        self.sources.clone_from(&definition.sources);
    }
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunStarted {
    /// The key of whoever started it: a second start with the same key starts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The version of the program that started it.
    pub program: String,
    /// Where it is driven, if the journal is shared with other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The definition's name.
    pub flow: Str,
    /// Its format.
    pub dialect: String,
    /// The loaded path, as typed.
    pub path: String,
    /// The folder of the definition among its files.
    #[serde(default)]
    pub base: String,
    /// The named file in that folder, if not the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Every file that was read to load it.
    pub sources: Vec<SourceBlob>,
    /// The secret from which the fences of its prompts are made.
    #[serde(default)]
    pub fence_key: FenceKey,
    /// The parameters by name, with defaults filled in.
    pub params: BTreeMap<Str, BlobRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<BlobRef>,
    /// The names given with `--set`, which count as declared when the definition is loaded again.
    #[serde(default)]
    pub set: Vec<String>,
    pub provider: String,
    /// The model, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agents of steps with others than that, and what steps in for an agent.
    #[serde(default, skip_serializing_if = "AgentPlan::is_empty")]
    pub agents: AgentPlan,
    /// The script of the scripted provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<SourceBlob>,
    /// The iteration limit.
    pub iterations_max: u32,
    /// How often an unusable answer is asked again.
    pub repairs_max: u32,
    /// How often a step may give the same answer while no file changes; `None` = without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_answers_max: Option<u32>,
    /// How often the files may be as they were after an earlier visit, before the run stops; `None` = without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_files_max: Option<u32>,
    /// The longest wait for a rate limit of the provider, in milliseconds.
    pub wait_max_ms: u64,
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub budget: Budget,
    /// Whether a subscription pays, so that costs are notional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notional: bool,
    /// The interval between polls of a resource, in milliseconds; `None` = 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// The options with which the definition was loaded.
    #[serde(default, skip_serializing_if = "RecordedLoadOptions::is_usual")]
    pub load: RecordedLoadOptions,
    /// Whether it runs in a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandboxed: bool,
    /// The settings of the project and the user, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<BlobRef>,
    /// Where the programs are that Cuegate starts itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The cost bound in asks. A run that exceeds it shows a bug in the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_max: Option<u64>,
    /// The folder of its reports, for agents that read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_dir: Option<Str>,
    /// The commit from which the changes of the task are counted, if a prompt asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_base: Option<Str>,
    /// What is done with its work when it has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalize: Option<crate::effect::FinalizePlan>,
    /// The repository on GitHub that its effects change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<GithubTarget>,
    /// The validators that failed before the first ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// What was hidden in the task, and in the texts of the issue, and removed.
    #[serde(default, skip_serializing_if = "HiddenText::is_empty")]
    pub hidden: HiddenText,
    /// Where it works.
    pub place: Place,
    /// The working tree at the start, in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeState>,
}

/// The options that affect how a definition is loaded. A resumed run uses the same ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedLoadOptions {
    /// Whether reports and outcomes are separate asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate: bool,
    /// Whether the run is interactive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// How often a failing gate command is retried, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_retries: Option<u32>,
    /// How many members of a parallel step run at the same time, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u16>,
    /// The iteration limit of a definition that says that it has none, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_max: Option<u32>,
}

impl RecordedLoadOptions {
    fn is_usual(&self) -> bool {
        *self == RecordedLoadOptions::default()
    }
}

/// The result of a member of a parallel step if all its commands pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvisionalOutcome {
    pub outcome: Str,
    pub answer: BlobRef,
}

/// The prompt of a visit after a failed validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The step whose validators failed.
    pub of: Str,
    /// The validator that failed.
    pub validator: Str,
    /// The prompt in place of the step's own.
    pub prompt: Vec<PromptPart>,
}

/// The answer of a step and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAnswer {
    pub step: Str,
    /// The answer of its agent; `None` if there is no usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<BlobRef>,
    /// Its outcome, of a member of a parallel step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Str>,
    /// Whether it reported that it cannot proceed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Why it cannot proceed, as a member reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An answer that owes a report, while the report is requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedReport {
    /// The index of the report among those that the step owes.
    pub report: u16,
    pub answer: BlobRef,
    /// What follows the last report.
    pub then: AfterReports,
}

/// What follows the last report of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterReports {
    /// The known outcome.
    Decided {
        /// The value.
        outcome: Str,
        /// The agent's own reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A judge decides.
    Judge {
        /// The value.
        judge: Str,
        /// The index of the reader that requests it.
        reader: u16,
    },
}

/// Why a run is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionCause {
    /// The kind of cause.
    pub kind: WaitKind,
    /// The description.
    pub detail: String,
    /// The end of the wait in milliseconds since 1970, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// The kind of cause of a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A person's answer.
    Person,
    /// A rate limit of the provider.
    Quota,
    /// A missing or broken key, program or script.
    Environment,
    /// An interruption.
    Interrupted,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// The run reached its goal.
    Completed,
    /// The definition gave up.
    Aborted,
    /// A rule of the definition failed.
    Failed,
    /// A limit stopped it; a higher one lets it continue.
    Exhausted,
    /// It was cancelled.
    Cancelled,
}

/// The end of a row of the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowEnd {
    /// The outcome, if any.
    pub outcome: Option<Str>,
    /// The next step, or an end such as `@completed`.
    pub target: Option<Str>,
    /// The monitor that chose the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<Str>,
}

/// The step that an exhausted run would have entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingEntry {
    pub step: Str,
    /// The prompt in place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The attempt, if the same visit continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u32>,
}

/// The repository on GitHub that the effects of a run change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GithubTarget {
    /// The address of its API.
    pub api: String,
    /// Its owner and name: `owner/name`.
    pub repository: String,
    /// The number of the issue or pull request that the run works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it is a pull request. A closure action does not close it: that would reject the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pull_request: bool,
}
