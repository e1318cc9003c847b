//! Our own program in the room: it starts what is to run there, and carries connections to the door.

use std::{
    ffi::OsString,
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixStream},
    process::Command,
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// The option before the door's socket.
pub(super) const DOOR: &str = "--door";
/// The option before a host and port of the machine outside, which is found at the same port in the room.
pub(super) const NEAR: &str = "--near";
/// What stands before the program.
pub(super) const PROGRAM: &str = "--";

/// Variables by which programs find their proxy.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Whom they ask without one: the room itself.
const NEVER: [&str; 2] = ["NO_PROXY", "no_proxy"];
const OURSELVES: &str = "localhost,127.0.0.1,::1";
/// The most bytes that the door may answer.
const ANSWER_MAX: usize = 8 << 10;
/// How long others in the room may take to end after the program was asked to. The shim outside waits as long.
const GRACE: Duration = Duration::from_millis(300);
/// How long our own signal may take to be noticed.
const NOTICED_WITHIN: Duration = Duration::from_millis(10);

/// What it was started with.
#[derive(Debug, Default, PartialEq, Eq)]
struct Job {
    door: PathBuf,
    near: Vec<(String, u16)>,
    program: Vec<OsString>,
}

/// The body of the hidden subcommand that runs in the room. `args` are those after the subcommand's own name. Ends as the
/// program ended: with its code, or with 128 and the signal.
pub fn sandbox_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(job) = job(args) else { return failed("the room is entered by cuegate only", 2) };
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("failed to begin in the room: {error}"), 126),
    };
    runtime.block_on(run(job))
}

fn job(mut args: impl Iterator<Item = OsString>) -> Option<Job> {
    let mut job = Job::default();
    while let Some(word) = args.next() {
        match word.to_str()? {
            DOOR => job.door = args.next()?.into(),
            NEAR => {
                let near = args.next()?.into_string().ok()?;
                let (host, port) = near.rsplit_once(':')?;
                job.near.push((host.to_owned(), port.parse().ok()?));
            }
            PROGRAM => {
                job.program = args.collect();
                return (!job.program.is_empty() && !job.door.as_os_str().is_empty()).then_some(job);
            }
            _ => return None,
        }
    }
    None
}

async fn run(job: Job) -> ExitCode {
    // Who is asked to end is the program: it gets the same signal. Until it has ended its connections are carried. What
    // is handled here is as usual again in the program; before, it was ignored, see `room.rs`.
    let Ok(mut asked_to_end) = signal(SignalKind::terminate()) else {
        return failed("failed to listen to signals in the room", 126);
    };
    let door: Arc<Path> = job.door.into();
    let proxy = match relay(&door).await {
        Ok(port) => format!("http://127.0.0.1:{port}"),
        Err(error) => return failed(&format!("failed to make a way out of the room: {error}"), 126),
    };
    for (host, port) in job.near {
        if let Err(error) = near(&door, &host, port).await {
            return failed(
                &format!("failed to make port {port} of this machine one of the room: {error}"),
                126,
            );
        }
    }
    let [program, args @ ..] = job.program.as_slice() else { return failed("there is nothing to run", 2) };
    let mut command = Command::new(program);
    command.args(args);
    command.envs(PROXIES.map(|name| (name, proxy.as_str())));
    command.envs(NEVER.map(|name| (name, OURSELVES)));
    // Node.js heeds these variables only when it is told to.
    command.env("NODE_USE_ENV_PROXY", "1");
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            return failed(&format!("failed to start `{}` in the room: {error}", program.display()), code);
        }
    };
    let mut asked = None;
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            _ = asked_to_end.recv() => { asked.get_or_insert_with(Instant::now); }
        }
    };
    // Who ended at once over the same signal may be noticed before it.
    if asked.is_none() && others_live() && timeout(NOTICED_WITHIN, asked_to_end.recv()).await.is_ok() {
        asked = Some(Instant::now());
    }
    if let Some(asked) = asked {
        // With us the room ends, and all that is in it at once.
        while asked.elapsed() < GRACE && others_live() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    match ended {
        Ok(status) => code(status),
        Err(error) => failed(&format!("failed to learn how the program ended: {error}"), 126),
    }
}

/// Whether there is anybody in the room but its first process and us.
fn others_live() -> bool {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().any(|pid| pid != 1 && pid != own)
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn failed(why: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "cuegate: {why}");
    ExitCode::from(code)
}

/// Carries what comes to a port of the room to the door, as it is. Returns the port.
async fn relay(door: &Arc<Path>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let door = Arc::clone(door);
    tokio::spawn(accept(listener, move |mut inside| {
        let door = Arc::clone(&door);
        async move {
            let mut outside = UnixStream::connect(&*door).await?;
            copy_bidirectional(&mut inside, &mut outside).await.map(drop)
        }
    }));
    Ok(port)
}

/// Makes a port of the machine outside one of the room.
async fn near(door: &Arc<Path>, host: &str, port: u16) -> io::Result<()> {
    let hello: Arc<str> = match host.contains(':') {
        true => format!("CONNECT [{host}]:{port} HTTP/1.1\r\n\r\n").into(),
        false => format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n").into(),
    };
    let mut listeners = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?];
    // A machine may have no IPv6.
    listeners.extend(TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await);
    for listener in listeners {
        let (door, hello) = (Arc::clone(door), Arc::clone(&hello));
        tokio::spawn(accept(listener, move |mut inside| {
            let (door, hello) = (Arc::clone(&door), Arc::clone(&hello));
            async move {
                let mut outside = UnixStream::connect(&*door).await?;
                outside.write_all(hello.as_bytes()).await?;
                let rest = opened(&mut outside).await?;
                inside.write_all(&rest).await?;
                copy_bidirectional(&mut inside, &mut outside).await.map(drop)
            }
        }));
    }
    Ok(())
}

/// Reads that the door opened; returns what came behind that.
async fn opened(outside: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            let opened = read.starts_with(b"HTTP/1.1 200 ");
            return if opened { Ok(rest) } else { Err(io::ErrorKind::ConnectionRefused.into()) };
        }
        if read.len() > ANSWER_MAX || outside.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
    }
}

async fn accept<F: Future<Output = io::Result<()>> + Send + 'static>(
    listener: TcpListener,
    carry: impl Fn(TcpStream) -> F,
) {
    loop {
        match listener.accept().await {
            // Either end may break off: the other one notices.
            Ok((inside, _)) => drop(tokio::spawn(carry(inside))),
            // Too many open files: that passes.
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
    fn what_it_is_told_is_read_up_to_the_program() {
        let read = job(words("--door /d --near 127.0.0.1:80 --near ::1:81 -- sh --door x")).unwrap();
        assert_eq!(read.door, Path::new("/d"));
        assert_eq!(read.near, [("127.0.0.1".to_owned(), 80), ("::1".to_owned(), 81)]);
        assert_eq!(read.program, ["sh", "--door", "x"]);
        for wrong in ["", "--door /d", "--door /d --", "-- sh", "--door", "--near x -- sh", "sh"] {
            assert_eq!(job(words(wrong)), None, "{wrong}");
        }
    }
}
