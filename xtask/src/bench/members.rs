//! Measures the members of a parallel movement.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::json;

use super::{Figure, ms};

/// Members of the movement.
const MEMBERS: usize = 20;
/// The work time of each member, in milliseconds.
const EACH_MS: usize = 200;
/// How often each width is measured; the median is reported.
const ROUNDS: usize = 3;

/// Measures whole runs of 20 members with widths 20 and 4, including start-up and journaling.
pub(super) fn members(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    // At width 4 the members alone take a second.
    for (width, most) in [(20, 1_000.0), (4, 1_500.0)] {
        let project = project(place, width)?;
        let times = (0..ROUNDS).map(|_| run(cuegate, &project)).collect::<Result<Vec<f64>, String>>()?;
        let what = format!("a run of {MEMBERS} members of {EACH_MS} ms, width {width}");
        figures.push(Figure { what, got: super::median(times), unit: "ms", most: Some(most) });
    }
    Ok(())
}

pub(super) fn project(place: &Path, width: usize) -> Result<PathBuf, String> {
    let project = place.join(format!("members-{width}"));
    let member = |number| {
        json!({"name": format!("member-{number}"), "edit": false, "instruction_template": "Look at it.",
            "rules": [{"condition": "approved"}, {"condition": "needs_fix"}]})
    };
    // JSON is valid YAML.
    let piece = json!({"name": "wide", "max_iterations": 2, "initial_movement": "all", "movements": [{
        "name": "all", "parallel": (1..=MEMBERS).map(member).collect::<Vec<_>>(),
        "rules": [{"condition": "all(\"approved\")", "next": "COMPLETE"},
            {"condition": "any(\"needs_fix\")", "next": "ABORT"}]}]});
    let script = json!({"answers": [{"delay_ms": EACH_MS, "times": 0,
        "output": {"outcome": "approved", "response": "looked"}}]});
    for (path, text) in [
        (".takt/pieces/wide.yaml", piece.to_string()),
        ("script.json", script.to_string()),
        ("cuegate.toml", format!("[run]\nwidth = {width}\n")),
    ] {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap_or(place)).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("failed to write `{}`: {error}", path.display()))?;
    }
    Ok(project)
}

/// The milliseconds of a whole run.
pub(super) fn run(cuegate: &Path, project: &Path) -> Result<f64, String> {
    let begun = Instant::now();
    let ran = Command::new(cuegate)
        .args(["run", ".takt/pieces/wide.yaml", "Look.", "--script", "script.json"])
        .current_dir(project)
        .env("GIT_CEILING_DIRECTORIES", project.parent().unwrap_or(project))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("failed to start `{}`: {error}", cuegate.display()))?;
    let took = ms(begun.elapsed());
    match ran.status.success() {
        true => Ok(took),
        false => {
            Err(format!("the wide run ended with {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr)))
        }
    }
}
