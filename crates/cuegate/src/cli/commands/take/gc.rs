//! `gc`: removes old runs, and snapshots that no run needs any more.

use std::{collections::BTreeSet, fs, sync::Arc};

use clap::Args;
use cuegate_journal::{Journal, Liveness as Owning, Owner, RunId, log::REMOVED};
use cuegate_runner::{
    now_ms,
    worktree::{NeededSnapshots, SnapshotSizes, Trees},
};
use cuegate_view::{clean_to_one_line, format_time_ago, plural};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::clean::{OwnedWorktree, find_run_worktrees, is_taken, take_away};
use crate::cli::commands::ProjectPlace;
use crate::cli::commands::shared_args::parse_age;
use crate::cli::print;
use crate::config::{Config, load_config, parse_size};
use crate::retention::{
    PastRun, RetentionRule, list_runs_beyond, measure_folder, read_past_runs, remove_sessions, select_runs,
};
use crate::run::leftovers;
use crate::run::tree_lock::TreeLock;
use crate::{Failure, exit, project};

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Keep the newest runs, and remove the others [default: `runs` in `[retention]` of cuegate.toml]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep: Option<u64>,
    /// Remove runs that ended longer ago than this: `30d`, `12h` [default: `days` in `[retention]`]
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Remove the oldest runs until `.cuegate` is no larger than this: `512M`, `2G` [default: `size` in `[retention]`]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_argument)]
    pub(crate) size: Option<u64>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_size_argument(text: &str) -> Result<u64, String> {
    let size = parse_size(text).filter(|size| *size >= 1 << 20);
    size.ok_or_else(|| "give a size of at least 1M, such as `512M` or `2G`".to_owned())
}

/// The runs of the project, and what there is of them.
struct RetentionState {
    runs: Vec<PastRun>,
    worktrees: Vec<OwnedWorktree>,
    trees: Option<Trees>,
    /// The size of the state dir, in bytes.
    bytes: u64,
}

pub(in crate::cli::commands) fn collect_garbage(place: &ProjectPlace, args: &GcArgs) -> Result<u8, Failure> {
    let journal = project::open_existing(&place.home, cuegate_journal::log::Durability::Synced)?;
    let config = load_config(place.home.root())?;
    let own = RetentionRule::of(&config.retention);
    let age = args.older_than.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let rule = RetentionRule {
        runs: args.keep.or(own.runs),
        age_ms: age.or(own.age_ms),
        size: args.size.or(own.size),
    };
    let _alone = lock_alone(place)?;
    if !args.dry_run {
        leftovers::remove_leftovers(&place.home, &*journal);
        remove_unbegun_runs(place, &*journal)?;
    }
    let state = RetentionState::read(place, &*journal)?;
    let selected =
        select_runs(&state.runs, rule, now_ms(), |without| Ok(state.estimate_without(without)?.0))?;
    let (estimate, sizes) = state.estimate_without(&selected)?;
    let mut rows = Vec::new();
    for run in state.runs.iter().filter(|run| selected.contains(&run.id)) {
        let losses = run.list_losses(state.is_taken(&*journal, run)?);
        if !args.dry_run {
            state.remove_run(place, &journal, &config, run)?;
        }
        if !args.json {
            let ago = format_time_ago(now_ms(), run.last_ms);
            let state_word = run.view.as_ref().map_or("", |view| view.state.as_str());
            let losses = losses.join(", ");
            let bytes = format_size(run.bytes);
            print::print_data(&format!("{}  {state_word} {ago}, {bytes}: can no longer be {losses}", run.id));
        }
        rows.push(json!({"run": run.id.as_str(), "bytes": run.bytes, "no_longer": losses}));
    }
    let swept = if args.dry_run { Ok(sizes) } else { state.sweep(place, &*journal)? };
    let after = if args.dry_run { estimate } else { measure_folder(place.home.dir()) };
    if args.json {
        print::print_json(&state.to_json(&selected, rows, args.dry_run, &swept, after));
        return Ok(exit::DONE);
    }
    state.tell_stays(rule, &selected);
    if let Err(busy) = swept {
        print::print_line(&format!("note: {busy}, so the snapshots stay as they are"));
    }
    let n = plural(selected.len() as u64, "run");
    let (held, holds) = (format_size(state.bytes), format_size(after));
    print::print_line(&match args.dry_run {
        true => format!("{n} would be removed; `.cuegate` holds {held}, then about {holds}"),
        false => format!("{n} removed; `.cuegate` held {held}, and holds {holds}"),
    });
    if let Some(most) = rule.size.filter(|most| after > *most) {
        let most = format_size(most);
        print::print_line(&format!("that is more than the limit of {most}: no other run can go now"));
    }
    if rule == RetentionRule::default() {
        print::print_line(
            "no limit is set: `--older-than 30d`, `--keep 200`, `--size 2G`, or `[retention]` in cuegate.toml",
        );
    }
    Ok(exit::DONE)
}

