//! Brings the changes between two trees into the files of a working tree.
//!
//! Every file is written under a temporary name and renamed, so a kill leaves each file old or new. A note with both trees is
//! written first, and the next call finishes the changes.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::Change;
use crate::{
    beneath::FolderHandle,
    worktree::{
        error::{WorktreeError, io_at},
        snapshots::snapshot::Trees,
        tree_edit::{GITLINK, TreeEdit},
    },
};

/// The beginning of the names of notes about changes that are being made, in the state dir.
const INTENT: &str = "applying-";

/// A note of the trees between which a working tree is being changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Intent {
    from: String,
    to: String,
}

/// What was done of changes that a killed process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedChanges {
    /// The number of files that were changed now.
    pub finished: usize,
    /// Files that somebody edited since, which were left as they are.
    pub left: Vec<String>,
}

impl Trees {
    /// Changes the files of the working tree from the tree `from`, its present state, to the tree `to`. HEAD, refs and
    /// the index stay.
    ///
    /// # Errors
    /// A file was changed meanwhile, or cannot be written: then no file is changed.
    pub fn apply(&self, from: &str, to: &str) -> Result<Vec<Change>, WorktreeError> {
        let changes = self.changes(from, to)?;
        if changes.is_empty() {
            return Ok(changes);
        }
        let _guard = self.guard()?;
        let edits = self.edits(from, to)?;
        self.refuse_changed_files(from, &edits)?;

        let note = self.intent_path();
        self.write_intent(&note, from, to)?;
        let written = self.write_edits(&edits, to);
        if let Err((done, _)) = &written {
            // What cannot be put back now is named by the error of the next call, which tries to finish.
            let undone: Vec<TreeEdit> = done.iter().map(TreeEdit::reversed).collect();
            if self.write_edits(&undone, from).is_err() {
                return written.map_err(|(_, error)| error).map(|()| changes);
            }
        }
        fs::remove_file(&note).map_err(io_at("remove", &note))?;
        written.map_err(|(_, error)| error).map(|()| changes)
    }

    /// Finishes changes that a killed process began in this working tree. `None` if there are none.
    ///
    /// # Errors
    /// When git fails or a file cannot be written.
    pub fn finish_changes(&self) -> Result<Option<FinishedChanges>, WorktreeError> {
        let _guard = self.guard()?;
        let note = self.intent_path();
        let Some(intent) = read_intent(&note) else { return Ok(None) };
        self.remove_stale_staged_files();
        let now = self.tree()?;
        let wanted = self.edits(&intent.from, &intent.to)?;
        let made = self.edits(&intent.from, &now)?;
        let made: BTreeMap<&[u8], &TreeEdit> = made.iter().map(|edit| (&edit.path[..], edit)).collect();
        let present = |edit: &TreeEdit| made.get(&edit.path[..]).map(|made| &made.after);
        let is_edited = |edit: &&TreeEdit| present(edit).is_some_and(|after| *after != edit.after);
        let left = wanted.iter().filter(is_edited).map(TreeEdit::name).collect();
        let missing: Vec<TreeEdit> = wanted.iter().filter(|edit| present(edit).is_none()).cloned().collect();
        self.write_edits(&missing, &intent.to).map_err(|(_, error)| error)?;
        fs::remove_file(&note).map_err(io_at("remove", &note))?;
        Ok(Some(FinishedChanges { finished: missing.len(), left }))
    }

