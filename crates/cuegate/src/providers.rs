//! Making providers out of what is configured.

use std::{collections::BTreeMap, sync::Arc};

use cuegate_provider::{
    Shared,
    scripted::{Script, ScriptedProvider},
};

use crate::{Failure, begin::Program, config::Config};

/// Every provider that agents can be asked by, the scripted one apart.
pub const NAMES: [&str; 3] = ["claude", "codex", "openai"];

/// The provider of this name. A script, by path and content, is for the scripted one.
///
/// # Errors
/// When there is none of that name, or its script or settings cannot be used.
pub fn make(
    name: &str,
    script: Option<&(String, String)>,
    program: &Program,
    _config: &Config,
) -> Result<Shared, Failure> {
    match name {
        "scripted" => {
            let (path, text) = script.ok_or_else(|| {
                Failure::usage("the scripted agent has no script", "give one with `--script FILE`")
            })?;
            let script = Script::parse(text, path).map_err(|error| Failure {
                message: error.to_string(),
                hint: error.hint.clone(),
                code: crate::exit::USAGE,
            })?;
            Ok(Arc::new(ScriptedProvider::new(script, Some(program.scripted()))))
        }
        other => Err(Failure::usage(
            format!("there is no provider `{other}`"),
            format!("there are {}, and `scripted` with `--script FILE`", NAMES.join(", ")),
        )),
    }
}

/// The provider's names of models that definitions name, as configured.
pub fn mapped<'c>(name: &str, config: &'c Config) -> &'c BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    match name {
        "claude" => &config.providers.claude.models,
        "codex" => &config.providers.codex.models,
        "openai" => &config.providers.openai.models,
        _ => &NONE,
    }
}
