use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unreadable-file",
    page: "\
unreadable-file: a file that the definition needs cannot be read

The file is not there, or the system refuses to read it.

Write the file, correct the path that names it, or correct its permissions.

- a file that a piece names is not there
- a file is not UTF-8
- a file is larger than 16 MiB
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
    super::piece(
        &[("../policies/coding.md", "../policies/codng.md")],
        &[("", "//- .takt/policies/codng.md\nSimple before easy.\n")],
    ),
    super::closing(&[], &[("Be kind. ", "Be kind, cafe or not.")]).spoiled(|files| {
        drop(files.insert(".agent/fixer/prompts/system.md".to_owned(), b"caf\xe9".to_vec()))
    }),
    super::piece(&[], &[("Money is counted in cents.", "Money is counted in cents, not €.")])
        .spoiled(|files| drop(files.insert(".takt/knowledge/domain.md".to_owned(), b"not \x80".to_vec()))),
    super::closing(&[], &[("Be kind. ", "Be brief.")]).spoiled(|files| {
        drop(files.insert(
            ".agent/fixer/prompts/system.md".to_owned(),
            vec![b'x'; crate::source::files::FILE_BYTES_MAX + 1],
        ))
    }),
    super::piece(&[], &[("Money is counted in cents.", "Cents.")]).spoiled(|files| {
        drop(files.insert(
            ".takt/knowledge/domain.md".to_owned(),
            vec![b'x'; crate::source::files::FILE_BYTES_MAX + 1],
        ))
    }),
];
