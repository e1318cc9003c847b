//! Maps the model names of a definition to a provider's model names.

use std::collections::BTreeMap;

use cuegate_provider::Provider;

use crate::Failure;

/// The names by which Claude's definitions ask for a large, a usual or a small model. They are no models of other
/// providers, so that their default is used.
const TIERS: [&str; 3] = ["opus", "sonnet", "haiku"];

/// Whether a name is a tier that the provider has no model for.
pub fn is_foreign_tier(name: &str, provider: &dyn Provider, mapped: &BTreeMap<String, String>) -> bool {
    TIERS.contains(&name) && resolve_model(name, provider, mapped).is_none()
}

/// The configured name of a model, else the name itself.
pub fn configured_name_of_model<'n>(name: &'n str, mapped: Option<&'n BTreeMap<String, String>>) -> &'n str {
    mapped.and_then(|mapped| mapped.get(name)).map_or(name, String::as_str)
}

/// The failure for a model that a provider does not know.
pub fn failure_of_unknown_model(name: &str, provider: &str) -> Failure {
    Failure::usage(
        format!("{provider} does not know the model `{name}`"),
        format!(
            "map it in `[models.{provider}]` of cuegate.toml, `{name} = \"…\"`, or set a known model for all calls with \
             `--model`"
        ),
    )
}

/// The provider's name of one model; `None` if the provider does not know it.
pub fn resolve_model(
    name: &str,
    provider: &dyn Provider,
    mapped: &BTreeMap<String, String>,
) -> Option<String> {
    mapped.get(name).cloned().or_else(|| provider.map_model_name(name))
}
