//! The restrictions of the sandbox, with real bubblewrap.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    support::{Project, Ran, until},
};

/// Whether bubblewrap works here. A test that needs it is skipped otherwise, with a note.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn stands() -> bool {
    let args = "--unshare-net --unshare-pid --ro-bind / / --dev /dev --proc /proc true";
    let tried = Command::new("bwrap").args(args.split(' ')).output();
    let stands = tried.is_ok_and(|tried| tried.status.success());
    if !stands {
        eprintln!("skipped: the sandbox does not work here; install bubblewrap, see `cuegate doctor`");
    }
    stands
}

/// The small agent inside a sandbox.
fn behind(sandbox: Value) -> Registry {
    small().runner(json!({"boundaries": {"sandbox": sandbox}}))
}

/// A project whose agent runs these commands behind a sandbox, and is done. A command is told by its name: `NAME yes` or
/// `NAME no` stands in `said.txt` then.
fn does(registry: &Registry, commands: &[(&str, &str)]) -> Project {
    let runs: Vec<String> = commands
        .iter()
        .map(|(name, command)| {
            format!("if ( {command} ) >> heard.txt 2>&1; then echo {name} yes; else echo {name} no; fi >> said.txt")
        })
        .collect();
    registry.project(json!([says_with("work", "handoff", json!({"runs": runs})), says("close", "closing")]))
}

