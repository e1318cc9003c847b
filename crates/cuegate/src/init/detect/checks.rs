//! Lint and format commands that change no files. `init` proposes them.

use serde_json::Value;

use super::{
    DetectedCommand,
    languages::has_section,
    python::in_environment,
    recipes::{has_recipe, has_target, read_justfile, read_makefile},
    root::DetectionFolder,
    scripts::package_manager,
};

/// Names of targets and scripts that check without changing files.
const NAMES: [&str; 12] = [
    "lint",
    "lint:check",
    "format:check",
    "format-check",
    "fmt:check",
    "fmt-check",
    "check:format",
    "check-format",
    "prettier:check",
    "typecheck",
    "type-check",
    "check-types",
];

/// The lint and format commands of a folder. What the project itself names comes before the conventions of its
/// language.
pub(super) fn detect_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let named: Vec<DetectedCommand> =
        [detect_make_checks(root), detect_just_checks(root), package_json(root)].concat();
    if !named.is_empty() {
        return named;
    }
    [
        detect_cargo_checks(root),
        detect_go_checks(root),
        detect_python_checks(root),
        detect_deno_checks(root),
        detect_other_checks(root),
    ]
    .concat()
}

fn detect_make_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let Some((file, text)) = read_makefile(root) else { return Vec::new() };
    let targets = NAMES.into_iter().filter(|name| has_target(&text, name));
    targets
        .map(|name| DetectedCommand::new(format!("make {name}"), format!("target `{name}` of {file}")))
        .collect()
}

fn detect_just_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let Some((file, text)) = read_justfile(root) else { return Vec::new() };
    let recipes = NAMES.into_iter().filter(|name| has_recipe(&text, name));
    recipes
        .map(|name| DetectedCommand::new(format!("just {name}"), format!("recipe `{name}` of {file}")))
        .collect()
}

fn package_json(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let manifest: Option<Value> = root.text("package.json").and_then(|text| serde_json::from_str(&text).ok());
    let Some(manifest) = manifest else { return Vec::new() };
    let manager = package_manager(root, &manifest);
    let checks = NAMES.into_iter().filter(|name| {
        let script = manifest["scripts"][name].as_str().unwrap_or_default();
        // A script that repairs what it finds is no check.
        !script.trim().is_empty() && !script.contains("--fix") && !script.contains("--write")
    });
    let source = |name| format!("script `{name}` of package.json");
    checks.map(|name| DetectedCommand::new(format!("{manager} run {name}"), source(name))).collect()
}

fn detect_cargo_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let Some(manifest) = root.text("Cargo.toml") else { return Vec::new() };
    let is_workspace = has_section(&manifest, "workspace");
    let (all, workspace) = if is_workspace { (" --all", " --workspace") } else { ("", "") };
    vec![
        DetectedCommand::new(format!("cargo fmt{all} --check"), "Cargo.toml"),
        DetectedCommand::new(format!("cargo clippy{workspace} --all-targets -- -D warnings"), "Cargo.toml"),
    ]
}

fn detect_go_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    if !root.file("go.mod") {
        return Vec::new();
    }
    // `gofmt -l` prints the names of unformatted files and exits with 0.
    let format = "files=$(gofmt -l .) && echo \"$files\" && test -z \"$files\"";
    vec![DetectedCommand::new(format, "go.mod"), DetectedCommand::new("go vet ./...", "go.mod")]
}

fn detect_python_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let section = |file: &str, section: &str| root.text(file).is_some_and(|text| has_section(&text, section));
    let configured = |files: &[&'static str], tool: &str| {
        let own = root.first(files);
        own.or_else(|| section("pyproject.toml", &format!("tool.{tool}")).then_some("pyproject.toml"))
    };
    let mut found = Vec::new();
    let mut add =
        |runs: &str, source: &str| found.push(DetectedCommand::new(in_environment(root, runs), source));
    if let Some(file) = configured(&["ruff.toml", ".ruff.toml"], "ruff") {
        add("ruff check", file);
        let formats = section(file, "format") || section(file, "tool.ruff.format");
        if formats {
            add("ruff format --check", file);
        }
    }
    if section("pyproject.toml", "tool.black") {
        add("black --check .", "pyproject.toml");
    }
    if let Some(file) = configured(&["mypy.ini", ".mypy.ini"], "mypy") {
        add("mypy .", file);
    }
    if let Some(file) = root.first(&[".flake8"]) {
        add("flake8", file);
    }
    found
}

fn detect_deno_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let Some(file) = root.first(&["deno.json", "deno.jsonc"]) else { return Vec::new() };
    vec![DetectedCommand::new("deno fmt --check", file), DetectedCommand::new("deno lint", file)]
}

fn detect_other_checks(root: &DetectionFolder) -> Vec<DetectedCommand> {
    let known = [
        (".formatter.exs", "mix format --check-formatted"),
        (".rubocop.yml", "bundle exec rubocop"),
        (".golangci.yml", "golangci-lint run"),
    ];
    let there = known.into_iter().filter(|(file, _)| root.file(file));
    there.map(|(file, command)| DetectedCommand::new(command, file)).collect()
}
