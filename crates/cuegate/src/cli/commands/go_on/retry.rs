//! `retry`: continues a run that failed or was aborted.

use super::resume::continue_run;

use super::resume::ResumeArgs;
use crate::Failure;
use crate::cli::commands::ProjectPlace;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) again: ResumeArgs,
    /// The step to continue at [default: the last step of the run]
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Option<String>,
    /// A text that is added to the prompt of that step
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
}

/// `retry`: continues a run that failed or was aborted.
pub(in crate::cli::commands) fn retry_run(place: &ProjectPlace, args: RetryArgs) -> Result<u8, Failure> {
    if args.say.as_ref().is_some_and(|say| say.trim().is_empty()) {
        return Err(Failure::usage("the text of `--say` is empty", "describe what the agent should know"));
    }
    continue_run(place, args.again, Some((args.from, args.say)))
}
