//! The paths of this machine that a sandbox hides, protects or replaces.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    env, fs,
    path::{Component, Path, PathBuf},
};

use super::{kept_out::is_settings_file, mounts::Mount};
use crate::{beneath::FolderHandle, worktree::is_working_tree};

/// Folders that are private to each sandbox, in addition to `TMPDIR`. On the host they also hold sockets of other
/// programs.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/var/run"];

/// Paths below `/run` that programs need: NixOS keeps its programs there.
const RUN_PATHS: [&str; 3] = ["/run/booted-system", "/run/current-system", "/run/opengl-driver"];

/// Paths below `/proc` through which root could change the whole machine with file capabilities alone.
const PROC_PATHS: [&str; 8] = ["acpi", "bus", "fs", "irq", "mtrr", "scsi", "sys", "sysrq-trigger"];

/// Keys and passwords in a home folder. They are hidden even if a folder above them is shown: the working tree may be the
/// home folder itself.
const SECRETS: [&str; 77] = [
    ".android/adbkey",
    ".ansible",
    ".authinfo",
    ".authinfo.gpg",
    ".aws",
    ".azure",
    ".bash_history",
    ".boto",
    ".cache/huggingface/token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".config/BraveSoftware",
    ".config/age",
    ".config/chromium",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/fly",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/heroku",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".copilot",
    ".docker",
    ".fly",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".kaggle",
    ".kube",
    ".local/share/fish/fish_history",
    ".local/share/keyrings",
    ".local/share/opencode/auth.json",
    ".local/share/password-store",
    ".local/share/sops",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".minikube",
    ".mozilla",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".oci",
    ".op",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pub-cache/credentials.json",
    ".pulumi",
    ".pypirc",
    ".python_history",
    ".s3cfg",
    ".snowflake",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".thunderbird",
    ".vault-token",
    ".wget-hsts",
    ".yarnrc.yml",
    ".zsh_history",
];

/// Paths in a git folder that decide which programs git starts and where it finds its settings.
const GIT_SETTINGS: [&str; 5] = ["commondir", "config", "config.worktree", "gitdir", "modules"];

/// Folders in the shared git folder with such files: attributes, and where further objects are.
const GIT_FOLDERS: [&str; 4] = ["hooks", "info", "modules", "objects/info"];

/// Files in the shared git folder that must not be created.
const GIT_FORBIDDEN: [&str; 2] = ["commondir", "config.worktree"];

/// The folders that are private to each sandbox.
pub(in crate::sandbox) fn list_private_folders() -> Vec<PathBuf> {
    let usual = PRIVATE.iter().map(PathBuf::from);
    let named = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let real = usual.chain(named).filter_map(|path| fs::canonicalize(path).ok());
    real.filter(|path| path.is_dir() && path.parent().is_some()).collect()
}

/// The paths below `/run` that stay visible.
pub(in crate::sandbox) fn run_paths() -> impl Iterator<Item = PathBuf> {
    RUN_PATHS.iter().map(PathBuf::from).filter(|path| path.exists())
}

/// The paths below `/proc` that are read-only.
pub(in crate::sandbox) fn proc_paths() -> impl Iterator<Item = PathBuf> {
    PROC_PATHS.iter().map(|name| Path::new("/proc").join(name)).filter(|path| path.exists())
}

/// The user's home.
pub(in crate::sandbox) fn resolve_home() -> Option<PathBuf> {
    fs::canonicalize(env::home_dir()?).ok().filter(|home| home.parent().is_some())
}

/// The paths of keys and passwords in the user's home.
pub(in crate::sandbox) fn list_secret_paths(home: &Path) -> impl Iterator<Item = PathBuf> {
    SECRETS.iter().filter_map(move |name| fs::canonicalize(home.join(name)).ok())
}

/// Resolves a path of a definition. `~/` is the user's home. A path that leads out of the working folder is relative to
/// the project, because a worktree may be anywhere. Any other path is relative to the working folder.
pub(in crate::sandbox) fn resolve_path(
    path: &str,
    work: &Path,
    root: &Path,
    home: Option<&Path>,
) -> Option<PathBuf> {
    if let Some(rest) = path.strip_prefix('~') {
        return Some(home?.join(rest.trim_start_matches('/')));
    }
    let path = Path::new(path);
    let leads_out = leads_out(path);
    Some(if leads_out { root.join(path) } else { work.join(path) })
}

