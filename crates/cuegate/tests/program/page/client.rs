//! A server of a project's runs, and requests to it, byte by byte.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Job, Project, until};

/// A running `cuegate serve`.
pub struct Server {
    job: Job,
    pub port: u16,
    /// The token of the one-time link.
    pub link: String,
    /// The token for programs.
    pub bearer: String,
}

impl Server {
    pub fn start(project: &Project, more: &[&str]) -> Server {
        let job = project.job(&[&["serve"], more].concat());
        Server::of(job, || project.path().join(".cuegate"))
    }

    /// The server that a job starts, whose state dir is known when it has started.
    pub fn of(job: Job, state_dir: impl FnOnce() -> PathBuf) -> Server {
        until("the server prints its link", || job.printed().contains("token="));
        let printed = job.printed();
        let (address, token) = printed.trim().split_once("/#token=").unwrap();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        let file = fs::read_to_string(state_dir().join("serve.json")).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        let bearer = file["token"].as_str().unwrap().to_owned();
        Server { port, link: token.to_owned(), bearer, job }
    }

    /// What it says to standard error.
    pub fn stderr(&self) -> String {
        self.job.said()
    }

    /// Ends it with Ctrl-C.
    pub fn stop(self) {
        self.job.signal(Signal::INT);
        let ran = self.job.end();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    /// Sends a request with exactly these headers; returns status, headers and body.
    pub fn raw(&self, head: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        let mut request = format!("{head} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        Answer::parse(&String::from_utf8_lossy(&text))
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn authorized<'r>(&self, host: &'r str, bearer: &'r str) -> [(&'r str, &'r str); 2] {
        [("Host", host), ("Authorization", bearer)]
    }

    /// A request of a program with the token.
    pub fn get(&self, path: &str) -> Answer {
        let (host, bearer) = (self.host(), format!("Bearer {}", self.bearer));
        self.raw(&format!("GET /api/v1{path}"), &self.authorized(&host, &bearer), "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let (host, bearer) = (self.host(), format!("Bearer {}", self.bearer));
        self.raw(&format!("POST /api/v1{path}"), &self.authorized(&host, &bearer), &body.to_string())
    }

    /// The object of a resource.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Reads events of a stream, as (name, id, data), until `enough` of what was read.
    pub fn events(
        &self,
        path: &str,
        more: &[(&str, &str)],
        mut enough: impl FnMut(&[(String, String, Value)]) -> bool,
    ) -> Vec<(String, String, Value)> {
        let mut stream = self.connect();
        let mut request = format!("GET /api/v1{path} HTTP/1.1\r\nHost: {}\r\n", self.host());
        request.push_str(&format!("Authorization: Bearer {}\r\n", self.bearer));
        more.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut events: Vec<(String, String, Value)> = Vec::new();
        let (mut name, mut id) = (String::new(), String::new());
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            if let Some(text) = line.strip_prefix("event: ") {
                text.clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("data: ") {
                events.push((name.clone(), std::mem::take(&mut id), serde_json::from_str(text).unwrap()));
                if enough(&events) {
                    return events;
                }
            }
        }
        panic!("the stream ended: {events:#?}");
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        stream
    }
}

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    fn parse(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers: Vec<_> = lines.filter_map(pair).collect();
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        assert!(!is_chunked, "a whole answer has a length");
        Answer { status, headers, body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
