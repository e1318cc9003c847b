//! Between the engine's words and a provider's: two vocabularies, one place.

use std::{path::PathBuf, time::Duration};

use cuegate_engine::{Answer, AskCommand, AskKind, Fault, FaultClass, SessionUse, Usage};
use cuegate_flow::{Flow, Permission, Tools};
use cuegate_journal::RunId;
use cuegate_provider as provider;

/// An ask as a provider takes it.
#[expect(clippy::too_many_arguments, reason = "one call site; each is a different thing that only it knows")]
pub(crate) fn request(
    run: &RunId,
    flow: &Flow,
    command: &AskCommand,
    prompt: String,
    system: Option<String>,
    session: Option<&SessionUse>,
    model: Option<String>,
    work: PathBuf,
    timeout: Duration,
) -> provider::Request {
    provider::Request {
        id: format!("{run}/{}", command.id),
        step: command.step.to_string(),
        persona: command.persona.as_ref().map(ToString::to_string),
        kind: kind(command.kind),
        prompt,
        system,
        schema: command.schema.map(|schema| flow.schema(schema).value().clone()),
        model: model.or_else(|| command.model.as_ref().map(ToString::to_string)),
        session: session.map(|session| provider::Session {
            id: session.id.clone(),
            fork: session.fork,
            totals: None,
        }),
        permission: permission(command.boundary.permission),
        tools: match &command.boundary.tools {
            Tools::All => None,
            Tools::Only(tools) => Some(tools.iter().map(ToString::to_string).collect()),
        },
        work,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        cap: provider::Cap::default(),
        scratch: PathBuf::new(),
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

fn usage(usage: provider::Usage) -> Usage {
    Usage { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens, cost_usd: usage.cost_usd }
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
