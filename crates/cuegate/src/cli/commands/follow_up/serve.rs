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

use cuegate_journal::RunId;
use cuegate_observe::Project;
use cuegate_runner::StateDir;
use cuegate_web::{Access, Listener, Server};
use serde_json::{Value, json};

use crate::cli::commands::ProjectPlace;
use crate::cli::commands::local_project::{self, LocalProject};
use crate::cli::{print, stop};
use crate::{Failure, exit, project};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Show the run in this file, which `export` wrote, instead of those of the project
    #[arg(value_name = "FILE", conflicts_with = "allow_control")]
    pub(crate) file: Option<String>,
    /// The port, on this machine only [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Listen on this socket file, which only you can connect to, instead of a port
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "open"])]
    pub(crate) socket: Option<PathBuf>,
    /// Let the page start, answer, pause, resume, retry, fork and cancel runs, and apply or undo their changes
    #[arg(long)]
    pub(crate) allow_control: bool,
    /// Open the page in the browser, at RUN if it is given. If a server of the project runs already, open its page
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) open: Option<String>,
    /// Print the link as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How many requests read the journal at the same time.
const BLOCKING_THREADS: usize = 6;

/// The file in the state dir that tells other commands of the server.
pub(in crate::cli::commands) const FILE: &str = "serve.json";

pub(in crate::cli::commands) fn serve_project(place: &ProjectPlace, args: &ServeArgs) -> Result<u8, Failure> {
    let Some(typed) = &args.file else { return serve_runs(place, args) };
    match place.open_run_file(typed)? {
        Some((place, _project)) => serve_runs(&place, args),
        None => Err(Failure::usage(
            format!("`{typed}` is no exported run"),
            "`cuegate export RUN FILE` writes one; `cuegate serve --open=RUN` opens a run of the project",
        )),
    }
}

fn serve_runs(place: &ProjectPlace, args: &ServeArgs) -> Result<u8, Failure> {
    let home = place.home.create_missing()?;
    let run: Option<RunId> = match args.open.as_deref().filter(|run| !run.is_empty()) {
        Some(run) => Some(project::find_run_id(&place.home, &*place.view()?, run)?),
        None => None,
    };
    if let Some(address) = local_project::running_server(&home) {
        if args.open.is_some() {
            return open_running(place, run.as_ref(), args.json);
        }
        let message = format!("a server of this project runs already at {address}");
        return Err(Failure::usage(
            message,
            "`cuegate serve --open` opens it; Ctrl-C in its terminal ends it",
        ));
    }
    let (listener, port, address) = match &args.socket {
        Some(path) => {
            let path = place.here.join(path);
            (Listener::Socket(listen_on_socket(&path)?), None, format!("unix:{}", path.display()))
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
    let link = |access: &Access| format!("{address}/#token={}", access.new_link());
    let control = if args.allow_control { "; it can change runs" } else { "; it only shows runs" };
    let project = LocalProject::new(place)?;
    print::print_line(&format!("serving the runs of {}{control}", project.name()));
    let first = link(&access);
    match port {
        _ if args.json => print::json_line(&link_json(&address, &first)),
        Some(_) => print::print_data(&first),
        None => {
            print::print_data(&address);
            let token = first.rsplit('=').next().unwrap_or_default();
            print::print_line(&format!(
                "forward a port to it, such as `ssh -L 8000:SOCKET HOST`, and open http://localhost:8000/#token={token}"
            ));
        }
    }
    print::print_line("the link works once, for one browser; Ctrl-C ends the server");
    if args.open.is_some() {
        let part = run.as_ref().map_or_else(String::new, |run| format!("&/runs/{run}"));
        open_browser(&home, &format!("{first}{part}"));
    }
    let shared = Arc::clone(&access);
    let base = address.clone();
    let base = if port.is_some() { base } else { "http://localhost:PORT".to_owned() };
    let used = move || {
        print::print_line(&format!(
            "the link was used; for another browser: {base}/#token={}",
            shared.new_link()
        ));
    };
    let server = Server::new(Arc::new(project), access, args.allow_control, used);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Reading the journal takes milliseconds; more threads only take memory.
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(|error| Failure::environment(format!("failed to start: {error}")))?;
    let served = runtime.block_on(async {
        let mut stopped = stop::on_end();
        server.serve(listener, async move { drop(stopped.wait_for(|stopped| *stopped).await) }).await
    });
    // Requests that still read the journal are not waited for.
    runtime.shutdown_background();
    drop(file);
    let _ = fs::remove_file(home.dir().join(LEADS));
    if let Some(path) = &args.socket {
        let _ = fs::remove_file(place.here.join(path));
    }
    served.map_err(|error| Failure::environment(format!("the server failed: {error}")))?;
    Ok(exit::DONE)
}

fn link_json(address: &str, link: &str) -> Value {
    json!({ "schema": "cuegate/page/v1", "address": address, "link": link })
}

/// Opens the page of the server that runs, or a run on it.
fn open_running(place: &ProjectPlace, run: Option<&RunId>, json: bool) -> Result<u8, Failure> {
    let link = local_project::page_link(place, run).map_err(|problem| Failure {
        message: problem.message,
        hint: problem.hint,
        code: exit::ENVIRONMENT,
    })?;
    if json {
        let address = link.split("/#").next().unwrap_or_default();
        print::print_json(&link_json(address, &link));
        return Ok(exit::DONE);
    }
    print::print_data(&link);
    open_browser(&place.home, &link);
    Ok(exit::DONE)
}

/// Listens on a socket file that only this user can connect to.
fn listen_on_socket(path: &Path) -> Result<UnixListener, Failure> {
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

/// The file that leads a browser to the page.
const LEADS: &str = "open.html";

/// Opens a link in the user's browser. It is in a file that only this user reads: other users of the machine see the
/// arguments of programs.
pub(in crate::cli::commands) fn open_browser(home: &StateDir, link: &str) {
    let file = home.dir().join(LEADS);
    // The token and the id of a run are letters and digits.
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={link}\">\
         <title>Cuegate</title><a href=\"{link}\">Open the page</a>\n"
    );
    if let Err(error) = write_private(&file, &text) {
        print::print_line(&format!(
            "note: failed to write `{}`: {error}; open the link yourself",
            file.display()
        ));
        return;
    }
    let browser = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let program = browser.unwrap_or_else(|| "xdg-open".to_owned());
    let started = Command::new(cuegate_provider::locate_or_missing(&program))
        .arg(&file)
        .env("PATH", cuegate_provider::search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        print::print_line(&format!("note: failed to start `{program}`: {error}; open the link yourself"));
    }
}

/// Writes a file that only this user reads.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
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
        write_private(&path, &text).map_err(failed)?;
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
