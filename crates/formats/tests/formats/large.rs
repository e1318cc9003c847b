//! Definitions of any size: sound ones are found sound, nothing goes as deep as they are long, and no file is read twice.

use std::{collections::BTreeMap, sync::Mutex, thread};

use cuegate_flow::{
    analysis::cost_bound::{Terms, price_flow},
    checks::check_draft,
    diagnostics::Severity,
};
use cuegate_formats::{
    AgentOptions, Files, LoadedDefinition, ReadError, TaktOptions, load_agent, load_takt_workflow,
};
use cuegate_testkit::large::{Flaw, Large, Shape, chain_of_movements, chain_of_steps, piece, registry};

/// Files that note how often each of them is read.
struct Counted {
    files: BTreeMap<String, Vec<u8>>,
    reads: Mutex<BTreeMap<String, usize>>,
}

impl Files for Counted {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        *self.reads.lock().expect("no reader panics").entry(path.to_owned()).or_default() += 1;
        self.files.read(path)
    }
}

fn load(made: &Large, files: &dyn Files) -> LoadedDefinition {
    match made.path.ends_with(".yaml") {
        true => load_takt_workflow(files, &TaktOptions { file: made.path.clone(), ..TaktOptions::default() }),
        false => load_agent(files, &AgentOptions { agent_dir: made.path.clone(), ..AgentOptions::default() }),
    }
}

/// Code, step and length of the path of each finding, those of the flow last.
fn found(made: &Large) -> Vec<(&'static str, String, usize)> {
    let loaded = load(made, &made.bytes());
    let mut found = loaded.diagnostics;
    found.extend(check_draft(loaded.draft).diagnostics);
    found.retain(|finding| finding.severity != Severity::Note);
    let step = |finding: &cuegate_flow::diagnostics::Diagnostic| {
        finding.step.as_deref().unwrap_or_default().to_owned()
    };
    found.iter().map(|finding| (finding.code, step(finding), finding.trace.len())).collect()
}

#[test]
fn large_definitions_are_sound_and_their_flaws_are_found() {
    for made in [registry(60, Flaw::None), piece(60, Flaw::None)] {
        assert_eq!(found(&made), [], "{}", made.path);
        assert_eq!(made.steps, 60);
    }
    // Past five stages of six steps each, and into the sixth by the branch that leaves no notes.
    assert_eq!(
        found(&registry(60, Flaw::Far)),
        [("unassigned-value", "verification.s5-check".to_owned(), 33)]
    );
    assert_eq!(found(&registry(60, Flaw::Everywhere)).len(), 6);
    assert_eq!(found(&piece(60, Flaw::Far)), [("join-never-fires", "review-9".to_owned(), 0)]);
    assert_eq!(found(&piece(60, Flaw::Everywhere)).len(), 10);
}

#[test]
fn every_file_is_read_once() {
    for made in [registry(300, Flaw::None), piece(60, Flaw::None)] {
        let files = Counted { files: made.bytes(), reads: Mutex::default() };
        load(&made, &files);
        let reads = files.reads.into_inner().expect("no reader panics");
        let again: Vec<_> = reads.iter().filter(|(_, times)| **times > 1).collect();
        assert!(again.is_empty(), "{again:?}");
        assert!(made.files.keys().all(|path| reads.contains_key(path)), "all files belong to it");
    }
}

#[test]
fn findings_are_the_same_each_time() {
    let made = registry(300, Flaw::Everywhere);
    let mut files = made.bytes();
    // Prompts and a file of schemas that are not there: several steps name each.
    let missing: Vec<String> = files
        .keys()
        .filter(|path| path.contains("-check/") || path.ends_with("steps-1.schema.json"))
        .cloned()
        .collect();
    assert!(missing.len() > 2, "{missing:?}");
    missing.iter().for_each(|path| assert!(files.remove(path).is_some()));
    let found = || {
        let loaded = load(&made, &files);
        let place = |finding: &cuegate_flow::diagnostics::Diagnostic| {
            let file = loaded.sources.get(finding.span.file).map(|file| file.path.clone());
            (file, finding.span.start, finding.message.clone(), finding.step.clone(), finding.hint.clone())
        };
        loaded.diagnostics.iter().map(place).collect::<Vec<_>>()
    };
    let first = found();
    let of_file = first.iter().filter(|finding| finding.2.contains("no schema file")).count();
    assert!(of_file > 0 && first.len() >= missing.len());
    (0..8).for_each(|_| assert_eq!(found(), first));
}

#[test]
fn nothing_goes_as_deep_as_a_definition_is_long() {
    const STEPS: usize = 4_000;
    /// A quarter of a kibibyte for each step, which no call of a function does with.
    const STACK: usize = STEPS << 8;
    let shapes = [Shape::Line, Shape::Ring];
    let made =
        shapes.into_iter().flat_map(|shape| [chain_of_steps(STEPS, shape), chain_of_movements(STEPS, shape)]);
    for made in made {
        let walked = thread::Builder::new().stack_size(STACK).spawn(move || {
            let loaded = load(&made, &made.bytes());
            assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics.first());
            let checked = check_draft(loaded.draft);
            let flow = checked.flow.expect("it is sound");
            let iterations_max = flow.limits.iterations_max;
            price_flow(&flow, &Terms { iterations_max, ..Terms::default() }).iterations
        });
        let iterations = walked.unwrap().join().expect("its stack suffices");
        assert!(iterations >= STEPS as u64, "{iterations}");
    }
}
