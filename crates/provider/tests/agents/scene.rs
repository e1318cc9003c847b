//! A provider with everything that its asks need.

use std::{
    cell::Cell,
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use cuegate_provider::{
    AskKind, Cap, Permission, Price, Prices, Provider, Request, Session,
    claude::{self, Claude},
    codex::{self, Codex},
    openai::{self, OpenAiProgram, OpenAiProvider},
    scripted::{ScriptedProgram, ScriptedProvider},
};
use cuegate_testkit::{
    offline,
    standin::{Scenario, Standin},
};
use tempfile::TempDir;

use crate::{
    drive::{self, Asked, Running},
    script,
};

/// The models of the asks, which have prices.
const CLAUDE_MODEL: &str = "claude-sonnet-4-5";
const OPENAI_MODEL: &str = "gpt-5.1-codex";

/// A provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "the words of `suite.rs`, which are those of the tests' names")]
pub enum Who {
    claude,
    codex,
    openai,
    scripted,
}

impl Who {
    /// All providers, in the order of the table.
    pub const ALL: [Who; 4] = [Who::claude, Who::codex, Who::openai, Who::scripted];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Who::claude => "claude",
            Who::codex => "codex",
            Who::openai => "openai",
            Who::scripted => "scripted",
        }
    }

    /// The model of its asks.
    pub fn model(self) -> &'static str {
        match self {
            Who::claude => CLAUDE_MODEL,
            _ => OPENAI_MODEL,
        }
    }
}

/// A provider, the stand-in of its service, and a working folder.
pub struct Scene {
    /// The stand-in of the service, which the scripted provider does not use.
    pub standin: Standin,
    /// The provider.
    pub provider: Box<dyn Provider>,
    folder: TempDir,
    asks: Cell<u32>,
}

impl Scene {
    /// Creates a provider whose service plays a scenario.
    pub fn new(who: Who, scenario: Scenario) -> Scene {
        Scene::with_env(who, scenario, &[])
    }

    /// Creates a provider whose service no longer listens.
    pub fn unreachable(who: Who) -> Scene {
        let mut scene = Scene::new(who, Scenario::new());
        drop(std::mem::replace(&mut scene.standin, Standin::start(Scenario::new())));
        scene
    }

    /// Like [`Scene::new`], with further environment variables for the program.
    pub fn with_env(who: Who, scenario: Scenario, more: &[(&str, &str)]) -> Scene {
        let script = (who == Who::scripted).then(|| script::of(&scenario));
        let standin = Standin::start(scenario);
        let env = |own: Vec<(String, String)>| {
            let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            own.into_iter().chain(more).collect()
        };
        let provider: Box<dyn Provider> = match who {
            Who::claude => Box::new(Claude::new(claude::ClaudeSettings {
                program: offline::agents().claude,
                model: Some(CLAUDE_MODEL.to_owned()),
                prices: prices(CLAUDE_MODEL),
                env: env(address_and_key(standin.claude_env())),
                ..claude::ClaudeSettings::default()
            })),
            Who::codex => Box::new(Codex::new(codex::CodexSettings {
                program: offline::agents().codex,
                model: Some(OPENAI_MODEL.to_owned()),
                service: Some("standin".to_owned()),
                // Its sandbox would create an empty `.git` in /tmp, above the projects of other tests.
                config: vec![service(&standin), "sandbox_workspace_write.exclude_slash_tmp=true".to_owned()],
                prices: prices(OPENAI_MODEL),
                env: env(standin.codex_env()),
                ..codex::CodexSettings::default()
            })),
            Who::openai => {
                let program = OpenAiProgram { exe: example("openai_agent"), args: Vec::new() };
                let settings = openai::OpenAiSettings {
                    // The stand-in accepts any key, and this variable always exists.
                    key_env: Some("HOME".to_owned()),
                    model: Some(OPENAI_MODEL.to_owned()),
                    prices: prices(OPENAI_MODEL),
                    ..openai::OpenAiSettings::new(standin.openai_base())
                };
                Box::new(OpenAiProvider::new(settings, program))
            }
            Who::scripted => {
                let program = ScriptedProgram { exe: example("scripted_agent"), args: Vec::new() };
                Box::new(ScriptedProvider::new(script.unwrap(), Some(program)))
            }
        };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Scene { standin, provider, folder, asks: Cell::new(0) }
    }

