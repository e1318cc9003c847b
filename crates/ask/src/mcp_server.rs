//! Servers of the Model Context Protocol.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A server of the Model Context Protocol: an agent gets its tools beside its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name of letters, digits, `-` and `_`. The agent's names of its tools begin with it.
    pub name: String,
    /// How the agent reaches it.
    pub transport: McpTransport,
}

impl McpServer {
    /// Checks a name. It becomes a part of names and settings of agents.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn check_name(name: &str) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        // A tool of Copilot is allowed by a name that may be that of a server.
        let is_taken = matches!(name, "cuegate" | "shell" | "write" | "read" | "url" | "memory");
        match !name.is_empty() && name.chars().all(is_plain) {
            true if is_taken => Err(format!("`{name}` means something else to agents: take another name")),
            true => Ok(()),
            false => Err(format!("`{name}` is no name of a server: write letters, digits, `-` and `_`")),
        }
    }
}

/// How an agent reaches a server. In its texts, `${NAME}` is a variable of the environment, so that no definition and no
/// record holds a key.
///
/// It is read from a table with `command`, `args` and `env`, or with `url` and `headers`; `type` is `stdio`, `http` or
/// `sse`, as in the settings of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TransportTable", into = "TransportTable")]
pub enum McpTransport {
    /// A program that the agent starts and talks to by its standard input and output.
    Stdio {
        /// The program: a name in PATH, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables that it gets.
        env: BTreeMap<String, String>,
    },
    /// A service that takes requests.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
    /// A service that keeps a stream open: the form before `Http`.
    Sse {
        /// Its address.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
}

/// The keys of a server as they are written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with `command` or `url`")]
struct TransportTable {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
}

impl TryFrom<TransportTable> for McpTransport {
    type Error = String;

    fn try_from(table: TransportTable) -> Result<McpTransport, String> {
        let TransportTable { kind, command, args, env, url, headers } = table;
        if kind.is_none() && command.is_none() && url.is_none() {
            return Err("a server has `command`, or `url`".to_owned());
        }
        let usual = if command.is_some() { "stdio" } else { "http" };
        let kind = kind.as_deref().unwrap_or(usual);
        match (kind, command, url) {
            ("stdio", Some(command), None) if headers.is_empty() => {
                let is_name = |name: &str| {
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    name.chars().all(is_plain)
                        && !name.starts_with(|c: char| c.is_ascii_digit())
                        && !name.is_empty()
                };
                match env.keys().find(|name| !is_name(name)) {
                    Some(name) => Err(format!("`{name}` is no name of an environment variable")),
                    None => Ok(McpTransport::Stdio { command, args, env }),
                }
            }
            ("http" | "sse", None, Some(url)) if args.is_empty() && env.is_empty() => match kind {
                "http" => Ok(McpTransport::Http { url, headers }),
                _ => Ok(McpTransport::Sse { url, headers }),
            },
            ("stdio" | "http" | "sse", ..) => Err(format!(
                "a server of type `{kind}` has {}",
                if kind == "stdio" { "`command`, `args` and `env`" } else { "`url` and `headers`" }
            )),
            _ => Err(format!("unknown type of server `{kind}`: `stdio`, `http` and `sse` are known")),
        }
    }
}

impl From<McpTransport> for TransportTable {
    fn from(transport: McpTransport) -> TransportTable {
        let kind = Some(transport.as_str().to_owned());
        match transport {
            McpTransport::Stdio { command, args, env } => {
                TransportTable { kind, command: Some(command), args, env, ..TransportTable::default() }
            }
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                TransportTable { kind, url: Some(url), headers, ..TransportTable::default() }
            }
        }
    }
}

