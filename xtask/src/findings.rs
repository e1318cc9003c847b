//! `docs/findings.md`: every finding with its manual page, how bad it is, and in which format it occurs.
//!
//! The pages are those of `cuegate explain`. Where and how bad is read from the sources, which say both where they
//! report a finding: the folder is the format, the constructor the severity.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use cuegate_flow::checks::Code;

use crate::shell::{output, root};

/// The page.
pub(crate) const PAGE: &str = "docs/findings.md";
/// What can be relied on, beside the code that it is about.
const EXACTNESS: &str = include_str!("../../crates/flow/src/analysis/exactness.md");

const HEAD: &str = "\
# Findings

The findings of `cuegate check`, each with the page that `cuegate explain CODE` prints. Each entry gives the severity and
the formats it applies to.

- **error**: the definition cannot run. **warning**: it runs, but probably not as its author thinks (`check --strict`
  takes it for an error). **note**: worth knowing. Where two are named, it depends on the place.
- *flow*: reported for every format that has the feature: only pieces have parallel members and monitors, only step
  registries have parameters and handoffs.

This page is made by `cargo xtask findings`.

## How exact findings about paths are

";

/// How a source says how bad a finding is, by what stands before its code.
const SEVERITIES: [(&str, &str); 5] = [
    ("Diagnostic::error(", "error"),
    ("faulty(path,", "error"),
    ("Diagnostic::warning(", "warning"),
    ("warn(", "warning"),
    ("Diagnostic::note(", "note"),
];

/// What reads which format, by the beginning of its path; the first that fits counts.
const FORMATS: [(&str, &str); 8] = [
    ("crates/flow/", "flow"),
    ("crates/formats/src/takt/", PIECES),
    ("crates/formats/src/values/yaml/", PIECES),
    ("crates/formats/src/climpt/older/check_flow/", "check flows"),
    ("crates/formats/src/climpt/older/answer_words.rs", COMPLETE),
    ("crates/formats/src/climpt/older/completion_steps.rs", COMPLETE),
    ("crates/formats/src/climpt/", REGISTRIES),
    ("crates/formats/src/values/json/parse.rs", REGISTRIES),
];
const PIECES: &str = "pieces";
/// What reads definitions, the pages of its findings, and the list of those.
const FORMATS_SRC: &str = "crates/formats/src/";
const CODES: &str = "crates/formats/src/lints/";
const LIST: &str = "crates/formats/src/lints/mod.rs";
const COMPLETE: &str = "step registries of the \"complete\" generation";
const REGISTRIES: &str = "step registries";

/// Where a finding is reported, and how.
#[derive(Debug, Default)]
struct Reported {
    severities: BTreeSet<&'static str>,
    formats: BTreeSet<&'static str>,
}

/// Writes the page.
pub(crate) fn findings() -> Result<(), String> {
    let root = root();
    fs::write(root.join(PAGE), page(&root)?).map_err(|error| format!("{PAGE}: {error}"))
}

/// What is wrong with the page as it is kept.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    match sources(root) {
        Ok(sources) => problems.extend(unnamed(&sources)),
        Err(problem) => problems.push(problem),
    }
    match page(root) {
        Ok(page) if fs::read_to_string(root.join(PAGE)).is_ok_and(|kept| kept == page) => {}
        Ok(_) => problems.push(format!("`{PAGE}` is not what the findings are: run `cargo xtask findings`")),
        Err(problem) => problems.push(problem),
    }
}

fn page(root: &Path) -> Result<String, String> {
    let mut codes: Vec<Code> = cuegate_flow::checks::list_codes().to_vec();
    codes.extend(cuegate_formats::list_codes());
    codes.sort_by_key(|code| code.name);
    let reported = reported(root)?;
    let mut page = format!("{HEAD}{EXACTNESS}");
    for code in codes {
        let Some(how) = reported.get(code.name) else {
            return Err(format!("no source reports the finding `{}`", code.name));
        };
        let (title, body) = code.page.split_once("\n\n").unwrap_or((code.page, ""));
        let title = title.strip_prefix(code.name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(title);
        let severities: Vec<&str> = how.severities.iter().copied().collect();
        let (severities, formats) = (severities.join(" or "), places(&how.formats));
        let body = body.replace("\nExample:\n", "\nExample:\n\n");
        write!(page, "\n## `{}`: {title}\n\n**{severities}**, {formats}\n\n{body}", code.name)
            .map_err(|error| error.to_string())?;
    }
    Ok(page)
}

/// The formats in words, those left out that are part of another one.
fn places(formats: &BTreeSet<&'static str>) -> String {
    let registries = formats.contains(REGISTRIES);
    let part = |format: &str| registries && (format == COMPLETE || format == "check flows");
    let words: Vec<&str> = formats.iter().copied().filter(|format| !part(format)).collect();
    words.join(", ")
}

/// The paths and texts of what reports findings, without its tests.
fn sources(root: &Path) -> Result<Vec<(String, String)>, String> {
    let listed = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    let mut sources = Vec::new();
    for path in listed.lines() {
        if [FORMATS_SRC, "crates/flow/src/checks/"].iter().any(|folder| path.starts_with(folder)) {
            let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            sources.push((path.to_owned(), text));
        }
    }
    Ok(sources)
}

/// By code, what the sources say about it.
fn reported(root: &Path) -> Result<BTreeMap<String, Reported>, String> {
    let sources = sources(root)?;
    let mut reported = BTreeMap::new();
    let names = names(&sources);
    for (path, text) in &sources {
        if path.starts_with("crates/flow/") {
            let Some(name) = between(text, "name: \"", "\"").filter(|_| text.contains("CODE: Code")) else {
                continue;
            };
            uses(path, text, "CODE.name", |_| Some(name), &mut reported)?;
        } else {
            uses(path, text, "lints::", |rest| names.get(word(rest)).map(String::as_str), &mut reported)?;
        }
    }
    Ok(reported)
}

/// By constant of `codes/mod.rs`, the code: `NAME = file,` for one that has a file there, else a text.
fn names(sources: &[(String, String)]) -> BTreeMap<String, String> {
    let list = sources.iter().filter(|(path, _)| path == LIST).flat_map(|(_, text)| text.lines());
    let constants = list.filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(crate) const ").unwrap_or(line);
        let name = word(line);
        let rest = line[name.len()..].trim_start_matches(": &str").strip_prefix(" = ")?;
        let code = match rest.strip_prefix('"') {
            Some(text) => text.split('"').next()?.to_owned(),
            None => rest.strip_suffix(',')?.replace('_', "-"),
        };
        (!name.is_empty()).then(|| (name.to_owned(), code))
    });
    constants.collect()
}

