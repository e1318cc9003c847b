//! A driven agent as a [`Provider`].

use std::{
    collections::BTreeMap,
    env, fs, iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use cuegate_ask::Permission;
use serde_json::{Value, json};

use super::{
    job::{AnswerRoute, DriverJob, DriverProgram},
    rows::{AgentRow, SessionSupport, find_row},
    settings::{AnswerTransport, DrivenSettings},
};
use crate::{
    Capabilities, Fault, FaultClass, Inspection, Launch, Login, PreparedAsk, Problem, Provider, Request,
    SandboxNeeds, Shared,
    exec::ExecReader,
    program::{
        locate::{list_named_files, locate_program},
        probe::{LOOK_MAX, Version, capture_program_output},
        tool_servers::expand_server,
    },
    sandbox_needs::NetworkService,
};

/// An agent whose program our child drives.
#[derive(Debug, Clone)]
pub struct DrivenAgent {
    pub(super) name: String,
    pub(super) row: Option<&'static AgentRow>,
    pub(super) settings: DrivenSettings,
    pub(super) program: DriverProgram,
    pub(super) is_sandboxed: bool,
}

impl DrivenAgent {
    /// Creates an agent: one of [`super::DRIVEN_NAMES`], or one of the user's own with a command.
    pub fn new(name: &str, settings: DrivenSettings, program: DriverProgram) -> DrivenAgent {
        DrivenAgent { name: name.to_owned(), row: find_row(name), settings, program, is_sandboxed: false }
    }

    /// The program and its arguments.
    pub(super) fn command(&self) -> Vec<String> {
        let own = |row: &AgentRow| {
            let program = self.settings.program.as_ref();
            let program = program.map_or_else(|| row.program.to_owned(), |path| path.display().to_string());
            let args = row.args.iter().map(|word| (*word).to_owned());
            iter::once(program).chain(args).collect()
        };
        let mut command: Vec<String> = self.row.map_or_else(|| self.settings.command.clone(), own);
        command.extend(self.settings.args.iter().cloned());
        command
    }

    fn program_name(&self) -> PathBuf {
        self.command().first().map(PathBuf::from).unwrap_or_default()
    }

    /// The value of a variable for its program.
    fn variable(&self, name: &str) -> Option<String> {
        self.settings.env.get(name).cloned().or_else(|| env::var(name).ok()).filter(|value| !value.is_empty())
    }

    fn continues(&self) -> bool {
        self.row.map_or(self.settings.sessions, |row| row.session == SessionSupport::Resume)
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        let row = self.row.into_iter().flat_map(|row| row.env);
        let mut all: BTreeMap<String, String> =
            row.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.extend(self.settings.env.clone());
        if self.name == "opencode" {
            const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
            let user = self.variable(CONTENT).and_then(|text| serde_json::from_str(&text).ok());
            let mut config = user.unwrap_or_else(|| json!({}));
            merge_json(&mut config, opencode_config());
            all.insert(CONTENT.to_owned(), config.to_string());
        }
        if self.name == "copilot" && self.variable("COPILOT_PROVIDER_BASE_URL").is_some() {
            // With a service of the user's own nothing of GitHub is needed.
            all.entry("COPILOT_OFFLINE".to_owned()).or_insert_with(|| "true".to_owned());
        }
        all
    }

    pub(super) fn mode(&self, permission: Permission) -> Option<String> {
        match self.row {
            Some(row) => {
                let mode = row.modes.iter().find(|(of, _)| *of == permission);
                mode.map(|(_, mode)| (*mode).to_owned())
            }
            None => self.settings.modes.get(permission.as_str()).cloned(),
        }
    }

    pub(super) fn answer_route(&self) -> AnswerRoute {
        match (self.row, self.settings.answer) {
            (Some(_), _) | (None, AnswerTransport::Stdio) => AnswerRoute::Stdio,
            (None, AnswerTransport::Http) => AnswerRoute::Http,
            (None, AnswerTransport::None) => AnswerRoute::None,
        }
    }

    fn home(&self) -> PathBuf {
        self.variable("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default()
    }

    /// A path in the home folder, and where the user's variables put its folder, which not every agent follows.
    fn list_places(&self, home: &Path, path: &str) -> Vec<PathBuf> {
        let moved = XDG_FOLDERS.iter().find_map(|(folder, variable)| {
            let rest = Path::new(path).strip_prefix(folder).ok()?;
            let base = self.variable(variable).map(PathBuf::from).filter(|base| base.is_absolute())?;
            Some(base.join(rest))
        });
        iter::once(home.join(path)).chain(moved).collect()
    }

    /// Writes what the agent itself would write when it is started the first time.
    fn write_first_files(&self) {
        let home = self.home();
        for (path, text) in self.row.into_iter().flat_map(|row| row.first_files) {
            // The last place is that of the variables, if they are set.
            if let Some(path) = self.list_places(&home, path).last().filter(|path| !path.exists()) {
                // If it cannot be written, the agent says so when it starts.
                path.parent().map(fs::create_dir_all);
                fs::write(path, text).ok();
            }
        }
    }

    fn login(&self) -> Login {
        let keys = self.row.into_iter().flat_map(|row| row.keys);
        keys.into_iter()
            .find(|name| self.variable(name).is_some())
            .map_or(Login::Unknown, |name| Login::Key((*name).to_owned()))
    }
}

/// Folders of the home folder, and the variables that put them elsewhere.
const XDG_FOLDERS: [(&str, &str); 4] = [
    (".local/share", "XDG_DATA_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".config", "XDG_CONFIG_HOME"),
    (".cache", "XDG_CACHE_HOME"),
];

/// What every call of OpenCode sets: it asks before it acts, and keeps no copies of the tree.
fn opencode_config() -> Value {
    json!({
        "permission": { "edit": "ask", "bash": "ask", "webfetch": "ask" },
        "autoupdate": false, "share": "disabled", "snapshot": false,
    })
}

/// Puts the fields of `over` over those of `base`.
fn merge_json(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge_json(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

impl Provider for DrivenAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: self.row.is_some() || self.settings.answer != AnswerTransport::None,
            sessions: self.continues(),
            fork: false,
            system_prompt: false,
            tools: false,
            cost: self.row.map_or(self.settings.cost, |row| row.cost),
            edits: true,
            progress: false,
        }
    }

    fn is_priced(&self, model: Option<&str>) -> bool {
        self.capabilities().cost || self.settings.prices.knows(model.or(self.settings.model.as_deref()))
    }

    fn needs_model(&self) -> bool {
        self.row.is_some_and(|row| row.needs_model) && self.settings.model.is_none()
    }

    fn map_model_name(&self, name: &str) -> Option<String> {
        // What the short names of Anthropic's models are there, the user has to say.
        (!matches!(name, "opus" | "sonnet" | "haiku")).then(|| name.to_owned())
    }

    fn inspect(&self) -> Inspection {
        let program = self.program_name();
        let Some(at) = locate_program(&program) else {
            let hint = match self.row {
                Some(row) => format!(
                    "install it with `{}`, or set `program` in `[providers.{}]`",
                    row.install, self.name
                ),
                None => format!(
                    "set `command` in `[agents.{}]` of cuegate.toml to a program in PATH, or a path",
                    self.name
                ),
            };
            let what =
                format!("`{}`, the program of the agent `{}`, was not found", program.display(), self.name);
            let problem = Problem { what, hint, class: FaultClass::MissingProgram };
            return Inspection {
                problems: vec![problem],
                model: self.settings.model.clone(),
                ..Inspection::default()
            };
        };
        let environment: Vec<(String, String)> = self.environment().into_iter().collect();
        let version = || capture_program_output(&at, &["--version"], &environment, LOOK_MAX).ok();
        let version = self.row.and_then(|_| version()).as_deref().and_then(Version::find);
        Inspection {
            at: Some(at.display().to_string()),
            version: version.map(|version| version.to_string()),
            login: self.login(),
            model: self.settings.model.clone(),
            problems: Vec::new(),
        }
    }

    fn loads(&self) -> String {
        "the user's and the project's".to_owned()
    }

    fn tool_transports(&self) -> &'static [&'static str] {
        match self.row {
            Some(row) if row.name == "opencode" => &["stdio", "http"],
            Some(_) => &["stdio", "http", "sse"],
            // What every agent of the protocol has to support.
            None => &["stdio"],
        }
    }

    fn needs(&self) -> SandboxNeeds {
        let home = self.home();
        let expand = |path: &Path| match path.strip_prefix("~") {
            Ok(rest) => home.join(rest),
            Err(_) => path.to_owned(),
        };
        let rows = || self.row.into_iter();
        let services = rows()
            .flat_map(|row| row.hosts.iter().map(|host| NetworkService::named(*host)))
            .chain(
                rows()
                    .flat_map(|row| row.addresses)
                    .filter_map(|name| NetworkService::at(&self.variable(name)?)),
            )
            .chain(self.settings.hosts.iter().cloned());
        let places = |path: &&str| self.list_places(&home, path);
        let state = rows().flat_map(|row| row.state).flat_map(places);
        let variables = rows().flat_map(|row| row.variables).map(|name| (*name).to_owned());
        SandboxNeeds {
            programs: iter::once(self.program_name())
                .chain(list_named_files(&self.settings.command))
                .collect(),
            services: services.collect(),
            state: state.chain(self.settings.state.iter().map(|path| expand(path))).collect(),
            settings: rows().flat_map(|row| row.own).flat_map(places).collect(),
            keys: Vec::new(),
            variables: variables.chain(self.settings.variables.iter().cloned()).collect(),
        }
    }

    fn in_sandbox(&self) -> Option<Shared> {
        Some(Arc::new(DrivenAgent { is_sandboxed: true, ..self.clone() }))
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        let model = request.model.clone().or_else(|| self.settings.model.clone());
        if let (None, Some(row)) = (&model, self.row.filter(|row| row.needs_model)) {
            let why = format!("no model of {} is named: without one it calls a hosted model", row.name);
            return Err(Fault::new(FaultClass::UnknownModel, why));
        }
        if self.is_sandboxed {
            self.write_first_files();
        }
        let job = DriverJob {
            prompt: request.prompt.clone(),
            schema: request.schema.clone(),
            model: model.clone(),
            session: request.session.as_ref().map(|session| session.id.clone()),
            totals: request.session.as_ref().and_then(|session| session.totals),
            tools: request.tools.clone(),
            tool_servers: request.tool_servers.iter().map(expand_server).collect(),
            folder: request.work.clone(),
            scratch: request.scratch.clone(),
            ..self.create_job(request.permission)
        };
        let launch = Launch {
            program: self.program.exe.clone(),
            args: self.program.args.clone(),
            stdin: serde_json::to_vec(&job).expect("a job has string keys only"),
            ..Launch::default()
        };
        let prices = self.settings.prices.clone();
        let reader = ExecReader::new((&self.name, model.as_deref()), &request.prompt, prices, true);
        Ok(PreparedAsk::Process { launch, reader: Box::new(reader) })
    }
}
