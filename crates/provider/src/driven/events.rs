//! Prints the events of the child.

use std::io::{self, Write};

use cuegate_ask::{FaultClass, Usage};
use serde::Serialize;

use crate::exec::{AnswerLine, EventLine};

/// Where the events go. Nobody reads a part of a line, so each is flushed.
pub(super) struct EventWriter<'w> {
    out: &'w mut dyn Write,
    /// Whether tools were used, or the usage is known: then something was paid for.
    has_worked: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trouble {
    pub(super) class: FaultClass,
    pub(super) message: String,
    pub(super) retry_after_ms: Option<u64>,
}

impl Trouble {
    pub(super) fn new(class: FaultClass, message: impl Into<String>) -> Trouble {
        Trouble { class, message: message.into(), retry_after_ms: None }
    }
}

/// Why the child stops.
#[derive(Debug)]
pub(super) enum DriverError {
    /// There is no answer.
    Trouble(Trouble),
    /// Nobody reads the events any more.
    Deaf(io::Error),
}

impl From<Trouble> for DriverError {
    fn from(trouble: Trouble) -> DriverError {
        DriverError::Trouble(trouble)
    }
}

impl EventWriter<'_> {
    pub(super) fn new(out: &mut dyn Write) -> EventWriter<'_> {
        EventWriter { out, has_worked: false }
    }

    fn write(&mut self, event: &impl Serialize) -> Result<(), DriverError> {
        let mut line = serde_json::to_vec(event).map_err(|error| DriverError::Deaf(error.into()))?;
        line.push(b'\n');
        self.out.write_all(&line).and_then(|()| self.out.flush()).map_err(DriverError::Deaf)
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), DriverError> {
        if text.is_empty() { Ok(()) } else { self.write(&EventLine::Text { text: text.to_owned() }) }
    }

    pub(super) fn tool(&mut self, id: &str, name: &str, target: &str) -> Result<(), DriverError> {
        self.has_worked = true;
        self.write(&EventLine::Tool { id: id.to_owned(), name: name.to_owned(), target: target.to_owned() })
    }

    pub(super) fn tool_ended(&mut self, id: &str, failed: bool, output: &str) -> Result<(), DriverError> {
        self.write(&EventLine::ToolEnded { id: id.to_owned(), failed, output: output.to_owned() })
    }

    pub(super) fn denied(&mut self, id: &str, name: &str, target: &str) -> Result<(), DriverError> {
        self.write(&EventLine::Denied { id: id.to_owned(), name: name.to_owned(), target: target.to_owned() })
    }

    pub(super) fn usage(&mut self, usage: Usage) -> Result<(), DriverError> {
        self.has_worked |= usage != Usage::default();
        if usage == Usage::default() { Ok(()) } else { self.write(&EventLine::Usage(usage)) }
    }

    pub(super) fn retry(&mut self, reason: &str) -> Result<(), DriverError> {
        self.write(&EventLine::Retry { reason: reason.to_owned() })
    }

    pub(super) fn answer(&mut self, answer: AnswerLine) -> Result<(), DriverError> {
        self.write(&EventLine::Answer(Box::new(answer)))
    }

    pub(super) fn error(&mut self, trouble: Trouble) -> Result<(), DriverError> {
        let Trouble { class, message, retry_after_ms } = trouble;
        let never_began = matches!(
            class,
            FaultClass::Auth
                | FaultClass::RateLimited
                | FaultClass::Overloaded
                | FaultClass::Network
                | FaultClass::UnknownModel
                | FaultClass::MissingProgram
                | FaultClass::SessionLost
                | FaultClass::ContextOverflow
        );
        if never_began && !self.has_worked {
            // What never began costs nothing, and is not unknown.
            self.write(&EventLine::Usage(Usage::default()))?;
        }
        self.write(&EventLine::Error { class, message, retry_after_ms })
    }
}
