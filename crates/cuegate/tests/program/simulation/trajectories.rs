//! Real pieces, driven by scripts through every rule of every movement, by the real program.
//!
//! A row of the table says by whom which rule is chosen: `plan:2` is the second rule of `plan`, chosen in one answer
//! with all reports; `plan#2` says so by a tag in plain words, and `plan?2` says nothing, so that a judge does. Asks are
//! answered in the order of the row.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cuegate::definition::{self, DiskFiles, find_definition};
use cuegate_flow::model::{Act, Flow, Gate, Outcome, OutcomeReader};
use insta::assert_snapshot;
use serde_json::{Map, Value, json};

use crate::support::{Project, Ran, visits};

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

/// A piece, and which of its rules were taken so far.
struct Table {
    path: String,
    /// As it is where somebody is there to answer.
    flow: std::sync::Arc<Flow>,
    taken: BTreeSet<(String, String)>,
}

impl Table {
    fn of(piece: &str) -> Option<Table> {
        let folder = pieces()?;
        let path = folder.join(format!("{piece}.yaml")).to_str().unwrap().to_owned();
        let location = find_definition(&path, &folder, Path::new("/nowhere"), None).unwrap();
        let files = DiskFiles::new(&location.root).unwrap();
        let how = cuegate_engine::RecordedLoadOptions { interactive: true, ..Default::default() };
        let flow =
            definition::compile_definition(&files, &location.base, location.file.as_deref(), &[], &how)
                .flow
                .unwrap();
        Some(Table { path, flow, taken: BTreeSet::new() })
    }

    /// Where a row leads.
    fn row(&mut self, row: &str) -> String {
        let (project, args) = self.ready(row);
        let ran = project.run(&args.iter().map(|arg| &**arg).collect::<Vec<_>>());
        self.told(&project, &ran)
    }

    /// Where a row leads when somebody sits at a terminal and types these answers. `None` where there is no terminal.
    fn row_at_terminal(&mut self, row: &str, typed: &str) -> Option<String> {
        let (project, args) = self.ready(row);
        let ran = project.at_terminal(&args.iter().map(|arg| &**arg).collect::<Vec<_>>(), typed)?;
        Some(self.told(&project, &ran))
    }

    fn ready(&self, row: &str) -> (Project, Vec<String>) {
        let project = Project::empty();
        project.write(".gitignore", "/script*\n");
        project.init();
        let answers: Vec<Value> = row.split_whitespace().flat_map(|choice| self.answers(choice)).collect();
        project.script("script.json", &json!(answers));
        let args = ["run", &*self.path, "Do it", "--script", "script.json"];
        (project, args.map(str::to_owned).to_vec())
    }

    /// The answers that make a choice.
    fn answers(&self, choice: &str) -> Vec<Value> {
        let at = choice.rfind([':', '#', '?']).unwrap();
        let (name, how, number) =
            (&choice[..at], &choice[at..=at], choice[at + 1..].parse::<usize>().unwrap());
        let step = self.flow.step(self.flow.find(name).unwrap());
        let outcome = chosen(step, number).to_string();
        let Act::Ask(ask) = &step.act else { panic!("{name} asks nobody") };
        if name.starts_with("monitor:") {
            return vec![
                json!({"step": name, "kind": "judge", "output": {"outcome": outcome, "reason": "so it is"}}),
            ];
        }
        let reports = ask.reports.iter().map(|report| report.name.to_string());
        if how == ":" {
            let reports: Map<String, Value> = reports.map(|name| (name, json!("# It"))).collect();
            let mut output = json!({"outcome": outcome, "response": "said"});
            if !reports.is_empty() {
                output["reports"] = Value::Object(reports);
            }
            return vec![json!({"step": name, "kind": "work", "output": output})];
        }
        let said =
            if how == "#" { format!("All is said. [{name}:{number}]") } else { "All is said.".to_owned() };
        let mut answers = vec![json!({"step": name, "kind": "work", "text": said})];
        answers.extend(reports.map(|_| json!({"step": name, "kind": "report", "text": "# It"})));
        if how == "?" {
            let output = json!({"outcome": outcome, "reason": "so it is"});
            answers.push(json!({"step": format!("{name}@judge"), "kind": "judge", "output": output}));
        }
        answers
    }

