//! Snapshots of a working tree: which files they hold, and how they are taken.

pub(super) mod dirty_files;
pub(super) mod forced_files;
pub(super) mod ignored_files;
pub(super) mod ignored_places;
pub(super) mod snapshot;
pub(super) mod tracking;
