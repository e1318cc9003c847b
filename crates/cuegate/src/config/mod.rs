//! `cuegate.toml`: settings for all runs of a project or a user.
//!
//! The project's file overrides the file in the user's configuration folder; flags override both. An unknown key is an
//! error.

mod agent_chain;
mod agent_roles;
mod agents;
mod durations;
mod limit_values;
mod load;
mod notify;
mod retention;
mod sandbox;
mod tool_servers;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use crate::otel::OtelConfig;
use crate::shared_journal::JournalConfig;
use cuegate_provider::{Prices, claude, codex, driven::DrivenSettings, openai};
use serde::Deserialize;

pub(crate) use agent_chain::parse_chain;
pub(crate) use agent_roles::{AgentAssignment, AgentRole, parse_assignment};
pub use agents::{AgentChain, AgentProgram, AgentsConfig};
pub use limit_values::{BudgetConfig, Minutes, PositiveCount, Usd};
pub use load::{list_config_paths, load_config, load_reviewed_config, parse_kept_config};
pub use notify::NotifyConfig;
pub use retention::RetentionConfig;
pub(crate) use sandbox::parse_size;
pub use sandbox::{ExecutionSide, SandboxConfig};
pub use tool_servers::ToolServersConfig;

/// The merged configuration.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How the user is notified when a run ends or waits.
    pub notify: NotifyConfig,
    /// `[run]`: how runs are driven.
    pub run: RunConfig,
    /// `[verdict]`: how completion is polled.
    pub verdict: VerdictConfig,
    /// `[boundary]`: what read-only steps may do.
    pub boundary: BoundaryConfig,
    /// `[worktree]`: where runs with a worktree of their own work.
    pub worktree: WorktreeConfig,
    /// `[finalize]`: how the work of a run is published.
    pub finalize: FinalizeConfig,
    /// `[sandbox]`: what the sandbox shows, passes on and limits.
    pub sandbox: SandboxConfig,
    /// `[takt]`: how TAKT workflows are read.
    pub takt: TaktConfig,
    /// `[github]`: the repository that runs change.
    pub github: GithubConfig,
    /// `[budget]`: the default budget of a run.
    pub budget: BudgetConfig,
    /// `[retention]`: how much of past runs is kept.
    pub retention: RetentionConfig,
    /// `[journal]`: where the records of runs are, if not in the state dir.
    pub journal: JournalConfig,
    /// `[otel]`: where telemetry goes.
    pub otel: OtelConfig,
    /// `[agents]`: programs that are agents, and which agent is called for what.
    pub agents: AgentsConfig,
    /// `[mcp]`: servers whose tools agents get.
    pub mcp: ToolServersConfig,
    /// `[providers]`: settings of each provider.
    pub providers: ProviderConfigs,
    /// `[models]`: a provider's names of the models in definitions.
    pub models: ModelMaps,
    /// `[prices]`: token prices by the provider's model name.
    pub prices: Prices,
    /// The merged files as JSON, as runs keep them.
    #[serde(skip)]
    pub source: String,
}

/// `[takt]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaktConfig {
    /// The package folder of TAKT, or `builtins` in it, relative to the project.
    pub builtins: Option<PathBuf>,
    /// How many calls a step takes.
    pub phases: Option<PhasesChoice>,
}

/// `[run]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// The usual agent, and those that step in for it.
    pub provider: Option<AgentChain>,
    /// What happens if a validator fails before the first ask.
    pub baseline: BaselineRule,
    /// How often an unusable answer is requested again: 0 to 100.
    #[serde(deserialize_with = "limit_values::deserialize_retry_limit")]
    pub repairs_max: Option<u32>,
    /// The longest wait for a provider limit to reset: `10m`.
    #[serde(with = "durations")]
    pub wait_max: Option<Duration>,
    /// The timeout of a call: `60m`.
    #[serde(with = "durations")]
    pub call_timeout: Option<Duration>,
    /// The time after which a call without any activity is reported: `10m`.
    #[serde(with = "durations")]
    pub idle_warning: Option<Duration>,
    /// How often a step retries after a failed quality gate command: 0 to 100.
    #[serde(deserialize_with = "limit_values::deserialize_retry_limit")]
    pub quality_gate_retries: Option<u32>,
    /// A run fails when a step gave the same answer this often in a row and no file changed: 2 to 1000. Without it such a
    /// step is only named.
    #[serde(deserialize_with = "limit_values::deserialize_repetitions")]
    pub same_answers_max: Option<u32>,
    /// A run stops when its files were the same this often after visits that changed them, until it is resumed: 2 to 1000.
    /// Without it such a circle is only named.
    #[serde(deserialize_with = "limit_values::deserialize_repetitions")]
    pub same_files_max: Option<u32>,
    /// The iteration limit of workflows that say that they have none: 1 to 1000000.
    #[serde(deserialize_with = "limit_values::deserialize_iteration_limit")]
    pub max_iterations: Option<u32>,
    /// How many members of a parallel step run at the same time: 1 to 1000.
    #[serde(deserialize_with = "limit_values::deserialize_member_limit")]
    pub width: Option<u16>,
}

