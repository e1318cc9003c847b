//! What a run wants done next.

use cuegate_ask::AskKind;
use cuegate_flow::{
    Str,
    model::{
        Act, Ask, BlobRef, Flow, Permission, Role, SessionRule, Source, Step, StepId, SystemRead, Validator,
        Verdict,
    },
};

use crate::{
    command::{
        AskCommand, Command, CommandId, EffectCommand, ExecCommand, HandlerInput, HandoffEntry, Probe,
        ProbeCommand, SessionUse,
    },
    completion_state::PendingProbes,
    effect::EffectKind,
    event_types::{AskContext, PromptPart, WaitKind},
    prompt::{find_stored_blob, render_judged_answer, render_template},
    run::{Member, PendingAsk, Run, State, Work},
    system::ReadCommand,
};

/// The commands that a run waits for, in the order in which they may be started. Empty when it does not run.
///
/// No queue is stored: the same state always gives the same commands under the same names, so resuming is
/// asking again.
pub fn list_pending_commands(flow: &Flow, run: &Run) -> Vec<Command> {
    // Effects come before anything else, one after the other. A run that waits or has ended may have some as well.
    let stopped = matches!(&run.state, State::Suspended(waiting) if waiting.kind == WaitKind::Interrupted);
    if let Some(effect) = run.effects.pending.first().filter(|_| !stopped) {
        let program = match (&effect.kind, &flow.conduct.actions) {
            (EffectKind::Exec { path }, Some(actions)) => actions.program(path).cloned(),
            _ => None,
        };
        if program.is_none() && matches!(effect.kind, EffectKind::Exec { .. }) {
            return Vec::new();
        }
        let (effect, tree) = (effect.clone(), run.tree.clone());
        let (comments, comment_url) = (run.effects.comments.clone(), run.effects.comment_url.clone());
        let comment_unknown = run.effects.comment_unknown;
        let finalizes = effect.kind.finalizes();
        let gates = if finalizes { list_gates(flow, run, effect.id) } else { Vec::new() };
        let ended = run.effects.ended_tree.as_ref().or(run.tree.as_ref().map(|tree| &tree.tree));
        // Steps without a gate may have changed what the last gate has seen: then that one decides. Those before it may have
        // been meant to pass once.
        let outdated =
            run.checks.proof.as_ref().filter(|(_, proved)| ended.is_some_and(|ended| ended != proved));
        let deciding = outdated.filter(|_| finalizes).map(|(step, _)| list_commands_of_step(flow, step));
        let deciding = deciding.unwrap_or_default();
        let is_changed = run.tree.as_ref().is_some_and(|tree| ended.is_some_and(|ended| *ended != tree.tree));
        let is_edited = finalizes && (is_changed || !deciding.is_empty());
        let command = EffectCommand {
            effect,
            program,
            comments,
            comment_url,
            comment_unknown,
            tree,
            gates,
            deciding,
            is_edited,
        };
        return vec![Command::Effect(Box::new(command))];
    }
    let (State::Running, Some(node)) = (&run.state, &run.progress.node) else { return Vec::new() };
    let Some(id) = flow.find(&node.step) else { return Vec::new() };
    let step = flow.step(id);
    match (&node.work, &step.act) {
        (Work::Probing(probing), _) => list_probe_commands(flow, run, probing),
        (Work::Asking(asking), _) if is_funded(run, asking, None) => {
            command_of_ask(flow, run, step, asking, None).into_iter().collect()
        }
        (Work::Running { seq, index }, Act::Exec { commands }) => commands
            .get(*index as usize)
            .map(|validator| {
                Command::Exec(Box::new(ExecCommand {
                    id: CommandId::Step { seq: *seq },
                    step: step.name.clone(),
                    validator: validator.clone(),
                    values: values_of_validator(run, step, validator),
                    tree: None,
                }))
            })
            .into_iter()
            .collect(),
        (Work::Reading(reads), Act::System(work)) => {
            let number = |read: &SystemRead| {
                let key = format!("context.{}.number", read.name);
                Some((read.name.clone(), run.value_of_handoff(&step.name, &key)?.as_u64()?))
            };
            vec![Command::Read(Box::new(ReadCommand {
                id: CommandId::Step { seq: reads.seq },
                step: step.name.clone(),
                reads: work.reads.clone(),
                selected: work.reads.iter().filter_map(number).collect(),
                task: run.started().task.clone(),
                not_before_ms: reads.not_before_ms,
            }))]
        }
        (Work::Joining(members), Act::All { width, .. }) => of_members(flow, run, members, *width),
        _ => Vec::new(),
    }
}

