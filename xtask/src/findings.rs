//! The manual pages of findings: the index `docs/findings/README.md`, and the line of each page that says how bad the
//! finding is and in which formats it occurs. Both are read from the sources, which say them where they report a
//! finding: the folder is the format, the constructor the severity.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use crate::shell::{output, root};

/// The folder of the pages, and the name of its index.
const PAGES: &str = "docs/findings";
const INDEX: &str = "README.md";
/// What can be relied on, beside the code that it is about.
const EXACTNESS: &str = include_str!("../../crates/flow/src/analysis/exactness.md");

const HEAD: &str = "\
# Findings

What `cuegate check` finds. `cuegate explain CODE` prints the page of a code.

- **error**: the workflow cannot run. **warning**: it runs, but probably not as its author thinks (`check --strict`
  takes it for an error). **note**: worth knowing. Where two are named, it depends on the place.
- *every format*: reported wherever the format has the feature: only TAKT workflows have parallel members and monitors,
  only step registries have parameters and handoffs.

`cargo xtask findings` writes this table.

| code | finding | severity | formats |
|---|---|---|---|
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
    ("crates/flow/", "every format"),
    ("crates/formats/src/takt/", PIECES),
    ("crates/formats/src/values/yaml/", PIECES),
    ("crates/formats/src/climpt/older/check_flow/", "check flows"),
    ("crates/formats/src/climpt/older/answer_words.rs", COMPLETE),
    ("crates/formats/src/climpt/older/completion_steps.rs", COMPLETE),
    ("crates/formats/src/climpt/", REGISTRIES),
    ("crates/formats/src/values/json/parse.rs", REGISTRIES),
];
const PIECES: &str = "TAKT workflows";
/// What reads definitions, and the list of its codes.
const FORMATS_SRC: &str = "crates/formats/src/";
const LIST: &str = "crates/formats/src/codes.rs";
const COMPLETE: &str = "step registries of the \"complete\" generation";
const REGISTRIES: &str = "step registries";

/// Where a finding is reported, and how.
#[derive(Debug, Default)]
struct Reported {
    severities: BTreeSet<&'static str>,
    formats: BTreeSet<&'static str>,
}

/// Writes the index and the line of each page.
pub(crate) fn findings() -> Result<(), String> {
    let root = root();
    for (name, text) in pages(&root)? {
        let path = root.join(PAGES).join(&name);
        fs::write(path, text).map_err(|error| format!("{PAGES}/{name}: {error}"))?;
    }
    Ok(())
}

/// What is wrong with the pages as they are kept.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    let pages = match pages(root) {
        Ok(pages) => pages,
        Err(problem) => return problems.push(problem),
    };
    for (name, text) in &pages {
        if !fs::read_to_string(root.join(PAGES).join(name)).is_ok_and(|kept| kept == *text) {
            problems
                .push(format!("`{PAGES}/{name}` is not what the sources say: run `cargo xtask findings`"));
        }
    }
    let kept = fs::read_dir(root.join(PAGES)).into_iter().flatten().flatten();
    for name in kept.filter_map(|entry| entry.file_name().into_string().ok()) {
        if !pages.contains_key(&name) {
            problems.push(format!("`{PAGES}/{name}` is the page of no finding"));
        }
    }
}

/// The pages and the index as they should be, by file name.
fn pages(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let reported = reported(root)?;
    let mut index = HEAD.to_owned();
    let mut pages = BTreeMap::new();
    for name in list_codes(root)? {
        let path = format!("{PAGES}/{name}.md");
        let page = fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let Some(how) = reported.get(&name) else {
            return Err(format!("no source reports the finding `{name}`"));
        };
        let severities: Vec<&str> = how.severities.iter().copied().collect();
        let (severities, formats) = (severities.join(" or "), places(&how.formats));
        let mut parts = page.splitn(3, "\n\n");
        let (Some(head), Some(_), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("`{PAGES}/{name}.md` has no title, severity and text"));
        };
        let title = head.split_once(": ").map_or(head, |(_, title)| title).replace('|', "\\|");
        writeln!(index, "| [`{name}`]({name}.md) | {title} | {severities} | {formats} |")
            .map_err(|error| error.to_string())?;
        pages.insert(format!("{name}.md"), format!("{head}\n\n**{severities}**, {formats}\n\n{body}"));
    }
    pages.insert(INDEX.to_owned(), format!("{index}\n## How exact findings about paths are\n\n{EXACTNESS}"));
    Ok(pages)
}

/// The codes of all findings, in order: those of the flow check, and those that loading a definition reports.
///
/// # Errors
/// When a source cannot be read.
pub(crate) fn list_codes(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut codes = BTreeSet::new();
    for (path, text) in sources(root)? {
        if path == LIST {
            let listed = between(&text, "codes! {\n", "\n}").unwrap_or_default();
            codes.extend(listed.lines().filter_map(|line| between(line, " = \"", "\"").map(str::to_owned)));
        }
        codes.extend(flow_code(&path, &text).map(str::to_owned));
    }
    Ok(codes)
}

/// The code that a source of the flow check defines.
fn flow_code<'t>(path: &str, text: &'t str) -> Option<&'t str> {
    between(text, "CODE: Code = code!(\"", "\"").filter(|_| path.starts_with("crates/flow/"))
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
            let Some(name) = flow_code(path, text) else { continue };
            uses(path, text, "CODE.name", |_| Some(name), &mut reported)?;
        } else {
            uses(path, text, "codes::", |rest| names.get(word(rest)).map(String::as_str), &mut reported)?;
        }
    }
    Ok(reported)
}

/// By constant of the list, the code: `NAME = "code",` and `const NAME: &str = "code";`.
fn names(sources: &[(String, String)]) -> BTreeMap<String, String> {
    let list = sources.iter().filter(|(path, _)| path == LIST).flat_map(|(_, text)| text.lines());
    let constants = list.filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(crate) const ").unwrap_or(line);
        let name = word(line);
        let rest = line[name.len()..].trim_start_matches(": &str").strip_prefix(" = \"")?;
        (!name.is_empty()).then(|| (name.to_owned(), rest.split('"').next().unwrap_or(rest).to_owned()))
    });
    constants.collect()
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

    use super::{Reported, places, uses};

    fn of(path: &str, text: &str) -> Result<BTreeMap<String, Reported>, String> {
        let mut reported = BTreeMap::new();
        uses(path, text, "codes::", |rest| rest.starts_with("X").then_some("x"), &mut reported)?;
        Ok(reported)
    }

    #[test]
    fn a_source_says_where_and_how_bad() {
        let text = "push(Diagnostic::error(\n    codes::X, span));\nif code == codes::X {}\nwarn(codes::X)";
        let found = of("crates/formats/src/climpt/older/check_flow/a.rs", text).unwrap();
        assert_eq!(found["x"].severities.iter().copied().collect::<Vec<_>>(), ["error", "warning"]);
        assert_eq!(places(&found["x"].formats), "check flows");
        let shared = of("crates/formats/src/source/loader.rs", "faulty(path, codes::X)").unwrap();
        assert_eq!(places(&shared["x"].formats), "TAKT workflows, step registries");
    }

    #[test]
    fn one_that_does_not_say_how_bad_is_refused() {
        let problem = of("crates/formats/src/a.rs", "let code = codes::X;").unwrap_err();
        assert!(problem.contains("does not say beside `x` how bad it is"), "{problem}");
    }
}
