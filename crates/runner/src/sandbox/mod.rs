//! The sandbox: what the operating system keeps those from who work for a run. `docs/sandbox.md` says what it holds.
//!
//! bubblewrap makes the room: the file system to read, a few places to write, no network. In the room our own program
//! ([`sandbox_main`]) starts what is to run and carries connections through a socket, the door. Outside, at the door's
//! other end, a proxy of ours looks whom each of them is for.

mod address;
mod bwrap;
mod egress;
mod layout;
mod mounts;
mod proxy;
mod request;
mod sandbox_init;
mod spec;

pub use bwrap::{Bwrap, SandboxError};
pub use mounts::mend;
pub use sandbox_init::sandbox_main;
pub use spec::Sandbox;

pub(crate) use egress::Teller;
pub(crate) use spec::{SandboxSpec, Used, Who};
