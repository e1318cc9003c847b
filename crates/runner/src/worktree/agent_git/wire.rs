//! The folder of the agents as a remote: its references and objects cross by git's wire protocol only. `git upload-pack`
//! reads the folder, confined; what it sends is bytes of a stranger.
//!
//! The protocol is that of `gitprotocol-pack(5)`, version 0, without negotiation in rounds and without side bands, so that a
//! silence is a hang.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read, Write},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::worktree::{error::WorktreeError, git::Git};

/// How long the program may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How often the watchdog looks.
const WATCH_PAUSE: Duration = Duration::from_millis(20);
/// The limit of the bytes in which references are listed.
const LISTING_MAX: u64 = 128 << 20;
/// The limit of what is kept of the program's messages, in bytes.
const MESSAGES_MAX: u64 = 4 << 10;
/// The first bytes of a pack.
const PACK_BEGIN: &[u8; 4] = b"PACK";
/// The limit of known commits that are named to the other side.
const HAVES_MAX: usize = 256;

/// Ends a take-over early: what is not taken over then is taken over later.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends it as soon as possible.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it has to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a remote has, as it says.
#[derive(Debug, Default)]
pub(super) struct Advertisement {
    /// Its references with their objects.
    pub(super) refs: BTreeMap<String, String>,
    capabilities: Vec<String>,
}

/// A running `upload-pack`.
pub(super) struct Remote {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    watchdog: SilenceWatchdog,
    messages: Option<thread::JoinHandle<String>>,
}

impl Remote {
    /// Starts the program on the git folder of a confined git, and reads what the folder has.
    ///
    /// # Errors
    /// When it does not start, says nothing for too long, or speaks no protocol.
    pub(super) fn connect(
        git: &Git,
        folder: &std::path::Path,
        stop: &StopFlag,
    ) -> Result<(Remote, Advertisement), WorktreeError> {
        // It reads the folder as its own, whoever made it.
        let mut child = git.spawn(&[
            std::ffi::OsStr::new("upload-pack"),
            std::ffi::OsStr::new("--strict"),
            folder.as_os_str(),
        ])?;
        let watchdog = SilenceWatchdog::start(&child, stop.clone());
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let messages = errors.map(|errors| thread::spawn(move || read_messages(errors)));
        let Some(output) = output else { return Err(WorktreeError::Start(io::ErrorKind::BrokenPipe.into())) };
        let mut remote = Remote { child, input, output: BufReader::new(output), watchdog, messages };
        match remote.read_advertisement() {
            Ok(advertisement) => Ok((remote, advertisement)),
            Err(error) => Err(remote.fail(&error)),
        }
    }

    /// The lines that it begins with: `ID NAME`, the first one with its capabilities, up to a flush.
    fn read_advertisement(&mut self) -> io::Result<Advertisement> {
        let mut advertisement = Advertisement::default();
        let mut size = 0;
        while let Some(line) = self.read_packet()? {
            size += line.len() as u64;
            if size > LISTING_MAX {
                return Err(build_protocol_error("it has too many references"));
            }
            let (line, capabilities) = match line.iter().position(|byte| *byte == 0) {
                Some(end) => (&line[..end], &line[end + 1..]),
                None => (&line[..], &[][..]),
            };
            let words = String::from_utf8_lossy(capabilities).into_owned();
            advertisement.capabilities.extend(words.split_whitespace().map(str::to_owned));
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end_matches('\n');
            if let Some(why) = line.strip_prefix("ERR ") {
                return Err(build_protocol_error(why));
            }
            let Some((id, name)) = line.split_once(' ').filter(|(id, _)| is_object_id(id)) else { continue };
            // Lines with `^{}` tell what tags lead to.
            if name.starts_with("refs/") && !name.ends_with("^{}") || name == "HEAD" {
                advertisement.refs.insert(name.to_owned(), id.to_owned());
            }
        }
        Ok(advertisement)
    }

