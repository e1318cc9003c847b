//! The fold that makes spans of records.

use std::collections::{BTreeMap, HashMap};

use cuegate_engine::{
    AskContext, AskRequest, CommandId, EffectFinished, EffectKind, EffectState, EffectsRequested, EndState,
    Event, Ledger, RowEnd, StepEffectsRequested, ToolCall, ToolResult, Usage, WaitKind,
};
use cuegate_flow::Str;

use super::{PathEdge, Span, SpanKind, SpanState, SpendPoint};
use crate::{
    names::Names,
    stamped::StampedRecord,
    summary::waits_for,
    text::{clean_to_one_line, command_name},
};

/// The spans of a run, as far as its records are known.
#[derive(Debug, Clone, Default)]
pub struct Spans {
    all: Vec<Span>,
    /// The visits, by their positions in `all`.
    visits: Vec<usize>,
    /// The open visit that counts, and the open step beside it: a check or the judge of a monitor.
    open: Option<usize>,
    aside: Option<usize>,
    commands: HashMap<CommandId, usize>,
    /// The commands that the last interruption ended. Resuming opens their spans again.
    resting: HashMap<CommandId, usize>,
    wait: Option<usize>,
    ledger: Ledger,
    usage: Usage,
    spend: Vec<SpendPoint>,
    names: Names,
    edges: BTreeMap<(Str, Str), u32>,
    counts: BTreeMap<Str, u32>,
    last_step: Option<Str>,
    /// The lowest span that a record changed since [`Spans::take_changed`].
    changed: Option<usize>,
}

impl Spans {
    /// The spans of all records.
    pub fn of_records(records: &[StampedRecord]) -> Spans {
        let mut spans = Spans::default();
        records.iter().for_each(|record| spans.apply(record));
        spans
    }

    /// All spans, in the order of their beginnings.
    pub fn all(&self) -> &[Span] {
        &self.all
    }

    /// The number of visits.
    pub fn visits(&self) -> usize {
        self.visits.len()
    }

    /// A visit by its number from 0.
    pub fn visit(&self, index: usize) -> Option<&Span> {
        self.visits.get(index).map(|id| &self.all[*id])
    }

    /// Visits by their number from 0, each with the spans in it.
    pub fn page(&self, from: usize, count: usize) -> impl Iterator<Item = &Span> {
        let start = self.visits.get(from).copied().unwrap_or(self.all.len());
        let start = if from == 0 { 0 } else { start };
        let end = self.visits.get(from.saturating_add(count)).copied().unwrap_or(self.all.len());
        self.all[start.min(end)..end].iter()
    }

