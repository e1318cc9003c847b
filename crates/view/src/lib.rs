//! Folds the records of a run into results, logs, timelines and reports, and prints flows and findings.
//!
//! Each view is a pure function of records, a flow or findings, so that one journal always gives the same views. The
//! time, the time zone and the texts stored by digest are arguments.
//!
//! This crate never changes a run, does IO, prints, or reads a clock.
//!
//! ```
//! use cuegate_view::{Liveness, Stamped, run_view};
//!
//! let body = br#"{"v":1,"events":[{"event":"suspended","waiting":{"kind":"quota","detail":"limit"}}]}"#;
//! let record = Stamped::decode(0, 1_795_262_401_000, body).unwrap();
//! let view = run_view("r1", &[record], Liveness::None);
//! assert_eq!((view.state.as_str(), view.exit_code()), ("suspended", Some(3)));
//! ```

mod batch;
mod budget;
mod cost_bound;
mod coverage;
mod failure_lines;
mod findings;
mod format;
mod glance;
mod graph;
mod log;
mod planned_effects;
mod report;
mod review_marks;
mod run_end;
mod run_start;
mod runs;
mod show;
mod spans;
mod stamped;
mod status;
mod summary;
mod text;
mod timeline;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use batch::{TaskRow, batch_json, batch_lines, queue_lines, queue_source};
pub use budget::limits;
pub use cost_bound::{price, price_json};
pub use coverage::{AgentRow, BugRow, CoverKind, Coverage, Covered, Item, Observed, Simulated, end_of};
pub use failure_lines::{failure_lines, output_tail};
pub use findings::{Checked, Group, check_json, github, group, plain, sarif};
pub use format::{ago, clock, count, date_time, duration, moment, money, parse_rfc3339, plural, rfc3339};
pub use graph::{Graph, SVG_STYLE, dot, graph_json, mermaid, svg, svg_without_style};
pub use jiff::tz::TimeZone;
pub use log::{LogOptions, event_json};
pub use planned_effects::{PlannedEffect, planned_effects};
pub use report::{pull_request_text, report};
pub use review_marks::obeyed_by;
pub use run_end::{ending, hints, perhaps_by_user};
pub use run_start::{Beginning, beginning};
pub use runs::{run_row, runs_json, runs_object, runs_table};
pub use show::{Known, prompt_preview, show, show_json};
pub use spans::{PathEdge, Span, SpanKind, SpanState, Spans, SpendPoint};
pub use stamped::{Stamped, Texts, files_of_unknown_origin};
pub use status::{spending, status, target_word};
pub use summary::{
    Acts, Asks, Check, EffectRow, EffectState, FaultRow, GateFile, HandedRow, InspectionRow, LineCount,
    Liveness, Open, Pending, QuestionRow, Row, RunFold, RunState, RunView, ToolRow, ValidatorRow, Ways,
    effect_json, run_view,
};
pub use text::{clean, clean_lines, columns, is_unsafe, pad, safe_json, shorten, shorten_middle};
pub use timeline::{Timeline, timeline};
