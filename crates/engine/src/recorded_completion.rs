//! Completions as records keep them, so that every decision can be made again.

use cuegate_flow::model::BlobRef;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use serde_json::Value;

use crate::{
    completion::{Completion, Start},
    event::Event,
    record::UnreadableRecord,
};

/// Longer texts are kept by digest, beside the record. Most of them are there already, as the texts of its events.
const INLINE_MAX: usize = 120;
/// The key of an object in place of such a text. No other object of a completion has a text under a key like this.
const BY_DIGEST: &str = "$text";

/// A completion as JSON. Absent values and empty lists are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCompletion {
    /// The JSON; `None` for a start, which its first event says in full.
    pub json: Option<Value>,
    /// The texts that it names by digest.
    pub texts: Vec<Vec<u8>>,
}

impl RecordedCompletion {
    /// That of a completion.
    pub fn of(completion: &Completion) -> RecordedCompletion {
        let mut texts = Vec::new();
        let json = match completion {
            Completion::Start(_) => None,
            other => {
                let json = serde_json::to_value(other);
                let mut json = json.expect("a completion is plain data and can be written as JSON");
                extract_long_texts(&mut json, &mut texts);
                Some(json)
            }
        };
        RecordedCompletion { json, texts }
    }
}

impl Completion {
    /// Reads the completion of a record. `texts` looks up what it names by digest.
    ///
    /// # Errors
    /// When it is missing or damaged, or a text is missing.
    pub fn of_record(
        json: Option<Value>,
        events: &[Event],
        texts: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Completion, UnreadableRecord> {
        let Some(mut json) = json else {
            return match events.first() {
                Some(Event::RunStarted(started)) => {
                    Ok(Completion::Start(Box::new(Start { started: (**started).clone() })))
                }
                _ => Err(UnreadableRecord::NoCompletion),
            };
        };
        insert_long_texts(&mut json, texts)?;
        Ok(serde_json::from_value(json)?)
    }
}

/// Replaces long texts by their digests, and removes absent values and empty lists.
fn extract_long_texts(json: &mut Value, texts: &mut Vec<Vec<u8>>) {
    match json {
        Value::Object(object) => {
            object
                .retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
            object.values_mut().for_each(|value| extract_long_texts(value, texts));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| extract_long_texts(value, texts)),
        Value::String(text) if text.len() > INLINE_MAX => {
            let bytes = std::mem::take(text).into_bytes();
            *json = serde_json::json!({ BY_DIGEST: BlobRef::for_bytes(&bytes).digest });
            texts.push(bytes);
        }
        _ => {}
    }
}

fn insert_long_texts(
    json: &mut Value,
    texts: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<(), UnreadableRecord> {
    match json {
        Value::Object(object) => {
            if let (1, Some(Value::String(digest))) = (object.len(), object.get(BY_DIGEST)) {
                let missing = || UnreadableRecord::NoText { digest: digest.clone() };
                *json = Value::String(texts(digest).ok_or_else(missing)?);
                return Ok(());
            }
            object.values_mut().try_for_each(|value| insert_long_texts(value, texts))
        }
        Value::Array(list) => list.iter_mut().try_for_each(|value| insert_long_texts(value, texts)),
        _ => Ok(()),
    }
}

/// Writes a value of an agent as JSON in a text: nothing in it is taken for a part of the completion.
pub(crate) fn write_json_text<S: Serializer>(value: &Option<Value>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.serialize_some(&value.to_string()),
        None => to.serialize_none(),
    }
}

/// Reads what [`write_json_text`] wrote.
pub(crate) fn read_json_text<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Value>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| serde_json::from_str(&text).map_err(D::Error::custom)).transpose()
}
