//! The user's settings for a service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use crate::Prices;

/// The settings for a service. Only [`OpenAiSettings::base_url`] is required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiSettings {
    /// The URL of the API without `/chat/completions`; it usually ends with `/v1`.
    pub base_url: String,
    /// The environment variable with the key. `None` = no key is sent.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The header of the plain key. `None` = `Authorization: Bearer KEY`.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Whether the key may be sent unencrypted (`http:`) outside of this machine and private networks.
    #[serde(default)]
    pub key_over_http: bool,
    /// The model if neither the definition nor the user names one.
    #[serde(default)]
    pub model: Option<String>,
    /// Token prices by model. Without a price the cost is unknown, and a cost limit cannot be enforced.
    #[serde(default)]
    pub prices: Prices,
    /// How the schema of the answer is sent.
    #[serde(default)]
    pub schema: SchemaMode,
    /// The request field of the output token limit.
    #[serde(default)]
    pub token_field: TokenField,
    /// The maximum number of output tokens, in addition to the ask's cap.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature, usually 0 to 2. `None` = the service's default.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Further headers. They are stored on disk during an ask: no secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Further fields of the request, such as `seed` or `reasoning_effort`, except fields that are set otherwise.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// The connection timeout in milliseconds.
    #[serde(default = "connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// The timeout in milliseconds without data from the service. Reasoning models, and local ones that process a long
    /// prompt, are silent for minutes.
    #[serde(default = "idle_timeout_ms")]
    pub idle_timeout_ms: u64,
}

fn connect_timeout_ms() -> u64 {
    10_000
}

fn idle_timeout_ms() -> u64 {
    600_000
}

impl OpenAiSettings {
    /// Whether the service is on this machine or in its private network, judged by its address.
    pub fn is_near(&self) -> bool {
        Endpoint::new(self).is_ok_and(|endpoint| endpoint.is_near())
    }

    /// Default settings for this URL, without key, model and prices.
    pub fn new(base_url: impl Into<String>) -> OpenAiSettings {
        OpenAiSettings {
            base_url: base_url.into(),
            key_env: None,
            key_header: None,
            key_over_http: false,
            model: None,
            prices: Prices::default(),
            schema: SchemaMode::default(),
            token_field: TokenField::default(),
            max_output_tokens: None,
            temperature: None,
            headers: BTreeMap::new(),
            extra: Map::new(),
            connect_timeout_ms: connect_timeout_ms(),
            idle_timeout_ms: idle_timeout_ms(),
        }
    }
}

/// How the schema of the answer is sent. The answer is validated in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// The schema, in `response_format`.
    #[default]
    JsonSchema,
    /// The schema in the prompt, with JSON object mode in `response_format`.
    JsonObject,
    /// Not sent. The caller puts the schema into the prompt: [`crate::Capabilities::schema`] is false.
    None,
}

/// The request field of the output token limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenField {
    /// The old name, which nearly all servers support. The default, because a service without it reports an error,
    /// while a server without the new name would silently ignore the limit.
    #[default]
    MaxTokens,
    /// The new name, which OpenAI's newer models require.
    MaxCompletionTokens,
}

impl TokenField {
    /// The field's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            TokenField::MaxTokens => "max_tokens",
            TokenField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_url_is_required() {
        let settings: OpenAiSettings =
            serde_json::from_str(r#"{"base_url": "http://localhost:8080/v1"}"#).unwrap();
        assert_eq!(settings, OpenAiSettings::new("http://localhost:8080/v1"));
    }

    #[test]
    fn settings_are_parsed_and_unknown_fields_are_rejected() {
        let settings: OpenAiSettings = serde_json::from_str(
            r#"{"base_url": "https://api.example.com/v1", "key_env": "K", "key_header": "api-key",
                "key_over_http": true, "model": "m", "prices": {"m": {"input": 1, "output": 2}},
                "schema": "json_object", "token_field": "max_completion_tokens", "max_output_tokens": 9,
                "temperature": 0.5, "headers": {"x-a": "b"}, "extra": {"seed": 1},
                "connect_timeout_ms": 1, "idle_timeout_ms": 2}"#,
        )
        .unwrap();
        assert_eq!(
            (settings.schema, settings.token_field.name()),
            (SchemaMode::JsonObject, "max_completion_tokens")
        );
        let wrong = serde_json::from_str::<OpenAiSettings>(r#"{"base_url": "http://x", "api_key": "sk-1"}"#);
        assert!(wrong.unwrap_err().to_string().contains("unknown field `api_key`"));
    }
}
