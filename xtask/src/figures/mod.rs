//! The figures of the product's source by crate: lines, names, folders, comments. They are kept in `xtask/figures.json` and
//! may only fall. `cargo xtask tidy --write` writes lower ones; a change that needs a higher one edits the file by hand
//! and says why.

mod imports;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Map, Value, json};

use crate::shell::output;
use source::SourceFile;

/// Where the figures are kept.
const KEPT: &str = "xtask/figures.json";
/// The most finding codes: more than a user can tell apart help nobody.
const CODES_MAX: usize = 80;
/// The most files of a folder. Folders with one file for each of many alike things are no exception: they have subfolders.
const FOLDER_MAX: usize = 20;
/// Names of one word that say everything, at a module's front door.
const ENTRY_NAMES: [&str; 12] = [
    "apply", "blocking", "check", "decide", "lock", "main", "parse", "plural", "read", "render", "run",
    "write",
];

/// The crates that other people's programs use: all that they show is documented.
const LIBRARIES: [&str; 3] = ["cuegate", "journal", "provider"];

/// What is measured of a crate, in the order in which it is printed.
const NAMES: [&str; 7] =
    ["lines", "one-word", "types-twice", "crowded-folders", "two-way-imports", "empty-docs", "undocumented"];

/// The figures of a crate by their names, and where the ones that should be 0 come from.
#[derive(Debug, Default)]
struct Figures {
    files: usize,
    functions: usize,
    by_name: BTreeMap<&'static str, usize>,
    places: BTreeMap<&'static str, Vec<String>>,
}

impl Figures {
    fn of(name: &str, files: &[(String, SourceFile)]) -> Figures {
        let mut figures = Figures { files: files.len(), ..Figures::default() };
        let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
        let mut one_word = Vec::new();
        for (path, file) in files {
            figures.functions += file.functions.len();
            let is_one_word = |name: &&String| !name.contains('_') && !ENTRY_NAMES.contains(&name.as_str());
            one_word.extend(file.functions.iter().filter(is_one_word).map(|name| format!("{path} {name}")));
            for name in &file.types {
                types.entry(name).or_default().insert(path);
            }
            *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
        }
        let twice = types.iter().filter(|(_, files)| files.len() > 1);
        let twice = twice.map(|(name, files)| format!("{name}: {}", join(files))).collect();
        let crowded = folders.iter().filter(|(_, count)| **count > FOLDER_MAX);
        let crowded = crowded.map(|(folder, count)| format!("{folder}: {count} files")).collect();
        let empty = files
            .iter()
            .flat_map(|(path, file)| file.empty_docs.iter().map(move |at| format!("{path}:{at}")));
        let undocumented: usize = match LIBRARIES.contains(&name) {
            true => files.iter().map(|(_, file)| file.undocumented).sum(),
            false => 0,
        };
        figures.by_name.insert("lines", files.iter().map(|(_, file)| file.lines).sum());
        figures.by_name.insert("undocumented", undocumented);
        for (name, places) in [
            ("one-word", one_word),
            ("types-twice", twice),
            ("crowded-folders", crowded),
            ("two-way-imports", imports::find_two_way(files)),
            ("empty-docs", empty.collect()),
        ] {
            figures.by_name.insert(name, places.len());
            figures.places.insert(name, places);
        }
        figures
    }
}

fn join(files: &BTreeSet<&str>) -> String {
    files.iter().copied().collect::<Vec<_>>().join(", ")
}

