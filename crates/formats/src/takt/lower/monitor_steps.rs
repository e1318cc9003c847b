//! Lowers loop monitors to judge steps whose rules become edges.

use cuegate_flow::{
    diagnostics::Diagnostic,
    model::{Draft, LimitKey, LimitTarget, Monitor, Name, Target, Template},
};

use super::WorkflowLowering;
use super::judge;
use super::judge::MonitorJudge;
use crate::codes;
use crate::takt::read::FacetText;
use crate::takt::read::{MonitorDefinition, Stage};
use crate::takt::texts::prompt::PromptBuilder;
use crate::takt::texts::prompt_texts;
use crate::values::json::Text;

/// Lowers a monitor. A monitor whose cycle names an unknown step is reported and left out.
pub(in crate::takt) fn lower_monitor(
    lowering: &WorkflowLowering<'_, '_, '_>,
    monitor: &MonitorDefinition<'_>,
    draft: &mut Draft,
) {
    let name = monitor.name();
    let known = |step: Text<'_>| match lowering.entered(step, &format!("the cycle of `{name}`"))? {
        Target::Step(name) => Some(name),
        _ => {
            let message = format!("`{}` is an end, which no cycle can contain", step.text);
            let finding = Diagnostic::error(codes::MONITOR_NEVER_ACTS, step.span, message);
            lowering.found.push(finding.hint("name the steps of one round, in order"));
            None
        }
    };
    // Each unknown name is reported.
    let stage = |stage: &Stage<'_>| -> Option<Vec<Name>> {
        let steps: Vec<Option<Name>> = stage.steps().map(known).collect();
        steps.into_iter().collect()
    };
    let cycle: Vec<Option<Vec<Name>>> = monitor.cycle.iter().map(stage).collect();
    let ignored: Vec<Option<Vec<Name>>> = monitor.ignored.iter().map(stage).collect();
    let own = FacetText::built_in(prompt_texts::MONITOR);
    let instruction = lowering.compile(monitor.instruction.as_ref().unwrap_or(&own), &name);
    let mut page = PromptBuilder::default();
    page.text(prompt_texts::PLACE);
    let rounds: Vec<&str> = monitor.cycle.iter().map(|stage| stage.name.text).collect();
    page.text(&format!(
        "- Workflow: {}\n- You judge a loop: {}\n",
        lowering.prompts.workflow,
        rounds.join(" → ")
    ));
    page.text(prompt_texts::MAY_READ);
    page.text(prompt_texts::REPORT_DIR);
    page.pieces(vec![cuegate_flow::model::Piece::Value(cuegate_flow::model::Source::Fact(
        cuegate_flow::model::Fact::ReportDir,
    ))]);
    page.text("\n\n");
    lowering.prompts.write_instruction(&mut page, instruction, true);
    let persona = monitor.persona.as_ref();
    let body = persona.and_then(|persona| persona.body.as_ref());
    let judge = MonitorJudge {
        name: name.as_str().into(),
        alias: format!("_loop_judge_{}", rounds.join("_")).into(),
        span: monitor.span,
        system: body.map(|body| Template::text(&body.text)),
        persona: persona.and_then(|persona| persona.key.clone()),
        persona_names: body.and_then(|body| body.stem.clone()).into_iter().collect(),
        rules: &monitor.rules,
        schemas: &lowering.schemas,
    };
    let at = draft.steps.len();
    let mut step = judge::monitor_step(judge, page, draft);
    step.edges = lowering.edges(&name, &monitor.rules, draft);
    let Some(cycle) = cycle.into_iter().collect::<Option<Vec<_>>>() else { return };
    let Some(ignored) = ignored.into_iter().collect::<Option<Vec<_>>>() else { return };
    draft.steps.insert(at, step);
    let turn = LimitTarget::Monitor(draft.monitors.len() as u32);
    let span = monitor.threshold_span.unwrap_or(monitor.span);
    draft.keys.push(LimitKey::new("threshold", span, monitor.threshold, 1, turn));
    draft.monitors.push(Monitor {
        name: name.as_str().into(),
        cycle,
        ignored: ignored.concat(),
        threshold: monitor.threshold,
        judge: Name::new(&name, monitor.span),
        span: monitor.span,
    });
}