/// What happens if a validator fails before the first ask of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaselineRule {
    /// At a terminal the user decides; without one it is reported, and the run starts.
    #[default]
    Ask,
    /// It is reported, and the run starts.
    Report,
    /// The run does not start.
    Refuse,
    /// The validators are not run.
    Off,
}

/// How many calls a step of a TAKT workflow takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PhasesChoice {
    /// One call does the work, writes the reports and names the outcome
    Fused,
    /// One call for the work, one for each report, one for the outcome
    Separate,
}

/// `[worktree]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorktreeConfig {
    /// The folder of all worktrees, relative to the project. A definition may set its own.
    pub root: Option<PathBuf>,
    /// Shell commands that prepare a new worktree, such as `npm ci`.
    pub setup: SetupCommands,
    /// Whether hooks of the repository run when the work of a run is committed and pushed.
    pub hooks: bool,
    /// Files that may be committed though they look like secrets, are very large or were installed: paths, with `*` as
    /// a wildcard.
    pub allow: Vec<String>,
}

/// `[finalize]`: how the work of a run is published.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FinalizeConfig {
    /// What happens to the work if the branch that it is for went on meanwhile.
    pub base_moved: BaseMoved,
}

/// What happens to the work of a run if the branch that it is for went on meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseMoved {
    /// It is published as the gates saw it.
    #[default]
    Push,
    /// The branch is merged into it, and it is published only if the gates pass on both together.
    Update,
}

/// `[github]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GithubConfig {
    /// The address of the API; the default is that of github.com.
    pub api: Option<String>,
    /// The owner and name of the repository: `owner/name`. The default is that of the remote.
    pub repository: Option<String>,
    /// Whether agents see the environment variables with tokens.
    pub token_for_agents: bool,
}

/// One command or several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetupCommands(pub Vec<String>);

impl<'de> Deserialize<'de> for SetupCommands {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<SetupCommands, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a command or a list of commands")]
        enum CommandOrList {
            One(String),
            Several(Vec<String>),
        }
        let commands = match CommandOrList::deserialize(deserializer)? {
            CommandOrList::One(command) => vec![command],
            CommandOrList::Several(commands) => commands,
        };
        if commands.iter().any(|command| command.trim().is_empty()) {
            return Err(serde::de::Error::custom("a setup command is empty"));
        }
        Ok(SetupCommands(commands))
    }
}

/// `[boundary]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BoundaryConfig {
    /// How to treat a new file, not ignored by git, that a read-only step leaves.
    pub untracked: Option<UntrackedRule>,
    /// How to treat changes outside of the folder that a run works in with `--cd`.
    pub outside_folder: Option<OutsideFolderRule>,
}

/// How to treat changes outside of the folder that a run works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutsideFolderRule {
    /// They are changes as any other
    Allow,
    /// A violation, as changes of a read-only step
    Violation,
}

impl BoundaryConfig {
    /// Whether new files of read-only steps are tolerated.
    pub fn spares_new_files(&self) -> bool {
        self.untracked == Some(UntrackedRule::Warn)
    }

    /// Whether runs with `--cd` may change only files in that folder.
    pub fn keeps_to_folder(&self) -> bool {
        self.outside_folder == Some(OutsideFolderRule::Violation)
    }
}

/// How to treat a new file of a read-only step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UntrackedRule {
    /// A violation, as any other change
    Violation,
    /// Kept, and listed among the files that the step changed
    Warn,
}

/// `[verdict]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerdictConfig {
    /// How often a polled resource is checked: `60s`.
    #[serde(with = "durations")]
    pub poll_interval: Option<Duration>,
}

/// `[providers]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfigs {
    /// Claude Code.
    pub claude: claude::ClaudeSettings,
    /// Codex.
    pub codex: codex::CodexSettings,
    /// A service with OpenAI's Chat Completions API. `base_url` is required.
    pub openai: Option<openai::OpenAiSettings>,
    /// OpenCode, which is not called without the name of a model.
    pub opencode: Option<DrivenSettings>,
    /// The CLI of GitHub Copilot.
    pub copilot: Option<DrivenSettings>,
    /// The CLI of Gemini, with a key.
    pub gemini: Option<DrivenSettings>,
    /// Qwen Code, with any service that speaks as OpenAI does.
    pub qwen: Option<DrivenSettings>,
}

impl ProviderConfigs {
    /// The settings of an agent that our child drives.
    pub(crate) fn driven(&self, name: &str) -> Option<&DrivenSettings> {
        match name {
            "opencode" => self.opencode.as_ref(),
            "copilot" => self.copilot.as_ref(),
            "gemini" => self.gemini.as_ref(),
            "qwen" => self.qwen.as_ref(),
            _ => None,
        }
    }
}

/// `[models]`: maps a model name of a definition, such as `opus`, to the provider's model name.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelMaps {
    /// For Claude Code.
    pub claude: BTreeMap<String, String>,
    /// For Codex.
    pub codex: BTreeMap<String, String>,
    /// For the service of `[providers.openai]`.
    pub openai: BTreeMap<String, String>,
}
