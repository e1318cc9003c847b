//! Real pieces, driven through every rule of every movement, and one of them along its whole way by the real program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use cuegate::definition::{self, DiskFiles, locate};
use cuegate_engine::{Answer, AskKind, Command, Completion, Event, State, Usage, WaitKind};
use cuegate_flow::{Act, Flow, Gate, Outcome, Reader};
use cuegate_testkit::world::{Case, roll};
use serde_json::{Map, Value, json};

use crate::support::Project;

const PIECES: [&str; 4] = ["default", "magi", "minimal", "review-only"];

/// The shared folder's pieces, where it is there.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn pieces() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("CUEGATE_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("corpora/takt/en/pieces");
    if !folder.is_dir() {
        eprintln!("skipped: no pieces at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// The outcomes that the rules of a step have.
fn outcomes(flow: &Flow, step: &str) -> Vec<String> {
    let step = flow.step(flow.find(step).unwrap());
    let readers = match &step.gate {
        Gate::Readers(readers) => readers.as_slice(),
        Gate::Join { rules, .. } => return rules.iter().map(|rule| rule.outcome.to_string()).collect(),
        _ => &[],
    };
    let mut all: Vec<String> = readers
        .iter()
        .filter_map(|reader| match reader {
            Reader::Tag { outcomes, .. } => Some(outcomes),
            _ => None,
        })
        .flatten()
        .filter(|outcome| **outcome != Outcome::None)
        .map(ToString::to_string)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Answers an ask with one of the outcomes of its step: fused, or in plain words with a tag or without.
fn answer(case: &Case<'_>, seed: u64, command: &Command) -> Completion {
    let Command::Ask(ask) = command else { panic!("these pieces run no commands") };
    let step = case.flow.step(case.flow.find(&ask.step).unwrap());
    let Act::Ask(about) = &step.act else { panic!("an ask is asked") };
    let turn = roll(seed, &format!("{} {}", ask.step, ask.id));
    let words = outcomes(case.flow, &ask.step);
    let at = (turn >> 8) as usize % words.len();
    let mut answer = Answer { usage: Usage::default(), provider: "scripted".to_owned(), ..Answer::default() };
    match (ask.kind, turn % 5) {
        (AskKind::Report, _) => answer.text = "# A report".to_owned(),
        (AskKind::Work, 0) => answer.text = format!("All is said. [STEP:{at}]"),
        (AskKind::Work, 1) => answer.text = "All is said.".to_owned(),
        (AskKind::Judge, _) => answer.output = Some(json!({"outcome": words[at], "reason": "it is so"})),
        _ => {
            let reports: Map<String, Value> =
                about.reports.iter().map(|report| (report.name.to_string(), json!("# A report"))).collect();
            let mut output = json!({"outcome": words[at], "response": "said"});
            if !reports.is_empty() {
                output["reports"] = Value::Object(reports);
            }
            answer.output = Some(output);
        }
    }
    Completion::Answered { ask: ask.id, answer: Box::new(answer), seen: None }
}

/// Every rule of every movement is taken in some run, and each run ends.
#[test]
fn every_rule_of_real_pieces_is_taken() {
    let Some(folder) = pieces() else { return };
    for piece in PIECES {
        let path = folder.join(format!("{piece}.yaml"));
        let location = locate(path.to_str().unwrap(), &folder, Path::new("/nowhere")).unwrap();
        let files = DiskFiles::new(&location.root).unwrap();
        let how = cuegate_engine::Load { interactive: true, ..Default::default() };
        let file = location.file.as_deref();
        let flow = definition::load(&files, &location.base, file, &[], &how).flow.unwrap();
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for seed in 0..600 {
            let mut case = Case::new(&flow);
            case.start();
            for _ in 0..2_000 {
                match &case.run.state {
                    State::Ended { .. } => break,
                    State::Suspended(waiting) => assert_eq!(waiting.kind, WaitKind::Person),
                    _ => {}
                }
                if case.unblock() {
                    continue;
                }
                let completion = answer(&case, seed, &case.pending()[0]);
                assert!(case.complete(completion));
            }
            assert!(case.ended(), "{piece} {seed}: {:?}", case.run.state);
            for event in case.events.iter().flatten() {
                match event {
                    Event::Decided { step, outcome, .. }
                    | Event::MemberEnded { step, outcome: Some(outcome), .. } => {
                        taken.entry(step.to_string()).or_default().insert(outcome.to_string());
                    }
                    _ => {}
                }
            }
        }
        for step in &flow.steps {
            // What decides for another step is seen in that one's outcomes.
            if step.name.contains('@') {
                continue;
            }
            for outcome in outcomes(&flow, &step.name) {
                let seen = taken.get(&*step.name).is_some_and(|seen| seen.contains(&outcome));
                assert!(seen, "{piece}: `{}` never was `{outcome}`: {taken:#?}", step.name);
            }
        }
    }
}

/// Through a loop that a monitor ends: one ask a movement, one for the judge, two for the reviewers.
#[test]
fn the_default_piece_takes_thirteen_asks() {
    let Some(folder) = pieces() else { return };
    let project = Project::empty();
    project.write(".gitignore", "/script*\n");
    project.init();
    let says = |step: &str, outcome: &str, reports: &[&str]| {
        let reports: Map<String, Value> =
            reports.iter().map(|name| ((*name).to_owned(), json!(format!("# {name}")))).collect();
        let mut output = json!({"outcome": outcome, "response": "said"});
        if !reports.is_empty() {
            output["reports"] = Value::Object(reports);
        }
        json!({"step": step, "output": output})
    };
    let review = || says("ai_review", "AI-specific issues found", &["04-ai-review.md"]);
    let fix = || says("ai_fix", "AI issues fixed", &[]);
    project.script(
        "script.json",
        &json!([
            says("plan", "Requirements are clear and implementable", &["00-plan.md"]),
            says("architect", "Design complete", &["01-architecture.md"]),
            says("implement", "Implementation complete", &["02-coder-scope.md", "03-coder-decisions.md"]),
            review(), fix(), review(), fix(), review(), fix(),
            {"step": "monitor:ai_review+ai_fix", "kind": "judge",
                "output": {"outcome": "Unproductive (no improvement)", "reason": "the same again"}},
            says("arch-review", "approved", &["05-architect-review.md"]),
            says("qa-review", "approved", &["06-qa-review.md"]),
            says("supervise", "All checks passed", &["07-supervisor-validation.md", "summary.md"]),
        ]),
    );
    let piece = folder.join("default.yaml");
    let ran = project.run(&["run", piece.to_str().unwrap(), "Do it", "--script", "script.json", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let status = ran.json();
    assert_eq!(
        status["asks"],
        json!({"work": 12, "report": 0, "judge": 1, "check": 0, "repair": 0, "remedy": 0})
    );
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<String> = status["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{} #{}: {} → {}",
                text(&row["step"]),
                row["visit"],
                text(&row["outcome"]),
                text(&row["target"])
            )
        })
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    plan #1: Requirements are clear and implementable → architect
    architect #1: Design complete → implement
    implement #1: Implementation complete → ai_review
    ai_review #1: AI-specific issues found → ai_fix
    ai_fix #1: AI issues fixed → ai_review
    ai_review #2: AI-specific issues found → ai_fix
    ai_fix #2: AI issues fixed → ai_review
    ai_review #3: AI-specific issues found → ai_fix
    monitor:ai_review+ai_fix #1: Unproductive (no improvement) → reviewers
    ai_fix #3: AI issues fixed → reviewers
    arch-review #1: approved → -
    qa-review #1: approved → -
    reviewers #1: all("approved") → supervise
    supervise #1: All checks passed → @completed
    "#);
    let reports = status["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 11, "nine reports, one of them in three versions");
    for report in reports {
        assert!(fs::exists(project.path().join(report["path"].as_str().unwrap())).unwrap(), "{report}");
    }
}
