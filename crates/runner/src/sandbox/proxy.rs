//! The proxy outside of the sandbox: checks hosts against the allow-list and forwards connections.

mod client_hello;

use std::{io, net::SocketAddr, time::Duration};

use cuegate_flow::model::sandbox::Host;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixStream, lookup_host},
    time::timeout,
};

use super::{
    address::is_public,
    egress::RefusalReporter,
    request,
    request::{HEAD_MAX, ProxyRequest},
};
use client_hello::{FirstBytes, HELLO_MAX};

/// Time limit for a client to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for connecting to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The ports of tunnels in which the client has to speak first.
const HTTPS: u16 = 443;
const HTTP: u16 = 80;
/// The alert of TLS that a client gets instead of the answer to its first message.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Why an allowed name is refused.
const PRIVATE_ADDRESS: &str = "its name resolves to an address of this machine or of a private network";

/// The hosts that a sandbox may connect to.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowList {
    /// The services of the agent, at any address.
    pub(crate) services: Vec<Host>,
    /// The hosts of the definition.
    pub(crate) hosts: Vec<Host>,
}

/// Why a connection was not made.
enum ConnectFailure {
    /// The host is not allowed.
    Refused { to: String, why: &'static str },
    /// The connection failed.
    Failed { to: String, why: String },
    /// The request is invalid.
    Unreadable,
}

impl AllowList {
    /// Whether a host is allowed; if so, whether at any address.
    fn admit(&self, host: &str, port: u16) -> Option<AddressPermission> {
        let covers = |allowed: &&Host| allowed.covers(host, port);
        if self.services.iter().any(|service| covers(&service)) {
            return Some(AddressPermission(true));
        }
        let named = self.hosts.iter().find(covers)?;
        // A listed address is meant as such, but a name may resolve to any address.
        Some(AddressPermission(named.is_address() || named.is_local()))
    }
}

/// Whether a host may have an address that is not public.
struct AddressPermission(bool);

/// Serves one connection from the sandbox.
pub(super) async fn serve_connection(
    mut client: UnixStream,
    allow_list: &AllowList,
    reporter: &RefusalReporter,
) {
    let Ok(Ok((head, rest))) = timeout(HEAD_TIMEOUT, read_head(&mut client)).await else { return };
    let connected = match request::parse_request(&head) {
        Some(request) => connect_upstream(&request, allow_list).await.map(|upstream| (request, upstream)),
        None => Err(ConnectFailure::Unreadable),
    };
    // Either end may close at any time, which closes the other one.
    let _ = match connected {
        Ok((request, upstream)) if request.head.is_none() => {
            serve_tunnel(client, upstream, &request, rest, reporter).await
        }
        Ok((request, upstream)) => forward_request(client, upstream, request.head, &rest).await,
        Err(reason) => {
            if let ConnectFailure::Refused { to, why } = &reason {
                reporter.refused(to, why).await;
            }
            decline_request(client, &reason).await
        }
    };
}

async fn decline_request(mut client: UnixStream, reason: &ConnectFailure) -> io::Result<()> {
    client.write_all(error_response(reason).as_bytes()).await?;
    client.shutdown().await
}

/// Reads up to the empty line. Also returns the bytes after it.
async fn read_head(client: &mut UnixStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            return Ok((read, rest));
        }
        if read.len() > HEAD_MAX {
            return Ok((read, Vec::new()));
        }
    }
}

/// Connects to the host of a request, if it is allowed.
///
/// Resolves the name only once, so that the checked address is the one that is connected to.
async fn connect_upstream(
    request: &ProxyRequest,
    allow_list: &AllowList,
) -> Result<TcpStream, ConnectFailure> {
    let ProxyRequest { host, port, .. } = request;
    let to = describe_destination(request);
    let refused = |why| ConnectFailure::Refused { to: to.clone(), why };
    let failed = |why: String| ConnectFailure::Failed { to: to.clone(), why };
    let Some(AddressPermission(anywhere)) = allow_list.admit(host, *port) else {
        return Err(refused("the host is not in the allow-list"));
    };
    let Ok(found) = timeout(CONNECT_TIMEOUT, lookup_host((host.as_str(), *port))).await else {
        return Err(failed("the name lookup timed out".to_owned()));
    };
    let found = found.map_err(|error| failed(error.to_string()))?.collect();
    let allowed_addresses = allowed_addresses(found, anywhere).ok_or_else(|| refused(PRIVATE_ADDRESS))?;
    let mut last = "its name has no address".to_owned();
    for address in allowed_addresses {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = "the connection timed out".to_owned(),
        }
    }
    Err(failed(last))
}