/// The existing ones of `paths`, with links resolved.
///
/// A sandboxed process can redirect a link in a writable folder to any target, so a path below such a folder is only
/// accepted if it resolves to a path below it. `open` lists further writable folders.
pub(in crate::sandbox) fn resolve_safely(paths: &[PathBuf], open: &[PathBuf]) -> Vec<PathBuf> {
    let named: Vec<PathBuf> = paths.iter().map(|path| normalize_path(path)).collect();
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

/// Removes `.` and `..` from a path without reading the file system.
pub(in crate::sandbox) fn normalize_path(path: &Path) -> PathBuf {
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

/// The mounts that make files of the working tree read-only: each file, or its folder if the path begins with a dot
/// folder such as `.agent` and the file is none of settings. The folders above become writable mounts, so that they cannot be moved away.
pub(in crate::sandbox) fn mounts_of_sealed_files(work: &Path, files: &[PathBuf]) -> Vec<(PathBuf, Mount)> {
    let mut mounts = Vec::new();
    for file in files.iter().filter(|file| file.components().all(|part| matches!(part, Component::Normal(_))))
    {
        let folder = file.parent().unwrap_or(Path::new(""));
        let is_hidden = folder.iter().next().is_some_and(|first| first.as_encoded_bytes().starts_with(b"."));
        let sealed = if is_hidden && !is_settings_file(file) { folder } else { file };
        let above = sealed.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        if is_real(&work.join(sealed)) {
            mounts.extend(above.map(|above| (work.join(above), Mount::Write)));
            mounts.push((work.join(sealed), Mount::Read));
        } else if let Ok(target) = fs::canonicalize(work.join(sealed)) {
            // Through a link: what it leads to is protected, if it is in the tree.
            let above: Vec<&Path> = target.ancestors().skip(1).take_while(|above| *above != work).collect();
            if target.starts_with(work) && target != work {
                mounts.extend(above.into_iter().map(|above| (above.to_owned(), Mount::Write)));
                mounts.push((target, Mount::Read));
            }
        }
    }
    // A folder may be above one file and hold another one.
    let sealed: Vec<PathBuf> =
        mounts.iter().filter(|(_, mount)| *mount == Mount::Read).map(|(path, _)| path.clone()).collect();
    mounts.retain(|(path, mount)| {
        *mount == Mount::Read || !sealed.iter().any(|sealed| path.starts_with(sealed))
    });
    mounts
}

/// The paths of a git repository in a sandbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) struct RepositoryPaths {
    /// Writable, for commits.
    pub(in crate::sandbox) written: Vec<PathBuf>,
    /// Read-only: hooks, settings and the files that locate them.
    pub(in crate::sandbox) sealed: Vec<PathBuf>,
    /// Paths that must not be created, because git would read its settings there.
    pub(in crate::sandbox) forbidden: Vec<PathBuf>,
}

/// The repository that contains a folder. Creates missing folders of settings, because only an existing path can be made
/// read-only.
///
/// A sandboxed process may have created `.git`. It is only trusted if it is a folder, or the file of a worktree that
/// its repository knows.
pub(in crate::sandbox) fn prepare_repository_paths(work: &Path) -> RepositoryPaths {
    let mut found = RepositoryPaths::default();
    let Some(top) = work.ancestors().find(|folder| is_working_tree(folder)) else { return found };
    let dot = top.join(".git");
    let (common, own) = match fs::symlink_metadata(&dot) {
        Ok(about) if about.is_dir() => (dot, None),
        Ok(about) if about.is_file() => {
            let Some((common, own)) = repository_of_worktree(&dot, top) else { return found };
            found.sealed.push(dot);
            (common, Some(own))
        }
        _ => return found,
    };
    let folders = GIT_FOLDERS.map(|name| common.join(name));
    for folder in folders.iter().filter(|folder| folder.symlink_metadata().is_err()) {
        // Fails on a read-only file system, where nothing can be written either.
        let below = folder.strip_prefix(&common).unwrap_or(folder);
        let _ = FolderHandle::open(&common).and_then(|common| common.create_folder(below));
    }
    // Other worktrees are none of its business.
    let worktrees = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let others = worktrees.map(|entry| entry.path()).filter(|path| own.as_ref() != Some(path));
    let places = std::iter::once(&common).chain(&own);
    let seals = places.clone().flat_map(|folder| GIT_SETTINGS.map(|name| folder.join(name)));
    // A link would show or open what it leads to.
    let real = seals.chain(folders).chain(others).filter(|path| is_real(path));
    found.sealed.extend(real);
    let missing = places.flat_map(|folder| GIT_FORBIDDEN.map(|name| folder.join(name)));
    found.forbidden.extend(missing.filter(|path| path.symlink_metadata().is_err()));
    // Mounts of their own, so that they cannot be moved away with what is read-only in them.
    let held = [common.join("objects"), common.join("worktrees")].into_iter().chain(own);
    found.written.extend(std::iter::once(common).chain(held.filter(|path| path.is_dir() && is_real(path))));
    found
}

/// Whether a path exists and no part of it is a link.
fn is_real(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real == path)
}

/// The repository of a linked worktree, and the folder of the worktree in it. The worktree's `.git` file names that
/// folder, and files there must name both.
fn repository_of_worktree(dot: &Path, top: &Path) -> Option<(PathBuf, PathBuf)> {
    let named = |file: &Path, base: &Path| {
        let text = fs::read_to_string(file).ok()?;
        fs::canonicalize(base.join(text.trim_start_matches("gitdir:").trim())).ok()
    };
    let own = named(dot, top)?;
    let common = named(&own.join("commondir"), &own)?;
    let back = named(&own.join("gitdir"), &own)?;
    (own.parent()? == common.join("worktrees") && back == dot).then_some((common, own))
}

