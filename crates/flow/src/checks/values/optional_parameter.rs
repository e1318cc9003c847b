use crate::checks::Code;
use crate::{
    diagnostics::Diagnostic,
    model::{Act, Flow, Param, Source, Step, StepId, Template},
};

pub(in crate::checks) const CODE: Code = code!("optional-parameter");

/// How many steps a finding names.
const NAMED_MAX: usize = 3;

pub(in crate::checks) fn check_needed_parameters(flow: &Flow, found: &mut Vec<Diagnostic>) {
    // A parameter given with `--set` has no flag, and has a value.
    let may_miss = |param: &&Param| !param.required && param.default.is_none() && !param.flag.is_empty();
    for param in flow.params.iter().filter(may_miss) {
        let readers: Vec<&Step<StepId>> =
            flow.steps.iter().filter(|step| is_parameter_read(step, param)).collect();
        let Some(first) = readers.first() else { continue };
        let named: Vec<String> =
            readers.iter().take(NAMED_MAX).map(|step| format!("`{}`", step.name)).collect();
        let more = match readers.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let message = format!(
            "no run starts without `{}`, though it is not required: the prompt of {}{more} reads `{}`",
            param.flag,
            named.join(", "),
            param.name
        );
        found.push(
            Diagnostic::warning(CODE.name, param.span, message)
                .step(&first.name)
                .hint("give the parameter a `default`, or make it `\"required\": true`"),
        );
    }
}

fn is_parameter_read(step: &Step<StepId>, param: &Param) -> bool {
    let Act::Ask(ask) = &step.act else { return false };
    let in_template = |template: &Template| {
        template.sources().iter().any(|source| matches!(source, Source::Param(name) if *name == param.name))
    };
    in_template(&ask.prompt) || ask.system.as_ref().is_some_and(in_template)
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{draft, findings_of, param, prompt};
    use crate::model::{Param, Piece, Source};

    fn found(change: impl FnOnce(&mut Param)) -> Vec<String> {
        let mut reads = draft("a: done → b\nb: done → c\nc: done → d\nd: done → end");
        for step in 0..4 {
            prompt(&mut reads, step, vec![Piece::Value(Source::Param("issue".into()))]);
        }
        let mut issue = param("issue");
        issue.flag = "--issue".into();
        change(&mut issue);
        reads.params.push(issue);
        let found = findings_of(reads).into_iter().filter(|found| found.code == "optional-parameter");
        found.map(|found| found.message).collect()
    }

    #[test]
    fn one_that_may_be_missing_is_told_once() {
        let expected = "no run starts without `--issue`, though it is not required: the prompt of `a`, `b`, `c` and 1 more reads `issue`";
        assert_eq!(found(|_| ()), [expected]);
    }

    #[test]
    fn one_that_is_there_is_fine() {
        assert!(found(|param| param.required = true).is_empty());
        assert!(found(|param| param.default = Some("1".into())).is_empty());
        assert!(found(|param| param.flag = "".into()).is_empty(), "given with --set");
    }
}
