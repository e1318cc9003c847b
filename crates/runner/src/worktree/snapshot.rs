use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::error::{Error, io_at};
use super::git::{Git, refused};

/// The snapshots of one working tree.
#[derive(Debug, Clone)]
pub struct Trees {
    pub(super) root: PathBuf,
    state: PathBuf,
    /// Stands for the root in file names, so that worktrees can share one state folder.
    name: String,
    pub(super) git: Git,
    user_index: PathBuf,
}

/// A working tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Object id of the tree of all files that git does not ignore, on disk.
    pub tree: String,
    /// The commit that is checked out; `None` before the first one.
    pub head: Option<String>,
    /// Digest over all branches and tags, their values and which one is checked out. Remote ones are left out: editors
    /// fetch in the background.
    pub refs: String,
}

/// Background programs (editors, language servers) make and remove files while git reads; it then refuses, and the next
/// try mostly succeeds.
const TRIES: u32 = 3;

impl Trees {
    /// Opens the working tree to which the folder `work` belongs. Index and objects of ours go to `state`, which is made.
    ///
    /// `None` when `work` is in no working tree, or there is no git on this machine.
    ///
    /// # Errors
    /// Git refuses to read the repository (damaged, or another user's), `work` is no readable folder, or `state` can't be
    /// made.
    pub fn open(work: &Path, state: &Path) -> Result<Option<Trees>, Error> {
        let here = Git::at(work);
        let root = match here.line(&["rev-parse", "--show-toplevel"]) {
            Ok(root) => PathBuf::from(root),
            Err(Error::Start(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(Error::Git { stderr, .. }) if is_no_work_tree(&stderr) => return Ok(None),
            Err(error) => return Err(error),
        };
        let path = |what: &str| here.line(&["rev-parse", "--path-format=absolute", "--git-path", what]);
        let (objects, user_index) = (path("objects")?, path("index")?.into());
        let state = std::path::absolute(state).map_err(io_at("find", state))?;
        let own_objects = state.join("objects");
        fs::create_dir_all(&own_objects).map_err(io_at("create", &own_objects))?;
        let name = digest(root.as_os_str().as_bytes());
        // Where the repository is gets fixed here: nothing that an agent does to `core.worktree` or with a new `.git`
        // leads us elsewhere.
        let git = Git::at(&root)
            .with("GIT_DIR", here.line(&["rev-parse", "--absolute-git-dir"])?)
            .with("GIT_WORK_TREE", &root)
            .with("GIT_INDEX_FILE", state.join(format!("index-{name}")))
            .with("GIT_OBJECT_DIRECTORY", &own_objects)
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(objects));
        Ok(Some(Trees { root, state, name, git, user_index }))
    }

    /// The top folder of the working tree, absolute. Paths in changes count from here.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes a snapshot. What is inside of embedded repositories and submodules is not looked at, only which commit they
    /// are at; one without a commit is left out. `.cuegate` is left out.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when a file or folder cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let _guard = self.guard()?;
        let tree = self.tree()?;
        let head = self.git.output(&["rev-parse", "--quiet", "--verify", "HEAD"], b"")?;
        let head = head.status.success().then(|| String::from_utf8_lossy(&head.stdout).trim_end().to_owned());
        let refs = self.git.run(&[
            "for-each-ref",
            "--format=%(HEAD) %(objectname) %(refname)",
            "refs/heads",
            "refs/tags",
        ])?;
        let digest = self.git.output(&["hash-object", "--stdin"], &refs)?;
        Ok(Snapshot { tree, head, refs: String::from_utf8_lossy(&digest.stdout).trim_end().to_owned() })
    }

