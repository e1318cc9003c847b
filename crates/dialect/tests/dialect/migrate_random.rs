//! Random definitions of the older generations and random scripts: what is migrated runs the migrated script to the same
//! end, by the same asks in the same order, each answered by the same entry of the script.

use std::collections::BTreeMap;

use cuegate_dialect::{Migration, OlderAnswers, Options, migrate_agent, migrate_script};
use cuegate_engine::{
    Answer, AskCommand, AskKind, Command, Completion, Exec, Exit, Reading, State, found, read,
};
use cuegate_flow::{Flow, Outcome};
use cuegate_testkit::world::{Case, answers_of, roll};
use serde_json::{Value, json};

use crate::complete_random::flow_of;
use crate::support::{Project, findings};
use crate::{check_flow_random, complete_random};

const SEEDS: u64 = 260;
const SCRIPTS: u64 = 4;
const DECISIONS_MAX: usize = 900;

/// The gates of an older flow.
struct Older<'f>(&'f Flow);

impl OlderAnswers for Older<'_> {
    fn object(&self, step: &str, text: &str) -> Option<Value> {
        let step = self.0.step(self.0.find(step)?);
        found(self.0, step, None, text)
    }

    fn passes(&self, check: &str, output: Option<&Value>, text: &str) -> bool {
        let step = self.0.step(self.0.find(check).unwrap());
        matches!(read(self.0, step, output, text, 0),
            Ok(Reading::Outcome { outcome: Outcome::Named(name), .. }) if *name == *"ok")
    }
}

/// Choices of one seed.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.thrown += 1;
        (roll(self.seed, &format!("s{}", self.thrown)) % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }
}

/// The entry that answers an ask, as the scripted agent picks it, and what it says.
fn answer_of(script: &Value, used: &mut [u64], ask: &AskCommand) -> Option<(usize, Answer)> {
    let step = ask.of.as_ref().unwrap_or(&ask.step);
    let kind = kind_of(ask.kind);
    let is_for = |entry: &Value| match &entry["step"] {
        Value::Null => true,
        Value::String(only) => **only == **step,
        several => several.as_array().unwrap().iter().any(|name| *name == **step),
    };
    let left = |(index, entry): &(usize, &Value)| {
        let times = entry["times"].as_u64().unwrap_or(1);
        let kind_fits = entry["kind"].is_null() || entry["kind"] == kind;
        (times == 0 || used[*index] < times) && is_for(entry) && kind_fits
    };
    let (index, entry) = script["answers"].as_array().unwrap().iter().enumerate().find(left)?;
    used[index] += 1;
    let said = entry["at"].get(&**step).unwrap_or(entry);
    let answer = Answer {
        output: Some(said["output"].clone()).filter(|output| !output.is_null()),
        text: said["text"].as_str().unwrap_or_default().to_owned(),
        provider: "scripted".to_owned(),
        session: Some("s".to_owned()),
        ..Answer::default()
    };
    Some((index, answer))
}

fn kind_of(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Work => "work",
        AskKind::Check => "check",
        AskKind::Repair => "repair",
        AskKind::Remedy => "remedy",
        AskKind::Report => "report",
        AskKind::Judge => "judge",
    }
}

