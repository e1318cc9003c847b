//! The keys that the tables of `docs/reference.md` list, by file.
#![expect(clippy::disallowed_methods, reason = "the page is a file of this project")]

use std::path::{Path, PathBuf};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/reference.md")).unwrap()
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
