//! Our own program in the sandbox: starts the command and forwards connections to the egress socket.

#![expect(clippy::disallowed_methods, reason = "state of ours, where no agent writes")]

use std::{
    ffi::OsString,
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::{DumpableBehavior, WaitOptions, WaitStatus, set_dumpable_behavior, wait};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixStream},
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use super::{
    confine::{SandboxLimits, refuse_calls, refuse_sockets},
    confined_git::{CONFINED_FLAG, execute_confined},
    held_sources::{HELD_FLAG, execute_with_handles},
    landlock_level::{self, LandlockAccess},
};

/// The option before the path of the egress socket.
pub(super) const EGRESS_FLAG: &str = "--door";
/// The option before a host and port of the host machine, forwarded from the same port in the sandbox.
pub(super) const FORWARD_FLAG: &str = "--near";
/// The option before the file with the access by Landlock, if bubblewrap is not there.
pub(super) const ACCESS_FLAG: &str = "--access";
/// The option before the limits.
pub(super) const LIMITS_FLAG: &str = "--limits";
/// Separates the options from the program.
pub(super) const PROGRAM_FLAG: &str = "--";

/// Limits the memory of a shell in KiB and executes a program in its place.
const LIMITED: &str = "ulimit -d \"$0\" && exec \"$@\"";
/// Variables that tell programs their proxy.
const PROXY_VARS: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Variables that list hosts without a proxy: the sandbox itself.
const NO_PROXY_VARS: [&str; 2] = ["NO_PROXY", "no_proxy"];
const LOOPBACK: &str = "localhost,127.0.0.1,::1";
/// The longest head of a response from the egress, in bytes.
const RESPONSE_MAX: usize = 8 << 10;
/// Grace period of the other processes in the sandbox after SIGTERM. The shim outside waits as long.
const GRACE: Duration = Duration::from_millis(300);
/// Time limit for noticing a pending SIGTERM.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(10);

/// The parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Args {
    egress: PathBuf,
    forwards: Vec<(String, u16)>,
    limits: SandboxLimits,
    access: Option<PathBuf>,
    program: Vec<OsString>,
}

/// The body of the hidden subcommand that runs in the sandbox. `args` follow the subcommand's name. Exits with the code
/// of the program, or with 128 plus the signal that ended it.
pub fn sandbox_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if let [flag, confined @ ..] = &args[..]
        && flag == CONFINED_FLAG
    {
        return execute_confined(confined);
    }
    if let [flag, held @ ..] = &args[..]
        && flag == HELD_FLAG
    {
        return execute_with_handles(held);
    }
    let Some(parsed) = parse_args(args.into_iter()) else {
        return print_failure("invalid arguments: only cuegate starts this command", 2);
    };
    // Otherwise the program could read the memory of this process, or write to its open files.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_failure(&format!("failed to start in the sandbox: {error}"), 126),
    };
    runtime.block_on(run_in_sandbox(parsed))
}

fn parse_args(mut args: impl Iterator<Item = OsString>) -> Option<Args> {
    let mut parsed = Args::default();
    while let Some(word) = args.next() {
        match word.to_str()? {
            EGRESS_FLAG => parsed.egress = args.next()?.into(),
            FORWARD_FLAG => {
                let forward = args.next()?.into_string().ok()?;
                let (host, port) = forward.rsplit_once(':')?;
                parsed.forwards.push((host.to_owned(), port.parse().ok()?));
            }
            ACCESS_FLAG => parsed.access = Some(args.next()?.into()),
            LIMITS_FLAG => parsed.limits = SandboxLimits::parse(args.next()?.to_str()?)?,
            PROGRAM_FLAG => {
                parsed.program = args.collect();
                return (!parsed.program.is_empty() && !parsed.egress.as_os_str().is_empty())
                    .then_some(parsed);
            }
            _ => return None,
        }
    }
    None
}

