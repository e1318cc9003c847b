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
        // No session: the files of the page hold nothing of the project.
        let answer = server.raw(&get, &[("Host", &host)], "");
        let is_file = !path.starts_with("/api/");
        assert_eq!(answer.status, if is_file { 200 } else { 401 }, "{path}");
        assert!(!answer.body.contains("Fix it.") && !answer.body.contains("fixer"));
        for cookie in ["cuegate=x", &format!("cuegate-{port}="), &format!("cuegate-{port}={}", server.bearer)]
        {
            let answer = server.raw(&get, &[("Host", &host), ("Cookie", cookie)], "");
            assert!(is_file || answer.status == 401, "{path} {cookie}");
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
fn a_link_is_used_once_and_its_session_is_no_cookie() {
    let (_project, server) = served(&[]);
    let host = server.host();
    let redeem = |named: &str, link: &str| {
        let link = format!("Link {link}");
        server.raw("POST /api/v1/session", &[("Host", named), ("Authorization", &link)], "")
    };
    assert_eq!(redeem(&host, "wrong").status, 401);
    assert_eq!(redeem(&host, &server.bearer).status, 401, "the token for programs is no link");
    // A page of another site cannot use it by its host.
    assert_eq!(redeem("evil.test", &server.link).status, 403);
    // In the address of a request it is nothing.
    let answer = server.raw(&format!("GET /?token={}", server.link), &[("Host", &host)], "");
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
    let answer = redeem(&host, &server.link);
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None), "{}", answer.body);
    let session: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let session = format!("Bearer {}", session["token"].as_str().unwrap());
    assert_eq!(redeem(&host, &server.link).status, 401, "it was used");
    let runs = |authorization: &str| {
        server.raw("GET /api/v1/runs", &[("Host", &host), ("Authorization", authorization)], "").status
    };
    assert_eq!((runs(&session), runs("Bearer x"), runs("")), (200, 401, 401));
    let both = [("Host", host.as_str()), ("Authorization", session.as_str()), ("Authorization", "Bearer x")];
    assert_eq!(server.raw("GET /api/v1/runs", &both, "").status, 401);
    until("a new link is printed", || server.stderr().contains("for another browser: http://127.0.0.1:"));
    let said = server.stderr();
    let next = said.rsplit("token=").next().unwrap().trim();
    assert_eq!(redeem(&host, next).status, 200);
    server.stop();
}

/// Whether a read shows that the other end has closed the connection.
fn is_closed(read: std::io::Result<usize>) -> bool {
    read.map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |length| length == 0)
}

/// Other programs of the machine can connect, and keep nobody out.
#[test]
fn half_open_connections_are_closed_for_new_ones() {
    use std::io::{Read as _, Write as _};
    let (_project, server) = served(&[]);
    let half: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(server.get("/runs").status, 200);
    let mut closed = 0;
    for mut stream in half {
        stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        closed += usize::from(is_closed(stream.read(&mut [0; 64])));
    }
    assert!(closed >= 130, "{closed} are closed");
    // One that sends nothing is closed after its time.
    let mut slow = server.connect();
    slow.write_all(b"GET").unwrap();
    let begun = std::time::Instant::now();
    let _ = slow.read_to_end(&mut Vec::new());
    assert!(begun.elapsed().as_secs() < 19, "it was not closed");
    server.stop();
}

/// Other users of the machine see the arguments of programs.
#[test]
fn no_token_is_in_the_arguments_of_the_browser() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::example();
    let browser = project.path().join("browser");
    fs::write(&browser, "#!/bin/sh\necho \"$@\" > said; cp \"$1\" led; stat -c %a \"$1\" > mode\n").unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let tools = tempfile::tempdir().unwrap();
    fs::rename(&browser, tools.path().join("browser")).unwrap();
    let mut command = project.command(&["serve", "--open"]);
    command.env("BROWSER", tools.path().join("browser"));
    let job = crate::support::Job::of(command.spawn().unwrap());
    until("the browser is started", || project.path().join("mode").exists());
    until("the link is printed", || job.printed().contains("#token="));
    let printed = job.printed();
    let said = project.read("said");
    assert!(!said.contains("token") && said.trim().ends_with(".cuegate/open.html"), "{said}");
    assert!(project.read("led").contains(printed.trim()), "{}", project.read("led"));
    until("the mode is written", || !project.read("mode").is_empty());
    assert_eq!(project.read("mode").trim(), "600");
    job.signal(Signal::INT);
    assert_eq!(job.end().code, 0);
    assert!(!project.path().join(".cuegate/open.html").exists(), "it goes with the server");
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
    assert!(ran.stdout.contains(&format!("http://127.0.0.1:{}/#token=", server.port)), "{}", ran.stderr);
    let other = Project::example();
    let ran = other.run(&["serve", "--port", &server.port.to_string()]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("`--port`"), "{}", ran.stderr);
    server.stop();
}
