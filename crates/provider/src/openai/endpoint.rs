//! The URL of the service, and validation of the settings.

use std::{env, net::IpAddr};

use ureq::http::{HeaderName, HeaderValue, Uri};

use super::{body::OWN_FIELDS, settings::OpenAiSettings};
use crate::{FaultClass, Problem};

/// The path added to the API's URL.
const PATH: &str = "/chat/completions";
/// Headers that the provider sets itself.
const OWN_HEADERS: [&str; 6] =
    ["accept", "authorization", "content-length", "content-type", "host", "transfer-encoding"];

/// The URL of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The URL of the API, without a trailing slash.
    base: String,
    encrypted: bool,
    host: String,
}

impl Endpoint {
    /// Parses the URL in the settings.
    pub fn new(settings: &OpenAiSettings) -> Result<Endpoint, Problem> {
        let wrong = |why: &str| {
            let hint = "use a URL such as `https://api.example.com/v1` or `http://localhost:8080/v1`";
            make_settings_problem(format!("`base_url` is not the URL of an API: {why}"), hint)
        };
        let base = settings.base_url.trim().trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|error| wrong(&format!("{error}")))?;
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it does not start with `https://` or `http://`")),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        // `Uri` drops fragments silently, so the text is searched for them.
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("it contains a user; set `key_env` to the variable with the key"));
        }
        if base.contains(['?', '#']) {
            return Err(wrong("it contains `?` or `#`"));
        }
        if base.ends_with(PATH) {
            return Err(wrong(&format!("omit `{PATH}`, which is added to it")));
        }
        Ok(Endpoint { base: base.to_owned(), encrypted, host: host.to_ascii_lowercase() })
    }

    /// The URL of the API.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The URL of requests.
    pub fn url(&self) -> String {
        format!("{}{PATH}", self.base)
    }

    /// Whether the host is this machine.
    pub fn is_local(&self) -> bool {
        is_local(&self.host)
    }

    /// Whether the host is this machine or in its private network, judged by its address or name.
    pub(super) fn is_near(&self) -> bool {
        let private = match parse_ip_address(&self.host) {
            Some(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
            Some(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
            // A name without a dot belongs to the local network.
            None => !self.host.contains('.'),
        };
        private || self.is_local()
    }
}

/// Whether a host is this machine, which is reached without a proxy.
pub(super) fn is_local(host: &str) -> bool {
    match parse_ip_address(host) {
        Some(address) => address.is_loopback() || address.is_unspecified(),
        None => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn parse_ip_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// All problems of the settings.
pub(super) fn check_settings(settings: &OpenAiSettings) -> Vec<Problem> {
    let mut problems = Vec::new();
    match Endpoint::new(settings) {
        Err(problem) => problems.push(problem),
        Ok(endpoint) => {
            let open = !endpoint.encrypted && !endpoint.is_near();
            if open && settings.key_env.is_some() && !settings.key_over_http {
                problems.push(make_settings_problem(
                    format!("the key would be sent unencrypted to `{}`", endpoint.host),
                    "start `base_url` with `https://`, or set `key_over_http = true` if you trust the network",
                ));
            }
        }
    }
    if let Some(name) = &settings.key_env
        && read_key_variable(name).is_none()
    {
        problems.push(Problem {
            what: format!("the environment variable `{name}` is not set"),
            hint: format!("set `{name}` to the key of the service, or change `key_env`"),
            class: FaultClass::Auth,
        });
    }
    let key_header = settings.key_header.iter().map(|name| (name, "key"));
    let headers = settings.headers.iter().map(|(name, value)| (name, value.as_str()));
    for (name, value) in headers.clone().chain(key_header) {
        if HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
            problems.push(make_settings_problem(
                format!("`{name}` is not a valid header"),
                "correct its name or value",
            ));
        }
    }
    for (name, _) in headers {
        let own = OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        let is_key = settings.key_header.as_ref().is_some_and(|key| key.eq_ignore_ascii_case(name));
        if own || is_key {
            problems.push(make_settings_problem(
                format!("the header `{name}` is reserved"),
                "remove it from `headers`; use `key_env` and `key_header` for a key",
            ));
        }
    }
    for name in settings.extra.keys().filter(|name| OWN_FIELDS.contains(&name.as_str())) {
        problems.push(make_settings_problem(
            format!("the field `{name}` of the request is reserved"),
            "remove it from `extra`",
        ));
    }
    if settings.max_output_tokens == Some(0) {
        problems.push(make_settings_problem(
            "`max_output_tokens` is 0".to_owned(),
            "omit it, or set it to 1 or more",
        ));
    }
    problems
}

fn make_settings_problem(what: String, hint: &str) -> Problem {
    Problem { what, hint: hint.to_owned(), class: FaultClass::MissingProgram }
}

/// The key in an environment variable, without surrounding white space, which comes from files.
pub(super) fn read_key_variable(name: &str) -> Option<String> {
    let key = env::var(name).ok()?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base_url: &str) -> OpenAiSettings {
        OpenAiSettings::new(base_url)
    }

    #[test]
    fn a_url_is_parsed() {
        let endpoint = Endpoint::new(&at(" https://API.example.com/v1/ ")).unwrap();
        assert_eq!(endpoint.url(), "https://API.example.com/v1/chat/completions");
        assert!(!endpoint.is_local() && !endpoint.is_near());
        assert_eq!(
            Endpoint::new(&at("http://localhost:8080")).unwrap().url(),
            "http://localhost:8080/chat/completions"
        );
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for (base_url, why) in [
            ("", "empty"),
            ("localhost:8080/v1", "invalid"),
            ("localhost", "does not start"),
            ("ftp://example.com", "does not start"),
            ("http:///v1", "invalid"),
            ("https://user:secret@example.com/v1", "contains a user"),
            ("https://example.com/v1?api-version=1", "`?`"),
            ("https://example.com/v1#x", "`#`"),
            ("https://example.com/v1/chat/completions/", "is added"),
        ] {
            let problem = Endpoint::new(&at(base_url)).unwrap_err();
            assert!(problem.what.contains(why), "{base_url}: {}", problem.what);
            assert!(!problem.what.contains("secret"));
        }
    }

    #[test]
    fn local_and_private_hosts_are_recognised() {
        for (base_url, local, near) in [
            ("http://localhost:1/v1", true, true),
            ("http://llm.localhost/v1", true, true),
            ("http://127.3.2.1/v1", true, true),
            ("http://[::1]:8080/v1", true, true),
            ("http://0.0.0.0:8080/v1", true, true),
            ("http://192.168.1.7:8000/v1", false, true),
            ("http://[fd00::1]/v1", false, true),
            ("http://vllm:8000/v1", false, true),
            ("http://8.8.8.8/v1", false, false),
            ("http://localhost.example.com/v1", false, false),
        ] {
            let endpoint = Endpoint::new(&at(base_url)).unwrap();
            assert_eq!((endpoint.is_local(), endpoint.is_near()), (local, near), "{base_url}");
        }
    }

    fn whats(settings: &OpenAiSettings) -> Vec<String> {
        check_settings(settings).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_key_is_not_sent_unencrypted_to_public_hosts() {
        let settings = |base_url: &str| OpenAiSettings { key_env: Some("PATH".to_owned()), ..at(base_url) };
        let far = settings("http://api.example.com/v1");
        assert_eq!(whats(&far), ["the key would be sent unencrypted to `api.example.com`"]);
        assert_eq!(whats(&OpenAiSettings { key_over_http: true, ..far.clone() }), [""; 0]);
        assert_eq!(whats(&OpenAiSettings { key_env: None, ..far }), [""; 0]);
        assert_eq!(whats(&settings("https://api.example.com/v1")), [""; 0]);
        assert_eq!(whats(&settings("http://192.168.1.7/v1")), [""; 0]);
    }

    #[test]
    fn all_problems_are_reported() {
        let mut settings = at("nowhere");
        settings.key_env = Some("CUEGATE_TEST_KEY_THAT_IS_NOT_SET".to_owned());
        settings.key_header = Some("api-key".to_owned());
        settings.max_output_tokens = Some(0);
        for (name, value) in
            [("Api-Key", "x"), ("Authorization", "x"), ("x y", "z"), ("x-a", "b\nc"), ("x-b", "fine")]
        {
            settings.headers.insert(name.to_owned(), value.to_owned());
        }
        settings.extra.insert("stream".to_owned(), false.into());
        settings.extra.insert("seed".to_owned(), 1.into());
        insta::assert_snapshot!(whats(&settings).join("\n"), @"
        `base_url` is not the URL of an API: it does not start with `https://` or `http://`
        the environment variable `CUEGATE_TEST_KEY_THAT_IS_NOT_SET` is not set
        `x y` is not a valid header
        `x-a` is not a valid header
        the header `Api-Key` is reserved
        the header `Authorization` is reserved
        the field `stream` of the request is reserved
        `max_output_tokens` is 0
        ");
        assert_eq!(check_settings(&settings)[1].class, FaultClass::Auth);
    }
}
