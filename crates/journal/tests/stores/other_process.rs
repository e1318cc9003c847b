//! Runs this test binary as another process that works on the same journal.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cuegate_journal::log::{LogJournal, Options};
use cuegate_journal::{Blob, Error, Journal, NewRecord, Owner};

use crate::conformance::{record, run};

const ROLE: &str = "CUEGATE_JOURNAL_TEST_ROLE";
const PATH: &str = "CUEGATE_JOURNAL_TEST_PATH";

/// Marks the lines for the parent in the output of the test harness.
const MARK: char = '@';

/// A child process with one of the roles below.
pub struct OtherProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    pub fn start(role: &str, path: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["other_process::plays_its_role", "--exact", "--nocapture"])
            .envs([(ROLE, role.as_ref()), (PATH, path.as_os_str())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Lets the process continue.
    pub fn nod(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// Waits for the next line of the process; `None` when it has ended.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Ignore a line that was truncated by a kill.
            if let Some((_, said)) = line.split_once(MARK)
                && let Some(said) = said.strip_suffix('\n')
            {
                return Some(said.to_owned());
            }
        }
    }

    /// Kills the process with SIGKILL and returns its remaining lines.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.hear()).collect()
    }

    /// Waits until the process has ended.
    pub fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Does nothing in the process that runs the tests.
#[test]
fn plays_its_role() {
    let (Ok(role), Some(path)) = (env::var(ROLE), env::var_os(PATH)) else { return };
    let path = Path::new(&path);
    match role.as_str() {
        "writer" => write_for_ever(path),
        "creator" => create(path),
        "racer" => race(path),
        "viewer" => view(path),
        _ => panic!("there is no role `{role}`"),
    }
}

fn say(what: impl std::fmt::Display) {
    println!("{MARK}{what}");
}

fn hear() -> bool {
    std::io::stdin().read_line(&mut String::new()).unwrap() > 0
}

/// Appends to run `a` until it is killed. Each record names its blob and the message that it consumes. Prints the
/// number of each stored record.
fn write_for_ever(path: &Path) {
    let journal = LogJournal::open(path, Options::default()).unwrap();
    match journal.create(&run("a"), 1) {
        Ok(()) | Err(Error::Exists { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let lease = journal.acquire(&run("a"), &Owner::current()).unwrap();
    let seen = journal.read(&run("a"), 0).unwrap().len() as u64;
    for seq in seen.. {
        let blob = Blob::new(seq.to_string().repeat(1 + (seq as usize * 37) % 3000).into_bytes());
        let message = journal.post(&run("a"), 1, b"hello").unwrap();
        let body = format!("{} {message}", blob.digest());
        journal
            .append(&lease, seq, NewRecord { blobs: &[blob], consumes: &[message], ..record(&body) })
            .unwrap();
        say(seq);
    }
}

/// Creates the journal when the parent signals it, and creates run `a` in it.
fn create(path: &Path) {
    say("ready");
    hear();
    let journal = LogJournal::open(path, Options::default()).unwrap();
    match journal.create(&run("a"), 1) {
        Ok(()) => say("created"),
        Err(Error::Exists { .. }) => say("exists"),
        Err(error) => panic!("{error}"),
    }
}

/// Appends to run `a` under the current lease until it has 300 records; prints the number of its own records.
fn race(path: &Path) {
    let journal = LogJournal::open(path, Options::default()).unwrap();
    let lease = journal.holder(&run("a")).unwrap().unwrap();
    say("ready");
    hear();
    let (mut seq, mut own) = (0, 0);
    while seq < 300 {
        match journal.append(&lease, seq, record("racing")) {
            Ok(()) => (seq, own) = (seq + 1, own + 1),
            Err(Error::Conflict { found, .. }) if found > seq => seq = found,
            Err(error) => panic!("{error}"),
        }
    }
    say(own);
}

/// Prints the number of records of run `a` on each signal of the parent.
fn view(path: &Path) {
    let journal = LogJournal::open_read_only(path).unwrap();
    while hear() {
        say(journal.read(&run("a"), 0).unwrap().len());
    }
}
