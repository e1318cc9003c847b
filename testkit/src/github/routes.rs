//! What requests do.

use serde_json::{Value, json};

use super::state::{State, Stored};

/// The answer to a request: its status and its body.
pub(super) fn answer(
    state: &mut State,
    method: &str,
    path: &str,
    query: &str,
    body: &Value,
    token: &str,
) -> (u16, Value) {
    if token.is_empty() {
        return (401, json!({"message": "Requires authentication"}));
    }
    if path == "/user" {
        // A token of an app belongs to no user.
        return match state.user(token) {
            app if app.ends_with("[bot]") => {
                (403, json!({"message": "Resource not accessible by integration"}))
            }
            login => (200, json!({"login": login})),
        };
    }
    if path == "/graphql" {
        return (200, graphql(state, body));
    }
    let prefix = format!("/repos/{}/", state.repository);
    let Some(rest) = path.strip_prefix(&prefix) else { return not_found() };
    let parts: Vec<String> = rest.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    match (method, &parts[..]) {
        ("GET", ["issues"]) => (200, issues(state, query)),
        ("GET", ["issues", issue]) => found(state.issues.get(&number(issue)).cloned()),
        ("POST", ["issues"]) => {
            let number = state.next_number();
            let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
            let labels: Vec<String> = body["labels"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|label| label.as_str().map(str::to_owned))
                .collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            state.add_issue(number, &text("title"), &text("body"), &labels);
            (201, state.issues[&number].clone())
        }
        ("PATCH", ["issues", issue]) => {
            let Some(known) = state.issues.get_mut(&number(issue)) else { return not_found() };
            merge(known, body, &["state", "state_reason", "title", "body"]);
            (200, known.clone())
        }
        ("GET", ["issues", issue, "events"]) => {
            let Some(known) = state.issues.get(&number(issue)) else { return not_found() };
            let labels = known["labels"].as_array().cloned().unwrap_or_default();
            let labeled =
                |label| json!({"event": "labeled", "label": label, "created_at": "2026-01-02T00:00:00Z"});
            (200, paged(labels.into_iter().map(labeled).collect(), query))
        }
        ("GET", ["issues", issue, "comments"]) => {
            let lag = state.lag;
            let visible = |comment: &&Stored| comment.issue == number(issue) && comment.at.elapsed() >= lag;
            let all =
                state.comments.iter().filter(visible).map(|comment| state.comment_json(comment)).collect();
            (200, paged(all, query))
        }
        ("POST", ["issues", issue, "comments"]) => {
            if !state.issues.contains_key(&number(issue)) {
                return not_found();
            }
            let (id, user) = (state.next_id(), state.user(token));
            let body = body["body"].as_str().unwrap_or_default().to_owned();
            let comment = Stored::new(id, number(issue), user, body);
            let created = state.comment_json(&comment);
            state.comments.push(comment);
            (201, created)
        }
        ("PATCH", ["issues", "comments", id]) => {
            let text = body["body"].as_str().unwrap_or_default().to_owned();
            let Some(at) = state.comments.iter().position(|comment| comment.id == number(id)) else {
                return not_found();
            };
            state.comments[at].body = text;
            (200, state.comment_json(&state.comments[at]))
        }
        ("POST", ["issues", issue, "labels"]) => {
            let wanted: Vec<Value> = body["labels"].as_array().cloned().unwrap_or_default();
            let Some(known) = state.issues.get_mut(&number(issue)) else { return not_found() };
            let labels = known["labels"].as_array_mut().expect("an issue has labels");
            for name in wanted {
                if !labels.iter().any(|label| label["name"] == name) {
                    labels.push(json!({"name": name}));
                }
            }
            (200, known["labels"].clone())
        }
        ("DELETE", ["issues", issue, "labels", label]) => {
            let Some(known) = state.issues.get_mut(&number(issue)) else { return not_found() };
            let labels = known["labels"].as_array_mut().expect("an issue has labels");
            let before = labels.len();
            labels.retain(|known| known["name"] != *label);
            if labels.len() == before {
                return (404, json!({"message": "Label does not exist"}));
            }
            (200, known["labels"].clone())
        }
        ("GET", ["pulls"]) => {
            let fits = |pull: &&Value| {
                ["state", "head", "base"].iter().all(|key| match param(query, key) {
                    None => true,
                    Some(wanted) if *key == "state" => wanted == "all" || pull["state"] == *wanted,
                    Some(wanted) if *key == "head" => pull["head"]["label"] == *wanted,
                    Some(wanted) => pull["base"]["ref"] == *wanted,
                })
            };
            (200, paged(state.pulls.values().filter(fits).cloned().collect(), query))
        }
        ("POST", ["pulls"]) => create_pull(state, body),
        ("GET", ["pulls", pull]) => found(state.pulls.get(&number(pull)).cloned()),
        ("PATCH", ["pulls", pull]) => {
            let Some(known) = state.pulls.get_mut(&number(pull)) else { return not_found() };
            merge(known, body, &["title", "body", "state"]);
            (200, known.clone())
        }
        ("PUT", ["pulls", pull, "merge"]) => {
            let Some(known) = state.pulls.get_mut(&number(pull)) else { return not_found() };
            if known["state"] != "open" {
                return (405, json!({"message": "Pull Request is not mergeable"}));
            }
            (known["state"], known["merged_at"]) = (json!("closed"), json!("2026-01-01T00:00:00Z"));
            (200, json!({"merged": true}))
        }
        ("GET", ["pulls", pull, "reviews"]) => {
            (200, paged(state.reviews.get(&number(pull)).cloned().unwrap_or_default(), query))
        }
        ("GET", ["pulls", pull, "comments"]) => {
            (200, paged(state.line_comments.get(&number(pull)).cloned().unwrap_or_default(), query))
        }
        _ => not_found(),
    }
}

