//! The project: its runs, and whether anything changed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use cuegate_flow::model::BlobRef;
use cuegate_journal::{
    Journal, Liveness as Owning, Owner, RunId, RunSummary,
    log::{JournalVersion, RunVersion, map_on_threads},
};
use cuegate_runner::{Error, StateDir, read_stored_text};
use cuegate_view::{Liveness, RunRow, runs_json, sort_runs};
use serde_json::Value;

use crate::{row_file::read_kept_row, run::RunReader};

/// Reads the runs of one project.
pub struct Observer {
    home: StateDir,
    journal: Mutex<Option<Arc<dyn Journal>>>,
    /// The row of each run with the state that it was made of.
    rows: Mutex<HashMap<RunId, KnownRow>>,
}

/// A row, and what its run looked like.
#[derive(Clone)]
struct KnownRow {
    version: Option<RunVersion>,
    live: Liveness,
    row: RunRow,
}

/// The runs of a project.
#[derive(Debug, Default)]
pub struct RunList {
    /// Those that can be read, the newest first.
    pub rows: Vec<RunRow>,
    /// Those that cannot, and why.
    pub damaged: Vec<(RunId, Error)>,
}

impl Observer {
    /// Observes the runs in a state dir, which may not exist yet.
    pub fn new(home: StateDir) -> Observer {
        Observer { home, journal: Mutex::default(), rows: Mutex::default() }
    }

    /// The state dir.
    pub fn home(&self) -> &StateDir {
        &self.home
    }

    /// The journal; `None` if there is none yet.
    ///
    /// # Errors
    /// When it exists and cannot be read.
    pub fn journal(&self) -> Result<Option<Arc<dyn Journal>>, Error> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if journal.is_none() {
            *journal = self.home.open_runs(None)?;
        }
        Ok(journal.clone())
    }

    /// The version of the journal, which another one follows with each change. No run is opened for it.
    pub fn version(&self) -> JournalVersion {
        match self.home.shared() {
            Some(shared) => JournalVersion::shared(shared.changes()),
            None => JournalVersion::of(&self.home.runs()),
        }
    }

    /// The runs with records, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn summaries(&self) -> Result<Vec<RunSummary>, Error> {
        let Some(journal) = self.journal()? else { return Ok(Vec::new()) };
        let runs = journal.runs()?.into_iter();
        Ok(runs.filter(|run| run.has_records || run.damage.is_some()).collect())
    }

    /// All runs as `cuegate/runs/v1`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn runs_json(&self) -> Result<Value, Error> {
        let RunList { rows, damaged } = self.list_runs()?;
        let damaged: Vec<(String, String)> =
            damaged.into_iter().map(|(run, error)| (run.to_string(), error.to_string())).collect();
        Ok(runs_json(&rows, &damaged))
    }

    /// All runs, the newest first. The records of a run are read again only if it has new ones or its process ended, and
    /// nobody has kept its row.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn list_runs(&self) -> Result<RunList, Error> {
        let mut list = RunList::default();
        for row in map_on_threads(&self.summaries()?, |summary| self.row_of(summary)) {
            match row {
                Ok(row) => list.rows.push(row),
                Err(damaged) => list.damaged.push(damaged),
            }
        }
        sort_runs(&mut list.rows);
        Ok(list)
    }

    fn row_of(&self, summary: &RunSummary) -> Result<RunRow, (RunId, Error)> {
        let live = liveness_of_owner(summary.owner.as_ref());
        // Looked at before the records are read.
        let version = summary.version.or_else(|| RunVersion::of(&self.home.run(&summary.run)));
        let known = {
            let cache = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let is_same =
                |known: &&KnownRow| version.is_some() && known.version == version && known.live == live;
            cache.get(&summary.run).filter(is_same).cloned()
        };
        let kept = || match live {
            Liveness::None => read_kept_row(&self.home, &summary.run, version?),
            _ => None,
        };
        let row = match known.map(|known| known.row).or_else(kept) {
            Some(row) => row,
            None => {
                let mut reader = self.run(&summary.run);
                reader.refresh(self).map_err(|error| (summary.run.clone(), error))?;
                RunRow::of(&reader.view())
            }
        };
        let mut cache = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(summary.run.clone(), KnownRow { version, live, row: row.clone() });
        Ok(row)
    }

    /// A reader of a run, which has read nothing yet.
    pub fn run(&self, run: &RunId) -> RunReader {
        RunReader::new(run.clone())
    }

    /// Finds the run with this id or unique prefix; `last` is the newest run of this project, else of the journal.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn find(&self, typed: &str) -> Result<Option<RunId>, Error> {
        let runs: Vec<RunId> = self.summaries()?.into_iter().map(|summary| summary.run).collect();
        if typed == "last" {
            let own = runs.iter().find(|run| self.home.has_files_of(run)).cloned();
            return Ok(own.or_else(|| runs.into_iter().next()));
        }
        if let Some(run) = runs.iter().find(|run| run.as_str() == typed) {
            return Ok(Some(run.clone()));
        }
        let mut matching =
            runs.into_iter().filter(|run| !typed.is_empty() && run.as_str().starts_with(typed));
        let first = matching.next();
        Ok(first.filter(|_| matching.next().is_none()))
    }

    /// A text that a record of a run names; `None` if it is missing or not UTF-8.
    pub fn text(&self, run: &RunId, blob: &BlobRef) -> Option<String> {
        read_stored_text(&*self.journal().ok()??, run, blob).ok()
    }
}

