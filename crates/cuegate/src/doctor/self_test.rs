//! Attacks on the sandbox of this machine: each is tried inside, and outside as a control.

use std::{
    fs,
    net::TcpListener,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use cuegate_flow::model::sandbox::{Network, SandboxPolicy};
use cuegate_provider::{locate_or_missing, locate_program};
use cuegate_runner::{
    StateDir,
    process::{self, Launch},
    sandbox::{Sandbox, SandboxLevel},
};
use serde_json::{Value, json};

use crate::Failure;
use crate::config::Config;
use crate::run::start_run::Program;

/// The time limit of all attacks of one side.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The attacks: what, the command of a shell that succeeds if the attack does, and another one for the control run where
/// the same would harm this machine.
const ATTACKS: [(&str, &str, Option<&str>); 32] = [
    ("read a file of another project", "grep -q secret $OTHER/.env", None),
    ("read it by a symbolic link", "ln -sf $OTHER/.env soft && grep -q secret soft", None),
    ("read it by a hard link", "ln $OTHER/.env hard && grep -q secret hard", None),
    ("read it by /proc/self/root", "grep -q secret /proc/self/root$OTHER/.env", None),
    ("read the journal of the project", "grep -q journal .cuegate/runs/earlier/log", None),
    ("list the home folder", "test $(ls -A $HOME | wc -l) -ge $HOME_ENTRIES", None),
    ("read /etc/shadow", "grep -q : /etc/shadow", None),
    ("write a file elsewhere", "echo x > $OTHER/written", None),
    ("write it by a link", "ln -s $OTHER led && echo x > led/written", None),
    ("write to /etc", "exec 3>> /etc/hosts", None),
    ("install a git hook", "echo 'exit 0' > .git/hooks/pre-push", None),
    ("link a git hook to a file", "ln -s ../../later .git/hooks/post-merge", None),
    ("change the settings of git", "git config core.fsmonitor evil", None),
    ("replace the settings of git", "cp .git/config c && echo '# replaced' >> c && mv c .git/config", None),
    ("set attributes of git", "echo '* filter=x' > .git/info/attributes", None),
    ("add objects of another repository", "echo $OTHER > .git/objects/info/alternates", None),
    ("replace the repository", "mv .git moved", Some("mv .git moved && mv moved .git")),
    (
        "replace the hooks",
        "cp -r .git/hooks h && touch h/replaced && rm -r .git/hooks && mv h .git/hooks",
        None,
    ),
    ("change cuegate.toml", "echo >> cuegate.toml", None),
    ("replace cuegate.toml", "mv cuegate.toml moved.toml", Some("mv cuegate.toml c && mv c cuegate.toml")),
    ("see a process outside", "kill -0 $OUTSIDE", None),
    ("read its variables", "cat /proc/$OUTSIDE/environ", None),
    ("read its files", "ls /proc/$OUTSIDE/root/", None),
    ("end the supervisor", "kill -9 $PPID && sleep 0.1 && ! test -d /proc/$PPID", Some("kill -0 $PPID")),
    ("read the supervisor", "cat /proc/1/environ", Some("cat /proc/$PPID/environ")),
    ("make a setuid file", "cp /bin/sh su && chmod u+s su && test -u su", None),
    ("make a setgid file", "cp /bin/sh sg && chmod g+s sg && test -g sg", None),
    ("change the kernel", "exec 3>> /proc/sys/kernel/core_pattern", None),
    ("leave a core file", "test \"$(ulimit -Hc)\" != 0", None),
    ("connect to a port of this machine", "exec 3<>/dev/tcp/127.0.0.1/$PORT", None),
    ("find a socket of another program", "test -S $OTHER/socket", None),
    ("find a network interface", "tail -n +3 /proc/net/dev | grep -v lo:", None),
];

/// Attacks on the repository that agents may do in a git folder of their own: the file of the user's that shows success,
/// and a text in it.
const IN_GIT: [(&str, &str, &str); 7] = [
    ("install a git hook", "hooks/pre-push", "exit 0"),
    ("link a git hook to a file", "hooks/post-merge", ""),
    ("change the settings of git", "config", "evil"),
    ("replace the settings of git", "config", "replaced"),
    ("set attributes of git", "info/attributes", "filter"),
    ("add objects of another repository", "objects/info/alternates", "other"),
    ("replace the hooks", "hooks/replaced", ""),
];

/// The result of one attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackOutcome {
    /// It succeeds outside, and fails inside.
    Held,
    /// It fails on this machine in any case.
    Impossible,
    /// It succeeds inside.
    Through,
}

impl AttackOutcome {
    /// The words in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            AttackOutcome::Held => "held",
            AttackOutcome::Impossible => "impossible here",
            AttackOutcome::Through => "NOT HELD",
        }
    }
}

