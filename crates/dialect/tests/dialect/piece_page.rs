//! What `docs/pieces.md` says is there: the tests that it names, and for each row one that shows an effect.

#![expect(clippy::disallowed_methods, reason = "a page is compared with what it speaks of")]

use std::path::{Path, PathBuf};

use crate::registry_page::{is_there, problems, shown};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/pieces.md")).unwrap()
}

#[test]
fn every_test_of_the_page_is_there() {
    let page = page();
    let problems = problems(&page);
    assert!(problems.is_empty(), "docs/pieces.md:\n{}", problems.join("\n"));
    let crates = ["dialect::", "engine::", "cuegate::", "provider::", "runner::"];
    let named = page.split('`').skip(1).step_by(2);
    let named: Vec<&str> =
        named.filter(|text| crates.iter().any(|prefix| text.starts_with(prefix))).collect();
    assert!(named.len() > 100, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|test| !is_there(test)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// That a key is read, or that a wrong value is found, is not what it does: each row names a test of a run or of what
/// an agent is told; but for keys that do nothing else than warn.
#[test]
fn every_row_names_a_test_of_an_effect() {
    let tests = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialect").join(file);
        std::fs::read_to_string(path).unwrap()
    };
    let read_only = tests("piece_effect.rs") + &tests("piece_findings.rs");
    let shows = |test: &String| {
        let name = test.strip_prefix("dialect::");
        name.is_none_or(|name| !read_only.contains(&format!("fn {name}()")))
    };
    let bare: Vec<String> = shown(&page())
        .into_iter()
        .filter(|(row, tests)| !row[1].starts_with("a warning") && !tests.iter().any(shows))
        .map(|(row, tests)| format!("{}: {tests:?}", row[0]))
        .collect();
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}
