//! Puts an ask as a runner does: writes the files, starts the program in a group of its own, feeds what it prints to the
//! reader, ends it.

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
    Activity, Answer, AnswerReader, Ended, Fault, FaultClass, Launch, Prepared, Provider, Request,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long anything may take that is not meant to take for ever.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
/// The variable by which what descends from an ask's program is found.
const MARK: &str = "CUEGATE_TEST_ASK";

/// What came of an ask.
#[derive(Debug)]
pub struct Asked {
    /// What was seen of it.
    pub activities: Vec<Activity>,
    /// How it ended.
    pub end: Result<Answer, Fault>,
}

impl Asked {
    /// The answer that there has to be.
    #[track_caller]
    pub fn answer(&self) -> &Answer {
        self.end.as_ref().unwrap_or_else(|fault| panic!("{fault:#?}\n{:#?}", self.activities))
    }

    /// The fault that there has to be.
    #[track_caller]
    pub fn fault(&self) -> &Fault {
        match &self.end {
            Ok(answer) => panic!("an answer where none is due: {answer:#?}\n{:#?}", self.activities),
            Err(fault) => fault,
        }
    }

    /// The class of the fault that there has to be.
    #[track_caller]
    pub fn class(&self) -> FaultClass {
        self.fault().class
    }

    /// Whether a tool was seen to be used on something.
    pub fn used_tool_on(&self, what: &str) -> bool {
        self.activities
            .iter()
            .any(|activity| matches!(activity, Activity::Tool { target, .. } if target.contains(what)))
    }

    /// Whether a denial was seen.
    pub fn was_denied(&self) -> bool {
        self.activities.iter().any(|activity| matches!(activity, Activity::Denied { .. }))
    }
}

/// Puts an ask and waits for its end.
pub fn put(provider: &dyn Provider, request: &Request) -> Asked {
    match provider.prepare(request) {
        Err(fault) => Asked { activities: Vec::new(), end: Err(fault) },
        Ok(Prepared::Local(answer)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            Asked { activities: Vec::new(), end: runtime.block_on(answer) }
        }
        Ok(Prepared::Process { launch, reader }) => Running::start(&launch, reader, request).end(),
    }
}

/// An ask whose program is at work.
pub struct Running {
    child: Child,
    mark: String,
    lines: Receiver<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    reader: Box<dyn AnswerReader>,
    activities: Vec<Activity>,
}

impl Running {
    /// Begins an ask that has to be put by a program.
    pub fn begin(provider: &dyn Provider, request: &Request) -> Running {
        match provider.prepare(request).unwrap() {
            Prepared::Process { launch, reader } => Running::start(&launch, reader, request),
            Prepared::Local(_) => panic!("a program is due"),
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
        let told = launch.stdin.clone();
        // One that does not read all of it is none of our business.
        thread::spawn(move || stdin.write_all(&told).ok());
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

    /// Waits for its own end.
    pub fn end(mut self) -> Asked {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.read(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return self.stop(Ended::TimedOut),
            }
        }
        let status = self.child.wait().unwrap();
        let ended = match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Exit(code),
            (None, signal) => Ended::Signal(signal.unwrap_or_default()),
        };
        self.over(ended)
    }

    /// Kills the program as a crash would, and nothing else of it.
    pub fn crash(self) -> Asked {
        kill_process(self.pid(), Signal::KILL).unwrap();
        self.end()
    }

    /// Stops it with all that it started, and says how it ended. What is left of it afterwards is a failure.
    pub fn stop(mut self, ended: Ended) -> Asked {
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

    fn over(self, ended: Ended) -> Asked {
        self.all_gone();
        let stderr = self.stderr.join().unwrap();
        Asked { activities: self.activities, end: self.reader.end(ended, &stderr) }
    }

    /// Nothing of it goes on: neither in its group nor out of it.
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

/// The processes that have a mark in their environment, with their command lines.
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
