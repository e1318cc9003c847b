//! The tools: what they take, and what they do by the commands of this program.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cuegate_journal::{Journal, RunId};
use cuegate_observe::{Control, Problem, Project as _, StartRequest};
use cuegate_provider::{ToolReply, ToolServer};
use cuegate_view::RunState;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    limits::AskedLimits,
    news::{TEXT_MAX, describe_run, shorten_text, wait_for_news},
};
use crate::before_start::nesting::OuterRun;
use crate::cli::commands::local_project::{LocalProject, parse_refusal};
use crate::cli::commands::start::{detach::find_run_of_key, prompt_user::question_of_run};
use crate::cli::commands::{texts_of_run, view_of};
use crate::{Failure, config, project};

/// The longest key, in bytes.
const KEY_MAX: usize = 200;
/// The longest wait of a call, in seconds: clients end calls that take longer than a minute.
const WAIT_MAX: u64 = 45;

/// The tools of a project.
pub(super) struct RunTools {
    project: Arc<LocalProject>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckCall {
    path: Option<String>,
    #[serde(default)]
    from: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceCall {
    path: String,
    #[serde(default)]
    params: Map<String, Value>,
    agent: Option<String>,
    #[serde(default)]
    limits: AskedLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartCall {
    workflow: String,
    key: String,
    task: Option<String>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    limits: AskedLimits,
    agent: Option<String>,
    model: Option<String>,
    #[serde(default = "default_worktree")]
    worktree: bool,
}

fn default_worktree() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitCall {
    run: String,
    after: Option<u64>,
    seconds: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActCall {
    run: String,
    action: RunAction,
    text: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunAction {
    Answer,
    Cancel,
    Resume,
    Retry,
    Apply,
}

/// Why a call failed, for the model.
struct CallError(String);

impl From<Failure> for CallError {
    fn from(failure: Failure) -> CallError {
        CallError(with_hint(&failure.message, failure.hint.as_deref()))
    }
}

impl From<Problem> for CallError {
    fn from(problem: Problem) -> CallError {
        CallError(with_hint(&problem.message, problem.hint.as_deref()))
    }
}

impl From<cuegate_runner::Error> for CallError {
    fn from(error: cuegate_runner::Error) -> CallError {
        Problem::from(error).into()
    }
}

fn with_hint(message: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| message.to_owned(), |hint| format!("{message}\nhint: {hint}"))
}

impl RunTools {
    pub(super) fn new(project: Arc<LocalProject>) -> RunTools {
        RunTools { project }
    }

    /// The findings of a workflow, or of all, from one of them on.
    fn check(&self, call: &CheckCall) -> Result<Value, CallError> {
        let words = ["check", "--json", "--"].into_iter().chain(call.path.as_deref());
        let found = self.read_json(&words.collect::<Vec<_>>())?;
        let all = found["diagnostics"].as_array().cloned().unwrap_or_default();
        let mut reply =
            json!({ "ok": found["ok"], "errors": found["errors"], "warnings": found["warnings"] });
        let mut shown: Vec<String> = Vec::new();
        let mut left = TEXT_MAX - 200;
        for finding in all.iter().skip(call.from) {
            let line = describe_finding(finding);
            if line.len() > left && !shown.is_empty() {
                break;
            }
            left = left.saturating_sub(line.len() + 4);
            shown.push(line);
        }
        let next = call.from + shown.len();
        reply["findings"] = shown.into();
        if next < all.len() {
            reply["more"] = json!(format!("{} more: call again with \"from\": {next}", all.len() - next));
        }
        Ok(reply)
    }

    fn price(&self, call: &PriceCall) -> Result<String, CallError> {
        let options = price_options(call.agent.as_deref(), &call.params, &call.limits)?;
        let words = ["price"].into_iter().chain(options.iter().map(String::as_str)).chain(["--", &call.path]);
        let ran = self.project.run_cuegate(&words.collect::<Vec<_>>(), "")?;
        if !ran.status.success() {
            return Err(parse_refusal(&String::from_utf8_lossy(&ran.stderr)).into());
        }
        let text = String::from_utf8_lossy(&ran.stdout);
        Ok(match text.len() > TEXT_MAX {
            true => format!("{}…", &text[..text.floor_char_boundary(TEXT_MAX)]),
            false => text.into_owned(),
        })
    }

    fn start(&self, call: StartCall) -> Result<String, CallError> {
        if let Some(outer) = OuterRun::find() {
            return Err(outer.refusal().into());
        }
        if call.key.trim().is_empty() || call.key.len() > KEY_MAX {
            return Err(CallError(format!(
                "`key` names the task in at most {KEY_MAX} bytes, such as `fix-iso-weeks`"
            )));
        }
        // First of all: whatever was changed meanwhile, the work is begun.
        if let Some(run) = find_run_of_key(&self.project.place().home, &call.key)? {
            return self.describe_earlier(&run);
        }
        let config = config::load_config(self.project.place().home.root())?;
        call.limits.check(&config.budget.budget()).map_err(CallError)?;
        let checked = self.check(&CheckCall { path: Some(call.workflow.clone()), from: 0 })?;
        if checked["ok"] != true {
            return Err(CallError(format!(
                "nothing was started, because of errors in the workflow: {checked}"
            )));
        }
        let bound = self.bound(&call)?;
        let args: Result<BTreeMap<String, String>, CallError> =
            call.params.iter().map(|(name, value)| Ok((name.clone(), text_of_param(name, value)?))).collect();
        let before = self.known_runs()?;
        let AskedLimits { usd, tokens, calls, minutes, call_usd } = call.limits;
        let started = self.project.control(Control::Start(Box::new(StartRequest {
            definition: call.workflow,
            task: call.task,
            args: args?,
            agent: call.agent,
            model: call.model,
            worktree: call.worktree,
            budget_usd: usd,
            budget_tokens: tokens,
            budget_calls: calls,
            budget_minutes: minutes,
            call_usd,
            key: Some(call.key),
            ..StartRequest::default()
        })))?;
        let run = started["run"].as_str().unwrap_or_default();
        // Another client may have been first.
        if before.iter().any(|id| id.as_str() == run) {
            let run: RunId = run.parse().map_err(|_| CallError(format!("`{run}` is no run")))?;
            return self.describe_earlier(&run);
        }
        let next = match call.worktree {
            true => {
                "call `wait`; it works in a worktree of its own, and `act` with `apply` brings its changes here"
            }
            false => "call `wait`; it works in this folder: change no files until it has ended",
        };
        Ok(json!({ "run": run, "earlier": false, "at_most": bound, "next": next }).to_string())
    }

    /// The reply to a second start with a key: the run of the first start, with its task.
    fn describe_earlier(&self, run: &RunId) -> Result<String, CallError> {
        let journal = self.project.place().view()?;
        let view = view_of(&*journal, run)?;
        let whole = view.to_json(&texts_of_run(&*journal, run));
        Ok(json!({
            "run": run.as_str(), "earlier": true, "workflow": whole["flow"], "state": whole["state"],
            "task": whole["task"].as_str().map(|task| shorten_text(task, 300)),
            "next": "it was started with this key before, and nothing was started now: call `wait`, or start with another key",
        })
        .to_string())
    }

    /// The most that the run can do and cost.
    fn bound(&self, call: &StartCall) -> Result<Value, CallError> {
        let options = price_options(call.agent.as_deref(), &call.params, &call.limits)?;
        let words = ["price", "--json"].into_iter().chain(options.iter().map(String::as_str));
        let priced = self.read_json(&words.chain(["--", &call.workflow]).collect::<Vec<_>>())?;
        let most = &priced["max"];
        Ok(json!({ "calls": most["asks"], "usd": most["cost_usd"], "tokens": most["tokens"] }))
    }

    fn wait(&self, call: &WaitCall) -> Result<String, CallError> {
        let (journal, run) = self.open(&call.run)?;
        let seconds = call.seconds.unwrap_or(WAIT_MAX as f64).clamp(0.0, WAIT_MAX as f64);
        let news = wait_for_news(&*journal, &run, call.after, Duration::from_secs_f64(seconds))?;
        Ok(news.to_string())
    }

    fn act(&self, call: ActCall) -> Result<String, CallError> {
        let (journal, run) = self.open(&call.run)?;
        if !matches!(call.action, RunAction::Cancel | RunAction::Apply)
            && let Some(outer) = OuterRun::find()
        {
            return Err(outer.refusal().into());
        }
        let action = call.action;
        let control = match action {
            RunAction::Answer => {
                let text = call.text.filter(|text| !text.trim().is_empty());
                let text =
                    text.ok_or_else(|| CallError("`answer` needs the user's words as `text`".to_owned()))?;
                Control::Answer { run: run.clone(), text }
            }
            RunAction::Cancel => Control::Cancel { run: run.clone() },
            RunAction::Resume => Control::Resume { run: run.clone() },
            RunAction::Retry => Control::Retry { run: run.clone(), say: call.text },
            RunAction::Apply => Control::Apply { run: run.clone() },
        };
        if let RunAction::Resume = action
            && question_of_run(&*journal, &run)?.is_some_and(|question| !question.trim().is_empty())
            && matches!(view_of(&*journal, &run)?.state, RunState::Suspended(_))
        {
            return Err(CallError(
                "it waits for an answer: `act` with `answer` and the user's words".to_owned(),
            ));
        }
        let said = match &control {
            Control::Apply { run } => Some(self.apply(run)?),
            _ => {
                self.project.control(control)?;
                None
            }
        };
        let live = project::liveness_of_run(&*journal, &run)?;
        let mut reply = describe_run(&*journal, &run, live)?;
        if let Some(said) = said {
            reply["applied"] = said.into();
        }
        Ok(reply.to_string())
    }

    /// Applies the changes of a run. Returns what the command says of it.
    fn apply(&self, run: &RunId) -> Result<String, CallError> {
        let ran = self.project.run_cuegate(&["apply", run.as_str()], "")?;
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        match ran.status.success() {
            true => Ok(shorten_text(&said, 400)),
            false => Err(parse_refusal(&said).into()),
        }
    }

    fn known_runs(&self) -> Result<Vec<RunId>, CallError> {
        let Some(journal) = project::open_journal_read_only(&self.project.place().home)? else {
            return Ok(Vec::new());
        };
        let runs = journal.runs().map_err(Failure::from)?;
        Ok(runs.into_iter().map(|known| known.run).collect())
    }

    fn open(&self, run: &str) -> Result<(Arc<dyn Journal>, RunId), CallError> {
        if run.is_empty() {
            return Err(CallError("`run` is the id of a run, or `last`".to_owned()));
        }
        let journal = self.project.place().view()?;
        let run = project::find_run_id(&self.project.place().home, &*journal, run)?;
        Ok((journal, run))
    }

    /// The JSON that a command prints, however it ends.
    fn read_json(&self, words: &[&str]) -> Result<Value, CallError> {
        let ran = self.project.run_cuegate(words, "")?;
        serde_json::from_slice(&ran.stdout)
            .map_err(|_| parse_refusal(&String::from_utf8_lossy(&ran.stderr)).into())
    }
}

/// `error unknown-target at steps.json:2:11: no step is called `gone`; did you mean `done`?`
fn describe_finding(finding: &Value) -> String {
    let text = |key: &str| finding[key].as_str().unwrap_or_default();
    let place = match (finding["file"].as_str(), &finding["line"], &finding["column"]) {
        (Some(file), Value::Number(line), Value::Number(column)) => format!(" at {file}:{line}:{column}"),
        (Some(file), ..) => format!(" in {file}"),
        _ => String::new(),
    };
    let hint = finding["hint"].as_str().map_or_else(String::new, |hint| format!("; {hint}"));
    shorten_text(&format!("{} {}{place}: {}{hint}", text("severity"), text("code"), text("message")), 500)
}

fn price_options(
    agent: Option<&str>,
    params: &Map<String, Value>,
    limits: &AskedLimits,
) -> Result<Vec<String>, CallError> {
    let mut options: Vec<String> = agent.map(|agent| format!("--provider={agent}")).into_iter().collect();
    for (name, value) in params {
        options.push(format!("--set={name}={}", text_of_param(name, value)?));
    }
    options.extend(limits.options());
    Ok(options)
}

fn text_of_param(name: &str, value: &Value) -> Result<String, CallError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(CallError(format!(
            "the value of the parameter `{name}` is a text, a number, true or false: write a list as one text, as \
             `cuegate run --set` takes it"
        ))),
    }
}

fn read_call<T: DeserializeOwned>(arguments: &Value) -> Result<T, CallError> {
    T::deserialize(arguments).map_err(|error| {
        // In the words of JSON, not of the types that read it.
        let mut why = error.to_string();
        for (ours, plain) in [
            ("f64", "a number"),
            ("u64", "a whole number"),
            ("usize", "a whole number"),
            ("a boolean", "true or false"),
        ] {
            why = why.replace(&format!("expected {ours}"), &format!("expected {plain}"));
        }
        if let Some(at) = why.find("expected struct ") {
            why.truncate(at);
            why.push_str("expected an object");
        }
        CallError(format!("the arguments do not fit: {why}"))
    })
}

impl ToolServer for RunTools {
    fn name(&self) -> &str {
        "cuegate"
    }

    fn instructions(&self) -> String {
        "Cuegate runs workflows of coding agents in the background; their commands decide whether the work is done. Use it \
         for work that must be verified, that needs several agents, or that takes long. First `check` and `price`, tell the \
         user the worst case and ask for a limit; then `start`, and `wait` with the cursor until `ended` is true. Never \
         invent a limit. Report `proof`, `cost_usd` and `changed_files`; \
         without `verified` nothing proved the work: say so."
            .to_owned()
    }

    fn list_tools(&mut self) -> Vec<Value> {
        let text = |about: &str| json!({ "type": "string", "description": about });
        let tool = |name: &str,
                    title: &str,
                    about: &str,
                    reads: bool,
                    required: &[&str],
                    properties: Value| {
            json!({
                "name": name, "title": title, "description": about,
                "inputSchema": {
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false,
                },
                "annotations": { "readOnlyHint": reads, "destructiveHint": false, "openWorldHint": !reads },
            })
        };
        let workflow = "The name of a workflow of this project or a built-in one (`minimal`, `develop`, `test-first`, …), or a path";
        let limits = AskedLimits::schema();
        vec![
            tool(
                "check",
                "Check workflows",
                "Finds errors in a workflow before anything is spent. Call it after each edit of one.",
                true,
                &[],
                json!({
                    "path": text("A name or a path; without it all workflows of the project"),
                    "from": { "type": "integer", "minimum": 0, "description": "The first finding to show" },
                }),
            ),
            tool(
                "price",
                "Price a workflow",
                "Computes the most that a run can do and cost, and what would lower it.",
                true,
                &["path"],
                json!({
                    "path": text(workflow),
                    "params": { "type": "object", "description": "The workflow's parameters" },
                    "agent": text("The agent, such as claude or codex"),
                    "limits": limits,
                }),
            ),
            tool(
                "start",
                "Start a run",
                "Starts a run in the background and returns its id at once. Needs a limit of the user. Then call wait.",
                false,
                &["workflow", "key"],
                json!({
                    "workflow": text(workflow),
                    "task": text("The task, in words that need no other context"),
                    "params": { "type": "object", "description": "The workflow's parameters" },
                    "limits": limits,
                    "key": text("A name of this task that you choose, such as `fix-iso-weeks`: a second start with it starts nothing"),
                    "agent": text("The agent, such as claude or codex; without it that of the settings"),
                    "model": text("The model for all calls"),
                    "worktree": {
                        "type": "boolean", "default": true,
                        "description": "Whether it works in a git worktree of its own instead of this folder",
                    },
                }),
            ),
            tool(
                "wait",
                "Wait for a run",
                "Waits at most 45 s until a run ends or asks something, and tells what happened since `after`. Call it again \
                 with the `cursor` of its reply until `ended` is true or there is a question.",
                true,
                &["run"],
                json!({
                    "run": text("The id of the run, or `last`"),
                    "after": { "type": "integer", "minimum": 0, "description": "The cursor of the last reply" },
                    "seconds": { "type": "number", "minimum": 0, "maximum": WAIT_MAX },
                }),
            ),
            tool(
                "act",
                "Act on a run",
                "Answers the question of a run with the user's words, cancels it, resumes one that stopped, retries one that \
                 failed, or applies the changes of its worktree to this folder.",
                false,
                &["run", "action"],
                json!({
                    "run": text("The id of the run, or `last`"),
                    "action": { "enum": ["answer", "cancel", "resume", "retry", "apply"] },
                    "text": text("The answer, or what the agent should know when it retries"),
                }),
            ),
        ]
    }

    fn call_tool(&mut self, name: &str, arguments: &Value) -> Option<ToolReply> {
        let called = match name {
            "check" => read_call(arguments).and_then(|call| self.check(&call)).map(|found| found.to_string()),
            "price" => read_call(arguments).and_then(|call| self.price(&call)),
            "start" => read_call(arguments).and_then(|call| self.start(call)),
            "wait" => read_call(arguments).and_then(|call| self.wait(&call)),
            "act" => read_call(arguments).and_then(|call| self.act(call)),
            _ => return None,
        };
        Some(match called {
            Ok(text) => ToolReply { text, ..ToolReply::default() },
            Err(CallError(text)) => {
                let end = text.floor_char_boundary(TEXT_MAX);
                ToolReply { text: text[..end].to_owned(), is_error: true, ..ToolReply::default() }
            }
        })
    }
}
