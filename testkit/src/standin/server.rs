//! The server: one thread that accepts, one for each connection.

use std::{
    collections::{BTreeMap, HashMap},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::SystemTime,
};

use serde_json::Value;

use super::{answer::serve, http::Connection, play::Played, scenario::Scenario};

/// The key that clients are given. Any key is taken, none is refused.
const KEY: &str = "standin";

/// A model API on this machine. It ends, with every connection, when it is dropped.
pub struct Standin {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as a client sent it.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// When it was read.
    pub at: SystemTime,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; a text when it was not JSON, null when there was none.
    pub body: Value,
    /// Which reply of the scenario answered, counted from 0; none for probes and for what no reply fits.
    pub reply: Option<usize>,
    /// The newest user turn as it was found, empty when the request has none.
    pub user: String,
    /// The names of the tools on offer, after that of their namespace where they have one: `functions.exec`.
    pub tools: Vec<String>,
}

pub(super) struct Shared {
    pub scenario: Scenario,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub played: Played,
    pub requests: Vec<Recorded>,
    /// Connections by their number, to end those that hang.
    open: HashMap<usize, TcpStream>,
    connections: usize,
    ended: bool,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    /// The model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }
}

impl Standin {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When no port can be listened on.
    pub fn start(scenario: Scenario) -> Standin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared { scenario, state: Mutex::default() });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Standin { address, shared, accepting: Some(accepting) }
    }

    /// Where it listens, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What clients of OpenAI's APIs take as their base.
    pub fn openai_base(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Every request so far, in the order in which they were read.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// The requests that some reply answered.
    pub fn answered(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.reply.is_some()).collect()
    }

    /// The user turns of requests for which there was no reply.
    pub fn unmatched(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        let asked = requests.filter(|request| request.reply.is_none() && !request.user.is_empty());
        asked.map(|request| request.user).collect()
    }

    /// The environment by which Claude talks to this and to nobody else, and does not retry.
    pub fn claude_env(&self) -> Vec<(String, String)> {
        pairs(&[
            ("ANTHROPIC_BASE_URL", &self.url()),
            ("ANTHROPIC_API_KEY", KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ])
    }

    /// The environment for codex, beside [`Standin::codex_args`].
    pub fn codex_env(&self) -> Vec<(String, String)> {
        pairs(&[("OPENAI_API_KEY", KEY)])
    }

    /// The arguments by which codex talks to this and to nobody else, and does not retry. They stand after `exec` (or
    /// `exec resume`).
    pub fn codex_args(&self) -> Vec<String> {
        let provider = format!(
            "model_providers.standin={{name=\"standin\",base_url=\"{}\",env_key=\"OPENAI_API_KEY\",\
             wire_api=\"responses\",request_max_retries=0,stream_max_retries=0,supports_websockets=false}}",
            self.openai_base()
        );
        let words = [
            "-c",
            "model_provider=standin",
            "-c",
            &provider,
            "--disable",
            "plugins",
            "--disable",
            "apps",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
            // Its sandbox would put an empty `.git` into /tmp for as long as it runs, above the projects of other tests.
            "-c",
            "sandbox_workspace_write.exclude_slash_tmp=true",
        ];
        words.map(str::to_owned).to_vec()
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.ended = true;
            for stream in state.open.values() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Names and values, of variables or headers.
pub(super) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut state = shared.state();
        if state.ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(twin) = stream.try_clone() else { continue };
        state.connections += 1;
        let number = state.connections;
        state.open.insert(number, twin);
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A client that goes before it has all is nobody's fault here.
            let _ = serve(&shared, Connection::new(stream));
            shared.state().open.remove(&number);
        });
    }
}
