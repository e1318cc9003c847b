//! Names of workflows as TAKT resolves them: those of an installed TAKT, of packages, and of the user.

use std::fs;

use serde_json::json;

use crate::support::Project;

const WORKFLOW: &str = "max_steps: 3\nsteps:\n  - name: go\n    persona: coder\n    edit: true\n    instruction: Do it well.\n    \
                        rules: [{ condition: done, next: COMPLETE }]\n";

/// A project with an installed TAKT in its packages, and a home folder of its own.
struct Place {
    project: Project,
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { project: Project::empty(), home: tempfile::tempdir().unwrap() };
        for language in ["en", "ja"] {
            let put = |path: &str, text: &str| {
                place.project.write(&format!("node_modules/takt/builtins/{language}/{path}"), text);
            };
            put("workflows/default.yaml", &format!("name: default\ndescription: in {language}\n{WORKFLOW}"));
            put("workflows/research.yaml", &format!("name: research\n{WORKFLOW}"));
            put("workflows/inner.yaml", &format!("name: inner\nsubworkflow:\n  callable: true\n{WORKFLOW}"));
            put("facets/personas/coder.md", &format!("The coder of TAKT, {language}."));
        }
        place.project.write(".gitignore", "node_modules\n/script*\n");
        place.project.init();
        place
    }

    fn put_home(&self, path: &str, text: &str) {
        let file = self.home.path().join(".takt").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// What a command prints on both streams.
    fn run(&self, args: &[&str]) -> String {
        let output = self.project.command(args).env("HOME", self.home.path()).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn system_prompt(&self, workflow: &str) -> String {
        let shown = self.run(&["prompt", workflow, "go"]);
        shown.lines().next().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_workflow_of_an_installed_takt_runs_by_name() {
    let place = Place::new();
    let listed = place.run(&["list"]);
    assert!(listed.contains("the installed TAKT:\n  default\n"), "{listed}");
    assert_eq!(place.system_prompt("default"), "The coder of TAKT, en.");
    let script = json!([{"step": "go", "output": {"outcome": "done", "response": "Did it."}}]);
    place.project.script("script.json", &script);
    let ran = place.run(&["run", "default", "Do it", "--script", "script.json", "--json"]);
    assert!(ran.contains("\"state\": \"completed\""), "{ran}");
    // The language, then the texts of the project before those of TAKT.
    place.put_home("config.yaml", "language: ja\n");
    assert_eq!(place.system_prompt("default"), "The coder of TAKT, ja.");
    place.project.write(".takt/config.yaml", "language: fr\n");
    let missed = place.run(&["check", "default"]);
    assert!(missed.contains("the installed TAKT has no workflows for `language: fr`"), "{missed}");
    place.project.write(".takt/config.yaml", "language: en\n");
    place.put_home("facets/personas/coder.md", "The coder of the user.");
    assert_eq!(place.system_prompt("default"), "The coder of the user.");
    place.project.write(".takt/facets/personas/coder.md", "The coder of the project.");
    assert_eq!(place.system_prompt("default"), "The coder of the project.");
    // A workflow of the user, and then one of the project, takes its place.
    place.put_home("workflows/default.yaml", &format!("name: default\ndescription: mine\n{WORKFLOW}"));
    let shown = place.run(&["list"]);
    assert!(shown.contains("mine") && !shown.contains("the installed TAKT:\n  default"), "{shown}");
    assert_eq!(place.system_prompt("default"), "The coder of the project.");
    let missed = place.run(&["check", "defualt"]);
    assert!(missed.contains("did you mean `default`?"), "{missed}");
    let hidden = place.run(&["check", "inner"]);
    assert!(hidden.contains("inner: TAKT workflow"), "{hidden}");
    // Our own starter has the name too.
    let listed: serde_json::Value = serde_json::from_str(&place.run(&["list", "--json"])).unwrap();
    assert_eq!(listed["takt"], json!([]), "{listed:#}");
}

#[test]
fn packages_bring_workflows_texts_and_steps() {
    let place = Place::new();
    let in_package = |path: &str| format!("repertoire/@owner/pack/{path}");
    place.put_home(
        &in_package("workflows/expert.yaml"),
        "name: expert\nmax_steps: 3\nsteps:\n  - name: go\n    uses: outer\n    edit: true\n    rules: [{ condition: done, next: COMPLETE }]\n",
    );
    place.put_home(&in_package("steps/outer.yaml"), "uses: inner\npersona: coder\n");
    place.put_home(&in_package("steps/inner.yaml"), "instruction: Do it as the package says.\n");
    place.put_home(&in_package("facets/personas/coder.md"), "The coder of the package.");
    assert_eq!(place.system_prompt("@Owner/pack/expert"), "The coder of the package.");
    let listed = place.run(&["list"]);
    assert!(listed.contains("packages:\n  @owner/pack/expert\n"), "{listed}");
    let missed = place.run(&["check", "@owner/pack/exprt"]);
    assert!(missed.contains("did you mean `@owner/pack/expert`?"), "{missed}");
    // The user's own folder is often made of links.
    let elsewhere = tempfile::tempdir().unwrap();
    let persona = elsewhere.path().join("coder.md");
    fs::write(&persona, "The coder behind a link.").unwrap();
    let link = place.home.path().join(".takt").join(in_package("facets/personas/coder.md"));
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&persona, &link).unwrap();
    assert_eq!(place.system_prompt("@owner/pack/expert"), "The coder behind a link.");
    fs::remove_file(&link).unwrap();
    fs::write(&link, "The coder of the package.").unwrap();
    // A workflow of the project names them too, and a nested fragment stays in its package.
    place.project.write(".takt/steps/inner.yaml", "instruction: Do it as the project says.\n");
    place.project.write(
        ".takt/workflows/own.yaml",
        "name: own\nmax_steps: 3\nsteps:\n  - name: go\n    uses: '@owner/pack/outer'\n    persona: '@owner/pack/coder'\n    \
         edit: true\n    rules: [{ condition: done, next: COMPLETE }]\n",
    );
    let shown = place.run(&["prompt", "own", "go"]);
    assert!(shown.contains("The coder of the package."), "{shown}");
    assert!(shown.contains("Do it as the package says."), "{shown}");
    for (written, says) in [
        ("@owner/none/outer", "it is looked for in `~/.takt/repertoire/@owner/none/steps`"),
        ("@owner/../outer", "is not found"),
    ] {
        let text = format!(
            "name: bad\nmax_steps: 3\nsteps:\n  - name: go\n    uses: '{written}'\n    rules: [{{ condition: done }}]\n"
        );
        place.project.write(".takt/workflows/bad.yaml", &text);
        let checked = place.run(&["check", "bad"]);
        assert!(checked.contains(says), "{checked}");
    }
    let outside = place.run(&["check", "@owner/../../config"]);
    assert!(outside.contains("is not a file, a folder or the name of a definition"), "{outside}");
}
