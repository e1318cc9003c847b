//! What a display of a run at work needs of its fold: the present, and nothing of a long past.

use super::action_blocks::EffectState;
use super::fold::RunFold;
use super::view::RunView;

/// How many faults are known of a run whose past is forgotten.
const FAULTS_MAX: usize = 64;

impl RunFold {
    /// The state of the run, but for what is open or pending.
    pub(crate) fn view_so_far(&self) -> &RunView {
        &self.view
    }

    /// The attempt of the open visit.
    pub(crate) fn open_attempt(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.attempt)
    }

    /// Drops the rows of visits, for a reader that shows spans.
    pub fn forget_visits(&mut self) {
        self.view.rows.clear();
    }

    /// Drops what has ended, which a view of the present does not need: a long run has much of it.
    pub(crate) fn forget_ended(&mut self) {
        let view = &mut self.view;
        view.rows.clear();
        view.tools.clear();
        view.validators.clear();
        view.questions.retain(|question| question.answer.is_none());
        view.acts.effects.retain(|effect| effect.state != EffectState::Done);
        // How often the same fault came in a row is told.
        view.faults.drain(..view.faults.len().saturating_sub(FAULTS_MAX));
    }
}
