use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::analysis::{dominators::Dominators, reachability::Reachability};
use crate::checks::Code;
use crate::checks::prompt_positions::PromptPositions;
use crate::{
    Str,
    diagnostics::{Diagnostic, Span, find_nearest_name},
    model::{Act, Flow, Param, Source, Step, StepId},
};

pub(in crate::checks) const CODE: Code = code!("unknown-variable");

/// How many steps a finding names if it is about more of them.
const NAMED_MAX: usize = 4;

/// The variables that every run has.
const KNOWN: [&str; 6] =
    ["iteration", "completed_iterations", "max_iterations", "remaining", "previous_summary", "task"];

pub(in crate::checks) fn check_undefined_variables(
    flow: &Flow,
    live: &[bool],
    (told, places): (&[Str], &PromptPositions<'_>),
    found: &mut Vec<Diagnostic>,
) {
    let declared = flow.params.iter().map(|param| &param.name);
    let is_declared: HashSet<&str> = declared.chain(told).map(|name| &**name).collect();
    let mut unknown: BTreeMap<&Str, Vec<VariableReader<'_>>> = BTreeMap::new();
    for (step, live) in flow.steps.iter().zip(live) {
        for name in read_by(step).filter(|name| !is_declared.contains(&***name)).collect::<BTreeSet<&Str>>() {
            let span = places.of(step, &Source::Param(name.clone()));
            unknown.entry(name).or_default().push(VariableReader { step, live: *live, span });
        }
    }
    // Fast path: most definitions define every variable that they read.
    if unknown.is_empty() {
        return;
    }
    let known = KnownValues::of(flow);
    for (name, readers) in unknown {
        known.report(name, readers, found);
    }
}

/// The parameters that the prompts of a step read.
fn read_by(step: &Step<StepId>) -> impl Iterator<Item = &Str> {
    let prompts = match &step.act {
        Act::Ask(ask) => [Some(&ask.prompt), ask.system.as_ref()],
        _ => [None, None],
    };
    prompts.into_iter().flatten().flat_map(|prompt| prompt.sources()).filter_map(|source| match source {
        Source::Param(name) => Some(name),
        _ => None,
    })
}

/// A step that reads an undefined variable, and where.
struct VariableReader<'f> {
    step: &'f Step<StepId>,
    live: bool,
    span: Span,
}

/// The handoff values of steps, and the values given from outside.
struct KnownValues<'f> {
    flow: &'f Flow,
    /// By name, the first step that hands on a value under it.
    by_key: HashMap<&'f str, &'f Str>,
    /// The names of step and key by which prompts read the handoff values of any step.
    direct: Vec<String>,
    /// The parameters that some prompt reads.
    read: HashSet<&'f str>,
    dominators: Dominators,
}

impl<'f> KnownValues<'f> {
    fn of(flow: &'f Flow) -> KnownValues<'f> {
        let (mut by_key, mut direct, mut read) = (HashMap::new(), Vec::new(), HashSet::new());
        for step in &flow.steps {
            for left in &step.handoff {
                by_key.entry(&*left.key).or_insert(&step.name);
                direct.push(format!("{}_{}", step.name, left.key).replace('.', "_"));
            }
            let remedies = step.edges.iter().filter_map(|edge| edge.remedy.as_ref());
            read.extend(remedies.flat_map(|remedy| remedy.sources()).filter_map(|source| match source {
                Source::Param(name) => Some(&**name),
                _ => None,
            }));
            read.extend(read_by(step).map(|name| &**name));
        }
        let dominators = Dominators::new(flow, &Reachability::of(flow, &[flow.entry], true));
        KnownValues { flow, by_key, direct, read, dominators }
    }

    /// Reports each step, or all of them once if they share the cause that the variable is not defined at all.
    fn report(&self, name: &Str, readers: Vec<VariableReader<'_>>, found: &mut Vec<Diagnostic>) {
        if self.by_key.contains_key(&**name) || readers.len() == 1 {
            found.extend(readers.iter().map(|reader| self.of_one(name, reader)));
            return;
        }
        let meant = self.params().find(|param| find_nearest_name(name, [&*param.name]).is_some());
        match meant {
            // Other steps read the right name: each step that does not has its own typing error.
            Some(param) if self.read.contains(&*param.name) => {
                found.extend(readers.iter().map(|reader| self.of_one(name, reader)));
            }
            Some(param) if param.span != Span::default() => {
                found.push(build_misspelling_finding(param, name, &readers))
            }
            _ => found.push(self.of_all(name, &readers)),
        }
    }

    fn params(&self) -> impl Iterator<Item = &'f Param> {
        self.flow.params.iter()
    }

