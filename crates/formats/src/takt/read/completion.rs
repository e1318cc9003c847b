//! Reads `completion_retry`: how often a judge may have the rest of the work done.

use cuegate_flow::diagnostics::Span;

use super::sections::{FacetText, Section};
use super::step::StepReader;
use crate::takt::spellings::find_renamed_entry;
use crate::values::json::Fields;

/// The most retries of a step that does not say it, as in TAKT.
const RETRIES: u32 = 4;

/// How the work of a step is completed.
pub(crate) struct CompletionRetry {
    /// How the rest is done; `None` if it could not be read.
    pub(crate) instruction: Option<FacetText>,
    /// The retries that are made in any case.
    pub(crate) min: u32,
    /// The most retries.
    pub(crate) max: u32,
    /// The place of that number.
    pub(crate) max_span: Option<Span>,
}

impl StepReader<'_, '_, '_> {
    /// Reads `completion_retry`. `is_left_out` says that the step is a member or has a `team_leader`: then its edges do not
    /// lead on from an answer of its own, and nothing is retried.
    pub(super) fn read_completion(
        &self,
        fields: &Fields<'_, '_>,
        is_left_out: bool,
    ) -> Option<CompletionRetry> {
        let (key, entry) = find_renamed_entry(fields, "completion_retry", &["review_completion"]);
        if let Some(entry) = entry.filter(|_| is_left_out) {
            let statement = "no judge looks whether the work of a member, or of a `team_leader`, is complete";
            self.notes.approximate(entry.key_span, statement);
            return None;
        }
        let completion = fields.object(key)?;
        let written = completion.count("max_retry", 0);
        let min = completion.count("min_retry", 0).map_or(0, |(min, _)| min);
        let text = completion.filled("retry_instruction");
        if text.is_none() && completion.nullable("retry_instruction").is_none() {
            completion.missing("retry_instruction");
        }
        let instruction =
            text.and_then(|text| self.sections.resolve(Section::Instructions, text, &completion));
        completion.finish();
        let max = written.map_or(RETRIES, |(max, _)| max).max(min);
        Some(CompletionRetry { instruction, min, max, max_span: written.map(|(_, span)| span) })
    }
}
