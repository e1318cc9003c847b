//! The workflows of a revision, read from the objects of git into a folder of their own: no checkout, and no file of the
//! user's changes.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use cuegate_provider::locate_or_missing;

use crate::Failure;

/// What a workflow may be made of.
const PLACES: [&str; 3] = [".agent", ".takt", "cuegate.toml"];

/// One side of a comparison.
pub(super) struct ComparedSide {
    /// As the user named it.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Removed when dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl ComparedSide {
    /// The files as they lie in the project.
    pub(super) fn working_tree(root: &Path) -> ComparedSide {
        ComparedSide { name: "the working tree".to_owned(), folder: root.to_owned(), _temporary: None }
    }

    /// A folder, or a revision of the repository at `root`.
    ///
    /// # Errors
    /// When it is neither, or git fails.
    pub(super) fn open(root: &Path, here: &Path, typed: &str) -> Result<ComparedSide, Failure> {
        let folder = here.join(typed);
        if folder.is_dir() {
            return Ok(ComparedSide { name: typed.to_owned(), folder, _temporary: None });
        }
        let commit = run_git(
            root,
            &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{typed}^{{commit}}")],
        )
        .map_err(|_| {
            Failure::usage(
                format!("`{typed}` is no folder and no revision of this repository"),
                "name a branch, a tag or a commit; in CI, fetch it first: `git fetch origin COMMIT`",
            )
        })?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        let made = tempfile::tempdir()
            .map_err(|error| Failure::environment(format!("failed to create a folder: {error}")))?;
        extract_files(root, &commit, made.path())?;
        Ok(ComparedSide { name: typed.to_owned(), folder: made.path().to_owned(), _temporary: Some(made) })
    }
}

fn run_git(root: &Path, args: &[&str]) -> Result<Vec<u8>, Failure> {
    let ran =
        Command::new(locate_or_missing("git")).args(args).current_dir(root).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| Failure::environment(format!("failed to start git: {error}")))?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
    Err(Failure::environment(format!("`git {}` failed: {said}", args.join(" "))))
}

/// Writes the files of a commit that workflows may be made of into a folder.
fn extract_files(root: &Path, commit: &str, into: &Path) -> Result<(), Failure> {
    let listed =
        run_git(root, &[&["ls-tree", "-r", "-z", "--full-tree", commit, "--"][..], &PLACES].concat())?;
    let mut git = Command::new(locate_or_missing("git"))
        .args(["cat-file", "--batch"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::environment(format!("failed to start git: {error}")))?;
    let failed = |error: std::io::Error| Failure::environment(format!("failed to read `{commit}`: {error}"));
    let (mut input, mut output) = (git.stdin.take(), git.stdout.take().map(std::io::BufReader::new));
    let mut links = Vec::new();
    for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        // `MODE TYPE OBJECT\tPATH`
        let entry = String::from_utf8_lossy(entry).into_owned();
        let Some((head, path)) = entry.split_once('\t') else { continue };
        let words: Vec<&str> = head.split(' ').collect();
        let [mode, "blob", object] = words[..] else { continue };
        let (Some(input), Some(output)) = (&mut input, &mut output) else { break };
        writeln!(input, "{object}").and_then(|()| input.flush()).map_err(failed)?;
        let bytes = read_object(output).map_err(failed)?;
        // Git itself writes no such names; a commit of somebody else may have them.
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::usage(
                format!("`{commit}` has a file outside of its folder: `{path}`"),
                "look at the commit: git would not check it out either",
            ));
        }
        let target = into.join(path);
        target.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        match mode {
            "120000" => links.push((target, String::from_utf8_lossy(&bytes).into_owned())),
            _ => fs::write(&target, bytes).map_err(failed)?,
        }
    }
    // Last, so that no file is written through one.
    for (target, leads_to) in links {
        std::os::unix::fs::symlink(leads_to, &target).map_err(failed)?;
    }
    drop(input);
    git.wait().map_err(failed)?;
    Ok(())
}

/// `OBJECT TYPE SIZE`, the bytes, and the end of a line.
fn read_object(output: &mut impl std::io::BufRead) -> std::io::Result<Vec<u8>> {
    let mut head = String::new();
    output.read_line(&mut head)?;
    let size: u64 = head
        .trim_end()
        .rsplit(' ')
        .next()
        .and_then(|size| size.parse().ok())
        .ok_or_else(|| std::io::Error::other(format!("git says `{}`", head.trim_end())))?;
    let mut bytes = Vec::new();
    output.take(size + 1).read_to_end(&mut bytes)?;
    bytes.pop();
    Ok(bytes)
}
