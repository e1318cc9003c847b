//! How programs end. No process of the ask may be left.

use cuegate_provider::{FaultClass, ProgramEnd, Request};
use cuegate_testkit::standin::{Act, Reply, Scenario};

use crate::{
    drive::Running,
    scene::{Scene, Who},
};

/// An ask whose service does not reply.
fn hanging(who: Who) -> (Scene, Running) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().act(Act::Hang).for_ever()));
    let running = scene.begin(&scene.ask("Go."));
    if who != Who::scripted {
        scene.wait("it is asked", || !scene.standin.answered().is_empty());
    }
    (scene, running)
}

pub fn timeout(who: Who) {
    let (_scene, running) = hanging(who);
    assert_eq!(running.stop(ProgramEnd::TimedOut).class(), FaultClass::Timeout);
}

pub fn crash(who: Who) {
    let (_scene, running) = hanging(who);
    assert_eq!(running.crash().class(), FaultClass::Crashed);
}

/// A command of the agent ends with the agent.
pub fn cancel_in_a_command(who: Who) {
    let reply = Reply::any().shell("echo begun > begun.txt; sleep 1000").text("Done.");
    let scene = Scene::new(who, Scenario::new().reply(reply));
    let tools = Some(vec!["Bash".to_owned()]);
    let running = scene.begin(&Request { tools, ..scene.work_ask("Go.") });
    scene.wait("its command runs", || scene.file("begun.txt").is_some());
    assert_eq!(running.stop(ProgramEnd::Signal(15)).class(), FaultClass::Crashed);
}
