use std::collections::{BTreeSet, HashMap, HashSet};

use crate::analysis::{
    dominators::Dominators,
    reachability::{Reachability, describe_hop},
};
use crate::checks::Code;
use crate::checks::misread::MisreadSteps;
use crate::checks::prompt_positions::PromptPositions;
use crate::{
    Str,
    diagnostics::{Diagnostic, Span, Trace, find_nearest_name},
    model::{Act, Fact, Flow, Handoff, Piece, Source, Step, StepId, Template},
};

pub(in crate::checks) const CODE: Code = code!("unassigned-value");

/// Lookups for values: steps by name, and the steps that every path passes.
pub(in crate::checks) struct HandoffLookup<'f> {
    pub(in crate::checks) by_name: HashMap<&'f str, StepId>,
    pub(in crate::checks) dominance: Dominators,
    /// The handoff values of steps that have many, by name.
    many: HashMap<StepId, HashMap<&'f str, &'f Handoff>>,
}

/// Up to this many names are searched one by one.
const FEW: usize = 16;

impl<'f> HandoffLookup<'f> {
    pub(in crate::checks) fn of(flow: &'f Flow, live: &Reachability) -> HandoffLookup<'f> {
        let (mut by_name, mut many) = (HashMap::new(), HashMap::new());
        for (at, step) in flow.steps.iter().enumerate() {
            let id = StepId(at as u32);
            by_name.entry(&*step.name).or_insert(id);
            if step.handoff.len() > FEW {
                let names = step.handoff.iter().rev().map(|left| (&*left.key, left));
                many.insert(id, names.collect());
            }
        }
        HandoffLookup { by_name, dominance: Dominators::new(flow, live), many }
    }

    /// The handoff value of a step under a name.
    pub(in crate::checks) fn left<'l>(
        &self,
        flow: &'l Flow,
        producer: StepId,
        key: &str,
    ) -> Option<&'l Handoff>
    where
        'f: 'l,
    {
        match self.many.get(&producer) {
            Some(names) => names.get(key).copied(),
            None => flow.step(producer).handoff.iter().find(|left| *left.key == *key),
        }
    }
}

pub(in crate::checks) fn check_missing_values(
    flow: &Flow,
    live: &Reachability,
    passing: &HandoffLookup<'_>,
    (misread, places): (&MisreadSteps, &PromptPositions<'_>),
    found: &mut Vec<Diagnostic>,
) {
    for (index, step) in flow.steps.iter().enumerate() {
        let id = StepId(index as u32);
        let first = first_summary(flow, id, step, places);
        let of_steps = list_needed_values(step, places);
        let of_steps = of_steps
            .iter()
            .filter_map(|need| diagnose_needed_value(flow, id, step, need, (live, passing, misread)));
        found.extend(first.into_iter().chain(of_steps).map(|finding| finding.step(&step.name)));
    }
}

/// Reports that a run can reach a reader before the value was handed on.
pub(in crate::checks) fn not_left(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(CODE.name, span, message)
}

/// A value that a step reads from another one.
pub(in crate::checks) struct NeededValue {
    /// The step that hands it on; empty for the summary of the last answer.
    pub(in crate::checks) from: Str,
    pub(in crate::checks) key: Str,
    pub(in crate::checks) span: Span,
    pub(in crate::checks) by: ValueReader,
}

/// What reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checks) enum ValueReader {
    /// An input, without which a run fails.
    Input,
    /// An input with a substitute: its value may be missing, but has to exist on some path.
    Optional,
    /// The prompt itself, in which a missing value is empty.
    Prompt,
    /// The failure prompt that replaces another step's prompt after a command of this step failed: the index of the
    /// edge.
    Failure(usize),
}

impl NeededValue {
    /// The reader and the value, as the beginning of a sentence.
    pub(in crate::checks) fn say(&self, step: &Step<StepId>) -> String {
        let who = match self.by {
            ValueReader::Input | ValueReader::Optional | ValueReader::Prompt => format!("`{}`", step.name),
            ValueReader::Failure(_) => format!("the failure prompt of `{}`", step.name),
        };
        format!("{who} reads `{}.{}`", self.from, self.key)
    }

    /// The hint for a value that may be missing.
    pub(in crate::checks) fn remedy(&self) -> String {
        match self.by {
            ValueReader::Input | ValueReader::Optional => {
                "give the input a `default`, or make it `\"required\": false`".to_owned()
            }
            ValueReader::Prompt => format!(
                "declare an input with `\"from\": \"{}.{}\"` and a `default`, and read that by its name",
                self.from, self.key
            ),
            ValueReader::Failure(_) => {
                format!("lead every path through `{}`, or do not read it there", self.from)
            }
        }
    }
}

