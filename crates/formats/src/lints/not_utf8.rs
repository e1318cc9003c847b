//! Found in `source::loader`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "not-utf8",
    page: "\
not-utf8: a file is not UTF-8

The finding shows the first byte that is no UTF-8.

Save the file as UTF-8. A byte order mark and Windows line ends are fine.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[
    super::closing(&[], &[("Be kind. ", "Be kind, cafe or not.")]).spoiled(|files| {
        drop(files.insert(".agent/fixer/prompts/system.md".to_owned(), b"caf\xe9".to_vec()))
    }),
    super::piece(&[], &[("Money is counted in cents.", "Money is counted in cents, not €.")])
        .spoiled(|files| drop(files.insert(".takt/knowledge/domain.md".to_owned(), b"not \x80".to_vec()))),
];
