use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-tool",
    page: "\
unknown-tool: a list of tools names one that no agent has

Lists of tools are written in the words of Claude Code, letter for letter: `Read`, `Glob`, `Grep`, `Edit`,
`Write`, `Bash`, `WebFetch`, `WebSearch`, `Task` and more; with a pattern in brackets: `Bash(git:*)`; a tool
of an MCP server as `mcp__SERVER__TOOL`; `*` for all. An agent would simply go without a tool of another name.

Correct the name. The hint names the nearest one. A tool that is newer than this version of Cuegate may be
right: then the warning can be left alone.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#"["*"]"#, r#"["Read", "Edti", "Bash(git:*)", "mcp__github__get_issue"]"#)],
        &[(r#""Edti""#, r#""Edit""#)],
    ),
    super::closing(&[(r#"["*"]"#, r#"["Read", "Bash(git:*"]"#)], &[("git:*", "git:*)")]),
    super::check_flow(&[(r#"["Read", "Edit"]"#, r#"["read", "Edit"]"#)], &[(r#""read""#, r#""Read""#)]),
    super::piece(&[("[Read, Grep]", "[Read, Search]")], &[("Search", "WebSearch")]),
];
