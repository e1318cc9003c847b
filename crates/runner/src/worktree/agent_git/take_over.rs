//! Takes over what an agent may leave in the repository of the user: commits on the branch of the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use cuegate_flow::model::BlobRef;

use super::{AgentGit, LandedCommits, RepositoryPair, SeedRecord, Stamp, read_refs, remove_if_present};
use crate::worktree::{
    error::{WorktreeError, io_at},
    git::Git,
    git_state::keep_commit,
    tree_edit::GITLINK,
};

/// From this number of objects on they are stored as one pack.
const PACK_FROM: usize = 500;
/// Files of an unfinished operation that a commit concludes.
const CONCLUDED: [&str; 7] =
    ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE", "SQUASH_MSG"];
/// Files and folders of the own git folder that show an unfinished operation, with its name.
const OPERATIONS: [(&str, &str); 6] = [
    ("rebase-merge", "an unfinished rebase"),
    ("rebase-apply", "an unfinished rebase"),
    ("MERGE_HEAD", "an unfinished merge"),
    ("CHERRY_PICK_HEAD", "an unfinished cherry-pick"),
    ("REVERT_HEAD", "an unfinished revert"),
    ("BISECT_LOG", "an unfinished bisection"),
];
/// The text of the reference log.
const LOG_TEXT: &str = "cuegate: commits of an agent";
/// How often the index is tried, and the time between.
const INDEX_TRIES: u32 = 30;
const INDEX_PAUSE: Duration = Duration::from_millis(100);
/// The most things that are named.
const NAMED_MAX: usize = 20;

/// What was taken over from agents, and what not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakeOverReport {
    /// What stays in the git folder of the agents and was not named before.
    pub left: Vec<String>,
    /// References that keep commits which the agent took off the branch of the run.
    pub aside: Vec<String>,
}

/// What HEAD names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeadTarget {
    Branch(String),
    Commit(String),
}

impl HeadTarget {
    /// The text of the file.
    pub(super) fn text(&self) -> String {
        match self {
            HeadTarget::Branch(name) => format!("ref: {name}\n"),
            HeadTarget::Commit(commit) => format!("{commit}\n"),
        }
    }
}

/// What the file HEAD names in a repository whose references are in tables.
pub(super) const ELSEWHERE: &str = "refs/heads/.invalid";

impl AgentGit {
    /// Moves the checked-out branch of the user's repository to the commits that agents made on it, if they follow the
    /// last one that is not theirs, and updates the index for them. Names everything else that agents changed in their git folder.
    ///
    /// The call can be repeated, also after it was killed.
    ///
    /// # Errors
    /// When git fails in the user's repository.
    pub fn take_over(&mut self) -> Result<TakeOverReport, WorktreeError> {
        let mut taken = TakeOverReport::default();
        if !self.folder.is_dir() {
            return Ok(taken);
        }
        let mut record = self.read_record();
        let mut is_damaged = false;
        for pair in self.pairs() {
            let Some(known) = record.get_mut(&pair.name) else { continue };
            let mut left = BTreeSet::new();
            match pair.take_over(known, &mut taken.aside) {
                Ok(found) => left = found,
                // Its repository is as it was.
                Err(
                    error @ (WorktreeError::Unreadable { .. }
                    | WorktreeError::Git { .. }
                    | WorktreeError::TimedOut { .. }),
                ) => {
                    left.insert(format!("all of it, because git cannot read it: {error}"));
                    is_damaged = true;
                }
                Err(error) => return Err(error),
            }
            let of = |what: &String| match pair.name.as_str() {
                "" => what.clone(),
                name => format!("{what} of the submodule `{name}`"),
            };
            taken.left.extend(left.difference(&known.named).take(NAMED_MAX).map(of));
            known.named = left;
        }
        if is_damaged && self.users == 0 {
            self.set_aside()?;
        }
        self.write_record(&record)?;
        Ok(taken)
    }
}

