//! Measures the same minimal work in other programs that record their steps: one step that repeats, without an agent.
//! They come from their registries, into a folder of their own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use super::{median, ms, steps};
use crate::shell::run;

/// The packages that are compared with.
const LANGGRAPH: &str = "1.2.24";
const LANGGRAPH_SQLITE: &str = "3.1.2";
const DBOS: &str = "3.4.0";
const TAKT: &str = "0.39.0";
/// How often each figure is measured, all programs in turn; the median is reported.
const ROUNDS: usize = 5;
/// The runs at the same time.
const MANY: usize = 50;
/// Processes that only compute, for the loaded rounds: one for each core of a small machine.
const BUSY: usize = 2;

/// The number of steps of a shorter and a longer run: start and end are in both, and cancel out.
type Lengths = (usize, usize);

/// The processes that make so many runs of so many steps; the last argument is a name that no other call gets.
type Start = Box<dyn Fn(usize, usize, &str) -> Result<Vec<Command>, String>>;

/// A program that is measured.
struct Peer {
    name: String,
    alone: Lengths,
    /// Of each of [`MANY`] runs; `None` if it was not made for that on one machine.
    together: Option<Lengths>,
    start: Start,
    /// The exit code of success: TAKT's work ends at its limit of steps.
    exit_code: i32,
}

/// Milliseconds of the shorter and of the longer runs.
#[derive(Default)]
struct Times {
    short: Vec<f64>,
    long: Vec<f64>,
}

impl Times {
    /// Milliseconds a step. Medians first: the start of a program varies more than many steps take.
    fn per_step(self, (short, long): Lengths, runs: usize) -> f64 {
        (median(self.long) - median(self.short)) / ((long - short) * runs) as f64
    }
}

/// The times of one run and of [`MANY`] at the same time.
#[derive(Default)]
struct PeerTimes {
    alone: Times,
    together: Times,
}

/// Processes that end with the measurement.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Result<Busy, String> {
        let start = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        (0..BUSY).map(start).collect::<Result<_, _>>().map(Busy).map_err(|error| error.to_string())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Prints the table of the documentation.
pub(super) fn peers(cuegate: &Path, target: &Path, place: &Path) -> Result<(), String> {
    let peers = install(cuegate, &target.join("peers"), place)?;
    let mut floors = [Vec::new(), Vec::new()];
    let mut times: Vec<[PeerTimes; 2]> = peers.iter().map(|_| Default::default()).collect();
    for round in 0..ROUNDS {
        for (load, floors) in floors.iter_mut().enumerate() {
            let _busy = if load == 1 { Some(Busy::start()?) } else { None };
            floors.push(steps::write_floor(place)?);
            for (peer, times) in peers.iter().zip(&mut times) {
                let name = format!("{round}-{load}");
                let times = &mut times[load];
                time_runs(peer, peer.alone, 1, &format!("{name}-1"), &mut times.alone)?;
                if let Some(lengths) = peer.together {
                    time_runs(peer, lengths, MANY, &format!("{name}-{MANY}"), &mut times.together)?;
                }
            }
        }
        println!("round {} of {ROUNDS} done", round + 1);
    }
    println!("| one step | 1 run, idle | 1 run, loaded | {MANY} runs, idle | {MANY} runs, loaded |");
    println!("|---|---:|---:|---:|---:|");
    let [idle, loaded] = floors.map(median);
    println!("| 2 KiB into zeros + `fdatasync` | {idle:.2} ms | {loaded:.2} ms | – | – |");
    for (peer, [idle, loaded]) in peers.iter().zip(times) {
        let alone = |times: Times| format!("{:.2} ms", times.per_step(peer.alone, 1));
        let rate = |times: Times| match peer.together {
            Some(lengths) => format!("{:.0} /s", 1e3 / times.per_step(lengths, MANY)),
            None => "–".to_owned(),
        };
        let cells = [alone(idle.alone), alone(loaded.alone), rate(idle.together), rate(loaded.together)];
        println!("| {} | {} |", peer.name, cells.join(" | "));
    }
    Ok(())
}

/// Takes the times of a shorter and a longer run, or of so many.
fn time_runs(
    peer: &Peer,
    lengths: Lengths,
    runs: usize,
    name: &str,
    times: &mut Times,
) -> Result<(), String> {
    for (steps, times) in [(lengths.0, &mut times.short), (lengths.1, &mut times.long)] {
        let mut commands = (peer.start)(steps, runs, &format!("{name}-{steps}"))?;
        let begun = Instant::now();
        let start = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let children: Result<Vec<Child>, _> = commands.iter_mut().map(start).collect();
        for mut child in children.map_err(|error| format!("failed to start {}: {error}", peer.name))? {
            let status = child.wait().map_err(|error| error.to_string())?;
            if status.code() != Some(peer.exit_code) {
                return Err(format!("{} ended with {status}", peer.name));
            }
        }
        times.push(ms(begun.elapsed()));
    }
    Ok(())
}

