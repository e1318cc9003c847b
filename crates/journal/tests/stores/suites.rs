//! Runs the conformance suite for each implementation.

use cuegate_journal::Journal;
use cuegate_journal::log::{Durability, LogJournal, Options};
use cuegate_journal::memory::MemoryJournal;
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

mod log_synced {
    use super::*;
    crate::conformance::conformance!(LogLender::new(Durability::Synced));
}

mod log_relaxed {
    use super::*;
    crate::conformance::conformance!(LogLender::new(Durability::Relaxed));
}

struct LogLender {
    journal: LogJournal,
    _folder: TempDir,
}

impl LogLender {
    fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = LogJournal::open(folder.path().join("runs"), Options { durability }).unwrap();
        Self { journal, _folder: folder }
    }

    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}
