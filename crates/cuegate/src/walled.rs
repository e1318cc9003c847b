//! The wall of a run: raised where the definition demands one, before anything is spent.

use std::path::Path;

use cuegate_flow::model::Flow;
use cuegate_runner::wall::Wall;

use crate::{Failure, begin::Program};

/// Variables that name a proxy of the user's network.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The wall that a flow demands; `None` where it demands none, or somebody lets it run without.
///
/// # Errors
/// When a wall is demanded and none can stand here.
pub fn raise(flow: &Flow, unwalled: bool, program: &Program) -> Result<Option<Wall>, Failure> {
    let Some(wish) = flow.conduct.wall.as_ref().filter(|_| !unwalled) else { return Ok(None) };
    Wall::raise(wish, program.inside()).map(Some).map_err(|no_wall| Failure {
        message: format!("the definition demands a sandbox, and {no_wall}"),
        hint: Some(format!(
            "{}; `--no-wall` runs it without, and then nothing holds its agents",
            no_wall.hint
        )),
        code: crate::exit::ENVIRONMENT,
    })
}

/// What holds the agents of a run, in words.
pub fn held_by(flow: &Flow, wall: Option<&Wall>) -> String {
    match (wall, &flow.conduct.wall) {
        (Some(wall), _) => wall.describe(),
        (None, Some(_)) => {
            "nothing, though the definition demands a sandbox (`--no-wall`): what it starts reaches all of this machine"
                .to_owned()
        }
        (None, None) => "nothing: what it starts reaches all of this machine".to_owned(),
    }
}

/// What of the wish cannot be, in words.
pub fn notes(wall: Option<&Wall>, work: &Path, root: &Path) -> Vec<String> {
    let Some(wall) = wall else { return Vec::new() };
    let missing = wall.missing(work, root);
    let note = |path: &String| {
        format!("`{path}` of `allowedPaths` is not there, so that nothing can be written there")
    };
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let proxy = PROXIES.iter().find(is_set);
    let proxy = proxy.map(|name| format!("the proxy that {name} names is not used behind the wall"));
    missing.iter().map(note).chain(proxy).collect()
}
