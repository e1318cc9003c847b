//! How a service is asked, as users write it down.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use crate::Prices;

/// How a service is asked. Only [`Settings::base_url`] is needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The address of the API without `/chat/completions`, as a rule with `/v1` at its end.
    pub base_url: String,
    /// The environment variable that holds the key. `None` = no key is sent.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The header that carries the key as it is. `None` = `Authorization: Bearer KEY`.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Whether the key may go unencrypted (`http:`) to an address that is not this machine or network.
    #[serde(default)]
    pub key_over_http: bool,
    /// The model that is asked when neither the definition nor the user names one.
    #[serde(default)]
    pub model: Option<String>,
    /// What models cost. Without the price of a model its cost is unknown, and no budget of money can be kept.
    #[serde(default)]
    pub prices: Prices,
    /// How the service is told what its answer must look like.
    #[serde(default)]
    pub schema: SchemaMode,
    /// The field of the request that bounds how much is written.
    #[serde(default)]
    pub token_field: TokenField,
    /// The most tokens that one answer may have, besides what the ask's own cap allows.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// How much chance is in the answer, usually 0 to 2. `None` = as the service likes.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// More headers. They stand on disk while an ask is at work: no secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// More fields of the request, such as `seed` or `reasoning_effort`. None that is set otherwise.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// How many milliseconds making a connection may take.
    #[serde(default = "connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// How many milliseconds may pass without a sign of the service. Models that think, and local ones that read a
    /// long prompt, are silent for minutes.
    #[serde(default = "idle_timeout_ms")]
    pub idle_timeout_ms: u64,
}

fn connect_timeout_ms() -> u64 {
    10_000
}

fn idle_timeout_ms() -> u64 {
    600_000
}

impl Settings {
    /// Whether the service is on this machine or in its own network, by its address.
    pub fn is_near(&self) -> bool {
        Endpoint::of(self).is_ok_and(|endpoint| endpoint.is_near())
    }

    /// The settings for a service at this address, without key, model and prices.
    pub fn at(base_url: impl Into<String>) -> Settings {
        Settings {
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

/// How a service is told what its answer must look like. Whatever it is told, the answer is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    /// By the schema itself.
    #[default]
    JsonSchema,
    /// By the schema in words, after the prompt, and that it is held to JSON.
    JsonObject,
    /// Not at all. The caller has to say the schema in the prompt: [`crate::Capabilities::schema`] is false.
    None,
}

/// The field of a request that bounds how much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenField {
    /// The old name, which nearly all servers know. A service that has given it up says so with an error; a server
    /// that does not know the new one would silently keep no bound, which is why this is the default.
    #[default]
    MaxTokens,
    /// The new name, which OpenAI's own newer models want.
    MaxCompletionTokens,
}

impl TokenField {
    /// The name in the request.
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
    fn an_address_is_all_that_is_needed() {
        let settings: Settings = serde_json::from_str(r#"{"base_url": "http://localhost:8080/v1"}"#).unwrap();
        assert_eq!(settings, Settings::at("http://localhost:8080/v1"));
    }

    #[test]
    fn every_setting_has_its_word_and_others_are_errors() {
        let settings: Settings = serde_json::from_str(
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
        let wrong = serde_json::from_str::<Settings>(r#"{"base_url": "http://x", "api_key": "sk-1"}"#);
        assert!(wrong.unwrap_err().to_string().contains("unknown field `api_key`"));
    }
}
