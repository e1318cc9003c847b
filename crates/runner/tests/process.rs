//! Tests of child processes under the shim: their output is kept and no process is left.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests make what agents leave")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::{SOON, eventually, script, shim, sleeping, tag};
use cuegate_runner::process::{
    Child, Exit, FinishedCommand, LINE_BYTES_MAX, Launch, ProcessError, adopt_finished_command, start_command,
};

/// A command folder and a working folder next to it.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Place { root }
    }
    fn dir(&self) -> std::path::PathBuf {
        self.root.path().join("spool")
    }
    fn work(&self) -> std::path::PathBuf {
        self.root.path().join("work")
    }
    async fn start(&self, launch: &Launch) -> Child {
        start_command(&shim(), &self.dir(), launch).await.unwrap()
    }
    async fn run(&self, text: &str) -> FinishedCommand {
        self.finish(&script(&self.work(), text)).await
    }
    async fn finish(&self, launch: &Launch) -> FinishedCommand {
        self.start(launch).await.wait().await.unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn output_and_exit_code_are_kept() {
    let place = Place::new();
    let finished = place.run("pwd; echo problem >&2; exit 3").await;
    let work = place.work().canonicalize().unwrap();
    assert_eq!(text(&finished.stdout).trim_end(), work.to_str().unwrap());
    assert_eq!(text(&finished.stderr), "problem\n");
    assert_eq!(finished.exit, Exit::Code(3));
    let FinishedCommand { timed_out, capped, cut, left, .. } = finished;
    assert_eq!((timed_out, capped, cut, left), (false, false, false, 0));
    assert_eq!(place.run("kill -11 $$").await.exit, Exit::Signal(11));
}

#[tokio::test]
async fn lines_arrive_while_the_child_runs() {
    let place = Place::new();
    let mut child = place
        .start(&script(&place.work(), "echo one; until [ -e go ]; do sleep 0.01; done; printf two"))
        .await;
    assert_eq!(child.line().await.as_deref(), Some(&b"one"[..]));
    fs::write(place.work().join("go"), "").unwrap();
    assert_eq!(child.line().await.as_deref(), Some(&b"two"[..]));
    assert_eq!(child.line().await, None);
    assert_eq!(child.line().await, None);
    assert_eq!(text(&child.wait().await.unwrap().stdout), "one\ntwo");
}

#[tokio::test]
async fn a_long_line_is_truncated_but_whole_in_the_spool() {
    let place = Place::new();
    let long = LINE_BYTES_MAX + 100_000;
    let mut child = place
        .start(&script(&place.work(), &format!("head -c {long} /dev/zero | tr '\\0' x; echo; echo next")))
        .await;
    assert_eq!(child.line().await.map(|line| line.len()), Some(LINE_BYTES_MAX));
    assert_eq!(child.line().await.as_deref(), Some(&b"next"[..]));
    assert_eq!(child.wait().await.unwrap().stdout.len(), long + "\nnext\n".len());
}

#[tokio::test]
async fn a_runner_that_reads_no_lines_does_not_delay_the_child() {
    let place = Place::new();
    let child = place.start(&script(&place.work(), "head -c 3000000 /dev/zero")).await;
    eventually("a complete spool", SOON, || place.dir().join("exit.json").exists());
    assert_eq!(child.wait().await.unwrap().stdout.len(), 3_000_000);
}

#[tokio::test]
async fn stdin_reaches_the_child() {
    let place = Place::new();
    let input: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut launch = Launch::new("cat", place.work());
    launch.stdin = input.clone();
    assert_eq!(place.finish(&launch).await.stdout, input);
    assert_eq!(place.finish(&Launch::new("cat", place.work())).await.stdout, b"");
}

#[tokio::test]
async fn a_large_unread_stdin_does_not_block() {
    let place = Place::new();
    let mut launch = Launch::new("true", place.work());
    launch.stdin = vec![b'x'; 5 << 20];
    assert_eq!(place.finish(&launch).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn a_child_that_closes_its_output_early_is_waited_for() {
    let place = Place::new();
    let finished = place.run("echo early; exec >&- 2>&-; sleep 0.05; exit 4").await;
    assert_eq!((text(&finished.stdout), finished.exit), ("early\n", Exit::Code(4)));
}

#[tokio::test]
async fn the_environment_reaches_the_child_but_no_file() {
    let place = Place::new();
    let mut launch = script(&place.work(), "test ${#API_KEY} = 7 && test -z \"${HOME+set}\" && echo ok");
    launch.env = vec![("API_KEY".into(), "sk-hush".into())];
    launch.env_remove = vec!["HOME".into()];
    assert_eq!(text(&place.finish(&launch).await.stdout), "ok\n");
    for entry in fs::read_dir(place.dir()).unwrap() {
        let path = entry.unwrap().path();
        let content = fs::read(&path).unwrap();
        assert!(!content.windows(4).any(|bytes| bytes == b"hush"), "{}", path.display());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_child_has_neither_lock_nor_lifeline_nor_terminal() {
    let place = Place::new();
    let finished = place
        .run("ls -l /proc/$$/fd >&2; readlink /proc/$$/fd/0; echo $$; cut -d ' ' -f 5-7 /proc/$$/stat")
        .await;
    let open = text(&finished.stderr);
    assert!(open.contains("pipe:") && !open.contains("spool/lock"), "{open}");
    let lines: Vec<&str> = text(&finished.stdout).lines().collect();
    assert_eq!(lines[0], place.dir().join("stdin").to_str().unwrap());
    assert_eq!(lines[2], format!("{0} {0} 0", lines[1]), "process group, session, terminal");
}

#[tokio::test]
async fn a_time_limit_ends_a_child_that_ignores_sigterm_and_its_children() {
    let (place, tag) = (Place::new(), tag());
    let mut launch = script(&place.work(), &format!("trap '' TERM; sleep {tag} & sleep {tag} & wait"));
    launch.timeout = Some(Duration::from_millis(200));
    let finished = place.finish(&launch).await;
    assert_eq!((finished.timed_out, finished.cut, finished.exit), (true, false, Exit::Signal(9)));
    assert!((500..10_000).contains(&finished.elapsed_ms), "{} ms: limit and grace", finished.elapsed_ms);
    assert_eq!(sleeping(&tag), 0);
    assert!(
        adopt_finished_command(&place.dir()).await.unwrap().unwrap().timed_out,
        "a time limit is an end like any other"
    );
}

#[tokio::test]
async fn too_much_output_ends_the_child() {
    let place = Place::new();
    let mut launch = script(&place.work(), "echo error >&2; yes");
    launch.output_max = 10_000;
    let finished = place.finish(&launch).await;
    assert_eq!((finished.capped, finished.exit, finished.stdout.len()), (true, Exit::Signal(9), 10_000));
    assert_eq!(text(&finished.stderr), "error\n");

    launch.args[1] = "head -c 10000 /dev/zero".into();
    let finished = place.finish(&launch).await;
    assert_eq!((finished.capped, finished.exit, finished.stdout.len()), (false, Exit::Code(0), 10_000));
}

#[tokio::test]
async fn cancel_gives_the_child_time_to_end_itself() {
    let place = Place::new();
    let mut child = place
        .start(&script(
            &place.work(),
            "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done",
        ))
        .await;
    assert_eq!(child.line().await.as_deref(), Some(&b"ready"[..]));
    let finished = child.cancel().await.unwrap();
    assert_eq!((finished.cut, finished.exit), (true, Exit::Code(5)));
    assert_eq!(text(&finished.stdout), "ready\nbye\n");
    assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), None, "a cut command has no result");
}

/// A script with three processes: one in the group, one in its own session, one in its own session without parents.
#[cfg(target_os = "linux")]
fn escapees(tag: &str) -> String {
    format!("setsid sleep {tag} & setsid sh -c 'sleep {tag} & exit' & sleep {tag}")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn cancel_leaves_no_process() {
    let (place, tag) = (Place::new(), tag());
    let child = place.start(&script(&place.work(), &escapees(&tag))).await;
    eventually("three processes", SOON, || sleeping(&tag) == 3);
    assert!(child.cancel().await.unwrap().cut);
    assert_eq!(sleeping(&tag), 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_normal_end_leaves_no_process() {
    let (place, tag) = (Place::new(), tag());
    let text = format!("{} & until [ -e go ]; do sleep 0.01; done", escapees(&tag));
    let child = place.start(&script(&place.work(), &text)).await;
    eventually("three processes", SOON, || sleeping(&tag) == 3);
    fs::write(place.work().join("go"), "").unwrap();
    let finished = child.wait().await.unwrap();
    assert_eq!((finished.exit, finished.cut, finished.left), (Exit::Code(0), false, 0));
    assert_eq!(sleeping(&tag), 0);
}

#[tokio::test]
async fn dropping_a_child_ends_it() {
    let (place, tag) = (Place::new(), tag());
    let child = place.start(&script(&place.work(), &format!("sleep {tag}"))).await;
    eventually("the child", SOON, || sleeping(&tag) == 1);
    drop(child);
    eventually("no child", SOON, || sleeping(&tag) == 0);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_an_exit() {
    let place = Place::new();
    let finished = place.finish(&Launch::new("no-such-program", place.work())).await;
    assert!(matches!(&finished.exit, Exit::NotFound(why) if why.contains("no-such-program")), "{finished:?}");
    assert!(adopt_finished_command(&place.dir()).await.unwrap().is_some());

    fs::write(place.work().join("data"), "no program").unwrap();
    let finished = place.finish(&Launch::new("./data", place.work())).await;
    assert!(matches!(&finished.exit, Exit::NotStarted(why) if why.contains("denied")), "{finished:?}");

    let finished = place.finish(&Launch::new("true", place.work().join("missing"))).await;
    assert!(matches!(&finished.exit, Exit::NotStarted(why) if why.contains("missing")), "{finished:?}");
}

#[tokio::test]
async fn a_shim_that_cannot_start_is_an_error() {
    let place = Place::new();
    let mut shim = shim();
    shim.exe = place.work().join("missing");
    let started = start_command(&shim, &place.dir(), &Launch::new("true", place.work())).await;
    assert!(matches!(&started, Err(ProcessError::Shim { .. })), "{started:?}");
}

#[tokio::test]
async fn a_second_start_waits_for_the_first() {
    let place = Place::new();
    let first = script(&place.work(), "until [ -e go ]; do sleep 0.01; done; echo first >> log");
    let first = place.start(&first).await;
    eventually("the first one's shim", SOON, || place.dir().join("group.json").exists());
    let (dir, launch) = (place.dir(), script(&place.work(), "echo second >> log"));
    let second =
        tokio::spawn(
            async move { start_command(&shim(), &dir, &launch).await.unwrap().wait().await.unwrap() },
        );
    // Gives the second start time to find the lock taken.
    tokio::task::yield_now().await;
    fs::write(place.work().join("go"), "").unwrap();
    assert_eq!(second.await.unwrap().exit, Exit::Code(0));
    assert_eq!(fs::read_to_string(place.work().join("log")).unwrap(), "first\nsecond\n");
    drop(first);
}

mod kills {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// Starts a runner process that runs the script `text`.
    fn runner(place: &Place, text: &str) -> std::process::Child {
        let mut command = Command::new(shim().exe);
        command
            .arg("run")
            .arg(place.dir())
            .args(["sh", "-c", text])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut runner = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(runner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        runner
    }

    fn kill(mut runner: std::process::Child) {
        runner.kill().unwrap();
        runner.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    fn kill_shim(dir: &std::path::Path) {
        // The child may run a moment before `group.json` is written.
        let mut group = serde_json::Value::Null;
        eventually("`group.json`", SOON, || {
            group = fs::read(dir.join("group.json"))
                .ok()
                .and_then(|file| serde_json::from_slice(&file).ok())
                .unwrap_or_default();
            group.is_object()
        });
        let pid = group["shim"]["pid"].as_i64().unwrap();
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn of_the_runner_leave_no_process() {
        let (place, tag) = (Place::new(), tag());
        let runner = runner(&place, &escapees(&tag));
        eventually("three processes", SOON, || sleeping(&tag) == 3);
        kill(runner);
        eventually("no process", Duration::from_secs(2), || sleeping(&tag) == 0);
        assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), None);
        assert_eq!(place.run("echo again").await.stdout, b"again\n");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn of_the_shim_leave_no_process_and_are_reported() {
        let (place, tag) = (Place::new(), tag());
        let child = place.start(&script(&place.work(), &format!("echo half; {}", escapees(&tag)))).await;
        eventually("three processes", SOON, || sleeping(&tag) == 3);
        kill_shim(&place.dir());
        let lost = child.wait().await.unwrap_err();
        assert!(
            matches!(&lost, ProcessError::Lost { status, .. } if status == "was killed by signal 9"),
            "{lost:?}"
        );
        assert!(lost.can_retry());
        assert_eq!(sleeping(&tag), 0);
        assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), None);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn of_the_shim_kill_its_child_even_without_a_runner() {
        let (place, tag) = (Place::new(), tag());
        let runner = runner(&place, &format!("exec sleep {tag}"));
        eventually("the child", SOON, || sleeping(&tag) == 1);
        kill_process(Pid::from_child(&runner), Signal::STOP).unwrap();
        kill_shim(&place.dir());
        eventually("no child", SOON, || sleeping(&tag) == 0);
        kill(runner);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn of_runner_and_shim_are_cleaned_up_by_the_next_start() {
        let (place, tag) = (Place::new(), tag());
        let runner = runner(&place, &escapees(&tag));
        eventually("three processes", SOON, || sleeping(&tag) == 3);
        kill_process(Pid::from_child(&runner), Signal::STOP).unwrap();
        kill_shim(&place.dir());
        kill(runner);
        assert!(sleeping(&tag) > 0, "nobody is there to end those who left the group");
        let child = place.start(&Launch::new("true", place.work())).await;
        assert_eq!(sleeping(&tag), 0);
        assert_eq!(child.wait().await.unwrap().exit, Exit::Code(0));
    }

    #[tokio::test]
    async fn of_a_runner_after_its_child_ended_lose_no_output() {
        let place = Place::new();
        let go = place.work().join("go");
        let text_of_child = format!("until [ -e {} ]; do sleep 0.01; done; echo paid; exit 7", go.display());
        let runner = runner(&place, &text_of_child);
        // The stopped runner cannot read the output; the child ends without it.
        kill_process(Pid::from_child(&runner), Signal::STOP).unwrap();
        fs::write(go, "").unwrap();
        eventually("a complete spool", SOON, || place.dir().join("exit.json").exists());
        kill(runner);
        let adopted = adopt_finished_command(&place.dir()).await.unwrap().unwrap();
        assert_eq!((text(&adopted.stdout), adopted.exit), ("paid\n", Exit::Code(7)));
    }
}

#[tokio::test]
async fn only_a_complete_spool_is_adopted() {
    let place = Place::new();
    assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), None, "no folder at all");
    let finished = place.run("echo out; echo err >&2").await;
    let whole = |name: &str| fs::read(place.dir().join(name)).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(place.dir().join(name), bytes).unwrap();
    assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), Some(finished.clone()));

    let exit = whole("exit.json");
    let foreign_start = String::from_utf8(exit.clone()).unwrap().replace("\"start\":\"", "\"start\":\"x");
    let newer = String::from_utf8(exit.clone()).unwrap().replace("\"version\":1", "\"version\":2");
    for (name, bytes) in [
        ("exit.json", &exit[..exit.len() - 1]),
        ("exit.json", b""),
        ("exit.json", foreign_start.as_bytes()),
        ("exit.json", newer.as_bytes()),
        ("spec.json", b"{}"),
        ("out", b"ou"),
        ("err", b"err\nmore"),
    ] {
        let before = whole(name);
        assert_ne!(before, bytes);
        write(name, bytes);
        assert_eq!(
            adopt_finished_command(&place.dir()).await.unwrap(),
            None,
            "{name}: {}",
            String::from_utf8_lossy(bytes)
        );
        write(name, &before);
    }
    assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), Some(finished));
    fs::remove_file(place.dir().join("exit.json")).unwrap();
    assert_eq!(adopt_finished_command(&place.dir()).await.unwrap(), None);
}
