//! Measures the steps of a run: what one takes beside the least that a durable record can take, how that grows with the
//! length of the run, and what many runs at the same time take from each other.

use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Figure, median, ms};

/// Steps of the shorter and of the longer run: start and end are in both, and cancel out.
const SHORT: usize = 1_000;
const LONG: usize = 3_000;
/// Steps of a run that is long for its memory and its processor time.
const LONGEST: usize = 32_000;
/// Decisions of a run that is replayed.
const REPLAYED: usize = 10_000;
/// How often each figure is measured; the median is reported.
const ROUNDS: usize = 5;
/// The size of a record, and how many are written for the floor.
const RECORD: usize = 2 << 10;
const RECORDS: usize = 1_000;
/// Processes with a run each, and runs in one process.
const PROCESSES: usize = 20;
const THREADS: usize = 50;

/// A finished run of the program.
pub(super) struct Measured {
    /// How long it took.
    pub(super) ms: f64,
    /// Its processor time outside of the system, in milliseconds.
    user_ms: f64,
    /// Its memory at most.
    peak_mib: f64,
}

/// A project whose agent repeats one step until it closes.
pub(super) fn long_project(place: &Path, steps: usize) -> Result<PathBuf, String> {
    let project = place.join(format!("steps-{steps}"));
    let agent = project.join(".agent/long");
    let write = |path: PathBuf, text: String| {
        fs::create_dir_all(path.parent().unwrap_or(place)).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("failed to write `{}`: {error}", path.display()))
    };
    let step = |id: &str, kind: &str, intents: [&str; 2], transitions: Value| {
        json!({"stepId": id, "name": id, "stepKind": kind, "c2": kind, "c3": "it", "edition": "default",
            "outputSchemaRef": {"file": "s.json", "schema": id},
            "structuredGate": {"allowedIntents": intents, "intentField": "action",
                "intentSchemaRef": "#/properties/action"},
            "transitions": transitions})
    };
    let registry = json!({"agentId": "long", "version": "1.0.0", "c1": "steps", "entryStep": "work.it", "steps": {
        "work.it": step("work.it", "work", ["repeat", "handoff"],
            json!({"repeat": {"target": "work.it"}, "handoff": {"target": "closure.it"}})),
        "closure.it": step("closure.it", "closure", ["closing", "repeat"],
            json!({"closing": {"target": null}, "repeat": {"target": "closure.it"}})),
    }});
    let schema = |intents: [&str; 2]| {
        json!({"type": "object", "required": ["action"],
            "properties": {"action": {"enum": intents}, "summary": {"type": "string"}}})
    };
    let schemas = json!({"definitions": {
        "work.it": schema(["repeat", "handoff"]), "closure.it": schema(["closing", "repeat"])}});
    let about = json!({"version": "1.0.0", "name": "long", "displayName": "Long", "description": "Many steps",
        "runner": {"flow": {"systemPromptPath": "prompts/system.md", "prompts": {"registry": "steps_registry.json",
            "fallbackDir": "prompts"}},
        "verdict": {"type": "detect:graph", "config": {"maxIterations": steps + 10}},
        "boundaries": {"allowedTools": ["*"], "permissionMode": "acceptEdits"}}});
    let script = json!({"answers": [
        {"step": "work.it", "times": steps - 2, "output": {"action": "repeat", "summary": "one more"}},
        {"step": "work.it", "output": {"action": "handoff"}},
        {"step": "closure.it", "output": {"action": "closing"}}]});
    write(agent.join("agent.json"), about.to_string())?;
    write(agent.join("steps_registry.json"), registry.to_string())?;
    write(agent.join("schemas/s.json"), schemas.to_string())?;
    write(agent.join("prompts/system.md"), "You work.\n".to_owned())?;
    write(agent.join("prompts/steps/work/it/f_default.md"), "Do one more thing.\n".repeat(20))?;
    write(agent.join("prompts/steps/closure/it/f_default.md"), "Close.\n".to_owned())?;
    write(project.join("script.json"), script.to_string())?;
    Ok(project)
}

pub(super) fn long_run(cuegate: &Path, project: &Path, durability: &str) -> Command {
    let mut command = Command::new(cuegate);
    command
        .args(["run", "long", "--script", "script.json", "--durability", durability])
        .current_dir(project)
        .env("GIT_CEILING_DIRECTORIES", project.parent().unwrap_or(project))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

pub(super) fn run_long(cuegate: &Path, project: &Path, durability: &str) -> Result<Measured, String> {
    let begun = Instant::now();
    let mut child = start(&mut long_run(cuegate, project, durability))?;
    let (mut peak_mib, mut user_ms) = (0.0_f64, 0.0_f64);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        peak_mib = peak_mib.max(read_peak_mib(child.id()));
        user_ms = user_ms.max(read_user_ms(child.id()));
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = ms(begun.elapsed());
    match status.success() {
        true => Ok(Measured { ms: took, user_ms, peak_mib }),
        false => Err(format!("the long run ended with {status}")),
    }
}

fn start(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| format!("failed to start {command:?}: {error}"))
}

