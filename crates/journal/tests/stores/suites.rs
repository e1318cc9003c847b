//! Runs the conformance suite for each implementation.

use cuegate_journal::Journal;
use cuegate_journal::memory::MemoryJournal;
use cuegate_journal::sqlite::{Durability, Options, SqliteJournal};
use tempfile::TempDir;

mod memory {
    use super::*;

    struct Lender(MemoryJournal);

    impl Lender {
        fn journal(&self) -> &dyn Journal {
            &self.0
        }
    }

    crate::conformance::conformance!(Lender(MemoryJournal::default()));
}

mod sqlite_synced {
    use super::*;
    crate::conformance::conformance!(SqliteLender::new(Durability::Synced));
}

mod sqlite_relaxed {
    use super::*;
    crate::conformance::conformance!(SqliteLender::new(Durability::Relaxed));
}

struct SqliteLender {
    journal: SqliteJournal,
    _folder: TempDir,
}

impl SqliteLender {
    fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = SqliteJournal::open(folder.path().join("journal.db"), Options { durability }).unwrap();
        Self { journal, _folder: folder }
    }

    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}
