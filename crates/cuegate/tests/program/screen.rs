//! `watch` in a real terminal emulator.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{CUEGATE, Project, at_work_in, until},
};

/// A terminal of its own, with a shell in the project.
struct Terminal {
    socket: String,
    _folder: tempfile::TempDir,
}

impl Terminal {
    /// `None`, with a line that says so, where no tmux is installed.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn open(project: &Project, columns: u16, rows: u16) -> Option<Terminal> {
        if !Command::new("tmux").arg("-V").output().is_ok_and(|ran| ran.status.success()) {
            eprintln!("skipped: there is no terminal, as tmux is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("tmux").display().to_string();
        let terminal = Terminal { socket, _folder: folder };
        let usual = project.command(&[]);
        let mut command = Command::new("tmux");
        command
            .args([
                "-S",
                &terminal.socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                &columns.to_string(),
            ])
            .args(["-y", &rows.to_string(), "env PS1='ready> ' sh"])
            .current_dir(project.path())
            .envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("LANG", "C.UTF-8")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX");
        assert!(command.output().unwrap().status.success());
        terminal.shows("ready>");
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let ran = Command::new("tmux").args(["-S", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen has this.
    fn shows(&self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(Instant::now() < deadline, "the screen does not show {text}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn clear(&self) {
        self.tmux(&["send-keys", "-l", "clear"]);
        self.keys(&["Enter"]);
        until("the screen is empty", || self.screen().trim() == "ready>");
    }

    fn cuegate(&self, args: &str) {
        self.tmux(&["send-keys", "-l", &format!("{CUEGATE} {args}")]);
        self.keys(&["Enter"]);
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// The terminal is as it was: no alternate screen, the cursor is visible, lines are echoed.
    fn is_clean(&self) {
        until("the alternate screen is left", || {
            self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim() == "0 1"
        });
        until("the shell is back", || self.screen().trim_end().ends_with("ready>"));
        self.tmux(&["send-keys", "-l", "stty -a | grep -c ' echo '; echo 'still here'"]);
        self.keys(&["Enter"]);
        let screen = self.shows("\nstill here");
        assert!(screen.contains("\n1\nstill here"), "{screen}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// An agent that works until the file `script-go` exists, with names of wide characters.
fn works() -> Project {
    let wait = "until test -e script-go; do sleep 0.02; done";
    let project = Project::empty();
    small().write(&project);
    project.write(".gitignore", "/script*\n");
    project.init();
    project.script(
        "script.json",
        &json!([
            says_with(
                "work",
                "repeat",
                json!({"writes": [{"path": "計画.txt", "content": "実装"}], "runs": [wait]})
            ),
            says_with(
                "work",
                "handoff",
                json!({"usage": {"input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.25}})
            ),
            says("close", "closing"),
        ]),
    );
    project
}

#[test]
fn a_run_is_watched_resized_and_left() {
    let project = works();
    let Some(terminal) = Terminal::open(&project, 120, 24) else { return };
    let job = project.job(&begin(&["--budget-usd", "2"]));
    until("the run has begun", || project.path().join(".cuegate/runs").exists() && project.runs() == 1);
    terminal.cuegate("watch last");
    for text in ["write 計画.txt", "▶ running", "of $2.00 (+ $0.40 reserved)"] {
        terminal.shows(text);
    }
    for (columns, rows) in [(60, 16), (200, 60), (30, 8), (80, 24)] {
        terminal.resize(columns, rows);
        let wanted = if columns < 40 { "too small" } else { "▶ work (work)" };
        let screen = terminal.shows(wanted);
        assert!(screen.lines().count() <= usize::from(rows), "{screen}");
    }
    terminal.keys(&["?"]);
    terminal.shows("leave; runs go on");
    terminal.keys(&["x"]);
    project.write("script-go", "");
    terminal.shows("✓ completed");
    assert_eq!(job.end().code, 0);
    for text in ["Path: 3 of 3", "✓ work #2", "$0.25 of $2.00"] {
        terminal.shows(text);
    }
    terminal.keys(&["k", "k"]);
    terminal.shows("Path: 1 of 3");
    terminal.keys(&["Enter"]);
    terminal.shows("── prompt of work (work)");
    terminal.keys(&["Escape"]);
    // A terminal sends Alt and a key as Escape and the key: they must not arrive together.
    terminal.shows("Path: 1 of 3");
    terminal.keys(&["v"]);
    terminal.shows("+実装");
    terminal.keys(&["Escape"]);
    terminal.shows("Path: 1 of 3");
    terminal.keys(&["R"]);
    terminal.shows("# agent: completed");
    terminal.keys(&["q", "q"]);
    // The summary is on the normal screen.
    terminal.shows("done: ");
    terminal.shows("cuegate report");
    terminal.is_clean();
}

/// A question that is longer than a small terminal.
const QUESTION: &str = "Which colour? 何色? The internationalisation of telecommunications infrastructures, their \
    interoperability requirements, the characteristics of heterogeneous environments and the compartmentalisation of \
    responsibilities allow several interpretations, of which none contradicts the specification: transparentness, \
    monochromaticity, or the counterrevolutionary polychromaticity of the predecessors.";

#[test]
fn a_question_is_answered_and_runs_are_paused_resumed_and_cancelled() {
    let registry = small();
    let project = registry.project(json!([
        {"step": "work", "asks_user": QUESTION, "output": {"next_action": {"action": "handoff"}}},
        says_with("close", "closing", json!({"runs": ["until test -e script-go; do sleep 0.02; done"]})),
    ]));
    assert_eq!(project.run(&begin(&[])).code, 3);
    let Some(terminal) = Terminal::open(&project, 60, 16) else { return };
    terminal.cuegate("watch");
    terminal.shows("1 of 1 runs (all), 1 waiting");
    terminal.shows("‖ asks you");
    terminal.keys(&["f"]);
    terminal.shows("No such runs");
    terminal.keys(&["f", "Enter"]);
    terminal.shows("Which colour? 何色?");
    terminal.keys(&["a"]);
    terminal.tmux(&["send-keys", "-l", "Blueü"]);
    terminal.keys(&["BSpace"]);
    terminal.shows("Blue");
    terminal.keys(&["Enter"]);
    terminal.shows("answering … done");
    until("the answer is taken", || {
        project.events("person_answered").first().is_some_and(|event| event["text"] == "Blue")
    });
    terminal.shows("▶ close (work)");
    terminal.keys(&["p"]);
    terminal.shows("‖ interrupted");
    until("its process has ended", || {
        project.run(&["runs", "--json"]).json()["runs"][0]["state"] == "suspended"
    });
    terminal.keys(&["r"]);
    terminal.shows("▶ close (work)");
    terminal.keys(&["c"]);
    terminal.shows("Cancel this run?");
    terminal.keys(&["n"]);
    terminal.keys(&["c", "y"]);
    terminal.shows("⊘ cancelled");
    terminal.keys(&["Escape"]);
    terminal.shows("No such runs");
    terminal.keys(&["f"]);
    terminal.shows("⊘ cancelled");
    terminal.keys(&["C-c"]);
    terminal.is_clean();
}

/// A failed run is retried, and its unproved or proved work is taken and taken back, with a question before each change of
/// files.
#[test]
fn a_run_is_retried_applied_and_undone() {
    let registry = small().validator("test -e ../../../ok", json!({"maxAttempts": 0}));
    let project = registry.project(json!([
        says_with("work", "handoff", json!({"runs": ["touch made"]})),
        says("close", "closing"),
    ]));
    assert_eq!(project.run(&begin(&["--worktree"])).code, 1);
    project.write("ok", "");
    let Some(terminal) = Terminal::open(&project, 80, 20) else { return };
    terminal.cuegate("watch last");
    terminal.shows("t retry");
    terminal.keys(&["t"]);
    terminal.shows("proved: `test -e ../../../ok` passes");
    terminal.shows("m apply");
    terminal.keys(&["m"]);
    terminal.shows("Merge the changes of this run");
    terminal.keys(&["n"]);
    terminal.keys(&["u"]);
    terminal.shows("there is nothing to undo here");
    terminal.keys(&["m", "y"]);
    terminal.shows("applying … done");
    assert!(project.path().join("made").exists());
    terminal.keys(&["C-c"]);
    terminal.is_clean();
}

/// `run --watch` starts a run that goes on when the screen is left, and whose end is its exit code.
#[test]
fn a_run_is_started_and_watched() {
    let project = works();
    let Some(terminal) = Terminal::open(&project, 100, 24) else { return };
    terminal.cuegate("run agent --script script.json --watch; echo code $?");
    terminal.shows("write 計画.txt");
    terminal.keys(&["q"]);
    terminal.shows("goes on; `cuegate watch");
    terminal.cuegate("watch last; echo code $?");
    terminal.shows("▶ work (work)");
    project.write("script-go", "");
    terminal.shows("✓ completed");
    terminal.keys(&["q"]);
    terminal.shows("done: ");
    terminal.shows("code 0");
    // A refused run is not watched.
    terminal.cuegate("run no-such-definition --watch; echo code $?");
    terminal.shows("code 2");
    terminal.is_clean();
}

/// A signal, a killed run and a panic leave the terminal clean.
#[test]
fn every_way_out_leaves_the_terminal_clean() {
    let project = works();
    let Some(terminal) = Terminal::open(&project, 100, 24) else { return };
    let job = project.job(&begin(&[]));
    until("the run has begun", || project.path().join(".cuegate/runs").exists() && project.runs() == 1);
    let watcher = || {
        let all = at_work_in(project.path());
        all.into_iter().find(|process| process.words.contains(" watch last")).map(|process| process.pid)
    };
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        terminal.cuegate("watch last");
        terminal.shows("▶ work (work)");
        kill_process(Pid::from_raw(watcher().unwrap()).unwrap(), signal).unwrap();
        terminal.is_clean();
        terminal.clear();
    }
    // The run's process is killed while it is watched.
    terminal.cuegate("watch last");
    terminal.shows("▶ work (work)");
    job.signal(Signal::KILL);
    terminal.shows("† running, but its process died");
    terminal.keys(&["q"]);
    terminal.is_clean();
    terminal.clear();
    // A panic: its message is on the normal screen.
    let panics = Path::new(CUEGATE).with_file_name("examples").join("panics");
    terminal.tmux(&["send-keys", "-l", &panics.display().to_string()]);
    terminal.keys(&["Enter"]);
    terminal.shows("† running, but its process died");
    terminal.keys(&["v"]);
    terminal.shows("there are no changes");
    terminal.is_clean();
}

#[test]
fn watching_needs_a_terminal() {
    let project = works();
    let ran = project.run(&["watch"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`cuegate attach`"), "{}", ran.stderr);
    assert!(!Path::new(&project.path().join(".cuegate")).exists());
}
