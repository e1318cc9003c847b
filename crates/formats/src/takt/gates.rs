//! The quality gates of a movement: sentences for the agent, and commands that are run.

use cuegate_flow::diagnostics::Span;

use crate::values::json::{Entry, Fields, Json, Kind, Text};

/// What has to hold when a movement is done.
#[derive(Debug, Default)]
pub(crate) struct Gates<'j> {
    /// What the agent is told.
    pub(crate) texts: Vec<&'j str>,
    /// What is run after its answer.
    pub(crate) commands: Vec<GateCommand<'j>>,
}

/// A command that has to exit with 0.
#[derive(Debug, Clone)]
pub(crate) struct GateCommand<'j> {
    /// What the shell runs.
    pub(crate) command: &'j str,
    /// After how many milliseconds it is killed, which is a failure.
    pub(crate) timeout_ms: u64,
    /// Where it stands.
    pub(crate) span: Span,
}

/// When a command names no limit: ten minutes, as validators of step registries have.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// Reads `quality_gates` of a movement.
pub(crate) fn read<'j>(movement: &Fields<'j, '_>, step: &str) -> Gates<'j> {
    let mut gates = Gates::default();
    for item in movement.items("quality_gates") {
        match &item.kind {
            Kind::Text(text) if text.trim().is_empty() => {
                movement.invalid(item.span, "a quality gate is empty", "say what has to hold, or remove it");
            }
            Kind::Text(text) => gates.texts.push(text),
            Kind::Object(entries) => match sentence(entries) {
                Some(text) => movement.invalid(
                    item.span,
                    format!(
                        "`{text}` is an object and no text, as a colon with a blank behind begins a value"
                    ),
                    "put the text into quotes",
                ),
                None => gates.commands.extend(command(item, movement, step)),
            },
            _ => {
                movement.wrong_type("quality_gates", item, "a list of texts and of `{ command, timeout_ms }`")
            }
        }
    }
    gates
}

/// What an object with one key says when it was meant as a sentence: that begins with a capital, or has several words.
fn sentence(entries: &[Entry]) -> Option<String> {
    let [Entry { key, value, .. }] = entries else { return None };
    let is_said = key.starts_with(char::is_uppercase) || key.trim().contains(char::is_whitespace);
    value.as_text().filter(|_| is_said).map(|rest| format!("{key}: {rest}"))
}

fn command<'j>(item: &'j Json, movement: &Fields<'j, '_>, step: &str) -> Option<GateCommand<'j>> {
    let fields = Fields::of(item, "a quality gate", Some(step), movement.found)?;
    // The later versions' word for what `command` says already.
    fields.one_of("type", &["command"]);
    let command = fields.command("command");
    let timeout_ms = fields.count("timeout_ms", 1).map_or(TIMEOUT_MS, |(value, _)| u64::from(value));
    fields.finish();
    let Text { text, span } = command?;
    Some(GateCommand { command: text.trim(), timeout_ms, span })
}