/// What the files of codes leave out: their place in the list, or the name of what reports them.
fn unnamed(sources: &[(String, String)]) -> Vec<String> {
    let names = names(sources);
    let codes: BTreeSet<&str> = names.values().map(String::as_str).collect();
    let mut problems = Vec::new();
    for (path, text) in sources {
        let Some(file) = path.strip_prefix(CODES).and_then(|rest| rest.strip_suffix(".rs")) else { continue };
        if !text.contains("CODE: Code") {
            continue;
        }
        if !codes.contains(file.replace('_', "-").as_str()) {
            problems.push(format!("`{path}` is not listed in `{LIST}`"));
            continue;
        }
    }
    problems
}

/// Collects where a source names codes, and what it says before them.
fn uses<'n>(
    path: &str,
    text: &str,
    mark: &str,
    code: impl Fn(&str) -> Option<&'n str>,
    reported: &mut BTreeMap<String, Reported>,
) -> Result<(), String> {
    for (at, _) in text.match_indices(mark) {
        let before = text[..at].trim_end();
        // A comparison reports nothing.
        let Some(code) = code(&text[at + mark.len()..]).filter(|_| !before.ends_with("==")) else { continue };
        let before: String = before.split_whitespace().collect();
        let Some((_, severity)) = SEVERITIES.iter().find(|(say, _)| before.ends_with(say)) else {
            return Err(format!(
                "`{path}` does not say beside `{code}` how bad it is: write `Diagnostic::error({mark}…`, \
                 `warning` or `note`"
            ));
        };
        let how = reported.entry(code.to_owned()).or_default();
        how.severities.insert(severity);
        match FORMATS.iter().find(|(folder, _)| path.starts_with(folder)) {
            Some((_, format)) => drop(how.formats.insert(format)),
            None => how.formats.extend([REGISTRIES, PIECES]),
        }
    }
    Ok(())
}

/// The constant that a text begins with.
fn word(text: &str) -> &str {
    let end =
        text.find(|letter: char| !(letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'));
    &text[..end.unwrap_or(text.len())]
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    text.split_once(from)?.1.split_once(to).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{LIST, Reported, places, unnamed, uses};

    fn of(path: &str, text: &str) -> Result<BTreeMap<String, Reported>, String> {
        let mut reported = BTreeMap::new();
        uses(path, text, "lints::", |rest| rest.starts_with("X").then_some("x"), &mut reported)?;
        Ok(reported)
    }

    #[test]
    fn a_source_says_where_and_how_bad() {
        let text = "push(Diagnostic::error(\n    lints::X, span));\nif code == lints::X {}\nwarn(lints::X)";
        let found = of("crates/formats/src/climpt/older/check_flow/a.rs", text).unwrap();
        assert_eq!(found["x"].severities.iter().copied().collect::<Vec<_>>(), ["error", "warning"]);
        assert_eq!(places(&found["x"].formats), "check flows");
        let shared = of("crates/formats/src/source/loader.rs", "faulty(path, lints::X)").unwrap();
        assert_eq!(places(&shared["x"].formats), "pieces, step registries");
    }

    #[test]
    fn one_that_does_not_say_how_bad_is_refused() {
        let problem = of("crates/formats/src/a.rs", "let code = lints::X;").unwrap_err();
        assert!(problem.contains("does not say beside `x` how bad it is"), "{problem}");
    }

    #[test]
    fn a_file_of_a_code_is_listed() {
        let of = |list: &str| {
            let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
            unnamed(&[
                file(LIST, list),
                file("crates/formats/src/lints/too_deep.rs", "pub(super) const CODE: Code"),
            ])
        };
        assert_eq!(
            of("    TOO_DEEP = too_deep,
"),
            [""; 0]
        );
        assert!(of("")[0].contains("is not listed"));
    }
}