impl RetentionState {
    fn read(place: &ProjectPlace, journal: &dyn Journal) -> Result<RetentionState, Failure> {
        let mut runs = read_past_runs(&place.home, journal)?;
        let worktrees = find_run_worktrees(place, journal)?;
        for owned in &worktrees {
            let why = match (&owned.kept, owned.merged) {
                (Some(why), _) => format!("its worktree stays: {why}"),
                (None, false) => "its worktree has changes that are not in this working tree".to_owned(),
                (None, true) => continue,
            };
            let run = runs.iter_mut().find(|run| run.id == owned.id);
            run.into_iter().for_each(|run| _ = run.stays.get_or_insert_with(|| why.clone()));
        }
        let trees = Trees::open(place.home.root(), &place.home.trees())?;
        Ok(RetentionState { runs, worktrees, trees, bytes: measure_folder(place.home.dir()) })
    }

    /// Whether what a run changed is in the working tree, or it worked there.
    fn is_taken(&self, journal: &dyn Journal, run: &PastRun) -> Result<bool, Failure> {
        let Some(view) = run.view.as_ref().filter(|view| view.place.owned) else { return Ok(true) };
        if let Some(owned) = self.worktrees.iter().find(|owned| owned.id == run.id) {
            return Ok(owned.merged);
        }
        let changed = !view.changed_files.is_empty();
        let read = cuegate_runner::read_run(journal, &run.id)?;
        // Of a tree that is gone nothing could be applied.
        Ok(!changed || is_taken(self.trees.as_ref(), journal, &read).unwrap_or(true))
    }

    fn needed_without(&self, without: &BTreeSet<RunId>) -> NeededSnapshots {
        let mut needed = NeededSnapshots::default();
        for run in self.runs.iter().filter(|run| !without.contains(&run.id)) {
            needed.trees.extend(run.snapshots.trees.iter().cloned());
            needed.git_states.extend(run.snapshots.git_states.iter().cloned());
        }
        needed
    }

    /// The size of the state dir without some runs, and that of the snapshots.
    fn estimate_without(&self, without: &BTreeSet<RunId>) -> Result<(u64, SnapshotSizes), Failure> {
        let sizes = match &self.trees {
            Some(trees) => {
                trees.measure_snapshots(&self.needed_without(without)).map_err(cuegate_runner::Error::from)?
            }
            None => SnapshotSizes::default(),
        };
        let folders = self.runs.iter().filter(|run| without.contains(&run.id)).map(|run| run.bytes);
        let gone = folders.sum::<u64>() + sizes.now.saturating_sub(sizes.needed);
        Ok((self.bytes.saturating_sub(gone), sizes))
    }

    /// Removes a run: its worktree, the conversations of its agents, and its records last. The references that keep its
    /// commits and ignored files stay, as whoever removed its worktree was told.
    fn remove_run(
        &self,
        place: &ProjectPlace,
        journal: &Arc<dyn Journal>,
        config: &Config,
        run: &PastRun,
    ) -> Result<(), Failure> {
        if let Some(owned) = self.worktrees.iter().find(|owned| owned.id == run.id) {
            take_away(place, &**journal, owned)?;
        }
        let lease = journal.acquire(&run.id, &Owner::current())?;
        let own_place = run.view.as_ref().map(|view| &view.place).filter(|place| place.owned);
        let folder = own_place.map(|place| std::path::PathBuf::from(place.start_folder()));
        remove_sessions(&place.home, config, &run.id, &run.sessions, folder.as_deref())?;
        journal.remove(&lease)?;
        if place.home.shared().is_some() {
            let _ = fs::remove_dir_all(place.home.run(&run.id));
        }
        Ok(())
    }

