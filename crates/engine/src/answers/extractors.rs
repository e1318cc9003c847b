//! Extracts facts from a validator's output, for the failure prompt.

use cuegate_flow::model::Extractor;
use serde_json::{Value, json};

use crate::completion::ExecResult;

/// The maximum number of items in a list. More than a hundred do not improve a prompt.
const ITEMS_MAX: usize = 100;
/// The maximum number of characters of raw output in a prompt. The end is kept, because it usually has the cause.
const TEXT_MAX: usize = 8_000;

/// The result of an extractor on a finished command's output: a list, a string, a number or `null`.
pub fn apply_extractor(extractor: Extractor, exec: &ExecResult) -> Value {
    let (out, err) = (exec.stdout.as_str(), exec.stderr.as_str());
    let both = || format!("{out}\n{err}");
    match extractor {
        Extractor::Stdout => clip_to_tail(out),
        Extractor::Stderr => clip_to_tail(err),
        Extractor::ErrorOutput => clip_to_tail(if err.trim().is_empty() { out } else { err }),
        Extractor::ExitCode => exec.exit.code().map_or(Value::Null, |code| json!(code)),
        Extractor::ChangedFiles => {
            parse_status_paths(out, |x, y| (x, y) != ('?', '?') && (x, y) != ('!', '!'))
        }
        Extractor::UntrackedFiles => parse_status_paths(out, |x, y| (x, y) == ('?', '?')),
        Extractor::StagedFiles => parse_status_paths(out, |x, _| !matches!(x, ' ' | '?' | '!')),
        Extractor::UnstagedFiles => parse_status_paths(out, |x, y| !matches!(y, ' ' | '?' | '!') && x != '?'),
        Extractor::FailedTests => failed_tests(&both()),
        Extractor::TypeErrors => parse_located_errors(&both(), false),
        Extractor::LintErrors => parse_located_errors(&both(), true),
        Extractor::Files => find_file_paths(&both()),
        Extractor::UnformattedFiles => find_file_paths(&both()),
        Extractor::Diff => keep_diff_lines(&both()),
        Extractor::BranchName => parse_branch_name(out),
        Extractor::RemoteStatus | Extractor::MergeStatus => {
            first_line(if out.trim().is_empty() { err } else { out })
        }
        Extractor::Unknown => Value::Null,
    }
}

fn clip_to_tail(text: &str) -> Value {
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(TEXT_MAX);
    match skip {
        0 => json!(text),
        _ => {
            json!(format!("[… {skip} characters left out]\n{}", text.chars().skip(skip).collect::<String>()))
        }
    }
}

fn first_line(text: &str) -> Value {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map_or(Value::Null, |line| json!(line))
}

fn collect_distinct_items(items: impl IntoIterator<Item = Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if kept.len() == ITEMS_MAX {
            break;
        }
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    Value::Array(kept)
}

/// The paths of `git status --porcelain` lines with these status letters. A renamed file has its new path.
fn parse_status_paths(text: &str, wanted: impl Fn(char, char) -> bool) -> Value {
    collect_distinct_items(text.lines().filter_map(|line| {
        let mut letters = line.chars();
        let (x, y) = (letters.next()?, letters.next()?);
        // A branch (`## main...origin/main`) and indented text are not files.
        let known = |letter: char| " MTADRCU?!".contains(letter);
        if !known(x) || !known(y) || (x, y) == (' ', ' ') {
            return None;
        }
        let path = line.get(3..).filter(|_| line.as_bytes().get(2) == Some(&b' '))?;
        wanted(x, y).then(|| json!(unquote_git_path(path.rsplit_once(" -> ").map_or(path, |(_, new)| new))))
    }))
}

