//! The requests that Cuegate sends to GitHub, each once. Blocks.

use std::{fmt, io, sync::Arc, thread, time::Duration};

use cuegate_engine::limit_wait_ms;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::{
    Agent,
    http::{HeaderMap, Method, Request, Uri},
};

use super::{
    effects::truncate_body,
    error::GithubError,
    objects::{Comment, Issue, PullRequest, User},
};
use crate::http;

/// The longest accepted answer, in bytes.
const BODY_MAX: u64 = 16 << 20;
/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The number of entries of a page; GitHub's maximum.
const PAGE: usize = 100;
/// How many addresses one request is sent to, if the repository was renamed.
const REDIRECTS_MAX: u32 = 4;
/// The maximum number of pages of one list.
const PAGES_MAX: usize = 50;

/// A repository on GitHub.
#[derive(Clone)]
pub struct Github {
    agent: Agent,
    api: String,
    host: String,
    repository: String,
    token: String,
    /// Fails if this process may act no more.
    fence: Option<Fence>,
    /// How it waits for limits of the rate of requests, if it does.
    patience: Option<Patience>,
}

/// How a client waits when its rate of requests is limited.
#[derive(Clone)]
pub struct Patience {
    /// The longest wait, in milliseconds.
    pub wait_max_ms: u64,
    /// Tells the user of a wait.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Whether a process may still act: the inner error says why not.
pub(crate) type Fence = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Does not show the token.
impl fmt::Debug for Github {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Github").field("api", &self.api).field("repository", &self.repository).finish()
    }
}

pub(super) type Answer<T> = Result<T, GithubError>;

/// What a request led to.
enum RequestOutcome<T> {
    /// An answer.
    Answered(T),
    /// The address to ask instead.
    Moved(String),
}

