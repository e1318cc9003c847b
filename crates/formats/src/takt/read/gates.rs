//! Reads the quality gates of a step: sentences for the agent, and shell commands.

use std::borrow::Cow;

use cuegate_flow::diagnostics::Span;

use crate::values::json::{Entry, Fields, Json, Kind, Text};

/// The conditions that finished work must meet.
#[derive(Debug, Default)]
pub(crate) struct Gates<'j> {
    /// Sentences for the agent's prompt.
    pub(crate) texts: Vec<&'j str>,
    /// Commands that run after the agent's answer.
    pub(crate) commands: Vec<GateCommand<'j>>,
}

/// A command that must exit with 0.
#[derive(Debug, Clone)]
pub(crate) struct GateCommand<'j> {
    /// The shell command line.
    pub(crate) command: Cow<'j, str>,
    /// The time limit in milliseconds. A command that exceeds it is killed and counts as failed.
    pub(crate) timeout_ms: u64,
    /// The place in the file.
    pub(crate) span: Span,
}

/// The default time limit of a command: ten minutes, as for the validators of step registries.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// Reads `quality_gates` of a step.
pub(crate) fn read_quality_gates<'j>(owner: &Fields<'j, '_>, step: &str) -> Gates<'j> {
    let mut gates = Gates::default();
    for item in owner.items("quality_gates") {
        match &item.kind {
            Kind::Text(text) if text.trim().is_empty() => {
                owner.invalid(item.span, "a quality gate is empty", "say what has to hold, or remove it");
            }
            // A full-width colon does not make a YAML mapping.
            Kind::Text(text) => match text.trim().strip_prefix("command：").map(str::trim) {
                Some(command) if !command.is_empty() => {
                    gates.commands.push(GateCommand {
                        command: command.into(),
                        timeout_ms: TIMEOUT_MS,
                        span: item.span,
                    });
                }
                _ => gates.texts.push(text),
            },
            Kind::Object(entries) => match rebuild_sentence(entries) {
                Some(text) => owner.invalid(
                    item.span,
                    format!(
                        "`{text}` is an object and no text, as a colon with a blank behind begins a value"
                    ),
                    "put the text into quotes",
                ),
                None => gates.commands.extend(read_gate_command(item, owner, step)),
            },
            _ => owner.wrong_type("quality_gates", item, "a list of texts and of `{ command, timeout_ms }`"),
        }
    }
    gates
}

/// Rebuilds the sentence that YAML parsed as an object with one key, if the key starts with a capital or has several
/// words.
fn rebuild_sentence(entries: &[Entry]) -> Option<String> {
    let [Entry { key, value, .. }] = entries else { return None };
    let is_said = key.starts_with(char::is_uppercase) || key.trim().contains(char::is_whitespace);
    value.as_text().filter(|_| is_said).map(|rest| format!("{key}: {rest}"))
}

fn read_gate_command<'j>(item: &'j Json, owner: &Fields<'j, '_>, step: &str) -> Option<GateCommand<'j>> {
    let fields = Fields::of(item, "a quality gate", Some(step), owner.found)?;
    // `type` is a key of later versions; `command` already implies it.
    fields.one_of("type", &["command"]);
    // A name is for people.
    fields.shunned("name");
    let folder = fields.text("cwd").map(|folder| folder.text.trim());
    let command = fields.command("command");
    let timeout_ms = fields.count("timeout_ms", 1).map_or(TIMEOUT_MS, |(value, _)| u64::from(value));
    fields.finish();
    let Text { text, span } = command?;
    let command = match folder.filter(|folder| !matches!(*folder, "" | "." | "./")) {
        Some(folder) => format!("cd '{}' && {{ {text}\n}}", folder.replace('\'', r"'\''")).into(),
        None => text.trim().into(),
    };
    Some(GateCommand { command, timeout_ms, span })
}
