//! Found in `json::fields` and `registry::verdict`.

use cuegate_flow::Code;

pub(super) const CODE: Code = Code {
    name: "missing-key",
    page: "\
missing-key: a required key is missing

The format requires this key.

Add it.
",
};
