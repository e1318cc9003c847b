//! The names of tools that definitions can list.
//!
//! Tool lists use the names of Claude Code for every provider, because only Claude Code has named tools and a switch
//! for each. For Codex, a list decides whether it may write; chat completion services have no tools.

/// The tools of Claude Code 2.1.330: its program's own list, which it uses to detect typos in settings. It compares
/// them case-sensitively.
const OWN: [&str; 54] = [
    "Agent",
    "Artifact",
    "AskUserQuestion",
    "Bash",
    "ClaudeDesign",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EndConversation",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "LSP",
    "ListAgents",
    "ListMcpResourcesTool",
    "Monitor",
    "NotebookEdit",
    "OfferChromeSetup",
    "PowerShell",
    "Projects",
    "PushNotification",
    "Read",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "ReadNotifications",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SendFeedback",
    "SendMessage",
    "SendUserFile",
    "SendUserMessage",
    "SetGoal",
    "ShareOnboardingGuide",
    "ShowOnboardingRolePicker",
    "Skill",
    "SubagentHandback",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WaitForMcpServers",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
    "propose_skills",
];

/// Tool names of earlier versions. Claude Code still maps most to their successors, and many definitions use them.
const FORMER: [&str; 18] = [
    "BashOutput",
    "Brief",
    "KillBash",
    "KillShell",
    "LS",
    "ListMcpResources",
    "ListPeers",
    "MultiEdit",
    "NotebookRead",
    "ProposeGoal",
    "ReadMcpResource",
    "ReadMcpResourceDir",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskOutput",
    "TodoRead",
    "exit_plan_mode",
];

/// The tools that only write files.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// The tools that can also write files: through a command or through their own agent.
const WORKERS: [&str; 7] = ["Agent", "Bash", "PowerShell", "Skill", "SlashCommand", "Task", "Workflow"];

/// The tool name without the pattern in parentheses: `Bash` of `Bash(git:*)`.
pub fn tool_name(written: &str) -> &str {
    written.split_once('(').map_or(written, |(name, _)| name).trim()
}

/// Whether an entry can be a tool: `*`, a tool of an MCP server (`mcp__SERVER__TOOL`), or a known name.
pub fn is_tool(written: &str) -> bool {
    let name = tool_name(written);
    name == "*" || name.starts_with("mcp__") || known_tools().any(|known| known == name)
}

/// The known names, those of earlier versions last.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain(FORMER)
}

/// Whether an entry is a tool that only writes files, in any case.
pub fn only_writes(written: &str) -> bool {
    EDITORS.iter().any(|known| known.eq_ignore_ascii_case(tool_name(written)))
}

/// Whether an entry can write files. An unknown tool may.
pub fn can_write(written: &str) -> bool {
    let name = tool_name(written);
    only_writes(written) || WORKERS.contains(&name) || name.starts_with("mcp__") || !is_tool(written)
}

#[cfg(test)]
mod tests {
    use super::{can_write, is_tool, known_tools, only_writes, tool_name};

    #[test]
    fn an_entry_is_a_name_with_an_optional_pattern() {
        for tool in [
            "Read",
            "Bash(git:*)",
            "Bash (git diff *)",
            "*",
            "mcp__github__create_issue",
            "Task",
            "mcp__github",
        ] {
            assert!(is_tool(tool), "{tool}");
        }
        for tool in ["read", "Edti", "", "Shell(ls)", "git", "mcp_github"] {
            assert!(!is_tool(tool), "{tool}");
        }
        assert_eq!(tool_name("Edit(src/**)"), "Edit");
    }

    #[test]
    fn tools_that_can_write() {
        assert!(only_writes("Write(docs/**)") && !only_writes("Bash") && !only_writes("Read"));
        assert!(can_write("Bash(git:*)") && can_write("mcp__x__y") && can_write("Edti"));
        assert!(!can_write("Read") && !can_write("WebFetch"));
    }

    #[test]
    fn known_names_are_unique() {
        let mut names: Vec<&str> = known_tools().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
