//! Folds the records of a run into results, logs, timelines and reports, and prints flows and findings.
//!
//! Each view is a pure function of records, a flow or findings, so that one journal always gives the same views. The
//! time, the time zone and the texts stored by digest are arguments.
//!
//! This crate never changes a run, does IO, prints, or reads a clock.
//!
//! ```
//! use cuegate_view::{Liveness, StampedRecord, run_view};
//!
//! let body = br#"{"v":1,"events":[{"event":"suspended","waiting":{"kind":"quota","detail":"limit"}}]}"#;
//! let record = StampedRecord::decode(0, 1_795_262_401_000, body).unwrap();
//! let view = run_view("r1", &[record], Liveness::None);
//! assert_eq!((view.state.as_str(), view.exit_code()), ("suspended", Some(3)));
//! ```

mod batch;
mod budget;
mod cost_bound;
mod coverage;
mod failure_lines;
mod findings;
mod fork;
mod format;
mod glance;
mod graph;
mod log;
mod names;
mod planned_effects;
mod report;
mod review;
mod run_end;
mod run_start;
mod runs;
mod show;
mod spans;
mod stamped;
mod status;
mod summary;
mod text;
mod why;

mod log_text;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use batch::{
    BatchRow, ReviewFacts, TaskRow, batch_json, batch_lines, batches_json, batches_table, queue_lines,
    queue_source,
};
pub use budget::format_budget_limits;
pub use cost_bound::{price_json, render_cost_bound};
pub use coverage::{
    AgentRow, BugRow, CoverItem, CoverKind, Coverage, CoveredCount, FinishedSimulation, ObservedCounts,
    end_of,
};
pub use failure_lines::{failure_lines, output_tail};
pub use findings::{
    CheckedDefinition, FindingGroup, build_code_quality_report, build_sarif_log, check_json, group_findings,
    render_finding_line, render_github_annotations,
};
pub use fork::{describe_fork, list_unrepeated_effects};
pub use format::{
    date_time, format_count, format_duration, format_future_time, format_money, format_rfc3339,
    format_time_ago, format_time_of_day, parse_rfc3339, plural,
};
pub use graph::{Graph, SVG_STYLE, graph_json, render_dot, render_mermaid, render_svg, svg_without_style};
pub use jiff::tz::TimeZone;
pub use log::{LogOptions, event_json};
pub use log_text::{Timeline, render_timeline};
pub use planned_effects::{PlannedEffect, planned_effects};
pub use report::{pull_request_text, render_report};
pub use review::{PullRequest, list_verdict_lines, obeyed_by};
pub use run_end::{perhaps_by_user, render_run_end, suggest_continue_commands};
pub use run_start::{RunStartFacts, format_fact_line, render_run_start};
pub use runs::{RunRow, runs_json, runs_table, sort_runs};
pub use show::{KnownValues, prompt_preview, render_flow, show_json};
pub use spans::{PathEdge, Span, SpanKind, SpanState, Spans, SpendPoint};
pub use stamped::{StampedRecord, Texts};
pub use status::{describe_spending, render_status, target_word};
pub use summary::{
    ActionRows, AnswerModes, AskCounts, CheckOutcome, EffectRow, EffectState, FaultRow, ForkSource, GateFile,
    HandoffRow, InspectionRow, LineCount, Liveness, OpenVisit, PendingCommand, QuestionRow, RunFold,
    RunState, RunView, ToolRow, ValidatorRow, VisitRow, effect_json, json_of_agents, run_view,
};
pub use text::{
    clean_lines, clean_to_one_line, count_columns, is_unsafe, pad_right, safe_json, shorten_end,
    shorten_middle,
};
pub use why::{Reason, describe_repetition, explain_run, render_why, why_json};