/// Prints the figures, and reports those that are higher than the kept ones. With `writes`, lower ones are written down.
///
/// # Errors
/// When git cannot list the files, or a file is no Rust.
pub(crate) fn check_figures(root: &Path, writes: bool, problems: &mut Vec<String>) -> Result<(), String> {
    let crates = measure_crates(root)?;
    print_table(&crates);
    let kept = fs::read_to_string(root.join(KEPT)).unwrap_or_else(|_| "{}".to_owned());
    let mut kept: Map<String, Value> =
        serde_json::from_str(&kept).map_err(|error| format!("`{KEPT}`: {error}"))?;
    for (name, figures) in &crates {
        for figure in NAMES {
            let now = figures.by_name[figure];
            let limit = kept.get(name).and_then(|row| row[figure].as_u64()).unwrap_or_default();
            if now as u64 > limit && (kept.contains_key(name) || !writes) {
                let places = figures.places.get(figure).into_iter().flatten().take(5);
                let places: String = places.map(|place| format!("\n    {place}")).collect();
                problems.push(format!("`{name}`: {figure} rose from {limit} to {now} (`{KEPT}`){places}"));
            }
        }
    }
    if writes && problems.is_empty() {
        kept = crates
            .iter()
            .map(|(name, figures)| {
                let row: Map<_, _> = NAMES
                    .iter()
                    .map(|figure| ((*figure).to_owned(), json!(figures.by_name[figure])))
                    .collect();
                (name.clone(), Value::Object(row))
            })
            .collect();
        fs::write(root.join(KEPT), format_rows(&kept)).map_err(|error| format!("`{KEPT}`: {error}"))?;
    }
    let codes = crate::findings::list_codes(root)?.len();
    if codes > CODES_MAX {
        problems.push(format!(
            "{codes} finding codes, at most {CODES_MAX}: merge those that differ in place only"
        ));
    }
    Ok(())
}

/// Prints where a figure comes from, for those who want to lower it.
///
/// # Errors
/// As [`check_figures`].
pub(crate) fn print_places(root: &Path, figure: &str) -> Result<(), String> {
    for (name, figures) in measure_crates(root)? {
        for place in figures.places.get(figure).into_iter().flatten() {
            println!("{name} {place}");
        }
    }
    Ok(())
}

fn measure_crates(root: &Path) -> Result<BTreeMap<String, Figures>, String> {
    let listed =
        output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "crates/*.rs"])?;
    let mut crates: BTreeMap<String, Vec<(String, SourceFile)>> = BTreeMap::new();
    for path in listed.lines().filter(|path| source::is_product(path)) {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let Some((name, inside)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let file = SourceFile::parse(&text).map_err(|error| format!("`{path}`: {error}"))?;
        crates.entry(name.to_owned()).or_default().push((inside.to_owned(), file));
    }
    Ok(crates
        .into_iter()
        .map(|(name, files)| {
            let figures = Figures::of(&name, &files);
            (name, figures)
        })
        .collect())
}

fn print_table(crates: &BTreeMap<String, Figures>) {
    eprintln!(
        "{:<10} {:>6} {:>8} {:>9} {}",
        "crate",
        "files",
        "lines",
        "functions",
        NAMES[1..].iter().map(|name| format!("{name:>16}")).collect::<String>()
    );
    let mut all = Figures::default();
    for (name, figures) in crates {
        print_row(name, figures);
        all.files += figures.files;
        all.functions += figures.functions;
        for (figure, count) in &figures.by_name {
            *all.by_name.entry(figure).or_default() += count;
        }
    }
    print_row("all", &all);
}

fn print_row(name: &str, figures: &Figures) {
    let Figures { files, functions, by_name, .. } = figures;
    let cell = |figure: &&str| match *figure {
        "one-word" => {
            let count = by_name[figure];
            format!("{:>16}", format!("{count} ({} %)", 100 * count / (*functions).max(1)))
        }
        figure => format!("{:>16}", by_name[figure]),
    };
    let cells: String = NAMES[1..].iter().map(cell).collect();
    eprintln!("{name:<10} {files:>6} {:>8} {functions:>9} {cells}", by_name["lines"]);
}

/// One line for each crate, so that a change is a line of a diff.
fn format_rows(kept: &Map<String, Value>) -> String {
    let rows: Vec<String> = kept.iter().map(|(name, row)| format!("  \"{name}\": {row}")).collect();
    format!("{{\n{}\n}}\n", rows.join(",\n"))
}
