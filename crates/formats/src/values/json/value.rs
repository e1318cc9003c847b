//! A JSON value with spans.

use cuegate_flow::{Str, diagnostics::Span};
use serde_json::{Map, Number, Value};

/// A JSON value with its span.
#[derive(Debug, Clone)]
pub(crate) struct Json {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// The variants of a JSON value.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    /// `true` or `false`.
    Boolean(bool),
    Number(Number),
    /// A string.
    Text(Str),
    /// An array.
    List(Vec<Json>),
    /// An object as written: keys in order, including repeated ones.
    Object(Vec<Entry>),
}

/// A key of an object and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Str,
    pub(crate) key_span: Span,
    pub(crate) value: Json,
}

impl Entry {
    /// From the key to the end of the value.
    pub(crate) fn span(&self) -> Span {
        Span { end: self.value.span.end.max(self.key_span.end), ..self.key_span }
    }
}

impl Json {
    /// The value without spans. The last value of a repeated key wins.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Boolean(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(value) => Value::String(value.to_string()),
            Kind::List(items) => Value::Array(items.iter().map(Json::to_value).collect()),
            Kind::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.to_string(), entry.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// The value at a JSON pointer.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Json> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |at, token| match &at.kind {
            Kind::List(items) => {
                let plain = token == "0" || !token.starts_with(['0', '+']);
                items.get(token.parse::<usize>().ok().filter(|_| plain)?)
            }
            _ if token.contains('~') => at.get(&token.replace("~1", "/").replace("~0", "~")),
            _ => at.get(token),
        })
    }

    /// The value of a key; the first one if the key is repeated.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of a key; the first one if the key is repeated.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Object(entries) => entries.iter().find(|entry| &*entry.key == key),
            _ => None,
        }
    }

    /// The entries of an object; empty for any other value.
    pub(crate) fn pairs(&self) -> &[Entry] {
        match &self.kind {
            Kind::Object(entries) => entries,
            _ => &[],
        }
    }

    /// The text, if this is a string.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as text for a prompt; `None` for `null`, lists and objects.
    pub(crate) fn scalar_text(&self) -> Option<Str> {
        match &self.kind {
            Kind::Boolean(value) => Some(if *value { "true".into() } else { "false".into() }),
            Kind::Number(value) => Some(value.to_string().into()),
            Kind::Text(value) => Some(value.clone()),
            Kind::Null | Kind::List(_) | Kind::Object(_) => None,
        }
    }
}

/// A value without a source: all spans are the default span.
impl From<&Value> for Json {
    fn from(value: &Value) -> Json {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Boolean(*value),
            Value::Number(value) => Kind::Number(value.clone()),
            Value::String(value) => Kind::Text(value.as_str().into()),
            Value::Array(items) => Kind::List(items.iter().map(Json::from).collect()),
            Value::Object(map) => Kind::Object(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.as_str().into(),
                        key_span: Span::default(),
                        value: value.into(),
                    })
                    .collect(),
            ),
        };
        Json { span: Span::default(), kind }
    }
}
