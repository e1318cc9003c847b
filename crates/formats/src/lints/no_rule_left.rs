//! Found in `takt::movement`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "no-rule-left",
    page: "\
no-rule-left: a movement that leads nowhere when nobody is there

Rules that are `interactive_only` exist only when somebody is there to answer. All rules of this movement,
member or judge are, so that a run without a person could not go on from here.

Add a rule without `interactive_only`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[(
        "          - condition: approved\n          - condition: needs_fix\n    rules:",
        "          - condition: approved\n            interactive_only: true\n          - condition: needs_fix\n            interactive_only: true\n    rules:",
    )],
    &[(
        "            interactive_only: true\n          - condition: needs_fix\n            interactive_only: true\n",
        "          - condition: needs_fix\n            interactive_only: true\n",
    )],
)];
