//! Requests and answers.

use std::{env, fs};

use cuegate_provider::{Login, Request};
use cuegate_testkit::standin::{Reply, Scenario};
use serde_json::json;

use super::schema;
use crate::scene::{Scene, Who};

pub fn text(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::to("Greet").text("Hällo, world.")));
    let asked = scene.say("Greet the world.");
    let answer = asked.answer();
    assert_eq!((answer.text.as_str(), &answer.output), ("Hällo, world.", &None));
}

pub fn structured(who: Who) {
    let due = json!({ "verdict": "approved" });
    let scene = Scene::new(who, Scenario::new().reply(Reply::to("Review").json(due.clone())));
    assert!(scene.provider.holds(&schema()));
    let asked = scene.put(&Request { schema: Some(schema()), ..scene.ask("Review it.") });
    assert_eq!(asked.answer().output, Some(due));
}

/// An answer that violates the schema is returned, so that the caller can ask for a repair.
pub fn unstructured(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("I would rather not.").for_ever()));
    let asked = scene.put(&Request { schema: Some(schema()), ..scene.ask("Review it.") });
    let answer = asked.answer();
    assert_eq!((answer.text.as_str(), &answer.output), ("I would rather not.", &None));
}

pub fn system_prompt(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.")));
    let system = "You are Ada.\nYou say \"hi\".".to_owned();
    scene.put(&Request { system: Some(system), ..scene.ask("Who?") }).answer();
    assert!(scene.last_request().contains(r#"You are Ada.\nYou say \"hi\"."#), "{}", scene.last_request());
    assert!(!scene.standin.answered()[0].user.contains("Ada"), "it is apart from the prompt");
}

pub fn model(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.").for_ever()));
    scene.say("Who?").answer();
    assert_eq!(scene.standin.answered()[0].model(), who.model(), "the one of the settings");
    let other = if who == Who::claude { "claude-haiku-4-5" } else { "gpt-5-codex" };
    let asked = scene.put(&Request { model: Some(other.to_owned()), ..scene.ask("Who else?") });
    assert_eq!(scene.standin.answered().last().unwrap().model(), other);
    assert_eq!(asked.answer().model.as_deref(), Some(other));
}

/// A prompt may contain another agent's text.
pub fn prompt_is_text(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.")));
    let secret = scene.beside().join("secret.txt");
    fs::write(&secret, "swordfish").unwrap();
    let prompt = format!("/compact @{} !ls $HOME", secret.display());
    scene.say(&prompt).answer();
    let answered = scene.standin.answered();
    assert!(answered[0].user.contains(&prompt), "{}", answered[0].user);
    assert!(!scene.last_request().contains("swordfish"));
}

pub fn long_prompt(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.")));
    let prompt = format!("{} the end", "many words ".repeat(20_000));
    scene.say(&prompt).answer();
    assert!(scene.standin.answered()[0].user.contains(&prompt));
}

pub fn inspection(who: Who) {
    let key = match who {
        Who::claude => &[][..],
        _ => &[("CODEX_API_KEY", "standin")],
    };
    let scene = Scene::with_env(who, Scenario::new(), key);
    let found = scene.provider.inspect();
    assert_eq!(found.problems, [], "{found:?}");
    assert!(found.at.is_some());
    assert_eq!(found.model.as_deref(), Some(who.model()));
    match who {
        Who::claude => assert_eq!(found.login, Login::Key("ANTHROPIC_API_KEY".to_owned())),
        // The configuration of its service determines the key.
        Who::codex => assert_eq!(found.login, Login::Unknown),
        _ => assert_eq!(found.login, Login::Key("HOME".to_owned())),
    }
    assert_eq!(found.version.is_some(), matches!(who, Who::claude | Who::codex));
    assert!(scene.standin.answered().is_empty(), "no request was sent");
}

/// The program reads the project's instructions and not the user's.
pub fn settings_of_the_project_only(who: Who) {
    let scene = instructed(who);
    assert!(scene.last_request().contains("PROJECT-RULE"));
    assert!(!scene.last_request().contains("USER-RULE"));
}

/// An ask where both the project and the user have instructions.
pub fn instructed(who: Who) -> Scene {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.")));
    let home = std::path::PathBuf::from(env::var_os("HOME").unwrap());
    let (folder, file) = if who == Who::claude { (".claude", "CLAUDE.md") } else { (".codex", "AGENTS.md") };
    fs::create_dir_all(home.join(folder)).unwrap();
    fs::write(home.join(folder).join(file), "USER-RULE").unwrap();
    fs::write(scene.work().join(file), "PROJECT-RULE").unwrap();
    scene.say("Go.").answer();
    scene
}
