//! The usage of asks.

use cuegate_provider::{Activity, Cap, FaultClass, ProgramEnd, Request, Usage};
use cuegate_testkit::standin::{Act, Reply, Scenario};

use crate::{
    drive::Asked,
    scene::{Scene, Who},
};

fn metered() -> Scenario {
    Scenario::new()
        .usage(70, 30, 9)
        .reply(Reply::to("Work").shell("true").text("Done.").for_ever())
        .reply(Reply::any().text("Yes.").for_ever())
}

pub fn reported(who: Who) {
    let scene = Scene::new(who, metered());
    let asked = scene.say("How much?");
    let usage = asked.answer().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 9));
    if who != Who::scripted {
        assert_eq!(usage.cached_input_tokens, 30);
    }
    assert!(usage.cost_usd.is_some_and(|cost| cost > 0.0), "{usage:?}");
    assert!(scene.provider.is_priced(Some(who.model())));
}

/// An ask has its own share of the session's usage.
pub fn of_a_conversation(who: Who) {
    let scene = Scene::new(who, metered());
    let first = scene.say("How much?");
    for fork in [true, false] {
        let next = scene.put(&scene.next_ask("And now?", &first, fork));
        let (usage, totals) = (next.answer().usage, next.answer().totals.unwrap());
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (100, 30, 9));
        assert_eq!((totals.input_tokens, totals.output_tokens), (200, 18));
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-9;
        assert!(near(usage.cost_usd, first.answer().usage.cost_usd), "{usage:?}");
    }
}

/// Usage is reported while an ask runs, so that the caller can stop it.
pub fn while_it_works(who: Who) {
    let scene = Scene::new(who, metered());
    let tools = Some(vec!["Bash".to_owned()]);
    let asked = scene.put(&Request { tools, ..scene.work_ask("Work.") });
    let seen = seen(&asked);
    let usage = asked.answer().usage;
    assert_eq!(
        (seen.input_tokens, seen.cached_input_tokens, seen.output_tokens),
        (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
    );
    assert!(seen.cost_usd.is_some_and(|cost| cost > 0.0), "{seen:?}");
    assert!(scene.provider.capabilities().progress);
}

/// An ask that is stopped while its second message is written: all that was reported, and no more than that message.
pub fn of_a_stopped_call(who: Who) {
    let work = Reply::to("Work").shell("echo begun > begun.txt").act(Act::HangMidStream).for_ever();
    let scene = Scene::new(who, Scenario::new().usage(70, 30, 9).reply(work));
    let tools = Some(vec!["Bash".to_owned()]);
    let running = scene.begin(&Request { tools, ..scene.work_ask("Work.") });
    let responses = if who == Who::openai { 1 } else { 2 };
    scene.wait("it writes", || scene.standin.answered().len() == responses);
    // What it writes until then arrives.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let fault = running.stop(ProgramEnd::Signal(15)).fault().clone();
    let used = (fault.usage.input_tokens, fault.usage.output_tokens);
    assert!(!fault.usage_unknown && fault.usage.cost_usd.is_some_and(|cost| cost > 0.0), "{fault:?}");
    match who {
        // One response is whole; of the other the service reported what it reads.
        Who::claude => assert!(used.0 == 200 && (9..18).contains(&used.1), "{fault:?}"),
        // The open response is reported at its end, and nothing of it was written.
        Who::codex => assert_eq!(used, (100, 9), "{fault:?}"),
        _ => assert!(used.0 > 0, "{fault:?}"),
    }
}

pub fn of_an_unanswered_call(who: Who) {
    let scene = Scene::new(who, Scenario::new().reply(Reply::any().act(Act::Hang).for_ever()));
    let running = scene.begin(&scene.ask("Go."));
    scene.wait("it is asked", || !scene.standin.answered().is_empty());
    let fault = running.stop(ProgramEnd::Signal(15)).fault().clone();
    assert_eq!((fault.usage.input_tokens, fault.usage.output_tokens), (0, 0), "{fault:?}");
    assert!(!fault.usage_unknown, "{fault:?}");
}

/// The sum of the usage activities.
pub fn seen(asked: &Asked) -> Usage {
    let events = asked.activities.iter().filter_map(|activity| match activity {
        Activity::Usage(usage) => Some(*usage),
        _ => None,
    });
    events.fold(Usage { cost_usd: Some(0.0), ..Usage::default() }, |sum, usage| sum.plus(&usage))
}

pub fn kept_to_a_cap(who: Who) {
    let asked = capped(who);
    assert_eq!(asked.class(), FaultClass::OverCap);
}

/// An ask that exceeds its cost limit.
pub fn capped(who: Who) -> Asked {
    let scene = Scene::new(who, metered());
    let tools = Some(vec!["Bash".to_owned()]);
    let cap = Cap { usd: Some(0.000_001), tokens: None };
    scene.put(&Request { tools, cap, ..scene.work_ask("Work.") })
}
