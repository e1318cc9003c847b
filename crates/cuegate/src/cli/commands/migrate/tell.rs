//! What is said of a migration.

use cuegate_dialect::{Migration, MigrationNote};
use cuegate_view::{clean, pad};
use serde_json::{Value, json};

use crate::{cli::commands::check::plural, definition::Definition};

/// A migration that was written.
pub(super) struct Told<'t> {
    /// The new folder, as it is shown.
    pub(super) shown: String,
    /// What the new agent is asked for by.
    pub(super) called: String,
    /// The script that was written with it, in the folder.
    pub(super) script: Option<String>,
    /// What was migrated.
    pub(super) migration: &'t Migration,
    /// The older definition.
    pub(super) older: &'t Definition,
    /// Names that were said to be given.
    pub(super) set: &'t [String],
}

impl Told<'_> {
    /// As JSON.
    pub(super) fn to_json(&self, paths: &[String]) -> Value {
        let note = |note: &MigrationNote| json!({"place": note.place, "message": note.text, "changes_runs": note.changes_runs});
        let notes: Vec<Value> = self.migration.notes.iter().map(note).collect();
        json!({"schema": "cuegate/migrate/v1", "folder": self.shown, "name": self.migration.name, "files": paths,
            "notes": notes, "next": self.next()})
    }

    /// As lines for people.
    pub(super) fn lines(&self, files: usize) -> Vec<String> {
        let line = |label: &str, text: &str| format!("{}{}", pad(label, 12), clean(text));
        let wrote = format!("{}, {files} file{}", self.shown, plural(files));
        let mut lines = vec![line("wrote", &wrote)];
        let notes = &self.migration.notes;
        for (label, changes) in [("look at", true), ("note", false)] {
            let of = notes.iter().filter(|note| note.changes_runs == changes);
            for (index, note) in of.enumerate() {
                let label = if index == 0 { label } else { "" };
                lines.push(line(label, &format!("{}: {}", note.place, note.text)));
            }
        }
        for (index, command) in self.next().iter().enumerate() {
            lines.push(line(if index == 0 { "next" } else { "" }, command));
        }
        lines
    }

    /// The commands that come next.
    fn next(&self) -> [String; 2] {
        let called = &self.called;
        let mut check = format!("cuegate check {called}");
        let mut run = format!("cuegate run {called}");
        if self.older.settings.needs_task {
            run.push_str(" TASK");
        }
        let params = self.older.flow.iter().flat_map(|flow| &flow.params);
        for param in params.filter(|param| param.required && param.default.is_none()) {
            if !self.set.iter().any(|name| **name == *param.name) {
                run.push_str(&format!(" {}=VALUE", param.flag));
            }
        }
        for name in self.set {
            check.push_str(&format!(" --set {name}"));
            run.push_str(&format!(" --set {name}=VALUE"));
        }
        if let Some(script) = &self.script {
            run.push_str(&format!(" --script {}/{script}", self.shown));
        }
        [check, run]
    }
}
