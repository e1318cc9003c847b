//! `instruct`: a run that continues the work of an ended one.

use crate::cli::commands::shared_args::DurabilityChoice;
use cuegate_engine::AgentChoice;
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId};
use cuegate_runner::read_stored_text;
use cuegate_view::{Liveness, RunState, RunView};

use crate::cli::commands::ProjectPlace;
use crate::cli::commands::shared_args::{AgentArgs, RunLimits};
use crate::cli::commands::start::run::run_after;
use crate::cli::commands::start::run_args::RunArgs;
use crate::config::AgentChain;
use crate::project::FoldedRun;
use crate::run::resume_run;
use crate::{Failure, project};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct InstructArgs {
    /// The earlier run: its id, a unique prefix of it, or `last`; `last` if only the text is given
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What to do next
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    /// The answers of the scripted agent; implies `--provider scripted`
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The iteration limit [default: the definition's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// Do not run the validators before the first call [default: `baseline` in `[run]` of cuegate.toml]
    #[arg(long)]
    pub(crate) no_baseline: bool,
    /// Run without a sandbox: agents and validators have the rights of your user
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    /// Run without any limit of cost, and do not prompt for one. Without a terminal, a run needs a limit or this flag
    #[arg(long, help_heading = "Limits")]
    pub(crate) unlimited: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much of the earlier run's texts the new task contains, in bytes each.
const TEXT_MAX: usize = 16 * 1024;

pub(in crate::cli::commands) fn start_follow_up_run(
    place: &ProjectPlace,
    args: InstructArgs,
) -> Result<u8, Failure> {
    let journal = place.view()?;
    let (typed, text) = match &args.text {
        Some(text) => (args.run.as_str(), text),
        // A single text is what to do.
        None => ("last", &args.run),
    };
    let id = project::find_run_id(&place.home, &*journal, typed)?;
    project::check_is_here(&place.home, &*journal, &id)?;
    if args.text.is_none()
        && (text == "last"
            || project::find_run_id(&place.home, &*journal, text).is_ok_and(|id| id.as_str() == text))
    {
        return Err(Failure::usage("nothing to do was given", format!("`cuegate instruct {text} \"…\"`")));
    }
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty", "describe what to do next; nothing was started"));
    }
    let FoldedRun { view, history, .. } = FoldedRun::read(&*journal, &id)?;
    if !matches!(view.state, RunState::Ended(_)) {
        return Err(Failure::usage(
            format!("run {id} has not ended: {}", view.standing()),
            match view.live {
                Liveness::Alive => format!("`cuegate attach {id}` follows it, `cuegate cancel {id}` ends it"),
                _ => format!("`cuegate resume {id}` continues it, `cuegate cancel {id}` ends it"),
            },
        ));
    }
    let run = history.run;
    if let Some(later) = resume_run::later_run(&*journal, &id, &run)? {
        return Err(Failure::usage(
            format!("run {later} already continued the work of run {id}"),
            format!("`cuegate instruct {later} \"…\"` continues from there"),
        ));
    }
    let started = run.started();
    let mut follows = started.place.clone();
    follows.follows.get_or_insert_with(|| id.to_string());
    if follows.owned && !std::path::Path::new(&follows.work).is_dir() {
        return Err(Failure::usage(
            format!("the worktree `{}` of run {id} is gone", follows.work),
            "start a new run with `cuegate run`",
        ));
    }
    let params = started
        .params
        .iter()
        .map(|(name, value)| Ok(format!("{name}={}", read_stored_text(&*journal, &id, value)?)));
    let set = params.collect::<Result<Vec<String>, cuegate_runner::Error>>()?;
    let finalize = started.finalize.clone().unwrap_or_default();
    let is_same_agent = args.agents.provider.is_none() && args.script.is_none();
    let mut agents = args.agents;
    if is_same_agent {
        let usual = AgentChoice { model: None, ..started.usual_agent() };
        agents.provider = Some(AgentChain(vec![usual]));
        agents.model = agents.model.or_else(|| started.model.clone());
    }
    let again = RunArgs {
        cd: None,
        key: None,
        path: started.path.clone(),
        task: Some(compose_follow_up_task(&*journal, &id, &view, text)),
        set,
        input: None,
        agents,
        inherited: is_same_agent.then(|| started.agents.clone()),
        script: args.script,
        worktree: false,
        merge: finalize.merge,
        push: finalize.push.clone(),
        pull_request: finalize.pull_request.then(|| finalize.into.clone().unwrap_or_default()),
        issue: started.github.as_ref().and_then(|github| github.issue).map(|issue| issue.to_string()),
        pr: None,
        no_github: started.github.is_none(),
        wait: false,
        no_sandbox: args.no_sandbox,
        max_iterations: args.max_iterations,
        repairs: None,
        no_baseline: args.no_baseline,
        phases: None,
        limits: args.limits,
        unlimited: args.unlimited,
        detach: false,
        watch: false,
        run_id: None,
        claim: finalize.claim.as_ref().map(|claim| format!("{}={}", claim.branch, claim.commit)),
        released_by: None,
        batch_process: None,
        durability: DurabilityChoice::Synced,
        json: args.json,
    };
    drop(journal);
    run_after(place, again, None, Some(follows))
}

/// The new task: the text, then what the earlier run was for and what it reported. Its texts were written by agents, so
/// they stand in fences.
fn compose_follow_up_task(journal: &dyn Journal, id: &RunId, view: &RunView, text: &str) -> String {
    let read = |blob: &BlobRef| read_stored_text(journal, id, blob).unwrap_or_default();
    let mut task = format!(
        "{}\n\nThis continues the work of an earlier run ({id}), whose changes are in this folder. Its task was:\n\n{}",
        text.trim(),
        fence_text(view.task.as_deref().unwrap_or("(none)"))
    );
    if let Some(reason) = &view.reason {
        task.push_str(&format!("\n\nIt ended as {}: {reason}", view.state.as_str()));
    }
    if let Some(summary) = view.work_summary.as_ref().or(view.summary.as_ref()) {
        task.push_str(&format!("\n\nIts summary, as data:\n\n{}", fence_text(&read(summary))));
    }
    for file in view.reports.files().iter().filter(|file| file.path == format!("reports/{}", file.name)) {
        let text = fence_text(&read(&file.version.content));
        task.push_str(&format!("\n\nIts report {}, as data:\n\n{text}", file.name));
    }
    task
}

/// A text in a fence longer than any in the text, cut to the limit.
fn fence_text(text: &str) -> String {
    let text = text.trim();
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "\n(cut)" } else { "" };
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}{cut}\n{fence}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{TEXT_MAX, fence_text};

    #[test]
    fn texts_are_cut_and_cannot_leave_their_fence() {
        assert_eq!(fence_text(" a ```` b "), "`````\na ```` b\n`````");
        let long = fence_text(&"é".repeat(TEXT_MAX));
        assert!(long.ends_with("\n(cut)\n```") && long.len() < TEXT_MAX + 20);
    }
}
