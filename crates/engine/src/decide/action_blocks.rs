//! What holds for a whole run: how questions are answered, what is noted of answers, what is done about what they ask for.

use cuegate_flow::{
    Str,
    model::{Conduct, Gate, Step, StepId},
};
use serde_json::Value;

use super::{Decider, answered::AskScope, effects};
use crate::{
    answers::{
        action_blocks::{ActionBlock, find_all_action_blocks},
        gate,
        parsed_answer::ParsedAnswer,
        structured::json_in_text,
    },
    command::CommandId,
    completion_state::texts_of_answer,
    effect::{BLOCKS_MAX, EffectKind},
    event::Event,
    event_types::{AskRequest, PromptPart},
    run::FollowUpMessage,
};

/// Answers an agent's question as the definition says; false when a person has to.
pub(super) fn answers_question(decider: &mut Decider<'_>, scope: &AskScope<'_>, question: &str) -> bool {
    let (step, member) = (&scope.step.name, scope.member);
    let Some(response) = decider.flow.conduct.auto_response.clone() else { return false };
    if decider.run.context.questions >= Conduct::QUESTIONS_MAX {
        return false;
    }
    let question = decider.keep(question);
    let text = decider.keep(&response);
    decider.emit(Event::QuestionAnswered { step: step.clone(), member, question: question.clone(), text });
    let say = vec![PromptPart::Text(
        format!("The answer to your question:\n{response}\n\nGo on with your work.").into(),
    )];
    let follow = Some(FollowUpMessage { say, after: Some(question) });
    decider.request_ask(AskRequest { follow, ..scope.asking.again(step, member) });
    true
}

/// Notes how an answer compares with its schema.
pub(super) fn record_inspection(
    decider: &mut Decider<'_>,
    ask: CommandId,
    asked: &Step<StepId>,
    answer: &ParsedAnswer<'_>,
) {
    if !decider.flow.conduct.inspects {
        return;
    }
    if let Some(report) = gate::compare_with_schema(decider.flow, asked, answer) {
        let (found, problems) = (report.found, report.problems);
        decider.emit(Event::Inspected { ask, step: asked.name.clone(), found, problems });
    }
}

/// Notes what an answer that counts asks for.
pub(super) fn found_actions(
    decider: &mut Decider<'_>,
    step: &Str,
    member: Option<u16>,
    output: Option<&Value>,
    text: &str,
) {
    effects::narrow_closure(decider, step, output.cloned().or_else(|| json_in_text(text)).as_ref());
    let Some(wanted) = &decider.flow.conduct.actions else { return };
    let named: Vec<Str> =
        wanted.types.iter().flatten().chain(wanted.handlers.iter().map(|(name, _)| name)).cloned().collect();
    let mut found: Vec<ActionBlock> = Vec::new();
    // The answer itself asks for nothing, even where it names its outcome as a block names its action. The text of an answer
    // in which nothing is looked for is no such answer.
    let is_read = decider.step(step).is_none_or(|step| !matches!(step.gate, Gate::Always(_)));
    let said = output.cloned().or_else(|| json_in_text(text).filter(|_| is_read));
    for text in texts_of_answer(output, text) {
        let new: Vec<ActionBlock> = find_all_action_blocks(text, &wanted.marker, &named)
            .into_iter()
            .filter(|block| !found.contains(block) && said.as_ref() != Some(&block.value))
            .collect();
        found.extend(new);
    }
    for (index, ActionBlock { kind, value }) in (0..).zip(found.into_iter().take(BLOCKS_MAX)) {
        let allowed = wanted.types.as_ref().is_none_or(|types| types.contains(&kind));
        let handler = wanted.handler(&kind).map(|reaction| EffectKind::of(reaction, &value));
        let value = decider.keep(&value.to_string());
        decider.emit(Event::ActionFound {
            step: step.clone(),
            member,
            index,
            action: kind,
            value,
            handler,
            allowed,
        });
    }
}
