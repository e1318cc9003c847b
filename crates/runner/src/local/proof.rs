//! Proves the work of a run once more: its gates run on a tree that has more, or less, than what they have seen.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{fs, io::ErrorKind, path::Path};

use cuegate_engine::{EffectCommand, ExecCommand};
use cuegate_journal::RunId;
use tokio::sync::watch;

use super::{LocalExecutor, exit_of_finished, run_blocking, text_of};
use crate::{
    error::{Error, io_error_at},
    process::FinishedCommand,
    state_dir::StateDir,
    worktree::{Trees, WorktreeError, finalize::Outcome},
};

/// The file that says that a proof began.
const PROVING: &str = "proving";
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
        let folder = self.setting.home.command(&self.setting.run, command.effect.id);
        let (note, before) = (folder.join(PROVING), end.tree.clone());
        let shown = (trees.clone(), note.clone(), before.clone());
        let is_changed = run_blocking(move || {
            let (trees, note, before) = shown;
            // A killed try may have left its files.
            undo_proof(&trees, &note)?;
            Ok(trees.set_aside()? != before)
        });
        if is_changed.await? {
            let why = "files in the worktree changed since the last step; `cuegate retry` looks at them";
            return Ok(Err(why.to_owned()));
        }
        // A gate that was meant to pass once, and to fail on the work, says nothing of it.
        let (mut gates, mut failing) = (Vec::new(), Vec::new());
        for (index, gate) in command.gates.iter().enumerate().filter(|_| work != tree) {
            let Some(finished) = self.run_command(gate, &folder.join(format!("own-{index}")), cut).await?
            else {
                return Err(WorktreeError::Stopped.into());
            };
            match describe_failure(gate, &finished) {
                None => gates.push(gate.clone()),
                Some(_) => failing.push(gate.clone()),
            }
        }
        let is_deciding = |gate: &ExecCommand| command.deciding.contains(&gate.validator.command);
        // Files changed after this one passed, so it was not meant to pass once.
        if let Some(gate) = failing.iter().find(|gate| is_deciding(gate)) {
            return Ok(Err(format!(
                "the gate {} fails on the work itself",
                list_gates(std::slice::from_ref(gate))
            )));
        }
        if work == tree {
            let asked = command.gates.iter().filter(|gate| command.deciding.is_empty() || is_deciding(gate));
            gates.extend(asked.cloned());
        }
        // Something is wrong here, or with the gates: nothing is published on their word.
        if gates.is_empty() {
            return Ok(Err(format!("no gate passes on the work itself any more: {}", list_gates(&failing))));
        }
        let shown = (trees.clone(), note.clone());
        let kept = run_blocking(move || {
            let (trees, note) = shown;
            // What gates wrote.
            trees.restore(&before)?;
            show_tree(&trees, &before, (&work, &tree), &note)
        });
        if let Some(why) = kept.await? {
            return Ok(Err(why));
        }
        let failure = self.run_gates(&gates, &folder, unproved, cut).await;
        run_blocking(move || {
            trees.restore(&end.tree)?;
            fs::remove_file(&note).map_err(io_error_at("remove", &note))
        })
        .await?;
        Ok(match failure? {
            Some(why) => Err(why),
            None if failing.is_empty() => Ok(format!("; its gates pass so: {}", list_gates(&gates))),
            None => Ok(format!(
                "; its gates pass so: {}, without those that fail on the work itself: {}",
                list_gates(&gates),
                list_gates(&failing)
            )),
        })
    }

    /// Which gate fails, and how.
    async fn run_gates(
        &self,
        gates: &[ExecCommand],
        folder: &Path,
        unproved: &UnprovedTree,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Option<String>, Error> {
        for (index, gate) in gates.iter().enumerate() {
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

/// Puts back the files of a worktree in which a proof was cut off; `note` says that it began, and with which snapshot. What
/// else is there is kept.
///
/// # Errors
/// When git fails, or the note cannot be read or removed.
fn undo_proof(trees: &Trees, note: &Path) -> Result<Option<String>, Error> {
    let text = match fs::read_to_string(note) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(io_error_at("read", note))?,
    };
    let Some((before, shown)) = text.trim_end().split_once(' ') else { return Ok(None) };
    let is = trees.set_aside()?;
    let mut aside = None;
    if is != before {
        if is != shown {
            aside = Some(trees.keep_aside(&is)?);
        }
        trees.restore(before)?;
    }
    fs::remove_file(note).map_err(io_error_at("remove", note))?;
    Ok(aside)
}

/// Puts back the files of the worktree of a run in which a proof was cut off. Returns the references that keep what else was
/// there.
///
/// # Errors
/// When git fails, or a note cannot be read or removed.
pub fn undo_proofs(trees: &Trees, home: &StateDir, run: &RunId) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(home.run(run).join("commands")).into_iter().flatten().flatten() {
        kept.extend(undo_proof(trees, &entry.path().join(PROVING))?);
    }
    Ok(kept)
}

/// Lets the working tree, which is at the snapshot `before`, have what differs between two trees of commits as well. Returns
/// why that cannot be; `note` says that it began.
fn show_tree(
    trees: &Trees,
    before: &str,
    (from, to): (&str, &str),
    note: &Path,
) -> Result<Option<String>, Error> {
    let wanted = trees.with_difference(before, from, to)?;
    if let Some(path) = trees.find_in_the_way(before, &wanted)? {
        return Ok(Some(format!(
            "`{path}` of the other side is in the worktree, where git ignores it, so the gates cannot run on both"
        )));
    }
    if let Some(folder) = note.parent() {
        fs::create_dir_all(folder).map_err(io_error_at("create", folder))?;
    }
    fs::write(note, format!("{before} {wanted}\n")).map_err(io_error_at("write", note))?;
    trees.restore(&wanted)?;
    Ok(None)
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
