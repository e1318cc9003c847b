//! `[otel]`, and the variables of OpenTelemetry.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `[otel]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtelConfig {
    /// The collector's address, without `/v1/traces`.
    pub endpoint: Option<String>,
    /// Headers of each request. A value that begins with `$` is the name of a variable, because the file holds no secrets.
    pub headers: BTreeMap<String, String>,
    /// Whether the targets of tools, such as commands, are sent.
    pub content: bool,
}

/// What is sent, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtelSettings {
    /// The address for spans.
    pub(super) traces: Option<String>,
    /// The address for metrics.
    pub(super) metrics: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Attributes of the resource.
    pub(super) resource: Vec<(String, String)>,
    pub(super) content: bool,
    /// The span that started this program.
    pub(super) parent: Option<String>,
    /// What is wrong with the settings.
    pub(super) problem: Option<String>,
}

impl OtelSettings {
    /// The settings of the file and the variables; variables come first. `None` if nothing is configured, or it is turned
    /// off.
    pub(crate) fn read(
        config: &OtelConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<OtelSettings> {
        let set = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let base = set("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| config.endpoint.clone());
        let address = |signal: &str, path: &str| {
            if set(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|exporter| exporter != "otlp") {
                return None;
            }
            let own = set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
            own.or_else(|| Some(format!("{}/v1/{path}", base.as_ref()?.trim_end_matches('/'))))
        };
        let (mut traces, mut metrics) = (address("TRACES", "traces"), address("METRICS", "metrics"));
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        let mut problem = None;
        if let Some(other) =
            set("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|protocol| !protocol.starts_with("http/"))
        {
            // The port of another protocol would not understand it.
            (traces, metrics) = (None, None);
            problem = Some(format!(
                "cuegate sends OTLP by http/json, not by {other}: name a collector's HTTP port, usually 4318"
            ));
        }
        let mut headers = Vec::new();
        for (name, value) in &config.headers {
            match value.strip_prefix('$') {
                None => headers.push((name.clone(), value.clone())),
                Some(named) => match variable(named) {
                    Some(value) => headers.push((name.clone(), value)),
                    None => {
                        problem =
                            Some(format!("the header `{name}` of `[otel]` names `{named}`, which is not set"))
                    }
                },
            }
        }
        headers.extend(parse_encoded_pairs(&set("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()));
        let mut resource = parse_encoded_pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        resource.retain(|(name, _)| name != "service.name" || set("OTEL_SERVICE_NAME").is_none());
        let service = set("OTEL_SERVICE_NAME").unwrap_or_else(|| "cuegate".to_owned());
        if !resource.iter().any(|(name, _)| name == "service.name") {
            resource.push(("service.name".to_owned(), service));
        }
        resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        Some(OtelSettings {
            traces,
            metrics,
            headers,
            resource,
            content: config.content,
            parent: set("TRACEPARENT"),
            problem,
        })
    }
}

/// `a=b,c=d`, whose values are percent-encoded.
fn parse_encoded_pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decode_percent(value.trim())))
    };
    text.split(',').filter_map(pair).collect()
}

fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &OtelConfig, variables: &[(&str, &str)]) -> Option<OtelSettings> {
        OtelSettings::read(config, |name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_unless_configured() {
        let none = OtelConfig::default();
        assert_eq!(read(&none, &[]), None);
        assert_eq!(read(&none, &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        let on = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        assert_eq!(read(&none, &[on, ("OTEL_SDK_DISABLED", "TRUE")]), None);
        let settings = read(&none, &[on, ("OTEL_METRICS_EXPORTER", "none")]).unwrap();
        assert_eq!(settings.traces.as_deref(), Some("http://c:4318/v1/traces"));
        assert_eq!(settings.metrics, None);
        let settings = read(&none, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/x")]).unwrap();
        assert_eq!((settings.traces.as_deref(), settings.metrics), (Some("http://c/x"), None));
    }

    #[test]
    fn headers_and_resources_are_read() {
        let config = OtelConfig {
            endpoint: Some("http://c".to_owned()),
            headers: [("a".to_owned(), "b".to_owned()), ("key".to_owned(), "$KEY".to_owned())].into(),
            content: true,
        };
        let variables = [
            ("KEY", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "c=d%20e, f=%"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=core,service.name=own"),
        ];
        let settings = read(&config, &variables).unwrap();
        let headers: Vec<String> =
            settings.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(headers, ["a=b", "key=secret", "c=d e", "f=%"]);
        assert!(settings.resource.contains(&("service.name".to_owned(), "own".to_owned())));
        assert!(settings.resource.contains(&("team".to_owned(), "core".to_owned())));
        assert!(read(&config, &[]).unwrap().problem.unwrap().contains("`KEY`"));
        let problem =
            read(&config, &[("KEY", "x"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap().problem;
        assert!(problem.unwrap().contains("4318"));
    }
}
