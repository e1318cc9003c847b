//! Measures the whole program relative to a baseline on the same machine at the same time: ratios are comparable,
//! absolute times are not.

mod check;
mod forks;
mod members;
mod peers;
mod steps;
mod watchers;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    agents, demo,
    shell::{cargo, root, run},
};

/// How often each figure is measured; the median is reported.
const ROUNDS: usize = 7;

/// A figure and its upper bound.
struct Figure {
    what: String,
    got: f64,
    unit: &'static str,
    most: Option<f64>,
}

/// The benchmarks.
const ROWS: [&str; 10] = [
    "start-up",
    "check",
    "steps",
    "records",
    "replays",
    "forks",
    "snapshots",
    "members",
    "watchers",
    "turns",
];
/// The comparison with other programs, only when asked for: it downloads them.
const PEERS: &str = "peers";

/// Builds the release, runs all or one of [`ROWS`], prints a table, and fails if a figure exceeds its bound.
pub(crate) fn bench(only: Option<&str>) -> Result<(), String> {
    if let Some(row) = only.filter(|row| !ROWS.contains(row) && *row != PEERS) {
        return Err(format!("`{row}` is not a benchmark; use one of {} or {PEERS}", ROWS.join(", ")));
    }
    let wanted = |row: &str| only.is_none_or(|only| only == row);
    let root = root();
    if std::env::var_os("CUEGATE_BENCH_AS_BUILT").is_none() {
        run(&root, &cargo(), &["build", "--quiet", "--release", "--package", "cuegate"], &[])?;
    }
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), PathBuf::from);
    let cuegate = target.join("release/cuegate");
    let place = tempfile::Builder::new()
        .prefix("cuegate-bench-")
        .tempdir_in(disk())
        .map_err(|error| format!("failed to create a folder for the benchmarks: {error}"))?;
    if only == Some(PEERS) {
        return peers::peers(&cuegate, &target, place.path());
    }
    let mut figures = Vec::new();
    if wanted("start-up") {
        start_up(&cuegate, &root, &mut figures)?;
    }
    if wanted("check") {
        check::check(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("steps") {
        steps::steps(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("records") {
        let build = ["build", "--quiet", "--release", "--package", "cuegate-journal", "--example", "append"];
        run(&root, &cargo(), &build, &[])?;
        steps::many_runs(&target, place.path(), &mut figures)?;
    }
    if wanted("replays") {
        steps::replays(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("forks") {
        forks::forks(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("snapshots") {
        snapshots(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("members") {
        members::members(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("watchers") {
        watchers::watchers(&cuegate, place.path(), &mut figures)?;
    }
    if wanted("turns") {
        turns(&cuegate, &root, place.path(), &mut figures)?;
    }
    println!("{:<58} {:>9}   {:>9}", "figure (median)", "got", "at most");
    for figure in &figures {
        let most = figure.most.map_or_else(String::new, |most| format!("{most:.3} {}", figure.unit));
        println!("{:<58} {:>9.3} {:<3} {most:>9}", figure.what, figure.got, figure.unit);
    }
    let over: Vec<&str> = figures
        .iter()
        .filter(|figure| figure.most.is_some_and(|most| figure.got > most))
        .map(|figure| figure.what.as_str())
        .collect();
    if over.is_empty() { Ok(()) } else { Err(format!("above the bound: {}", over.join("; "))) }
}

/// Writes a large definition into a folder and prints its path.
pub(crate) fn large(format: &str, size: &str, dir: &Path) -> Result<(), String> {
    use cuegate_testkit::large::{Flaw, piece, registry};
    let size: usize = size.parse().map_err(|_| format!("`{size}` is not a number of steps"))?;
    let made = match format {
        "registry" => registry(size, Flaw::None),
        "piece" => piece(size, Flaw::None),
        _ => return Err(format!("`{format}` is not a format; use registry or piece")),
    };
    let path = made.write(dir).map_err(|error| format!("failed to write a definition: {error}"))?;
    println!("{}", path.display());
    Ok(())
}

/// A folder on a disk, outside any repository: `/tmp` may be in memory, where syncing costs nothing.
fn disk() -> PathBuf {
    let durable = PathBuf::from("/var/tmp");
    if durable.is_dir() { durable } else { std::env::temp_dir() }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The median milliseconds of each command, from interleaved rounds: A B A B.
fn timed(commands: &[&dyn Fn() -> Command]) -> Result<Vec<f64>, String> {
    let mut times = vec![Vec::new(); commands.len()];
    for round in 0..=ROUNDS * 3 {
        for (command, times) in commands.iter().zip(&mut times) {
            let mut command = command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            command.status().map_err(|error| format!("failed to start {command:?}: {error}"))?;
            // The first round warms caches.
            if round > 0 {
                times.push(ms(begun.elapsed()));
            }
        }
    }
    Ok(times.into_iter().map(median).collect())
}

fn start_up(cuegate: &Path, root: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let example = root.join("examples/fix-failing-test/agent");
    let nothing = || Command::new("/bin/true");
    let version = || {
        let mut command = Command::new(cuegate);
        command.arg("--version");
        command
    };
    let check = || {
        let mut command = Command::new(cuegate);
        command.arg("check").arg(&example);
        command
    };
    let times = timed(&[&nothing, &version, &check])?;
    let floor = times[0];
    figures.push(Figure { what: "spawn of /bin/true".to_owned(), got: floor, unit: "ms", most: None });
    let mut add = |what: &str, got: f64, most: f64| {
        figures.push(Figure { what: what.to_owned(), got, unit: "ms", most: Some(most) });
    };
    add("cuegate --version, beyond that", times[1] - floor, 10.0);
    add("cuegate check of the example, beyond that", times[2] - floor, 25.0);
    Ok(())
}

/// The time that a worktree snapshot adds to a step.
fn snapshots(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    const EDITS: usize = 12;
    let mut times = Vec::new();
    for (name, git) in [("plain", false), ("git", true)] {
        let project = place.join(format!("tree-{name}"));
        demo::copy(&steps::long_project(place, EDITS)?, &project)?;
        for index in 0..2_000 {
            let file = project.join(format!("files/{}/{index}.txt", index % 50));
            fs::create_dir_all(file.parent().unwrap_or(place)).map_err(|error| error.to_string())?;
            fs::write(file, format!("file {index}\n")).map_err(|error| error.to_string())?;
        }
        let script = json!({"answers": [
            {"step": "work.it", "times": EDITS - 2, "writes": [{"path": "files/0/0.txt", "content": "edited\n"}],
                "output": {"action": "repeat"}},
            {"step": "work.it", "output": {"action": "handoff"}},
            {"step": "closure.it", "output": {"action": "closing"}}]});
        fs::write(project.join("script.json"), script.to_string()).map_err(|error| error.to_string())?;
        if git {
            for args in [
                &["init", "-q"][..],
                &["add", "-A"],
                &["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "b"],
            ] {
                run(&project, "git", args, &[])?;
            }
        }
        let mut rounds = Vec::new();
        for _ in 0..3 {
            rounds.push(steps::run_long(cuegate, &project, "synced")?.ms / EDITS as f64);
        }
        times.push(median(rounds));
    }
    figures.push(Figure {
        what: "a step with an edit by a process, outside of git".to_owned(),
        got: times[0],
        unit: "ms",
        most: None,
    });
    figures.push(Figure {
        what: "what its snapshot adds in git, 2,000 files".to_owned(),
        got: times[1] - times[0],
        unit: "ms",
        most: None,
    });
    Ok(())
}

/// The time that a run adds to a turn of a real agent. A test of the testkit measures it without a network.
fn turns(cuegate: &Path, root: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    agents::agents()?;
    let told = place.join("turns.json");
    let env = |path: &Path| path.display().to_string();
    let test = ["test", "--quiet", "--package", "cuegate-testkit", "--test", "turn", "--", "--ignored"];
    let set = [("CUEGATE_BENCH_PROGRAM", &*env(cuegate)), ("CUEGATE_BENCH_FIGURES", &*env(&told))];
    run(root, &cargo(), &test, &set)?;
    let told = fs::read(&told).map_err(|error| format!("the turns were not measured: {error}"))?;
    let told: Value = serde_json::from_slice(&told).map_err(|error| error.to_string())?;
    for name in ["claude", "codex"] {
        let time = |key: &str| told[name][key].as_f64().ok_or_else(|| format!("no `{key}` of {name}"));
        let (bare, whole) = (time("bare_ms")?, time("run_ms")?);
        let mut add = |what: String, got: f64, unit: &'static str, most: Option<f64>| {
            figures.push(Figure { what, got, unit, most });
        };
        add(format!("a bare turn of {name}, answered at once"), bare, "ms", None);
        add("a run of that one turn, beyond it".to_owned(), whole - bare, "ms", None);
        // Half of a turn that is answered at once: real ones take a hundred times as long.
        add(format!("the same, in turns of {name}"), (whole - bare) / bare, "×", Some(0.5));
    }
    Ok(())
}
