//! For each code a definition that shows it and nothing else, and the same one mended.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::checks::check;
use cuegate_testkit::definitions::{self, Project, edit, project};

use super::{ALL, FILES, TWINS, flow_examples::FLOW};
use crate::{Loaded, Options, PieceOptions, load_agent, load_piece};

/// What is replaced by what, one after another; each text has to stand exactly once. Nothing is replaced by a file
/// (`//- PATH` above its text), and the name of a file (`//- PATH`) by nothing.
type Edits = &'static [(&'static str, &'static str)];

/// A definition that shows a code and no other, and the same one mended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twins {
    base: Base,
    /// What is broken in a sound definition.
    broken: Edits,
    /// What no text can say, done last.
    spoiled: Option<fn(&mut Project)>,
    /// What the page advises, done to the broken one.
    mended: Edits,
}

/// A sound definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    Closing,
    Unguarded,
    Complete,
    CheckFlow,
    Piece,
}

const fn twins(base: Base, broken: Edits, mended: Edits) -> Twins {
    Twins { base, broken, spoiled: None, mended }
}

/// Of a registry of the "closing" generation.
pub(super) const fn closing(broken: Edits, mended: Edits) -> Twins {
    twins(Base::Closing, broken, mended)
}

/// Of a registry of the "closing" generation without validators.
pub(super) const fn unguarded(broken: Edits, mended: Edits) -> Twins {
    twins(Base::Unguarded, broken, mended)
}

/// Of a registry of the "complete" generation.
pub(super) const fn complete(broken: Edits, mended: Edits) -> Twins {
    twins(Base::Complete, broken, mended)
}

/// Of a check flow.
pub(super) const fn check_flow(broken: Edits, mended: Edits) -> Twins {
    twins(Base::CheckFlow, broken, mended)
}

/// Of a piece.
pub(super) const fn piece(broken: Edits, mended: Edits) -> Twins {
    twins(Base::Piece, broken, mended)
}

impl Twins {
    /// With something that no text can say done to the broken one.
    pub(super) const fn spoiled(self, how: fn(&mut Project)) -> Twins {
        Twins { spoiled: Some(how), ..self }
    }
}

fn sound(base: Base) -> Project {
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

fn edited(mut files: Project, edits: Edits) -> Project {
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

fn load(files: &Project, base: Base) -> Loaded {
    let agent = |dir: &str| load_agent(files, &Options { agent_dir: dir.to_owned(), ..Options::default() });
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

/// By code, how bad it is said to be, with a line for each finding.
fn found(files: &Project, base: Base) -> BTreeMap<&'static str, (BTreeSet<&'static str>, Vec<String>)> {
    let loaded = load(files, base);
    let mut all = loaded.diagnostics;
    if !loaded.draft.steps.is_empty() {
        all.extend(check(loaded.draft).diagnostics);
    }
    let mut found: BTreeMap<&str, (BTreeSet<&str>, Vec<String>)> = BTreeMap::new();
    // Cycles are what definitions are made of: twins show nothing else.
    for finding in all.into_iter().filter(|finding| finding.code != "unbounded-cycle") {
        let (severities, messages) = found.entry(finding.code).or_default();
        severities.insert(finding.severity.as_str());
        messages.push(finding.message);
    }
    found
}

/// What `docs/findings.md` says below the name of a code: how bad it is, and where.
fn kept(code: &str) -> (BTreeSet<&'static str>, &'static str) {
    const PAGE: &str = include_str!("../../../../docs/findings.md");
    let (_, rest) = PAGE.split_once(&format!("\n## `{code}`: ")).unwrap_or_else(|| panic!("no `{code}`"));
    let line = rest.lines().nth(2).unwrap();
    let (severities, formats) = line.trim_start_matches("**").split_once("**, ").unwrap();
    (severities.split(" or ").collect(), formats)
}

fn table() -> Vec<(&'static str, &'static [Twins])> {
    let files = ALL.iter().map(|code| code.name).zip(TWINS.iter().copied());
    files.chain(FLOW.iter().copied()).collect()
}

#[test]
fn the_broken_one_shows_its_code_and_nothing_else() {
    let mut wrong = Vec::new();
    for (code, twins) in table() {
        let mut severities = BTreeSet::new();
        for (at, twins) in twins.iter().enumerate() {
            let mut files = edited(sound(twins.base), twins.broken);
            if let Some(how) = twins.spoiled {
                how(&mut files);
            }
            let found = found(&files, twins.base);
            if found.keys().copied().collect::<Vec<_>>() != [code] {
                wrong.push(format!("{code} {at}, {:?}: {found:#?}", twins.base));
            }
            severities.extend(found.values().flat_map(|(severities, _)| severities.iter().copied()));
        }
        // The check of the flow reports the codes of `FLOW` as well, with further severities.
        let is_of_flow = FLOW.iter().any(|(name, _)| *name == code);
        let kept = kept(code).0;
        if severities != kept && !(is_of_flow && severities.is_subset(&kept)) {
            wrong.push(format!("{code}: `docs/findings.md` does not say {severities:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_mended_one_shows_nothing() {
    let mut wrong = Vec::new();
    for (code, twins) in table() {
        for (at, twins) in twins.iter().enumerate() {
            let broken = edited(sound(twins.base), twins.broken);
            let found = found(&edited(broken, twins.mended), twins.base);
            if !found.is_empty() {
                wrong.push(format!("{code} {at}, {:?}: {found:#?}", twins.base));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each code has its twins, in each format that it is found in.
#[test]
fn every_code_has_twins_where_it_occurs() {
    let mut wrong = Vec::new();
    assert_eq!(FILES.len(), ALL.len());
    for (code, twins) in table() {
        let bases: BTreeSet<Base> = twins.iter().map(|twins| twins.base).collect();
        let has = |wanted: &[Base]| wanted.iter().any(|base| bases.contains(base));
        for format in kept(code).1.split(", ") {
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
