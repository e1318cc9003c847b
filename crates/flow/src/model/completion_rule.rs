//! When a run as a whole is done, besides reaching an end of its flow.

use serde_json::Value;

use crate::{Str, model::Program};

/// When the run as a whole is done, besides reaching an end of the flow. Asked after each finished visit that would go
/// on to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Only by reaching an end.
    Flow,
    /// After this many finished iterations.
    Iterations(u32),
    /// After this many answers of the steps that check.
    Checks {
        /// The answers, at least 1.
        max: u32,
        /// The steps whose answers count, by name.
        of: Vec<Str>,
    },
    /// When an answer says this. It stays true.
    Keyword(Str),
    /// When an answer gives this signal. It stays true.
    Signal(Signal),
    /// When a resource has the wanted state at the last look at it.
    Poll(Poll),
    /// When a program of the definition says so.
    Handler(Handler),
    /// When all of these hold.
    Every(Vec<Verdict>),
    /// When one of these holds.
    Any(Vec<Verdict>),
    /// When one of these held first: that one decides from then on, whatever becomes of it.
    First(Vec<Verdict>),
}

impl Verdict {
    /// Whether it can complete a run that does not reach an end of its flow.
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

    /// The same for a run that may have so many iterations: whether it counts no further than that.
    pub fn can_fire_within(&self, iterations: u32) -> bool {
        let can = |part: &Verdict| part.can_fire_within(iterations);
        match self {
            Verdict::Every(all) => !all.is_empty() && all.iter().all(can),
            Verdict::Any(all) | Verdict::First(all) => all.iter().any(can),
            part => part.can_fire() && part.holds(iterations, iterations, true),
        }
    }

    /// Whether it holds after so many finished iterations and so many answers of the steps that check, when what is said
    /// and looked at does (`free`) or does not.
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

    /// What it is made of; nothing for one that is not composed.
    pub fn parts(&self) -> &[Verdict] {
        match self {
            Verdict::Every(all) | Verdict::Any(all) | Verdict::First(all) => all,
            _ => &[],
        }
    }

    /// Itself and all that it is made of, each with its place: `1` is itself, `1.2` its second part.
    pub fn places(&self) -> Vec<(Str, &Verdict)> {
        let mut found = Vec::new();
        walk(self, "1".to_owned(), &mut found);
        found
    }

    /// What stands at a place.
    pub fn at(&self, place: &str) -> Option<&Verdict> {
        self.places().into_iter().find(|(known, _)| **known == *place).map(|(_, verdict)| verdict)
    }
}

fn walk<'v>(verdict: &'v Verdict, place: String, found: &mut Vec<(Str, &'v Verdict)>) {
    found.push((place.as_str().into(), verdict));
    for (index, part) in verdict.parts().iter().enumerate() {
        walk(part, format!("{place}.{}", index + 1), found);
    }
}

/// What an answer says by its structure: as a structured answer, or in a fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Its type.
    pub kind: Str,
    /// How fenced blocks are marked that name their type in `action`.
    pub marker: Str,
    /// What has to stand in it.
    pub required: Vec<Field>,
}

/// A field of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: Str,
    /// Its value; `None` = whatever is there.
    pub value: Option<Value>,
}

/// A look at something outside of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// What is looked at.
    pub resource: Resource,
    /// The parameter of the run that says which one.
    pub param: Str,
    /// What is wanted of it.
    pub state: PollState,
}

/// A kind of thing that can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A file of the working tree, by its path.
    File,
    /// What a service answers, by its address.
    Api,
}

/// What a resource has to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollState {
    /// It is there. A service is when it answers that all is well.
    Exists,
    /// It is not there.
    Absent,
    /// Its text has this in it.
    Contains(Str),
    /// Its text is this, but for white space around it. For a service also the text of its `state` or `status`.
    Equals(Str),
    /// It is a JSON object with these values.
    Fields(Vec<Field>),
}

/// A program that says whether a run is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handler {
    /// The program; its path is as the definition writes it.
    pub program: Program,
    /// Its settings as the definition writes them, handed to it.
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
        assert_eq!(all.at("1.1.2"), Some(&Verdict::Iterations(3)));
        assert_eq!(all.at("1.3"), None);
        assert!(all.can_fire());
        assert!(!Verdict::Every(vec![Verdict::Flow, Verdict::Iterations(3)]).can_fire());
        assert!(!Verdict::Any(vec![Verdict::Flow]).can_fire());
        assert!(!Verdict::Checks { max: 1, of: Vec::new() }.can_fire());
    }
}
