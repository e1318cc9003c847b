//! The one connection of a journal, on a thread of its own.
//!
//! The journal is called from threads that drive an async runtime, where a blocking client must not run. Statements wait
//! for each other: a process writes a few records a second.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use cuegate_journal::Error;
use postgres::{Client, Error as DbError, error::SqlState};

use crate::{
    address::Address,
    schema::{FORMAT, prepare_schema},
};

/// How long is waited between two attempts to reach the server.
const PAUSE: Duration = Duration::from_millis(200);

type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// What may be done with the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Writes; the server confirms a record when it survives a loss of power, or earlier.
    Write {
        is_synced: bool,
    },
    Read,
}

/// Hands statements to the thread that has the connection.
#[derive(Debug)]
pub(crate) struct Connection {
    jobs: Sender<Job>,
    /// Where the server is, for errors.
    address: String,
}

/// The connection, and how to get it again.
pub(crate) struct Session {
    address: Address,
    access: Access,
    client: Option<Client>,
}

impl Connection {
    /// Starts the thread. `at_rest` is called every `every`, also between statements.
    pub(crate) fn start(
        address: Address,
        access: Access,
        every: Duration,
        mut at_rest: impl FnMut(&mut Session) + Send + 'static,
    ) -> Connection {
        let (jobs, received) = mpsc::channel::<Job>();
        let shown = address.to_string();
        let mut session = Session { address, access, client: None };
        thread::spawn(move || {
            let mut next = Instant::now() + every;
            loop {
                match received.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(job) => job(&mut session),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                if Instant::now() >= next {
                    at_rest(&mut session);
                    next = Instant::now() + every;
                }
            }
        });
        Connection { jobs, address: shown }
    }

    /// Runs statements, again if the connection is lost meanwhile, until `patience` is over. They are told whether an earlier
    /// attempt may have been done.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnMut(&mut Client, bool) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, replied) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |session| {
            let _ = reply.send(session.run(patience, work));
        });
        let gone = || Error::Database {
            address: self.address.clone(),
            what: "the thread with its connection has ended".to_owned(),
        };
        self.jobs.send(job).map_err(|_| gone())?;
        replied.recv().map_err(|_| gone())?
    }
}

impl Session {
    pub(crate) fn run<T>(
        &mut self,
        patience: Duration,
        mut work: impl FnMut(&mut Client, bool) -> Result<T, DbError>,
    ) -> Result<T, Error> {
        let until = Instant::now() + patience;
        let mut is_in_doubt = false;
        loop {
            let tried = match self.connect() {
                Ok(client) => {
                    let done = work(client, is_in_doubt);
                    // What failed may have been done all the same.
                    is_in_doubt |= done.is_err();
                    done
                }
                Err(ConnectError::Final(error)) => return Err(error),
                Err(ConnectError::Database(error)) => Err(error),
            };
            let error = match tried {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            tracing::debug!(%error, "postgres");
            if !may_pass(&error) || Instant::now() >= until {
                return Err(self.explain(&error));
            }
            self.client = None;
            thread::sleep(PAUSE);
        }
    }

    fn connect(&mut self) -> Result<&mut Client, ConnectError> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
            let mut client =
                self.address.config.connect(self.address.connector()).map_err(ConnectError::Database)?;
            let is_writing = matches!(self.access, Access::Write { .. });
            let format = prepare_schema(&mut client, &self.address.schema, is_writing)
                .map_err(ConnectError::Database)?;
            let Some(format) = format else {
                return Err(ConnectError::Final(Error::Missing { path: self.address.to_string().into() }));
            };
            if format > FORMAT && is_writing {
                return Err(ConnectError::Final(Error::TooNew {
                    path: self.address.to_string().into(),
                    found: u32::try_from(format).unwrap_or(u32::MAX),
                    supported: FORMAT.cast_unsigned(),
                }));
            }
            if self.access == (Access::Write { is_synced: false }) {
                client.batch_execute("set synchronous_commit to off").map_err(ConnectError::Database)?;
            }
            self.client = Some(client);
        }
        self.client.as_mut().ok_or_else(|| {
            ConnectError::Final(Error::Database {
                address: self.address.to_string(),
                what: "no connection".to_owned(),
            })
        })
    }

    fn explain(&self, error: &DbError) -> Error {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let advice = match self.address.withholds_password && cause.contains("password missing") {
            true => {
                "; `PGPASSWORD` is sent only to a host that is named outside of the project: by `--journal`, in the \
                 user's own `cuegate.toml`, or as `url = \"$NAME\"`"
            }
            false => "",
        };
        Error::Database { address: self.address.to_string(), what: format!("{error}{cause}{advice}") }
    }
}

enum ConnectError {
    /// Another attempt helps nothing.
    Final(Error),
    Database(DbError),
}

/// Whether the same may succeed a moment later: the server is away, starts, ends, or is busy.
fn may_pass(error: &DbError) -> bool {
    let Some(code) = error.code() else {
        // Not of the server: the connection. A wrong answer of it, and a certificate that is not trusted, stay wrong.
        let cause = std::error::Error::source(error);
        return error.is_closed()
            || cause.is_some_and(|cause| {
                cause
                    .downcast_ref::<std::io::Error>()
                    .is_some_and(|io| io.kind() != std::io::ErrorKind::InvalidData)
            });
    };
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CONNECTION_FAILURE,
        SqlState::CONNECTION_DOES_NOT_EXIST,
        SqlState::CONNECTION_EXCEPTION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ]
    .contains(code)
}