impl McpTransport {
    /// The word for it in settings.
    pub fn as_str(&self) -> &'static str {
        match self {
            McpTransport::Stdio { .. } => "stdio",
            McpTransport::Http { .. } => "http",
            McpTransport::Sse { .. } => "sse",
        }
    }

    /// Calls `each` with all of its texts that may name variables.
    fn map_texts(&self, mut each: impl FnMut(&str) -> String) -> McpTransport {
        let mut map = |texts: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            texts.iter().map(|(name, text)| (name.clone(), each(text))).collect()
        };
        match self {
            McpTransport::Stdio { command, args, env } => {
                let env = map(env);
                let args = args.iter().map(|text| each(text)).collect();
                McpTransport::Stdio { command: each(command), args, env }
            }
            McpTransport::Http { url, headers } => {
                let headers = map(headers);
                McpTransport::Http { url: each(url), headers }
            }
            McpTransport::Sse { url, headers } => {
                let headers = map(headers);
                McpTransport::Sse { url: each(url), headers }
            }
        }
    }

    /// The variables of the environment that it names, in order, each once.
    pub fn list_variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.map_texts(|text| {
            expand_variables(text, &mut |name| {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
                None
            })
        });
        names
    }

    /// Checks the texts after variables were replaced.
    ///
    /// # Errors
    /// With what is wrong, which quotes no text with a key.
    pub fn check(&self) -> Result<(), String> {
        let is_odd = |text: &str| text.chars().any(char::is_control);
        match self {
            McpTransport::Stdio { command, .. } if command.trim().is_empty() => {
                Err("its `command` is empty".to_owned())
            }
            McpTransport::Stdio { command, args, env } => {
                let mut texts = args.iter().chain(env.values()).chain([command]);
                match texts.any(|text| text.contains('\0')) {
                    true => Err("a text has a NUL in it".to_owned()),
                    false => Ok(()),
                }
            }
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
                let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
                if host.is_none_or(|host| host.is_empty() || host.contains(char::is_whitespace))
                    || is_odd(url)
                {
                    return Err("its `url` is no address: it begins with `https://` or `http://`".to_owned());
                }
                let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
                match headers
                    .iter()
                    .find(|(name, text)| name.is_empty() || !name.chars().all(is_token) || is_odd(text))
                {
                    Some((name, _)) => Err(format!("`{name}` is no header")),
                    None => Ok(()),
                }
            }
        }
    }

    /// The texts that hold keys, by name: `env` or `headers`.
    pub fn secrets(&self) -> &BTreeMap<String, String> {
        match self {
            McpTransport::Stdio { env, .. } => env,
            McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => headers,
        }
    }

    /// The same with the values of the variables.
    #[must_use]
    pub fn expand(&self, value_of: &dyn Fn(&str) -> Option<String>) -> McpTransport {
        self.map_texts(|text| expand_variables(text, &mut |name| value_of(name)))
    }
}

/// The variables that a text names, in order.
pub fn list_variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    expand_variables(text, &mut |name| {
        names.push(name.to_owned());
        None
    });
    names
}

/// Replaces each `${NAME}`; one without a value stays.
fn expand_variables(text: &str, value_of: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let after = &rest[start + 2..];
        let length = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let is_name = length > 0 && after[length..].starts_with('}');
        let value = is_name.then(|| value_of(&after[..length])).flatten();
        let end = start + 2 + if is_name { length + 1 } else { 0 };
        expanded.push_str(&rest[..start]);
        expanded.push_str(value.as_deref().unwrap_or(&rest[start..end]));
        rest = &rest[end..];
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<McpTransport, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_listed_once_and_replaced() {
        let server =
            read(r#"{"command": "x", "args": ["${A}${B}", "$C", "${", "${a b}", "${ ${A}"], "env": {"T": "${A}"}}"#)
                .unwrap();
        assert_eq!(server.list_variables(), ["A", "B"]);
        let expanded = server.expand(&|name| (name == "A").then(|| "1".to_owned()));
        let McpTransport::Stdio { args, env, .. } = expanded else { panic!("it is a program") };
        assert_eq!(args, ["1${B}", "$C", "${", "${a b}", "${ 1"]);
        assert_eq!(env["T"], "1");
        assert_eq!(read(&serde_json::to_string(&server).unwrap()), Ok(server));
    }

    #[test]
    fn values_are_checked_when_variables_are_replaced() {
        for (good, wrong) in [
            (r#"{"url": "https://h/mcp"}"#, r#"{"url": "h/mcp"}"#),
            (r#"{"url": "http://h"}"#, r#"{"url": "https://"}"#),
            (
                r#"{"url": "http://h", "headers": {"A": "b"}}"#,
                r#"{"url": "http://h", "headers": {"A": "b\r\nC: d"}}"#,
            ),
            (r#"{"command": "x"}"#, r#"{"command": " "}"#),
            (r#"{"command": "x", "args": [""]}"#, r#"{"command": "x", "args": ["\u0000"]}"#),
        ] {
            assert_eq!(read(good).unwrap().check(), Ok(()), "{good}");
            assert!(read(wrong).unwrap().check().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_type_follows_from_the_keys() {
        assert_eq!(read(r#"{"url": "https://h/mcp"}"#).unwrap().as_str(), "http");
        assert_eq!(read(r#"{"url": "https://h/mcp", "type": "sse"}"#).unwrap().as_str(), "sse");
        for (wrong, why) in [
            (r#"{}"#, "a server has `command`, or `url`"),
            (r#"{"command": "x", "env": {"A=B": "1"}}"#, "`A=B` is no name of an environment variable"),
            (
                r#"{"command": "x", "url": "https://h"}"#,
                "a server of type `stdio` has `command`, `args` and `env`",
            ),
            (r#"{"command": "x", "type": "ws"}"#, "unknown type of server `ws`"),
            (r#"{"command": "x", "cmd": 1}"#, "unknown field `cmd`"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