    /// The working folder of asks.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    /// A folder beside it, which asks may not write to.
    pub fn beside(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// The content of a file in the working folder.
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.work().join(name)).ok()
    }

    /// An ask that may read.
    pub fn ask(&self, prompt: &str) -> Request {
        self.asks.set(self.asks.get() + 1);
        let id = format!("run/{}", self.asks.get());
        let scratch = self.folder.path().join(format!("scratch-{}", self.asks.get()));
        Request {
            id,
            step: "work".to_owned(),
            subject: None,
            persona: None,
            persona_names: Vec::new(),
            readable: Vec::new(),
            kind: AskKind::Work,
            prompt: prompt.to_owned(),
            system: None,
            schema: None,
            model: None,
            session: None,
            permission: Permission::Default,
            tools: None,
            tool_servers: Vec::new(),
            effort: None,
            work: self.work(),
            timeout_ms: 600_000,
            cap: Cap::default(),
            unattended: false,
            scratch,
        }
    }

    /// An ask that may edit files.
    pub fn work_ask(&self, prompt: &str) -> Request {
        Request { permission: Permission::AcceptEdits, ..self.ask(prompt) }
    }

    /// An ask that continues or forks the session of another one.
    pub fn next_ask(&self, prompt: &str, before: &Asked, fork: bool) -> Request {
        let before = before.answer();
        let id = before.session.clone().expect("an answer names its conversation");
        Request { session: Some(Session { id, fork, totals: before.totals }), ..self.ask(prompt) }
    }

    /// Performs an ask to its end.
    pub fn put(&self, request: &Request) -> Asked {
        drive::put(&*self.provider, request)
    }

    /// Performs a plain ask to its end.
    pub fn say(&self, prompt: &str) -> Asked {
        self.put(&self.ask(prompt))
    }

    /// Starts an ask.
    pub fn begin(&self, request: &Request) -> Running {
        Running::begin(&*self.provider, request)
    }

    /// Waits for a condition; panics after a timeout.
    pub fn wait(&self, what: &str, is: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is() {
            assert!(Instant::now() < deadline, "never came: {what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The body of the last request that the service answered.
    pub fn last_request(&self) -> String {
        let answered = self.standin.answered();
        answered
            .last()
            .unwrap_or_else(|| panic!("no agent was called: {:?}", self.standin.unmatched()))
            .body
            .to_string()
    }
}

/// Keeps only address and key. The provider itself must turn off Claude's retries and updates.
fn address_and_key(env: Vec<(String, String)>) -> Vec<(String, String)> {
    env.into_iter().filter(|(name, _)| name.starts_with("ANTHROPIC_")).collect()
}

fn prices(model: &str) -> Prices {
    Prices(BTreeMap::from([(
        model.to_owned(),
        Price { input: 1_000.0, cached_input: Some(0.0), output: 2_000.0, as_of: None },
    )]))
}

/// The stand-in as a service in Codex's configuration. The provider itself must turn off retries.
fn service(standin: &Standin) -> String {
    format!(
        "model_providers.standin={{name=\"standin\",base_url=\"{}\",env_key=\"OPENAI_API_KEY\",\
         wire_api=\"responses\",supports_websockets=false}}",
        standin.openai_base()
    )
}

fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let exe = test.ancestors().nth(2).map(|target| target.join("examples").join(name)).unwrap();
    assert!(
        Path::new(&exe).exists(),
        "{} is missing; `cargo build -p cuegate-provider --examples` makes it",
        exe.display()
    );
    exe
}
