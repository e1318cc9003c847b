//! Takes over the files of Git LFS that agents added. Each has the name of its content.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{RepositoryPair, wire::StopFlag};
use crate::{
    beneath::FolderHandle,
    worktree::error::{WorktreeError, io_at},
};

/// The folder with the files, below the shared git folder, in two levels of folders by the first letters of their names.
const OBJECTS: &str = "lfs/objects";
/// The limit of the size of all files that are taken over at once, in bytes.
const SIZE_MAX: u64 = 4 << 30;
/// The limit of the number of files that are taken over at once.
const COUNT_MAX: usize = 10_000;

impl RepositoryPair {
    /// Copies the files that the user's repository lacks. Returns a description of the files that were not copied.
    ///
    /// # Errors
    /// When a file of the user cannot be written.
    pub(super) fn take_over_large_files(
        &self,
        folder: &FolderHandle,
        stop: &StopFlag,
    ) -> Result<Vec<String>, WorktreeError> {
        let (mut size_left, mut is_over) = (SIZE_MAX, false);
        for (count, below) in list_large_files(folder).into_iter().enumerate() {
            let target = self.real.common.join(&below);
            if target.symlink_metadata().is_ok() {
                continue;
            }
            let Ok(file) = folder.open_file(&below) else { continue };
            let size = file.metadata().map_or(u64::MAX, |about| about.len());
            if size > size_left || count >= COUNT_MAX || stop.is_set() {
                is_over = true;
                continue;
            }
            size_left -= size;
            copy_if_named_by_content(file.take(size), &target, stop)?;
        }
        let more =
            format!("files of Git LFS, of which at most {} GiB are taken over at once", SIZE_MAX >> 30);
        Ok(if is_over { vec![more] } else { Vec::new() })
    }
}

/// The files whose names are digests, in their folders.
fn list_large_files(folder: &FolderHandle) -> Vec<PathBuf> {
    let names = |below: &Path| folder.list(below).unwrap_or_default().into_iter();
    let folders = names(Path::new(OBJECTS)).filter(|(_, kind)| kind.is_dir());
    let folders = folders.map(|(name, _)| Path::new(OBJECTS).join(name));
    let folders = folders.flat_map(|outer| {
        let inner = names(&outer).filter(|(_, kind)| kind.is_dir());
        inner.map(move |(name, _)| outer.join(name)).collect::<Vec<_>>()
    });
    let files = folders.flat_map(|inner| {
        let files = names(&inner).filter(|(name, kind)| kind.is_file() && is_digest(&name.to_string_lossy()));
        files.map(move |(name, _)| inner.join(name)).collect::<Vec<_>>()
    });
    files.collect()
}

/// Whether a text is a digest by SHA-256.
fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Copies a file as a stream. It gets its name if that is the digest of what was copied.
fn copy_if_named_by_content(
    mut file: impl io::Read,
    target: &Path,
    stop: &StopFlag,
) -> Result<(), WorktreeError> {
    let Some(parent) = target.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(io_at("create", parent))?;
    let mut copy = tempfile::NamedTempFile::new_in(parent).map_err(io_at("create a file in", parent))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        // An agent may cut the file off meanwhile: then its digest is another one.
        let count = file.read(&mut buffer).unwrap_or(0);
        if count == 0 || stop.is_set() {
            break;
        }
        digest.update(&buffer[..count]);
        copy.write_all(&buffer[..count]).map_err(io_at("write", target))?;
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if target.file_name().is_some_and(|name| *name == *found) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        copy.as_file().set_permissions(permissions).map_err(io_at("write", target))?;
        copy.persist(target).map_err(|error| io_at("write", target)(error.error))?;
    }
    Ok(())
}