async fn run_in_sandbox(parsed: Args) -> ExitCode {
    // The program receives SIGTERM as well; its connections are forwarded until it has ended. The signal was ignored
    // before (see `spec.rs`); handling it here resets it to the default in the program.
    let Ok(mut terminations) = signal(SignalKind::terminate()) else {
        return print_failure("failed to handle signals in the sandbox", 126);
    };
    let egress: Arc<Path> = parsed.egress.into();
    let port = match open_relay_port(&egress).await {
        Ok(port) => port,
        Err(error) => {
            return print_failure(&format!("failed to open the proxy port of the sandbox: {error}"), 126);
        }
    };
    let proxy = format!("http://127.0.0.1:{port}");
    let access = match parsed.access.as_deref().map(read_access).transpose() {
        Ok(access) => access,
        Err(why) => return print_failure(&format!("failed to read the access by Landlock: {why}"), 126),
    };
    // By Landlock alone the ports of the host machine are reached without a detour.
    let forwards = if access.is_some() { Vec::new() } else { parsed.forwards };
    for (host, port) in forwards {
        if let Err(error) = forward_port(&egress, &host, port).await {
            return print_failure(&format!("failed to forward port {port} into the sandbox: {error}"), 126);
        }
    }
    let Ok(mut ends) = signal(SignalKind::child()) else {
        return print_failure("failed to handle signals in the sandbox", 126);
    };
    let [program, args @ ..] = parsed.program.as_slice() else {
        return print_failure("the program is missing", 2);
    };
    let mut command = match parsed.limits.memory {
        // Not for this process, whose allocator reserves more than it uses.
        Some(bytes) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", LIMITED, &(bytes >> 10).to_string()]).arg(program);
            shell
        }
        None => Command::new(program),
    };
    command.args(args);
    command.envs(PROXY_VARS.map(|name| (name, proxy.as_str())));
    command.envs(NO_PROXY_VARS.map(|name| (name, LOOPBACK)));
    // Node.js uses the proxy variables only with this setting.
    command.env("NODE_USE_ENV_PROXY", "1");
    if let Err(error) = parsed.limits.apply() {
        return print_failure(&format!("failed to set the limits of the sandbox: {error}"), 126);
    }
    // Without bubblewrap the program runs beside others, which the shim outside ends.
    let is_first = access.is_none();
    let pid = match start_program(command, access.map(|access| (access, port))) {
        Ok(pid) => pid,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            return print_failure(
                &format!("failed to start `{}` in the sandbox: {error}", program.display()),
                code,
            );
        }
    };
    let mut terminated_at = None;
    let ended = loop {
        if let Some(ended) = reap_ended_processes(pid) {
            break ended;
        }
        tokio::select! {
            _ = ends.recv() => {}
            _ = terminations.recv() => { terminated_at.get_or_insert_with(Instant::now); }
        }
    };
    // The end of the program may be noticed before the signal that caused it.
    if terminated_at.is_none()
        && is_first
        && other_processes_run()
        && timeout(SIGNAL_TIMEOUT, terminations.recv()).await.is_ok()
    {
        terminated_at = Some(Instant::now());
    }
    if let Some(terminated_at) = terminated_at.filter(|_| is_first) {
        // When this process ends, all other processes in the sandbox are killed.
        while terminated_at.elapsed() < GRACE && other_processes_run() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            reap_ended_processes(pid);
        }
    }
    name_limits(ended, &parsed.limits, is_first);
    exit_code_of_status(ended)
}

