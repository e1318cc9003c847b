use std::collections::HashSet;

use super::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(super) const CODE: Code = Code {
    name: "step-name",
    page: "\
step-name: a step has a name that is taken or reserved

What it means: Two steps have the same name (members of parallel steps share their names with other steps),
or the name has another meaning: `@completed` and other names that begin with `@` are results of a run,
names with `@` inside belong to steps for validators, checks, judges and persons, and `COMPLETE` and
`ABORT` are the ends of a TAKT workflow. In a check flow a step is called `s_` and four to eight hexadecimal
digits.

Why it matters: Transitions, results and the journal find steps by name. Of two equal ones a run could only
reach the first, and would miss what guards the other.

Example:
    parallel:
      - name: arch-review
      - name: arch-review

Fix: Give each step a name of its own without `@`, in a check flow one like `s_a8f3`.
",
};

pub(super) fn check_step_names(draft: &Draft, found: &mut Vec<Diagnostic>) {
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
    fn reported_and_fixed() {
        let twice = codes_of(draft("a: next → b\nb: done → end\nb: done → end"));
        assert_eq!(twice, ["step-name", "unreachable-step"], "no run can come to the second one");
        assert_eq!(codes_of(draft("@completed: done → end")), ["step-name"]);
        assert!(codes_of(draft("a: next → b\nb: done → end")).is_empty());
    }
}
