use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "weak-permission",
    page: "\
weak-permission: something is to be changed by who may change nothing

Tools that do nothing but write are listed where nothing may be written. Or files may be changed, but no tool
in the list can. Or a step that may change nothing is told to mend what a validator, or a command of its
quality gates, has found: it would be asked again and again, and the same would be found each time.

Allow it: in a registry by `permissionMode` `acceptEdits` of agent and step, in a piece by `edit: true`, and
by a tool that writes (`Edit`, `Write`, `Bash`). Or do not ask for it: remove the tool, let the validation
abort, move the command to a movement that may change files.

- writing will be denied
- a step asks for more than its agent may do
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    // A tool that writes, where nothing may be written.
    super::unguarded(
        &[(
            r#""allowedTools": ["*"], "permissionMode": "acceptEdits""#,
            r#""allowedTools": ["Read", "Edit"], "permissionMode": "plan""#,
        )],
        &[(r#""permissionMode": "plan" }"#, r#""permissionMode": "acceptEdits" }"#)],
    ),
    // The step that hands off has to mend what the validator finds.
    super::closing(
        &[(r#""model": "haiku""#, r#""model": "haiku", "permissionMode": "plan""#)],
        &[(
            r#""model": "haiku", "permissionMode": "plan""#,
            r#""model": "haiku", "permissionMode": "acceptEdits""#,
        )],
    ),
    super::closing(&[(r#"["*"]"#, r#"["Read", "Glob"]"#)], &[(r#""Glob""#, r#""Edit""#)]),
    super::complete(&[(r#"["*"]"#, r#"["Read", "Glob"]"#)], &[(r#""Glob""#, r#""Write""#)]),
    super::check_flow(
        &[(r#""acceptEdits""#, r#""plan""#)],
        &[(r#"["Read", "Edit"]"#, r#"["Read", "Bash"]"#)],
    ),
    super::piece(
        &[("[Read, Grep]", r#"[Read, "Edit(src/**)"]"#)],
        &[("    edit: false\n    allowed_tools", "    edit: true\n    allowed_tools")],
    ),
    super::piece(
        &[("    edit: true\n", "    edit: true\n    allowed_tools: [Read, Grep]\n")],
        &[("[Read, Grep]\n    permission_mode", "[Read, Grep, Edit]\n    permission_mode")],
    ),
    // A command of its quality gates.
    super::piece(
        &[("    edit: true\n    permission_mode: edit\n", "    edit: false\n")],
        &[("      - command: cargo test\n        timeout_ms: 90000\n", "")],
    ),
    super::closing(
        &[(r#""acceptEdits""#, r#""default""#)],
        &[(
            r#""default" }
"#,
            r#""acceptEdits" }
"#,
        )],
    ),
    super::closing(
        &[(r#""permissionMode": "plan""#, r#""permissionMode": "bypassPermissions""#)],
        &[(r#""permissionMode": "acceptEdits""#, r#""permissionMode": "bypassPermissions""#)],
    ),
];