impl RepositoryPair {
    /// Returns what stays here.
    fn take_over(
        &self,
        known: &mut SeedRecord,
        aside: &mut Vec<String>,
    ) -> Result<BTreeSet<String>, WorktreeError> {
        let agents = self.agents_git()?;
        let refs = read_refs(&agents)?;
        let (on, agents_on) = (self.users_head(), read_head(&self.own()));
        let tip = match (&on, &agents_on) {
            (Some(HeadTarget::Branch(name)), _) => refs.get(name).cloned(),
            (Some(HeadTarget::Commit(_)), Some(HeadTarget::Commit(tip))) => Some(tip.clone()),
            _ => None,
        };
        let mut moved = self.put_dots_back(&known.dots)?;
        let mut landed = None;
        if let (Some(on), Some(tip)) = (&on, tip) {
            let target = match on {
                HeadTarget::Branch(name) => name.as_str(),
                HeadTarget::Commit(_) => "HEAD",
            };
            let users = self.users_git();
            let now = users.word(&["rev-parse", "--quiet", "--verify", target]).ok();
            let seeded = known.refs.get(target).cloned();
            let was_cut_off = now.as_ref() == Some(&tip) && seeded.is_some() && seeded != now;
            let before = if was_cut_off { &seeded } else { &now };
            let own = known.landed.take().filter(|landed| {
                let is_theirs = before.as_ref().is_some_and(|before| landed.tips.contains(before));
                landed.target == target && (is_theirs || landed.from == *before)
            });
            let (from, tips) =
                own.map_or((before.clone(), BTreeSet::new()), |landed| (landed.from, landed.tips));
            known.landed = Some(LandedCommits { target: target.to_owned(), from: from.clone(), tips });
            if was_cut_off {
                // The branch was moved, and perhaps not the index.
                moved.extend(self.update_index(&users, seeded.as_deref(), &tip)?);
                landed = Some((target, tip));
            } else if now.as_ref() != Some(&tip)
                && seeded.as_ref() != Some(&tip)
                && self.land(&agents, &users, target, (from.as_deref(), now.as_deref(), &tip), aside)?
            {
                moved.extend(self.update_index(&users, now.as_deref(), &tip)?);
                landed = Some((target, tip));
            }
        }
        let mut on = on.clone();
        if let Some((target, tip)) = landed.map(|(target, tip): (&str, String)| (target.to_owned(), tip)) {
            on = self.users_head();
            self.conclude_operations(known)?;
            if target != "HEAD" {
                known.refs.insert(target.to_owned(), tip.clone());
            }
            if let Some(landed) = &mut known.landed {
                landed.tips.insert(tip);
            }
            // What was changed here is no change of the user.
            self.read_entries(known)?;
            for name in ["HEAD", "index"] {
                if let Some(stamp) = Stamp::of(&self.real.git_dir.join(name)) {
                    known.files.insert(format!("own/{name}"), stamp);
                }
            }
        }
        self.take_over_large_files()?;
        let mut left = self.list_left(known, &refs, (on.as_ref(), agents_on.as_ref()));
        left.extend(moved);
        Ok(left)
    }

    /// What HEAD of the user names. With the reftable format it is in no file of its own.
    pub(super) fn users_head(&self) -> Option<HeadTarget> {
        match read_head(&self.real.git_dir) {
            Some(HeadTarget::Branch(name)) if name == ELSEWHERE => {
                let git = self.users_git();
                let branch = git.word(&["symbolic-ref", "--quiet", "HEAD"]).ok().map(HeadTarget::Branch);
                branch.or_else(|| {
                    git.word(&["rev-parse", "--quiet", "--verify", "HEAD"]).ok().map(HeadTarget::Commit)
                })
            }
            head => head,
        }
    }

    /// Moves the branch `target` of the user from `now` to `tip`. `from` is its last commit that is not of an agent. False
    /// if it may not be moved there.
    fn land(
        &self,
        agents: &Git,
        users: &Git,
        target: &str,
        (from, now, tip): (Option<&str>, Option<&str>, &str),
        aside: &mut Vec<String>,
    ) -> Result<bool, WorktreeError> {
        if !self.import(agents, users, tip, now)? {
            return Ok(false);
        }
        let follows = |before: &str| users.succeeds(&["merge-base", "--is-ancestor", before, tip]);
        if let Some(now) = now
            && !follows(now)?
        {
            // Agents may rewrite their own commits. The former ones stay reachable.
            match from {
                Some(from) if from == now || !follows(from)? => return Ok(false),
                // Without `from`, the first commit of the branch is an agent's as well.
                Some(_) | None => aside.push(keep_commit(users, now)?),
            }
        }
        let nothing = "0".repeat(tip.len());
        let flags: &[&str] = if target == "HEAD" { &["--no-deref"] } else { &[] };
        let args = [&["update-ref", "-m", LOG_TEXT], flags, &[target, tip, now.unwrap_or(&nothing)]].concat();
        // Another program moved it meanwhile.
        users.succeeds(&args)
    }

