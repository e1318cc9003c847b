//! From the models that a definition names to those that a provider has.

use std::collections::BTreeMap;

use cuegate_flow::{
    Str,
    model::{Act, Flow},
};
use cuegate_provider::Provider;

use crate::Failure;

/// The provider's names of all models that the flow names.
///
/// # Errors
/// When the provider has none for one of them: nothing is asked with a model that nobody meant.
pub fn resolve(
    flow: &Flow,
    provider: &dyn Provider,
    mapped: &BTreeMap<String, String>,
) -> Result<BTreeMap<Str, String>, Failure> {
    let mut models = BTreeMap::new();
    for step in &flow.steps {
        let Act::Ask(ask) = &step.act else { continue };
        let Some(name) = &ask.model else { continue };
        let Some(model) = one(name, provider, mapped) else {
            let Failure { message, hint, code } = unknown(name, provider.name());
            return Err(Failure { message: format!("`{}` names a model: {message}", step.name), hint, code });
        };
        models.insert(name.clone(), model);
    }
    Ok(models)
}

/// The configured name of a model, else its own.
pub fn configured<'n>(name: &'n str, mapped: Option<&'n BTreeMap<String, String>>) -> &'n str {
    mapped.and_then(|mapped| mapped.get(name)).map_or(name, String::as_str)
}

/// That a provider has no model of a name.
pub fn unknown(name: &str, provider: &str) -> Failure {
    Failure::usage(
        format!("{provider} does not know the model `{name}`"),
        format!(
            "say which it is in cuegate.toml, below `[models.{provider}]` as `{name} = \"…\"`, or name one that it knows \
             for all asks with `--model`"
        ),
    )
}

/// The provider's name of one model; `None` when it has none.
pub fn one(name: &str, provider: &dyn Provider, mapped: &BTreeMap<String, String>) -> Option<String> {
    mapped.get(name).cloned().or_else(|| provider.model(name))
}
