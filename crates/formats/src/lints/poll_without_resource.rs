//! Found in `climpt::agent::completion_lowering`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "poll-without-resource",
    page: "\
poll-without-resource: the verdict looks at something, and nothing says at what

`poll:state` looks at the file that the parameter `file` names, or at the address in the parameter `url`.
There is no such parameter, or a run can begin without it.

Declare the parameter, as required or with a default, or give it with `--set`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::unguarded(
    &[(r#"{ "type": "detect:graph" }"#, r#"{ "type": "poll:state", "config": { "resourceType": "file" } }"#)],
    &[(
        r#""parameters": {"#,
        r#""parameters": {
    "file": { "type": "string", "description": "F", "required": true, "cli": "--file" },"#,
    )],
)];
