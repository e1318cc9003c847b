//! `check --watch`: real files, changed as editors change them.

use crate::support::{Project, until};
use rustix::process::Signal;

const PIECE: &str = "name: p\nmax_iterations: 3\ninitial_movement: a\ninstructions: {do: do.md}\nmovements:\n  - name: a\n    edit: false\n    \
                     instruction: do\n    rules:\n      - {condition: done, next: COMPLETE}\n";

#[test]
fn checks_again_when_a_file_of_the_definition_changes() {
    let project = Project::empty();
    let job = project.job(&["check", "--watch", "--phases", "separate", "p.yaml"]);
    job.says("`p.yaml` is not a file");
    job.says("watching; press Ctrl-C to stop");
    project.write("p.yaml", PIECE);
    // A missing file appears.
    job.says("error[unreadable-file]");
    project.write("do.md", "Do it.\n");
    job.says("changed: do.md\np.yaml: TAKT workflow with the keys of 0.8\nsound: 0 errors, 0 warnings");
    // Editors replace the file on save.
    project.write("p.yaml.tmp", &PIECE.replace("next: COMPLETE", "next: COMPLET"));
    std::fs::rename(project.path().join("p.yaml.tmp"), project.path().join("p.yaml")).unwrap();
    job.says("error[unknown-target]");
    std::fs::remove_file(project.path().join("do.md")).unwrap();
    job.says("changed: do.md\np.yaml: TAKT workflow with the keys of 0.8\nerror[unreadable-file]");
    std::fs::remove_file(project.path().join("p.yaml")).unwrap();
    job.says("changed: p.yaml\nerror: `p.yaml` is not a file");
    // The configuration is watched as well.
    project.write("cuegate.toml", "[takt]\nphases = \"three\"\n");
    project.write("p.yaml", PIECE);
    job.says("unknown variant `three`");
    project.write("cuegate.toml", "");
    project.write("do.md", "Do it.\n");
    until("it is sound again", || job.said().matches("sound: 0 errors").count() >= 2);
    job.signal(Signal::INT);
    assert_eq!(job.end().code, -1, "as every program that is interrupted");
}

/// Formatters and checkouts may rewrite a file with the same content.
#[test]
fn rewriting_the_same_content_is_not_a_change() {
    let project = Project::empty();
    project.write("p.yaml", PIECE);
    project.write("do.md", "Do it.\n");
    let job = project.job(&["check", "--watch", "--phases", "separate", "p.yaml"]);
    job.says("watching; press Ctrl-C to stop");
    // The same bytes; another file with the same bytes; away and back.
    project.write("do.md", "Do it.\n");
    project.write("p.yaml.tmp", PIECE);
    std::fs::rename(project.path().join("p.yaml.tmp"), project.path().join("p.yaml")).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    project.write("do.md", "Do it well.\n");
    job.says("changed: do.md\np.yaml: TAKT workflow with the keys of 0.8\nsound: 0 errors");
    let said = job.said();
    assert_eq!((said.matches("changed").count(), said.matches("sound: 0").count()), (1, 2), "{said}");
    // A new file is named.
    std::fs::rename(project.path().join("p.yaml"), project.path().join("q.yaml")).unwrap();
    job.says("`p.yaml` is not a file");
    std::fs::rename(project.path().join("q.yaml"), project.path().join("p.yaml")).unwrap();
    until("it is sound again", || job.said().matches("sound: 0 errors").count() == 3);
    assert_eq!(job.said().matches("changed: p.yaml\n").count(), 2, "{}", job.said());
    job.signal(Signal::INT);
    job.end();
}

#[test]
fn json_prints_one_object_per_check() {
    let project = Project::empty();
    project.write("p.yaml", PIECE);
    project.write("do.md", "Do it.\n");
    let job = project.job(&["check", "--watch", "--json", "p.yaml"]);
    until("it is checked", || job.printed().contains("\"ok\": true"));
    project.write("do.md", "");
    // An interrupt may come between two lines of an object: it is sent when the last one is whole.
    let whole = |text: &str| -> Vec<serde_json::Value> {
        serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).collect()
    };
    let is_found = |object: &serde_json::Value| object.to_string().contains("\"missing-prompt\"");
    until("it is checked again", || whole(&job.printed()).last().is_some_and(is_found));
    job.signal(Signal::INT);
    let objects = whole(&job.end().stdout);
    assert!(objects.len() >= 2 && objects.iter().all(|object| object["schema"] == "cuegate/check/v1"));
}

#[test]
fn watch_rejects_other_formats() {
    let project = Project::empty();
    project.write("p.yaml", PIECE);
    let ran = project.run(&["check", "--watch", "--format", "sarif", "p.yaml"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
    assert!(ran.stderr.contains("`--watch` prints only text or JSON"), "{}", ran.stderr);
}

/// A typed name may resolve to another file, although the known file did not change.
#[test]
fn a_typed_name_is_resolved_again_on_change() {
    let project = Project::empty();
    let wrong = PIECE.replace("next: COMPLETE", "next: COMPLET");
    project.write("do.md", "Do it.\n");
    project.write("good.yaml", PIECE);
    project.write("bad.yaml", &wrong);
    let path = |name: &str| project.path().join(name);
    std::os::unix::fs::symlink("good.yaml", path("link.yaml")).unwrap();
    let job = project.job(&["check", "--watch", "--phases", "separate", "link.yaml"]);
    job.says("sound: 0 errors");
    std::fs::remove_file(path("link.yaml")).unwrap();
    std::os::unix::fs::symlink("bad.yaml", path("link.yaml")).unwrap();
    job.says("error[unknown-target]");
    // A folder in its place, and the file again.
    std::fs::remove_file(path("link.yaml")).unwrap();
    std::fs::create_dir(path("link.yaml")).unwrap();
    job.says("`--phases` is for TAKT workflows");
    std::fs::remove_dir(path("link.yaml")).unwrap();
    project.write("link.yaml", PIECE);
    until("it is sound again", || job.said().matches("sound: 0 errors").count() == 2);
    job.signal(Signal::INT);
    job.end();
    // A name that an agent comes to have before a piece.
    project.write(".takt/pieces/x.yaml", &PIECE.replace("do: do.md", "do: ../../do.md"));
    let job = project.job(&["check", "--watch", "x"]);
    job.says("sound: 0 errors");
    project.write(".agent/x/agent.json", "{}");
    job.says("changed: x\nerror");
    job.signal(Signal::INT);
    job.end();
}
