//! Each way of looking, and what it has to pass over.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::{
    ROWS, detect_commands as detect_from,
    recipes::{has_recipe, has_target},
    scripts::without_comments,
};

/// A folder with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn commands_in(folder: &Path) -> Vec<String> {
    detect_from(folder, folder).tests.into_iter().map(|found| found.command).collect()
}

fn commands(files: &[(&str, &str)]) -> Vec<String> {
    commands_in(project(files).path())
}

/// That these files mean this command and no other.
fn means(files: &[(&str, &str)], command: &str) {
    assert_eq!(commands(files), [command], "{files:?}");
}

/// That these files say nothing.
fn silent(files: &[(&str, &str)]) {
    assert_eq!(commands(files), [""; 0], "{files:?}");
}

const TEST: &str = r#"{"scripts": {"test": "x"}}"#;

#[test]
fn an_empty_folder_and_one_that_is_not_there() {
    silent(&[]);
    assert!(commands_in(Path::new("/nowhere/at/all")).is_empty());
}

#[test]
fn makefiles() {
    means(&[("Makefile", "test:\n\tx\n")], "make test");
    means(&[("makefile", "all: x\nbuild test : x\n")], "make test");
    means(&[("Makefile", "test:: x\n")], "make test");
    means(&[("Makefile", "check:\n\tx\n")], "make check");
    assert_eq!(commands(&[("Makefile", "check: test\ntest:\n\tx\n")]), ["make test", "make check"]);
    // Of several make reads the first.
    silent(&[("GNUmakefile", "all:\n"), ("Makefile", "test:\n\tx\n")]);
}

#[test]
fn what_is_no_target() {
    for text in [
        ".PHONY: test\n",
        "tests:\n",
        "test := x\n",
        "test ::= x\n",
        "test ?= a:b\n",
        "X = a:b test\n",
        "test: FLAGS = -v\n",
        "test: export FLAGS := -v\n",
        "# test: x\n",
        "all:\n\ttest: x\n",
        "X = a \\\ntest: x\n",
        "define HELP\ntest: x\nendef\n",
        "",
    ] {
        assert!(!has_target(text, "test"), "{text:?}");
    }
    assert!(has_target("define HELP\nx\nendef\ntest: FLAGS = -v\ntest: a; X=1 run\n", "test"));
}

#[test]
fn justfiles() {
    means(&[("justfile", "test:\n    x\n")], "just test");
    means(&[("Justfile", "[group('x')]\n@test *args: build\n    x\n")], "just test");
    means(&[(".justfile", "alias test := t\nt:\n    x\n")], "just test");
    assert!(has_recipe("test filter='' $LEVEL=\"1\": build\n", "test"));
    for text in
        ["test-all:\n", "test target:\n", "test +files:\n", "test := 'x'\n", "t:\n    test: x\n", "test\n"]
    {
        assert!(!has_recipe(text, "test"), "{text:?}");
    }
}

#[test]
fn scripts_of_package_json() {
    means(&[("package.json", TEST)], "npm test");
    means(&[("package.json", "\u{feff}{\"scripts\": {\"test\": \"x\"}}")], "npm test");
    for (lock, command) in [
        ("package-lock.json", "npm test"),
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ] {
        means(&[("package.json", TEST), (lock, "")], command);
    }
    let declared = r#"{"packageManager": "pnpm@10.1.0+sha512.x", "scripts": {"test": "x"}}"#;
    means(&[("package.json", declared), ("package-lock.json", "")], "pnpm test");
    let unknown = r#"{"packageManager": "other@1", "scripts": {"test": "x"}}"#;
    means(&[("package.json", unknown), ("yarn.lock", "")], "yarn test");
    let watching = r#"{"scripts": {"test": "react-scripts test"}}"#;
    means(&[("package.json", watching)], "CI=true npm test");
    for text in [
        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        r#"{"scripts": {"test": " "}}"#,
        r#"{"scripts": {"test": ["x"]}}"#,
        r#"{"scripts": {"tests": "x"}}"#,
        "{}",
        "[]",
        "no json",
    ] {
        silent(&[("package.json", text)]);
    }
    silent(&[("package.json", &"[".repeat(100_000))]);
}

