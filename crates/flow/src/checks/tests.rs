//! For each code, the smallest draft that shows only it, and the same draft fixed.

#[cfg(test)]
pub(crate) mod sizes;

use super::{
    list_codes, testing,
    testing::{codes_of, draft, hand_on, name, need, param, prompt, schema},
};
use crate::{
    diagnostics::Span,
    model::{
        Act, Counter, CounterId, Draft, EdgeBound, Ending, Extractor, FieldPath, JoinPattern, Limits,
        Monitor, Outcome, Piece, Schema, SchemaId, Selector, Source, Target,
    },
};
use serde_json::json;

/// A code, a draft that shows it, and the fixed draft.
struct Twins {
    code: &'static str,
    broken: Draft,
    mended: Draft,
}

fn twins(code: &'static str, broken: Draft, mended: Draft) -> Twins {
    Twins { code, broken, mended }
}

fn table() -> Vec<Twins> {
    vec![
        twins("ambiguous-join", ambiguous("x"), ambiguous("y")),
        twins("bound-never-hit", bounded("c"), bounded("a")),
        twins("closure-skipped", proved("work: next → verify, close → end"), proved("work: next → verify")),
        twins("unreachable-transition", draft("a: done → end, done → end"), draft("a: done → end")),
        twins("join-never-fires", joined("any", "all"), joined("all", "any")),
        twins("limit-too-low", limited(1), limited(2)),
        twins("maybe-unassigned", answers(&[]), answers(&["plan"])),
        twins("monitor-never-acts", watched(["a", "c"]), watched(["a", "b"])),
        twins("no-entry", without_entry(), draft("a: done → end")),
        twins("no-way-to-end", draft("a: next → a"), draft("a: next → a, done → end")),
        twins("optional-parameter", asks_for("issue", false), asks_for("issue", true)),
        twins("missing-transition", without_edge(), draft("a: next → b, done → end\nb: done → end")),
        twins("unwritten-report", reports(1, 0), reports(0, 1)),
        twins("retry-without-change", remedied("Work."), remedied("Mend what failed.")),
        twins("step-name", draft("@a: done → end"), draft("a: done → end")),
        twins("transition-without-default", selects(&["a", "b", "c"]), selects(&["a", "b"])),
        twins("type-mismatch", names_step("integer"), names_step("string")),
        twins("unassigned-value", around("a: next → b, skip → c"), around("a: next → b")),
        twins("unknown-target", draft("a: next → b"), draft("a: next → b\nb: done → end")),
        twins("unknown-variable", asks_for("isue", true), asks_for("issue", true)),
        twins("unmatched-join", matched("x"), matched("y")),
        twins("unreachable-step", draft("a: done → end\nb: done → end"), draft("a: next → b\nb: done → end")),
    ]
}

fn named(word: &str) -> Outcome {
    Outcome::Named(word.into())
}

/// Two rules over any member lead to different ends: one matches `x`, the other `word`.
fn ambiguous(word: &str) -> Draft {
    let any = |word| JoinPattern::Any(vec![named(word)]);
    let (first, second) = if word == "x" { ("x", "y") } else { ("y", "y") };
    let mut draft = testing::joined(vec![any(first), any(second)], false);
    if word == "y" {
        draft = testing::joined(vec![any("y"), JoinPattern::All(named("x"))], false);
    }
    draft.steps[0].edges[1].to = Target::End(Ending::Aborted);
    draft
}

/// `b` may go on twice to a step, from which a run returns or not.
fn bounded(to: &str) -> Draft {
    let mut draft = draft("a: next → b\nb: bad → a, bad → c\nc: done → end");
    draft.counters.push(Counter { name: "rounds".into() });
    draft.steps[1].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 2 });
    draft.steps[1].edges[0].to = Target::Step(name(to));
    draft
}

/// `verify` proves the work of `work`.
fn proved(work: &str) -> Draft {
    let mut draft = draft(&format!("{work}\nverify: next → closure\nclosure: done → end"));
    draft.proofs = vec![name("verify")];
    draft
}

/// Two steps to the end, and an iteration limit.
fn limited(max: u32) -> Draft {
    Draft { limits: Limits::new(max), ..draft("a: next → b\nb: done → end") }
}

/// One step writes a report, and one reads it.
fn reports(writer: usize, reader: usize) -> Draft {
    let mut draft = draft("a: next → b\nb: done → end");
    testing::owes(&mut draft, writer, "plan.md");
    prompt(&mut draft, reader, vec![Piece::Value(Source::Report("plan.md".into()))]);
    draft
}

/// The remedy after a failure.
fn remedied(told: &str) -> Draft {
    let mut draft = testing::failing(Extractor::Stdout, vec![Piece::Text(told.into())]);
    prompt(&mut draft, 0, vec![Piece::Text("Work.".into())]);
    draft
}

/// `a` names the step to jump to in a field of this type.
fn names_step(kind: &str) -> Draft {
    let mut draft = draft("a: jump → b\nb: done → end");
    let properties = json!({"action": {"enum": ["jump"]}, "to": {"type": kind}});
    schema(&mut draft, 0, json!({"type": "object", "required": ["action"], "properties": properties}));
    draft.steps[0].edges[0].to =
        Target::Jump { field: FieldPath::parse("to"), among: vec![name("b")], default: None };
    draft
}

