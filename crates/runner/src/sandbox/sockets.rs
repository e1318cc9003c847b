//! The sockets of other programs that a sandbox hides. A connection to one would lead out of it, and a read-only mount does
//! not prevent that.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// Folders of the system in which services keep sockets. `/run` is private to a sandbox.
const SYSTEM: [&str; 4] = ["/etc", "/opt", "/srv", "/var"];
/// The limit of folders that are searched in one place, so that a start takes no minutes.
const FOLDERS_MAX: usize = 400_000;

/// The sockets in folders of the system, but for hidden ones. Those of containers are in no list of the kernel.
pub(super) fn find_system_sockets(is_hidden: impl Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
    SYSTEM.iter().flat_map(|folder| find_sockets_below(Path::new(folder), &is_hidden)).collect()
}

/// The sockets below a folder, but for hidden folders. Links are not followed.
pub(super) fn find_sockets_below(top: &Path, is_hidden: impl Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let (mut folders, mut searched) = (vec![top.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        searched += 1;
        if searched > FOLDERS_MAX {
            break;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_socket() {
                found.insert(path);
            } else if kind.is_dir() && !is_hidden(&path) {
                folders.push(path);
            }
        }
    }
    found
}

/// The sockets with an absolute name that programs of this machine listen on, wherever they are.
pub(super) fn list_listening_sockets() -> BTreeSet<PathBuf> {
    let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let named = listed.lines().skip(1).filter_map(|line| {
        let at = line.find(" /")?;
        fs::canonicalize(&line[at + 1..]).ok()
    });
    named.filter(|path| fs::metadata(path).is_ok_and(|about| about.file_type().is_socket())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_are_found_whatever_they_were_called() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        for folder in ["a/b", "hidden"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let _one = UnixListener::bind(top.join("a/b/one")).unwrap();
        let _two = UnixListener::bind(top.join("hidden/two")).unwrap();
        std::os::unix::fs::symlink(top.join("hidden"), top.join("a/link")).unwrap();
        let hidden = top.join("hidden");
        assert_eq!(find_sockets_below(&top, |path| path == hidden), BTreeSet::from([top.join("a/b/one")]));
        assert!(list_listening_sockets().contains(&top.join("hidden/two")));
    }
}
