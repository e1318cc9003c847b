//! Who may use the server: sessions, one-time links, and the checks of `Host` and `Origin`.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, Method, header};
use cuegate_journal::random_token;

/// The most sessions, and the most links that are not used yet; the oldest is forgotten.
const SESSIONS_MAX: usize = 64;
const LINKS_MAX: usize = 16;

/// The sessions of a server.
#[derive(Debug)]
pub struct Access {
    /// The `host:port` that a request may name; `None`: a socket file, whose permissions protect it.
    port: Option<u16>,
    /// For programs of the same user: the token in the file of the server.
    bearer: String,
    state: Mutex<AccessState>,
}

#[derive(Debug, Default)]
struct AccessState {
    links: Vec<String>,
    sessions: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It names another host: a page of another site may have resolved its name to this machine.
    Host,
    /// A page of another origin made it.
    Origin,
    /// It has no session.
    Session,
}

impl Access {
    /// No sessions yet.
    pub fn new(port: Option<u16>) -> Access {
        Access { port, bearer: random_token(), state: Mutex::default() }
    }

    /// The token for programs.
    pub fn bearer(&self) -> &str {
        &self.bearer
    }

    /// A new one-time token.
    pub fn new_link(&self) -> String {
        let token = random_token();
        push_within_limit(&mut self.lock().links, token.clone(), LINKS_MAX);
        token
    }

    /// Exchanges the token of a link, `Authorization: Link TOKEN`, for that of a session.
    pub(crate) fn redeem(&self, headers: &HeaderMap) -> Option<String> {
        let token = read_authorization(headers, "Link ")?;
        let mut state = self.lock();
        let used = state.links.iter().position(|link| matches_in_constant_time(link, token))?;
        state.links.remove(used);
        let session = random_token();
        push_within_limit(&mut state.sessions, session.clone(), SESSIONS_MAX);
        Some(session)
    }

    /// Whether a request comes from us: by its `Host`, its `Origin` and what the browser says about its site.
    pub(crate) fn comes_from_us(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
        let [host] = hosts.as_slice() else { return Err(Refusal::Host) };
        let host = host.to_str().unwrap_or_default();
        if !self.is_host(host) {
            return Err(Refusal::Host);
        }
        let origin_is_ours = match headers.get(header::ORIGIN) {
            None => true,
            Some(origin) => origin
                .to_str()
                .is_ok_and(|origin| origin.strip_prefix("http://").is_some_and(|at| at == host)),
        };
        // A browser sends it with every request. A link in a mail or on another page leads to a page of ours, which
        // shows nothing without a session.
        let site_is_ours = match text("sec-fetch-site") {
            None | Some("same-origin" | "none") => true,
            Some(_) => {
                *method == Method::GET
                    && text("sec-fetch-mode") == Some("navigate")
                    && text("sec-fetch-dest") == Some("document")
            }
        };
        if origin_is_ours && site_is_ours { Ok(()) } else { Err(Refusal::Origin) }
    }

    fn is_host(&self, host: &str) -> bool {
        match self.port {
            // A port that is forwarded to the socket file has any number.
            None => {
                let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                matches!(name.map_or(host, |(name, _)| name), "localhost" | "127.0.0.1" | "[::1]")
            }
            Some(port) => {
                ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host == format!("{name}:{port}"))
            }
        }
    }

    /// Whether a request belongs to a session. No cookie: browsers send those to every port of this machine.
    pub(crate) fn has_session(&self, headers: &HeaderMap) -> bool {
        let Some(token) = read_authorization(headers, "Bearer ") else { return false };
        matches_in_constant_time(token, &self.bearer)
            || self.lock().sessions.iter().any(|session| matches_in_constant_time(session, token))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, AccessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token of a request, if it has exactly one of this kind.
fn read_authorization<'h>(headers: &'h HeaderMap, kind: &str) -> Option<&'h str> {
    let values: Vec<_> = headers.get_all(header::AUTHORIZATION).iter().collect();
    let [value] = values[..] else { return None };
    value.to_str().ok()?.strip_prefix(kind)
}

/// Appends, and forgets the oldest if there are too many.
fn push_within_limit(all: &mut Vec<String>, one: String, most: usize) {
    if all.len() >= most {
        all.remove(0);
    }
    all.push(one);
}

/// Compares without ending at the first difference, whose position would be seen in the time it takes.
fn matches_in_constant_time(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            let (name, value): (header::HeaderName, header::HeaderValue) =
                (name.parse().unwrap(), value.parse().unwrap());
            map.append(name, value);
        }
        map
    }

    #[test]
    fn only_requests_to_our_own_names_and_from_our_own_pages_pass() {
        let access = Access::new(Some(8000));
        let check = |pairs: &[(&'static str, &str)]| access.comes_from_us(&Method::GET, &headers(pairs));
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"] {
            assert_eq!(check(&[("host", host)]), Ok(()), "{host}");
            assert_eq!(check(&[("host", host), ("origin", &format!("http://{host}"))]), Ok(()));
        }
        for host in
            ["127.0.0.1", "127.0.0.1:80", "evil.test:8000", "localhost:8000.evil.test", "LOCALHOST", ""]
        {
            assert_eq!(check(&[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(check(&[]), Err(Refusal::Host));
        assert_eq!(check(&[("host", "localhost:8000"), ("host", "evil.test")]), Err(Refusal::Host));
        for origin in ["null", "http://evil.test", "http://localhost:8001", "https://localhost:8000"] {
            assert_eq!(
                check(&[("host", "localhost:8000"), ("origin", origin)]),
                Err(Refusal::Origin),
                "{origin}"
            );
        }
        for site in ["cross-site", "same-site"] {
            let site = ("sec-fetch-site", site);
            assert_eq!(check(&[("host", "localhost:8000"), site]), Err(Refusal::Origin));
            let click = ("sec-fetch-mode", "navigate");
            let (page, frame) = (("sec-fetch-dest", "document"), ("sec-fetch-dest", "iframe"));
            assert_eq!(check(&[("host", "localhost:8000"), site, click, page]), Ok(()));
            assert_eq!(check(&[("host", "localhost:8000"), site, click, frame]), Err(Refusal::Origin));
            let all = headers(&[("host", "localhost:8000"), site, click, page]);
            assert_eq!(access.comes_from_us(&Method::POST, &all), Err(Refusal::Origin));
        }
    }

    #[test]
    fn a_link_makes_one_session() {
        let access = Access::new(Some(8000));
        let link_of = |token: &str| headers(&[("authorization", &format!("Link {token}"))]);
        let other = access.new_link();
        let link = access.new_link();
        let session = access.redeem(&link_of(&link)).unwrap();
        assert_eq!(access.redeem(&link_of(&link)), None, "it was used");
        assert!(access.redeem(&link_of(&other)).is_some(), "another browser");
        assert_eq!(access.redeem(&link_of(access.bearer())), None);
        let has = |value: &str| access.has_session(&headers(&[("authorization", value)]));
        assert!(has(&format!("Bearer {session}")) && has(&format!("Bearer {}", access.bearer())));
        for wrong in ["Bearer x", "Bearer ", &session, &format!("Link {session}"), &format!("Bearer {link}")]
        {
            assert!(!has(wrong), "{wrong}");
        }
        for name in ["cuegate", "cuegate-8000"] {
            assert!(!access.has_session(&headers(&[("cookie", &format!("{name}={session}"))])));
        }
    }
}
