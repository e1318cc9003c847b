//! Finding out how a project is tested: its files are looked at, nothing is run.

mod languages;
mod python;
mod recipes;
mod root;
mod scripts;
#[cfg(test)]
mod tests;

use std::path::Path;

use root::Root;

/// A way in which a project seems to be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What `sh -c` is to run, in the project's top folder.
    pub(crate) command: String,
    /// What it was concluded from.
    pub(crate) source: String,
}

impl Found {
    fn new(command: impl Into<String>, source: impl Into<String>) -> Found {
        Found { command: command.into(), source: source.into() }
    }

    /// A way that somebody said.
    pub(crate) fn given(command: &str) -> Found {
        Found::new(command, "--test")
    }
}

/// One way to look, and what it finds.
type Row = fn(&Root) -> Option<Found>;

/// All ways, the most telling first: what the project's people themselves call `test`, whatever language it is for;
/// then what is usual for its language; then hints. `docs/init.md` shows them in this order.
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
    // `check` means tests to some and a linter to others: believed only where nothing else is known.
    recipes::make_check,
];

/// Every way in which the project at this folder seems to be tested, the most telling first.
pub(crate) fn detect(root: &Path) -> Vec<Found> {
    let root = Root::new(root);
    ROWS.iter().filter_map(|row| row(&root)).collect()
}
