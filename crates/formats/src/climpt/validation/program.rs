//! Programs that a definition brings along: kept with it as they are, and started the same ever after.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::Program,
};

use crate::codes;
use crate::source::loader::{LoadedFile, SourceLoader};

/// Reads the program at a path of the project, which is named at `written`.
pub(crate) fn read_program(loader: &SourceLoader<'_>, path: &str, written: Span) -> Option<Program> {
    let body = match loader.page(path) {
        LoadedFile::Text { text, .. } => text,
        LoadedFile::Missing => {
            loader.found.push(
                Diagnostic::error(codes::UNREADABLE_FILE, written, format!("there is no handler `{path}`"))
                    .hint("write it, or correct the path"),
            );
            return None;
        }
        LoadedFile::Faulty => return None,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    match start_of(name, &body) {
        Some(start) => Some(Program { path: path.into(), name: name.into(), start, body }),
        None => {
            let message = format!("it is unknown how to start `{name}`");
            let hint =
                "begin it with the line `#!/usr/bin/env PROGRAM`, or call it `.sh`, `.py`, `.js` or `.mjs`";
            loader.found.push(Diagnostic::error(codes::HANDLER_UNSTARTABLE, written, message).hint(hint));
            None
        }
    }
}

/// Imports a module and calls the handler that it exports.
const MODULE_ADAPTER: &str = include_str!("module_adapter.mjs");

/// Starts the adapter, which is `$0`, with the module, which is `$1`.
const START_SCRIPT: &str = "if command -v node >/dev/null; then exec node --input-type=module -e \"$0\" \"$1\"; fi; \
                            if command -v deno >/dev/null; then exec deno eval \"$0\" \"$1\"; fi; \
                            echo 'a module needs node or deno' >&2; exit 127";

/// As [`START_SCRIPT`], for TypeScript. Node runs it since version 22.6.
const START_TYPESCRIPT: &str = "if command -v deno >/dev/null; then exec deno eval \"$0\" \"$1\"; fi; \
                                if command -v node >/dev/null; then \
                                exec node --experimental-strip-types --input-type=module -e \"$0\" \"$1\"; fi; \
                                echo 'a TypeScript module needs deno, or node 22.6 or newer' >&2; exit 127";

/// Whether a text is a JavaScript module: it exports something.
fn has_exports(text: &str) -> bool {
    const WORDS: [&str; 9] = ["default", "const", "let", "var", "function", "async", "class", "{", "*"];
    let statements = text.split(['\n', ';', '}']);
    statements.filter_map(|statement| statement.trim_start().strip_prefix("export")).any(|rest| {
        let rest = rest.trim_start();
        WORDS.iter().any(|word| rest.starts_with(word))
    })
}

/// How a file is started: by the program that its first line names, else by its ending. A module is imported.
fn start_of(name: &str, text: &str) -> Option<Vec<Str>> {
    if let Some(line) = text.strip_prefix("#!") {
        // As the kernel reads it: a program, and all that follows as one argument.
        let line = line.lines().next().unwrap_or_default().trim();
        let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let words = [program, rest.trim()];
        return Some(words.into_iter().filter(|word| !word.is_empty()).map(Into::into).collect())
            .filter(|words: &Vec<Str>| !words.is_empty());
    }
    let script = match name.rsplit_once('.')?.1 {
        "js" | "mjs" => START_SCRIPT,
        "ts" | "mts" => START_TYPESCRIPT,
        _ => "",
    };
    if !script.is_empty() && has_exports(text) {
        return Some(["sh", "-c", script, MODULE_ADAPTER].map(Into::into).into());
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
    use super::{MODULE_ADAPTER, START_SCRIPT, START_TYPESCRIPT, start_of};

    #[test]
    fn a_handler_is_started_by_its_first_line_or_by_its_ending() {
        for (name, text, expected) in [
            ("h.sh", "exit 0", Some(vec!["sh"])),
            ("h.py", "", Some(vec!["python3"])),
            ("h.mjs", "", Some(vec!["node"])),
            ("h.sh", "#!/bin/bash\nexit 0", Some(vec!["/bin/bash"])),
            ("h", "#! /usr/bin/env  python3\r\n", Some(vec!["/usr/bin/env", "python3"])),
            ("h.ts", "#!/usr/bin/env -S deno run\n", Some(vec!["/usr/bin/env", "-S deno run"])),
            ("h.ts", "console.log(1)", None),
            ("h.mjs", "export default 1", Some(vec!["sh", "-c", START_SCRIPT, MODULE_ADAPTER])),
            ("h.ts", "const a = 1;\nexport { a }", Some(vec!["sh", "-c", START_TYPESCRIPT, MODULE_ADAPTER])),
            ("h", "echo", None),
            ("h", "#!\n", None),
        ] {
            let start = start_of(name, text);
            let words = start.as_ref().map(|start| start.iter().map(|word| &**word).collect::<Vec<_>>());
            assert_eq!(words, expected, "{name} {text}");
        }
    }
}
