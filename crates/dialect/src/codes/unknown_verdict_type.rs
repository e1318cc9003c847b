//! Found in `registry::entries`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "unknown-verdict-type",
    page: "\
unknown-verdict-type: an entry is mapped to no verdict type

A key of `entryStepMapping` is none of the eight verdict types, so that its entry is never taken.

Correct the key. The hint names the nearest type, or the new name of an older one.
",
};
