//! JSON-RPC over the standard input and output of the agent.

use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    RequestPermissionRequest, RequestPermissionResponse, SessionNotification,
};
use cuegate_ask::FaultClass;
use serde::Serialize;
use serde_json::{Value, json};

use crate::driven::{
    classify::classify_failure,
    events::{DriverError, Trouble},
    program_process::{ProgramLine, ProgramProcess},
};

/// How often records of the answer server are looked for while nothing is said.
const TICK: Duration = Duration::from_millis(50);
/// How many messages of an agent may be none that anybody can read.
const GARBLED_MAX: u32 = 100;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// The code of an agent that wants a login.
const AUTH_REQUIRED: i64 = -32000;
/// The code of an agent that does not know what was named, such as a session.
const NOT_FOUND: i64 = -32002;

/// What reacts to the messages of an agent beside the reply that is waited for.
pub(super) trait AcpHandler {
    /// The agent says something about a session.
    fn update(&mut self, update: SessionNotification) -> Result<(), DriverError>;

    /// An update in a form that the protocol does not have.
    fn unknown_update(&mut self, update: &Value) -> Result<(), DriverError>;

    /// The agent asks whether it may use a tool.
    fn permit(&mut self, request: RequestPermissionRequest)
    -> Result<RequestPermissionResponse, DriverError>;

    /// Some time passed, or something happened. Returns whether to give up waiting.
    fn tick(&mut self) -> Result<WaitVerdict, DriverError>;
}

/// Whether to go on waiting for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitVerdict {
    GoOn,
    /// It is not needed any more, or it will not come.
    Leave,
}

/// An error that the agent replies with.
#[derive(Debug)]
pub(super) struct AcpError {
    pub(super) code: i64,
    pub(super) message: String,
}

impl AcpError {
    fn read(error: &Value) -> AcpError {
        let code = error["code"].as_i64().unwrap_or_default();
        let mut message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        // Some agents pass the body of the service on as it is.
        if let Ok(body) = serde_json::from_str::<Value>(&message)
            && let Some(inner) = body["error"]["message"].as_str()
        {
            message = inner.to_owned();
        }
        let data = &error["data"];
        for more in [&data["errorName"], &data["details"], &data["message"], data] {
            if let Some(more) = more.as_str().filter(|more| !message.contains(*more)) {
                message.push_str(&format!(": {more}"));
            }
        }
        AcpError { code, message }
    }

    /// Whether the session that was named is not there.
    pub(super) fn is_lost_session(&self) -> bool {
        let text = self.message.to_lowercase();
        self.code == NOT_FOUND
            || text.contains("session") && (text.contains("not found") || text.contains("invalid"))
    }

    pub(super) fn into_trouble(self, name: &str) -> Trouble {
        let AcpError { code, message } = self;
        let text = format!("{name}: {message}");
        match code {
            AUTH_REQUIRED => Trouble::new(FaultClass::Auth, text),
            // Some agents pass the status of the service on as the code.
            400..=599 => classify_failure(u64::try_from(code).ok(), &text, FaultClass::Crashed),
            _ => classify_failure(None, &text, FaultClass::Crashed),
        }
    }
}

/// A connection to an agent.
pub(super) struct AcpConnection {
    process: ProgramProcess,
    next_id: u64,
    garbled: u32,
    /// When the agent last said something.
    pub(super) heard: Instant,
}

impl AcpConnection {
    pub(super) fn new(process: ProgramProcess) -> AcpConnection {
        AcpConnection { process, next_id: 1, garbled: 0, heard: Instant::now() }
    }

    /// Ends the agent.
    pub(super) fn close(mut self) {
        drop(self.process.wait());
    }

    fn send(&mut self, message: &Value) -> Result<(), ()> {
        self.process.write_line(message.to_string().as_bytes()).map_err(|_| ())
    }