    /// Notes what was taken, and tells how it went.
    fn told(&mut self, project: &Project, ran: &Ran) -> String {
        let status = project.status();
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let mut lines = Vec::new();
        for row in visits(&status) {
            let (step, outcome) = (text(&row["step"]), text(&row["outcome"]));
            lines.push(format!(
                "{step} #{}: {outcome} → {} ({})",
                row["visit"],
                text(&row["target"]),
                row["asks"]
            ));
            self.taken.insert((step, outcome));
        }
        let mut reports: BTreeMap<String, u32> = BTreeMap::new();
        for report in status["reports"].as_array().into_iter().flatten() {
            assert_eq!(project.read(report["path"].as_str().unwrap()), "# It", "{report}");
            *reports.entry(text(&report["name"])).or_default() += 1;
        }
        let log = project.run(&["log", "last"]).stdout;
        assert!(log.lines().all(|line| line.matches(", wrote ").count() < 2), "{log}");
        let reports: Vec<String> =
            reports.into_iter().map(|(name, times)| format!("{name} {times}×")).collect();
        lines.push(format!("reports: {}", reports.join(", ")));
        let asks: Vec<String> = status["asks"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, times)| **times != json!(0))
            .map(|(kind, times)| format!("{times} {kind}"))
            .collect();
        lines.push(format!("asks: {}", asks.join(", ")));
        lines.push(format!("{}, exit {}", text(&status["state"]), ran.code));
        lines.join("\n")
    }

    /// Every rule of every movement, member and monitor was taken.
    fn is_whole(&self) {
        for step in &self.flow.steps {
            // What decides for another step is seen in that one's outcomes.
            if step.name.contains('@') {
                continue;
            }
            for outcome in outcomes(step) {
                let seen = self.taken.contains(&(step.name.to_string(), outcome.to_string()));
                assert!(seen, "`{}` never was `{outcome}`: {:#?}", step.name, self.taken);
            }
        }
    }
}

type Step = cuegate_flow::model::Step<cuegate_flow::model::StepId>;

/// The rules of a step by their numbers.
fn numbered(step: &Step) -> &[Outcome] {
    let Gate::Readers(readers) = &step.gate else { return &[] };
    readers
        .iter()
        .find_map(|reader| match reader {
            OutcomeReader::Tag { base: 1, outcomes, .. } => Some(outcomes.as_slice()),
            _ => None,
        })
        .unwrap_or_default()
}

fn chosen(step: &Step, number: usize) -> &Outcome {
    numbered(step).get(number - 1).unwrap_or_else(|| panic!("`{}` has no rule {number}", step.name))
}

/// The outcomes that the rules of a step have.
fn outcomes(step: &Step) -> Vec<&Outcome> {
    match &step.gate {
        Gate::Join { rules, .. } => rules.iter().map(|rule| &rule.outcome).collect(),
        _ => numbered(step).iter().collect(),
    }
}

