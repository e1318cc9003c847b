//! Real definitions load without errors.

use std::collections::BTreeMap;

use crate::disk;
use crate::support::{Project, edit, findings};

const ITERATOR: &str = "closing/iterator";

fn corpus() -> Option<Project> {
    Some(disk::files_below(&disk::shared("corpora/climpt")?))
}

/// How often each code was found, errors first.
fn counts(files: &Project, agent_dir: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in findings(files, agent_dir).lines() {
        let (head, _) = line.split_once("]: ").unwrap();
        *counts.entry(head.split_once(' ').unwrap().1.to_owned() + "]").or_default() += 1;
    }
    counts.iter().map(|(code, count)| format!("{count} {code}\n")).collect()
}

#[test]
fn the_iterator_as_it_is() {
    let Some(files) = corpus() else { return };
    insta::assert_snapshot!(counts(&files, ITERATOR), @"
    14 warning[empty-custom-variable]
    2 warning[handoff-not-in-schema]
    4 warning[handoff-to-work]
    20 warning[inert-fallback]
    6 warning[self-next]
    9 warning[stray-key]
    16 warning[unknown-fallback-key]
    27 warning[unknown-variable]
    14 warning[unreachable-step]
    5 warning[unsupported-yet]
    1 warning[unused-failure-pattern]
    4 warning[unused-parameter]
    1 warning[unused-section]
    5 warning[unused-validator]
    1 warning[unused-variable]
    ");
}

#[test]
fn the_iterator_counting_its_iterations() {
    let Some(files) = corpus() else { return };
    let agent = format!("{ITERATOR}/agent.json");
    let registry = format!("{ITERATOR}/steps_registry.json");
    let only = |path: &str| Project::from([(path.to_owned(), files[path].clone())]);
    let mut files = files.clone();
    files.extend(edit(
        &edit(&only(&agent), "\"poll:state\"", "\"count:iteration\""),
        "\"maxIterations\": 500",
        "\"maxIterations\": 20",
    ));
    files.extend(edit(
        &only(&registry),
        "\"count:iteration\": \"initial.iteration\"",
        "\"count:iteration\": \"initial.issue\"",
    ));
    insta::assert_snapshot!(counts(&files, ITERATOR), @"
    14 warning[empty-custom-variable]
    2 warning[handoff-not-in-schema]
    4 warning[handoff-to-work]
    20 warning[inert-fallback]
    6 warning[self-next]
    9 warning[stray-key]
    16 warning[unknown-fallback-key]
    27 warning[unknown-variable]
    14 warning[unreachable-step]
    4 warning[unsupported-yet]
    1 warning[unused-failure-pattern]
    4 warning[unused-parameter]
    1 warning[unused-section]
    5 warning[unused-validator]
    1 warning[unused-variable]
    1 warning[verdict-past-validators]
    ");
}

#[test]
fn the_other_generation_is_one_finding() {
    let Some(files) = corpus() else { return };
    insta::assert_snapshot!(findings(&files, "complete/iterator"), @"
    agent.json:9:23 warning[unsupported-yet]: the verdict `poll:state` is not evaluated yet: the run ends by `closing`, or at its limit of 500 iterations
    agent.json:16:18 warning[unsupported-yet]: `preCloseValidation` has no effect: nothing but the registry guards the end of a run
    agent.json:60:16 warning[unsupported-yet]: `actions` are not supported yet: action blocks in answers are not handled
    agent.json:65:16 warning[unsupported-yet]: `github` is not supported yet: issues and labels stay as they are
    agent.json:73:16 warning[unsupported-yet]: `execution.finalize` is not supported yet: what the run changed is not merged, pushed or proposed
    agent.json:76:14 warning[unsupported-yet]: `logging` is not supported yet: no log files are written
    steps_registry.json:1:1 error[unsupported-yet]: this is a registry of the “complete” generation, which is not supported yet
    ");
}
