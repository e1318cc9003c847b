//! Found in `takt::later_spellings`, `takt::instruction_template`.

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "later-spelling",
    page: "\
later-spelling: a key in the spelling of a later version of the format

`steps`, `initial_step` and `max_steps` are what later versions call `movements`, `initial_movement` and
`max_iterations`; some between call the last `max_movements`. What judges of monitors are told is called
`instruction` there, and may be a key of `instructions`. In instructions `{step_iteration}`, `{max_steps}` and
`{max_movements}` stand for `{movement_iteration}` and `{max_iterations}`. They are read as that.

Nothing has to be done.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] =
    &[super::piece(&[("max_iterations", "max_steps")], &[("max_steps", "max_iterations")])];
