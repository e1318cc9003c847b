use std::collections::HashSet;

use super::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(super) const CODE: Code = Code {
    name: "step-name",
    page: "\
step-name: two steps have the same name, or a name that means something else

Names tell steps apart: in transitions, in results, in the journal. Of two equal ones a run could only ever come to the
first, past whatever guards the other. Names that begin with `@` are how results say that a run ended (`@completed`),
and ones with `@` inside belong to steps that are made for validators, checks, judges and persons. In a piece
`COMPLETE` and `ABORT` are ends, and members of parallel movements share the names with movements.

Give each step a name of its own without `@`.
",
};

pub(super) fn check(draft: &Draft, found: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    for step in &draft.steps {
        let message = if !seen.insert(&step.name) {
            format!("there is another step `{}`", step.name)
        } else if step.name.starts_with('@') || step.name.chars().any(char::is_control) {
            format!("`{}` cannot be the name of a step", step.name.escape_debug())
        } else {
            continue;
        };
        found.push(
            Diagnostic::error(CODE.name, step.span, message).step(&step.name).hint("give it another name"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::{codes_of, draft};

    #[test]
    fn found_and_mended() {
        let twice = codes_of(draft("a: next → b\nb: done → end\nb: done → end"));
        assert_eq!(twice, ["step-name", "unreachable-step"], "no run can come to the second one");
        assert_eq!(codes_of(draft("@completed: done → end")), ["step-name"]);
        assert!(codes_of(draft("a: next → b\nb: done → end")).is_empty());
    }
}
