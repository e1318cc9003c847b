//! The files of this machine that a sandbox shows, read-only. Everything else outside of the system's own folders is
//! hidden.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::hidden_paths;

/// Top-level folders of the system. All others, such as `/home`, `/mnt` and `/srv`, are hidden.
const SYSTEM: [&str; 19] = [
    "bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "ostree", "proc", "run",
    "sbin", "snap", "sys", "tmp", "usr", "var",
];

/// Toolchains in a home folder.
const TOOLCHAINS: [&str; 43] = [
    ".asdf",
    ".bun/bin",
    ".bun/install",
    ".cabal/bin",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".deno/bin",
    ".dotnet",
    ".elan",
    ".ghcup",
    ".goenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/nvm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/state/nix",
    ".mix",
    ".nix-profile",
    ".npm-global",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".terminfo",
    ".volta",
    ".yarn/bin",
    "anaconda3",
    "go/bin",
    "miniconda3",
    "miniforge3",
    "sdk",
    "swift",
];

/// Caches of package managers in a home folder, and the tool that uses each.
pub(super) const CACHES: [(&str, &str); 24] = [
    (".bun/install/cache", "bun"),
    (".cabal/packages", "cabal"),
    (".cache/composer", "composer"),
    (".cache/coursier", "coursier"),
    (".cache/deno", "deno"),
    (".cache/go-build", "go"),
    (".cache/ms-playwright", "playwright"),
    (".cache/node", "corepack"),
    (".cache/pip", "pip"),
    (".cache/pnpm", "pnpm"),
    (".cache/pre-commit", "pre-commit"),
    (".cache/uv", "uv"),
    (".cache/yarn", "yarn"),
    (".cargo/git", "cargo"),
    (".cargo/registry", "cargo"),
    (".gradle/caches", "gradle"),
    (".gradle/wrapper", "gradle"),
    (".hex/packages", "mix"),
    (".ivy2/cache", "sbt"),
    (".m2/repository", "maven"),
    (".npm/_cacache", "npm"),
    (".nuget/packages", "nuget"),
    (".pub-cache/hosted", "dart"),
    ("go/pkg", "go"),
];

/// Variables that locate a toolchain or cache as a whole.
const LOCATED: [&str; 20] = [
    "CONDA_PREFIX",
    "DENO_DIR",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GOCACHE",
    "GOMODCACHE",
    "GOROOT",
    "JAVA_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PIP_CACHE_DIR",
    "PNPM_HOME",
    "PRE_COMMIT_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// The parts of cargo's folder that hold no keys.
const OF_CARGO: [&str; 6] = ["bin", "config", "config.toml", "env", "git", "registry"];
/// The parts of Go's folder.
const OF_GO: [&str; 2] = ["bin", "pkg"];

/// The limit of links that are followed in one folder of `PATH`.
const LINKS_MAX: usize = 2000;

/// The top-level folders that a sandbox hides.
pub(super) fn hidden_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let others = entries.filter(|entry| !SYSTEM.iter().any(|name| entry.file_name() == *name));
    let folders = others.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).filter(|path| !is_empty(path)).collect()
}

/// Whether a folder holds nothing. Each mount takes a third of a millisecond, so empty folders are not hidden.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// The caches of this machine's user that exist: relative to the home folder, with the tool.
pub fn list_caches() -> Vec<(String, &'static str)> {
    let Some(home) = hidden_paths::resolve_home() else { return Vec::new() };
    let there = CACHES.iter().filter(|(path, _)| home.join(path).is_dir());
    there.map(|(path, tool)| (format!("~/{path}"), *tool)).collect()
}

/// Files and folders that every sandbox of this machine shows, as named and as resolved: toolchains, caches of package
/// managers, and the programs in `PATH`.
pub(super) fn find_visible_paths(home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut named: Vec<PathBuf> = Vec::new();
    if let Some(home) = home {
        named.extend(TOOLCHAINS.iter().map(|name| home.join(name)));
        named.extend(CACHES.iter().map(|(name, _)| home.join(name)));
    }
    let located = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named.extend(LOCATED.iter().filter_map(|name| located(name)));
    named.extend(located("CARGO_HOME").into_iter().flat_map(|cargo| OF_CARGO.map(|name| cargo.join(name))));
    named.extend(located("GOPATH").into_iter().flat_map(|go| OF_GO.map(|name| go.join(name))));
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    for path in named.into_iter().filter(|path| path.exists() && !has_token(path)) {
        found.extend(fs::canonicalize(&path));
        found.insert(path);
    }
    for folder in path_folders() {
        found.extend(program_folders(&folder, home));
    }
    found.retain(|path| path.parent().is_some() && home != Some(path.as_path()));
    found
}

/// Whether a settings file of cargo holds a key, or an address with a password.
fn has_token(path: &Path) -> bool {
    let has_key = |text: String| text.contains("token") || text.contains("secret") || text.contains('@');
    path.is_file() && fs::read_to_string(path).is_ok_and(has_key)
}

fn path_folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        env::split_paths(&path).filter(|dir| dir.is_absolute() && dir.is_dir()).collect();
    folders.into_iter()
}

/// The files that the programs of a folder in `PATH` need: the folder, and the packages that its links lead to.
fn program_folders(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let Ok(real) = fs::canonicalize(folder) else { return Vec::new() };
    found.extend(files_of_package(&folder.join("program"), home));
    found.extend(files_of_package(&real.join("program"), home));
    let entries = fs::read_dir(&real).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    for link in links.take(LINKS_MAX) {
        if let Ok(target) = fs::canonicalize(link.path()).as_deref()
            && !target.starts_with(&real)
        {
            found.extend(files_of_package(target, home));
            found.extend(follow_links(&link.path()));
        }
    }
    found
}

