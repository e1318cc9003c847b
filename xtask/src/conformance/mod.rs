//! Compares what we do with recorded facts of the original program: the same inputs, its results, ours.
//!
//! One file a family of subjects. Adapters only dress a case up and call what `check` and `run` call; no rule of
//! the formats lives here. Where we differ on purpose, `docs/deviations.md` says so, case by case.

mod case;
mod compare;
mod declared;
mod direct;
mod entry;
mod inputs;
mod interpret;
mod report;
mod route;
mod stepflow;
mod world;

pub(crate) use report::conformance;