fn create_pull(state: &mut State, body: &Value) -> (u16, Value) {
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let owner = state.repository.split('/').next().unwrap_or_default().to_owned();
    let label = format!("{owner}:{}", text("head"));
    let same = |pull: &Value| {
        pull["state"] == "open" && pull["head"]["label"] == *label && pull["base"]["ref"] == *text("base")
    };
    if state.pulls.values().any(same) {
        let message = format!("A pull request already exists for {label}.");
        return (422, json!({"message": "Validation Failed", "errors": [{"message": message}]}));
    }
    let number = state.next_number();
    state.add_pull(number, (&text("head"), &text("base")), &text("title"), &text("body"));
    (201, state.pulls[&number].clone())
}

/// The project and the status of the issue that the one supported query asks for.
fn graphql(state: &State, body: &Value) -> Value {
    let number = body.pointer("/variables/number").and_then(Value::as_u64).unwrap_or_default();
    let issue = body.pointer("/variables/issue").and_then(Value::as_u64).unwrap_or_default();
    let Some(project) = state.projects.get(&number) else {
        let message = format!("Could not resolve to a ProjectV2 with the number {number}.");
        return json!({"data": {"repository": {"owner": {"projectV2": null}}}, "errors": [{"message": message}]});
    };
    let status = &project["statuses"][issue.to_string()];
    let nodes = match status.as_str() {
        Some(name) => json!([{"project": {"number": number}, "fieldValueByName": {"name": name}}]),
        None => json!([]),
    };
    json!({"data": {"repository": {
        "owner": {"projectV2": {
            "title": project["title"], "closed": project["closed"],
            "items": {"totalCount": project["statuses"].as_object().map_or(0, serde_json::Map::len)},
        }},
        "issue": {"projectItems": {"nodes": nodes}},
    }}})
}

fn issues(state: &State, query: &str) -> Value {
    let fits = |issue: &&Value| {
        let named =
            |name: &str| issue["labels"].as_array().is_some_and(|all| all.iter().any(|l| l["name"] == *name));
        param(query, "state").is_none_or(|wanted| wanted == "all" || issue["state"] == *wanted)
            && param(query, "labels").is_none_or(|labels| labels.split(',').all(named))
    };
    paged(state.issues.values().filter(fits).cloned().collect(), query)
}

/// A page of a list.
fn paged(all: Vec<Value>, query: &str) -> Value {
    let number =
        |key: &str, default: usize| param(query, key).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (size, page) = (number("per_page", 30).clamp(1, 100), number("page", 1).max(1));
    all.into_iter().skip((page - 1) * size).take(size).collect()
}

fn param(query: &str, key: &str) -> Option<String> {
    let pair = query.split('&').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key));
    pair.map(|(_, value)| decoded(value))
}

fn merge(known: &mut Value, body: &Value, keys: &[&str]) {
    for key in keys {
        if let Some(value) = body.get(*key) {
            known[*key] = value.clone();
        }
    }
}

fn found(value: Option<Value>) -> (u16, Value) {
    value.map_or_else(not_found, |value| (200, value))
}

fn not_found() -> (u16, Value) {
    (404, json!({"message": "Not Found"}))
}

/// Decodes percent escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escape = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
