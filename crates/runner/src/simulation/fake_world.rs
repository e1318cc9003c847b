//! The fake world: it answers for agents, validators, programs and probes of the verdict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_engine::{
    Answer, AskCommand, AskContext, Completion, Delay, EffectCommand, EffectKind, EffectResult, Event,
    ExecCommand, ExecResult, Exit, PendingAsk, ProbeCommand, ProbeResult, Run, Usage, Work,
};
use cuegate_flow::{
    Str,
    analysis::{
        flow_queries,
        state_graph::{Choice, Mark, MemberOutcome, StateGraph},
    },
    model::{Act, Flow, Gate, Outcome, OutcomeReader, Source, StepId, Success, Verdict},
};
use serde_json::{Map, Value, json};

use super::{
    agent::{Agent, Reply},
    answer_builder::{AnswerContent, AnswerContext, AnswerStyle, report_text},
    random::SimulationRng,
    strategy::{Steering, SteeringAim},
};
use crate::clock::SimulatedClock;

/// The duration of an ask and of a command, in simulated milliseconds.
const ASK_MS: u64 = 20_000;
const EXEC_MS: u64 = 2_000;

/// The state of the fake world.
pub(super) struct FakeWorld {
    pub(super) flow: Arc<Flow>,
    pub(super) run: Run,
    pub(super) clock: Arc<SimulatedClock>,
    pub(super) dice: SimulationRng,
    pub(super) agent: Agent,
    /// Whether the agent misbehaves in every ask of this run, instead of occasionally.
    pub(super) always: bool,
    /// The number of asks in this run.
    pub(super) asked: u32,
    pub(super) steering: Steering,
    /// Choices, keyed by the record that entered the step and by the member.
    wishes: BTreeMap<(u64, Option<u16>), Choice>,
    /// Judges that were asked in any run.
    judged: BTreeSet<StepId>,
}

impl FakeWorld {
    pub(super) fn new(reach: Arc<StateGraph>, agent: Agent) -> FakeWorld {
        let (flow, steering) = (reach.flow().clone(), Steering::new(reach, agent == Agent::Malformed));
        FakeWorld {
            flow,
            run: Run::default(),
            clock: Arc::default(),
            dice: SimulationRng::new(0, "", 0),
            agent,
            always: false,
            asked: 0,
            steering,
            wishes: BTreeMap::new(),
            judged: BTreeSet::new(),
        }
    }

    /// Resets the state for another run.
    pub(super) fn begin(&mut self, dice: SimulationRng, always: bool) {
        self.run = Run::default();
        self.clock = Arc::default();
        self.wishes.clear();
        (self.dice, self.always, self.asked) = (dice, always, 0);
        self.steering.begin();
    }

    /// Follows journaled events.
    pub(super) fn saw(&mut self, events: &[Event]) {
        self.steering.saw(&self.run, events);
        self.run.apply_record(events);
    }

    /// Whether the agent misbehaves in this ask.
    pub(super) fn is_itself(&mut self) -> bool {
        self.always || self.dice.one_in(4)
    }

    pub(super) fn ask(&mut self, ask: &AskCommand) -> Completion {
        if let Some(moment) = ask.not_before_ms {
            self.clock.wait_until(moment);
        }
        self.clock.pass(ASK_MS);
        self.asked += 1;
        let agent = self.agent;
        match agent.reply(self, ask) {
            Reply::Said(answer, seen) => Completion::Answered { ask: ask.id, answer, seen },
            Reply::Fault(fault) => Completion::Faulted { ask: ask.id, fault, seen: None },
        }
    }

    /// The answer of the obedient agent.
    pub(super) fn obey(&mut self, ask: &AskCommand) -> Box<Answer> {
        let words = self.obedient_words(ask).unwrap_or_default();
        Box::new(Answer {
            blocked: self.is_blocked(ask).then(|| "this cannot be done, as simulated".to_owned()),
            output: words.output,
            text: words.text,
            usage: Usage {
                input_tokens: 1_000,
                output_tokens: 100,
                cost_usd: Some(0.01),
                ..Usage::default()
            },
            provider: "simulated".to_owned(),
            session: Some(format!("simulated-{}", ask.id)),
            duration_ms: ASK_MS,
            ..Answer::default()
        })
    }

    /// Whether a member must report that it is blocked: its gate accepts every answer, but the plan wants none that
    /// is usable.
    fn is_blocked(&mut self, ask: &AskCommand) -> bool {
        let asking = self
            .run
            .asking(ask.id)
            .map(|(name, member, asking)| (name, member, asking.context == AskContext::Own));
        let Some((name, Some(member), true)) = asking else { return false };
        let usable = self.flow.find(&name).is_some_and(|id| match &self.flow.step(id).gate {
            Gate::Readers(readers) => {
                readers.iter().any(|reader| matches!(reader, OutcomeReader::Otherwise(_)))
            }
            _ => true,
        });
        usable && self.wish(Some(member)).is_some_and(|wish| wish.unusable)
    }

