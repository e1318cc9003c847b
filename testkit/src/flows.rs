//! Flows for each definition format that use all features of the flow model.

use std::sync::Arc;

use cuegate_flow::model::{
    Actions, Conduct, Fact, Field, Flow, Handler, IssueClosure, IssueRule, JoinPattern, JoinRule, Outcome,
    OutcomeReader, Piece, Poll, PollState, Program, Reaction, Resource, Role, Signal, Source, Template,
    Verdict,
};
use serde_json::json;

use crate::Builder;

fn named(name: &str) -> Outcome {
    Outcome::Named(name.into())
}

/// The failure text for an answer without a decision.
fn silence(step: &str) -> OutcomeReader<cuegate_flow::model::Name> {
    OutcomeReader::Silence(Template {
        pieces: vec![
            Piece::Text("nothing decided in iteration ".into()),
            Piece::Value(Source::Fact(Fact::Iteration)),
            Piece::Text(format!(" on {step}").into()),
        ],
    })
}

/// A step registry of the "closing" kind: work, hand off, close behind validators, remedies.
pub fn closing() -> Arc<Flow> {
    closing_named("closing").flow()
}

fn closing_named(name: &str) -> Builder {
    let schema = |words: &[&str]| {
        json!({"type": "object", "required": ["action"], "properties": {
            "action": {"enum": words}, "plan": {"type": "string"}, "summary": {"type": "string"}}})
    };
    Builder::new(name, "registry-closing", "initial")
        .limit(12)
        .ask("initial", Role::Work, &["next", "repeat", "abort"])
        .schema(schema(&["next", "repeat", "abort"]))
        .reader(silence("initial"))
        .leaves("plan")
        .to("next", "continuation")
        .to("repeat", "initial")
        .to("abort", "@aborted")
        .ask("continuation", Role::Work, &["next", "handoff"])
        .schema(schema(&["next", "handoff"]))
        .reader(OutcomeReader::Fallback(named("next")))
        .to("next", "continuation")
        .hands_off("handoff", "closure")
        .ask("closure", Role::Work, &["closing", "repeat"])
        .schema(schema(&["closing", "repeat"]))
        .to("closing", "closure@validators")
        .to("repeat", "closure")
        .exec("closure@validators", &["tests: sh test.sh", "clean: git status --porcelain"])
        .on(Outcome::Pass, "@completed")
        .remedy(Outcome::Fail(0), &["continuation"], "closure attempts", 2)
        .on(Outcome::Fail(0), "@failed")
        .remedy(Outcome::Fail(1), &["continuation"], "closure attempts", 2)
        .on(Outcome::Fail(1), "@failed")
}

/// [`closing`], with action blocks and an automatic answer to questions.
pub fn acting() -> Arc<Flow> {
    let actions = Actions {
        marker: "json".into(),
        types: None,
        handlers: vec![("note".into(), Reaction::Exec(program("acting/note")))],
    };
    let auto_response = Some("as you like".into());
    closing_named("acting")
        .conduct(Conduct {
            auto_response,
            actions: Some(actions),
            inspects: true,
            sandbox: Default::default(),
            issue: None,
        })
        .flow()
}

/// [`closing`] on an issue: labels, a comment, and what is done with the work of a run in a worktree of its own.
pub fn on_issue() -> Arc<Flow> {
    let actions =
        Actions { marker: "json".into(), types: None, handlers: vec![("note".into(), Reaction::Comment)] };
    let issue = IssueRule {
        in_progress: Some("in-progress".into()),
        blocked: Some("blocked".into()),
        add: vec!["done".into()],
        remove: vec!["in-progress".into()],
        closure: IssueClosure { labels: true, closes: true },
    };
    closing_named("on issue")
        .conduct(Conduct { actions: Some(actions), issue: Some(issue), ..Conduct::default() })
        .flow()
}

/// [`closing`] with each verdict.
pub fn verdicts() -> Vec<Arc<Flow>> {
    let checks = |max| Verdict::Checks { max, of: vec!["closure".into()] };
    let keyword = |text: &str| Verdict::Keyword(text.into());
    [
        ("iterations", Verdict::Iterations(5)),
        ("checks", checks(2)),
        ("keyword", keyword("continuation 1")),
        ("signal", Verdict::Signal(signal("repeat", &["summary"]))),
        ("poll", Verdict::Poll(poll("file"))),
        ("handler", Verdict::Handler(handler("verdict.sh"))),
        ("every", Verdict::Every(vec![keyword("initial 1"), checks(1), Verdict::Poll(poll("file"))])),
        ("any", Verdict::Any(vec![Verdict::Flow, Verdict::Handler(handler("verdict.sh")), checks(3)])),
        (
            "first",
            Verdict::Every(vec![
                Verdict::First(vec![Verdict::Poll(poll("file")), keyword("continuation 0")]),
                Verdict::Iterations(4),
            ]),
        ),
    ]
    .into_iter()
    .map(|(name, verdict)| closing_named(name).verdict(verdict).flow())
    .collect()
}

