use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-name",
    page: "\
unknown-name: an extractor is not there

`extractParams` name what is taken out of a validator's output. There is no extractor of this name, so that
the value stays empty in the failure prompt.

Correct the name, or use `stdout`, `stderr` or `errorOutput`.

`persona`, `policy`, `knowledge`, `instruction` and `format` are keys of `personas`, `policies`,
`knowledge`, `instructions` and `report_formats`. There is no such key, and the word alone would tell an
agent nothing. Where several movements name one that is not there, and one that is there is named nowhere,
the latter is what was changed, and the finding stands there.

Correct the key; the hint names the nearest one. Or add it with the path of its file.

`all(…)` and `any(…)` are compared with the conditions of the members' rules as they are written, and with
what stands in their `ai(\"…\")`. No member has a rule with this one. A double quote in it is written with a
backslash before it.

Correct the text; the hint names the nearest one. Or add the rule to the member.

`validationConditions` name entries of `validators`. This one does not exist, so that it could never pass.

Correct the name, or add the validator.

When the validator fails, the prompt of its failure pattern tells the agent what to mend. `failurePattern`
is missing, or names a pattern that is not there.

Name one of `failurePatterns`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""parseChangedFiles""#, r#""parseChanges""#)],
        &[(r#""parseChanges""#, r#""parseUntrackedFiles""#)],
    ),
    super::piece(&[("[coding, careful]", "[codng, coding, careful]")], &[("[codng, ", "[")]),
    super::piece(
        &[(r#"all("approved")"#, r#"all("aproved")"#)],
        &[(r#"all("aproved")"#, r#"all("approved", "approved")"#)],
    ),
    super::closing(
        &[(r#""validator": "git-clean""#, r#""validator": "git-cleen""#)],
        &[("git-cleen", "git-clean")],
    ),
    super::closing(
        &[(r#""failurePattern": "git-dirty""#, r#""failurePattern": "git-dirt""#)],
        &[(r#""git-dirt""#, r#""git-dirty""#)],
    ),
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
