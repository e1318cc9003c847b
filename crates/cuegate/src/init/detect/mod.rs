//! Detects the test command of a project from its files; runs nothing.

mod checks;
mod languages;
mod python;
mod recipes;
mod root;
mod scripts;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use root::DetectionFolder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetectedCommand {
    /// The command for `sh -c`, run in the project's top folder.
    pub(crate) command: String,
    /// The file or option that it comes from.
    pub(crate) source: String,
}

impl DetectedCommand {
    fn new(command: impl Into<String>, source: impl Into<String>) -> DetectedCommand {
        DetectedCommand { command: command.into(), source: source.into() }
    }

    /// A command given with an option.
    pub(crate) fn given(command: &str, option: &str) -> DetectedCommand {
        DetectedCommand::new(command.trim(), option)
    }
}

/// A detector.
type Row = fn(&DetectionFolder) -> Option<DetectedCommand>;

/// All detectors, the most reliable first: targets and scripts that the project calls `test`; then the convention of
/// its language; then weaker hints. `docs/init.md` lists them in this order.
const ROWS: [Row; 23] = [
    recipes::make_test,
    recipes::just_test,
    scripts::package_json,
    scripts::deno_task,
    scripts::composer_script,
    languages::detect_cargo_test,
    languages::detect_go_test,
    python::detect_python_test,
    languages::detect_maven_test,
    languages::detect_gradle_test,
    languages::detect_ruby_test,
    languages::detect_elixir_test,
    languages::detect_erlang_test,
    languages::detect_php_test,
    languages::detect_dotnet_test,
    languages::detect_swift_test,
    languages::detect_deno_test,
    languages::detect_haskell_test,
    languages::detect_scala_test,
    languages::detect_ocaml_test,
    languages::detect_gleam_test,
    languages::detect_cmake_test,
    // `check` runs tests in some projects and a linter in others, so it comes last.
    recipes::make_check,
];

/// The commands detected in a project.
#[derive(Debug, Default)]
pub(crate) struct DetectedCommands {
    /// Test commands, the most reliable first.
    pub(crate) tests: Vec<DetectedCommand>,
    /// Test commands of packages, if the project as a whole has none and several packages have one.
    pub(crate) packages: Vec<DetectedCommand>,
    /// Lint and format commands that change nothing.
    pub(crate) checks: Vec<DetectedCommand>,
}

/// Detects the commands of the project with the top folder `top`, as seen from `here`: the nearest folder with a test
/// command counts, from `here` up to the top; otherwise the only package below the top that has one.
pub(crate) fn detect_commands(top: &Path, here: &Path) -> DetectedCommands {
    let here = if here.starts_with(top) { here } else { top };
    let mut found = DetectedCommands::default();
    for folder in here.ancestors().take_while(|folder| folder.starts_with(top)) {
        let root = DetectionFolder::new(folder, top);
        found.tests.extend(run_in(folder, top, tests_of(&root)));
        if found.checks.is_empty() {
            found.checks = run_in(folder, top, checks::detect_checks(&root));
        }
    }
    if found.tests.is_empty() {
        let packages = DetectionFolder::new(top, top).packages();
        let first = |folder: &PathBuf| {
            let tests = tests_of(&DetectionFolder::new(folder, top));
            let test = run_in(folder, top, tests).into_iter().next()?;
            Some((folder.clone(), test))
        };
        let mut of_packages: Vec<(PathBuf, DetectedCommand)> = packages.iter().filter_map(first).collect();
        match of_packages.as_slice() {
            [(folder, _)] => {
                let checks = checks::detect_checks(&DetectionFolder::new(folder, top));
                found.checks = run_in(folder, top, checks);
                found.tests = of_packages.drain(..).map(|(_, test)| test).collect();
            }
            _ => found.packages = of_packages.into_iter().map(|(_, test)| test).collect(),
        }
    }
    found
}

/// A command that was typed in `here`, as it is run in the top folder.
pub(crate) fn from_here(top: &Path, here: &Path, command: &str) -> String {
    let below = here.strip_prefix(top).ok().and_then(Path::to_str).filter(|below| !below.is_empty());
    let command = command.trim();
    match below {
        // An empty command is refused as it is.
        Some(below) if !command.is_empty() => {
            format!("cd {} && {command}", languages::quote_file_name(below))
        }
        _ => command.to_owned(),
    }
}

/// All test commands of a folder, the most reliable first.
fn tests_of(root: &DetectionFolder) -> Vec<DetectedCommand> {
    ROWS.iter().filter_map(|row| row(root)).collect()
}

/// The commands of a folder, run from the top folder.
fn run_in(folder: &Path, top: &Path, found: Vec<DetectedCommand>) -> Vec<DetectedCommand> {
    let below = folder.strip_prefix(top).ok().and_then(Path::to_str).filter(|below| !below.is_empty());
    let Some(below) = below else { return found };
    let moved = |found: DetectedCommand| DetectedCommand {
        command: format!("cd {} && {}", languages::quote_file_name(below), found.command),
        source: format!("{} in {below}", found.source),
    };
    found.into_iter().map(moved).collect()
}
