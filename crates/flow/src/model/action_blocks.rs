//! What holds for a whole run, besides its steps.

use crate::{
    Str,
    model::{Program, sandbox::SandboxPolicy},
};

/// What holds for a whole run, besides its steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conduct {
    /// What an agent is told that asks a person; without it the run waits for one.
    pub auto_response: Option<Str>,
    /// Which blocks of answers are acted on; `None` = a block is text like any other.
    pub actions: Option<Actions>,
    /// Whether it is kept how each answer compares with its schema.
    pub inspects: bool,
    /// What has to stand around all that agents start; `None` = nothing is demanded.
    pub sandbox: Option<SandboxPolicy>,
}

impl Conduct {
    /// How many questions of one visit are answered by [`Conduct::auto_response`]; a person has to answer the next.
    pub const QUESTIONS_MAX: u32 = 5;
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
    /// A program, called by its path in the project; it is given the block on standard input.
    Exec(Program),
    /// Something that this version cannot do, by its name. A finding has said so.
    Unsupported(Str),
}

impl Reaction {
    /// As definitions write it.
    pub fn as_text(&self) -> Str {
        match self {
            Reaction::Log => "log".into(),
            Reaction::Exec(program) => format!("exec:{}", program.path).into(),
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

    /// Whether an action is called so.
    pub fn names(&self, action: &str) -> bool {
        let handled = self.handlers.iter().map(|(name, _)| name);
        self.types.iter().flatten().chain(handled).any(|name| **name == *action)
    }

    /// The program that is called so.
    pub fn program(&self, path: &str) -> Option<&Program> {
        self.handlers.iter().find_map(|(_, handler)| match handler {
            Reaction::Exec(program) if *program.path == *path => Some(program),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Actions, Reaction};
    use crate::model::Program;

    #[test]
    fn what_may_not_be_asked_for_is_not_acted_on() {
        let program = Program {
            path: "a/drop".into(),
            name: "drop".into(),
            start: vec!["sh".into()],
            body: "exit 0".into(),
        };
        let handlers = vec![("note".into(), Reaction::Log), ("drop".into(), Reaction::Exec(program))];
        let mut actions = Actions { marker: "json".into(), types: Some(vec!["note".into()]), handlers };
        assert_eq!(actions.handler("note"), Some(&Reaction::Log));
        assert_eq!(actions.handler("drop"), None);
        actions.types = None;
        assert_eq!(actions.handler("drop").map(|handler| handler.as_text()).as_deref(), Some("exec:a/drop"));
        assert_eq!(actions.handler("other"), None);
        assert_eq!(actions.program("a/drop").map(|program| &*program.body), Some("exit 0"));
        assert_eq!(actions.program("drop"), None);
    }
}