/// Whether the process that holds the lease of a run lives.
pub(crate) fn liveness_of_owner(owner: Option<&Owner>) -> Liveness {
    match owner.map(Owner::liveness) {
        None => Liveness::None,
        Some(Owning::Dead) => Liveness::Dead,
        Some(Owning::Alive | Owning::Unknown) => Liveness::Alive,
    }
}

#[cfg(test)]
mod tests {
    use cuegate_journal::{
        NewRecord, Owner,
        log::{Durability, LogJournal, Options},
    };

    use super::*;

    /// Writes a run that waits for a person.
    fn write(home: &StateDir, name: &str) {
        let journal = LogJournal::open(home.runs(), Options { durability: Durability::Relaxed }).unwrap();
        let run: RunId = name.parse().unwrap();
        journal.create(&run, 1).unwrap();
        let lease = journal.acquire(&run, &Owner::current()).unwrap();
        let waiting =
            r#"{"v":1,"events":[{"event":"suspended","waiting":{"kind":"person","detail":"Which?"}}]}"#;
        let record = NewRecord { at_ms: 1, body: waiting.as_bytes(), blobs: &[], consumes: &[] };
        journal.append(&lease, 0, record).unwrap();
        journal.release(&lease).unwrap();
    }

    #[test]
    fn runs_are_seen_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let home = StateDir::create(dir.path()).unwrap();
        let observer = Observer::new(home.clone());
        assert_eq!(observer.runs_json().unwrap()["runs"], serde_json::json!([]));
        assert_eq!(observer.find("last").unwrap(), None);
        let before = observer.version();
        for name in ["abcdefgh", "abcdwxyz"] {
            write(&home, name);
        }
        assert_ne!(observer.version(), before);
        let runs = observer.runs_json().unwrap();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
        assert_eq!(runs["runs"][0]["waiting"], "person");
        // A prefix has to be that of one run.
        let found = |typed: &str| observer.find(typed).unwrap().map(|run| run.to_string());
        assert_eq!(found("abcde").as_deref(), Some("abcdefgh"));
        assert_eq!(found("abcd"), None);
        assert_eq!(found(""), None);
        assert!(found("last").is_some());
        let mut reader = observer.run(&"abcdefgh".parse().unwrap());
        assert!(reader.refresh(&observer).unwrap(), "it has a record");
        assert!(!reader.refresh(&observer).unwrap(), "and no more");
        assert!(reader.working(&observer, 5).is_empty(), "no process drives it");
    }
}
