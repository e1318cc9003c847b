//! Reads a composed workflow: what its keys say, in the spelling of any generation, and what is wrong with them.

mod agent;
mod companions;
mod completion;
mod facet_text;
mod gates;
mod monitors;
mod permission;
mod report_names;
mod reports;
mod sections;
mod selection;
mod step;
mod structured_output;
mod system_step;
mod team;
mod tool_servers;
mod workflow;

pub(super) use self::agent::{AgentSettings, KeyedText, StructuredOutput};
pub(super) use self::companions::{Companion, Companions};
pub(super) use self::completion::CompletionRetry;
pub(super) use self::gates::GateCommand;
pub(super) use self::monitors::{MonitorDefinition, Stage};
pub(super) use self::report_names::{CaselessNames, FileNames};
pub(super) use self::reports::ReportDefinition;
pub(super) use self::sections::{FacetText, Sections, is_path};
pub(super) use self::selection::{SelectableTexts, Selection};
pub(super) use self::step::{StepAction, StepReader, WorkflowStep};
pub(super) use self::system_step::{EffectSettings, SystemSettings};
pub(super) use self::team::Team;
pub(super) use self::workflow::WorkflowDefinition;
