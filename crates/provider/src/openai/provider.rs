//! The OpenAI provider: prepares the child process of an ask and its reader.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use super::{
    body, endpoint,
    endpoint::Endpoint,
    fault,
    fault::ServiceContext as FaultService,
    http,
    http::ClientTimeouts,
    meter::Meter,
    reader::OpenAiReader,
    settings::{OpenAiSettings, SchemaMode},
    wire::{OpenAiJob, RequestTrouble, TroubleKind},
};
use crate::{
    Capabilities, Fault, FaultClass, Inspection, Launch, Login, NetworkService, PreparedAsk, Problem,
    Provider, Request, SandboxNeeds,
};

/// The timeout of a probe of a server on this machine.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The command that runs [`super::openai_main`].
#[derive(Debug, Clone)]
pub struct OpenAiProgram {
    /// The program, usually this one.
    pub exe: PathBuf,
    /// Its arguments, usually the hidden subcommand.
    pub args: Vec<OsString>,
}

/// A provider for services that implement OpenAI Chat Completions.
pub struct OpenAiProvider {
    settings: OpenAiSettings,
    program: OpenAiProgram,
}

impl OpenAiProvider {
    /// Creates a provider with these settings. [`Provider::inspect`] and each ask validate them.
    pub fn new(settings: OpenAiSettings, program: OpenAiProgram) -> OpenAiProvider {
        OpenAiProvider { settings, program }
    }

    /// Requests the models of a server on this machine, the cheapest request of the API. The list itself is ignored,
    /// because servers accept more names than they list.
    fn probe(&self, endpoint: &Endpoint, timeout: Duration) -> Option<Problem> {
        let uri = format!("{}/models", endpoint.base()).parse().ok()?;
        let agent = http::build_http_client(&uri, ClientTimeouts { connect: timeout, idle: timeout });
        let key = self.settings.key_env.as_deref().and_then(endpoint::read_key_variable);
        let request = http::with_headers(
            agent.get(uri),
            &self.settings.headers,
            key.as_deref(),
            self.settings.key_header.as_deref(),
        );
        let trouble = match request.call() {
            Ok(response) => RequestTrouble::new(
                TroubleKind::Status(response.status().as_u16()),
                "it does not list its models",
            ),
            Err(error) => http::trouble_of_client_error(error, false),
        };
        // A silent server may be busy, and a server without a list of models may still answer.
        let harmless = match trouble.what {
            TroubleKind::Status(status) => !matches!(status, 401 | 403),
            what => matches!(what, TroubleKind::Silent | TroubleKind::BrokeOff),
        };
        (!harmless).then(|| fault::problem_of_trouble(&trouble, &self.service(endpoint, String::new())))
    }

    fn look(&self, timeout: Duration) -> Inspection {
        let mut problems = endpoint::check_settings(&self.settings);
        let endpoint = Endpoint::new(&self.settings).ok();
        if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| endpoint.is_local())
            && problems.is_empty()
        {
            problems.extend(self.probe(endpoint, timeout));
        }
        let at = endpoint.as_ref().map_or(&*self.settings.base_url, Endpoint::base);
        Inspection {
            at: Some(at.to_owned()),
            version: None,
            login: self.login(),
            model: self.settings.model.clone(),
            problems,
        }
    }

    fn service(&self, endpoint: &Endpoint, model: String) -> FaultService {
        FaultService {
            base: endpoint.base().to_owned(),
            is_local: endpoint.is_local(),
            key_env: self.settings.key_env.clone(),
            model,
        }
    }

    fn login(&self) -> Login {
        match &self.settings.key_env {
            None => Login::NotNeeded,
            Some(name) if endpoint::read_key_variable(name).is_some() => Login::Key(name.clone()),
            Some(_) => Login::Missing,
        }
    }
}

impl fmt::Debug for OpenAiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiProvider")
            .field("base_url", &self.settings.base_url)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl Provider for OpenAiProvider {
    fn name(&self) -> &str {
        "openai"
    }

    fn is_priced(&self, model: Option<&str>) -> bool {
        self.settings.prices.knows(model.or(self.settings.model.as_deref()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            schema: self.settings.schema != SchemaMode::None,
            // The API stores no sessions, and this process would lose them in a crash.
            sessions: false,
            fork: false,
            system_prompt: true,
            // The model has no tools, so any restriction holds.
            tools: true,
            cost: !self.settings.prices.0.is_empty(),
            edits: false,
            progress: true,
        }
    }

    /// Passes any name on, except the three short names of Anthropic's models. Services know those under longer names,
    /// so the user must map them.
    fn map_model_name(&self, name: &str) -> Option<String> {
        (!matches!(name, "opus" | "sonnet" | "haiku")).then(|| name.to_owned())
    }

    /// Contacts only a server on this machine. A missing model is not a problem, because an ask may name one.
    fn inspect(&self) -> Inspection {
        self.look(PROBE_TIMEOUT)
    }

    fn loads(&self) -> String {
        "none".to_owned()
    }

    fn needs(&self) -> SandboxNeeds {
        let services = NetworkService::at(&self.settings.base_url).into_iter().collect();
        let variables = self.settings.key_env.clone().into_iter().collect();
        SandboxNeeds { services, variables, ..SandboxNeeds::default() }
    }

    fn restore(&self, _receipts: &[String]) {}

    fn prepare(&self, request: &Request) -> Result<PreparedAsk, Fault> {
        let settings = &self.settings;
        if let Some(problem) = endpoint::check_settings(settings).into_iter().next() {
            return Err(problem.into_fault());
        }
        let endpoint = Endpoint::new(settings).map_err(Problem::into_fault)?;
        let model = request.model.as_ref().or(settings.model.as_ref()).ok_or_else(|| {
            Fault::new(FaultClass::UnknownModel, "no model is set (set `model`, or choose one for the run)")
        })?;
        let bound = body::compute_output_limit(settings, request, model)?;
        let job = OpenAiJob {
            url: endpoint.url(),
            body: body::build_body(settings, request, model, bound),
            key_env: settings.key_env.clone(),
            key_header: settings.key_header.clone(),
            headers: settings.headers.clone(),
            connect_timeout_ms: settings.connect_timeout_ms,
            idle_timeout_ms: settings.idle_timeout_ms,
        };
        let launch = Launch {
            program: self.program.exe.clone(),
            args: self.program.args.clone(),
            stdin: serde_json::to_vec(&job).expect("a job has string keys only"),
            ..Launch::default()
        };
        let meter = Meter::new(settings.prices.clone(), model.clone(), body::estimate_input_tokens(request));
        let structured = request.schema.is_some() && settings.schema != SchemaMode::None;
        let service = self.service(&endpoint, model.clone());
        let reader = OpenAiReader::new(self.program.exe.clone(), service, bound, structured, meter);
        Ok(PreparedAsk::Process { launch, reader: Box::new(reader) })
    }
}

#[cfg(test)]
mod tests;
