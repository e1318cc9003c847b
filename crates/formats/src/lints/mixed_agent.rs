//! Found in `climpt::agent::legacy`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "mixed-agent",
    page: "\
mixed-agent: an agent is written in the words of two generations

Agents keep their settings either under `runner`, or under `behavior` and beside it (`prompts`, `logging`,
`github`, `worktree`, `actions`). This one has both, so that nobody can tell which of them holds.

Keep one of them, with everything in its place there.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[(r#""displayName": "Fixer","#, r#""displayName": "Fixer", "behavior": {},"#)],
    &[(r#" "behavior": {},"#, "")],
)];