    pub(super) fn notify(&mut self, method: &str, params: impl Serialize) {
        // An agent that is gone is noticed when its output ends.
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).ok();
    }

    /// Sends a request and waits for its reply. `None` if the handler left it.
    pub(super) fn request(
        &mut self,
        method: &str,
        params: impl Serialize,
        patience: Option<Duration>,
        handler: &mut dyn AcpHandler,
    ) -> Result<Option<Result<Value, AcpError>>, DriverError> {
        let id = self.next_id;
        self.next_id += 1;
        // An agent that is gone is noticed when its output ends.
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).ok();
        self.heard = Instant::now();
        let until = patience.map(|patience| Instant::now() + patience);
        loop {
            match self.process.next_line(TICK) {
                Some(ProgramLine::Line(line)) => {
                    self.heard = Instant::now();
                    if let Some(reply) = self.receive(&line, id, handler)? {
                        return Ok(Some(reply));
                    }
                }
                Some(ProgramLine::End) => {
                    let mut trouble = self.process.trouble_of_end(&format!("ended during `{method}`"));
                    // OpenCode talks to itself over a port, which Landlock cannot tell from a way out.
                    if trouble.message.contains("ServeError") {
                        trouble.class = FaultClass::MissingProgram;
                        trouble.message.push_str(
                            "; it could not open a port of its own, which a sandbox of Landlock alone forbids: install \
                             bubblewrap",
                        );
                    }
                    return Err(trouble.into());
                }
                Some(ProgramLine::TooMuch) => {
                    return Err(Trouble::new(FaultClass::Malformed, "the agent printed without end").into());
                }
                None => {}
            }
            if handler.tick()? == WaitVerdict::Leave {
                return Ok(None);
            }
            if until.is_some_and(|until| Instant::now() > until) {
                let seconds = patience.unwrap_or_default().as_secs();
                let why = format!("the agent did not answer `{method}` within {seconds} s");
                return Err(Trouble::new(FaultClass::Timeout, why).into());
            }
        }
    }

    /// Listens for a while without waiting for a reply, until the handler leaves.
    pub(super) fn listen(
        &mut self,
        patience: Duration,
        handler: &mut dyn AcpHandler,
    ) -> Result<bool, DriverError> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            match self.process.next_line(TICK) {
                Some(ProgramLine::Line(line)) => {
                    self.heard = Instant::now();
                    self.receive(&line, 0, handler)?;
                }
                Some(ProgramLine::End) => return Ok(false),
                Some(ProgramLine::TooMuch) => {
                    return Err(Trouble::new(FaultClass::Malformed, "the agent printed without end").into());
                }
                None => {}
            }
            if handler.tick()? == WaitVerdict::Leave {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops what comes next, a line or nothing for a moment.
    pub(super) fn wait_for_line(&mut self) -> Result<(), DriverError> {
        match self.process.next_line(TICK) {
            Some(ProgramLine::Line(_)) => self.heard = Instant::now(),
            Some(ProgramLine::End) => {
                return Err(
                    Trouble::new(FaultClass::Crashed, "the agent ended while it loaded the session").into()
                );
            }
            Some(ProgramLine::TooMuch) => {
                return Err(Trouble::new(FaultClass::Malformed, "the agent printed without end").into());
            }
            None => {}
        }
        Ok(())
    }

    /// Reads a line. Returns the reply to the request of this id, if it is that.
    fn receive(
        &mut self,
        line: &[u8],
        wanted: u64,
        handler: &mut dyn AcpHandler,
    ) -> Result<Option<Result<Value, AcpError>>, DriverError> {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return self.count_garbled() };
        let (id, params) = (message.get("id"), message.get("params").unwrap_or(&Value::Null));
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.serve(method, id, params, handler).map(|()| None),
            (Some("session/update"), None) => {
                match serde_json::from_value(params.clone()) {
                    Ok(update) => handler.update(update)?,
                    Err(_) => handler.unknown_update(params)?,
                }
                Ok(None)
            }
            // Notifications that the protocol does not have tell nothing that matters.
            (Some(_), None) => Ok(None),
            (None, Some(id)) if id.as_u64() == Some(wanted) && wanted > 0 => {
                Ok(Some(match (message.get("result"), message.get("error")) {
                    (_, Some(error)) if !error.is_null() => Err(AcpError::read(error)),
                    (Some(result), _) => Ok(result.clone()),
                    // Some agents reply with nothing where the protocol has an empty object.
                    (None, _) => Ok(Value::Null),
                }))
            }
            // A late reply, or one to what nobody asked.
            (None, _) => self.count_garbled(),
        }
    }

    fn count_garbled(&mut self) -> Result<Option<Result<Value, AcpError>>, DriverError> {
        self.garbled += 1;
        match self.garbled > GARBLED_MAX {
            true => {
                Err(Trouble::new(FaultClass::Malformed, "the agent does not speak the Agent Client Protocol")
                    .into())
            }
            false => Ok(None),
        }
    }

    fn serve(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        handler: &mut dyn AcpHandler,
    ) -> Result<(), DriverError> {
        let error = |code: i64, message: String| json!({ "code": code, "message": message });
        let reply = match method {
            "session/request_permission" => match serde_json::from_value(params.clone()) {
                Ok(request) => json!({ "jsonrpc": "2.0", "id": id, "result": handler.permit(request)? }),
                Err(why) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": error(INVALID_PARAMS, why.to_string()) })
                }
            },
            _ => {
                let why = format!("unknown method `{method}`");
                json!({ "jsonrpc": "2.0", "id": id, "error": error(METHOD_NOT_FOUND, why) })
            }
        };
        self.send(&reply).ok();
        Ok(())
    }
}