/// How a run went: its end, and each ask with the entry that answered it.
#[derive(Debug, PartialEq)]
struct Course {
    end: String,
    asks: Vec<(String, &'static str, usize)>,
}

/// Runs a script. `called` is what an ask is called, so that the same ask is called the same in both generations.
fn course(
    flow: &Flow,
    seed: u64,
    script: &Value,
    called: impl Fn(&AskCommand) -> (String, &'static str),
) -> Course {
    let mut case = Case::new(flow);
    case.start();
    let mut used = vec![0; script["answers"].as_array().unwrap().len()];
    let mut asks = Vec::new();
    for _ in 0..DECISIONS_MAX {
        if let State::Ended { state, .. } = &case.run.state {
            return Course { end: format!("{state:?}"), asks };
        }
        let completion = match &case.pending()[0] {
            Command::Exec(exec) => {
                let code = (roll(seed, &format!("proof {}", answers_of(&case, &exec.step))) % 2) as i32;
                let done = Exec {
                    exit: Exit::Code(code),
                    stdout: String::new(),
                    stderr: String::new(),
                    duration_ms: 1,
                };
                Completion::Executed { id: exec.id, exec: done, seen: None }
            }
            Command::Ask(ask) => {
                let Some((entry, answer)) = answer_of(script, &mut used, ask) else {
                    return Course { end: "script used up".to_owned(), asks };
                };
                let (step, kind) = called(ask);
                asks.push((step, kind, entry));
                Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
            }
            other => unreachable!("these definitions want no {other:?}"),
        };
        assert!(case.complete(completion));
    }
    panic!("seed {seed}: no end after {DECISIONS_MAX} decisions");
}

/// The two flows of a seed, and how one became the other.
struct Pair {
    older: std::sync::Arc<Flow>,
    newer: std::sync::Arc<Flow>,
    migration: Migration,
}

fn pair(seed: u64, files: &Project, dir: &str) -> Option<Pair> {
    let older = flow_of(files, dir)?;
    let options = Options { agent_dir: dir.to_owned(), ..Options::default() };
    let migration = migrate_agent(files, &options, None).unwrap();
    let project: Project = migration
        .files
        .iter()
        .map(|file| (format!("new/{}", file.path), file.text.clone().into_bytes()))
        .collect();
    assert_eq!(project.len(), migration.files.len(), "seed {seed}: each file once");
    let Some(newer) = flow_of(&project, "new") else {
        let found = findings(&project, "new");
        // The only way to an end was one that the schema has no word for: nobody could go it, which is listed.
        assert!(
            found.contains("[no-way-to-end]")
                && migration.notes.iter().any(|note| note.text.contains("lists no word for it")),
            "seed {seed}: {found}"
        );
        return None;
    };
    assert_eq!(newer.dialect, "registry-closing");
    Some(Pair { older, newer, migration })
}

fn migrated(script: &Value, pair: &Pair) -> Value {
    let migrated = migrate_script(&script.to_string(), &pair.migration.answers, &Older(&pair.older)).unwrap();
    assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
    let newer: Value = serde_json::from_str(&migrated.text).unwrap();
    assert_eq!(newer["answers"].as_array().unwrap().len(), script["answers"].as_array().unwrap().len());
    newer
}

fn notes(migration: &Migration, said: &str) -> bool {
    migration.notes.iter().any(|note| note.changes_runs && note.text.contains(said))
}

/// Conditions of an entry: now a step, now a kind, now neither.
fn conditions(dice: &mut Dice, entry: &mut Value, steps: &[&str], kinds: &[&str]) {
    match dice.below(8) {
        0..4 => entry["step"] = json!(dice.pick(steps)),
        4 => entry["step"] = json!([dice.pick(steps), dice.pick(steps)]),
        _ => {}
    }
    if dice.one_in(4) {
        entry["kind"] = json!(dice.pick(kinds));
    }
    match dice.below(6) {
        0 => entry["times"] = json!(2),
        1 => entry["times"] = json!(5),
        _ => {}
    }
}

/// An answer of an agent of the "complete" generation.
fn complete_said(dice: &mut Dice) -> Value {
    const WORDS: [&str; 34] = [
        "next",
        "next",
        "continue",
        "repeat",
        "complete",
        "complete",
        "complete",
        "next",
        "continue",
        "next",
        "complete",
        "complete",
        "next",
        "next",
        "next",
        "continue",
        "repeat",
        "retry",
        "wait",
        "complete",
        "complete",
        "complete",
        "COMPLETE ",
        "jump",
        "abort",
        "escalate",
        "fly",
        "",
        "handoff",
        "closing",
        "done",
        "pass",
        "fail",
        "finished",
    ];
    let mut output = json!({"next_action": {"action": dice.pick(&WORDS)}});
    match dice.below(40) {
        0 => return json!({"output": {"summary": "nothing decided"}}),
        1 => output["stepId"] = json!("other.step"),
        2 => output["status"] = json!(7),
        _ => output["status"] = json!(dice.pick(&["red", "green", "blue"])),
    }
    if dice.one_in(2) {
        output["next_action"]["target"] =
            json!(dice.pick(&["initial.a", "continuation.a", "initial.b", "complete.a"]));
    }
    match dice.below(8) {
        0 => json!({"text": format!("I think so: {output} and that is all")}),
        1 => json!({"text": output.to_string()}),
        2 => json!({"output": output, "text": "said as well"}),
        _ => json!({"output": output}),
    }
}

fn script_of(seed: u64, steps: &[&str], kinds: &[&str], said: fn(&mut Dice) -> Value) -> Value {
    let mut dice = Dice { seed, thrown: 0 };
    let count = 4 + dice.below(36);
    let mut answers: Vec<Value> = (0..count)
        .map(|_| {
            let mut entry = said(&mut dice);
            conditions(&mut dice, &mut entry, steps, kinds);
            entry
        })
        .collect();
    if !dice.one_in(4) {
        let mut last = said(&mut dice);
        last["times"] = json!(0);
        answers.push(last);
    }
    json!({"answers": answers})
}

#[test]
fn a_complete_definition_runs_the_same_scripts_to_the_same_ends() {
    let mut ends = BTreeMap::<String, usize>::new();
    for seed in 0..SEEDS {
        let files = complete_random::random(seed);
        let Some(pair) = pair(seed, &files, complete_random::DIR) else { continue };
        let names: Vec<&str> = pair.older.steps.iter().map(|step| &*step.name).collect();
        for nth in 0..SCRIPTS {
            let seed = seed * 1_000 + nth;
            let script = script_of(seed, &names, &["work", "remedy", "repair"], complete_said);
            let newer = migrated(&script, &pair);
            let called =
                |ask: &AskCommand| (ask.step.trim_end_matches(".again").to_owned(), kind_of(ask.kind));
            let before = course(&pair.older, seed, &script, called);
            let after = course(&pair.newer, seed, &newer, called);
            let entry = &*pair.older.step(pair.older.entry).name;
            let failed_there = before.end == "Failed" && before.asks.last().is_some_and(|ask| ask.0 == entry);
            let noted = if notes(&pair.migration, "`fallbackIntent`") && failed_there {
                "an entry that fails and would fall back"
            } else if notes(&pair.migration, "a closure step decides") {
                "intents of closure steps"
            } else {
                ""
            };
            if before == after || noted.is_empty() {
                assert_eq!(after, before, "seed {seed}: {:#?}\n{script:#}\n{newer:#}", pair.migration.notes);
                *ends.entry(before.end).or_default() += 1;
                if before.asks.iter().any(|(.., entry)| script["answers"][entry]["step"].is_null()) {
                    *ends.entry("by entries without a step".to_owned()).or_default() += 1;
                }
            } else {
                *ends.entry(noted.to_owned()).or_default() += 1;
            }
        }
    }
    println!("{ends:?}");
    for end in ["Completed", "Failed", "Aborted", "Exhausted", "script used up", "by entries without a step"]
    {
        assert!(ends.get(end).is_some_and(|count| *count > 10), "{end} hardly occurred: {ends:?}");
    }
}

/// An answer in a check flow, of work or of a check.
fn checked_said(dice: &mut Dice) -> Value {
    match dice.below(16) {
        0 => json!({"text": "done"}),
        1 => json!({"output": {"summary": "did it", "next_action": {"action": "abort"}}}),
        2 => json!({"text": "so result: PASS"}),
        3 => json!({"text": "```json\n{\"result\": true, \"message\": \"m\"}\n```"}),
        4 => json!({"text": "looks good to me"}),
        5 => json!({"output": {"result": "ok", "message": 7}}),
        6 => json!({"output": {"result": "perhaps"}}),
        7 => json!({}),
        8..12 => json!({"output": {"result": dice.pick(&["ng", "fail"]), "message": "m", "more": [1]}}),
        _ => json!({"output": {"result": dice.pick(&["ok", "pass", "OK "]), "summary": "all well"}}),
    }
}

/// What an ask of a copy was before.
fn called_before(ask: &AskCommand) -> (String, &'static str) {
    match &ask.of {
        Some(of) => (of.to_string(), "check"),
        None if ask.step.starts_with("s_") => (ask.step.to_string(), kind_of(ask.kind)),
        None => {
            let checks = ask.step.starts_with("verification.") || ask.step.starts_with("closure.");
            let kind = if checks && ask.kind == AskKind::Work { "check" } else { kind_of(ask.kind) };
            (ask.step.split('.').nth(1).unwrap().to_owned(), kind)
        }
    }
}

#[test]
fn a_check_flow_runs_the_same_scripts_to_the_same_ends() {
    let mut ends = BTreeMap::<String, usize>::new();
    for seed in 0..SEEDS + 140 {
        let mut dice = Dice { seed, thrown: 1_000 };
        let mut files = check_flow_random::project(&check_flow_random::random(seed));
        let mut change = |file: &str, change: &mut dyn FnMut(&mut Value)| {
            let text = files.get_mut(&format!("{}/{file}", check_flow_random::DIR)).unwrap();
            let mut value: Value = serde_json::from_slice(text).unwrap();
            change(&mut value);
            *text = value.to_string().into_bytes();
        };
        if dice.one_in(2) {
            let limit = 1 + dice.below(14);
            change("agent.json", &mut |agent| {
                agent["behavior"]["completionConfig"] = json!({"maxIterations": limit})
            });
        }
        change("steps_registry.json", &mut |registry| {
            for step in registry["steps"].as_object_mut().unwrap().values_mut() {
                if dice.one_in(8) {
                    step["check"]["onFail"] = json!({"complete": true});
                }
            }
        });
        let Some(pair) = pair(seed, &files, check_flow_random::DIR) else { continue };
        let names: Vec<&str> =
            pair.older.steps.iter().map(|step| &*step.name).filter(|name| !name.contains('/')).collect();
        let executions_max = pair.older.limits.iterations_max as usize;
        for nth in 0..SCRIPTS {
            let seed = seed * 1_000 + nth;
            let script = script_of(seed, &names, &["work", "check"], checked_said);
            let newer = migrated(&script, &pair);
            let before = course(&pair.older, seed, &script, called_before);
            let after = course(&pair.newer, seed, &newer, called_before);
            let executions = before.asks.iter().filter(|ask| ask.1 == "work").count();
            let at_limit = executions == executions_max;
            let noted = if at_limit && notes(&pair.migration, "may execute more often") {
                "more executions"
            } else if at_limit && before.end == "Failed" && notes(&pair.migration, "not as failed") {
                "failed at the limit"
            } else {
                ""
            };
            if before == after || noted.is_empty() {
                assert_eq!(after, before, "seed {seed}: {:#?}\n{script:#}\n{newer:#}", pair.migration.notes);
                *ends.entry(before.end).or_default() += 1;
            } else {
                *ends.entry(noted.to_owned()).or_default() += 1;
            }
        }
    }
    println!("{ends:?}");
    for end in ["Completed", "Failed", "Exhausted", "script used up"] {
        assert!(ends.get(end).is_some_and(|count| *count > 10), "{end} hardly occurred: {ends:?}");
    }
}

/// Whatever stands in the files and in the script, migrating returns; and what ran before is sound afterwards.
#[test]
fn mutated_definitions_and_scripts() {
    const PIECES: [&str; 14] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "0",
        "1",
        "true",
        "\"s_0000\"",
        "\"repeat\"",
        "\"initial.a\"",
        "\"default\": ",
        "..",
        "{uv-",
        "---\n",
    ];
    let mut migrated = 0;
    for seed in 0..360 {
        let mut dice = Dice { seed, thrown: 5_000 };
        let (files, dir) = if dice.one_in(2) {
            (complete_random::random(seed), complete_random::DIR)
        } else {
            (check_flow_random::project(&check_flow_random::random(seed)), check_flow_random::DIR)
        };
        let mut mutate = |text: &str| {
            let at = (0..=dice.below(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let to = (at..text.len()).find(|to| *to >= at + dice.below(9) && text.is_char_boundary(*to));
            format!("{}{}{}", &text[..at], dice.pick(&PIECES), &text[to.unwrap_or(text.len())..])
        };
        let mut changed = files.clone();
        let path = files.keys().nth(seed as usize % files.len()).unwrap();
        changed.insert(path.clone(), mutate(std::str::from_utf8(&files[path]).unwrap()).into_bytes());
        let options = Options { agent_dir: dir.to_owned(), ..Options::default() };
        let _ = migrate_agent(&changed, &options, None);
        if let Some(pair) = pair(seed, &changed, dir) {
            migrated += 1;
            let script =
                script_of(seed, &["s_0000", "initial.a"], &["work", "check"], checked_said).to_string();
            for _ in 0..8 {
                let _ = migrate_script(&mutate(&script), &pair.migration.answers, &Older(&pair.older));
            }
        }
    }
    assert!(migrated > 50, "only {migrated} were sound");
}
