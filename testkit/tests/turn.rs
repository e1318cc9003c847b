//! What a run adds to a real agent's turn: `cargo xtask bench` runs this, with the program to measure and a file for the
//! figures in the environment.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use cuegate_testkit::{
    offline,
    standin::{Reply, Scenario, Standin},
};
use serde_json::{Value, json};

/// Rounds of a bare turn and a run, after one that warms caches.
const ROUNDS: usize = 11;

/// An agent, the service that it asks, and a project with a flow of one ask.
struct Place {
    name: &'static str,
    cuegate: PathBuf,
    standin: Standin,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(name: &'static str, cuegate: &Path) -> Place {
        let answer = json!({"action": "closing", "summary": "Everything is done."});
        let standin = Standin::start(Scenario::new().reply(Reply::any().for_ever().json(answer)));
        let folder = tempfile::tempdir().unwrap();
        let place = Place { name, cuegate: cuegate.to_owned(), standin, folder };
        for (path, text) in definition() {
            place.write(&format!("project/.agent/one/{path}"), &text);
        }
        place.write("project/a.txt", "one\n");
        let words = place.standin.codex_args();
        let words =
            words.iter().filter(|word| word.starts_with("model_providers.") || word.starts_with("sandbox_"));
        let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
        let toml = format!("[providers.codex]\nservice = \"standin\"\nconfig = [{}]\n", words.join(", "));
        place.write("project/cuegate.toml", &toml);
        let identity =
            ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "begin"];
        for args in [&["init", "-q"][..], &["add", "-A"], &identity] {
            place.measure(Command::new("git").args(args));
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// The milliseconds that a command of the project takes, which has to succeed.
    fn measure(&self, command: &mut Command) -> f64 {
        let said = fs::File::create(self.at("said")).unwrap();
        command.current_dir(self.at("project")).stdout(said.try_clone().unwrap()).stderr(said);
        let begun = Instant::now();
        let status = command.status().unwrap();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        let said = || fs::read_to_string(self.at("said")).unwrap();
        assert!(
            status.success(),
            "{:?}: {status}: {} {:?}",
            command.get_program(),
            said(),
            self.standin.unmatched()
        );
        took
    }

    /// A whole run. `bin` holds the agent.
    fn run(&self, bin: &Path) -> f64 {
        let path = env::join_paths(
            [bin.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())),
        );
        let mut command = Command::new(&self.cuegate);
        command.args(["run", "one", "--json", "--provider", self.name]).stdin(Stdio::null());
        command.env("PATH", path.unwrap()).envs(self.standin.claude_env()).envs(self.standin.codex_env());
        self.measure(command.env("CODEX_API_KEY", "none"))
    }

    /// The turn of a run by itself: what the run gave to the agent, written down by a program of its name.
    fn turn(&self, agent: &Path) -> Turn {
        let (out, agent) = (self.at("bin"), agent.to_owned());
        let script = format!(
            "#!/bin/sh\ncase \"$1\" in -p|exec)\nprintf '%s\\0' \"$@\" >'{out}/args'; env -0 >'{out}/env'; cat >'{out}/stdin'\n\
             for word; do file=${{word#*=}}; if [ -f \"$file\" ]; then cp --parents \"$file\" '{out}/kept'; fi; done\n\
             exec '{agent}' \"$@\" <'{out}/stdin';;\nesac\nexec '{agent}' \"$@\"\n",
            out = out.display(),
            agent = agent.display()
        );
        self.write(&format!("bin/{}", self.name), &script);
        fs::set_permissions(self.at("bin").join(self.name), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(out.join("kept")).unwrap();
        self.run(&out);
        let fields = |name: &str| -> Vec<OsString> {
            let bytes = fs::read(out.join(name)).unwrap();
            let fields = bytes.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
            let mut fields: Vec<_> = fields.collect();
            fields.pop();
            fields
        };
        // A run that has ended has removed the files that its arguments name.
        let args = fields("args");
        for word in args.iter().filter_map(|word| word.to_str()) {
            let file = word.split_once('=').map_or(word, |(_, file)| file);
            if let Ok(text) = fs::read_to_string(out.join("kept").join(file.trim_start_matches('/'))) {
                self.write(file, &text);
            }
        }
        Turn { agent, args, env: fields("env"), stdin: out.join("stdin") }
    }

    /// What one turn is given, and how long it takes without a run and as one.
    fn figures(&self, agent: &Path) -> Value {
        let turn = self.turn(agent);
        let (mut bare, mut run) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let asked = self.standin.answered().len();
            let times = (self.measure(&mut turn.command()), self.run(agent.parent().unwrap()));
            let requests = self.standin.answered().len() - asked;
            assert!(requests.is_multiple_of(2), "both ask the same: {requests} requests");
            if round > 0 {
                bare.push(times.0);
                run.push(times.1);
            }
        }
        json!({"bare_ms": median(bare), "run_ms": median(run)})
    }
}

/// A turn, as it is started.
struct Turn {
    agent: PathBuf,
    args: Vec<OsString>,
    env: Vec<OsString>,
    stdin: PathBuf,
}

impl Turn {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.agent);
        command.args(&self.args).env_clear().stdin(fs::File::open(&self.stdin).unwrap());
        for variable in self.env.iter().filter_map(|variable| variable.to_str()?.split_once('=')) {
            command.env(variable.0, variable.1);
        }
        command
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One step that can do nothing but close.
fn definition() -> Vec<(&'static str, String)> {
    let about = json!({"version": "1.0.0", "name": "one", "displayName": "One", "description": "One ask",
        "runner": {"flow": {"systemPromptPath": "prompts/system.md"},
            "verdict": {"type": "detect:graph", "config": {"maxIterations": 2}},
            "boundaries": {"permissionMode": "acceptEdits"}}});
    let registry = json!({"agentId": "one", "version": "1.0.0", "c1": "steps", "userPromptsBase": "prompts",
        "schemasBase": "schemas", "entryStep": "close", "steps": {"close": {
            "stepId": "close", "name": "Close", "stepKind": "closure", "c2": "closure", "c3": "close",
            "edition": "default", "outputSchemaRef": {"file": "s.json", "schema": "close"},
            "structuredGate": {"allowedIntents": ["closing"], "intentField": "action",
                "intentSchemaRef": "#/properties/action"},
            "transitions": {"closing": {"target": null}}}}});
    let schema = json!({"definitions": {"close": {"type": "object", "required": ["action", "summary"],
        "additionalProperties": false,
        "properties": {"action": {"type": "string", "enum": ["closing"]}, "summary": {"type": "string"}}}}});
    vec![
        ("agent.json", about.to_string()),
        ("steps_registry.json", registry.to_string()),
        ("schemas/s.json", schema.to_string()),
        ("prompts/system.md", "You work with care.\n".to_owned()),
        ("prompts/steps/closure/close/f_default.md", "Look at what there is, and close.\n".to_owned()),
    ]
}

#[test]
#[ignore = "measures; `cargo xtask bench` runs it"]
fn what_a_run_adds_to_a_turn() {
    if !offline::inside() {
        return;
    }
    let set = |name: &str| {
        PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("`cargo xtask bench` sets {name}")))
    };
    let cuegate = set("CUEGATE_BENCH_PROGRAM");
    let agents = offline::agents();
    let figures = json!({
        "claude": Place::new("claude", &cuegate).figures(&agents.claude),
        "codex": Place::new("codex", &cuegate).figures(&agents.codex),
    });
    fs::write(set("CUEGATE_BENCH_FIGURES"), figures.to_string()).unwrap();
}
