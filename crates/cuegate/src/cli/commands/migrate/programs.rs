//! The files of a migrated agent, with the programs of the older one: those that it names, what lies beside them, and
//! whatever else in its folder can be started.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use cuegate_dialect::{FILE_BYTES_MAX, Migration, MigrationNote};

use crate::{Failure, definition::Location, init::Written};

/// How deep programs are looked for in an agent's folder.
const DEPTH_MAX: usize = 8;

/// Everything that is written, programs as they are on the disk.
pub(super) fn all(location: &Location, migration: &mut Migration) -> Result<Vec<Written>, Failure> {
    let mut files = Vec::new();
    for file in &migration.files {
        let executable = match &file.program {
            Some(from) => is_executable(&location.root.join(from)),
            None => false,
        };
        files.push(Written { path: file.path.clone(), bytes: file.text.clone().into_bytes(), executable });
    }
    let folder = location.root.join(&location.base);
    // A registry that stands alone, or a project that is an agent, has programs of its own there.
    if folder.join("agent.json").is_file() && !folder.join(".git").exists() {
        let named = migration.files.iter().filter(|file| file.program.is_some());
        let beside: BTreeSet<PathBuf> =
            named.filter_map(|file| Path::new(&file.path).parent()).map(Path::to_owned).collect();
        let mut found = Vec::new();
        walk(&folder, Path::new(""), 0, &mut found)?;
        for path in found {
            take(&folder, &path, &beside, &mut files, migration)?;
        }
    }
    note_older_paths(location, &files, migration);
    Ok(files)
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

/// Every ordinary file below a folder, in order. Links are not followed: they may lead anywhere.
fn walk(folder: &Path, inside: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::environment(format!("failed to list `{}`: {error}", folder.join(inside).display()))
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(folder.join(inside)).map_err(failed)?.collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(failed)?;
        let path = inside.join(entry.file_name());
        if kind.is_file() {
            found.push(path);
        } else if kind.is_dir() && depth < DEPTH_MAX {
            walk(folder, &path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Takes a file along when it is a program, or lies beside one that the agent names.
fn take(
    folder: &Path,
    path: &Path,
    beside: &BTreeSet<PathBuf>,
    files: &mut Vec<Written>,
    migration: &mut Migration,
) -> Result<(), Failure> {
    let from = folder.join(path);
    let executable = is_executable(&from);
    let lies_beside = path.parent().is_some_and(|parent| parent != Path::new("") && beside.contains(parent));
    let to = path.to_string_lossy().into_owned();
    if !(executable || lies_beside) || files.iter().any(|file| file.path == to) {
        return Ok(());
    }
    let failed = |error| Failure::environment(format!("failed to read `{}`: {error}", from.display()));
    if fs::metadata(&from).map_err(failed)?.len() > FILE_BYTES_MAX as u64 {
        let text = "not copied: it is larger than 16 MiB; copy it by hand".to_owned();
        migration.notes.push(MigrationNote { place: to, text, changes_runs: true });
        return Ok(());
    }
    files.push(Written { path: to, bytes: fs::read(&from).map_err(failed)?, executable });
    Ok(())
}

/// Files that name the older folder go on using what lies there.
fn note_older_paths(location: &Location, files: &[Written], migration: &mut Migration) {
    if location.base.is_empty() {
        return;
    }
    let older = format!("{}/", location.base);
    for file in files {
        let text = String::from_utf8_lossy(&file.bytes);
        if let Some(line) = text.lines().position(|line| line.contains(&older)) {
            let text = format!("line {} names `{older}`, the folder of the older agent", line + 1);
            migration.notes.push(MigrationNote { place: file.path.clone(), text, changes_runs: false });
        }
    }
}
