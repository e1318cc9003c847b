//! Who may use the server.

use std::{fs, os::unix::fs::MetadataExt as _};

use rustix::process::Signal;
use serde_json::json;

use super::client::Server;
use crate::support::{Project, until};

fn served(more: &[&str]) -> (Project, Server) {
    let project = Project::example();
    assert_eq!(project.run(&["run", "fixer", "Fix it.", "--script", "script.yaml"]).code, 0);
    let server = Server::start(&project, more);
    (project, server)
}

#[test]
fn every_request_needs_a_session_and_our_own_host_and_origin() {
    let (_project, server) = served(&["--allow-control"]);
    let (host, port) = (server.host(), server.port);
    let bearer = format!("Bearer {}", server.bearer);
    let bearer = bearer.as_str();
    let local = format!("localhost:{port}");
    let paths = [
        "/",
        "/app.js",
        "/api/v1/runs",
        "/api/v1/runs/last/stream",
        "/api/v1/stream",
        "/api/v1/openapi.json",
    ];
    for path in paths {
        let get = format!("GET {path}");
        // No session.
        let answer = server.raw(&get, &[("Host", &host)], "");
        assert_eq!(answer.status, 401, "{path}");
        assert!(!answer.body.contains("Fix it."));
        for cookie in ["cuegate=x", &format!("cuegate-{port}="), &format!("cuegate-{port}={}", server.bearer)]
        {
            assert_eq!(server.raw(&get, &[("Host", &host), ("Cookie", cookie)], "").status, 401, "{cookie}");
        }
        // Another host: a page whose name leads to this machine, also with a session.
        for other in
            ["evil.test", &format!("evil.test:{port}"), "127.0.0.1", &format!("127.0.0.1.evil.test:{port}")]
        {
            let answer = server.raw(&get, &[("Host", other), ("Authorization", bearer)], "");
            assert_eq!(answer.status, 403, "{path} {other}");
        }
        assert_eq!(server.raw(&get, &[("Authorization", bearer)], "").status, 403, "no host");
        // Another origin.
        for origin in
            ["http://evil.test", "null", &format!("http://127.0.0.1:{}", port - 1), "https://127.0.0.1"]
        {
            let headers = [("Host", host.as_str()), ("Authorization", bearer), ("Origin", origin)];
            assert_eq!(server.raw(&get, &headers, "").status, 403, "{path} {origin}");
        }
        for site in ["cross-site", "same-site"] {
            let headers = [("Host", host.as_str()), ("Authorization", bearer), ("Sec-Fetch-Site", site)];
            assert_eq!(server.raw(&get, &headers, "").status, 403, "{path} {site}");
        }
        if !path.ends_with("stream") {
            for named in [&host, &local] {
                let own = format!("http://{named}");
                let headers = [("Host", named.as_str()), ("Authorization", bearer), ("Origin", &own)];
                let answer = server.raw(&get, &headers, "");
                assert_eq!(answer.status, 200, "{path} {named}");
                let policy = answer.header("content-security-policy").unwrap();
                assert!(policy.starts_with("default-src 'self';"), "{policy}");
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
                assert_eq!(answer.header("cache-control"), Some("no-store"));
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
    }
    // What changes runs is no exception.
    for headers in [
        vec![("Host", host.as_str())],
        vec![("Host", host.as_str()), ("Authorization", bearer), ("Origin", "http://evil.test")],
        vec![("Host", "evil.test"), ("Authorization", bearer)],
    ] {
        let answer = server.raw("POST /api/v1/runs/last/cancel", &headers, "");
        assert!(matches!(answer.status, 401 | 403), "{answer:?}");
    }
    let preflight =
        [("Host", host.as_str()), ("Origin", "http://evil.test"), ("Access-Control-Request-Method", "POST")];
    let answer = server.raw("OPTIONS /api/v1/runs", &preflight, "");
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    server.stop();
}

#[test]
fn a_link_is_used_once_and_its_session_is_a_strict_cookie() {
    let (_project, server) = served(&[]);
    let host = server.host();
    let wrong = server.raw("GET /?token=wrong", &[("Host", &host)], "");
    assert_eq!(wrong.status, 401);
    let link = format!("GET /?token={}", server.link);
    // A page of another site cannot use it by its host.
    assert_eq!(server.raw(&link, &[("Host", "evil.test")], "").status, 403);
    let answer = server.raw(&link, &[("Host", &host)], "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert_eq!(server.raw(&link, &[("Host", &host)], "").status, 401, "it was used");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(server.raw("GET /api/v1/runs", &[("Host", &host), ("Cookie", pair)], "").status, 200);
    assert_eq!(
        server.raw(&link, &[("Host", &host), ("Cookie", pair)], "").status,
        303,
        "the same browser again"
    );
    until("a new link is printed", || server.stderr().contains("for another browser: http://127.0.0.1:"));
    let said = server.stderr();
    let next = said.rsplit("token=").next().unwrap().trim();
    assert_eq!(server.raw(&format!("GET /?token={next}"), &[("Host", &host)], "").status, 303);
    server.stop();
}

#[test]
fn without_control_nothing_changes() {
    let (project, server) = served(&[]);
    let before = project.run(&["log", "last", "--json"]).stdout;
    for (path, body) in [
        ("/runs/last/answer", json!({"text": "x"})),
        ("/runs/last/cancel", json!({})),
        ("/runs/last/resume", json!({})),
        ("/runs", json!({"definition": "fixer"})),
    ] {
        let answer = server.post(path, &body);
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        assert!(answer.body.contains("--allow-control"), "{}", answer.body);
    }
    assert_eq!(project.run(&["log", "last", "--json"]).stdout, before);
    assert_eq!(project.runs(), 1);
    server.stop();
}

#[test]
fn other_users_cannot_read_the_token_or_connect_to_the_socket() {
    let (project, server) = served(&[]);
    let file = project.path().join(".cuegate/serve.json");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    server.stop();
    assert!(!file.exists(), "it goes with the server");
    let job = project.job(&["serve", "--socket", "page.sock"]);
    let socket = project.path().join("page.sock");
    until("it listens", || job.printed().contains("page.sock"));
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
    let ran = project.run(&["serve", "--socket", "page.sock"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    job.signal(Signal::TERM);
    assert_eq!(job.end().code, 0);
    assert!(!socket.exists() && !file.exists());
    // A killed server leaves its socket, which the next one replaces.
    let job = project.job(&["serve", "--socket", "page.sock"]);
    until("it listens", || job.printed().contains("page.sock"));
    job.signal(Signal::KILL);
    drop(job);
    let job = project.job(&["serve", "--socket", "page.sock"]);
    until("it listens again", || job.printed().contains("page.sock"));
    job.signal(Signal::INT);
    // A file that is no socket stays.
    let ran = project.run(&["serve", "--socket", "convert.sh"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(project.path().join("convert.sh").exists());
}

#[test]
fn a_taken_port_is_an_error_with_a_hint() {
    let (project, server) = served(&[]);
    let ran = project.run(&["serve"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("a server of this project runs already"), "{}", ran.stderr);
    let ran = project.run(&["serve", "--open=last", "--json"]);
    assert!(ran.stdout.contains(&format!("http://127.0.0.1:{}/?token=", server.port)), "{}", ran.stderr);
    let other = Project::example();
    let ran = other.run(&["serve", "--port", &server.port.to_string()]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("`--port`"), "{}", ran.stderr);
    server.stop();
}
