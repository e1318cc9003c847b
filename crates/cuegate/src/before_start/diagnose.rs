//! Why a validator that fails before any change cannot pass, whatever an agent does: something that it needs is missing
//! on this machine, in the worktree or in the sandbox.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use cuegate_provider::locate_program;
use cuegate_runner::sandbox::Sandbox;

use super::{baseline::BaselineFailure, settings::ConfigEntry};

/// Why a validator cannot pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// It passes in the user's own working tree: the worktree lacks files that git does not know.
    Worktree {
        /// A command that makes them, by the lock file of the project.
        setup: Option<String>,
    },
    /// It passes in the user's own working tree, which has uncommitted changes.
    Uncommitted,
    /// The sandbox hides these environment variables, which the output names.
    Variables(Vec<String>),
    /// The sandbox does not lead to these hosts with their ports.
    Hosts(Vec<String>),
    /// The sandbox shows these folders of the home folder read-only: `~/.cache/uv`.
    ReadOnly(Vec<String>),
    /// The sandbox hides this socket of a service, which listens.
    Socket(PathBuf),
    /// The sandbox hides this program, which is installed.
    Program(PathBuf),
    /// A program or a module is not installed.
    Missing(String),
}

impl FailureCause {
    /// What is wrong with `command`, in one sentence.
    pub(crate) fn describe(&self, command: &str) -> String {
        match self {
            FailureCause::Worktree { .. } => format!(
                "`{command}` fails in the worktree and passes in your own working tree: a worktree has only what is \
                 committed, no installed packages"
            ),
            FailureCause::Uncommitted => format!(
                "`{command}` fails in the worktree and passes in your own working tree: a worktree starts from the last \
                 commit, without your uncommitted changes"
            ),
            FailureCause::Variables(names) => {
                format!(
                    "`{command}` fails in the sandbox, which hides {} that is set outside",
                    list_names(names, "the variable")
                )
            }
            FailureCause::Hosts(hosts) => {
                format!("`{command}` fails in the sandbox, which does not lead to {}", list_names(hosts, ""))
            }
            FailureCause::ReadOnly(folders) => {
                let are = if folders.len() == 1 { "is" } else { "are" };
                format!(
                    "`{command}` cannot write {}, which {are} read-only in the sandbox",
                    list_names(folders, "to")
                )
            }
            FailureCause::Socket(path) => {
                format!("`{command}` does not reach `{}`, which the sandbox hides", path.display())
            }
            FailureCause::Program(path) => {
                format!("`{command}` cannot run: the sandbox hides `{}`", path.display())
            }
            FailureCause::Missing(what) => format!("`{command}` cannot run: {what}"),
        }
    }

    /// What to write or do about it.
    pub(crate) fn cure(&self) -> String {
        match (self, self.setting()) {
            (FailureCause::Worktree { setup: None }, _) => {
                "write the command that installs them as `setup = \"COMMAND\"` under `[worktree]` in cuegate.toml"
                    .to_owned()
            }
            (FailureCause::Uncommitted, _) => "commit them first: `git commit -a`".to_owned(),
            // Not as a setting that is offered: it takes away the sandbox of all gates.
            (FailureCause::Socket(_), _) => {
                "such a service acts with your rights, so no key opens it: name one that listens on a port as \
                 `hosts = [\"127.0.0.1:PORT\"]` under `[sandbox]` in cuegate.toml, or let gates run without the sandbox by \
                 `validators = \"outside\"` there"
                    .to_owned()
            }
            (_, Some(setting)) => format!("write `{setting}` under `[{}]` in cuegate.toml", setting.table),
            (_, None) => "install it".to_owned(),
        }
    }

    /// The hint of a run that is not started.
    pub(crate) fn hint(&self) -> String {
        let cure = self.cure();
        format!("no agent was called; {cure}, or start the run anyway with `--no-baseline`")
    }

    /// The setting of `cuegate.toml` that cures it, if it is known.
    pub(crate) fn setting(&self) -> Option<ConfigEntry> {
        match self {
            FailureCause::Worktree { setup } => {
                Some(ConfigEntry::text("worktree", "setup", setup.as_deref()?))
            }
            FailureCause::Variables(names) => Some(ConfigEntry::list("sandbox", "environment", names)),
            FailureCause::Hosts(hosts) => Some(ConfigEntry::list("sandbox", "hosts", hosts)),
            FailureCause::ReadOnly(folders) => Some(ConfigEntry::list("sandbox", "caches", folders)),
            FailureCause::Program(path) => {
                let folder = path.parent().unwrap_or(path).to_string_lossy().into_owned();
                Some(ConfigEntry::list("sandbox", "readable", &[folder]))
            }
            FailureCause::Missing(_) | FailureCause::Uncommitted | FailureCause::Socket(_) => None,
        }
    }
}

