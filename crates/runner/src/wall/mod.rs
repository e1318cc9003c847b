//! The wall: what the operating system keeps those from who work for a run. `docs/wall.md` says what it holds.
//!
//! bubblewrap makes the room: the file system to read, a few places to write, no network. In the room our own program
//! ([`wall_main`]) starts what is to run and carries connections through a socket, the door. Outside, at the door's
//! other end, a proxy of ours looks whom each of them is for.

mod address;
mod bwrap;
mod door;
mod inside;
mod layout;
mod places;
mod proxy;
mod request;
mod room;

pub use bwrap::{Bwrap, NoWall};
pub use inside::wall_main;
pub use places::mend;
pub use room::Wall;

pub(crate) use door::Teller;
pub(crate) use room::{Room, Used, Who};
