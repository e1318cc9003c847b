//! Where findings about prompts point to.

use crate::{Read, Source, Span, Step, StepId};

/// Where the prompt of a step reads something; where nobody says, the step itself. What belongs to a step, as its check,
/// reads where that step's prompts do.
pub(super) fn of(reads: &[Read], step: &Step<StepId>, source: &Source) -> Span {
    let owner = step.name.split_once('/').map(|(owner, _)| owner);
    let at = |name: &str| reads.iter().find(|read| *read.step == *name && read.source == *source);
    let known = at(&step.name).or_else(|| at(owner?));
    known.map_or(step.span, |read| read.span)
}
