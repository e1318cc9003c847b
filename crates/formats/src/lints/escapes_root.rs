use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "escapes-root",
    page: "\
escapes-root: a path leads out of the project

The files of an agent lie in its folder or elsewhere in the project, those of a piece in the project or in the
folder above the piece's own. This path is absolute, climbs out with
`..`, or leads out through a symbolic link. It is not read: a definition from somebody else must not be able
to put your files into a prompt.

Move the file into the project, or correct the path.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""prompts/system.md""#, r#""../../../system.md""#)],
        &[(r#""../../../system.md""#, r#""../fixer/prompts/system.md""#)],
    ),
    super::piece(
        &[("../policies/coding.md", "../../../coding.md")],
        &[("../../../coding.md", "../policies/coding.md")],
    ),
];
