//! Found in `climpt::older::completion_steps` and `climpt::registry::gate_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "complete-elsewhere",
    page: "\
complete-elsewhere: `complete` does not lead to a step that completes the run

An agent that decides `complete` says that the work is done. That always leads to a step called `complete.*`,
whose own `complete` ends the run; otherwise a run could be complete and go on with the same work. Such a step
stands in `steps`, or in `completionSteps` alone.

Lead `complete` to a `complete.*` step, or use `next` where the work goes on.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[(
        r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "complete.fix" }"#,
        r#""repeat": { "target": "initial.fix" },
        "complete": { "target": "initial.fix" }"#,
    )],
    &[(r#""complete": { "target": "initial.fix" }"#, r#""complete": { "target": "complete.fix" }"#)],
)];
