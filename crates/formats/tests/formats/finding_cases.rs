//! The cases of `tests/findings/`: what is found in a definition after a change. Each case names a base without
//! findings and changes it by `diff`, `file` and `remove` blocks; the `findings` block holds what is found then, and
//! after the `fix` and `fix-file` blocks nothing is found. `CUEGATE_BLESS=1` (`cargo xtask bless`) rewrites the findings.
#![expect(clippy::disallowed_methods, reason = "the cases are files of this project")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cuegate_formats::LoadedDefinition;
use cuegate_testkit::definitions::{self, Project, project};

use crate::support::{findings_of, load};
use crate::{older, support, takt};

const BASES: [&str; 5] = ["closing", "unguarded", "complete", "check-flow", "takt"];

fn files_of_base(base: &str) -> Project {
    match base {
        "closing" => support::sound(),
        "unguarded" => {
            let (before, rest) = definitions::CLOSING.split_once("  \"failurePatterns\": {").unwrap();
            let (_, steps) = rest.split_once("  \"steps\": {").unwrap();
            project(&format!("{before}  \"steps\": {{{steps}"))
        }
        "complete" => project(definitions::COMPLETE),
        "check-flow" => older::check_flow::sound(),
        "takt" => takt::takt_support::sound(),
        other => panic!("no base `{other}`; the bases are {BASES:?}"),
    }
}

fn load_base(base: &str, files: &Project) -> LoadedDefinition {
    match base {
        "takt" => takt::takt_support::load(files, |_| {}),
        "complete" => load(files, older::complete::DIR),
        "check-flow" => load(files, older::check_flow::DIR),
        _ => load(files, support::DIR),
    }
}

/// A fenced block: its word and path, and its lines with the number of the first.
struct Block {
    word: String,
    path: String,
    first: usize,
    lines: Vec<String>,
}

struct Case {
    title: String,
    base: String,
    blocks: Vec<Block>,
}

fn parse_cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            cases.push(Case { title: title.to_owned(), base: String::new(), blocks: Vec::new() });
        } else if let Some(base) = line.strip_prefix("Base: `") {
            cases.last_mut().expect("a base is named below a title").base =
                base.trim_end_matches('`').to_owned();
        } else if line.starts_with("```") {
            let fence = &line[..line.len() - line.trim_start_matches('`').len()];
            let (word, path) = line[fence.len()..].split_once(' ').unwrap_or((&line[fence.len()..], ""));
            let mut block = Block { word: word.into(), path: path.into(), first: 0, lines: Vec::new() };
            for (number, line) in lines.by_ref() {
                if block.first == 0 {
                    block.first = number;
                }
                if line == fence {
                    break;
                }
                block.lines.push(line.to_owned());
            }
            cases.last_mut().expect("a block stands below a title").blocks.push(block);
        }
    }
    cases
}

/// Applies a diff without line numbers: the old lines of each hunk must stand exactly once in the text.
fn apply_diff(text: &str, diff: &[String]) -> Result<String, String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    for hunk in diff.split(|line| line == "@@") {
        let of = |mark: char| -> Vec<&str> {
            let kept = hunk.iter().filter(|line| line.starts_with(mark) || !line.starts_with(['-', '+']));
            kept.map(|line| line.get(1..).unwrap_or_default()).collect()
        };
        let (old, new) = (of('-'), of('+'));
        let places: Vec<usize> = lines
            .windows(old.len())
            .enumerate()
            .filter(|(_, window)| *window == old)
            .map(|(at, _)| at)
            .collect();
        let [at] = places[..] else {
            return Err(format!(
                "the old lines of a hunk stand {} times:\n{}",
                places.len(),
                hunk.join("\n")
            ));
        };
        lines.splice(at..at + old.len(), new);
    }
    Ok(lines.join("\n"))
}

fn apply_blocks(case: &Case, files: &mut Project, words: &[&str]) -> Result<(), String> {
    for block in case.blocks.iter().filter(|block| words.contains(&block.word.as_str())) {
        let unknown = || format!("there is no `{}`", block.path);
        match block.word.as_str() {
            "remove" => drop(files.remove(&block.path).ok_or_else(unknown)?),
            "file" | "fix-file" => {
                let content: String = block.lines.iter().map(|line| format!("{line}\n")).collect();
                files.insert(block.path.clone(), content.into_bytes());
            }
            _ => {
                let bytes = files.get_mut(&block.path).ok_or_else(unknown)?;
                let text = String::from_utf8(bytes.clone()).map_err(|error| error.to_string())?;
                *bytes = apply_diff(&text, &block.lines)?.into_bytes();
            }
        }
    }
    Ok(())
}

