//! What `docs/pieces.md` says is there: the tests that it names, and every key that a piece has.

#![expect(clippy::disallowed_methods, reason = "a page is compared with what it speaks of")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/pieces.md")).unwrap()
}

#[test]
fn every_test_of_the_page_is_there() {
    let folder = root().join("crates/dialect/tests/dialect");
    let mut tests = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        tests.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let page = page();
    let named: Vec<&str> =
        page.split('`').skip(1).step_by(2).filter_map(|text| text.strip_prefix("dialect::")).collect();
    assert!(named.len() > 50, "{named:?}");
    let missing: Vec<&&str> = named.iter().filter(|name| !tests.contains(&format!("fn {name}()"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let by_program = std::fs::read_to_string(root().join("crates/cuegate/tests/program/pieces.rs")).unwrap();
    for name in page.split('`').filter_map(|text| text.strip_prefix("program::")) {
        assert!(by_program.contains(&format!("fn {name}()")), "{name}");
    }
}

#[test]
fn every_row_says_what_shows_it() {
    for line in page().lines().filter(|line| {
        line.starts_with("| ") && !line.starts_with("| key") && !line.starts_with("| placeholder")
    }) {
        let last = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(last.starts_with("`dialect::"), "{line}");
    }
}