    /// Removes the snapshots that no run has any more; else says who is at work.
    fn sweep(
        &self,
        place: &ProjectPlace,
        journal: &dyn Journal,
    ) -> Result<Result<SnapshotSizes, String>, Failure> {
        let Some(trees) = &self.trees else { return Ok(Ok(SnapshotSizes::default())) };
        let gc: RunId = "gc".parse().expect("a name of letters");
        // Whoever begins from here on waits before the first snapshot; whoever has taken one before has the lock of the tree
        // or a lease.
        let store = trees.lock_store().map_err(cuegate_runner::Error::from)?;
        if let Err(failure) = TreeLock::take(&place.home, &gc, None, "", None) {
            return Ok(Err(failure.message));
        }
        let is_held = |owner: &Owner| owner.liveness() != Owning::Dead;
        if let Some(known) =
            journal.runs()?.into_iter().find(|known| known.owner.as_ref().is_some_and(is_held))
        {
            return Ok(Err(format!("run {} is at work", known.run)));
        }
        let mut needed = NeededSnapshots::default();
        for run in read_past_runs(&place.home, journal)? {
            needed.trees.extend(run.snapshots.trees);
            needed.git_states.extend(run.snapshots.git_states);
        }
        Ok(Ok(trees.sweep_snapshots(&store, &needed).map_err(cuegate_runner::Error::from)?))
    }

    /// Names the runs beyond a limit that stay, and why.
    fn tell_stays(&self, rule: RetentionRule, selected: &BTreeSet<RunId>) {
        const NAMED_MAX: usize = 10;
        let beyond = list_runs_beyond(&self.runs, rule, now_ms());
        let stays = |run: &&PastRun| beyond.contains(&run.id) && !selected.contains(&run.id);
        let stay: Vec<&PastRun> = self.runs.iter().filter(stays).collect();
        for run in stay.iter().take(NAMED_MAX) {
            let why = run.stays.as_deref().unwrap_or("another run in its worktree stays");
            print::print_line(&format!("{}  stays: {}", run.id, clean_to_one_line(why)));
        }
        if stay.len() > NAMED_MAX {
            print::print_line(&format!("and {} more stay", stay.len() - NAMED_MAX));
        }
    }

    fn to_json(
        &self,
        selected: &BTreeSet<RunId>,
        rows: Vec<Value>,
        dry_run: bool,
        swept: &Result<SnapshotSizes, String>,
        after: u64,
    ) -> Value {
        let stay = self.runs.iter().filter(|run| !selected.contains(&run.id));
        let stay = stay.filter_map(|run| Some(json!({"run": run.id.as_str(), "why": run.stays.as_ref()?})));
        json!({
            "schema": "cuegate/gc/v1", "dry_run": dry_run, "removed": rows, "stay": stay.collect::<Vec<_>>(),
            "bytes": {"before": self.bytes, "after": after},
            "snapshots": match swept {
                Ok(sizes) => json!({"before": sizes.now, "after": sizes.needed}),
                Err(busy) => json!({"busy": busy}),
            },
        })
    }
}

/// Waits until no other `gc` is at work.
fn lock_alone(place: &ProjectPlace) -> Result<fs::File, Failure> {
    let path = place.home.dir().join("gc.lock");
    let failed = |error| Failure::environment(format!("failed to lock `{}`: {error}", path.display()));
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    Ok(file)
}

/// Removes what was never a run: names without records, and what a killed removal left.
fn remove_unbegun_runs(place: &ProjectPlace, journal: &dyn Journal) -> Result<(), Failure> {
    for entry in fs::read_dir(place.home.runs()).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let unbegun = journal.runs()?.into_iter().filter(|known| !known.has_records && known.damage.is_none());
    for known in unbegun.filter(|known| place.home.has_files_of(&known.run)) {
        let is_free = known.owner.as_ref().is_none_or(|owner| owner.liveness() == Owning::Dead);
        if is_free && !place.home.worktrees().join(known.run.as_str()).exists() {
            let lease = journal.acquire(&known.run, &Owner::current())?;
            journal.remove(&lease)?;
        }
    }
    Ok(())
}

/// A size in the largest unit in which it is at least one.
fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    match size < 10.0 {
        true => format!("{size:.1} {}", UNITS[unit]),
        false => format!("{size:.0} {}", UNITS[unit]),
    }
}
