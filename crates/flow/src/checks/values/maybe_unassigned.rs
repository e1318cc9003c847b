use super::unassigned_value::{HandoffLookup, NeededValue, ValueReader, is_put, list_needed_values};
use crate::analysis::{
    conditional_fields::ConditionalFields, fallback_edges::FallbackEdges, reachability::Reachability,
};
use crate::checks::Code;
use crate::checks::prompt_positions::PromptPositions;
use crate::{
    diagnostics::{Diagnostic, Trace},
    model::{Act, Flow, Handoff, StepId},
};

pub(in crate::checks) const CODE: Code = code!("maybe-unassigned");

pub(in crate::checks) fn check_omitted_values(
    flow: &Flow,
    live: &Reachability,
    passing: &HandoffLookup<'_>,
    places: &PromptPositions<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let (mut unread, left_where) = (FallbackEdges::new(flow, live), ConditionalFields::new(flow, live));
    for (index, step) in flow.steps.iter().enumerate().filter(|(index, _)| live.steps[*index]) {
        for need in
            list_needed_values(step, places).into_iter().filter(|need| need.by != ValueReader::Optional)
        {
            let id = StepId(index as u32);
            let producer = passing.by_name.get(&*need.from).copied();
            let Some(producer) = producer.filter(|producer| *producer != id) else { continue };
            // A path that does not pass the other step is `unassigned-value`.
            if passing.dominance.is_avoidable(id, producer) || !is_put(live, id, &need) {
                continue;
            }
            let said = || need.say(step);
            if never_left(flow, passing, &need, producer) {
                let message = format!(
                    "{}, which is always `null` and counts as absent: each run that gets here fails",
                    said()
                );
                let finding = Diagnostic::note(CODE.name, need.span, message);
                found.push(finding.step(&step.name).hint("see that this is what you want"));
                continue;
            }
            let left = passing.left(flow, producer, &need.key);
            let lacks = |left: &&Handoff| left_where.may_lack(producer, left, id);
            let why = why_missing(flow, producer, left).filter(|_| left.as_ref().is_some_and(lacks));
            let finding = match why {
                Some((why, hint)) => {
                    let hint = match need.by {
                        ValueReader::Input | ValueReader::Optional => {
                            format!("{hint}, or give the input a `default`")
                        }
                        ValueReader::Prompt => format!("{hint}, or declare it in `inputs` with a `default`"),
                        ValueReader::Failure(_) => format!("{hint}, or do not read it there"),
                    };
                    let message =
                        format!("{}, which answers of `{}` may leave out: {why}", said(), need.from);
                    Some(Diagnostic::warning(CODE.name, need.span, message).hint(hint))
                }
                // In a prompt the value is then empty, as intended by a fallback.
                None if need.by != ValueReader::Input => None,
                None => unread.walk(producer, id).map(|trace| fallen_back(&said(), &need, trace)),
            };
            found.extend(finding.map(|finding| finding.step(&step.name)));
        }
    }
}

/// Whether the value of an input is `null` for every answer of its step: its author intends the run to fail there.
fn never_left(flow: &Flow, passing: &HandoffLookup<'_>, need: &NeededValue, producer: StepId) -> bool {
    let Act::Ask(ask) = &flow.step(producer).act else { return false };
    let left = passing.left(flow, producer, &need.key).filter(|_| need.by == ValueReader::Input);
    left.zip(ask.schema).is_some_and(|(left, schema)| flow.schema(schema).only_null(&left.path))
}

/// Why an answer of the step that hands a value on may lack it, and what to do about it.
fn why_missing(
    flow: &Flow,
    producer: StepId,
    left: Option<&Handoff>,
) -> Option<(&'static str, &'static str)> {
    const REQUIRE: &str = "list it in `required` of that schema";
    let left = left?;
    let Act::Ask(ask) = &flow.step(producer).act else { return None };
    match ask.schema.map(|schema| flow.schema(schema)) {
        None => Some(("they have no schema", "give its answers a schema that requires it")),
        Some(schema) if !schema.requires(&left.path) => Some(("its schema does not require it", REQUIRE)),
        Some(schema) if !schema.always_has(&left.path) => Some((
            "its schema allows `null` there, which counts as absent",
            "allow no `null` there: give it a `type`",
        )),
        Some(_) => None,
    }
}

