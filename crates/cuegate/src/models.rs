//! Maps the model names of a definition to a provider's model names.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Act, Flow},
};
use cuegate_provider::Provider;

use crate::Failure;

/// The names by which Claude's definitions ask for a large, a usual or a small model. They are no models of other
/// providers, so that their default is used.
const TIERS: [&str; 3] = ["opus", "sonnet", "haiku"];

/// Whether a name is a tier that the provider has no model for.
pub fn is_foreign_tier(name: &str, provider: &dyn Provider, mapped: &BTreeMap<String, String>) -> bool {
    TIERS.contains(&name) && resolve_model(name, provider, mapped).is_none()
}

/// Maps all model names of the flow to the provider's. A tier that the provider does not have is left out.
///
/// # Errors
/// When the provider does not know another one of them: the name of a model stands for that model alone.
pub fn resolve_flow_models(
    flow: &Flow,
    provider: &dyn Provider,
    mapped: &BTreeMap<String, String>,
) -> Result<BTreeMap<Str, String>, Failure> {
    let mut models = BTreeMap::new();
    for step in &flow.steps {
        let Act::Ask(ask) = &step.act else { continue };
        for name in ask.models().flatten() {
            if is_foreign_tier(name, provider, mapped) {
                continue;
            }
            let Some(model) = resolve_model(name, provider, mapped) else {
                let Failure { message, hint, code } = failure_of_unknown_model(name, provider.name());
                return Err(Failure { message: format!("step `{}`: {message}", step.name), hint, code });
            };
            models.insert(name.clone(), model);
        }
    }
    Ok(models)
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