    /// Excludes others of this state folder, in this process or another, until the file is dropped. The kernel frees it
    /// when the holder is killed.
    pub(super) fn guard(&self) -> Result<File, Error> {
        let path = self.state.join(format!("guard-{}", self.name));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io_at("open", &path))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|error| io_at("lock", &path)(error.into()))?;
        Ok(file)
    }

    /// Brings our index to the present state and writes it as a tree. Needs the guard.
    pub(super) fn tree(&self) -> Result<String, Error> {
        let began = SystemTime::now();
        self.add_all()?;
        let tree = self.git.word(&["write-tree"])?;
        self.sync_folders(began)?;
        Ok(tree)
    }

    fn index(&self) -> PathBuf {
        self.state.join(format!("index-{}", self.name))
    }

    fn add_all(&self) -> Result<(), Error> {
        let args = self.add_args();
        let mut tried = 0;
        loop {
            self.prepare_index()?;
            let output = self.git.output(&args, b"")?;
            let error = match judge(&args, &output) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            tried += 1;
            if tried == TRIES || matches!(error, Error::Killed { .. }) {
                return Err(error);
            }
            if matches!(error, Error::Git { .. }) {
                // Perhaps our index is damaged. It can always be made anew.
                self.remove_if_there(&self.index())?;
            }
        }
    }

    fn add_args(&self) -> Vec<OsString> {
        // Names of what failed are needed, and a repository without commits must not end it: errors are judged after.
        let mut args: Vec<OsString> =
            ["add", "--all", "--ignore-errors", "--", ".", ":(exclude,literal).cuegate"]
                .map(Into::into)
                .into();
        if let Ok(state) = self.state.strip_prefix(&self.root) {
            let mut exclude = OsString::from(":(exclude,literal)");
            exclude.push(state);
            args.push(exclude);
        }
        args
    }

    /// Frees our index from a killed run's lock (the guard says that nobody else is at it) and makes it if there is none.
    fn prepare_index(&self) -> Result<(), Error> {
        let index = self.index();
        self.remove_if_there(&index.with_extension("lock"))?;
        if index.exists() {
            return Ok(());
        }
        let partial = index.with_extension("partial");
        // The user's index knows the state of each file: with it git need not read them all.
        match fs::copy(&self.user_index, &partial) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_at("copy", &self.user_index)(error)),
        }
        // Git mistrusts entries that are not older than the index. With a younger index it would miss a change that was
        // made in the same tick of the clock.
        let modified = self.user_index.metadata().and_then(|data| data.modified());
        let modified = modified.map_err(io_at("read", &self.user_index))?;
        let file = OpenOptions::new().write(true).open(&partial).map_err(io_at("open", &partial))?;
        file.set_modified(modified).and_then(|()| file.sync_all()).map_err(io_at("write", &partial))?;
        fs::rename(&partial, &index).map_err(io_at("rename to", &index))?;
        self.look_at_all()
    }

    /// Takes from our index the user's wish not to look at some files: a change by an agent must not hide behind it.
    /// Files that are left out of a sparse checkout stay left out.
    fn look_at_all(&self) -> Result<(), Error> {
        // `-v` shows the former as a lower-case letter, the latter as `S`.
        let listed = self.git.run(&["ls-files", "-v", "-z"])?;
        let mut assumed = Vec::new();
        let mut skipped = Vec::new();
        for entry in listed.split(|&byte| byte == 0) {
            let [tag, b' ', path @ ..] = entry else { continue };
            let is_there = || self.root.join(std::ffi::OsStr::from_bytes(path)).symlink_metadata().is_ok();
            if tag.is_ascii_lowercase() {
                assumed.extend_from_slice(path);
                assumed.push(0);
            }
            if tag.eq_ignore_ascii_case(&b's') && is_there() {
                skipped.extend_from_slice(path);
                skipped.push(0);
            }
        }
        for (option, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !paths.is_empty() {
                self.git.run_with(&["update-index", option, "-z", "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// Git syncs what it writes but not the folder entries; these are what a power cut could take.
    fn sync_folders(&self, began: SystemTime) -> Result<(), Error> {
        // File systems keep times more coarsely than clocks do.
        let since = began - Duration::from_secs(2);
        let objects = self.state.join("objects");
        let sync = |path: &Path| File::open(path).and_then(|dir| dir.sync_all()).map_err(io_at("sync", path));
        for entry in fs::read_dir(&objects).map_err(io_at("read", &objects))?.flatten() {
            let data = entry.metadata().map_err(io_at("read", &entry.path()))?;
            if data.is_dir() && data.modified().is_ok_and(|modified| modified >= since) {
                sync(&entry.path())?;
            }
        }
        sync(&objects)
    }

    fn remove_if_there(&self, path: &Path) -> Result<(), Error> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at("remove", path)(error)),
            _ => Ok(()),
        }
    }
}

/// Whether `git add` did all that it could and should.
fn judge(args: &[OsString], output: &Output) -> Result<(), Error> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    if let Some(unreadable) = unreadable(&stderr) {
        return Err(unreadable);
    }
    let faults = stderr.lines().filter(|line| line.starts_with("error: ") || line.starts_with("fatal: "));
    let mut faults = faults.filter(|line| !line.ends_with("' does not have a commit checked out"));
    match (output.status.code(), faults.next()) {
        (Some(0), _) | (Some(1), None) => Ok(()),
        _ => Err(refused(args, output)),
    }
}

/// Finds the file that git could not read in what it said. A folder that it cannot read is a mere warning to git.
fn unreadable(stderr: &str) -> Option<Error> {
    if let Some((_, rest)) = stderr.split_once("could not open directory '") {
        let (path, why) = rest.split_once("': ")?;
        let why = why.lines().next().unwrap_or_default();
        return Some(Error::Unreadable { path: path.to_owned(), why: why.to_owned() });
    }
    let (before, rest) = stderr.split_once("unable to index file '")?;
    // A name may hold anything, a quote and a line feed too; the message ends with both.
    let path = rest.split_once("'\n")?.0;
    let why = before.trim_end_matches("error: ").trim_end().rsplit(": ").next().unwrap_or_default();
    Some(Error::Unreadable { path: path.to_owned(), why: why.to_owned() })
}

/// Git says the same in each version since 2.0, under `LC_ALL=C`.
pub(super) fn is_no_work_tree(stderr: &str) -> bool {
    stderr.contains("not a git repository") || stderr.contains("must be run in a work tree")
}

/// The variable is a list with `:` between; git takes an entry in C quotes as one, see git(1).
fn quoted(path: OsString) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in path.into_vec() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(*b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// FNV-1a, 64 bits, in hex: a short file name for a long path. Two paths with the same one would share an index, which
/// costs time and nothing else.
fn digest(bytes: &[u8]) -> String {
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{digest:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unreadable_file_is_named() {
        for (stderr, path, why) in [
            (
                "error: open(\"a b\"): Permission denied\nerror: unable to index file 'a b'\n",
                "a b",
                "Permission denied",
            ),
            (
                "error: open(\"a'\nb\"): Permission denied\nerror: unable to index file 'a'b'\nfatal: x\n",
                "a'b",
                "Permission denied",
            ),
            ("warning: could not open directory 'd/': Permission denied\n", "d/", "Permission denied"),
        ] {
            let Some(Error::Unreadable { path: found, why: because }) = unreadable(stderr) else {
                panic!("{stderr}")
            };
            assert_eq!((found.as_str(), because.as_str()), (path, why), "{stderr}");
        }
        assert!(unreadable("warning: in the working copy of 'x', LF will be replaced by CRLF\n").is_none());
    }

    #[test]
    fn a_path_with_a_colon_stays_one_path() {
        assert_eq!(quoted("/a:b/\"c\\\n".into()), r#""/a:b/\"c\\\n""#);
    }
}