fn done(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// A folder outside of the project, and outside of what a room has for itself, where the tests themselves do not lie
/// in there.
fn outside() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn only_the_worktree_and_allowed_paths_are_writable() {
    if !stands() {
        return;
    }
    let (closed, open) = (outside(), outside());
    let registry = behind(json!({"filesystem": {"allowedPaths": [text(open.path()), "~/no-such-folder"]}}));
    let to = |dir: &tempfile::TempDir| format!("echo x > {}/x", dir.path().display());
    let project = does(
        &registry,
        &[
            ("tree", "echo x > x.txt"),
            ("closed", &to(&closed)),
            ("open", &to(&open)),
            ("temporary", "echo x > /tmp/x && cat /tmp/x"),
            ("state", "ls .cuegate/runs/*/log || mv .cuegate other || echo x > .cuegate/x"),
            ("hook", "echo x > .git/hooks/post-commit"),
            ("settings", "git config core.fsmonitor evil || echo x >> .git/config"),
            ("replaced", "mv .git other"),
            ("commit", "git add x.txt && git -c core.fsmonitor=false commit -qm x"),
            ("machine", "test -w /proc/sys/kernel/core_pattern"),
            ("elsewhere", "echo /evil > .git/commondir && rm -f .git/commondir"),
            ("processes", &format!("kill -0 {}", std::process::id())),
        ],
    );
    let ran = project.go(&[]);
    done(&ran);
    let said = "tree yes\nclosed no\nopen yes\ntemporary yes\nstate no\nhook yes\nsettings yes\nreplaced no\ncommit yes\n\
                machine no\nelsewhere yes\nprocesses no\n";
    assert_eq!(project.read("said.txt"), said, "{}", project.read("heard.txt"));
    assert!(!closed.path().join("x").exists() && open.path().join("x").exists());
    // The agent's git is its own.
    assert!(!project.path().join(".git/hooks/post-commit").exists());
    assert!(!project.read(".git/config").contains("evil"));
    assert_eq!(project.git(&["log", "--format=%s"]), "x\nbegin\n");
    let held = format!("; a sandbox (bubblewrap {}", "");
    assert!(ran.stderr.contains(&held), "{}", ran.stderr);
    assert!(ran.stderr.contains("`~/no-such-folder` in `allowedPaths` does not exist"), "{}", ran.stderr);
}

/// What an agent leaves in the repository to lead git elsewhere is gone before git is asked again.
#[test]
fn agents_cannot_redirect_git() {
    if !stands() {
        return;
    }
    let lead = "mkdir evil && git init -q --bare evil/e && git -C evil/e config core.fsmonitor 'touch ../caught' \
                && echo ../evil/e > .git/commondir";
    let project = does(&behind(json!({})), &[("lead", lead)]);
    done(&project.go(&[]));
    assert_eq!(project.read("said.txt"), "lead yes\n", "{}", project.read("heard.txt"));
    assert!(!project.path().join(".git/commondir").exists());
    assert_eq!(project.git(&["rev-parse", "--git-common-dir"]), ".git\n");
    // Nor when a run was killed before that.
    let project = behind(json!({})).project(json!([says("work", "handoff")]));
    assert_eq!(project.go(&[]).code, 4, "its script is used up");
    project.write(".git/commondir", "../evil\n");
    project.script("script2.json", &json!([says("close", "closing")]));
    done(&project.run(&["resume", "last", "--script", "script2.json"]));
    assert!(!project.path().join(".git/commondir").exists());
}

/// A link left by one ask gives the next ask no further access.
#[test]
fn agents_cannot_redirect_allowed_paths() {
    if !stands() {
        return;
    }
    let closed = outside();
    let lead = format!("ln -s {0} out; ln -s {0} .git/modules", closed.path().display());
    let write = "echo x > out/x; echo x > .git/modules/x";
    let project = behind(json!({"filesystem": {"allowedPaths": ["out"]}})).project(json!([
        says_with("work", "handoff", json!({"runs": [lead]})),
        says_with("close", "closing", json!({"runs": [write]})),
    ]));
    done(&project.go(&[]));
    assert!(project.path().join("out").is_symlink());
    assert_eq!(fs::read_dir(closed.path()).unwrap().count(), 0);
}

#[test]
fn a_read_only_step_cannot_write() {
    if !stands() {
        return;
    }
    let open = outside();
    let paths = json!([text(open.path())]);
    let registry = behind(json!({"filesystem": {"allowedPaths": paths}}))
        .with("work", json!({"permissionMode": "plan"}));
    let out = text(open.path());
    let runs = [format!("echo x > {out}/open; echo x > a.txt; echo x > new.txt; cp a.txt {out}/a")];
    let project = registry
        .project(json!([says_with("work", "handoff", json!({"runs": runs})), says("close", "closing")]));
    let ran = project.go(&[]);
    done(&ran);
    assert_eq!(fs::read_to_string(open.path().join("a")).unwrap(), "one\n");
    assert!(open.path().join("open").exists() && !project.path().join("new.txt").exists());
    assert_eq!(project.read("a.txt"), "one\n");
}

/// A read-only step can run tests: what git ignores is writable. The rest is not, whoever writes it.
#[test]
fn a_read_only_step_can_build_and_test() {
    if !stands() || !cuegate_runner::sandbox::has_landlock() {
        eprintln!("skipped: it needs bubblewrap and Landlock");
        return;
    }
    let bin = crate::attacks::without_bwrap();
    let commands = [
        ("build", "mkdir -p target/debug && echo x > target/debug/x && rm -r target/debug"),
        ("old", "echo y >> made/old.txt"),
        ("outside-source", "echo x > a.txt"),
        ("outside-new", "echo x > new.txt"),
        ("outside-hidden", "echo x > .git/x"),
    ];
    for path in [None, Some(bin.path())] {
        for worktree in [false, true] {
            let registry = small().with("work", json!({"permissionMode": "plan"}));
            let project = does(&registry, &commands);
            project.write(".gitignore", "script*\n/target\nmade/\nsaid.txt\nheard.txt\n");
            project.git(&["add", "--all"]);
            project.git(&["commit", "--quiet", "--message", "all"]);
            project.write("made/old.txt", "x\n");
            for file in ["said.txt", "heard.txt"] {
                project.write(file, "");
            }
            let run = |args: &[&str]| {
                let mut command = project.command(args);
                path.into_iter().for_each(|path| _ = command.env("PATH", path));
                Ran::of(command.output().unwrap())
            };
            let more: &[&str] = if worktree { &["--worktree"] } else { &[] };
            let setup =
                "[worktree]\nsetup = [\"mkdir made && echo x > made/old.txt && touch said.txt heard.txt\"]\n";
            project.write("cuegate.toml", setup);
            let ran = run(&begin(more));
            done(&ran);
            let work = PathBuf::from(project.status()["place"]["work"].as_str().unwrap());
            let said = fs::read_to_string(work.join("said.txt")).unwrap();
            let heard = fs::read_to_string(work.join("heard.txt")).unwrap();
            for (name, _) in commands {
                let wanted = if name.starts_with("outside") { "no" } else { "yes" };
                let line = format!("{name} {wanted}\n");
                assert!(said.contains(&line), "{path:?} {worktree} {name}: {said}{heard}{}", ran.stderr);
            }
            assert!(fs::read_to_string(work.join("made/old.txt")).unwrap().ends_with("y\n"));

            let writes = json!({"writes": [{"path": "a.txt", "content": "two\n"}]});
            project.script("script.json", &json!([says_with("work", "handoff", writes)]));
            let ran = run(&begin(&[]));
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            assert!(
                ran.stderr.contains("failed: wrote to `a.txt`, which is read-only in this step"),
                "{}",
                ran.stderr
            );
            assert_eq!(project.read("a.txt"), "one\n");
        }
    }
}

/// A server of this machine that answers everybody, and keeps what it was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                keep.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Server { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Asks a server by git, which is there wherever these tests run. It fails in any case; whether it got through, the
/// server knows.
fn fetch(host: &str) -> String {
    format!("! git ls-remote http://{host}/r 2>&1 | tee /tmp/said; cat /tmp/said; true")
}

fn refused(project: &Project) -> Vec<String> {
    let told = project.events("sandbox_denied");
    told.iter()
        .map(|event| format!("{}: {}", event["step"].as_str().unwrap(), event["to"].as_str().unwrap()))
        .collect()
}

#[test]
fn only_allowed_hosts_are_reachable() {
    if !stands() {
        return;
    }
    let (open, closed) = (Server::start(), Server::start());
    let allowed = format!("localhost:{}", open.port);
    let registry =
        behind(json!({"network": {"mode": "custom", "trustedDomains": [allowed, "*.example.com:9"]}}));
    let project = does(
        &registry,
        &[
            ("open", &fetch(&format!("localhost:{}", open.port))),
            ("closed", &fetch(&format!("127.0.0.1:{}", closed.port))),
            (
                "proxied",
                &format!("unset no_proxy NO_PROXY; {}", fetch(&format!("127.0.0.1:{}", closed.port))),
            ),
            ("named", &fetch("evil.example.net")),
            ("again", &fetch("evil.example.net")),
            ("port", &fetch("a.example.com:10")),
        ],
    );
    let ran = project.go(&[]);
    done(&ran);
    assert!(open.asked()[0].starts_with("GET /r/info/refs"), "{:?}", project.read("heard.txt"));
    assert_eq!(closed.asked(), [""; 0]);
    let wanted =
        [format!("127.0.0.1:{}", closed.port), "evil.example.net:80".into(), "a.example.com:10".into()];
    assert_eq!(refused(&project), wanted.map(|to| format!("work: {to}")), "{}", project.read("heard.txt"));
    let line = "sandbox denied access to evil.example.net:80";
    assert!(ran.stderr.contains(line), "who looks on sees it: {}", ran.stderr);
    assert!(project.run(&["log", "last"]).stdout.contains(line));
}

#[test]
fn an_empty_allow_list_blocks_all_hosts() {
    if !stands() {
        return;
    }
    let server = Server::start();
    let here = format!("localhost:{}", server.port);
    let registry = behind(json!({"network": {"mode": "none"}}));
    let ways = [("plain", fetch(&here)), ("proxied", format!("unset no_proxy NO_PROXY; {}", fetch(&here)))];
    let project = does(&registry, &ways.each_ref().map(|(name, command)| (*name, command.as_str())));
    let ran = project.go(&[]);
    done(&ran);
    assert_eq!(server.asked(), [""; 0]);
    assert_eq!(refused(&project), [format!("work: {here}")]);
    assert!(ran.stderr.contains("reaches nothing"), "{}", ran.stderr);
}

/// A Unix socket is not protected by a read-only mount, so it must be hidden.
#[test]
fn sockets_of_other_programs_are_not_visible() {
    if !stands() {
        return;
    }
    let dir = outside();
    let socket = dir.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let project = does(&behind(json!({})), &[("socket", &format!("test -S {}", socket.display()))]);
    done(&project.go(&[]));
    assert_eq!(project.read("said.txt"), "socket no\n");
}

#[test]
fn handlers_run_inside_the_sandbox() {
    if !stands() {
        return;
    }
    let dir = outside();
    let to = text(&dir.path().join("x"));
    let handler = format!(
        "#!/bin/sh\ncat > told.txt\necho x > {to}\n( {} ) > /dev/null\necho '{{\"finished\": true}}'\n",
        fetch("evil.test")
    );
    let actions = json!({"enabled": true, "types": ["post"], "outputFormat": "json", "handlers": {"post": "exec:act.sh"}});
    let verdict = json!({"type": "meta:custom", "config": {"handlerPath": "act.sh"}});
    let registry = behind(json!({"network": {"mode": "none"}}))
        .runner(json!({"actions": actions, "verdict": null}))
        .runner(json!({"verdict": verdict}));
    let project = Project::empty();
    registry.write(&project);
    project.write(".agent/agent/act.sh", &handler);
    let path = project.path().join(".agent/agent/act.sh");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    project.write(".gitignore", "/script*\n");
    project.init();
    let block = "```json\n{\"action\": \"post\", \"n\": 1}\n```";
    project.script("script.json", &json!([says_with("work", "handoff", json!({"text": block}))]));
    let ran = project.go(&[]);
    done(&ran);
    assert_eq!(project.status()["effects"][0]["state"], "done", "{}", ran.stderr);
    assert!(project.path().join("told.txt").exists() && !dir.path().join("x").exists());
    assert_eq!(refused(&project), ["work: evil.test:80"; 2], "the handler and the verdict's: {}", ran.stderr);
}

#[test]
fn a_sandboxed_worktree_can_commit_without_damage() {
    if !stands() {
        return;
    }
    let project = does(
        &behind(json!({})),
        &[
            ("commit", "echo x > x.txt && git add x.txt && git commit -qm behind"),
            ("hook", "echo x > $(git rev-parse --git-common-dir)/hooks/post-commit"),
            ("led", "echo x > .git"),
            ("main", "echo x > $(git rev-parse --git-common-dir)/../a.txt"),
        ],
    );
    let ran = project.go(&["--worktree"]);
    done(&ran);
    let work = PathBuf::from(project.events("run_started")[0]["place"]["work"].as_str().unwrap());
    let said = fs::read_to_string(work.join("said.txt")).unwrap();
    assert_eq!(
        said,
        "commit yes\nhook yes\nled no\nmain no\n",
        "{}",
        fs::read_to_string(work.join("heard.txt")).unwrap()
    );
    assert!(!project.path().join(".git/hooks/post-commit").exists());
    assert_eq!(project.git(&["log", "--format=%s", "--all"]), "behind\nbegin\n");
}

/// A folder for `PATH` with programs, and without bubblewrap.
fn without_bubblewrap() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for program in ["git", "sh", "sleep", "cat"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|file| file.is_file());
        std::os::unix::fs::symlink(found.unwrap(), dir.path().join(program)).unwrap();
    }
    dir
}