#[test]
fn deno() {
    means(&[("deno.json", r#"{"tasks": {"test": "x"}}"#)], "deno task test");
    let with_comments = "{ // a\n \"tasks\": { /* b */ \"test\": {\"command\": \"x\",}, }, }";
    means(&[("deno.jsonc", with_comments)], "deno task test");
    means(&[("deno.json", "{}")], "deno test");
}

#[test]
fn comments_end_where_strings_begin() {
    let text = "{\"a\": \"// \\\" /*\", // x\n \"b\": [1, 2, /* ] */ ], }";
    assert_eq!(without_comments(text), "{\"a\": \"// \\\" /*\", \n \"b\": [1, 2]}");
    for broken in ["\"", "\"\\", "/*", "//", "/", "é,}", "\"é"] {
        let _ = without_comments(broken);
    }
}

#[test]
fn php() {
    means(&[("composer.json", r#"{"scripts": {"test": ["a", "b"]}}"#)], "composer test");
    means(&[("composer.json", "{}"), ("phpunit.xml.dist", "")], "vendor/bin/phpunit");
    means(&[("phpunit.xml", ""), ("tests/Pest.php", "")], "vendor/bin/pest");
}

#[test]
fn rust() {
    means(&[("Cargo.toml", "[package]\nname = \"x\"\n")], "cargo test");
    means(&[("Cargo.toml", "[workspace]\n")], "cargo test --workspace");
    means(&[("Cargo.toml", "[package]\n[workspace.dependencies]\n")], "cargo test --workspace");
    means(
        &[("Cargo.toml", "[package]\nworkspace = \"..\"\n"), (".config/nextest.toml", "")],
        "cargo nextest run",
    );
}

#[test]
fn python() {
    for (file, text) in [
        ("pytest.ini", ""),
        ("pytest.toml", ""),
        ("conftest.py", ""),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("pyproject.toml", "[tool.pytest]\n"),
        ("tox.ini", "[testenv]\n[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
    ] {
        means(&[(file, text)], "python3 -m pytest");
    }
    means(&[("setup.py", ""), ("tests/unit/test_a.py", "")], "python3 -m pytest");
    means(&[("requirements.txt", ""), ("a_test.py", "")], "python3 -m pytest");
    means(&[("manage.py", "import django\n"), ("requirements.txt", "")], "python3 manage.py test");
    means(&[("tox.ini", "[testenv:py]\n")], "tox");
    means(&[("noxfile.py", ""), ("uv.lock", "")], "nox");
    for (lock, command) in [
        ("uv.lock", "uv run pytest"),
        ("poetry.lock", "poetry run pytest"),
        ("pdm.lock", "pdm run pytest"),
        ("Pipfile", "pipenv run pytest"),
    ] {
        means(&[("pytest.ini", ""), (lock, "")], command);
    }
    means(&[("manage.py", "import django\n"), ("uv.lock", "")], "uv run python manage.py test");
    // Somebody else's tests, or nobody's.
    silent(&[("tests/test_a.py", "")]);
    silent(&[("pyproject.toml", "[project]\n"), ("tests/run.sh", "")]);
}

#[test]
fn wrappers_are_preferred() {
    means(&[("pom.xml", "")], "mvn -B test");
    means(&[("pom.xml", ""), ("mvnw", "")], "sh mvnw -B test");
    means(&[("build.gradle.kts", "")], "gradle test");
    let dir = project(&[("settings.gradle", ""), ("gradlew", ""), ("pom.xml", ""), ("mvnw", "")]);
    for wrapper in ["gradlew", "mvnw"] {
        fs::set_permissions(dir.path().join(wrapper), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(commands_in(dir.path()), ["./mvnw -B test", "./gradlew test"]);
}

#[test]
fn ruby() {
    means(&[("Gemfile", ""), ("spec/a_spec.rb", "")], "bundle exec rspec");
    means(&[("Gemfile", ""), (".rspec", "")], "bundle exec rspec");
    means(&[("Gemfile", ""), ("bin/rails", ""), ("test/a.rb", "")], "bundle exec rails test");
    means(&[("Gemfile", ""), ("Rakefile", ""), ("test/a.rb", "")], "bundle exec rake test");
    silent(&[("Gemfile", ""), ("Rakefile", "")]);
    silent(&[("spec/a_spec.rb", "")]);
}

#[test]
fn dotnet() {
    means(&[("App.sln", "")], "dotnet test");
    means(&[("App.csproj", "")], "dotnet test");
    means(&[("App.sln", ""), ("App.csproj", "")], "dotnet test App.sln");
    means(&[("My 'App.slnx", ""), ("a.fsproj", ""), ("b.fsproj", "")], r"dotnet test './My '\''App.slnx'");
    silent(&[("a.sln", ""), ("b.sln", "")]);
    silent(&[("a.csproj", ""), ("b.csproj", "")]);
}

#[test]
fn languages_with_one_way() {
    for (file, command) in [
        ("go.mod", "go test ./..."),
        ("mix.exs", "mix test"),
        ("rebar.config", "rebar3 eunit"),
        ("Package.swift", "swift test"),
        ("stack.yaml", "stack test"),
        ("cabal.project", "cabal test all"),
        ("build.sbt", "sbt test"),
        ("dune-project", "dune test"),
        ("gleam.toml", "gleam test"),
    ] {
        means(&[(file, "")], command);
    }
}

#[test]
fn cmake_only_with_tests() {
    let command = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure";
    means(&[("CMakeLists.txt", "project(x)\nEnable_Testing ()\n")], command);
    means(&[("CMakeLists.txt", "include( CTest )\n")], command);
    silent(&[("CMakeLists.txt", "project(x)\n# enable_testing()\n")]);
}

#[test]
fn of_several_the_most_telling_is_first() {
    let all = [
        ("Makefile", "test:\n\tx\ncheck:\n\tx\n"),
        ("justfile", "test:\n    x\n"),
        ("package.json", TEST),
        ("composer.json", TEST),
        ("Cargo.toml", "[package]\n"),
        ("go.mod", ""),
        ("pytest.ini", ""),
    ];
    let expected = [
        "make test",
        "just test",
        "npm test",
        "composer test",
        "cargo test",
        "go test ./...",
        "python3 -m pytest",
        "make check",
    ];
    assert_eq!(commands(&all), expected);
    let mut turned = all;
    turned.reverse();
    assert_eq!(commands(&turned), expected);
}

#[test]
fn only_ordinary_files_at_the_top_count() {
    let dir = project(&[("sub/Cargo.toml", ""), ("sub/Makefile", "test:\n\tx\n"), ("go.mod/x", "")]);
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("Makefile"), rustix::fs::Mode::RUSR).unwrap();
    fs::write(dir.path().join("Cargo.toml"), [0xff, 0xfe, 0]).unwrap();
    assert_eq!(commands_in(dir.path()), ["cargo test"], "text that is no UTF-8 is still a file");
}

#[test]
fn every_way_has_its_row_in_the_manual() {
    let manual = include_str!("../../../../../docs/init.md");
    let numbered = manual.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let numbers: Vec<usize> = numbered.filter_map(|(number, _)| number.parse().ok()).collect();
    assert_eq!(numbers, (1..=ROWS.len()).collect::<Vec<usize>>());
}

#[test]
fn lint_and_format_commands_are_proposed() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 8] = [
        (&[("Makefile", "lint:\n\tx\n"), ("Cargo.toml", "")], &["make lint"]),
        (&[("justfile", "fmt-check:\n    x\n")], &["just fmt-check"]),
        (
            &[("package.json", r#"{"scripts": {"lint": "eslint --fix", "typecheck": "tsc"}}"#)],
            &["npm run typecheck"],
        ),
        (
            &[("Cargo.toml", "[workspace]\n")],
            &["cargo fmt --all --check", "cargo clippy --workspace --all-targets -- -D warnings"],
        ),
        (
            &[("pyproject.toml", "[tool.ruff]\n[tool.ruff.format]\n[tool.mypy]\n"), ("uv.lock", "")],
            &["uv run ruff check", "uv run ruff format --check", "uv run mypy ."],
        ),
        (&[("deno.json", "{}")], &["deno fmt --check", "deno lint"]),
        (&[(".rubocop.yml", "")], &["bundle exec rubocop"]),
        (&[("package.json", "not JSON")], &[]),
    ];
    for (files, expected) in cases {
        let dir = project(files);
        let found: Vec<String> =
            detect_from(dir.path(), dir.path()).checks.into_iter().map(|found| found.command).collect();
        assert_eq!(found, expected, "{files:?}");
    }
}

#[test]
fn commands_of_a_package_run_in_its_folder() {
    let dir = project(&[
        ("pnpm-lock.yaml", ""),
        ("packages/a b/package.json", r#"{"scripts": {"test": "x", "lint": "x"}}"#),
        ("examples/one/Cargo.toml", ""),
        ("packages/.hidden/go.mod", ""),
    ]);
    let found = detect_from(dir.path(), dir.path());
    let command = |found: &[super::DetectedCommand]| {
        found.iter().map(|found| found.command.clone()).collect::<Vec<_>>()
    };
    assert_eq!(command(&found.tests), ["cd './packages/a b' && pnpm test"]);
    assert_eq!(command(&found.checks), ["cd './packages/a b' && pnpm run lint"]);
    let inside = detect_from(dir.path(), &dir.path().join("examples/one/src"));
    assert_eq!(command(&inside.tests), ["cd examples/one && cargo test"]);
    assert_eq!(command(&inside.packages), [""; 0]);
}
