//! Found in `takt::literal_texts` and `takt::sections`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "literal-keys",
    page: "\
literal-keys: keys of a map stand where a text belongs

A value that is neither a key nor a path is the text itself. One that is made of keys of its map only is
probably a list in another form than that of YAML: without dashes, with a second one further in, or parted by
commas without brackets. So is an `instruction_template` that is a key of `instructions`. The agent would be
told the keys, and nothing of what they name.

Write a list, `[coding, testing]` or an item a line with a dash, or name the key as `instruction`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::piece(&[("[coding, careful]", "coding, careful")], &[("coding, careful", "[coding, careful]")])];