fn list_names(names: &[String], noun: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{noun} {}", names.join(", ")).trim_start().to_owned()
}

/// What the sandbox keeps from a validator that failed in it, if its output names it. Nothing is started outside for this:
/// an agent of an earlier run may have changed what the command runs.
pub(crate) fn cause_in_sandbox(failed: &BaselineFailure, sandbox: &Sandbox) -> Option<FailureCause> {
    let hidden = sandbox.hidden_variables();
    let named = hidden.iter().filter_map(|name| name.to_str()).filter(|name| names_word(&failed.text, name));
    let named: Vec<String> = named.map(str::to_owned).collect();
    if !named.is_empty() {
        return Some(FailureCause::Variables(named));
    }
    if let Some(path) = failed.text.lines().find_map(hidden_program_in) {
        return Some(FailureCause::Program(path));
    }
    if let Some(path) = words_of(&failed.text).map(Path::new).find(|path| is_socket(path)) {
        return Some(FailureCause::Socket(path.to_owned()));
    }
    let home = std::env::home_dir();
    let folders = home.map_or_else(Vec::new, |home| list_read_only_folders(&failed.text, &home));
    if !folders.is_empty() {
        return Some(FailureCause::ReadOnly(folders));
    }
    // Programs ask for hosts that they can do without, such as for news of a version.
    let is_named = |to: &&String| {
        let host = to.rsplit_once(':').map_or(to.as_str(), |(host, _)| host);
        failed.text.contains(host)
    };
    let mut hosts: Vec<String> = failed.refused.iter().filter(is_named).cloned().collect();
    hosts.extend(
        local_ports(&failed.text)
            .into_iter()
            .filter(|port| is_open(*port))
            .map(|port| format!("127.0.0.1:{port}")),
    );
    hosts.sort();
    hosts.dedup();
    (!hosts.is_empty()).then_some(FailureCause::Hosts(hosts))
}

/// The words of a text that may be paths or addresses, without quotes and what stands around them.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || "'\"`‘’“”()<>[],;=".contains(c);
    let words = text.split(is_end).map(|word| word.strip_prefix("unix://").unwrap_or(word));
    words.map(|word| word.trim_end_matches([':', '.'])).filter(|word| word.starts_with(['/', '~']))
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|about| about.file_type().is_socket())
}

