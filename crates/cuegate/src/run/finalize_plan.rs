//! What is done with the work of a run that completed in a worktree of its own.

use cuegate_engine::FinalizePlan;

use super::start_run::RunRequest;
use crate::definition::CompiledDefinition;

/// What is done with the work of a run in a worktree of its own: what the definition and the flags say.
pub(crate) fn finalize_of(definition: &CompiledDefinition, wishes: &RunRequest) -> FinalizePlan {
    let settings = &definition.settings.worktree;
    let rule = Some(&settings.finalize).filter(|_| settings.enabled);
    let wanted = &wishes.finalize;
    let pull_request = wanted.pull_request || rule.is_some_and(|rule| rule.pull_request) && !wanted.merge;
    let push = wanted.push.clone().or_else(|| rule?.push.clone());
    let finalize = FinalizePlan {
        merge: !pull_request && (wanted.merge || rule.is_some_and(|rule| rule.merge)),
        push: push.or_else(|| pull_request.then(|| "origin".to_owned())),
        pull_request,
        into: wanted.into.clone().or_else(|| rule?.into.clone()).filter(|_| pull_request),
        claim: None,
    };
    match finalize == FinalizePlan::default() {
        true => finalize,
        false => FinalizePlan { claim: wishes.claim.clone(), ..finalize },
    }
}
