//! `runner.actions`: blocks in answers by which an agent asks for something to be done.

use cuegate_flow::{Actions, Diagnostic, Reaction, Str};

use crate::codes;
use crate::files::{join, lies_in};
use crate::json::{Fields, Text};

/// The word after the fence of a block, when none is written.
const MARKER: &str = "json";

/// A handler that is a program, and where its name is written: whether it is there is seen when the files are opened.
#[derive(Debug)]
pub(crate) struct HandlerFile<'j> {
    /// Its path in the project.
    pub(crate) path: String,
    /// As written.
    pub(crate) written: Text<'j>,
}

/// Reads `actions`. `None` when they are off: then blocks are text like any other.
pub(super) fn read_actions<'j>(
    actions: Fields<'j, '_>,
    agent_dir: &str,
    files: &mut Vec<HandlerFile<'j>>,
) -> Option<Actions> {
    if actions.entry("enabled").is_none() {
        actions.missing("enabled");
    }
    let enabled = actions.boolean("enabled").is_some_and(|(enabled, _)| enabled);
    let types = actions.texts("types");
    let marker = actions.filled("outputFormat").map_or(MARKER, |marker| marker.text.trim());
    let mut handlers = Vec::new();
    for entry in actions.names("handlers") {
        let Some(text) = entry.value.as_text() else {
            actions.wrong_type(&entry.key, &entry.value, "the name of a handler");
            continue;
        };
        let written = Text { text, span: entry.value.span };
        if let Some(known) = types.as_ref().filter(|known| known.iter().all(|kind| *kind.text != *entry.key))
        {
            let names: Vec<&str> = known.iter().map(|kind| kind.text).collect();
            let message = format!("the handler of `{}` is never called: `types` does not list it", entry.key);
            let hint = match crate::nearest::nearest(&entry.key, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{}` to `types`, or remove the handler", entry.key),
            };
            actions.inert(entry.key_span, message, &hint);
        }
        if let Some(handler) = read_handler(written, agent_dir, &actions, enabled, files) {
            handlers.push((entry.key.clone(), handler));
        }
    }
    let types = types.map(|types| types.iter().map(|kind| Str::from(kind.text)).collect());
    if !enabled {
        for key in ["types", "outputFormat", "handlers"] {
            actions.stray(key, "`enabled` is false; make it true, or remove them");
        }
    }
    actions.finish();
    enabled.then(|| Actions { marker: marker.into(), types, handlers })
}

fn read_handler<'j>(
    written: Text<'j>,
    agent_dir: &str,
    actions: &Fields<'j, '_>,
    enabled: bool,
    files: &mut Vec<HandlerFile<'j>>,
) -> Option<Reaction> {
    match written.text {
        "log" => return Some(Reaction::Log),
        "github:comment" | "github:label" => {
            if enabled {
                let statement = format!("the handler `{}` is not supported yet", written.text);
                actions.found.left_out(
                    written.span,
                    statement,
                    "use `exec:PATH` with a program that does it, or `log`",
                );
            }
            return Some(Reaction::Unsupported(written.text.into()));
        }
        _ => {}
    }
    let Some(path) = written.text.strip_prefix("exec:").filter(|path| !path.trim().is_empty()) else {
        let hint = "use `log`, `github:comment`, `github:label` or `exec:PATH`";
        actions.invalid(written.span, format!("`{}` is no handler", written.text), hint);
        return None;
    };
    match join(agent_dir, path.trim()).filter(|path| lies_in(path, agent_dir)) {
        Some(path) => {
            if enabled {
                files.push(HandlerFile { path: path.clone(), written });
            }
            Some(Reaction::Exec(path.into()))
        }
        None => {
            let message = format!("`{path}` leads out of the agent's folder");
            actions.push(
                Diagnostic::error(codes::ESCAPES_ROOT, written.span, message)
                    .hint("keep the handler in the agent's folder"),
            );
            None
        }
    }
}
