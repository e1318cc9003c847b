//! What the answers of an older agent are in the newer generation.

use serde_json::{Value, json};

use super::super::check_flow::RESULT;
use super::fallback::First;
use super::schemas::StepSchema;
use super::words::Words;

/// What the answers of steps have become.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The newer steps, in order.
    pub(super) steps: Vec<Speaking>,
}

/// How the gates of the older definition read answers.
pub trait OlderAnswers {
    /// The structured answer in a text that a step was answered with.
    fn object(&self, step: &str, text: &str) -> Option<Value>;

    /// Whether the check of this name passes with an answer.
    fn passes(&self, check: &str, output: Option<&Value>, text: &str) -> bool;
}

/// A newer step, and what its agent says.
#[derive(Debug, Clone)]
pub(super) struct Speaking {
    /// The step.
    pub(super) id: String,
    /// What scripts call the older step that it stands for.
    pub(super) of: String,
    /// How answers change.
    pub(super) says: Says,
}

/// How the answers of a step change.
#[derive(Debug, Clone)]
pub(super) enum Says {
    /// Their words do.
    Words(Words),
    /// Work that was done, whatever was said of it, says this word.
    Done(&'static str),
    /// A check says these words.
    Check {
        /// What the check was called in the older flow.
        check: String,
        /// What it says when it passes.
        pass: &'static str,
        /// What it says when not.
        fail: &'static str,
        /// What else it says that may be any text.
        texts: Vec<&'static str>,
    },
}

/// What an entry of a script says: structured, and as text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) output: Option<Value>,
    pub(super) text: Option<String>,
}

impl Answers {
    /// Of steps whose words have changed.
    pub(super) fn of_words(schemas: Vec<StepSchema>, first: Option<&First>) -> Answers {
        let mut steps = Vec::new();
        for schema in schemas {
            if let Some(First { id, copy: Some(copy), .. }) = first
                && *id == schema.id
            {
                let says = Says::Words(schema.words.clone());
                steps.push(Speaking { id: copy.clone(), of: id.clone(), says });
            }
            let says = Says::Words(schema.words);
            steps.push(Speaking { id: schema.id.clone(), of: schema.id, says });
        }
        Answers { steps }
    }

    /// Whether several steps stand for the same asks.
    pub(super) fn has_copies(&self) -> bool {
        let asks = |step: &Speaking| (step.of.clone(), matches!(step.says, Says::Check { .. }));
        let distinct: std::collections::BTreeSet<_> = self.steps.iter().map(asks).collect();
        distinct.len() < self.steps.len()
    }

    /// Whether checks are asks of a kind of their own in the older scripts.
    pub(super) fn has_checks(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.says, Says::Check { .. }))
    }
}

impl Speaking {
    /// Whether an older ask of this kind is one of this step. Only check flows tell the asks of a step apart by it.
    pub(super) fn is_asked(&self, kind: Option<&str>) -> bool {
        match (&self.says, kind) {
            (Says::Words(_), _) | (_, None) => true,
            (Says::Done(_), Some(kind)) => kind == "work",
            (Says::Check { .. }, Some(kind)) => kind == "check",
        }
    }

    /// What is said here instead.
    pub(super) fn said(&self, said: &Said, older: &dyn OlderAnswers) -> Said {
        match &self.says {
            Says::Words(words) => in_words(words, &self.of, said, older),
            Says::Done(word) => {
                let mut output = object(said.output.clone());
                output["next_action"] = json!({"action": word});
                // What was said goes on being what later prompts quote.
                let silent = said.text.as_ref().is_none_or(String::is_empty);
                if let (Some(all), true, None) = (&said.output, silent, output.get("summary")) {
                    output["summary"] = json!(all.to_string());
                }
                Said { output: Some(output), text: said.text.clone() }
            }
            Says::Check { check, pass, fail, texts } => {
                let text = said.text.as_deref().unwrap_or_default();
                let word = if older.passes(check, said.output.as_ref(), text) { pass } else { fail };
                let mut output = json!({RESULT: word});
                let found = said.output.clone().or_else(|| older.object(check, text)).unwrap_or_default();
                for key in texts {
                    if let Some(value) = found.get(key).filter(|value| value.is_string()) {
                        output[key] = value.clone();
                    }
                }
                Said { output: Some(output), text: said.text.clone() }
            }
        }
    }
}

fn object(value: Option<Value>) -> Value {
    value.filter(Value::is_object).unwrap_or_else(|| json!({}))
}

fn in_words(words: &Words, step: &str, said: &Said, older: &dyn OlderAnswers) -> Said {
    let say = |output: &Value| {
        let newer = words.said(words.field.get(output)?)?;
        let mut changed = output.clone();
        words.field.set(&mut changed, Value::from(newer));
        Some(changed)
    };
    let Some(output) = &said.output else {
        let text = said.text.clone().unwrap_or_default();
        let found = older.object(step, &text).and_then(|found| say(&found));
        // A text that is an answer as a whole stays one.
        return match found {
            None => said.clone(),
            Some(newer) if serde_json::from_str::<Value>(&text).is_ok() => {
                Said { output: None, text: Some(newer.to_string()) }
            }
            Some(newer) => Said { output: Some(newer), text: Some(text) },
        };
    };
    Said { output: say(output).or_else(|| Some(output.clone())), text: said.text.clone() }
}
