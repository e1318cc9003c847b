//! What the stand-in knows.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Status 502 before anything is done.
    BeforeEffect,
    /// Status 502 after it is done.
    AfterEffect,
    /// The answer ends within its body, after it is done.
    Torn,
    /// The connection closes without an answer, after it is done.
    Silent,
    /// The answer comes after this many milliseconds.
    Slow(u64),
    /// A secondary rate limit: status 403 without a header, nothing is done.
    SecondaryLimit,
    /// A rate limit with `retry-after` in seconds, nothing is done.
    Limit(u64),
    /// Status 401, nothing is done.
    BadToken,
    /// Status 403 for a right that the token lacks, nothing is done.
    NoRight,
    /// Status 301 to the same address, as for a repository that was renamed, nothing is done.
    Moved,
}

/// A request that the stand-in read.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, without its query.
    pub path: String,
    /// The body.
    pub body: Value,
    /// The token.
    pub token: String,
    /// The status of the answer.
    pub status: u16,
}

/// A fault that is planned for requests.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) fault: Fault,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) times: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) repository: String,
    /// The user of each token.
    pub(super) users: BTreeMap<String, String>,
    pub(super) issues: BTreeMap<u64, Value>,
    pub(super) comments: Vec<Stored>,
    pub(super) reviews: BTreeMap<u64, Vec<Value>>,
    pub(super) line_comments: BTreeMap<u64, Vec<Value>>,
    pub(super) pulls: BTreeMap<u64, Value>,
    pub(super) projects: BTreeMap<u64, Value>,
    /// How long lists do not show a new comment.
    pub(super) lag: Duration,
    pub(super) faults: Vec<Planned>,
    pub(super) seen: Vec<Seen>,
    pub(super) ids: u64,
    /// The address of the server, for the pages that answers name.
    pub(super) url: String,
}

/// A comment on an issue.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) issue: u64,
    pub(super) user: String,
    pub(super) body: String,
    pub(super) at: Instant,
    /// Whether its author belongs to the repository.
    pub(super) is_by_member: bool,
    /// As RFC 3339.
    pub(super) created_at: String,
}

impl Stored {
    pub(super) fn new(id: u64, issue: u64, user: String, body: String) -> Stored {
        let created_at = "2026-01-01T00:00:00Z".to_owned();
        Stored { id, issue, user, body, at: Instant::now(), is_by_member: true, created_at }
    }
}

impl State {
    pub(super) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        1000 + self.ids
    }

    pub(super) fn comment_json(&self, comment: &Stored) -> Value {
        let Stored { id, issue, user, body, is_by_member, created_at, .. } = comment;
        json!({
            "author_association": if *is_by_member { "MEMBER" } else { "NONE" },
            "created_at": created_at, "updated_at": created_at, "id": id, "body": body, "user": {"login": user, "type": if user.ends_with("[bot]") { "Bot" } else { "User" }},
            "html_url": format!("{}/{}/issues/{issue}#issuecomment-{id}", self.url, self.repository),
        })
    }

    /// The user of a token.
    pub(super) fn user(&self, token: &str) -> String {
        self.users.get(token).cloned().unwrap_or_else(|| "cuegate-bot".to_owned())
    }

    pub(super) fn add_issue(&mut self, number: u64, title: &str, body: &str, labels: &[&str]) {
        let labels: Vec<Value> = labels.iter().map(|name| json!({"name": name})).collect();
        let issue = json!({
            "number": number, "title": title, "body": body, "state": "open", "labels": labels,
            "user": {"login": "someone"}, "assignees": [], "created_at": format!("2026-01-01T00:{:02}:00Z", number % 60),
            "html_url": format!("{}/{}/issues/{number}", self.url, self.repository),
        });
        self.issues.insert(number, issue);
    }

    /// The number of the next issue or pull request.
    pub(super) fn next_number(&self) -> u64 {
        1 + self.pulls.keys().chain(self.issues.keys()).max().copied().unwrap_or_default()
    }

    pub(super) fn add_pull(&mut self, number: u64, (head, base): (&str, &str), title: &str, body: &str) {
        let owner = self.repository.split('/').next().unwrap_or_default();
        let repo = json!({"full_name": self.repository});
        let pull = json!({
            "number": number, "title": title, "body": body, "state": "open", "draft": false, "labels": [],
            "head": {"label": format!("{owner}:{head}"), "ref": head, "repo": repo}, "base": {"ref": base, "repo": repo},
            "html_url": format!("{}/{}/pull/{number}", self.url, self.repository), "user": {"login": "someone"},
            "updated_at": format!("2026-01-01T00:{:02}:00Z", number % 60),
        });
        self.pulls.insert(number, pull);
    }

    pub(super) fn labels(&self, number: u64) -> Vec<String> {
        let labels = self.issues.get(&number).and_then(|issue| issue["labels"].as_array());
        let names = labels.into_iter().flatten().filter_map(|label| label["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// The fault that is planned for a request, used up.
    pub(super) fn take_fault(&mut self, method: &str, path: &str) -> Option<Fault> {
        let fits = |planned: &Planned| planned.method == method && path.contains(&planned.path);
        let at = self.faults.iter().position(fits)?;
        let fault = self.faults[at].fault;
        self.faults[at].times -= 1;
        if self.faults[at].times == 0 {
            self.faults.remove(at);
        }
        Some(fault)
    }
}
