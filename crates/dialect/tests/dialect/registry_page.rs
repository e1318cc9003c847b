//! What `docs/registry.md` says is there: the tests that it names, and the keys that it lists.
#![expect(clippy::disallowed_methods, reason = "the page and the sources are files of this project")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The project's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/registry.md")).unwrap()
}

/// A table: the cells of its head, and those of each row with the row's line.
struct Table {
    head: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

fn tables(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    for (index, line) in page.lines().enumerate() {
        let Some(line) = line.strip_prefix('|') else {
            inside = false;
            continue;
        };
        let cells = line.trim_end().trim_end_matches('|').replace("\\|", "\u{1}");
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        match tables.last_mut().filter(|_| inside) {
            None => tables.push(Table { head: cells, rows: Vec::new() }),
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

/// Every source file of the project's crates, in one text a crate.
fn sources(name: &str) -> &'static str {
    static SOURCES: OnceLock<std::collections::BTreeMap<String, String>> = OnceLock::new();
    let all = SOURCES.get_or_init(|| {
        let crates = std::fs::read_dir(root().join("crates")).unwrap();
        crates
            .map(|entry| {
                let entry = entry.unwrap();
                let mut text = String::new();
                read_below(&entry.path(), &mut text);
                (entry.file_name().into_string().unwrap(), text)
            })
            .collect()
    });
    all.get(name).map_or("", String::as_str)
}

fn read_below(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_below(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_row_names_a_test_that_is_there() {
    let problems = problems(&page());
    assert!(problems.is_empty(), "docs/registry.md:\n{}", problems.join("\n"));
}

/// Rows of a page's tables that name no test in their last column, or one that is not there.
pub fn problems(page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for Table { head, rows } in tables(page) {
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
            let missing = shown.into_iter().filter(|test| !is_there(test));
            problems.extend(missing.map(|test| format!("line {line}: there is no test `{test}`")));
        }
    }
    problems
}

/// Whether a test of this name, `crate::test_name`, is there.
pub fn is_there(test: &str) -> bool {
    test.split_once("::").is_some_and(|(name, test)| sources(name).contains(&format!("fn {test}(")))
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

/// The keys that the tables of keys list.
pub fn keys() -> std::collections::BTreeSet<String> {
    let page = page();
    let of_keys =
        tables(&page).into_iter().filter(|table| table.head.first().is_some_and(|head| head == "key"));
    let rows = of_keys.flat_map(|table| table.rows);
    rows.flat_map(|(_, row)| quoted(&row[0]).map(str::to_owned).collect::<Vec<_>>()).collect()
}
