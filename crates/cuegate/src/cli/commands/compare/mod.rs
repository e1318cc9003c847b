//! `compare`: what changed in the workflows between two revisions, as their users feel it.

mod difference;
mod facts;
mod recorded_runs;
mod render;
mod revision;
mod settings;

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use cuegate_runner::StateDir;
use cuegate_view::clean_to_one_line;

use super::ProjectPlace;
use crate::cli::print;
use crate::config::{Config, Usd, load_reviewed_config};
use crate::github::{GithubConnection, connect_queue};
use crate::{Failure, exit};
use difference::{Change, WorkflowDifference, compare_workflows};
use facts::{collect_workflows, have_other_plans};
use recorded_runs::{ReplayedRuns, replay_recorded_runs};
use render::{render_json, render_markdown, render_text};
use revision::ComparedSide;
use settings::{compare_settings, compare_takt_files};

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
    /// Also write it into one comment of this pull request on GitHub; later calls edit it
    #[arg(long, value_name = "NUMBER")]
    pub(crate) comment: Option<u64>,
    /// Print Markdown, for a comment
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The first line of the comment, by which it is found again.
const COMMENT_MARKER: &str = "<!-- cuegate compare -->";

/// Everything that differs.
struct Comparison {
    base: String,
    head: String,
    workflows: Vec<WorkflowDifference>,
    settings: Vec<Change>,
    /// What the recorded runs of the changed workflows would do.
    replayed: Vec<ReplayedRuns>,
    /// What the policy does not allow.
    refused: Vec<String>,
}

impl Comparison {
    /// Whether nothing differs.
    fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.workflows.iter().all(|workflow| workflow.fate == difference::Fate::Same)
    }

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
    let base = ComparedSide::open(root, &place.here, &args.base, false)?;
    let head = match &args.head {
        Some(head) => ComparedSide::open(root, &place.here, head, true)?,
        None => ComparedSide::working_tree(root),
    };
    // Workflows are found from the current folder up.
    let below = place.here.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
    let place_of_side = |side: &ComparedSide| ProjectPlace {
        here: side.folder.join(&below),
        home: StateDir::new(&side.folder),
        builtins: place.builtins.clone(),
    };
    let read = |side: &ComparedSide| {
        let place = place_of_side(side);
        let config = load_reviewed_config(&side.folder).map_err(|failure| Failure {
            message: format!("{}: {}", side.name, side.hide_folder(&failure.message)),
            ..failure
        })?;
        Ok::<_, Failure>((collect_workflows(&place, root, &config)?, config))
    };
    let (before, old) = match read(&base) {
        Ok(read) => read,
        // A change that repairs the settings must be able to pass: all of it is new then.
        Err(failure) => {
            print::print_important(&format!("note: nothing of the base counts: {}", failure.message));
            (BTreeMap::new(), Config::default())
        }
    };
    let (after, new) = read(&head)?;
    let mut comparison = Comparison {
        base: base.name.clone(),
        head: head.name.clone(),
        workflows: compare_workflows(&before, &after),
        settings: compare_settings(&old, &new),
        replayed: Vec::new(),
        refused: Vec::new(),
    };
    let is_explained = have_other_plans(&before, &after);
    comparison.settings.extend(compare_takt_files(&base.folder, &head.folder, is_explained)?);
    comparison.replayed = replay_recorded_runs(place, &place_of_side(&head), &new, &comparison.workflows)?;
    comparison.refused = apply_policy(&comparison, args);
    if args.json {
        print::print_json(&render_json(&comparison));
    } else if args.markdown {
        print::print_data(&render_markdown(&comparison));
    } else {
        print::print_data(&render_text(&comparison));
    }
    if let Some(number) = args.comment {
        // Of the side that was reviewed: a change must not choose where the token is sent.
        write_comment(&comparison, root, &old, number)?;
    }
    if comparison.refused.is_empty() {
        return Ok(exit::DONE);
    }
    comparison
        .refused
        .iter()
        .for_each(|why| print::print_important(&format!("refused: {}", clean_to_one_line(why))));
    Ok(exit::BAD_END)
}

/// Writes a comparison into the comment of a pull request. Where nothing changed and there is none, none is written.
fn write_comment(comparison: &Comparison, root: &Path, config: &Config, number: u64) -> Result<(), Failure> {
    let without = "without `--comment` it is only printed";
    let why = "the comparison goes into a comment";
    let GithubConnection { client, .. } = connect_queue(root, config, "origin", why, without)?;
    let text = render_markdown(comparison);
    let is_worth_it = !comparison.is_empty() || !comparison.refused.is_empty();
    let written =
        client.write_marked_comment(number, COMMENT_MARKER, &text, is_worth_it).map_err(|error| Failure {
            hint: Some(format!("the token needs the right to write pull requests; {without}")),
            ..Failure::environment(format!("cannot comment on #{number} of {}: {error}", client.repository()))
        })?;
    print::print_line(&match written {
        Some(comment) => format!("comment {}", comment.html_url),
        None => format!("nothing changed, and #{number} has no comment of this: none was written"),
    });
    Ok(())
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
