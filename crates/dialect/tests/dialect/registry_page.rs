//! What `docs/registry.md` says is there: the tests that it names, and the keys that it lists.
#![expect(clippy::disallowed_methods, reason = "the page is a file of this project")]

use crate::named_tests::{problem, root, shows_an_effect};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/registry.md")).unwrap()
}

/// A table: the section it stands in, the cells of its head, and those of each row with the row's line.
struct Table {
    section: String,
    head: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

fn tables(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut inside, mut section) = (false, String::new());
    for (index, line) in page.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.trim().to_owned();
        }
        let Some(line) = line.strip_prefix('|') else {
            inside = false;
            continue;
        };
        let cells = line.trim_end().trim_end_matches('|').replace("\\|", "\u{1}");
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        match tables.last_mut().filter(|_| inside) {
            None => tables.push(Table { section: section.clone(), head: cells, rows: Vec::new() }),
            Some(_) if cells.iter().all(|cell| cell.chars().all(|c| c == '-')) => {}
            Some(table) => table.rows.push((index + 1, cells)),
        }
        inside = true;
    }
    tables
}

/// What stands between backticks in a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_row_names_a_test_that_is_there() {
    let page = page();
    let problems = problems(&page);
    assert!(problems.is_empty(), "docs/registry.md:\n{}", problems.join("\n"));
    let missing: Vec<String> = tests_named(&page).iter().filter_map(|test| problem(test)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// What a row says that does nothing but warn or refuse: its effect is what was found.
const FINDING: &str = "A finding";

/// That a key is read, or that a wrong value is found, is not what it does: each row names a test that drives something,
/// but where nothing but a finding is its effect.
#[test]
fn every_row_names_a_test_of_an_effect() {
    let bare: Vec<String> = shown(&page())
        .into_iter()
        .filter(|(row, tests)| {
            !row[1].starts_with(FINDING) && !tests.iter().any(|test| shows_an_effect(test))
        })
        .map(|(row, tests)| format!("{}: {tests:?}", row[0]))
        .collect();
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

/// Rows of a page's tables that name no test in their last column, or one that is not there.
pub fn problems(page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for Table { head, rows, .. } in tables(page) {
        if head.last().is_none_or(|last| last != "shown by") {
            problems.push(format!("the last column of {head:?} is not `shown by`"));
        }
        for (line, row) in rows {
            if row.len() != head.len() {
                problems.push(format!("line {line} has {} cells, its head {}", row.len(), head.len()));
            }
            let shown: Vec<&str> = row.last().map(|cell| quoted(cell).collect()).unwrap_or_default();
            if shown.is_empty() {
                problems.push(format!("line {line} names no test"));
            }
            let wrong = shown.into_iter().filter_map(problem);
            problems.extend(wrong.map(|problem| format!("line {line}: {problem}")));
        }
    }
    problems
}

/// Everything on a page that looks like the name of a test.
pub fn tests_named(page: &str) -> Vec<&str> {
    let crates = ["dialect::", "engine::", "flow::", "cuegate::", "provider::", "runner::"];
    quoted(page).filter(|text| crates.iter().any(|prefix| text.starts_with(prefix))).collect()
}

/// The rows of a page's tables: the cells but the last one, and the tests that the last one names.
pub fn shown(page: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let rows = tables(page).into_iter().flat_map(|table| table.rows);
    rows.map(|(_, mut row)| {
        let tests = row.pop().map(|cell| quoted(&cell).map(str::to_owned).collect()).unwrap_or_default();
        (row, tests)
    })
    .collect()
}

/// The keys of a file that the tables of a section list, of every section whose title begins so.
pub fn keys(section: &str, file: &str) -> std::collections::BTreeSet<String> {
    let head = format!("key in {file}");
    let page = page();
    let of_keys = tables(&page)
        .into_iter()
        .filter(|table| table.section.starts_with(section) && table.head.first() == Some(&head));
    let rows = of_keys.flat_map(|table| table.rows);
    rows.flat_map(|(_, row)| quoted(&row[0]).map(str::to_owned).collect::<Vec<_>>()).collect()
}
