//! Locates a program.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Finds a program as starting it would: a bare name in the folders of `PATH`, any other path as it is.
pub(crate) fn find(program: &Path) -> Option<PathBuf> {
    find_in(program, env::var_os("PATH").unwrap_or_default().as_os_str())
}

fn find_in(program: &Path, path: &std::ffi::OsStr) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_program(program).then(|| program.to_owned());
    }
    env::split_paths(path).map(|folder| folder.join(program)).find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_bare_name_is_looked_up_and_has_to_be_executable() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for (place, mode) in [(&first, 0o644), (&second, 0o755)] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("agent"), "").unwrap();
            fs::set_permissions(place.join("agent"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = env::join_paths([&first, &second]).unwrap();
        assert_eq!(find_in(Path::new("agent"), &path), Some(second.join("agent")));
        assert_eq!(find_in(Path::new("other"), &path), None);
        assert_eq!(find_in(&second.join("agent"), "".as_ref()), Some(second.join("agent")));
        assert_eq!(find_in(&first.join("agent"), &path), None);
    }
}
