//! The cases of `tests/runs/`: each folder is a project with a workflow `it` and a `script.yaml`, and `expected.json`
//! says how a run of it goes. `CUEGATE_BLESS=1` (`cargo xtask bless`) writes what happens now.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Project, copy, visits};

/// How a run went: its exit code, its end, the visits in order, and the calls by their kind.
fn run_case(folder: &Path) -> Value {
    let project = Project::empty();
    copy(folder, project.path());
    project.write(".gitignore", "/script.yaml\n/expected.json\n");
    project.init();
    let ran = project.run(&["run", "it", "Do it", "--script", "script.yaml", "--json"]);
    let status = ran.json();
    let replayed = project.run(&["replay"]);
    assert_eq!(replayed.code, 0, "{}: {}{}", folder.display(), replayed.stdout, replayed.stderr);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let row =
        |row: &Value| format!("{}: {} → {}", text(row, "step"), text(row, "outcome"), text(row, "target"));
    let rows: Vec<String> = visits(&status).iter().map(row).collect();
    json!({"exit": ran.code, "state": status["state"], "visits": rows, "calls": status["asks"]})
}

#[test]
fn every_run_goes_as_expected() {
    let bless = std::env::var_os("CUEGATE_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let case = entry.unwrap().path();
        if !case.is_dir() {
            continue;
        }
        let happened = serde_json::to_string_pretty(&run_case(&case)).unwrap() + "\n";
        let expected = fs::read_to_string(case.join("expected.json")).unwrap_or_default();
        if happened != expected && bless {
            fs::write(case.join("expected.json"), &happened).unwrap();
        } else if happened != expected {
            wrong.push(format!("{}: happened\n{happened}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\n`cargo xtask bless` accepts what happens now", wrong.join("\n"));
}
