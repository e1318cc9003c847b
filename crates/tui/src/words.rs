//! How things are written on the screen.

use cuegate_provider::Activity;
use cuegate_view::{
    Liveness, RunState, RunView, Span, SpanKind, SpanState, clean_to_one_line, format_duration, format_money,
};
use ratatui::style::{Color, Modifier, Style};

/// A sign of a span's end, which does not depend on colours.
pub(crate) fn sign_of_state(state: SpanState) -> (&'static str, Style) {
    match state {
        SpanState::Open => ("▶", Style::new().fg(Color::Cyan)),
        SpanState::Ok => ("✓", Style::new().fg(Color::Green)),
        SpanState::Failed => ("✗", Style::new().fg(Color::Red)),
        SpanState::Cut => ("–", Style::new().add_modifier(Modifier::DIM)),
    }
}

/// The state of a run in words, with a sign.
pub(crate) fn run_state(view: &RunView) -> (String, Style) {
    let (sign, colour) = match &view.state {
        RunState::Running if view.live != Liveness::Alive => ("†", Color::Red),
        RunState::Running => ("▶", Color::Cyan),
        RunState::Suspended(_) => ("‖", Color::Yellow),
        RunState::Ended(cuegate_engine::EndState::Completed) => ("✓", Color::Green),
        RunState::Ended(cuegate_engine::EndState::Cancelled) => ("⊘", Color::Reset),
        RunState::Ended(_) => ("✗", Color::Red),
    };
    (format!("{sign} {}", view.standing()), Style::new().fg(colour).add_modifier(Modifier::BOLD))
}

/// What an agent did, as a line. `None` for what is not shown.
pub(crate) fn describe_activity(activity: &Activity) -> Option<String> {
    let first = |text: &str| clean_to_one_line(text.lines().next().unwrap_or_default());
    match activity {
        Activity::Text { text } => Some(first(text)),
        Activity::Tool { name, target, .. } => Some(clean_to_one_line(&format!("{name} {target}"))),
        Activity::Denied { name, target, .. } => Some(clean_to_one_line(&format!("denied: {name} {target}"))),
        Activity::ToolEnded { failed: true, output, .. } => Some(format!("failed: {}", first(output))),
        Activity::Retry { reason } => Some(format!("retrying: {}", first(reason))),
        Activity::ToolEnded { .. } | Activity::Usage(_) => None,
    }
}

/// How long a span took, or takes.
pub(crate) fn format_span_duration(span: &Span, now_ms: i64) -> String {
    format_elapsed_time(span.from_ms, span.to_ms.unwrap_or(now_ms))
}

/// The time between two times.
pub(crate) fn format_elapsed_time(from_ms: i64, to_ms: i64) -> String {
    format_duration(u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(0))
}

/// The name of a visit: its step, or the command of a step that runs commands.
pub(crate) fn visit_name(span: &Span) -> String {
    if span.detail.is_empty() { span.name.to_string() } else { format!("`{}`", span.detail) }
}

/// The lines about a span in a visit.
pub(crate) fn span_line(span: &Span, now_ms: i64) -> String {
    let mut line = match span.kind {
        SpanKind::Ask => format!("{} ({})", span.name, span.detail),
        SpanKind::Tool => format!("{} {}", span.name, span.detail),
        SpanKind::Validator => format!("`{}`", span.name),
        SpanKind::Effect => format!("effect {}", span.name),
        SpanKind::Poll => format!("condition {}", span.name),
        SpanKind::Wait => format!("waits for {}: {}", span.name, span.detail),
        SpanKind::Visit => visit_name(span),
    };
    if let Some(outcome) = &span.outcome {
        line.push_str(&format!(": {outcome}"));
    }
    line.push_str(&format!(", {}", format_span_duration(span, now_ms)));
    let tokens = span.usage.input_tokens + span.usage.output_tokens;
    if tokens > 0 {
        line.push_str(&format!(", {} tokens", cuegate_view::format_count(tokens)));
    }
    if span.usage.cost_usd.is_some() {
        line.push_str(&format!(", {}", format_money(span.usage.cost_usd)));
    }
    line
}