    /// Reads a packet: its length as four hexadecimal digits, itself included, and its bytes. `None` for a flush.
    fn read_packet(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; 4];
        self.output.read_exact(&mut head)?;
        self.watchdog.progress();
        self.read_rest_of_packet(head)
    }

    fn read_rest_of_packet(&mut self, head: [u8; 4]) -> io::Result<Option<Vec<u8>>> {
        let length = std::str::from_utf8(&head).ok().and_then(|head| usize::from_str_radix(head, 16).ok());
        match length {
            Some(0) => Ok(None),
            Some(length @ 4..) => {
                let mut packet = vec![0; length - 4];
                self.output.read_exact(&mut packet)?;
                Ok(Some(packet))
            }
            _ => Err(build_protocol_error("it does not speak git's protocol")),
        }
    }

    /// Asks for the objects of a commit that are not reachable from the commits `known`, and copies the pack with them to
    /// `to`. `shallow` are the commits whose parents the user does not have. At most `size_max` bytes are copied.
    ///
    /// # Errors
    /// When it fails, sends too much, or says nothing for too long. A failed write to `to` is none: who reads there knows why
    /// it ended.
    pub(super) fn copy_pack(
        mut self,
        advertisement: &Advertisement,
        request: &PackRequest<'_>,
        to: &mut impl Write,
    ) -> Result<(), WorktreeError> {
        match self.copy_pack_to(advertisement, request, to) {
            Ok(PackEnd::Sent) => {
                let ended = self.child.wait().map_err(WorktreeError::Start)?;
                if ended.success() {
                    Ok(())
                } else {
                    Err(self.fail(&build_protocol_error(&ended.to_string())))
                }
            }
            Ok(PackEnd::Unwanted) => {
                self.close();
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn copy_pack_to(
        &mut self,
        advertisement: &Advertisement,
        request: &PackRequest<'_>,
        to: &mut impl Write,
    ) -> io::Result<PackEnd> {
        let mut asked = format!("want {}", request.tip);
        for name in ["thin-pack", "ofs-delta", "no-progress"] {
            if advertisement.capabilities.iter().any(|has| has == name) {
                asked.push(' ');
                asked.push_str(name);
            }
        }
        if request.tip.len() > SHA1_LENGTH {
            asked.push_str(" object-format=sha256");
        }
        let mut text = Vec::new();
        write_packet(&mut text, &asked);
        for commit in request.shallow {
            write_packet(&mut text, &format!("shallow {commit}"));
        }
        text.extend_from_slice(b"0000");
        for commit in request.known.iter().take(HAVES_MAX) {
            write_packet(&mut text, &format!("have {commit}"));
        }
        write_packet(&mut text, "done");
        let mut input = self.input.take().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&text)?;
        drop(input);
        self.read_answers()?;
        if to.write_all(PACK_BEGIN).is_err() {
            return Ok(PackEnd::Unwanted);
        }
        let mut buffer = vec![0; 64 << 10];
        let mut size = PACK_BEGIN.len() as u64;
        loop {
            let count = self.output.read(&mut buffer)?;
            self.watchdog.progress();
            if count == 0 {
                return Ok(PackEnd::Sent);
            }
            size += count as u64;
            if size > request.size_max {
                return Err(build_protocol_error(&format!(
                    "its commits have more than {} MiB",
                    request.size_max >> 20
                )));
            }
            if to.write_all(&buffer[..count]).is_err() {
                return Ok(PackEnd::Unwanted);
            }
        }
    }

    /// Reads which of the known commits it has as well, up to the first bytes of the pack.
    fn read_answers(&mut self) -> io::Result<()> {
        loop {
            let mut head = [0; 4];
            self.output.read_exact(&mut head)?;
            self.watchdog.progress();
            if head == *PACK_BEGIN {
                return Ok(());
            }
            match self.read_rest_of_packet(head)? {
                Some(answer) if answer.starts_with(b"ACK ") || answer.starts_with(b"NAK") => {}
                Some(answer) => return Err(build_protocol_error(String::from_utf8_lossy(&answer).trim())),
                None => return Err(build_protocol_error("it does not speak git's protocol")),
            }
        }
    }

    /// Ends it without taking anything.
    pub(super) fn close(mut self) {
        self.watchdog.kill();
        let _ = self.child.wait();
    }

    /// Why it failed: in its own words if it has any.
    fn fail(&mut self, error: &io::Error) -> WorktreeError {
        let cause = self.watchdog.cause();
        self.watchdog.kill();
        let _ = self.child.wait();
        let messages = self.messages.take().and_then(|messages| messages.join().ok()).unwrap_or_default();
        match cause {
            Some(Cause::Silence) => {
                WorktreeError::TimedOut { command: "upload-pack".to_owned(), seconds: SILENCE_MAX.as_secs() }
            }
            Some(Cause::Stopped) => WorktreeError::Stopped,
            None => {
                let message = messages.lines().next().map(str::trim).filter(|line| !line.is_empty());
                let stderr = message.map_or_else(|| error.to_string(), str::to_owned);
                WorktreeError::Git { command: "upload-pack".to_owned(), stderr }
            }
        }
    }
}

/// How the copy of a pack ended.
enum PackEnd {
    Sent,
    /// Whoever reads the copy has ended.
    Unwanted,
}

/// Which objects are asked for.
pub(super) struct PackRequest<'r> {
    pub(super) tip: &'r str,
    pub(super) known: &'r [String],
    pub(super) shallow: &'r [String],
    /// In bytes.
    pub(super) size_max: u64,
}

