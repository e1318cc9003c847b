//! A script: its answers and the conditions of each.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{AskKind, Request, Usage};

/// The parsed and validated answers of a scripted agent.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) entries: Vec<Entry>,
    pub(super) on_exhausted: OnExhausted,
    /// Whether this is a mock scenario, where the persona `conductor` answers judge asks. Its entries have priority for
    /// judge asks, because an entry of the step's own persona is work.
    pub(super) scenario: bool,
    pub(super) digest: String,
    pub(super) file_name: String,
}

impl Script {
    /// A digest of the script's text: 12 lower-case hexadecimal digits, the same in every version.
    ///
    /// Receipts start with it, so that receipts of other scripts are recognised.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The name of the script's file.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// One answer, as in the script file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub step: Option<Steps>,
    pub persona: Option<String>,
    pub kind: Option<AskKind>,
    pub output: Option<Value>,
    pub text: Option<String>,
    /// Replaces `output` and `text` at these steps.
    #[serde(default)]
    pub at: BTreeMap<String, StepAnswer>,
    #[serde(default)]
    pub writes: Vec<FileWrite>,
    #[serde(default)]
    pub runs: Vec<String>,
    #[serde(default)]
    pub usage: ScriptedUsage,
    #[serde(default)]
    pub delay_ms: u64,
    pub error: Option<ScriptedFault>,
    pub resets_in_ms: Option<u64>,
    /// 0 = unlimited.
    #[serde(default = "default_entry_times")]
    pub times: u32,
    pub blocked: Option<String>,
    pub asks_user: Option<String>,
    pub session: Option<String>,
}

fn default_entry_times() -> u32 {
    1
}

impl Entry {
    /// Whether it first asks a person and answers in the next ask that it matches.
    pub fn asks_first(&self) -> bool {
        self.asks_user.is_some()
            && (self.output.is_some() || !self.text.as_deref().unwrap_or_default().is_empty())
    }

    /// How many asks it serves; 0 = any number.
    pub fn uses(&self) -> u64 {
        u64::from(self.times) * if self.asks_first() { 2 } else { 1 }
    }

    /// Whether all given conditions match. An entry without conditions matches every ask.
    pub fn matches(&self, request: &Request) -> bool {
        // A judge is also found by the step that it is for, if the entry names a kind of ask.
        let subject = request.subject.as_ref().filter(|_| self.kind.is_some());
        let is_for = |steps: &Steps| {
            steps.0.contains(&request.step) || subject.is_some_and(|subject| steps.0.contains(subject))
        };
        self.step.as_ref().is_none_or(is_for)
            && self.kind.is_none_or(|kind| kind == request.kind)
            && self.persona.as_ref().is_none_or(|wanted| {
                goes_by(request.persona.as_deref(), wanted) || request.persona_names.contains(wanted)
            })
    }

    /// The structured answer and the text at a step.
    pub fn last_answer(&self, step: &str) -> (Option<&Value>, &str) {
        let (output, text) =
            self.at.get(step).map_or((&self.output, &self.text), |said| (&said.output, &said.text));
        (output.as_ref(), text.as_deref().unwrap_or_default())
    }

    /// Whether it writes files or runs commands.
    pub fn acts(&self) -> bool {
        !self.writes.is_empty() || !self.runs.is_empty()
    }

    /// Whether it needs a child process, so that it can be killed while it works.
    pub fn needs_program(&self) -> bool {
        self.acts() || matches!(self.error, Some(ScriptedFault::Hang | ScriptedFault::Crashed))
    }
}

/// The steps of an entry: one, or any of several.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps(pub Vec<String>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Steps, D::Error> {
        struct StepsVisitor;

        impl<'de> Visitor<'de> for StepsVisitor {
            type Value = Steps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a step, or a list of such names")
            }

            fn visit_str<E>(self, step: &str) -> Result<Steps, E> {
                Ok(Steps(vec![step.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Steps, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = sequence.next_element::<String>()? {
                    steps.push(step);
                }
                Ok(Steps(steps))
            }
        }

        deserializer.deserialize_any(StepsVisitor)
    }
}

/// The output and text of an entry at a step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepAnswer {
    pub output: Option<Value>,
    pub text: Option<String>,
}

/// Whether a name means the persona: its key or, if that is a path, the file stem.
fn goes_by(persona: Option<&str>, wanted: &str) -> bool {
    let Some(persona) = persona else { return false };
    if persona == wanted {
        return true;
    }
    let file = persona.rsplit(['/', '\\']).next().unwrap_or(persona);
    let is_path = file.len() < persona.len() || file.ends_with(".md");
    is_path && file.rsplit_once('.').map_or(file, |(stem, _)| stem) == wanted
}

/// A file to write before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWrite {
    pub path: String,
    pub content: String,
}

/// [`Usage`] in a script, without unknown fields.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedUsage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    pub cost_usd: Option<f64>,
}

impl From<ScriptedUsage> for Usage {
    fn from(ScriptedUsage { input_tokens, output_tokens, cost_usd }: ScriptedUsage) -> Usage {
        Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() }
    }
}

/// A fault instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScriptedFault {
    RateLimited,
    Overloaded,
    Network,
    Auth,
    Refused,
    ContextOverflow,
    /// The agent does not have the session that it is to continue.
    SessionLost,
    Crashed,
    Timeout,
    Malformed,
    Hang,
}

/// What an ask gets if no entry is left for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnExhausted {
    #[default]
    Fail,
    RepeatLast,
}

/// FNV-1a, 64 bits. The hashes of the standard library may change between versions; receipts and session ids must not.
pub(super) fn hash_parts(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // 0xff is in no UTF-8 text: `["ab", "c"]` and `["a", "bc"]` differ.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The script's name in receipts.
pub(super) fn digest_of(text: &str) -> String {
    let mut digest = format!("{:016x}", hash_parts(&[text]));
    digest.truncate(12);
    digest
}

#[cfg(test)]
mod tests {
    use super::{digest_of, goes_by};

    #[test]
    fn personas_match_by_key_and_by_file_stem() {
        for (persona, wanted, expected) in [
            (Some("coder"), "coder", true),
            (Some("coder"), "code", false),
            (Some("../personas/coder.md"), "coder", true),
            (Some("../personas/coder.md"), "../personas/coder.md", true),
            (Some("../personas/coder.md"), "personas", false),
            (Some("coder.md"), "coder", true),
            (Some("agents/test-coder"), "test-coder", true),
            (Some("coder.v2"), "coder", false),
            (None, "coder", false),
        ] {
            assert_eq!(goes_by(persona, wanted), expected, "{persona:?} by {wanted}");
        }
    }

    #[test]
    fn digests_never_change() {
        assert_eq!(digest_of("answers: []\n"), "09251cef14fc");
    }
}
