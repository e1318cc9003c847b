//! What stands in for the world: agents, validators, programs and whatever a verdict looks at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cuegate_engine::{
    Answer, AskCommand, Asking, Completion, EffectCommand, Event, Exec, ExecCommand, Exit, Look,
    ProbeCommand, Run, Usage, Work,
};
use cuegate_flow::{
    Act, Flow, Gate, JoinRule, Outcome, Selector, StepId, Str, Success, Target, Verdict, ways,
};
use serde_json::{Map, Value, json};

use super::{
    agent::{Agent, Reply},
    choice::{Choice, choices},
    compose::{Scene, Style, Words, report_text},
    dice::Dice,
    steer::{Aim, Steering},
    together::together,
};
use crate::clock::SimulatedClock;

/// How long an answer and a command take, in simulated milliseconds.
const ASK_MS: u64 = 20_000;
const EXEC_MS: u64 = 2_000;

/// What the stand-ins know of the run that they are in.
pub(super) struct Desk {
    pub(super) flow: Arc<Flow>,
    pub(super) run: Run,
    pub(super) clock: Arc<SimulatedClock>,
    pub(super) dice: Dice,
    pub(super) agent: Agent,
    /// Whether the agent is as it is in every ask of this run, instead of now and then.
    pub(super) always: bool,
    /// How many asks it was put in this run.
    pub(super) asked: u32,
    pub(super) steering: Steering,
    /// What was chosen, by the record that entered the step, and the member.
    wishes: BTreeMap<(u64, Option<u16>), Choice>,
    /// Judges that were asked in any run.
    judged: BTreeSet<StepId>,
    /// The values of handed-on data by which steps are selected.
    cases: BTreeMap<Str, Vec<Str>>,
}

impl Desk {
    pub(super) fn new(flow: Arc<Flow>, agent: Agent) -> Desk {
        let (steering, cases) = (Steering::new(&flow), cases(&flow));
        Desk {
            flow,
            run: Run::default(),
            clock: Arc::default(),
            dice: Dice::new(0, "", 0),
            agent,
            always: false,
            asked: 0,
            steering,
            wishes: BTreeMap::new(),
            judged: BTreeSet::new(),
            cases,
        }
    }

    /// Makes everything ready for another run.
    pub(super) fn begin(&mut self, dice: Dice, always: bool) {
        self.run = Run::default();
        self.clock = Arc::default();
        self.wishes.clear();
        (self.dice, self.always, self.asked) = (dice, always, 0);
        let flow = self.flow.clone();
        self.steering.begin(&flow);
    }

    /// Follows what was journaled.
    pub(super) fn saw(&mut self, events: &[Event]) {
        let flow = self.flow.clone();
        for event in events {
            self.steering.saw(&flow, event);
            // What a person answers is asked of nobody here.
            if let Event::Decided { step, outcome, .. } = event
                && let Some(id) =
                    flow.find(step).filter(|id| matches!(flow.step(*id).act, Act::Person { .. }))
            {
                let chosen = choices(&flow, &self.run, id, &self.steering.outcomes[id.0 as usize]);
                let chosen = chosen.iter().find(|choice| choice.outcome.to_string() == **outcome);
                chosen.into_iter().for_each(|choice| self.steering.took(&flow, id, choice));
            }
        }
        self.run.apply_record(events);
    }

    /// Whether the agent is as it is in this ask.
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