/// Installs the packages and describes the programs.
fn install(cuegate: &Path, packages: &Path, place: &Path) -> Result<Vec<Peer>, String> {
    let failed = |error: std::io::Error| format!("failed to prepare the peers: {error}");
    let (python, takt) = (packages.join("python"), packages.join("takt"));
    fs::create_dir_all(&takt).map_err(failed)?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    run(packages, "python3", &["-m", "venv", &path(&python)], &[])?;
    let pinned = [
        format!("langgraph=={LANGGRAPH}"),
        format!("langgraph-checkpoint-sqlite=={LANGGRAPH_SQLITE}"),
        format!("dbos=={DBOS}"),
    ];
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let arguments: Vec<&str> = pip.into_iter().chain(pinned.iter().map(String::as_str)).collect();
    let python = path(&python.join("bin/python"));
    run(packages, &python, &arguments, &[])?;
    fs::write(takt.join("package.json"), "{}").map_err(failed)?;
    let package = format!("takt@{TAKT}");
    run(&takt, "npm", &["install", "--silent", "--ignore-scripts", &package], &[])?;
    fs::write(place.join("run_langgraph.py"), include_str!("run_langgraph.py")).map_err(failed)?;
    fs::write(place.join("run_dbos.py"), include_str!("run_dbos.py")).map_err(failed)?;
    Ok(vec![
        Peer {
            name: "Cuegate".to_owned(),
            alone: (1_000, 5_000),
            together: Some((200, 1_000)),
            start: start_cuegate(cuegate, place),
            exit_code: 0,
        },
        Peer {
            name: format!("LangGraph {LANGGRAPH}, SQLite"),
            alone: (500, 2_000),
            together: Some((20, 80)),
            start: start_script(&python, "run_langgraph.py", place),
            exit_code: 0,
        },
        Peer {
            name: format!("DBOS {DBOS}, SQLite"),
            alone: (200, 1_200),
            together: Some((10, 40)),
            start: start_script(&python, "run_dbos.py", place),
            exit_code: 0,
        },
        Peer {
            name: format!("TAKT {TAKT}, mock"),
            alone: (6, 16),
            together: None,
            start: start_takt(&takt, place),
            exit_code: 3,
        },
    ])
}

/// Each run in a project of its own.
fn start_cuegate(cuegate: &Path, place: &Path) -> Start {
    let (cuegate, place) = (cuegate.to_owned(), place.to_owned());
    Box::new(move |steps, runs, name| {
        let project = |index| {
            let folder = place.join(format!("cuegate-{name}-{index}"));
            let project = steps::long_project(&folder, steps)?;
            Ok(steps::long_run(&cuegate, &project, "synced"))
        };
        (0..runs).map(project).collect()
    })
}

/// All runs in one process.
fn start_script(python: &str, script: &'static str, place: &Path) -> Start {
    let (python, place) = (python.to_owned(), place.to_owned());
    Box::new(move |steps, runs, name| {
        let mut command = Command::new(&python);
        let database = place.join(format!("{script}-{name}.db"));
        command.arg(place.join(script)).args([&steps.to_string(), &runs.to_string()]).arg(database);
        // Nothing outside of this machine is told about it.
        command.envs([("LANGSMITH_TRACING", "false"), ("LANGCHAIN_TRACING_V2", "false")]);
        command.current_dir(&place).env("HOME", &place);
        Ok(vec![command])
    })
}

/// A workflow that ends at its limit of steps.
fn start_takt(package: &Path, place: &Path) -> Start {
    let (package, place) = (package.to_owned(), place.to_owned());
    Box::new(move |steps, _, name| {
        let project = place.join(format!("takt-{name}"));
        let workflow = format!(
            "name: loop\nmax_steps: {steps}\ninitial_step: work\nsteps:\n  - name: work\n    persona: coder\n    \
             instruction: Do one more thing.\n    rules:\n      - condition: when(true)\n        next: work\n"
        );
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap_or(&project))?;
            fs::write(path, text)
        };
        write(project.join(".takt/workflows/loop.yaml"), &workflow)
            .and_then(|()| write(project.join("settings/config.yaml"), "provider: mock\nlanguage: en\n"))
            .map_err(|error| format!("failed to write a workflow: {error}"))?;
        run(&project, "git", &["init", "--quiet", "."], &[])?;
        let mut command = Command::new("node");
        command
            .arg(package.join("node_modules/takt/bin/takt"))
            .args(["--pipeline", "--skip-git", "--quiet", "--workflow", "loop", "--task", "do it"])
            .args(["--provider", "mock"])
            .current_dir(&project)
            .env("HOME", &project)
            .env("TAKT_CONFIG_DIR", project.join("settings"))
            .env("TAKT_NO_TTY", "1");
        Ok(vec![command])
    })
}
