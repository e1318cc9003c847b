//! What a person is told of a run first: what it is about, and whether it works, waits or is over.

use cuegate_engine::{EndState, FaultClass, WaitKind};

use super::{EffectRow, EffectState, FaultRow, Liveness, PendingCommand, RunState, RunView};

impl RunView {
    /// How long it has worked, in milliseconds: from its start to its last record, without the time at rest.
    pub fn elapsed_ms(&self) -> u64 {
        self.measure_work(self.last_ms)
    }

    /// As [`elapsed_ms`](Self::elapsed_ms), up to now if a process drives it.
    pub fn elapsed_until(&self, now_ms: i64) -> u64 {
        let is_driven = self.state == RunState::Running && self.live == Liveness::Alive;
        self.measure_work(if is_driven { Some(now_ms) } else { self.last_ms })
    }

    fn measure_work(&self, end_ms: Option<i64>) -> u64 {
        let (Some(started), Some(end)) = (self.started_ms, end_ms) else { return 0 };
        let end = self.rests_since_ms.unwrap_or(end).min(end);
        u64::try_from(end.saturating_sub(started)).unwrap_or(0).saturating_sub(self.rested_ms)
    }

    /// The failed call that a running run is going to repeat, and when; `None` if it waits for nothing.
    pub fn awaited_retry(&self) -> Option<(&FaultRow, i64)> {
        if self.state != RunState::Running || self.live != Liveness::Alive {
            return None;
        }
        let until = self.pending.iter().filter_map(|pending| match pending {
            PendingCommand::Ask { not_before_ms, .. } => *not_before_ms,
            _ => None,
        });
        let until = until.max().filter(|until| self.seen_ms.is_some_and(|seen| *until > seen))?;
        let is_outage = |row: &&FaultRow| {
            matches!(row.class, FaultClass::RateLimited | FaultClass::Overloaded | FaultClass::Network)
        };
        Some((self.faults.last().filter(is_outage)?, until))
    }

    /// The effect that a running run is going to try again, and when; `None` if it waits for none.
    pub fn awaited_effect(&self) -> Option<(&EffectRow, i64)> {
        let next = self.acts.effects.iter().find(|row| row.state == EffectState::Pending)?;
        let until = next.until_ms.filter(|until| self.seen_ms.is_some_and(|seen| *until > seen))?;
        Some((next, until))
    }

    /// By what a person knows it: its issue, else its task.
    pub fn subject(&self) -> Option<String> {
        match &self.issue {
            Some((number, title)) => Some(format!("#{number} {title}")),
            None => self.task.clone(),
        }
    }

    /// The state as text.
    pub fn standing(&self) -> String {
        match (&self.state, self.live) {
            (RunState::Running, Liveness::Dead) => "running, but its process died".to_owned(),
            (RunState::Running, Liveness::None) => "running, but no process drives it".to_owned(),
            (RunState::Running, Liveness::Alive) if self.awaited_retry().is_some() => {
                match self.awaited_retry().map(|(row, _)| row.class) {
                    Some(FaultClass::RateLimited) => "rate limited".to_owned(),
                    Some(FaultClass::Overloaded) => "agent overloaded".to_owned(),
                    _ => "no connection".to_owned(),
                }
            }
            (RunState::Running, Liveness::Alive) if self.awaited_effect().is_some() => {
                "waiting for GitHub".to_owned()
            }
            (RunState::Suspended(waiting), _) => match waiting.kind {
                WaitKind::Person if self.is_answered => "answered, not resumed yet".to_owned(),
                WaitKind::Person => "asks you".to_owned(),
                WaitKind::Quota => "rate limited".to_owned(),
                WaitKind::Environment => "needs fixing".to_owned(),
                WaitKind::Interrupted => "interrupted".to_owned(),
            },
            (RunState::Ended(EndState::Exhausted), _) => "stopped at a limit".to_owned(),
            (state, _) => state.as_str().to_owned(),
        }
    }
}
