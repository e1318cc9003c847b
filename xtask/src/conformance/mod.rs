//! Compares what we do with recorded facts of the original program: the same inputs, its results, ours.
//!
//! One file a family of subjects. Adapters only dress a case up and call what `check` and `run` call; no rule of
//! the formats lives here. Where we differ on purpose, `docs/internals/deviations.md` says so, case by case.

mod case;
mod checked;
mod compare;
mod complete;
mod declared;
mod direct;
mod drive;
mod entry;
mod inputs;
mod interpret;
mod older;
mod project;
mod report;
mod route;
mod runs;
mod settings;
mod stepflow;
mod verdict;
mod world;

pub(crate) use report::conformance;
