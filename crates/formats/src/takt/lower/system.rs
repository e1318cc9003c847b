//! System steps, and the decisions after a label: steps that Cuegate does itself.

use cuegate_flow::{
    Str,
    diagnostics::{Diagnostic, Span},
    model::{
        Act, Ask, Boundary, Case, Draft, Edge, FieldPath, Gate, Handoff, Name, Operand, Outcome, Permission,
        Piece, Predicate, ReadKind, Role, Schema, SchemaId, SessionRule, Source, Step, SystemEffect,
        SystemWork, Target, Template, Tools,
    },
};
use serde_json::json;

use super::{WorkflowLowering, build_empty_step, judge};
use crate::codes;
use crate::takt::read::{EffectSettings, SystemSettings, WorkflowStep};
use crate::takt::routing::decisions::{Decision, expression_of};
use crate::takt::routing::expression::{Expression, Reference, Term};
use crate::takt::routing::rules::{Rule, outcome_of_rule};
use crate::takt::texts::prompt_texts;

/// The outcome of a step that did its work.
const DONE: &str = "done";
/// The outcomes of an attempt to merge.
const MERGED: &str = "merged";
const CONFLICTS: &str = "conflicts";

impl WorkflowLowering<'_, '_, '_> {
    /// Lowers a system step.
    pub(super) fn system(
        &self,
        step: &WorkflowStep<'_>,
        settings: &SystemSettings,
        draft: &mut Draft,
    ) -> Step<Name> {
        let name: Str = step.name.text.into();
        for read in &settings.reads {
            if matches!(read.what, ReadKind::NextPullRequest(_) | ReadKind::NextIssue) {
                // The next selection begins after it.
                self.values().hand_on(&name, &format!("context.{}.number", read.name).into());
            }
        }
        let effects: Vec<SystemEffect> =
            settings.effects.iter().map(|effect| self.effect(effect, &name)).collect();
        let resolving = settings.effects.iter().find(|effect| effect.asks_agent);
        let work = SystemWork { delay_ms: step.delay_ms, reads: settings.reads.clone(), effects };
        let lowered = Step { act: Act::System(work), boundary: no_changes(), ..build_empty_step(step) };
        let Some(resolving) = resolving else {
            let gate = Gate::Cases(self.cases(step, &step.rules, &name));
            return Step { gate, edges: self.edges(&name, &step.rules, draft), ..lowered };
        };
        self.add_resolution(step, resolving, &lowered, draft)
    }

    /// What is known of values.
    fn values(&self) -> &crate::takt::texts::step_values::StepValues {
        &self.prompts.compiler.values
    }

    fn effect(&self, effect: &EffectSettings, step: &str) -> SystemEffect {
        let value = |(name, text): &(Str, crate::takt::read::FacetText)| {
            (name.clone(), Template { pieces: self.compile(text, step) })
        };
        let mut values: Vec<(Str, Template)> = effect.values.iter().map(value).collect();
        let has = |name: &str| effect.values.iter().find(|(known, _)| **known == *name);
        // A planned task has a title beside its text.
        if let (Some((_, task)), None) = (has("task"), has("title"))
            && let Some(title) = self.values().title_of_task(&task.text, &task.context.prefixes)
        {
            values.push(("title".into(), Template { pieces: vec![Piece::Value(title)] }));
        }
        SystemEffect { name: effect.name.into(), what: effect.what, values }
    }

    /// An effect whose conflicts an agent settles: the merge is tried, the agent gets the files with conflicts and gives back
    /// their texts, and the merge is tried once more with these. The rules of the step are decided after either attempt.
    fn add_resolution(
        &self,
        step: &WorkflowStep<'_>,
        effect: &EffectSettings,
        lowered: &Step<Name>,
        draft: &mut Draft,
    ) -> Step<Name> {
        let name: Str = step.name.text.into();
        let [asks, pushes] = ["resolve", "push"].map(|what| Str::from(format!("{name}@{what}")));
        let target = |name: &Str| Target::Step(Name::new(name, step.name.span));
        let (key, files): (Str, Str) = (format!("effect.{}.conflicts", effect.name).into(), "files".into());
        self.values().hand_on(&name, &key);
        let value = |step: &Str, key: &str| Operand::Handoff { step: step.clone(), key: key.into() };
        let conflicted = value(&name, &format!("effect.{}.conflicted", effect.name));
        self.values().hand_on(&name, &format!("effect.{}.conflicted", effect.name).into());
        let after = |of: &Str, number: usize, draft: &mut Draft| {
            let name = format!("{}@rules-{number}", step.name.text);
            self.add_decision_of(&name, step, &step.rules, of, draft);
            Str::from(name)
        };
        let (tried, pushed) = (after(&name, 1, draft), after(&pushes, 2, draft));
        let mut prompt = Template::text(prompt_texts::RESOLVE_CONFLICTS);
        prompt.pieces.push(Piece::Value(Source::Handoff { step: name.clone(), key }));
        let schema = json!({
            "type": "object", "required": ["files"], "additionalProperties": false,
            "properties": {"files": {"type": "array", "items": {
                "type": "object", "required": ["path", "content"], "additionalProperties": false,
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            }}},
        });
        draft.schemas.push(Schema::new(schema).expect("a plain schema"));
        let ask = Ask {
            role: Role::Work,
            session: SessionRule::Fresh,
            ..judge::judge_ask(prompt, SchemaId(draft.schemas.len() as u32 - 1))
        };
        let on = |word: &str| Outcome::Named(word.into());
        let span = step.name.span;
        draft.steps.push(Step {
            name: asks.clone(),
            title: asks.clone(),
            counts: false,
            act: Act::Ask(ask),
            gate: Gate::Always(on(DONE)),
            handoff: vec![Handoff::new(&files, FieldPath::field(&files), span)],
            edges: vec![Edge::new(on(DONE), target(&pushes), span)],
            ..lowered.clone()
        });
        let mut again = self.effect(effect, &name);
        let resolved = Source::Handoff { step: asks.clone(), key: files.clone() };
        again.values.push((files, Template { pieces: vec![Piece::Value(resolved)] }));
        draft.steps.push(Step {
            name: pushes.clone(),
            title: pushes.clone(),
            counts: false,
            act: Act::System(SystemWork { effects: vec![again], ..SystemWork::default() }),
            gate: Gate::Always(on(DONE)),
            edges: vec![Edge::new(on(DONE), target(&pushed), span)],
            ..lowered.clone()
        });
        let cases = vec![
            Case { when: Predicate::IsTrue(conflicted), outcome: on(CONFLICTS) },
            Case { when: Predicate::Always, outcome: on(MERGED) },
        ];
        Step {
            gate: Gate::Cases(cases),
            edges: vec![
                Edge::new(on(CONFLICTS), target(&asks), span),
                Edge::new(on(MERGED), target(&tried), span),
            ],
            ..lowered.clone()
        }
    }

    /// Adds the decisions of a step with an agent or members, and returns their names.
    pub(super) fn add_decisions(&self, step: &WorkflowStep<'_>, draft: &mut Draft) {
        for (index, Decision { rules }) in step.decisions.iter().enumerate() {
            self.add_decision_of(
                &name_of_decision(step.name.text, index),
                step,
                rules,
                step.name.text,
                draft,
            );
        }
    }

    /// Adds a step that decides by these rules. Where they are about the step itself, the values of `own` are meant.
    fn add_decision_of(
        &self,
        name: &str,
        step: &WorkflowStep<'_>,
        rules: &[Rule<'_>],
        own: &str,
        draft: &mut Draft,
    ) {
        let gate = Gate::Cases(self.cases(step, rules, own));
        let edges = self.edges(name, rules, draft);
        draft.steps.push(Step {
            name: name.into(),
            title: name.into(),
            counts: false,
            act: Act::System(SystemWork::default()),
            gate,
            boundary: no_changes(),
            edges,
            when: None,
            ..build_empty_step(step)
        });
    }

    fn cases(&self, step: &WorkflowStep<'_>, rules: &[Rule<'_>], own: &str) -> Vec<Case> {
        let eligible = rules.iter().filter(|rule| !rule.hidden);
        let case = |rule: &Rule<'_>| {
            let when = match expression_of(rule) {
                Some(expression) => self.predicate(&expression, step, own, rule.condition.span)?,
                None => Predicate::Always,
            };
            Some(Case { when, outcome: outcome_of_rule(rule) })
        };
        eligible.filter_map(case).collect()
    }

    fn predicate(
        &self,
        expression: &Expression,
        step: &WorkflowStep<'_>,
        own: &str,
        span: Span,
    ) -> Option<Predicate> {
        let all = |parts: &[Expression]| -> Option<Vec<Predicate>> {
            parts.iter().map(|part| self.predicate(part, step, own, span)).collect()
        };
        let operand = |reference: &Reference| self.operand(reference, step, own, span);
        let term = |term: &Term| match term {
            Term::Literal(value) => Some(Operand::Literal(value.clone())),
            Term::Reference(reference) => operand(reference),
        };
        Some(match expression {
            Expression::Always => Predicate::Always,
            Expression::Not(inner) => Predicate::Not(Box::new(self.predicate(inner, step, own, span)?)),
            Expression::All(parts) => Predicate::All(all(parts)?),
            Expression::Any(parts) => Predicate::Any(all(parts)?),
            Expression::Exists(reference) => Predicate::Exists(operand(reference)?),
            Expression::IsTrue(reference) => Predicate::IsTrue(operand(reference)?),
            Expression::Compare { left, how, right } => {
                Predicate::Compare { left: term(left)?, how: *how, right: term(right)? }
            }
        })
    }

    fn operand(
        &self,
        reference: &Reference,
        step: &WorkflowStep<'_>,
        own: &str,
        span: Span,
    ) -> Option<Operand> {
        match self.values().find(reference, &step.prefixes) {
            Ok((of, key)) => {
                let of = if *of == *step.name.text { own.into() } else { of };
                self.values().hand_on(&of, &key);
                Some(Operand::Handoff { step: of, key })
            }
            Err(unknown) => {
                let Reference { scope, step: named, field } = reference;
                let message =
                    format!("`{}.{named}.{field}` does not exist: {}", scope.as_str(), unknown.message);
                let finding = Diagnostic::error(codes::INVALID_CONDITION, span, message);
                self.found.push(finding.step(step.name.text).hint(unknown.hint));
                None
            }
        }
    }
}

/// The name of the step that decides between rules.
pub(super) fn name_of_decision(step: &str, index: usize) -> String {
    match index {
        0 => format!("{step}@rules"),
        _ => format!("{step}@rules-{}", index + 1),
    }
}

/// The boundary of a step without an agent.
fn no_changes() -> Boundary {
    Boundary { permission: Permission::Plan, tools: Tools::All }
}
