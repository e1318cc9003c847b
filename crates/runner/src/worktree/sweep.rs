//! Removes the objects of snapshots that no run needs any more.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::changes::object_id;
use super::error::{WorktreeError, io_at};
use super::git_state::list_state_objects;
use super::snapshots::snapshot::Trees;

/// The snapshots that are still needed, by object id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededSnapshots {
    pub trees: BTreeSet<String>,
    /// Git states of worktrees.
    pub git_states: BTreeSet<String>,
}

/// What the objects of snapshots take on the disk, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotSizes {
    pub now: u64,
    /// Without what nobody needs. Before a sweep, an estimate.
    pub needed: u64,
}

/// While it lives no snapshot is taken.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

/// From this number of loose objects on, those that stay go into one pack.
const PACKED_FROM: usize = 100;

/// The objects in our store.
struct StoredObjects {
    /// Files of one object each: id, path, size.
    loose: Vec<(String, PathBuf, u64)>,
    /// Packs: path without its ending, ids, size.
    packs: Vec<(PathBuf, Vec<String>, u64)>,
}

impl StoredObjects {
    /// In bytes.
    fn size(&self) -> u64 {
        let loose = self.loose.iter().map(|(.., size)| size);
        loose.chain(self.packs.iter().map(|(.., size)| size)).sum()
    }
}

impl Trees {
    /// The needed snapshots that are not there.
    ///
    /// # Errors
    /// When git fails.
    pub fn list_missing_snapshots(&self, needed: &NeededSnapshots) -> Result<Vec<String>, WorktreeError> {
        let wanted: BTreeSet<String> = needed.trees.union(&needed.git_states).cloned().collect();
        let there: BTreeSet<String> = self.existing_objects(&wanted)?.into_iter().collect();
        Ok(wanted.difference(&there).cloned().collect())
    }

    /// The size of the snapshots, and what a sweep would leave.
    ///
    /// # Errors
    /// When git fails.
    pub fn measure_snapshots(&self, needed: &NeededSnapshots) -> Result<SnapshotSizes, WorktreeError> {
        let stored = self.list_stored_objects()?;
        let needed = self.list_needed_objects(needed)?;
        let loose = stored.loose.iter().filter(|(id, ..)| needed.contains(id)).map(|(.., size)| size);
        let packed = stored.packs.iter().map(|(_, ids, size)| {
            let kept = ids.iter().filter(|id| needed.contains(*id)).count() as u64;
            size * kept / (ids.len() as u64).max(1)
        });
        Ok(SnapshotSizes { now: stored.size(), needed: loose.sum::<u64>() + packed.sum::<u64>() })
    }

    /// Keeps snapshots from being taken until the result is dropped, in any process.
    ///
    /// # Errors
    /// When the lock cannot be taken.
    pub fn lock_store(&self) -> Result<StoreLock, WorktreeError> {
        Ok(StoreLock { _file: self.lock_file("store.lock", FlockOperation::LockExclusive)? })
    }

    /// Removes the objects that no needed snapshot has. The caller finds out what is needed while it holds the lock, and makes
    /// sure that every snapshot that was taken before is recorded. If a sweep is killed, the next one removes the rest.
    ///
    /// # Errors
    /// When git fails, or a file cannot be removed.
    pub fn sweep_snapshots(
        &self,
        _lock: &StoreLock,
        needed: &NeededSnapshots,
    ) -> Result<SnapshotSizes, WorktreeError> {
        let needed_objects = self.list_needed_objects(needed)?;
        let stored = self.list_stored_objects()?;
        // Our indexes may name trees that are removed below, and git does not check whether these are there.
        for entry in read_folder(&self.state)? {
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("index-") {
                remove_file(&entry)?;
            }
        }
        let is_needed = |id: &String| needed_objects.contains(id);
        let stays = stored.loose.iter().filter(|(id, ..)| is_needed(id)).count();
        let is_mixed = stored.packs.iter().any(|(_, ids, _)| !ids.iter().all(is_needed));
        if is_mixed || stays >= PACKED_FROM {
            self.pack_again(&stored, &needed_objects)?;
        } else {
            for (_, path, _) in stored.loose.iter().filter(|(id, ..)| !is_needed(id)) {
                remove_file(path)?;
            }
        }
        Ok(SnapshotSizes { now: stored.size(), needed: self.list_stored_objects()?.size() })
    }

