//! The lines that a program and Cuegate exchange. `docs/own-agents.md` describes them for users.

use cuegate_ask::{FaultClass, Permission, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Request, Session};

/// The format of a request.
pub(super) const SCHEMA: &str = "cuegate/ask/v1";

/// A request, on one line.
#[derive(Debug, Serialize)]
pub(super) struct AskLine<'r> {
    schema: &'static str,
    id: &'r str,
    step: &'r str,
    kind: &'static str,
    prompt: &'r str,
    system: Option<&'r str>,
    /// The JSON Schema of `output`.
    answer_schema: Option<&'r Value>,
    model: Option<&'r str>,
    session: Option<SessionLine<'r>>,
    permission: Permission,
    tools: Option<&'r [String]>,
    folder: String,
    timeout_ms: u64,
    limit_usd: Option<f64>,
    limit_tokens: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SessionLine<'r> {
    id: &'r str,
    /// Whether the answer belongs to a copy of the conversation, so that the original stays as it is.
    fork: bool,
}

impl<'r> AskLine<'r> {
    pub(super) fn of(request: &'r Request, model: Option<&'r str>) -> AskLine<'r> {
        let session = |session: &'r Session| SessionLine { id: &session.id, fork: session.fork };
        AskLine {
            schema: SCHEMA,
            id: &request.id,
            step: &request.step,
            kind: request.kind.as_str(),
            prompt: &request.prompt,
            system: request.system.as_deref(),
            answer_schema: request.schema.as_ref(),
            model,
            session: request.session.as_ref().map(session),
            permission: request.permission,
            tools: request.tools.as_deref(),
            folder: request.work.display().to_string(),
            timeout_ms: request.timeout_ms,
            limit_usd: request.cap.usd,
            limit_tokens: request.cap.tokens,
        }
    }
}

/// A line of the program.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum EventLine {
    /// Text as it is written.
    Text { text: String },
    /// A tool is used.
    Tool {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        target: String,
    },
    /// The use of a tool ended.
    ToolEnded {
        #[serde(default)]
        id: String,
        #[serde(default)]
        failed: bool,
        #[serde(default)]
        output: String,
    },
    /// What was used since the last event of this kind.
    Usage(Usage),
    /// The answer, the last line.
    Answer(Box<AnswerLine>),
    /// There is none.
    Error {
        class: FaultClass,
        message: String,
        /// In milliseconds.
        #[serde(default)]
        retry_after_ms: Option<u64>,
    },
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AnswerLine {
    #[serde(default)]
    pub(super) text: String,
    /// The object that fits the schema.
    #[serde(default)]
    pub(super) output: Option<Value>,
    #[serde(default)]
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    /// Why the agent cannot go on.
    #[serde(default)]
    pub(super) blocked: Option<String>,
    /// A question to a person.
    #[serde(default)]
    pub(super) question: Option<String>,
}
