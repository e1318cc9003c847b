use std::collections::HashSet;

use super::Code;
use crate::{diagnostics::Diagnostic, model::Draft};

pub(super) const CODE: Code = code!("step-name");

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
