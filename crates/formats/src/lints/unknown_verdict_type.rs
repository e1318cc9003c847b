//! Found in `climpt::agent::entries`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-verdict-type",
    page: "\
unknown-verdict-type: an entry is mapped to no verdict type

A key of `entryStepMapping` is none of the eight verdict types, so that its entry is never taken.

Correct the key. The hint names the nearest type, or the new name of an older one.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(
            r#""entryStep": "initial.fix","#,
            r#""entryStepMapping": { "detect:graph": "initial.fix", "count:itaration": "initial.fix" },"#,
        )],
        &[("count:itaration", "count:iteration")],
    ),
    super::complete(
        &[(
            r#""entryStep": "initial.fix","#,
            r#""entryStepMapping": { "stepMachine": "initial.fix", "issue": "initial.fix" },"#,
        )],
        &[(r#", "issue": "initial.fix""#, "")],
    ),
];
