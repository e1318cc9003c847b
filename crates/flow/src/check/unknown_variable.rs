use std::collections::BTreeSet;

use super::{Code, unknown_target::nearest};
use crate::{Act, Diagnostic, Flow, Source, Str};

pub(super) const CODE: Code = Code {
    name: "unknown-variable",
    page: "\
unknown-variable: a prompt reads a value that nobody gives

The prompt of this step has a placeholder whose name is neither a declared parameter, nor a declared input of
the step, nor a value that the engine knows, nor one given with `--set`. The prompt could not be written.

Declare a parameter or an input of that name, correct the name, or give the value with `--set NAME=VALUE`.
For a step that only another way of starting this definition can come to, this is a warning.
",
};

pub(super) fn check(flow: &Flow, live: &[bool], found: &mut Vec<Diagnostic>) {
    let declared: Vec<&str> = flow.params.iter().map(|param| &*param.name).collect();
    for (step, live) in flow.steps.iter().zip(live) {
        let Act::Ask(ask) = &step.act else { continue };
        let unknown: BTreeSet<&Str> = ask
            .prompt
            .sources()
            .into_iter()
            .chain(ask.system.iter().flat_map(|system| system.sources()))
            .filter_map(|source| match source {
                Source::Param(name) if !declared.contains(&&**name) => Some(name),
                _ => None,
            })
            .collect();
        for name in unknown {
            let message = format!("the prompt of `{}` reads `{name}`, which nobody gives", step.name);
            let finding = if *live {
                Diagnostic::error(CODE.name, step.span, message)
            } else {
                Diagnostic::warning(CODE.name, step.span, message)
            };
            let hint = match nearest(name, &declared) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("declare a parameter `{name}`, or give it with `--set {name}=VALUE`"),
            };
            found.push(finding.step(&step.name).hint(hint));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{draft, findings_of, prompt};
    use crate::{Piece, Severity, Source};

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
}
