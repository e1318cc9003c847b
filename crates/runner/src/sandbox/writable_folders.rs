//! The folders outside of the system that the programs of a sandbox write, and may have put links in.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    hidden_paths,
    spec::{ProcessKind, SandboxSpec},
};

impl SandboxSpec<'_> {
    /// The folders in which agents may make links.
    pub(super) fn writable_folders(&self, work: &Path) -> Vec<PathBuf> {
        let home = hidden_paths::resolve_home();
        let located = |path: &str| hidden_paths::resolve_path(path, work, self.root, home.as_deref());
        let caches = self.sandbox.options.caches.iter().filter_map(|path| located(path));
        let named = self.sandbox.policy.writable.iter().filter_map(|path| located(path));
        let mut folders = vec![work.to_owned()];
        folders.extend(caches.chain(named).filter_map(|path| fs::canonicalize(path).ok()));
        folders.retain(|folder| folder.is_dir());
        if let ProcessKind::Agent { needs, .. } = &self.kind {
            folders.extend(needs.state.iter().filter_map(|path| fs::canonicalize(path).ok()));
        }
        folders
    }

    /// The state paths of an agent's program. Creates missing folders, as the program would without the sandbox.
    pub(super) fn agent_state(&self) -> Vec<PathBuf> {
        let ProcessKind::Agent { needs, .. } = &self.kind else { return Vec::new() };
        for path in needs.state.iter().filter(|path| !path.exists() && path.extension().is_none()) {
            let _ = fs::create_dir_all(path);
        }
        needs.state.iter().filter_map(|path| fs::canonicalize(path).ok()).collect()
    }
}
