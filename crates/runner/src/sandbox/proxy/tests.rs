use cuegate_engine::CommandId;
use tokio::{net::TcpListener, sync::mpsc};

use super::*;
use crate::drive::ExecutorMessage;

const BY: CommandId = CommandId::Step { seq: 3 };

fn hosts(names: &[&str]) -> Vec<Host> {
    names.iter().map(|name| Host::parse(name).unwrap()).collect()
}

/// Sends a request through the proxy; returns the response and the reported refusals.
async fn ask(allow_list: &AllowList, request: &str) -> (String, Vec<ExecutorMessage>) {
    let (mut client, server) = UnixStream::pair().unwrap();
    let (sender, mut receiver) = mpsc::channel(8);
    let reporter = RefusalReporter::new(BY, sender);
    let asking = async {
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (answer, ()) = tokio::join!(asking, serve_connection(server, allow_list, &reporter));
    let heard = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    (answer, heard)
}

/// A server that answers one connection with what it read.
async fn echo() -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = String::new();
        stream.read_to_string(&mut read).await.unwrap();
        stream.write_all(format!("you said {read}").as_bytes()).await.unwrap();
        read
    });
    (port, serving)
}

#[tokio::test]
async fn a_tunnel_to_an_allowed_host_forwards_data() {
    let (port, serving) = echo().await;
    let allow_list = AllowList { services: vec![Host::with_port("127.0.0.1", port)], hosts: Vec::new() };
    let (answer, heard) = ask(&allow_list, &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello")).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nyou said hello");
    assert_eq!((serving.await.unwrap().as_str(), heard.len()), ("hello", 0));
}

