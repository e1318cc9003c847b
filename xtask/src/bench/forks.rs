//! How long a fork takes, compared with git alone making a worktree of the same files.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use super::{Figure, ROUNDS, median, ms};

/// The files of the project.
const FILES: usize = 10_000;
const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: more }
  - name: more
    edit: false
    instruction: More.
    rules:
      - { condition: Enough, next: COMPLETE }
";
const SCRIPT: &str = r#"{"answers": [
  {"step": "work", "output": {"outcome": "Done", "response": "One."}, "writes": [{"path": "changed.txt", "content": "1"}]},
  {"step": "more", "output": {"outcome": "Enough", "response": "All."}}
]}"#;

pub(super) fn forks(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let project = place.join("forked");
    let write = |path: &str, text: &str| {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap_or(place)).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| format!("failed to write `{}`: {error}", path.display()))
    };
    for index in 0..FILES {
        write(&format!("src/{}/{index}.txt", index % 100), &format!("file {index}\n"))?;
    }
    write(".takt/workflows/it.yaml", WORKFLOW)?;
    write("script.json", SCRIPT)?;
    let state = place.join("state");
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&project).env("XDG_STATE_HOME", &state);
        command.env("GIT_CEILING_DIRECTORIES", place);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        let status = command.status().map_err(|error| format!("failed to start {command:?}: {error}"))?;
        match status.success() {
            true => Ok(ms(begun.elapsed())),
            false => Err(format!("`{} {}` ended with {status}", program.display(), arguments.join(" "))),
        }
    };
    let git = Path::new("git");
    run(git, &["init", "--quiet"])?;
    run(git, &["add", "--all"])?;
    let who = ["-c", "user.name=b", "-c", "user.email=b@localhost"];
    run(git, &[&who[..], &["commit", "--quiet", "--message", "b"]].concat())?;
    run(cuegate, &["run", "it", "Bench", "--script", "script.json", "--no-sandbox"])?;
    let (mut forks, mut beyond) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let fork = run(cuegate, &["fork", "last", "--before", "more", "--no-continue"])?;
        let at = place.join(format!("by-git-{round}")).display().to_string();
        let alone = run(git, &["worktree", "add", "--quiet", "-b", &format!("by-git-{round}"), &at])?;
        forks.push(fork);
        beyond.push(fork - alone);
    }
    let mut add = |what: &str, got: f64, most: Option<f64>| {
        figures.push(Figure { what: format!("{what}, {FILES} files"), got, unit: "ms", most });
    };
    add("a fork", median(forks), None);
    add("the same, beyond `git worktree add`", median(beyond), Some(150.0));
    Ok(())
}
