//! Reads `runner.actions`: blocks in answers with which an agent requests an action.

use cuegate_flow::{
    Str,
    diagnostics::Diagnostic,
    model::{Actions, Reaction},
};

use crate::codes;
use crate::source::files::{join_path, lies_in};
use crate::values::json::{Fields, Text};

/// The default fence word of an action block.
const MARKER: &str = "json";

/// A handler that is a program, with the place of its name. Whether the file exists is checked when the files are
/// opened.
#[derive(Debug)]
pub(crate) struct HandlerFile<'j> {
    /// The action type it handles.
    pub(crate) action: Str,
    /// Its path in the project.
    pub(crate) path: String,
    /// The handler name as written.
    pub(crate) written: Text<'j>,
}

/// The kind of handler that a name selects.
enum NamedHandler {
    /// A built-in handler without settings.
    Known(Reaction),
    /// A program, by its path in the project.
    File(String),
}

/// Reads `actions`. `None` when they are disabled: action blocks are then plain text.
pub(crate) fn read_actions<'j>(
    actions: Fields<'j, '_>,
    agent_dir: &str,
    files: &mut Vec<HandlerFile<'j>>,
) -> Option<Actions> {
    if actions.entry("enabled").is_none() {
        actions.missing("enabled");
    }
    let written = actions.boolean("enabled");
    let enabled = written.is_some_and(|(enabled, _)| enabled);
    let types = actions.texts("types");
    let types_read = !actions.is_poisoned("types");
    let marker = actions.filled("outputFormat").map_or(MARKER, |marker| marker.text.trim());
    let mut handlers = Vec::new();
    for entry in actions.names("handlers") {
        let Some(text) = entry.value.as_text() else {
            actions.wrong_type(&entry.key, &entry.value, "the name of a handler");
            continue;
        };
        let written = Text { text, span: entry.value.span };
        let is_unknown = |known: &&Vec<Text<'_>>| known.iter().all(|kind| *kind.text != *entry.key);
        if let Some(known) = types.as_ref().filter(|known| types_read && is_unknown(known)) {
            let names: Vec<&str> = known.iter().map(|kind| kind.text).collect();
            let message = format!("the handler of `{}` is never called: `types` does not list it", entry.key);
            let hint = match crate::suggest::find_nearest_name(&entry.key, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{}` to `types`, or remove the handler", entry.key),
            };
            actions.inert(entry.key_span, message, &hint);
        }
        match read_handler(written, agent_dir, &actions) {
            Some(NamedHandler::Known(handler)) => handlers.push((entry.key.clone(), handler)),
            Some(NamedHandler::File(path)) if enabled => {
                files.push(HandlerFile { action: entry.key.clone(), path, written })
            }
            Some(NamedHandler::File(_)) | None => {}
        }
    }
    let types = types.map(|types| types.iter().map(|kind| Str::from(kind.text)).collect());
    if written.is_some() && !enabled {
        let why = "`enabled` is false; make it true, or remove what it turns off";
        actions.strays(&["types", "outputFormat", "handlers"], why);
    }
    actions.finish();
    enabled.then(|| Actions { marker: marker.into(), types, handlers })
}

fn read_handler<'j>(written: Text<'j>, agent_dir: &str, actions: &Fields<'j, '_>) -> Option<NamedHandler> {
    match written.text {
        "log" => return Some(NamedHandler::Known(Reaction::Log)),
        "github:comment" => return Some(NamedHandler::Known(Reaction::Comment)),
        "github:label" => return Some(NamedHandler::Known(Reaction::Label)),
        _ => {}
    }
    let Some(path) = written.text.strip_prefix("exec:").filter(|path| !path.trim().is_empty()) else {
        let hint = "use `log`, `github:comment`, `github:label` or `exec:PATH`";
        actions.invalid(written.span, format!("unknown handler `{}`", written.text), hint);
        return None;
    };
    match join_path(agent_dir, path.trim()).filter(|path| lies_in(path, agent_dir)) {
        Some(path) => Some(NamedHandler::File(path)),
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
