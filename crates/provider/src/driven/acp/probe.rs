//! What an agent can do, as far as it says so before any prompt.

use std::time::Duration;

use agent_client_protocol_schema::v1::{
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionNotification,
};
use serde_json::Value;

use super::{
    connection::{AcpConnection, AcpHandler, WaitVerdict},
    session::{find_option, open_session},
};
use crate::{
    answer_server::{AnswerRecord, AnswerRecords},
    driven::{
        agent_probe::AgentProbe,
        child::AnswerFolder,
        events::{DriverError, Trouble},
        job::DriverJob,
        program_process::ProgramProcess,
        rows::{AgentRow, ModelChoice},
    },
};

/// How long an agent may take to ask for the tools of the answer server.
const LISTED_MAX: Duration = Duration::from_secs(10);

/// Starts an agent, shakes hands, opens a session and ends the agent. It gets no prompt, so nothing is paid.
pub(in crate::driven) fn probe_acp(
    job: &DriverJob,
    row: Option<&AgentRow>,
    answers: &AnswerFolder,
) -> Result<AgentProbe, DriverError> {
    let mut args = Vec::new();
    if let (Some(model), Some(ModelChoice::Flag(flag))) = (&job.model, row.map(|row| row.model)) {
        args.extend([flag.to_owned(), model.clone()]);
    }
    let mut connection = AcpConnection::new(ProgramProcess::start(job, &args)?);
    let mut probing = Probing { records: answers.records(), is_listed: false };
    let probed = probing.probe(&mut connection, job, row, answers);
    connection.close();
    probed
}

struct Probing {
    records: AnswerRecords,
    is_listed: bool,
}

impl Probing {
    fn probe(
        &mut self,
        connection: &mut AcpConnection,
        job: &DriverJob,
        row: Option<&AgentRow>,
        answers: &AnswerFolder,
    ) -> Result<AgentProbe, DriverError> {
        let session = open_session(connection, job, row, Some(answers), self)?;
        if !self.is_listed {
            connection.listen(LISTED_MAX, self)?;
        }
        let can = &session.hello["agentCapabilities"];
        let names = |list: &Value, key: &str| -> Vec<String> {
            let all = list.as_array().into_iter().flatten();
            all.filter_map(|one| one[key].as_str().map(str::to_owned)).collect()
        };
        let of_option = |what: &str| {
            find_option(&session.opened, what)
                .map(|option| names(&option["options"], "value"))
                .unwrap_or_default()
        };
        let first = |first: Vec<String>, second: Vec<String>| if first.is_empty() { second } else { first };
        Ok(AgentProbe {
            about: session.handshake,
            sees_answer_server: self.is_listed,
            takes_http_servers: can["mcpCapabilities"]["http"] == true,
            continues: can["loadSession"] == true || !can["sessionCapabilities"]["resume"].is_null(),
            modes: first(names(&session.opened["modes"]["availableModes"], "id"), of_option("mode")),
            models: first(names(&session.opened["models"]["availableModels"], "modelId"), of_option("model")),
        })
    }
}

impl AcpHandler for Probing {
    fn update(&mut self, _update: SessionNotification) -> Result<(), DriverError> {
        Ok(())
    }

    fn unknown_update(&mut self, _update: &Value) -> Result<(), DriverError> {
        Ok(())
    }

    fn permit(
        &mut self,
        _request: RequestPermissionRequest,
    ) -> Result<RequestPermissionResponse, DriverError> {
        Ok(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled))
    }

    fn tick(&mut self) -> Result<WaitVerdict, DriverError> {
        self.is_listed |= self.records.read_new().contains(&AnswerRecord::Listed);
        Ok(if self.is_listed { WaitVerdict::Leave } else { WaitVerdict::GoOn })
    }
}

/// Whether the failure is that of the agent, in words.
pub(in crate::driven) fn describe_failure(error: DriverError) -> String {
    match error {
        DriverError::Trouble(Trouble { message, .. }) => message,
        DriverError::Deaf(error) => error.to_string(),
    }
}
