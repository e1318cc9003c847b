//! Found in `desk`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "not-utf8",
    page: "\
not-utf8: a file is not UTF-8

The finding shows the first byte that is no UTF-8.

Save the file as UTF-8. A byte order mark and Windows line ends are fine.
",
};
