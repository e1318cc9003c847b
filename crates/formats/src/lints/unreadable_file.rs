//! Found in `source::loader`, `takt::load`, `climpt::load` and `climpt::validation::program`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unreadable-file",
    page: "\
unreadable-file: a file that the definition needs cannot be read

The file is not there, or the system refuses to read it.

Write the file, correct the path that names it, or correct its permissions.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(
        &[(r#""steps_registry.json""#, r#""steps.json""#)],
        &[(r#""steps.json""#, r#""steps_registry.json""#)],
    ),
    super::piece(&[], &[("Change one thing", "Change only one thing")])
        .spoiled(|files| drop(files.remove(".takt/pieces/sound.yaml"))),
];
