//! Parses a script: YAML or JSON, with `answers` or as an array of mock scenario entries.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Options, Spanned};

use super::script::{Entry, OnExhausted, Script, digest_of};
use crate::AskKind;

/// The maximum size of a script in bytes, as for definitions.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// An error in a script, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", format_location(file, *line, *column))]
pub struct ScriptError {
    /// The file name.
    pub file: String,
    /// One-based line, if known.
    pub line: Option<u64>,
    /// One-based column in characters, if known.
    pub column: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

fn format_location(file: &str, line: Option<u64>, column: Option<u64>) -> String {
    let numbers = [line, column].into_iter().flatten().map(|number| format!("{number}:"));
    format!("{file}:{} ", numbers.collect::<String>())
}

/// A script with `answers`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    answers: Vec<Spanned<Entry>>,
    #[serde(default)]
    on_exhausted: OnExhausted,
}

/// An entry of a mock scenario.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    persona: Option<String>,
    #[serde(default)]
    status: Status,
    content: String,
    structured_output: Option<Value>,
}

/// Every status but `blocked` means that the agent answered; the text of the answer decides the outcome.
#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Done,
    Blocked,
    Approved,
    Rejected,
    Improve,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Returns the first error: syntax, an unknown field, a wrong type or an unknown value.
    pub fn parse(text: &str, file_name: &str) -> Result<Script, ScriptError> {
        let reader = Reader { file_name };
        if text.len() > BYTES_MAX {
            return Err(reader.error(format!("a script of {} bytes is longer than {BYTES_MAX}", text.len())));
        }
        // The root decides the shape. Reading it first keeps error messages specific, which an untagged enum would not.
        let (entries, on_exhausted, scenario) = match reader.read::<Root>(text)? {
            Root::Mapping => {
                let document: Document = reader.read(text)?;
                for answer in &document.answers {
                    reader.validate(answer)?;
                }
                let entries = document.answers.into_iter().map(|answer| answer.value).collect();
                (entries, document.on_exhausted, false)
            }
            Root::Sequence => {
                let scenes: Vec<Scene> =
                    reader.read(text).map_err(|error| reader.other_shape(text, error))?;
                (scenes.into_iter().map(Entry::from).collect(), OnExhausted::Fail, true)
            }
        };
        let (digest, file_name) = (digest_of(text), file_name.to_owned());
        Ok(Script { entries, on_exhausted, scenario, digest, file_name })
    }
}

impl From<Scene> for Entry {
    fn from(scene: Scene) -> Entry {
        let judges = scene.persona.as_deref() == Some("conductor");
        Entry {
            kind: judges.then_some(AskKind::Judge),
            persona: scene.persona.filter(|_| !judges),
            blocked: (scene.status == Status::Blocked).then(|| scene.content.clone()),
            text: Some(scene.content),
            output: scene.structured_output,
            times: 1,
            ..Entry::default()
        }
    }
}

/// The root of the text.
enum Root {
    Mapping,
    Sequence,
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Root, D::Error> {
        struct RootVisitor;

        impl<'de> Visitor<'de> for RootVisitor {
            type Value = Root;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping with `answers`, or an array of scenario entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Root, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Root::Mapping)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Root, A::Error> {
                while sequence.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Root::Sequence)
            }
        }

        deserializer.deserialize_any(RootVisitor)
    }
}

struct Reader<'a> {
    file_name: &'a str,
}

