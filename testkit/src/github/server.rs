//! The server of the stand-in: a thread that accepts, one for each connection.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    routes::answer,
    state::{Fault, Planned, Seen, State, Stored},
};
use crate::standin::Connection;

/// A stand-in for GitHub on this machine. It ends when it is dropped.
pub struct GithubStandin {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
}

impl GithubStandin {
    /// Starts one with this repository, `owner/name`, on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When no port can be listened on.
    pub fn start(repository: &str) -> GithubStandin {
        GithubStandin::start_at(repository, 0, |_| {})
    }

    /// Starts one on this port; `tell` gets each request.
    ///
    /// # Panics
    /// When the port cannot be listened on.
    pub fn start_at(
        repository: &str,
        port: u16,
        tell: impl Fn(&Seen) + Send + Sync + 'static,
    ) -> GithubStandin {
        let tell: Arc<dyn Fn(&Seen) + Send + Sync> = Arc::new(tell);
        let listener =
            TcpListener::bind(("127.0.0.1", port)).expect("a port of the loopback can be listened on");
        let address = listener.local_addr().expect("a listener has an address");
        let url = format!("http://{address}");
        let state = State { repository: repository.to_owned(), url, ..State::default() };
        let (state, ended) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        thread::spawn({
            let (state, ended) = (Arc::clone(&state), Arc::clone(&ended));
            move || {
                for stream in listener.incoming() {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let Ok(stream) = stream else { continue };
                    let (state, tell) = (Arc::clone(&state), Arc::clone(&tell));
                    thread::spawn(move || serve(stream, &state, &*tell));
                }
            }
        });
        GithubStandin { address, state, ended }
    }

    /// The address of the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an issue.
    pub fn issue(&self, number: u64, title: &str, body: &str, labels: &[&str]) {
        self.state().add_issue(number, title, body, labels);
    }

    /// Adds a pull request with a review and a comment on a line.
    pub fn pull(&self, number: u64, title: &str, review: &str, line: (&str, u64, &str)) {
        let mut state = self.state();
        state.add_issue(number, title, "", &[]);
        state.issues.get_mut(&number).expect("was added")["pull_request"] = json!({"merged_at": null});
        let user = json!({"login": "reviewer"});
        state.reviews.insert(
            number,
            vec![json!({"id": 1, "body": review, "user": user, "state": "CHANGES_REQUESTED"})],
        );
        let (path, line, body) = line;
        let comment = json!({"id": 2, "body": body, "user": user, "path": path, "line": line});
        state.line_comments.insert(number, vec![comment]);
    }

    /// Adds an open pull request from a branch of the repository into another one, on which comments can be written.
    pub fn open_pull(&self, number: u64, (head, base): (&str, &str), title: &str, body: &str) {
        let mut state = self.state();
        state.add_issue(number, title, body, &[]);
        state.issues.get_mut(&number).expect("was added")["pull_request"] = json!({"merged_at": null});
        state.add_pull(number, (head, base), title, body);
    }

    /// Adds a comment of a user.
    pub fn comment(&self, issue: u64, user: &str, body: &str) {
        let mut state = self.state();
        let id = state.next_id();
        let (user, body) = (user.to_owned(), body.to_owned());
        state.comments.push(Stored::new(id, issue, user, body));
    }

    /// Adds a comment of somebody who does not belong to the repository, at a time as RFC 3339. Issues got their labels on
    /// 2026-01-02.
    pub fn comment_of_stranger(&self, issue: u64, user: &str, body: &str, created_at: &str) {
        let mut state = self.state();
        let id = state.next_id();
        let comment = Stored::new(id, issue, user.to_owned(), body.to_owned());
        state.comments.push(Stored { is_by_member: false, created_at: created_at.to_owned(), ..comment });
    }

    /// Adds a project with the status of each of its issues.
    pub fn project(&self, number: u64, title: &str, closed: bool, statuses: &[(u64, &str)]) {
        let statuses: serde_json::Map<String, Value> =
            statuses.iter().map(|(issue, status)| (issue.to_string(), json!(status))).collect();
        self.state().projects.insert(number, json!({"title": title, "closed": closed, "statuses": statuses}));
    }

    /// Makes the next `times` requests of a method whose path contains `path` go wrong.
    pub fn fault(&self, fault: Fault, method: &str, path: &str, times: usize) {
        let (method, path) = (method.to_owned(), path.to_owned());
        self.state().faults.push(Planned { fault, method, path, times });
    }

