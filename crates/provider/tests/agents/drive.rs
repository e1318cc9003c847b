//! Performs an ask as a runner does: writes its files, starts the program in its own process group, passes the output
//! to the reader, and stops the program.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use cuegate_provider::{
    Activity, Answer, AnswerReader, Fault, FaultClass, Launch, PreparedAsk, ProgramEnd, Provider, Request,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The timeout of an ask that does not hang on purpose.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a program may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// The environment variable that identifies the descendants of an ask's program.
const MARK: &str = "CUEGATE_TEST_ASK";

/// The result of an ask.
#[derive(Debug)]
pub struct Asked {
    /// Its activities.
    pub activities: Vec<Activity>,
    /// Its answer or fault.
    pub end: Result<Answer, Fault>,
}

impl Asked {
    /// The answer. Panics on a fault.
    #[track_caller]
    pub fn answer(&self) -> &Answer {
        self.end.as_ref().unwrap_or_else(|fault| panic!("{fault:#?}\n{:#?}", self.activities))
    }

    /// The fault. Panics on an answer.
    #[track_caller]
    pub fn fault(&self) -> &Fault {
        match &self.end {
            Ok(answer) => panic!("an answer where none is due: {answer:#?}\n{:#?}", self.activities),
            Err(fault) => fault,
        }
    }

    /// The class of the fault. Panics on an answer.
    #[track_caller]
    pub fn class(&self) -> FaultClass {
        self.fault().class
    }

    /// Whether the activities contain a tool use on this target.
    pub fn used_tool_on(&self, what: &str) -> bool {
        self.activities
            .iter()
            .any(|activity| matches!(activity, Activity::Tool { target, .. } if target.contains(what)))
    }

    /// Whether the activities contain a denial.
    pub fn was_denied(&self) -> bool {
        self.activities.iter().any(|activity| matches!(activity, Activity::Denied { .. }))
    }
}

/// Performs an ask to its end.
pub fn put(provider: &dyn Provider, request: &Request) -> Asked {
    match provider.prepare(request) {
        Err(fault) => Asked { activities: Vec::new(), end: Err(fault) },
        Ok(PreparedAsk::Local(answer)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            Asked { activities: Vec::new(), end: runtime.block_on(answer) }
        }
        Ok(PreparedAsk::Process { launch, reader }) => Running::start(&launch, reader, request).end(),
    }
}

/// An ask whose program is running.
pub struct Running {
    child: Child,
    mark: String,
    lines: Receiver<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    reader: Box<dyn AnswerReader>,
    activities: Vec<Activity>,
}

impl Running {
    /// Starts an ask that needs a program.
    pub fn begin(provider: &dyn Provider, request: &Request) -> Running {
        match provider.prepare(request).unwrap() {
            PreparedAsk::Process { launch, reader } => Running::start(&launch, reader, request),
            PreparedAsk::Local(_) => panic!("a program is due"),
        }
    }

    fn start(launch: &Launch, reader: Box<dyn AnswerReader>, request: &Request) -> Running {
        fs::create_dir_all(&request.scratch).unwrap();
        for (name, content) in &launch.files {
            fs::write(request.scratch.join(name), content).unwrap();
        }
        let mark = format!("{}-{}", std::process::id(), request.id);
        let mut child = Command::new(&launch.program)
            .args(&launch.args)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .env(MARK, &mark)
            .current_dir(&request.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("`{}`: {error}", launch.program.display()));
        let mut stdin = child.stdin.take().unwrap();
        let input = launch.stdin.clone();
        // The program may close its standard input early.
        thread::spawn(move || stdin.write_all(&input).ok());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut said = Vec::new();
            stderr.read_to_end(&mut said).ok();
            said
        });
        Running { child, mark, lines, stderr, reader, activities: Vec::new() }
    }

    fn read(&mut self, line: &[u8]) {
        self.activities.extend(self.reader.line(line));
    }

    /// Waits until the program exits by itself.
    pub fn end(mut self) -> Asked {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.reader.is_stuck() {
                return self.stop(ProgramEnd::Signal(Signal::TERM.as_raw()));
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.read(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return self.stop(ProgramEnd::TimedOut),
            }
        }
        let status = self.child.wait().unwrap();
        let ended = match (status.code(), status.signal()) {
            (Some(code), _) => ProgramEnd::Exit(code),
            (None, signal) => ProgramEnd::Signal(signal.unwrap_or_default()),
        };
        self.over(ended)
    }

    /// Kills only the program itself, like a crash.
    pub fn crash(self) -> Asked {
        kill_process(self.pid(), Signal::KILL).unwrap();
        self.end()
    }

    /// Stops the whole process group and finishes the reader with `ended`. Panics if a process is left.
    pub fn stop(mut self, ended: ProgramEnd) -> Asked {
        let group = self.pid();
        kill_process_group(group, Signal::TERM).ok();
        let deadline = Instant::now() + GRACE;
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        kill_process_group(group, Signal::KILL).ok();
        self.child.wait().unwrap();
        while let Ok(line) = self.lines.recv_timeout(GRACE) {
            self.read(&line);
        }
        self.over(ended)
    }

    fn over(self, ended: ProgramEnd) -> Asked {
        self.all_gone();
        let stderr = self.stderr.join().unwrap();
        Asked { activities: self.activities, end: self.reader.end(ended, &stderr) }
    }

    /// Panics if a descendant is running, inside or outside of its process group.
    fn all_gone(&self) {
        let deadline = Instant::now() + GRACE;
        loop {
            let left = marked(&self.mark);
            if left.is_empty() {
                return;
            }
            if Instant::now() > deadline {
                for (pid, _) in &left {
                    kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).ok();
                }
                panic!("the ask left processes behind: {left:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

/// The processes with this mark in their environment, with their command lines.
fn marked(mark: &str) -> Vec<(i32, String)> {
    let mark = format!("{MARK}={mark}");
    let read = |path: PathBuf| fs::read(path).unwrap_or_default();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environment = read(format!("/proc/{pid}/environ").into());
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .map(|pid| {
            let words = read(format!("/proc/{pid}/cmdline").into());
            (pid, String::from_utf8_lossy(&words).replace('\0', " "))
        })
        .collect()
}
