//! The list of runs, as `cuegate/runs/v1` and as a table.

use serde_json::{Map, Value, json};

use crate::{
    format::{format_money, format_rfc3339, format_time_ago},
    summary::{RunState, RunView, json_of_cost, waits_for},
    text::{Alignment, align_table, clean_to_one_line, shorten_end},
};

/// The runs as a JSON object of `cuegate/runs/v1`, newest first; `damaged` are the runs that cannot be read, with the
/// reason.
pub fn runs_json(runs: &[RunView], damaged: &[(String, String)]) -> Value {
    runs_object(newest_first(runs).into_iter().map(run_row).collect(), damaged)
}

/// As [`runs_json`], of rows that [`run_row`] made.
pub fn runs_object(rows: Vec<Value>, damaged: &[(String, String)]) -> Value {
    let mut object = json!({ "schema": "cuegate/runs/v1", "runs": rows });
    if !damaged.is_empty() {
        object["damaged"] = damaged.iter().map(|(run, why)| json!({ "run": run, "why": why })).collect();
    }
    object
}

/// A run as `cuegate/runs/v1` has it.
pub fn run_row(run: &RunView) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("run", json!(run.run));
    put("flow", json!(run.flow));
    put("task", json!(run.task));
    put("state", json!(run.state.as_str()));
    put("standing", json!(describe_run_state(run)));
    if run.died() {
        put("live", json!(false));
    }
    if let RunState::Suspended(waiting) = &run.state {
        put("waiting", json!(waits_for(waiting.kind)));
    }
    put("branch", json!(run.place.branch));
    put("started_at", json!(run.started_ms.map(format_rfc3339)));
    put("ended_at", json!(run.ended_ms.map(format_rfc3339)));
    put("steps", json!(run.rows.len()));
    put("cost_usd", json_of_cost(run.usage.cost_usd));
    Value::Object(object)
}

/// The runs as a table, newest first. `now_ms` is in milliseconds since 1970.
pub fn runs_table(runs: &[RunView], now_ms: i64) -> String {
    if runs.is_empty() {
        return "no runs yet".to_owned();
    }
    let head = ["RUN", "WORKFLOW", "STATE", "STEPS", "COST", "STARTED", "TASK"].map(str::to_owned);
    let rows = newest_first(runs).into_iter().map(|run| {
        vec![
            run.run.clone(),
            shorten_end(&run.flow, 24),
            describe_run_state(run),
            run.rows.len().to_string(),
            match (run.asks.total() + run.unpriced + run.unknown, run.usage.cost_usd) {
                (0, None) => "–".to_owned(),
                (_, cost) => format_money(cost),
            },
            run.started_ms.map_or_else(|| "never".to_owned(), |started| format_time_ago(now_ms, started)),
            shorten_end(&clean_to_one_line(run.task.as_deref().unwrap_or_default()), 40),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    use Alignment::{Left, Right};
    align_table(&rows, &[Left, Left, Left, Right, Right, Left, Left]).join("\n")
}

fn describe_run_state(run: &RunView) -> String {
    match &run.state {
        RunState::Running if run.died() => "running (process died)".to_owned(),
        _ => run.standing(),
    }
}

fn newest_first(runs: &[RunView]) -> Vec<&RunView> {
    let mut runs: Vec<&RunView> = runs.iter().collect();
    runs.sort_by(|a, b| (b.started_ms, &b.run).cmp(&(a.started_ms, &a.run)));
    runs
}

#[cfg(test)]
mod tests {
    use super::{runs_json, runs_table};
    use crate::{
        summary::{Liveness, RunView, run_view},
        testing::{START_MS, Scene, piece, registry},
    };

    fn runs() -> Vec<RunView> {
        let mut waiting = Scene::start(piece());
        waiting.says(serde_json::json!({"action": "unclear"}));
        let mut later = Scene::start(registry()).records;
        later[0].at_ms += 3_600_000;
        vec![
            Scene::remedied().view(),
            run_view("20261121-130000-dead", &later, Liveness::Dead),
            run_view("20261121-120000-abcd", &waiting.records, Liveness::None),
        ]
    }

    #[test]
    fn table() {
        insta::assert_snapshot!(runs_table(&runs(), START_MS + 7_200_000), @"
        RUN                   WORKFLOW  STATE                   STEPS     COST  STARTED  TASK
        20261121-130000-dead  iterator  running (process died)      0  unknown  1 h ago
        r1                    iterator  completed                   5    $0.07  2 h ago
        20261121-120000-abcd  review    asks you                    0    $0.01  2 h ago
        ");
        assert_eq!(runs_table(&[], START_MS), "no runs yet");
    }

    #[test]
    fn json() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&runs_json(&runs(), &[])).unwrap(), @r#"
        {
          "schema": "cuegate/runs/v1",
          "runs": [
            {
              "run": "20261121-130000-dead",
              "flow": "iterator",
              "task": null,
              "state": "running",
              "standing": "running (process died)",
              "live": false,
              "branch": null,
              "started_at": "2026-11-21T13:00:00.000Z",
              "ended_at": null,
              "steps": 0,
              "cost_usd": null
            },
            {
              "run": "r1",
              "flow": "iterator",
              "task": null,
              "state": "completed",
              "standing": "completed",
              "branch": null,
              "started_at": "2026-11-21T12:00:00.000Z",
              "ended_at": "2026-11-21T12:00:07.850Z",
              "steps": 5,
              "cost_usd": 0.072
            },
            {
              "run": "20261121-120000-abcd",
              "flow": "review",
              "task": null,
              "state": "suspended",
              "standing": "asks you",
              "waiting": "person",
              "branch": null,
              "started_at": "2026-11-21T12:00:00.000Z",
              "ended_at": null,
              "steps": 0,
              "cost_usd": 0.012
            }
          ]
        }
        "#);
    }
}
