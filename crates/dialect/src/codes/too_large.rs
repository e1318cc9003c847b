//! Found in `desk`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "too-large",
    page: "\
too-large: a file is larger than 4 MiB

No definition needs such a file, and what is read becomes part of prompts or of the journal.

Check that the path names the right file, or split it.
",
};