/// The links on the way from a link to its target.
fn follow_links(link: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut at = link.to_owned();
    while let Ok(next) = fs::read_link(&at)
        && found.len() < 16
    {
        at = hidden_paths::normalize_path(&at.parent().unwrap_or(Path::new("/")).join(next));
        if at.is_symlink() {
            found.push(at.clone());
        }
    }
    found
}

/// The files that a program needs next to it, as named and as resolved.
pub(super) fn of_program(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = follow_links(program);
    found.push(program.to_owned());
    found.extend(files_of_package(program, home));
    found.extend(fs::canonicalize(program).iter().flat_map(|real| files_of_package(real, home)));
    found
}

/// The files of the package that a program is in: `node_modules`, or the parts of a folder that has both `bin` and `lib`,
/// or the folder if it holds programs by its name. Else only the program: other files beside it may be secret.
fn files_of_package(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let is_modules = |above: &&Path| above.file_name().is_some_and(|name| name == "node_modules");
    if let Some(modules) = program.ancestors().filter(is_modules).last() {
        return vec![modules.to_owned()];
    }
    let Some(folder) = program.parent() else { return Vec::new() };
    let named = |names: &[&str]| names.iter().any(|name| folder.file_name().is_some_and(|own| own == *name));
    if !named(&["bin", "sbin", ".bin", "libexec", "shims"]) || is_shared(folder, home) {
        return vec![program.to_owned()];
    }
    let mut found = vec![folder.to_owned()];
    if let Some(whole) = folder.parent().filter(|whole| !is_shared(whole, home)) {
        found.extend(PARTS.iter().map(|name| whole.join(name)).filter(|part| part.exists()));
    }
    found
}

/// The parts of an installed package.
const PARTS: [&str; 8] = ["include", "lib", "lib32", "lib64", "libexec", "plugins", "pyvenv.cfg", "share"];

/// Whether a folder holds files of many programs.
fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    if folder.components().count() <= 2 {
        return true;
    }
    let Some(home) = home else { return false };
    let shared = ["", ".cache", ".cargo", ".config", ".local", ".local/share", ".local/state"];
    home.starts_with(folder) || shared.iter().any(|name| home.join(name) == folder)
}

/// Files and folders of the system that not every user may read, but this one may: root has the right to read all of them
/// in a sandbox too.
pub(super) fn secrets_of_system() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = SYSTEM_ENTRIES_MAX;
    for (folder, depth) in [("/etc", 8), ("/opt", 6), ("/usr/local", 6), ("/srv", 4), ("/var", 5)] {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(open) = rustix::fs::open(folder, flags, Mode::empty()) {
            add_unreadable(&open, Path::new(folder), depth, &mut left, &mut found);
        }
    }
    let logs = Path::new("/var/log");
    if found.iter().any(|path| path.starts_with(logs)) {
        found.retain(|path| !path.starts_with(logs));
        found.push(logs.to_owned());
    }
    found
}

/// The limit of files and folders of the system that are looked at.
const SYSTEM_ENTRIES_MAX: usize = 30_000;

/// Looks at entries by their open folder: with whole paths, this walk took a third of the time in which a run starts.
fn add_unreadable(open: &OwnedFd, folder: &Path, depth: u32, left: &mut usize, found: &mut Vec<PathBuf>) {
    let user = rustix::process::geteuid();
    for entry in Dir::read_from(open).into_iter().flatten().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        *left = left.saturating_sub(1);
        let is_candidate =
            matches!(entry.file_type(), FileType::Directory | FileType::RegularFile | FileType::Unknown);
        if *left == 0 || !is_candidate {
            continue;
        }
        let Ok(about) = statat(open, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(about.st_mode);
        let is_folder = kind == FileType::Directory;
        if !is_folder && kind != FileType::RegularFile {
            continue;
        }
        let wanted = if is_folder { 0o005 } else { 0o004 };
        let may_read = user.is_root() || about.st_uid == user.as_raw();
        if about.st_mode & wanted == wanted {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if is_folder
                && depth > 1
                && let Ok(below) = openat(open, name, flags, Mode::empty())
            {
                add_unreadable(&below, &folder.join(name), depth - 1, left, found);
            }
            continue;
        }
        let path = folder.join(name);
        // Each mount takes time, so what holds nothing is not hidden.
        let holds_nothing = if is_folder { is_empty(&path) } else { about.st_size == 0 };
        if may_read && !holds_nothing {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_program_is_no_wider_than_needed() {
        let dir = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(dir.path()).unwrap().join("home/me");
        for folder in [
            ".local/bin",
            ".local/lib",
            ".local/share/agent/versions",
            "proj/venv/bin",
            "proj/venv/lib",
            "proj/bin",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for (program, package_of) in [
            (".local/bin/agent", ".local/bin"),
            (".local/share/agent/versions/1", ".local/share/agent/versions/1"),
            ("proj/venv/bin/pytest", "proj/venv/bin"),
            ("proj/bin/tool", "proj/bin"),
            ("x/lib/node_modules/a/node_modules/b/cli.js", "x/lib/node_modules"),
            ("tools/deploy/run.sh", "tools/deploy/run.sh"),
            ("agent", "agent"),
        ] {
            let found = files_of_package(&home.join(program), Some(&home));
            assert_eq!(found[0], home.join(package_of), "{program}");
        }
    }

    #[test]
    fn links_are_followed_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("app/1")).unwrap();
        fs::write(root.join("app/1/agent"), "").unwrap();
        for (to, from) in [("1", "app/current"), ("app/current/agent", "other"), ("other", "agent")] {
            std::os::unix::fs::symlink(to, root.join(from)).unwrap();
        }
        assert_eq!(follow_links(&root.join("agent")), [root.join("other")]);
    }
}
