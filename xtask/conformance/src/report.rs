//! Runs all cases and reports the results.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    case::{Case, Expected, Recorded, read},
    compare::{Adapter, adapter, compare},
    declared::{self, Declared},
    older,
};

/// The document that declares deviations.
const DEVIATIONS: &str = "docs/internals/deviations.md";

/// How many characters of a value are shown.
const SHOWN_MAX: usize = 400;

/// The root folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares with the cases in a folder. An undeclared difference or a stale declaration is an error.
pub(crate) fn compare_folder(dir: &Path) -> Result<(), String> {
    let path = root().join(DEVIATIONS);
    let document =
        fs::read_to_string(&path).map_err(|error| format!("failed to read `{}`: {error}", path.display()))?;
    let report = Report::of(&read(dir)?, &declared::read(&document)?, adapter)?;
    println!("{}", report.lines.join("\n"));
    if report.problems.is_empty() {
        return Ok(());
    }
    Err(format!("{} problems:\n{}", report.problems.len(), report.problems.join("\n")))
}

/// The results of all cases.
#[derive(Debug, Default)]
struct Report {
    /// One line per subject.
    lines: Vec<String>,
    /// Undeclared differences and stale declarations.
    problems: Vec<String>,
    /// Cases that were compared.
    compared: BTreeSet<String>,
}

impl Report {
    fn of(
        files: &[Recorded],
        declared: &Declared,
        adapter: fn(&str) -> Option<Adapter>,
    ) -> Result<Report, String> {
        let mut report = Report::default();
        let width = files.iter().map(|file| file.subject.len()).max().unwrap_or(0);
        for file in files {
            let result = match (&file.cases, adapter(&file.subject)) {
                (None, _) => "a list of texts, no cases: nothing to compare".to_owned(),
                (Some(cases), None) => format!("not compared yet ({} cases)", cases.len()),
                (Some(cases), Some(adapter)) => report.subject(&file.subject, cases, &adapter, declared)?,
            };
            report.lines.push(format!("{:width$}  {result}", file.subject));
        }
        for (name, heading) in declared.iter().filter(|(name, _)| !report.compared.contains(*name)) {
            let problem = format!("{name}\n  is declared under “{heading}”, but no such case is compared");
            report.problems.push(problem);
        }
        Ok(report)
    }

    fn subject(
        &mut self,
        subject: &str,
        cases: &[serde_json::Value],
        adapter: &Adapter,
        declared: &Declared,
    ) -> Result<String, String> {
        let (mut passed, mut deviating) = (0, 0);
        for written in cases {
            let common = older::common(subject, written);
            let case = Case::of(common.as_ref().unwrap_or(written))?;
            if !self.compared.insert(case.id.clone()) {
                self.problems.push(format!("{}\n  is recorded twice", case.id));
            }
            match (compare(adapter, &case), declared.get(&case.id)) {
                (Ok(()), None) => passed += 1,
                (Err(_), Some(_)) => deviating += 1,
                (Ok(()), Some(heading)) => {
                    passed += 1;
                    let problem = format!("{}\n  is declared under “{heading}”, but passes", case.id);
                    self.problems.push(problem);
                }
                (Err(got), None) => self.problems.push(difference(&case, &got)),
            }
        }
        Ok(format!("{passed}/{} (declared deviations {deviating})", cases.len()))
    }
}

fn difference(case: &Case, got: &str) -> String {
    let expected = match &case.expected {
        Expected::Value(value) => value.to_string(),
        Expected::Error(message) => format!("refused: {message}"),
    };
    let lines = [("input", case.input.to_string()), ("expected", expected), ("got", got.to_owned())];
    let lines = lines.map(|(what, value)| format!("  {what:8}  {}", shortened(&value)));
    format!("{}\n{}", case.id, lines.join("\n"))
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, compare_folder, root};
    use crate::{
        case::Recorded,
        compare::{Adapter, Got},
        declared,
    };
    use serde_json::json;
    use std::path::PathBuf;

    fn echo(subject: &str) -> Option<Adapter> {
        (subject == "echo").then_some(Adapter {
            run: |input| match input.as_str() {
                Some("refuse") => Ok(Got::Refused("no".to_owned())),
                Some("fault") => Err("what is this?".to_owned()),
                _ => Ok(Got::Value(input.clone())),
            },
            same: |_, theirs, ours| theirs == ours,
            refused: |_| false,
        })
    }

    fn report(declarations: &str) -> Report {
        let cases = vec![
            json!({"id": "echo#1", "input": 1, "expect": 1}),
            json!({"id": "echo#2", "input": 2, "expect": 3}),
            json!({"id": "echo#3", "input": "refuse", "expectError": {"message": "never"}}),
            json!({"id": "echo#4", "input": "fault", "expectError": {"message": "x"}}),
        ];
        let files = [
            Recorded { subject: "echo".to_owned(), cases: Some(cases) },
            Recorded { subject: "other".to_owned(), cases: Some(vec![json!({})]) },
            Recorded { subject: "texts".to_owned(), cases: None },
        ];
        Report::of(&files, &declared::read(declarations).unwrap(), echo).unwrap()
    }

    #[test]
    fn differences_are_told_unless_declared() {
        let bare = report("");
        assert_eq!(
            bare.lines,
            [
                "echo   2/4 (declared deviations 0)",
                "other  not compared yet (1 cases)",
                "texts  a list of texts, no cases: nothing to compare"
            ]
        );
        assert_eq!(
            bare.problems,
            [
                "echo#2\n  input     2\n  expected  3\n  got       2",
                "echo#4\n  input     \"fault\"\n  expected  refused: x\n  got       the adapter cannot read the \
                 case: what is this?"
            ]
        );
        let declared = report("## On purpose\n- cases: echo#2, echo#4\n");
        assert_eq!(declared.lines[0], "echo   2/4 (declared deviations 2)");
        assert_eq!(declared.problems, Vec::<String>::new());
    }

    #[test]
    fn stale_declarations_are_told() {
        let report = report("## On purpose\n- cases: echo#1, echo#2, echo#4, echo#9\n");
        assert_eq!(
            report.problems,
            [
                "echo#1\n  is declared under “On purpose”, but passes",
                "echo#9\n  is declared under “On purpose”, but no such case is compared"
            ]
        );
    }

    #[test]
    fn the_recorded_cases_come_out_as_declared() {
        let beside = || root().parent().map(|beside| beside.join("shared"));
        let shared = std::env::var_os("CUEGATE_SHARED").map(PathBuf::from).or_else(beside);
        match shared.map(|shared| shared.join("cases/climpt")).filter(|dir| dir.is_dir()) {
            Some(dir) => compare_folder(&dir).unwrap(),
            None => eprintln!("skipped: no recorded cases; CUEGATE_SHARED names their folder"),
        }
    }
}
