//! Programs that a definition brings along: kept with it as they are, and started the same ever after.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::Program,
};

use crate::lints;
use crate::source::loader::{Desk, Page};

/// Reads the program at a path of the project, which is named at `written`.
pub(crate) fn read_program(desk: &Desk<'_>, path: &str, written: Span) -> Option<Program> {
    let body = match desk.page(path) {
        Page::Text { text, .. } => text,
        Page::Missing => {
            desk.found.push(
                Diagnostic::error(lints::UNREADABLE_FILE, written, format!("there is no handler `{path}`"))
                    .hint("write it, or correct the path"),
            );
            return None;
        }
        Page::Faulty => return None,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    match start_of(name, &body) {
        Some(start) => Some(Program { path: path.into(), name: name.into(), start, body }),
        None => {
            let message = format!("it is unknown how to start `{name}`");
            let hint =
                "begin it with the line `#!/usr/bin/env PROGRAM`, or call it `.sh`, `.py`, `.js` or `.mjs`";
            desk.found.push(Diagnostic::error(lints::HANDLER_UNSTARTABLE, written, message).hint(hint));
            None
        }
    }
}

/// How a file is started: by the program that its first line names, else by its ending.
fn start_of(name: &str, text: &str) -> Option<Vec<Str>> {
    if let Some(line) = text.strip_prefix("#!") {
        // As the kernel reads it: a program, and all that follows as one argument.
        let line = line.lines().next().unwrap_or_default().trim();
        let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let words = [program, rest.trim()];
        return Some(words.into_iter().filter(|word| !word.is_empty()).map(Into::into).collect())
            .filter(|words: &Vec<Str>| !words.is_empty());
    }
    let program = match name.rsplit_once('.')?.1 {
        "sh" => "sh",
        "bash" => "bash",
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        _ => return None,
    };
    Some(vec![program.into()])
}

#[cfg(test)]
mod tests {
    use super::start_of;

    #[test]
    fn a_handler_is_started_by_its_first_line_or_by_its_ending() {
        for (name, text, expected) in [
            ("h.sh", "exit 0", Some(vec!["sh"])),
            ("h.py", "", Some(vec!["python3"])),
            ("h.mjs", "", Some(vec!["node"])),
            ("h.sh", "#!/bin/bash\nexit 0", Some(vec!["/bin/bash"])),
            ("h", "#! /usr/bin/env  python3\r\n", Some(vec!["/usr/bin/env", "python3"])),
            ("h.ts", "#!/usr/bin/env -S deno run\n", Some(vec!["/usr/bin/env", "-S deno run"])),
            ("h.ts", "export default 1", None),
            ("h", "echo", None),
            ("h", "#!\n", None),
        ] {
            let start = start_of(name, text);
            let words = start.as_ref().map(|start| start.iter().map(|word| &**word).collect::<Vec<_>>());
            assert_eq!(words, expected, "{name} {text}");
        }
    }
}
