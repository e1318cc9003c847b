//! Finds new files that git does not show: ignored by a rule that is new as well, or in a repository of their own. They are
//! in no snapshot and in no diff.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::branch_worktree::{changed_inside, inner_repositories};
use super::changes::object_id;
use super::error::WorktreeError;
use super::snapshots::ignored_files::can_be_rebuilt;
use super::snapshots::snapshot::Trees;

/// What a run itself excludes.
const EXCLUDED: &[u8] = b"/.cuegate";

/// How far the time of a change may be behind the clock: the kernel takes that of its last tick.
const CLOCK_LAG: Duration = Duration::from_millis(10);

impl Trees {
    /// The files and folders that came since `since` and that git does not show, unless they can be built or installed
    /// again. `from` is the tree of that moment. Paths are relative to the top; folders end with `/`.
    ///
    /// # Errors
    /// When git fails.
    pub fn hidden_files(&self, from: &str, since: SystemTime) -> Result<Vec<String>, WorktreeError> {
        let mut hidden = Vec::new();
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(CLOCK_LAG);
        let is_new = |path: &Path| {
            let about = self.root.join(path).symlink_metadata();
            about.is_ok_and(|about| {
                let seconds = u64::try_from(about.ctime()).unwrap_or_default();
                Duration::new(seconds, u32::try_from(about.ctime_nsec()).unwrap_or_default()) >= since
            })
        };
        for name in inner_repositories(&self.root)? {
            let (name, path) = (name.trim_end_matches('/'), Path::new(&name));
            if self.has_entry(from, name)? {
                let changed = changed_inside(&self.root.join(path), true).unwrap_or_default().into_iter();
                hidden.extend(
                    changed.map(|file| format!("{name}/{file}")).filter(|file| is_new(Path::new(file))),
                );
            } else if is_new(path) {
                hidden.push(format!("{name}/"));
            }
        }
        let git = self.user_git();
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let ignored = git.run(&args)?;
        if ignored.is_empty() {
            return Ok(hidden);
        }
        // It exits with 1 if none of the paths is ignored.
        let rules =
            git.output(&["check-ignore", "--no-index", "--verbose", "-z", "--stdin"], &ignored)?.stdout;
        let mut before: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let fields: Vec<&[u8]> = rules.split(|byte| *byte == 0).collect();
        // The file, the line, the pattern and the path.
        for rule in fields.chunks_exact(4) {
            let (file, pattern, path) = (String::from_utf8_lossy(rule[0]).into_owned(), rule[2], rule[3]);
            let name = String::from_utf8_lossy(path).into_owned();
            let is_of_tree = file == ".gitignore" || file.ends_with("/.gitignore");
            let is_of_git = file.ends_with("info/exclude") && is_new(Path::new(&file));
            let at = Path::new(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
            if !(is_of_tree || is_of_git) || !is_new(at) || can_be_rebuilt(&self.root.join(at)) {
                continue;
            }
            let known = match before.get(&file) {
                Some(known) => known,
                None => {
                    let blob = format!("{}:{file}", object_id(from)?);
                    let known = if is_of_git {
                        Ok(EXCLUDED.to_vec())
                    } else {
                        self.git.run(&["cat-file", "blob", &blob])
                    };
                    let text = known.unwrap_or_default();
                    before.entry(file).or_insert(text)
                }
            };
            if !known.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == pattern) {
                hidden.push(name);
            }
        }
        hidden.sort();
        hidden.dedup();
        let folders: Vec<String> = hidden.iter().filter(|name| name.ends_with('/')).cloned().collect();
        let is_inside = |name: &str| folders.iter().any(|folder| folder != name && name.starts_with(folder));
        hidden.retain(|name| !is_inside(name));
        Ok(hidden)
    }

    fn has_entry(&self, tree: &str, path: &str) -> Result<bool, WorktreeError> {
        let name = format!("{}:{}", object_id(tree)?, path.trim_end_matches('/'));
        self.git.succeeds(&["rev-parse", "--verify", "--quiet", &name])
    }

    /// The content of a file of a snapshot; `None` if it has no such file.
    ///
    /// # Errors
    /// When `tree` is no object id.
    pub fn file_of(&self, tree: &str, path: &str) -> Result<Option<Vec<u8>>, WorktreeError> {
        Ok(self.git.run(&["cat-file", "blob", &format!("{}:{path}", object_id(tree)?)]).ok())
    }
}