/// The length of an object id of SHA-1.
const SHA1_LENGTH: usize = 40;

/// Whether a text is an object id, of SHA-1 or SHA-256.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), SHA1_LENGTH | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn write_packet(to: &mut Vec<u8>, line: &str) {
    to.extend_from_slice(format!("{:04x}{line}\n", line.len() + 5).as_bytes());
}

fn build_protocol_error(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// Reads all messages and keeps the first ones.
fn read_messages(mut errors: ChildStderr) -> String {
    let mut kept = Vec::new();
    let _ = (&mut errors).take(MESSAGES_MAX).read_to_end(&mut kept);
    let _ = io::copy(&mut errors, &mut io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// Why a program was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Silence,
    Stopped,
}

/// Kills a program, with those that it started, when it is silent for too long or a person stops the run.
struct SilenceWatchdog {
    pid: Pid,
    shared: Arc<Mutex<WatchState>>,
}

struct WatchState {
    last: Instant,
    cause: Option<Cause>,
    /// The program is not watched any more.
    is_over: bool,
}

impl SilenceWatchdog {
    fn start(child: &Child, stop: StopFlag) -> SilenceWatchdog {
        let pid = Pid::from_child(child);
        let state = WatchState { last: Instant::now(), cause: None, is_over: false };
        let shared = Arc::new(Mutex::new(state));
        let watched = Arc::clone(&shared);
        thread::spawn(move || {
            loop {
                thread::sleep(WATCH_PAUSE);
                let mut state = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if state.is_over {
                    return;
                }
                let cause = match stop.is_set() {
                    true => Some(Cause::Stopped),
                    false => (state.last.elapsed() > SILENCE_MAX).then_some(Cause::Silence),
                };
                if cause.is_some() {
                    (state.cause, state.is_over) = (cause, true);
                    let _ = kill_process_group(pid, Signal::KILL);
                    return;
                }
            }
        });
        SilenceWatchdog { pid, shared }
    }

    fn progress(&self) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).last = Instant::now();
    }

    fn cause(&self) -> Option<Cause> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).cause
    }

    /// Kills the program, which has not been waited for.
    fn kill(&self) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            state.is_over = true;
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

impl Drop for SilenceWatchdog {
    fn drop(&mut self) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
    }
}
