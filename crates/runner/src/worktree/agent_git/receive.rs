//! Receives objects of agents into the repository of the user: checked one by one, in quarantine until all of them are there.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::{
    RepositoryPair,
    wire::{Advertisement, PackRequest, Remote},
};
use crate::worktree::{
    error::{WorktreeError, io_at},
    git::{Git, build_git_error, quote_list_path},
};

/// From this number of objects on they are kept as one pack.
const PACK_FROM: usize = 500;
/// The limit of what is received for one branch, in bytes.
const PACK_MAX: u64 = 4 << 30;
/// The limit of the memory that the check of a pack may take, in bytes.
const MEMORY_MAX: u64 = 4 << 30;
/// The beginning of the name of a quarantine, which `git gc` removes if it is left behind.
const QUARANTINE: &str = "tmp_objdir-cuegate-";

/// How objects arrived.
pub(super) enum Reception {
    /// All that a commit needs is there.
    Complete,
    /// They are refused, for this reason.
    Refused(String),
}

impl RepositoryPair {
    /// Receives what the commit `tip` needs and the user's repository does not have. `now` is the commit of the branch.
    ///
    /// # Errors
    /// When the remote fails, or a file cannot be written.
    pub(super) fn receive(
        &self,
        (remote, advertisement): (Remote, &Advertisement),
        tip: &str,
        now: Option<&str>,
        others: &[String],
    ) -> Result<Reception, WorktreeError> {
        let objects = self.real.common.join("objects");
        let quarantine = tempfile::Builder::new().prefix(QUARANTINE).tempdir_in(&objects);
        let quarantine = quarantine.map_err(io_at("create a folder in", &objects))?;
        // A pack is named by its content, and its folder is not made by all versions of git.
        let packs = quarantine.path().join("pack");
        fs::create_dir(&packs).map_err(io_at("create", &packs))?;
        let git = self
            .users_git()
            .with("GIT_OBJECT_DIRECTORY", quarantine.path())
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_list_path(objects.clone().into()))
            // A commit of an agent names objects that are missing, and they are not fetched for it.
            .with("GIT_NO_LAZY_FETCH", "1")
            // Larger files are checked as a stream.
            .setting("core.bigFileThreshold=32m")
            .limited_to(MEMORY_MAX);
        let known: Vec<String> = now.into_iter().map(str::to_owned).chain(others.iter().cloned()).collect();
        let shallow = fs::read_to_string(self.real.common.join("shallow")).unwrap_or_default();
        let shallow: Vec<String> = shallow.lines().map(str::to_owned).collect();
        let request = PackRequest { tip, known: &known, shallow: &shallow, size_max: PACK_MAX };
        if let Some(why) = store_pack(&git, remote, advertisement, &request)? {
            return Ok(Reception::Refused(why));
        }
        // Nothing of it may be missing, whatever the other side sent.
        let mut args = vec!["rev-list", "--objects", "--quiet", tip];
        if let Some(now) = now {
            args.extend(["--not", now, "--all"]);
        }
        if !git.succeeds(&args)? {
            return Ok(Reception::Refused("some of their objects are missing".to_owned()));
        }
        self.keep_packs(&packs, &objects.join("pack"))?;
        Ok(Reception::Complete)
    }

    /// Moves what was received out of the quarantine: few objects one by one, as git does when it fetches.
    fn keep_packs(&self, from: &Path, to: &Path) -> Result<(), WorktreeError> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(from).map_err(io_at("read", from))? {
            files.push(entry.map_err(io_at("read", from))?.path());
        }
        // Git looks for a pack by its index, which therefore comes last.
        files.sort_by_key(|path| path.extension().is_some_and(|extension| extension == "idx"));
        let is_pack = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "pack");
        if let Some(pack) = files.iter().find(is_pack)
            && count_objects(pack)? < PACK_FROM
        {
            let file = fs::File::open(pack).map_err(io_at("open", pack))?;
            self.users_git().run_file(&["unpack-objects", "-q"], file)?;
            return Ok(());
        }
        fs::create_dir_all(to).map_err(io_at("create", to))?;
        for path in files {
            let target = to.join(path.file_name().unwrap_or_default());
            fs::rename(&path, &target).map_err(io_at("rename to", &target))?;
        }
        Ok(())
    }
}

/// Copies a pack from the remote to git, which checks it and stores it. Returns why git refuses it.
fn store_pack(
    git: &Git,
    remote: Remote,
    advertisement: &Advertisement,
    request: &PackRequest<'_>,
) -> Result<Option<String>, WorktreeError> {
    let limit = format!("--max-input-size={}", request.size_max);
    let args = ["index-pack", "--stdin", "--fix-thin", "--strict", "--fsck-objects", &limit];
    let mut indexer = git.spawn(&args)?;
    let errors = indexer.stderr.take();
    let messages = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            let _ = (&mut errors).take(MESSAGES_MAX).read_to_end(&mut text);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
        }
        text
    });
    let copied = match indexer.stdin.take() {
        Some(mut input) => remote.copy_pack(advertisement, request, &mut input),
        None => Err(WorktreeError::Start(std::io::ErrorKind::BrokenPipe.into())),
    };
    if copied.is_err() {
        // It waits for the rest of the pack otherwise, and would store what is cut off nowhere.
        let _ = indexer.kill();
    }
    let mut output = indexer.wait_with_output().map_err(WorktreeError::Start)?;
    output.stderr = messages.join().unwrap_or_default();
    copied?;
    if output.status.success() {
        return Ok(None);
    }
    Ok(Some(match build_git_error(&args, &output) {
        WorktreeError::Git { stderr, .. } => {
            let why = stderr.lines().next().unwrap_or_default();
            let why: String = why.strip_prefix("fatal: ").unwrap_or(why).chars().take(WHY_MAX).collect();
            format!("git refuses them: {}", why.replace(char::is_control, "?"))
        }
        error => error.to_string(),
    }))
}

/// The longest reason of git that is shown, in characters.
const WHY_MAX: usize = 300;
/// The limit of what is kept of git's messages, in bytes.
const MESSAGES_MAX: u64 = 16 << 10;

/// The number of objects, which is in the head of a pack.
fn count_objects(pack: &Path) -> Result<usize, WorktreeError> {
    let mut head = [0; 12];
    let mut file = fs::File::open(pack).map_err(io_at("open", pack))?;
    file.read_exact(&mut head).map_err(io_at("read", pack))?;
    Ok(u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize)
}
