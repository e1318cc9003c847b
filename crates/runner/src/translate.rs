//! Between the engine's words and a provider's: two vocabularies, one place.

use std::{path::PathBuf, time::Duration};

use cuegate_engine::{Answer, AskCommand, AskKind, Fault, FaultClass, Share, Usage};
use cuegate_flow::model::{Permission, Tools};
use cuegate_journal::RunId;
use cuegate_provider as provider;

/// What the performer knows of an ask, besides the engine's command.
pub(crate) struct Details {
    /// What the agent is told.
    pub prompt: String,
    /// What it is told before everything else.
    pub system: Option<String>,
    /// What the provider is to hold its answer to.
    pub schema: Option<serde_json::Value>,
    /// The conversation that the provider continues.
    pub session: Option<provider::Session>,
    /// The model, by the provider's name.
    pub model: Option<String>,
    /// The folder it works in.
    pub work: PathBuf,
    /// Folders outside of that one that it may read.
    pub readable: Vec<PathBuf>,
    /// A folder for files that the provider's program reads.
    pub scratch: PathBuf,
    /// Whether nobody answers its questions.
    pub unattended: bool,
    /// After how long it is stopped.
    pub timeout: Duration,
}

/// An ask as a provider takes it.
pub(crate) fn request(run: &RunId, command: &AskCommand, details: Details) -> provider::Request {
    let Details { prompt, system, schema, session, model, work, readable, scratch, unattended, timeout } =
        details;
    provider::Request {
        id: format!("{run}/{}", command.id),
        step: command.of.as_ref().unwrap_or(&command.step).to_string(),
        persona: command.persona.as_ref().map(ToString::to_string),
        persona_names: command.persona_names.iter().map(ToString::to_string).collect(),
        kind: kind(command.kind),
        prompt,
        system,
        schema,
        model,
        session,
        permission: permission(command.boundary.permission),
        tools: match &command.boundary.tools {
            Tools::All => None,
            Tools::Only(tools) => Some(tools.iter().map(ToString::to_string).collect()),
        },
        work,
        readable,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        cap: cap(command.share),
        unattended,
        scratch,
    }
}

fn cap(share: Share) -> provider::Cap {
    provider::Cap { usd: share.usd_micro.map(|micro| micro as f64 / 1e6), tokens: share.tokens }
}

/// What a program reported for a whole conversation, as it was journaled.
pub(crate) fn totals(totals: Usage) -> provider::Usage {
    provider::Usage {
        input_tokens: totals.input_tokens,
        cached_input_tokens: totals.cached_input_tokens,
        output_tokens: totals.output_tokens,
        cost_usd: totals.cost_usd,
    }
}

fn kind(kind: AskKind) -> provider::Kind {
    match kind {
        AskKind::Work => provider::Kind::Work,
        AskKind::Report => provider::Kind::Report,
        AskKind::Judge => provider::Kind::Judge,
        AskKind::Check => provider::Kind::Check,
        AskKind::Repair => provider::Kind::Repair,
        AskKind::Remedy => provider::Kind::Remedy,
    }
}

fn permission(permission: Permission) -> provider::Permission {
    match permission {
        Permission::Plan => provider::Permission::Plan,
        Permission::Default => provider::Permission::Default,
        Permission::AcceptEdits => provider::Permission::AcceptEdits,
        Permission::BypassPermissions => provider::Permission::BypassPermissions,
    }
}

pub(crate) fn usage(usage: provider::Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        cost_usd: usage.cost_usd,
    }
}

/// An answer as the engine takes it.
pub(crate) fn answer(answer: provider::Answer, provider: &str) -> Answer {
    Answer {
        output: answer.output,
        text: answer.text,
        usage: usage(answer.usage),
        provider: provider.to_owned(),
        model: answer.model,
        session: answer.session,
        totals: answer.totals.map(usage),
        receipt: answer.receipt,
        blocked: answer.blocked,
        asks_person: answer.asks_person,
        ..Answer::default()
    }
}

/// A fault as the engine takes it.
pub(crate) fn fault(fault: provider::Fault) -> Fault {
    Fault {
        class: class(fault.class),
        message: fault.message,
        resets_in_ms: fault.resets_in_ms,
        usage_unknown: fault.usage_unknown,
        usage: usage(fault.usage),
        receipt: fault.receipt,
    }
}

fn class(class: provider::FaultClass) -> FaultClass {
    match class {
        provider::FaultClass::RateLimited => FaultClass::RateLimited,
        provider::FaultClass::Overloaded => FaultClass::Overloaded,
        provider::FaultClass::Auth => FaultClass::Auth,
        provider::FaultClass::Refused => FaultClass::Refused,
        provider::FaultClass::ContextOverflow => FaultClass::ContextOverflow,
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
