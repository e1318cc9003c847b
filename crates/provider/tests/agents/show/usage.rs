//! The usage of asks.

use cuegate_provider::{Activity, Cap, FaultClass, Request, Usage};
use cuegate_testkit::standin::{Reply, Scenario};

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
