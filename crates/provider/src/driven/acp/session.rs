//! From the handshake to a session that is ready for its prompt.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use agent_client_protocol_schema::{
    ProtocolVersion,
    v1::{
        ClientCapabilities, EnvVariable, HttpHeader, Implementation, InitializeRequest, InitializeResponse,
        LoadSessionRequest, McpServer as AcpServer, McpServerHttp, McpServerSse, McpServerStdio,
        NewSessionRequest, ResumeSessionRequest,
    },
};
use cuegate_ask::{FaultClass, McpServer, McpTransport};
use serde_json::{Value, json};

use super::connection::{AcpConnection, AcpError, AcpHandler};
use crate::{
    answer_server::SERVER_NAME,
    driven::{
        child::AnswerFolder,
        events::{DriverError, Trouble},
        job::{AnswerRoute, DriverJob},
        rows::{AgentRow, ModelChoice},
    },
    program::locate::locate_or_missing,
};

/// How long the handshake, and each request before the prompt, may take. An agent that is started the first time unpacks
/// itself.
const START_MAX: Duration = Duration::from_secs(90);

/// How long the replay of a conversation that was loaded may take, and the silence after which it is over.
const REPLAY_MAX: Duration = Duration::from_secs(60);
const REPLAY_SILENCE: Duration = Duration::from_secs(1);

/// A session that is ready.
pub(super) struct AcpSession {
    pub(super) id: String,
    /// What the agent said of itself.
    pub(super) handshake: String,
    pub(super) can_close: bool,
    /// Its reply to `initialize`.
    pub(super) hello: Value,
    /// Its reply when the session was opened.
    pub(super) opened: Value,
}

/// Opens the session of a job, with its mode and its model.
pub(super) fn open_session(
    connection: &mut AcpConnection,
    job: &DriverJob,
    row: Option<&AgentRow>,
    answers: Option<&AnswerFolder>,
    handler: &mut dyn AcpHandler,
) -> Result<AcpSession, DriverError> {
    let name = &job.name;
    let mut ask = |connection: &mut AcpConnection, method: &str, params: Value| {
        let reply = connection.request(method, params, Some(START_MAX), &mut *handler)?;
        reply.ok_or_else(|| DriverError::from(Trouble::new(FaultClass::Crashed, format!("{name} was left"))))
    };
    let hello = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new())
        .client_info(Implementation::new("cuegate", env!("CARGO_PKG_VERSION")));
    let reply = ask(connection, "initialize", to_json(&hello))?.map_err(|error| error.into_trouble(name))?;
    let agent: InitializeResponse = serde_json::from_value(reply.clone()).map_err(|error| {
        Trouble::new(
            FaultClass::Malformed,
            format!("{name} does not speak the Agent Client Protocol: {error}"),
        )
    })?;
    if agent.protocol_version != ProtocolVersion::V1 {
        let why = format!(
            "{name} speaks another version of the Agent Client Protocol: {:?}",
            agent.protocol_version
        );
        return Err(Trouble::new(FaultClass::MissingProgram, why).into());
    }
    let can = &reply["agentCapabilities"];
    let has = |name: &str| !can["sessionCapabilities"][name].is_null();
    let own = answers.and_then(|answers| describe_server(job, answers));
    let servers: Vec<AcpServer> =
        own.into_iter().chain(job.tool_servers.iter().map(convert_tool_server)).collect();
    let (id, opened) = match &job.session {
        Some(id) => {
            let resumes = has("resume");
            if !resumes && can["loadSession"] != true {
                return Err(Trouble::new(
                    FaultClass::SessionLost,
                    format!("{name} continues no conversations"),
                )
                .into());
            }
            let (method, params) = match resumes {
                true => {
                    let request =
                        ResumeSessionRequest::new(id.clone(), job.folder.clone()).mcp_servers(servers);
                    ("session/resume", to_json(&request))
                }
                false => {
                    let request =
                        LoadSessionRequest::new(id.clone(), job.folder.clone()).mcp_servers(servers);
                    ("session/load", to_json(&request))
                }
            };
            let opened = ask(connection, method, params)?.map_err(|error| lost_or_other(error, name))?;
            if !resumes {
                // The conversation is told again, and some agents go on with that after they replied.
                let until = Instant::now() + REPLAY_MAX;
                while connection.heard.elapsed() < REPLAY_SILENCE && Instant::now() < until {
                    connection.wait_for_line()?;
                }
            }
            (id.clone(), opened)
        }
        None => {
            let request = NewSessionRequest::new(job.folder.clone()).mcp_servers(servers);
            let opened = ask(connection, "session/new", to_json(&request))?
                .map_err(|error| DriverError::from(error.into_trouble(name)))?;
            let id = opened["sessionId"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() {
                return Err(
                    Trouble::new(FaultClass::Malformed, format!("{name} gave its session no id")).into()
                );
            }
            (id, opened)
        }
    };
    if let Some(mode) = &job.mode {
        set_mode(connection, name, (&id, &opened), mode, &mut ask)?;
    }
    if let Some(model) =
        job.model.as_deref().filter(|_| row.is_none_or(|row| row.model == ModelChoice::Option))
    {
        set_model(connection, name, (&id, &opened), model, &mut ask)?;
    }
    let (handshake, can_close) = (describe_agent(name, &reply), has("close"));
    Ok(AcpSession { id, handshake, can_close, hello: reply, opened })
}

type Ask<'a> =
    dyn FnMut(&mut AcpConnection, &str, Value) -> Result<Result<Value, AcpError>, DriverError> + 'a;