#[test]
fn without_bubblewrap_runs_require_the_no_sandbox_flag() {
    let bin = without_bubblewrap();
    let project = does(&behind(json!({})), &[("x", "true")]);
    let run = |args: &[&str]| Ran::of(project.command(args).env("PATH", bin.path()).output().unwrap());
    let ran = run(&begin(&[]));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    for word in [
        "the definition requires a sandbox, but `bwrap` is not in PATH",
        "install bubblewrap",
        "`--no-sandbox`",
    ] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    assert!(!project.path().join(".cuegate").exists(), "nothing was made");
    let ran = run(&begin(&["--no-sandbox"]));
    done(&ran);
    let words = "no sandbox, though the definition requires one (`--no-sandbox`)";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert_eq!(project.events("run_started")[0]["sandboxed"], Value::Null);
    let off =
        behind(json!({"enabled": false})).project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = off.go(&["--no-sandbox"]);
    assert!(ran.stderr.contains("note: `--no-sandbox` has no effect"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no sandbox, as the definition says"), "{}", ran.stderr);
    // A definition that says nothing runs without one, and the start says so.
    let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
    let ran = Ran::of(project.command(&begin(&[])).env("PATH", bin.path()).output().unwrap());
    done(&ran);
    let partial = cuegate_runner::sandbox::has_landlock();
    let words = if partial { "a partial sandbox (Landlock, because" } else { "no sandbox, because" };
    assert!(ran.stderr.contains(&format!("{words} `bwrap` is not in PATH")), "{}", ran.stderr);
    assert_eq!(project.events("run_started")[0]["sandboxed"] == true, partial);
}

/// A run that was started in the full sandbox does not continue in the partial one; a partial one does.
#[test]
fn a_resumed_run_keeps_its_level_of_sandbox() {
    if !stands() || !cuegate_runner::sandbox::has_landlock() {
        eprintln!("skipped: it needs bubblewrap and Landlock");
        return;
    }
    let bin = crate::attacks::without_bwrap();
    for (starts_partial, code) in [(false, 4), (true, 0)] {
        let project = small().project(json!([says("work", "handoff")]));
        project.script("script2.json", &json!([says("close", "closing")]));
        let run = |args: &[&str], partial: bool| {
            let mut command = project.command(args);
            if partial {
                command.env("PATH", bin.path());
            }
            Ran::of(command.output().unwrap())
        };
        assert_eq!(run(&begin(&[]), starts_partial).code, 4, "its script is used up");
        let ran = run(&["resume", "last", "--script", "script2.json"], true);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let refused = "the run was started in a sandbox, but `bwrap` is not in PATH";
        assert_eq!(ran.stderr.contains(refused), code == 4, "{}", ran.stderr);
    }
}

/// What agents and validators do all day works with Landlock alone.
#[test]
fn usual_work_succeeds_in_the_partial_sandbox() {
    if !cuegate_runner::sandbox::has_landlock() {
        eprintln!("skipped: the kernel has no Landlock of version 6");
        return;
    }
    let bin = crate::attacks::without_bwrap();
    let commands = [
        ("tree", "mkdir -p src/a && echo x > src/a/x.txt && mv src/a/x.txt src/ && test -s src/x.txt"),
        ("commit", "git add src && git -c user.name=a -c user.email=a@b commit -qm work"),
        ("temporary", "f=$(mktemp) && echo x > $f && rm $f"),
        ("outputs", "echo x >> /dev/stderr && echo x >> /dev/stdout && echo x > /dev/null"),
        ("python", "python3 -c 'import subprocess; subprocess.run([\"ls\", \"/usr\"], check=True)'"),
        ("pipes", "seq 100 | sort -rn | head -3"),
        ("certificates", "ls /etc/ssl/certs | head -2"),
        ("outside", "ls $HOME"),
        ("outside-terminal", "exec 3<> /dev/ptmx"),
        ("outside-write", "echo x > ../x"),
    ];
    let project = does(&small(), &commands);
    let run = |args: &[&str]| Ran::of(project.command(args).env("PATH", bin.path()).output().unwrap());
    done(&run(&begin(&["--worktree"])));
    let work = PathBuf::from(project.events("run_started")[0]["place"]["work"].as_str().unwrap());
    let said = fs::read_to_string(work.join("said.txt")).unwrap();
    let heard = fs::read_to_string(work.join("heard.txt")).unwrap();
    for (name, _) in commands {
        let wanted = if name.starts_with("outside") { "no" } else { "yes" };
        assert!(said.contains(&format!("{name} {wanted}\n")), "{name}: {said}{heard}");
    }
}

/// A resumed run still requires its sandbox; a run resumed with `--no-sandbox` stays without.
#[test]
fn resume_still_requires_the_sandbox() {
    if !stands() {
        return;
    }
    let project = behind(json!({})).project(json!([says_with("work", "repeat", json!({"runs": ["true"]}))]));
    assert_eq!(project.go(&[]).code, 4, "its script is used up");
    let bin = without_bubblewrap();
    let resume = |script: &str, more: &[&str]| {
        let args = [&["resume", "last", "--script", script], more].concat();
        Ran::of(project.command(&args).env("PATH", bin.path()).output().unwrap())
    };
    project.script(
        "script2.json",
        &json!([says_with("work", "handoff", json!({"runs": ["echo > script-out"]}))]),
    );
    let ran = resume("script2.json", &[]);
    assert!(ran.code == 4 && ran.stderr.contains("`--no-sandbox`"), "{}", ran.stderr);
    assert_eq!(resume("script2.json", &["--no-sandbox"]).code, 4);
    assert!(project.path().join("script-out").exists());
    assert_eq!(project.events("resumed")[0]["unsandboxed"], true);
    project.script("script3.json", &json!([says("close", "closing")]));
    done(&resume("script3.json", &[]));
}

/// A kill leaves no process, not even a detached one, and the resumed run uses its sandbox.
#[test]
fn a_killed_run_leaves_no_process_in_the_sandbox() {
    if !stands() {
        return;
    }
    let away =
        "setsid sh -c 'sleep 1000 & sleep 1000' & env -i setsid sleep 1000 & test -e script-go || sleep 1000";
    let project = behind(json!({}))
        .project(json!([says_with("work", "handoff", json!({"runs": [away]})), says("close", "closing")]));
    let job = project.job(&begin(&[]));
    until("all sleep", || {
        crate::support::at_work_in(project.path())
            .iter()
            .filter(|process| process.words.trim() == "sleep 1000")
            .count()
            == 4
    });
    job.signal(Signal::KILL);
    project.all_gone();
    project.write("script-go", "");
    done(&project.run(&["resume", "last"]));
    project.all_gone();
}

/// Sandboxed processes get the usual time to exit.
#[test]
fn sandboxed_processes_receive_sigterm_first() {
    if !stands() {
        return;
    }
    // The shell has something to say about its sleep, to somebody who is gone.
    let command = "exec 2> /dev/null; trap 'echo bye > script-bye; exit 0' TERM; touch script-there; while :; do sleep 0.01; done";
    let project = behind(json!({}))
        .project(json!([says_with("work", "handoff", json!({"runs": [command]})), says("close", "closing")]));
    let job = project.job(&begin(&[]));
    until("it is there", || project.path().join("script-there").exists());
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 130);
    assert_eq!(project.read("script-bye"), "bye\n");
    project.all_gone();
}

/// The agent's own service is reached whatever the definition says, here by our own program that asks it.
#[test]
fn the_agent_can_reach_its_own_service() {
    if !stands() {
        return;
    }
    use cuegate_testkit::standin::{Reply, Scenario, Standin};
    let answer = |intent: &str| json!({"next_action": {"action": intent}});
    let scenario = Scenario::new()
        .reply(Reply::to("Do work.").json(answer("handoff")))
        .reply(Reply::to("Do close.").json(answer("closing")));
    let standin = Standin::start(scenario);
    let project = behind(json!({"network": {"mode": "none"}})).project(json!([]));
    let toml = format!(
        "[providers.openai]\nbase_url = \"{}\"\nmodel = \"small\"\nkey_env = \"OPENAI_API_KEY\"\n",
        standin.openai_base()
    );
    project.write("cuegate.toml", &toml);
    let args = ["run", "agent", "--provider", "openai"];
    let ran = Ran::of(project.command(&args).envs(standin.codex_env()).output().unwrap());
    done(&ran);
    assert_eq!(standin.answered().len(), 2);
    assert_eq!(refused(&project), [""; 0]);
}

/// The output of a validator brings no secret of a variable into the journal, a prompt or a report.
#[test]
fn secrets_of_variables_are_redacted() {
    let secret = "hush-hush-0123456789";
    let answers = json!([
        says_with("work", "handoff", json!({"times": 3})),
        says_with("close", "closing", json!({"times": 3})),
    ]);
    let project = small()
        .validator("echo $MY_TOKEN; false", json!({"action": "retry", "maxAttempts": 1}))
        .project(answers);
    project.write("cuegate.toml", "[sandbox]\nenvironment = [\"MY_TOKEN\"]\n");
    let run = |args: &[&str]| Ran::of(project.command(args).env("MY_TOKEN", secret).output().unwrap());
    let ran = run(&begin(&["--json"]));
    let log = run(&["log", "last", "--json", "--full"]);
    assert!(log.stdout.contains("[redacted]"), "{}", log.stdout);
    for text in
        [ran.stdout, ran.stderr, log.stdout, run(&["report", "last"]).stdout, project.prompts().concat()]
    {
        assert!(!text.contains("hush-hush"), "{text}");
    }
    let id = project.status()["run"].as_str().unwrap().to_owned();
    let log = fs::read(project.path().join(format!(".cuegate/runs/{id}/log"))).unwrap();
    assert!(!log.windows(9).any(|bytes| bytes == b"hush-hush"));
}

#[test]
fn validators_run_inside_unless_the_user_says_otherwise() {
    if !stands() {
        return;
    }
    let closed = outside();
    let write = format!("echo x > {}/x && echo x > made.txt", closed.path().display());
    let go = |settings: &str| {
        let registry = small().validator(&write, json!({"action": "retry", "maxAttempts": 1}));
        let answers = json!([
            says_with("work", "handoff", json!({"times": 5})),
            says_with("close", "closing", json!({"times": 5}))
        ]);
        let project = registry.project(answers);
        project.write("cuegate.toml", settings);
        project.go(&[])
    };
    let ran = go("");
    assert!(ran.code == 1 && ran.stderr.contains("failed      `echo x > "), "{}", ran.stderr);
    assert!(!closed.path().join("x").exists());
    let ran = go("[sandbox]\nvalidators = \"outside\"\n");
    done(&ran);
    assert!(ran.stderr.contains("; validators run outside"), "{}", ran.stderr);
    assert!(closed.path().join("x").exists());
}

/// A run keeps the settings that it was started with: an agent may have changed the file.
#[test]
fn changed_settings_are_adopted_only_on_request() {
    let project = small().project(json!([says("work", "handoff")])).outside();
    assert_eq!(project.go(&[]).code, 4, "its script is used up");
    project.write("cuegate.toml", "notify = \"touch script-notified\"\n");
    project.script("script2.json", &json!([says_with("close", "repeat", json!({"error": "auth"}))]));
    let ran = project.run(&["resume", "last", "--script", "script2.json"]);
    assert!(ran.stderr.contains("`cuegate.toml` changed since the run started"), "{}", ran.stderr);
    assert!(!project.path().join("script-notified").exists());
    let started = &project.events("run_started")[0];
    assert!(started["programs"]["git"].as_str().unwrap().starts_with('/'), "{started}");
    project.script("script3.json", &json!([says("close", "closing")]));
    let ran = project.run(&["resume", "last", "--script", "script3.json", "--reload-config"]);
    done(&ran);
    assert!(project.path().join("script-notified").exists());
}

/// A socket that was bound by a relative name has no place in the kernel's list.
#[test]
fn sockets_of_other_programs_are_hidden_whatever_their_name() {
    if !stands() {
        return;
    }
    let closed = behind(json!({"network": {"mode": "none"}}));
    let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"run/app.sock\")'";
    let own = "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"own.sock\"); s.listen(); \
               socket.socket(socket.AF_UNIX).connect(\"own.sock\")'";
    for (registry, said) in [(&closed, "connect no\nown yes\n"), (&small(), "connect yes\nown yes\n")] {
        let is_control = said.contains("connect yes");
        let project = does(registry, &[("connect", connect), ("own", own)]);
        let project = if is_control { project.outside() } else { project };
        fs::create_dir(project.path().join("run")).unwrap();
        let mut server = Command::new("python3")
            .args(["-c", "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('app.sock'); s.listen(); time.sleep(60)"])
            .current_dir(project.path().join("run"))
            .spawn()
            .unwrap();
        until("the server listens", || project.path().join("run/app.sock").exists());
        let ran = project.go(&[]);
        server.kill().unwrap();
        server.wait().unwrap();
        done(&ran);
        assert_eq!(project.read("said.txt"), said, "{}", project.read("heard.txt"));
    }
}

#[test]
fn doctor_tries_attacks() {
    if !stands() {
        return;
    }
    let project = Project::empty();
    let tried = project.run(&["doctor", "--sandbox", "--json"]);
    assert_eq!(tried.code, 0, "{}{}", tried.stdout, tried.stderr);
    let results = tried.json();
    assert_eq!(results["ok"], true);
    let held = results["attacks"].as_array().unwrap().iter().filter(|row| row["result"] == "held").count();
    assert!(held >= 20, "{results}");
    assert!(!project.path().join(".cuegate").exists(), "it leaves nothing");
}

/// The usual test commands as validators, with the toolchains of this machine and without a network.
#[test]
fn usual_test_commands_work_inside() {
    if !stands() {
        return;
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin");
    let cargo: &[(&str, &str)] = &[
        ("Cargo.toml", "[package]\nname = \"t\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("src/lib.rs", "#[test]\nfn t() {}\n"),
    ];
    let npm: &[(&str, &str)] = &[
        ("package.json", "{\"type\": \"module\", \"scripts\": {\"test\": \"node --test\"}}\n"),
        ("t.test.js", "import test from 'node:test';\ntest('t', () => {});\n"),
    ];
    let pytest: &[(&str, &str)] = &[("test_t.py", "def test_t():\n    pass\n")];
    for (command, files) in [("cargo test --offline", cargo), ("npm test", npm), ("pytest", pytest)] {
        if command == "pytest" && !python.join("pytest").exists() {
            eprintln!("skipped: pytest is not installed; `cargo xtask test` installs it");
            continue;
        }
        let registry = small()
            .runner(json!({"boundaries": {"sandbox": {"network": {"mode": "none"}}}}))
            .validator(command, json!({"action": "abort"}));
        let project = registry.project(json!([says("work", "handoff"), says("close", "closing")]));
        for (path, text) in files {
            project.write(path, text);
        }
        let path = std::env::join_paths(
            [python.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut run = project.command(&begin(&[]));
        let ran = Ran::of(run.env("PATH", path.unwrap()).env_remove("CARGO_TARGET_DIR").output().unwrap());
        assert_eq!(
            ran.code,
            0,
            "{command}: {}{}",
            ran.stderr,
            project.run(&["log", "last", "--json"]).stdout
        );
    }
}

/// A file of settings that an agent creates is not trusted by the next run.
#[test]
fn created_settings_are_set_aside() {
    if !stands() {
        return;
    }
    let project = does(&small(), &[("toml", "echo 'notify = \"touch script-notified\"' > cuegate.toml")]);
    let ran = project.go(&[]);
    done(&ran);
    assert!(ran.stderr.contains("cuegate.toml.by-agent"), "{}", ran.stderr);
    assert!(!project.path().join("cuegate.toml").exists());
    assert!(project.read("cuegate.toml.by-agent").contains("notify"));
}

#[test]
fn a_name_of_two_definitions_is_refused() {
    let project = does(&small(), &[("copy", "cp -r .agent/agent agent")]);
    done(&project.go(&[]));
    let ran = project.go(&[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`agent` names two definitions: `./agent` and `.agent/agent`"),
        "{}",
        ran.stderr
    );
    assert_eq!(project.run(&["check", "./agent"]).code, 0);
}

/// A definition of the agent takes no other one's name, and turns no sandbox off, before somebody has read it.
#[test]
fn a_definition_that_nobody_read_decides_nothing() {
    if !stands() {
        return;
    }
    let plant = "cp -r .agent/agent .agent/minimal && cd .agent/minimal && python3 -c '
import json
agent = json.load(open(\"agent.json\"))
agent[\"name\"] = \"minimal\"
agent.setdefault(\"runner\", {}).setdefault(\"boundaries\", {})[\"sandbox\"] = {\"enabled\": False}
json.dump(agent, open(\"agent.json\", \"w\"))' && sed -i 's/\"agentId\": *\"agent\"/\"agentId\": \"minimal\"/' steps_registry.json";
    let project = does(&small(), &[("plant", plant)]);
    done(&project.go(&[]));
    assert_eq!(project.read("said.txt"), "plant yes\n");
    project.script("script.json", &json!([says("work", "handoff"), says("close", "closing")]));
    let run =
        |path: &str, more: &[&str]| project.run(&[&["run", path, "--script", "script.json"], more].concat());
    let ran = run("minimal", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for words in [
        "takes the place of the built-in one",
        "an agent may have written it",
        "run ./.agent/minimal --no-sandbox`",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let ran = run("./.agent/minimal", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("turns the sandbox off"), "{}", ran.stderr);
    assert!(project.run(&["list"]).stdout.contains("(used instead of the built-in one)"));
    // A commit alone, which an agent makes too, changes nothing.
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "agent"]);
    let ran = run("minimal", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("or changed it: an agent may have written it"), "{}", ran.stderr);
    assert_eq!(run("./.agent/minimal", &["--no-sandbox"]).code, 0);
    // At a terminal the user is asked once.
    let args = ["run", "./.agent/minimal", "--script", "script.json"];
    if let Some(ran) = project.at_terminal(&args, "y\n") {
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(run("./.agent/minimal", &[]).code, 0, "it was accepted as it is");
        project.write(".agent/minimal/prompts/system.md", "changed\n");
        assert_eq!(run("./.agent/minimal", &[]).code, 2, "it is another one now");
    }
}

#[test]
fn a_starter_that_the_user_made_runs_by_its_name() {
    let project = Project::empty();
    project.write("a.txt", "one\n");
    project.init();
    let made = project.run(&["init", "minimal", "--no-try"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let ran = project.run(&["price", "minimal"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = project.run(&["run", "minimal", "Do it.", "--provider", "claude", "--no-sandbox"]);
    assert!(!ran.stderr.contains("takes the place of"), "{}", ran.stderr);
}

/// What an agent creates while the program is killed is not obeyed, and the next command puts it aside.
#[test]
fn settings_of_an_agent_are_not_obeyed_after_a_kill() {
    if !stands() {
        return;
    }
    let mark = outside();
    let settings = format!("[notify]\ncommand = \"touch {}/ran\"\n", mark.path().display());
    let plant = format!(
        "mkdir cuegate.toml.by-agent; printf '{}' > cuegate.toml; touch ready; sleep 30",
        settings.replace('\n', "\\n")
    );
    let project = does(&small(), &[("plant", &plant)]);
    let mut child = project.start(&begin(&[]));
    until("the agent has planted", || project.path().join("ready").exists());
    // Another command meanwhile.
    assert!(!project.run(&["config", "show"]).stdout.contains("ran"));
    rustix::process::kill_process_group(rustix::process::Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    until("it is gone", || !project.run(&["config", "show"]).stdout.contains("ran"));
    project.script("script.json", &json!([says("work", "handoff"), says("close", "closing")]));
    let ran = project.go(&[]);
    done(&ran);
    assert!(ran.stderr.contains("`, because it would be trusted"), "{}", ran.stderr);
    assert!(!project.path().join("cuegate.toml").exists() && !mark.path().join("ran").exists());
    assert!(project.path().join("cuegate.toml.by-agent-1").is_file());
}

/// The user's `git status` enters submodules, so that their `.git` is not the agent's to replace.
#[test]
fn a_submodule_of_the_user_stays_the_users() {
    if !stands() {
        return;
    }
    let other = outside();
    let at = other.path().to_str().unwrap();
    let replace = "rm -f libs/sm/.git; git init -q evil; git -C evil config core.fsmonitor 'touch ran'; rm -rf libs/sm/.git; \
                   mv evil/.git libs/sm/.git || cp -r evil/.git libs/sm/.git";
    let move_away = "mv libs moved && mkdir -p libs/sm && git init -q libs/sm";
    let fill = "git init -q libs/empty";
    let project = does(&small(), &[("replace", replace), ("move", move_away), ("fill", fill)]);
    project.git(&["init", "--quiet", "--initial-branch", "main", at]);
    let commit =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "lib"];
    project.git(&[&["-C", at], &commit[..]].concat());
    for name in ["libs/sm", "libs/empty"] {
        project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", at, name]);
    }
    project.git(&["commit", "--quiet", "--message", "submodules"]);
    project.git(&["submodule", "--quiet", "deinit", "--force", "libs/empty"]);
    let dot = project.read("libs/sm/.git");
    done(&project.go(&[]));
    assert!(!project.read("said.txt").contains("fill yes"), "{}", project.read("said.txt"));
    assert_eq!(project.read("libs/sm/.git"), dot, "{}", project.read("heard.txt"));
    assert!(!project.path().join("libs/empty/.git").exists());
    project.git(&["status"]);
    assert!(!project.path().join("ran").exists() && !project.path().join("libs/sm/ran").exists());
}

/// A repository that an agent made in a subfolder is no project of its own.
#[test]
fn a_repository_of_an_agent_is_no_project() {
    let make = "mkdir -p sub/empty/.git && git init -q sub/own && echo > sub/own/cuegate.toml && \
                mkdir sub/led && git init -q --bare sub/bare && echo 'gitdir: ../bare' > sub/led/.git";
    let project = does(&small(), &[("make", make)]).outside();
    done(&project.go(&[]));
    assert_eq!(project.read("said.txt"), "make yes\n");
    for folder in ["sub/empty", "sub/own", "sub/led"] {
        let mut command = project.command(&["runs", "--json"]);
        command.current_dir(project.path().join(folder));
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.json()["runs"].as_array().map(Vec::len), Some(1), "{folder}: {}", ran.stderr);
    }
}

/// What an agent may leave in a repository so that git waits, or writes through it to a file elsewhere.
#[test]
fn links_and_fifos_in_a_repository_are_named() {
    let elsewhere = outside();
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let link = |path: &str| {
        format!("rm -rf .git/{path}; mkdir -p $(dirname .git/{path}); ln -s {} .git/{path}", victim.display())
    };
    let fifo = |path: &str| format!("mkdir -p $(dirname {path}); mkfifo {path}");
    for (command, named) in [
        (link("COMMIT_EDITMSG"), ".git/COMMIT_EDITMSG"),
        (link("logs/HEAD"), ".git/logs/HEAD"),
        (link("refs/heads/other"), ".git/refs/heads/other"),
        (fifo(".git/refs/heads/fifo"), ".git/refs/heads/fifo"),
        (fifo(".git/objects/pack/pack-x.idx"), ".git/objects/pack/pack-x.idx"),
        (fifo(".gitattributes"), ".gitattributes"),
        (fifo("cuegate.toml"), "cuegate.toml"),
    ] {
        let project = small().project(json!([says("work", "handoff"), says("close", "closing")]));
        project.write("a.txt", "changed\n");
        assert!(
            Command::new("sh").args(["-c", &command]).current_dir(project.path()).status().unwrap().success()
        );
        let ran = project.go(&[]);
        assert!(matches!(ran.code, 2 | 4), "{named}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{named}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}
