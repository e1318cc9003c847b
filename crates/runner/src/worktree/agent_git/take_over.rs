//! Takes over what an agent may leave in the repository of the user: commits on the branch of the run.

#![expect(clippy::disallowed_methods, reason = "the git folder of the user")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    thread,
    time::Duration,
};

use super::{
    AgentGit, LandedCommits, RepositoryPair, SeedRecord, Stamp,
    receive::Reception,
    remove_if_present,
    wire::{Advertisement, Remote, StopFlag, is_object_id},
};
use crate::{
    beneath::FolderHandle,
    worktree::{error::WorktreeError, git::Git, git_state::keep_commit, tree_edit::GITLINK},
};

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
/// The most paths that are named of commits that do not land.
const HIDDEN_MAX: usize = 5;
/// The longest name that is shown, in characters.
const NAME_MAX: usize = 200;
/// The limit of the size of a HEAD, in bytes.
const HEAD_MAX: u64 = 4 << 10;
/// The limit of the size of settings of git that are compared, in bytes.
const SETTINGS_MAX: u64 = 4 << 20;

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
    /// First of all it protects git of the user from what agents put into the working tree, for which nothing of theirs is
    /// read. The call can be repeated, also after it was killed or stopped.
    ///
    /// # Errors
    /// When git fails in the user's repository.
    pub fn take_over(&mut self, stop: &StopFlag) -> Result<TakeOverReport, WorktreeError> {
        let mut taken = TakeOverReport::default();
        let mut record = self.read_record();
        let pairs = self.pairs();
        let mut moved = BTreeMap::new();
        for pair in &pairs {
            if let Some(known) = record.get(&pair.name) {
                moved.insert(pair.name.clone(), pair.enforce_links(known)?);
            }
        }
        if !self.folder.is_dir() {
            return Ok(taken);
        }
        let is_used = self.users > 0;
        for pair in pairs {
            let Some(known) = record.get_mut(&pair.name) else { continue };
            let mut left: BTreeSet<String> = moved.remove(&pair.name).into_iter().flatten().collect();
            match pair.take_over(known, &mut taken.aside, is_used, stop) {
                Ok(more) => left.extend(more),
                // It is taken over by the next call, or when the run goes on.
                Err(WorktreeError::Stopped) => {}
                // Its repository is as it was.
                Err(
                    error @ (WorktreeError::Unreadable { .. }
                    | WorktreeError::Git { .. }
                    | WorktreeError::Io { .. }
                    | WorktreeError::TimedOut { .. }),
                ) => {
                    left.insert(format!(
                        "all of it, because git cannot read it: {}",
                        shorten_name(&error.to_string())
                    ));
                    if !is_used {
                        pair.set_aside()?;
                    }
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
        self.write_record(&record)?;
        Ok(taken)
    }
}

impl RepositoryPair {
    /// Returns what stays here. `is_used`: other commands work in the tree.
    fn take_over(
        &self,
        known: &mut SeedRecord,
        aside: &mut Vec<String>,
        is_used: bool,
        stop: &StopFlag,
    ) -> Result<BTreeSet<String>, WorktreeError> {
        let folder = self.handle()?;
        let (remote, advertisement) = Remote::connect(&self.agents_git(), &self.own(), stop)?;
        let (on, agents_on) = (self.users_head(), read_agents_head(&folder, &self.own_below()));
        let tip = match (&on, &agents_on) {
            (Some(HeadTarget::Branch(name)), _) => advertisement.refs.get(name).cloned(),
            (Some(HeadTarget::Commit(_)), Some(HeadTarget::Commit(tip))) => Some(tip.clone()),
            _ => None,
        };
        let mut left = BTreeSet::new();
        let (mut landed, mut refused) = (None, None);
        let mut remote = Some(remote);
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
                left.extend(self.update_index(&users, known, seeded.as_deref(), &tip)?);
                landed = Some((target.to_owned(), tip));
            } else if now.as_ref() != Some(&tip)
                && seeded.as_ref() != Some(&tip)
                && let Some(remote) = remote.take()
            {
                let branch = Branch { target, from: from.as_deref(), now: now.as_deref(), tip: &tip };
                let others: Vec<String> = known.refs.values().cloned().collect();
                match self.land(&users, (remote, &advertisement), &branch, &others, is_used, aside)? {
                    Landing::Moved => {
                        left.extend(self.update_index(&users, known, now.as_deref(), &tip)?);
                        landed = Some((target.to_owned(), tip));
                    }
                    Landing::Refused(why) => {
                        left.insert(format!("the commits on {}: {why}", describe_ref(target)));
                        refused = Some(describe_ref(target));
                    }
                    Landing::NotFollowing => {}
                }
            }
        }
        if let Some(remote) = remote {
            remote.close();
        }
        let mut on = on.clone();
        if let Some((target, tip)) = landed {
            on = self.users_head();
            self.conclude_operations(&folder, known)?;
            if target != "HEAD" {
                known.refs.insert(target, tip.clone());
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
        left.extend(self.take_over_large_files(&folder, stop)?);
        let mut others = self.list_left(&folder, known, &advertisement, (on.as_ref(), agents_on.as_ref()));
        if let Some(target) = &refused {
            // Why is said already.
            others.remove(&format!("another commit of {target}"));
        }
        left.extend(others);
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

    /// Moves a branch of the user to a commit of agents.
    fn land(
        &self,
        users: &Git,
        (remote, advertisement): (Remote, &Advertisement),
        branch: &Branch<'_>,
        others: &[String],
        is_used: bool,
        aside: &mut Vec<String>,
    ) -> Result<Landing, WorktreeError> {
        let Branch { target, from, now, tip } = *branch;
        if let Reception::Refused(why) = self.receive((remote, advertisement), tip, now, others)? {
            return Ok(Landing::Refused(why));
        }
        let entries = list_changed_entries(users, now, tip)?;
        if is_used && entries.iter().any(|entry| entry.mode == GITLINK) {
            // A command that is at work could put a repository there for git of the user. It lands when none is.
            return Ok(Landing::NotFollowing);
        }
        let follows = |before: &str| users.succeeds(&["merge-base", "--is-ancestor", before, tip]);
        if let Some(now) = now
            && !follows(now)?
        {
            // Agents may rewrite their own commits. The former ones stay reachable.
            match from {
                Some(from) if from == now || !follows(from)? => return Ok(Landing::NotFollowing),
                // Without `from`, the first commit of the branch is an agent's as well.
                Some(_) | None => aside.push(keep_commit(users, now)?),
            }
        }
        let hidden = self.list_hidden_paths(users, &entries)?;
        if !hidden.is_empty() {
            let mut names: Vec<String> =
                hidden.iter().take(HIDDEN_MAX).map(|path| format!("`{}`", shorten_name(path))).collect();
            if hidden.len() > HIDDEN_MAX {
                names.push(format!("{} more", hidden.len() - HIDDEN_MAX));
            }
            let why = format!("the working tree does not show what they change: {}", names.join(", "));
            return Ok(Landing::Refused(why));
        }
        let nothing = "0".repeat(tip.len());
        let flags: &[&str] = if target == "HEAD" { &["--no-deref"] } else { &[] };
        let args = [&["update-ref", "-m", LOG_TEXT], flags, &[target, tip, now.unwrap_or(&nothing)]].concat();
        // Otherwise another program moved it meanwhile.
        Ok(if users.succeeds(&args)? { Landing::Moved } else { Landing::NotFollowing })
    }

    /// Lets the index follow the branch: the entries that differ between the commits become those of the new one. Nothing
    /// of the index of agents is used, which could hide files. A repository that becomes a submodule loses its `.git`, which
    /// git of the user would obey; returns which ones, in words.
    fn update_index(
        &self,
        users: &Git,
        known: &SeedRecord,
        before: Option<&str>,
        tip: &str,
    ) -> Result<Vec<String>, WorktreeError> {
        let (mut entries, mut moved) = (Vec::new(), Vec::new());
        let changed = list_changed_entries(users, before, tip)?;
        for entry in &changed {
            if entry.mode == GITLINK {
                match std::str::from_utf8(&entry.path) {
                    Ok(link) => moved.extend(self.enforce_link(known, link)?),
                    // What cannot be protected does not become a submodule of the user's index.
                    Err(_) => continue,
                }
            }
            entries.extend_from_slice(format!("{} {}\t", entry.mode, entry.id).as_bytes());
            entries.extend_from_slice(&entry.path);
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
        self.skip_files_outside(users, &changed)?;
        // It fails if a file differs, which is no failure here.
        users.output(&["update-index", "-q", "--refresh"], b"")?;
        Ok(moved)
    }

    /// Ends a merge or the like of the user that a commit of the agent concluded.
    fn conclude_operations(
        &self,
        folder: &FolderHandle,
        known: &mut SeedRecord,
    ) -> Result<(), WorktreeError> {
        for name in CONCLUDED {
            let key = format!("own/{name}");
            if known.files.contains_key(&key) && !has_entry(folder, &self.own_below().join(name)) {
                remove_if_present(&self.real.git_dir.join(name))?;
                known.files.remove(&key);
            }
        }
        Ok(())
    }

    /// What agents changed here beside the branch of the run.
    fn list_left(
        &self,
        folder: &FolderHandle,
        known: &SeedRecord,
        advertisement: &Advertisement,
        (on, agents_on): (Option<&HeadTarget>, Option<&HeadTarget>),
    ) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        let is_shown = |name: &&String| *name != "HEAD" && !name.starts_with("refs/cuegate/");
        let refs: BTreeMap<&String, &String> =
            advertisement.refs.iter().filter(|(name, _)| is_shown(name)).collect();
        let names: BTreeSet<&String> = refs.keys().copied().chain(known.refs.keys()).collect();
        for name in names {
            let (now, before) = (refs.get(name).copied(), known.refs.get(name));
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
                left.insert(format!(
                    "the checkout of the commit {}",
                    shorten_name(commit.get(..12).unwrap_or(commit))
                ));
            }
            _ => {}
        }
        let own = self.own_below();
        for (name, what) in OPERATIONS {
            let is_of_user = self.real.git_dir.join(name).symlink_metadata().is_ok();
            if !is_of_user && has_entry(folder, &own.join(name)) {
                left.insert(what.to_owned());
            }
        }
        if folder.read_text(Path::new("config"), SETTINGS_MAX).ok().as_ref() != Some(&known.settings) {
            left.insert("settings of git".to_owned());
        }
        let names = |below: &str| folder.list(Path::new(below)).unwrap_or_default().into_iter();
        for (name, _) in names("hooks") {
            let name = name.to_string_lossy().into_owned();
            let is_of_user = known.files.contains_key(&format!("hooks/{name}"));
            if !is_of_user && !name.ends_with(".sample") {
                left.insert(format!("the hook `{}`", shorten_name(&name)));
            }
        }
        for (name, _) in names("worktrees") {
            if Path::new("worktrees").join(&name) != own {
                left.insert(format!("the worktree `{}`", shorten_name(&name.to_string_lossy())));
            }
        }
        left
    }
}

/// A branch of the user, or HEAD, and the commit of agents that it is to have.
struct Branch<'b> {
    target: &'b str,
    /// Its last commit that is not of an agent.
    from: Option<&'b str>,
    now: Option<&'b str>,
    tip: &'b str,
}

/// What became of the commits of agents.
enum Landing {
    /// The branch has them.
    Moved,
    /// They do not follow the branch, or not yet.
    NotFollowing,
    /// They are refused, for this reason.
    Refused(String),
}

/// An entry that differs between two commits, as the later one has it.
pub(super) struct ChangedEntry {
    pub(super) mode_before: String,
    pub(super) mode: String,
    pub(super) id_before: String,
    pub(super) id: String,
    pub(super) path: Vec<u8>,
}

impl ChangedEntry {
    pub(super) fn is_addition(&self) -> bool {
        self.mode_before.bytes().all(|digit| digit == b'0')
    }

    pub(super) fn is_removal(&self) -> bool {
        self.mode.bytes().all(|digit| digit == b'0')
    }
}

/// The entries that differ between two commits. Without `before`, all of them.
fn list_changed_entries(
    users: &Git,
    before: Option<&str>,
    tip: &str,
) -> Result<Vec<ChangedEntry>, WorktreeError> {
    let empty;
    let before = match before {
        Some(before) => before,
        None => {
            empty = users.word(&["hash-object", "-t", "tree", "--stdin"])?;
            &empty
        }
    };
    let listed = users.run(&["diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, tip])?;
    let mut entries = Vec::new();
    let mut fields = listed.split(|byte| *byte == 0);
    // `:OLD_MODE NEW_MODE OLD_ID NEW_ID STATUS`, then the path.
    while let (Some(about), Some(path)) = (fields.next().filter(|about| !about.is_empty()), fields.next()) {
        let about = String::from_utf8_lossy(about).into_owned();
        let words: Vec<&str> = about.split(' ').collect();
        let [mode_before, mode, id_before, id, _] = words[..] else { continue };
        entries.push(ChangedEntry {
            mode_before: mode_before.trim_start_matches(':').to_owned(),
            mode: mode.to_owned(),
            id_before: id_before.to_owned(),
            id: id.to_owned(),
            path: path.to_owned(),
        });
    }
    Ok(entries)
}

fn has_entry(folder: &FolderHandle, below: &Path) -> bool {
    folder.state_of(below).is_ok_and(|state| state.is_some())
}

/// A name that an agent gave, for people: without control characters, and not too long.
fn shorten_name(name: &str) -> String {
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    let mut short: String = name.chars().take(NAME_MAX).map(shown).collect();
    if name.chars().nth(NAME_MAX).is_some() {
        short.push('…');
    }
    short
}

/// What the HEAD of a git folder of agents names, if it is what git writes.
fn read_agents_head(folder: &FolderHandle, own: &Path) -> Option<HeadTarget> {
    let target = parse_head(&folder.read_text(&own.join("HEAD"), HEAD_MAX).ok()?);
    match &target {
        HeadTarget::Commit(commit) => is_object_id(commit).then_some(target),
        HeadTarget::Branch(name) => name.starts_with("refs/").then_some(target),
    }
}

/// What the HEAD of a git folder of the user names.
fn read_head(folder: &Path) -> Option<HeadTarget> {
    let path = folder.join("HEAD");
    if !path.symlink_metadata().is_ok_and(|about| about.is_file()) {
        return None;
    }
    Some(parse_head(&fs::read_to_string(path).ok()?))
}

fn parse_head(text: &str) -> HeadTarget {
    let text = text.trim();
    match text.strip_prefix("ref:") {
        Some(name) => HeadTarget::Branch(name.trim().to_owned()),
        None => HeadTarget::Commit(text.to_owned()),
    }
}

/// A reference in words.
pub(in crate::worktree) fn describe_ref(name: &str) -> String {
    let kinds = [("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch")];
    let kind = kinds.iter().find_map(|(start, kind)| Some((kind, name.strip_prefix(start)?)));
    match kind {
        _ if name == "refs/stash" => "the stash".to_owned(),
        _ if name == "HEAD" => "the detached HEAD".to_owned(),
        Some((kind, short)) => format!("the {kind} `{}`", shorten_name(short)),
        None => format!("`{}`", shorten_name(name)),
    }
}