/// A path that git prints with quotes and C escapes because of special characters.
fn unquote_git_path(path: &str) -> String {
    let Some(inner) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return path.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    value =
                        value * 8 + rest.next().map_or(0, |digit| u32::from(digit.wrapping_sub(b'0') & 7));
                }
                bytes.push(value as u8);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The failed tests in common report formats: `name ... FAILED`, `FAIL name`, `FAILED | name`, `--- FAIL: name`,
/// `not ok 3 - name`. Each once, with the message below its line, or with the line itself. A test file and a test of
/// the same name are distinct.
fn failed_tests(text: &str) -> Value {
    let mut found: Vec<FailedTest<'_>> = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(name) = failed_test(line) else { continue };
        // After a mark with a bar the reason follows, up to an empty line; the name may be a file.
        let is_summary = line.contains(BAR);
        let why = is_summary.then(|| {
            let below = lines.clone().take_while(|line| !line.is_empty() && failed_test(line).is_none());
            below.collect::<Vec<_>>().join("\n")
        });
        let why = why.filter(|why| !why.is_empty());
        let has_ending =
            name.rsplit('.').next().is_some_and(|ending| ending.chars().all(char::is_alphanumeric));
        let file = is_summary && is_file(name) && has_ending;
        match found.iter_mut().find(|known| known.name == name && known.file == file) {
            Some(known) => known.why = known.why.take().or(why),
            None => found.push(FailedTest { name, file, why, line }),
        }
    }
    collect_distinct_items(found.into_iter().map(|FailedTest { name, file, why, line }| {
        let mut failed = json!({"name": name, "error": why.as_deref().unwrap_or(line)});
        if file {
            failed["file"] = json!(name);
        }
        failed
    }))
}

struct FailedTest<'t> {
    name: &'t str,
    /// Whether the name is a test file.
    file: bool,
    why: Option<String>,
    /// The line that reports the failure.
    line: &'t str,
}

/// Separators between the mark and the name in some formats.
const BAR: &str = "FAILED | ";

/// The name of a failed test in its line.
fn failed_test(line: &str) -> Option<&str> {
    let name = if let Some((name, result)) = line.rsplit_once(" ... ") {
        result.to_lowercase().starts_with("fail").then(|| name.trim_start_matches("test "))?
    } else if let Some(name) = line.strip_prefix("--- FAIL:") {
        name.split_once(" (").map_or(name, |(name, _)| name)
    } else if let Some(rest) = line.strip_prefix("not ok") {
        rest.split_once(" - ").map(|(_, name)| name)?
    } else {
        [BAR, "FAILED ", "FAIL ", "FAIL: ", "✗ ", "✕ ", "× "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark))?
    };
    let name = name.trim().trim_start_matches(':').trim();
    // `FAILED | 5 passed | 1 failed` is a summary without a name.
    (!name.is_empty() && !name.contains(" | ")).then_some(name)
}

/// Errors with a location: `path:line:column: message` and `path(line,column): message`, or a message with the
/// location on a following `at` or `-->` line.
fn parse_located_errors(text: &str, lint: bool) -> Value {
    let mut found = Vec::new();
    let mut message: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some((file, row, column, rest)) = parse_source_location(line) {
            let said = match (rest.is_empty(), message.take()) {
                (true, Some(before)) => before.split_once(" [ERROR]: ").map_or(before, |(_, said)| said),
                (true, None) => continue,
                (false, _) => rest,
            };
            let mut error = json!({"file": file, "line": row, "column": column, "message": said});
            if lint {
                error["rule"] = find_lint_rule(said).map_or(Value::Null, |rule| json!(rule));
            }
            found.push(error);
        } else if line.to_lowercase().starts_with("error")
            || (line.starts_with("TS") && line.contains(" [ERROR]:"))
        {
            message = Some(line);
        }
    }
    collect_distinct_items(found)
}

/// A linter's rule in brackets or parentheses.
fn find_lint_rule(message: &str) -> Option<&str> {
    let inside = |open: char, close: char| {
        let from = message.find(open)? + 1;
        message[from..].find(close).map(|to| &message[from..from + to])
    };
    inside('[', ']').or_else(|| inside('(', ')')).filter(|rule| !rule.contains(' ') && !rule.is_empty())
}

