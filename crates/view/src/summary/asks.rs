//! Counts of asks by kind.

use cuegate_engine::AskKind;

/// Answered asks by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskCounts {
    /// The work of a step.
    pub work: u64,
    /// A report that the step has to write.
    pub report: u64,
    /// A decision between outcomes.
    pub judge: u64,
    /// A check of another step's work.
    pub check: u64,
    /// A retry after an invalid answer.
    pub repair: u64,
    /// Work after a failed validator.
    pub remedy: u64,
}

impl AskCounts {
    pub(crate) fn add(&mut self, kind: AskKind) {
        match kind {
            AskKind::Work => self.work += 1,
            AskKind::Report => self.report += 1,
            AskKind::Judge => self.judge += 1,
            AskKind::Check => self.check += 1,
            AskKind::Repair => self.repair += 1,
            AskKind::Remedy => self.remedy += 1,
        }
    }

    /// The count of each kind, in printing order, by its name in JSON.
    pub fn kinds(&self) -> [(&'static str, u64); 6] {
        [
            ("work", self.work),
            ("report", self.report),
            ("judge", self.judge),
            ("check", self.check),
            ("repair", self.repair),
            ("remedy", self.remedy),
        ]
    }

    /// The number of all asks.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, n)| n).sum()
    }
}