    /// Writes what is needed into one pack, and removes everything else.
    fn pack_again(&self, stored: &StoredObjects, needed: &BTreeSet<String>) -> Result<(), WorktreeError> {
        let loose = stored.loose.iter().map(|(id, ..)| id);
        let all = loose.chain(stored.packs.iter().flat_map(|(_, ids, _)| ids));
        let stays: BTreeSet<&String> = all.filter(|id| needed.contains(*id)).collect();
        let folder = self.state.join("objects").join("pack");
        fs::create_dir_all(&folder).map_err(io_at("create", &folder))?;
        let mut new = None;
        if !stays.is_empty() {
            let input: String = stays.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
            let base = folder.join("pack");
            let words = ["pack-objects", "--quiet"].map(std::ffi::OsStr::new);
            let written = self.git.run_with(&[&words[..], &[base.as_os_str()]].concat(), input.as_bytes())?;
            new = Some(folder.join(format!("pack-{}", String::from_utf8_lossy(&written).trim())));
        }
        for (base, ..) in stored.packs.iter().filter(|(base, ..)| Some(base) != new.as_ref()) {
            // The index first: git ignores a pack without one.
            for ending in ["idx", "rev", "bitmap", "pack"] {
                remove_file(&base.with_extension(ending))?;
            }
        }
        stored.loose.iter().try_for_each(|(_, path, _)| remove_file(path))
    }

    /// Every object of the needed snapshots, ours and the user's. What is missing is left out.
    fn list_needed_objects(&self, needed: &NeededSnapshots) -> Result<BTreeSet<String>, WorktreeError> {
        let mut tips: BTreeSet<String> = BTreeSet::new();
        for id in needed.trees.iter().chain(&needed.git_states) {
            tips.insert(object_id(id)?.to_owned());
        }
        tips.extend(self.list_intended_trees());
        for state in self.existing_objects(&needed.git_states)? {
            tips.extend(list_state_objects(&self.git.run(&["cat-file", "blob", &state])?));
        }
        let input: String = self.existing_objects(&tips)?.into_iter().map(|id| id + "\n").collect();
        let words =
            ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin", "--no-walk"];
        let listed = self.git.run_with(&words, input.as_bytes())?;
        Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
    }

    /// Those of some objects that are there.
    fn existing_objects(&self, ids: &BTreeSet<String>) -> Result<Vec<String>, WorktreeError> {
        let input: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
        let checked = self.git.run_with(&["cat-file", "--batch-check"], input.as_bytes())?;
        let there =
            |line: &str| Some(line.split_once(' ').filter(|(_, rest)| *rest != "missing")?.0.to_owned());
        Ok(String::from_utf8_lossy(&checked).lines().filter_map(there).collect())
    }

    fn list_stored_objects(&self) -> Result<StoredObjects, WorktreeError> {
        let mut stored = StoredObjects { loose: Vec::new(), packs: Vec::new() };
        for folder in read_folder(&self.state.join("objects"))? {
            let start = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if start.len() != 2 || !start.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                continue;
            }
            for path in read_folder(&folder)? {
                let rest = path.file_name().unwrap_or_default().to_string_lossy();
                let size = fs::metadata(&path).map_or(0, |about| about.blocks() * 512);
                // This also lists temporary files of a killed git: no snapshot needs them.
                stored.loose.push((format!("{start}{rest}"), path.clone(), size));
            }
        }
        for index in read_folder(&self.state.join("objects").join("pack"))? {
            if index.extension().is_none_or(|ending| ending != "idx") {
                continue;
            }
            let bytes = fs::read(&index).map_err(io_at("read", &index))?;
            let listed = self.git.run_with(&["show-index"], &bytes)?;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            let ids = listed.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned);
            let size = ["pack", "idx"].map(|ending| fs::metadata(index.with_extension(ending)));
            let size = size.iter().flatten().map(|about| about.blocks() * 512).sum();
            stored.packs.push((index.with_extension(""), ids.collect(), size));
        }
        Ok(stored)
    }
}

fn read_folder(folder: &Path) -> Result<Vec<PathBuf>, WorktreeError> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io_at("read", folder)(error)),
    }
}

fn remove_file(path: &Path) -> Result<(), WorktreeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at("remove", path)(error)),
        _ => Ok(()),
    }
}
