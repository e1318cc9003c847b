//! A real project with a real agent definition, and the real program in it.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

/// The program under test.
pub const CUEGATE: &str = env!("CARGO_BIN_EXE_cuegate");

/// A project in a temporary folder: the example's, in a git repository of its own.
pub struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

/// The example's folder.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fix-failing-test")
}

impl Project {
    /// The example's project, committed.
    pub fn example() -> Project {
        let project = Project::empty();
        copy(&example().join("project"), &project.root);
        copy(&example().join("agent"), &project.root.join(".agent/fixer"));
        project.write("script.yaml", &fs::read_to_string(example().join("script.yaml")).unwrap());
        project.write(".gitignore", "/script*.yaml\n");
        project.init();
        project
    }

    /// A folder with nothing in it, outside of any repository.
    pub fn empty() -> Project {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        Project { _dir: dir, root }
    }

    /// Makes it a repository with everything committed.
    pub fn init(&self) {
        self.git(&["init", "--quiet", "--initial-branch", "main"]);
        self.git(&["config", "user.name", "Test"]);
        self.git(&["config", "user.email", "test@localhost"]);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "begin"]);
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// What git prints.
    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The program, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(CUEGATE);
        command
            .args(args)
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("TZ", "UTC")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, as a shell gives a job.
            .process_group(0);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Starts the program.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// The last run's result.
    pub fn status(&self) -> Value {
        let ran = self.run(&["status", "last", "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// What a finished program left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Of a process's output.
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A process of this machine.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub words: String,
}

/// All processes of this machine, as `/proc` has them.
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            (state != "Z").then_some(Process { pid, parent, words })
        })
        .collect()
}

/// Processes that work in a folder or below it.
pub fn at_work_in(folder: &Path) -> Vec<Process> {
    processes()
        .into_iter()
        .filter(|process| {
            fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|cwd| cwd.starts_with(folder))
        })
        .collect()
}