    /// The spans that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &Span> {
        self.all.iter().rev().take(OPEN_WITHIN).filter(|span| span.state == SpanState::Open)
    }

    /// How the spending grew.
    pub fn spend(&self) -> &[SpendPoint] {
        &self.spend
    }

    /// How often each step was entered, and how often each member ended.
    pub fn counts(&self) -> impl Iterator<Item = (&Str, u32)> {
        self.counts.iter().map(|(step, count)| (step, *count))
    }

    /// How often the run went from one step to another.
    pub fn edges(&self) -> impl Iterator<Item = PathEdge> {
        self.edges.iter().map(|((from, to), count)| PathEdge {
            from: from.clone(),
            to: to.clone(),
            count: *count,
        })
    }

    /// The position of the first span that changed since the last call; `None` if none did.
    pub fn take_changed(&mut self) -> Option<usize> {
        self.changed.take()
    }

    /// Applies a record.
    pub fn apply(&mut self, record: &StampedRecord) {
        let stamp = Stamp { seq: record.seq, at_ms: record.at_ms };
        for event in &record.events {
            self.ledger.apply(event);
            self.event(stamp, event);
        }
        self.spent(record.at_ms);
    }

    fn event(&mut self, stamp: Stamp, event: &Event) {
        match event {
            Event::StepEntered { step, counts, visit, attempt, .. } => {
                self.entered(stamp, step, *counts, *visit, *attempt);
            }
            Event::AskRequested(request) => self.asked(stamp, request),
            Event::Answered { ask, step, usage, provider, model, .. } => {
                let Some(id) = self.end(stamp, *ask, SpanState::Ok, None) else { return };
                let (names, span) = (&mut self.names, &mut self.all[id]);
                span.name = names.share(step);
                span.provider = Some(names.share(provider));
                span.model = model.as_deref().map(|model| names.share(model));
                self.charge(Some(id), usage);
            }
            Event::Faulted { ask, class, message, usage, .. } => {
                let why = format!("{}: {}", class.as_str(), clean_to_one_line(message));
                let id = self.end(stamp, *ask, SpanState::Failed, Some(why));
                self.charge(id, usage);
            }
            Event::AskCut { ask, usage, .. } => {
                let id = self.end(stamp, *ask, SpanState::Cut, Some("cut off".to_owned()));
                self.charge(id, usage);
            }
            Event::AnsweredLate { usage, .. } => self.charge(None, usage),
            Event::ToolsUsed { ask, calls, .. } => self.tools(stamp, *ask, calls),
            Event::CommandRequested { step, index, command, member, .. } => {
                let id = CommandId::new(stamp.seq, *member);
                let command = command_name(command, &format!("command {}", index + 1));
                // A step that runs commands is known by the first of them.
                if let Some(visit) =
                    self.aside.filter(|visit| self.all[*visit].detail.is_empty() && member.is_none())
                {
                    self.all[visit].detail = self.names.share(&command);
                    self.mark(visit);
                }
                self.begin_command(stamp, SpanKind::Validator, id, step, command);
            }
            Event::CommandFinished { index: _, member, validator, command, passed, ended, .. } => {
                let is_it = |span: &Span| {
                    span.kind == SpanKind::Validator
                        && span.command.is_some_and(|command| command.member() == *member)
                };
                let Some(id) = self.newest_open(is_it) else { return };
                let state = if *passed { SpanState::Ok } else { SpanState::Failed };
                self.all[id].name = self.names.share(&command_name(command, validator));
                self.end_at(id, stamp, state, Some(clean_to_one_line(ended)));
            }
            Event::ActionFound { step: _, index, action, handler: Some(kind), .. } => {
                let id = CommandId::Effect { seq: stamp.seq, index: *index };
                self.effect(stamp, id, action, kind);
            }
            Event::EffectsRequested(EffectsRequested { first, effects, .. }) => {
                for (index, kind) in (*first..).zip(effects) {
                    let id = CommandId::Effect { seq: stamp.seq, index };
                    self.effect(stamp, id, &kind.word().into(), kind);
                }
            }
            Event::StepEffectsRequested(StepEffectsRequested { effects, .. }) => {
                for (index, effect) in (0..).zip(effects) {
                    let id = CommandId::Effect { seq: stamp.seq, index };
                    self.effect(stamp, id, &effect.name, &EffectKind::Step(effect.kind));
                }
            }
            Event::EffectFinished(EffectFinished { effect, state, said, .. }) => {
                let state = match state {
                    EffectState::Done => SpanState::Ok,
                    EffectState::Failed => SpanState::Failed,
                    EffectState::Unknown => SpanState::Cut,
                };
                self.end(stamp, *effect, state, Some(clean_to_one_line(said)));
            }
            Event::ProbesRequested { probes, .. } => {
                for (index, condition) in (0_u16..).zip(probes) {
                    let id = CommandId::Poll { seq: stamp.seq, index };
                    self.begin_command(stamp, SpanKind::Poll, id, condition, String::new());
                }
            }
            Event::Probed { probe, holds, failed, said, .. } => {
                let state = if *failed { SpanState::Failed } else { SpanState::Ok };
                let word = if *holds { "holds" } else { "does not hold" };
                self.end(stamp, *probe, state, Some(format!("{word}: {}", clean_to_one_line(said))));
            }
            // Members are not entered by themselves.
            Event::MemberEnded { step, .. } => *self.counts.entry(step.clone()).or_default() += 1,
            Event::StepLeft { end, .. } => self.left(stamp, self.aside.or(self.open), end),
            Event::VisitEnded { end, .. } => {
                let open = self.open.take();
                self.left(stamp, open, end);
            }
            Event::Suspended { waiting } => {
                let kind = waits_for(waiting.kind);
                let id =
                    self.begin(stamp, SpanKind::Wait, None, &kind.into(), clean_to_one_line(&waiting.detail));
                self.wait = Some(id);
                if waiting.kind == WaitKind::Interrupted {
                    self.resting = self.commands.clone();
                    self.end_commands(stamp);
                    self.resting.retain(|command, _| !self.commands.contains_key(command));
                }
            }
            Event::Forked(_) => {
                // What was at work there is begun anew here; its effects are not.
                self.resting = self.commands.clone();
                self.end_commands(stamp);
                self.resting.retain(|command, _| !self.commands.contains_key(command));
                let effects: Vec<CommandId> = self.commands.keys().copied().collect();
                for effect in effects {
                    self.end(stamp, effect, SpanState::Cut, None);
                }
                self.reopen_resting(stamp);
            }
            Event::Resumed(_) | Event::PersonAnswered { .. } => {
                if let Some(wait) = self.wait.take() {
                    self.end_at(wait, stamp, SpanState::Ok, None);
                }
                self.reopen_resting(stamp);
            }
            Event::Ended { state, .. } => {
                self.end_commands(stamp);
                // Effects that are still pending rest until a retry; a cancelled run takes its labels back.
                if *state != EndState::Cancelled {
                    self.resting = self.commands.clone();
                    for effect in self.resting.keys().copied().collect::<Vec<_>>() {
                        self.end(stamp, effect, SpanState::Cut, None);
                    }
                }
                if let Some(wait) = self.wait.take() {
                    self.end_at(wait, stamp, SpanState::Ok, None);
                }
                for visit in [self.aside.take(), self.open.take()].into_iter().flatten() {
                    self.end_at(visit, stamp, SpanState::Cut, None);
                }
            }
            _ => {}
        }
    }

    fn entered(&mut self, stamp: Stamp, step: &Str, counts: bool, visit: u32, attempt: u32) {
        self.end_commands(stamp);
        if let Some(aside) = self.aside.take() {
            self.end_at(aside, stamp, SpanState::Ok, None);
        }
        if let Some(open) = self.open.take_if(|_| counts) {
            self.end_at(open, stamp, SpanState::Ok, None);
        }
        let id = self.begin(stamp, SpanKind::Visit, None, step, String::new());
        let count = self.counts.entry(step.clone()).or_default();
        *count += 1;
        let visit = if counts { visit } else { *count };
        (self.all[id].visit, self.all[id].attempt) = (visit, attempt);
        self.visits.push(id);
        if let Some(last) = self.last_step.replace(step.clone()) {
            *self.edges.entry((last, step.clone())).or_default() += 1;
        }
        match counts {
            true => self.open = Some(id),
            false => self.aside = Some(id),
        }
    }

    fn left(&mut self, stamp: Stamp, visit: Option<usize>, end: &RowEnd) {
        let Some(id) = visit else { return };
        self.aside.take_if(|aside| *aside == id);
        // The outcomes of commands: `pass`, and `fail(0)` with the index of the one that failed.
        let ran = end.outcome.as_deref().and_then(|outcome| match outcome {
            "pass" => Some(true),
            outcome => outcome.starts_with("fail(").then_some(false),
        });
        let ran = ran.filter(|_| !self.all[id].detail.is_empty());
        let failed = matches!(end.target.as_deref(), Some("@failed" | "@aborted")) || ran == Some(false);
        let state = if failed { SpanState::Failed } else { SpanState::Ok };
        let span = &mut self.all[id];
        span.target = end.target.as_deref().map(|target| self.names.share(target));
        let outcome = match ran {
            Some(passed) => Some(if passed { "passed" } else { "failed" }.to_owned()),
            None => end.outcome.as_ref().map(ToString::to_string),
        };
        let by =
            end.overridden_by.as_ref().map(|by| format!("{} (by {by})", outcome.as_deref().unwrap_or("–")));
        self.end_at(id, stamp, state, by.or(outcome));
        if let Some(target) = end.target.as_ref().filter(|target| target.starts_with('@')) {
            let from = self.all[id].name.clone();
            *self.edges.entry((from, target.clone())).or_default() += 1;
        }
    }

    fn asked(&mut self, stamp: Stamp, request: &AskRequest) {
        // A step or a member has at most one pending ask: the newest.
        let replaced = self.newest_open(|span| {
            span.kind == SpanKind::Ask
                && span.command.is_some_and(|command| command.member() == request.member)
        });
        if let Some(replaced) = replaced {
            self.end_at(replaced, stamp, SpanState::Cut, None);
        }
        let step = match &request.context {
            AskContext::Own | AskContext::Report(_) => &request.step,
            context => context.other().unwrap_or(&request.step),
        };
        let id = CommandId::new(stamp.seq, request.member);
        let span = self.begin_command(stamp, SpanKind::Ask, id, step, request.kind.as_str().to_owned());
        let choice = request.agent.as_ref();
        self.all[span].provider = choice.map(|choice| self.names.share(&choice.agent));
        if let Some(at_ms) = request.not_before_ms {
            self.all[span].from_ms = at_ms.max(stamp.at_ms);
        }
    }

    fn tools(&mut self, stamp: Stamp, ask: CommandId, calls: &[ToolCall]) {
        // The answer of the ask may be in the record before.
        let recent = self.all.iter().rev().take(OPEN_WITHIN);
        let Some(parent) = recent.filter(|span| span.command == Some(ask)).map(|span| span.id).next() else {
            return;
        };
        let begun = self.all[parent].from_ms;
        for call in calls {
            let from_ms = call.at_ms.map_or(begun, |at_ms| begun.saturating_add_unsigned(at_ms));
            let id = self.begin(
                stamp,
                SpanKind::Tool,
                Some(parent),
                &call.tool.as_str().into(),
                clean_to_one_line(&call.target),
            );
            let state = match call.result {
                ToolResult::Ok => SpanState::Ok,
                ToolResult::Failed | ToolResult::Denied => SpanState::Failed,
                ToolResult::Unknown => SpanState::Cut,
            };
            let outcome = (call.result == ToolResult::Denied).then(|| "denied".to_owned());
            self.end_at(id, stamp, state, outcome);
            let span = &mut self.all[id];
            span.from_ms = from_ms.min(stamp.at_ms);
            let took = call.duration_ms.unwrap_or_default();
            span.to_ms = Some(span.from_ms.saturating_add_unsigned(took).min(stamp.at_ms));
        }
    }

    fn effect(&mut self, stamp: Stamp, id: CommandId, action: &Str, kind: &EffectKind) {
        let span = self.begin_command(stamp, SpanKind::Effect, id, action, kind.name().to_owned());
        if *kind == EffectKind::Log {
            self.end_at(span, stamp, SpanState::Ok, None);
        }
    }

    fn begin_command(
        &mut self,
        stamp: Stamp,
        kind: SpanKind,
        command: CommandId,
        name: &Str,
        detail: String,
    ) -> usize {
        let id = self.begin(stamp, kind, self.aside.or(self.open), name, detail);
        self.all[id].command = Some(command);
        self.commands.insert(command, id);
        id
    }

    fn begin(
        &mut self,
        stamp: Stamp,
        kind: SpanKind,
        parent: Option<usize>,
        name: &Str,
        detail: String,
    ) -> usize {
        let id = self.all.len();
        let (name, detail) = (self.names.share(name), self.names.share(&detail));
        self.all.push(Span {
            id,
            parent,
            kind,
            name,
            detail,
            state: SpanState::Open,
            outcome: None,
            target: None,
            visit: 0,
            attempt: 0,
            from_ms: stamp.at_ms,
            to_ms: None,
            from_seq: stamp.seq,
            to_seq: None,
            command: None,
            usage: Usage::default(),
            provider: None,
            model: None,
        });
        self.mark(id);
        id
    }

    fn end(
        &mut self,
        stamp: Stamp,
        command: CommandId,
        state: SpanState,
        outcome: Option<String>,
    ) -> Option<usize> {
        let id = self.commands.remove(&command)?;
        self.end_at(id, stamp, state, outcome);
        Some(id)
    }

    fn end_at(&mut self, id: usize, stamp: Stamp, state: SpanState, outcome: Option<String>) {
        let span = &mut self.all[id];
        if span.state == SpanState::Open {
            span.state = state;
            // A delayed ask that is cut off before it started.
            span.to_ms = Some(stamp.at_ms.max(span.from_ms));
            span.to_seq = Some(stamp.seq);
        }
        if let Some(outcome) = outcome {
            span.outcome = Some(self.names.share(&outcome));
        }
        self.mark(id);
    }

    /// Begins the commands again that an interruption ended: they are still pending when the run goes on.
    fn reopen_resting(&mut self, stamp: Stamp) {
        for (command, id) in std::mem::take(&mut self.resting) {
            let span = &mut self.all[id];
            (span.state, span.outcome) = (SpanState::Open, None);
            (span.from_ms, span.to_ms, span.to_seq) = (stamp.at_ms, None, None);
            self.commands.insert(command, id);
            self.mark(id);
        }
    }

    /// Ends the commands of a step that is left; effects go on.
    fn end_commands(&mut self, stamp: Stamp) {
        let ended: Vec<CommandId> = self
            .commands
            .iter()
            .filter(|(_, id)| self.all[**id].kind != SpanKind::Effect)
            .map(|(command, _)| *command)
            .collect();
        for command in ended {
            self.end(stamp, command, SpanState::Cut, None);
        }
    }

    fn newest_open(&self, is_it: impl Fn(&Span) -> bool) -> Option<usize> {
        let open = self.commands.values().filter(|id| self.all[**id].state == SpanState::Open);
        open.copied().filter(|id| is_it(&self.all[*id])).max()
    }

    fn charge(&mut self, span: Option<usize>, usage: &Usage) {
        add_usage(&mut self.usage, usage);
        let Some(id) = span else { return };
        add_usage(&mut self.all[id].usage, usage);
        if let Some(parent) = self.all[id].parent {
            add_usage(&mut self.all[parent].usage, usage);
            self.mark(parent);
        }
    }

    fn spent(&mut self, at_ms: i64) {
        let reserved: u64 = self.ledger.reserved.values().filter_map(|share| share.usd_micro).sum();
        let point = SpendPoint {
            at_ms,
            spent_usd: self.usage.cost_usd.unwrap_or_default(),
            reserved_usd: reserved as f64 / 1e6,
            tokens: self.usage.input_tokens + self.usage.output_tokens,
        };
        let is_same = |last: &SpendPoint| SpendPoint { at_ms, ..*last } == point;
        if !self.spend.last().is_some_and(is_same) {
            self.spend.push(point);
        }
    }

    fn mark(&mut self, id: usize) {
        self.changed = Some(self.changed.map_or(id, |changed| changed.min(id)));
    }
}

/// Open spans are among the last ones: those of the current visit.
const OPEN_WITHIN: usize = 2000;

/// The position and time of a record.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    seq: u64,
    at_ms: i64,
}

fn add_usage(sum: &mut Usage, usage: &Usage) {
    sum.input_tokens += usage.input_tokens;
    sum.cached_input_tokens += usage.cached_input_tokens;
    sum.output_tokens += usage.output_tokens;
    if let Some(usd) = usage.cost_usd {
        *sum.cost_usd.get_or_insert_default() += usd;
    }
}
