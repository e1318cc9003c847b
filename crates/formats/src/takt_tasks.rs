//! The list of tasks of TAKT, `.takt/tasks.yaml`: read, extended, and brought up to date, as it was written.

use cuegate_flow::diagnostics::{Sources, Span};

use crate::findings::Findings;
use crate::task_file::TaskListError;
use crate::values::json::{Json, Kind};
use crate::values::yaml;

/// A task of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaktTask {
    /// The line that it begins on, from 1.
    pub line: u32,
    /// Its name, which no other task has.
    pub name: String,
    /// `pending`, `running`, `completed`, `failed`, `exceeded` or `pr_failed`.
    pub status: String,
    /// What to do, if it is said here.
    pub content: Option<String>,
    /// The folder with `order.md`, which says it otherwise. Relative to the project.
    pub folder: Option<String>,
    /// The workflow that does it.
    pub workflow: Option<String>,
    /// The branch on which it is done.
    pub branch: Option<String>,
    /// The branch from which it starts.
    pub base: Option<String>,
    /// The issue on GitHub that it is about.
    pub issue: Option<u64>,
    /// The run that does or did it.
    pub run: Option<String>,
}

/// Reads the list. Keys that TAKT manages itself are passed over.
///
/// # Errors
/// For a text that is no such list, with its line.
pub fn read_takt_tasks(path: &str, text: &str) -> Result<Vec<TaktTask>, TaskListError> {
    let (mut sources, found) = (Sources::default(), Findings::default());
    let file = sources.add(path, text);
    let line = |span: Span| sources.locate(span).line;
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    let parsed = yaml::parse(text, file, &found);
    if let Some(finding) = found.into_parts().0.into_iter().next() {
        let hint = finding.hint.unwrap_or_else(|| "write a list of tasks below `tasks:`".to_owned());
        return Err(TaskListError { line: line(finding.span), message: finding.message, hint });
    }
    let wrong = |span: Span, message: &str| {
        let hint = "write `tasks:` with entries that have `name` and `status`".to_owned();
        Err(TaskListError { line: line(span), message: message.to_owned(), hint })
    };
    let Some(list) = parsed.as_ref().and_then(|root| root.get("tasks")) else {
        return wrong(Span::start_of(file), "the file has no `tasks`");
    };
    let items = match &list.kind {
        Kind::List(items) => &items[..],
        Kind::Null => &[],
        _ => return wrong(list.span, "`tasks` is no list"),
    };
    let mut tasks: Vec<TaktTask> = Vec::with_capacity(items.len());
    for item in items {
        let text =
            |key: &str| item.get(key).and_then(Json::scalar_text).filter(|text| !text.trim().is_empty());
        let (Some(name), Some(status)) = (text("name"), text("status")) else {
            return wrong(item.span, "a task has no `name` or no `status`");
        };
        if tasks.iter().any(|known| known.name == *name) {
            return wrong(item.span, "two tasks have the same `name`");
        }
        tasks.push(TaktTask {
            line: line(item.span),
            name: name.to_string(),
            status: status.to_string(),
            content: text("content").or(text("task")).map(|text| text.to_string()),
            folder: text("task_dir").map(|text| text.to_string()),
            base: text("base_branch").map(|text| text.to_string()),
            workflow: text("workflow").or(text("piece")).map(|text| text.to_string()),
            branch: text("branch").map(|text| text.to_string()),
            issue: text("issue").and_then(|number| number.parse().ok()),
            run: text("run_slug").map(|text| text.to_string()),
        });
    }
    Ok(tasks)
}

/// Whether a text is such a list, and not another list of tasks.
pub fn is_takt_task_list(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| line.starts_with("tasks:") || line.trim() == "---")
        && read_takt_tasks("tasks.yaml", text).is_ok()
}

/// The list with another task, whose entry has these keys and values.
///
/// # Errors
/// As [`read_takt_tasks`].
pub fn with_takt_task(
    path: &str,
    text: &str,
    entry: &[(&str, serde_json::Value)],
) -> Result<String, TaskListError> {
    let known = read_takt_tasks(path, text)?;
    let is_block = |line: &&str| line.trim_start().starts_with("- ");
    let after_key = text.lines().skip_while(|line| !line.starts_with("tasks:"));
    let indent = after_key.clone().find(is_block).map_or(2, |line| line.len() - line.trim_start().len());
    let ends_the_text = after_key.skip(1).all(|line| line.is_empty() || line.starts_with([' ', '-', '#']));
    if !known.is_empty() && !ends_the_text {
        return Err(TaskListError {
            line: 1,
            message: "something follows the list of tasks, so none can be added".to_owned(),
            hint: "move `tasks` to the end of the file".to_owned(),
        });
    }
    let mut whole = match known.is_empty() {
        // The other keys and the comments stay, before the list.
        true => {
            let others = text.lines().filter(|line| !line.starts_with("tasks:"));
            others.chain(["tasks:"]).map(|line| format!("{line}\n")).collect()
        }
        false => format!("{}\n", text.trim_end()),
    };
    for (index, (key, value)) in entry.iter().enumerate() {
        let mark = if index == 0 { "- " } else { "  " };
        whole.push_str(&format!("{}{mark}{key}: {value}\n", " ".repeat(indent)));
    }
    // Whatever form the list has: what cannot be read afterwards is not written.
    let read = read_takt_tasks(path, &whole)?;
    match read.len() == known.len() + 1 {
        true => Ok(whole),
        false => Err(TaskListError {
            line: 1,
            message: "the list of tasks has a form to which none can be added".to_owned(),
            hint: "write its entries as `- name: …`, each key on a line of its own".to_owned(),
        }),
    }
}