/// The folders of the home folder to which a program could not write, by what it says, as `~/.cache/uv`.
fn list_read_only_folders(text: &str, home: &Path) -> Vec<String> {
    const REFUSED: [&str; 6] = [
        "read-only file system",
        "erofs",
        "permission denied",
        "eacces",
        "operation not permitted",
        "read-only filesystem",
    ];
    // The path stands near the refusal: programs also name logs and settings that they could read or write.
    const NEAR: usize = 3;
    let lines: Vec<&str> = text.lines().collect();
    let is_refusal = |line: &str| REFUSED.iter().any(|words| line.to_lowercase().contains(words));
    let refusals = lines.iter().enumerate().filter(|(_, line)| is_refusal(line)).map(|(index, _)| index);
    let near =
        refusals.flat_map(|index| &lines[index.saturating_sub(NEAR)..(index + NEAR + 1).min(lines.len())]);
    let mut folders: Vec<String> = near
        .flat_map(|line| words_of(line))
        .filter_map(|word| match word.strip_prefix("~/") {
            Some(rest) => Some(PathBuf::from(rest)),
            None => Path::new(word).strip_prefix(home).ok().map(Path::to_owned),
        })
        .filter_map(|path| folder_of_tool(home, &path))
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// The folder of a tool that holds a path of the home folder: `~/.cache/uv` of `.cache/uv/sdists-v9/.git`. Only such are
/// read-only in a sandbox; a project is not.
fn folder_of_tool(home: &Path, path: &Path) -> Option<String> {
    let caches = cuegate_runner::sandbox::list_caches();
    if let Some((cache, _)) = caches.iter().find(|(cache, _)| Path::new("~").join(path).starts_with(cache)) {
        return Some(cache.clone());
    }
    const SHARED: [&str; 4] = [".cache", ".local/share", ".local/state", ".config"];
    let shared = SHARED.iter().find(|shared| path.starts_with(shared));
    let parts = shared.map_or(1, |shared| Path::new(shared).components().count() + 1);
    let folder: PathBuf = path.components().take(parts).collect();
    let is_hidden = folder.to_str().is_some_and(|folder| folder.starts_with('.'));
    (is_hidden && home.join(&folder).is_dir()).then(|| format!("~/{}", folder.display()))
}

/// The hosts that the sandbox refused while a command failed. They are its cause only if it passes outside of the sandbox:
/// programs ask for hosts that they can do without.
pub(crate) fn refused_hosts(failed: &BaselineFailure) -> Option<FailureCause> {
    (!failed.refused.is_empty()).then(|| FailureCause::Hosts(failed.refused.clone()))
}

/// Whether a text names a variable. Short names are words of any text.
fn names_word(text: &str, name: &str) -> bool {
    const NAME_MIN: usize = 5;
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    name.len() >= NAME_MIN
        && name.contains('_')
        && text.match_indices(name).any(|(at, _)| {
            !is_word(at.checked_sub(1).and_then(|before| bytes.get(before)))
                && !is_word(bytes.get(at + name.len()))
        })
}

/// The ports of this machine that a text names.
fn local_ports(text: &str) -> Vec<u16> {
    let mut ports = Vec::new();
    for host in ["127.0.0.1:", "localhost:", "::1]:", "::1:", "0.0.0.0:"] {
        for (at, _) in text.match_indices(host) {
            let rest = &text[at + host.len()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            ports.extend(rest[..digits].parse::<u16>().ok().filter(|port| *port > 0));
        }
    }
    // `port 5432 failed: Connection refused`, as libpq says it.
    for line in text.lines().filter(|line| line.to_lowercase().contains("refused")) {
        let after = line.split_once("port ").map(|(_, rest)| rest);
        ports.extend(
            after.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u16>().ok()),
        );
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Whether something listens on a port of this machine.
fn is_open(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok()
}

/// What a failed command says is not installed.
pub(crate) fn find_missing(failed: &BaselineFailure) -> Option<FailureCause> {
    find_missing_in(&failed.text, failed.cannot_run, &failed.ended)
}

/// The same by an output, whether the exit code says so, and how the command ended.
pub(crate) fn find_missing_in(text: &str, cannot_run: bool, ended: &str) -> Option<FailureCause> {
    let found = text.lines().find_map(missing_in);
    let by_code = || cannot_run.then(|| format!("{ended} (its program is missing or not executable)"));
    found.or_else(by_code).map(FailureCause::Missing)
}

/// What a line of output says is not installed.
fn missing_in(line: &str) -> Option<String> {
    let line = line.trim();
    let quoted = |rest: &str| {
        let name = rest.trim_start().trim_start_matches(['\'', '"', '`', '‘']);
        name.split(['\'', '"', '`', '’', ' ', ';', ',']).next().unwrap_or_default().to_owned()
    };
    let module = ["No module named", "Cannot find module", "Cannot find package", "cannot load such file --"];
    for start in module {
        // A relative path names a file of the project: writing it may be the task.
        let name =
            line.split_once(start).map(|(_, rest)| quoted(rest)).filter(|name| !name.starts_with(['.', '/']));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return Some(format!("the module `{name}` is not installed"));
        }
    }
    if let Some((_, rest)) = line.split_once("no such command: ") {
        return Some(format!("the command `{}` is not installed", quoted(rest)));
    }
    if line.contains("vendor/autoload.php") {
        return Some("the packages of composer are not installed".to_owned());
    }
    missing_command_in(line).map(|name| format!("the command `{name}` is not installed"))
}

/// A program of the home folder that a line says is not there, and that is there outside: the sandbox hides that folder.
fn hidden_program_in(line: &str) -> Option<PathBuf> {
    // `bash: line 1: /home/me/bin/tool: No such file or directory`
    let by_path = || {
        let before = line.trim().strip_suffix(": No such file or directory")?;
        // A bare name may be any file that a program looks for.
        before.rsplit(": ").next().filter(|path| path.starts_with('/'))
    };
    let path = locate_program(missing_command_in(line).or_else(by_path)?)?;
    let home = std::env::home_dir()?;
    (path.is_absolute() && path.starts_with(home)).then_some(path)
}

/// The command that a shell did not find: `sh: 1: pytest: not found`, `bash: line 1: pytest: command not found`.
fn missing_command_in(line: &str) -> Option<&str> {
    let line = line.trim();
    let before = line.strip_suffix(": command not found").or_else(|| line.strip_suffix(": not found"))?;
    let name = before.rsplit(": ").next()?.trim();
    (!name.is_empty() && !name.contains(' ')).then_some(name)
}

/// The command that installs the packages of a project, by its lock file: in `here`, or in a folder above it up to `top`.
pub(crate) fn find_setup(top: &Path, here: &Path) -> Option<String> {
    const BY_LOCK_FILE: [(&str, &str); 13] = [
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --frozen-lockfile"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
        ("uv.lock", "uv sync --frozen"),
        ("poetry.lock", "poetry install"),
        ("pdm.lock", "pdm sync"),
        ("Pipfile.lock", "pipenv sync --dev"),
        ("Gemfile.lock", "bundle install"),
        ("composer.lock", "composer install"),
        ("mix.lock", "mix deps.get"),
    ];
    let here = if here.starts_with(top) { here } else { top };
    for folder in here.ancestors().take_while(|folder| folder.starts_with(top)) {
        let found = BY_LOCK_FILE.iter().find(|(lock, _)| folder.join(lock).is_file());
        if let Some((_, command)) = found {
            return Some(crate::init::from_here(top, folder, command));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_named() {
        for (line, what) in [
            (
                "ModuleNotFoundError: No module named 'requests'",
                Some("the module `requests` is not installed"),
            ),
            ("/usr/bin/python3: No module named pytest", Some("the module `pytest` is not installed")),
            ("Error: Cannot find module 'leftpad'", Some("the module `leftpad` is not installed")),
            ("Error: Cannot find module './src/new'", None),
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /w/a.mjs",
                Some("the module `chalk` is not installed"),
            ),
            ("sh: 1: jest: not found", Some("the command `jest` is not installed")),
            ("bash: line 1: pytest: command not found", Some("the command `pytest` is not installed")),
            ("error: no such command: `nextest`", Some("the command `nextest` is not installed")),
            ("AssertionError: user 7 not found", None),
            ("expected: page: user not found", None),
            ("3 tests failed", None),
        ] {
            assert_eq!(missing_in(line).as_deref(), what, "{line}");
        }
    }

    #[test]
    fn ports_and_variables_of_the_output_are_found() {
        assert_eq!(
            local_ports("connect ECONNREFUSED 127.0.0.1:8099\nsee http://localhost:3000/x"),
            [3000, 8099]
        );
        assert_eq!(
            local_ports("connection to server at \"db\", port 5432 failed: Connection refused"),
            [5432]
        );
        assert_eq!(local_ports("no port"), [0_u16; 0]);
        assert!(names_word("DATABASE_URL is not set", "DATABASE_URL"));
        assert!(!names_word("MY_DATABASE_URL is not set", "DATABASE_URL") && !names_word("FOO", "FOO"));
    }

    #[test]
    fn folders_that_are_read_only_are_named() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for folder in [".cache/tool/x", ".tool", "project"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let at = home.display();
        for (text, folders) in [
            (
                format!("touch: cannot touch '{at}/.cache/tool/x/.lock': Read-only file system"),
                &["~/.cache/tool"][..],
            ),
            (
                format!(
                    "error: failed to open `{at}/.tool/lock`\n\nCaused by:\n  Permission denied (os error 13)"
                ),
                &["~/.tool"],
            ),
            (format!("npm error code EROFS\nnpm error path {at}/.tool/_cacache/tmp"), &["~/.tool"]),
            (format!("open {at}/.none/mod: read-only file system"), &[]),
            (format!("{at}/project/a.txt: Permission denied"), &[]),
            (format!("read {at}/.tool/settings"), &[]),
            (format!("x: permission denied\n1\n2\n3\nA log is in {at}/.tool/log"), &[]),
        ] {
            assert_eq!(list_read_only_folders(&text, home), folders, "{text}");
        }
    }

    #[test]
    fn the_nearest_lock_file_proposes_the_setup() {
        let top = tempfile::tempdir().unwrap();
        let api = top.path().join("packages/api");
        std::fs::create_dir_all(&api).unwrap();
        assert_eq!(find_setup(top.path(), &api), None);
        std::fs::write(top.path().join("uv.lock"), "").unwrap();
        assert_eq!(find_setup(top.path(), &api).as_deref(), Some("uv sync --frozen"));
        std::fs::write(api.join("package-lock.json"), "").unwrap();
        assert_eq!(find_setup(top.path(), &api).as_deref(), Some("cd packages/api && npm ci"));
    }
}