/// A location at the start of a line or after `at ` or `--> `, and the text after it.
fn parse_source_location(line: &str) -> Option<(&str, u64, u64, &str)> {
    let line = line.strip_prefix("at ").or_else(|| line.strip_prefix("--> ")).unwrap_or(line);
    let line = line.strip_prefix("file://").unwrap_or(line);
    if let Some(open) = line.find('(')
        && let Some((inner, rest)) = line[open + 1..].split_once(')')
        && let Some((row, column)) = inner.split_once(',')
        && let (Ok(row), Ok(column)) = (row.parse(), column.parse())
        && is_file(&line[..open])
    {
        return Some((&line[..open], row, column, rest.trim_start_matches(':').trim()));
    }
    let (file, rest) = line.split_once(':')?;
    let (row, rest) = rest.split_once(':')?;
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let (column, rest) = rest.split_at(digits);
    let said = rest.trim_start_matches([':', ' ', '-']).trim();
    is_file(file).then_some((file, row.parse().ok()?, column.parse().ok()?, said))
}

fn is_file(path: &str) -> bool {
    !path.is_empty() && !path.contains(' ') && path.contains('.')
}

/// The files in a text: of locations, or lines that are only a path.
fn find_file_paths(text: &str) -> Value {
    collect_distinct_items(text.lines().filter_map(|line| {
        let line = line.trim();
        if let Some((file, ..)) = parse_source_location(line) {
            return Some(json!(file));
        }
        let path = line.strip_prefix("from ").unwrap_or(line).trim_end_matches(':');
        let path = path.strip_prefix("file://").unwrap_or(path);
        let looks = is_file(path) && !path.ends_with('.') && path.chars().any(|c| c.is_alphabetic());
        looks.then(|| json!(path))
    }))
}

fn keep_diff_lines(text: &str) -> Value {
    let marks = ["+", "-", "@@", "diff "];
    let lines: Vec<&str> =
        text.lines().filter(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark))).collect();
    clip_to_tail(&if lines.is_empty() { text.to_owned() } else { lines.join("\n") })
}

/// The branch in `git branch`, `git status -sb` or `origin/name` output.
fn parse_branch_name(text: &str) -> Value {
    let Value::String(line) = first_line(text) else { return Value::Null };
    let name = line.trim_start_matches("* ").trim_start_matches("## ").trim_start_matches("On branch ");
    let name = name.split("...").next().unwrap_or(name).split_whitespace().next().unwrap_or_default();
    if name.is_empty() { Value::Null } else { json!(name) }
}

#[cfg(test)]
mod tests {
    use super::apply_extractor;
    use crate::completion::{ExecResult, Exit};
    use cuegate_flow::{analysis::ExtractorShape, model::Extractor};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// All extractors. Add new ones here.
    fn all() -> Vec<Extractor> {
        use Extractor as E;
        let count = |extractor: E| match extractor {
            E::Stdout | E::Stderr | E::ErrorOutput | E::ExitCode | E::ChangedFiles | E::UntrackedFiles => (),
            E::StagedFiles | E::UnstagedFiles | E::FailedTests | E::TypeErrors | E::Files => (),
            E::LintErrors | E::UnformattedFiles | E::Diff | E::BranchName | E::RemoteStatus => (),
            E::MergeStatus | E::Unknown => (),
        };
        let all = [
            [E::Stdout, E::Stderr, E::ErrorOutput, E::ExitCode, E::ChangedFiles, E::UntrackedFiles],
            [E::StagedFiles, E::UnstagedFiles, E::FailedTests, E::TypeErrors, E::Files, E::LintErrors],
            [E::UnformattedFiles, E::Diff, E::BranchName, E::RemoteStatus, E::MergeStatus, E::Unknown],
        ]
        .concat();
        all.iter().copied().for_each(count);
        all
    }