/// Removes files by which a sandboxed process could redirect git. Call it before any git command in the working tree.
pub fn remove_git_redirects(work: &Path) {
    let is_folder = |dot: &PathBuf| dot.symlink_metadata().is_ok_and(|about| about.is_dir());
    let dots = work.ancestors().map(|folder| folder.join(".git")).filter(is_folder);
    for dot in dots.take(1) {
        // Only the folders of linked worktrees have this file, and those are not called `.git`.
        let _ = FolderHandle::open(&dot).and_then(|folder| folder.remove(Path::new("commondir")));
    }
}

/// The top folder of the repository that contains a folder.
pub(in crate::sandbox) fn top_of_repository(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let top = folder.ancestors().find(|above| is_working_tree(above))?;
    // A home folder under version control stays hidden.
    let is_home = resolve_home().is_some_and(|home| home.starts_with(top));
    (!is_home).then(|| top.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_home_project_or_working_folder() {
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
            assert_eq!(resolve_path(path, work, root, Some(home)).unwrap(), Path::new(wanted), "{path}");
        }
        assert_eq!(resolve_path("~/x", work, root, None), None);
    }

    #[test]
    fn files_of_a_definition_are_sealed_with_the_folders_above() {
        let dir = tempfile::tempdir().unwrap();
        let work = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(work.join(".agent/a/prompts/steps")).unwrap();
        fs::create_dir_all(work.join("flows/x")).unwrap();
        for file in [".agent/a/agent.json", ".agent/a/prompts/steps/s.md", "flows/x/f.yaml", "flow.yaml"] {
            fs::write(work.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", work.join("cuegate.toml")).unwrap();
        let files = [
            ".agent/a/prompts/steps/s.md",
            ".agent/a/agent.json",
            "flows/x/f.yaml",
            "flow.yaml",
            "cuegate.toml",
            "../x",
        ];
        let files = files.map(PathBuf::from);
        let mut found: Vec<String> = mounts_of_sealed_files(&work, &files)
            .into_iter()
            .map(|(path, mount)| format!("{} {mount:?}", path.strip_prefix(&work).unwrap().display()))
            .collect();
        found.sort();
        found.dedup();
        let wanted = [
            ".agent Write",
            ".agent/a Read",
            ".agent/a/prompts/steps Read",
            "flow.yaml Read",
            "flows Write",
            "flows/x Write",
            "flows/x/f.yaml Read",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn hooks_and_settings_of_a_repository_are_read_only() {
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
        for folder in ["objects", "refs"] {
            fs::create_dir_all(git.join(folder)).unwrap();
        }
        for head in [git.join("HEAD"), linked.join("HEAD")] {
            fs::write(head, "ref: refs/heads/main\n").unwrap();
        }
        let ours = prepare_repository_paths(&main);
        assert_eq!(ours.written, [git.clone(), git.join("objects"), git.join("worktrees")]);
        assert_eq!(ours.forbidden, [git.join("commondir"), git.join("config.worktree")]);
        let of_common = [git.join("config"), git.join("modules")];
        let folders = ["hooks", "info", "modules", "objects/info"].map(|name| git.join(name));
        let sealed = [&of_common[..], &folders, std::slice::from_ref(&linked)].concat();
        assert_eq!(ours.sealed, sealed);
        let apart = prepare_repository_paths(&root.join("w/src"));
        assert_eq!(apart.written, [git.clone(), git.join("objects"), git.join("worktrees"), linked.clone()]);
        assert_eq!(apart.sealed[0], root.join("w/.git"));
        let of_linked = [linked.join("commondir"), linked.join("gitdir")];
        assert_eq!(apart.sealed[1..], [&of_common[..], &of_linked, &folders].concat());
        assert_eq!(prepare_repository_paths(Path::new("/")), RepositoryPaths::default());
    }

    #[test]
    fn a_forged_repository_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (precious, tree) = (root.join("precious"), root.join("tree"));
        fs::create_dir_all(precious.join("worktrees")).unwrap();
        fs::create_dir_all(tree.join("evil")).unwrap();
        let dot = tree.join(".git");
        std::os::unix::fs::symlink(&precious, &dot).unwrap();
        assert_eq!(prepare_repository_paths(&tree), RepositoryPaths::default());
        fs::remove_file(&dot).unwrap();
        for (leads_to, common) in [(&precious, None), (&tree.join("evil"), Some(&precious))] {
            fs::write(&dot, format!("gitdir: {}\n", leads_to.display())).unwrap();
            if let Some(common) = common {
                fs::write(tree.join("evil/commondir"), common.display().to_string()).unwrap();
                fs::write(tree.join("evil/gitdir"), dot.display().to_string()).unwrap();
            }
            assert_eq!(prepare_repository_paths(&tree), RepositoryPaths::default());
        }
    }

    #[test]
    fn a_link_out_of_a_writable_folder_is_rejected() {
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
        assert_eq!(resolve_safely(&paths, &at(&["tree"])), wanted);
    }
}
