//! Reports and their versions. They are a fold of events, so that a run's files can be restored at any time.

use std::collections::BTreeMap;

use cuegate_flow::{Str, model::BlobRef};

/// All reports of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reports {
    by_name: BTreeMap<Str, Vec<ReportVersion>>,
}

/// A version of a report, written by one visit.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportVersion {
    /// The step that wrote it.
    pub step: Str,
    pub visit: u32,
    pub content: BlobRef,
    /// The record that entered its step, and the member. Versions are ordered by this, not by the order of answers.
    pub order: (u64, u16),
}

/// A file that holds a version of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportFile<'r> {
    /// The report's name.
    pub name: &'r Str,
    /// Its path in the run's folder: the newest version in `reports` under the report's name, older ones in
    /// `report-versions/N`, where N = 1 is the oldest.
    pub path: String,
    /// Its content.
    pub version: &'r ReportVersion,
}

impl Reports {
    /// Adds a version.
    pub fn write(&mut self, name: &Str, version: ReportVersion) {
        let versions = self.by_name.entry(name.clone()).or_default();
        let at = versions.partition_point(|known| known.order <= version.order);
        versions.insert(at, version);
    }

    /// The versions of a report, oldest first.
    pub fn versions(&self, name: &str) -> &[ReportVersion] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// All versions of all reports by name, oldest first.
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