/// The peak memory of a process so far, in MiB; 0 if the system does not report it.
pub(super) fn read_peak_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// The user time of a process so far, in steps of ten milliseconds; 0 if the system does not report it.
fn read_user_ms(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.nth(11).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0) * 10.0
}

/// Milliseconds for a record into a file that is full of zeros, and `fdatasync`.
pub(super) fn write_floor(place: &Path) -> Result<f64, String> {
    let failed = |error: std::io::Error| error.to_string();
    let path = place.join("floor");
    fs::write(&path, vec![0; RECORD * RECORDS]).map_err(failed)?;
    let file = fs::OpenOptions::new().write(true).open(&path).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let record = [7_u8; RECORD];
    let begun = Instant::now();
    for index in 0..RECORDS {
        file.write_all_at(&record, (index * RECORD) as u64)
            .and_then(|()| file.sync_data())
            .map_err(failed)?;
    }
    Ok(ms(begun.elapsed()) / RECORDS as f64)
}

pub(super) fn steps(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let (short, whole, longest) =
        (long_project(place, SHORT)?, long_project(place, LONG)?, long_project(place, LONGEST)?);
    let (mut synced, mut relaxed, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = write_floor(place)?;
        for (durability, per_step) in [("synced", &mut synced), ("relaxed", &mut relaxed)] {
            let base = run_long(cuegate, &short, durability)?;
            let took = run_long(cuegate, &whole, durability)?;
            per_step.push((took.ms - base.ms) / (LONG - SHORT) as f64);
        }
        let floor = f64::midpoint(before, write_floor(place)?);
        ratios.push(synced.last().copied().unwrap_or_default() / floor);
        floors.push(floor);
    }
    let (mut growth, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (short, longest) =
            (run_long(cuegate, &whole, "relaxed")?, run_long(cuegate, &longest, "relaxed")?);
        growth.push((longest.user_ms / LONGEST as f64) / (short.user_ms / LONG as f64));
        peaks.push(longest.peak_mib);
    }
    let mut add = |what: String, got: f64, unit: &'static str, most: Option<f64>| {
        figures.push(Figure { what, got, unit, most });
    };
    add("a record of 2 KiB into zeros + fdatasync (mean)".to_owned(), median(floors), "ms", None);
    add("a step, synced".to_owned(), median(synced), "ms", None);
    add("the same, in such records".to_owned(), median(ratios), "×", Some(3.0));
    add("a step, relaxed".to_owned(), median(relaxed), "ms", Some(0.1));
    add(format!("user time a step at {LONGEST}, in that at {LONG}"), median(growth), "×", Some(1.1));
    add(format!("memory of a run of {LONGEST} steps"), median(peaks), "MiB", Some(65.0));
    Ok(())
}

/// How long a run of [`REPLAYED`] decisions takes to be decided again, and through its own workflow.
pub(super) fn replays(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let project = long_project(&place.join("replayed"), REPLAYED)?;
    run_long(cuegate, &project, "relaxed")?;
    for (what, arguments) in
        [("as recorded", &["replay"][..]), ("through a workflow", &["replay", "--flow", "long"])]
    {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let mut command = Command::new(cuegate);
            command.args(arguments).current_dir(&project);
            command.env("GIT_CEILING_DIRECTORIES", project.parent().unwrap_or(&project));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            let status = start(&mut command)?.wait().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err(format!("`cuegate {}` ended with {status}", arguments.join(" ")));
            }
            times.push(ms(begun.elapsed()));
        }
        let what = format!("replay of {REPLAYED} decisions, {what}");
        figures.push(Figure { what, got: median(times), unit: "ms", most: Some(1_000.0) });
    }
    Ok(())
}

/// Records of many runs at the same time: in processes of their own, and in one process. Steps of the program would measure
/// git, which looks at the working tree after each.
pub(super) fn many_runs(target: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let append = target.join("release/examples/append");
    let time = |name: &str, processes: usize, runs: usize, records: usize| {
        let dir = place.join(name);
        let begun = Instant::now();
        let children: Vec<Child> = (0..processes)
            .map(|index| {
                let (runs, records) = (runs.to_string(), records.to_string());
                let mut command = Command::new(&append);
                start(command.arg(&dir).args([&format!("{name}-{index}"), &runs, &records]))
            })
            .collect::<Result<_, String>>()?;
        for mut child in children {
            let status = child.wait().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err(format!("writing records ended with {status}"));
            }
        }
        Ok::<f64, String>(ms(begun.elapsed()) * 1e3 / (processes * runs * records) as f64)
    };
    let (mut processes, mut threads, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        alone.push(time(&format!("alone-{round}"), 1, 1, 3_000)?);
        processes.push(time(&format!("processes-{round}"), PROCESSES, 1, 1_500)?);
        threads.push(time(&format!("threads-{round}"), 1, THREADS, 600)?);
    }
    let mut add = |what: String, got: f64, most: f64| {
        figures.push(Figure { what, got, unit: "ms", most: Some(most) });
    };
    add("1,000 records of one run".to_owned(), median(alone), 1_000.0);
    add(format!("1,000 records of {PROCESSES} runs, each in a process"), median(processes), 1_000.0 / 3.0);
    add(format!("1,000 records of {THREADS} runs in one process"), median(threads), 100.0);
    Ok(())
}