    fn of_one(&self, name: &Str, reader: &VariableReader<'_>) -> Diagnostic {
        let message = format!("undefined variable `{name}` in the prompt of `{}`", reader.step.name);
        let finding = build_variable_finding(reader.live, reader.span, message).step(&reader.step.name);
        finding.hint(self.hint(reader.step, name))
    }

    /// Points at the first reader that a run is known to reach.
    fn of_all(&self, name: &Str, readers: &[VariableReader<'_>]) -> Diagnostic {
        let first = readers.iter().find(|reader| reader.live).unwrap_or(&readers[0]);
        let others: Vec<&Str> =
            readers.iter().map(|reader| &reader.step.name).filter(|step| **step != first.step.name).collect();
        let mut one = self.of_one(name, first);
        one.message = format!("{}; {} it as well", one.message, describe_readers(&others));
        one
    }

    /// Whether each run that reaches a step has visited another one before.
    fn is_always_before(&self, from: &str, step: &str) -> bool {
        let (Some(from), Some(step)) = (self.flow.find(from), self.flow.find(step)) else { return false };
        !self.dominators.is_avoidable(step, from)
    }

    /// The hint for an undefined variable: a similar name, an input for the handoff value of that name, or a value
    /// from outside.
    fn hint(&self, step: &Step<StepId>, name: &str) -> String {
        if let Some(from) = self.by_key.get(name).filter(|from| self.is_always_before(from, &step.name)) {
            return format!(
                "`{from}` hands it on: add `\"{name}\": {{ \"from\": \"{from}.{name}\" }}` to `inputs`"
            );
        }
        let declared = self.params().map(|param| &*param.name);
        let inputs = step.inputs.iter().map(|input| &*input.name);
        let direct = self.direct.iter().map(String::as_str);
        // In registries the task has two names, one of which is not a variable.
        if find_nearest_name(name, ["input_text"]).is_some() {
            return "did you mean `{input_text}`?".to_owned();
        }
        match find_nearest_name(name, declared.chain(inputs).chain(KNOWN).chain(direct)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
        }
    }
}

/// Several steps read a name similar to a parameter that no prompt reads: the parameter is misspelt.
fn build_misspelling_finding(param: &Param, name: &Str, readers: &[VariableReader<'_>]) -> Diagnostic {
    let steps: Vec<&Str> = readers.iter().map(|reader| &reader.step.name).collect();
    let message = format!(
        "no prompt reads the parameter `{}`, but {} the undefined variable `{name}`",
        param.name,
        describe_readers(&steps)
    );
    let live = readers.iter().any(|reader| reader.live);
    build_variable_finding(live, param.span, message).hint(format!("did you mean `{name}`?"))
}

/// The prompts of some steps, as the subject of a sentence.
fn describe_readers(steps: &[&Str]) -> String {
    let named: Vec<String> = steps.iter().take(NAMED_MAX).map(|step| format!("`{step}`")).collect();
    let named = named.join(", ");
    match (steps.len(), steps.len().saturating_sub(NAMED_MAX)) {
        (1, _) => format!("the prompt of {named} reads"),
        (_, 0) => format!("the prompts of {named} read"),
        (_, more) => format!("the prompts of {named} and {more} more read"),
    }
}

fn build_variable_finding(live: bool, span: Span, message: String) -> Diagnostic {
    match live {
        true => Diagnostic::error(CODE.name, span, message),
        false => Diagnostic::warning(CODE.name, span, message),
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, hand_on, need, prompt};
    use crate::{
        diagnostics::{FileId, Severity, Span},
        model::{Piece, PromptRead, Source},
    };

    fn hint_for(name: &str) -> String {
        let mut reads = draft("a: next → b\nb: done → end");
        hand_on(&mut reads, 0, "goal");
        hand_on(&mut reads, 0, "plan");
        need(&mut reads, 1, "a", "plan");
        prompt(&mut reads, 1, vec![Piece::Value(Source::Param(name.into()))]);
        findings_of(reads).remove(0).hint.unwrap()
    }

    #[test]
    fn who_hands_it_on_is_named_and_every_name_there_is_may_be_meant() {
        assert_eq!(hint_for("goal"), "`a` hands it on: add `\"goal\": { \"from\": \"a.goal\" }` to `inputs`");
        assert_eq!(hint_for("plam"), "did you mean `plan`?", "an input of the step");
        assert_eq!(hint_for("iteratoin"), "did you mean `iteration`?", "what every run can read");
        assert!(hint_for("zork").starts_with("declare a parameter `zork`"));
    }

    #[test]
    fn it_stands_where_the_prompt_reads_it() {
        let mut reads = draft("a: done → end");
        let (source, span) = (Source::Param("isue".into()), Span { file: FileId(3), start: 7, end: 9 });
        prompt(&mut reads, 0, vec![Piece::Value(source.clone())]);
        reads.reads.push(PromptRead { step: "a".into(), source, span });
        assert_eq!(findings_of(reads)[0].span, span);
    }

    #[test]
    fn an_error_where_the_run_comes_else_a_warning() {
        let mut reads = draft("a: done → end\nb: done → end");
        prompt(&mut reads, 0, vec![Piece::Value(Source::Param("issu".into()))]);
        prompt(&mut reads, 1, vec![Piece::Value(Source::Param("isue".into()))]);
        reads.params.push(crate::checks::testing::param("issue"));
        let found: Vec<_> = findings_of(reads).into_iter().filter(|f| f.code == "unknown-variable").collect();
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `issue`?"));
        assert_eq!(found[1].severity, Severity::Warning);
    }

    /// What is found where `d`, `a` and `b` read `issue`, to the first of which no run comes.
    fn found_of_three(change: impl FnOnce(&mut crate::model::Draft)) -> Vec<(String, u32)> {
        let mut reads = draft("d: done → end\na: next → b\nb: done → end");
        reads.entry = Some(crate::checks::testing::name("a"));
        for (at, step) in ["d", "a", "b"].into_iter().enumerate() {
            let source = Source::Param("issue".into());
            prompt(&mut reads, at, vec![Piece::Value(source.clone())]);
            let span = Span { file: FileId(1), start: at as u32, end: 9 };
            reads.reads.push(PromptRead { step: step.into(), source, span });
        }
        change(&mut reads);
        let found = findings_of(reads).into_iter().filter(|finding| finding.code == "unknown-variable");
        found.map(|finding| (finding.message, finding.span.start)).collect()
    }

    #[test]
    fn what_several_read_and_nobody_gives_is_one_finding() {
        let said = "undefined variable `issue` in the prompt of `a`; the prompts of `d`, `b` read it as well";
        assert_eq!(found_of_three(|_| {}), [(said.to_owned(), 1)]);
        let parameter = || {
            let span = Span { file: FileId(0), start: 70, end: 74 };
            crate::model::Param { span, ..crate::checks::testing::param("isue") }
        };
        let said = "no prompt reads the parameter `isue`, but the prompts of `d`, `a`, `b` read the undefined variable `issue`";
        assert_eq!(found_of_three(|reads| reads.params.push(parameter())), [(said.to_owned(), 70)]);
        let read_elsewhere = found_of_three(|reads| {
            reads.params.push(parameter());
            prompt(reads, 0, vec![Piece::Value(Source::Param("isue".into()))]);
        });
        assert_eq!(read_elsewhere.len(), 2, "each is a slip of its own: {read_elsewhere:?}");
        let handed_on = found_of_three(|reads| hand_on(reads, 0, "issue"));
        assert_eq!(handed_on.len(), 3, "each needs an input of its own: {handed_on:?}");
    }

    /// `a` leads to `b`, another way of starting to `c`; nothing leads to `d`. Each reads what nobody gives.
    fn severities(text: &str, misread: &[&str]) -> Vec<(String, Severity)> {
        let mut reads = draft(text);
        reads.other_entries.push(crate::checks::testing::name("c"));
        reads.flaws.is_faulted = !misread.is_empty();
        reads.flaws.misread = misread.iter().map(|name| (*name).into()).collect();
        for at in 0..reads.steps.len() {
            prompt(&mut reads, at, vec![Piece::Value(Source::Param(format!("zork{at}").into()))]);
        }
        let found = findings_of(reads).into_iter().filter(|finding| finding.code == "unknown-variable");
        found.map(|finding| (finding.step.unwrap().to_string(), finding.severity)).collect()
    }

    #[test]
    fn where_another_way_of_starting_leads_it_stays_a_warning() {
        let of = |severities: [Severity; 4]| {
            ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(severities).collect::<Vec<_>>()
        };
        let (no, yes) = (Severity::Warning, Severity::Error);
        let text = "a: next → b\nb: done → end\nc: done → end\nd: done → end";
        assert_eq!(severities(text, &[]), of([yes, yes, no, no]));
        assert_eq!(severities(text, &["a"]), of([yes, yes, no, no]), "that it leads to `b` could be read");
        assert_eq!(severities(text, &["c"]), of([yes, yes, no, no]));
        let astray = text.replace("a: next → b", "a: next → b, more → gone");
        assert_eq!(severities(&astray, &[]), of([yes, yes, no, no]), "another way of it leads nowhere");
        let lost = text.replace("a: next → b", "a: next → gone");
        assert_eq!(severities(&lost, &[]), of([yes, no, no, no]), "that a run comes to `b` is not known");
    }
}
