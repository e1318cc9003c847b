//! Shows programs in a sandbox the git folder of the agents in place of that of the user.

use std::path::{Path, PathBuf};

use super::mounts::{Mount, MountTable};
use super::spec::{Sandbox, SandboxLevel, SandboxSpec, TreeAccess};
use crate::{
    error,
    error::Error,
    state_dir::StateDir,
    worktree::{AgentGit, GitFolderReach, Trees},
};

impl Sandbox {
    /// A git folder for commands before a run, which goes with the returned guard.
    pub(super) fn scratch_git(
        &self,
        home: &StateDir,
        work: &Path,
    ) -> Result<Option<(AgentGit, tempfile::TempDir)>, Error> {
        let (SandboxLevel::Full(_), Some(trees)) = (&self.level, Trees::open(work, &home.trees())?) else {
            return Ok(None);
        };
        let folder = tempfile::Builder::new().prefix("cuegate-git-").tempdir();
        let folder = folder.map_err(error::io_error_at("create a folder in", &std::env::temp_dir()))?;
        let mut git = AgentGit::new(&trees, &folder.path().join("git"), GitFolderReach::Mounted);
        git.begin()?;
        Ok(Some((git, folder)))
    }
}

impl SandboxSpec<'_> {
    /// Shows the git folder of the agents.
    pub(super) fn put_git(&self, work: &Path, layout: &mut MountTable) {
        let Some(git) = self.git else { return };
        let writable = self.tree_access() == TreeAccess::All;
        let show = |from: PathBuf| if writable { Mount::WriteFrom(from) } else { Mount::ReadFrom(from) };
        match git.reach() {
            GitFolderReach::Mounted => {
                for path in git.sealed_links().into_iter().filter(|_| writable) {
                    put_fixed(work, &path, Mount::Read, layout);
                }
                for mounts in git.mounts() {
                    // Mounts of their own, so that what locates objects cannot be moved away.
                    for name in ["", "objects", "objects/info"] {
                        let (over, from) = match name {
                            "" => (mounts.over.clone(), mounts.from.clone()),
                            name => (mounts.over.join(name), mounts.from.join(name)),
                        };
                        layout.put(over, show(from));
                    }
                    let alternates = "objects/info/alternates";
                    layout.put(mounts.over.join(alternates), Mount::ReadFrom(mounts.from.join(alternates)));
                    for (inside, outside) in mounts.borrowed() {
                        layout.put(inside, Mount::ReadFrom(outside));
                    }
                }
            }
            GitFolderReach::Named => {
                layout.put(git.common(), Mount::Read);
                // It may hold logins.
                for settings in [git.common().join("config"), git.git_dir().join("config.worktree")] {
                    if settings.is_file() {
                        layout.put(settings, Mount::Nothing);
                    }
                }
                layout.put(git.folder(), if writable { Mount::Write } else { Mount::Read });
            }
        }
        let dot = work.join(".git");
        if dot.is_file() {
            layout.put(dot, Mount::Read);
        }
    }
}

/// Mounts a path of the working tree, and the folders above it, so that none of them can be moved away.
fn put_fixed(work: &Path, path: &Path, mount: Mount, layout: &mut MountTable) {
    let Ok(below) = path.strip_prefix(work) else { return };
    let is_real = std::fs::canonicalize(path).is_ok_and(|real| real == path);
    if !is_real {
        return;
    }
    for above in below.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        layout.put(work.join(above), Mount::Write);
    }
    layout.put(path, mount);
}
