//! The agents that are driven, a row each. What the rows say was measured with the real programs.

use cuegate_ask::Permission;

/// The names of the rows.
pub const DRIVEN_NAMES: [&str; 4] = ["opencode", "copilot", "gemini", "qwen"];

/// How a program is talked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriverProtocol {
    /// The Agent Client Protocol.
    Acp,
    /// One prompt, and the lines of `copilot --output-format json`.
    CopilotLines,
    /// One prompt, and the lines of `qwen -o stream-json`.
    QwenLines,
}

/// How an agent goes on with a conversation in a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionSupport {
    /// Not reliably.
    None,
    /// By `session/resume`, or by a flag.
    Resume,
}

/// How an agent is told its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelChoice {
    /// By this argument before the name.
    Flag(&'static str),
    /// By an option of the session, whose value it repeats.
    Option,
}

/// What the usage in the reply to a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageMeaning {
    /// That of the last request of several: the sum is estimated.
    LastRequest,
    /// That of the whole turn.
    Turn,
}

/// What is known of the program of an agent.
#[derive(Debug)]
pub(super) struct AgentRow {
    pub(super) name: &'static str,
    pub(super) protocol: DriverProtocol,
    pub(super) program: &'static str,
    pub(super) args: &'static [&'static str],
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Settings as a file that outranks those of the user, and the variable with its path.
    pub(super) settings: Option<(&'static str, &'static str)>,
    /// Its own files and folders in the home folder.
    pub(super) state: &'static [&'static str],
    /// Those of them that are the user's settings, which programs outside of the sandbox obey.
    pub(super) own: &'static [&'static str],
    /// Files in the home folder that it writes at its first start, and cannot start without where its settings are
    /// read-only.
    pub(super) first_files: &'static [(&'static str, &'static str)],
    pub(super) variables: &'static [&'static str],
    pub(super) hosts: &'static [&'static str],
    /// Variables with the address of a service.
    pub(super) addresses: &'static [&'static str],
    /// Variables with a key.
    pub(super) keys: &'static [&'static str],
    pub(super) modes: [(Permission, &'static str); 4],
    pub(super) session: SessionSupport,
    pub(super) model: ModelChoice,
    /// Whether it would call somebody the user did not choose if no model is named.
    pub(super) needs_model: bool,
    pub(super) usage: UsageMeaning,
    /// Whether it reports the cost of a session so far.
    pub(super) cost: bool,
    /// How to install it.
    pub(super) install: &'static str,
}

/// The row of a name.
pub(super) fn find_row(name: &str) -> Option<&'static AgentRow> {
    ROWS.iter().find(|row| row.name == name)
}

const fn list_modes(names: [&'static str; 4]) -> [(Permission, &'static str); 4] {
    let [plan, usual, edits, all] = names;
    [
        (Permission::Plan, plan),
        (Permission::Default, usual),
        (Permission::AcceptEdits, edits),
        (Permission::BypassPermissions, all),
    ]
}

