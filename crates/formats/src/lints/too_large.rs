//! Found in `source::loader`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "too-large",
    page: "\
too-large: a file is larger than 16 MiB

No definition needs such a file, and what is read becomes part of prompts or of the journal.

Check that the path names the right file, or split it.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
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
