use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "escapes-root",
    page: "\
escapes-root: a path leads out of the project

What it means: The path is absolute, leaves the project with `..`, or leaves it through a symbolic link.
The files of an agent are in its folder or elsewhere in the project; the files of a TAKT workflow are in
the project or in the folder above its own.

Why it matters: Cuegate does not read the file: a definition written by somebody else must not be able to
put your files into a prompt.

Example:
    \"systemPromptPath\": \"../../../system.md\"

Fix: Move the file into the project, or correct the path.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""prompts/system.md""#, r#""../../../system.md""#)],
        &[(r#""../../../system.md""#, r#""../fixer/prompts/system.md""#)],
    ),
    super::twins_of_piece(
        &[("../policies/coding.md", "../../../coding.md")],
        &[("../../../coding.md", "../policies/coding.md")],
    ),
];
