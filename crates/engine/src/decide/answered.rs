//! An agent answered.

use std::collections::BTreeMap;

use cuegate_flow::{Act, Outcome, Step, StepId, Str};
use serde_json::Value;

use super::{Decider, enter, join, leave, reject, verdict};
use crate::{
    command::CommandId,
    completion::{Answer, Seen},
    event::Event,
    facts::AskKind,
    gate::{Reading, as_text, read},
    pending::session_key,
    run::{Asking, Follow, Judging},
};

/// Values up to this many bytes are kept in place, so that conditions can select by them.
const SCALAR_MAX: usize = 256;

pub(super) fn answered(decider: &mut Decider<'_>, ask: CommandId, answer: Answer, seen: Option<Seen>) {
    let pending = decider.run.asking(ask).map(|(name, member, asking)| (name, member, asking.clone()));
    let Some((name, member, asking)) = pending else {
        // Nobody waits for it, but it was paid for.
        if !decider.run.settled.contains(&ask) {
            decider.emit(Event::AnsweredLate { ask, usage: answer.usage });
        }
        return;
    };
    // The step that was asked: the judge, when one decides about this step's answer.
    let asked_name = asking.judging.as_ref().map_or(&name, |judging| &judging.judge).clone();
    let (Some(step), Some(asked)) = (decider.step(&name), decider.step(&asked_name)) else { return };
    let violated = reject::violations(decider, asked, member, seen.as_ref());
    let (seen, broke) = if violated.is_empty() { (seen, None) } else { (None, seen) };
    record(decider, ask, asked, &asking, &answer, seen);
    if !violated.is_empty() {
        reject::violation(decider, asked, member, &asking, (violated, broke), &answer);
        return;
    }
    if let Some(why) = &answer.blocked {
        blocked(decider, &name, member, why);
        return;
    }
    if let Some(question) = &answer.asks_person {
        match member {
            // The other members go on; nobody can be asked for one of them alone.
            Some(_) => blocked(decider, &name, member, question),
            None => enter::ask_person(decider, question),
        }
        return;
    }
    match read(decider.flow, asked, answer.output.as_ref(), &answer.text, 0) {
        Err(bad) => reject::reject(decider, step, asked, member, &asking, bad, &answer),
        Ok(reading) => match asking.judging.clone() {
            None => own(decider, step, member, &asking, &answer, reading),
            Some(judging) => judged(decider, (step, asked), member, &asking, &judging, &answer, reading),
        },
    }
}

/// Journals the answer itself.
fn record(
    decider: &mut Decider<'_>,
    ask: CommandId,
    asked: &Step<StepId>,
    asking: &Asking,
    answer: &Answer,
    seen: Option<Seen>,
) {
    let output = answer.output.as_ref().map(|output| decider.keep(&output.to_string()));
    let text = (!answer.text.is_empty()).then(|| decider.keep(&answer.text));
    let key = match &asked.act {
        Act::Ask(ask) => session_key(ask).cloned(),
        _ => None,
    };
    let (changed_files, tree) = seen.map(|seen| (seen.changed, Some(seen.tree))).unwrap_or_default();
    let beyond = decider.run.ledger.beyond(ask, &answer.usage);
    decider.emit(Event::Answered {
        ask,
        step: asked.name.clone(),
        kind: asking.kind,
        output,
        text,
        prompt: answer.prompt.clone(),
        system_prompt: answer.system_prompt.clone(),
        usage: answer.usage,
        provider: answer.provider.clone(),
        model: answer.model.clone(),
        session: answer.session.clone(),
        session_key: key,
        totals: answer.totals,
        put: answer.put,
        receipt: answer.receipt.clone(),
        duration_ms: answer.duration_ms,
        changed_files,
        tree,
    });
    if let Some(what) = beyond {
        let what = format!("an ask of `{}` used up {what}", asked.name);
        decider.emit(Event::Overspent { ask, what });
    }
}

/// The agent cannot proceed: a member is done without outcome, anything else waits for a person.
fn blocked(decider: &mut Decider<'_>, name: &Str, member: Option<u16>, why: &str) {
    match member {
        Some(index) => join::member_ended(decider, index, name, None, Some(why.to_owned()), true),
        None => enter::ask_person(decider, &format!("`{name}` cannot proceed: {why}")),
    }
}

/// An answer that its own step's gate could read.
fn own(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    asking: &Asking,
    answer: &Answer,
    reading: Reading,
) {
    match reading {
        Reading::Judge { judge, reader, output } => {
            verdict::answered(decider, &step.name, output.as_ref(), &answer.text);
            if member.is_none() {
                summarise(decider, output.as_ref(), answer);
            }
            let handed = handed(step, output.as_ref());
            hand_on(decider, step, member, &handed);
            let said = decider.keep(&said(answer));
            let judging = Judging { judge: decider.flow.step(judge).name.clone(), reader, answer: said };
            request_judge(decider, &step.name, member, judging);
        }
        Reading::Outcome { outcome, output, reason } => {
            settle(decider, step, step, member, asking, answer, (outcome, output, reason));
        }
    }
}