    /// Copies the objects that a commit needs and the user's repository does not have. False if some are missing.
    fn import(&self, agents: &Git, users: &Git, tip: &str, now: Option<&str>) -> Result<bool, WorktreeError> {
        let folder = tempfile::Builder::new().prefix("cuegate-pack-").tempdir();
        let folder = folder.map_err(io_at("create a folder in", &std::env::temp_dir()))?;
        let wanted = format!("{tip}\n{}", now.map(|now| format!("^{now}\n")).unwrap_or_default());
        let name = folder.path().join("p");
        let words = ["pack-objects", "--quiet", "--revs", "--local", "--non-empty"].map(std::ffi::OsStr::new);
        let args = [&words[..], &[name.as_os_str()]].concat();
        let digest = agents.run_with(&args, wanted.as_bytes())?;
        let digest = String::from_utf8_lossy(&digest).trim().to_owned();
        let pack = folder.path().join(format!("p-{digest}.pack"));
        if pack.is_file() {
            let file = fs::File::open(&pack).map_err(io_at("open", &pack))?;
            users.run_file(&unpack_args(&pack)?, file)?;
        }
        // Nothing of it may be missing, whatever the folder of the agents claims.
        let mut args = vec!["rev-list", "--objects", "--quiet", tip, "--not"];
        args.extend(now);
        users.succeeds(&if now.is_some() { args } else { args[..4].to_vec() })
    }

    /// Lets the index follow the branch: the entries that differ between the commits become those of the new one. Nothing
    /// of the index of agents is used, which could hide files. A repository that becomes a submodule loses its `.git`, which
    /// git of the user would obey; returns which ones, in words.
    fn update_index(
        &self,
        users: &Git,
        before: Option<&str>,
        tip: &str,
    ) -> Result<Vec<String>, WorktreeError> {
        let empty;
        let before = match before {
            Some(before) => before,
            None => {
                empty = users.word(&["hash-object", "-t", "tree", "--stdin"])?;
                &empty
            }
        };
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, tip];
        let listed = users.run(&args)?;
        let (mut entries, mut moved) = (Vec::new(), Vec::new());
        let mut fields = listed.split(|byte| *byte == 0);
        // `:OLD_MODE NEW_MODE OLD_ID NEW_ID STATUS`, then the path.
        while let (Some(about), Some(path)) = (fields.next().filter(|about| !about.is_empty()), fields.next())
        {
            let about = String::from_utf8_lossy(about).into_owned();
            let words: Vec<&str> = about.split(' ').collect();
            let [_, mode, _, id, _] = words[..] else { continue };
            if mode == GITLINK
                && let Ok(link) = std::str::from_utf8(path)
            {
                moved.extend(self.move_new_dot(link)?);
            }
            entries.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            entries.extend_from_slice(path);
            entries.push(0);
        }
        let args = ["update-index", "-z", "--index-info"];
        // A git of the user may have the index locked.
        let mut tries = INDEX_TRIES;
        while let Err(error) = users.run_with(&args, &entries) {
            tries -= 1;
            if tries == 0 || !error.to_string().contains(".lock") {
                return Err(error);
            }
            thread::sleep(INDEX_PAUSE);
        }
        // It fails if a file differs, which is no failure here.
        users.output(&["update-index", "-q", "--refresh"], b"")?;
        Ok(moved)
    }

    /// Ends a merge or the like of the user that a commit of the agent concluded.
    fn conclude_operations(&self, known: &mut SeedRecord) -> Result<(), WorktreeError> {
        for name in CONCLUDED {
            let key = format!("own/{name}");
            if known.files.contains_key(&key) && self.own().join(name).symlink_metadata().is_err() {
                remove_if_present(&self.real.git_dir.join(name))?;
                known.files.remove(&key);
            }
        }
        Ok(())
    }

    /// Copies the objects of Git LFS that agents added. Each has the name of its content.
    fn take_over_large_files(&self) -> Result<(), WorktreeError> {
        let mut folders = vec![(PathBuf::from("lfs/objects"), 2)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(self.folder.join(&folder)).into_iter().flatten().flatten() {
                let (name, Ok(kind)) = (folder.join(entry.file_name()), entry.file_type()) else { continue };
                if kind.is_dir() && depth > 0 {
                    folders.push((name, depth - 1));
                } else if kind.is_file() && depth == 0 {
                    copy_large_file(&self.folder.join(&name), &self.real.common.join(&name))?;
                }
            }
        }
        Ok(())
    }

    /// What agents changed here beside the branch of the run.
    fn list_left(
        &self,
        known: &SeedRecord,
        refs: &BTreeMap<String, String>,
        (on, agents_on): (Option<&HeadTarget>, Option<&HeadTarget>),
    ) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        let names: BTreeSet<&String> = refs.keys().chain(known.refs.keys()).collect();
        for name in names {
            let (now, before) = (refs.get(name), known.refs.get(name));
            if now == before {
                continue;
            }
            let what = describe_ref(name);
            left.insert(match (now, before) {
                (None, _) => format!("the deletion of {what}"),
                (Some(_), Some(_)) => format!("another commit of {what}"),
                (Some(_), None) => what,
            });
        }
        match agents_on {
            Some(HeadTarget::Branch(name)) if Some(&HeadTarget::Branch(name.clone())) != on => {
                left.insert(format!("the checkout of {}", describe_ref(name)));
            }
            Some(HeadTarget::Commit(commit)) if Some(&HeadTarget::Commit(commit.clone())) != on => {
                left.insert(format!("the checkout of the commit {}", commit.get(..12).unwrap_or(commit)));
            }
            _ => {}
        }
        let own = self.own();
        for (name, what) in OPERATIONS {
            let of_user = self.real.git_dir.join(name).symlink_metadata().is_ok();
            if !of_user && own.join(name).symlink_metadata().is_ok() {
                left.insert(what.to_owned());
            }
        }
        if fs::read_to_string(self.folder.join("config")).ok().as_ref() != Some(&known.settings) {
            left.insert("settings of git".to_owned());
        }
        for entry in fs::read_dir(self.folder.join("hooks")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_of_user = known.files.contains_key(&format!("hooks/{name}"));
            if !is_of_user && !name.ends_with(".sample") {
                left.insert(format!("the hook `{name}`"));
            }
        }
        for entry in fs::read_dir(self.folder.join("worktrees")).into_iter().flatten().flatten() {
            if entry.path() != own {
                left.insert(format!("the worktree `{}`", entry.file_name().display()));
            }
        }
        left
    }
}

