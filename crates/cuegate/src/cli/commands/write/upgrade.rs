//! `check --upgrade`: a workflow in the spelling of today.

use cuegate_engine::RecordedLoadOptions;
use cuegate_formats::{Files, ReadError, UpgradedWorkflow, upgrade_takt_workflow};

use crate::cli::commands::{ProjectPlace, open_disk_files, read_options};
use crate::cli::print;
use crate::definition::{inspect_definition, list_step_edits};
use crate::{Failure, exit};

/// Files of which one has another text.
struct EditedFiles<'f> {
    files: &'f dyn Files,
    path: String,
    text: &'f str,
}

impl Files for EditedFiles<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        if path == self.path { Ok(self.text.as_bytes().to_vec()) } else { self.files.read(path) }
    }
}

/// Prints a workflow in the spelling of today, and on the standard error what was done.
pub(super) fn print_upgraded(place: &ProjectPlace, typed: &str) -> Result<u8, Failure> {
    let location = place.locate(typed)?;
    let Some(file) = location.file.as_deref().filter(|_| read_options::is_takt_workflow(&location)) else {
        let hint = "name a workflow of TAKT, such as `.takt/pieces/default.yaml`";
        return Err(Failure::usage(format!("`{typed}` is not a workflow of TAKT"), hint));
    };
    let path = if location.base.is_empty() { file.to_owned() } else { format!("{}/{file}", location.base) };
    let files = open_disk_files(&location)?;
    let unreadable = |why: String| {
        Failure::usage(format!("failed to read `{path}`: {why}"), "make it a readable file in UTF-8")
    };
    let bytes = files.read(&path).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    let upgraded = match upgrade_takt_workflow(&path, &text) {
        Ok(upgraded) => upgraded,
        Err((findings, mut sources)) => {
            location.show_in(&mut sources);
            print::print_findings(&findings, &sources, false);
            return Ok(exit::USAGE);
        }
    };
    print::print_exact(&upgraded.text);
    tell_changes(&path, &upgraded);
    let load = |files: &dyn Files| {
        inspect_definition(files, &location.base, Some(file), &[], &RecordedLoadOptions::default()).flow
    };
    let edited = EditedFiles { files: &files, path: path.clone(), text: &upgraded.text };
    let mut code = exit::DONE;
    match (load(&files), load(&edited)) {
        (Some(before), Some(after)) => {
            let edits = list_step_edits(&before, &after, None);
            if !edits.is_empty() {
                code = exit::BAD_END;
            }
            for edit in edits {
                print::print_line(&format!(
                    "warning: {} differs from the older text: {}",
                    if edit.step.is_empty() { "the workflow".to_owned() } else { format!("`{}`", edit.step) },
                    edit.what.join(", ")
                ));
            }
        }
        (None, _) => {
            print::print_line(&format!(
                "note: `cuegate check` finds errors in `{path}`, so the result was not compared with it"
            ));
        }
        (Some(_), None) => {
            code = exit::BAD_END;
            print::print_line("warning: the result has errors: write it to a file and `cuegate check` it");
        }
    }
    Ok(code)
}

fn tell_changes(path: &str, upgraded: &UpgradedWorkflow) {
    let places = match upgraded.changes {
        0 => "nothing was to change".to_owned(),
        1 => "1 place changed".to_owned(),
        changes => format!("{changes} places changed"),
    };
    print::print_line(&format!("{path}: {places}"));
    let mut left: Vec<(&str, Vec<String>)> = Vec::new();
    for (line, what) in &upgraded.left {
        match left.iter_mut().find(|(known, _)| known == what) {
            Some((_, lines)) => lines.push(line.to_string()),
            None => left.push((what, vec![line.to_string()])),
        }
    }
    for (what, lines) in left {
        let word = if lines.len() == 1 { "line" } else { "lines" };
        print::print_line(&format!("{path}, {word} {}: left as it is: {what}", lines.join(", ")));
    }
    if path.split('/').any(|folder| folder == "pieces") {
        print::print_line("note: workflows are in `.takt/workflows` today, no longer in `.takt/pieces`");
    }
}