/// A poll of the file that a parameter names.
pub fn poll(param: &str) -> Poll {
    Poll { resource: Resource::File, param: param.into(), state: PollState::Exists }
}

/// A handler program that decides whether a run is done.
pub fn handler(name: &str) -> Handler {
    Handler { program: program(name), config: json!({ "handlerPath": name }) }
}

/// A program that is never started.
pub fn program(path: &str) -> Program {
    Program { path: path.into(), name: path.into(), start: vec!["sh".into()], body: "".into() }
}

/// A signal with required fields.
pub fn signal(kind: &str, required: &[&str]) -> Signal {
    let required = required.iter().map(|name| Field { name: (*name).into(), value: None }).collect();
    Signal { kind: kind.into(), marker: "json".into(), required }
}

/// A step registry of the "complete" kind: `complete` leads to a step whose `complete` ends the run.
pub fn complete() -> Arc<Flow> {
    Builder::new("complete", "registry-complete", "initial.issue")
        .limit(8)
        .ask("initial.issue", Role::Work, &["next", "complete"])
        .reader(OutcomeReader::FirstFallback(named("next")))
        .reader(silence("initial.issue"))
        .leaves("understanding")
        .to("next", "continuation.issue")
        .to("complete", "complete.issue")
        .ask("continuation.issue", Role::Work, &["next", "repeat", "complete", "abort"])
        .needs("initial.issue", "understanding")
        .reader(OutcomeReader::FirstFallback(named("next")))
        .reader(silence("continuation.issue"))
        .to("next", "continuation.issue")
        .to("repeat", "continuation.issue")
        .to("complete", "complete.issue")
        .to("abort", "@aborted")
        .ask("complete.issue", Role::Work, &["complete", "next"])
        .to("complete", "@completed")
        .to("next", "continuation.issue")
        .flow()
}

/// A check flow: rounds of executions, each checked, retries and fallbacks.
///
/// An execution is an attempt of a visit; `min` executions precede the first check, a round has at most `max`, and a
/// retry starts a new round.
pub fn check_flow() -> Arc<Flow> {
    let step = |builder: Builder, id: &str, min: u32, max: u32, retries: u32, pass: &str, fall: &str| {
        let (least, most, again) = (format!("{id} min"), format!("{id} max"), format!("{id} retries"));
        let fresh = [&*least, &*most];
        let all = [&*least, &*most, &*again];
        builder
            .tell(id, "done")
            .bounded_again("done", id, &least, min - 1)
            .to("done", &format!("{id}@check"))
            .ask(&format!("{id}@check"), Role::Check, &["ok", "ng"])
            .to("ok", pass)
            .resets(&all)
            .bounded_again("ng", id, &most, max - min)
            .bounded("ng", id, &again, retries)
            .resets(&fresh)
            .to("ng", fall)
            .resets(&all)
    };
    let builder = Builder::new("check", "registry-check", "s_a8f3").limit(25);
    let builder = step(builder, "s_a8f3", 1, 1, 2, "s_b2c1", "@failed");
    let builder = step(builder, "s_b2c1", 2, 4, 0, "s_c9d4", "s_a8f3");
    step(builder, "s_c9d4", 1, 1, 0, "@completed", "s_b2c1").flow()
}