/// A rule that all members say `x`, and one that any says `word`.
fn matched(word: &str) -> Draft {
    testing::joined(vec![JoinPattern::All(named("x")), JoinPattern::Any(vec![named(word)])], false)
}

/// Rules over members: `first` (`all` or `any`) has `x`, the next has `y`.
fn joined(first: &str, second: &str) -> Draft {
    let rule = |word: &str| match word {
        "all" => JoinPattern::All(named("x")),
        _ => JoinPattern::Any(vec![named("x")]),
    };
    testing::joined(vec![rule(first), rule(second), JoinPattern::Any(vec![named("y")])], false)
}

/// `b` needs the value of `a`, which the schema of `a` may require.
fn answers(required: &[&str]) -> Draft {
    let mut draft = draft("a: next → b\nb: done → end");
    hand_on(&mut draft, 0, "plan");
    need(&mut draft, 1, "a", "plan");
    let schema = json!({"type": "object", "required": required, "properties": {"plan": {"type": "string"}}});
    draft.schemas.push(Schema::new(schema).unwrap());
    if let Act::Ask(ask) = &mut draft.steps[0].act {
        ask.schema = Some(SchemaId(0));
    }
    draft
}

/// `a` selects by its handoff value, which is one of `values`; there are steps for `a` and `b`.
fn selects(values: &[&str]) -> Draft {
    let mut draft = draft("a: next → b\nb: done → end\nc: done → end");
    hand_on(&mut draft, 0, "kind");
    let cases = vec![("a".into(), name("b")), ("b".into(), name("c"))];
    draft.steps[0].edges[0].to =
        Target::Select { by: Selector::Handoff("kind".into()), cases, default: None };
    let properties = json!({"kind": {"enum": values}});
    let schema = json!({"type": "object", "required": ["kind"], "properties": properties});
    draft.schemas.push(Schema::new(schema).unwrap());
    if let Act::Ask(ask) = &mut draft.steps[0].act {
        ask.schema = Some(SchemaId(0));
    }
    draft
}

/// `a` and `b` form a cycle, and a monitor watches two steps.
fn watched(cycle: [&str; 2]) -> Draft {
    let mut draft = draft("a: next → b\nb: back → a, on → c\nc: done → end\nw: stop → end");
    draft.steps[3].counts = false;
    draft.monitors.push(Monitor {
        name: "watch".into(),
        cycle: cycle.map(|step| vec![name(step)]).to_vec(),
        ignored: Vec::new(),
        threshold: 2,
        judge: name("w"),
        span: Span::default(),
    });
    draft
}

fn without_entry() -> Draft {
    Draft { entry: None, ..draft("a: done → end") }
}

/// A prompt reads the parameter `read`; `issue` is declared.
fn asks_for(read: &str, required: bool) -> Draft {
    let mut draft = draft("a: done → end");
    prompt(&mut draft, 0, vec![Piece::Value(Source::Param(read.into()))]);
    let mut issue = param("issue");
    issue.required = required;
    draft.params.push(issue);
    draft
}

/// `a` can yield `next`, which has no transition.
fn without_edge() -> Draft {
    let mut draft = draft("a: next → b, done → b\nb: done → end");
    draft.steps[0].edges.remove(0);
    draft
}

/// `c` needs the value of `b`.
fn around(first: &str) -> Draft {
    let mut draft = draft(&format!("{first}\nb: next → c\nc: done → end"));
    hand_on(&mut draft, 1, "plan");
    schema(&mut draft, 1, json!({"required": ["plan"], "properties": {"plan": {"type": "string"}}}));
    need(&mut draft, 2, "b", "plan");
    draft
}

#[test]
fn every_code_has_a_broken_and_a_fixed_draft() {
    let table: Vec<&str> = table().iter().map(|row| row.code).collect();
    let codes: Vec<&str> = list_codes().iter().map(|code| code.name).collect();
    assert_eq!(table, codes, "a row for each code, in their order");
}

#[test]
fn the_broken_draft_shows_only_its_code() {
    for row in table() {
        assert_eq!(codes_of(row.broken), [row.code]);
    }
}

#[test]
fn the_fixed_draft_shows_no_finding() {
    for row in table() {
        assert_eq!(codes_of(row.mended), [""; 0], "{} mended", row.code);
    }
}

/// `exactness.md` on counters: nothing leads back to `a`, so its first edge is never used up and no run reaches `c`;
/// the analysis still treats `c` as reachable and reports that the bound is never hit.
#[test]
fn counters_are_not_tracked() {
    let mut bounded = draft("a: next → b\nb: done → end\nc: done → end");
    let mut later = bounded.steps[0].edges[0].clone();
    later.to = Target::Step(name("c"));
    bounded.counters.push(Counter { name: "a".into() });
    bounded.steps[0].edges[0].bound = Some(EdgeBound { counter: CounterId(0), max: 1 });
    bounded.steps[0].edges.push(later);
    assert_eq!(codes_of(bounded), ["bound-never-hit"]);
}