/// The values of other steps that are read, each once.
pub(in crate::checks) fn list_needed_values(
    step: &Step<StepId>,
    places: &PromptPositions<'_>,
) -> Vec<NeededValue> {
    let inputs = step.inputs.iter().map(|input| NeededValue {
        from: input.step.clone(),
        key: input.key.clone(),
        span: input.span,
        by: if input.required && input.default.is_none() {
            ValueReader::Input
        } else {
            ValueReader::Optional
        },
    });
    let mut needs: Vec<NeededValue> = inputs.collect();
    if let Act::Ask(ask) = &step.act {
        needs.extend(list_direct_reads(&ask.prompt, |source| places.of(step, source), ValueReader::Prompt));
        // For a value that is declared as an input, the declaration decides.
        let declared: HashSet<(&str, &str)> = match needs.iter().any(|need| need.by == ValueReader::Prompt) {
            true => step.inputs.iter().map(|input| (&*input.step, &*input.key)).collect(),
            false => HashSet::new(),
        };
        let is_input = |need: &NeededValue| declared.contains(&(&*need.from, &*need.key));
        // A member works only where the value that selects it is set.
        let selects = |need: &NeededValue| matches!(&step.when, Some(Source::Handoff { step, key }) if *step == need.from && *key == need.key);
        needs.retain(|need| need.by != ValueReader::Prompt || !is_input(need) && !selects(need));
    }
    for (at, edge) in step.edges.iter().enumerate() {
        let remedies = edge.remedy.iter();
        let place = |source: &Source| places.known(step, source).unwrap_or(edge.span);
        // What the step itself hands on is there when it leads on.
        let others = |need: &NeededValue| need.from != step.name;
        needs.extend(
            remedies
                .flat_map(|remedy| list_direct_reads(remedy, place, ValueReader::Failure(at)))
                .filter(others),
        );
    }
    needs
}

/// The values that a text reads directly, and where.
fn list_direct_reads(
    text: &Template,
    place: impl Fn(&Source) -> Span,
    by: ValueReader,
) -> impl Iterator<Item = NeededValue> {
    let sources: BTreeSet<&Source> = text.unguarded_sources().into_iter().collect();
    sources.into_iter().filter_map(move |source| match source {
        Source::Handoff { step, key } => {
            Some(NeededValue { from: step.clone(), key: key.clone(), span: place(source), by })
        }
        _ => None,
    })
}

/// Whether a prompt reads the last summary outside a part that is shown only if there is one.
fn reads_summary(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Value(source) => *source == Source::Fact(Fact::PreviousSummary),
        Piece::Filled { source: Source::Fact(Fact::PreviousSummary), .. } => false,
        Piece::Filled { body, .. } | Piece::Each { body, .. } => reads_summary(body),
        Piece::If { then, otherwise, .. } => reads_summary(then) || reads_summary(otherwise),
        Piece::Text(_) | Piece::Failure(_) | Piece::Item(_) => false,
    })
}

/// Reports an entry step that reads the summary of the last answer.
fn first_summary(
    flow: &Flow,
    id: StepId,
    step: &Step<StepId>,
    places: &PromptPositions<'_>,
) -> Option<Diagnostic> {
    let Act::Ask(ask) = &step.act else { return None };
    let reads = id == flow.entry && reads_summary(&ask.prompt.pieces);
    let message = || {
        format!("`{}` reads `previous_summary`, but at its first visit nothing has been answered", step.name)
    };
    reads.then(|| {
        let mut trace = Trace::default();
        trace.push(&*step.name, step.span);
        let span = places.of(step, &Source::Fact(Fact::PreviousSummary));
        Diagnostic::error(CODE.name, span, message())
            .trace(trace)
            .hint("start with a step that does not read `previous_summary`, or remove it from this prompt")
    })
}

/// The hint for a step that does not exist.
const SOME_STEP: &str = "name a step of this definition and something that it hands on";

