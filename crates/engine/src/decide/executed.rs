//! A validator ran.

use cuegate_flow::model::{Act, Outcome};

use super::{
    Decider,
    exit_step::{self, StepResult},
    member_gate,
};
use crate::{
    answers::extractors::apply_extractor,
    command::CommandId,
    completion::{ExecResult, TreeChange},
    event::Event,
    prompt::Failure,
    run::Work,
};

pub(super) fn receive_command_result(
    decider: &mut Decider<'_>,
    id: CommandId,
    exec: &ExecResult,
    seen: Option<TreeChange>,
) {
    let Some(step) = decider.here() else { return };
    let index = match decider.run.progress.node.as_ref().map(|node| &node.work) {
        Some(Work::Running { seq, index }) if id == (CommandId::Step { seq: *seq }) => *index,
        Some(Work::Joining(_)) => return member_gate::receive_member_command_result(decider, id, exec, seen),
        _ => return,
    };
    let Act::Exec { commands } = &step.act else { return };
    let Some(validator) = commands.get(index as usize) else { return };
    let passed = validator.success.holds(exec.exit.code(), &exec.stdout, &exec.stderr);
    let (stdout, stderr) = (decider.keep(&exec.stdout), decider.keep(&exec.stderr));
    decider.emit(Event::CommandFinished {
        step: step.name.clone(),
        index,
        member: None,
        validator: validator.name.clone(),
        command: validator.command.clone(),
        passed,
        ended: exec.exit.describe(validator.timeout_ms),
        stdout,
        stderr,
        duration_ms: exec.duration_ms,
        // What commands between steps leave is nobody's.
        changed_files: Vec::new(),
        tree: seen.map(|seen| seen.tree),
    });
    if let Some(next) = commands.get(index as usize + 1).filter(|_| passed) {
        let (step, index, command) = (step.name.clone(), index + 1, next.command.clone());
        decider.emit(Event::CommandRequested { step, index, command, member: None, claim: None });
        return;
    }
    let outcome = if passed { Outcome::Pass } else { Outcome::Fail(index) };
    let failure: Failure = validator
        .extract
        .iter()
        .map(|(name, extractor)| (name.clone(), apply_extractor(*extractor, exec)))
        .collect();
    let failure = (!passed).then_some((&*validator.name, &failure));
    let reason = (!passed)
        .then(|| format!("`{}` failed: {}", validator.name, exec.exit.describe(validator.timeout_ms)));
    match exit_step::find_transition(decider, step, outcome, None, &Default::default()) {
        Ok(way) => {
            exit_step::take_transition(decider, step, &way, StepResult { reason, fallback: false, failure })
        }
        Err(bad) => decider.fail(bad.why),
    }
}
