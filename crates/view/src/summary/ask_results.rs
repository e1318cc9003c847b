//! What the results of asks change in the view.

use cuegate_engine::{AskKind, CommandId, Event, Usage};
use cuegate_flow::Str;

use super::fold::RunFold;
use super::open_rows::{add_usage_saturating, is_unpriced};
use super::view::FaultRow;

impl RunFold {
    pub(super) fn answered(&mut self, event: &Event) {
        let Event::Answered {
            ask,
            step,
            kind,
            usage,
            provider,
            model,
            session,
            changed_files,
            put,
            output,
            text,
            ..
        } = event
        else {
            return;
        };
        self.view.unpriced += u64::from(usage.cost_usd.is_none());
        self.view.ways.add(put.as_ref());
        let request = self.requests.remove(ask);
        add_usage_saturating(&mut self.view.usage, usage);
        self.view.asks.add(*kind);
        self.changed.extend(changed_files.iter().cloned());
        if model.is_some() && *provider == self.view.provider {
            self.view.model = model.clone();
        }
        let Some(track) = self.track(request.and_then(|request| request.member)) else { return };
        track.asks += 1;
        add_usage_saturating(&mut track.usage, usage);
        track.changed.extend(changed_files.iter().cloned());
        // Judges and checks have their own sessions, and a report is asked for in a fork of the step's session.
        if track.step == *step && *kind != AskKind::Report {
            let answer = output.as_ref().or(text.as_ref());
            track.answer = answer.map(|answer| answer.digest.clone());
            track.session = session.as_deref().map(Str::from).or(track.session.take());
            track.agent = Some(provider.as_str().into());
            track.model = model.as_deref().map(Str::from).or(track.model.take());
        }
    }

    /// Counts the usage observed before the ask was cut off: a lower bound.
    pub(super) fn cut(&mut self, ask: CommandId, usage: &Usage, usage_unknown: bool) {
        let request = self.requests.remove(&ask);
        add_usage_saturating(&mut self.view.usage, usage);
        self.view.cut += 1;
        self.view.unknown += u64::from(usage_unknown || is_unpriced(usage));
        if let Some(track) = self.track(request.and_then(|request| request.member)) {
            add_usage_saturating(&mut track.usage, usage);
        }
    }

    pub(super) fn faulted(&mut self, at_ms: i64, event: &Event) {
        let Event::Faulted { ask, step, class, message, agent, usage, usage_unknown, changed_files, .. } =
            event
        else {
            return;
        };
        let request = self.requests.remove(ask);
        add_usage_saturating(&mut self.view.usage, usage);
        self.view.unknown += u64::from(*usage_unknown || is_unpriced(usage));
        self.changed.extend(changed_files.iter().cloned());
        let track = self.track(request.and_then(|request| request.member));
        let visit = track.as_ref().map_or(1, |track| track.visit);
        if let Some(track) = track {
            add_usage_saturating(&mut track.usage, usage);
            track.changed.extend(changed_files.iter().cloned());
        }
        self.view.faults.push(FaultRow {
            step: step.clone(),
            visit,
            class: *class,
            agent: agent.as_ref().map_or_else(|| self.view.provider.clone(), |choice| choice.agent.clone()),
            message: message.clone(),
            at_ms,
        });
    }
}
