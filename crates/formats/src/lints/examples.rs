//! Example pairs: for each code, a definition that triggers only this code, and its fixed version.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::checks::check_draft;
use cuegate_testkit::definitions::{self, Project, edit, project};

use super::{ALL, FILES, TWINS, flow_examples::FLOW};
use crate::{AgentOptions, LoadedDefinition, PieceOptions, load_agent, load_piece};

/// Replacements, applied in order. Each search text must occur exactly once. A pair with an empty search text whose
/// replacement starts with `//- PATH` adds that file; replacing the search text `//- PATH` by nothing removes it.
type Edits = &'static [(&'static str, &'static str)];

/// A definition that triggers one code, and its fixed version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twins {
    base: Base,
    /// The edits that break a valid base.
    broken: Edits,
    /// A final change that cannot be written as a text edit.
    spoiled: Option<fn(&mut Project)>,
    /// The edits that the page recommends, applied to the broken version.
    mended: Edits,
}

/// A valid definition to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    Closing,
    Unguarded,
    Complete,
    CheckFlow,
    Piece,
}

const fn build_twins(base: Base, broken: Edits, mended: Edits) -> Twins {
    Twins { base, broken, spoiled: None, mended }
}

/// Based on a registry of the "closing" generation.
pub(super) const fn twins_of_closing(broken: Edits, mended: Edits) -> Twins {
    build_twins(Base::Closing, broken, mended)
}

/// Based on a registry of the "closing" generation without validators.
pub(super) const fn twins_of_unguarded(broken: Edits, mended: Edits) -> Twins {
    build_twins(Base::Unguarded, broken, mended)
}

/// Based on a registry of the "complete" generation.
pub(super) const fn twins_of_complete(broken: Edits, mended: Edits) -> Twins {
    build_twins(Base::Complete, broken, mended)
}

/// Based on a check flow.
pub(super) const fn twins_of_check_flow(broken: Edits, mended: Edits) -> Twins {
    build_twins(Base::CheckFlow, broken, mended)
}

/// Based on a piece.
pub(super) const fn twins_of_piece(broken: Edits, mended: Edits) -> Twins {
    build_twins(Base::Piece, broken, mended)
}

impl Twins {
    /// Adds a change that cannot be written as a text edit.
    pub(super) const fn spoiled(self, how: fn(&mut Project)) -> Twins {
        Twins { spoiled: Some(how), ..self }
    }
}

fn files_of_base(base: Base) -> Project {
    match base {
        Base::Closing => project(definitions::CLOSING),
        Base::Unguarded => {
            let (before, rest) = definitions::CLOSING.split_once("  \"failurePatterns\": {").unwrap();
            let (_, steps) = rest.split_once("  \"steps\": {").unwrap();
            project(&format!("{before}  \"steps\": {{{steps}"))
        }
        Base::Complete => project(definitions::COMPLETE),
        Base::CheckFlow => project(definitions::CHECK_FLOW),
        Base::Piece => project(definitions::PIECE),
    }
}

fn apply_edits(mut files: Project, edits: Edits) -> Project {
    for (from, to) in edits {
        match (*from, *to) {
            ("", to) => files.extend(project(to)),
            (from, "") if from.starts_with("//- ") => {
                files.remove(&from[4..]).unwrap_or_else(|| panic!("there is no {from}"));
            }
            (from, to) => files = edit(&files, from, to),
        }
    }
    files
}

fn load_example(files: &Project, base: Base) -> LoadedDefinition {
    let agent =
        |dir: &str| load_agent(files, &AgentOptions { agent_dir: dir.to_owned(), ..AgentOptions::default() });
    match base {
        Base::Closing | Base::Unguarded => agent(".agent/fixer"),
        Base::Complete => agent(".agent/solver"),
        Base::CheckFlow => agent(".agent/improver"),
        Base::Piece => {
            let file = ".takt/pieces/sound.yaml".to_owned();
            load_piece(files, &PieceOptions { file, ..PieceOptions::default() })
        }
    }
}

