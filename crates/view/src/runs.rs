//! The list of runs, as `cuegate/runs/v1` and as a table.

use cuegate_engine::WaitKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    format::{format_money, format_rfc3339, format_time_ago, parse_rfc3339},
    review::PullRequest,
    summary::{RunState, RunView, round_cost, waits_for},
    text::{Alignment, align_table, clean_to_one_line, shorten_end},
};

/// A run in a list, as `cuegate/runs/v1` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub run: String,
    /// The name of the workflow.
    pub flow: String,
    pub task: Option<String>,
    /// Its state in one word.
    pub state: String,
    /// Its state as text.
    pub standing: String,
    /// `false` if its process has died while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// What a suspended run waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// The run of which it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<String>,
    /// The run whose work it continues in the same worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// The address of the pull request that proposes its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    /// The branch of a run in a worktree of its own.
    pub branch: Option<String>,
    /// As RFC 3339.
    pub started_at: Option<String>,
    /// As RFC 3339.
    pub ended_at: Option<String>,
    /// The number of ended visits.
    pub steps: usize,
    /// The number of calls, without those at work.
    pub calls: u64,
    /// In US dollars, if it is known.
    pub cost_usd: Option<f64>,
}

impl RunRow {
    /// The row of a run.
    pub fn of(run: &RunView) -> RunRow {
        let waiting = match &run.state {
            RunState::Suspended(waiting) => Some(waits_for(waiting.kind).to_owned()),
            _ => run.awaited_retry().map(|_| waits_for(WaitKind::Quota).to_owned()),
        };
        RunRow {
            run: run.run.clone(),
            flow: run.flow.to_string(),
            task: run.subject(),
            state: run.state.as_str().to_owned(),
            standing: describe_run_state(run),
            live: run.died().then_some(false),
            waiting,
            fork_of: run.fork.as_ref().map(|fork| fork.run.clone()),
            follows: run.place.follows.clone(),
            pull_request: run.pull_request().map(|request| request.url),
            branch: run.place.branch.clone(),
            started_at: run.started_ms.map(format_rfc3339),
            ended_at: run.ended_ms.map(format_rfc3339),
            steps: run.ended_visits,
            calls: run.asks.total().max(run.unpriced) + run.unknown,
            cost_usd: run.usage.cost_usd.map(round_cost),
        }
    }

    /// What it is about: of which run it is a fork or a continuation, and its task.
    pub fn describe_subject(&self) -> String {
        let task = shorten_end(&clean_to_one_line(self.task.as_deref().unwrap_or_default()), 40);
        let lineage = match (&self.fork_of, &self.follows) {
            (Some(origin), _) => format!("fork of {origin}"),
            (None, Some(first)) => format!("continues {first}"),
            (None, None) => String::new(),
        };
        let request = self.pull_request.as_deref().and_then(PullRequest::parse);
        let request = request.map(|request| format!("pull request #{}", request.number)).unwrap_or_default();
        let parts: Vec<String> = [lineage, task].into_iter().filter(|part| !part.is_empty()).collect();
        match request.is_empty() {
            true => parts.join(": "),
            // Where there is no room, the task stays.
            false => format!("{} ({request})", parts.join(": ")).trim_start().to_owned(),
        }
    }

    fn started_ms(&self) -> Option<i64> {
        self.started_at.as_deref().and_then(parse_rfc3339)
    }
}

/// Sorts rows, the newest first.
pub fn sort_runs(rows: &mut [RunRow]) {
    rows.sort_by(|a, b| (&b.started_at, &b.run).cmp(&(&a.started_at, &a.run)));
}

/// The runs as a JSON object of `cuegate/runs/v1`; `damaged` are the runs that cannot be read, with the reason.
pub fn runs_json(rows: &[RunRow], damaged: &[(String, String)]) -> Value {
    let mut object = json!({ "schema": "cuegate/runs/v1", "runs": rows });
    if !damaged.is_empty() {
        object["damaged"] = damaged.iter().map(|(run, why)| json!({ "run": run, "why": why })).collect();
    }
    object
}

/// The runs as a table. `now_ms` is in milliseconds since 1970.
pub fn runs_table(runs: &[RunRow], now_ms: i64) -> String {
    if runs.is_empty() {
        return "no runs yet".to_owned();
    }
    let head = ["RUN", "WORKFLOW", "STATE", "STEPS", "COST", "STARTED", "TASK"].map(str::to_owned);
    let rows = runs.iter().map(|run| {
        vec![
            run.run.clone(),
            shorten_end(&run.flow, 24),
            run.standing.clone(),
            run.steps.to_string(),
            match (run.calls, run.cost_usd) {
                (0, None) => "–".to_owned(),
                (_, cost) => format_money(cost),
            },
            run.started_ms().map_or_else(|| "never".to_owned(), |started| format_time_ago(now_ms, started)),
            run.describe_subject(),
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

#[cfg(test)]
mod tests {
    use super::{RunRow, runs_json, runs_table, sort_runs};
    use crate::{
        summary::{Liveness, run_view},
        testing::{START_MS, Scene, piece, registry},
    };

    fn runs() -> Vec<RunRow> {
        let mut waiting = Scene::start(piece());
        waiting.says(serde_json::json!({"action": "unclear"}));
        let mut later = Scene::start(registry()).records;
        later[0].at_ms += 3_600_000;
        let views = [
            Scene::remedied().view(),
            run_view("20261121-130000-dead", &later, Liveness::Dead),
            run_view("20261121-120000-abcd", &waiting.records, Liveness::None),
        ];
        let mut rows: Vec<RunRow> = views.iter().map(RunRow::of).collect();
        sort_runs(&mut rows);
        rows
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
              "calls": 1,
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
              "calls": 7,
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
              "calls": 1,
              "cost_usd": 0.012
            }
          ]
        }
        "#);
    }
}
