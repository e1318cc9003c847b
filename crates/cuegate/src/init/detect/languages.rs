//! The conventional test command of each language.

use super::{DetectedCommand, root::DetectionFolder};

pub(super) fn detect_cargo_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let manifest = root.text("Cargo.toml")?;
    let program = if root.file(".config/nextest.toml") { "cargo nextest run" } else { "cargo test" };
    // Without `--workspace`, a workspace with a root package tests only that package.
    let all = if has_section(&manifest, "workspace") { " --workspace" } else { "" };
    Some(DetectedCommand::new(format!("{program}{all}"), "Cargo.toml"))
}

pub(super) fn detect_go_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["go.mod"], "go test ./...")
}

/// Batch mode (`-B`) keeps download progress out of the test output.
pub(super) fn detect_maven_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    root.file("pom.xml").then(|| {
        let maven = root.command_of_wrapper_script("mvnw").unwrap_or_else(|| "mvn".to_owned());
        DetectedCommand::new(format!("{maven} -B test"), "pom.xml")
    })
}

pub(super) fn detect_gradle_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let files = ["settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"];
    root.first(&files).map(|file| {
        let gradle = root.command_of_wrapper_script("gradlew").unwrap_or_else(|| "gradle".to_owned());
        DetectedCommand::new(format!("{gradle} test"), file)
    })
}

pub(super) fn detect_ruby_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    if !root.file("Gemfile") {
        return None;
    }
    if root.folder("spec") || root.file(".rspec") {
        return Some(DetectedCommand::new("bundle exec rspec", "Gemfile and spec/"));
    }
    let runner = if root.file("bin/rails") { "rails" } else { "rake" };
    let known = root.folder("test") && (runner == "rails" || root.file("Rakefile"));
    known.then(|| DetectedCommand::new(format!("bundle exec {runner} test"), "Gemfile and test/"))
}

pub(super) fn detect_elixir_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["mix.exs"], "mix test")
}

pub(super) fn detect_erlang_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["rebar.config"], "rebar3 eunit")
}

pub(super) fn detect_php_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let file = root.first(&["phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist"])?;
    let program = if root.file("tests/Pest.php") { "pest" } else { "phpunit" };
    Some(DetectedCommand::new(format!("vendor/bin/{program}"), file))
}

/// A solution or project; with several, `dotnet test` needs the file name.
pub(super) fn detect_dotnet_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let ending_in = |endings: &[&str]| -> Vec<&str> {
        let fits = |name: &&str| endings.iter().any(|ending| name.ends_with(ending));
        root.names().iter().map(String::as_str).filter(fits).collect()
    };
    let (solutions, projects) =
        (ending_in(&[".sln", ".slnx"]), ending_in(&[".csproj", ".fsproj", ".vbproj"]));
    match (solutions.as_slice(), projects.as_slice()) {
        ([one], []) | ([], [one]) => Some(DetectedCommand::new("dotnet test", *one)),
        ([one], _) => Some(DetectedCommand::new(format!("dotnet test {}", quote_file_name(one)), *one)),
        _ => None,
    }
}

pub(super) fn detect_swift_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["Package.swift"], "swift test")
}

pub(super) fn detect_deno_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    // `scripts::deno_task` detects a project with a test task.
    let task = super::scripts::deno_task(root).is_some();
    by_file(root, &["deno.json", "deno.jsonc"], "deno test").filter(|_| !task)
}

pub(super) fn detect_haskell_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["stack.yaml"], "stack test")
        .or_else(|| by_file(root, &["cabal.project"], "cabal test all"))
}

pub(super) fn detect_scala_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["build.sbt"], "sbt test")
}

pub(super) fn detect_ocaml_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["dune-project"], "dune test")
}

pub(super) fn detect_gleam_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    by_file(root, &["gleam.toml"], "gleam test")
}

/// CMake, if it enables tests; uses the conventional build folder `build`.
pub(super) fn detect_cmake_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let text = root.text("CMakeLists.txt")?;
    let collects = text.lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default().to_ascii_lowercase().replace([' ', '\t'], "");
        line.contains("enable_testing(") || line.contains("include(ctest)")
    });
    collects.then(|| {
        let command =
            "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure";
        DetectedCommand::new(command, "CMakeLists.txt")
    })
}

fn by_file(root: &DetectionFolder, files: &[&str], command: &str) -> Option<DetectedCommand> {
    root.first(files).map(|file| DetectedCommand::new(command, file))
}

/// Whether a TOML or INI file has this section or a subsection of it.
pub(super) fn has_section(text: &str, section: &str) -> bool {
    text.lines().any(|line| {
        let inner = line.trim_start().strip_prefix('[').map(|line| line.trim_start_matches('['));
        let rest = inner.and_then(|inner| inner.trim_start().strip_prefix(section));
        rest.is_some_and(|rest| rest.trim_start().starts_with([']', '.', ':']))
    })
}

/// Quotes a file name for the shell.
pub(super) fn quote_file_name(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if word.chars().all(plain) && !word.starts_with('-') {
        return word.to_owned();
    }
    format!("'./{}'", word.replace('\'', r"'\''"))
}
