//! Found in `climpt::prompts::path_template`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "inert-path-part",
    page: "\
inert-path-part: a path template leaves out what tells prompts apart

Steps or failure patterns differ in a part of their prompt's path, but the path template does not have that
part, so that what they say about it has no effect.

Add the placeholder to the template, or write the same everywhere.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::closing(
    &[
        (r#""c1": "steps""#, r#""c1": "steps", "pathTemplateNoAdaptation": "{c1}/{c2}/{c3}/f_default.md""#),
        (r#""c2": "section", "c3": "context""#, r#""c2": "section", "c3": "context", "edition": "own""#),
    ],
    &[(r#""edition": "own""#, r#""edition": "default""#)],
)];