impl Reader<'_> {
    fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, ScriptError> {
        serde_saphyr::from_str_with_options(text, build_yaml_options())
            .map_err(|error| self.translate(&error))
    }

    /// Rules that the types do not express.
    fn validate(&self, answer: &Spanned<Entry>) -> Result<(), ScriptError> {
        let entry = &answer.value;
        let (message, hint) = if entry.usage.cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            ("`cost_usd` is not an amount of money", "give a number of US dollars, 0 or more")
        } else if entry.resets_in_ms.is_some() && entry.error.is_none() {
            ("`resets_in_ms` has no effect without `error`", "add `error: rate_limited`")
        } else {
            return Ok(());
        };
        Err(ScriptError {
            line: Some(answer.referenced.line()),
            column: Some(answer.referenced.column()),
            hint: Some(hint.to_owned()),
            ..self.error(message)
        })
    }

    /// Suggests the key `answers` if the entries of a bare list are valid answers.
    fn other_shape(&self, text: &str, error: ScriptError) -> ScriptError {
        if self.read::<Vec<Entry>>(text).is_err() {
            return error;
        }
        ScriptError {
            hint: Some("a bare list holds scenario entries; put this one under the key `answers`".to_owned()),
            ..error
        }
    }

    fn error(&self, message: impl Into<String>) -> ScriptError {
        let file = self.file_name.to_owned();
        ScriptError { file, line: None, column: None, message: message.into(), hint: None }
    }

    fn translate(&self, error: &serde_saphyr::Error) -> ScriptError {
        use serde_saphyr::Error as Yaml;

        let error = error.without_snippet();
        let location = error.location();
        let (message, hint) = match error {
            Yaml::SerdeUnknownField { field, expected, .. } => {
                (format!("unknown field `{field}`"), Some(suggest_word(field, expected, "the fields are")))
            }
            Yaml::SerdeUnknownVariant { variant, expected, .. } => (
                format!("unknown value `{variant}`"),
                Some(suggest_word(variant, expected, "the values are")),
            ),
            Yaml::SerdeMissingField { field, .. } => (format!("the field `{field}` is missing"), None),
            Yaml::DuplicateMappingKey { key: Some(key), .. } => (format!("duplicate key `{key}`"), None),
            Yaml::MultipleDocuments { .. } => ("more than one document".to_owned(), None),
            Yaml::Eof { .. } => ("the document is empty".to_owned(), None),
            Yaml::Unexpected { expected, .. } => (format!("expected {}", plain_type(expected)), None),
            Yaml::InvalidScalar { ty, .. } => (format!("expected {}", plain_type(ty)), None),
            Yaml::SerdeInvalidType { unexpected, expected, .. } => {
                (format!("expected {expected}, not {unexpected}"), None)
            }
            Yaml::QuotingRequired { value, .. } => {
                (format!("expected a string, not `{value}`"), Some("quote it if it is a string".to_owned()))
            }
            Yaml::NonFiniteFloat { value, .. } => (format!("`{value}` is not a JSON number"), None),
            other => (without_place(&other.to_string(), location), None),
        };
        ScriptError {
            line: location.map(|at| at.line()),
            column: location.map(|at| at.column()),
            hint,
            ..self.error(message)
        }
    }
}

/// Translates the library's names of expected types.
fn plain_type(expected: &str) -> &str {
    match expected {
        "mapping start" => "a mapping",
        "sequence start" => "a list",
        "string scalar" | "scalar" => "a string",
        "u32" | "u64" => "a whole number, 0 or more",
        "floating point" => "a number",
        other => other,
    }
}

/// YAML 1.2, a superset of JSON. A number in place of a string is an error, because parsers read `content: 007`
/// differently. The library's budget limits depth, anchors and aliases.
fn build_yaml_options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        no_schema: true,
        budget: serde_saphyr::budget! { max_depth: 64, flow_nesting_limit: 64 },
    }
}

/// Removes the location, which has its own fields in the error.
fn without_place(message: &str, location: Option<serde_saphyr::Location>) -> String {
    let suffix = location.map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    suffix.and_then(|suffix| message.strip_suffix(&suffix)).unwrap_or(message).to_owned()
}

/// Suggests the nearest known word, preferring one with this prefix; lists all of them if none is near.
fn suggest_word(word: &str, known: &[&str], all: &str) -> String {
    let begins = |known: &str| word.len() > 2 && known.starts_with(word);
    let apart = |known: &str| if begins(known) { 0 } else { compute_edit_distance(word, known) };
    match known.iter().map(|known| (apart(known), known)).min() {
        Some((distance, nearest)) if distance <= 1 + nearest.len() / 3 => {
            format!("did you mean `{nearest}`?")
        }
        _ => {
            format!("{all} {}", known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The Levenshtein distance.
fn compute_edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    // Longer words are far from all known ones; truncating bounds the cost.
    for (i, a) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests;
