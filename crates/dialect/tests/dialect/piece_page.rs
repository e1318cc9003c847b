//! What `docs/pieces.md` says is there: the tests that it names, and for each row one that shows an effect.

#![expect(clippy::disallowed_methods, reason = "a page is compared with what it speaks of")]

use crate::named_tests::{problem, root, shows_an_effect};
use crate::registry_page::{problems, shown, tests_named};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/pieces.md")).unwrap()
}

#[test]
fn every_test_of_the_page_is_there() {
    let page = page();
    let problems = problems(&page);
    assert!(problems.is_empty(), "docs/pieces.md:\n{}", problems.join("\n"));
    let named = tests_named(&page);
    assert!(named.len() > 100, "{named:?}");
    let missing: Vec<String> = named.iter().filter_map(|test| problem(test)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// That a key is read, or that a wrong value is found, is not what it does: each row names a test of a run or of what
/// an agent is told; but for keys that do nothing else than warn.
#[test]
fn every_row_names_a_test_of_an_effect() {
    let bare: Vec<String> = shown(&page())
        .into_iter()
        .filter(|(row, tests)| {
            !row[1].starts_with("a warning") && !tests.iter().any(|test| shows_an_effect(test))
        })
        .map(|(row, tests)| format!("{}: {tests:?}", row[0]))
        .collect();
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}
