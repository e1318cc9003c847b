//! The size of the project, counted: lines, files, undocumented public items by crate, and finding codes.

use std::{collections::BTreeMap, fs, path::Path};

use crate::shell::output;

/// The most finding codes: more than a user can tell apart help nobody.
const CODES_MAX: usize = 80;
/// The most lines of Rust that the project aims for.
const LINES_TARGET: usize = 125_000;
/// The most Rust files that the project aims for.
const FILES_TARGET: usize = 600;

/// The size of one crate.
#[derive(Debug, Default)]
struct Size {
    files: usize,
    source: usize,
    tests: usize,
    undocumented: usize,
}

impl Size {
    fn add(&mut self, other: &Size) {
        self.files += other.files;
        self.source += other.source;
        self.tests += other.tests;
        self.undocumented += other.undocumented;
    }
}

/// Prints the table, and reports what exceeds a limit.
///
/// # Errors
/// When git cannot list the files.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let listed = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    let mut crates: BTreeMap<&str, Size> = BTreeMap::new();
    for path in listed.lines() {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let name = path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or(path);
        crates.entry(name).or_default().add(&size(path, &text));
    }
    let mut all = Size::default();
    eprintln!("{:<10} {:>6} {:>8} {:>8} {:>13}", "crate", "files", "source", "tests", "undocumented");
    for (name, size) in &crates {
        row(name, size);
        all.add(size);
    }
    row("all", &all);
    let codes = cuegate_flow::checks::codes().len() + cuegate_formats::codes().len();
    let lines = all.source + all.tests;
    eprintln!(
        "{codes} codes (at most {CODES_MAX}); {lines} lines (target {LINES_TARGET}), {} files (target {FILES_TARGET})",
        all.files
    );
    if codes > CODES_MAX {
        problems.push(format!(
            "{codes} finding codes, at most {CODES_MAX}: merge those that differ in place only"
        ));
    }
    Ok(())
}

fn row(name: &str, size: &Size) {
    let Size { files, source, tests, undocumented } = size;
    eprintln!("{name:<10} {files:>6} {source:>8} {tests:>8} {undocumented:>13}");
}

/// The size of one file. Its lines from the first test module on are tests, and so is a whole file of tests.
fn size(path: &str, text: &str) -> Size {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs") || path.starts_with("testkit/");
    let lines: Vec<&str> = text.lines().collect();
    let first_test =
        lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with("mod tests {"));
    let source = if is_test { 0 } else { first_test.unwrap_or(lines.len()) };
    Size {
        files: 1,
        source,
        tests: lines.len() - source,
        undocumented: lines[..source]
            .iter()
            .enumerate()
            .filter(|(at, _)| is_undocumented(&lines, *at))
            .count(),
    }
}

/// Whether a public item begins in a line and no doc comment stands above it and its attributes.
fn is_undocumented(lines: &[&str], at: usize) -> bool {
    const ITEMS: [&str; 7] = ["fn ", "struct ", "enum ", "trait ", "const ", "type ", "static "];
    let Some(item) = lines[at].trim_start().strip_prefix("pub ") else { return false };
    let item = item.trim_start_matches("async ").trim_start_matches("const fn");
    if !ITEMS.iter().any(|word| item.starts_with(word)) && !item.starts_with(' ') {
        return false;
    }
    let mut above = lines[..at].iter().rev().map(|line| line.trim_start());
    let above = above.find(|line| !(line.starts_with("#[") || line.ends_with(")]")));
    !above.is_some_and(|line| line.starts_with("///"))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn tests_and_undocumented_items_are_counted() {
        let text =
            "/// One.\n#[derive(Debug)]\npub struct A;\n\npub fn b() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        let counted = size("crates/flow/src/a.rs", text);
        assert_eq!((counted.source, counted.tests, counted.undocumented), (6, 3, 1));
        assert_eq!(size("crates/flow/tests/a.rs", text).source, 0);
    }
}