/// The commands that a step runs.
fn list_commands_of_step(flow: &Flow, name: &Str) -> Vec<Str> {
    match flow.find(name).map(|id| &flow.step(id).act) {
        Some(Act::Exec { commands }) => commands.iter().map(|validator| validator.command.clone()).collect(),
        _ => Vec::new(),
    }
}

/// The commands that decided about the work of a run: those of steps that passed when they last ran, and of the members of
/// parallel steps. Each is there once, under the id of the effect that needs them.
fn list_gates(flow: &Flow, run: &Run, id: CommandId) -> Vec<ExecCommand> {
    let mut gates: Vec<ExecCommand> = Vec::new();
    let mut add = |step: &Step<StepId>, validator: &Validator| {
        if !gates.iter().any(|gate| gate.validator.command == validator.command) {
            let values = values_of_validator(run, step, validator);
            let (step, validator) = (step.name.clone(), validator.clone());
            gates.push(ExecCommand { id, step, validator, values, tree: None });
        }
    };
    for step in &flow.steps {
        match &step.act {
            Act::Exec { commands } if run.checks.validated.contains(&step.name) => {
                commands.iter().for_each(|validator| add(step, validator));
            }
            Act::All { members, .. } if run.progress.visits.contains_key(&step.name) => {
                for member in members.iter().map(|member| flow.step(*member)) {
                    if let Act::Ask(Ask { guard: Some(guard), .. }) = &member.act {
                        guard.commands.iter().for_each(|command| add(member, &command.validator));
                    }
                }
            }
            _ => {}
        }
    }
    gates
}

/// What the members of a parallel step wait for. Where no member may write, a gate command runs alone, so that files that
/// it changes are not attributed to an agent. What was requested first comes first then: asks until the first command, or
/// that command.
fn of_members(flow: &Flow, run: &Run, members: &[Member], width: u16) -> Vec<Command> {
    let may_write = |member: &Member| {
        let step = flow.find(&member.step).filter(|_| !member.skipped);
        step.is_some_and(|step| flow.step(step).boundary.permission.may_write())
    };
    if members.iter().any(may_write) {
        return (0..)
            .zip(members)
            .filter(|(index, member)| match &member.asking {
                Some(asking) => is_funded(run, asking, Some(*index)),
                None => member.proving.is_some(),
            })
            .take(width.max(1) as usize)
            .filter_map(|(index, member)| of_member(flow, run, member, index))
            .collect();
    }
    let command = (0..).zip(members).filter_map(|(index, member)| {
        Some((member.proving.as_ref().filter(|_| member.asking.is_none())?.seq, index, member))
    });
    let command = command.min_by_key(|(seq, ..)| *seq);
    let before = |asking: &PendingAsk| command.is_none_or(|(seq, ..)| asking.seq < seq);
    let asks: Vec<Command> = (0..)
        .zip(members)
        .filter_map(|(index, member)| Some((index, member, member.asking.as_ref()?)))
        .filter(|(index, _, asking)| before(asking) && is_funded(run, asking, Some(*index)))
        .take(width.max(1) as usize)
        .filter_map(|(index, member, _)| of_member(flow, run, member, index))
        .collect();
    match command {
        Some((_, index, member)) if asks.is_empty() => {
            of_member(flow, run, member, index).into_iter().collect()
        }
        _ => asks,
    }
}

/// What a member waits for.
fn of_member(flow: &Flow, run: &Run, member: &Member, index: u16) -> Option<Command> {
    let step = flow.step(flow.find(&member.step)?);
    if let Some(asking) = &member.asking {
        return command_of_ask(flow, run, step, asking, Some(index));
    }
    let Act::Ask(Ask { guard: Some(guard), .. }) = &step.act else { return None };
    let proving = member.proving.as_ref()?;
    let validator = &guard.commands.get(proving.index as usize)?.validator;
    Some(Command::Exec(Box::new(ExecCommand {
        id: CommandId::Member { seq: proving.seq, index },
        step: step.name.clone(),
        validator: validator.clone(),
        values: values_of_validator(run, step, validator),
        tree: run.tree.clone(),
    })))
}

