//! Indexes the steps of a registry by name, so that lookups do not scan all steps.

use std::collections::HashMap;

use cuegate_flow::Str;

use super::gate_lowering::handoff_of;
use super::step_definition::StepDefinition;

/// The positions of the steps of a registry, by name.
#[derive(Debug, Default)]
pub(crate) struct StepIndex<'j> {
    places: HashMap<&'j str, usize>,
}

impl<'j> StepIndex<'j> {
    /// The index of some steps. If two steps share a name, the first one counts.
    pub(crate) fn new(steps: &[StepDefinition<'j>]) -> StepIndex<'j> {
        StepIndex::of(steps.iter().map(|step| step.id))
    }

    /// The index of some names.
    pub(crate) fn of(names: impl Iterator<Item = &'j str>) -> StepIndex<'j> {
        let mut places = HashMap::new();
        for (at, name) in names.enumerate() {
            places.entry(name).or_insert(at);
        }
        StepIndex { places }
    }

    /// The position of a step.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// Whether there is a step of this name.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// The longest step name that a text begins with, followed by a dot and more text.
    pub(crate) fn prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let dots = text.rmatch_indices('.').map(|(at, _)| at);
        let mut names = dots.filter(|at| at + 1 < text.len()).map(|at| &text[..at]);
        names.find(|name| self.has(name))
    }
}

/// The steps that hand off a value of each name.
#[derive(Debug, Default)]
pub(crate) struct HandoffSteps<'j> {
    by_key: HashMap<Str, Vec<&'j str>>,
}

impl<'j> HandoffSteps<'j> {
    /// The handoff names of these steps.
    pub(crate) fn new(steps: &[StepDefinition<'j>]) -> HandoffSteps<'j> {
        let mut by_key: HashMap<Str, Vec<&'j str>> = HashMap::new();
        for step in steps {
            for left in handoff_of(step) {
                by_key.entry(left.key).or_default().push(step.id);
            }
        }
        HandoffSteps { by_key }
    }

    /// Whether any step hands off a value of this name.
    pub(crate) fn any(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Whether a step other than this one does.
    pub(crate) fn other_than(&self, id: &str, key: &str) -> bool {
        self.by_key.get(key).is_some_and(|steps| steps.iter().any(|step| *step != id))
    }
}

#[cfg(test)]
mod tests {
    use super::StepIndex;

    #[test]
    fn a_name_is_the_longest_that_something_follows() {
        let names = ["initial", "initial.issue", "a.", "b"];
        let index = StepIndex::of(names.into_iter());
        for (text, name) in [
            ("initial.issue.plan", Some("initial.issue")),
            ("initial.issue", Some("initial")),
            ("initial.issue.", Some("initial")),
            ("initial", None),
            ("a..x", Some("a.")),
            ("b.x.y", Some("b")),
            (".b", None),
        ] {
            assert_eq!(index.prefix(text), name, "{text}");
        }
        assert_eq!((index.place("b"), index.has("c")), (Some(3), false));
    }
}
