use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-name",
    page: "\
unknown-name: a name refers to nothing that the definition or the format has

What it means: The name is none of those that exist:
- in a TAKT workflow, `persona`, `policy`, `knowledge`, `instruction` and `format` name keys of `personas`,
  `policies`, `knowledge`, `instructions` and `report_formats`; `all(\"…\")` and `any(\"…\")` name conditions
  of the members;
- in a registry, `validationConditions` name `validators`, `failurePattern` names one of `failurePatterns`,
  `extractParams` name extractors, and keys of `entryStepMapping` are verdict types.

Why it matters: The reference has no effect: an agent lacks its instructions, a rule never holds, a
validator cannot run. An unknown extractor leaves its value empty in the failure prompt.

Example:
    policies:
      coding: ../policies/coding.md
    steps:
      - name: implement
        policy: [codng]

Fix: Correct the name; the hint names the nearest one. Or define what is named. Extractors that always
exist are `stdout`, `stderr` and `errorOutput`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""parseChangedFiles""#, r#""parseChanges""#)],
        &[(r#""parseChanges""#, r#""parseUntrackedFiles""#)],
    ),
    super::twins_of_piece(&[("[coding, careful]", "[codng, coding, careful]")], &[("[codng, ", "[")]),
    super::twins_of_piece(
        &[(r#"all("approved")"#, r#"all("aproved")"#)],
        &[(r#"all("aproved")"#, r#"all("approved", "approved")"#)],
    ),
    super::twins_of_closing(
        &[(r#""validator": "git-clean""#, r#""validator": "git-cleen""#)],
        &[("git-cleen", "git-clean")],
    ),
    super::twins_of_closing(
        &[(r#""failurePattern": "git-dirty""#, r#""failurePattern": "git-dirt""#)],
        &[(r#""git-dirt""#, r#""git-dirty""#)],
    ),
    super::twins_of_closing(
        &[(
            r#""entryStep": "initial.fix","#,
            r#""entryStepMapping": { "detect:graph": "initial.fix", "count:itaration": "initial.fix" },"#,
        )],
        &[("count:itaration", "count:iteration")],
    ),
    super::twins_of_complete(
        &[(
            r#""entryStep": "initial.fix","#,
            r#""entryStepMapping": { "stepMachine": "initial.fix", "issue": "initial.fix" },"#,
        )],
        &[(r#", "issue": "initial.fix""#, "")],
    ),
];
