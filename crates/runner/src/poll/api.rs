//! Polls HTTP services.

use std::{path::Path, time::Duration};

use cuegate_engine::has_required_fields;
use cuegate_flow::model::PollState;
use serde_json::Value;
use ureq::http::Uri;

use super::{PollResult, Poller, abbreviate_text};
use crate::http;

/// The longest accepted answer, in bytes.
const BODY_MAX: u64 = 1 << 20;
/// The time limit of one poll.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Polls services by `GET`.
pub(super) struct ApiPoller;

impl Poller for ApiPoller {
    fn look(&self, which: &str, wanted: &PollState, _: &Path) -> PollResult {
        let which = which.trim();
        let shown = format!("`{}`", without_secrets(which));
        let uri = match which.parse::<Uri>() {
            Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() => uri,
            _ => return PollResult::failed(format!("{shown} is not the address of an HTTP service")),
        };
        let (status, body) = match fetch_response(&uri) {
            Ok(answer) => answer,
            Err(why) => return PollResult::failed(format!("request to {shown} failed: {why}")),
        };
        if !(200..300).contains(&status) {
            return PollResult::failed(format!("{shown} answered {status}"));
        }
        let (holds, description) = compare_answer(&body, wanted);
        PollResult::is(holds, format!("{shown} {description}"))
    }
}

fn fetch_response(uri: &Uri) -> Result<(u16, String), ureq::Error> {
    let mut answer =
        http::build_http_agent(uri, TIMEOUT).get(uri).header("Accept", "application/json").call()?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(BODY_MAX).read_to_vec()?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Compares an answer with the wanted state and describes it.
fn compare_answer(body: &str, wanted: &PollState) -> (bool, String) {
    let json: Option<Value> = serde_json::from_str(body).ok();
    match wanted {
        PollState::Exists => (true, "answered".to_owned()),
        PollState::Absent => (false, "answered".to_owned()),
        PollState::Contains(text) => {
            (body.contains(&**text), format!("answered `{}`", abbreviate_text(body)))
        }
        PollState::Equals(text) => {
            let word = |key: &str| json.as_ref()?.get(key)?.as_str().map(str::trim);
            let named = ["state", "status"].iter().any(|key| word(key) == Some(&**text));
            let whole = json.as_ref().and_then(Value::as_str).unwrap_or(body).trim() == &**text;
            let found = word("state").or(word("status")).unwrap_or(body);
            (named || whole, format!("answered `{}`", abbreviate_text(found)))
        }
        PollState::Fields(wanted) => match &json {
            Some(found) => {
                let names: Vec<String> = wanted
                    .iter()
                    .map(|field| {
                        let value = found.get(&*field.name).map_or("absent".to_owned(), Value::to_string);
                        format!("`{}` = {}", field.name, abbreviate_text(&value))
                    })
                    .collect();
                (has_required_fields(found, wanted), format!("answered {}", names.join(", ")))
            }
            None => (false, "did not answer with JSON".to_owned()),
        },
    }
}

/// The address without user info, query and fragment: these may hold secrets and must not reach the journal.
fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or(host);
            let path = path.map(|path| format!("/{path}")).unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuegate_flow::model::Field;
    use serde_json::json;

    #[test]
    fn answers_are_compared_with_the_wanted_state() {
        let equals = |text: &str| PollState::Equals(text.into());
        let fields =
            |name: &str, value| PollState::Fields(vec![Field { name: name.into(), value: Some(value) }]);
        for (body, wanted, holds) in [
            ("", PollState::Exists, true),
            (r#"{"state": "closed"}"#, equals("closed"), true),
            (r#"{"status": " closed "}"#, equals("closed"), true),
            (r#"{"state": "open", "other": "closed"}"#, equals("closed"), false),
            ("closed\n", equals("closed"), true),
            ("\"closed\"", equals("closed"), true),
            ("not closed", equals("closed"), false),
            (r#"{"n": 1.0, "x": 2}"#, fields("n", json!(1)), true),
            (r#"{"n": 2}"#, fields("n", json!(1)), false),
            ("n: 1", fields("n", json!(1)), false),
        ] {
            assert_eq!(compare_answer(body, &wanted).0, holds, "{body} {wanted:?}");
        }
    }

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        for (address, shown) in [
            ("https://user:key@example.com/a?token=x#y", "https://example.com/a"),
            ("http://127.0.0.1:80", "http://127.0.0.1:80"),
            ("nowhere", "nowhere"),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
        let seen = ApiPoller.look("ftp://example.com/x", &PollState::Exists, Path::new("/"));
        assert_eq!(
            seen,
            PollResult::failed("`ftp://example.com/x` is not the address of an HTTP service".to_owned())
        );
    }
}