    /// The trees that unfinished changes of any working tree need.
    pub(in crate::worktree) fn list_intended_trees(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.state).into_iter().flatten().flatten();
        let notes = entries.filter(|entry| entry.file_name().as_bytes().starts_with(INTENT.as_bytes()));
        let intents = notes.filter_map(|entry| read_intent(&entry.path()));
        intents.flat_map(|intent| [intent.from, intent.to]).collect()
    }

    /// The beginning of the names of folders with files that are not in their places yet.
    fn staged_prefix(&self) -> String {
        format!("staged-{}-", self.name)
    }

    fn remove_stale_staged_files(&self) {
        let prefix = self.staged_prefix();
        for entry in fs::read_dir(&self.state).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
                // A failure only costs disk space.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn intent_path(&self) -> PathBuf {
        self.state.join(format!("{INTENT}{}", self.name))
    }

    fn write_intent(&self, note: &Path, from: &str, to: &str) -> Result<(), WorktreeError> {
        let intent = Intent { from: from.to_owned(), to: to.to_owned() };
        let text = serde_json::to_vec(&intent).expect("texts can be serialised");
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.state)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(note).map_err(|error| error.error)?;
            File::open(&self.state)?.sync_all()
        };
        write().map_err(io_at("write", note))
    }

    /// Refuses to change files that are not as in the tree `from`, or that are there although it has none.
    fn refuse_changed_files(&self, from: &str, edits: &[TreeEdit]) -> Result<(), WorktreeError> {
        let made: BTreeSet<Vec<u8>> =
            self.edits(from, &self.tree()?)?.into_iter().map(|edit| edit.path).collect();
        let root = self.open_root()?;
        let refuse = |edit: &TreeEdit, why: &str| {
            Err(WorktreeError::Unreadable { path: edit.name(), why: why.to_owned() })
        };
        for edit in edits {
            if made.contains(&edit.path) {
                return refuse(edit, "it was changed meanwhile");
            }
            let path = Path::new(OsStr::from_bytes(&edit.path));
            // One that git ignores is in no tree, and would be lost.
            let state = root.state_of(path).map_err(io_at("read", &self.root.join(path)))?;
            if edit.is_addition() && state.is_some_and(|state| !state.is_folder()) {
                return refuse(edit, "git ignores it, and it is there already");
            }
        }
        Ok(())
    }

    fn open_root(&self) -> Result<FolderHandle, WorktreeError> {
        FolderHandle::open(&self.root).map_err(io_at("open", &self.root))
    }

    /// Makes edits, which lead to entries of the tree `to`. With an error come those that were made.
    fn write_edits(&self, edits: &[TreeEdit], to: &str) -> Result<(), (Vec<TreeEdit>, WorktreeError)> {
        let staged = self.stage_files(edits, to).map_err(|error| (Vec::new(), error))?;
        let root = self.open_root().map_err(|error| (Vec::new(), error))?;
        let mut done = Vec::new();
        // Removals first: a file may take the place of a folder.
        let (removals, others): (Vec<&TreeEdit>, Vec<&TreeEdit>) =
            edits.iter().partition(|edit| edit.reversed().is_addition());
        for edit in removals.into_iter().chain(others) {
            let path = Path::new(OsStr::from_bytes(&edit.path));
            match write_edit(&root, edit, path, &staged) {
                Ok(()) => done.push(edit.clone()),
                Err(error) => return Err((done, io_at("change", &self.root.join(path))(error))),
            }
        }
        Ok(())
    }

    /// Writes the files of edits into a folder of ours, as a checkout does: with filters and line ends.
    fn stage_files(&self, edits: &[TreeEdit], to: &str) -> Result<StagedFiles, WorktreeError> {
        let folder = tempfile::Builder::new().prefix(&self.staged_prefix()).tempdir_in(&self.state);
        let folder = folder.map_err(io_at("create a folder in", &self.state))?;
        let mut names = Vec::new();
        for edit in edits.iter().filter(|edit| edit.leaves_file() || edit.leaves_link()) {
            names.extend_from_slice(&edit.path);
            names.push(0);
        }
        if !names.is_empty() {
            let index = self.scratch_index();
            // The rules of the new state hold, which are not in the tree yet.
            let git = self.git.clone().with("GIT_INDEX_FILE", &index).with("GIT_ATTR_SOURCE", to);
            let mut prefix = std::ffi::OsString::from("--prefix=");
            prefix.push(folder.path());
            prefix.push("/");
            let checkout = || {
                git.run(&["read-tree", to])?;
                let words = ["checkout-index", "--quiet", "--force", "-z", "--stdin"].map(OsStr::new);
                git.run_with(&[&words[..], &[&prefix]].concat(), &names)
            };
            let written = checkout();
            let _ = fs::remove_file(&index);
            written?;
        }
        let handle = FolderHandle::open(folder.path()).map_err(io_at("open", folder.path()))?;
        Ok(StagedFiles { handle, _folder: folder })
    }
}

/// Files that are written and not in their places.
struct StagedFiles {
    handle: FolderHandle,
    _folder: tempfile::TempDir,
}

fn write_edit(root: &FolderHandle, edit: &TreeEdit, path: &Path, staged: &StagedFiles) -> io::Result<()> {
    if edit.after.0 == GITLINK {
        return root.create_folder(path).map(drop);
    }
    if edit.reversed().is_addition() {
        if edit.before.0 == GITLINK {
            // Its files are in no tree.
            let _ = root.remove_empty(path);
        } else {
            root.remove(path)?;
        }
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            if root.remove_empty(folder).is_err() {
                break;
            }
        }
        return Ok(());
    }
    root.create_folder(path.parent().unwrap_or(Path::new("")))?;
    let before = root.state_of(path)?;
    if before.is_some_and(|state| state.is_folder()) {
        // It is empty, or holds what git ignores.
        root.remove_empty(path)?;
    }
    let Some(new) = staged.handle.state_of(path)? else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "git did not write it"));
    };
    if new.kind == FileType::Symlink {
        return root.write_link(&staged.handle.read_link(path)?, path);
    }
    // A file keeps others out that could not read it before.
    let mode = match before {
        Some(state) if state.is_file() => new.mode & (state.mode | (state.mode & 0o444) >> 2 | 0o700),
        _ => new.mode,
    };
    let mut file = staged.handle.open_file(path)?;
    root.write_with(path, |copy| {
        io::copy(&mut file, copy)?;
        copy.set_permissions(fs::Permissions::from_mode(mode & 0o777))
    })
}

