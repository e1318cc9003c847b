//! Detects the test command of a project from its files; runs nothing.

mod languages;
mod python;
mod recipes;
mod root;
mod scripts;
#[cfg(test)]
mod tests;

use std::path::Path;

use root::Root;

/// A detected test command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The command for `sh -c`, run in the project's top folder.
    pub(crate) command: String,
    /// The file or option that it comes from.
    pub(crate) source: String,
}

impl Found {
    fn new(command: impl Into<String>, source: impl Into<String>) -> Found {
        Found { command: command.into(), source: source.into() }
    }

    /// A command given with `--test`.
    pub(crate) fn given(command: &str) -> Found {
        Found::new(command, "--test")
    }
}

/// A detector.
type Row = fn(&Root) -> Option<Found>;

/// All detectors, the most reliable first: targets and scripts that the project calls `test`; then the convention of
/// its language; then weaker hints. `docs/init.md` lists them in this order.
const ROWS: [Row; 23] = [
    recipes::make_test,
    recipes::just_test,
    scripts::package_json,
    scripts::deno_task,
    scripts::composer_script,
    languages::cargo,
    languages::go,
    python::python,
    languages::maven,
    languages::gradle,
    languages::ruby,
    languages::elixir,
    languages::erlang,
    languages::php,
    languages::dotnet,
    languages::swift,
    languages::deno,
    languages::haskell,
    languages::scala,
    languages::ocaml,
    languages::gleam,
    languages::cmake,
    // `check` runs tests in some projects and a linter in others, so it comes last.
    recipes::make_check,
];

/// All detected test commands, the most reliable first.
pub(crate) fn detect(root: &Path) -> Vec<Found> {
    let root = Root::new(root);
    ROWS.iter().filter_map(|row| row(&root)).collect()
}
