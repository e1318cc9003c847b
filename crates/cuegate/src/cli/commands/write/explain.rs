//! `explain`: the manual page of a finding.

use cuegate_flow::{checks::Code, diagnostics::find_nearest_name};

use crate::cli::print;
use crate::{Failure, exit};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A finding code, as `check` prints it
    pub(crate) code: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) fn collect_finding_codes() -> Vec<Code> {
    let mut known = cuegate_flow::checks::list_codes().to_vec();
    known.extend(cuegate_formats::list_codes());
    known
}

/// Prints the manual page of a finding.
pub(in crate::cli::commands) fn explain_finding(args: &ExplainArgs) -> Result<u8, Failure> {
    let known = collect_finding_codes();
    if let Some(code) = known.iter().find(|code| code.name == args.code) {
        match args.json {
            true => print::print_json(&serde_json::json!({
                "schema": "cuegate/explain/v1", "code": code.name, "page": code.page,
            })),
            false => print::print_data(code.page),
        }
        return Ok(exit::DONE);
    }
    let mut names: Vec<&str> = known.iter().map(|code| code.name).collect();
    names.sort_unstable();
    let hint = match find_nearest_name(&args.code, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    Err(Failure::usage(format!("there is no finding `{}`", args.code), hint))
}
