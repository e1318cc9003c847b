//! `notify`: how the user is notified when a run ends or waits.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

/// `notify`, or `[notify]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyConfig {
    /// A shell command. Its environment variables describe the run.
    pub command: Option<String>,
    /// Whether the desktop shows it, by `notify-send`.
    pub desktop: bool,
    /// The address that gets a JSON object about the run.
    pub webhook: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct NotifyTable {
    command: Option<String>,
    desktop: bool,
    webhook: Option<String>,
}

impl<'de> Deserialize<'de> for NotifyConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NotifyConfig, D::Error> {
        struct NotifyVisitor;

        impl<'de> Visitor<'de> for NotifyVisitor {
            type Value = NotifyConfig;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a shell command, or a table with `command`, `desktop` and `webhook`")
            }

            fn visit_str<E>(self, command: &str) -> Result<NotifyConfig, E> {
                Ok(NotifyConfig { command: Some(command.to_owned()), ..NotifyConfig::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NotifyConfig, A::Error> {
                let NotifyTable { command, desktop, webhook } =
                    NotifyTable::deserialize(MapAccessDeserializer::new(map))?;
                let is_address =
                    |address: &String| address.starts_with("https://") || address.starts_with("http://");
                if let Some(wrong) = webhook.as_ref().filter(|address| !is_address(address)) {
                    return Err(serde::de::Error::custom(format!(
                        "`{wrong}` is not an address: it begins with https:// or http://"
                    )));
                }
                Ok(NotifyConfig { command, desktop, webhook })
            }
        }

        deserializer.deserialize_any(NotifyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Whole {
        notify: NotifyConfig,
    }

    #[test]
    fn a_command_or_a_table_is_read() {
        let read = |text: &str| toml::from_str::<Whole>(text);
        assert_eq!(read("notify = 'a'").unwrap().notify.command.as_deref(), Some("a"));
        let table = read("[notify]\ndesktop = true\nwebhook = 'https://e.test/x'").unwrap().notify;
        assert!(
            table.desktop && table.command.is_none() && table.webhook.as_deref() == Some("https://e.test/x")
        );
        for (text, wanted) in [
            ("notify = 1", "a shell command, or a table"),
            ("[notify]\nwebhok = 'https://e.test'", "unknown field `webhok`"),
            ("[notify]\nwebhook = 'e.test'", "`e.test` is not an address"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
