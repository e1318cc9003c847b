//! Lowers a `structuredGate` and its `transitions` to a reader of the answer's field, handoff values, and an edge for
//! each intent.

use std::collections::{BTreeMap, BTreeSet};

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{
        Edge, Ending, Fact, FieldPath, Gate, Handoff, Name, Outcome, OutcomeReader, Piece, Schema, Source,
        Target, Template,
    },
};

use super::conditional_transitions::lower_select;
use super::index::{HandoffSteps, StepIndex};
use super::jump::lower_jump;
use super::step_definition::{GateDefinition, StepDefinition};
use super::transition::{Transition, TransitionTarget};
use crate::climpt::generation::Generation;
use crate::climpt::kinds::{Intent, StepKind};
use crate::codes;
use crate::findings::Findings;
use crate::suggest::quote_names;
use crate::values::json::Text;

/// A lowered gate: how an answer becomes an outcome, its handoff values, and the targets of outcomes.
#[derive(Debug, Clone)]
pub struct LoweredGate {
    /// Maps an answer to an outcome.
    pub gate: Gate<Name>,
    /// Handoff values for later steps.
    pub handoff: Vec<Handoff>,
    /// The edges of its outcomes. `closing` ends the run here; [`crate::load_agent`] inserts the validators.
    pub edges: Vec<Edge<Name>>,
}

/// The context for lowering a gate.
pub(crate) struct RegistryContext<'w, 'j> {
    /// All steps of the registry.
    pub(crate) steps: &'w [StepDefinition<'j>],
    /// The steps that some run of the registry enters first.
    pub(crate) entries: &'w [&'j str],
    /// The steps by their names.
    pub(crate) index: StepIndex<'j>,
    /// The handoff values of each step.
    pub(crate) leavers: HandoffSteps<'j>,
}

impl<'w, 'j> RegistryContext<'w, 'j> {
    /// The context of these steps.
    pub(crate) fn new(steps: &'w [StepDefinition<'j>], entries: &'w [&'j str]) -> RegistryContext<'w, 'j> {
        RegistryContext { steps, entries, index: StepIndex::new(steps), leavers: HandoffSteps::new(steps) }
    }

    /// The step of a name.
    pub(crate) fn step(&self, id: &str) -> Option<&'w StepDefinition<'j>> {
        self.index.place(id).map(|at| &self.steps[at])
    }
}

/// Lowers the gate of a step. `schema` is the schema of its answer, if it could be resolved.
pub(crate) fn lower_step_gate(
    step: &StepDefinition<'_>,
    schema: Option<&Schema>,
    world: &RegistryContext<'_, '_>,
    found: &Findings,
) -> LoweredGate {
    let lowering = GateLowering { step, schema, world, found, handoff: handoff_of(step) };
    let mut edges: Vec<Edge<Name>> = Vec::new();
    for transition in step.transitions.iter().flatten() {
        lowering.check_transition(transition);
        edges.extend(lowering.edge(transition));
    }
    let gate = match &step.gate {
        None => Gate::Readers(Vec::new()),
        Some(gate) => {
            lowering.check_intents(gate);
            let allows_jump = gate.intents.iter().any(|(intent, _)| *intent == Intent::Jump);
            // Missing or unreadable transitions have been reported.
            let has_transitions = step.transitions.is_some() && !step.transitions_misread;
            if allows_jump && has_transitions && lowering.transition(Intent::Jump).is_none() {
                edges.extend(lower_jump(&lowering, gate, None));
            }
            lowering.readers(gate)
        }
    };
    if lowering.transition(Intent::Abort).is_none() {
        // `abort` is always allowed, so it does not count as an exit that the author intended.
        let to = Target::End(Ending::Aborted);
        edges.push(Edge { implied: true, ..Edge::new(outcome_of_intent(Intent::Abort), to, step.span) });
    }
    LoweredGate { gate, handoff: lowering.handoff, edges }
}

/// The wording of rule R4 of the "Step Flow Design" for an answer without an intent.
fn no_intent(step: &str, field: &FieldPath) -> Template {
    let rest = format!(
        " on step \"{step}\".\nFlow steps must produce structured output with a valid intent.\nCheck that the step's \
         schema includes {field} and the LLM returns valid JSON."
    );
    Template {
        pieces: vec![
            Piece::Text("[StepFlow] No intent produced for iteration ".into()),
            Piece::Value(Source::Fact(Fact::Iteration)),
            Piece::Text(rest.into()),
        ],
    }
}

pub(crate) fn outcome_of_intent(intent: Intent) -> Outcome {
    Outcome::Named(intent.as_str().into())
}

