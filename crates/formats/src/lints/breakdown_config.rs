//! Found in `climpt::agent::breakdown`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "breakdown-config",
    page: "\
breakdown-config: the configuration of another tool does not know a step

Prompts were found by a tool whose configuration lists every `c2` (`directiveType`) and `c3` (`layerType`).
Here they are found without it, so that this changes nothing in a run. But a configuration that is there and
lacks a step is out of date.

Add the words to it, or remove it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::complete(
    &[(
        "",
        r#"//- .agent/climpt/config/solver-steps-user.yml
params:
  two:
    directiveType:
      pattern: "^(initial|complete)$"
    layerType:
      pattern: "^(fix)$"
"#,
    )],
    &[("initial|complete", "initial|continuation|complete")],
)];
