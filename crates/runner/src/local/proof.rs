//! Proves the work of a run once more: its gates run on a tree that has more, or less, than what they have seen.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{fs, path::Path};

use cuegate_engine::{EffectCommand, ExecCommand};
use tokio::sync::watch;

use super::{LocalExecutor, exit_of_finished, run_blocking, text_of};
use crate::{
    error::{Error, io_error_at},
    process::FinishedCommand,
    worktree::{Trees, WorktreeError, finalize::Outcome},
};

/// The most gates that are named.
const NAMED_MAX: usize = 3;
/// The longest line of output that is told, in characters.
const LINE_MAX: usize = 200;

/// A tree that the gates have not seen.
#[derive(Debug, Clone)]
pub(super) struct UnprovedTree {
    /// The tree of the work, and the one that is to be proved.
    pub(super) work: String,
    pub(super) tree: String,
    /// How it differs, in words.
    pub(super) how: String,
}

impl LocalExecutor {
    /// Lets the worktree of the run have a tree, runs the gates of the run there, and puts it back. Returns what to say of
    /// it, or which gate fails.
    ///
    /// # Errors
    /// When git fails, and [`WorktreeError::Stopped`] when the run is stopped meanwhile.
    pub(super) async fn prove(
        &self,
        command: &EffectCommand,
        unproved: &UnprovedTree,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Outcome, Error> {
        let (Some(trees), Some(end)) = (self.setting.trees.clone(), command.tree.clone()) else {
            return Ok(Err("nobody can say what the work of the run is".to_owned()));
        };
        if command.gates.is_empty() {
            return Ok(Ok("; the run has no gate that checks it so".to_owned()));
        }
        let (work, tree) = (unproved.work.clone(), unproved.tree.clone());
        // A killed try may have left its files.
        let note = self.setting.home.command(&self.setting.run, command.effect.id).join("proving");
        let (at, before) = (note.clone(), end.tree.clone());
        let is_ready = run_blocking(move || show_tree(&trees, &before, (&work, &tree), &at)).await?;
        if !is_ready {
            return Ok(Err(
                "files in the worktree changed since the last step; `cuegate retry` looks at them".to_owned(),
            ));
        }
        let failure = self.run_gates(command, unproved, cut).await;
        let trees = self.setting.trees.clone();
        run_blocking(move || {
            if let Some(trees) = trees {
                trees.restore(&end.tree)?;
            }
            fs::remove_file(&note).map_err(io_error_at("remove", &note))
        })
        .await?;
        Ok(match failure? {
            Some(why) => Err(why),
            None => Ok(format!("; its gates pass so: {}", list_gates(&command.gates))),
        })
    }

    /// Which gate fails, and how.
    async fn run_gates(
        &self,
        command: &EffectCommand,
        unproved: &UnprovedTree,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Option<String>, Error> {
        let folder = self.setting.home.command(&self.setting.run, command.effect.id);
        for (index, gate) in command.gates.iter().enumerate() {
            // Its own for each tree: a gate that ended before a crash is not started again.
            let dir = folder.join(format!("gate-{index}-{}", unproved.tree));
            let Some(finished) = self.run_command(gate, &dir, cut).await? else {
                return Err(WorktreeError::Stopped.into());
            };
            if let Some(why) = describe_failure(gate, &finished) {
                let name = &gate.validator.name;
                return Ok(Some(format!("the gate `{name}` fails on the work{}: {why}", unproved.how)));
            }
        }
        Ok(None)
    }
}

/// Lets the working tree, which is at the snapshot `before`, have what differs between two trees of commits as well. Returns
/// whether it was there; `note` says that a former try began.
fn show_tree(trees: &Trees, before: &str, (from, to): (&str, &str), note: &Path) -> Result<bool, Error> {
    let wanted = trees.with_difference(before, from, to)?;
    let is = trees.set_aside()?;
    if is != before && is != wanted && !note.exists() {
        return Ok(false);
    }
    let io_failed = |doing| io_error_at(doing, note);
    if let Some(folder) = note.parent() {
        fs::create_dir_all(folder).map_err(io_failed("create"))?;
    }
    fs::write(note, "").map_err(io_failed("write"))?;
    trees.restore(&wanted)?;
    Ok(true)
}

fn describe_failure(gate: &ExecCommand, finished: &FinishedCommand) -> Option<String> {
    let (stdout, stderr) = (text_of(&finished.stdout), text_of(&finished.stderr));
    let exit = exit_of_finished(finished);
    if gate.validator.success.holds(exit.code(), &stdout, &stderr) {
        return None;
    }
    let last =
        |text: &str| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    let line: String =
        last(&stderr).or_else(|| last(&stdout)).unwrap_or_default().chars().take(LINE_MAX).collect();
    let how = exit.describe(gate.validator.timeout_ms);
    Some(if line.is_empty() { how } else { format!("{how}, {line}") })
}

fn list_gates(gates: &[ExecCommand]) -> String {
    let names: Vec<String> =
        gates.iter().take(NAMED_MAX).map(|gate| format!("`{}`", gate.validator.name)).collect();
    match gates.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
