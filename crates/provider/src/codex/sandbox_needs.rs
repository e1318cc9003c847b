//! What Codex needs inside a sandbox.

use std::{fs, path::Path};

use toml::{Table, Value};

use super::{CodexSettings, inspect};
use crate::{SandboxNeeds, sandbox_needs::NetworkService};

/// The user's entries of its folder: settings that name programs, instructions, and programs.
const OWN: [&str; 8] =
    ["config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json", "prompts", "rules", "skills", "plugins"];

/// The environment variables that it reads. Others of its own belong to the session that started this program.
pub(crate) const VARIABLES: [&str; 8] = [
    "CODEX_ACCESS_TOKEN",
    "CODEX_API_KEY",
    "CODEX_CA_CERTIFICATE",
    "CODEX_HOME",
    "CODEX_NON_INTERACTIVE",
    "CODEX_REFRESH_TOKEN_URL_OVERRIDE",
    "CODEX_SQLITE_HOME",
    "OPENAI_*",
];

pub(super) fn collect_needs(settings: &CodexSettings) -> SandboxNeeds {
    let folder = inspect::find_codex_home(settings);
    SandboxNeeds {
        programs: Vec::new(),
        services: list_services(settings, &folder),
        settings: OWN.iter().map(|name| folder.join(name)).collect(),
        state: vec![folder.clone()],
        keys: Vec::new(),
        variables: list_variables(settings, &folder),
    }
}

/// The environment variables that it reads: its own, and those that its configuration names for keys.
fn list_variables(settings: &CodexSettings, folder: &Path) -> Vec<String> {
    let of_services = read_config_tables(settings, folder).into_iter().filter_map(|table| {
        let services = table.get("model_providers")?.as_table()?.clone();
        Some(
            services
                .into_iter()
                .filter_map(|(_, service)| Some(service.get("env_key")?.as_str()?.to_owned())),
        )
    });
    VARIABLES.iter().map(|name| (*name).to_owned()).chain(of_services.flatten()).collect()
}

/// Its configuration: the user's, if it is loaded, and the settings.
fn read_config_tables(settings: &CodexSettings, folder: &Path) -> Vec<Table> {
    let user = settings.user_config.then(|| fs::read_to_string(folder.join("config.toml")).ok()).flatten();
    user.iter().chain(&settings.config).filter_map(|line| toml::from_str(line).ok()).collect()
}

/// The service of its configuration, or OpenAI's services.
fn list_services(settings: &CodexSettings, folder: &Path) -> Vec<NetworkService> {
    let config = read_config_tables(settings, folder);
    // Later entries override earlier ones.
    let text = |path: &[&str]| config.iter().rev().find_map(|table| text_at(table, path));
    let named = settings.service.clone().or_else(|| text(&["model_provider"]).map(str::to_owned));
    if let Some(service) = named.filter(|name| name != "openai") {
        return text(&["model_providers", &service, "base_url"])
            .and_then(NetworkService::at)
            .into_iter()
            .collect();
    }
    let url = text(&["openai_base_url"]).map(str::to_owned).or_else(|| settings.var("OPENAI_BASE_URL"));
    match url.as_deref().and_then(NetworkService::at) {
        Some(other) => vec![other],
        // For API keys, for subscriptions, and to renew a login.
        None => ["api.openai.com", "chatgpt.com", "auth.openai.com"].map(NetworkService::named).to_vec(),
    }
}

fn text_at<'t>(table: &'t Table, path: &[&str]) -> Option<&'t str> {
    let (first, rest) = path.split_first()?;
    match (table.get(*first)?, rest) {
        (Value::String(text), []) => Some(text),
        (Value::Table(inner), rest) => text_at(inner, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(settings: CodexSettings) -> Vec<String> {
        let needs = collect_needs(&settings);
        needs.services.iter().map(|service| format!("{}:{}", service.host, service.port)).collect()
    }

    #[test]
    fn services_are_openai_or_the_configured_one() {
        let env = |home: &Path| {
            vec![
                ("CODEX_HOME".to_owned(), home.display().to_string()),
                ("OPENAI_BASE_URL".to_owned(), String::new()),
            ]
        };
        let home = tempfile::tempdir().unwrap();
        let usual = CodexSettings { env: env(home.path()), ..CodexSettings::default() };
        assert_eq!(hosts(usual.clone())[0], "api.openai.com:443");
        let inline = "model_providers.own={name=\"own\",base_url=\"http://127.0.0.1:9/v1\"}".to_owned();
        let dotted = "model_providers.own.base_url=\"http://127.0.0.1:8/v1\"".to_owned();
        let own =
            |config: Vec<String>| CodexSettings { service: Some("own".to_owned()), config, ..usual.clone() };
        assert_eq!(hosts(own(vec![inline.clone()])), ["127.0.0.1:9"]);
        assert_eq!(hosts(own(vec![inline, dotted])), ["127.0.0.1:8"]);
        let said = CodexSettings {
            config: vec![
                "model_provider=\"own\"".to_owned(),
                "model_providers.own={base_url=\"https://llm.example.com\"}".to_owned(),
            ],
            ..usual.clone()
        };
        assert_eq!(hosts(said), ["llm.example.com:443"]);
        let file = "[model_providers.own]\nbase_url = \"https://other.example.com:8443/v1\"\n";
        fs::write(home.path().join("config.toml"), file).unwrap();
        assert_eq!(hosts(own(Vec::new())), [""; 0], "the user's configuration is not loaded");
        assert_eq!(hosts(CodexSettings { user_config: true, ..own(Vec::new()) }), ["other.example.com:8443"]);
    }
}
