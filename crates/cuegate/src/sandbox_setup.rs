//! The sandbox of a run: raised where the definition demands one, before anything is spent.

use std::path::Path;

use cuegate_flow::model::Flow;
use cuegate_runner::sandbox::Sandbox;

use crate::{Failure, start_run::Program};

/// Variables that name a proxy of the user's network.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The sandbox that a flow demands; `None` where it demands none, or somebody lets it run without.
///
/// # Errors
/// When a sandbox is demanded and none can stand here.
pub fn raise(flow: &Flow, unsandboxed: bool, program: &Program) -> Result<Option<Sandbox>, Failure> {
    let Some(wish) = flow.conduct.sandbox.as_ref().filter(|_| !unsandboxed) else { return Ok(None) };
    Sandbox::raise(wish, program.inside()).map(Some).map_err(|no_sandbox| Failure {
        message: format!("the definition demands a sandbox, and {no_sandbox}"),
        hint: Some(format!(
            "{}; `--no-sandbox` runs it without, and then nothing holds its agents",
            no_sandbox.hint
        )),
        code: crate::exit::ENVIRONMENT,
    })
}

/// What holds the agents of a run, in words.
pub fn held_by(flow: &Flow, sandbox: Option<&Sandbox>) -> String {
    match (sandbox, &flow.conduct.sandbox) {
        (Some(sandbox), _) => sandbox.describe(),
        (None, Some(_)) => {
            "nothing, though the definition demands a sandbox (`--no-sandbox`): what it starts reaches all of this machine"
                .to_owned()
        }
        (None, None) => "nothing: what it starts reaches all of this machine".to_owned(),
    }
}

/// What of the wish cannot be, in words.
pub fn notes(sandbox: Option<&Sandbox>, work: &Path, root: &Path) -> Vec<String> {
    let Some(sandbox) = sandbox else { return Vec::new() };
    let missing = sandbox.missing(work, root);
    let note = |path: &String| {
        format!("`{path}` of `allowedPaths` is not there, so that nothing can be written there")
    };
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxy = PROXIES.iter().find(is_set);
    let proxy = proxy.map(|name| format!("the proxy that {name} names is not used behind the sandbox"));
    missing.iter().map(note).chain(proxy).collect()
}
