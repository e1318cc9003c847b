//! When a run is complete, besides reaching an end of its flow.

use serde_json::Value;

use crate::{Str, model::Program};

/// When a run is complete, besides reaching an end of its flow. Evaluated after each finished visit that would lead to
/// another visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Only when it reaches an end.
    Flow,
    /// After this many finished iterations.
    Iterations(u32),
    /// After this many answers of check steps.
    Checks {
        /// The answers, at least 1.
        max: u32,
        /// The names of the steps whose answers count.
        of: Vec<Str>,
    },
    /// When an answer of the last visit contains this keyword; inside `Every`, any answer so far.
    Keyword(Str),
    /// When an answer of the last visit contains this signal; inside `Every`, any answer so far.
    Signal(Signal),
    /// When the last poll found the resource in the wanted state.
    Poll(Poll),
    /// When a program of the definition says that the run is complete.
    Handler(Handler),
    /// When all of these hold.
    Every(Vec<Verdict>),
    /// When one of these holds.
    Any(Vec<Verdict>),
    /// When one of these holds; the first one to hold decides from then on.
    First(Vec<Verdict>),
}

impl Verdict {
    /// Whether this rule can complete a run before it reaches an end of its flow.
    pub fn can_fire(&self) -> bool {
        match self {
            Verdict::Flow => false,
            Verdict::Checks { of, .. } => !of.is_empty(),
            Verdict::Iterations(_)
            | Verdict::Keyword(_)
            | Verdict::Signal(_)
            | Verdict::Poll(_)
            | Verdict::Handler(_) => true,
            Verdict::Every(all) => !all.is_empty() && all.iter().all(Verdict::can_fire),
            Verdict::Any(all) | Verdict::First(all) => all.iter().any(Verdict::can_fire),
        }
    }

    /// As [`Verdict::can_fire`], for a run with at most this many iterations.
    pub fn can_fire_within(&self, iterations: u32) -> bool {
        let can = |part: &Verdict| part.can_fire_within(iterations);
        match self {
            Verdict::Every(all) => !all.is_empty() && all.iter().all(can),
            Verdict::Any(all) | Verdict::First(all) => all.iter().any(can),
            part => part.can_fire() && part.holds(iterations, iterations, true),
        }
    }

    /// Whether the rule holds after `finished` iterations and `checks` answers of check steps. `free`: whether
    /// conditions on answers and resources hold.
    pub(crate) fn holds(&self, finished: u32, checks: u32, free: bool) -> bool {
        let holds = |part: &Verdict| part.holds(finished, checks, free);
        match self {
            Verdict::Flow => false,
            Verdict::Iterations(max) => finished >= *max,
            Verdict::Checks { max, .. } => checks >= *max,
            Verdict::Keyword(_) | Verdict::Signal(_) | Verdict::Poll(_) | Verdict::Handler(_) => free,
            Verdict::Every(all) => all.iter().all(holds),
            Verdict::Any(all) | Verdict::First(all) => all.iter().any(holds),
        }
    }

    /// The parts of a composed rule; empty for any other.
    pub fn parts(&self) -> &[Verdict] {
        match self {
            Verdict::Every(all) | Verdict::Any(all) | Verdict::First(all) => all,
            _ => &[],
        }
    }

    /// The rule and all nested parts with their paths: `1` is the rule itself, `1.2` its second part.
    pub fn places(&self) -> Vec<(Str, &Verdict)> {
        let mut found = Vec::new();
        collect_verdict_places(self, "1".to_owned(), &mut found);
        found
    }

    /// The part at a path.
    pub fn part(&self, place: &str) -> Option<&Verdict> {
        self.places().into_iter().find(|(known, _)| **known == *place).map(|(_, verdict)| verdict)
    }
}

fn collect_verdict_places<'v>(verdict: &'v Verdict, place: String, found: &mut Vec<(Str, &'v Verdict)>) {
    found.push((place.as_str().into(), verdict));
    for (index, part) in verdict.parts().iter().enumerate() {
        collect_verdict_places(part, format!("{place}.{}", index + 1), found);
    }
}

/// A signal in an answer: in the structured answer or in a fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Its type.
    pub kind: Str,
    /// The marker of fenced blocks that name their type in `action`.
    pub marker: Str,
    /// The fields that the signal must have.
    pub required: Vec<Field>,
}

/// A field of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: Str,
    /// Its value; `None` = any value.
    pub value: Option<Value>,
}

/// A poll of a resource outside the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The kind of resource.
    pub resource: Resource,
    /// The run parameter that identifies the resource.
    pub param: Str,
    /// The wanted state.
    pub state: PollState,
}

/// A kind of resource that a run can poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A file of the working tree, identified by its path.
    File,
    /// The response of a service, identified by its URL.
    Api,
    /// An issue or pull request on GitHub, identified by its number.
    Issue,
    /// A project on GitHub, identified by its number.
    Project,
}

/// The state that a resource must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollState {
    /// It exists. A service exists when it responds with a success status.
    Exists,
    /// It does not exist.
    Absent,
    /// Its text contains this text.
    Contains(Str),
    /// Its text equals this text, ignoring surrounding white space. For a service, also the text of its `state` or
    /// `status`; for an issue or a project, its state.
    Equals(Str),
    /// It is a JSON object with these values; an issue or a project as GitHub describes it.
    Fields(Vec<Field>),
}

/// A program that decides whether a run is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handler {
    /// The program; its path is as the definition writes it.
    pub program: Program,
    /// Its settings as the definition writes them, passed to the program.
    pub config: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_what_can_fire() {
        let all = Verdict::Every(vec![
            Verdict::Any(vec![Verdict::Flow, Verdict::Iterations(3)]),
            Verdict::Keyword("DONE".into()),
        ]);
        let places: Vec<String> = all.places().iter().map(|(place, _)| place.to_string()).collect();
        assert_eq!(places, ["1", "1.1", "1.1.1", "1.1.2", "1.2"]);
        assert_eq!(all.part("1.1.2"), Some(&Verdict::Iterations(3)));
        assert_eq!(all.part("1.3"), None);
        assert!(all.can_fire());
        assert!(!Verdict::Every(vec![Verdict::Flow, Verdict::Iterations(3)]).can_fire());
        assert!(!Verdict::Any(vec![Verdict::Flow]).can_fire());
        assert!(!Verdict::Checks { max: 1, of: Vec::new() }.can_fire());
    }
}
