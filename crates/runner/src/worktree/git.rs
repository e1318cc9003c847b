//! Calling the git program so that nothing but the arguments and the repository decides what it does.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::error::{Error, io_at};

/// Settings of ours that win over the user's.
const SETTINGS: [&str; 12] = [
    // Programs that a repository or user could have git run.
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    // Nothing happens behind our back in the user's repository.
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    // A split index would put files beside the user's; an untracked cache believes folder times that anybody can set.
    "core.splitIndex=false",
    "core.untrackedCache=false",
    // File names as they are, and no refusal over line ends.
    "core.quotePath=false",
    "core.safecrlf=false",
    "advice.addEmbeddedRepo=false",
    // A record that names a tree is only written when the tree is on disk. Git does not verify the checksum of an index,
    // so that one cut short by a power cut could pass for a strange tree.
    "core.fsync=objects,index",
    "core.fsyncMethod=fsync",
];

/// Variables of git's that say where the user's settings are. All others could send git elsewhere (`GIT_DIR`) or change
/// what it prints, and are removed.
const KEPT: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Git in a folder.
#[derive(Debug, Clone)]
pub(super) struct Git {
    dir: PathBuf,
    env: Vec<(&'static str, OsString)>,
}

impl Git {
    pub fn at(dir: &Path) -> Git {
        Git { dir: dir.to_owned(), env: Vec::new() }
    }

    /// The same with another variable set.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Git {
        self.env.push((name, value.into()));
        self
    }

    /// Runs git to its end, whatever that is.
    pub fn output<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Output, Error> {
        // A folder that is missing would look like a git that is missing.
        self.dir.read_dir().map_err(io_at("read", &self.dir))?;
        let mut child = self.command(args).spawn().map_err(Error::Start)?;
        let mut pipe = child.stdin.take().expect("git's stdin was asked to be a pipe");
        // No command that is used here writes much before it has read all of its input. One that ends without reading is
        // judged by how it ends.
        let _ = pipe.write_all(stdin);
        drop(pipe);
        let output = child.wait_with_output().map_err(Error::Start)?;
        // Ctrl-C at the terminal goes to all of the program's own processes. To try again would outlast it.
        if let Some(signal) = output.status.signal() {
            let command = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ");
            return Err(Error::Killed { command, signal });
        }
        Ok(output)
    }

    /// Runs git and returns what it printed.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, Error> {
        self.run_with(args, b"")
    }

    /// As [`Git::run`], with input.
    pub fn run_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Vec<u8>, Error> {
        let output = self.output(args, stdin)?;
        if output.status.success() { Ok(output.stdout) } else { Err(refused(args, &output)) }
    }

    /// Runs git and returns the one line that it printed: an object id, a name or a path, which may itself hold line feeds.
    pub fn line<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<OsString, Error> {
        use std::os::unix::ffi::OsStringExt;
        let mut line = self.run(args)?;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok(OsString::from_vec(line))
    }

    /// As [`Git::line`], for what is surely ASCII.
    pub fn word<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, Error> {
        Ok(self.line(args)?.to_string_lossy().into_owned())
    }

    /// Whether git says yes by its exit code.
    pub fn says<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<bool, Error> {
        Ok(self.output(args, b"")?.status.success())
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let git = name.as_encoded_bytes().starts_with(b"GIT_");
            if git && !KEPT.iter().any(|kept| name == *kept) {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(&self.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

pub(super) fn refused<S: AsRef<OsStr>>(args: &[S], output: &Output) -> Error {
    let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
    let mut stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if stderr.is_empty() {
        stderr = output.status.to_string();
    }
    Error::Git { command: words.join(" "), stderr }
}
