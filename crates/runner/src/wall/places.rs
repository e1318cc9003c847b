//! The places of this machine that a room treats in its own way.

use std::{
    env, fs,
    path::{Component, Path, PathBuf},
};

/// Folders that each room has for itself, besides that of `TMPDIR`. Sockets of other programs lie in them as well.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/var/run"];

/// What of `/run` programs need: NixOS has its programs there.
const OF_RUN: [&str; 3] = ["/run/booted-system", "/run/current-system", "/run/opengl-driver"];

/// What of `/proc` root could change of the whole machine, though it has no rights but those of files.
const OF_PROC: [&str; 8] = ["acpi", "bus", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger"];

/// Keys and passwords in a home folder, which no work on a project reads.
const SECRETS: [&str; 23] = [
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/google-chrome",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".password-store",
    ".pypirc",
    ".ssh",
    ".vault-token",
];

/// What a repository's folder has that says what git starts, and where it looks for its settings.
const OF_GIT: [&str; 5] = ["commondir", "config", "config.worktree", "gitdir", "modules"];

/// Folders that each room has for itself.
pub(super) fn private() -> Vec<PathBuf> {
    let usual = PRIVATE.iter().map(PathBuf::from);
    let named = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let real = usual.chain(named).filter_map(|path| fs::canonicalize(path).ok());
    real.filter(|path| path.is_dir() && path.parent().is_some()).collect()
}

/// What of these is there outside all the same.
pub(super) fn of_run() -> impl Iterator<Item = PathBuf> {
    OF_RUN.iter().map(PathBuf::from).filter(|path| path.exists())
}

/// What of `/proc` nobody writes.
pub(super) fn of_proc() -> impl Iterator<Item = PathBuf> {
    OF_PROC.iter().map(|name| Path::new("/proc").join(name)).filter(|path| path.exists())
}

/// The user's home.
pub(super) fn home() -> Option<PathBuf> {
    fs::canonicalize(env::home_dir()?).ok().filter(|home| home.parent().is_some())
}

/// Keys and passwords in it.
pub(super) fn secrets(home: &Path) -> impl Iterator<Item = PathBuf> {
    SECRETS.iter().filter_map(move |name| fs::canonicalize(home.join(name)).ok())
}

/// A path as a definition writes it: `~/` is the user's home; one that leads out of the folder that is worked in counts
/// from the project, because a worktree may lie anywhere; any other one counts from the folder that is worked in.
pub(super) fn written(path: &str, work: &Path, root: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(rest) = path.strip_prefix('~') {
        return Some(home?.join(rest.trim_start_matches('/')));
    }
    let path = Path::new(path);
    let leads_out = leads_out(path);
    Some(if leads_out { root.join(path) } else { work.join(path) })
}

fn leads_out(path: &Path) -> bool {
    let mut depth = 0_i64;
    path.components().any(|part| {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
        depth < 0
    })
}

/// A repository as those in a room have it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// Where commits go.
    pub(super) written: Vec<PathBuf>,
    /// What nobody writes: hooks, settings, and what leads to them.
    pub(super) sealed: Vec<PathBuf>,
    /// What must not come into being, because git would look for its settings there.
    pub(super) forbidden: Vec<PathBuf>,
}

/// The repository that a folder is in. Its `hooks` are made where they are missing: what is not there cannot be sealed.
pub(super) fn repository(work: &Path) -> Repository {
    let mut found = Repository::default();
    let Some(top) = work.ancestors().find(|folder| folder.join(".git").exists()) else { return found };
    let dot = top.join(".git");
    let Ok(real) = fs::canonicalize(&dot) else { return found };
    let common = match real.is_dir() {
        true => real,
        false => {
            // A linked worktree: the file names its folder in the repository, and a file there the repository.
            let named = |file: &Path, base: &Path| {
                let text = fs::read_to_string(file).ok()?;
                fs::canonicalize(base.join(text.trim_start_matches("gitdir:").trim())).ok()
            };
            let Some(own) = named(&real, top) else { return found };
            let common = named(&own.join("commondir"), &own).unwrap_or_else(|| own.clone());
            found.sealed.push(real);
            common
        }
    };
    let hooks = common.join("hooks");
    if !hooks.exists() {
        // A file system that lets nobody write lets nobody write hooks either.
        let _ = fs::create_dir(&hooks);
    }
    let worktrees = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let folders = std::iter::once(common.clone()).chain(worktrees.map(|entry| entry.path()));
    let seals = folders.flat_map(|folder| OF_GIT.map(|name| folder.join(name)));
    found.sealed.extend(seals.chain([hooks]).filter_map(|path| fs::canonicalize(path).ok()));
    let other = common.join("commondir");
    if !other.exists() {
        found.forbidden.push(other);
    }
    found.written.push(common);
    found
}

/// Removes what somebody in a room may have left in a repository to lead git elsewhere. Not even a look at the working
/// tree may come before it.
pub fn mend(work: &Path) {
    let dots = work.ancestors().map(|folder| folder.join(".git")).filter(|dot| dot.is_dir());
    for dot in dots.take(1) {
        // Only folders of linked worktrees have one, and those are not called so.
        let _ = fs::remove_file(dot.join("commondir"));
    }
}

/// Sockets that programs of this machine listen on: who could connect to them would be served outside of the room.
///
/// A socket is no file that a read-only file system protects.
pub(super) fn sockets() -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let named = listed.lines().skip(1).filter_map(|line| {
        let at = line.find(" /")?;
        fs::canonicalize(&line[at + 1..]).ok()
    });
    let is_socket = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.file_type().is_socket());
    let mut found: Vec<PathBuf> = named.filter(is_socket).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_from_where_its_author_would_look() {
        let (work, root, home) =
            (Path::new("/p/.cuegate/worktrees/r"), Path::new("/p"), Path::new("/home/me"));
        for (path, wanted) in [
            ("out", "/p/.cuegate/worktrees/r/out"),
            ("a/../out", "/p/.cuegate/worktrees/r/a/../out"),
            ("../cache", "/p/../cache"),
            ("a/../../x", "/p/a/../../x"),
            ("/var/cache", "/var/cache"),
            ("~", "/home/me"),
            ("~/.cargo", "/home/me/.cargo"),
        ] {
            assert_eq!(written(path, work, root, Some(home)).unwrap(), Path::new(wanted), "{path}");
        }
        assert_eq!(written("~/x", work, root, None), None);
    }

    #[test]
    fn a_repository_is_written_but_for_what_git_starts() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let main = root.join("main");
        let linked = main.join(".git/worktrees/w");
        fs::create_dir_all(&linked).unwrap();
        fs::create_dir_all(root.join("w/src")).unwrap();
        for (file, text) in [
            (main.join(".git/config"), ""),
            (linked.join("commondir"), "../..\n"),
            (linked.join("gitdir"), "x"),
            (root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n"),
        ] {
            fs::write(file, text).unwrap();
        }
        let git = main.join(".git");
        let ours = repository(&main);
        assert_eq!(ours.written, std::slice::from_ref(&git));
        assert_eq!(ours.forbidden, [git.join("commondir")]);
        let sealed = [git.join("config"), linked.join("commondir"), linked.join("gitdir"), git.join("hooks")];
        assert_eq!(ours.sealed, sealed);
        let apart = repository(&root.join("w/src"));
        assert_eq!(apart.written, [git]);
        assert_eq!(apart.sealed[0], root.join("w/.git"));
        assert_eq!(apart.sealed[1..], sealed);
        assert_eq!(repository(Path::new("/")), Repository::default());
    }
}
