//! Measures a run that is watched: by a server with many open streams, and what the server needs when idle.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{Figure, members};

/// Streams of the same run.
const WATCHERS: usize = 50;
/// How often a run is measured; the median is reported.
const ROUNDS: usize = 5;
/// How long the idle server is looked at.
const IDLE: Duration = Duration::from_secs(5);

/// A server that ends with the measurement.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn watchers(cuegate: &Path, place: &Path, figures: &mut Vec<Figure>) -> Result<(), String> {
    let project = members::project(place, 19)?;
    let run = || members::run(cuegate, &project);
    // The first run creates the state dir.
    run()?;
    let child = Command::new(cuegate)
        .arg("serve")
        .current_dir(&project)
        .env("GIT_CEILING_DIRECTORIES", place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut server = Server(child.map_err(|error| format!("failed to start `cuegate serve`: {error}"))?);
    let mut link = String::new();
    if let Some(stdout) = server.0.stdout.take() {
        BufReader::new(stdout).read_line(&mut link).map_err(|error| error.to_string())?;
    }
    let process = format!("/proc/{}", server.0.id());
    let before = ticks(&process)?;
    std::thread::sleep(IDLE);
    let idle = (ticks(&process)? - before) as f64 / IDLE.as_secs_f64();
    figures.push(Figure { what: "idle server: processor".to_owned(), got: idle, unit: "%", most: Some(0.5) });
    figures.push(Figure {
        what: "idle server: memory".to_owned(),
        got: memory(&process)?,
        unit: "MiB",
        most: Some(30.0),
    });
    let file = fs::read_to_string(project.join(".cuegate/serve.json")).map_err(|error| error.to_string())?;
    let file: Value = serde_json::from_str(&file).map_err(|error| error.to_string())?;
    let address = file["address"].as_str().unwrap_or_default().trim_start_matches("http://").to_owned();
    let token = file["token"].as_str().unwrap_or_default().to_owned();
    let alone = super::median((0..ROUNDS).map(|_| run()).collect::<Result<Vec<f64>, String>>()?);
    let (delays, delay) = mpsc::channel();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        // The streams wait for the list of runs to change, and then follow the newest run.
        for _ in 0..WATCHERS {
            let (address, token, delays) = (address.clone(), token.clone(), delays.clone());
            std::thread::spawn(move || follow(&address, &token, &delays));
        }
        std::thread::sleep(Duration::from_millis(300));
        times.push(run()?);
        std::thread::sleep(Duration::from_millis(500));
    }
    let watched = super::median(times);
    drop(delays);
    let mut delays: Vec<f64> = delay.iter().collect();
    delays.sort_by(f64::total_cmp);
    let what = format!("a run with {WATCHERS} watchers against one without");
    figures.push(Figure { what, got: watched / alone, unit: "×", most: Some(1.15) });
    let late = delays.get(delays.len() * 95 / 100).copied().unwrap_or(f64::MAX);
    figures.push(Figure {
        what: "from a record to its event, 95 of 100".to_owned(),
        got: late,
        unit: "ms",
        most: Some(100.0),
    });
    figures.push(Figure {
        what: format!("server of {WATCHERS} watchers: memory"),
        got: memory(&process)?,
        unit: "MiB",
        most: None,
    });
    Ok(())
}

/// Follows the next run, and sends how late its events are, in milliseconds.
fn follow(address: &str, token: &str, delays: &mpsc::Sender<f64>) -> Option<()> {
    let known = newest(address, token)?;
    let run = loop {
        let run = newest(address, token)?;
        if run != known {
            break run;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let opened = Instant::now();
    for line in request(address, token, &format!("/runs/{run}/stream"))?.lines() {
        let line = line.ok()?;
        let Some(event) =
            line.strip_prefix("data: ").and_then(|text| serde_json::from_str::<Value>(text).ok())
        else {
            continue;
        };
        // What was there before the stream is late by that.
        if let (Some(at), true) = (event["at"].as_str(), opened.elapsed() > Duration::from_millis(100)) {
            let at = at.parse::<jiff::Timestamp>().ok()?;
            let late = jiff::Timestamp::now().as_microsecond() - at.as_microsecond();
            let _ = delays.send(late as f64 / 1e3);
        }
        if event["event"] == "ended" {
            break;
        }
    }
    Some(())
}

fn newest(address: &str, token: &str) -> Option<String> {
    let mut body = String::new();
    let mut lines = request(address, token, "/runs/last?steps=false")?.lines();
    while let Some(Ok(line)) = lines.next() {
        if line.starts_with('{') {
            body = line;
            break;
        }
    }
    Some(serde_json::from_str::<Value>(&body).ok()?["run"].as_str()?.to_owned())
}

fn request(address: &str, token: &str, path: &str) -> Option<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!(
        "GET /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    Some(BufReader::new(stream))
}

/// The processor time of a process, in hundredths of a second.
fn ticks(process: &str) -> Result<u64, String> {
    let stat = fs::read_to_string(format!("{process}/stat")).map_err(|error| error.to_string())?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    Ok([11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum())
}

fn memory(process: &str) -> Result<f64, String> {
    let status = fs::read_to_string(format!("{process}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kib.ok_or("the memory of the server is not known")? / 1024.0)
}
