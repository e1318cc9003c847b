//! What holds for a whole run, besides its steps.

use crate::Str;

/// What holds for a whole run, besides its steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conduct {
    /// What an agent is told that asks a person; without it the run waits for one.
    pub auto_response: Option<Str>,
    /// Which blocks of answers are acted on; `None` = a block is text like any other.
    pub actions: Option<Actions>,
    /// Whether it is kept how each answer compares with its schema.
    pub inspects: bool,
}

/// Blocks in answers by which an agent asks for something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// The word after the fence of a block whose JSON object names its action.
    pub marker: Str,
    /// The actions that may be asked for; `None` = all. Others are noted and not acted on.
    pub types: Option<Vec<Str>>,
    /// What acts on which; an action without is noted only.
    pub handlers: Vec<(Str, Reaction)>,
}

/// What acts on a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing: it stands in the log.
    Log,
    /// A program, by its path in the project; it is given the block on standard input.
    Exec(Str),
    /// Something that this version cannot do, by its name. A finding has said so.
    Unsupported(Str),
}

impl Reaction {
    /// As definitions write it.
    pub fn as_text(&self) -> Str {
        match self {
            Reaction::Log => "log".into(),
            Reaction::Exec(path) => format!("exec:{path}").into(),
            Reaction::Unsupported(name) => name.clone(),
        }
    }
}

impl Actions {
    /// What acts on an action that may be asked for.
    pub fn handler(&self, action: &str) -> Option<&Reaction> {
        let allowed = self.types.as_ref().is_none_or(|types| types.iter().any(|known| **known == *action));
        let handler = self.handlers.iter().find(|(name, _)| **name == *action);
        handler.filter(|_| allowed).map(|(_, handler)| handler)
    }
}

#[cfg(test)]
mod tests {
    use super::{Actions, Reaction};

    #[test]
    fn what_may_not_be_asked_for_is_not_acted_on() {
        let handlers = vec![("note".into(), Reaction::Log), ("drop".into(), Reaction::Exec("a/drop".into()))];
        let mut actions = Actions { marker: "json".into(), types: Some(vec!["note".into()]), handlers };
        assert_eq!(actions.handler("note"), Some(&Reaction::Log));
        assert_eq!(actions.handler("drop"), None);
        actions.types = None;
        assert_eq!(actions.handler("drop").map(|handler| handler.as_text()).as_deref(), Some("exec:a/drop"));
        assert_eq!(actions.handler("other"), None);
    }
}
