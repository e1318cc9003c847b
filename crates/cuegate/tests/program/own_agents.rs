//! Programs that are agents: the examples of docs/own-agents.md, and what goes wrong.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use crate::support::Project;

const WORKFLOW: &str = "\
name: it
max_steps: 4
initial_step: work
steps:
  - name: work
    edit: true
    instruction: Work.
    rules:
      - { condition: Done, next: COMPLETE }
";

/// A block of the documentation in this language.
fn example(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/own-agents.md");
    let page = fs::read_to_string(page).unwrap();
    let begin = format!("```{language}\n");
    page.split(&begin).nth(1).unwrap().split("```").next().unwrap().to_owned()
}

/// A project whose agent `mine` is this program.
fn project(words: &[&str], file: &str, program: &str, more: &str) -> Project {
    let project = Project::empty();
    project.write(".takt/workflows/it.yaml", WORKFLOW);
    project.write(file, program);
    let path = project.path().join(file);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let exec = [words, vec![format!("{:?}", path.display().to_string())]].concat().join(", ");
    project.write(
        "cuegate.toml",
        &format!("[run]\nprovider = \"mine\"\n[budget]\nunlimited = true\n[agents.mine]\nexec = [{exec}]\nedits = true\n{more}"),
    );
    project.init();
    project
}

fn shell(program: &str, more: &str) -> Project {
    project(&["sh"], "agent.sh", program, more)
}

#[test]
fn the_shell_example_works() {
    let project = shell(&example("sh"), "");
    let ran = project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!project.read("BUILT.txt").is_empty());
    let status = project.status();
    assert_eq!((&status["provider"], &status["tokens"]["input"]), (&"mine".into(), &0.into()));
    let agents = project.run(&["agents"]).stdout;
    assert!(
        agents.contains("* mine") && agents.contains("edits files, gets the schema in the prompt"),
        "{agents}"
    );
    let listed = project.run(&["agents", "--json"]).json();
    assert!(listed["agents"].as_array().unwrap().contains(&"mine".into()), "{listed}");
    assert_eq!(listed["default"], "mine");
    let doctor = project.run(&["doctor"]).stdout;
    assert!(doctor.lines().any(|line| line.starts_with("ok") && line.contains("mine")), "{doctor}");
}

#[test]
fn the_python_example_works() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: no python3");
        return;
    }
    let project = project(&["python3"], "notes.py", &example("python"), "cost = true\nschema = true\n");
    let ran = project.run(&["run", "it", "Take notes", "--budget-usd", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(project.read("NOTES.md").contains("Work"), "{}", project.read("NOTES.md"));
    let status = project.status();
    assert_eq!(status["cost_usd"], 0.004);
    assert_eq!(status["tools"]["used"]["write"], 1, "{}", status["tools"]);
    assert_eq!(project.run(&["replay"]).code, 0);
}

#[test]
fn what_goes_wrong_is_said() {
    let broken = shell("echo 'no key' >&2; exit 7", "");
    let ran = broken.run(&["run", "it", "Do it"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("`mine` exited with 7: no key"), "{}", ran.stderr);
    let limited = shell(r#"echo '{"event": "error", "class": "auth", "message": "the key is wrong"}'"#, "");
    let ran = limited.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("the key is wrong"), "{}", ran.stderr);
    let unpriced = shell(&example("sh"), "");
    let ran = unpriced.run(&["run", "it", "Do it", "--budget-usd", "1"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("mine reports no costs"), "{}", ran.stderr);
    for (config, why) in [
        ("[agents.claude]\nexec = [\"x\"]\n", "is an agent that Cuegate knows"),
        ("[agents.mine]\nedits = true\n", "has no program"),
        ("[agents.mine]\nexec = [\"x\"]\nspeed = 3\n", "unknown field `speed`"),
    ] {
        unpriced.write("cuegate.toml", config);
        let ran = unpriced.run(&["run", "it", "Do it"]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.stderr);
    }
    unpriced.write("cuegate.toml", "[agents.mine]\nexec = [\"no-such-program\"]\n");
    let ran = unpriced.run(&["run", "it", "Do it", "--provider", "mine"]);
    assert!(
        ran.code == 4 && ran.stderr.contains("`no-such-program` of the agent `mine` was not found"),
        "{}",
        ran.stderr
    );
}

/// The sandbox holds for it as for any other agent.
#[test]
fn it_stays_in_the_sandbox() {
    let outside = tempfile::tempdir().unwrap();
    let program = format!(
        "cat > /dev/null; touch {}/here 2>/dev/null; printenv SECRET_KEY > seen.txt; printenv MINE_KEY >> seen.txt\n{}",
        outside.path().display(),
        r#"echo '{"event": "answer", "output": {"outcome": "Done", "response": "x"}}'"#
    );
    let project = shell(&program, "variables = [\"MINE_*\"]\n");
    let ran = crate::support::Ran::of(
        project
            .command(&["run", "it", "Do it"])
            .env("SECRET_KEY", "a")
            .env("MINE_KEY", "b")
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.read("seen.txt"), "b\n");
    assert!(!outside.path().join("here").exists());
}

/// The first example of the documentation: a script somewhere outside of the project, which the sandbox would hide.
#[test]
fn a_script_outside_of_the_project_is_visible() {
    let elsewhere = tempfile::tempdir().unwrap();
    let script = elsewhere.path().join("notes.sh");
    fs::write(&script, example("sh")).unwrap();
    let project = shell("exit 1", "");
    let toml = project.read("cuegate.toml");
    let inside = project.path().join("agent.sh").display().to_string();
    project.write("cuegate.toml", &toml.replace(&inside, &script.display().to_string()));
    let ran = project.run(&["run", "it", "Do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!project.read("BUILT.txt").is_empty());
}
