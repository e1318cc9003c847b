//! The programs that an agent names, copied to the same places in the new folder.

use serde_json::Value;

use super::{MigratedFile, Migration, Source};
use crate::desk::Page;
use crate::files::{join, lies_in};

/// Copies them.
pub(super) fn migrate(agent: Option<&Value>, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let Some(runner) = agent.and_then(|agent| agent.get("runner")) else { return };
    for (key, handler) in runner["actions"]["handlers"].as_object().into_iter().flatten() {
        if let Some(path) = handler.as_str().and_then(|text| text.strip_prefix("exec:")) {
            copy(&format!("runner.actions.handlers.{key}"), path.trim(), source, migration);
        }
    }
    of_verdict("runner.verdict", &runner["verdict"], source, migration);
}

/// Also those of combined verdicts.
fn of_verdict(place: &str, verdict: &Value, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let config = &verdict["config"];
    if let Some(path) = config["handlerPath"].as_str() {
        copy(&format!("{place}.config.handlerPath"), path, source, migration);
    }
    for (index, condition) in config["conditions"].as_array().into_iter().flatten().enumerate() {
        of_verdict(&format!("{place}.config.conditions[{index}]"), condition, source, migration);
    }
}

/// Copies one. What is no file of the agent's folder is no program.
fn copy(place: &str, path: &str, source: &Source<'_, '_, '_>, migration: &mut Migration) {
    let dir = source.places.agent_dir;
    let Some(from) = join(dir, path).filter(|from| lies_in(from, dir)) else { return };
    let Page::Text { text, .. } = source.desk.page(&from) else { return };
    let to = from[dir.len()..].trim_start_matches('/').to_owned();
    match migration.at(&to) {
        None => {
            migration.files.push(MigratedFile { path: to, text: text.to_string(), program: Some(from) });
        }
        Some(known) if known.text == *text => {}
        Some(_) => {
            let text = format!("copy `{path}` under another name: another file has its place now");
            migration.note(place, text, true);
        }
    }
}