/// One ask a movement, one for the judge of the loop, two for the reviewers: thirteen.
#[test]
fn default_piece_through_a_loop_that_its_monitor_ends() {
    let Some(mut table) = Table::of("default") else { return };
    let row = "plan:1 architect:2 implement:1 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 \
               monitor:ai_review+ai_fix:2 arch-review:1 qa-review:1 supervise:1";
    assert_snapshot!(table.row(row), @r#"
    plan #1: Requirements are clear and implementable → architect (1)
    architect #1: Design complete → implement (1)
    implement #1: Implementation complete → ai_review (1)
    ai_review #1: AI-specific issues found → ai_fix (1)
    ai_fix #1: AI issues fixed → ai_review (1)
    ai_review #2: AI-specific issues found → ai_fix (1)
    ai_fix #2: AI issues fixed → ai_review (1)
    ai_review #3: AI-specific issues found → ai_fix (1)
    monitor:ai_review+ai_fix #1: Unproductive (no improvement) → reviewers (1)
    ai_fix #3: AI issues fixed → reviewers (1)
    arch-review #1: approved → - (1)
    qa-review #1: approved → - (1)
    reviewers #1: all("approved") → supervise (0)
    supervise #1: All checks passed → @completed (1)
    reports: 00-plan.md 1×, 01-architecture.md 1×, 02-coder-scope.md 1×, 03-coder-decisions.md 1×, 04-ai-review.md 3×, 05-architect-review.md 1×, 06-qa-review.md 1×, 07-supervisor-validation.md 1×, summary.md 1×
    asks: 12 work, 1 judge
    completed, exit 0
    "#);
}

#[test]
fn default_by_every_rule() {
    let Some(mut table) = Table::of("default") else { return };
    assert_snapshot!(table.row("plan:2"), @"
    plan #1: User is asking a question (not an implementation task) → @completed (1)
    reports: 00-plan.md 1×
    asks: 1 work
    completed, exit 0
    ");
    assert_snapshot!(table.row("plan?3"), @"
    plan #1: Requirements unclear, insufficient info → @aborted (3)
    reports: 00-plan.md 1×
    asks: 1 work, 1 report, 1 judge
    aborted, exit 1
    ");
    assert_snapshot!(table.row("plan#1 architect:3"), @"
    plan #1: Requirements are clear and implementable → architect (2)
    architect #1: Insufficient info, cannot proceed → @aborted (1)
    reports: 00-plan.md 1×, 01-architecture.md 1×
    asks: 2 work, 1 report
    aborted, exit 1
    ");
    let row = "plan:1 architect:1 implement:2 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 \
               monitor:ai_review+ai_fix:1 ai_review:1 arch-review:2 qa-review:1 fix:1 arch-review:1 qa-review:2 \
               fix:2 plan:1 architect:1 implement:3 ai_review:2 ai_fix:2 ai_no_fix:1 ai_fix:3 ai_no_fix:2 \
               arch-review:1 qa-review:1 supervise:2 plan:2";
    assert_snapshot!(table.row(row), @r#"
    plan #1: Requirements are clear and implementable → architect (1)
    architect #1: Small task (no design needed) → implement (1)
    implement #1: No implementation (report only) → ai_review (1)
    ai_review #1: AI-specific issues found → ai_fix (1)
    ai_fix #1: AI issues fixed → ai_review (1)
    ai_review #2: AI-specific issues found → ai_fix (1)
    ai_fix #2: AI issues fixed → ai_review (1)
    ai_review #3: AI-specific issues found → ai_fix (1)
    monitor:ai_review+ai_fix #1: Healthy (making progress) → ai_review (1)
    ai_fix #3: AI issues fixed → ai_review (1)
    ai_review #4: No AI-specific issues → reviewers (1)
    arch-review #1: needs_fix → - (1)
    qa-review #1: approved → - (1)
    reviewers #1: any("needs_fix") → fix (0)
    fix #1: Fix complete → reviewers (1)
    arch-review #2: approved → - (1)
    qa-review #2: needs_fix → - (1)
    reviewers #2: any("needs_fix") → fix (0)
    fix #2: Cannot proceed, insufficient info → plan (1)
    plan #2: Requirements are clear and implementable → architect (1)
    architect #2: Small task (no design needed) → implement (1)
    implement #2: Cannot proceed, insufficient info → ai_review (1)
    ai_review #5: AI-specific issues found → ai_fix (1)
    ai_fix #4: No fix needed (verified target files/spec) → ai_no_fix (1)
    ai_no_fix #1: ai_review's findings are valid (fix required) → ai_fix (1)
    ai_fix #5: Cannot proceed, insufficient info → ai_no_fix (1)
    ai_no_fix #2: ai_fix's judgment is valid (no fix needed) → reviewers (1)
    arch-review #3: approved → - (1)
    qa-review #3: approved → - (1)
    reviewers #3: all("approved") → supervise (0)
    supervise #1: Requirements unmet, tests failing, build errors → plan (1)
    plan #3: User is asking a question (not an implementation task) → @completed (1)
    reports: 00-plan.md 3×, 01-architecture.md 2×, 02-coder-scope.md 2×, 03-coder-decisions.md 2×, 04-ai-review.md 5×, 05-architect-review.md 3×, 06-qa-review.md 3×, 07-supervisor-validation.md 1×, summary.md 1×
    asks: 28 work, 1 judge
    completed, exit 0
    "#);
    let row = "plan:1 architect:2 implement:1 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 ai_review:2 ai_fix:1 \
               monitor:ai_review+ai_fix:2 arch-review?1 qa-review#1 supervise?1";
    assert_snapshot!(table.row(row), @r#"
    plan #1: Requirements are clear and implementable → architect (1)
    architect #1: Design complete → implement (1)
    implement #1: Implementation complete → ai_review (1)
    ai_review #1: AI-specific issues found → ai_fix (1)
    ai_fix #1: AI issues fixed → ai_review (1)
    ai_review #2: AI-specific issues found → ai_fix (1)
    ai_fix #2: AI issues fixed → ai_review (1)
    ai_review #3: AI-specific issues found → ai_fix (1)
    monitor:ai_review+ai_fix #1: Unproductive (no improvement) → reviewers (1)
    ai_fix #3: AI issues fixed → reviewers (1)
    arch-review #1: approved → - (3)
    qa-review #1: approved → - (2)
    reviewers #1: all("approved") → supervise (0)
    supervise #1: All checks passed → @completed (4)
    reports: 00-plan.md 1×, 01-architecture.md 1×, 02-coder-scope.md 1×, 03-coder-decisions.md 1×, 04-ai-review.md 3×, 05-architect-review.md 1×, 06-qa-review.md 1×, 07-supervisor-validation.md 1×, summary.md 1×
    asks: 12 work, 4 report, 3 judge
    completed, exit 0
    "#);
    let row = "plan:1 architect:2 implement:4 implement?1 ai_review:1 arch-review:1 qa-review:1 supervise:1";
    let Some(told) = table.row_at_terminal(row, "the blue one\n") else { return };
    assert_snapshot!(told, @r#"
    plan #1: Requirements are clear and implementable → architect (1)
    architect #1: Design complete → implement (1)
    implement #1: User input required → implement (1)
    implement #2: Implementation complete → ai_review (4)
    ai_review #1: No AI-specific issues → reviewers (1)
    arch-review #1: approved → - (1)
    qa-review #1: approved → - (1)
    reviewers #1: all("approved") → supervise (0)
    supervise #1: All checks passed → @completed (1)
    reports: 00-plan.md 1×, 01-architecture.md 1×, 02-coder-scope.md 2×, 03-coder-decisions.md 2×, 04-ai-review.md 1×, 05-architect-review.md 1×, 06-qa-review.md 1×, 07-supervisor-validation.md 1×, summary.md 1×
    asks: 8 work, 2 report, 1 judge
    completed, exit 0
    "#);
    table.is_whole();
}

#[test]
fn minimal_by_every_rule() {
    let Some(mut table) = Table::of("minimal") else { return };
    assert_snapshot!(table.row("implement:2"), @"
    implement #1: Cannot proceed, insufficient info → @aborted (1)
    reports: 01-coder-scope.md 1×, 02-coder-decisions.md 1×
    asks: 1 work
    aborted, exit 1
    ");
    let row = "implement:1 ai_review:2 supervise:2 ai_fix_parallel:1 supervise_fix_parallel:1 \
               ai_review:2 supervise:1 ai_fix:1 ai_review:1 supervise:2 supervise_fix:1 \
               ai_review:2 supervise:1 ai_fix:2 implement:1 ai_review:2 supervise:1 ai_fix:3 \
               implement:1 ai_review:1 supervise:2 supervise_fix:2 implement:1 ai_review:1 supervise:1";
    assert_snapshot!(table.row(row), @r#"
    implement #1: Implementation complete → reviewers (1)
    ai_review #1: AI-specific issues found → - (1)
    supervise #1: Requirements unmet, tests failing → - (1)
    reviewers #1: all("AI-specific issues found", "Requirements unmet, tests failing") → fix_both (0)
    ai_fix_parallel #1: AI Reviewer's issues fixed → - (1)
    supervise_fix_parallel #1: Supervisor's issues fixed → - (1)
    fix_both #1: all("AI Reviewer's issues fixed", "Supervisor's issues fixed") → reviewers (0)
    ai_review #2: AI-specific issues found → - (1)
    supervise #2: All checks passed → - (1)
    reviewers #2: any("AI-specific issues found") → ai_fix (0)
    ai_fix #1: AI Reviewer's issues fixed → reviewers (1)
    ai_review #3: No AI-specific issues → - (1)
    supervise #3: Requirements unmet, tests failing → - (1)
    reviewers #3: any("Requirements unmet, tests failing") → supervise_fix (0)
    supervise_fix #1: Supervisor's issues fixed → reviewers (1)
    ai_review #4: AI-specific issues found → - (1)
    supervise #4: All checks passed → - (1)
    reviewers #4: any("AI-specific issues found") → ai_fix (0)
    ai_fix #2: No fix needed (verified target files/spec) → implement (1)
    implement #2: Implementation complete → reviewers (1)
    ai_review #5: AI-specific issues found → - (1)
    supervise #5: All checks passed → - (1)
    reviewers #5: any("AI-specific issues found") → ai_fix (0)
    ai_fix #3: Cannot proceed, insufficient info → implement (1)
    implement #3: Implementation complete → reviewers (1)
    ai_review #6: No AI-specific issues → - (1)
    supervise #6: Requirements unmet, tests failing → - (1)
    reviewers #6: any("Requirements unmet, tests failing") → supervise_fix (0)
    supervise_fix #2: Cannot proceed, insufficient info → implement (1)
    implement #4: Implementation complete → reviewers (1)
    ai_review #7: No AI-specific issues → - (1)
    supervise #7: All checks passed → - (1)
    reviewers #7: all("No AI-specific issues", "All checks passed") → @completed (0)
    reports: 01-coder-scope.md 4×, 02-coder-decisions.md 4×, 03-ai-review.md 7×, 05-supervisor-validation.md 7×, summary.md 7×
    asks: 25 work
    completed, exit 0
    "#);
    let row = "implement:3 implement#1 ai_review?2 supervise#2 ai_fix_parallel:2 supervise_fix_parallel?1 \
               implement:1 ai_review:2 supervise:2 ai_fix_parallel#3 supervise_fix_parallel:2 \
               implement:1 ai_review:1 supervise:1";
    let Some(told) = table.row_at_terminal(row, "the green one\n") else { return };
    assert_snapshot!(told, @r#"
    implement #1: User input required because there are items to confirm with the user → implement (1)
    implement #2: Implementation complete → reviewers (3)
    ai_review #1: AI-specific issues found → - (3)
    supervise #1: Requirements unmet, tests failing → - (3)
    reviewers #1: all("AI-specific issues found", "Requirements unmet, tests failing") → fix_both (0)
    ai_fix_parallel #1: No fix needed (verified target files/spec) → - (1)
    supervise_fix_parallel #1: Supervisor's issues fixed → - (2)
    fix_both #1: any("No fix needed (verified target files/spec)", "Cannot proceed, insufficient info") → implement (0)
    implement #3: Implementation complete → reviewers (1)
    ai_review #2: AI-specific issues found → - (1)
    supervise #2: Requirements unmet, tests failing → - (1)
    reviewers #2: all("AI-specific issues found", "Requirements unmet, tests failing") → fix_both (0)
    ai_fix_parallel #2: Cannot proceed, insufficient info → - (1)
    supervise_fix_parallel #2: Cannot proceed, insufficient info → - (1)
    fix_both #2: any("No fix needed (verified target files/spec)", "Cannot proceed, insufficient info") → implement (0)
    implement #4: Implementation complete → reviewers (1)
    ai_review #3: No AI-specific issues → - (1)
    supervise #3: All checks passed → - (1)
    reviewers #3: all("No AI-specific issues", "All checks passed") → @completed (0)
    reports: 01-coder-scope.md 4×, 02-coder-decisions.md 4×, 03-ai-review.md 3×, 05-supervisor-validation.md 3×, summary.md 3×
    asks: 14 work, 5 report, 2 judge
    completed, exit 0
    "#);
    table.is_whole();
}

#[test]
fn review_only_by_every_rule() {
    let Some(mut table) = Table::of("review-only") else { return };
    assert_snapshot!(table.row("plan#2"), @"
    plan #1: User is asking a question (not a review task) → @completed (1)
    reports: 
    asks: 1 work
    completed, exit 0
    ");
    assert_snapshot!(table.row("plan:3"), @"
    plan #1: Requirements unclear, insufficient info → @aborted (1)
    reports: 
    asks: 1 work
    aborted, exit 1
    ");
    assert_snapshot!(table.row("plan:1 arch-review:1 security-review:1 ai-review:1 supervise:1 pr-comment:1"), @r#"
    plan #1: Review scope is clear → reviewers (1)
    ai-review #1: approved → - (1)
    arch-review #1: approved → - (1)
    security-review #1: approved → - (1)
    reviewers #1: all("approved") → supervise (0)
    supervise #1: approved, PR comment requested → pr-comment (1)
    pr-comment #1: Comments posted → @completed (1)
    reports: 01-architect-review.md 1×, 02-security-review.md 1×, 03-ai-review.md 1×, 04-review-summary.md 1×
    asks: 6 work
    completed, exit 0
    "#);
    assert_snapshot!(table.row("plan:1 arch-review:2 security-review?2 ai-review#2 supervise#1 pr-comment?2"), @r#"
    plan #1: Review scope is clear → reviewers (1)
    ai-review #1: needs_fix → - (2)
    arch-review #1: needs_fix → - (1)
    security-review #1: needs_fix → - (3)
    reviewers #1: any("needs_fix") → supervise (0)
    supervise #1: approved, PR comment requested → pr-comment (2)
    pr-comment #1: Failed to post comments → @completed (2)
    reports: 01-architect-review.md 1×, 02-security-review.md 1×, 03-ai-review.md 1×, 04-review-summary.md 1×
    asks: 6 work, 3 report, 2 judge
    completed, exit 0
    "#);
    assert_snapshot!(table.row("plan:1 arch-review:1 security-review:2 ai-review:1 supervise?2"), @r#"
    plan #1: Review scope is clear → reviewers (1)
    ai-review #1: approved → - (1)
    arch-review #1: approved → - (1)
    security-review #1: needs_fix → - (1)
    reviewers #1: any("needs_fix") → supervise (0)
    supervise #1: approved → @completed (3)
    reports: 01-architect-review.md 1×, 02-security-review.md 1×, 03-ai-review.md 1×, 04-review-summary.md 1×
    asks: 5 work, 1 report, 1 judge
    completed, exit 0
    "#);
    assert_snapshot!(table.row("plan:1 arch-review:1 security-review:1 ai-review:1 supervise:3"), @r#"
    plan #1: Review scope is clear → reviewers (1)
    ai-review #1: approved → - (1)
    arch-review #1: approved → - (1)
    security-review #1: approved → - (1)
    reviewers #1: all("approved") → supervise (0)
    supervise #1: rejected → @aborted (1)
    reports: 01-architect-review.md 1×, 02-security-review.md 1×, 03-ai-review.md 1×, 04-review-summary.md 1×
    asks: 5 work
    aborted, exit 1
    "#);
    table.is_whole();
}

#[test]
fn magi_by_every_rule() {
    let Some(mut table) = Table::of("magi") else { return };
    assert_snapshot!(table.row("melchior:1 balthasar#1 casper?1"), @"
    melchior #1: Judgment completed → balthasar (1)
    balthasar #1: Judgment completed → casper (1)
    casper #1: Final judgment completed → @completed (2)
    reports: 
    asks: 3 work, 1 judge
    completed, exit 0
    ");
    table.is_whole();
}

/// Conditions are sentences: each stands on a line of its own, however alike they lead; judges do not crowd a picture.
#[test]
fn show_and_graph_of_pieces_are_readable() {
    let Some(folder) = pieces() else { return };
    let project = Project::empty();
    let path = folder.join("default.yaml");
    let page = project.run(&["show", path.to_str().unwrap()]).stdout;
    let implement = page.split("\n\n").find(|part| part.starts_with("implement ")).unwrap();
    assert_snapshot!(implement, @"
    implement  [work]
      prompt    1,395 lines, reads iteration, max_iterations, step_iteration, report_dir, task,
                previous_response, user_inputs; system prompt of 36 lines
      answer    by schema; outcome from outcome, then the tag [implement:N], then the tag [STEP:N], then
                judge implement@judge
      allowed   acceptEdits, tools Read, Glob, Grep, Edit, Write, Bash, WebSearch, WebFetch
      session   begins coder anew, persona coder
      routes    Implementation complete           → ai_review
                No implementation (report only)   → ai_review
                Cannot proceed, insufficient info → ai_review
    ");
    let picture = project.run(&["graph", path.to_str().unwrap()]).stdout;
    assert!(!picture.contains("@judge") && picture.contains("monitor:ai_review+ai_fix"), "{picture}");
}
