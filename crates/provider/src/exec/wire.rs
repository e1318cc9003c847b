//! The lines that a program and Cuegate exchange. `docs/own-agents.md` describes them for users.

use cuegate_ask::{FaultClass, Permission, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Request, Session,
    program::tool_servers::{describe_servers, expand_server},
};

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
    /// As the user names it.
    effort: Option<&'r str>,
    session: Option<SessionLine<'r>>,
    permission: Permission,
    tools: Option<&'r [String]>,
    /// As in settings of other agents, with the values of variables; by name.
    mcp_servers: Map<String, Value>,
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
            effort: request.effort.as_deref(),
            session: request.session.as_ref().map(session),
            permission: request.permission,
            tools: request.tools.as_deref(),
            mcp_servers: describe_servers(
                &request.tool_servers.iter().map(expand_server).collect::<Vec<_>>(),
                |_, _| {},
            ),
            folder: request.work.display().to_string(),
            timeout_ms: request.timeout_ms,
            limit_usd: request.cap.usd,
            limit_tokens: request.cap.tokens,
        }
    }
}

/// A line of the program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum EventLine {
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
    /// The use of a tool was denied.
    Denied {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        target: String,
    },
    /// The program tries something again by itself.
    Retry { reason: String },
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

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AnswerLine {
    #[serde(default)]
    pub(crate) text: String,
    /// The object that fits the schema.
    #[serde(default)]
    pub(crate) output: Option<Value>,
    #[serde(default)]
    pub(crate) session: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// The usage of the whole session, where the program reports that.
    #[serde(default)]
    pub(crate) totals: Option<Usage>,
    /// What the agent said of itself at the start: its name, its version, what it can.
    #[serde(default)]
    pub(crate) handshake: Option<String>,
    /// Why the agent cannot go on.
    #[serde(default)]
    pub(crate) blocked: Option<String>,
    /// A question to a person.
    #[serde(default)]
    pub(crate) question: Option<String>,
}