    fn obedient_words(&mut self, ask: &AskCommand) -> Option<AnswerContent> {
        let (name, member, asking) =
            self.run.asking(ask.id).map(|(name, member, asking)| (name, member, asking.clone()))?;
        let flow = self.flow.clone();
        let (step, asked) = (flow.find(&name)?, flow.find(&ask.step)?);
        if let AskContext::Report(owing) = &asking.context {
            let Act::Ask(about) = &flow.step(step).act else { return None };
            let report = about.reports.get(usize::from(owing.report))?;
            return Some(AnswerContent { output: None, text: report_text(&report.name) });
        }
        if asking.context.judging().is_some() {
            return Some(self.judge(asked, member));
        }
        if let AskContext::Select(_) = &asking.context {
            return Some(self.select(step, asked, member));
        }
        self.work(step, member, &asking)
    }

    /// A judge's answer: the outcome planned for the step it decides about, if this judge can choose it.
    fn judge(&mut self, asked: StepId, member: Option<u16>) -> AnswerContent {
        self.judged.insert(asked);
        let offered = self.steering.outcomes[asked.0 as usize].clone();
        let outcome = match self.wish(member) {
            Some(wish) if wish.by.is_some_and(|by| by != asked) => Outcome::None,
            Some(wish) if offered.contains(&wish.outcome) => wish.outcome,
            Some(_) => Outcome::None,
            None => self.dice.pick(&offered).cloned().unwrap_or(Outcome::None),
        };
        let styles = match self.dice.one_in(2) {
            true => [AnswerStyle::Structured, AnswerStyle::Plain],
            false => [AnswerStyle::Plain, AnswerStyle::Structured],
        };
        self.compose(asked, &Choice::plain(outcome), &styles).unwrap_or_else(|| self.anything(asked))
    }

    /// A selector's answer: the members that the choice for the parallel step has, and prompt parts by chance.
    fn select(&mut self, step: StepId, asked: StepId, member: Option<u16>) -> AnswerContent {
        let flow = self.flow.clone();
        let choice = if member.is_none() { self.wish(None) } else { None };
        let mut skipped: BTreeSet<&str> = BTreeSet::new();
        if let Act::All { members, .. } = &flow.step(step).act {
            for (index, member) in members.iter().enumerate() {
                let planned = choice.as_ref().and_then(|choice| choice.members.get(index));
                if let Some(Source::Handoff { step: from, key }) = &flow.step(*member).when
                    && *from == flow.step(asked).name
                    && planned == Some(&MemberOutcome::Skipped)
                {
                    skipped.insert(key);
                }
            }
        } else {
            let keys = flow.step(asked).handoff.iter().map(|handoff| &*handoff.key);
            skipped.extend(keys.filter(|_| self.dice.one_in(2)));
        }
        let outcomes = flow_queries::list_step_outcomes(&flow, flow.step(asked));
        let outcome = self.dice.pick(&outcomes).cloned().unwrap_or(Outcome::None);
        let scene =
            AnswerContext { flow: &flow, run: &self.run, asked, beside: "", variant: self.dice.below(6) };
        scene.selection(&|key| !skipped.contains(key), &outcome)
    }

    /// The answer of the current step or of a member.
    fn work(&mut self, step: StepId, member: Option<u16>, asking: &PendingAsk) -> Option<AnswerContent> {
        let flow = self.flow.clone();
        let judges = flow_queries::list_gate_judges(&flow.step(step).gate);
        let plain = [AnswerStyle::Plain, AnswerStyle::Structured, AnswerStyle::Judged];
        let structured = [AnswerStyle::Structured, AnswerStyle::Plain, AnswerStyle::Judged];
        while let Some(choice) = self.wish(member) {
            if choice.unusable {
                return Some(build_unusable_answer());
            }
            // A repair uses the structured form, the least ambiguous one.
            let first = if asking.repairs == 0 && self.dice.one_in(3) { plain } else { structured };
            let unasked = judges.iter().any(|judge| !self.judged.contains(judge));
            let styles = match (member, choice.by) {
                (None, Some(_)) => vec![AnswerStyle::Judged],
                (None, None) => first[..2].to_vec(),
                (Some(_), _) if asking.repairs == 0 && unasked => {
                    [&[AnswerStyle::Judged], &first[..2]].concat()
                }
                (Some(_), _) => first.to_vec(),
            };
            if let Some(words) = self.compose(step, &choice, &styles) {
                if member.is_none() && asking.repairs == 0 {
                    self.steering.took(step, &choice);
                }
                return Some(words);
            }
            // If a member has no answer for its part, the choice for the parallel step is impossible.
            let given_up = match member {
                Some(_) => self.parent().zip(self.wish(None)),
                None => Some((step, choice.clone())),
            };
            if let Some((at, choice)) = given_up {
                self.steering.give_up(at, &choice);
            }
            if member.is_some() {
                break;
            }
            self.wishes.retain(|_, wish| *wish != choice);
        }
        Some(self.anything(step))
    }

