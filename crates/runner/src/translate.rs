//! Builds requests of providers from commands of the engine, and completions from their answers.

use std::{path::PathBuf, time::Duration};

use cuegate_engine::{Answer, AskCommand, Fault, Share, Usage, convert_usd_to_micro};
use cuegate_flow::model::Tools;
use cuegate_journal::RunId;
use cuegate_provider as provider;

/// What the executor adds to the engine's ask command.
pub(crate) struct RequestDetails {
    pub prompt: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The schema that the provider enforces.
    pub schema: Option<serde_json::Value>,
    /// The session that the provider continues.
    pub session: Option<provider::Session>,
    /// The provider's name of the model.
    pub model: Option<String>,
    /// How much the model thinks.
    pub effort: Option<String>,
    /// The servers whose tools the agent gets.
    pub tool_servers: Vec<provider::McpServer>,
    /// The working folder.
    pub work: PathBuf,
    /// Folders outside the working folder that the agent may read.
    pub readable: Vec<PathBuf>,
    /// A folder for files that the provider's program reads.
    pub scratch: PathBuf,
    /// Whether questions of the agent get an automatic response.
    pub unattended: bool,
    /// The time limit of the ask.
    pub timeout: Duration,
}

pub(crate) fn build_provider_request(
    run: &RunId,
    command: &AskCommand,
    details: RequestDetails,
) -> provider::Request {
    let RequestDetails {
        prompt,
        system,
        schema,
        session,
        model,
        effort,
        tool_servers,
        work,
        readable,
        scratch,
        unattended,
        timeout,
    } = details;
    provider::Request {
        id: format!("{run}/{}", command.id),
        step: command.of.as_ref().unwrap_or(&command.step).to_string(),
        subject: command.subject.as_ref().map(ToString::to_string),
        persona: command.persona.as_ref().map(ToString::to_string),
        persona_names: command.persona_names.iter().map(ToString::to_string).collect(),
        kind: command.kind,
        prompt,
        system,
        schema,
        model,
        effort,
        session,
        permission: command.boundary.permission,
        tools: match &command.boundary.tools {
            Tools::All => None,
            Tools::Only(tools) => Some(tools.iter().map(ToString::to_string).collect()),
        },
        tool_servers,
        work,
        readable,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        cap: cap_of_share(command.share),
        unattended,
        scratch,
    }
}

fn cap_of_share(share: Share) -> provider::Cap {
    provider::Cap { usd: share.usd_micro.map(|micro| micro as f64 / 1e6), tokens: share.tokens }
}

/// A usage whose cost can be counted: one that cannot be is not known, and all costs are whole millionths, as in the budget,
/// so that sums agree.
pub(crate) fn normalize_cost(usage: Usage) -> Usage {
    let counted = usage.cost_usd.filter(|cost| (0.0..=1e9).contains(cost)).and_then(convert_usd_to_micro);
    Usage { cost_usd: counted.map(|micro| micro as f64 / 1e6), ..usage }
}

pub(crate) fn convert_answer(answer: provider::Answer, provider: &str) -> Answer {
    Answer {
        output: answer.output,
        text: answer.text,
        usage: normalize_cost(answer.usage),
        provider: provider.to_owned(),
        model: answer.model,
        handshake: answer.handshake,
        session: answer.session,
        totals: answer.totals.map(normalize_cost),
        receipt: answer.receipt,
        blocked: answer.blocked,
        asks_person: answer.asks_person,
        ..Answer::default()
    }
}

pub(crate) fn convert_fault(fault: provider::Fault) -> Fault {
    Fault {
        class: fault.class,
        message: fault.message,
        resets_in_ms: fault.resets_in_ms,
        usage_unknown: fault.usage_unknown,
        continued: false,
        usage: normalize_cost(fault.usage),
        receipt: fault.receipt,
        tools: Default::default(),
        limit: fault.limit,
    }
}