/// An option of a session by its category or its id.
pub(super) fn find_option<'o>(opened: &'o Value, what: &str) -> Option<&'o Value> {
    let options = opened["configOptions"].as_array()?;
    options
        .iter()
        .find(|option| option["category"] == what)
        .or_else(|| options.iter().find(|option| option["id"] == what))
}

/// Sets an option, and checks that it is what was set.
fn set_option(
    connection: &mut AcpConnection,
    (session, option): (&str, &Value),
    value: &str,
    ask: &mut Ask<'_>,
) -> Result<Result<Value, AcpError>, DriverError> {
    if option["currentValue"] == value {
        return Ok(Ok(json!({ "configOptions": [option] })));
    }
    let params = json!({ "sessionId": session, "configId": option["id"], "value": value });
    ask(connection, "session/set_config_option", params)
}

fn set_mode(
    connection: &mut AcpConnection,
    name: &str,
    (session, opened): (&str, &Value),
    mode: &str,
    ask: &mut Ask<'_>,
) -> Result<(), DriverError> {
    let refused = |error: AcpError| {
        Trouble::new(FaultClass::MissingProgram, format!("{name} has no mode `{mode}`: {}", error.message))
    };
    let modes = &opened["modes"];
    if modes["availableModes"].is_array() {
        if modes["currentModeId"] == mode {
            return Ok(());
        }
        let params = json!({ "sessionId": session, "modeId": mode });
        ask(connection, "session/set_mode", params)?.map_err(refused)?;
        return Ok(());
    }
    let Some(option) = find_option(opened, "mode") else {
        // Its permissions are asked for, and the sandbox holds.
        return Ok(());
    };
    set_option(connection, (session, option), mode, ask)?.map_err(refused)?;
    Ok(())
}

fn set_model(
    connection: &mut AcpConnection,
    name: &str,
    (session, opened): (&str, &Value),
    model: &str,
    ask: &mut Ask<'_>,
) -> Result<(), DriverError> {
    let unknown =
        |why: &str| Trouble::new(FaultClass::UnknownModel, format!("{name} has no model `{model}`{why}"));
    let Some(option) = find_option(opened, "model") else {
        let params = json!({ "sessionId": session, "modelId": model });
        ask(connection, "session/set_model", params)?
            .map_err(|error| unknown(&format!(": {}", error.message)))?;
        return Ok(());
    };
    let reply = set_option(connection, (session, option), model, ask)?
        .map_err(|error| unknown(&format!(": {}", error.message)))?;
    // An agent that goes on with another model would send the work to somebody else.
    match find_option(&reply, "model").map(|option| option["currentValue"].as_str().unwrap_or_default()) {
        Some(current) if current != model => Err(unknown(&format!("; it would use `{current}`")).into()),
        _ => Ok(()),
    }
}

fn lost_or_other(error: AcpError, name: &str) -> DriverError {
    let lost = error.is_lost_session();
    let trouble = error.into_trouble(name);
    match lost || trouble.class == FaultClass::Crashed {
        true => Trouble::new(FaultClass::SessionLost, trouble.message).into(),
        false => trouble.into(),
    }
}

fn describe_server(job: &DriverJob, answers: &AnswerFolder) -> Option<AcpServer> {
    match job.answer {
        AnswerRoute::Stdio => {
            let (program, args) = job.answer_server.split_first()?;
            let args = args.iter().cloned().chain([answers.path().display().to_string()]).collect();
            Some(AcpServer::Stdio(McpServerStdio::new(SERVER_NAME, program).args(args)))
        }
        AnswerRoute::Http => {
            let server = answers.http()?;
            let header = HttpHeader::new("Authorization", server.authorization());
            Some(AcpServer::Http(McpServerHttp::new(SERVER_NAME, server.url()).headers(vec![header])))
        }
        AnswerRoute::None => None,
    }
}

fn convert_tool_server(server: &McpServer) -> AcpServer {
    let name = server.name.clone();
    let headers = |headers: &BTreeMap<String, String>| {
        headers.iter().map(|(name, value)| HttpHeader::new(name, value)).collect::<Vec<_>>()
    };
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let env = env.iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
            let program = locate_or_missing(command);
            AcpServer::Stdio(McpServerStdio::new(name, program).args(args.clone()).env(env))
        }
        McpTransport::Http { url, headers: own } => {
            AcpServer::Http(McpServerHttp::new(name, url).headers(headers(own)))
        }
        McpTransport::Sse { url, headers: own } => {
            AcpServer::Sse(McpServerSse::new(name, url).headers(headers(own)))
        }
    }
}

fn to_json(request: &impl serde::Serialize) -> Value {
    serde_json::to_value(request).unwrap_or_default()
}

/// `OpenCode 1.18.33, ACP 1; close, fork, list, resume`
fn describe_agent(name: &str, reply: &Value) -> String {
    let info = &reply["agentInfo"];
    let who = info["name"].as_str().unwrap_or(name);
    let version = info["version"].as_str().unwrap_or("of an unknown version");
    let can = &reply["agentCapabilities"];
    let mut abilities: Vec<&str> = can["sessionCapabilities"]
        .as_object()
        .map(|can| can.keys().map(String::as_str).collect())
        .unwrap_or_default();
    if can["loadSession"] == true {
        abilities.push("load");
    }
    let abilities = if abilities.is_empty() { "new sessions only".to_owned() } else { abilities.join(", ") };
    format!("{who} {version}, ACP {}; {abilities}", reply["protocolVersion"])
}
