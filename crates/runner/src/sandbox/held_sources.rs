//! Opens what a sandbox mounts from folders that agents write, right before it is mounted: between a look at a path and the mount
//! another command may have put a link there.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::{fd::IntoRawFd as _, fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use crate::{beneath::FolderHandle, process::Shim};

/// The option of the hidden subcommand before the folders that agents write.
pub(super) const HELD_FLAG: &str = "--held";
/// What separates lists of arguments.
const SEPARATOR: &str = "--";

/// The words that execute a bubblewrap whose sources below `roots` are handles.
pub(super) fn hold_sources(shim: &Shim, roots: &[PathBuf], bwrap: Vec<OsString>) -> Vec<OsString> {
    let mut words = vec![shim.exe.clone().into_os_string()];
    words.extend(shim.args.iter().cloned());
    words.push(HELD_FLAG.into());
    words.extend(roots.iter().map(|root| root.clone().into_os_string()));
    words.push(SEPARATOR.into());
    words.extend(bwrap);
    words
}

/// Opens an entry below one of the folders that agents write; `None` if it is in none of them.
pub(super) fn open_below(roots: &[PathBuf], path: &Path, is_inherited: bool) -> Option<io::Result<OwnedFd>> {
    // The outermost one: another one may be inside of it, where agents can replace it.
    let around = roots.iter().filter(|root| path.starts_with(root) && path != root.as_path());
    let root = around.min_by_key(|root| root.components().count())?;
    let below = path.strip_prefix(root).ok()?;
    Some(FolderHandle::open(root).and_then(|root| root.open_entry(below, is_inherited)))
}

/// The body of the hidden subcommand. `args`: the folders, `--`, bubblewrap and its arguments. Returns only if it cannot be
/// executed.
pub(super) fn execute_with_handles(args: &[OsString]) -> ExitCode {
    let why = match args.split(|arg| arg == SEPARATOR).next() {
        Some(roots) if roots.len() < args.len() => {
            let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
            match replace_sources(&roots, &args[roots.len() + 1..]) {
                Ok(words) => match words.split_first() {
                    Some((program, args)) => Command::new(program).args(args).exec().to_string(),
                    None => "the program is missing".to_owned(),
                },
                Err(why) => why,
            }
        }
        _ => "invalid arguments: only cuegate starts this command".to_owned(),
    };
    let _ = writeln!(io::stderr(), "cuegate: {why}");
    ExitCode::from(126)
}

/// The arguments of bubblewrap with a handle in place of each source below `roots`. What follows a separator is the program inside.
fn replace_sources(roots: &[PathBuf], words: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut replaced = Vec::with_capacity(words.len());
    let mut left = words.iter();
    while let Some(word) = left.next() {
        let flag = match word.to_str() {
            Some("--bind") => "--bind-fd",
            Some("--ro-bind") => "--ro-bind-fd",
            Some(SEPARATOR) => {
                replaced.push(word.clone());
                replaced.extend(left.cloned());
                break;
            }
            _ => {
                replaced.push(word.clone());
                continue;
            }
        };
        let source = left.next().ok_or("the source of a mount is missing")?;
        match open_below(roots, Path::new(source), true) {
            None => replaced.extend([word.clone(), source.clone()]),
            Some(Ok(handle)) => {
                // It stays open for bubblewrap, which closes it.
                let number = handle.into_raw_fd();
                replaced.extend([OsString::from(flag), number.to_string().into()]);
            }
            Some(Err(error)) => {
                return Err(format!("`{}` cannot be mounted: {error}", Path::new(source).display()));
            }
        }
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_below_folders_of_agents_are_handles() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("tree");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let words = |source: &str| {
            let source = root.join(source).into_os_string();
            ["bwrap".into(), "--ro-bind".into(), source, "/x".into(), "--".into(), "--bind".into()].to_vec()
        };
        let roots = [root.clone()];
        let replaced = replace_sources(&roots, &words("a/file")).unwrap();
        assert_eq!((replaced[1].to_str(), replaced.len()), (Some("--ro-bind-fd"), 6));
        // The folder itself is in none that agents write.
        assert_eq!(replace_sources(&roots, &words("")).unwrap(), words(""));
        for link in ["link", "link/passwd", "gone"] {
            assert!(replace_sources(&roots, &words(link)).is_err(), "{link}");
        }
    }
}