    /// Random command output, composed of lines that some extractor reads.
    fn output(seed: &mut u64) -> String {
        const LINES: [&str; 24] = [
            "M  staged.rs",
            " M src/a b.rs",
            "?? new.txt",
            "R  old.rs -> \"na\\303\\257ve.rs\"",
            "## main...origin/main [ahead 1]",
            "* work",
            "test a::b ... FAILED",
            "--- FAIL: TestX (0.0s)",
            "not ok 2 - adds",
            "FAILED | b.test.ts",
            "FAILED | 5 passed | 1 failed",
            "  expected 1",
            "src/a.ts:3:7 - error TS1: no",
            "b.ts(4,5): error TS2: bad (no-bad)",
            "error: worse [E0308]",
            "  --> c.rs:1:2",
            "a.js:1:2: unused [no-unused]",
            "from /tmp/x.ts:",
            "src/y.rs",
            "+added",
            "@@ -1 +1 @@",
            "",
            "ä ö \u{1F600}",
            "some words.",
        ];
        let mut below = |bound: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % bound
        };
        (0..below(8)).map(|_| format!("{}\n", LINES[below(24) as usize])).collect()
    }

    #[test]
    fn extracted_values_match_their_documentation() {
        let mut seed = 7;
        let mut fields: std::collections::BTreeMap<String, BTreeSet<String>> = Default::default();
        let mut found: BTreeSet<String> = BTreeSet::new();
        for _ in 0..4_000 {
            let (out, err) = (output(&mut seed), output(&mut seed));
            for extractor in all() {
                let (value, name) = (of(extractor, &out, &err), format!("{extractor:?}"));
                let items = || value.as_array().cloned().unwrap_or_default();
                let fits = match extractor.yields() {
                    ExtractorShape::Text => value.is_string() || value.is_null(),
                    ExtractorShape::Number => value.is_number() || value.is_null(),
                    ExtractorShape::Texts => value.is_array() && items().iter().all(Value::is_string),
                    ExtractorShape::Objects(names) => {
                        let keys = |item: &Value| item.as_object().map(|map| map.keys().cloned().collect());
                        let keys: Vec<Option<BTreeSet<String>>> = items().iter().map(keys).collect();
                        fields
                            .entry(name.clone())
                            .or_default()
                            .extend(keys.iter().flatten().flatten().cloned());
                        let known = |key: &String| names.contains(&key.as_str());
                        value.is_array()
                            && keys
                                .iter()
                                .all(|keys| keys.as_ref().is_some_and(|keys| keys.iter().all(known)))
                    }
                    ExtractorShape::Nothing => value.is_null(),
                };
                assert!(
                    fits,
                    "{name} is said to yield {:?} and yields {value}\n{out}--\n{err}",
                    extractor.yields()
                );
                let is_something = match &value {
                    Value::Array(items) => !items.is_empty(),
                    other => !other.is_null(),
                };
                found.extend(is_something.then_some(name));
            }
        }
        for extractor in all() {
            let name = format!("{extractor:?}");
            let nothing = extractor.yields() == ExtractorShape::Nothing;
            assert_eq!(found.contains(&name), !nothing, "{name} yields something, if it can");
            if let ExtractorShape::Objects(names) = extractor.yields() {
                let said: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
                assert_eq!(fields[&name], said, "{name} yields each field that is said of it");
            }
        }
    }

    fn of(extractor: Extractor, stdout: &str, stderr: &str) -> Value {
        let exec =
            ExecResult { exit: Exit::Code(1), stdout: stdout.into(), stderr: stderr.into(), duration_ms: 0 };
        apply_extractor(extractor, &exec)
    }

    #[test]
    fn git_status() {
        let out = "M  staged.rs\n M src/a b.rs\n?? new.txt\nR  old.rs -> \"na\\303\\257ve.rs\"\n!! ignored\nMM both.rs\n";
        assert_eq!(
            of(Extractor::ChangedFiles, out, ""),
            json!(["staged.rs", "src/a b.rs", "naïve.rs", "both.rs"])
        );
        assert_eq!(of(Extractor::UntrackedFiles, out, ""), json!(["new.txt"]));
        assert_eq!(of(Extractor::StagedFiles, out, ""), json!(["staged.rs", "naïve.rs", "both.rs"]));
        assert_eq!(of(Extractor::UnstagedFiles, out, ""), json!(["src/a b.rs", "both.rs"]));
        assert_eq!(of(Extractor::ChangedFiles, "M\nä\n\n", ""), json!([]), "short lines are no status");
        let out = "## main...origin/main\n   (use git add)\n   indented.rs\n M a.rs\nA  b.rs\nab c.rs\n";
        assert_eq!(of(Extractor::ChangedFiles, out, ""), json!(["a.rs", "b.rs"]));
        assert_eq!(of(Extractor::StagedFiles, out, ""), json!(["b.rs"]));
    }

    #[test]
    fn tests_and_errors() {
        let names = |value: Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        let out =
            "test a::b ... FAILED\ntest c ... ok\n--- FAIL: TestX (0.0s)\nnot ok 2 - adds\nFAIL sub.sh\n";
        assert_eq!(names(of(Extractor::FailedTests, out, "")), ["a::b", "TestX", "adds", "sub.sh"]);
        let out = "b.test.ts ... FAILED (2ms)\n\nFAILED | b.test.ts\nb\n  expected 1\n\nFAILED | c\n\nFAILED | 5 passed | 2 failed\n";
        assert_eq!(
            of(Extractor::FailedTests, out, ""),
            json!([
                {"name": "b.test.ts", "error": "b.test.ts ... FAILED (2ms)"},
                {"name": "b.test.ts", "file": "b.test.ts", "error": "b\nexpected 1"},
                {"name": "c", "error": "FAILED | c"}
            ])
        );
        let out = "TS2304 [ERROR]: no `foo`\n  at src/main.ts:5:10\n";
        assert_eq!(of(Extractor::TypeErrors, out, "")[0]["message"], "no `foo`");
        assert_eq!(
            of(
                Extractor::TypeErrors,
                "",
                "src/a.ts:3:7 - error TS1: no\nb.ts(4,5): error TS2: bad\nerror: worse\n  --> c.rs:1:2\n"
            ),
            json!([
                {"file": "src/a.ts", "line": 3, "column": 7, "message": "error TS1: no"},
                {"file": "b.ts", "line": 4, "column": 5, "message": "error TS2: bad"},
                {"file": "c.rs", "line": 1, "column": 2, "message": "error: worse"}
            ])
        );
        assert_eq!(of(Extractor::LintErrors, "a.js:1:2: unused [no-unused]\n", "")[0]["rule"], "no-unused");
        assert_eq!(
            of(Extractor::Files, "x.rs:1:1: a\nsrc/y.rs\nsome words.\n", ""),
            json!(["x.rs", "src/y.rs"])
        );
    }

    #[test]
    fn texts() {
        assert_eq!(of(Extractor::ErrorOutput, "out", "err\n"), json!("err"));
        assert_eq!(of(Extractor::ErrorOutput, "out", " "), json!("out"));
        assert_eq!(of(Extractor::ExitCode, "", ""), json!(1));
        assert_eq!(of(Extractor::BranchName, "## main...origin/main\n", ""), json!("main"));
        assert_eq!(of(Extractor::BranchName, "", ""), Value::Null);
        assert_eq!(of(Extractor::Unknown, "x", "y"), Value::Null);
        let long = of(Extractor::Stdout, &"x".repeat(9_000), "");
        assert!(long.as_str().unwrap().starts_with("[… 1000 characters left out]\n"));
    }
}