fn diagnose_needed_value(
    flow: &Flow,
    id: StepId,
    step: &Step<StepId>,
    need: &NeededValue,
    (live, passing, misread): (&Reachability, &HandoffLookup<'_>, &MisreadSteps),
) -> Option<Diagnostic> {
    if !is_put(live, id, need) {
        return None;
    }
    let (from, key) = (&need.from, &need.key);
    let error = |why: String| Diagnostic::error(CODE.name, need.span, format!("{}, {why}", need.say(step)));
    let Some(producer) = passing.by_name.get(&**from).copied() else {
        let leaves = |at: &u32| passing.left(flow, StepId(*at), key).is_some();
        let known = (0..flow.steps.len() as u32).filter(leaves).map(|at| &*flow.step(StepId(at)).name);
        return Some(error(format!("but `{from}` is not a step")).hint(
            match find_nearest_name(from, known) {
                Some(near) => format!("did you mean `{near}.{key}`?"),
                None => SOME_STEP.to_owned(),
            },
        ));
    };
    let left = &flow.step(producer).handoff;
    if passing.left(flow, producer, key).is_none() {
        if misread.has(producer) {
            return None;
        }
        let keys: Vec<String> = left.iter().map(|handoff| format!("`{}`", handoff.key)).collect();
        let hint = if keys.is_empty() {
            format!("`{from}` hands nothing on")
        } else {
            match find_nearest_name(key, left.iter().map(|handoff| &*handoff.key)) {
                Some(near) => format!("did you mean `{from}.{near}`?"),
                None => format!("`{from}` hands on {}", keys.join(", ")),
            }
        };
        let message = format!("{}, which `{from}` does not leave", need.say(step));
        let finding = match need.by {
            // Every run continues with the substitute.
            ValueReader::Optional => Diagnostic::warning(CODE.name, need.span, message),
            _ => Diagnostic::error(CODE.name, need.span, message),
        };
        return Some(finding.hint(hint));
    }
    if need.by == ValueReader::Optional || !passing.dominance.is_avoidable(id, producer) {
        return None;
    }
    // A step that reads its own value has none at its first visit.
    let trace =
        if producer == id { live.shortest(flow, id, None) } else { live.shortest(flow, id, Some(producer)) };
    trace.map(|trace| {
        error(format!("but a run can get here without passing `{from}`"))
            .trace(extend_trace_to_reader(step, need, trace))
            .hint(need.remedy())
    })
}

/// Whether the text that reads it is ever used.
pub(in crate::checks) fn is_put(live: &Reachability, id: StepId, need: &NeededValue) -> bool {
    match need.by {
        ValueReader::Input | ValueReader::Optional | ValueReader::Prompt => true,
        ValueReader::Failure(edge) => live.ways[id.0 as usize].iter().any(|way| way.edge == Some(edge)),
    }
}

/// A path to the reader of a step.
pub(in crate::checks) fn extend_trace_to_reader(
    step: &Step<StepId>,
    need: &NeededValue,
    trace: Trace,
) -> Trace {
    let ValueReader::Failure(edge) = need.by else { return trace };
    let (words, span) = describe_hop(step, Some(edge));
    trace.ending_with(words, span)
}

#[cfg(test)]
mod tests {
    use super::SOME_STEP;
    use super::{HandoffLookup, MisreadSteps, PromptPositions, Reachability};
    use crate::checks;
    use crate::checks::testing::{draft, failing, findings_of, hand_on, need, prompt, schema};
    use crate::checks::values::maybe_unassigned;
    use crate::{
        diagnostics::Severity,
        model::{Draft, Extractor, Fact, Piece, Source},
    };
    use serde_json::json;

    /// A step's answers always have it.
    fn requires(draft: &mut Draft, step: usize, key: &str) {
        hand_on(draft, step, key);
        schema(draft, step, json!({"required": [key], "properties": {key: {"type": "string"}}}));
    }

    #[test]
    fn a_path_around_the_producer_is_shown() {
        let mut flow = draft("a: next → b, skip → c\nb: next → c\nc: done → end");
        hand_on(&mut flow, 1, "plan");
        need(&mut flow, 2, "b", "plan");
        let found = findings_of(flow);
        assert_eq!(found[0].message, "`c` reads `b.plan`, but a run can get here without passing `b`");
        assert_eq!(found[0].trace, ["a --skip→", "c"]);
    }

    #[test]
    fn every_path_through_the_producer_is_fine() {
        let mut flow = draft("a: next → b\nb: next → c\nc: done → end");
        requires(&mut flow, 1, "plan");
        need(&mut flow, 2, "b", "plan");
        assert!(findings_of(flow).is_empty());
    }

    #[test]
    fn only_what_is_found_is_searched_for() {
        let lines: Vec<String> = (0..200).map(|at| format!("s{at}: next → s{}", at + 1)).collect();
        let mut flow = draft(&format!("{}\nx: next → s200\ns200: done → end, aside → x", lines.join("\n")));
        requires(&mut flow, 0, "plan");
        (1..200).for_each(|at| need(&mut flow, at, "s0", "plan"));
        hand_on(&mut flow, 200, "late");
        need(&mut flow, 201, "x", "late");
        let flow = checks::check_draft(flow).unsound.unwrap();
        let live = Reachability::of(&flow, &[flow.entry], true);
        let mut found = Vec::new();
        let passing = HandoffLookup::of(&flow, &live);
        super::check_missing_values(
            &flow,
            &live,
            &passing,
            (&MisreadSteps::of(&flow, &[]), &PromptPositions::of_reads(&[])),
            &mut found,
        );
        maybe_unassigned::check_omitted_values(
            &flow,
            &live,
            &passing,
            &PromptPositions::of_reads(&[]),
            &mut found,
        );
        assert_eq!((found.len(), found[0].trace.len(), live.searches.into_inner()), (1, 201, 1));
    }

    #[test]
    fn a_missing_step_or_key_is_named() {
        let mut flow = draft("a: next → b\nb: done → end");
        need(&mut flow, 1, "x", "plan");
        assert_eq!(findings_of(flow)[0].message, "`b` reads `x.plan`, but `x` is not a step");
        let mut flow = draft("a: next → b\nb: done → end");
        hand_on(&mut flow, 0, "plan");
        need(&mut flow, 1, "aa", "plan");
        assert_eq!(findings_of(flow)[0].hint.as_deref(), Some(SOME_STEP), "it is too short to be near");
        let mut flow = draft("first: next → b\nb: done → end");
        need(&mut flow, 1, "fisrt", "plan");
        assert_eq!(findings_of(flow.clone())[0].hint.as_deref(), Some(SOME_STEP), "it does not leave that");
        hand_on(&mut flow, 0, "plan");
        assert_eq!(findings_of(flow)[0].hint.as_deref(), Some("did you mean `first.plan`?"));
        let mut flow = draft("a: next → b\nb: done → end");
        hand_on(&mut flow, 0, "other");
        need(&mut flow, 1, "a", "plan");
        assert_eq!(findings_of(flow)[0].hint.as_deref(), Some("`a` hands on `other`"));
    }

    #[test]
    fn what_an_optional_input_names_exists() {
        let found = |from: &str, key: &str| {
            let mut flow = draft("first: next → b, skip → c\nb: next → c\nc: done → end");
            hand_on(&mut flow, 1, "plan");
            need(&mut flow, 2, from, key);
            flow.steps[2].inputs[0].required = false;
            findings_of(flow).pop().map(|found| (found.severity, found.message, found.hint.unwrap()))
        };
        let said =
            |severity, message: &str, hint: &str| Some((severity, message.to_owned(), hint.to_owned()));
        assert_eq!(found("b", "plan"), None, "on some path it is missing, which is what it says");
        let message = "`c` reads `gone.plan`, but `gone` is not a step";
        assert_eq!(found("gone", "plan"), said(Severity::Error, message, SOME_STEP));
        let message = "`c` reads `b.plam`, which `b` does not leave";
        assert_eq!(found("b", "plam"), said(Severity::Warning, message, "did you mean `b.plan`?"));
    }

    #[test]
    fn a_failure_prompt_may_come_before_what_it_reads() {
        let late = Piece::Value(Source::Handoff { step: "late".into(), key: "plan".into() });
        let mut flow = failing(Extractor::Stdout, vec![Piece::Failure("found".into()), late]);
        flow.steps.push(draft("late: done → a").steps.remove(0));
        requires(&mut flow, 2, "plan");
        let is_said = |found: &crate::diagnostics::Diagnostic| found.code == "unassigned-value";
        let found: Vec<_> = findings_of(flow).into_iter().filter(is_said).collect();
        assert_eq!(
            found[0].message,
            "the failure prompt of `v` reads `late.plan`, but a run can get here without passing `late`"
        );
        assert_eq!(found[0].trace, ["a --done→", "v --fail(0)→"]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_entry_has_no_previous_summary() {
        let mut flow = draft("a: next → b\nb: done → end");
        let reads = vec![Piece::Value(Source::Fact(Fact::PreviousSummary))];
        prompt(&mut flow, 1, reads.clone());
        assert!(findings_of(flow.clone()).is_empty());
        prompt(&mut flow, 0, reads);
        assert_eq!(findings_of(flow)[0].code, "unassigned-value");
    }
}
