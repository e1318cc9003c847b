//! What an agent needs that a sandbox would keep from it.

use std::path::PathBuf;

use ureq::http::Uri;

/// What a provider's program needs of this machine and of the network, where it is started behind a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The services that it asks: without these it is no agent.
    pub services: Vec<Service>,
    /// Files and folders in which it keeps its own state, such as conversations and its login. It writes there.
    pub state: Vec<PathBuf>,
    /// Files and folders in there that are the user's: what it reads and must not write, because programs that these
    /// name are started outside of the sandbox one day.
    pub settings: Vec<PathBuf>,
    /// Files and folders of keys that it reads, such as those of a cloud.
    pub keys: Vec<PathBuf>,
}

/// A service, by its host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name or address; that of an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Service {
    /// One that is reached over TLS at the usual port.
    pub(crate) fn named(host: impl Into<String>) -> Service {
        Service { host: host.into(), port: 443 }
    }

    /// The one that an address names; `None` when it names none.
    pub(crate) fn at(url: &str) -> Option<Service> {
        let uri: Uri = url.trim().parse().ok()?;
        let usual = match uri.scheme_str()? {
            "https" | "wss" => 443,
            "http" | "ws" => 80,
            _ => return None,
        };
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        Some(Service { host: host.to_ascii_lowercase(), port: uri.port_u16().unwrap_or(usual) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_service() {
        let at = |url| Service::at(url).map(|service| (service.host, service.port));
        assert_eq!(at("https://API.example.com/v1"), Some(("api.example.com".to_owned(), 443)));
        assert_eq!(at("http://127.0.0.1:8080"), Some(("127.0.0.1".to_owned(), 8080)));
        assert_eq!(at(" http://[::1]/v1 "), Some(("::1".to_owned(), 80)));
        assert_eq!(at("ftp://example.com"), None);
        assert_eq!(at("example.com"), None);
        assert_eq!(at(""), None);
    }
}
