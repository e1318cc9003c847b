//! Real definitions load without errors.

use std::collections::BTreeMap;

use crate::disk;
use crate::support::{Project, edit, findings, findings_of};
use cuegate_formats::{AgentOptions, load_agent};

const ITERATOR: &str = "closing/iterator";

fn corpus() -> Option<Project> {
    Some(disk::files_below(&disk::shared("corpora/climpt")?))
}

/// How often each code was found, errors first.
fn counts(files: &Project, agent_dir: &str) -> String {
    counts_of(&findings(files, agent_dir))
}

fn counts_of(found: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in found.lines() {
        let (head, _) = line.split_once("]: ").unwrap();
        *counts.entry(head.split_once(' ').unwrap().1.to_owned() + "]").or_default() += 1;
    }
    counts.iter().map(|(code, count)| format!("{count} {code}\n")).collect()
}

#[test]
fn the_iterator_as_it_is() {
    let Some(files) = corpus() else { return };
    insta::assert_snapshot!(counts(&files, ITERATOR), @"
    1 warning[closure-skipped]
    14 warning[missing-prompt]
    22 warning[schema-gate-mismatch]
    6 warning[self-next]
    16 warning[unknown-variable]
    14 warning[unreachable-step]
    7 warning[unused-definition]
    29 warning[unused-key]
    5 warning[unused-variable]
    4 warning[wrong-direction]
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
    1 warning[closure-skipped]
    14 warning[missing-prompt]
    22 warning[schema-gate-mismatch]
    6 warning[self-next]
    16 warning[unknown-variable]
    14 warning[unreachable-step]
    7 warning[unused-definition]
    29 warning[unused-key]
    5 warning[unused-variable]
    4 warning[wrong-direction]
    ");
}

/// It breaks a rule of its own document: `complete` leads elsewhere than to a `complete.*` step. Its prompts read a
/// value that its program gave them, which `--set` gives here.
#[test]
fn the_older_iterator_breaks_a_rule_of_its_document() {
    let Some(files) = corpus() else { return };
    let agent_dir = "complete/iterator".to_owned();
    let set = vec!["issue_number".to_owned()];
    let found = findings_of(load_agent(&files, &AgentOptions { agent_dir, registry: None, set }));
    let errors: Vec<&str> = found.lines().filter(|line| line.contains(" error[")).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    steps_registry.json:270:33 error[wrong-direction]: `complete` of `initial.project.preparation` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:296:33 error[wrong-direction]: `complete` of `initial.project.preparationempty` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:323:33 error[wrong-direction]: `complete` of `initial.project.processingempty` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:349:33 error[wrong-direction]: `complete` of `initial.project.review` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:375:33 error[wrong-direction]: `complete` of `initial.project.again` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:399:33 error[wrong-direction]: `complete` of `initial.project.complete` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:425:33 error[wrong-direction]: `complete` of `continuation.project.preparation` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:451:33 error[wrong-direction]: `complete` of `continuation.project.processingdone` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:477:33 error[wrong-direction]: `complete` of `continuation.project.review` leads to `initial.project.complete`, which is no `complete.*` step
    steps_registry.json:503:33 error[wrong-direction]: `complete` of `continuation.project.again` leads to `initial.project.review`, which is no `complete.*` step
    steps_registry.json:527:33 error[wrong-direction]: `complete` of `continuation.project.complete` leads to `continuation.project.complete`, which is no `complete.*` step
    steps_registry.json:553:33 error[wrong-direction]: `complete` of `initial.iterate` leads to `initial.iterate`, which is no `complete.*` step
    steps_registry.json:579:33 error[wrong-direction]: `complete` of `continuation.iterate` leads to `continuation.iterate`, which is no `complete.*` step
    ");
    insta::assert_snapshot!(counts_of(&found), @"
    13 error[wrong-direction]
    1 warning[closure-skipped]
    17 warning[missing-prompt]
    26 warning[schema-gate-mismatch]
    2 warning[unknown-name]
    16 warning[unknown-variable]
    1 warning[unsupported-yet]
    7 warning[unused-definition]
    9 warning[unused-key]
    5 warning[unused-variable]
    ");
}

/// The domains that break the rule taken out, the rest is sound.
#[test]
fn the_older_iterator_corrected() {
    let Some(files) = corpus() else { return };
    let path = "complete/iterator/steps_registry.json";
    let mut registry: serde_json::Value = serde_json::from_slice(&files[path]).unwrap();
    let steps = registry["steps"].as_object_mut().unwrap();
    steps.retain(|id, _| !id.contains(".project.") && !id.ends_with(".iterate"));
    registry["entryStepMapping"].as_object_mut().unwrap().remove("iterate");
    let mut files = files.clone();
    files.insert(path.to_owned(), registry.to_string().into_bytes());
    let set = vec!["issue_number".to_owned()];
    let options = AgentOptions { agent_dir: "complete/iterator".to_owned(), registry: None, set };
    let found = findings_of(load_agent(&files, &options));
    assert_eq!(found.lines().filter(|line| line.contains(" error[")).count(), 0, "{found}");
}
