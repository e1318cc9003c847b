//! The fold: how each event changes the state of a run.

use std::{collections::BTreeSet, sync::Arc};

use cuegate_ask::{AskKind, Usage};
use cuegate_flow::Str;

use crate::{
    command::{CommandId, LastAnswer},
    event::Event,
    event_types::{AskRequest, ProvisionalOutcome, RowEnd, RunForked, RunResumed, RunStarted, WaitKind},
    place::RunMoved,
    place::TreeState,
    reports::ReportVersion,
    run::{
        HandoffValue, Member, Node, PendingAsk, PendingGateCommand, Run, RunEffects, SessionHead, State,
        Visit, Work,
    },
};

impl Run {
    /// The state after some records.
    pub fn fold<'e>(records: impl IntoIterator<Item = &'e [Event]>) -> Run {
        let mut run = Run::default();
        for events in records {
            run.apply_record(events);
        }
        run
    }

    /// The receipts of the answers and faults of an agent in these records, which it needs to resume. Without those of
    /// before a change of the usual agent or its script, which mean nothing any more.
    pub fn receipts<'e>(records: impl IntoIterator<Item = &'e [Event]>, agent: &str) -> Vec<String> {
        let mut receipts = Vec::new();
        let mut usual = "";
        for event in records.into_iter().flatten() {
            match event {
                Event::RunStarted(started) => usual = &started.provider,
                Event::Answered { receipt, provider, .. } if provider == agent => {
                    receipts.extend(receipt.clone());
                }
                Event::Faulted { receipt, agent: choice, .. }
                    if choice.as_ref().map_or(usual, |choice| &choice.agent) == agent =>
                {
                    receipts.extend(receipt.clone());
                }
                Event::Resumed(resumed) => {
                    let RunResumed { provider, script, .. } = resumed;
                    let another = provider.as_ref().is_some_and(|name| name != usual);
                    usual = provider.as_deref().unwrap_or(usual);
                    if another || script.is_some() {
                        receipts.clear();
                    }
                }
                _ => {}
            }
        }
        receipts
    }

    /// Applies a record.
    pub fn apply_record(&mut self, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
        self.seq += 1;
    }

    /// The start event.
    ///
    /// # Panics
    /// Panics before the first record.
    pub fn started(&self) -> &RunStarted {
        self.started.as_ref().expect("a run that has records has started")
    }

    /// The pending ask of this id, with the name of the asked step.
    pub fn asking(&self, id: CommandId) -> Option<(Str, Option<u16>, &PendingAsk)> {
        let node = self.progress.node.as_ref()?;
        match &node.work {
            Work::Asking(asking) if id == (CommandId::Step { seq: asking.seq }) => {
                Some((node.step.clone(), None, asking))
            }
            Work::Joining(members) => {
                let index = id.member()?;
                let member = members.get(index as usize)?;
                let asking = member.asking.as_ref().filter(|asking| asking.seq == id.seq())?;
                Some((member.step.clone(), Some(index), asking))
            }
            _ => None,
        }
    }

    /// Applies one event. The events of one record are applied in order before [`Run::seq`] advances.
    pub fn apply(&mut self, event: &Event) {
        self.spending.ledger.apply(event);
        match event {
            Event::RunStarted(started) => {
                self.progress.iterations_max = started.iterations_max;
                self.spending.repairs_max = started.repairs_max;
                self.tree = started.tree.clone();
                self.started = Some(Arc::new((**started).clone()));
                self.state = State::Running;
            }
            Event::Forked(fork) => self.fork(fork),
            Event::StepEntered { step, counts, visit, attempt, iteration, remedy } => {
                self.checks.failed_at = None;
                self.progress.node =
                    Some(Node { step: step.clone(), entered: self.seq, work: Work::Entered, outcome: None });
                // A remedied visit was not finished, so its remedy replaces it in the history that monitors see; so does
                // another attempt.
                let continues = remedy.is_some() || (*attempt > 1 && self.progress.visit.is_none());
                if continues && self.progress.history.last() == Some(step) {
                    self.progress.history.pop();
                }
                if *counts {
                    self.progress.last_step = Some(step.clone());
                    self.context.note =
                        self.context.note.take().filter(|(_, began)| !began).map(|(note, _)| (note, true));
                    self.checks.conditions.values_mut().for_each(|condition| condition.now = None);
                    // The step's own earlier answer is not the previous response of its remedy.
                    if remedy.as_ref().is_some_and(|remedy| remedy.of == *step) {
                        self.context.previous.clone_from(&self.context.before);
                    } else {
                        self.context.before.clone_from(&self.context.previous);
                    }
                    self.context.excerpts.clear();
                    self.progress.iterations = *iteration;
                    self.progress.visits.insert(step.clone(), *visit);
                    self.progress.visit = Some(Visit {
                        step: step.clone(),
                        visit: *visit,
                        attempt: *attempt,
                        iteration: *iteration,
                        remedy: remedy.clone(),
                        outcome: None,
                        monitor: None,
                        rounds: 0,
                        changed: BTreeSet::new(),
                        answer: None,
                    });
                }
            }
            Event::OriginSet { step, origin } => {
                self.progress.origins.insert(step.clone(), origin.clone());
            }
            Event::AskRequested(request) => self.ask_requested(request),
            Event::CommandRequested { index, member, claim, .. } => {
                self.command_requested(*index, *member, claim);
            }
            Event::AgentOut { choice, any_model, until_ms, .. } => {
                self.agent_is_out(choice, *any_model, *until_ms);
            }
            Event::AskCut { ask, usage, spoilt, .. } => {
                self.spending.unsettled.remove(ask);
                self.charge(usage);
                if let Some(key) = spoilt {
                    self.context.sessions.remove(key);
                }
            }
            Event::Answered {
                ask,
                step,
                kind,
                excerpt,
                output,
                text,
                usage,
                provider,
                session,
                session_key,
                totals,
                changed_files,
                tree,
                ..
            } => {
                if let Some(excerpt) = excerpt {
                    self.context.excerpts.insert(step.clone(), excerpt.clone());
                }
                if matches!(kind, AskKind::Work | AskKind::Repair | AskKind::Remedy) {
                    self.context.said = Some(LastAnswer { output: output.clone(), text: text.clone() });
                    if let Some(visit) = self.progress.visit.as_mut().filter(|_| ask.member().is_none()) {
                        visit.answer = output.clone().or_else(|| text.clone());
                    }
                }
                self.spending.unsettled.remove(ask);
                self.spending.last_fault = None;
                self.charge(usage);
                if let (Some(session), Some(key)) = (session, session_key) {
                    self.context.sessions.insert(
                        key.clone(),
                        SessionHead { id: session.clone(), agent: provider.clone(), totals: *totals },
                    );
                }
                self.saw(changed_files, tree);
                if let Some(asking) = self.asking_mut(*ask) {
                    asking.faults = 0;
                    let agent = asking.agent.clone();
                    self.agent_is_back(&agent.unwrap_or_else(|| self.started().usual_agent()));
                }
            }
            Event::AnsweredLate { ask, usage } => {
                self.spending.unsettled.remove(ask);
                self.charge(usage);
            }
            Event::AnswerRejected { member, .. } => {
                if let Some(asking) = self.current_asking_mut(*member) {
                    asking.repairs += 1;
                }
            }
            Event::HandedOff { step, member, key, value, scalar, text } => {
                let entered = self.progress.node.as_ref().map_or(self.seq, |node| node.entered);
                let order = (entered, member.unwrap_or(0));
                let kept = HandoffValue { value: value.clone(), scalar: scalar.clone(), text: *text, order };
                self.context.handoffs.entry(step.clone()).or_default().insert(key.clone(), kept);
            }
            Event::ReportWritten { step, member, name, visit, content } => {
                let entered = self.progress.node.as_ref().map_or(self.seq, |node| node.entered);
                let order = (entered, member.unwrap_or(0));
                let version =
                    ReportVersion { step: step.clone(), visit: *visit, content: content.clone(), order };
                self.context.reports.write(name, version);
            }
            Event::Responded { answers, .. } => self.context.previous.clone_from(answers),
            Event::Summarised { summary, .. } => self.context.summary = Some(summary.clone()),
            Event::Faulted { ask, class, message, usage, spoilt, changed_files, tree, .. } => {
                self.spending.unsettled.remove(ask);
                self.charge(usage);
                self.saw(changed_files, tree);
                self.spending.last_fault = Some((*class, message.clone()));
                match spoilt {
                    Some(key) => drop(self.context.sessions.remove(key)),
                    None => {
                        if let Some(asking) = self.asking_mut(*ask) {
                            asking.faults += 1;
                        }
                    }
                }
            }
            Event::CommandFinished {
                step, index, member, validator, passed, changed_files, tree, ..
            } => {
                self.saw(changed_files, tree);
                if let Some(member) = self.member_mut(*member) {
                    member.proving = None;
                    member.failures += u32::from(!passed);
                } else if *passed {
                    self.checks.failing.remove(&(step.clone(), *index));
                } else {
                    self.checks.failing.insert((step.clone(), *index), validator.clone());
                    self.checks.failed_at = Some(step.clone());
                    self.checks.validated.remove(step);
                }
            }
            Event::ChangedByOthers { tree, .. } => self.tree = Some(tree.clone()),
            Event::TreeSeen { changed_files, tree } => {
                self.looked = Some(self.seq);
                self.saw(changed_files, &Some(tree.clone()));
            }
            Event::CounterSet { counter, value } => {
                self.progress.counters.insert(counter.clone(), *value);
            }
            Event::Decided { step, outcome, .. } => {
                if let Some(node) = self.progress.node.as_mut().filter(|node| node.step == *step) {
                    if matches!(node.work, Work::Running { .. })
                        && !self.checks.failing.keys().any(|(of, _)| of == step)
                    {
                        self.checks.record_proof(step, self.tree.as_ref());
                    }
                    node.outcome = Some(outcome.clone());
                    let open = self.progress.visit.as_mut().filter(|visit| visit.step == node.step);
                    if let Some(visit) = open {
                        visit.outcome = Some(outcome.clone());
                    }
                }
            }
            Event::MemberEnded { index, outcome, why, blocked, crashed, answer, .. } => {
                if let Some(Work::Joining(members)) = self.progress.node.as_mut().map(|node| &mut node.work)
                    && let Some(member) = members.get_mut(*index as usize)
                {
                    member.asking = None;
                    member.ended = Some(outcome.clone());
                    member.blocked = *blocked;
                    member.crashed = *crashed;
                    member.why.clone_from(why);
                    member.answer.clone_from(answer);
                }
            }
            Event::MemberSkipped { step, .. } => self.member_skipped(step),
            Event::MonitorFired { monitor, rounds } => {
                self.progress.history.clear();
                if let Some(visit) = &mut self.progress.visit {
                    visit.monitor = Some(monitor.clone());
                    visit.rounds = *rounds;
                }
            }
            Event::ReadsRequested(request) => self.reads_requested(request),
            Event::ReadsDone(_)
            | Event::StepEffectsRequested(_)
            | Event::ActionFound { .. }
            | Event::EffectsRequested(_)
            | Event::ClosureNarrowed { .. }
            | Event::EffectDelayed(_)
            | Event::EffectResent { .. }
            | Event::EffectFinished(_)
            | Event::Ending(_)
            | Event::QuestionAnswered { .. }
            | Event::Inspected { .. } => {}
            Event::ConditionMet { .. } | Event::ProbesRequested { .. } | Event::Probed { .. } => {
                self.looked_around(event);
            }
            Event::StepLeft { .. } => self.progress.node = None,
            Event::VisitEnded { step, end, .. } => self.visit_ended(step, end),
            Event::PersonAsked { question, again } => {
                self.context.question = Some(question.clone());
                self.context.again = *again;
                if let Some(node) = &mut self.progress.node
                    && node.work == Work::Entered
                {
                    node.work = Work::Person;
                }
            }
            Event::Suspended { waiting } => self.state = State::Suspended(waiting.clone()),
            Event::Resumed(resumed) => {
                let RunResumed {
                    iterations_max,
                    repairs_max,
                    provider,
                    script,
                    model,
                    agents,
                    wait_max_ms,
                    notional,
                    unsandboxed,
                    settings,
                    new_sessions,
                    moved,
                    found,
                    retry,
                    note,
                    definition,
                    ..
                } = resumed;
                if retry.is_some() {
                    // Failed validators stay: until they pass, no verdict completes the run.
                    self.progress.counters.clear();
                    self.progress.history.clear();
                    self.context.note = note.clone().map(|note| (note, false));
                }
                self.stand_on(found);
                // An outage that is known to end lasts, unless somebody had time to do something about it.
                let was_waiting =
                    matches!(&self.state, State::Suspended(waiting) if waiting.kind != WaitKind::Interrupted);
                let is_ended = matches!(self.state, State::Ended { .. });
                if was_waiting || is_ended || agents.is_some() || provider.is_some() {
                    self.outages.clear();
                }
                self.outages.retain(|outage| outage.until_ms.is_some());
                self.state = State::Running;
                self.progress.same_answers.clear();
                self.progress.same_files.clear();
                self.spending.last_fault = None;
                self.forget_faults();
                self.progress.iterations_max = iterations_max.unwrap_or(self.progress.iterations_max);
                self.spending.repairs_max = repairs_max.unwrap_or(self.spending.repairs_max);
                let another = provider.as_ref().is_some_and(|name| *name != self.started().provider);
                // The agents keep conversations on their machine.
                if *new_sessions || moved.is_some() {
                    self.context.sessions.clear();
                }
                if let Some(started) = self.started.as_mut().map(Arc::make_mut) {
                    started.provider = provider.clone().unwrap_or_else(|| started.provider.clone());
                    started.script = script.clone().or_else(|| started.script.clone());
                    // A model name of another provider is meaningless to this one.
                    started.model = model.clone().or_else(|| started.model.take().filter(|_| !another));
                    if another {
                        started.agents.stand_ins.clear();
                    }
                    if let Some(agents) = agents {
                        started.agents.clone_from(agents);
                    }
                    started.wait_max_ms = wait_max_ms.unwrap_or(started.wait_max_ms);
                    started.notional = notional.unwrap_or(started.notional);
                    started.sandboxed &= !unsandboxed;
                    if let Some(RunMoved { to, work, report_dir }) = moved.as_deref() {
                        started.machine = Some(to.clone());
                        started.place.work.clone_from(work);
                        started.report_dir.clone_from(report_dir);
                    }
                    if let Some(adopted) = definition {
                        started.adopt(adopted);
                    }
                    started.settings = settings.clone().or_else(|| started.settings.take());
                }
                if agents.is_some() || provider.is_some() {
                    self.choose_agents_anew();
                }
            }
            Event::Ended { state, reason, hold, stays, .. } => {
                if !stays {
                    self.progress.node = None;
                    self.progress.visit = None;
                }
                self.state = State::Ended { state: *state, reason: reason.clone(), hold: hold.clone() };
            }
            Event::PersonAnswered { found, text, .. } => {
                self.context.user_inputs.push(text.clone());
                self.progress.same_answers.clear();
                self.progress.same_files.clear();
                self.stand_on(found);
                self.state = State::Running;
            }
            Event::BoundaryViolated { .. }
            | Event::ValidationSkipped { .. }
            | Event::Reserved { .. }
            | Event::Overspent { .. }
            | Event::SandboxDenied { .. }
            | Event::ToolsUsed { .. }
            | Event::MainCheckoutChanged { .. }
            | Event::LeftInGit { .. }
            | Event::SnapshotGaps { .. }
            | Event::TimePassed { .. } => {}
        }
        self.acted(event);
    }

    fn fork(&mut self, fork: &RunForked) {
        if let Some(started) = self.started.as_mut().map(Arc::make_mut) {
            started.fork(fork);
        }
        self.tree.clone_from(&fork.tree);
        self.looked = None;
        self.context.sessions.retain(|key, _| !fork.new_sessions.contains(key));
        // The source run does what it requested.
        let RunEffects { phase, closure, unfinalized, .. } = std::mem::take(&mut self.effects);
        self.effects = RunEffects { phase, closure, unfinalized, ..RunEffects::default() };
        self.spending.usage = Usage::default();
        self.spending.last_fault = None;
    }

    fn ask_requested(&mut self, request: &AskRequest) {
        let AskRequest { step, member, kind, not_before_ms, waited_ms, follow, context, agent } = request;
        self.spending.unsettled.insert(CommandId::new(self.seq, *member));
        let mut asking = PendingAsk {
            seq: self.seq,
            kind: *kind,
            faults: 0,
            repairs: 0,
            not_before_ms: *not_before_ms,
            waited_ms: *waited_ms,
            follow: follow.clone(),
            context: context.clone(),
            agent: agent.clone(),
        };
        let member = *member;
        // Faults and repairs are counted per asked step, so a judge has its own counters.
        let before = self.current_asking_mut(member).filter(|before| before.context == asking.context);
        if let Some(before) = before {
            asking.repairs = before.repairs;
            // Another agent has not failed yet.
            asking.faults = if before.agent == asking.agent { before.faults } else { 0 };
        }
        let Some(node) = &mut self.progress.node else { return };
        match member {
            None => node.work = Work::Asking(asking),
            Some(index) => {
                if !matches!(node.work, Work::Joining(_)) {
                    node.work = Work::Joining(Vec::new());
                }
                let Work::Joining(members) = &mut node.work else { return };
                match members.get_mut(index as usize) {
                    // It ended, and is asked once more.
                    Some(member) if member.ended.is_some() => *member = Member::asked(step, asking),
                    Some(member) => member.asking = Some(asking),
                    None => members.push(Member::asked(step, asking)),
                }
            }
        }
    }

    fn member_skipped(&mut self, step: &Str) {
        let Some(node) = &mut self.progress.node else { return };
        if !matches!(node.work, Work::Joining(_)) {
            node.work = Work::Joining(Vec::new());
        }
        let Work::Joining(members) = &mut node.work else { return };
        members.push(Member::skipped(step));
    }

    fn command_requested(&mut self, index: u16, of: Option<u16>, claim: &Option<ProvisionalOutcome>) {
        let seq = self.seq;
        if let (Some(member), Some(claim)) = (self.member_mut(of), claim) {
            member.asking = None;
            member.proving = Some(PendingGateCommand { seq, index, claim: claim.clone() });
        } else if let Some(node) = &mut self.progress.node {
            node.work = Work::Running { seq, index };
        }
    }

    /// A member of the current parallel step.
    fn member_mut(&mut self, index: Option<u16>) -> Option<&mut Member> {
        match self.progress.node.as_mut().map(|node| &mut node.work) {
            Some(Work::Joining(members)) => members.get_mut(index? as usize),
            _ => None,
        }
    }

    /// Lets what is pending be tried anew, and at once: somebody who lets a run go on does not want it to wait for what was.
    fn forget_faults(&mut self) {
        let renew = |asking: &mut PendingAsk| (asking.faults, asking.not_before_ms) = (0, None);
        match self.progress.node.as_mut().map(|node| &mut node.work) {
            Some(Work::Asking(asking)) => renew(asking),
            Some(Work::Reading(reads)) => (reads.faults, reads.not_before_ms) = (0, None),
            Some(Work::Joining(members)) => {
                members.iter_mut().filter_map(|member| member.asking.as_mut()).for_each(renew);
            }
            _ => {}
        }
    }

    fn visit_ended(&mut self, step: &Str, end: &RowEnd) {
        let limited = self.started().same_files_max.and(self.tree.as_ref());
        self.progress.same_files.extend(limited.and_then(|tree| self.progress.remember_files(tree)));
        let times = self.progress.count_same_answers();
        if self.progress.visit.as_ref().is_some_and(|visit| !visit.changed.is_empty()) {
            self.progress.same_answers.clear();
        }
        match self.progress.visit.as_mut().and_then(|visit| visit.answer.take()) {
            Some(answer) if times > 0 => {
                self.progress.same_answers.insert(step.clone(), (answer, times));
            }
            _ => drop(self.progress.same_answers.remove(step)),
        }
        self.progress.node = None;
        self.progress.visit = None;
        self.progress.finished += 1;
        // The history restarts after a monitor acted.
        if end.overridden_by.is_some() {
            return;
        }
        // An exhausted run may continue with its next step; monitors then see this visit like any other.
        if end.target.as_ref().is_some_and(|target| !target.starts_with('@') || &**target == "@exhausted") {
            self.remember(step);
        }
    }

    /// Appends to the history, which is limited to the longest cycle that a monitor can watch.
    fn remember(&mut self, step: &Str) {
        const HISTORY_MAX: usize = 1024;
        if self.progress.history.len() == HISTORY_MAX {
            self.progress.history.remove(0);
        }
        self.progress.history.push(step.clone());
    }

    pub(crate) fn saw(&mut self, changed: &[String], tree: &Option<TreeState>) {
        if let Some(visit) = &mut self.progress.visit {
            visit.changed.extend(changed.iter().cloned());
        }
        if let Some(tree) = tree {
            self.tree = Some(tree.clone());
        }
    }

    /// Changes that people made while the run waited are theirs: the next visit is compared with the tree as found. A
    /// tree that the run owns is restored instead, if an ask was interrupted in it.
    fn stand_on(&mut self, found: &Option<TreeState>) {
        let was_at_work = match &self.state {
            State::Suspended(waiting) => {
                waiting.kind == WaitKind::Interrupted
                    && self.started.as_ref().is_some_and(|started| started.place.owned)
            }
            State::Ended { .. } => false,
            State::New | State::Running => true,
        };
        if !was_at_work && let Some(found) = found {
            self.tree = Some(found.clone());
        }
    }

    fn charge(&mut self, usage: &Usage) {
        self.spending.usage.input_tokens += usage.input_tokens;
        self.spending.usage.output_tokens += usage.output_tokens;
        if let Some(cost) = usage.cost_usd {
            self.spending.usage.cost_usd = Some(self.spending.usage.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    fn current_asking_mut(&mut self, member: Option<u16>) -> Option<&mut PendingAsk> {
        match (&mut self.progress.node.as_mut()?.work, member) {
            (Work::Asking(asking), None) => Some(asking),
            (Work::Joining(members), Some(index)) => members.get_mut(index as usize)?.asking.as_mut(),
            _ => None,
        }
    }

    fn asking_mut(&mut self, id: CommandId) -> Option<&mut PendingAsk> {
        self.current_asking_mut(id.member()).filter(|asking| asking.seq == id.seq())
    }
}