/// The values that a command reads.
fn values_of_validator(run: &Run, step: &Step<StepId>, validator: &Validator) -> Vec<(Str, BlobRef)> {
    let value =
        |(name, source): &(Str, Source)| Some((name.clone(), find_stored_blob(run, step, source)?.clone()));
    validator.values.iter().filter_map(value).collect()
}

/// The looks that are still to be done. They are quick and cost nothing, so that all may begin at once.
fn list_probe_commands(flow: &Flow, run: &Run, probing: &PendingProbes) -> Vec<Command> {
    let probe = |verdict: &Verdict| match verdict {
        Verdict::Poll(poll) => {
            let which = run.started().params.get(&poll.param)?.clone();
            Some(Probe::Poll { poll: poll.clone(), which })
        }
        Verdict::Handler(handler) => {
            Some(Probe::Handler { handler: handler.clone(), about: handler_input_of_run(run) })
        }
        _ => None,
    };
    probing
        .open
        .iter()
        .filter_map(|(index, condition)| {
            let id = CommandId::Poll { seq: probing.seq, index: *index };
            let probe = probe(flow.verdict.part(condition)?)?;
            Some(Command::Probe(Box::new(ProbeCommand { id, condition: condition.clone(), probe })))
        })
        .collect()
}

fn handler_input_of_run(run: &Run) -> HandlerInput {
    let visit = run.progress.visit.as_ref();
    HandlerInput {
        step: visit.map(|visit| visit.step.clone()).unwrap_or_default(),
        visit: visit.map_or(0, |visit| visit.visit),
        iteration: visit.map_or(0, |visit| visit.iteration),
        answer: run.context.said.clone(),
        handoffs: run
            .context
            .handoffs
            .iter()
            .flat_map(|(step, left)| left.iter().map(move |(key, kept)| (step, key, kept)))
            .map(|(step, key, kept)| HandoffEntry {
                step: step.clone(),
                key: key.clone(),
                value: kept.value.clone(),
            })
            .collect(),
    }
}

/// Whether an ask can be paid for: where anything is limited it has set its share aside.
fn is_funded(run: &Run, asking: &PendingAsk, member: Option<u16>) -> bool {
    !run.spending.ledger.limits()
        || run.spending.ledger.reserved.contains_key(&CommandId::new(asking.seq, member))
}

/// The command of an ask; `None` when the step asks nobody, which no journal of this flow says.
fn command_of_ask(
    flow: &Flow,
    run: &Run,
    step: &Step<StepId>,
    asking: &PendingAsk,
    member: Option<u16>,
) -> Option<Command> {
    // A judge or a selector is another step: its own prompt, persona and conversation.
    if let Some(other) = asking.context.other()
        && let Some(other) = flow.find(other)
        && let Act::Ask(ask) = &flow.step(other).act
    {
        let command = build_ask_command(run, flow.step(other), ask, asking, member);
        return Some(Command::Ask(Box::new(AskCommand { subject: Some(step.name.clone()), ..command })));
    }
    let Act::Ask(ask) = &step.act else { return None };
    Some(Command::Ask(Box::new(build_ask_command(run, step, ask, asking, member))))
}

