use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "weak-permission",
    page: "\
weak-permission: the permission is too small for what is asked

What it means: A step that may change nothing lists tools that only write, or has to correct
what a validator or a command of its `quality_gates` finds. Or it may change files, but no listed tool can.
Or the mode is `default`, which asks a person before each write; nobody is there to answer. Or a step asks
for more than its agent allows.

Why it matters: The agent is denied the change. With a validator it is asked again and again, and the same
failure is found each time.

Example:
    - name: implement
      edit: false
      quality_gates:
        - command: cargo test

Fix: Allow the change: in a registry `\"permissionMode\": \"acceptEdits\"` for agent and step, in a TAKT workflow
`edit: true`, and a tool that writes (`Edit`, `Write`, `Bash`). Or do not ask for it: remove the tool,
abort when validation fails, move the command to a step that may change files.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    // A tool that writes, where nothing may be written.
    super::twins_of_unguarded(
        &[(
            r#""allowedTools": ["*"], "permissionMode": "acceptEdits""#,
            r#""allowedTools": ["Read", "Edit"], "permissionMode": "plan""#,
        )],
        &[(r#""permissionMode": "plan" }"#, r#""permissionMode": "acceptEdits" }"#)],
    ),
    // The step that hands off has to mend what the validator finds.
    super::twins_of_closing(
        &[(r#""model": "haiku""#, r#""model": "haiku", "permissionMode": "plan""#)],
        &[(
            r#""model": "haiku", "permissionMode": "plan""#,
            r#""model": "haiku", "permissionMode": "acceptEdits""#,
        )],
    ),
    super::twins_of_closing(&[(r#"["*"]"#, r#"["Read", "Glob"]"#)], &[(r#""Glob""#, r#""Edit""#)]),
    super::twins_of_complete(&[(r#"["*"]"#, r#"["Read", "Glob"]"#)], &[(r#""Glob""#, r#""Write""#)]),
    super::twins_of_check_flow(
        &[(r#""acceptEdits""#, r#""plan""#)],
        &[(r#"["Read", "Edit"]"#, r#"["Read", "Bash"]"#)],
    ),
    super::twins_of_piece(
        &[("[Read, Grep]", r#"[Read, "Edit(src/**)"]"#)],
        &[("    edit: false\n    allowed_tools", "    edit: true\n    allowed_tools")],
    ),
    super::twins_of_piece(
        &[("    edit: true\n", "    edit: true\n    allowed_tools: [Read, Grep]\n")],
        &[("[Read, Grep]\n    permission_mode", "[Read, Grep, Edit]\n    permission_mode")],
    ),
    // A command of its quality gates.
    super::twins_of_piece(
        &[("    edit: true\n    permission_mode: edit\n", "    edit: false\n")],
        &[("      - command: cargo test\n        timeout_ms: 90000\n", "")],
    ),
    super::twins_of_closing(
        &[(r#""acceptEdits""#, r#""default""#)],
        &[(
            r#""default" }
"#,
            r#""acceptEdits" }
"#,
        )],
    ),
    super::twins_of_closing(
        &[(r#""permissionMode": "plan""#, r#""permissionMode": "bypassPermissions""#)],
        &[(r#""permissionMode": "acceptEdits""#, r#""permissionMode": "bypassPermissions""#)],
    ),
];