/// A judge's answer: the outcome of the judged step, or on to that step's next reader.
fn judged(
    decider: &mut Decider<'_>,
    (step, asked): (&Step<StepId>, &Step<StepId>),
    member: Option<u16>,
    asking: &Asking,
    judging: &Judging,
    answer: &Answer,
    reading: Reading,
) {
    let Reading::Outcome { outcome, reason, .. } = reading else {
        decider.fail(format!("the judge of `{}` has itself to be judged", step.name));
        return;
    };
    if outcome == Outcome::None {
        // The readers before this one could not read it either, so only the later ones are left.
        return match read(decider.flow, step, None, "", judging.reader + 1) {
            Ok(Reading::Judge { judge, reader, .. }) => {
                let judge = decider.flow.step(judge).name.clone();
                let judging = Judging { judge, reader, answer: judging.answer.clone() };
                request_judge(decider, &step.name, member, judging);
            }
            _ => reject::unmatched(decider, step, member),
        };
    }
    settle(decider, step, asked, member, asking, answer, (outcome, None, reason));
}

fn request_judge(decider: &mut Decider<'_>, step: &Str, member: Option<u16>, judging: Judging) {
    decider.emit(Event::AskRequested {
        step: step.clone(),
        member,
        kind: AskKind::Judge,
        not_before_ms: None,
        waited_ms: 0,
        follow: None,
        judging: Some(judging),
    });
}

/// A known outcome: it may still select no step, which makes the answer a bad one.
fn settle(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    asked: &Step<StepId>,
    member: Option<u16>,
    asking: &Asking,
    answer: &Answer,
    (outcome, output, reason): (Outcome, Option<Value>, Option<String>),
) {
    let handed = handed(step, output.as_ref());
    if let Some(index) = member {
        if asking.judging.is_none() {
            verdict::answered(decider, &step.name, output.as_ref(), &answer.text);
            hand_on(decider, step, member, &handed);
        }
        join::member_ended(decider, index, &step.name, Some(outcome), None, false);
        return;
    }
    let Some(step) = decider.step(&step.name) else { return };
    match leave::way(decider, step, outcome, output.as_ref(), &handed) {
        Err(bad) => reject::reject(decider, step, asked, None, asking, bad, answer),
        Ok(way) => {
            if asking.judging.is_none() {
                verdict::answered(decider, &step.name, output.as_ref(), &answer.text);
                summarise(decider, output.as_ref(), answer);
                hand_on(decider, step, None, &handed);
            }
            leave::go(decider, step, &way, reason, false, None);
        }
    }
}

/// The data that an answer leaves. What is absent is absent, not empty.
pub(super) fn handed(step: &Step<StepId>, output: Option<&Value>) -> BTreeMap<Str, Value> {
    let Some(output) = output else { return BTreeMap::new() };
    step.handoff
        .iter()
        .filter_map(|handoff| Some((handoff.key.clone(), handoff.path.get(output)?.clone())))
        .collect()
}

fn hand_on(
    decider: &mut Decider<'_>,
    step: &Step<StepId>,
    member: Option<u16>,
    handed: &BTreeMap<Str, Value>,
) {
    for (key, value) in handed {
        let text = as_text(value);
        let blob = decider.keep(&text);
        let short = !value.is_array() && !value.is_object() && text.len() <= SCALAR_MAX;
        decider.emit(Event::HandedOff {
            step: step.name.clone(),
            member,
            key: key.clone(),
            value: blob,
            scalar: short.then(|| text.into()),
            text: !(value.is_number() || value.is_boolean()),
        });
    }
}

fn summarise(decider: &mut Decider<'_>, output: Option<&Value>, answer: &Answer) {
    let summary = output.and_then(|output| output.get("summary")).and_then(Value::as_str);
    let summary = decider.keep(&summary.map_or_else(|| said(answer), str::to_owned));
    decider.emit(Event::Summarised { summary });
}

/// What an agent said, as text.
pub(super) fn said(answer: &Answer) -> String {
    match (&answer.output, answer.text.is_empty()) {
        (Some(output), true) => output.to_string(),
        _ => answer.text.clone(),
    }
}

/// What is said in the same conversation, after what the agent said there.
pub(super) fn follow_up(decider: &mut Decider<'_>, say: &str, answer: &Answer) -> Follow {
    let after = decider.keep(&said(answer));
    Follow { say: vec![crate::facts::Part::Text(say.into())], after: Some(after) }
}
