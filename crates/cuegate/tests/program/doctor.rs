//! `doctor` on a simulated machine: programs in a test folder, an empty home.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::support::{Project, Ran, at_work_in};

/// Secrets that no output may contain.
const SECRETS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "sk-ant-of-the-test"),
    ("CODEX_API_KEY", "sk-codex-of-the-test"),
    ("SERVICE_KEY", "sk-service-of-the-test"),
];
/// Versions that are recent enough.
const CLAUDE: &str = "echo '99.1.0 (Claude Code)'";
/// The same of codex, which also tells of its login: of this one that it has none.
const CODEX: &str =
    r#"case "$1" in --version) echo codex-cli 99.1.0 ;; *) echo Not logged in >&2; exit 1 ;; esac"#;

/// A machine with git and nothing else.
struct Machine {
    project: Project,
    secrets: bool,
    /// The address of the service of its agents.
    service: String,
}

/// A service that answers every request with this status.
fn service(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    format!("http://{address}")
}

impl Machine {
    fn new() -> Machine {
        let machine =
            Machine { project: Project::empty(), secrets: false, service: service("404 Not Found") };
        for folder in ["bin", "home", "here/.git"] {
            fs::create_dir_all(machine.at(folder)).unwrap();
        }
        for program in ["sh", "sleep", "git"] {
            let path = env::var_os("PATH").unwrap();
            let found =
                env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
            symlink(found.unwrap(), machine.at("bin").join(program)).unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.project.path().join(path)
    }

    /// With a program that does this.
    fn with(self, name: &str, body: &str) -> Machine {
        let path = format!("bin/{name}");
        let _ = fs::remove_file(self.at(&path));
        self.project.write(&path, &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(self.at(&path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn without(self, name: &str) -> Machine {
        fs::remove_file(self.at("bin").join(name)).unwrap();
        self
    }

    fn config(self, toml: &str) -> Machine {
        self.project.write("here/cuegate.toml", toml);
        self
    }

    /// With keys in the environment.
    fn keys(self) -> Machine {
        Machine { secrets: true, ..self }
    }

    fn doctor(&self, more: &[&str]) -> Ran {
        let mut command = self.project.command(&[&["doctor"], more].concat());
        command.current_dir(self.at("here")).env_clear();
        // Codex wants its folder elsewhere than below the one for temporary files.
        let folders = [("PATH", "bin"), ("HOME", "home"), ("CODEX_HOME", "home/codex"), ("TMPDIR", "tmp")];
        command.envs(folders.map(|(name, folder)| (name, self.at(folder))));
        if self.secrets {
            command.envs(SECRETS);
        }
        command.env("ANTHROPIC_BASE_URL", &self.service).env("OPENAI_BASE_URL", &self.service);
        let ran = Ran::of(command.output().unwrap());
        for (name, secret) in SECRETS {
            assert!(!format!("{ran:?}").contains(secret), "{name} is printed: {ran:?}");
        }
        ran
    }

    /// One check: result, finding and hint.
    fn says(&self, name: &str) -> [String; 3] {
        let result = self.doctor(&["--json"]).json();
        let row = row(&result, name);
        ["standing", "found", "hint"].map(|key| {
            let text = row[key].as_str().unwrap_or("-");
            text.replace(self.project.path().to_str().unwrap(), "MACHINE")
        })
    }
}

fn row<'r>(result: &'r Value, name: &str) -> &'r Value {
    result["findings"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

const INSTALL_CLAUDE: &str =
    "install it with `curl -fsSL https://claude.ai/install.sh | bash`, or update it with `claude update`";

#[test]
fn with_git_and_one_agent_runs_work() {
    let machine = Machine::new().with("claude", CLAUDE).keys();
    let ran = machine.doctor(&["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.json();
    assert_eq!((&result["schema"], &result["ok"]), (&json!("cuegate/doctor/v1"), &json!(true)));
    let rows = result["findings"].as_array().unwrap();
    let names: Vec<_> =
        rows.iter().map(|row| (row["name"].as_str().unwrap(), row["provider"] == true)).collect();
    let expected = [
        ("git", false),
        ("disk", false),
        ("claude", true),
        ("codex", true),
        ("openai", true),
        ("namespaces", false),
        ("sandbox", false),
    ];
    assert_eq!(names, expected);
    for row in rows {
        let keys: Vec<_> = row.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "provider", "standing", "found", "hint"]);
        assert!(["ok", "less", "no"].contains(&row["standing"].as_str().unwrap()), "{row}");
        assert_eq!(
            row["hint"].is_null(),
            row["standing"] == "ok",
            "what does not work has something to do: {row}"
        );
    }
    let [standing, found, _] = machine.says("claude");
    assert_eq!(standing, "ok");
    assert_eq!(found, "99.1.0, MACHINE/bin/claude, login: the key in ANTHROPIC_API_KEY");
    assert_eq!(machine.says("sandbox")[0], "less", "without bubblewrap runs work, with less");
    let ran = machine.doctor(&[]);
    assert!(ran.stdout.ends_with("\nruns work here with each agent marked ok\n"), "{}", ran.stdout);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
}

#[test]
fn without_a_provider_no_run_works() {
    let ran = Machine::new().doctor(&[]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stdout.ends_with("\nruns do not work here: fix the lines marked no\n"), "{}", ran.stdout);
    for what in ["program `claude` not found", "program `codex` not found", INSTALL_CLAUDE, "base_url"] {
        assert!(ran.stdout.contains(what), "{what}: {}", ran.stdout);
    }
    assert_eq!(Machine::new().doctor(&["--json"]).json()["ok"], false);
}

#[test]
fn a_config_that_cannot_be_read_hides_nothing_else() {
    let machine = Machine::new().with("claude", CLAUDE).keys().config("[run]\nretries = 3\n");
    let ran = machine.doctor(&["--json"]);
    assert_eq!((ran.code, &ran.json()["ok"]), (4, &json!(false)));
    let [standing, found, hint] = machine.says("config");
    assert!(standing == "no" && found.contains("cuegate.toml:2:1: unknown field `retries`"), "{found}");
    assert!(hint.contains("docs/configuration.md"), "{hint}");
    assert!(machine.says("git")[1].starts_with("git version"));
}

#[test]
fn without_git_no_run_works() {
    let machine = Machine::new().with("claude", CLAUDE).keys().without("git");
    let ran = machine.doctor(&["--json"]);
    assert_eq!((ran.code, &ran.json()["ok"]), (4, &json!(false)));
    let [standing, found, hint] = machine.says("git");
    assert_eq!(standing, "no");
    assert!(found.starts_with("`git` does not work: No such file"), "{found}");
    assert!(hint.starts_with("install git 2.31 or newer"), "{hint}");
}

#[test]
fn git_must_be_recent_and_print_its_version() {
    let old = Machine::new().with("git", "echo git version 2.30.9");
    assert_eq!(old.says("git")[..2], ["no", "git version 2.30.9 is too old"]);
    let odd = Machine::new().with("git", "echo '<html>not found</html>'");
    assert_eq!(odd.says("git")[..2], ["no", "`git --version` prints no version"]);
    let outside = Machine::new().with("git", "echo git version 2.31.0");
    fs::remove_dir(outside.at("here/.git")).unwrap();
    assert_eq!(
        outside.says("git")[..2],
        ["less", "git version 2.31.0, but this folder is not in a repository"]
    );
}

#[test]
fn an_outdated_agent_is_rejected() {
    let machine = Machine::new().keys();
    let machine =
        machine.with("claude", "echo '1.0.128 (Claude Code)'").with("codex", "echo codex-cli 0.42.0");
    let [standing, found, hint] = machine.says("claude");
    assert_eq!((&*standing, &*hint), ("no", INSTALL_CLAUDE));
    assert!(found.starts_with("`MACHINE/bin/claude` is 1.0.128; 2.1."), "{found}");
    let [standing, found, hint] = machine.says("codex");
    assert_eq!(standing, "no");
    assert!(found.starts_with("`MACHINE/bin/codex` is 0.42.0; 0."), "{found}");
    assert_eq!(hint, "install or update it with `npm install -g @openai/codex`");
    assert_eq!(machine.doctor(&[]).code, 4);
}

/// What such a program says instead may be long, and about anything.
#[test]
fn an_agent_without_a_version_is_rejected() {
    let machine = Machine::new().with("claude", "echo banana").keys();
    assert_eq!(machine.says("claude")[..2], ["no", "`MACHINE/bin/claude --version` names no version"]);
    let machine = Machine::new()
        .with("codex", "i=0; while [ $i -lt 9 ]; do echo broken $i; i=$((i+1)); done >&2; exit 3");
    let [standing, found, _] = machine.says("codex");
    assert_eq!(standing, "no");
    assert_eq!(found, "`MACHINE/bin/codex --version` failed: exit status: 3: broken 0");
}

#[test]
fn a_hanging_agent_times_out() {
    // What hangs is what the script started, and both hang at once.
    let machine = Machine::new().with("claude", "sleep 600; :").with("codex", "sleep 600; :").keys();
    let ran = machine.doctor(&["--json"]);
    assert_eq!(ran.code, 4);
    for name in ["claude", "codex"] {
        let found = row(&ran.json(), name)["found"].as_str().unwrap().to_owned();
        assert!(found.contains("--version` failed: timed out after "), "{found}");
    }
    machine.project.all_gone();
    assert!(at_work_in(machine.project.path()).is_empty());
}

#[test]
fn an_agent_without_a_login_is_rejected() {
    let machine = Machine::new().with("claude", CLAUDE).with("codex", CODEX);
    let claude =
        ["no", "claude is not logged in", "start `claude` once and log in, or set ANTHROPIC_API_KEY"];
    if !cfg!(target_os = "macos") {
        assert_eq!(machine.says("claude"), claude);
        assert_eq!(machine.doctor(&[]).code, 4);
    }
    let [standing, found, hint] = machine.says("codex");
    assert_eq!((&*standing, &*found), ("no", "codex is not logged in"));
    assert!(hint.contains("`codex login`"), "{hint}");
    let machine = machine.keys();
    let codex = ["ok", "99.1.0, MACHINE/bin/codex, login: the key in CODEX_API_KEY", "-"];
    assert_eq!(machine.says("codex"), codex);
    // Part of a key is in what codex says of its login.
    let told = CODEX.replace(
        "echo Not logged in >&2; exit 1",
        "echo 'Logged in using an API key - sk-codex-of-the-test'",
    );
    let machine = Machine::new().with("codex", &told);
    assert_eq!(
        machine.says("codex")[..2],
        ["ok", "99.1.0, MACHINE/bin/codex, login: the key in its own login"]
    );
}

/// A key is tried with a request that costs nothing.
#[test]
fn a_rejected_key_is_told() {
    let machine = |status| Machine {
        service: service(status),
        ..Machine::new().keys().with("claude", CLAUDE).with("codex", CODEX)
    };
    for agent in ["claude", "codex"] {
        let [standing, found, hint] = machine("401 Unauthorized").says(agent);
        assert_eq!((&*standing, &*hint), ("no", "set a valid key, or log in with the agent's own command"));
        assert!(found.starts_with("the login is rejected (401): "), "{found}");
        let [standing, found, _] = machine("200 OK").says(agent);
        assert!(standing == "ok" && found.ends_with(", login accepted"), "{found}");
    }
    let gone = Machine { service: "http://127.0.0.1:1".to_owned(), ..machine("200 OK") };
    let [standing, found, _] = gone.says("claude");
    assert!(standing == "ok" && found.contains("login not tried: "), "{found}");
}

#[test]
fn the_install_hint_fits_the_version_of_node() {
    let hint = |version: &str| {
        let machine = Machine::new().keys().with("node", &format!("echo {version}"));
        machine.says("claude")[2].clone()
    };
    assert!(hint("v20.20.2").contains("needs Node.js 22.0.0, and here is 20.20.2"), "{}", hint("v20.20.2"));
    assert!(hint("v24.1.0").starts_with("install it with `npm install -g @anthropic-ai/claude-code`"));
}

/// A service of this machine is asked whether it is there, any other one is not: to its address, and to the proxy on
/// the way there, nobody connects.
#[test]
fn no_remote_service_is_called() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let machine = Machine::new().keys().config(
        "[providers.openai]\nbase_url = \"https://api.example.invalid/v1\"\nkey_env = \"SERVICE_KEY\"\nmodel = \"m\"\n",
    );
    let mut command = machine.project.command(&["doctor", "--json"]);
    let address = format!("http://{}", proxy.local_addr().unwrap());
    command.current_dir(machine.at("here")).env_clear().envs(SECRETS);
    command.env("PATH", machine.at("bin")).env("HOME", machine.at("home"));
    command.envs(["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, &address)));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = row(&ran.json(), "openai")["found"].clone();
    assert_eq!(found, "https://api.example.invalid/v1, login: the key in SERVICE_KEY, model m");
    assert!(!ran.stdout.contains("sk-service-of-the-test"));
    assert!(proxy.accept().is_err(), "somebody connected");
}

#[test]
fn a_local_service_must_respond() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let toml = format!("[providers.openai]\nbase_url = \"http://{gone}/v1\"\n");
    let machine = Machine::new().config(&toml);
    let [standing, found, hint] = machine.says("openai");
    assert_eq!(standing, "no", "{found}");
    assert!(found.contains(&gone.to_string()) && hint != "-", "{found} {hint}");
    assert_eq!(machine.doctor(&[]).code, 4);
}

/// An agent that speaks as much of the Agent Client Protocol as a trial needs, in a few lines of sh. It starts no answer
/// server.
const ACP: &str = r#"while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *initialize*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"Goat","version":"3"},"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
  *session/new*) : > "$HOME/asked"
    printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s","modes":{"currentModeId":"code","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}}\n' "$id" ;;
  *session/prompt*) : > "$HOME/prompted" ;;
  esac
done"#;

#[test]
fn one_agent_is_tried_without_a_prompt() {
    let machine = Machine::new().with("goat", ACP).with("other", "echo hello; exit 3").config(
        "[agents.goat]\ncommand = [\"goat\"]\nanswer = \"none\"\n[agents.other]\ncommand = [\"other\"]\n",
    );
    fs::create_dir_all(machine.at("tmp")).unwrap();
    let ran = machine.doctor(&["--agent", "goat"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "Goat 3, ACP 1; load",
        "modes: ask, code",
        "sessions = true",
        "modes = { plan = \"ask\", acceptEdits = \"code\" }",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(machine.at("home/asked").exists() && !machine.at("home/prompted").exists());
    let json = machine.doctor(&["--agent", "goat", "--json"]).json();
    assert_eq!(
        (&json["schema"], &json["probe"]["continues"]),
        (&json!("cuegate/agent-trial/v1"), &json!(true))
    );
    let ran = machine.doctor(&["--agent", "other"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("ended during `initialize` (exit status: 3)"), "{}", ran.stdout);
    assert_eq!(machine.doctor(&["--agent", "nobody"]).code, 2);
}