#[tokio::test]
async fn a_page_of_an_allowed_host_is_fetched() {
    let (port, serving) = echo().await;
    let allow_list = AllowList { services: Vec::new(), hosts: hosts(&[&format!("localhost:{port}")]) };
    let (answer, _) =
        ask(&allow_list, &format!("GET http://LOCALHOST:{port}/x HTTP/1.1\r\nA: b\r\n\r\n")).await;
    let sent = format!("GET /x HTTP/1.1\r\nHost: LOCALHOST:{port}\r\nConnection: close\r\nA: b\r\n\r\n");
    assert_eq!(serving.await.unwrap(), sent);
    assert!(answer.starts_with("you said GET /x"), "{answer}");
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_refused_and_reported() {
    let allow_list = AllowList { services: Vec::new(), hosts: hosts(&["*.example.com"]) };
    for (request, to) in [
        ("CONNECT evil.test:443 HTTP/1.1\r\n\r\n", "evil.test:443"),
        ("CONNECT example.com:443 HTTP/1.1\r\n\r\n", "example.com:443"),
        ("CONNECT a.example.com:22 HTTP/1.1\r\n\r\n", "a.example.com:22"),
        ("GET http://127.0.0.1:9/ HTTP/1.1\r\n\r\n", "127.0.0.1:9"),
        ("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "[::1]:443"),
        ("CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "2130706433:443"),
    ] {
        let (answer, heard) = ask(&allow_list, request).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.contains(to), "{answer}");
        let why = "the host is not in the allow-list".to_owned();
        assert_eq!(heard, [ExecutorMessage::Refused { by: BY, to: to.to_owned(), why }]);
    }
}

#[tokio::test]
async fn invalid_requests_and_failed_connections_get_different_responses() {
    let (answer, heard) = ask(&AllowList::default(), "GET / HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n") && heard.is_empty(), "{answer}");
    let (answer, _) = ask(&AllowList::default(), &"x".repeat(HEAD_MAX + 9)).await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    // A port on which no program listens any more.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let allow_list = AllowList { services: vec![Host::with_port("127.0.0.1", port)], hosts: Vec::new() };
    let (answer, heard) = ask(&allow_list, &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && heard.is_empty(), "{answer}");
}

#[tokio::test]
async fn each_refused_host_is_reported_once() {
    let (sender, mut receiver) = mpsc::channel(8);
    let reporter = RefusalReporter::new(BY, sender);
    for to in ["a:443", "b:443", "a:443"] {
        reporter.refused(to, "no").await;
    }
    assert_eq!(std::iter::from_fn(|| receiver.try_recv().ok()).count(), 2);
}

#[test]
fn a_name_with_a_private_address_is_refused() {
    let found =
        |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
    let (inner, outer) = ("127.0.0.1:443", "8.8.8.8:443");
    assert_eq!(allowed_addresses(found(&[inner]), false), None);
    assert_eq!(allowed_addresses(found(&[inner, outer]), false), Some(found(&[outer])));
    assert_eq!(allowed_addresses(found(&[inner]), true), Some(found(&[inner])));
    assert_eq!(allowed_addresses(Vec::new(), false), Some(Vec::new()));
    // Only the agent's services and hosts listed by address may have a private address.
    let allow_list = AllowList {
        services: hosts(&["api.corp.example:443"]),
        hosts: hosts(&["10.0.0.7", "wiki.corp.example"]),
    };
    let anywhere = |name| allow_list.admit(name, 443).map(|AddressPermission(anywhere)| anywhere);
    assert_eq!(anywhere("api.corp.example"), Some(true));
    assert_eq!(anywhere("10.0.0.7"), Some(true));
    assert_eq!(anywhere("wiki.corp.example"), Some(false));
    assert_eq!(anywhere("10.0.0.8"), None);
}

/// What the proxy makes of the first bytes of a tunnel: what it sends, or why it refuses.
async fn begin_with(host: &str, port: u16, first: &[u8]) -> Result<String, String> {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let request = ProxyRequest { host: host.to_owned(), port, head: None };
    client.write_all(first).await.unwrap();
    drop(client);
    let begun = begin_tunnel(&mut server, &upstream, &request, Vec::new()).await;
    let begun = begun.map_err(|error| error.to_string())?;
    begun.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(str::to_owned)
}

#[tokio::test]
async fn a_tunnel_has_to_name_its_host_inside_of_tls() {
    use client_hello::tests::{hello, named};
    let first = |extensions: &[(u16, Vec<u8>)]| hello(extensions, 100);
    for (host, port, bytes, refused) in [
        ("a.example", 443, first(&[named("a.example")]), None),
        ("A.example.", 443, first(&[named("a.EXAMPLE")]), None),
        ("a.example", 443, first(&[named("b.example")]), Some("TLS names another host")),
        ("a.example", 443, first(&[named("a.example.b.example")]), Some("TLS names another host")),
        ("a.example", 443, first(&[]), Some("TLS names no host")),
        (
            "a.example",
            443,
            first(&[named("a.example"), (0xfe0d, vec![0])]),
            Some("the name inside TLS is encrypted"),
        ),
        (
            "a.example",
            443,
            b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n".to_vec(),
            Some("it does not begin with TLS"),
        ),
        ("a.example", 443, b"SSH-2.0-x\r\n".to_vec(), Some("it does not begin with TLS")),
        ("a.example", 8443, first(&[named("b.example")]), Some("TLS names another host")),
        ("a.example", 5432, b"\0\0\0\x08".to_vec(), None),
        ("127.0.0.1", 7790, first(&[named("evil.example")]), Some("TLS names another host")),
        ("127.0.0.1", 7790, first(&[named("localhost")]), None),
        ("10.0.0.1", 443, first(&[]), None),
        (
            "a.example",
            80,
            b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n".to_vec(),
            Some("its request names another host"),
        ),
        (
            "a.example",
            80,
            b"GET / HTTP/1.1\r\nHost: a.example\r\nhost: b\r\n\r\n".to_vec(),
            Some("its request names another host"),
        ),
        (
            "a.example",
            80,
            b"GET http://b/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec(),
            Some("its request names another host"),
        ),
    ] {
        let found = begin_with(host, port, &bytes).await;
        assert_eq!(found.err().as_deref(), refused, "{host}:{port} {}", String::from_utf8_lossy(&bytes));
    }
    let plain = b"POST /x?y HTTP/1.1\r\nHost: a.example:80\r\nConnection: keep-alive\r\n\r\nbody";
    assert_eq!(
        begin_with("a.example", 80, plain).await.unwrap(),
        "POST /x?y HTTP/1.1\r\nHost: a.example:80\r\nConnection: close\r\n\r\nbody"
    );
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 hello").await.unwrap();
    });
    let allow_list = AllowList { services: Vec::new(), hosts: hosts(&[&format!("localhost:{port}")]) };
    let (mut client, server) = UnixStream::pair().unwrap();
    let (sender, _receiver) = mpsc::channel(8);
    let reporter = RefusalReporter::new(BY, sender);
    let asking = async {
        client.write_all(format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 48];
        client.read_exact(&mut answer).await.unwrap();
        drop(client);
        String::from_utf8(answer).unwrap()
    };
    let (answer, ()) = tokio::join!(asking, serve_connection(server, &allow_list, &reporter));
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n220 hello");
}
