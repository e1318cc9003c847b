//! Parses the requests of sandboxed programs to the proxy.

/// The longest head of a request, in bytes.
pub(super) const HEAD_MAX: usize = 32 << 10;

/// The target of a request, and the head to send to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    /// The name or address as written, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The head to send before the rest of the request; `None` for a tunnel.
    pub(super) head: Option<Vec<u8>>,
}

/// Parses the head of a request, including its empty line. `None` when the proxy does not support it.
pub(super) fn parse_request(head: &[u8]) -> Option<ProxyRequest> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
    // Some servers end a line at a single line feed, and would see a header that we do not.
    if lines.clone().any(|line| line.contains(|c: char| c.is_control() && c != '\t')) {
        return None;
    }
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    if words.next().is_some() || !is_method || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = parse_authority(target)?;
        return Some(ProxyRequest { host, port: port?, head: None });
    }
    let rest = strip_scheme(target)?;
    let (named, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = parse_authority(named)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut sent = format!("{method} {path} {version}\r\nHost: {named}\r\nConnection: close\r\n");
    for line in lines {
        let (name, _) = line.split_once(':')?;
        // A folded header field could hide another one.
        if name.is_empty() || name.contains([' ', '\t']) {
            return None;
        }
        let own = ["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization"];
        if !own.contains(&name.to_ascii_lowercase().as_str()) {
            sent.push_str(line);
            sent.push_str("\r\n");
        }
    }
    sent.push_str("\r\n");
    Some(ProxyRequest { host, port: port.unwrap_or(80), head: Some(sent.into_bytes()) })
}

/// Parses the head of the first request in a tunnel without TLS. Returns the head to send; `None` if it is for another host
/// than the tunnel.
pub(super) fn read_in_tunnel(head: &[u8], tunnel: &ProxyRequest) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(head).ok()?;
    let (first, rest) = text.split_once("\r\n")?;
    let (method, target) = first.split_once(" /")?;
    let hosts: Vec<&str> = rest
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, host)| host.trim())
        .collect();
    let [host] = hosts[..] else { return None };
    let (host, port) = parse_authority(host)?;
    if !host.eq_ignore_ascii_case(&tunnel.host) || port.unwrap_or(tunnel.port) != tunnel.port {
        return None;
    }
    parse_request(format!("{method} http://{host}:{}/{target}\r\n{rest}", tunnel.port).as_bytes())?.head
}

/// `http://` only: a program that wants TLS asks for a tunnel.
fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn parse_authority(text: &str) -> Option<(String, Option<u16>)> {
    if text.contains('@') {
        return None;
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { None } else { Some(port.parse().ok().filter(|port| *port != 0)?) };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    (!host.is_empty() && host.len() <= 255 && host.bytes().all(is_allowed)).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Option<(String, u16, Option<String>)> {
        let ProxyRequest { host, port, head } = parse_request(head.replace('\n', "\r\n").as_bytes())?;
        Some((host, port, head.map(|head| String::from_utf8(head).unwrap().replace("\r\n", "|"))))
    }

    #[test]
    fn a_tunnel_names_a_host_and_a_port() {
        assert_eq!(parsed("CONNECT a.com:443 HTTP/1.1\nHost: b\n\n"), Some(("a.com".into(), 443, None)));
        assert_eq!(parsed("CONNECT [::1]:80 HTTP/1.0\n\n"), Some(("::1".into(), 80, None)));
        for wrong in
            ["a.com", "a.com:0", "a.com:x", "me@a.com:443", ":443", "[::1:443", "[a]:1", "a b:1", "a%2e:1"]
        {
            assert_eq!(parsed(&format!("CONNECT {wrong} HTTP/1.1\n\n")), None, "{wrong}");
        }
    }

    #[test]
    fn the_url_decides_the_host_and_not_the_headers() {
        let head =
            "GET HTTP://a.com:8080/x?y=1 HTTP/1.1\nhost: evil.com\nAccept: */*\nProxy-Authorization: x\n\n";
        let sent = "GET /x?y=1 HTTP/1.1|Host: a.com:8080|Connection: close|Accept: */*||";
        assert_eq!(parsed(head), Some(("a.com".into(), 8080, Some(sent.into()))));
        let sent = "GET /?q HTTP/1.1|Host: a.com|Connection: close||";
        assert_eq!(parsed("GET http://a.com?q HTTP/1.1\n\n"), Some(("a.com".into(), 80, Some(sent.into()))));
    }

    /// Whatever a program sends, one request to the named host is forwarded, or none.
    #[test]
    fn any_head_is_read_or_rejected() {
        use cuegate_testkit::fuzz::{Mutator, executions};
        let seeds: [&[u8]; 4] = [
            b"CONNECT a.com:443 HTTP/1.1\r\nHost: b\r\n\r\n",
            b"GET http://a.com:8080/x?y=1 HTTP/1.1\r\nhost: evil.com\r\nAccept: */*\r\n\r\n",
            b"POST http://[::1]/ HTTP/1.0\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\n\r\n",
        ];
        let words: [&[u8]; 12] = [
            b"\r\n",
            b"\n",
            b"\r",
            b" ",
            b"\t",
            b":",
            b"@",
            b"Host: x\r\n",
            b"\0",
            b"http://",
            b"]",
            b"%0d%0a",
        ];
        let mut mutator = Mutator::new(&seeds, &words);
        let mut read_ones = 0;
        for _ in 0..executions(500_000) {
            let Some(request) = parse_request(&mutator.input()) else { continue };
            read_ones += 1;
            assert!(!request.host.is_empty() && !request.host.contains(|c: char| c.is_control() || c == '@'));
            assert_ne!(request.port, 0);
            let Some(head) = request.head else { continue };
            let text = String::from_utf8(head).unwrap();
            let lines: Vec<&str> = text.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
            let hosts = lines.iter().filter(|line| line.to_ascii_lowercase().starts_with("host:")).count();
            assert_eq!(hosts, 1, "{text:?}");
            assert_eq!(text.matches("\r\n\r\n").count(), 1, "{text:?}");
            assert!(lines[1].contains(&request.host), "{text:?}");
        }
        assert!(read_ones > 1_000, "{read_ones}");
    }

    #[test]
    fn unsupported_requests_are_rejected() {
        for head in [
            "GET / HTTP/1.1\nHost: a.com\n\n",
            "GET https://a.com/ HTTP/1.1\n\n",
            "GET http://a.com/ HTTP/2\n\n",
            "GET http://a.com/\n\n",
            "GET http://me@a.com/ HTTP/1.1\n\n",
            "GET http://a.com/ HTTP/1.1\nX: a\n Host: b\n\n",
            "GET http://a.com/ HTTP/1.1\nnothing\n\n",
            "\n\n",
            "GET http://a.com/ HTTP/1.1\n",
        ] {
            assert_eq!(parsed(head), None, "{head}");
        }
    }
}
