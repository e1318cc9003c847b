//! The rules of pieces, and those that hold for every definition.

use cuegate_engine::{Answer, Command, Completion, FaultClass, Place, TreeChange, TreeState};
use cuegate_flow::model::{Outcome, OutcomeReader, Role};
use cuegate_testkit::{Builder, flows};
use insta::assert_snapshot;
use serde_json::json;

use crate::script::{Script, act};

#[test]
fn parallel_members_join_in_definition_order() {
    let flow = flows::piece();
    let mut script = Script::start(&flow);
    script.answer("tag", |answer| answer.text = "so [plan:1] it is".to_owned());
    script.say(act("done"));
    script.say(act("approved")).answer("blocked", |answer| answer.blocked = Some("no key".to_owned()));
    script.say(act("needs_fix"));
    assert_snapshot!(script.text, @r#"
    > start
      run_started · enter plan v1.1 i1 · ask_requested
      ? work plan 0
    > tag
      answered · summarised · responded · decided ready · end plan → implement · enter implement v1.1 i2 · ask_requested
      ? work implement 1
    > answer {"action":"done","plan":"p"}
      answered · summarised · responded · decided done · end implement → reviewers · enter reviewers v1.1 i3 · ask_requested · ask_requested · ask_requested
      ? work arch-review 2-member-0
      ? work qa-review 2-member-1
    > answer {"action":"approved","plan":"p"}
      answered · arch-review: approved
      ? work qa-review 2-member-1
      ? work security-review 2-member-2
    > blocked
      answered · qa-review: none
      ? work security-review 2-member-2
    > answer {"action":"needs_fix","plan":"p"}
      answered · security-review: needs_fix · responded · decided needs_fix · end reviewers → fix · enter fix v1.1 i4 · ask_requested
      ? work fix 5
    "#);
}

#[test]
fn a_monitor_judges_a_cycle_and_a_person_answers() {
    let flow = flows::piece();
    let mut script = Script::start(&flow);
    script.say(act("ask"));
    script.complete("person", Completion::PersonAnswered { text: "do it".to_owned(), found: None });
    script.answer("nothing to read", |answer| answer.text = "hm".to_owned()).say(act("done"));
    for _ in 0..2 {
        for _ in 0..3 {
            script.say(act("needs_fix"));
        }
        script.say(act("fixed"));
    }
    script.say(act("unproductive"));
    assert_snapshot!(script.text, @r#"
    > start
      run_started · enter plan v1.1 i1 · ask_requested
      ? work plan 0
    > answer {"action":"ask","plan":"p"}
      answered · summarised · responded · decided ask · enter plan@person v1.1 · person_asked · suspended
      … Person: `plan` said:
    > {"action":"ask","plan":"p"}

    What should be done?
    > person
      person_answered · decided answered · left plan@person · end plan → implement · enter implement v1.1 i2 · ask_requested
      ? work implement 2
    > nothing to read
      answered · summarised · ask_requested
      ? judge implement@judge 3
    > answer {"action":"done","plan":"p"}
      answered · responded · decided done · end implement → reviewers · enter reviewers v1.1 i3 · ask_requested · ask_requested · ask_requested
      ? work arch-review 4-member-0
      ? work qa-review 4-member-1
    > answer {"action":"needs_fix","plan":"p"}
      answered · arch-review: needs_fix
      ? work qa-review 4-member-1
      ? work security-review 4-member-2
    > answer {"action":"needs_fix","plan":"p"}
      answered · qa-review: needs_fix
      ? work security-review 4-member-2
    > answer {"action":"needs_fix","plan":"p"}
      answered · security-review: needs_fix · responded · decided needs_fix · end reviewers → fix · enter fix v1.1 i4 · ask_requested
      ? work fix 7
    > answer {"action":"fixed","plan":"p"}
      answered · summarised · responded · decided fixed · end fix → reviewers · enter reviewers v2.1 i5 · ask_requested · ask_requested · ask_requested
      ? work arch-review 8-member-0
      ? work qa-review 8-member-1
    > answer {"action":"needs_fix","plan":"p"}
      answered · arch-review: needs_fix
      ? work qa-review 8-member-1
      ? work security-review 8-member-2
    > answer {"action":"needs_fix","plan":"p"}
      answered · qa-review: needs_fix
      ? work security-review 8-member-2
    > answer {"action":"needs_fix","plan":"p"}
      answered · security-review: needs_fix · responded · decided needs_fix · end reviewers → fix · enter fix v2.1 i6 · ask_requested
      ? work fix 11
    > answer {"action":"fixed","plan":"p"}
      answered · summarised · responded · decided fixed · monitor:reviewers+fix after 2 · enter monitor:reviewers+fix v1.1 · ask_requested
      ? judge monitor:reviewers+fix 12
    > answer {"action":"unproductive","plan":"p"}
      answered · summarised · decided unproductive · left monitor:reviewers+fix · end fix → @aborted by monitor:reviewers+fix · ended unvalidated
      = Aborted: `monitor:reviewers+fix` gave up
    "#);
}

#[test]
fn faults_cause_a_wait_a_retry_or_a_failure() {
    let flow = flows::complete();
    let mut script = Script::start(&flow);
    script
        .fault(FaultClass::RateLimited, Some(200))
        .fault(FaultClass::RateLimited, Some(3_600_000))
        .complete("resume", Completion::Resumed(Box::default()))
        .fault(FaultClass::Crashed, None)
        .fault(FaultClass::Malformed, None)
        .fault(FaultClass::Timeout, None)
        .complete("resume", Completion::Resumed(Box::default()))
        .fault(FaultClass::Auth, None);
    assert_snapshot!(script.text, @"
    > start
      run_started · enter initial.issue v1.1 i1 · ask_requested
      ? work initial.issue 0
    > fault rate_limited
      faulted · ask_requested
      ? work initial.issue 1
    > fault rate_limited
      faulted · suspended
      … Quota: rate limit: as scripted
    > resume
      resumed · ask_requested
      ? work initial.issue 3
    > fault crashed
      faulted · ask_requested
      ? work initial.issue 4
    > fault malformed
      faulted · ask_requested
      ? work initial.issue 5
    > fault timeout
      faulted · suspended
      … Environment: timeout: as scripted
    > resume
      resumed · ask_requested
      ? work initial.issue 7
    > fault auth
      faulted · suspended
      … Environment: login rejected: as scripted
    ");
}

#[test]
fn a_write_outside_of_the_boundary_is_a_violation() {
    let flow = Builder::new("readonly", "example", "look")
        .ask("look", Role::Work, &["done"])
        .read_only()
        .to("done", "@completed")
        .flow();
    let tree = |tree: &str| TreeState { tree: tree.to_owned(), ..TreeState::default() };
    for owned in [false, true] {
        let mut script = Script::start_with(&flow, |started| {
            started.place = Place { work: "/w".to_owned(), owned, ..Place::default() };
            started.tree = Some(tree("before"));
        });
        let ask = script.pending()[0].id();
        let seen =
            TreeChange { tree: tree("after"), changed: vec!["src/a.rs".to_owned()], ..TreeChange::default() };
        let answer = Answer { output: Some(act("done")), ..Answer::default() };
        let completion = Completion::Answered { ask, answer: Box::new(answer), seen: Some(seen) };
        script.complete("writes", completion);
        if owned {
            assert_snapshot!(script.text, @"
            > start
              run_started · enter look v1.1 i1 · ask_requested
              ? work look 0
            > writes
              answered · boundary_violated · rejected: `look` may not write (permission `plan`), but changed `src/a.rs` · ask_requested
              ? repair look 1
            ");
            let Command::Ask(ask) = &script.pending()[0] else { panic!("an ask") };
            assert_eq!(ask.tree, Some(tree("before")), "what the run owns is restored");
        } else {
            assert_snapshot!(script.text, @"
            > start
              run_started · enter look v1.1 i1 · ask_requested
              ? work look 0
            > writes
              answered · boundary_violated · tree_seen · end look → @failed · ended unvalidated
              = Failed: `look` may not write (permission `plan`), but changed `src/a.rs`
            ");
        }
    }
}

#[test]
fn edits_of_others_and_lost_objects_are_told_apart() {
    let flow = Builder::new("readonly", "example", "look")
        .ask("look", Role::Work, &["done"])
        .read_only()
        .to("done", "@completed")
        .flow();
    let tree = |tree: &str| TreeState { tree: tree.to_owned(), ..TreeState::default() };
    let run = |seen: TreeChange| {
        let mut script = Script::start_with(&flow, |started| {
            started.place = Place { work: "/w".to_owned(), ..Place::default() };
            started.tree = Some(tree("before"));
        });
        let ask = script.pending()[0].id();
        let answer = Answer { output: Some(act("done")), ..Answer::default() };
        script.complete("answers", Completion::Answered { ask, answer: Box::new(answer), seen: Some(seen) });
        script.text
    };
    let changed = vec!["src/a.rs".to_owned()];
    let by_others = TreeChange {
        tree: tree("after"),
        changed: changed.clone(),
        by_others: true,
        ..TreeChange::default()
    };
    assert_snapshot!(run(by_others), @"
    > start
      run_started · enter look v1.1 i1 · ask_requested
      ? work look 0
    > answers
      changed_by_others · answered · summarised · decided done · end look → @completed · ended
      = Completed: `look` completed the workflow
    ");
    let lost =
        TreeChange { tree: tree("after"), changed, lost: vec!["HEAD".to_owned()], ..TreeChange::default() };
    assert_snapshot!(run(lost), @"
    > start
      run_started · enter look v1.1 i1 · ask_requested
      ? work look 0
    > answers
      answered · boundary_violated · end look → @failed · ended unvalidated
      = Failed: `look` removed from the repository what git needs: `HEAD`
    ");
}

#[test]
fn a_fallback_applies_after_the_repairs() {
    let flow = Builder::new("fallback", "example", "work")
        .ask("work", Role::Work, &["next", "done"])
        .reader(OutcomeReader::Fallback(Outcome::Named("done".into())))
        .to("next", "work")
        .to("done", "@completed")
        .flow();
    let mut script = Script::start(&flow);
    script.say(json!({})).say(json!({}));
    assert_snapshot!(script.text, @"
    > start
      run_started · enter work v1.1 i1 · ask_requested
      ? work work 0
    > answer {}
      answered · rejected: the answer has no value at `action` · ask_requested
      ? repair work 1
    > answer {}
      answered · rejected: the answer has no value at `action` · decided done (fallback) · end work → @completed · ended
      = Completed: `work` completed the workflow
    ");
}

#[test]
fn counted_iterations_complete_the_run_past_its_validators() {
    let flow = Builder::new("count", "example", "work")
        .iterations(2)
        .ask("work", Role::Work, &["next", "closing"])
        .to("next", "work")
        .to("closing", "work@validators")
        .exec("work@validators", &["tests: true"])
        .on(Outcome::Pass, "@completed")
        .on(Outcome::Fail(0), "@failed")
        .flow();
    let mut script = Script::start(&flow);
    script.say(act("next")).say(act("next"));
    assert_snapshot!(script.text, @r#"
    > start
      run_started · enter work v1.1 i1 · ask_requested
      ? work work 0
    > answer {"action":"next","plan":"p"}
      answered · summarised · decided next · end work → work · enter work v2.1 i2 · ask_requested
      ? work work 1
    > answer {"action":"next","plan":"p"}
      answered · summarised · decided next · validation_skipped · end work → @completed · ended unvalidated
      = Completed: 2 iterations done
    "#);
}
