//! Where a run stands and what it did: one fold, from which every other view is drawn.

mod acts;
mod asks;
mod fold;
mod json;
mod track;
mod view;
mod ways;

pub(crate) use json::{cost, waiting};
pub(crate) use track::tokens_of;
pub(crate) use view::waits_for;

pub use acts::{Acts, EffectRow, EffectState, InspectionRow};
pub use asks::Asks;
pub use fold::{RunFold, run_view};
pub use view::{Check, FaultRow, HandedRow, Liveness, Open, Pending, Row, RunState, RunView, ValidatorRow};
pub use ways::Ways;

#[cfg(test)]
mod by_hand;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wandering;