/// The allowed addresses; `None` when a name only resolves to forbidden ones.
fn allowed_addresses(found: Vec<SocketAddr>, anywhere: bool) -> Option<Vec<SocketAddr>> {
    let allowed_addresses: Vec<SocketAddr> =
        found.iter().copied().filter(|address| anywhere || is_public(address.ip())).collect();
    (found.is_empty() || !allowed_addresses.is_empty()).then_some(allowed_addresses)
}

/// Serves a tunnel, whose first bytes have to name its host: a server of many hosts would lead to any of them.
async fn serve_tunnel(
    mut client: UnixStream,
    mut upstream: TcpStream,
    request: &ProxyRequest,
    rest: Vec<u8>,
    reporter: &RefusalReporter,
) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let begun = timeout(HEAD_TIMEOUT, begin_tunnel(&mut client, &upstream, request, rest)).await;
    match begun.unwrap_or(Ok(Err("it sends nothing that names its host")))? {
        Ok(first) => {
            let _ = upstream.set_nodelay(true);
            upstream.write_all(&first).await?;
            copy_bidirectional(&mut client, &mut upstream).await.map(drop)
        }
        Err(why) => {
            reporter.refused(&describe_destination(request), why).await;
            client.write_all(&ACCESS_DENIED).await?;
            client.shutdown().await
        }
    }
}

/// Reads the first bytes of a tunnel. Returns what to send, or why it is refused.
async fn begin_tunnel(
    client: &mut UnixStream,
    upstream: &TcpStream,
    request: &ProxyRequest,
    mut read: Vec<u8>,
) -> io::Result<Result<Vec<u8>, &'static str>> {
    let host = Host::with_port(&request.host, request.port);
    let is_named = !host.is_address() && !host.is_local();
    loop {
        match client_hello::read_first_bytes(&read) {
            FirstBytes::Hello { is_encrypted: true, .. } => {
                return Ok(Err("the name inside TLS is encrypted"));
            }
            FirstBytes::Hello { name: None, .. } if is_named => return Ok(Err("TLS names no host")),
            FirstBytes::Hello { name: Some(name), .. } if !is_same_host(&name, &host, &request.host) => {
                return Ok(Err("TLS names another host"));
            }
            FirstBytes::Hello { .. } => return Ok(Ok(read)),
            FirstBytes::Other if is_named && request.port == HTTPS => {
                return Ok(Err("it does not begin with TLS"));
            }
            FirstBytes::Other if is_named && request.port == HTTP => {
                let end = read.windows(4).position(|four| four == b"\r\n\r\n");
                match end {
                    Some(end) => {
                        let body = read.split_off(end + 4);
                        let head = request::read_in_tunnel(&read, request);
                        return Ok(head
                            .map(|head| [head, body].concat())
                            .ok_or("its request names another host"));
                    }
                    None if read.len() > HEAD_MAX => return Ok(Err("it is no request")),
                    None => {}
                }
            }
            FirstBytes::Other => return Ok(Ok(read)),
            FirstBytes::Incomplete if read.len() > 2 * HELLO_MAX => return Ok(Err("TLS names no host")),
            FirstBytes::Incomplete => {}
        }
        let has_to_speak = is_named && matches!(request.port, HTTPS | HTTP);
        if read.is_empty() && !has_to_speak {
            tokio::select! {
                more = client.read_buf(&mut read) => if more? == 0 { return Ok(Ok(read)) },
                // A protocol in which the server begins.
                ready = upstream.readable() => return ready.map(|()| Ok(read)),
            }
        } else if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Whether the name in TLS is that of the host.
fn is_same_host(name: &str, host: &Host, asked: &str) -> bool {
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    plain(name) == plain(asked) || host.is_local() && plain(name) == "localhost"
}

/// The host and port of a request.
fn describe_destination(ProxyRequest { host, port, .. }: &ProxyRequest) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

async fn forward_request(
    mut client: UnixStream,
    mut upstream: TcpStream,
    head: Option<Vec<u8>>,
    rest: &[u8],
) -> io::Result<()> {
    // Responses arrive in small pieces.
    let _ = upstream.set_nodelay(true);
    match head {
        Some(head) => upstream.write_all(&head).await?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    upstream.write_all(rest).await?;
    copy_bidirectional(&mut client, &mut upstream).await.map(drop)
}

/// The response to a client whose connection was not made. A program may show it to its agent.
fn error_response(reason: &ConnectFailure) -> String {
    let (status, body) = match reason {
        ConnectFailure::Refused { to, why } => {
            ("403 Forbidden", format!("the sandbox of this run refuses connections to {to}: {why}"))
        }
        ConnectFailure::Failed { to, why } => {
            ("502 Bad Gateway", format!("failed to connect to {to}: {why}"))
        }
        ConnectFailure::Unreadable => {
            ("400 Bad Request", "the proxy accepts CONNECT or an absolute `http://` URL".to_owned())
        }
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}\n",
        body.len() + 1
    )
}

#[cfg(test)]
mod tests;
