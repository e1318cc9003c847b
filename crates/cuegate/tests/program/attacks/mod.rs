//! Attacks by an agent: each is tried inside the sandbox, where it must fail, and by a control run without the sandbox,
//! where it must succeed. `docs/security.md` lists them.

mod git;
mod table;

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    net::TcpListener,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use serde_json::{Value, json};

use crate::{
    agent::registry::{Registry, begin, says, says_with, small},
    sandbox::stands,
    support::{Project, Ran},
};
use table::{Attack, ENVIRONMENT, Held, SECRETS, attacks};

/// The content of every secret.
const SECRET: &str = "s3cret-0f-th3-user";

/// What attacks aim at: a home folder, another project, and processes and sockets of this machine.
struct Scene {
    folder: tempfile::TempDir,
    victim: Child,
    port: u16,
    _sockets: Vec<UnixListener>,
    shared: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let at = |path: &str| folder.path().join(path);
        for name in SECRETS.iter().chain(&["../other/.env", "../other/.cuegate/runs/a/log"]) {
            let file = at("home").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::create_dir_all(at("home")).unwrap();
            fs::write(file, SECRET).unwrap();
        }
        fs::create_dir_all(at("out")).unwrap();
        fs::create_dir_all(at("other/.git/objects/pack")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let _ = std::io::Write::write_all(
                    &mut stream,
                    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached",
                );
            }
        });
        // A file and a socket in the shared temporary folder of the machine.
        let shared = tempfile::tempdir().unwrap();
        fs::write(shared.path().join("secret"), SECRET).unwrap();
        let sockets = vec![
            UnixListener::bind(shared.path().join("socket")).unwrap(),
            UnixListener::bind(at("other/socket")).unwrap(),
        ];
        let victim = Command::new("sleep").arg("600").env("VICTIM", SECRET).spawn().unwrap();
        Scene { folder, victim, port, _sockets: sockets, shared }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The variables that the commands of attacks read. Their values are not secret.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            ("CUEGATE_T_OUT", path("out")),
            ("CUEGATE_T_OTHER", path("other")),
            ("CUEGATE_T_REAL_HOME", path("home")),
            ("CUEGATE_T_SHARED", self.shared.path().display().to_string()),
            ("CUEGATE_T_PORT", self.port.to_string()),
            ("CUEGATE_T_VICTIM", self.victim.id().to_string()),
        ]
    }

    fn command(&self, project: &Project, args: &[&str]) -> Command {
        let mut command = project.command(args);
        command.envs(self.variables()).env("HOME", self.home());
        // Toolchains stay where they are.
        let home = std::env::home_dir().unwrap_or_default();
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")]
        {
            if std::env::var_os(name).is_none() && home.join(folder).is_dir() {
                command.env(name, home.join(folder));
            }
        }
        command.envs(ENVIRONMENT.iter().map(|name| (*name, SECRET)));
        let bin = project.path().join("node_modules/.bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path);
        command
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// A project whose agent tries all attacks, and is then stopped by its script, to be resumed.
fn project(all: &[Attack], inside: bool) -> Project {
    let registry = small().runner(json!({"boundaries": {"sandbox": {"network": {"mode": "none"}}}}));
    project_of(&registry, all, inside)
}

fn project_of(registry: &Registry, all: &[Attack], inside: bool) -> Project {
    let runs: Vec<String> = all
        .iter()
        .map(|attack| {
            let command = if inside { attack.command } else { attack.control.unwrap_or(attack.command) };
            let name = attack.name;
            format!(
                "bash -c {} >> heard-{name}.txt 2>&1 && echo {name} >> succeeded.txt; true",
                quoted(&format!("cd {} || exit 1; {command}", "."))
            )
        })
        .collect();
    let answers: Value = json!([
        says_with("work", "handoff", json!({ "runs": runs })),
        {"step": "close", "error": "auth"},
    ]);
    let project = registry.project(answers);
    project.write("cuegate.toml", "[sandbox]\ntmp_size = \"16M\"\nfile_size = \"64M\"\nmemory = \"512M\"\n");
    project.write(".gitignore", "/script*\n/heard*\n/succeeded.txt\n");
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message", "settings"]);
    project.script("again.json", &json!([says("close", "closing")]));
    project
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The attacks that succeeded, by their own words or by what they left.
fn succeeded(project: &Project, scene: &Scene, all: &[Attack]) -> Vec<&'static str> {
    let said = fs::read_to_string(project.path().join("succeeded.txt")).unwrap_or_default();
    let is_left = |attack: &Attack| match attack.held {
        Held::Says => said.lines().any(|name| name == attack.name),
        Held::Out => scene.out().join(attack.name).exists(),
        Held::Home(path) => {
            fs::read_to_string(scene.home().join(path)).is_ok_and(|text| text.contains("EVIL"))
        }
    };
    all.iter().filter(|attack| is_left(attack)).map(|attack| attack.name).collect()
}

/// What the commands of these attacks printed.
fn outputs(project: &Project, names: &[&str]) -> String {
    let text = |name: &&str| {
        let file = project.path().join(format!("heard-{name}.txt"));
        format!("{name}: {}", fs::read_to_string(file).unwrap_or_default())
    };
    names.iter().map(text).collect()
}

fn usable(attack: &Attack) -> bool {
    match attack.needs {
        "root" => rustix::process::geteuid().is_root(),
        "python3" => {
            Command::new("python3").arg("-c").arg("1").output().is_ok_and(|ran| ran.status.success())
        }
        _ => true,
    }
}

#[test]
fn attacks_fail_in_the_sandbox() {
    if !stands() {
        return;
    }
    let scene = Scene::new();
    let all: Vec<Attack> = attacks().into_iter().filter(usable).collect();
    let project = project(&all, true);
    let run = |args: &[&str]| Ran::of(scene.command(&project, args).output().unwrap());
    let ran = run(&begin(&[]));
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("a sandbox (bubblewrap"), "{}", ran.stderr);
    // Whatever was planted must not run when Cuegate looks at the tree again.
    for args in [
        &["diff", "last"][..],
        &["status", "last"],
        &["doctor"],
        &["resume", "last", "--script", "again.json"],
        &["report", "last"],
    ] {
        run(args);
    }
    assert_eq!(project.status()["state"], "completed", "{}", ran.stderr);
    let through = succeeded(&project, &scene, &all);
    assert_eq!(through, [""; 0], "{}", outputs(&project, &through));
    let text = project.run(&["log", "last", "--json", "--full"]).stdout;
    assert!(!text.contains(SECRET), "a secret is in the journal");
    assert!(all.len() >= 120, "{} attacks", all.len());
    let mut names: Vec<&str> = all.iter().map(|attack| attack.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two attacks have the same name");
}

/// Each attack is one: without the sandbox it succeeds. What waits for the user's own programs is started by hand.
#[test]
fn the_same_attacks_succeed_without_the_sandbox() {
    if !stands() {
        return;
    }
    let mut scene = Scene::new();
    let all: Vec<Attack> = attacks().into_iter().filter(|attack| usable(attack) && !attack.maybe).collect();
    let (planted, others): (Vec<Attack>, Vec<Attack>) =
        all.into_iter().partition(|attack| attack.group == table::LATER);
    let project = project(&others, false).outside();
    let ran = Ran::of(scene.command(&project, &begin(&[])).output().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    // A run puts back what it finds in the repository, so that these are planted by hand.
    for attack in &planted {
        let shell = scene.command(&project, &[]);
        let mut by_hand = Command::new("bash");
        by_hand.args(["-c", attack.command]).current_dir(project.path());
        by_hand.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        by_hand.output().unwrap();
    }
    let all: Vec<Attack> = others.into_iter().chain(planted).collect();
    // The user's git and programs, in the tree as the agent left it.
    let shell = scene.command(&project, &[]);
    let by_hand = table::BY_HAND;
    let mut by_user = Command::new("bash");
    by_user.args(["-c", by_hand]).current_dir(project.path());
    by_user.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    by_user.env("CUEGATE", crate::support::CUEGATE);
    let _ = by_user.output().unwrap();
    let through = succeeded(&project, &scene, &all);
    let failed: Vec<&str> =
        all.iter().map(|attack| attack.name).filter(|name| !through.contains(name)).collect();
    assert_eq!(failed, [""; 0], "{}", outputs(&project, &failed));
    let _ = scene.victim.wait();
}

/// Without bubblewrap, Landlock holds what the manual says, and no less.
#[test]
fn the_partial_level_holds_the_attacks_that_it_can() {
    if !cuegate_runner::sandbox::has_landlock() {
        eprintln!("skipped: the kernel has no Landlock of version 6");
        return;
    }
    let scene = Scene::new();
    let all = attacks().into_iter().filter(usable);
    let all: Vec<Attack> = all.filter(|attack| !table::IN_THE_TREE.contains(&attack.group)).collect();
    let project = project_of(&small(), &all, true);
    let programs = without_bwrap();
    let mut command = scene.command(&project, &begin(&[]));
    command.env("PATH", programs.path());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("a partial sandbox (Landlock, because"), "{}", ran.stderr);
    let through = succeeded(&project, &scene, &all);
    assert_eq!(through, table::BY_LANDLOCK_NOT_HELD, "{}", outputs(&project, &through));
}

/// A folder for `PATH` with all programs but bubblewrap.
pub fn without_bwrap() -> tempfile::TempDir {
    without_program("bwrap")
}

/// A folder for `PATH` with all programs but one.
pub fn without_program(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for entry in std::env::split_paths(&path).flat_map(fs::read_dir).flatten().flatten() {
        if entry.file_name() != name {
            let _ = std::os::unix::fs::symlink(entry.path(), folder.path().join(entry.file_name()));
        }
    }
    folder
}

/// The table in the manual has the same attacks.
#[test]
fn the_manual_lists_the_attacks() {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let all = attacks();
    for attack in &all {
        groups.entry(attack.group).or_default().push(attack.what);
    }
    let on_git = git::words();
    groups.insert(git::GROUP, on_git.iter().map(String::as_str).collect());
    let count = all.len() + on_git.len();
    let mut listed = format!("{count} attacks:\n\n| aim | attacks |\n|---|---|\n");
    for (group, whats) in &groups {
        listed.push_str(&format!("| {group} ({}) | {} |\n", whats.len(), whats.join("; ")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let manual = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- attacks -->\n", "<!-- end of attacks -->");
    let from = manual.find(begin).unwrap() + begin.len();
    let to = manual.find(end).unwrap();
    if std::env::var_os("CUEGATE_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{}{listed}{}", &manual[..from], &manual[to..])).unwrap();
        return;
    }
    assert_eq!(&manual[from..to], listed, "run this test with CUEGATE_WRITE_DOCS=1");
}