static ROWS: [AgentRow; 4] = [
    AgentRow {
        name: "opencode",
        protocol: DriverProtocol::Acp,
        program: "opencode",
        args: &["acp"],
        env: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        ],
        settings: None,
        state: &[".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"],
        own: &[".config/opencode"],
        first_files: &[(
            ".config/opencode/.gitignore",
            "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore",
        )],
        variables: &["OPENCODE_*", "*_API_KEY", "*_BASE_URL", "AWS_*", "AZURE_*", "GOOGLE_*"],
        hosts: &["api.anthropic.com", "api.openai.com", "openrouter.ai", "generativelanguage.googleapis.com"],
        addresses: &["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"],
        keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        modes: list_modes(["plan", "build", "build", "build"]),
        session: SessionSupport::Resume,
        model: ModelChoice::Option,
        // It has a hosted model that it calls without any login.
        needs_model: true,
        usage: UsageMeaning::LastRequest,
        cost: true,
        install: "npm install -g opencode-ai",
    },
    AgentRow {
        name: "gemini",
        protocol: DriverProtocol::Acp,
        program: "gemini",
        args: &["--acp", "--skip-trust"],
        // No terminal for its commands: with Landlock alone there is none.
        env: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_PTY_INFO", "child_process")],
        settings: Some((
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            r#"{"general":{"maxAttempts":1,"disableAutoUpdate":true,"disableUpdateNag":true},"privacy":{"usageStatisticsEnabled":false}}"#,
        )),
        state: &[".gemini"],
        own: &[".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/commands", ".gemini/extensions"],
        first_files: &[],
        variables: &["GEMINI_*", "GOOGLE_*"],
        hosts: &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"],
        addresses: &["GOOGLE_GEMINI_BASE_URL"],
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        // Its plan mode hides the answer server; in the usual one it asks before it writes, and is refused.
        modes: list_modes(["default", "default", "autoEdit", "yolo"]),
        // A session that is loaded twice in a minute cannot be loaded again, and its replay mixes with the turn.
        session: SessionSupport::None,
        model: ModelChoice::Flag("-m"),
        needs_model: false,
        usage: UsageMeaning::Turn,
        cost: false,
        install: "npm install -g @google/gemini-cli",
    },
    AgentRow {
        name: "copilot",
        protocol: DriverProtocol::CopilotLines,
        program: "copilot",
        args: &["--output-format", "json", "--no-ask-user", "--no-auto-update", "--disable-builtin-mcps"],
        env: &[("COPILOT_AUTO_UPDATE", "false")],
        settings: None,
        state: &[".copilot", ".cache/copilot"],
        own: &[".copilot/config.json", ".copilot/mcp-config.json"],
        first_files: &[],
        variables: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"],
        hosts: &[
            "api.github.com",
            "api.githubcopilot.com",
            "api.individual.githubcopilot.com",
            "api.business.githubcopilot.com",
            "api.enterprise.githubcopilot.com",
        ],
        addresses: &["COPILOT_PROVIDER_BASE_URL"],
        keys: &["COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        modes: list_modes(["plan", "default", "acceptEdits", "bypassPermissions"]),
        session: SessionSupport::Resume,
        model: ModelChoice::Flag("--model"),
        needs_model: false,
        usage: UsageMeaning::Turn,
        cost: false,
        install: "npm install -g @github/copilot",
    },
    AgentRow {
        name: "qwen",
        protocol: DriverProtocol::QwenLines,
        program: "qwen",
        args: &["-o", "stream-json", "--exclude-tools", "ask_user_question"],
        env: &[("QWEN_CODE_NO_RELAUNCH", "1"), ("QWEN_CODE_LEGACY_MCP_BLOCKING", "1")],
        settings: Some((
            "QWEN_CODE_SYSTEM_SETTINGS_PATH",
            r#"{"model":{"generationConfig":{"maxRetries":0}},"tools":{"toolSearch":{"enabled":false},"shell":{"enableInteractiveShell":false}},"ui":{"enableFollowupSuggestions":false},"memory":{"enableManagedAutoMemory":false,"enableManagedAutoDream":false,"enableAutoSkill":false},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}"#,
        )),
        state: &[".qwen"],
        own: &[".qwen/settings.json", ".qwen/QWEN.md", ".qwen/commands", ".qwen/extensions", ".qwen/agents"],
        first_files: &[],
        variables: &["QWEN_*", "OPENAI_*", "DASHSCOPE_*"],
        hosts: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "chat.qwen.ai", "portal.qwen.ai"],
        addresses: &["OPENAI_BASE_URL"],
        keys: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        modes: list_modes(["plan", "default", "auto-edit", "yolo"]),
        session: SessionSupport::Resume,
        model: ModelChoice::Flag("-m"),
        needs_model: false,
        usage: UsageMeaning::Turn,
        cost: false,
        install: "npm install -g @qwen-code/qwen-code",
    },
];