/// What became of each attack.
#[derive(Debug, Clone)]
pub struct SelfTestResult {
    /// The sandbox in words.
    pub sandbox: String,
    /// Whether it is a partial one.
    pub partial: bool,
    /// The attacks and their results.
    pub attacks: Vec<(&'static str, AttackOutcome)>,
}

/// Tries all attacks in a temporary project.
///
/// # Errors
/// When this machine has no sandbox, or a file or process cannot be created.
pub fn self_test(program: &Program, config: &Config) -> Result<SelfTestResult, Failure> {
    let policy = SandboxPolicy { network: Network::None, writable: Vec::new() };
    let sandbox =
        Sandbox::raise(policy, config.sandbox.options(), program.inside(), true).map_err(|why| Failure {
            message: format!("no sandbox: {why}"),
            hint: Some(why.hint.to_owned()),
            code: crate::exit::ENVIRONMENT,
        })?;
    let inside = find_successful_attacks(program, Some(&sandbox))?;
    let outside = find_successful_attacks(program, None)?;
    let outcome = |name: &str| match (inside.contains(&name.to_owned()), outside.contains(&name.to_owned())) {
        (true, _) => AttackOutcome::Through,
        (false, true) => AttackOutcome::Held,
        (false, false) => AttackOutcome::Impossible,
    };
    let attacks = ATTACKS.iter().map(|(name, ..)| (*name, outcome(name))).collect();
    let partial = matches!(sandbox.level(), SandboxLevel::Partial(_));
    Ok(SelfTestResult { sandbox: sandbox.describe("the working tree"), partial, attacks })
}

impl SelfTestResult {
    /// How many attacks ended so.
    pub fn count(&self, wanted: AttackOutcome) -> usize {
        self.attacks.iter().filter(|(_, outcome)| *outcome == wanted).count()
    }

    /// The results as JSON.
    pub fn to_json(&self) -> Value {
        let row =
            |(name, outcome): &(&str, AttackOutcome)| json!({ "attack": name, "result": outcome.as_str() });
        let rows: Vec<Value> = self.attacks.iter().map(row).collect();
        let ok = self.count(AttackOutcome::Through) == 0;
        json!({ "schema": "cuegate/self-test/v1", "ok": ok, "sandbox": self.sandbox, "partial": self.partial, "attacks": rows })
    }
}

/// The attacks that succeed.
fn find_successful_attacks(program: &Program, sandbox: Option<&Sandbox>) -> Result<Vec<String>, Failure> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| {
            Failure::environment(format!("failed to {what} for the self-test: {error}"))
        }
    };
    let folder = tempfile::tempdir().map_err(failed("create a folder"))?;
    let root = fs::canonicalize(folder.path()).map_err(failed("read a folder"))?;
    let (project, other) = (root.join("project"), root.join("other"));
    for folder in [project.join(".cuegate/runs/earlier"), other.clone(), root.join("command")] {
        fs::create_dir_all(folder).map_err(failed("create a folder"))?;
    }
    for (file, text) in [
        (other.join(".env"), "secret"),
        (project.join(".cuegate/runs/earlier/log"), "journal"),
        (project.join("cuegate.toml"), "\n"),
    ] {
        fs::write(file, text).map_err(failed("write a file"))?;
    }
    let made = Command::new(locate_or_missing("git"))
        .args(["init", "--quiet"])
        .arg(&project)
        .env_remove("GIT_DIR")
        .status()
        .map_err(failed("start git"))?;
    if !made.success() {
        return Err(Failure::environment("failed to create a repository for the self-test"));
    }
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed("open a port"))?;
    let port = listener.local_addr().map_err(failed("open a port"))?.port();
    let _socket = UnixListener::bind(other.join("socket")).map_err(failed("open a socket"))?;
    let home = std::env::home_dir().and_then(|home| fs::read_dir(home).ok()).map_or(0, Iterator::count);
    let mut script = String::new();
    for (name, command, control) in ATTACKS {
        let command = if sandbox.is_some() { command } else { control.unwrap_or(command) };
        script.push_str(&format!("if ( {command} ) > /dev/null 2>&1; then echo '{name}'; fi\n"));
    }
    let env: [(&str, String); 4] = [
        ("OTHER", other.display().to_string()),
        ("HOME_ENTRIES", home.max(1).to_string()),
        ("OUTSIDE", std::process::id().to_string()),
        ("PORT", port.to_string()),
    ];
    let shell = locate_program("bash").unwrap_or_else(|| locate_or_missing("sh"));
    let launch = Launch {
        args: vec!["-c".into(), script.into()],
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        timeout: Some(TIMEOUT),
        ..Launch::new(shell, project.clone())
    };
    let command = root.join("command");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut names = runtime
        .map_err(failed("start"))?
        .block_on(run_attack_script(program, sandbox, launch, &project, &command))?;
    names.retain(|name| {
        let Some((_, path, text)) = IN_GIT.iter().find(|(attack, ..)| attack == name) else { return true };
        let file = project.join(".git").join(path);
        file.symlink_metadata().is_ok()
            && (text.is_empty() || fs::read_to_string(&file).is_ok_and(|found| found.contains(text)))
    });
    Ok(names)
}

async fn run_attack_script(
    program: &Program,
    sandbox: Option<&Sandbox>,
    launch: Launch,
    project: &Path,
    command: &Path,
) -> Result<Vec<String>, Failure> {
    let sealed = [PathBuf::from("cuegate.toml")];
    let home = StateDir::new(project);
    let (launch, guard) = match sandbox {
        Some(sandbox) => {
            let (heard, _) = tokio::sync::mpsc::channel(1);
            let (launch, guard) = sandbox.enclose_validator(launch, &home, home.root(), &sealed, heard)?;
            (launch, Some(guard))
        }
        None => (launch, None),
    };
    let failed = |error: process::ProcessError| Failure::from(cuegate_runner::Error::from(error));
    let mut child = process::start_command(&program.shim(), command, &launch).await.map_err(failed)?;
    while child.line().await.is_some() {}
    let finished = child.wait().await.map_err(failed)?;
    drop(guard);
    if finished.exit != process::Exit::Code(0) && finished.stdout.is_empty() {
        let why = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        return Err(Failure::environment(format!("the self-test did not run: {why}")));
    }
    Ok(String::from_utf8_lossy(&finished.stdout).lines().map(str::to_owned).collect())
}