/// The list with another state of a task, and the run that does it; `None` if the task is gone, or its entry is not written
/// with each key on a line of its own.
pub fn with_takt_status(path: &str, text: &str, name: &str, status: &str, run: &str) -> Option<String> {
    let tasks = read_takt_tasks(path, text).ok()?;
    let at = tasks.iter().position(|task| task.name == name)?;
    let from = usize::try_from(tasks[at].line).ok()?.checked_sub(1)?;
    let to = tasks.get(at + 1).and_then(|next| usize::try_from(next.line).ok()?.checked_sub(1));
    let (mut lines, mut is_set, mut has_run) = (Vec::new(), false, false);
    for (index, line) in text.lines().enumerate() {
        let is_own = index >= from && to.is_none_or(|to| index < to);
        let key = line.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default();
        match key {
            "status" if is_own && !is_set => {
                let before = &line[..line.find("status")?];
                lines.push(format!("{before}status: {status}"));
                is_set = true;
                if tasks[at].run.is_none() {
                    let indent = " ".repeat(before.len());
                    lines.push(format!("{indent}run_slug: {run}"));
                    has_run = true;
                }
            }
            "run_slug" if is_own && !has_run => {
                let before = &line[..line.find("run_slug")?];
                lines.push(format!("{before}run_slug: {run}"));
                has_run = true;
            }
            _ => lines.push(line.to_owned()),
        }
    }
    let whole = format!("{}\n", lines.join("\n"));
    let read = read_takt_tasks(path, &whole).ok()?;
    let is = read.get(at)?;
    (read.len() == tasks.len() && is.status == status && is.run.as_deref() == Some(run)).then_some(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_takt_task_list, read_takt_tasks, with_takt_status, with_takt_task};

    const LIST: &str = "tasks:\n  - name: one\n    status: pending\n    task_dir: .takt/tasks/one\n    workflow: default\n    \
                        started_at: null\n  - name: two\n    status: completed\n    content: Do it\n    run_slug: r1\n";

    #[test]
    fn the_list_is_read_as_takt_writes_it() {
        let tasks = read_takt_tasks("tasks.yaml", LIST).unwrap();
        assert_eq!(tasks[0].folder.as_deref(), Some(".takt/tasks/one"));
        assert_eq!((tasks[1].line, tasks[1].content.as_deref()), (7, Some("Do it")));
        assert!(is_takt_task_list(LIST) && !is_takt_task_list("- Mend the login\n"));
        for (text, line) in [("a: 1\n", 1), ("tasks: 3\n", 1), ("tasks:\n  - name: one\n", 2)] {
            assert_eq!(read_takt_tasks("tasks.yaml", text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn a_task_is_added_at_the_end() {
        let entry = [("name", json!("three: \"x\"")), ("status", json!("pending")), ("issue", json!(7))];
        for text in
            ["", "# Ask Ann.\n", "# Ask Ann.\ntasks: []\nowner: ann # and Ben\n# end\n", "tasks:\n", LIST]
        {
            let whole = with_takt_task("tasks.yaml", text, &entry).unwrap();
            let tasks = read_takt_tasks("tasks.yaml", &whole).unwrap();
            let last = tasks.last().unwrap();
            assert_eq!((&*last.name, last.issue), ("three: \"x\"", Some(7)), "{whole}");
            let is_kept = |line: &str| line.starts_with("tasks:") || whole.lines().any(|kept| kept == line);
            assert!(text.lines().all(is_kept), "{whole}");
        }
        assert!(with_takt_task("tasks.yaml", "tasks:\n- name: a\n  status: x\nother: 1\n", &entry).is_err());
    }

    #[test]
    fn the_state_of_a_task_changes_in_its_place() {
        let whole = with_takt_status("tasks.yaml", LIST, "one", "running", "r7").unwrap();
        assert!(
            whole.contains("  - name: one\n    status: running\n    run_slug: r7\n    task_dir"),
            "{whole}"
        );
        let whole = with_takt_status("tasks.yaml", &whole, "one", "failed", "r8").unwrap();
        let tasks = read_takt_tasks("tasks.yaml", &whole).unwrap();
        assert_eq!((&*tasks[0].status, tasks[0].run.as_deref()), ("failed", Some("r8")));
        assert_eq!((&*tasks[1].status, tasks[1].run.as_deref()), ("completed", Some("r1")));
        assert_eq!(with_takt_status("tasks.yaml", LIST, "three", "running", "r7"), None);
        assert_eq!(with_takt_status("t.yaml", "tasks: [{name: a, status: b}]", "a", "c", "r"), None);
    }
}
