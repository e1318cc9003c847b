//! Shares what is read of the journal between all requests and streams, and wakes the streams when it changes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cuegate_journal::RunId;
use cuegate_observe::{Problem, Project, RunReader, RunningCommand};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

/// How often the files of the journal are looked at while a stream is open.
const LOOK: Duration = Duration::from_millis(40);
/// How often what agents do is read while a stream of their run is open.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// The time after which a run that nobody reads is forgotten.
const KEPT: Duration = Duration::from_secs(60);
/// How many lines of a running validator are shown.
const OUTPUT_LINES: usize = 20;

/// A run that is being read.
pub(crate) struct SharedRun {
    reader: Mutex<RunReader>,
    /// What is in progress, and when it was read.
    working: Mutex<Option<(Instant, Value)>>,
    used: Mutex<Instant>,
}

/// What all requests share.
pub(crate) struct Hub {
    project: Arc<dyn Project>,
    runs: Mutex<HashMap<RunId, Arc<SharedRun>>>,
    changes: watch::Sender<u64>,
    wanted: Notify,
}

impl Hub {
    pub(crate) fn new(project: Arc<dyn Project>) -> Hub {
        Hub { project, runs: Mutex::default(), changes: watch::Sender::new(0), wanted: Notify::new() }
    }

    /// Calls `read` with the newest state of a run.
    pub(crate) fn with_run<T>(&self, run: &RunId, read: impl FnOnce(&RunReader) -> T) -> Result<T, Problem> {
        let shared = self.shared(run);
        let mut reader = lock(&shared.reader);
        reader.refresh(self.project.observer())?;
        Ok(read(&reader))
    }

    /// What is in progress in a run, as `cuegate/working/v1`. It is read at most four times a second, for all streams.
    pub(crate) fn working(&self, run: &RunId) -> Result<Value, Problem> {
        let shared = self.shared(run);
        let mut known = lock(&shared.working);
        if let Some((at, value)) = known.as_ref()
            && at.elapsed() < TICK / 2
        {
            return Ok(value.clone());
        }
        let mut reader = lock(&shared.reader);
        reader.refresh(self.project.observer())?;
        let working = reader.working(self.project.observer(), OUTPUT_LINES);
        let value = json!({
            "schema": "cuegate/working/v1",
            "run": run.as_str(),
            "working": working.iter().map(working_json).collect::<Vec<_>>(),
        });
        *known = Some((Instant::now(), value.clone()));
        Ok(value)
    }

    fn shared(&self, run: &RunId) -> Arc<SharedRun> {
        let mut runs = lock(&self.runs);
        runs.retain(|known, shared| {
            known == run || lock(&shared.used).elapsed() < KEPT || Arc::strong_count(shared) > 1
        });
        if let Some(shared) = runs.get(run) {
            *lock(&shared.used) = Instant::now();
            return Arc::clone(shared);
        }
        let reader = self.project.observer().run(run);
        let shared = Arc::new(SharedRun {
            reader: Mutex::new(reader),
            working: Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        runs.insert(run.clone(), Arc::clone(&shared));
        shared
    }

    /// Forgets runs that nobody reads, so that an idle server needs little memory.
    fn forget(&self) {
        lock(&self.runs).retain(|_, shared| lock(&shared.used).elapsed() < KEPT);
    }

    /// Wakes whenever a record was written.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        let receiver = self.changes.subscribe();
        self.wanted.notify_one();
        receiver
    }

    /// Looks for changes while a stream is open; sleeps otherwise.
    pub(crate) async fn watch_journal(self: Arc<Self>) {
        let mut version = self.project.observer().version();
        loop {
            if self.changes.receiver_count() == 0 {
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = tokio::time::sleep(KEPT) => self.forget(),
                }
                continue;
            }
            tokio::time::sleep(LOOK).await;
            let now = self.project.observer().version();
            if now != version {
                version = now;
                self.changes.send_modify(|count| *count += 1);
            }
        }
    }
}

fn working_json(working: &RunningCommand) -> Value {
    let activities: Vec<Value> =
        working.activities.iter().filter_map(|done| serde_json::to_value(done).ok()).collect();
    json!({
        "command": working.command.to_string(),
        "is_ask": working.is_ask,
        "name": working.name,
        "detail": working.detail,
        "from": cuegate_view::format_rfc3339(working.from_ms),
        "activities": activities,
        "output": working.output.iter().map(|line| cuegate_view::clean_to_one_line(line)).collect::<Vec<_>>(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
