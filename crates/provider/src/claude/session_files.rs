//! The files in which Claude Code keeps sessions: `projects/FOLDER/ID.jsonl` in its folder, and what belongs to such a
//! session in `projects/FOLDER/ID`. FOLDER is the path of the working folder with `-` for everything but letters and
//! digits; a long path is cut.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Removes the files of these sessions, and of any in a working folder that is gone; returns how many went.
pub(super) fn remove_sessions(home: &Path, sessions: &BTreeSet<String>, folder: Option<&Path>) -> u64 {
    let mut removed = 0;
    let projects = home.join("projects");
    if let Some(folder) = folder {
        let own = projects.join(encode_folder(folder));
        let files = list_entries(&own).len() as u64;
        if files > 0 && fs::remove_dir_all(&own).is_ok() {
            removed += files;
        }
    }
    if sessions.is_empty() {
        return removed;
    }
    for project in list_entries(&projects) {
        for entry in list_entries(&project) {
            let id = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let gone = match sessions.contains(&id) {
                true if entry.is_dir() => fs::remove_dir_all(&entry),
                true => fs::remove_file(&entry),
                false => continue,
            };
            removed += u64::from(gone.is_ok());
        }
        // Only if nothing of the user is in it.
        let _ = fs::remove_dir(&project);
    }
    removed
}

fn encode_folder(folder: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    folder.to_string_lossy().chars().map(plain).collect()
}

fn list_entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_that_are_named_go() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = home.path().join("projects").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        };
        for path in ["-w-a/1.jsonl", "-w-a/1/sub.jsonl", "-w-a/2.jsonl", "-w-b/3.jsonl", "-w-c-1/4.jsonl"] {
            write(path);
        }
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(remove_sessions(home.path(), &ids(&["1", "3", "9"]), None), 3);
        assert_eq!(list_entries(&home.path().join("projects/-w-a")).len(), 1);
        assert!(!home.path().join("projects/-w-b").exists());
        assert_eq!(remove_sessions(home.path(), &ids(&[]), Some(Path::new("/w/c_1"))), 1);
        assert!(!home.path().join("projects/-w-c-1").exists());
    }
}
