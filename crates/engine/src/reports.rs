//! Reports and their versions: a fold, so that the files of a run can be made again at any time.

use std::collections::BTreeMap;

use cuegate_flow::{Str, model::BlobRef};

/// All reports of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reports {
    by_name: BTreeMap<Str, Vec<Version>>,
}

/// A report as a visit wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The step that wrote it.
    pub step: Str,
    /// In which visit.
    pub visit: u32,
    /// What it says.
    pub content: BlobRef,
    /// The record that entered its step, and the member: later ones are newer, in whatever order members answer.
    pub order: (u64, u16),
}

/// A file that holds a version of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportFile<'r> {
    /// The report's name.
    pub name: &'r Str,
    /// Its path in the folder of the run: the newest below `reports` as it is called, an older one below
    /// `report-versions/N`, the oldest with N = 1.
    pub path: String,
    /// What it holds.
    pub version: &'r Version,
}

impl Reports {
    /// Adds a version.
    pub fn write(&mut self, name: &Str, version: Version) {
        let versions = self.by_name.entry(name.clone()).or_default();
        let at = versions.partition_point(|known| known.order <= version.order);
        versions.insert(at, version);
    }

    /// The versions of a report, the oldest first.
    pub fn versions(&self, name: &str) -> &[Version] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every version of every report, by name, the oldest first.
    pub fn files(&self) -> Vec<ReportFile<'_>> {
        let mut files = Vec::new();
        for (name, versions) in &self.by_name {
            for (at, version) in versions.iter().enumerate() {
                let path = match at + 1 == versions.len() {
                    true => format!("reports/{name}"),
                    false => format!("report-versions/{}/{name}", at + 1),
                };
                files.push(ReportFile { name, path, version });
            }
        }
        files
    }
}
