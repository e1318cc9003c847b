//! What a run wants done next.

use cuegate_flow::{Act, Ask, Flow, Role, SessionRule, Step, StepId};

use crate::{
    command::{AskCommand, Command, CommandId, ExecCommand, SessionUse},
    facts::{AskKind, Part},
    prompt::{expand, judged},
    run::{Asking, Run, State, Work},
};

/// The commands that a run waits for, in the order in which they may be started. Empty when it does not run.
///
/// No queue is stored: the same state always gives the same commands under the same names, so resuming is
/// asking again.
pub fn pending(flow: &Flow, run: &Run) -> Vec<Command> {
    let (State::Running, Some(node)) = (&run.state, &run.node) else { return Vec::new() };
    let Some(id) = flow.find(&node.step) else { return Vec::new() };
    let step = flow.step(id);
    match (&node.work, &step.act) {
        (Work::Asking(asking), Act::Ask(ask)) if is_funded(run, asking, 0) => {
            vec![command(flow, run, step, ask, asking, 0)]
        }
        (Work::Running { seq, index }, Act::Exec { commands }) => commands
            .get(*index as usize)
            .map(|validator| {
                Command::Exec(ExecCommand {
                    id: CommandId { seq: *seq, member: 0 },
                    step: step.name.clone(),
                    validator: validator.clone(),
                })
            })
            .into_iter()
            .collect(),
        (Work::Joining(members), Act::All { width, .. }) => members
            .iter()
            .enumerate()
            .filter_map(|(index, member)| Some((index as u16, member, member.asking.as_ref()?)))
            .filter(|(index, _, asking)| is_funded(run, asking, *index))
            .take((*width).max(1) as usize)
            .filter_map(|(index, member, asking)| {
                let step = flow.step(flow.find(&member.step)?);
                let Act::Ask(ask) = &step.act else { return None };
                Some(command(flow, run, step, ask, asking, index))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether an ask can be paid for: where anything is limited it has set its share aside.
fn is_funded(run: &Run, asking: &Asking, member: u16) -> bool {
    !run.ledger.limits() || run.ledger.reserved.contains_key(&CommandId { seq: asking.seq, member })
}

fn command(flow: &Flow, run: &Run, step: &Step<StepId>, ask: &Ask, asking: &Asking, member: u16) -> Command {
    // A judge is another step: its own prompt, persona and conversation, over the answer it judges.
    if let Some(judging) = &asking.judging
        && let Some(judge) = flow.find(&judging.judge)
        && let Act::Ask(judge_ask) = &flow.step(judge).act
    {
        let judge = flow.step(judge);
        let mut command = plain(run, judge, judge_ask, asking, member);
        match &asking.follow {
            None => command.prompt.extend(judged(judging)),
            Some(_) => command.without_session.extend(judged(judging)),
        }
        return Command::Ask(Box::new(command));
    }
    Command::Ask(Box::new(plain(run, step, ask, asking, member)))
}

fn plain(run: &Run, step: &Step<StepId>, ask: &Ask, asking: &Asking, member: u16) -> AskCommand {
    let remedy =
        run.visit.as_ref().and_then(|visit| visit.remedy.as_ref()).filter(|_| asking.judging.is_none());
    let own = match remedy {
        Some(remedy) => remedy.prompt.clone(),
        None => expand(run, step, &ask.prompt, None),
    };
    let (prompt, without_session) = match &asking.follow {
        None => (own, Vec::new()),
        Some(follow) => {
            let mut before = own;
            if let Some(after) = &follow.after {
                before.push(Part::Text("\n\nYou answered:\n".into()));
                before.push(Part::Blob { blob: after.clone(), fence: Some("your answer".into()) });
                before.push(Part::Text("\n\n".into()));
            }
            (follow.say.clone(), before)
        }
    };
    let id = CommandId { seq: asking.seq, member };
    AskCommand {
        id,
        step: step.name.clone(),
        of: run.visit.as_ref().filter(|_| ask.role == Role::Check).map(|visit| visit.step.clone()),
        persona: ask.persona.clone(),
        kind: asking.kind,
        prompt,
        without_session,
        system: ask.system.as_ref().map(|system| expand(run, step, system, None)).unwrap_or_default(),
        schema: ask.schema,
        model: ask.model.clone(),
        session: session(run, ask, asking),
        boundary: step.boundary.clone(),
        share: run.ledger.reserved.get(&id).copied().unwrap_or_default(),
        not_before_ms: asking.not_before_ms,
        tree: run.tree.clone(),
    }
}

fn session(run: &Run, ask: &Ask, asking: &Asking) -> Option<SessionUse> {
    let head = match &ask.session {
        SessionRule::Continue(key) | SessionRule::Branch(key) => run.sessions.get(key),
        // A renewed conversation goes on only within its own attempt: repairs and a person's answers.
        SessionRule::Renew(key) if asking.follow.is_some() || asking.kind == AskKind::Repair => {
            run.sessions.get(key)
        }
        SessionRule::Renew(_) | SessionRule::Fresh => None,
    };
    head.map(|head| SessionUse { id: head.id.clone(), totals: head.totals })
}

/// The key under which an answer's conversation is kept.
pub(crate) fn session_key(ask: &Ask) -> Option<&cuegate_flow::Str> {
    match &ask.session {
        SessionRule::Continue(key) | SessionRule::Renew(key) => Some(key),
        SessionRule::Branch(_) | SessionRule::Fresh => None,
    }
}
