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

/// Where workflows and settings are, in any folder.
const PLACES: [&str; 3] = [".agent", ".takt", "cuegate.toml"];
/// What a workflow names elsewhere: prompts, schemas, texts. Ends of names.
const TEXTS: [&str; 8] = [".json", ".jsonc", ".markdown", ".md", ".toml", ".txt", ".yaml", ".yml"];
/// The longest such file, in bytes, and how many there may be: in a larger repository those outside of [`PLACES`] are left
/// out, and a workflow that names one has errors.
const TEXT_MAX: u64 = 1 << 20;
const TEXTS_MAX: usize = 50_000;

/// Whether a path is that of a text.
pub(super) fn is_text(path: &str) -> bool {
    TEXTS.iter().any(|end| path.ends_with(end))
}

/// One side of a comparison.
pub(super) struct ComparedSide {
    /// As the user named it.
    pub(super) name: String,
    /// The top of the project.
    pub(super) folder: PathBuf,
    /// Removed when dropped.
    temporary: Option<tempfile::TempDir>,
}

impl ComparedSide {
    /// A text without the folder into which the revision was written.
    pub(super) fn hide_folder(&self, text: &str) -> String {
        match &self.temporary {
            Some(made) => text.replace(&format!("{}/", made.path().display()), ""),
            None => text.to_owned(),
        }
    }

    /// The files as they lie in the project.
    pub(super) fn working_tree(root: &Path) -> ComparedSide {
        ComparedSide { name: "the working tree".to_owned(), folder: root.to_owned(), temporary: None }
    }

    /// A revision of the repository at `root`, or a folder that is typed as one: absolute, or from `.` or `..`. A folder must
    /// not pass for the revision of the same name.
    ///
    /// # Errors
    /// When it is neither, git fails, or `must_stay_inside` and a link leads out of the repository where a workflow is.
    pub(super) fn open(
        root: &Path,
        here: &Path,
        typed: &str,
        must_stay_inside: bool,
    ) -> Result<ComparedSide, Failure> {
        let is_folder = Path::new(typed).components().next().is_some_and(|first| {
            matches!(first, Component::RootDir | Component::CurDir | Component::ParentDir)
        });
        if is_folder && here.join(typed).is_dir() {
            return Ok(ComparedSide { name: typed.to_owned(), folder: here.join(typed), temporary: None });
        }
        let commit = run_git(
            root,
            &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{typed}^{{commit}}")],
        )
        .map_err(|_| {
            Failure::usage(
                format!("`{typed}` is no revision of this repository"),
                "name a branch, a tag or a commit, or a folder as `./FOLDER`; in CI, fetch it first: `git fetch origin COMMIT`",
            )
        })?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        let made = tempfile::tempdir()
            .map_err(|error| Failure::environment(format!("failed to create a folder: {error}")))?;
        extract_files(root, &commit, made.path(), must_stay_inside)?;
        Ok(ComparedSide { name: typed.to_owned(), folder: made.path().to_owned(), temporary: Some(made) })
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

/// A file of a commit.
struct TreeEntry {
    is_link: bool,
    object: String,
    path: String,
}

impl TreeEntry {
    fn is_in_places(&self) -> bool {
        self.path.split('/').any(|part| PLACES.contains(&part))
    }
}

/// The files of a commit that workflows may be made of.
fn list_files(root: &Path, commit: &str) -> Result<Vec<TreeEntry>, Failure> {
    let listed = run_git(root, &["ls-tree", "-r", "-z", "-l", "--full-tree", commit])?;
    let mut entries = Vec::new();
    for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        // `MODE TYPE OBJECT SIZE\tPATH`, with the size to the right of its column.
        let entry = String::from_utf8_lossy(entry).into_owned();
        let Some((head, path)) = entry.split_once('\t') else { continue };
        let words: Vec<&str> = head.split_ascii_whitespace().collect();
        let [mode, "blob", object, size] = words[..] else { continue };
        // Git itself writes no such names; a commit of somebody else may have them.
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::usage(
                format!("`{commit}` has a file outside of its folder: `{path}`"),
                "look at the commit: git would not check it out either",
            ));
        }
        let entry = TreeEntry { is_link: mode == "120000", object: object.to_owned(), path: path.to_owned() };
        let is_text = TEXTS.iter().any(|end| path.ends_with(end))
            && size.parse::<u64>().is_ok_and(|size| size <= TEXT_MAX);
        if entry.is_link || entry.is_in_places() || is_text {
            entries.push(entry);
        }
    }
    if entries.len() > TEXTS_MAX {
        entries.retain(|entry| entry.is_link || entry.is_in_places());
    }
    Ok(entries)
}

/// Whether a link leads to a place in its repository.
fn leads_inside(link: &str, leads_to: &str) -> bool {
    let mut depth = link.matches('/').count();
    !leads_to.starts_with('/')
        && leads_to.split('/').all(|part| match part {
            "" | "." => true,
            ".." => depth.checked_sub(1).map(|up| depth = up).is_some(),
            _ => {
                depth += 1;
                true
            }
        })
}

/// Writes the files of a commit that workflows may be made of into a folder.
fn extract_files(root: &Path, commit: &str, into: &Path, must_stay_inside: bool) -> Result<(), Failure> {
    let entries = list_files(root, commit)?;
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
    for entry in &entries {
        let (Some(input), Some(output)) = (&mut input, &mut output) else { break };
        writeln!(input, "{}", entry.object).and_then(|()| input.flush()).map_err(failed)?;
        let bytes = read_object(output).map_err(failed)?;
        let target = into.join(&entry.path);
        target.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        if !entry.is_link {
            fs::write(&target, bytes).map_err(failed)?;
            continue;
        }
        let leads_to = String::from_utf8_lossy(&bytes).into_owned();
        if leads_inside(&entry.path, &leads_to) {
            links.push((target, leads_to));
        } else if must_stay_inside && entry.is_in_places() {
            // A run would follow it to what nobody can compare.
            return Err(Failure::usage(
                format!("the link `{}` leads out of the repository, to `{leads_to}`", entry.path),
                "a workflow that is to be compared is made of files of its repository",
            ));
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