/// The severities and the messages of the findings, by code.
fn collect_findings_by_code(
    files: &Project,
    base: Base,
) -> BTreeMap<&'static str, (BTreeSet<&'static str>, Vec<String>)> {
    let loaded = load_example(files, base);
    let mut all = loaded.diagnostics;
    if !loaded.draft.steps.is_empty() {
        all.extend(check_draft(loaded.draft).diagnostics);
    }
    let mut found: BTreeMap<&str, (BTreeSet<&str>, Vec<String>)> = BTreeMap::new();
    // The base definitions contain cycles, so this code always occurs.
    for finding in all.into_iter().filter(|finding| finding.code != "unbounded-cycle") {
        let (severities, messages) = found.entry(finding.code).or_default();
        severities.insert(finding.severity.as_str());
        messages.push(finding.message);
    }
    found
}

/// The severities and the section that `docs/findings.md` records for a code.
fn read_documented_code(code: &str) -> (BTreeSet<&'static str>, &'static str) {
    const PAGE: &str = include_str!("../../../../docs/findings.md");
    let (_, rest) = PAGE.split_once(&format!("\n## `{code}`: ")).unwrap_or_else(|| panic!("no `{code}`"));
    let line = rest.lines().nth(2).unwrap();
    let (severities, formats) = line.trim_start_matches("**").split_once("**, ").unwrap();
    (severities.split(" or ").collect(), formats)
}

fn list_all_twins() -> Vec<(&'static str, &'static [Twins])> {
    let files = ALL.iter().map(|code| code.name).zip(TWINS.iter().copied());
    files.chain(FLOW.iter().copied()).collect()
}

#[test]
fn the_broken_one_shows_its_code_and_nothing_else() {
    let mut wrong = Vec::new();
    for (code, twins) in list_all_twins() {
        let mut severities = BTreeSet::new();
        for (at, twins) in twins.iter().enumerate() {
            let mut files = apply_edits(files_of_base(twins.base), twins.broken);
            if let Some(how) = twins.spoiled {
                how(&mut files);
            }
            let found = collect_findings_by_code(&files, twins.base);
            if found.keys().copied().collect::<Vec<_>>() != [code] {
                wrong.push(format!("{code} {at}, {:?}: {found:#?}", twins.base));
            }
            severities.extend(found.values().flat_map(|(severities, _)| severities.iter().copied()));
        }
        // The flow check reports the codes of `FLOW` too, with other severities.
        let is_of_flow = FLOW.iter().any(|(name, _)| *name == code);
        let kept = read_documented_code(code).0;
        if severities != kept && !(is_of_flow && severities.is_subset(&kept)) {
            wrong.push(format!("{code}: `docs/findings.md` does not say {severities:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_mended_one_shows_nothing() {
    let mut wrong = Vec::new();
    for (code, twins) in list_all_twins() {
        for (at, twins) in twins.iter().enumerate() {
            let broken = apply_edits(files_of_base(twins.base), twins.broken);
            let found = collect_findings_by_code(&apply_edits(broken, twins.mended), twins.base);
            if !found.is_empty() {
                wrong.push(format!("{code} {at}, {:?}: {found:#?}", twins.base));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every code has examples for each format that can trigger it.
#[test]
fn every_code_has_twins_where_it_occurs() {
    let mut wrong = Vec::new();
    assert_eq!(FILES.len(), ALL.len());
    for (code, twins) in list_all_twins() {
        let bases: BTreeSet<Base> = twins.iter().map(|twins| twins.base).collect();
        let has = |wanted: &[Base]| wanted.iter().any(|base| bases.contains(base));
        for format in read_documented_code(code).1.split(", ") {
            let enough = match format {
                "flow" => true,
                "pieces" => has(&[Base::Piece]),
                "check flows" => has(&[Base::CheckFlow]),
                "step registries" => has(&[Base::Closing, Base::Unguarded, Base::Complete, Base::CheckFlow]),
                _ => has(&[Base::Complete]),
            };
            if !enough {
                wrong.push(format!("{code}: no twins of {format}"));
            }
        }
        if bases.is_empty() {
            wrong.push(format!("{code}: no twins"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
