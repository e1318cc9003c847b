//! Found in `takt::monitors` and `takt::monitor_steps`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "invalid-monitor",
    page: "\
invalid-monitor: a loop monitor that can never act

A monitor watches a cycle of at least two movements that come after each other again and again. Of two
monitors of the same cycle only the first could ever act.

Correct `cycle`, or remove the monitor.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("cycle: [implement, reviewers]", "cycle: [implement]")],
    &[("cycle: [implement]", "cycle: [implement, reviewers]")],
)];