fn fallen_back(said: &str, need: &NeededValue, trace: Trace) -> Diagnostic {
    let message = format!("{said}, which `{}` does not leave where it goes on by its fallback", need.from);
    Diagnostic::warning(CODE.name, need.span, message)
        .trace(trace)
        .hint("give the input a `default`, or let the fallback lead elsewhere")
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft, failing, findings_of, hand_on, need, prompt, schema};
    use crate::{
        diagnostics::Severity,
        model::{Act, Draft, Extractor, Gate, Outcome, OutcomeReader, Piece, Source, Target},
    };
    use serde_json::{Value, json};

    /// `a` leaves a plan, of which its schema says this.
    fn leaves(draft: &mut Draft, plan: Value, required: &[&str]) {
        hand_on(draft, 0, "plan");
        schema(draft, 0, json!({"type": "object", "required": required, "properties": {"plan": plan}}));
    }

    /// `b` needs what `a` leaves.
    fn reads(plan: Value, required: &[&str]) -> Draft {
        let mut draft = draft("a: next → b\nb: done → end");
        leaves(&mut draft, plan, required);
        need(&mut draft, 1, "a", "plan");
        draft
    }

    fn plan() -> Piece {
        Piece::Value(Source::Handoff { step: "a".into(), key: "plan".into() })
    }

    fn said(draft: Draft) -> Vec<String> {
        findings_of(draft).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn found_and_mended() {
        let text = || json!({"type": "string"});
        assert_eq!(codes_of(reads(text(), &[])), ["maybe-unassigned"]);
        assert!(codes_of(reads(text(), &["plan"])).is_empty());
        let mut defaulted = reads(text(), &[]);
        defaulted.steps[1].inputs[0].default = Some("none".into());
        assert!(codes_of(defaulted).is_empty());
    }

    #[test]
    fn null_is_nothing() {
        for nullable in [
            json!({"type": ["string", "null"]}),
            json!({}),
            json!({"enum": ["x", null]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ] {
            assert_eq!(
                said(reads(nullable, &["plan"])),
                [
                    "`b` reads `a.plan`, which answers of `a` may leave out: its schema allows `null` there, which counts \
                  as absent"
                ]
            );
        }
        assert!(said(reads(json!({"enum": ["x", 1]}), &["plan"])).is_empty());
        // Whoever requires that means to fail.
        let found = findings_of(reads(json!({"type": "null"}), &["plan"]));
        assert_eq!(found[0].severity, Severity::Note);
        assert_eq!(
            found[0].message,
            "`b` reads `a.plan`, which is always `null` and counts as absent: each run that gets here fails"
        );
    }

    #[test]
    fn without_a_schema_nothing_is_certain() {
        let mut draft = reads(json!({"type": "string"}), &["plan"]);
        if let Act::Ask(ask) = &mut draft.steps[0].act {
            ask.schema = None;
        }
        assert_eq!(
            said(draft),
            ["`b` reads `a.plan`, which answers of `a` may leave out: they have no schema"]
        );
    }

    #[test]
    fn a_prompt_that_reads_it_directly_shows_nothing() {
        let reads = |required: &[&str], input: bool| {
            let mut draft = draft("a: next → b\nb: done → end");
            leaves(&mut draft, json!({"type": "string"}), required);
            prompt(&mut draft, 1, vec![plan(), plan()]);
            if input {
                need(&mut draft, 1, "a", "plan");
                draft.steps[1].inputs[0].required = false;
            }
            findings_of(draft)
        };
        let found = reads(&[], false);
        assert_eq!(found.len(), 1, "once, however often it is read");
        assert!(found[0].message.starts_with("`b` reads `a.plan`, which answers of `a` may leave out"));
        assert!(found[0].hint.as_deref().is_some_and(|hint| hint.contains("declare it in `inputs`")));
        assert!(reads(&["plan"], false).is_empty());
        assert!(reads(&[], true).is_empty(), "what is declared says itself that it may be missing");
    }

    #[test]
    fn a_failure_prompt_shows_nothing_either() {
        let reads = |required: &[&str], max: u32| {
            let mut draft = failing(Extractor::Stdout, vec![Piece::Failure("found".into()), plan()]);
            leaves(&mut draft, json!({"type": "string"}), required);
            if let Some(bound) = &mut draft.steps[1].edges[1].bound {
                bound.max = max;
            }
            said(draft).into_iter().filter(|said| said.contains("reads")).collect::<Vec<_>>()
        };
        assert_eq!(
            reads(&[], 2),
            [
                "the failure prompt of `v` reads `a.plan`, which answers of `a` may leave out: its schema does not \
              require it"
            ]
        );
        assert!(reads(&["plan"], 2).is_empty());
        assert!(reads(&[], 0).is_empty(), "it is never said");
    }

    /// `a` goes on by its fallback when its answer cannot be used.
    fn falling(text: &str, reader: OutcomeReader<crate::model::Name>) -> Draft {
        let mut draft = draft(text);
        leaves(&mut draft, json!({"type": "string"}), &["plan"]);
        let c = draft.steps.len() - 1;
        need(&mut draft, c, "a", "plan");
        if let Gate::Readers(readers) = &mut draft.steps[0].gate {
            readers.push(reader);
        }
        draft
    }

    #[test]
    fn a_fallback_leaves_nothing() {
        let other = || Outcome::Named("other".into());
        let text = "a: next → c, other → b\nb: done → c\nc: done → end";
        let found = findings_of(falling(text, OutcomeReader::Fallback(other())));
        assert_eq!(
            found[0].message,
            "`c` reads `a.plan`, which `a` does not leave where it goes on by its fallback"
        );
        assert_eq!(found[0].trace, ["a --other→", "b --done→", "c"]);
        assert_eq!(codes_of(falling(text, OutcomeReader::FirstFallback(other()))), ["maybe-unassigned"]);
        let back = "a: next → c, other → a\nc: done → end";
        assert!(codes_of(falling(back, OutcomeReader::Fallback(other()))).is_empty(), "`a` is passed again");
    }

    #[test]
    fn a_fallback_of_the_first_iteration_is_of_the_first_step_only() {
        let mut draft = falling("a: next → b\nb: done → end", OutcomeReader::FirstFallback(Outcome::None));
        let mut first = draft.steps[1].clone();
        (first.name, first.inputs) = ("first".into(), Vec::new());
        first.edges[0].to = Target::Step(crate::checks::testing::name("a"));
        draft.steps.push(first);
        draft.entry = Some(crate::checks::testing::name("first"));
        if let Gate::Readers(readers) = &mut draft.steps[0].gate {
            readers[1] = OutcomeReader::FirstFallback(Outcome::Named("next".into()));
        }
        assert!(codes_of(draft.clone()).is_empty());
        draft.entry = Some(crate::checks::testing::name("a"));
        assert!(codes_of(draft).contains(&"maybe-unassigned"));
    }

    #[test]
    fn a_fallback_selects_what_no_answer_does() {
        let selecting = |default: &str| {
            let reader = OutcomeReader::Fallback(Outcome::Named("next".into()));
            let mut draft = falling("a: next → c\nb: done → end\nc: done → end", reader);
            draft.steps[0].edges[0].to = Target::Jump {
                field: crate::model::FieldPath::parse("to"),
                among: vec![crate::checks::testing::name("c"), crate::checks::testing::name("b")],
                default: Some(crate::checks::testing::name(default)),
            };
            codes_of(draft)
        };
        assert!(selecting("b").is_empty(), "without an answer the default is taken");
        assert_eq!(selecting("c"), ["maybe-unassigned"]);
    }
}
