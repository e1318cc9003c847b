//! Tests of the "no" cells, so that the table stays correct.

use cuegate_provider::{Activity, Request};
use cuegate_testkit::standin::{Act, Reply, Scenario};

use crate::{
    scene::{Scene, Who},
    show,
};

fn silent(who: Who) -> Scene {
    Scene::new(who, Scenario::new().reply(Reply::any().text("Yes.").for_ever()))
}

pub fn sessions(who: Who) {
    let scene = silent(who);
    let asked = scene.say("Remember Ada.");
    assert_eq!(asked.answer().session, None);
    let can = scene.provider.capabilities();
    assert!(!can.sessions && !can.fork);
}

pub fn tools(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().write("made.txt", "made\n").text("Yes.")));
    scene.put(&scene.work_ask("Write it.")).answer();
    assert_eq!(scene.file("made.txt"), None);
    assert_eq!(scene.standin.answered()[0].tools, [""; 0]);
    assert!(!scene.provider.capabilities().edits);
}

/// All tools are offered; only their writes are denied.
pub fn tool_lists(who: Who) {
    let scene = Scene::new(
        who,
        Scenario::new().reply(Reply::any().write("made.txt", "made\n").text("Yes.").for_ever()),
    );
    let tools = Some(vec!["Read".to_owned()]);
    scene.put(&Request { tools, ..scene.work_ask("Write it.") }).answer();
    assert_ne!(scene.standin.answered()[0].tools, [""; 0]);
    assert_eq!(scene.file("made.txt"), None);
    assert!(!scene.provider.capabilities().tools);
}

/// It runs every command that its sandbox permits, listed or not.
pub fn approvals(who: Who) {
    let scene = Scene::new(
        who,
        Scenario::new().reply(Reply::any().shell("echo ran > ran.txt").text("Yes.").for_ever()),
    );
    scene.put(&scene.work_ask("Run it.")).answer();
    assert!(scene.file("ran.txt").is_some());
}

pub fn denials(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().write("made.txt", "made\n").text("Yes.")));
    let asked = scene.say("Write it.");
    asked.answer();
    assert_eq!(scene.file("made.txt"), None);
    assert!(!asked.was_denied());
}

pub fn project_only(who: Who) {
    let scene = show::answers::instructed(who);
    assert!(scene.last_request().contains("PROJECT-RULE") && scene.last_request().contains("USER-RULE"));
}

pub fn progress(who: Who) {
    let scene = silent(who);
    let asked = scene.say("Go.");
    asked.answer();
    assert!(!asked.activities.iter().any(|activity| matches!(activity, Activity::Usage(_))));
    assert!(!scene.provider.capabilities().progress);
}

pub fn caps(who: Who) {
    show::usage::capped(who).answer();
}

/// It does not report a refusal; the answer is empty.
pub fn refusals(who: Who) {
    let scene = Scene::new(
        who,
        Scenario::new().reply(Reply::any().act(Act::Refuse("I can't.".to_owned())).for_ever()),
    );
    assert_eq!(scene.say("Go.").answer().text, "");
}
