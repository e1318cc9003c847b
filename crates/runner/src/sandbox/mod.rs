//! The sandbox of the programs that a run starts. `docs/sandbox.md` describes its limits.
//!
//! bubblewrap creates the sandbox: a read-only file system with a few writable paths, and no network. In the sandbox
//! our own program ([`sandbox_main`]) starts the command and forwards its connections to the egress socket. Outside,
//! our proxy accepts them there and checks each host against the allow-list. Where bubblewrap cannot run, Landlock is a
//! partial level of the same rules.

mod address;
mod agent_git_mounts;
mod bwrap;
mod confine;
mod confined_git;
mod egress;
mod environment;
mod held_sources;
mod hidden_paths;
mod kept_out;
mod landlock_level;
mod mounts;
mod proxy;
mod request;
mod sandbox_init;
mod sockets;
mod spec;
mod visible;
mod writable_folders;

pub use bwrap::{Bwrap, SandboxError};
pub use confine::SandboxLimits;
pub use egress::remove_stale_egresses;
pub use hidden_paths::remove_git_redirects;
pub use kept_out::{SETTINGS_FILES, find_link, kept_out_files, put_aside_kept_out};
pub use landlock_level::is_available as has_landlock;
pub use sandbox_init::sandbox_main;
pub use spec::{Sandbox, SandboxLevel, SandboxOptions};
pub use visible::list_caches;

pub(crate) use egress::RefusalReporter;
pub(crate) use spec::{ProcessKind, SandboxGuard, SandboxSpec, TreeAccess};
