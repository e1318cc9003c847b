//! Invariants of the fold, tested on random runs.

use crate::summary::{Liveness, PendingCommand, RunFold, RunView};
use crate::testing::{Scene, piece, registry};

/// Incremental and complete folds agree with each other and with the engine after any completion.
#[test]
fn random_runs_keep_the_invariants() {
    for seed in 0..60 {
        let flow = if seed % 2 == 0 { registry() } else { piece() };
        let mut scene = Scene::start(flow);
        let mut fold = RunFold::new("r1");
        fold.apply(&scene.records[0]);
        let mut dice = seed * 7_919 + 1;
        for _ in 0..40 {
            let before = scene.records.len();
            scene.wander(&mut dice);
            scene.records[before..].iter().for_each(|record| fold.apply(record));
            let view = fold.view(Liveness::Alive);
            assert_eq!(view, scene.view(), "seed {seed}");
            assert_agrees(&scene, &view);
        }
    }
}

fn assert_agrees(scene: &Scene, view: &RunView) {
    use cuegate_engine::{Command, State};
    let run = &scene.run;
    assert_eq!(
        (view.usage, view.iterations, view.records),
        (run.spending.usage, run.progress.iterations, run.seq)
    );
    let state = match &run.state {
        State::New | State::Running => "running",
        State::Suspended(_) => "suspended",
        State::Ended { .. } => view.state.as_str(),
    };
    assert_eq!(view.state.as_str(), state);
    assert_eq!(view.ended_ms.is_some(), matches!(run.state, State::Ended { .. }));
    let rows: u64 = view.rows.iter().map(|row| row.asks).sum();
    assert!(rows <= view.asks.total());
    if view.ended_ms.is_some() {
        assert_eq!(rows, view.asks.total(), "every ask has a row: {:#?}", view.rows);
    }
    let kinds: Vec<_> = cuegate_engine::list_pending_commands(&scene.flow, run)
        .iter()
        .map(|command| match command {
            Command::Ask(ask) => Some(ask.kind),
            Command::Exec(_) | Command::Probe(_) | Command::Effect(_) | Command::Read(_) => None,
        })
        .collect();
    let shown: Vec<_> = view
        .pending
        .iter()
        .map(|pending| match pending {
            PendingCommand::Ask { kind, .. } => Some(*kind),
            PendingCommand::Command { .. } | PendingCommand::Look { .. } | PendingCommand::Effect { .. } => {
                None
            }
        })
        .collect();
    assert_eq!(shown, kinds);
    for line in crate::log_text::render_timeline(&scene.records, &crate::TimeZone::UTC) {
        assert!(!line.contains('\n') && crate::text::count_columns(&line) <= 120, "{line}");
    }
}
