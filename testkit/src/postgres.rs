//! A real Postgres server in a folder of its own, for tests: on a port of this machine, without passwords.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The server refuses to run as root. This user exists everywhere.
const NOBODY: u32 = 65_534;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, which ends with its folder when it is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: tempfile::TempDir,
    address: String,
    port: u16,
    process: Option<Child>,
}

impl PostgresServer {
    /// Makes a new database and starts its server.
    ///
    /// # Errors
    /// When no Postgres is installed, or it does not start.
    pub fn start() -> Result<PostgresServer, String> {
        PostgresServer::start_at("127.0.0.1")
    }

    /// The same at an address of this machine that hosts of its network may use.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_at(address: &str) -> Result<PostgresServer, String> {
        let programs = find_programs().ok_or("no Postgres is installed: `apt-get install postgresql`")?;
        let folder = tempfile::Builder::new()
            .prefix("cuegate-postgres-")
            .tempdir()
            .map_err(|error| format!("a folder for Postgres: {error}"))?;
        if is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))
                .map_err(|error| format!("the folder of Postgres: {error}"))?;
        }
        let mut server =
            PostgresServer { programs, folder, address: address.to_owned(), port: 0, process: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args([
                "--auth=trust",
                "--username=cuegate",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--pgdata",
            ])
            .arg(&data)
            .output()
            .map_err(|error| format!("initdb: {error}"))?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
        }
        let rights = fs::read_to_string(data.join("pg_hba.conf")).unwrap_or_default();
        let _ = fs::write(data.join("pg_hba.conf"), format!("{rights}host all all samenet trust\n"));
        // A port that was free may be taken by another test meanwhile.
        for _ in 0..5 {
            server.port = find_free_port()?;
            if server.restart().is_ok() {
                return Ok(server);
            }
        }
        server.restart()?;
        Ok(server)
    }

    /// The address of its database.
    pub fn url(&self) -> String {
        format!("postgres://cuegate@{}:{}/postgres", self.address, self.port)
    }

    /// Encrypts connections from now on, by a certificate for this machine. Returns the file with it.
    ///
    /// # Errors
    /// When `openssl` fails or the server does not start again.
    pub fn encrypt(&mut self) -> Result<PathBuf, String> {
        let data = self.data();
        let mut command = Command::new("openssl");
        command.current_dir(&data).args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        command.args(["-keyout", "server.key", "-out", "server.crt"]);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let made = command.output().map_err(|error| format!("openssl: {error}"))?;
        if !made.status.success() {
            return Err(format!("openssl: {}", String::from_utf8_lossy(&made.stderr)));
        }
        fs::write(data.join("postgresql.auto.conf"), "ssl = on\n")
            .map_err(|error| format!("ssl: {error}"))?;
        self.restart()?;
        Ok(data.join("server.crt"))
    }

    /// Ends the server at once with all its processes, as a power cut does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let group = i32::try_from(process.id()).unwrap_or_default();
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
            let _ = process.kill();
            let _ = process.wait();
            // It refuses to start while a process of the former one may live.
            let _ = fs::remove_file(self.data().join("postmaster.pid"));
        }
    }

    /// Starts the server again, on the same port and with the same data.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        let log =
            fs::File::create(self.folder.path().join("log")).map_err(|error| format!("log: {error}"))?;
        let started = self
            .command("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", &format!("listen_addresses={}", self.address), "-c", "unix_socket_directories="])
            .args(["-c", "max_connections=300", "-c", "shared_buffers=32MB"])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.process = Some(started.map_err(|error| format!("postgres: {error}"))?);
        let until = Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if said.contains("database system is ready to accept connections") {
                return Ok(());
            }
            let has_ended =
                self.process.as_mut().is_none_or(|process| process.try_wait().is_ok_and(|end| end.is_some()));
            if has_ended || Instant::now() > until {
                return Err(format!("postgres does not start: {said}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder with `initdb` and `postgres`; Debian has it outside of `PATH`.
pub fn find_programs() -> Option<PathBuf> {
    let has_all = |folder: &Path| folder.join("initdb").exists() && folder.join("postgres").exists();
    let path = std::env::var_os("PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    folders.into_iter().find(|folder| has_all(folder))
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:\t0\t")))
}

fn find_free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| format!("no port: {error}"))
}
