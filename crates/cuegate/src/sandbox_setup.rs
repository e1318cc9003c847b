//! Sets up the sandbox that a definition requires, before the first ask.

use std::path::Path;

use cuegate_flow::model::Flow;
use cuegate_runner::sandbox::Sandbox;

use crate::{Failure, start_run::Program};

/// Environment variables that set a network proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The sandbox that a flow requires; `None` if it requires none or `unsandboxed` is set.
///
/// # Errors
/// When the flow requires a sandbox and this machine cannot provide one.
pub fn raise(flow: &Flow, unsandboxed: bool, program: &Program) -> Result<Option<Sandbox>, Failure> {
    let Some(wish) = flow.conduct.sandbox.as_ref().filter(|_| !unsandboxed) else { return Ok(None) };
    Sandbox::raise(wish, program.inside()).map(Some).map_err(|no_sandbox| Failure {
        message: format!("the definition requires a sandbox, but {no_sandbox}"),
        hint: Some(format!(
            "{}; `--no-sandbox` runs it without one, and its agents have full access to this machine",
            no_sandbox.hint
        )),
        code: crate::exit::ENVIRONMENT,
    })
}

/// The sandbox of a run in words.
pub fn held_by(flow: &Flow, sandbox: Option<&Sandbox>) -> String {
    match (sandbox, &flow.conduct.sandbox) {
        (Some(sandbox), _) => sandbox.describe(),
        (None, Some(_)) => {
            "no sandbox, though the definition requires one (`--no-sandbox`): commands have full access to this \
             machine"
                .to_owned()
        }
        (None, None) => "no sandbox: commands have full access to this machine".to_owned(),
    }
}

/// The parts of the sandbox that are not available, in words.
pub fn notes(sandbox: Option<&Sandbox>, work: &Path, root: &Path) -> Vec<String> {
    let Some(sandbox) = sandbox else { return Vec::new() };
    let missing = sandbox.missing(work, root);
    let note =
        |path: &String| format!("`{path}` in `allowedPaths` does not exist; agents cannot write there");
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxy = PROXIES.iter().find(is_set);
    let proxy = proxy.map(|name| format!("the proxy in {name} is not used inside the sandbox"));
    missing.iter().map(note).chain(proxy).collect()
}
