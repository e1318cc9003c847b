//! Packages of a script in place of the program, installed as people install them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::*;
use crate::shell::has;

/// A program that says how it was called, ends with the code that it is told, and waits for a signal.
const SCRIPT: &str = r#"#!/bin/sh
case $1 in
wait) trap 'echo terminated; exit 130' TERM; echo waiting; while :; do sleep 0.1; done ;;
exit) exit "$2" ;;
in) cat ;;
die) kill -9 $$ ;;
*) echo "cuegate $*" ;;
esac
"#;

fn make(folder: &Path) -> PathBuf {
    let platform = *PLATFORMS
        .iter()
        .find(|platform| platform.is_gnu && platform.target.starts_with(std::env::consts::ARCH))
        .unwrap();
    let text = |text: &str| text.as_bytes().to_vec();
    let release = Release {
        platform,
        time: 1_700_000_000,
        binary: text(SCRIPT),
        symbols: text("symbols"),
        completions: [text("bash"), text("zsh"), text("fish")],
        manual: vec![("cuegate.1".to_owned(), text(".TH cuegate 1\n"))],
    };
    make_packages(&root(), &release, folder).unwrap();
    write_index(folder).unwrap();
    folder.to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The package whose name begins and ends so.
fn find(folder: &Path, begin: &str, end: &str) -> String {
    let names = names(folder);
    let name = names.iter().find(|name| name.starts_with(begin) && name.ends_with(end)).unwrap();
    folder.join(name).display().to_string()
}

fn run_in(dir: &Path, program: &str, args: &[&str]) -> (Option<i32>, String) {
    let ran = Command::new(program).args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    (ran.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn packages_have_the_same_bytes_each_time() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(first.path());
    make(second.path());
    assert_eq!(names(first.path()), names(second.path()));
    for name in names(first.path()) {
        let bytes = |folder: &Path| fs::read(folder.join(&name)).unwrap();
        assert!(bytes(first.path()) == bytes(second.path()), "{name}");
    }
    let (code, text) = run_in(first.path(), "sha256sum", &["--check", "--strict", "SHA256SUMS"]);
    assert_eq!((code, text.lines().count()), (Some(0), names(first.path()).len() - 2), "{text}");
    let formula = fs::read_to_string(first.path().join("cuegate.rb")).unwrap();
    let sums = fs::read_to_string(first.path().join("SHA256SUMS")).unwrap();
    let archive = sums.lines().find(|line| line.ends_with("-gnu.tar.gz")).unwrap();
    assert!(formula.contains(archive.split(' ').next().unwrap()), "{formula}");
}

#[test]
fn an_archive_has_the_program_and_its_texts() {
    let folder = tempfile::tempdir().unwrap();
    let archive = find(&make(folder.path()), "cuegate-", "-gnu.tar.gz");
    let (code, text) = run_in(folder.path(), "tar", &["-xzf", &archive]);
    assert_eq!(code, Some(0), "{text}");
    let inside = names(folder.path()).into_iter().find(|name| name.ends_with("-gnu")).unwrap();
    let inside = folder.path().join(inside);
    assert_eq!(names(&inside), ["CHANGELOG.md", "LICENSES", "README.md", "completions", "cuegate", "man"]);
    let program = inside.join("cuegate").display().to_string();
    assert_eq!(run_in(&inside, &program, &["--version"]), (Some(0), "cuegate --version\n".to_owned()));
}

#[test]
fn a_wheel_is_installed_by_pip() {
    if !has("python3", &["-m", "venv", "--help"]) {
        eprintln!("skipped: python3 with venv is not there");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wheel = find(&make(folder.path()), "cuegate-", ".whl");
    assert_eq!(run_in(folder.path(), "python3", &["-m", "venv", "v"]).0, Some(0));
    let (code, text) =
        run_in(folder.path(), "v/bin/pip", &["install", "--no-index", "--disable-pip-version-check", &wheel]);
    assert_eq!(code, Some(0), "{text}");
    let program = folder.path().join("v/bin/cuegate").display().to_string();
    assert_eq!(run_in(folder.path(), &program, &["check"]), (Some(0), "cuegate check\n".to_owned()));
    let (code, text) = run_in(folder.path(), "v/bin/pip", &["show", "--files", "cuegate"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("licenses/LICENSES/MIT.txt"), "{text}");
}

/// The hook of pre-commit installs the wheel, and finds what is wrong.
#[test]
fn pre_commit_starts_the_wheel() {
    let pre_commit = root().join("target/python/bin/pre-commit").display().to_string();
    if !has(&pre_commit, &["--version"]) {
        eprintln!("skipped: pre-commit is not there; `cargo xtask test` installs it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("packages");
    fs::create_dir_all(&packages).unwrap();
    make(&packages);
    let [hooks, project] = ["hooks", "project"].map(|name| folder.path().join(name));
    let git = |folder: &Path, args: &[&str]| {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
        let (code, text) = run_in(folder, "git", &[&identity[..], args].concat());
        assert_eq!(code, Some(0), "git {args:?}: {text}");
        text
    };
    for folder in [&hooks, &project] {
        fs::create_dir_all(folder.join(".takt")).unwrap();
        git(folder, &["init", "--quiet"]);
    }
    for file in [".pre-commit-hooks.yaml", "pyproject.toml"] {
        fs::copy(root().join(file), hooks.join(file)).unwrap();
    }
    git(&hooks, &["add", "--all"]);
    git(&hooks, &["commit", "--quiet", "--message", "hooks"]);
    let revision = git(&hooks, &["rev-parse", "HEAD"]);
    let config = fs::read_to_string(root().join("examples/ci/pre-commit-config.yaml")).unwrap();
    let config = config.replace(REPOSITORY, &hooks.display().to_string());
    let config = config.replace(&format!("v{VERSION}"), revision.trim());
    fs::write(project.join(".pre-commit-config.yaml"), config).unwrap();
    let start = |file: &str| {
        fs::write(project.join(file), "a\n").unwrap();
        git(&project, &["add", "--all"]);
        let mut command = Command::new(&pre_commit);
        command.args(["run", "--verbose"]).current_dir(&project).stdin(Stdio::null());
        // Only setuptools comes from a registry.
        command.env("PRE_COMMIT_HOME", folder.path().join("cache")).env("PIP_FIND_LINKS", &packages);
        let ran = command.output().unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&text));
        String::from_utf8_lossy(&text).into_owned()
    };
    assert!(start("a.txt").contains("Skipped"), "nothing of it is a workflow");
    let text = start(".takt/it.yaml");
    assert!(text.contains("Passed") && text.contains("cuegate check --quiet"), "{text}");
}

/// What people copy installs this version.
#[test]
fn actions_and_hooks_name_this_version() {
    for (path, text, count) in [
        ("pyproject.toml", format!("\"cuegate=={VERSION}\""), 1),
        (".github/actions/check/action.yml", format!("default: \"{VERSION}\""), 1),
        (".github/actions/work/action.yml", format!("default: \"{VERSION}\""), 1),
        ("examples/ci/github-check.yml", format!("/check@v{VERSION} "), 1),
        ("examples/ci/github-work.yml", format!("/work@v{VERSION} "), 1),
        ("examples/ci/gitlab-ci.yml", format!("CUEGATE_VERSION: \"{VERSION}\""), 1),
        ("examples/ci/gitlab-ci.yml", format!("{REPOSITORY}/raw/v{VERSION}/examples/"), 1),
        ("examples/ci/pre-commit-config.yaml", format!("rev: v{VERSION}\n"), 1),
        (".github/actions/install.sh", format!("{REPOSITORY}/releases/download"), 1),
    ] {
        let found = fs::read_to_string(root().join(path)).unwrap().matches(&text).count();
        assert_eq!(found, count, "`{text}` in {path}");
    }
}

#[test]
fn a_deb_says_what_it_needs() {
    if !has("dpkg-deb", &["--version"]) {
        eprintln!("skipped: dpkg-deb is not there");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let deb = find(&make(folder.path()), "cuegate_", ".deb");
    let (code, text) = run_in(folder.path(), "dpkg-deb", &["--field", &deb]);
    assert_eq!(code, Some(0), "{text}");
    for line in ["Depends: git (>= 1:2.31), libc6 (>= 2.28)", "Recommends: bubblewrap"] {
        assert!(text.contains(line), "{text}");
    }
    let (_, text) = run_in(folder.path(), "dpkg-deb", &["--contents", &deb]);
    assert!(
        text.lines().any(|line| line.starts_with('d') && line.ends_with("usr/share/doc/cuegate/")),
        "{text}"
    );
    assert_eq!(run_in(folder.path(), "dpkg-deb", &["--extract", &deb, "x"]).0, Some(0));
    for path in ["usr/bin/cuegate", "usr/share/man/man1/cuegate.1.gz", "usr/share/doc/cuegate/copyright"] {
        assert!(folder.path().join("x").join(path).is_file(), "{path}");
    }
    let program = folder.path().join("x/usr/bin/cuegate").display().to_string();
    assert_eq!(run_in(folder.path(), &program, &["exit", "3"]).0, Some(3));
}

/// The folder of a project with these packages installed by npm.
fn install_by_npm(folder: &Path, packages: &[&str]) -> PathBuf {
    let project = folder.join("project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("package.json"), r#"{"private": true}"#).unwrap();
    // Nothing is asked of a registry: the packages of other platforms are left out anyway.
    let words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--offline", "--cache=../cache"];
    let (code, text) = run_in(&project, "npm", &[&words[..], packages].concat());
    assert_eq!(code, Some(0), "{text}");
    project
}

#[test]
fn npm_starts_the_program_of_this_platform() {
    if !has("npm", &["--version"]) {
        eprintln!("skipped: npm is not there");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = make(folder.path());
    let (platform, wrapper) = (find(&made, "cuegate-linux-", ".tgz"), find(&made, "cuegate-0", ".tgz"));
    let project = install_by_npm(folder.path(), &[&platform, &wrapper]);
    let program = project.join("node_modules/cuegate/bin/cuegate.js").display().to_string();
    let run = |args: &[&str]| run_in(&project, &program, args);
    assert_eq!(run(&["price", "a b"]), (Some(0), "cuegate price a b\n".to_owned()));
    assert_eq!(run(&["exit", "2"]).0, Some(2));
    assert_eq!(run(&["die"]).0, None, "ended by a signal, as the program was");
    let own = project.join(format!("node_modules/@cuegate/{}/bin/cuegate", find_npm_name()));
    assert!(own.is_file(), "the platform's package starts without Node.js");

    // What is piped in arrives, and a signal to the launcher ends the program.
    let mut child =
        Command::new(&program).arg("in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"piped").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"piped");
    let mut child = Command::new(&program).arg("wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "waiting");
    run_in(&project, "kill", &["-TERM", &child.id().to_string()]);
    assert_eq!(lines.next().unwrap().unwrap(), "terminated");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn find_npm_name() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" }
}

#[test]
fn npm_without_optional_packages_says_what_to_do() {
    if !has("npm", &["--version"]) {
        eprintln!("skipped: npm is not there");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wrapper = find(&make(folder.path()), "cuegate-0", ".tgz");
    let project = install_by_npm(folder.path(), &["--omit=optional", &wrapper]);
    let program = project.join("node_modules/.bin/cuegate").display().to_string();
    let (code, text) = run_in(&project, &program, &["check"]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("is not installed") && text.contains("--omit=optional"), "{text}");
}