/// The handoff values of a step, named by the last segment of the path, or by the whole path where that is ambiguous.
pub(crate) fn handoff_of(step: &StepDefinition<'_>) -> Vec<Handoff> {
    let Some(gate) = &step.gate else { return Vec::new() };
    let mut by_last: BTreeMap<&Str, BTreeSet<&FieldPath>> = BTreeMap::new();
    for (path, _) in &gate.handoff {
        by_last.entry(path.last()).or_default().insert(path);
    }
    let mut seen = BTreeSet::new();
    gate.handoff
        .iter()
        .filter(|(path, _)| seen.insert(path))
        .map(|(path, span)| {
            let shared = by_last.get(path.last()).is_some_and(|paths| paths.len() > 1);
            let key: Str = if shared { path.to_string().into() } else { path.last().clone() };
            Handoff::new(&key, path.clone(), *span)
        })
        .collect()
}

/// The state of lowering one gate.
pub(crate) struct GateLowering<'l, 'w, 'j> {
    pub(crate) step: &'l StepDefinition<'j>,
    pub(crate) schema: Option<&'l Schema>,
    pub(crate) world: &'l RegistryContext<'w, 'j>,
    pub(crate) handoff: Vec<Handoff>,
    found: &'l Findings,
}

impl<'l, 'j> GateLowering<'l, '_, 'j> {
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.found.push(finding.step(self.step.id));
    }

    fn transition(&self, intent: Intent) -> Option<&'l Transition<'j>> {
        self.step.transitions.iter().flatten().find(|transition| transition.intent == intent)
    }

    fn readers(&self, gate: &GateDefinition<'_>) -> Gate<Name> {
        let Some((path, _)) = &gate.field else { return Gate::Readers(Vec::new()) };
        let mut intents: Vec<Intent> = Vec::new();
        for intent in gate.intents.iter().map(|(intent, _)| *intent).chain([Intent::Abort]) {
            if !intents.contains(&intent) {
                intents.push(intent);
            }
        }
        let words = intents
            .iter()
            .flat_map(|intent| {
                let words = std::iter::once(intent.as_str())
                    .chain(self.step.generation.aliases(*intent).iter().copied());
                words.map(|word| (word.into(), outcome_of_intent(*intent)))
            })
            .collect();
        let reasons = ["next_action.reason", "reason", "message", "next_action.details.reason"];
        let reasons = reasons.into_iter().filter_map(FieldPath::parse).collect();
        let mut readers = vec![OutcomeReader::Field { path: path.clone(), words, reasons }];
        readers.extend(self.fallback(gate));
        readers.push(OutcomeReader::Silence(no_intent(self.step.id, path)));
        Gate::Readers(readers)
    }

    fn fallback(&self, gate: &GateDefinition<'_>) -> Option<OutcomeReader<Name>> {
        if self.step.generation == Generation::Complete {
            return gate.fallback.map(|(intent, _)| OutcomeReader::FirstFallback(outcome_of_intent(intent)));
        }
        let fails_fast = gate.fail_fast.is_none_or(|(fails, _)| fails);
        match (&gate.fallback, gate.fail_fast) {
            (Some((_, span)), _) if fails_fast => {
                self.push(
                    Diagnostic::warning(
                        codes::UNUSED_KEY,
                        *span,
                        "`fallbackIntent` is ignored because `failFast` is true",
                    )
                    .hint("add `\"failFast\": false`, or remove it"),
                );
                None
            }
            (Some((intent, _)), _) => Some(OutcomeReader::Fallback(outcome_of_intent(*intent))),
            (None, Some((false, span))) if !gate.fallback_is_written => {
                self.push(
                    Diagnostic::warning(
                        codes::UNUSED_KEY,
                        span,
                        "`failFast` is false, but no `fallbackIntent` says what an unreadable intent means",
                    )
                    .hint("add `fallbackIntent`; without one an unreadable intent ends the run all the same"),
                );
                None
            }
            // A word that is not an intent has been reported.
            (None, _) => None,
        }
    }

    fn check_intents(&self, gate: &GateDefinition<'_>) {
        let id = self.step.id;
        for (intent, span) in &gate.intents {
            let word = intent.as_str();
            let generation = self.step.generation;
            if let Some(kind) = self.step.kind.filter(|kind| !generation.allows(*kind, *intent)) {
                let intents = generation.intents_of(kind);
                let allowed: Vec<&str> = intents.iter().map(|intent| intent.as_str()).collect();
                self.push(
                    Diagnostic::error(
                        codes::INTENT_NOT_OF_KIND,
                        *span,
                        format!("`{id}` is a {} step, which cannot decide `{word}`", kind.as_str()),
                    )
                    .hint(format!("such steps decide {}", quote_names(&allowed))),
                );
            }
        }
        self.check_led_on(gate);
        if gate.intents.is_empty() && !gate.misread {
            self.push(
                Diagnostic::error(codes::INVALID_VALUE, gate.span, format!("`{id}` allows no intent"))
                    .hint("name in `allowedIntents` what the step may decide"),
            );
        }
        // An agent may always abort, and so may a fallback intent.
        let allowed = |intent: &Intent| {
            *intent == Intent::Abort || gate.misread || gate.intents.iter().any(|(known, _)| known == intent)
        };
        // A transition on an intent that is not allowed is reported at the transition.
        let is_said = |intent: &Intent| allowed(intent) || self.transition(*intent).is_some();
        if let Some((intent, span)) = gate.fallback.filter(|(intent, _)| !is_said(intent)) {
            let message = format!("`fallbackIntent` is `{}`, which `{id}` does not allow", intent.as_str());
            self.push(
                Diagnostic::error(codes::INVALID_VALUE, span, message)
                    .hint("name one of its `allowedIntents`, or `abort`"),
            );
        }
    }

    /// Every intent needs a target. Intents that have none because all transitions are missing are reported once.
    fn check_led_on(&self, gate: &GateDefinition<'_>) {
        let Some(transitions) = self.step.transitions.as_ref().filter(|_| !self.step.transitions_misread)
        else {
            return;
        };
        let leads_nowhere = |(intent, _): &&(Intent, Span)| {
            !matches!(intent, Intent::Jump | Intent::Abort) && self.transition(*intent).is_none()
        };
        let lost: Vec<&(Intent, Span)> = gate.intents.iter().filter(leads_nowhere).collect();
        let together = if transitions.is_empty() { lost.len().max(1) } else { 1 };
        for lost in lost.chunks(together) {
            let words: Vec<&str> = lost.iter().map(|(intent, _)| intent.as_str()).collect();
            let (that, which) = if words.len() == 1 { ("that leads", "it") } else { ("those lead", "them") };
            let message = format!(
                "`{}` allows {}, but no transition says where {that}",
                self.step.id,
                quote_names(&words)
            );
            let hint = format!(
                "add `transitions.{}`, or take {which} out of `allowedIntents`",
                words.join("`, `transitions.")
            );
            let finding = Diagnostic::error(codes::MISSING_TRANSITION, lost[0].1, message);
            self.push(finding.hint(hint));
        }
    }

    fn check_transition(&self, transition: &Transition<'_>) {
        let word = transition.intent.as_str();
        let allowed = self.step.gate.as_ref().is_none_or(|gate| {
            transition.intent == Intent::Abort
                || gate.misread
                // A gate that allows no intent has been reported.
                || gate.intents.is_empty()
                || gate.intents.iter().any(|(intent, _)| *intent == transition.intent)
        });
        if !allowed {
            self.push(
                Diagnostic::error(
                    codes::UNREACHABLE_TRANSITION,
                    transition.span,
                    format!("`{}` has a transition for `{word}`, which it does not allow", self.step.id),
                )
                .hint(format!("add `{word}` to `allowedIntents`, or remove the transition")),
            );
        }
        for target in transition.rule.targets() {
            self.check_direction(transition.intent, target);
        }
    }

    /// Checks the kinds of the targets of an intent (14.4.1; where it leaves cases open, they are decided here). The
    /// check of the whole flow reports missing steps.
    pub(crate) fn check_direction(&self, intent: Intent, target: Text<'_>) {
        let Some(to) = self.world.step(target.text).and_then(|step| step.kind) else { return };
        if self.step.generation == Generation::Complete {
            return self.check_complete_direction(intent, target, to);
        }
        let (from, word, name) = (self.step.id, intent.as_str(), target.text);
        let is_self = target.text == self.step.id;
        let refuse = |why: &str, hint: &str| {
            let message = format!("`{word}` of `{from}` leads to `{name}`, a {} step{why}", to.as_str());
            self.push(Diagnostic::error(codes::WRONG_DIRECTION, target.span, message).hint(hint.to_owned()));
        };
        match (intent, to) {
            (Intent::Next | Intent::Jump, StepKind::Closure) => {
                refuse("", "a closure step is entered by `handoff` from a work step");
            }
            (Intent::Repeat, StepKind::Closure)
                if self.step.kind.is_some_and(|kind| kind != StepKind::Closure) =>
            {
                refuse("", "`repeat` leads back to work; a closure step is entered by `handoff`");
            }
            (Intent::Escalate, StepKind::Closure) => {
                refuse("", "`escalate` leads to a work or verification step")
            }
            (Intent::Handoff, StepKind::Verification) => {
                refuse("", "`handoff` leads to a closure step or to the entry of another flow");
            }
            (Intent::Handoff, StepKind::Work)
                if !self.world.entries.contains(&target.text) && !self.decides_beyond(target, to) =>
            {
                let message =
                    format!("`handoff` of `{from}` leads to `{name}`, a work step that is no flow's entry");
                self.push(
                    Diagnostic::warning(codes::WRONG_DIRECTION, target.span, message)
                        .hint("use `next` between work steps, or lead it to a closure step"),
                );
            }
            (Intent::Next, _) if is_self => {
                let message = format!("`next` of `{from}` leads to itself");
                self.push(
                    Diagnostic::warning(codes::SELF_NEXT, target.span, message)
                        .hint("use `repeat` for another round of the same step"),
                );
            }
            _ => {}
        }
    }

    /// Whether a step allows an intent that its kind excludes, which is reported: its kind may be the error.
    fn decides_beyond(&self, name: Text<'_>, kind: StepKind) -> bool {
        let gate = self.world.step(name.text).and_then(|step| step.gate.as_ref());
        gate.is_some_and(|gate| {
            gate.intents.iter().any(|(intent, _)| !self.step.generation.allows(kind, *intent))
        })
    }

    /// The same check for the "complete" generation: `complete` leads to `complete.*` steps, and no other intent does.
    fn check_complete_direction(&self, intent: Intent, target: Text<'_>, to: StepKind) {
        let (from, word, name) = (self.step.id, intent.as_str(), target.text);
        match (intent, to) {
            // In a step that completes the run, `complete` has no target; a target is reported there.
            (Intent::Complete, _) if self.step.kind == Some(StepKind::Closure) => {}
            (Intent::Complete, StepKind::Work | StepKind::Verification) => {
                let message =
                    format!("`complete` of `{from}` leads to `{name}`, which is no `complete.*` step");
                self.push(
                    Diagnostic::error(codes::WRONG_DIRECTION, target.span, message)
                        .hint("lead it to a `complete.*` step of `steps` or `completionSteps`; use `next` for other steps"),
                );
            }
            (Intent::Next | Intent::Jump | Intent::Repeat, StepKind::Closure)
                if self.step.kind != Some(StepKind::Closure) || target.text != self.step.id =>
            {
                let message =
                    format!("`{word}` of `{from}` leads to `{name}`, a step that completes the run");
                self.push(
                    Diagnostic::error(codes::WRONG_DIRECTION, target.span, message)
                        .hint("`complete` leads to `complete.*` steps; other intents lead to other steps"),
                );
            }
            _ => {}
        }
    }

    fn edge(&self, transition: &Transition<'_>) -> Option<Edge<Name>> {
        let Transition { intent, span, rule } = transition;
        let ending = match intent {
            Intent::Closing => Some(Ending::Completed),
            Intent::Complete if self.step.kind == Some(StepKind::Closure) => Some(Ending::Completed),
            Intent::Abort => Some(Ending::Aborted),
            _ => None,
        };
        if let Some(ending) = ending {
            self.check_end(*intent, rule);
            return Some(Edge::new(outcome_of_intent(*intent), Target::End(ending), *span));
        }
        if *intent == Intent::Jump {
            let gate = self.step.gate.as_ref()?;
            return lower_jump(self, gate, Some(transition));
        }
        let to = match rule {
            TransitionTarget::Step(target) => Target::Step(Name::new(target.text, target.span)),
            TransitionTarget::Choose { condition, cases, default } => {
                lower_select(self, condition.as_ref()?, cases, default.as_ref())
            }
            TransitionTarget::End(null) => {
                self.null_target(*intent, *null);
                return None;
            }
            TransitionTarget::Faulty => return None,
        };
        Some(Edge {
            hands_off: *intent == self.step.generation.entering(),
            ..Edge::new(outcome_of_intent(*intent), to, *span)
        })
    }

    fn check_end(&self, intent: Intent, rule: &TransitionTarget<'_>) {
        // The "Step Flow Design" draws the end as an edge from a `complete.*` step to itself.
        let own = |target: &&Text<'_>| intent == Intent::Complete && target.text == self.step.id;
        let targets = rule.targets();
        if let Some(target) = targets.iter().find(|target| !own(target)) {
            let word = intent.as_str();
            if self.step.generation == Generation::Complete && intent == Intent::Abort {
                let message = format!("`abort` ends the run, so `{}` is never reached", target.text);
                self.push(
                    Diagnostic::warning(codes::UNUSED_KEY, target.span, message)
                        .hint("write `\"target\": null`, or use `next` to go there"),
                );
                return;
            }
            let message = format!("`{word}` ends the run, so it cannot lead to `{}`", target.text);
            self.push(
                Diagnostic::error(codes::WRONG_DIRECTION, target.span, message)
                    .hint("write `\"target\": null`"),
            );
        }
    }

    pub(crate) fn null_target(&self, intent: Intent, span: Span) {
        let message = format!("`{}` of `{}` leads nowhere", intent.as_str(), self.step.id);
        self.push(Diagnostic::error(codes::MISSING_TRANSITION, span, message).hint(format!(
            "lead it to a step: only `{}` of {} ends the flow",
            self.step.generation.ending().as_str(),
            self.step.generation.closure_step()
        )));
    }
}
