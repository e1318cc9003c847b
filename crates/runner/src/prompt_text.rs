//! Joins the parts of a prompt into the text that is sent.

use cuegate_engine::{FenceKey, PromptPart};
use cuegate_flow::model::BlobRef;
use cuegate_journal::{Journal, RunId};

use crate::error::Error;

/// Joins parts. Stored values are looked up in the journal; text that an agent wrote is fenced
/// with the key of the run.
///
/// # Errors
/// When the journal lacks a value or cannot be read.
pub fn join_prompt_parts(
    journal: &dyn Journal,
    run: &RunId,
    fence_key: &FenceKey,
    parts: &[PromptPart],
) -> Result<String, Error> {
    let mut text = String::new();
    for part in parts {
        match part {
            PromptPart::Text(part) => text.push_str(part),
            PromptPart::Blob { blob, fence } => {
                let value = read_stored_text(journal, run, blob)?;
                match fence {
                    None => text.push_str(&value),
                    Some(label) => text.push_str(&fence_key.enclose(label, &value)),
                }
            }
        }
    }
    Ok(text)
}

/// Reads a text that a record of a run names.
///
/// # Errors
/// When the journal lacks it or cannot be read.
pub fn read_stored_text(journal: &dyn Journal, run: &RunId, blob: &BlobRef) -> Result<String, Error> {
    let missing = || Error::Blob { digest: blob.digest.clone() };
    let digest = blob.digest.parse().map_err(|_| missing())?;
    let bytes = journal.blob(run, &digest)?.ok_or_else(missing)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
