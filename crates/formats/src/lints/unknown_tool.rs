use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-tool",
    page: "\
unknown-tool: a list of tools names a tool that does not exist

What it means: Tools are written as Claude Code names them, letter for letter: `Read`, `Glob`, `Grep`,
`Edit`, `Write`, `Bash`, `WebFetch`, `WebSearch`, `Task` and more, with a pattern as `Bash(git:*)`, a tool
of an MCP server as `mcp__SERVER__TOOL`, and `*` for all.

Why it matters: The agent works without the tool that was meant, and nothing else reports it.

Example:
    \"allowedTools\": [\"Read\", \"Edti\", \"Bash(git:*\"]

Fix: Correct the name; the hint names the nearest one. A tool that is newer than this version of Cuegate
may be right: then ignore the warning.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#"["*"]"#, r#"["Read", "Edti", "Bash(git:*)", "mcp__github__get_issue"]"#)],
        &[(r#""Edti""#, r#""Edit""#)],
    ),
    super::twins_of_closing(&[(r#"["*"]"#, r#"["Read", "Bash(git:*"]"#)], &[("git:*", "git:*)")]),
    super::twins_of_check_flow(
        &[(r#"["Read", "Edit"]"#, r#"["read", "Edit"]"#)],
        &[(r#""read""#, r#""Read""#)],
    ),
    super::twins_of_piece(&[("[Read, Grep]", "[Read, Search]")], &[("Search", "WebSearch")]),
];
