//! Pieces as one string; findings and drafts as text.

use cuegate_flow::model::{Act, Ask, Draft, Name, Step, Template};
use cuegate_formats::{LoadedDefinition, TaktOptions, load_takt_workflow};
use cuegate_testkit::definitions;

use crate::support::{Project, edit, findings_of, project};

/// The path of the sound piece.
pub const FILE: &str = ".takt/pieces/sound.yaml";

pub fn load(files: &Project, change: impl FnOnce(&mut TaktOptions)) -> LoadedDefinition {
    let mut options = TaktOptions { file: FILE.to_owned(), ..TaktOptions::default() };
    change(&mut options);
    load_takt_workflow(files, &options)
}

/// A step of a draft.
pub fn step<'d>(draft: &'d Draft, name: &str) -> &'d Step<Name> {
    draft.steps.iter().find(|step| &*step.name == name).unwrap_or_else(|| panic!("there is no step {name}"))
}

/// The ask of a step.
pub fn ask<'d>(draft: &'d Draft, name: &str) -> &'d Ask {
    match &step(draft, name).act {
        Act::Ask(ask) => ask,
        other => panic!("{name} does not ask: {other:?}"),
    }
}

/// A prompt as text.
pub fn prompt(template: &Template) -> String {
    crate::support::template(template).trim_matches(['“', '”']).replace('⏎', "\n")
}

/// A draft as text, without its prompts.
pub fn structure(draft: &Draft) -> String {
    let lines = crate::support::dump(draft);
    let silent = |line: &&str| !line.starts_with("  prompt ") && !line.starts_with("  system ");
    let cut = |line: &str| line.split(", with “").next().unwrap_or_default().to_owned();
    lines.lines().filter(silent).map(|line| cut(line) + "\n").collect()
}

/// The sound piece after some replacements.
pub fn changed(edits: &[(&str, &str)]) -> Project {
    edits.iter().fold(sound(), |files, (from, to)| edit(&files, from, to))
}

/// The findings in the sound piece after some replacements.
pub fn broken(edits: &[(&str, &str)]) -> String {
    findings_of(load(&changed(edits), |_| {}))
}

/// The files of the sound piece.
pub fn sound() -> Project {
    project(SOUND)
}

/// The sound piece: it has every key and no findings.
pub const SOUND: &str = definitions::PIECE;
