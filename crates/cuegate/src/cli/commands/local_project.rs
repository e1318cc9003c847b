//! A project as the page and the terminal need it: views that need its definitions or git, and control by this program.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    ops::ControlFlow,
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream},
    process::{Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use cuegate_engine::EndState;
use cuegate_journal::{Journal, Liveness, RunId};
use cuegate_observe::{Control, Observer, Problem, Project, StartRequest};
use cuegate_provider::redact_secret_forms;
use cuegate_runner::StateDir;
use cuegate_view::{
    Graph, RunState, TimeZone, batch_json, batches_json, check_json, render_report, svg_without_style,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::follow_up::serve;
use crate::batch::shown;
use crate::cli::commands::start::list;
use crate::cli::commands::take::diff;
use crate::cli::commands::tools::agents::read_agents_json;
use crate::cli::commands::{ProjectPlace, load_with_defaults, texts_of_run, view_of};
use crate::project::FoldedRun;
use crate::run::moved_run;
use crate::{Failure, Program, config, definition, definition::KeptFiles, exit, run_changes::compare_files};

/// The time in which a process begins to drive a run or refuses to: it may wait for the one before it to let go.
const STARTS: Duration = Duration::from_secs(20);
/// The time in which it then writes its first record, and how often that is looked at.
const WRITES: Duration = Duration::from_millis(1500);
const EVERY: Duration = Duration::from_millis(20);
/// The time in which a server has to answer.
const ANSWERS: Duration = Duration::from_secs(5);

/// A project whose runs are shown.
pub(in crate::cli::commands) struct LocalProject {
    place: ProjectPlace,
    observer: Observer,
    program: Program,
}

impl LocalProject {
    pub(in crate::cli::commands) fn new(place: &ProjectPlace) -> Result<LocalProject, Failure> {
        let home = place.home.clone();
        let own =
            ProjectPlace { here: place.here.clone(), home: home.clone(), builtins: place.builtins.clone() };
        Ok(LocalProject { place: own, observer: Observer::new(home), program: Program::current()? })
    }

    /// Interrupts the process that drives a run, as Ctrl-C does.
    fn pause(&self, run: &RunId) -> Result<(), Problem> {
        let lease = self.journal()?.holder(run).map_err(cuegate_runner::Error::from)?;
        let owner = lease
            .map(|lease| lease.owner)
            .filter(|owner| owner.is_here() && owner.liveness() == Liveness::Alive);
        let Some(pid) = owner.and_then(|owner| Pid::from_raw(i32::try_from(owner.pid).ok()?)) else {
            return Err(Problem::new(409, format!("no process of this machine drives run {run}")));
        };
        kill_process(pid, Signal::INT)
            .map_err(|error| Problem::new(500, format!("failed to pause run {run}: {error}")))
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Problem> {
        self.observer.journal()?.ok_or_else(|| Problem::new(404, "this project has no runs"))
    }

    /// Loads the definition of a run from the files that it kept.
    fn definition(&self, run: &RunId) -> Result<definition::CompiledDefinition, Problem> {
        let journal = self.journal()?;
        let folded = cuegate_runner::read_run(&*journal, run)?;
        let started = folded.started();
        let kept = started.sources.iter().map(|kept| (kept.path.clone(), kept.blob.clone()));
        let files = KeptFiles::new(&*journal, run, kept);
        Ok(definition::compile_definition(
            &files,
            &started.base,
            started.file.as_deref(),
            &started.set,
            &started.load,
        ))
    }

    pub(in crate::cli::commands) fn place(&self) -> &ProjectPlace {
        &self.place
    }

    /// Runs this program in the project, and returns its standard output.
    fn cuegate(&self, args: &[&str], input: &str) -> Result<String, Problem> {
        let ran = self.run_cuegate(args, input)?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        Err(parse_refusal(&String::from_utf8_lossy(&ran.stderr)))
    }

    /// Runs this program in the project, however it ends.
    pub(in crate::cli::commands) fn run_cuegate(
        &self,
        args: &[&str],
        input: &str,
    ) -> Result<Output, Problem> {
        let failed = |error: std::io::Error| Problem::new(500, format!("failed to start cuegate: {error}"));
        let mut child = Command::new(self.program.path())
            .args(self.journal_flag(args))
            .args(args)
            .current_dir(self.place.home.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().map_err(failed)
    }

    /// The argument that names the journal, unless it is among others.
    fn journal_flag(&self, words: &[&str]) -> Option<String> {
        let is_there =
            words.iter().take_while(|word| **word != "--").any(|word| word.starts_with("--journal"));
        self.place.home.shared().and_then(|shared| shared.flag()).filter(|_| !is_there)
    }

    /// Refuses what makes no sense for a run that has ended.
    pub(in crate::cli::commands) fn goes_on(&self, run: &RunId, what: &str) -> Result<(), Problem> {
        let view = view_of(&*self.journal()?, run).map_err(problem_of_failure)?;
        match &view.state {
            // A larger limit continues it.
            RunState::Ended(EndState::Exhausted) if what == "resumed" => Ok(()),
            RunState::Ended(_) => Err(Problem::new(
                409,
                format!("run {run} has ended ({}), so it cannot be {what}", view.state.as_str()),
            )),
            _ => Ok(()),
        }
    }

    /// Resumes a run in a process of its own.
    fn resume(&self, run: &RunId) -> Result<(), Problem> {
        self.goes_on(run, "resumed")?;
        self.go_on_with(run, &["resume", run.as_str(), "--background"])
    }

    /// The same for a run that failed.
    fn retry(&self, run: &RunId, say: Option<&str>) -> Result<(), Problem> {
        let say = say.map(|say| format!("--say={say}"));
        let words: Vec<&str> =
            ["retry", run.as_str(), "--background"].into_iter().chain(say.as_deref()).collect();
        self.go_on_with(run, &words)
    }

    /// Runs this program in a process of its own, so that it goes on with a run. Its output is kept beside that of
    /// `run --detach`. Returns when the run has gone on, so that who reads it next does not see what it waited for before,
    /// or when the process has refused.
    pub(in crate::cli::commands) fn go_on_with(&self, run: &RunId, words: &[&str]) -> Result<(), Problem> {
        let failed =
            |error: std::io::Error| Problem::new(500, format!("failed to resume run {run}: {error}"));
        let journal = self.journal()?;
        let begin = count_records(&*journal, run, 0)?;
        let folder = self.place.home.dir().join("output");
        fs::create_dir_all(&folder).map_err(failed)?;
        let path = folder.join(format!("{run}.log"));
        // A new file: an agent without a full sandbox may have put a link there.
        let _ = fs::remove_file(&path);
        let mut options = fs::OpenOptions::new();
        let output = options.create_new(true).append(true).mode(0o600).open(&path).map_err(failed)?;
        let mut child = Command::new(self.program.path())
            .args(self.journal_flag(words))
            .args(words)
            .current_dir(self.place.home.root())
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        let mut until = Instant::now() + STARTS;
        let mut drives = false;
        while Instant::now() < until {
            if let Some(status) = child.try_wait().map_err(failed)? {
                // Without an error it is the end of the run, or another wait.
                let said = fs::read_to_string(&path).unwrap_or_default();
                let is_refused = !status.success() && said.lines().any(|line| line.starts_with("error: "));
                return if is_refused { Err(parse_refusal(&said)) } else { Ok(()) };
            }
            if count_records(&*journal, run, begin)? > 0 {
                break;
            }
            if !drives && is_held_by(&*journal, run, child.id())? {
                drives = true;
                until = until.min(Instant::now() + WRITES);
            }
            std::thread::sleep(EVERY);
        }
        // Otherwise it would stay a zombie until this program ends.
        std::thread::spawn(move || child.wait());
        Ok(())
    }
}

/// How many records a run has from a position on.
fn count_records(journal: &dyn Journal, run: &RunId, from_seq: u64) -> Result<u64, Problem> {
    let mut count = 0;
    let counted = journal.read_each(run, from_seq, &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    counted.map_err(cuegate_runner::Error::from)?;
    Ok(count)
}

/// Whether the process `pid` drives a run.
fn is_held_by(journal: &dyn Journal, run: &RunId, pid: u32) -> Result<bool, Problem> {
    let lease = journal.holder(run).map_err(cuegate_runner::Error::from)?;
    Ok(lease.is_some_and(|lease| lease.owner.pid == pid && lease.owner.is_here()))
}

/// What the program printed when it refused.
pub(in crate::cli::commands) fn parse_refusal(said: &str) -> Problem {
    let part = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let message = part("error: ").unwrap_or_else(|| {
        said.lines().last().unwrap_or("cuegate failed without a reason").trim().to_owned()
    });
    Problem { status: 409, message, hint: part("hint: ") }
}

impl Project for LocalProject {
    fn observer(&self) -> &Observer {
        &self.observer
    }

    fn name(&self) -> String {
        let root = self.place.home.root();
        root.file_name()
            .map_or_else(|| root.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    fn graph(&self, run: &RunId) -> Result<String, Problem> {
        let definition = self.definition(run)?;
        let flow = definition.flow.as_deref().or(definition.unsound.as_ref());
        let flow =
            flow.ok_or_else(|| Problem::new(409, "this version cannot read the definition of this run"))?;
        Ok(svg_without_style(&Graph::new(flow, &definition.diagnostics)))
    }

    fn findings(&self, run: &RunId) -> Result<Value, Problem> {
        let definition = self.definition(run)?;
        Ok(check_json(&definition.diagnostics, &definition.sources, false))
    }

    fn report(&self, run: &RunId) -> Result<String, Problem> {
        let journal = self.journal()?;
        let FoldedRun { mut view, history, .. } =
            FoldedRun::read(&*journal, run).map_err(problem_of_failure)?;
        compare_files(&self.place.home, &*journal, run, &mut view, &history);
        let report = render_report(&view, &texts_of_run(&*journal, run), &TimeZone::system());
        Ok(redact_secret_forms(&report).into_owned())
    }

    fn diff(&self, run: &RunId, records: Option<(u64, u64)>) -> Result<String, Problem> {
        let patch = diff::patch_of_run(&self.place, &*self.journal()?, run, records);
        let patch = patch.map_err(problem_of_failure)?;
        let none = || {
            Problem::new(
                404,
                "the files of the run are not known: it worked outside of git, or was exported without them",
            )
        };
        Ok(String::from_utf8_lossy(&patch.ok_or_else(none)?).into_owned())
    }

    fn compare(&self, run: &RunId, other: &RunId) -> Result<String, Problem> {
        let patch = diff::patch_between_runs(&self.place, &*self.journal()?, run, other);
        let none = || Problem::new(404, "a run worked outside of git, so its files are not known");
        let patch = patch.map_err(problem_of_failure)?.ok_or_else(none)?;
        Ok(String::from_utf8_lossy(&patch).into_owned())
    }

    fn definitions(&self) -> Result<Value, Problem> {
        Ok(list::list_json(&self.place))
    }

    fn agents(&self) -> Result<Value, Problem> {
        let config = config::load_config(self.place.home.root()).map_err(problem_of_failure)?;
        Ok(read_agents_json(&self.program, &config))
    }

    fn fleet(&self) -> Result<Option<Value>, Problem> {
        match self.place.home.shared() {
            Some(shared) => {
                shared.fleet().map_err(|error| problem_of_failure(cuegate_runner::Error::from(error).into()))
            }
            None => Ok(None),
        }
    }

    fn has_batches(&self) -> Result<bool, Problem> {
        let journal = shown::journal_of_batches(&self.place.home).map_err(problem_of_failure)?;
        let batches = journal.map_or(Ok(Vec::new()), |journal| journal.runs());
        let batches =
            batches.map_err(|error| problem_of_failure(cuegate_runner::Error::from(error).into()))?;
        Ok(batches.iter().any(|batch| batch.has_records))
    }

    fn batches(&self) -> Result<Value, Problem> {
        let journal = self.journal()?;
        let rows = shown::list_batches(&self.place.home, Some(&*journal)).map_err(problem_of_failure)?;
        Ok(batches_json(&rows))
    }

    fn batch(&self, typed: &str) -> Result<Value, Problem> {
        let (id, batch) = shown::find_batch(&self.place.home, typed)
            .map_err(|failure| Problem { hint: failure.hint, ..Problem::new(404, failure.message) })?;
        let rows = shown::rows_of_batch(&self.place.home, Some(&*self.journal()?), &batch);
        Ok(batch_json(id.as_str(), &batch, &rows))
    }

    fn is_reviewed(&self, run: &RunId) -> bool {
        shown::is_reviewed(&self.place.home, run)
    }

    fn open(&self, run: &RunId) -> Result<String, Problem> {
        let link = page_link(&self.place, Some(run))?;
        serve::open_browser(&self.place.home, &link);
        Ok(format!("opening run {run} in the browser"))
    }

    fn control(&self, control: Control) -> Result<Value, Problem> {
        let run = match control {
            Control::Answer { run, text } => {
                self.cuegate(&["answer", run.as_str(), "--no-continue", "--input", "-"], &text)?;
                // A run of another machine stays there: that one goes on, or a fleet.
                let started = cuegate_runner::read_run(&*self.journal()?, &run)
                    .map_err(|error| problem_of_failure(error.into()))?;
                let started = started.started().clone();
                if !moved_run::is_elsewhere(&self.place.home, &run, &started).map_err(problem_of_failure)? {
                    self.resume(&run)?;
                }
                run.to_string()
            }
            Control::Cancel { run } => {
                self.goes_on(&run, "cancelled")?;
                self.cuegate(&["cancel", run.as_str()], "")?;
                run.to_string()
            }
            Control::Pause { run } => {
                self.pause(&run)?;
                run.to_string()
            }
            Control::Resume { run } => {
                self.resume(&run)?;
                run.to_string()
            }
            Control::Apply { run } => {
                self.cuegate(&["apply", run.as_str()], "")?;
                run.to_string()
            }
            Control::Undo { run } => {
                self.cuegate(&["undo", run.as_str()], "")?;
                run.to_string()
            }
            Control::MarkReviewed { run, is_reviewed } => {
                shown::mark_reviewed(&self.place.home, &run, is_reviewed).map_err(problem_of_failure)?;
                run.to_string()
            }
            Control::Retry { run, say } => {
                self.retry(&run, say.as_deref())?;
                run.to_string()
            }
            Control::Fork { run, moment, before, answer, model } => {
                let at = format!("--{}={moment}", if before { "before" } else { "at" });
                let mut words = vec!["fork".to_owned(), run.to_string(), at];
                words.extend(answer.map(|answer| format!("--answer={answer}")));
                words.extend(["--no-continue".to_owned(), "--json".to_owned()]);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let made: Value = serde_json::from_str(&self.cuegate(&words, "")?).unwrap_or_default();
                let id = made["run"].as_str().unwrap_or_default();
                let fork: RunId = id
                    .parse()
                    .map_err(|_| Problem::new(500, format!("the fork of run {run} has no name")))?;
                let model = model.map(|model| format!("--model={model}"));
                let go_on = match made["standing"] == "failed" || made["standing"] == "aborted" {
                    true => "retry",
                    false => "resume",
                };
                let words = [go_on, id, "--background"].into_iter().chain(model.as_deref());
                self.go_on_with(&fork, &words.collect::<Vec<_>>())?;
                fork.to_string()
            }
            Control::Start(wanted) => {
                let mut words = vec!["run".to_owned(), "--detach".to_owned()];
                words.extend(start_options(&wanted));
                let StartRequest { definition, task, args, folder, .. } = *wanted;
                let within = folder.as_deref().map(|folder| self.place.within(folder.as_ref()));
                let within = within.transpose().map_err(problem_of_failure)?;
                words.extend(folder.map(|folder| format!("--cd={folder}")));
                let location =
                    within.as_ref().unwrap_or(&self.place).locate(&definition).map_err(problem_of_failure)?;
                let params = load_with_defaults(&location, &[]).map_err(problem_of_failure)?.params;
                for (name, value) in args {
                    if !params.iter().any(|param| *param.name == *name) {
                        let message = format!(
                            "the definition has no parameter `{}`",
                            cuegate_view::clean_to_one_line(&name)
                        );
                        return Err(Problem::new(400, message));
                    }
                    words.push(format!("--set={name}={value}"));
                }
                if task.is_some() {
                    words.push("--input=-".to_owned());
                }
                // After this no word is an option.
                words.extend(["--".to_owned(), definition]);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.cuegate(&words, &task.unwrap_or_default())?.trim().to_owned()
            }
        };
        Ok(json!({ "schema": "cuegate/control/v1", "run": run }))
    }
}

/// The options of `run` that can be set on the page. No other one can.
fn start_options(wanted: &StartRequest) -> Vec<String> {
    let with = |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let options = [
        with("provider", filled(&wanted.agent)),
        with("model", filled(&wanted.model)),
        wanted.worktree.then(|| "--worktree".to_owned()),
        with("issue", wanted.issue.map(|number| number.to_string())),
        with("budget-usd", wanted.budget_usd.map(|usd| usd.to_string())),
        with("budget-tokens", wanted.budget_tokens.map(|tokens| tokens.to_string())),
        with("budget-calls", wanted.budget_calls.map(|calls| calls.to_string())),
        with("budget-minutes", wanted.budget_minutes.map(|minutes| minutes.to_string())),
        with("call-usd", wanted.call_usd.map(|usd| usd.to_string())),
        with("once", filled(&wanted.key)),
    ];
    options.into_iter().flatten().collect()
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        let code = if problem.status < 500 { exit::USAGE } else { exit::ENVIRONMENT };
        Failure { message: problem.message, hint: problem.hint, code }
    }
}

fn problem_of_failure(failure: Failure) -> Problem {
    let status = if failure.code == exit::USAGE { 409 } else { 500 };
    Problem { status, message: failure.message, hint: failure.hint }
}

/// The address of a server of the project that answers.
pub(in crate::cli::commands) fn running_server(home: &StateDir) -> Option<String> {
    let text = fs::read_to_string(home.dir().join(serve::FILE)).ok()?;
    let file: Value = serde_json::from_str(&text).ok()?;
    let address = file["address"].as_str()?;
    let answers = match (address.strip_prefix("http://"), address.strip_prefix("unix:")) {
        (Some(host), _) => TcpStream::connect(host).is_ok(),
        (_, Some(path)) => UnixStream::connect(path).is_ok(),
        _ => false,
    };
    answers.then(|| address.to_owned())
}

/// A one-time link to the page of the running server, and to a run on it.
///
/// # Errors
/// When no server runs, or it listens on a socket file, which no browser opens.
pub(in crate::cli::commands) fn page_link(
    place: &ProjectPlace,
    run: Option<&RunId>,
) -> Result<String, Problem> {
    let none = || Problem {
        hint: Some("start one with `cuegate serve` in another terminal".to_owned()),
        ..Problem::new(409, "no server of this project runs")
    };
    let text = fs::read_to_string(place.home.dir().join(serve::FILE)).map_err(|_| none())?;
    let file: Value = serde_json::from_str(&text).map_err(|_| none())?;
    let address = file["address"].as_str().unwrap_or_default();
    let Some(host) = address.strip_prefix("http://") else {
        return Err(Problem::new(409, "the server listens on a socket file, which no browser opens"));
    };
    let mut stream = TcpStream::connect(host).map_err(|_| none())?;
    let token = file["token"].as_str().unwrap_or_default();
    let request = format!(
        "POST /api/v1/links HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: \
         0\r\n\r\n"
    );
    let mut answer = String::new();
    let read = stream
        .set_read_timeout(Some(ANSWERS))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.read_to_string(&mut answer));
    read.map_err(|error| Problem::new(500, format!("the server does not answer: {error}")))?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let body: Value = serde_json::from_str(body).map_err(|_| none())?;
    let token = body["token"].as_str().ok_or_else(none)?;
    // The part after `#` is never sent; the page reads it.
    let part = run.map_or_else(String::new, |run| format!("&/runs/{run}"));
    Ok(format!("{address}/#token={token}{part}"))
}
