//! Notices writes to the main checkout by a run that works in its own worktree.
//!
//! A person may work in the main checkout meanwhile, so a change counts as the agent's only if a tool call names it.

use std::{io, path::Path};

use cuegate_engine::{Outside, ToolCall, Tools};

use super::{Local, blocking};
use crate::{
    error::Error,
    worktree::{Snapshot, Trees},
};

impl Local {
    /// The present state of the main checkout; `None` if the run works there itself, or the state cannot be read.
    pub(super) async fn main_checkout(&self) -> Result<Option<Snapshot>, Error> {
        let Some(trees) = self.setting.main.clone() else { return Ok(None) };
        blocking(move || Ok(trees.snapshot().ok())).await
    }

    /// The changes of the main checkout since `before`.
    pub(super) async fn outside(&self, before: Option<Snapshot>, tools: &Tools) -> Result<Outside, Error> {
        let (Some(trees), Some(before)) = (self.setting.main.clone(), before) else {
            return Ok(Outside::default());
        };
        let (work, calls) = (self.setting.work.clone(), tools.calls.clone());
        blocking(move || Ok(changes(&trees, &before, &work, &calls).unwrap_or_default())).await
    }
}

fn changes(trees: &Trees, before: &Snapshot, work: &Path, calls: &[ToolCall]) -> io::Result<Outside> {
    let now = trees.snapshot().map_err(io::Error::other)?;
    let mut outside = Outside::default();
    if now.tree == before.tree {
        return Ok(outside);
    }
    let root = trees.root();
    for change in trees.changes(&before.tree, &now.tree).map_err(io::Error::other)? {
        let path = root.join(&change.path);
        // The worktree itself may be a folder of the main checkout.
        if path.starts_with(work) || work.starts_with(&path) {
            continue;
        }
        let by_agent = calls.iter().any(|call| names(&call.target, &path, root, work));
        let list = if by_agent { &mut outside.by_agent } else { &mut outside.by_others };
        list.push(path.display().to_string());
    }
    Ok(outside)
}

/// Whether the target of a tool, a path or a command, names a file of the main checkout.
fn names(target: &str, path: &Path, root: &Path, work: &Path) -> bool {
    let target = target.replace(&*work.to_string_lossy(), "");
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let leads_there = target.contains(&*root.to_string_lossy()) || target.contains("../");
    leads_there && target.contains(&*file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_names_a_file_of_the_main_checkout_only_outside_of_the_worktree() {
        let (root, work) = (Path::new("/p"), Path::new("/p/.cuegate/worktrees/r1"));
        let names = |target: &str| names(target, Path::new("/p/src/a.txt"), root, work);
        assert!(names("/p/src/a.txt"));
        assert!(names("cd /p && echo x > src/a.txt"));
        assert!(names("echo x > ../../../src/a.txt"));
        assert!(!names("/p/.cuegate/worktrees/r1/src/a.txt"));
        assert!(!names("cat /p/README.md"));
        assert!(!names("echo x > src/a.txt"));
    }
}
