//! Translates between the types of the engine and those of providers.

use std::{path::PathBuf, time::Duration};

use cuegate_engine::{
    Answer, AskCommand, AskKind, AskLimit, Fault, FaultClass, Share, Usage, convert_usd_to_micro,
};
use cuegate_flow::model::{Permission, Tools};
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
        kind: convert_ask_kind(command.kind),
        prompt,
        system,
        schema,
        model,
        session,
        permission: convert_permission(command.boundary.permission),
        tools: match &command.boundary.tools {
            Tools::All => None,
            Tools::Only(tools) => Some(tools.iter().map(ToString::to_string).collect()),
        },
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

/// The journaled totals that a program reported for a whole session.
pub(crate) fn convert_session_totals(totals: Usage) -> provider::Usage {
    provider::Usage {
        input_tokens: totals.input_tokens,
        cached_input_tokens: totals.cached_input_tokens,
        output_tokens: totals.output_tokens,
        cost_usd: totals.cost_usd,
    }
}

fn convert_ask_kind(kind: AskKind) -> provider::Kind {
    match kind {
        AskKind::Work => provider::Kind::Work,
        AskKind::Report => provider::Kind::Report,
        AskKind::Judge => provider::Kind::Judge,
        AskKind::Check => provider::Kind::Check,
        AskKind::Repair => provider::Kind::Repair,
        AskKind::Remedy => provider::Kind::Remedy,
    }
}

fn convert_permission(permission: Permission) -> provider::Permission {
    match permission {
        Permission::Plan => provider::Permission::Plan,
        Permission::Default => provider::Permission::Default,
        Permission::AcceptEdits => provider::Permission::AcceptEdits,
        Permission::BypassPermissions => provider::Permission::BypassPermissions,
    }
}

pub(crate) fn convert_usage(usage: provider::Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        // A cost that cannot be is not known. All costs are whole millionths, as in the budget, so that sums agree.
        cost_usd: usage
            .cost_usd
            .filter(|cost| (0.0..=1e9).contains(cost))
            .and_then(convert_usd_to_micro)
            .map(|micro| micro as f64 / 1e6),
    }
}

pub(crate) fn convert_answer(answer: provider::Answer, provider: &str) -> Answer {
    Answer {
        output: answer.output,
        text: answer.text,
        usage: convert_usage(answer.usage),
        provider: provider.to_owned(),
        model: answer.model,
        session: answer.session,
        totals: answer.totals.map(convert_usage),
        receipt: answer.receipt,
        blocked: answer.blocked,
        asks_person: answer.asks_person,
        ..Answer::default()
    }
}

pub(crate) fn convert_fault(fault: provider::Fault) -> Fault {
    Fault {
        class: convert_fault_class(fault.class),
        message: fault.message,
        resets_in_ms: fault.resets_in_ms,
        usage_unknown: fault.usage_unknown,
        continued: false,
        usage: convert_usage(fault.usage),
        receipt: fault.receipt,
        tools: Default::default(),
        limit: fault.limit.map(|limit| match limit {
            provider::AskLimit::Usd => AskLimit::Usd,
            provider::AskLimit::Tokens => AskLimit::Tokens,
        }),
    }
}

fn convert_fault_class(class: provider::FaultClass) -> FaultClass {
    match class {
        provider::FaultClass::RateLimited => FaultClass::RateLimited,
        provider::FaultClass::Overloaded => FaultClass::Overloaded,
        provider::FaultClass::Network => FaultClass::Network,
        provider::FaultClass::Auth => FaultClass::Auth,
        provider::FaultClass::Refused => FaultClass::Refused,
        provider::FaultClass::ContextOverflow => FaultClass::ContextOverflow,
        provider::FaultClass::SessionLost => FaultClass::SessionLost,
        provider::FaultClass::Crashed => FaultClass::Crashed,
        provider::FaultClass::Timeout => FaultClass::Timeout,
        provider::FaultClass::Malformed => FaultClass::Malformed,
        provider::FaultClass::UnknownModel => FaultClass::UnknownModel,
        provider::FaultClass::MissingProgram => FaultClass::MissingProgram,
        provider::FaultClass::ScriptExhausted => FaultClass::ScriptExhausted,
        provider::FaultClass::Violation => FaultClass::Violation,
        provider::FaultClass::OverCap => FaultClass::OverCap,
    }
}
