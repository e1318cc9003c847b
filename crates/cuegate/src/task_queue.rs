//! The queue of tasks of a project: `.takt/tasks.yaml`, which TAKT reads and writes as well.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use cuegate_flow::model::BlobRef;
use cuegate_formats::{TaktTask, read_takt_tasks, with_takt_status, with_takt_task};
use cuegate_runner::{FolderHandle, NewTask, StateDir, TaskQueue, is_missing, now_ms};
use cuegate_view::format_rfc3339;
use serde_json::{Value, json};

/// The list, relative to the project.
pub(crate) const TASK_LIST: &str = ".takt/tasks.yaml";
/// The folder with the texts of tasks.
const TASK_FOLDERS: &str = ".takt/tasks";
/// The text of a task in its folder.
const ORDER: &str = "order.md";
/// The limit of the size of the list and of a text, in bytes.
const TEXT_MAX: u64 = 64 << 20;
/// How many characters of its first line a name has.
const NAME_MAX: usize = 40;

/// The list of a project.
#[derive(Debug, Clone)]
pub(crate) struct TaktQueue {
    root: PathBuf,
    /// Held while the list is read and written again.
    lock: PathBuf,
}

impl TaktQueue {
    /// The list of the project that `home` is the state of.
    pub(crate) fn in_project(home: &StateDir) -> TaktQueue {
        TaktQueue { root: home.root().to_owned(), lock: home.dir().join("tasks.lock") }
    }

    fn read(&self) -> Result<(String, Vec<TaktTask>), String> {
        let read = || match open_project(&self.root)?.read_text(Path::new(TASK_LIST), TEXT_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        };
        let text =
            read().map_err(|error| format!("failed to read `{TASK_LIST}`: {}", explain_link(&error)))?;
        let tasks = read_takt_tasks(TASK_LIST, &text)
            .map_err(|error| format!("{TASK_LIST}:{}: {}; {}", error.line, error.message, error.hint))?;
        Ok((text, tasks))
    }

    fn write(&self, text: &str) -> Result<(), String> {
        write_whole(&self.root, Path::new(TASK_LIST), text.as_bytes())
    }

    /// Other processes of Cuegate wait. The lock ends with the file.
    fn lock(&self) -> Result<File, String> {
        let failed = |error| format!("failed to lock `{}`: {error}", self.lock.display());
        let file = File::create(&self.lock).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Notes the state of a task. A task that somebody removed meanwhile stays removed. `is_late`: only if an earlier note is
    /// missing, not over what a person wrote since.
    ///
    /// # Errors
    /// When the list cannot be read or written, with the reason.
    pub(crate) fn note_status(
        &self,
        name: &str,
        status: &str,
        run: &str,
        is_late: bool,
    ) -> Result<(), String> {
        let _lock = self.lock()?;
        let (text, tasks) = self.read()?;
        let known = tasks.iter().find(|task| task.name == name);
        let is_there = known.is_some();
        let is_open = |task: &TaktTask| match task.status.as_str() {
            "running" => task.run.as_deref().is_none_or(|noted| noted == run),
            "pending" => task.run.is_none(),
            _ => false,
        };
        if is_late && !known.is_some_and(is_open) {
            return Ok(());
        }
        match with_takt_status(TASK_LIST, &text, name, status, run) {
            Some(whole) => self.write(&whole),
            None if is_there => Err(format!("the entry of `{name}` in `{TASK_LIST}` cannot be changed")),
            None => Ok(()),
        }
    }
}

impl TaskQueue for TaktQueue {
    fn count(&self, without: Option<&str>) -> Result<BTreeMap<String, u64>, String> {
        let mut counts = BTreeMap::new();
        for task in self.read()?.1 {
            if without.is_none() || task.run.as_deref() != without {
                *counts.entry(task.status).or_default() += 1;
            }
        }
        Ok(counts)
    }

