//! What Claude Code needs inside a sandbox.

use std::{env, path::PathBuf};

use super::ClaudeSettings;
use crate::{SandboxNeeds, sandbox_needs::NetworkService};

/// The user's entries of its folder: settings with hooks, instructions, and programs that it starts.
const OWN: [&str; 9] = [
    "settings.json",
    "settings.local.json",
    "CLAUDE.md",
    "agents",
    "commands",
    "hooks",
    "output-styles",
    "plugins",
    "skills",
];

/// The environment variables that it reads, besides those of a cloud. Those of its own that are not here belong to the
/// session that started this program: its id, its messaging token, its folders.
pub(crate) const VARIABLES: [&str; 28] = [
    "ANTHROPIC_*",
    "API_TIMEOUT_MS",
    "BASH_*",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_BASH_*",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CERT_STORE",
    "CLAUDE_CODE_CLIENT_*",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_ENABLE_*",
    "CLAUDE_CODE_EXTRA_BODY",
    "CLAUDE_CODE_FILE_READ_*",
    "CLAUDE_CODE_GIT_BASH_PATH",
    "CLAUDE_CODE_GLOB_*",
    "CLAUDE_CODE_MAX_*",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OTEL_*",
    "CLAUDE_CODE_SHELL*",
    "CLAUDE_CODE_SKIP_*",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CONFIG_DIR",
    "DISABLE_*",
    "ENABLE_*",
    "MAX_*",
    "MCP_*",
    "USE_BUILTIN_RIPGREP",
];

/// The folder with all that it keeps.
pub(super) fn find_claude_home(settings: &ClaudeSettings) -> PathBuf {
    let home = || settings.var("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default();
    settings.var("CLAUDE_CONFIG_DIR").map_or_else(|| home().join(".claude"), PathBuf::from)
}

pub(super) fn collect_needs(settings: &ClaudeSettings) -> SandboxNeeds {
    let home = settings.var("HOME").map(PathBuf::from).or_else(env::home_dir).unwrap_or_default();
    let folder = find_claude_home(settings);
    let user = OWN.iter().map(|name| folder.join(name)).collect();
    // With `CLAUDE_CONFIG_DIR` all of its state is in that folder.
    let beside = settings.var("CLAUDE_CONFIG_DIR").is_none().then(|| home.join(".claude.json"));
    let on = |name: &str| settings.var(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"));
    let mut keys = Vec::new();
    if on("CLAUDE_CODE_USE_BEDROCK") {
        keys.push(home.join(".aws"));
    }
    if on("CLAUDE_CODE_USE_VERTEX") {
        keys.push(home.join(".config/gcloud"));
        keys.extend(settings.var("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from));
    }
    if on("CLAUDE_CODE_USE_FOUNDRY") {
        keys.push(home.join(".azure"));
    }
    let state = std::iter::once(folder).chain(beside).collect();
    let clouds = [
        ("CLAUDE_CODE_USE_BEDROCK", &["AWS_*"][..]),
        ("CLAUDE_CODE_USE_VERTEX", &["GOOGLE_*", "GCLOUD_PROJECT", "CLOUD_ML_REGION", "VERTEX_*"]),
        ("CLAUDE_CODE_USE_FOUNDRY", &["AZURE_*"]),
    ];
    let of_clouds = clouds.iter().filter(|(cloud, _)| on(cloud)).flat_map(|(_, names)| *names);
    let variables = VARIABLES.iter().chain(of_clouds).map(|name| (*name).to_owned()).collect();
    SandboxNeeds {
        programs: Vec::new(),
        services: list_services(settings, &on),
        state,
        settings: user,
        keys,
        variables,
    }
}

/// The services of its environment variables, or Anthropic's services.
fn list_services(settings: &ClaudeSettings, on: &dyn Fn(&str) -> bool) -> Vec<NetworkService> {
    let at = |name: &str| settings.var(name).and_then(|url| NetworkService::at(&url));
    let region = |names: [&str; 2]| names.iter().find_map(|name| settings.var(name));
    if on("CLAUDE_CODE_USE_BEDROCK") {
        let region = region(["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".to_owned());
        let usual = NetworkService::named(format!("bedrock-runtime.{region}.amazonaws.com"));
        let others = ["bedrock", "sts", "oidc", "portal.sso"];
        let others = others.map(|name| NetworkService::named(format!("{name}.{region}.amazonaws.com")));
        let first = at("ANTHROPIC_BEDROCK_BASE_URL").unwrap_or(usual);
        return std::iter::once(first).chain(others).collect();
    }
    if on("CLAUDE_CODE_USE_VERTEX") {
        let usual = match region(["CLOUD_ML_REGION", "VERTEX_REGION"]) {
            Some(region) if region != "global" => format!("{region}-aiplatform.googleapis.com"),
            _ => "aiplatform.googleapis.com".to_owned(),
        };
        let first = at("ANTHROPIC_VERTEX_BASE_URL").unwrap_or_else(|| NetworkService::named(usual));
        return vec![
            first,
            NetworkService::named("oauth2.googleapis.com"),
            NetworkService::named("sts.googleapis.com"),
        ];
    }
    if on("CLAUDE_CODE_USE_FOUNDRY") {
        let resource = settings
            .var("ANTHROPIC_FOUNDRY_RESOURCE")
            .map(|name| NetworkService::named(format!("{name}.services.ai.azure.com")));
        let login = NetworkService::named("login.microsoftonline.com");
        return at("ANTHROPIC_FOUNDRY_BASE_URL").or(resource).into_iter().chain([login]).collect();
    }
    match at("ANTHROPIC_BASE_URL") {
        Some(other) => vec![other],
        // The last two renew a login.
        None => ["api.anthropic.com", "platform.claude.com", "console.anthropic.com"]
            .map(NetworkService::named)
            .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(env: &[(&str, &str)]) -> SandboxNeeds {
        // Clears variables that this machine may have set.
        let mut pairs = vec![("HOME".to_owned(), "/home/me".to_owned())];
        let known = ["ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "AWS_REGION"];
        pairs.extend(known.map(|name| (name.to_owned(), String::new())));
        pairs.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        collect_needs(&ClaudeSettings { env: pairs, ..ClaudeSettings::default() })
    }

    fn hosts(needs: &SandboxNeeds) -> Vec<String> {
        needs.services.iter().map(|service| format!("{}:{}", service.host, service.port)).collect()
    }

    #[test]
    fn services_are_anthropic_or_the_configured_ones() {
        assert_eq!(hosts(&of(&[]))[0], "api.anthropic.com:443");
        let other = of(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:4010")]);
        assert_eq!(hosts(&other), ["127.0.0.1:4010"], "no other service");
        let cloud = of(&[("CLAUDE_CODE_USE_BEDROCK", "1"), ("AWS_REGION", "eu-west-1")]);
        assert_eq!(hosts(&cloud)[0], "bedrock-runtime.eu-west-1.amazonaws.com:443");
        assert_eq!(cloud.keys, [PathBuf::from("/home/me/.aws")]);
    }

    #[test]
    fn state_is_in_the_configured_folder_or_in_two_places() {
        let usual = of(&[]);
        assert_eq!(usual.state, [PathBuf::from("/home/me/.claude"), PathBuf::from("/home/me/.claude.json")]);
        assert!(usual.settings.contains(&PathBuf::from("/home/me/.claude/settings.json")));
        assert_eq!(of(&[("CLAUDE_CONFIG_DIR", "/c")]).state, [PathBuf::from("/c")]);
    }
}
