//! The tests of this project's crates, by name: what pages may name as showing something.
#![expect(clippy::disallowed_methods, reason = "the sources are files of this project")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where each test of a crate stands, by the crate's folder and the test's name.
type Tests = BTreeMap<(String, String), Vec<PathBuf>>;

/// Files of tests that only load a definition: what they show is what was found, or what it was lowered to.
const READ_ONLY: [&str; 3] = ["crates/formats/", "crates/flow/", "crates/cuegate/tests/program/check.rs"];

/// Files in which definitions are driven all the same, or what agents are told is looked at: their names end so.
const DRIVEN: [&str; 4] = ["_runs.rs", "_random.rs", "piece_answers.rs", "piece_prompts.rs"];

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is wrong with a test that a page names as `crate::name`: it has to be one, once.
pub fn problem(test: &str) -> Option<String> {
    let Some((package, name)) = test.split_once("::") else {
        return Some(format!("`{test}` is not written as `crate::test_name`"));
    };
    match tests().get(&(package.to_owned(), name.to_owned())).map(Vec::as_slice) {
        None => Some(format!("there is no test `{test}`")),
        Some([_]) => None,
        Some(several) => Some(format!("{} tests are called `{test}`: {several:?}", several.len())),
    }
}

/// Whether a test drives a run or an agent, rather than looking at what was read.
pub fn shows_an_effect(test: &str) -> bool {
    let Some((package, name)) = test.split_once("::") else { return false };
    let places = tests().get(&(package.to_owned(), name.to_owned()));
    places.into_iter().flatten().any(|path| {
        let path = path.to_str().unwrap();
        !READ_ONLY.iter().any(|start| path.starts_with(start)) || DRIVEN.iter().any(|end| path.ends_with(end))
    })
}

fn tests() -> &'static Tests {
    static TESTS: OnceLock<Tests> = OnceLock::new();
    TESTS.get_or_init(|| {
        let mut tests = Tests::new();
        for entry in std::fs::read_dir(root().join("crates")).unwrap() {
            let entry = entry.unwrap();
            collect(&entry.path(), entry.file_name().to_str().unwrap(), &mut tests);
        }
        tests
    })
}

fn collect(folder: &Path, package: &str, tests: &mut Tests) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, package, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let place = path.strip_prefix(root()).unwrap();
            for name in tests_in(&text) {
                tests.entry((package.to_owned(), name)).or_default().push(place.to_owned());
            }
        }
    }
}

/// The names of the tests in a source: functions below a `#[test]` or a `#[tokio::test]`, whatever attributes stand
/// between them.
fn tests_in(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            marked = true;
            continue;
        }
        let after = line.strip_prefix("async ").unwrap_or(line);
        let Some(rest) = after.strip_prefix("fn ").filter(|_| marked) else { continue };
        marked = false;
        names.extend(rest.split_once('(').map(|(name, _)| name.to_owned()).filter(|name| is_name(name)));
    }
    names
}

/// Macros name their functions by a variable.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn only_functions_with_the_attribute_are_tests() {
    let source = "fn helper() {}\n#[test]\n#[expect(\n  x,\n)]\nfn one() {\n  fn inner() {}\n}\n\
                  #[tokio::test(flavor = \"y\")]\nasync fn two() {}\npub fn three() {}\n";
    assert_eq!(tests_in(source), ["one", "two"]);
    assert!(problem("dialect::only_functions_with_the_attribute_are_tests").is_none());
    for helper in ["dialect::lowered", "dialect::is_name", "cuegate::closing_twice", "is_name"] {
        assert!(problem(helper).is_some(), "{helper}");
    }
}