fn read_intent(note: &Path) -> Option<Intent> {
    serde_json::from_slice(&fs::read(note).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        trees: Trees,
    }

    impl Scene {
        /// A working tree with some files, and two trees: as it is, and with changes of each kind.
        fn new() -> (Scene, String, String) {
            let dir = tempfile::tempdir().unwrap();
            let top = dir.path().join("tree");
            fs::create_dir(&top).unwrap();
            let git = |args: &[&str]| {
                let mut git = Command::new("git");
                git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).current_dir(&top);
                assert!(git.output().unwrap().status.success(), "{args:?}");
            };
            git(&["init", "--quiet"]);
            let trees = || Trees::open(&top, &dir.path().join("state")).unwrap().unwrap();
            let write = |path: &str, text: &str| {
                fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
                fs::write(top.join(path), text).unwrap();
            };
            for name in ["keep", "edit", "gone/file", "folder/inner", "file"] {
                write(name, "before\n");
            }
            git(&["add", "--all"]);
            git(&["commit", "--quiet", "--message", "base"]);
            let from = trees().snapshot().unwrap().tree;
            write("edit", "after\n");
            write("new/one", "after\n");
            fs::remove_dir_all(top.join("gone")).unwrap();
            fs::remove_dir_all(top.join("folder")).unwrap();
            fs::write(top.join("folder"), "a file now\n").unwrap();
            fs::remove_file(top.join("file")).unwrap();
            write("file/inner", "a folder now\n");
            std::os::unix::fs::symlink("edit", top.join("link")).unwrap();
            let to = trees().snapshot().unwrap().tree;
            let trees = trees();
            trees.restore(&from).unwrap();
            (Scene { dir, trees }, from, to)
        }

        fn top(&self) -> PathBuf {
            self.dir.path().join("tree")
        }

        fn tree(&self) -> String {
            self.trees.snapshot().unwrap().tree
        }
    }

    #[test]
    fn all_kinds_of_changes_are_made_and_taken_back() {
        let (scene, from, to) = Scene::new();
        fs::set_permissions(scene.top().join("edit"), fs::Permissions::from_mode(0o600)).unwrap();
        scene.trees.apply(&from, &to).unwrap();
        assert_eq!(scene.tree(), to);
        assert_eq!(scene.top().join("edit").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        scene.trees.apply(&to, &from).unwrap();
        assert_eq!(scene.tree(), from);
        assert_eq!(scene.trees.finish_changes().unwrap(), None);
    }

    #[test]
    fn what_a_kill_left_is_finished_and_edits_of_a_person_stay() {
        let (scene, from, to) = Scene::new();
        let edits = scene.trees.edits(&from, &to).unwrap();
        for done in 0..=edits.len() {
            scene.trees.restore(&from).unwrap();
            let note = scene.trees.intent_path();
            scene.trees.write_intent(&note, &from, &to).unwrap();
            // Removals come first when all is made at once.
            let mut edits = edits.clone();
            edits.sort_by_key(|edit| !edit.reversed().is_addition());
            scene.trees.write_edits(&edits[..done], &to).map_err(|(_, error)| error).unwrap();
            assert_eq!(scene.trees.list_intended_trees(), [from.clone(), to.clone()]);
            let finished = scene.trees.finish_changes().unwrap().unwrap();
            assert_eq!((finished.finished, finished.left.len()), (edits.len() - done, 0));
            assert_eq!(scene.tree(), to);
        }
        scene.trees.restore(&from).unwrap();
        scene.trees.write_intent(&scene.trees.intent_path(), &from, &to).unwrap();
        fs::write(scene.top().join("edit"), "mine\n").unwrap();
        assert_eq!(scene.trees.finish_changes().unwrap().unwrap().left, ["edit"]);
        assert_eq!(fs::read_to_string(scene.top().join("edit")).unwrap(), "mine\n");
        assert!(scene.top().join("new/one").is_file());
    }

    #[test]
    fn nothing_is_changed_if_something_cannot_be() {
        let (scene, from, to) = Scene::new();
        let outside = scene.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        // An ignored file in the place of a new one.
        fs::write(scene.top().join(".git/info/exclude"), "new\n").unwrap();
        fs::create_dir(scene.top().join("new")).unwrap();
        fs::write(scene.top().join("new/one"), "mine\n").unwrap();
        assert!(scene.trees.apply(&from, &to).unwrap_err().to_string().contains("new/one"));
        fs::remove_dir_all(scene.top().join("new")).unwrap();
        // A link that leads out in the place of a folder that git ignores.
        std::os::unix::fs::symlink(&outside, scene.top().join("new")).unwrap();
        assert!(scene.trees.apply(&from, &to).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        fs::remove_file(scene.top().join("new")).unwrap();
        assert_eq!(scene.tree(), from);
        assert_eq!(scene.trees.finish_changes().unwrap(), None);
    }
}
