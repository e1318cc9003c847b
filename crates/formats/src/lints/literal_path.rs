//! Found in `takt::literal_texts`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "literal-path",
    page: "\
literal-path: a path stands where a text belongs

`instruction_template` is the text that an agent is told. It is read from a file only when it is the path of
a file of Markdown (`.md`), and that of a monitor's judge never is. Any other path is the text itself: the
agent would be told the path, and nothing else.

Name the file, with the ending `.md`, in `instructions` and its key as `instruction`, or write the text; of a
judge write the text.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::piece(
    &[("instruction_template: Review the tests.", "instruction_template: ../instructions/review.txt")],
    &[("instruction_template: ../instructions/review.txt", "instruction_template: Review.")],
)];