/// What is found in a case, and what is wrong with the case itself.
fn run_case(case: &Case) -> Result<String, String> {
    if let Some(block) = case
        .blocks
        .iter()
        .find(|block| !["diff", "file", "remove", "fix", "fix-file", "findings"].contains(&&*block.word))
    {
        return Err(format!("`{}` is no word of a block", block.word));
    }
    if case.blocks.iter().filter(|block| block.word == "findings").count() != 1 {
        return Err("a case has one block of findings".to_owned());
    }
    let mut files = files_of_base(&case.base);
    apply_blocks(case, &mut files, &["diff", "file", "remove"])?;
    let found = findings_of(load_base(&case.base, &files));
    if case.blocks.iter().any(|block| block.word.starts_with("fix")) {
        apply_blocks(case, &mut files, &["fix", "fix-file"])?;
        let left = findings_of(load_base(&case.base, &files));
        if !left.is_empty() {
            return Err(format!("found after the fix:\n{left}"));
        }
    }
    Ok(found)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect();
    paths.sort();
    paths
}

#[test]
fn the_bases_have_no_findings() {
    for base in BASES {
        assert_eq!(findings_of(load_base(base, &files_of_base(base))), "", "{base}");
    }
}

#[test]
fn every_case_finds_what_it_lists() {
    let bless = std::env::var_os("CUEGATE_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in files_in(&folder()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let name = path.strip_prefix(folder()).unwrap().display().to_string();
        // From the end, so that the numbers of the lines above stay.
        for case in parse_cases(&text).iter().rev() {
            let found = match run_case(case) {
                Ok(found) => found.lines().map(str::to_owned).collect::<Vec<_>>(),
                Err(problem) => {
                    wrong.push(format!("{name}, {}: {problem}", case.title));
                    continue;
                }
            };
            let listed = case.blocks.iter().find(|block| block.word == "findings").unwrap();
            if found != listed.lines {
                wrong.push(format!("{name}, {}: found\n{}", case.title, found.join("\n")));
                lines.splice(listed.first..listed.first + listed.lines.len(), found);
            }
        }
        let written: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if bless && written != text {
            std::fs::write(&path, written).unwrap();
        }
    }
    wrong.retain(|problem| !bless || !problem.contains(": found\n"));
    assert!(wrong.is_empty(), "{}\n\n`cargo xtask bless` accepts what is found now", wrong.join("\n"));
}

/// A page of a code has a case for each format that the manual page names, and finds its code alone.
#[test]
fn every_code_has_a_case_for_each_format() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let mut wrong = Vec::new();
    for path in files_in(&folder().join("codes")) {
        let code = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let cases = parse_cases(&std::fs::read_to_string(&path).unwrap());
        let mut bases: BTreeMap<&str, usize> = BTreeMap::new();
        let mut severities = BTreeSet::new();
        for case in &cases {
            *bases.entry(&case.base).or_default() += 1;
            let listed = case.blocks.iter().find(|block| block.word == "findings").unwrap();
            let mark = format!("[{code}]: ");
            if listed.lines.is_empty() || !listed.lines.iter().all(|line| line.contains(&mark)) {
                wrong.push(format!("{code}, {}: finds something else", case.title));
            }
            severities.extend(
                listed.lines.iter().filter_map(|line| line.split([' ', '[']).nth(1).map(str::to_owned)),
            );
        }
        let page = std::fs::read_to_string(pages.join(format!("{code}.md"))).unwrap();
        let line = page.lines().nth(2).unwrap().trim_start_matches("**");
        let (documented, formats) = line.split_once("**, ").unwrap();
        let documented_all: BTreeSet<String> = documented.split(" or ").map(str::to_owned).collect();
        // The checks of flows report the other codes too, with other severities.
        let is_complete = severities == documented_all;
        let is_own = cuegate_formats::list_codes().iter().any(|own| own.name == code);
        if !(is_complete || !is_own && severities.is_subset(&documented_all)) {
            wrong.push(format!("{code}: the page says {documented}, the cases {severities:?}"));
        }
        let has = |wanted: &[&str]| wanted.iter().any(|base| bases.contains_key(base));
        for format in formats.split(", ") {
            let enough = match format {
                "every format" => true,
                "TAKT workflows" => has(&["takt"]),
                "check flows" => has(&["check-flow"]),
                "step registries" => has(&["closing", "unguarded", "complete", "check-flow"]),
                _ => has(&["complete"]),
            };
            if !enough {
                wrong.push(format!("{code}: no case of {format}"));
            }
        }
    }
    for code in cuegate_formats::list_codes() {
        if !folder().join("codes").join(format!("{}.md", code.name)).is_file() {
            wrong.push(format!("{}: no cases", code.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files that a case cannot hold.
#[test]
fn files_that_are_no_text_or_too_large_are_unreadable() {
    let large = vec![b'x'; 16 * 1024 * 1024 + 1];
    for (base, path) in [("closing", ".agent/fixer/prompts/system.md"), ("takt", ".takt/knowledge/domain.md")]
    {
        for bytes in [b"caf\xe9".as_slice(), &large] {
            let mut files = files_of_base(base);
            files.insert(path.to_owned(), bytes.to_vec());
            let found = findings_of(load_base(base, &files));
            assert!(found.lines().all(|line| line.contains("error[unreadable-file]")), "{found}");
            assert_eq!(found.lines().count(), 1, "{found}");
        }
    }
}
