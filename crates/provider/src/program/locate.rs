//! Locates the programs that Cuegate starts itself: never in a working tree, where agents write.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The folders in which no program is looked up, without links.
static TREES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Excludes the folders of `PATH` inside of a project from the lookup of programs, such as `node_modules/.bin` and
/// `.venv/bin`. Call it before the first agent starts.
pub fn exclude_from_path(project: &Path) {
    let Ok(project) = fs::canonicalize(project) else { return };
    let is_home = env::home_dir().and_then(|home| fs::canonicalize(home).ok());
    // Otherwise no program in the home folder would be found.
    if is_home.is_some_and(|home| home.starts_with(&project)) {
        return;
    }
    let mut trees = TREES.lock().unwrap_or_else(PoisonError::into_inner);
    if !trees.contains(&project) {
        trees.push(project);
    }
}

/// `PATH` without relative folders and without those inside of excluded projects.
pub fn search_path() -> OsString {
    let trees = TREES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    remove_excluded_folders(&env::var_os("PATH").unwrap_or_default(), &trees)
}

fn remove_excluded_folders(path: &std::ffi::OsStr, trees: &[PathBuf]) -> OsString {
    let is_inside = |folder: &Path| trees.iter().any(|tree| folder.starts_with(tree));
    let folders = env::split_paths(path).filter(|folder| {
        folder.is_absolute()
            && !is_inside(folder)
            && !fs::canonicalize(folder).is_ok_and(|real| is_inside(&real))
    });
    env::join_paths(folders).unwrap_or_default()
}

/// Finds a program: a bare name in [`search_path`], any other path as it is.
pub fn locate_program(program: impl AsRef<Path>) -> Option<PathBuf> {
    find_in(program.as_ref(), &search_path())
}

/// As [`locate_program`]; a path that does not exist if the program is not found, so that starting it fails.
pub fn locate_or_missing(program: impl AsRef<Path>) -> PathBuf {
    let program = program.as_ref();
    locate_program(program).unwrap_or_else(|| match program.components().count() {
        1 => Path::new("/not-found").join(program),
        _ => program.to_owned(),
    })
}

/// The files that the arguments of a command name by a whole path, such as the script of an interpreter.
pub(crate) fn list_named_files(command: &[String]) -> Vec<PathBuf> {
    let paths = command.iter().skip(1).map(PathBuf::from);
    paths.filter(|path| path.is_absolute() && path.is_file()).collect()
}

/// Where a program that [`locate_program`] does not find is inside of an excluded project.
pub(crate) fn inside_project(program: &Path) -> Option<PathBuf> {
    find_in(program, &env::var_os("PATH").unwrap_or_default())
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
    use std::os::unix::fs::PermissionsExt as _;

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

    #[test]
    fn folders_of_a_project_are_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (tree, bin) = (root.join("tree"), root.join("bin"));
        for folder in [tree.join("node_modules/.bin"), bin.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(tree.join("node_modules/.bin"), root.join("linked")).unwrap();
        let path = env::join_paths([
            tree.join("node_modules/.bin"),
            root.join("linked"),
            PathBuf::from("node_modules/.bin"),
            PathBuf::from("."),
            bin.clone(),
        ]);
        assert_eq!(remove_excluded_folders(&path.unwrap(), &[tree]), bin.into_os_string());
    }
}
