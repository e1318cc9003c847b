//! The shapes of the values that extractors yield.

use crate::model::Extractor;

/// The shape of what an extractor yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractorShape {
    /// Text, or nothing.
    Text,
    /// A number, or nothing.
    Number,
    /// A list of texts.
    Texts,
    /// A list of objects with these fields.
    Objects(&'static [&'static str]),
    /// Always nothing.
    Nothing,
}

impl Extractor {
    /// The shape of its value.
    pub fn yields(self) -> ExtractorShape {
        match self {
            Extractor::Stdout
            | Extractor::Stderr
            | Extractor::ErrorOutput
            | Extractor::Diff
            | Extractor::BranchName
            | Extractor::RemoteStatus
            | Extractor::MergeStatus => ExtractorShape::Text,
            Extractor::ExitCode => ExtractorShape::Number,
            Extractor::ChangedFiles
            | Extractor::UntrackedFiles
            | Extractor::StagedFiles
            | Extractor::UnstagedFiles
            | Extractor::Files
            | Extractor::UnformattedFiles => ExtractorShape::Texts,
            Extractor::FailedTests => ExtractorShape::Objects(&["name", "error", "file"]),
            Extractor::TypeErrors => ExtractorShape::Objects(&["file", "line", "column", "message"]),
            Extractor::LintErrors => ExtractorShape::Objects(&["file", "line", "column", "message", "rule"]),
            Extractor::Unknown => ExtractorShape::Nothing,
        }
    }
}