fn build_ask_command(
    run: &Run,
    step: &Step<StepId>,
    ask: &Ask,
    asking: &PendingAsk,
    member: Option<u16>,
) -> AskCommand {
    // Steps that belong to the visit, such as a judge of its completion, have prompts of their own.
    let is_own = |of: &Str| run.progress.node.as_ref().is_none_or(|node| node.step == *of);
    let visit = run.progress.visit.as_ref().filter(|visit| is_own(&visit.step));
    let remedy = visit.and_then(|visit| visit.remedy.as_ref()).filter(|_| asking.context.other().is_none());
    let mut own = match remedy {
        Some(remedy) => remedy.prompt.clone(),
        None => render_template(run, step, &ask.prompt, None),
    };
    if let (Some((note, _)), AskContext::Own) = (&run.context.note, &asking.context) {
        own.push(PromptPart::Text("\n\nA person adds:\n".into()));
        own.push(PromptPart::Blob { blob: note.clone(), fence: None });
        own.push(PromptPart::Text("\n".into()));
    }
    // What a judge decides about stands right after what it is told to do with it, wherever the judge is asked.
    own.extend(asking.context.judging().into_iter().flat_map(render_judged_answer));
    // What was said last, after all that was said before it.
    let (mut before, mut prompt) = (Vec::new(), own);
    let owing = asking.context.owing();
    if let Some(owing) = owing
        && let Some(report) = ask.reports.get(owing.report as usize)
    {
        before.append(&mut prompt);
        before.extend(you_answered(&owing.answer));
        prompt = render_template(run, step, &report.request, None);
    }
    if let Some(follow) = &asking.follow {
        before.append(&mut prompt);
        before.extend(follow.after.iter().flat_map(you_answered));
        prompt = follow.say.clone();
    }
    let mut boundary = step.boundary.clone();
    if owing.is_some() {
        boundary.permission = Permission::Plan;
    }
    let id = CommandId::new(asking.seq, member);
    AskCommand {
        id,
        step: step.name.clone(),
        of: run.progress.visit.as_ref().filter(|_| ask.role == Role::Check).map(|visit| visit.step.clone()),
        subject: None,
        persona: ask.persona.clone(),
        persona_names: ask.persona_names.clone(),
        kind: asking.kind,
        prompt,
        without_session: before,
        system: ask
            .system
            .as_ref()
            .map(|system| render_template(run, step, system, None))
            .unwrap_or_default(),
        schema: ask.schema.filter(|_| owing.is_none()),
        agent: asking.agent.clone(),
        model: ask.model_of(run.visit_number()).cloned(),
        session: session_of_ask(run, ask, asking),
        boundary,
        share: run.spending.ledger.reserved.get(&id).copied().unwrap_or_default(),
        not_before_ms: asking.not_before_ms,
        tree: run.tree.clone(),
    }
}

fn you_answered(answer: &BlobRef) -> [PromptPart; 3] {
    [
        PromptPart::Text("\n\nYou answered:\n".into()),
        PromptPart::Blob { blob: answer.clone(), fence: Some("your answer".into()) },
        PromptPart::Text("\n\n".into()),
    ]
}

fn session_of_ask(run: &Run, ask: &Ask, asking: &PendingAsk) -> Option<SessionUse> {
    let owes = asking.context.owing().is_some();
    let (key, branch) = match &ask.session {
        SessionRule::Continue(key) => (key, owes),
        // A renewed conversation goes on only within its own attempt: reports, repairs and a person's answers.
        SessionRule::Renew(key)
            if owes
                || asking.follow.is_some()
                || asking.kind == AskKind::Repair
                // A selector that decides about the answers goes on with what it said when it selected.
                || asking.context.judging().is_some() =>
        {
            (key, owes)
        }
        SessionRule::Branch(key) => (key, true),
        SessionRule::Renew(_) | SessionRule::Fresh => return None,
    };
    // What was said in a branch is lost with it: whoever answered there is told all of it.
    if branch && asking.follow.is_some() {
        return None;
    }
    // A conversation never crosses agents: an agent that did not hold it is told what was said.
    let agent = asking.agent.as_ref().map_or(&run.started().provider, |choice| &choice.agent);
    let head = run.context.sessions.get(key).filter(|head| head.agent == *agent)?;
    Some(SessionUse { id: head.id.clone(), totals: head.totals, branch })
}

/// The key of the conversation that an ask continues or branches from.
pub(crate) fn continued_session_key(ask: &Ask) -> Option<&Str> {
    match &ask.session {
        SessionRule::Continue(key) | SessionRule::Renew(key) | SessionRule::Branch(key) => Some(key),
        SessionRule::Fresh => None,
    }
}

/// The key under which an answer's conversation is kept.
pub(crate) fn session_key(ask: &Ask) -> Option<&Str> {
    match &ask.session {
        SessionRule::Continue(key) | SessionRule::Renew(key) => Some(key),
        SessionRule::Branch(_) | SessionRule::Fresh => None,
    }
}