/// A piece: parallel reviewers, a judged answer, a loop monitor and a person's answer.
pub fn piece() -> Arc<Flow> {
    Builder::new("piece", "takt", "plan")
        .limit(16)
        .ask("plan", Role::Work, &["ready", "ask"])
        .reader(OutcomeReader::Tag {
            name: "PLAN".into(),
            base: 1,
            outcomes: vec![named("ready"), named("ask")],
        })
        .to("ready", "implement")
        .to("ask", "plan@person")
        .person("plan@person", "What should be done?")
        .to("answered", "implement")
        .ask("implement", Role::Work, &["done"])
        .reader(OutcomeReader::Judge { step: "implement@judge".to_name() })
        .to("done", "reviewers")
        .to("stuck", "@aborted")
        .ask("implement@judge", Role::Judge, &["done", "stuck", "none"])
        .all(
            "reviewers",
            &["arch-review", "qa-review", "security-review"],
            2,
            vec![
                JoinRule { pattern: JoinPattern::All(named("approved")), outcome: named("approved") },
                JoinRule { pattern: JoinPattern::Any(vec![named("needs_fix")]), outcome: named("needs_fix") },
            ],
        )
        .to("approved", "@completed")
        .to("needs_fix", "fix")
        .ask("arch-review", Role::Work, &["approved", "needs_fix"])
        .ask("qa-review", Role::Work, &["approved", "needs_fix"])
        .ask("security-review", Role::Work, &["approved", "needs_fix"])
        .ask("fix", Role::Work, &["fixed"])
        .to("fixed", "reviewers")
        .ask("monitor:reviewers+fix", Role::Judge, &["healthy", "unproductive"])
        .to("healthy", "reviewers")
        .to("unproductive", "@aborted")
        .monitor(&["reviewers", "fix"], 2, "monitor:reviewers+fix")
        .flow()
}

/// A piece with fused answers: reports, judged members, a judge over all of them, plain text.
pub fn reporting() -> Arc<Flow> {
    use cuegate_flow::model::{Fact, SessionRule, Source};
    let tag = |name: &str, words: &[&str]| OutcomeReader::Tag {
        name: name.into(),
        base: 1,
        outcomes: words.iter().map(|word| named(word)).collect(),
    };
    let review = |builder: Builder, id: &str| {
        builder
            .ask(id, Role::Work, &["approved", "needs_fix", "none"])
            .fused(&[&format!("{id}.md")])
            .session(SessionRule::Continue(id.into()))
            .reads("plan", Source::Report("plan.md".into()))
            .reader(tag(id, &["approved", "needs_fix"]))
            .reader(OutcomeReader::Judge { step: format!("{id}@judge").as_str().to_name() })
            .ask(&format!("{id}@judge"), Role::Judge, &["approved", "needs_fix", "none"])
            .session(SessionRule::Branch(id.into()))
    };
    let builder = Builder::new("reporting", "takt", "plan")
        .limit(14)
        .ask("plan", Role::Work, &["ready", "unclear"])
        .fused(&["plan.md", "scope.md"])
        .reads("inputs", Source::Fact(Fact::UserInputs))
        .reader(tag("plan", &["ready", "unclear"]))
        .reader(OutcomeReader::Judge { step: "plan@judge".to_name() })
        .to("ready", "reviewers")
        .to("unclear", "plan@person")
        .person("plan@person", "What is meant?")
        .to("answered", "plan")
        .ask("plan@judge", Role::Judge, &["ready", "unclear", "none"])
        .session(SessionRule::Branch("run".into()))
        .all(
            "reviewers",
            &["style", "security", "tests"],
            2,
            vec![
                JoinRule { pattern: JoinPattern::All(named("approved")), outcome: named("approved") },
                JoinRule {
                    pattern: JoinPattern::Each(vec![
                        named("needs_fix"),
                        named("needs_fix"),
                        named("approved"),
                    ]),
                    outcome: named("mixed"),
                },
            ],
        )
        .or_judge("reviewers@judge")
        .to("approved", "@completed")
        .to("mixed", "fix")
        .to("needs_fix", "fix")
        .to("hopeless", "@aborted")
        .ask("reviewers@judge", Role::Judge, &["needs_fix", "hopeless", "none"])
        .session(SessionRule::Fresh);
    let builder = review(builder, "style");
    let builder = review(builder, "security");
    review(builder, "tests")
        .ask("fix", Role::Work, &["fixed"])
        .owes(&["fix.md"])
        .session(SessionRule::Renew("fixer".into()))
        .reads("before", Source::Fact(Fact::PreviousResponse))
        .to("fixed", "reviewers")
        .ask("monitor:reviewers+fix", Role::Judge, &["healthy", "unproductive"])
        .reads("rounds", Source::Fact(Fact::Rounds))
        .to("healthy", "reviewers")
        .to("unproductive", "@aborted")
        .monitor(&["reviewers", "fix"], 3, "monitor:reviewers+fix")
        .flow()
}

trait ToName {
    fn to_name(&self) -> cuegate_flow::model::Name;
}

impl ToName for str {
    fn to_name(&self) -> cuegate_flow::model::Name {
        cuegate_flow::model::Name::new(self, cuegate_flow::diagnostics::Span::default())
    }
}

/// All of them.
pub fn all() -> Vec<Arc<Flow>> {
    vec![closing(), complete(), check_flow(), piece(), reporting()]
}