impl Github {
    /// A client for `repository`, as `owner/name`, of the API at `api`.
    ///
    /// # Errors
    /// When `api` is not the address of an HTTP service.
    pub fn new(api: &str, repository: &str, token: &str) -> Result<Github, String> {
        let uri: Uri = api.parse().map_err(|_| format!("`{api}` is not an address"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(format!("`{api}` is not the address of an HTTP service"));
        }
        Ok(Github {
            agent: http::build_http_agent(&uri, TIMEOUT),
            api: api.trim_end_matches('/').to_owned(),
            host: uri.host().unwrap_or_default().to_owned(),
            repository: repository.to_owned(),
            token: token.to_owned(),
            fence: None,
            patience: None,
        })
    }

    /// The repository, as `owner/name`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The name of the user that the token belongs to; `None` for a token of an app, which belongs to no user.
    ///
    /// # Errors
    /// As for every request.
    pub fn login(&self) -> Answer<Option<String>> {
        match self.get::<User>("/user", &[]) {
            Ok(user) => Ok(Some(user.login)),
            Err(GithubError::Refused { status: 403 | 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An issue or pull request.
    ///
    /// # Errors
    /// As for every request.
    pub fn issue(&self, number: u64) -> Answer<Issue> {
        self.get(&self.path(&format!("issues/{number}")), &[])
    }

    /// An issue or pull request, as GitHub describes it.
    ///
    /// # Errors
    /// As for every request.
    pub fn issue_value(&self, number: u64) -> Answer<Value> {
        self.get(&self.path(&format!("issues/{number}")), &[])
    }

    /// The open issues with a label, oldest first; pull requests are left out.
    ///
    /// # Errors
    /// As for every request.
    pub fn open_issues(&self, label: &str) -> Answer<Vec<Issue>> {
        let query = [("state", "open"), ("labels", label), ("sort", "created"), ("direction", "asc")];
        let issues: Vec<Issue> = self.list(&self.path("issues"), &query)?;
        Ok(issues.into_iter().filter(|issue| issue.pull_request.is_none()).collect())
    }

    /// Creates a comment on an issue or pull request.
    ///
    /// # Errors
    /// As for every request. After an [ambiguous](GithubError::is_ambiguous) one the comment may exist.
    pub fn create_comment(&self, number: u64, body: &str) -> Answer<Comment> {
        self.send(Method::POST, &self.path(&format!("issues/{number}/comments")), &json!({ "body": body }))
    }

    /// Writes the one comment on an issue or pull request that begins with a line `marker`: creates it, or replaces the
    /// text of the one that this token wrote. Without an earlier one and a text that is `worth_a_comment`, nothing happens.
    ///
    /// # Errors
    /// As for every request.
    pub fn write_marked_comment(
        &self,
        number: u64,
        marker: &str,
        text: &str,
        worth_a_comment: bool,
    ) -> Answer<Option<Comment>> {
        let login = self.login()?;
        // Anybody may write the marker, and change such a comment afterwards.
        let is_own = |comment: &Comment| match (&login, &comment.user) {
            (Some(login), Some(user)) => *login == user.login,
            (None, Some(user)) => user.kind == "Bot",
            (_, None) => false,
        };
        let is_marked = |comment: &Comment| {
            comment.body.as_deref().is_some_and(|body| body.lines().next() == Some(marker))
        };
        let earlier = self.comments(number)?.into_iter().find(|one| is_marked(one) && is_own(one));
        let body = truncate_body(&format!("{marker}\n{text}"));
        match earlier {
            Some(earlier) if earlier.body.as_deref() == Some(body.as_str()) => Ok(Some(earlier)),
            Some(earlier) => self.edit_comment(earlier.id, &body).map(Some),
            None if worth_a_comment => self.create_comment(number, &body).map(Some),
            None => Ok(None),
        }
    }

    /// Replaces the text of a comment.
    ///
    /// # Errors
    /// As for every request.
    pub fn edit_comment(&self, id: u64, body: &str) -> Answer<Comment> {
        self.send(Method::PATCH, &self.path(&format!("issues/comments/{id}")), &json!({ "body": body }))
    }

    /// Adds labels to an issue or pull request. GitHub creates labels that do not exist.
    ///
    /// # Errors
    /// As for every request.
    pub fn add_labels(&self, number: u64, labels: &[&str]) -> Answer<()> {
        let path = self.path(&format!("issues/{number}/labels"));
        self.send::<Value>(Method::POST, &path, &json!({ "labels": labels })).map(|_| ())
    }

    /// Removes a label from an issue or pull request. Returns whether it had the label.
    ///
    /// # Errors
    /// As for every request.
    pub fn remove_label(&self, number: u64, label: &str) -> Answer<bool> {
        let path = self.path(&format!("issues/{number}/labels/{}", encode_url_part(label)));
        match self.request::<Value>(Method::DELETE, &path, None) {
            Ok(_) => Ok(true),
            Err(GithubError::Refused { status: 404, message }) if message.contains("Label") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Closes an issue as completed.
    ///
    /// # Errors
    /// As for every request.
    pub fn close(&self, number: u64) -> Answer<Issue> {
        let body = json!({ "state": "closed", "state_reason": "completed" });
        self.send(Method::PATCH, &self.path(&format!("issues/{number}")), &body)
    }

    /// The open pull request from the branch `head` of the repository into the branch `base`.
    ///
    /// # Errors
    /// As for every request.
    pub fn open_pull(&self, head: &str, base: &str) -> Answer<Option<PullRequest>> {
        let owner = self.repository.split('/').next().unwrap_or_default();
        let head = format!("{owner}:{head}");
        let query = [("state", "open"), ("head", head.as_str()), ("base", base)];
        Ok(self.list::<PullRequest>(&self.path("pulls"), &query)?.into_iter().next())
    }

    /// The pull requests from the branch `head` of the repository, open and closed, newest first.
    ///
    /// # Errors
    /// As for every request.
    pub fn pulls_of(&self, head: &str) -> Answer<Vec<PullRequest>> {
        let owner = self.repository.split('/').next().unwrap_or_default();
        let head = format!("{owner}:{head}");
        self.list(&self.path("pulls"), &[("state", "all"), ("head", head.as_str())])
    }

    /// A pull request.
    ///
    /// # Errors
    /// As for every request.
    pub fn pull(&self, number: u64) -> Answer<PullRequest> {
        self.get(&self.path(&format!("pulls/{number}")), &[])
    }

    /// The open pull requests, the last changed first.
    ///
    /// # Errors
    /// As for every request.
    pub fn open_pulls(&self) -> Answer<Vec<PullRequest>> {
        let query = [("state", "open"), ("sort", "updated"), ("direction", "desc")];
        self.list(&self.path("pulls"), &query)
    }

    /// All open issues, the last changed first; pull requests are left out.
    ///
    /// # Errors
    /// As for every request.
    pub fn all_open_issues(&self) -> Answer<Vec<Issue>> {
        let query = [("state", "open"), ("sort", "updated"), ("direction", "desc")];
        let issues: Vec<Issue> = self.list(&self.path("issues"), &query)?;
        Ok(issues.into_iter().filter(|issue| issue.pull_request.is_none()).collect())
    }

    /// Creates an issue.
    ///
    /// # Errors
    /// As for every request. After an [ambiguous](GithubError::is_ambiguous) one the issue may exist.
    pub fn create_issue(&self, title: &str, body: &str, labels: &[&str]) -> Answer<Issue> {
        let request = json!({ "title": title, "body": body, "labels": labels });
        self.send(Method::POST, &self.path("issues"), &request)
    }

    /// Closes a pull request without merging it.
    ///
    /// # Errors
    /// As for every request.
    pub fn close_pull(&self, number: u64) -> Answer<PullRequest> {
        self.send(Method::PATCH, &self.path(&format!("pulls/{number}")), &json!({ "state": "closed" }))
    }

    /// Merges a pull request, in the way that the repository has by default.
    ///
    /// # Errors
    /// As for every request. [`GithubError::Refused`] if it has conflicts or its checks did not pass.
    pub fn merge_pull(&self, number: u64) -> Answer<()> {
        let path = self.path(&format!("pulls/{number}/merge"));
        self.send::<Value>(Method::PUT, &path, &json!({})).map(|_| ())
    }

    /// Opens a pull request.
    ///
    /// # Errors
    /// As for every request. [`GithubError::Refused`] with status 422 if there is one already.
    pub fn create_pull(&self, head: &str, base: &str, title: &str, body: &str) -> Answer<PullRequest> {
        let request = json!({ "head": head, "base": base, "title": title, "body": body });
        self.send(Method::POST, &self.path("pulls"), &request)
    }

    /// Replaces the text of a pull request.
    ///
    /// # Errors
    /// As for every request.
    pub fn edit_pull(&self, number: u64, body: &str) -> Answer<PullRequest> {
        self.send(Method::PATCH, &self.path(&format!("pulls/{number}")), &json!({ "body": body }))
    }

    /// The project with this number of the owner of the repository: `title`, `closed`, and the `status` of an issue in
    /// it, if one is given.
    ///
    /// # Errors
    /// As for every request; [`GithubError::Refused`] with status 404 if there is no such project.
    pub fn project(&self, number: u64, issue: Option<u64>) -> Answer<Value> {
        let (owner, name) = self.repository.split_once('/').unwrap_or_default();
        const QUERY: &str = "query($owner: String!, $name: String!, $number: Int!, $issue: Int!, $with: Boolean!) {
            repository(owner: $owner, name: $name) {
                owner {
                    ... on Organization { projectV2(number: $number) { title closed items { totalCount } } }
                    ... on User { projectV2(number: $number) { title closed items { totalCount } } }
                }
                issue(number: $issue) @include(if: $with) {
                    projectItems(first: 100) { nodes {
                        project { number }
                        fieldValueByName(name: \"Status\") { ... on ProjectV2ItemFieldSingleSelectValue { name } }
                    } }
                }
            }
        }";
        let variables = json!({
            "owner": owner, "name": name, "number": number,
            "issue": issue.unwrap_or(0), "with": issue.is_some(),
        });
        let path = match self.api.strip_suffix("/v3") {
            // The GraphQL address of GitHub Enterprise Server.
            Some(base) => format!("{base}/graphql"),
            None => format!("{}/graphql", self.api),
        };
        let answer: Value =
            self.request(Method::POST, &path, Some(&json!({ "query": QUERY, "variables": variables })))?;
        let found = answer.pointer("/data/repository/owner/projectV2").filter(|found| found.is_object());
        let Some(project) = found else {
            let message = answer.pointer("/errors/0/message").and_then(Value::as_str).unwrap_or("Not Found");
            return Err(GithubError::Refused { status: 404, message: message.to_owned() });
        };
        let items = answer.pointer("/data/repository/issue/projectItems/nodes").and_then(Value::as_array);
        let of_project = |item: &&Value| item.pointer("/project/number") == Some(&json!(number));
        let item = items.into_iter().flatten().find(of_project);
        let status = item.and_then(|item| item.pointer("/fieldValueByName/name").cloned());
        let closed = project["closed"].as_bool() == Some(true);
        Ok(json!({
            "number": number,
            "title": project["title"],
            "state": if closed { "closed" } else { "open" },
            "closed": closed,
            "items": project.pointer("/items/totalCount"),
            "status": status,
        }))
    }

    /// The same client, which changes something only while `fence` holds.
    pub(crate) fn with_fence(&self, fence: Fence) -> Github {
        Github { fence: Some(fence), ..self.clone() }
    }

    /// The same client, which waits for limits of the rate of requests when it reads.
    #[must_use]
    pub fn with_patience(&self, patience: Patience) -> Github {
        Github { patience: Some(patience), ..self.clone() }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{rest}", self.repository)
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Answer<T> {
        let mut limits = 0;
        loop {
            let answer = self.request(Method::GET, &with_query(path, query), None);
            let (Some(patience), Err(GithubError::Limited { message, after_ms })) = (&self.patience, &answer)
            else {
                return answer;
            };
            let Some(wait_ms) = limit_wait_ms(*after_ms, limits, patience.wait_max_ms) else { return answer };
            let seconds = wait_ms.div_ceil(1000);
            (patience.tell)(&format!("GitHub limits the rate of requests, waiting {seconds} s: {message}"));
            limits += 1;
            thread::sleep(Duration::from_millis(wait_ms));
        }
    }

    fn send<T: DeserializeOwned>(&self, method: Method, path: &str, body: &Value) -> Answer<T> {
        self.request(method, path, Some(body))
    }

    /// All pages of a list.
    pub(super) fn list<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Answer<Vec<T>> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let (page, size) = (page.to_string(), PAGE.to_string());
            let paged = [query, &[("per_page", &size), ("page", &page)]].concat();
            let entries: Vec<T> = self.get(path, &paged)?;
            let last = entries.len() < PAGE;
            all.extend(entries);
            if last {
                break;
            }
        }
        Ok(all)
    }

    /// Sends one request. `path` is relative to the API, or a whole address.
    fn request<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<&Value>) -> Answer<T> {
        let mut address = if path.starts_with('/') { format!("{}{path}", self.api) } else { path.to_owned() };
        for _ in 0..REDIRECTS_MAX {
            match self.request_once(method.clone(), &address, body)? {
                RequestOutcome::Answered(answer) => return Ok(answer),
                RequestOutcome::Moved(to) => address = to,
            }
        }
        Err(GithubError::Unreadable("too many redirects".to_owned()))
    }

    fn request_once<T: DeserializeOwned>(
        &self,
        method: Method,
        address: &str,
        body: Option<&Value>,
    ) -> Answer<RequestOutcome<T>> {
        let text = body.map(Value::to_string).unwrap_or_default();
        // As late as possible: the process may have been stopped for minutes before this line.
        if let Some(fence) = self.fence.as_ref().filter(|_| method != Method::GET) {
            fence().map_err(GithubError::Fenced)?;
        }
        let request = Request::builder()
            .method(method.clone())
            .uri(address)
            .header("Accept", "application/vnd.github+json")
            .header("Authorization", format!("Bearer {}", self.token))
            .header("X-GitHub-Api-Version", "2022-11-28")
            .header("Content-Type", "application/json")
            .body(text)
            .map_err(|error| GithubError::Unreadable(error.to_string()))?;
        let mut answer = self.agent.run(request).map_err(|error| self.failed(error))?;
        let status = answer.status().as_u16();
        tracing::debug!(%method, address, status, "github");
        let limit = limit_of(answer.headers());
        // A renamed or moved repository. The token goes to the same service only.
        if matches!(status, 301 | 302 | 307 | 308)
            && let Some(to) = answer.headers().get("location").and_then(|to| to.to_str().ok())
            && self.is_same_service(to)
        {
            return Ok(RequestOutcome::Moved(to.to_owned()));
        }
        let bytes = answer.body_mut().with_config().limit(BODY_MAX).read_to_vec();
        let bytes = bytes.map_err(|error| self.failed(error))?;
        if (200..300).contains(&status) {
            let text = if bytes.is_empty() { &b"null"[..] } else { &bytes };
            let answer = serde_json::from_slice(text);
            return answer
                .map(RequestOutcome::Answered)
                .map_err(|error| GithubError::Unreadable(error.to_string()));
        }
        Err(error_of_response(status, limit, &bytes))
    }

    fn is_same_service(&self, address: &str) -> bool {
        let parts = |text: &str| {
            let uri: Uri = text.parse().ok()?;
            Some((uri.scheme_str()?.to_owned(), uri.authority()?.to_string()))
        };
        parts(address).is_some() && parts(address) == parts(&self.api)
    }

    fn failed(&self, error: ureq::Error) -> GithubError {
        let host = self.host.clone();
        let unsent = match &error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Tls(_) => true,
            ureq::Error::Timeout(timeout) => {
                matches!(timeout, ureq::Timeout::Resolve | ureq::Timeout::Connect)
            }
            ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            _ => false,
        };
        let why = error.to_string();
        if unsent { GithubError::Unreachable { host, why } } else { GithubError::Broken { host, why } }
    }
}

/// The wait of a rate limit, from the headers of an answer.
#[derive(Debug, Clone, Copy, Default)]
struct RateLimit {
    /// The wait that the server asks for, in seconds.
    retry_after: Option<u64>,
    /// Whether no requests remain, and when that changes, in seconds since 1970.
    spent_until: Option<u64>,
}

fn limit_of(headers: &HeaderMap) -> RateLimit {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    RateLimit {
        retry_after: number("retry-after"),
        spent_until: number("x-ratelimit-reset").filter(|_| number("x-ratelimit-remaining") == Some(0)),
    }
}

/// The meaning of an answer that is no success.
fn error_of_response(status: u16, limit: RateLimit, body: &[u8]) -> GithubError {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut message = match json.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).chars().take(200).collect::<String>().trim().to_owned(),
    };
    let details = json.get("errors").and_then(Value::as_array).into_iter().flatten();
    for detail in details.filter_map(detail_of) {
        message = format!("{message}: {detail}");
    }
    // Secondary limits may have no header at all.
    let limited = status == 429
        || status == 403
            && (limit.retry_after.is_some()
                || limit.spent_until.is_some()
                || message.to_ascii_lowercase().contains("rate limit")
                || message.to_ascii_lowercase().contains("abuse detection"));
    if limited {
        let until = limit.spent_until.map(|until| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            until.saturating_sub(now.unwrap_or_default().as_secs()) + 1
        });
        let after_ms = limit.retry_after.or(until).map(|seconds| seconds.saturating_mul(1000));
        return GithubError::Limited { message, after_ms };
    }
    match status {
        500.. => GithubError::Server { status, message },
        _ => GithubError::Refused { status, message },
    }
}

/// An entry of `errors` as text: its message, or the field and what is wrong with it.
fn detail_of(error: &Value) -> Option<String> {
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    if let Some(message) = text("message").or(error.as_str()) {
        return Some(message.to_owned());
    }
    let code = text("code")?.replace('_', " ");
    Some(match text("field") {
        Some(field) => format!("`{field}` is {code}"),
        None => code,
    })
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        query.iter().map(|(name, value)| format!("{name}={}", encode_url_part(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes a part of a path or a query.
fn encode_url_part(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limits_are_recognised_without_headers() {
        let secondary = br#"{"message": "You have exceeded a secondary rate limit"}"#;
        assert!(matches!(
            error_of_response(403, RateLimit::default(), secondary),
            GithubError::Limited { after_ms: None, .. }
        ));
        let spent = RateLimit { retry_after: Some(7), spent_until: None };
        let limited = error_of_response(403, spent, b"{}");
        assert!(matches!(limited, GithubError::Limited { after_ms: Some(7000), .. }), "{limited:?}");
        let denied =
            error_of_response(403, RateLimit::default(), br#"{"message": "Resource not accessible"}"#);
        assert_eq!(denied.refused(), Some(403));
        assert!(error_of_response(502, RateLimit::default(), b"<html>").is_ambiguous());
        let invalid =
            br#"{"message": "Validation Failed", "errors": [{"message": "A pull request already exists"}]}"#;
        assert_eq!(
            error_of_response(422, RateLimit::default(), invalid).to_string(),
            "GitHub answered 422: Validation Failed: A pull request already exists"
        );
        let field = br#"{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "base", "code": "invalid"}]}"#;
        assert_eq!(
            error_of_response(422, RateLimit::default(), field).to_string(),
            "GitHub answered 422: Validation Failed: `base` is invalid"
        );
    }

    #[test]
    fn only_the_same_service_is_followed() {
        let github = Github::new("https://api.github.com", "a/b", "t").unwrap();
        assert!(github.is_same_service("https://api.github.com/repositories/1/issues/7"));
        for other in
            ["http://api.github.com/x", "https://evil.example/x", "https://api.github.com:8443/x", "/x"]
        {
            assert!(!github.is_same_service(other), "{other}");
        }
    }

    #[test]
    fn parts_of_addresses_are_encoded() {
        assert_eq!(with_query("/x", &[("labels", "a b/ä")]), "/x?labels=a%20b%2F%C3%A4");
    }
}
