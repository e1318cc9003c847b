//! Fleets of real workers with a real Temporal and a real Postgres, and agents that log every call outside.
//!
//! `cargo xtask test --fleet` builds and installs what they need. Each worker is a host of its own: it has its own network
//! namespace, process ids, home folder and clone, if this is Linux and the user is root.
#![expect(clippy::unwrap_used, reason = "tests")]

mod chaos;
mod orderly;
#[path = "../../../testkit/src/postgres.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod postgres;
mod site;
