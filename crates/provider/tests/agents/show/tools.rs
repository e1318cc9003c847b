//! What an agent may do.

use std::process::Command;

use cuegate_provider::{FaultClass, Permission, Request};
use cuegate_testkit::standin::{Reply, Scenario};
use tempfile::TempDir;

use crate::scene::{Scene, Who};

/// A reply that writes a file and reports it.
fn writes(path: &str) -> Scenario {
    Scenario::new().reply(Reply::to("Write").text("I write it.").write(path, "made").text("Done.").for_ever())
}

/// A folder outside of the working folder and of the temporary folder, which some sandboxes permit.
fn elsewhere() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

pub fn edits(who: Who) {
    let scene = Scene::new(who, writes("made.txt"));
    let asked = scene.put(&scene.work_ask("Write it."));
    assert_eq!(scene.file("made.txt").as_deref(), Some("made"), "{asked:#?}");
    assert!(asked.used_tool_on("made.txt"), "{asked:#?}");
    assert!(asked.answer().edited);
}

pub fn plan_writes_nothing(who: Who) {
    writes_nothing(who, Permission::Plan);
}

pub fn default_writes_nothing(who: Who) {
    writes_nothing(who, Permission::Default);
}

fn writes_nothing(who: Who, permission: Permission) {
    let scene = Scene::new(who, writes("made.txt"));
    let asked = scene.put(&Request { permission, ..scene.ask("Write it.") });
    assert_eq!(asked.answer().text, "Done.", "the agent sees the denial and continues");
    assert_eq!(scene.file("made.txt"), None);
}

pub fn a_denial_is_seen(who: Who) {
    let scene = Scene::new(who, writes("made.txt"));
    let asked = scene.say("Write it.");
    asked.answer();
    assert!(asked.was_denied(), "{asked:#?}");
}

pub fn nothing_outside(who: Who) {
    let elsewhere = elsewhere();
    let file = elsewhere.path().join("made.txt");
    let scene = Scene::new(who, writes(file.to_str().unwrap()));
    let asked = scene.put(&scene.work_ask("Write it."));
    assert!(!file.exists(), "{asked:#?}");
    if who == Who::scripted {
        assert_eq!(asked.class(), FaultClass::Violation);
    } else {
        assert_eq!(asked.answer().text, "Done.");
    }
}

/// Only the user decides whether an agent may do everything as root.
pub fn everything(who: Who) {
    let elsewhere = elsewhere();
    let file = elsewhere.path().join("made.txt");
    let ask = |env: &[(&str, &str)]| {
        let scene = Scene::with_env(who, writes(file.to_str().unwrap()), env);
        scene.put(&Request { permission: Permission::BypassPermissions, ..scene.ask("Write it.") })
    };
    let asked = ask(&[]);
    if who == Who::claude && rustix::process::geteuid().is_root() {
        assert_eq!(asked.class(), FaultClass::Refused);
        assert!(asked.fault().message.contains("IS_SANDBOX=1"));
        assert!(!file.exists());
        ask(&[("IS_SANDBOX", "1")]).answer();
    } else {
        asked.answer();
    }
    assert!(file.exists());
}

pub fn a_list_restricts(who: Who) {
    let scene = Scene::new(who, writes("made.txt"));
    let only = |tools: &[&str]| Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    scene.put(&Request { tools: only(&["Read", "Grep"]), ..scene.work_ask("Write it.") }).answer();
    let offered = &scene.standin.answered()[0].tools;
    assert!(
        offered.iter().all(|tool| !["Bash", "Edit", "Write", "Task"].contains(&tool.as_str())),
        "{offered:?}"
    );
    assert_eq!(scene.file("made.txt"), None);
    scene.put(&Request { tools: only(&[]), ..scene.work_ask("Write nothing.") }).answer();
    assert_eq!(scene.standin.answered().last().unwrap().tools, [""; 0]);
}

/// Listed tools need no approval.
pub fn a_list_approves(who: Who) {
    let scenario = Scenario::new()
        .reply(Reply::to("Run").shell("env true && sh -c 'echo ran > ran.txt'").text("Done.").for_ever());
    let scene = Scene::new(who, scenario);
    scene.put(&scene.work_ask("Run it.")).answer();
    assert_eq!(scene.file("ran.txt"), None, "without a list it needs an approval");
    let tools = Some(vec!["Bash".to_owned()]);
    scene.put(&Request { tools, ..scene.work_ask("Run it.") }).answer();
    assert_eq!(scene.file("ran.txt").as_deref(), Some("ran\n"));
}

/// An ask that may only read runs the commands of its list and no others.
pub fn a_reader_runs_listed_commands(who: Who) {
    for permission in [Permission::Plan, Permission::Default] {
        for (list, runs) in [
            (&["Read", "Bash"][..], true),
            (&["Bash(npm test:*)", "Read"], true),
            (&["Read", "Bash(make:*)"], false),
        ] {
            let test = Reply::to("Test").shell("npm test -- --silent").text("Done.");
            let scene = Scene::new(who, Scenario::new().reply(test));
            let package = r#"{"scripts": {"test": "echo ran > ran.txt"}}"#;
            std::fs::write(scene.work().join("package.json"), package).unwrap();
            let tools = Some(list.iter().map(|tool| (*tool).to_owned()).collect());
            let asked = scene.put(&Request { permission, tools, ..scene.ask("Test it.") });
            asked.answer();
            assert_eq!(scene.file("ran.txt").is_some(), runs, "{permission:?} {list:?}: {asked:#?}");
            assert_eq!(asked.was_denied(), !runs, "{permission:?} {list:?}: {asked:#?}");
        }
    }
}

/// A list of tools does not approve edits outside of the working folder.
pub fn a_list_writes_nothing_outside(who: Who) {
    let elsewhere = elsewhere();
    let file = elsewhere.path().join("made.txt");
    let scene = Scene::new(who, writes(file.to_str().unwrap()));
    let tools = ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit"].map(str::to_owned);
    let asked = scene.put(&Request { tools: Some(tools.into()), ..scene.work_ask("Write it.") });
    assert_eq!(asked.answer().text, "Done.");
    assert!(!file.exists() && asked.was_denied(), "{asked:#?}");
    let scene = Scene::new(who, writes("made.txt"));
    scene.put(&Request { tools: Some(vec!["Write".to_owned()]), ..scene.work_ask("Write it.") }).answer();
    assert!(scene.file("made.txt").is_some());
}

/// An agent that may edit may commit.
pub fn commits(who: Who) {
    let commit = "echo x > x.txt && git add -A && git -c user.name=a -c user.email=a@b commit -qm made";
    let scene = Scene::new(who, Scenario::new().reply(Reply::to("Commit").shell(commit).text("Done.")));
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).current_dir(scene.work()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let tools = Some(vec!["Bash".to_owned()]);
    let asked = scene.put(&Request { tools, ..scene.work_ask("Commit it.") });
    assert_eq!(git(&["log", "--format=%s"]), "made\n", "{asked:#?}");
}