    /// What an agent answers that does as it is told.
    pub(super) fn obey(&mut self, ask: &AskCommand) -> Box<Answer> {
        let words = self.obedient_words(ask).unwrap_or_default();
        Box::new(Answer {
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

    fn obedient_words(&mut self, ask: &AskCommand) -> Option<Words> {
        let (name, member, asking) =
            self.run.asking(ask.id).map(|(name, member, asking)| (name, member, asking.clone()))?;
        let flow = self.flow.clone();
        let (step, asked) = (flow.find(&name)?, flow.find(&ask.step)?);
        if let Some(owing) = &asking.owing {
            let Act::Ask(about) = &flow.step(step).act else { return None };
            let report = about.reports.get(usize::from(owing.report))?;
            return Some(Words { output: None, text: report_text(&report.name) });
        }
        if asking.judging.is_some() {
            return Some(self.judge(step, asked, member));
        }
        self.work(step, member, &asking)
    }

    /// A judge's answer: what was wanted of the step that it decides about, where it is among what it offers.
    fn judge(&mut self, step: StepId, asked: StepId, member: Option<u16>) -> Words {
        self.judged.insert(asked);
        let wish = self.wish(step, member).map(|choice| choice.outcome);
        let offered = &self.steering.outcomes[asked.0 as usize];
        let outcome = match wish {
            Some(outcome) if offered.contains(&outcome) => outcome,
            Some(_) => Outcome::None,
            None => self.dice.pick(offered).cloned().unwrap_or(Outcome::None),
        };
        let style = if self.dice.one_in(2) { Style::Structured } else { Style::Plain };
        self.compose(asked, &Choice::plain(outcome), style).unwrap_or_else(|| self.anything(asked))
    }

    /// The answer of the step that control, or a member, stands on.
    fn work(&mut self, step: StepId, member: Option<u16>, asking: &Asking) -> Option<Words> {
        let flow = self.flow.clone();
        let unasked = ways::judges(&flow.step(step).gate).iter().any(|judge| !self.judged.contains(judge));
        // What could not be read is said as plainly as can be.
        let style = match self.dice.below(4) {
            _ if asking.repairs > 0 => Style::Structured,
            _ if unasked => Style::Judged,
            0 => Style::Judged,
            1 => Style::Plain,
            _ => Style::Structured,
        };
        while let Some(choice) = self.wish(step, member) {
            if let Some(words) = self.compose(step, &choice, style) {
                if member.is_none() && asking.repairs == 0 {
                    self.steering.took(&flow, step, &choice);
                }
                return Some(words);
            }
            if member.is_some() {
                break;
            }
            self.steering.give_up(step, &choice);
            self.wishes.retain(|_, wish| *wish != choice);
        }
        Some(self.anything(step))
    }

    /// What is wanted of a step, or of a member of the one that control stands on.
    fn wish(&mut self, step: StepId, member: Option<u16>) -> Option<Choice> {
        let entered = self.run.node.as_ref()?.entered;
        if let Some(wish) = self.wishes.get(&(entered, member)) {
            return Some(wish.clone());
        }
        if member.is_some() {
            self.plan(entered);
            return self.wishes.get(&(entered, member)).cloned();
        }
        let flow = self.flow.clone();
        let choice = self.steering.choose(&flow, &self.run, step, &mut self.dice)?;
        self.wishes.insert((entered, None), choice.clone());
        Some(choice)
    }

    /// Lets the members of the step that control stands on answer so that the step comes to what is chosen for it.
    fn plan(&mut self, entered: u64) {
        let flow = self.flow.clone();
        let Some(parent) = self.run.node.as_ref().and_then(|node| flow.find(&node.step)) else { return };
        let (Act::All { members, .. }, Gate::Join { rules, .. }) =
            (&flow.step(parent).act, &flow.step(parent).gate)
        else {
            return;
        };
        // Now and then each says what it likes, whatever comes of it.
        let free = *self.steering.aim() == Aim::Wander && self.dice.one_in(4);
        loop {
            let choice = self.steering.choose(&flow, &self.run, parent, &mut self.dice);
            let wanted = choice.as_ref().filter(|_| !free).map(|choice| &choice.outcome);
            let said = self.combination(members, rules, wanted);
            let Some(said) = said else {
                let Some(choice) = choice else { return };
                self.steering.give_up(parent, &choice);
                continue;
            };
            for (index, (member, outcome)) in (0..).zip(members.iter().zip(said)) {
                let wish = Choice::plain(outcome);
                self.steering.took(&flow, *member, &wish);
                self.wishes.insert((entered, Some(index)), wish);
            }
            if let Some(choice) = choice {
                self.steering.took(&flow, parent, &choice);
                self.wishes.insert((entered, None), choice);
            }
            return;
        }
    }

    /// What members may say so that the rules, or none of them when a judge decides, come to an outcome; what they said
    /// least so far comes first.
    fn combination(
        &mut self,
        members: &[StepId],
        rules: &[JoinRule],
        wanted: Option<&Outcome>,
    ) -> Option<Vec<Outcome>> {
        let said: Vec<Vec<Outcome>> = members.iter().map(|member| self.least_said(*member)).collect();
        let Some(wanted) = wanted else {
            return said.into_iter().map(|all| self.dice.pick(&all).cloned()).collect();
        };
        let by_rule = rules.iter().any(|rule| rule.outcome == *wanted);
        together(rules, &said, by_rule.then_some(wanted))
    }

    /// What a member can say, what it said least first; of equals any.
    fn least_said(&mut self, member: StepId) -> Vec<Outcome> {
        let flow = self.flow.clone();
        let all = self.steering.outcomes[member.0 as usize].clone();
        let mut sayable: Vec<(u32, u64, Outcome)> = all
            .into_iter()
            .filter(|outcome| *outcome != Outcome::None && ways::is_sayable(&flow, member, outcome))
            .map(|outcome| {
                let times = self.steering.times(member, &Choice::plain(outcome.clone()));
                (times, self.dice.roll(), outcome)
            })
            .collect();
        sayable.sort();
        sayable.into_iter().map(|(_, _, outcome)| outcome).collect()
    }

    fn compose(&mut self, asked: StepId, choice: &Choice, style: Style) -> Option<Words> {
        let (beside, selects, variant) = (self.beside(), self.selecting(), self.dice.below(6));
        let selects = |key: &Str| selects.get(key).cloned();
        let flow = self.flow.clone();
        let scene = Scene { flow: &flow, run: &self.run, asked, beside: &beside, selects: &selects, variant };
        scene.words(choice, style)
    }

    fn anything(&self, asked: StepId) -> Words {
        let flow = &self.flow;
        Scene { flow, run: &self.run, asked, beside: "", selects: &|_| None, variant: 0 }.anything()
    }

    fn selecting(&mut self) -> BTreeMap<Str, Str> {
        let dice = &mut self.dice;
        let pick = |(key, cases): (&Str, &Vec<Str>)| Some((key.clone(), dice.pick(cases)?.clone()));
        self.cases.iter().filter_map(pick).collect()
    }

    /// What is said besides: what the verdict looks for, when that is what the run is after, and blocks that ask for
    /// something.
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
                    text.push_str(&block(&signal.marker, &Value::Object(body)));
                }
                _ => {}
            }
        }
        if let Some(actions) = &self.flow.conduct.actions
            && self.dice.one_in(3)
        {
            let handled = actions.handlers.iter().map(|(name, _)| name);
            let names: Vec<&Str> = actions.types.iter().flatten().chain(handled).collect();
            if let Some(name) = self.dice.pick(&names) {
                text.push_str(&block(&actions.marker, &json!({"action": name, "note": "as simulated"})));
            }
        }
        text
    }

    /// A validator: it passes or fails as the steering has it, unless its agent lies.
    pub(super) fn exec(&mut self, exec: &ExecCommand) -> Completion {
        self.clock.pass(EXEC_MS);
        let flow = self.flow.clone();
        let place = match self.run.node.as_ref().map(|node| &node.work) {
            Some(Work::Running { index, .. }) => *index,
            _ => 0,
        };
        let wish = flow.find(&exec.step).and_then(|step| {
            let choice = self.wish(step, None)?;
            if place == 0 {
                self.steering.took(&flow, step, &choice);
            }
            Some(choice.outcome)
        });
        let lied = self.agent == Agent::Liar && self.is_itself();
        let fails = lied || wish == Some(Outcome::Fail(place));
        let (exit, stdout) = match (exec.validator.success, fails) {
            (Success::ExitCode(code), false) => (Exit::Code(code), ""),
            (Success::ExitCode(code), true) => (self.bad_exit(code), "as simulated: it does not hold\n"),
            (Success::Empty, false) => (Exit::Code(0), ""),
            (Success::Empty, true) => (Exit::Code(0), " M src/simulated.rs\n?? src/new.rs\n"),
        };
        let exec_ended =
            Exec { exit, stdout: stdout.to_owned(), stderr: String::new(), duration_ms: EXEC_MS };
        Completion::Executed { id: exec.id, exec: exec_ended, seen: None }
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

    /// A look for a verdict: it holds when the run is after that, else now and then.
    pub(super) fn probe(&mut self, probe: &ProbeCommand) -> Completion {
        self.clock.pass(100);
        let after = self.steering.says(&probe.condition);
        let failed = self.agent == Agent::Random && self.dice.one_in(5);
        let holds = !failed && (after || self.dice.one_in(10));
        let look = Look { holds, failed, said: "as simulated".to_owned(), duration_ms: 100, seen: None };
        Completion::Probed { id: probe.id, look }
    }

    /// A program that acts on what was asked for.
    pub(super) fn effect(&mut self, effect: &EffectCommand) -> Completion {
        self.clock.pass(EXEC_MS);
        let exit = Exit::Code(i32::from(self.dice.one_in(4)));
        let exec = Exec { exit, stdout: String::new(), stderr: String::new(), duration_ms: EXEC_MS };
        Completion::Acted { id: effect.effect.id, exec, seen: None }
    }
}

fn block(marker: &str, value: &Value) -> String {
    format!("\n```{marker}\n{value}\n```\n")
}

/// The values of handed-on data by which some step is selected, and one that selects none.
fn cases(flow: &Flow) -> BTreeMap<Str, Vec<Str>> {
    let mut found: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
    for edge in flow.steps.iter().flat_map(|step| &step.edges) {
        if let Target::Select { by: Selector::Handoff(key), cases, default } = &edge.to {
            let known = found.entry(key.clone()).or_default();
            known.extend(cases.iter().map(|(case, _)| case.clone()));
            known.extend(default.map(|_| "none of these".into()));
        }
    }
    found
}
