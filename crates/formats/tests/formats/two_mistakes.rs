//! Two mistakes are no more than two findings: what is misspelt is read as what was meant, whatever else is wrong.
//!
//! But for a few of very many pairs, where the one hides what the other one meant: of a step without its schema nobody
//! knows which of two names for a value is the wrong one.

use cuegate_testkit::definitions;

use crate::one_mistake::{IN_A_REGISTRY, IN_A_REGISTRY_THAT_COMPLETES, first};
use crate::one_mistake_piece::IN_A_PIECE;
use crate::piece_support;
use crate::support::{self, Project, findings_of};

/// Makes every two of some mistakes in a sound definition: of how many there may be, at most one in fifty is to show
/// more than each for itself.
fn hardly_more_together(
    cases: &[(&str, &str)],
    sound: &Project,
    (pairs_min, found): (usize, impl Fn(&Project) -> String),
) {
    let has = |files: &Project, what: &str| {
        files.values().any(|bytes| String::from_utf8_lossy(bytes).contains(what))
    };
    let alone: Vec<(Project, usize)> = cases
        .iter()
        .map(|(from, to)| {
            let files = first(sound.clone(), from, to);
            let count = found(&files).lines().count();
            (files, count)
        })
        .collect();
    let (mut more, mut pairs) = (Vec::new(), 0);
    for (at, (one, few)) in alone.iter().enumerate() {
        for (other, (from, to)) in cases.iter().enumerate().skip(at + 1) {
            // What the first one changed cannot be changed again.
            if !has(one, from) {
                continue;
            }
            pairs += 1;
            let together = found(&first(one.clone(), from, to));
            if together.lines().count() > few + alone[other].1 {
                more.push(format!("{:?} and {:?}:\n{together}", cases[at], (from, to)));
            }
        }
    }
    assert!(pairs >= pairs_min, "{pairs} pairs");
    assert!(more.len() * 50 <= pairs, "{} of {pairs}:\n{}", more.len(), more.join("\n"));
}

fn changes<'c>(cases: &[(&'c str, &'c str, &str)], more: &[(&'c str, &'c str)]) -> Vec<(&'c str, &'c str)> {
    cases.iter().map(|(from, to, _)| (*from, *to)).chain(more.iter().copied()).collect()
}

#[test]
fn in_a_registry() {
    let names = [
        ("\"entryStep\": \"initial.fix\"", "\"entryStep\": \"intial.fix\""),
        ("initial.fix.approach", "initial.fix.aproach"),
        ("initial.fix.approach", "initial.fx.approach"),
        ("    \"continuation.fix\": {\n      \"step", "    \"continuation.fx\": {\n      \"step"),
        (
            "    \"closure.fix\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Close\"",
            "    \"closure.fx\": {\n      \"stepId\": \"closure.fix\", \"name\": \"Close\"",
        ),
        ("\"enum\": [\"next\"", "\"enm\": [\"next\""),
        ("\"validator\": \"git-clean\"", "\"validator\": \"git-clen\""),
        ("\"git-clean\": {", "\"git-clen\": {"),
        ("\"failurePattern\": \"git-dirty\"", "\"failurePattern\": \"git-drty\""),
        ("\"git-dirty\": {", "\"git-drty\": {"),
    ];
    let mut cases = changes(IN_A_REGISTRY, &names);
    // That no intent leads on is shown at the first of them, which may be the one that is misspelt.
    cases.retain(|(_, to)| *to != "{}");
    let found = |files: &Project| support::findings(files, support::DIR);
    hardly_more_together(&cases, &support::sound(), (400, found));
}

#[test]
fn in_a_registry_that_completes() {
    let cases = changes(IN_A_REGISTRY_THAT_COMPLETES, &[]);
    let sound = support::project(definitions::COMPLETE);
    let found = |files: &Project| support::findings(files, ".agent/solver");
    hardly_more_together(&cases, &sound, (600, found));
}

#[test]
fn in_a_piece() {
    let names = [
        ("next: implement\n", "next: implemnt\n"),
        ("  - name: plan\n", "  - name: pln\n"),
        ("edit: true", "edti: true"),
        ("persona: ", "persna: "),
        ("next: COMPLETE", "next: COMPLTE"),
    ];
    let cases = changes(IN_A_PIECE, &names);
    let found = |files: &Project| findings_of(piece_support::load(files, |_| {}));
    hardly_more_together(&cases, &piece_support::sound(), (40, found));
}
