//! The files of a run in a journal that other machines share, so that one of them can go on with it.

use std::ops::ControlFlow;

use cuegate_engine::{StatePack, TreeState, list_tree_states};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId};

use crate::{
    error::Error,
    worktree::{NamedState, Trees},
};

/// The largest pack, in bytes. Each is one value of a row in the database.
const BYTES_MAX: u64 = 64 << 20;

/// Packs each state of the working tree of a run that its records name.
#[derive(Debug, Clone)]
pub struct StatePacker {
    trees: Trees,
    /// The state that the run began with.
    start: TreeState,
    /// The last state that is in the journal.
    last: Option<TreeState>,
    bytes_max: u64,
}

/// The names of the objects of a state.
pub fn name_state(state: &TreeState) -> NamedState<'_> {
    NamedState { tree: &state.tree, head: state.head.as_deref(), git: state.git.as_deref() }
}

impl StatePacker {
    /// For a run that began with `start`. `last` is its state now.
    pub fn new(trees: Trees, start: TreeState, last: Option<&TreeState>) -> StatePacker {
        let is_kept = |state: &&TreeState| matches!(state.pack.as_deref(), Some(StatePack::Kept { .. }));
        StatePacker { trees, start, last: last.filter(is_kept).cloned(), bytes_max: BYTES_MAX }
    }

    /// The same with another limit of the size of a pack, in bytes.
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: u64) -> StatePacker {
        StatePacker { bytes_max, ..self }
    }

    /// Notes in `state` what it can be made from. Returns the packs that its record is stored with.
    ///
    /// # Errors
    /// When git fails.
    pub fn pack(&mut self, state: &mut TreeState) -> Result<Vec<Vec<u8>>, Error> {
        if let Some(last) = &self.last
            && name_state(last) == name_state(state)
        {
            state.pack.clone_from(&last.pack);
            return Ok(Vec::new());
        }
        let from = self.last.as_ref().map(name_state);
        let packed =
            self.trees.pack_state(name_state(&self.start), from, name_state(state), self.bytes_max)?;
        let packed = match packed {
            Ok(packed) => packed,
            Err(bytes) => {
                state.pack = Some(Box::new(StatePack::TooLarge { bytes }));
                return Ok(Vec::new());
            }
        };
        let commits = packed.commits.as_deref().map(BlobRef::for_bytes);
        let pack = StatePack::Kept { files: BlobRef::for_bytes(&packed.files), commits };
        state.pack = Some(Box::new(pack));
        self.last = Some(state.clone());
        Ok(std::iter::once(packed.files).chain(packed.commits).collect())
    }
}

/// Why the files of a run cannot be made here.
#[derive(Debug, thiserror::Error)]
pub enum MissingState {
    /// The repository lacks the commit that the run started from.
    #[error("the commit {commit} that the run started from is not in this repository")]
    NoCommit { commit: String },
    /// They were too large.
    #[error("the files of record {record} take {} MB, and the journal keeps at most {} MB of a record", bytes >> 20, BYTES_MAX >> 20)]
    TooLarge {
        /// The record that names them.
        record: u64,
        bytes: u64,
    },
    /// Nobody kept them.
    #[error("the files of record {record} are not in the journal")]
    NotKept {
        /// The record that names them.
        record: u64,
    },
    /// The journal or git failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Makes every state of the working tree of a run known to `trees`, as far as a machine that never saw the run can.
///
/// # Errors
/// When a part of the last state is missing.
pub fn restore_packs(
    journal: &dyn Journal,
    run: &RunId,
    trees: &Trees,
    start: &TreeState,
) -> Result<(), MissingState> {
    if let Some(commit) = &start.head
        && !trees.has_commit(commit).map_err(Error::from)?
    {
        return Err(MissingState::NoCommit { commit: commit.clone() });
    }
    let (mut packs, mut missing, mut unreadable) = (Vec::<StatePack>::new(), None, None);
    journal
        .read_each(run, 0, &mut |row| match list_tree_states(&row.body) {
            Ok(states) => {
                for state in states {
                    missing = match state.pack.map(|pack| *pack) {
                        Some(StatePack::TooLarge { bytes }) => {
                            Some(MissingState::TooLarge { record: row.seq, bytes })
                        }
                        Some(kept) => {
                            if !packs.contains(&kept) {
                                packs.push(kept);
                            }
                            None
                        }
                        None => Some(MissingState::NotKept { record: row.seq }),
                    };
                }
                ControlFlow::Continue(())
            }
            Err(source) => {
                unreadable = Some(Error::Record { run: run.to_string(), seq: row.seq, source });
                ControlFlow::Break(())
            }
        })
        .map_err(Error::from)?;
    if let Some(unreadable) = unreadable {
        return Err(unreadable.into());
    }
    if let Some(missing) = missing {
        return Err(missing);
    }
    let read = |blob: &BlobRef| -> Result<Vec<u8>, MissingState> {
        let digest = blob.digest.parse().map_err(|_| Error::Blob { digest: blob.digest.clone() })?;
        let bytes = journal.blob(run, &digest).map_err(Error::from)?;
        Ok(bytes.ok_or_else(|| Error::Blob { digest: blob.digest.clone() })?)
    };
    for pack in packs {
        let StatePack::Kept { files, commits } = pack else { continue };
        if let Some(commits) = commits {
            trees.unpack_commits(&read(&commits)?).map_err(Error::from)?;
        }
        trees.unpack_files(&read(&files)?).map_err(Error::from)?;
    }
    Ok(())
}