/// The command that stores the objects of a pack, which is its standard input. It checks them.
fn unpack_args(pack: &Path) -> Result<Vec<&'static str>, WorktreeError> {
    use std::io::Read as _;
    // The number of objects is in the head of a pack.
    let mut head = [0; 12];
    let mut file = fs::File::open(pack).map_err(io_at("open", pack))?;
    file.read_exact(&mut head).map_err(io_at("read", pack))?;
    let count = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
    Ok(match count {
        ..PACK_FROM => vec!["unpack-objects", "-q", "--strict"],
        _ => vec!["index-pack", "--stdin", "--strict", "--fix-thin"],
    })
}

/// Copies a file whose name is the digest of its content.
fn copy_large_file(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    let Some(folder) = to.parent().filter(|_| to.symlink_metadata().is_err()) else { return Ok(()) };
    let bytes = fs::read(from).map_err(io_at("read", from))?;
    if *BlobRef::for_bytes(&bytes).digest != *to.file_name().unwrap_or_default().to_string_lossy() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(io_at("create", folder))?;
    super::write_whole(to, &bytes)
}

/// What the HEAD of a git folder names.
fn read_head(folder: &Path) -> Option<HeadTarget> {
    let path = folder.join("HEAD");
    if !path.symlink_metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    match text.strip_prefix("ref:") {
        Some(name) => Some(HeadTarget::Branch(name.trim().to_owned())),
        None => Some(HeadTarget::Commit(text.to_owned())),
    }
}

/// A reference in words.
pub(in crate::worktree) fn describe_ref(name: &str) -> String {
    let kinds = [("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch")];
    let kind = kinds.iter().find_map(|(start, kind)| Some((kind, name.strip_prefix(start)?)));
    match kind {
        _ if name == "refs/stash" => "the stash".to_owned(),
        Some((kind, short)) => format!("the {kind} `{short}`"),
        None => format!("`{name}`"),
    }
}
