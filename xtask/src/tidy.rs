//! What can be checked without compiling: the layers, the root folder, files that are true only when kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{
    figures, findings,
    shell::{cargo, output, root},
};

/// The most files at the root: a visitor sees what the project is at a glance.
const ROOT_FILES_MAX: usize = 10;
/// Where a source file is two things. Tests and generated snapshots are not counted.
const LINES_MAX: usize = 600;

/// Checks all of it; every problem is told, not only the first. With `writes`, lower figures are kept.
pub(crate) fn tidy(writes: bool) -> Result<(), String> {
    let root = root();
    let mut problems = Vec::new();
    layers(&root, &mut problems)?;
    root_folder(&root, &mut problems)?;
    documents(&root, &mut problems)?;
    sources(&root, &mut problems)?;
    findings::check(&root, &mut problems);
    figures::check_figures(&root, writes, &mut problems)?;
    if problems.is_empty() {
        eprintln!("tidy: layers, root folder, documents, sources and figures are as they should be");
        return Ok(());
    }
    Err(format!("{} things are not tidy:\n  {}", problems.len(), problems.join("\n  ")))
}

/// The crates' dependencies on each other are those of the table in ARCHITECTURE.md, no more and no less.
fn layers(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let metadata = output(root, &cargo(), &["metadata", "--format-version", "1", "--no-deps", "--locked"])?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let ours = |name: &str| name.strip_prefix("cuegate-").map(str::to_owned);
        let normal = package["dependencies"].as_array().into_iter().flatten();
        let uses = normal
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| ours(dependency["name"].as_str()?))
            .collect();
        real.insert(ours(&name).unwrap_or(name), uses);
    }
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(|error| format!("ARCHITECTURE.md: {error}"))?;
    let drawn = table(&architecture);
    if drawn.is_empty() {
        problems.push("ARCHITECTURE.md has no table of layers (`| crate | may use |`)".to_owned());
    }
    for (name, uses) in &drawn {
        match real.get(name) {
            None => problems.push(format!("ARCHITECTURE.md names the crate `{name}`, which is not there")),
            Some(real) if real != uses => {
                problems.push(format!("`{name}` uses {real:?}, ARCHITECTURE.md says {uses:?}"));
            }
            Some(_) => {}
        }
    }
    for name in real.keys().filter(|name| !drawn.contains_key(*name)) {
        problems.push(format!("ARCHITECTURE.md does not name the crate `{name}`"));
    }
    Ok(())
}

/// The rows of the table whose head is `| crate | may use |`.
fn table(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut rows = BTreeMap::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("| crate | may use |")).skip(2);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = |cell: &str| cell.trim_matches('`').to_owned();
        let [crate_cell, uses, ..] = cells.as_slice() else { continue };
        let uses = uses.split(',').map(str::trim).filter(|cell| cell.starts_with('`')).map(name).collect();
        rows.insert(name(crate_cell), uses);
    }
    rows
}

fn root_folder(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let tracked = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    let files: Vec<&str> = tracked.lines().filter(|path| !path.contains('/')).collect();
    if files.len() > ROOT_FILES_MAX {
        problems.push(format!(
            "{} files at the root, at most {ROOT_FILES_MAX}: {}",
            files.len(),
            files.join(", ")
        ));
    }
    Ok(())
}

fn documents(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let needed = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "LICENSES/Apache-2.0.txt",
        "LICENSES/MIT.txt",
        "docs/glossary.md",
        "docs/internals/deviations.md",
        "docs/internals/journal.md",
    ];
    for path in needed {
        if !root.join(path).is_file() {
            problems.push(format!("`{path}` is missing"));
        }
    }
    // Links between documents lead somewhere.
    let listed =
        output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.md", ":!crates"])?;
    for path in listed.lines() {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        for target in links(&text) {
            let base = Path::new(path).parent().unwrap_or(Path::new(""));
            if !target.contains("://") && !target.starts_with('#') {
                let file = target.split('#').next().unwrap_or(target);
                if !root.join(base).join(file).exists() {
                    problems.push(format!("`{path}` links to `{target}`, which is not there"));
                }
            }
        }
    }
    Ok(())
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|target| !target.contains(' '))
}

fn sources(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let tracked = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    for path in tracked.lines().filter(|path| path.contains("/src/")) {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let lines = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text).lines().count();
        if lines > LINES_MAX {
            problems.push(format!("`{path}` has {lines} lines: which two things is it?"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        super::tidy(false).unwrap();
    }

    #[test]
    fn reads_the_table_of_layers() {
        let rows =
            super::table("x\n| crate | may use |\n|---|---|\n| `a` | `b`, `c` |\n| `d` | nothing |\n\nmore");
        assert_eq!(rows["a"].len(), 2);
        assert!(rows["d"].is_empty());
    }
}
