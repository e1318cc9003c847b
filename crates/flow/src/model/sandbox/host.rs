//! Hosts as a definition names them.

use std::{fmt, net::IpAddr};

use crate::Str;

/// The ports of a host that names none.
const PORTS: [u16; 2] = [443, 80];

/// An allowed host: `example.com`, `*.example.com` (every name below it, but not itself), or an address such as
/// `10.0.0.7` or `[::1]`; on ports 443 and 80, or on the one port of `example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// In lower case, without a trailing dot; addresses in canonical form.
    name: Str,
    /// Whether it means every name below it instead of itself.
    below: bool,
    port: Option<u16>,
}

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidHost(&'static str);

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Host {
    /// Parses a host as a definition writes it.
    ///
    /// # Errors
    /// Returns what is wrong with the text.
    pub fn parse(text: &str) -> Result<Host, InvalidHost> {
        if text.contains("://") || text.contains('/') {
            return Err(InvalidHost("it is an address of a page: a host has no `https://` and no path"));
        }
        if text.contains('@') {
            return Err(InvalidHost("it has a user in it"));
        }
        let (name, port) = split_port(text)?;
        let (name, below) = match name.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        if name.contains(['[', ']']) {
            return Err(InvalidHost("brackets stand around a whole address with colons"));
        }
        if name.contains('*') {
            return Err(InvalidHost(
                "a `*` stands for whole names at the beginning only, as in `*.example.com`",
            ));
        }
        let name = normalize_host_name(name);
        if parse_address(&name).is_some() {
            if below {
                return Err(InvalidHost("an address has no names below it"));
            }
        } else if !is_name(&name) {
            return Err(InvalidHost("it is not the name of a host"));
        } else if below && !name.contains('.') {
            return Err(InvalidHost("it stands for every name of a whole domain such as `com`"));
        }
        Ok(Host { name: name.into(), below, port })
    }

    /// A host from its name or address and its port.
    pub fn with_port(name: &str, port: u16) -> Host {
        Host { name: normalize_host_name(name).into(), below: false, port: Some(port) }
    }

    /// Whether this host covers a name or address on a port. Names are case-insensitive.
    pub fn covers(&self, name: &str, port: u16) -> bool {
        let on_port = match self.port {
            Some(own) => own == port,
            None => PORTS.contains(&port),
        };
        let name = normalize_host_name(name);
        let named = match self.below {
            false => *self.name == *name,
            true => name.strip_suffix(&*self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        on_port && named
    }

    /// Whether it is this machine, by a well-known name or address.
    pub fn is_local(&self) -> bool {
        !self.below
            && match parse_address(&self.name) {
                Some(address) => address.is_loopback(),
                None => &*self.name == "localhost",
            }
    }

    /// Whether it is an address rather than a name.
    pub fn is_address(&self) -> bool {
        parse_address(&self.name).is_some()
    }

    /// The port, when one is named.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The name or address without wildcard and port.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = if self.below { "*." } else { "" };
        match (self.name.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.name),
            (true, None) => write!(f, "[{}]", self.name),
            (false, Some(port)) => write!(f, "{begin}{}:{port}", self.name),
            (false, None) => write!(f, "{begin}{}", self.name),
        }
    }
}

/// Splits a name from its port. An IPv6 address is in brackets, or alone without a port.
fn split_port(text: &str) -> Result<(&str, Option<u16>), InvalidHost> {
    let number = |port: &str| match port.parse::<u16>() {
        Ok(port @ 1..) => Ok(Some(port)),
        _ => Err(InvalidHost("what stands behind its `:` is not a port")),
    };
    if let Some((name, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        if !matches!(parse_address(name), Some(IpAddr::V6(_))) {
            return Err(InvalidHost("brackets stand around an address with colons, and this is none"));
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((name, number(port)?)),
            None if rest.is_empty() => Ok((name, None)),
            None => Err(InvalidHost("something stands behind its `]`")),
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((text, None)),
        Some((name, port)) => Ok((name, number(port)?)),
        None => Ok((text, None)),
    }
}

/// The form in which names are compared: lower case, without the trailing dot and without brackets.
fn normalize_host_name(name: &str) -> String {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name);
    match parse_address(name) {
        Some(address) => address.to_string(),
        None => name.to_ascii_lowercase(),
    }
}

fn parse_address(name: &str) -> Option<IpAddr> {
    name.parse().ok()
}

/// Letters, digits, `-` and `_` between dots. Other scripts need their DNS form, `xn--…`. A name that ends in a number
/// is rejected, because some programs would read it as an address.
fn is_name(name: &str) -> bool {
    let fits = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    name.len() <= 253 && name.split('.').all(fits) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(host: &str, name: &str, port: u16) -> bool {
        Host::parse(host).unwrap().covers(name, port)
    }

    #[test]
    fn a_name_matches_itself_case_insensitively() {
        for name in ["github.com", "GitHub.COM", "github.com."] {
            assert!(covers("GITHUB.com", name, 443), "{name}");
        }
        for name in ["api.github.com", "evilgithub.com", "github.com.evil.com", "github.co", ""] {
            assert!(!covers("github.com", name, 443), "{name}");
        }
    }

    #[test]
    fn a_wildcard_matches_every_name_below_but_not_itself() {
        for name in ["api.github.com", "a.b.github.com", "API.GITHUB.COM."] {
            assert!(covers("*.github.com", name, 443), "{name}");
        }
        for name in
            ["github.com", "evilgithub.com", ".github.com", "api.github.com.evil.com", "github.com.evil"]
        {
            assert!(!covers("*.github.com", name, 443), "{name}");
        }
    }

    #[test]
    fn ports_default_to_443_and_80() {
        assert!(covers("example.com", "example.com", 443) && covers("example.com", "example.com", 80));
        assert!(!covers("example.com", "example.com", 22));
        assert!(covers("example.com:22", "example.com", 22) && !covers("example.com:22", "example.com", 443));
        assert!(covers("*.example.com:8443", "a.example.com", 8443));
    }

    #[test]
    fn addresses_are_compared_as_addresses() {
        assert!(covers("[0:0:0:0:0:0:0:1]:80", "::1", 80) && covers("::1", "[::1]", 443));
        assert!(!covers("::1", "[::1", 443) && !covers("::1", "::1]", 443));
        assert!(covers("10.0.0.7", "10.0.0.7", 443) && !covers("10.0.0.7", "10.0.0.70", 443));
        assert!(
            Host::parse("127.0.0.1:9").unwrap().is_local() && Host::parse("localhost").unwrap().is_local()
        );
        assert!(!Host::parse("localhost.example.com").unwrap().is_local());
        assert!(!Host::parse("*.localhost.com").unwrap().is_local());
    }

    #[test]
    fn invalid_hosts_report_the_reason() {
        for (text, why) in [
            ("https://github.com", "no `https://`"),
            ("github.com/path", "no `https://`"),
            ("me@github.com", "a user"),
            ("*", "a `*` stands"),
            ("*github.com", "a `*` stands"),
            ("api.*.com", "a `*` stands"),
            ("*.com", "a whole domain"),
            ("*.10.0.0.1", "no names below"),
            ("github.com:", "not a port"),
            ("github.com:0", "not a port"),
            ("github.com:99999", "not a port"),
            ("[::1]9", "behind its `]`"),
            ("[::1", "a whole address"),
            ("::1]", "a whole address"),
            ("::::", "not the name"),
            ("1:2:3", "not the name"),
            ("[example.com]", "with colons, and this is none"),
            ("[10.0.0.7]:80", "with colons, and this is none"),
            ("example.com]", "a whole address"),
            ("", "not the name"),
            ("git hub.com", "not the name"),
            ("a..b", "not the name"),
            ("2130706433", "not the name"),
            ("0x7f.0x1", "not the name"),
            ("127.1", "not the name"),
            ("bücher.example", "not the name"),
        ] {
            let error = Host::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_host_displays_as_written() {
        for text in ["github.com", "*.github.com:8443", "[::1]:80", "10.0.0.1", "[fd00::1]"] {
            assert_eq!(Host::parse(text).unwrap().to_string(), text);
        }
    }
}