    /// The current step.
    fn parent(&self) -> Option<StepId> {
        self.flow.find(&self.run.progress.node.as_ref()?.step)
    }

    /// The choice for the current step or for one of its members.
    pub(super) fn wish(&mut self, member: Option<u16>) -> Option<Choice> {
        let entered = self.run.progress.node.as_ref()?.entered;
        if let Some(wish) = self.wishes.get(&(entered, member)) {
            return Some(wish.clone());
        }
        if member.is_some() {
            self.plan(entered);
            return self.wishes.get(&(entered, member)).cloned();
        }
        let choice = self.steering.choose(&self.run, &mut self.dice)?;
        self.wishes.insert((entered, None), choice.clone());
        Some(choice)
    }

    /// Distributes the choice for a parallel step to its members.
    fn plan(&mut self, entered: u64) {
        let flow = self.flow.clone();
        let (Some(parent), Some(choice)) = (self.parent(), self.wish(None)) else { return };
        let Act::All { members, .. } = &flow.step(parent).act else { return };
        self.steering.took(parent, &choice);
        // Occasionally the members answer at random.
        let free = self.steering.aim() == SteeringAim::Wander && self.dice.one_in(4);
        for (index, member) in (0..).zip(members) {
            let said = match choice.members.get(usize::from(index)) {
                Some(said) if !free => said.clone(),
                _ => {
                    let any = self.dice.pick(&self.steering.outcomes[member.0 as usize]).cloned();
                    any.map_or(MemberOutcome::Failed, MemberOutcome::Has)
                }
            };
            let wish = match said {
                MemberOutcome::Has(outcome) => Choice::plain(outcome),
                MemberOutcome::Skipped => continue,
                MemberOutcome::Failed => Choice { unusable: true, ..Choice::plain(Outcome::None) },
            };
            self.wishes.insert((entered, Some(index)), wish);
        }
    }

    fn compose(&mut self, asked: StepId, choice: &Choice, styles: &[AnswerStyle]) -> Option<AnswerContent> {
        let (beside, variant) = (self.beside(), self.dice.below(6));
        let flow = self.flow.clone();
        let scene = AnswerContext { flow: &flow, run: &self.run, asked, beside: &beside, variant };
        scene.words(choice, styles)
    }

    fn anything(&self, asked: StepId) -> AnswerContent {
        AnswerContext { flow: &self.flow, run: &self.run, asked, beside: "", variant: 0 }.anything()
    }

    /// Additional text: what the verdict looks for, if the run aims at it, and action blocks.
    fn beside(&mut self) -> String {
        let mut text = String::new();
        for (place, part) in self.flow.verdict.places() {
            match part {
                Verdict::Keyword(keyword) if self.steering.says(&place) => {
                    text.push_str(keyword);
                    text.push('\n');
                }
                Verdict::Signal(signal) if self.steering.says(&place) => {
                    let mut body = Map::from_iter([("action".to_owned(), json!(signal.kind))]);
                    for field in &signal.required {
                        let value = field.value.clone().unwrap_or_else(|| json!("as simulated"));
                        body.insert(field.name.to_string(), value);
                    }
                    text.push_str(&render_fenced_block(&signal.marker, &Value::Object(body)));
                }
                _ => {}
            }
        }
        if let Some(actions) = &self.flow.conduct.actions
            && self.dice.one_in(3)
        {
            let handled = actions.handlers.iter().map(|(name, _)| name);
            // Omit blocks that the verdict waits for: they end the run, which the strategy decides.
            let waited: Vec<Str> = self
                .flow
                .verdict
                .places()
                .into_iter()
                .filter_map(|(place, part)| match part {
                    Verdict::Signal(signal) if !self.steering.says(&place) => Some(signal.kind.clone()),
                    _ => None,
                })
                .collect();
            let all = actions.types.iter().flatten().chain(handled);
            let names: Vec<&Str> = all.filter(|name| !waited.contains(name)).collect();
            if let Some(name) = self.dice.pick(&names) {
                text.push_str(&render_fenced_block(
                    &actions.marker,
                    &json!({"action": name, "note": "as simulated"}),
                ));
            }
        }
        text
    }

