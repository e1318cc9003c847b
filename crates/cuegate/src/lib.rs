//! Check it, price it, run it, replay it: declarative workflows of coding agents.
//!
//! This is the thin library face of the program: load a definition, check it, run it, read the result. The
//! program itself is arguments, wiring, terminal, messages and exit codes around it.
//!
//! *Never* holds a rule about flows.

mod agent;
pub mod begin;
pub mod cli;
pub mod config;
pub mod definition;
pub mod doctor;
pub mod exit;
mod failure;
mod init;
mod logfile;
pub mod models;
pub mod project;
pub mod providers;
pub mod terms;

pub use agent::Agent;
pub use failure::Failure;
