//! Reads a list of tasks: one in each line of a text, or a list in YAML.

use std::collections::BTreeMap;

use cuegate_flow::diagnostics::{Sources, Span};

use crate::findings::Findings;
use crate::values::json::{Entry, Json, Kind};
use crate::values::yaml;

/// A task of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedTask {
    /// The line that it begins on, from 1.
    pub line: u32,
    /// What to do.
    pub text: String,
    /// Parameters that it sets.
    pub set: BTreeMap<String, String>,
}

/// What is wrong with a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Reads a list of tasks. `path` decides about the form: YAML if it ends in `.yaml` or `.yml`, else lines, of which
/// empty ones and those that begin with `#` are no tasks. An entry in YAML is a text, or a mapping with `task` and `set`.
///
/// # Errors
/// For YAML that is no list of tasks.
pub fn read_tasks(path: &str, text: &str) -> Result<Vec<ListedTask>, TaskListError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !(path.ends_with(".yaml") || path.ends_with(".yml")) {
        let lines = (1..).zip(text.lines().map(str::trim));
        let tasks = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        return Ok(tasks
            .map(|(line, text)| ListedTask { line, text: text.to_owned(), ..Default::default() })
            .collect());
    }
    let (mut sources, found) = (Sources::default(), Findings::default());
    let file = sources.add(path, text);
    let line = |span: Span| sources.locate(span).line;
    let parsed = yaml::parse(text, file, &found);
    if let Some(finding) = found.into_parts().0.into_iter().next() {
        let hint = finding.hint.unwrap_or_else(|| "write a list of tasks".to_owned());
        return Err(TaskListError { line: line(finding.span), message: finding.message, hint });
    }
    let wrong = |at: &Json, message: String, hint: &str| {
        Err(TaskListError { line: line(at.span), message, hint: hint.to_owned() })
    };
    const LIST: &str = "write a list, each entry like `- Mend the login`";
    const ENTRY: &str = "write `- task: Mend the login`, and parameters below `set:`";
    let Some(Json { kind: Kind::List(items), .. }) = &parsed else {
        let top = Json { span: Span::start_of(file), kind: Kind::Null };
        return wrong(&top, "the file is no list of tasks".to_owned(), LIST);
    };
    let mut tasks = Vec::with_capacity(items.len());
    for item in items {
        let mut task = ListedTask { line: line(item.span), ..Default::default() };
        match &item.kind {
            Kind::Text(text) => task.text = text.to_string(),
            Kind::Object(entries) => {
                for Entry { key, value, .. } in entries {
                    match (&**key, &value.kind) {
                        ("task", Kind::Text(text)) => task.text = text.to_string(),
                        ("set", Kind::Object(values)) => {
                            for Entry { key, value, .. } in values {
                                let Some(text) = value.scalar_text() else {
                                    let message =
                                        format!("the value of `{key}` is not text, a number or a boolean");
                                    return wrong(value, message, "give a single value");
                                };
                                task.set.insert(key.to_string(), text.to_string());
                            }
                        }
                        ("task", _) => return wrong(value, "`task` is not text".to_owned(), ENTRY),
                        ("set", _) => return wrong(value, "`set` is not a mapping".to_owned(), ENTRY),
                        _ => return wrong(value, format!("unknown key `{key}` of a task"), ENTRY),
                    }
                }
            }
            _ => return wrong(item, "the entry is no task".to_owned(), LIST),
        }
        task.text = task.text.trim().to_owned();
        if task.text.is_empty() {
            return wrong(item, "the task is empty".to_owned(), ENTRY);
        }
        tasks.push(task);
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<(u32, String)> {
        read_tasks(path, text).unwrap().into_iter().map(|task| (task.line, task.text)).collect()
    }

    #[test]
    fn a_text_has_a_task_in_each_line() {
        let text = "\u{feff}# this week\n\n  Mend the login \r\n\tログインを直す\n#7 is done\n";
        assert_eq!(texts("tasks.txt", text), [(3, "Mend the login".into()), (4, "ログインを直す".into())]);
        assert_eq!(texts("tasks", ""), []);
    }

    #[test]
    fn yaml_is_a_list_of_texts_and_mappings() {
        let text = "- Mend the login\n- task: |\n    Two\n    lines\n  set: {area: api, level: 2}\n";
        let tasks = read_tasks("tasks.yaml", text).unwrap();
        assert_eq!(tasks[0].text, "Mend the login");
        assert_eq!((tasks[1].line, tasks[1].text.as_str()), (2, "Two\nlines"));
        assert_eq!(
            tasks[1].set,
            BTreeMap::from([("area".into(), "api".into()), ("level".into(), "2".into())])
        );
    }

    #[test]
    fn what_is_no_list_of_tasks_is_refused_with_its_line() {
        let refused = |text: &str| {
            let error = read_tasks("tasks.yml", text).unwrap_err();
            (error.line, error.message)
        };
        assert_eq!(refused("task: one\n"), (1, "the file is no list of tasks".into()));
        assert_eq!(refused("- one\n- [two]\n"), (2, "the entry is no task".into()));
        assert_eq!(refused("- one\n- task: two\n  sets: {}\n"), (3, "unknown key `sets` of a task".into()));
        assert_eq!(refused("- one\n- set: {a: 1}\n"), (2, "the task is empty".into()));
        assert_eq!(
            refused("- task: one\n  set: {a: [1]}\n"),
            (2, "the value of `a` is not text, a number or a boolean".into())
        );
        assert_eq!(refused("- one\n- 'two\n").0, 3);
        assert_eq!(refused("").0, 1);
    }
}