    /// A validator: it passes or fails as the strategy chooses, unless the agent lies.
    pub(super) fn exec(&mut self, exec: &ExecCommand) -> Completion {
        self.clock.pass(EXEC_MS);
        let flow = self.flow.clone();
        let place = match self.run.progress.node.as_ref().map(|node| &node.work) {
            Some(Work::Running { index, .. }) => *index,
            _ => 0,
        };
        // The result of a member's gate command is not part of a choice.
        let step = flow.find(&exec.step).filter(|step| self.parent() == Some(*step));
        let wish = step.and_then(|step| {
            let choice = self.wish(None)?;
            if place == 0 {
                self.steering.took(step, &choice);
            }
            Some(choice.outcome)
        });
        let lied = self.agent == Agent::Liar && self.is_itself();
        let fails = lied || wish == Some(Outcome::Fail(place)) || self.is_to_fail(exec);
        let (exit, stdout) = match (exec.validator.success, fails) {
            (Success::ExitCode(code), false) => (Exit::Code(code), ""),
            (Success::ExitCode(code), true) => (self.bad_exit(code), "as simulated: it does not hold\n"),
            (Success::NonEmpty, false) => (Exit::Code(0), "as simulated\n"),
            (Success::NonEmpty, true) => (Exit::Code(0), ""),
            (Success::Empty, false) => (Exit::Code(0), ""),
            (Success::Empty, true) => (Exit::Code(0), " M src/simulated.rs\n?? src/new.rs\n"),
        };
        let exec_ended =
            ExecResult { exit, stdout: stdout.to_owned(), stderr: String::new(), duration_ms: EXEC_MS };
        Completion::Executed { id: exec.id, exec: exec_ended, seen: None }
    }

    /// Whether this is a member's gate command that has not failed yet: failing it covers the retry.
    fn is_to_fail(&self, exec: &ExecCommand) -> bool {
        let Some(Work::Joining(members)) = self.run.progress.node.as_ref().map(|node| &node.work) else {
            return false;
        };
        let member = exec.id.member().and_then(|index| members.get(usize::from(index)));
        member
            .and_then(|member| member.proving.as_ref())
            .zip(self.flow.find(&exec.step))
            .is_some_and(|(proving, step)| self.steering.lacks(&Mark::Validator(step, proving.index, false)))
    }

    fn bad_exit(&mut self, good: i32) -> Exit {
        let code = Exit::Code(if good == 1 { 2 } else { 1 });
        if self.agent != Agent::Random {
            return code;
        }
        let others =
            [code, Exit::Signal(9), Exit::TimedOut, Exit::TooMuchOutput, Exit::NotStarted("none".into())];
        self.dice.pick(&others).cloned().unwrap_or(Exit::TimedOut)
    }

    /// A probe of the verdict: it holds if the run aims at it, or occasionally by chance for disobedient agents.
    pub(super) fn probe(&mut self, probe: &ProbeCommand) -> Completion {
        self.clock.pass(100);
        let after = self.steering.says(&probe.condition);
        let failed = self.agent == Agent::Random && self.dice.one_in(5);
        let by_chance = self.agent != Agent::Obedient && self.dice.one_in(10);
        let holds = !failed && (after || by_chance);
        let look =
            ProbeResult { holds, failed, said: "as simulated".to_owned(), duration_ms: 100, seen: None };
        Completion::Probed { id: probe.id, look }
    }

    /// An effect: a program, or git and GitHub.
    pub(super) fn effect(&mut self, effect: &EffectCommand) -> Completion {
        let EffectCommand { effect, program, .. } = effect;
        if let Some(moment) = effect.not_before_ms {
            self.clock.wait_until(moment);
        }
        self.clock.pass(EXEC_MS);
        let said = "as simulated".to_owned();
        let result = match program {
            Some(_) => {
                let exit = Exit::Code(i32::from(self.dice.one_in(4)));
                let (stdout, stderr) = (String::new(), String::new());
                EffectResult::Ran(ExecResult { exit, stdout, stderr, duration_ms: EXEC_MS })
            }
            None if self.dice.one_in(4) => {
                let delays = [Delay::Fault, Delay::Limit, Delay::Look];
                let delay = self.dice.pick(&delays).copied().unwrap_or(Delay::Fault);
                EffectResult::Later { delay, why: said, after_ms: None }
            }
            None if matches!(effect.kind, EffectKind::Step(_)) => FakeWorld::draw_step_effect(&mut self.dice),
            None if self.dice.one_in(8) => EffectResult::Failed { said },
            None => EffectResult::Done { said, url: None },
        };
        Completion::Acted { id: effect.id, attempt: effect.attempt, result, duration_ms: EXEC_MS, seen: None }
    }
}

fn render_fenced_block(marker: &str, value: &Value) -> String {
    format!("\n```{marker}\n{value}\n```\n")
}

/// An answer that neither a gate nor a judge can use.
fn build_unusable_answer() -> AnswerContent {
    AnswerContent { output: None, text: "Nothing that could be used, as it was simulated.".to_owned() }
}
