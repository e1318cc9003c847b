//! `compare`: what changed in the workflows between two revisions, as their users feel it.

mod difference;
mod facts;
mod render;
mod revision;

use clap::Args;
use cuegate_runner::StateDir;

use super::ProjectPlace;
use crate::cli::print;
use crate::config::{Usd, load_config};
use crate::{Failure, exit};
use difference::{Change, WorkflowDifference, compare_settings, compare_workflows};
use facts::collect_workflows;
use render::{render_json, render_markdown, render_text};
use revision::ComparedSide;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What was before: a revision of this repository, or a folder
    pub(crate) base: String,
    /// What is now: a revision or a folder [default: the working tree]
    pub(crate) head: Option<String>,
    /// Fail if a run can cost more than this, or without a bound
    #[arg(long, value_name = "USD")]
    pub(crate) max_usd: Option<Usd>,
    /// Fail if agents may do more than before
    #[arg(long)]
    pub(crate) no_wider_permissions: bool,
    /// Print Markdown, for a comment
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Everything that differs.
struct Comparison {
    base: String,
    head: String,
    workflows: Vec<WorkflowDifference>,
    settings: Vec<Change>,
    /// What the policy does not allow.
    refused: Vec<String>,
}

impl Comparison {
    fn widens(&self) -> bool {
        let changes = self.workflows.iter().flat_map(|workflow| &workflow.changes);
        changes.chain(&self.settings).any(|change| change.widens)
    }
}

/// Compares all workflows of the project on two sides.
pub(in crate::cli::commands) fn compare_revisions(
    place: &ProjectPlace,
    args: &CompareArgs,
) -> Result<u8, Failure> {
    let root = place.home.root();
    let base = ComparedSide::open(root, &place.here, &args.base)?;
    let head = match &args.head {
        Some(head) => ComparedSide::open(root, &place.here, head)?,
        None => ComparedSide::working_tree(root),
    };
    let read = |side: &ComparedSide| {
        let place = ProjectPlace {
            here: side.folder.clone(),
            home: StateDir::new(&side.folder),
            builtins: place.builtins.clone(),
        };
        let config = load_config(&side.folder).map_err(|failure| Failure {
            message: format!("{}: {}", side.name, failure.message),
            ..failure
        })?;
        Ok::<_, Failure>((collect_workflows(&place, &config)?, config))
    };
    let ((before, old), (after, new)) = (read(&base)?, read(&head)?);
    let mut comparison = Comparison {
        base: base.name.clone(),
        head: head.name.clone(),
        workflows: compare_workflows(&before, &after),
        settings: compare_settings(&old, &new),
        refused: Vec::new(),
    };
    comparison.refused = apply_policy(&comparison, args);
    if args.json {
        print::print_json(&render_json(&comparison));
    } else if args.markdown {
        print::print_data(&render_markdown(&comparison));
    } else {
        print::print_data(&render_text(&comparison));
    }
    if comparison.refused.is_empty() {
        return Ok(exit::DONE);
    }
    comparison.refused.iter().for_each(|why| print::print_important(&format!("refused: {why}")));
    Ok(exit::BAD_END)
}

fn apply_policy(comparison: &Comparison, args: &CompareArgs) -> Vec<String> {
    let mut refused = Vec::new();
    for workflow in comparison.workflows.iter().filter(|workflow| workflow.errors > 0) {
        refused.push(format!("`{}` has errors: see `cuegate check {}`", workflow.name, workflow.name));
    }
    if let Some(most) = args.max_usd {
        for workflow in &comparison.workflows {
            let Some(bound) = workflow.after else { continue };
            match bound.usd_micro {
                Some(usd) if usd <= most.micro => {}
                Some(usd) => refused.push(format!(
                    "a run of `{}` can cost {}, more than {}",
                    workflow.name,
                    render::format_usd(usd),
                    render::format_usd(most.micro)
                )),
                None => refused.push(format!(
                    "the cost of a run of `{}` has no bound: set `usd` or `call_usd` in `[budget]`, or `[prices]`",
                    workflow.name
                )),
            }
        }
    }
    if args.no_wider_permissions && comparison.widens() {
        refused.push("agents may do more than before".to_owned());
    }
    refused
}
