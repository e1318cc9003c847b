//! Settings of a whole run that belong to no single step.

use serde::{Deserialize, Serialize};

use crate::{
    Str,
    model::{Program, sandbox::SandboxRule},
};

/// Settings of a whole run that belong to no single step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conduct {
    /// The reply to an agent that asks a person; without it the run waits for a person.
    pub auto_response: Option<Str>,
    /// The action blocks in answers that are executed; `None` = blocks are plain text.
    pub actions: Option<Actions>,
    /// Whether the run records how each answer compares with its schema.
    pub inspects: bool,
    /// The sandbox of everything that works for a run.
    pub sandbox: SandboxRule,
    /// What runs do to the issue that they work on; `None` = nothing.
    pub issue: Option<IssueRule>,
}

/// What runs do to the issue that they work on. The closure action is one of four sets of two effects, so that an
/// answer can only take effects away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IssueRule {
    /// The label that is added at the start.
    pub in_progress: Option<Str>,
    /// The label that is added when the run waits for a person, or ends without success.
    pub blocked: Option<Str>,
    /// The labels that are added when the run completes, if `labels`.
    pub add: Vec<Str>,
    /// The labels that are removed when the run completes, if `labels`.
    pub remove: Vec<Str>,
    /// The effects when the run completes.
    pub closure: IssueClosure,
}

/// The effects on an issue when a run completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IssueClosure {
    /// Whether its labels are changed.
    pub labels: bool,
    /// Whether it is closed.
    pub closes: bool,
}

impl IssueClosure {
    /// The names of closure actions.
    pub const NAMES: [&str; 3] = ["close", "label-only", "label-and-close"];

    /// The closure action of this name.
    pub fn named(name: &str) -> Option<IssueClosure> {
        match name {
            "close" => Some(IssueClosure { labels: false, closes: true }),
            "label-only" => Some(IssueClosure { labels: true, closes: false }),
            "label-and-close" => Some(IssueClosure { labels: true, closes: true }),
            _ => None,
        }
    }

    /// Its name; `none` if nothing is left of it.
    pub fn as_str(self) -> &'static str {
        match (self.labels, self.closes) {
            (false, true) => "close",
            (true, false) => "label-only",
            (true, true) => "label-and-close",
            (false, false) => "none",
        }
    }

    /// The effects that both have.
    #[must_use]
    pub fn narrowed(self, to: IssueClosure) -> IssueClosure {
        IssueClosure { labels: self.labels && to.labels, closes: self.closes && to.closes }
    }
}

impl Conduct {
    /// The most questions per visit that [`Conduct::auto_response`] answers; a person has to answer the next.
    pub const QUESTIONS_MAX: u32 = 5;
}

/// Blocks in answers with which an agent requests actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// The word after the fence of a block whose JSON object names its action.
    pub marker: Str,
    /// The allowed actions; `None` = all. The run logs other actions without executing them.
    pub types: Option<Vec<Str>>,
    /// The handler of each action; an action without a handler is only logged.
    pub handlers: Vec<(Str, Reaction)>,
}

/// How a block is handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// The run only logs it.
    Log,
    /// A program, by its path in the project; it reads the block from standard input.
    Exec(Program),
    /// The comment of the run on its issue shows the text of the block.
    Comment,
    /// The labels of the issue change as the block says.
    Label,
}

impl Reaction {
    /// The handler as definitions write it.
    pub fn as_text(&self) -> Str {
        match self {
            Reaction::Log => "log".into(),
            Reaction::Exec(program) => format!("exec:{}", program.path).into(),
            Reaction::Comment => "github:comment".into(),
            Reaction::Label => "github:label".into(),
        }
    }
}

impl Actions {
    /// The handler of an action, if the action is allowed.
    pub fn handler(&self, action: &str) -> Option<&Reaction> {
        let allowed = self.types.as_ref().is_none_or(|types| types.iter().any(|known| **known == *action));
        let handler = self.handlers.iter().find(|(name, _)| **name == *action);
        handler.filter(|_| allowed).map(|(_, handler)| handler)
    }

    /// Whether an action has this name.
    pub fn names(&self, action: &str) -> bool {
        let handled = self.handlers.iter().map(|(name, _)| name);
        self.types.iter().flatten().chain(handled).any(|name| **name == *action)
    }

    /// The program at this path.
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
    fn a_handler_ignores_actions_that_are_not_allowed() {
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