    /// Makes lists show new comments only after this time.
    pub fn lag(&self, lag: Duration) {
        self.state().lag = lag;
    }

    /// Sets the state of an issue: `open` or `closed`.
    pub fn set_state(&self, number: u64, state: &str) {
        if let Some(issue) = self.state().issues.get_mut(&number) {
            issue["state"] = json!(state);
        }
    }

    /// Sets the labels of an issue.
    pub fn set_labels(&self, number: u64, labels: &[&str]) {
        if let Some(issue) = self.state().issues.get_mut(&number) {
            issue["labels"] = labels.iter().map(|name| json!({ "name": name })).collect();
        }
    }

    /// Merges the pull request from this branch.
    pub fn merge_pull(&self, head: &str) {
        for pull in self.state().pulls.values_mut().filter(|pull| pull["head"]["ref"] == head) {
            (pull["state"], pull["merged_at"]) = (json!("closed"), json!("2026-01-01T00:00:00Z"));
        }
    }

    /// Forgets all pull requests.
    pub fn forget_pulls(&self) {
        self.state().pulls.clear();
    }

    /// The labels of an issue.
    pub fn labels(&self, number: u64) -> Vec<String> {
        self.state().labels(number)
    }

    /// The state of an issue.
    pub fn state_of(&self, number: u64) -> String {
        self.state()
            .issues
            .get(&number)
            .and_then(|issue| issue["state"].as_str())
            .unwrap_or_default()
            .to_owned()
    }

    /// The texts of the comments on an issue.
    pub fn comments(&self, number: u64) -> Vec<String> {
        let state = self.state();
        let of = state.comments.iter().filter(|comment| comment.issue == number);
        of.map(|comment| comment.body.clone()).collect()
    }

    /// The pull requests.
    pub fn pulls(&self) -> Vec<Value> {
        self.state().pulls.values().cloned().collect()
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// The requests that changed something.
    pub fn changes(&self) -> Vec<Seen> {
        let is_change = |seen: &Seen| seen.method != "GET" && seen.path != "/graphql" && seen.status < 300;
        self.seen().into_iter().filter(is_change).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GithubStandin {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>, tell: &dyn Fn(&Seen)) {
    let mut connection = Connection::new(stream);
    let Ok(Some(request)) = connection.read() else { return };
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let token = request.header("authorization").unwrap_or_default();
    let token = token.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let mut locked = state.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = locked.take_fault(&request.method, path);
    let (mut status, mut json, mut headers) = (502, json!({"message": "Server Error"}), Vec::new());
    match fault {
        Some(Fault::BeforeEffect) => {}
        Some(Fault::SecondaryLimit) => {
            let message =
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            (status, json) = (403, json!({"message": message}));
        }
        Some(Fault::Limit(seconds)) => {
            headers.push(("retry-after".to_owned(), seconds.to_string()));
            (status, json) = (403, json!({"message": "API rate limit exceeded"}));
        }
        Some(Fault::BadToken) => (status, json) = (401, json!({"message": "Bad credentials"})),
        Some(Fault::NoRight) => {
            (status, json) = (403, json!({"message": "Resource not accessible by personal access token"}));
        }
        Some(Fault::Moved) => {
            headers.push(("location".to_owned(), format!("{}{}", locked.url, request.path)));
            (status, json) = (301, json!({"message": "Moved Permanently"}));
        }
        _ => {
            let done = answer(&mut locked, &request.method, path, query, &body, &token);
            if fault != Some(Fault::AfterEffect) {
                (status, json) = done;
            }
        }
    }
    let (method, path) = (request.method.clone(), path.to_owned());
    let done = if fault == Some(Fault::AfterEffect) { 200 } else { status };
    let seen = Seen { method, path, body, token, status: done };
    tell(&seen);
    locked.seen.push(seen);
    drop(locked);
    if let Some(Fault::Slow(ms)) = fault {
        thread::sleep(Duration::from_millis(ms));
    }
    let text = json.to_string();
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    let sent = match fault {
        Some(Fault::Silent) => {
            let _ = connection.close();
            return;
        }
        Some(Fault::Torn) => text.len() / 2,
        _ => text.len(),
    };
    let _ = connection.whole(status, &headers, text.as_bytes(), sent);
}
