//! `serve`: the page of this project's runs, and its API.

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, TcpListener},
    os::unix::{fs::OpenOptionsExt as _, net::UnixListener, net::UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use cuegate_engine::Run;
use cuegate_journal::{Journal, RunId};
use cuegate_observe::Observer;
use cuegate_runner::StateDir;
use cuegate_view::{Graph, Stamped, TimeZone, check_json, report, svg_without_style};
use cuegate_web::{Access, Control, Listener, Problem, Project, Server};
use serde_json::{Value, json};

use super::{Place, diff, list, load, texts, view_of};
use crate::{
    Failure, Program,
    cli::{args::Serve, print, stop},
    definition,
    definition::KeptFiles,
    exit,
};

/// The file in the state dir that tells other commands of the server.
pub(super) const FILE: &str = "serve.json";

pub(super) fn serve(place: &Place, args: &Serve) -> Result<u8, Failure> {
    let home = StateDir::create(place.home.root())?;
    let (listener, port, address) = match &args.socket {
        Some(path) => {
            let path = place.here.join(path);
            (Listener::Socket(socket(&path)?), None, format!("unix:{}", path.display()))
        }
        None => {
            let failed = |error| Failure {
                hint: Some("choose another one with `--port`, or none for a free one".to_owned()),
                ..Failure::environment(format!("failed to listen on port {}: {error}", args.port))
            };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(failed)?;
            let port = listener.local_addr().map_err(failed)?.port();
            (Listener::Port(listener), Some(port), format!("http://127.0.0.1:{port}"))
        }
    };
    let access = Arc::new(Access::new(port));
    let file = ServerFile::write(&home, &address, access.bearer())?;
    let link = |access: &Access| format!("{address}/?token={}", access.new_link());
    let control = if args.allow_control { "; it can change runs" } else { "; it only shows runs" };
    let project = Served {
        place: Place { here: place.here.clone(), home: home.clone(), builtins: None },
        observer: Observer::new(home),
        program: Program::current()?,
    };
    print::line(&format!("serving the runs of {}{control}", project.name()));
    let first = link(&access);
    match port {
        Some(_) => print::data(&first),
        None => print::data(&address),
    }
    print::line("the link opens one browser session; Ctrl-C ends the server");
    if args.open {
        open_browser(&first);
    }
    let shared = Arc::clone(&access);
    let base = address.clone();
    let used = move || {
        print::line(&format!("the link was used; for another browser: {base}/?token={}", shared.new_link()));
    };
    let server = Server::new(Arc::new(project), access, args.allow_control, used);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let served = runtime.block_on(async {
        let mut stopped = stop::on_end();
        server.serve(listener, async move { drop(stopped.wait_for(|stopped| *stopped).await) }).await
    });
    // Requests that still read the journal are not waited for.
    runtime.shutdown_background();
    drop(file);
    if let Some(path) = &args.socket {
        let _ = fs::remove_file(place.here.join(path));
    }
    served.map_err(|error| Failure::environment(format!("the server failed: {error}")))?;
    Ok(exit::DONE)
}

/// Listens on a socket file that only this user can connect to.
fn socket(path: &Path) -> Result<UnixListener, Failure> {
    let failed = |error| Failure::environment(format!("failed to listen on `{}`: {error}", path.display()));
    if path.exists() {
        // The socket of a server that was killed can be replaced; anything else cannot.
        use std::os::unix::fs::FileTypeExt as _;
        let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
        if !is_socket || UnixStream::connect(path).is_ok() {
            return Err(Failure::usage(
                format!("`{}` exists already", path.display()),
                "name another path with `--socket`",
            ));
        }
        fs::remove_file(path).map_err(failed)?;
    }
    // Created with the rights of this user only, not changed afterwards: nobody else connects in between.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(mask);
    listener.map_err(failed)
}

/// Opens a link in the user's browser.
pub(super) fn open_browser(link: &str) {
    let browser = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let program = browser.unwrap_or_else(|| "xdg-open".to_owned());
    let started = Command::new(cuegate_provider::locate_or_missing(&program))
        .arg(link)
        .env("PATH", cuegate_provider::search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        print::line(&format!("note: failed to start `{program}`: {error}; open the link yourself"));
    }
}

/// The file that names the server, for this user only. Removed with the server.
struct ServerFile {
    path: PathBuf,
    text: String,
}

impl ServerFile {
    fn write(home: &StateDir, address: &str, token: &str) -> Result<ServerFile, Failure> {
        let path = home.dir().join(FILE);
        let failed = |error| Failure::environment(format!("failed to write `{}`: {error}", path.display()));
        let text = json!({ "address": address, "token": token, "pid": std::process::id() }).to_string();
        let _ = fs::remove_file(&path);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(ServerFile { text, path })
    }
}

impl Drop for ServerFile {
    fn drop(&mut self) {
        // Another server of this project may have replaced it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The project as the server needs it.
struct Served {
    place: Place,
    observer: Observer,
    program: Program,
}

impl Served {
    fn journal(&self) -> Result<Arc<dyn Journal>, Problem> {
        self.observer.journal()?.ok_or_else(|| Problem::new(404, "this project has no runs"))
    }

    /// The records of a run and its state.
    fn folded(&self, run: &RunId) -> Result<(Vec<Stamped>, Run), Problem> {
        let (_, records) = view_of(&*self.journal()?, run).map_err(problem)?;
        let run = Run::fold(records.iter().map(|record| record.events.as_slice()));
        Ok((records, run))
    }

    /// Loads the definition of a run from the files that it kept.
    fn definition(&self, run: &RunId) -> Result<definition::Definition, Problem> {
        let journal = self.journal()?;
        let (_, run) = self.folded(run)?;
        let started = run.started();
        let kept = started.sources.iter().map(|kept| (kept.path.clone(), kept.blob.clone()));
        let files = KeptFiles::new(&*journal, kept);
        Ok(definition::load(&files, &started.base, started.file.as_deref(), &started.set, &started.load))
    }

    /// Runs this program in the project, and returns its standard output.
    fn cuegate(&self, args: &[&str], input: &str) -> Result<String, Problem> {
        let failed = |error: std::io::Error| Problem::new(500, format!("failed to start cuegate: {error}"));
        let mut child = Command::new(self.program.path())
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
        let ran = child.wait_with_output().map_err(failed)?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let part = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let message = part("error: ").unwrap_or_else(|| said.trim().to_owned());
        Err(Problem { status: 409, message, hint: part("hint: ") })
    }

    /// Resumes a run in a process of its own. Its output is kept beside that of `run --detach`.
    fn resume(&self, run: &RunId) -> Result<(), Problem> {
        let failed =
            |error: std::io::Error| Problem::new(500, format!("failed to resume run {run}: {error}"));
        let folder = self.place.home.dir().join("output");
        fs::create_dir_all(&folder).map_err(failed)?;
        let path = folder.join(format!("{run}.log"));
        let output = fs::OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        let mut child = Command::new(self.program.path())
            .args(["resume", run.as_str(), "--background"])
            .current_dir(self.place.home.root())
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        // Otherwise it would stay a zombie until the server ends.
        std::thread::spawn(move || child.wait());
        Ok(())
    }
}

impl Project for Served {
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
        let (mut view, records) = view_of(&*journal, run).map_err(problem)?;
        view.difference = diff::difference(&self.place, &records);
        Ok(report(&view, &texts(&*journal), &TimeZone::system()))
    }

    fn diff(&self, run: &RunId, records: Option<(u64, u64)>) -> Result<String, Problem> {
        let (all, folded) = self.folded(run)?;
        let patch = diff::patch(&self.place, &all, &folded, records).map_err(problem)?;
        let none = || Problem::new(404, "the run worked outside of git, so its changes are not known");
        Ok(String::from_utf8_lossy(&patch.ok_or_else(none)?).into_owned())
    }

    fn definitions(&self) -> Result<Value, Problem> {
        Ok(list::list_json(&self.place))
    }

    fn control(&self, control: Control) -> Result<Value, Problem> {
        let run = match control {
            Control::Answer { run, text } => {
                self.cuegate(&["answer", run.as_str(), "--no-continue", "--input", "-"], &text)?;
                self.resume(&run)?;
                run.to_string()
            }
            Control::Cancel { run } => {
                self.cuegate(&["cancel", run.as_str()], "")?;
                run.to_string()
            }
            Control::Resume { run } => {
                self.resume(&run)?;
                run.to_string()
            }
            Control::Start { definition, task, args, budget_usd, budget_tokens } => {
                let mut words = vec!["run".to_owned(), "--detach".to_owned()];
                words.extend(budget_usd.map(|usd| format!("--budget-usd={usd}")));
                words.extend(budget_tokens.map(|tokens| format!("--budget-tokens={tokens}")));
                // No other option of the command line can be set.
                let location = self.place.locate(&definition).map_err(problem)?;
                let params = load(&location, &[]).map_err(problem)?.params;
                for (name, value) in args {
                    if !params.iter().any(|param| *param.name == *name) {
                        let message =
                            format!("the definition has no parameter `{}`", cuegate_view::clean(&name));
                        return Err(Problem::new(400, message));
                    }
                    words.push(format!("--{name}={value}"));
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

fn problem(failure: Failure) -> Problem {
    let status = if failure.code == exit::USAGE { 409 } else { 500 };
    Problem { status, message: failure.message, hint: failure.hint }
}
