//! For each code the smallest draft that shows it and nothing else, and the same draft mended.

use super::{
    codes,
    testing::{codes_of, draft, hand_on, name, need, param, prompt},
};
use crate::{
    Act, Bound, Counter, CounterId, Draft, Gate, JoinPattern, JoinRule, Monitor, Outcome, Piece, Schema,
    SchemaId, Selector, Source, Span, Target,
};
use serde_json::json;

/// A code, a draft that shows it, and the same draft mended.
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
        twins("join-never-fires", joined("any", "all"), joined("all", "any")),
        twins("maybe-unassigned", answers(&[]), answers(&["plan"])),
        twins("monitor-never-acts", watched(["a", "c"]), watched(["a", "b"])),
        twins("no-entry", without_entry(), draft("a: done → end")),
        twins("no-way-to-end", draft("a: next → a"), draft("a: next → a, done → end")),
        twins("optional-parameter", asks_for("issue", false), asks_for("issue", true)),
        twins("outcome-without-edge", without_edge(), draft("a: next → b, done → end\nb: done → end")),
        twins("step-name", draft("@a: done → end"), draft("a: done → end")),
        twins("transition-without-default", selects(&["a", "b", "c"]), selects(&["a", "b"])),
        twins("unassigned-value", around("a: next → b, skip → c"), around("a: next → b")),
        twins("unknown-target", draft("a: next → b"), draft("a: next → b\nb: done → end")),
        twins("unknown-variable", asks_for("isue", true), asks_for("issue", true)),
        twins("unreachable-step", draft("a: done → end\nb: done → end"), draft("a: next → b\nb: done → end")),
    ]
}

/// Two members with the outcomes `x` and `y`, and a rule over each of two words: `all` or `any` has `x`.
fn joined(first: &str, second: &str) -> Draft {
    let mut draft = draft("all: r0 → end, r1 → end\na: x → end, y → end\nb: x → end, y → end");
    let x = || Outcome::Named("x".into());
    let rule = |(at, word): (usize, &str)| JoinRule {
        pattern: if word == "all" { JoinPattern::All(x()) } else { JoinPattern::Any(vec![x()]) },
        outcome: Outcome::Named(format!("r{at}").into()),
    };
    let rules = [first, second].into_iter().enumerate().map(rule).collect();
    draft.steps[0].gate = Gate::Join { rules, judges: Vec::new() };
    draft.steps[0].act = Act::All { members: vec![name("a"), name("b")], width: 2 };
    for member in &mut draft.steps[1..] {
        member.counts = false;
        member.edges.clear();
    }
    draft
}

/// `b` needs what `a` leaves, which the schema of `a` may require.
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

/// `a` selects by what it leaves, which is one of `values`; there are steps for `a` and `b`.
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

/// `a` and `b` go round, and a monitor watches two steps.
fn watched(cycle: [&str; 2]) -> Draft {
    let mut draft = draft("a: next → b\nb: back → a, on → c\nc: done → end\nw: stop → end");
    draft.steps[3].counts = false;
    draft.monitors.push(Monitor {
        name: "watch".into(),
        cycle: cycle.map(name).to_vec(),
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

/// `a` can come to `next`, which leads nowhere.
fn without_edge() -> Draft {
    let mut draft = draft("a: next → b, done → b\nb: done → end");
    draft.steps[0].edges.remove(0);
    draft
}

/// `c` needs what `b` leaves.
fn around(first: &str) -> Draft {
    let mut draft = draft(&format!("{first}\nb: next → c\nc: done → end"));
    hand_on(&mut draft, 1, "plan");
    need(&mut draft, 2, "b", "plan");
    draft
}

#[test]
fn every_code_has_a_draft_that_shows_it_and_one_that_does_not() {
    let table: Vec<&str> = table().iter().map(|row| row.code).collect();
    let codes: Vec<&str> = codes().iter().map(|code| code.name).collect();
    assert_eq!(table, codes, "a row for each code, in their order");
}

#[test]
fn the_broken_one_shows_its_code_once_and_nothing_else() {
    for row in table() {
        assert_eq!(codes_of(row.broken), [row.code]);
    }
}

#[test]
fn the_mended_one_shows_nothing() {
    for row in table() {
        assert_eq!(codes_of(row.mended), [""; 0], "{} mended", row.code);
    }
}

/// What `exactness.md` says of counters: nothing leads back to `a`, so that its first edge is never used up and no run
/// comes to `c`; it is taken for a step that runs come to.
#[test]
fn counters_are_not_followed() {
    let mut bounded = draft("a: next → b\nb: done → end\nc: done → end");
    let mut later = bounded.steps[0].edges[0].clone();
    later.to = Target::Step(name("c"));
    bounded.counters.push(Counter { name: "a".into() });
    bounded.steps[0].edges[0].bound = Some(Bound { counter: CounterId(0), max: 1 });
    bounded.steps[0].edges.push(later);
    assert_eq!(codes_of(bounded), [""; 0]);
}
