//! What an agent program needs inside a sandbox.

use std::{ffi::OsString, path::PathBuf};

use cuegate_ask::{McpServer, McpTransport};
use serde::Deserialize;
use ureq::http::{Uri, uri::Authority};

use crate::{
    claude, codex,
    program::{locate::list_named_files, tool_servers::expand_server},
};

/// The files and services that a provider's program needs inside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxNeeds {
    /// The programs that it starts, if they are not the one that is launched.
    pub programs: Vec<PathBuf>,
    /// The services it connects to. It cannot work without them.
    pub services: Vec<NetworkService>,
    /// Files and folders of its own state, such as sessions and its login. It needs write access to them.
    pub state: Vec<PathBuf>,
    /// Files and folders inside `state` that belong to the user. They are read-only, because programs they name are
    /// started outside of the sandbox later.
    pub settings: Vec<PathBuf>,
    /// Files and folders of keys that it reads, such as cloud credentials.
    pub keys: Vec<PathBuf>,
    /// Environment variables that it reads: names, or beginnings of names with `*`.
    pub variables: Vec<String>,
}

impl SandboxNeeds {
    /// What it needs with servers whose tools it gets: their services, and their programs, which it starts.
    #[must_use]
    pub fn with_tool_servers(mut self, servers: &[McpServer]) -> SandboxNeeds {
        for server in servers.iter().map(expand_server) {
            match server.transport {
                McpTransport::Stdio { command, args, .. } => {
                    let words: Vec<String> = std::iter::once(command).chain(args).collect();
                    self.programs.extend(words.first().map(PathBuf::from));
                    self.programs.extend(list_named_files(&words));
                }
                McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } => {
                    self.services.extend(NetworkService::at(&url));
                }
            }
        }
        self
    }
}

/// A network service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct NetworkService {
    /// Its host name or IP address; an IPv6 address has no brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The variables of this process that tell who called it: an agent whose shell started it has set its session's id, and
/// tokens that lead back to it. No agent of a run is given them, in a sandbox or not.
pub fn calling_session(names: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let passes = |name: &str| {
        let known = claude::VARIABLES.iter().chain(&codex::VARIABLES);
        known.clone().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *pattern,
        })
    };
    let of_agents = |name: &OsString| {
        let name = name.to_str().unwrap_or_default();
        ["CLAUDE", "CODEX"].iter().any(|agent| name.starts_with(agent)) && !passes(name)
    };
    names.into_iter().filter(of_agents).collect()
}

impl NetworkService {
    /// A service on port 443.
    pub(crate) fn named(host: impl Into<String>) -> NetworkService {
        NetworkService { host: host.into(), port: 443 }
    }

    /// The service of a URL; `None` if the URL is invalid or has another scheme.
    pub(crate) fn at(url: &str) -> Option<NetworkService> {
        let uri: Uri = url.trim().parse().ok()?;
        let usual = match uri.scheme_str()? {
            "https" | "wss" => 443,
            "http" | "ws" => 80,
            _ => return None,
        };
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        Some(NetworkService { host: host.to_ascii_lowercase(), port: uri.port_u16().unwrap_or(usual) })
    }
}

impl TryFrom<String> for NetworkService {
    type Error = String;

    /// Reads a host name or IP address, with `:PORT` if it is not 443.
    fn try_from(text: String) -> Result<NetworkService, String> {
        let invalid = || {
            format!(
                "`{text}` is not a host: write a name such as `api.example.com`, with `:PORT` if it is not 443"
            )
        };
        let authority: Authority = text.parse().map_err(|_| invalid())?;
        let (host, port) = (authority.host(), authority.port_u16());
        // What stands behind the host is a valid port, or nothing.
        let is_whole = authority.as_str().len()
            == host.len() + authority.port().map_or(0, |port| port.as_str().len() + 1);
        if host.is_empty() || host.contains('*') || !is_whole || port == Some(0) {
            return Err(invalid());
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Ok(NetworkService { host, port: port.unwrap_or(443) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_host_with_an_optional_port() {
        let read = |text: &str| NetworkService::try_from(text.to_owned());
        let service = |host: &str, port| NetworkService { host: host.to_owned(), port };
        assert_eq!(read("API.example.com"), Ok(service("api.example.com", 443)));
        assert_eq!(read("localhost:8080"), Ok(service("localhost", 8080)));
        assert_eq!(read("[::1]:8080"), Ok(service("::1", 8080)));
        let invalid = [
            "",
            "a:b",
            "a:",
            "a:70000",
            "a:0",
            "https://a",
            "a/b",
            "me@a",
            "*.example.com",
            "a b",
            ":443",
            "::1",
        ];
        for text in invalid {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_names_the_calling_session_is_found() {
        let names = [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_CHILD_NOTES_DIR",
            "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_ENV_FILE",
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_THREAD_ID",
        ];
        let kept = [
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CODEX_HOME",
            "ANTHROPIC_API_KEY",
            "PATH",
        ];
        let all = names.iter().chain(&kept).map(OsString::from);
        assert_eq!(calling_session(all), names.map(OsString::from));
    }

    #[test]
    fn an_address_names_a_service() {
        let at = |url| NetworkService::at(url).map(|service| (service.host, service.port));
        assert_eq!(at("https://API.example.com/v1"), Some(("api.example.com".to_owned(), 443)));
        assert_eq!(at("http://127.0.0.1:8080"), Some(("127.0.0.1".to_owned(), 8080)));
        assert_eq!(at(" http://[::1]/v1 "), Some(("::1".to_owned(), 80)));
        assert_eq!(at("ftp://example.com"), None);
        assert_eq!(at("example.com"), None);
        assert_eq!(at(""), None);
    }
}
