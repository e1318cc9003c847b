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

/// The paths of these that are there, without links in them.
///
/// A link in a place that somebody in a room can write may be made to lead anywhere: what lies in such a place has to
/// stay in it. `open` are the places that can be written besides these paths.
pub(super) fn steady(paths: &[PathBuf], open: &[PathBuf]) -> Vec<PathBuf> {
    let named: Vec<PathBuf> = paths.iter().map(|path| lexical(path)).collect();
    let roots: Vec<&PathBuf> = open.iter().chain(&named).collect();
    let stays = |path: &PathBuf, real: &Path| {
        let around = roots.iter().filter(|root| path.starts_with(root) && path != **root);
        around.into_iter().all(|root| fs::canonicalize(root).is_ok_and(|root| real.starts_with(root)))
    };
    let real = named.iter().filter_map(|path| {
        let real = fs::canonicalize(path).ok()?;
        stays(path, &real).then_some(real)
    });
    real.collect()
}

/// A path without `.` and `..` in it, by its words alone.
fn lexical(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut sum, part| {
        match part {
            Component::ParentDir => drop(sum.pop()),
            Component::CurDir => {}
            part => sum.push(part),
        }
        sum
    })
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
///
/// A `.git` that somebody in a room may have made leads to nothing that would be writable then: it is the folder itself,
/// or the file of a worktree that its repository knows of.
pub(super) fn repository(work: &Path) -> Repository {
    let mut found = Repository::default();
    let Some(top) = work.ancestors().find(|folder| folder.join(".git").exists()) else { return found };
    let dot = top.join(".git");
    let common = match fs::symlink_metadata(&dot) {
        Ok(about) if about.is_dir() => dot,
        Ok(about) if about.is_file() => {
            let Some(common) = of_worktree(&dot, top) else { return found };
            found.sealed.push(dot);
            common
        }
        _ => return found,
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

/// The repository of a linked worktree: the worktree's file names a folder in the repository, and files there name both.
fn of_worktree(dot: &Path, top: &Path) -> Option<PathBuf> {
    let named = |file: &Path, base: &Path| {
        let text = fs::read_to_string(file).ok()?;
        fs::canonicalize(base.join(text.trim_start_matches("gitdir:").trim())).ok()
    };
    let own = named(dot, top)?;
    let common = named(&own.join("commondir"), &own)?;
    let back = named(&own.join("gitdir"), &own)?;
    (own.parent()? == common.join("worktrees") && back == dot).then_some(common)
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
            (linked.join("gitdir"), "../../../../w/.git\n"),
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

    #[test]
    fn a_repository_that_was_made_up_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (precious, tree) = (root.join("precious"), root.join("tree"));
        fs::create_dir_all(precious.join("worktrees")).unwrap();
        fs::create_dir_all(tree.join("evil")).unwrap();
        let dot = tree.join(".git");
        std::os::unix::fs::symlink(&precious, &dot).unwrap();
        assert_eq!(repository(&tree), Repository::default());
        fs::remove_file(&dot).unwrap();
        for (leads_to, common) in [(&precious, None), (&tree.join("evil"), Some(&precious))] {
            fs::write(&dot, format!("gitdir: {}\n", leads_to.display())).unwrap();
            if let Some(common) = common {
                fs::write(tree.join("evil/commondir"), common.display().to_string()).unwrap();
                fs::write(tree.join("evil/gitdir"), dot.display().to_string()).unwrap();
            }
            assert_eq!(repository(&tree), Repository::default());
        }
    }

    #[test]
    fn a_link_that_may_have_been_made_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["tree/out", "precious", "cache/inner", "real"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(root.join(to), root.join(from)).unwrap();
        link("precious", "tree/made");
        link("precious", "cache/made");
        link("tree/out", "tree/within");
        link("real", "linked");
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        let paths = at(&[
            "tree/out",
            "tree/made",
            "tree/within",
            "tree/x/../made",
            "cache",
            "cache/inner",
            "cache/made",
            "linked",
            "gone",
        ]);
        let wanted = at(&["tree/out", "tree/out", "cache", "cache/inner", "real"]);
        assert_eq!(steady(&paths, &at(&["tree"])), wanted);
    }
}
