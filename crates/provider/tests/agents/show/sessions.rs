//! Sessions.

use cuegate_provider::{FaultClass, Request, Session};
use cuegate_testkit::standin::{Act, Reply, Scenario};

use crate::scene::{Scene, Who};

fn chatty() -> Scenario {
    Scenario::new().reply(Reply::any().text("Yes.").for_ever())
}

pub fn continued(who: Who) {
    let scene = Scene::new(who, chatty());
    let first = scene.say("Remember Ada.");
    let second = scene.put(&scene.next_ask("Who was it?", &first, false));
    assert_eq!(second.answer().session, first.answer().session);
    if who != Who::scripted {
        assert!(scene.last_request().contains("Remember Ada."));
    }
}

pub fn branched(who: Who) {
    let scene = Scene::new(who, chatty());
    let first = scene.say("Remember Ada.");
    let one = scene.put(&scene.next_ask("And Bea.", &first, true));
    let other = scene.put(&scene.next_ask("And Cleo.", &first, true));
    let ids = [&first, &one, &other].map(|asked| asked.answer().session.clone().unwrap());
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    if who != Who::scripted {
        let told = scene.last_request();
        assert!(told.contains("Remember Ada.") && told.contains("And Cleo.") && !told.contains("And Bea."));
    }
}

/// An interrupted ask leaves the forked session unchanged.
pub fn a_cut_branch_leaves_no_trace(who: Who) {
    let hang = Reply::to("hang").act(Act::HangMidStream).for_ever();
    let scene = Scene::new(who, Scenario::new().reply(hang).reply(Reply::any().text("Yes.").for_ever()));
    let first = scene.say("Remember Ada.");
    let cut = scene.begin(&scene.next_ask("Then hang.", &first, true));
    scene.wait("it is asked", || scene.standin.answered().len() >= 2);
    assert_eq!(cut.crash().class(), FaultClass::Crashed);
    scene.put(&scene.next_ask("Who was it?", &first, true)).answer();
    let told = scene.last_request();
    assert!(told.contains("Remember Ada.") && !told.contains("Then hang."), "{told}");
}

/// Steps with different personas may share a session.
pub fn another_persona(who: Who) {
    let scene = Scene::new(who, chatty());
    let first = scene.put(&Request { system: Some("You are Ada.".to_owned()), ..scene.ask("Who?") });
    let next =
        Request { system: Some("You are Bea.".to_owned()), ..scene.next_ask("And now?", &first, true) };
    scene.put(&next).answer();
    assert!(scene.last_request().contains("You are Bea."));
}

pub fn a_missing_one_is_reported(who: Who) {
    let scene = Scene::new(who, chatty());
    let id = "01a200ee-7f66-7f02-9188-5e9f83b8d5ff".to_owned();
    let session = Some(Session { id: id.clone(), fork: true, totals: None });
    let asked = scene.put(&Request { session, ..scene.ask("Who?") });
    assert_eq!(asked.class(), FaultClass::SessionLost);
    assert!(asked.fault().message.contains(&id), "{}", asked.fault().message);
}
