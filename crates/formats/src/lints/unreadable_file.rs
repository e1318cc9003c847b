use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "unreadable-file",
    page: "\
unreadable-file: a file that the definition needs cannot be read

What it means: The file does not exist, the operating system refuses to read it, it is not UTF-8, or it is
larger than 16 MiB.

Why it matters: The definition is not complete without the file, so it cannot run.

Example:
    policies:
      coding: ../policies/codng.md

Fix: Write the file, correct the path, or correct the permissions of the file. Save it as UTF-8.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::twins_of_closing(
        &[(r#""steps_registry.json""#, r#""steps.json""#)],
        &[(r#""steps.json""#, r#""steps_registry.json""#)],
    ),
    super::twins_of_piece(&[], &[("Change one thing", "Change only one thing")])
        .spoiled(|files| drop(files.remove(".takt/pieces/sound.yaml"))),
    super::twins_of_piece(
        &[("../policies/coding.md", "../policies/codng.md")],
        &[("", "//- .takt/policies/codng.md\nSimple before easy.\n")],
    ),
    super::twins_of_closing(&[], &[("Be kind. ", "Be kind, cafe or not.")]).spoiled(|files| {
        drop(files.insert(".agent/fixer/prompts/system.md".to_owned(), b"caf\xe9".to_vec()))
    }),
    super::twins_of_piece(&[], &[("Money is counted in cents.", "Money is counted in cents, not €.")])
        .spoiled(|files| drop(files.insert(".takt/knowledge/domain.md".to_owned(), b"not \x80".to_vec()))),
    super::twins_of_closing(&[], &[("Be kind. ", "Be brief.")]).spoiled(|files| {
        drop(files.insert(
            ".agent/fixer/prompts/system.md".to_owned(),
            vec![b'x'; crate::source::files::FILE_BYTES_MAX + 1],
        ))
    }),
    super::twins_of_piece(&[], &[("Money is counted in cents.", "Cents.")]).spoiled(|files| {
        drop(files.insert(
            ".takt/knowledge/domain.md".to_owned(),
            vec![b'x'; crate::source::files::FILE_BYTES_MAX + 1],
        ))
    }),
];
