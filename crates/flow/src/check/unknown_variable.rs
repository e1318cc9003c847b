use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Code, place::Places, unknown_target::nearest};
use crate::{Act, Diagnostic, Flow, Source, Step, StepId, Str};

pub(super) const CODE: Code = Code {
    name: "unknown-variable",
    page: "\
unknown-variable: a prompt reads a value that nobody gives

The prompt of this step has a placeholder whose name is neither a declared parameter, nor a declared input of
the step, nor a value that the engine knows, nor one given with `--set`. The prompt could not be written.

Declare a parameter or an input of that name, correct the name, or give the value with `--set NAME=VALUE`.
For a step that only another way of starting this definition can come to, this is a warning; so it is for one
that no run is known to come to while something else is wrong.
",
};

/// What every run can read, whatever its definition declares.
const KNOWN: [&str; 6] =
    ["iteration", "completed_iterations", "max_iterations", "remaining", "previous_summary", "task"];

pub(super) fn check(flow: &Flow, live: &[bool], places: &Places<'_>, found: &mut Vec<Diagnostic>) {
    let declared: Vec<&str> = flow.params.iter().map(|param| &*param.name).collect();
    let is_declared: HashSet<&str> = declared.iter().copied().collect();
    // Most definitions give all that they read.
    let left = OnceCell::new();
    for (step, live) in flow.steps.iter().zip(live) {
        let Act::Ask(ask) = &step.act else { continue };
        let unknown: BTreeSet<&Str> = ask
            .prompt
            .sources()
            .into_iter()
            .chain(ask.system.iter().flat_map(|system| system.sources()))
            .filter_map(|source| match source {
                Source::Param(name) if !is_declared.contains(&**name) => Some(name),
                _ => None,
            })
            .collect();
        for name in unknown {
            let message = format!("the prompt of `{}` reads `{name}`, which nobody gives", step.name);
            let span = places.of(step, &Source::Param(name.clone()));
            let finding = if *live {
                Diagnostic::error(CODE.name, span, message)
            } else {
                Diagnostic::warning(CODE.name, span, message)
            };
            found.push(finding.step(&step.name).hint(hint(
                step,
                name,
                left.get_or_init(|| all_left(flow)),
                &declared,
            )));
        }
    }
}

/// What steps hand on.
struct Left<'f> {
    /// By name, the first step that hands a value on under it.
    by_key: HashMap<&'f str, &'f Str>,
    /// The names made of step and key, by which prompts can read what any step leaves.
    direct: Vec<String>,
}

fn all_left(flow: &Flow) -> Left<'_> {
    let (mut by_key, mut direct) = (HashMap::new(), Vec::new());
    for step in &flow.steps {
        for left in &step.handoff {
            by_key.entry(&*left.key).or_insert(&step.name);
            direct.push(format!("{}_{}", step.name, left.key).replace('.', "_"));
        }
    }
    Left { by_key, direct }
}

/// What to do about a name that nobody gives: take the one that was meant, hand on what some step leaves under it, or
/// give it from outside.
fn hint(step: &Step<StepId>, name: &str, left: &Left<'_>, declared: &[&str]) -> String {
    if let Some(from) = left.by_key.get(name) {
        return format!(
            "`{from}` hands it on: add `\"{name}\": {{ \"from\": \"{from}.{name}\" }}` to `inputs`"
        );
    }
    let inputs = step.inputs.iter().map(|input| &*input.name);
    let direct = left.direct.iter().map(String::as_str);
    let known: Vec<&str> = declared.iter().copied().chain(inputs).chain(KNOWN).chain(direct).collect();
    match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{draft, findings_of, hand_on, need, prompt};
    use crate::{FileId, Piece, Read, Severity, Source, Span};

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
        reads.reads.push(Read { step: "a".into(), source, span });
        assert_eq!(findings_of(reads)[0].span, span);
    }

    #[test]
    fn an_error_where_the_run_comes_else_a_warning() {
        let mut reads = draft("a: done → end\nb: done → end");
        prompt(&mut reads, 0, vec![Piece::Value(Source::Param("isue".into()))]);
        prompt(&mut reads, 1, vec![Piece::Value(Source::Param("isue".into()))]);
        reads.params.push(super::super::testing::param("issue"));
        let found: Vec<_> = findings_of(reads).into_iter().filter(|f| f.code == "unknown-variable").collect();
        assert_eq!(found[0].severity, Severity::Error);
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `issue`?"));
        assert_eq!(found[1].severity, Severity::Warning);
    }

    /// `a` leads to `b`, another way of starting to `c`; nothing leads to `d`. Each reads what nobody gives.
    fn severities(text: &str, misread: &[&str]) -> Vec<(String, Severity)> {
        let mut reads = draft(text);
        reads.other_entries.push(super::super::testing::name("c"));
        reads.faulted = !misread.is_empty();
        reads.misread = misread.iter().map(|name| (*name).into()).collect();
        for at in 0..reads.steps.len() {
            prompt(&mut reads, at, vec![Piece::Value(Source::Param("isue".into()))]);
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