    fn add(&self, task: &NewTask) -> Result<String, String> {
        let _lock = self.lock()?;
        let (text, tasks) = self.read()?;
        let digest = &BlobRef::for_bytes(task.key.as_bytes()).digest[..10];
        if let Some(known) = tasks.iter().find(|known| known.name.ends_with(digest)) {
            return Ok(known.name.clone());
        }
        let name = format!("{}-{digest}", name_of(&task.text));
        let folder = format!("{TASK_FOLDERS}/{name}");
        write_whole(&self.root, &Path::new(&folder).join(ORDER), task.text.as_bytes())?;
        let mut entry: Vec<(&str, Value)> =
            vec![("name", json!(name)), ("status", json!("pending")), ("task_dir", json!(folder))];
        let mut put = |key, value: Option<Value>| entry.extend(value.map(|value| (key, value)));
        put("workflow", Some(json!(task.workflow)));
        put("worktree", task.in_worktree.then_some(json!(true)));
        put("branch", task.branch.as_ref().map(|branch| json!(branch)));
        put("base_branch", task.base.as_ref().map(|base| json!(base)));
        put("auto_pr", (task.in_worktree || task.proposes).then_some(json!(task.proposes)));
        put("draft_pr", task.proposes.then_some(json!(task.is_draft)));
        put("managed_pr", task.is_managed.then_some(json!(true)));
        put("issue", task.issue.map(|number| json!(number)));
        put("pr_number", task.pull_request.map(|number| json!(number)));
        put("created_at", Some(json!(format_rfc3339(now_ms()))));
        let whole = with_takt_task(TASK_LIST, &text, &entry)
            .map_err(|error| format!("{TASK_LIST}:{}: {}; {}", error.line, error.message, error.hint))?;
        self.write(&whole)?;
        Ok(name)
    }
}

/// The text of a task.
///
/// # Errors
/// When it has none, or its file cannot be read.
pub(crate) fn read_task_text(root: &Path, task: &TaktTask) -> Result<String, String> {
    if let Some(content) = &task.content {
        return Ok(content.clone());
    }
    let folder = task.folder.as_ref().ok_or("it has neither `content` nor `task_dir`")?;
    let path = Path::new(folder);
    if path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(format!("`{folder}` is not in the project"));
    }
    let text = open_project(root).and_then(|project| project.read_text(&path.join(ORDER), TEXT_MAX));
    text.map_err(|error| format!("failed to read `{folder}/{ORDER}`: {}", explain_link(&error)))
}

/// Agents write in the folder with the list, so no link in there is followed.
fn open_project(root: &Path) -> io::Result<FolderHandle> {
    FolderHandle::open(&fs::canonicalize(root)?)
}

/// An error in words: the system calls a link in the way too many of them.
fn explain_link(error: &io::Error) -> String {
    let is_link = error.kind() != io::ErrorKind::NotFound && is_missing(error);
    if is_link { "it is a link or behind one, which is not followed".to_owned() } else { error.to_string() }
}

/// A name of the first line that says something, in letters, digits and hyphens.
fn name_of(text: &str) -> String {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    // A heading such as `## Summary` says nothing of a task.
    let line = text.lines().find(|line| says(line) && !line.starts_with('#'));
    let line = line.or_else(|| text.lines().find(says)).unwrap_or_default();
    let words: Vec<String> = line
        .split(|char: char| !char.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let mut name: String = words.join("-").chars().take(NAME_MAX).collect();
    name.truncate(name.trim_end_matches('-').len());
    if name.is_empty() { "task".to_owned() } else { name }
}

/// Writes a file so that nobody sees half of it. The lock keeps writers apart.
fn write_whole(root: &Path, below: &Path, bytes: &[u8]) -> Result<(), String> {
    let write = || {
        let project = open_project(root)?;
        project.create_folder(below.parent().unwrap_or(Path::new("")))?;
        project.write_with(below, |file| {
            io::Write::write_all(file, bytes)?;
            file.sync_all()
        })
    };
    write().map_err(|error: io::Error| {
        format!("failed to write `{}`: {}", below.display(), explain_link(&error))
    })
}
