//! Found in `values::json::fields`, `takt::instruction_template`, `climpt::older::check_flow::agent_limits`, `climpt::registry::gate_lowering`,
//! `climpt::registry::jump`, `climpt::load`, `climpt::lower`, `climpt::prompts::front_matter`, `climpt::prompts::step_prompt` and
//! `climpt::validation::lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "stray-key",
    page: "\
stray-key: a key or a value has no effect here

It is known from other places or from older definitions, but nothing reads it here, or something beside it
decides alone. The hint says why. Settings of a sandbox or worktree that is switched
off are a note.

Remove it, or what stands in its way.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""usesStdin": true"#, r#""priority": 1, "usesStdin": true"#)],
        &[(r#""priority": 1, "#, "")],
    ),
    super::closing(
        &[(
            r#""acceptEdits" }
  }"#,
            r#""acceptEdits" },
    "execution": { "worktree": { "enabled": false, "root": "../trees" } }
  }"#,
        )],
        &[(r#", "root": "../trees""#, "")],
    ),
    super::piece(
        &[("max_iterations: 12", "max_iterations: 12\nanswer_agent: coder")],
        &[("\nanswer_agent: coder", "")],
    ),
];