fn read_access(file: &Path) -> Result<LandlockAccess, String> {
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// Starts the program from a thread of its own, so that the refused calls are not refused to this process. `access`: what
/// Landlock allows, and the port of the proxy.
fn start_program(mut command: Command, access: Option<(LandlockAccess, u16)>) -> io::Result<i32> {
    let started = std::thread::Builder::new().spawn(move || {
        if let Some((access, proxy)) = access {
            landlock_level::restrict_thread(&access, Some(proxy)).map_err(io::Error::other)?;
            refuse_sockets().map_err(io::Error::other)?;
        }
        refuse_calls().map_err(io::Error::other)?;
        command.spawn().map(|child| child.id())
    });
    let pid = started?.join().map_err(|_| io::Error::other("its thread failed"))??;
    i32::try_from(pid).map_err(io::Error::other)
}

/// Reaps the processes that have ended: this is the first process of the sandbox, which inherits all orphans. Returns
/// how the process `pid` ended.
fn reap_ended_processes(pid: i32) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get() == pid => return Some(status),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Reports the limits that the program hit, as far as they can be seen afterwards.
fn name_limits(ended: WaitStatus, limits: &SandboxLimits, has_own_folders: bool) {
    // The shell's codes for a child that a signal ended are 128 plus its number.
    let too_large = libc::SIGXFSZ;
    let is_too_large =
        ended.terminating_signal() == Some(too_large) || ended.exit_status() == Some(128 + too_large);
    if let (true, Some(size)) = (is_too_large, limits.file_size) {
        let _ = writeln!(
            io::stderr(),
            "cuegate: a file reached the limit of the sandbox, {size} bytes (`file_size`)"
        );
    }
    for folder in ["/tmp", "/var/tmp"].into_iter().filter(|_| has_own_folders) {
        if rustix::fs::statvfs(folder).is_ok_and(|about| about.f_blocks > 0 && about.f_bavail == 0) {
            let _ = writeln!(io::stderr(), "cuegate: `{folder}` of the sandbox is full (`tmp_size`)");
        }
    }
}

/// Whether other processes than this one, which is the first, run in the sandbox.
fn other_processes_run() -> bool {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().any(|pid| pid != 1)
}

fn exit_code_of_status(status: WaitStatus) -> ExitCode {
    let code = status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn print_failure(why: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "cuegate: {why}");
    ExitCode::from(code)
}

/// Opens a port in the sandbox that forwards to the egress unchanged. Returns the port.
async fn open_relay_port(egress: &Arc<Path>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let egress = Arc::clone(egress);
    tokio::spawn(forward_connections(listener, move |mut client| {
        let egress = Arc::clone(&egress);
        async move {
            let mut upstream = UnixStream::connect(&*egress).await?;
            copy_bidirectional(&mut client, &mut upstream).await.map(drop)
        }
    }));
    Ok(port)
}

/// Forwards a port in the sandbox to the same port of the host machine.
async fn forward_port(egress: &Arc<Path>, host: &str, port: u16) -> io::Result<()> {
    let connect: Arc<str> = match host.contains(':') {
        true => format!("CONNECT [{host}]:{port} HTTP/1.1\r\n\r\n").into(),
        false => format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n").into(),
    };
    let mut listeners = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?];
    // Fails on machines without IPv6.
    listeners.extend(TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await);
    for listener in listeners {
        let (egress, connect) = (Arc::clone(egress), Arc::clone(&connect));
        tokio::spawn(forward_connections(listener, move |mut client| {
            let (egress, connect) = (Arc::clone(&egress), Arc::clone(&connect));
            async move {
                let mut upstream = UnixStream::connect(&*egress).await?;
                upstream.write_all(connect.as_bytes()).await?;
                let rest = read_connect_response(&mut upstream).await?;
                client.write_all(&rest).await?;
                copy_bidirectional(&mut client, &mut upstream).await.map(drop)
            }
        }));
    }
    Ok(())
}

/// Reads the response of the egress to CONNECT; returns the bytes after it.
async fn read_connect_response(upstream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            let connected = read.starts_with(b"HTTP/1.1 200 ");
            return if connected { Ok(rest) } else { Err(io::ErrorKind::ConnectionRefused.into()) };
        }
        if read.len() > RESPONSE_MAX || upstream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
    }
}

async fn forward_connections<F: Future<Output = io::Result<()>> + Send + 'static>(
    listener: TcpListener,
    forward: impl Fn(TcpStream) -> F,
) {
    loop {
        match listener.accept().await {
            // Either end may close, which closes the other one.
            Ok((client, _)) => drop(tokio::spawn(forward(client))),
            // Too many open files, which is temporary.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = OsString> {
        text.split(' ').map(OsString::from).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn arguments_are_parsed_up_to_the_program() {
        let read =
            parse_args(words("--door /d --near 127.0.0.1:80 --near ::1:81 --limits ,,64, -- sh --door x"))
                .unwrap();
        assert_eq!(read.egress, Path::new("/d"));
        assert_eq!(read.forwards, [("127.0.0.1".to_owned(), 80), ("::1".to_owned(), 81)]);
        assert_eq!(read.limits.open_files, Some(64));
        assert_eq!(read.program, ["sh", "--door", "x"]);
        for wrong in [
            "",
            "--door /d",
            "--door /d --",
            "-- sh",
            "--door",
            "--near x -- sh",
            "--door /d --limits x -- sh",
            "sh",
        ] {
            assert_eq!(parse_args(words(wrong)), None, "{wrong}");
        }
    }
}
