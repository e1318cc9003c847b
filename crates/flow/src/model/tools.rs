//! The names of tools that definitions can list.
//!
//! Lists of tools are written in the words of Claude Code, whatever the provider: it is the only one that has names for
//! its tools and a switch for each. Codex is told by what a list lets it write, services of chat completions have none.

/// The tools of Claude Code 2.1.330: the list of its own tools in its program, by which it knows the names in settings
/// from typing errors. It goes by them letter for letter.
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

/// Names that it had in earlier versions. Most it still reads as their successors, and definitions are full of them.
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

/// The tools that do nothing but write files.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// The tools that can write besides: by a command, or by an agent of their own.
const WORKERS: [&str; 7] = ["Agent", "Bash", "PowerShell", "Skill", "SlashCommand", "Task", "Workflow"];

/// The name of a tool as a list has it, without what stands in brackets behind it: `Bash` of `Bash(git:*)`.
pub fn tool_name(written: &str) -> &str {
    written.split_once('(').map_or(written, |(name, _)| name).trim()
}

/// Whether an entry of a list of tools can be one: `*`, a tool of an MCP server (`mcp__SERVER__TOOL`), a known name.
pub fn is_tool(written: &str) -> bool {
    let name = tool_name(written);
    name == "*" || name.starts_with("mcp__") || known_tools().any(|known| known == name)
}

/// The names that are known, those of earlier versions last.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    OWN.into_iter().chain(FORMER)
}

/// Whether an entry of a list of tools does nothing but write files, in whatever letters.
pub fn only_writes(written: &str) -> bool {
    EDITORS.iter().any(|known| known.eq_ignore_ascii_case(tool_name(written)))
}

/// Whether an entry of a list of tools can write files. One that is not known may.
pub fn can_write(written: &str) -> bool {
    let name = tool_name(written);
    only_writes(written) || WORKERS.contains(&name) || name.starts_with("mcp__") || !is_tool(written)
}

#[cfg(test)]
mod tests {
    use super::{can_write, is_tool, known_tools, only_writes, tool_name};

    #[test]
    fn an_entry_is_a_name_with_or_without_a_pattern() {
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
    fn what_writes() {
        assert!(only_writes("Write(docs/**)") && !only_writes("Bash") && !only_writes("Read"));
        assert!(can_write("Bash(git:*)") && can_write("mcp__x__y") && can_write("Edti"));
        assert!(!can_write("Read") && !can_write("WebFetch"));
    }

    #[test]
    fn no_name_is_known_twice() {
        let mut names: Vec<&str> = known_tools().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
