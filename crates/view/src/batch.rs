//! Batches: the queue as it was read, and what became of its tasks, as lines and as `cuegate/work/v1`.

use cuegate_engine::{
    Amounts, Batch, BatchEnd, EndState, Progress, QueueSource, RunStopped, SkipReason, SpentBudget, StopKind,
    Task,
};
use serde_json::{Value, json};

use crate::{
    budget::usd_of_micros,
    format::{format_count, format_money, format_rfc3339, format_time_ago, plural},
    review::PullRequest,
    summary::{RunState, RunView, json_of_cost},
    text::{Alignment, align_table, clean_to_one_line, shorten_end},
};

/// The columns of a title in a table.
const TITLE_COLUMNS: usize = 40;
/// The columns of the reason of a failed run.
const REASON_COLUMNS: usize = 80;
/// How many tasks of each kind a table shows.
const ROWS_MAX: usize = 30;

/// What a reviewer has to know of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewFacts {
    /// Whether a command passed on its work.
    pub is_proved: bool,
    /// How many files its agents changed.
    pub changed_files: usize,
    /// The pull request that proposes its work.
    pub pull_request: Option<PullRequest>,
    /// How many uses of tools and hosts were denied.
    pub denied: u64,
    /// Why it did not complete.
    pub reason: Option<String>,
    /// Whether a person marked it as reviewed.
    pub is_reviewed: bool,
}

impl ReviewFacts {
    /// The facts of a run.
    pub fn from_run(run: &RunView, is_reviewed: bool) -> ReviewFacts {
        ReviewFacts {
            is_proved: run.is_proved(),
            changed_files: run.agent_changes().len(),
            pull_request: run.pull_request(),
            denied: run.list_denied().iter().map(|(_, times)| times).sum(),
            reason: run.reason.clone().filter(|_| !matches!(run.state, RunState::Ended(EndState::Completed))),
            is_reviewed,
        }
    }

    /// `2 files, proved, reviewed`.
    fn describe(&self) -> String {
        let files = match self.changed_files {
            0 => "no file changed".to_owned(),
            files => plural(files as u64, "file"),
        };
        let proof = if self.is_proved { ", proved" } else { ", unproved" };
        let denied =
            if self.denied > 0 { format!(", {} denied", plural(self.denied, "use")) } else { String::new() };
        let reviewed = if self.is_reviewed { ", reviewed" } else { "" };
        format!("{files}{proof}{denied}{reviewed}")
    }
}

/// What is known of a task that was taken, with the present state of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    pub task: Task,
    pub run: Option<String>,
    /// The state: `completed`, `claimed by …`.
    pub state: String,
    /// How its run stopped; `None` if there is none, or if it goes on.
    pub stop: Option<StopKind>,
    /// The cost in US dollars, if it is known.
    pub cost_usd: Option<f64>,
    /// The command to type next.
    pub next: Option<String>,
    /// Whether its claim was given back.
    pub released: bool,
    /// What a reviewer has to know of its run.
    pub review: Option<ReviewFacts>,
}

impl TaskRow {
    /// The row of a task, with the present state of its run, its cost and the next command.
    pub fn new(
        taken: &cuegate_engine::TakenTask,
        is: Option<RunStopped>,
        cost_usd: Option<f64>,
        next: Option<String>,
    ) -> TaskRow {
        let (state, stop) = match (&taken.progress, is) {
            (Progress::Lost(by), _) => (format!("not taken: {by}"), None),
            (Progress::Claiming, _) => ("its claim is not settled".to_owned(), None),
            (Progress::Claimed, _) => ("claimed, not started".to_owned(), None),
            (_, Some(is)) => (is.state, Some(is.stop)),
            (Progress::Stopped(stopped), None) => (stopped.state.clone(), Some(stopped.stop)),
            (Progress::Running, None) => ("running".to_owned(), None),
        };
        TaskRow {
            task: taken.task.clone(),
            run: taken.run.clone(),
            state,
            stop,
            cost_usd,
            next,
            released: taken.released,
            review: None,
        }
    }

    /// Where it stands in the order of review: proved work before unproved work, that before failed work, and what is
    /// small before what is large. Reviewed work comes last.
    fn review_rank(&self) -> (bool, u8, usize) {
        let facts = self.review.clone().unwrap_or_default();
        let kind = match self.stop {
            // There is nothing to look at.
            Some(StopKind::Completed) if facts.changed_files == 0 => 5,
            Some(StopKind::Completed) if facts.is_proved => 0,
            Some(StopKind::Completed) => 1,
            Some(StopKind::Waiting) => 2,
            Some(StopKind::Failed | StopKind::NotStarted) => 3,
            Some(StopKind::Suspended) | None => 4,
        };
        (facts.is_reviewed, kind, facts.changed_files)
    }

    fn word(&self) -> &'static str {
        match self.stop {
            Some(StopKind::Completed) => "completed",
            Some(StopKind::Failed) => "failed",
            Some(StopKind::Suspended) => "suspended",
            Some(StopKind::Waiting) => "waiting",
            Some(StopKind::NotStarted) => "not_started",
            None if self.state.starts_with("not taken") => "lost",
            None if self.run.is_some() => "running",
            None if self.state.starts_with("its claim") => "claiming",
            None => "claimed",
        }
    }
}

/// The source of a queue: ``issues of owner/name with the label `agent` ``.
pub fn queue_source(source: &QueueSource) -> String {
    queue_of("issues", "tasks", source)
}

fn queue_of(issues: &str, tasks: &str, source: &QueueSource) -> String {
    match source {
        QueueSource::Issues { repository, label, .. } => {
            format!("{issues} of {repository} with the label `{label}`")
        }
        QueueSource::File { path } => format!("{tasks} of `{path}`"),
    }
}

/// The queue as it was read. Of the tasks that this batch has taken before only the number is shown.
pub fn queue_lines(batch: &Batch) -> Vec<String> {
    let (before, skipped): (Vec<_>, Vec<_>) =
        batch.skipped.iter().partition(|(_, reason)| matches!(reason, SkipReason::Taken));
    let all = (batch.next.len() + batch.skipped.len()) as u64;
    let (issues, tasks) = (plural(all, "issue"), plural(all, "task"));
    let mut head = format!("queue: {}", queue_of(&issues, &tasks, &batch.started().source));
    if !before.is_empty() {
        head = format!("{head}, {} taken before", before.len());
    }
    let mut lines = vec![head];
    let next = batch.next.iter().map(|task| row_of_task(task, "next".to_owned()));
    let others = skipped.iter().map(|(task, reason)| row_of_task(task, format!("not taken: {reason}")));
    let rows: Vec<Vec<String>> = next.take(ROWS_MAX).chain(others.take(ROWS_MAX)).collect();
    lines.extend(align_table(&rows, &[Alignment::Left]));
    for (all, more) in [(batch.next.len(), "more are next"), (skipped.len(), "more are not taken")] {
        if let Some(hidden @ 1..) = all.checked_sub(ROWS_MAX) {
            lines.push(format!("  {} {more}", format_count(hidden as u64)));
        }
    }
    if !batch.next.is_empty() {
        lines.push(format!("  {}", describe_cost_of_runs(batch, batch.next.len() as u64)));
    }
    lines
}

fn row_of_task(task: &Task, what: String) -> Vec<String> {
    vec![format!("  {}", task.name), shorten_end(&task.title, TITLE_COLUMNS), what]
}

/// What `n` further runs use at most: `2 runs, each at most $5.00, 40 calls: together $10.00 of $20.00`.
fn describe_cost_of_runs(batch: &Batch, n: u64) -> String {
    let started = batch.started();
    let runs = plural(n, "run");
    let Some(each) = format_amounts(started.each) else {
        return format!("{runs}, each without a known bound");
    };
    if n == 1 && started.budget == Amounts::default() {
        return format!("{runs}, at most {each}");
    }
    let all = format_amounts(started.each.times(n)).unwrap_or_default();
    let left = match format_amounts(subtract_spending(started.budget, batch.used())) {
        Some(left) => format!("; the budget has {left} left"),
        None => String::new(),
    };
    format!("{runs}, each at most {each}: together at most {all}{left}")
}

fn subtract_spending(budget: Amounts, used: SpentBudget) -> Amounts {
    let left = |limit: Option<u64>, used: u64| Some(limit?.saturating_sub(used));
    Amounts {
        usd_micro: left(budget.usd_micro, used.usd_micro),
        tokens: left(budget.tokens, used.tokens),
        asks: left(budget.asks, used.asks),
    }
}

/// Amounts as `$5.00, 2,000,000 tokens, 40 calls`; `None` without any.
fn format_amounts(amounts: Amounts) -> Option<String> {
    let parts = [
        amounts.usd_micro.map(|micro| format_money(Some(usd_of_micros(micro)))),
        amounts.tokens.map(|n| plural(n, "token")),
        amounts.asks.map(|n| plural(n, "call")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What became of each task, and how the batch stopped.
pub fn batch_lines(id: &str, batch: &Batch, rows: &[TaskRow]) -> Vec<String> {
    let of = |word: &str| rows.iter().filter(|row| row.word() == word).count();
    let counts: Vec<String> = [
        ("completed", "completed"),
        ("failed", "failed"),
        ("waiting", "waiting for an answer"),
        ("suspended", "suspended"),
        ("running", "running"),
        ("not_started", "not started"),
        ("claimed", "claimed, not started"),
        ("claiming", "with an unsettled claim"),
        ("lost", "taken by others"),
    ]
    .into_iter()
    .filter(|(word, _)| of(word) > 0)
    .map(|(word, shown)| format!("{} {shown}", of(word)))
    .collect();
    let counts = if counts.is_empty() { "no task was taken".to_owned() } else { counts.join(", ") };
    let mut lines = vec![format!("batch {id}: {counts}")];
    let mut rows: Vec<&TaskRow> = rows.iter().collect();
    rows.sort_by_key(|row| row.review_rank());
    let cells = rows.iter().map(|row| {
        let facts = row.review.as_ref().filter(|_| row.stop == Some(StopKind::Completed));
        let reason = row.review.as_ref().and_then(|facts| facts.reason.as_deref());
        let state = match (facts, reason) {
            (Some(facts), _) => format!("{}, {}", row.state, facts.describe()),
            (None, Some(reason)) if row.stop == Some(StopKind::Failed) => {
                format!("{}: {}", row.state, shorten_end(&clean_to_one_line(reason), REASON_COLUMNS))
            }
            (None, _) => row.state.clone(),
        };
        vec![
            format!("  {}", row.task.name),
            shorten_end(&row.task.title, TITLE_COLUMNS),
            row.run.clone().unwrap_or_else(|| "–".to_owned()),
            row.cost_usd.map_or_else(|| "–".to_owned(), |cost| format_money(Some(cost))),
            match &row.next {
                Some(next) if next.starts_with("cuegate ") => format!("{state}: `{next}`"),
                Some(next) => format!("{state}: {next}"),
                None => state,
            },
        ]
    });
    lines.extend(align_table(
        &cells.collect::<Vec<_>>(),
        &[Alignment::Left, Alignment::Left, Alignment::Left, Alignment::Right],
    ));
    let used = batch.used();
    if let Some(of) = format_amounts(batch.started().budget) {
        let budget = batch.started().budget;
        let shown = Amounts {
            usd_micro: budget.usd_micro.map(|_| used.usd_micro),
            tokens: budget.tokens.map(|_| used.tokens),
            asks: budget.asks.map(|_| used.asks),
        };
        let shown = format_amounts(shown).unwrap_or_default();
        // Runs that go on, and calls that reported nothing, count with their shares.
        let known: f64 = rows.iter().filter_map(|row| row.cost_usd).sum();
        let is_more = budget.usd_micro.is_some() && known + 0.005 < used.usd_micro as f64 / 1e6;
        lines.push(match is_more {
            true => {
                format!("  used    {}; {shown} of {of} is charged or set aside", format_money(Some(known)))
            }
            false => format!("  used    {shown} of {of}"),
        });
    }
    let resume = format!("`cuegate work --resume={id}` continues it");
    match &batch.end {
        None => lines.push(format!("  it has not ended; if no process works on it, {resume}")),
        Some(BatchEnd::Done)
            if ["suspended", "not_started", "claimed", "claiming"].iter().any(|word| of(word) > 0) =>
        {
            lines.push(format!("  {resume}"))
        }
        Some(BatchEnd::Done) => {}
        Some(BatchEnd::Interrupted) => lines.push(format!("  interrupted; {resume}")),
        Some(BatchEnd::Failing) => {
            let n = cuegate_engine::FAILURES_MAX;
            lines.push(format!("  {n} runs in a row did not complete; when the cause is settled, {resume}"));
        }
        Some(BatchEnd::Broken(why)) => lines.push(format!("  {why}; when that is settled, {resume}")),
    }
    lines
}

/// A batch as a JSON object of `cuegate/work/v1`.
pub fn batch_json(id: &str, batch: &Batch, rows: &[TaskRow]) -> Value {
    let started = batch.started();
    let (state, reason) = match &batch.end {
        None => ("running", None),
        Some(BatchEnd::Done) => ("done", None),
        Some(BatchEnd::Interrupted) => ("interrupted", None),
        Some(BatchEnd::Failing) => ("failing", Some("several runs in a row did not complete".to_owned())),
        Some(BatchEnd::Broken(why)) => ("broken", Some(why.clone())),
    };
    let source = match &started.source {
        QueueSource::Issues { repository, label, .. } => json!({"repository": repository, "label": label}),
        QueueSource::File { path } => json!({"file": path}),
    };
    let task = |task: &Task, state: &str, reason: Option<&str>| {
        let mut object = json!({"task": task.name, "issue": task.issue, "title": task.title, "state": state, "reason": reason});
        if let Some(text) = &task.text {
            object["text"] = json!(text);
        }
        if !task.set.is_empty() {
            object["set"] = json!(task.set);
        }
        object
    };
    let taken = rows.iter().map(|row| {
        let mut object = task(&row.task, row.word(), Some(&row.state));
        object["run"] = json!(row.run);
        object["cost_usd"] = json_of_cost(row.cost_usd);
        object["released"] = json!(row.released);
        object["next"] = json!(row.next);
        if let Some(facts) = &row.review {
            object["proved"] = json!(facts.is_proved);
            object["changed_files"] = json!(facts.changed_files);
            object["reviewed"] = json!(facts.is_reviewed);
            object["denied"] = json!(facts.denied);
            object["why"] = json!(facts.reason);
            if let Some(request) = &facts.pull_request {
                object["pull_request"] = json!({"number": request.number, "url": request.url});
            }
        }
        object
    });
    let next = batch.next.iter().map(|next| task(next, "next", None));
    let is_new = |(_, reason): &&(Task, SkipReason)| !matches!(reason, SkipReason::Taken);
    let skipped = batch.skipped.iter().filter(is_new);
    let skipped = skipped.map(|(skipped, reason)| task(skipped, "skipped", Some(&reason.to_string())));
    json!({
        "schema": "cuegate/work/v1",
        "batch": id,
        "agent": started.agent,
        "source": source,
        "state": state,
        "reason": reason,
        "budget": amounts_json(started.budget),
        "each": amounts_json(started.each),
        "used": {"usd": usd_of_micros(batch.used().usd_micro), "tokens": batch.used().tokens, "calls": batch.used().asks},
        "tasks": taken.chain(next).chain(skipped).collect::<Vec<Value>>(),
    })
}

/// A batch in a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRow {
    pub batch: String,
    /// When it began, in milliseconds since 1970.
    pub began_ms: i64,
    /// `cuegate/work/v1` without what is still to do.
    pub object: Value,
}

impl BatchRow {
    fn count(&self, is_counted: impl Fn(&Value) -> bool) -> usize {
        self.object["tasks"].as_array().into_iter().flatten().filter(|task| is_counted(task)).count()
    }

    fn taken(&self) -> usize {
        self.count(|task| !task["run"].is_null())
    }

    fn cost_usd(&self) -> Option<f64> {
        let costs = self.object["tasks"].as_array().into_iter().flatten();
        costs.filter_map(|task| task["cost_usd"].as_f64()).reduce(|sum, cost| sum + cost)
    }

    fn to_json(&self) -> Value {
        let mut object = self.object.clone();
        object["began_at"] = json!(format_rfc3339(self.began_ms));
        object["cost_usd"] = json_of_cost(self.cost_usd());
        object
    }
}

/// Batches as `cuegate/batches/v1`, the newest first.
pub fn batches_json(rows: &[BatchRow]) -> Value {
    json!({ "schema": "cuegate/batches/v1", "batches": rows.iter().map(BatchRow::to_json).collect::<Vec<_>>() })
}

/// Batches as a table, the newest first. `now_ms` is in milliseconds since 1970.
pub fn batches_table(rows: &[BatchRow], now_ms: i64) -> String {
    if rows.is_empty() {
        return "no batches yet".to_owned();
    }
    let head =
        ["BATCH", "STATE", "COMPLETED", "TO REVIEW", "COST", "BEGAN", "WORKFLOW"].map(str::to_owned).to_vec();
    let lines = rows.iter().map(|row| {
        let text = |key: &str| clean_to_one_line(row.object[key].as_str().unwrap_or_default());
        let completed = row.count(|task| task["state"] == "completed");
        let to_review = row.count(|task| {
            task["state"] == "completed" && task["reviewed"] != true && task["changed_files"] != 0
        });
        vec![
            row.batch.clone(),
            text("state"),
            format!("{completed} of {}", row.taken()),
            to_review.to_string(),
            row.cost_usd().map_or_else(|| "–".to_owned(), |cost| format_money(Some(cost))),
            format_time_ago(now_ms, row.began_ms),
            text("agent"),
        ]
    });
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(lines).collect();
    use Alignment::{Left, Right};
    align_table(&cells, &[Left, Left, Right, Right, Right, Left, Left]).join("\n")
}

fn amounts_json(amounts: Amounts) -> Value {
    json!({"usd": amounts.usd_micro.map(usd_of_micros), "tokens": amounts.tokens, "calls": amounts.asks})
}

#[cfg(test)]
mod tests {
    use cuegate_engine::{BatchEvent, BatchStarted, ClaimOutcome, QueueRead};

    use super::*;

    fn task(number: u64, title: &str, labels: &[&str]) -> Task {
        Task {
            key: format!("#{number}"),
            name: format!("#{number}"),
            title: title.to_owned(),
            issue: Some(number),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            ..Task::default()
        }
    }

    fn batch() -> Batch {
        let started = BatchStarted {
            program: "0".to_owned(),
            agent: "fix".to_owned(),
            here: String::new(),
            source: QueueSource::Issues {
                api: String::new(),
                repository: "owner/name".to_owned(),
                label: "agent".to_owned(),
                remote: "origin".to_owned(),
            },
            blocked_by: vec!["stuck".to_owned()],
            max: Some(3),
            parallel: 1,
            once: false,
            watch_s: None,
            budget: Amounts { usd_micro: Some(20_000_000), ..Amounts::default() },
            each: Amounts { usd_micro: Some(5_000_000), tokens: None, asks: Some(40) },
            args: Vec::new(),
        };
        let tasks = vec![
            task(7, "Mend the login", &[]),
            task(8, "ログインを直す", &[]),
            task(9, "Faster", &["stuck"]),
            task(10, "Smaller", &[]),
        ];
        Batch::fold(&[
            BatchEvent::BatchStarted(Box::new(started)),
            BatchEvent::QueueRead(QueueRead { tasks, ..QueueRead::default() }),
        ])
    }

    fn ended(mut batch: Batch) -> (Batch, Vec<TaskRow>) {
        let key = || "#7".to_owned();
        let spent = SpentBudget { usd_micro: 1_250_000, ..SpentBudget::default() };
        let stopped = RunStopped { stop: StopKind::Failed, state: "failed".to_owned(), spent };
        for event in [
            BatchEvent::ClaimDecided { task: key(), claim: ClaimOutcome::Won },
            BatchEvent::RunStarted { task: key(), run: "bcdfghjk".to_owned() },
            BatchEvent::RunStopped { task: key(), stopped },
            BatchEvent::ClaimDecided {
                task: "#8".to_owned(),
                claim: ClaimOutcome::Lost { by: "claimed by `b`, batch xyz, since noon".to_owned() },
            },
            BatchEvent::BatchStopped { end: BatchEnd::Interrupted },
        ] {
            batch.apply(&event);
        }
        let next = "cuegate retry bcdfghjk".to_owned();
        let rows = vec![
            TaskRow::new(&batch.taken[0], None, Some(1.25), Some(next)),
            TaskRow::new(&batch.taken[1], None, None, None),
        ];
        (batch, rows)
    }

    #[test]
    fn the_queue_says_what_is_next_and_what_it_costs_at_most() {
        insta::assert_snapshot!(queue_lines(&batch()).join("\n"), @"
        queue: 4 issues of owner/name with the label `agent`
          #7   Mend the login  next
          #8   ログインを直す  next
          #10  Smaller         next
          #9   Faster          not taken: has the label `stuck`
          3 runs, each at most $5.00, 40 calls: together at most $15.00, 120 calls; the budget has $20.00 left
        ");
    }

    #[test]
    fn what_is_proved_and_small_is_reviewed_first() {
        let (batch, _) = ended(batch());
        let row = |name: &str, stop: StopKind, is_proved: bool, changed_files: usize| TaskRow {
            task: task(1, name, &[]),
            stop: Some(stop),
            state: "completed".to_owned(),
            review: Some(ReviewFacts { is_proved, changed_files, ..ReviewFacts::default() }),
            ..TaskRow::new(&batch.taken[0], None, None, None)
        };
        let mut rows = [
            row("failed", StopKind::Failed, false, 1),
            row("unproved", StopKind::Completed, false, 1),
            row("large", StopKind::Completed, true, 9),
            row("small", StopKind::Completed, true, 1),
            row("reviewed", StopKind::Completed, true, 1),
        ];
        rows[4].review.as_mut().unwrap().is_reviewed = true;
        rows.sort_by_key(TaskRow::review_rank);
        let order: Vec<&str> = rows.iter().map(|row| row.task.title.as_str()).collect();
        assert_eq!(order, ["small", "large", "unproved", "failed", "reviewed"]);
        let lines = batch_lines("b", &batch, &rows).join("\n");
        assert!(
            lines.contains("completed, 9 files, proved") && lines.contains("1 file, proved, reviewed"),
            "{lines}"
        );
    }

    #[test]
    fn the_end_says_what_became_of_each_task() {
        let (batch, rows) = ended(batch());
        insta::assert_snapshot!(batch_lines("qrstvwxz", &batch, &rows).join("\n"), @"
        batch qrstvwxz: 1 failed, 1 taken by others
          #7  Mend the login  bcdfghjk  $1.25  failed: `cuegate retry bcdfghjk`
          #8  ログインを直す  –             –  not taken: claimed by `b`, batch xyz, since noon
          used    $1.25 of $20.00
          interrupted; `cuegate work --resume=qrstvwxz` continues it
        ");
        insta::assert_snapshot!(serde_json::to_string_pretty(&batch_json("qrstvwxz", &batch, &rows)).unwrap(), @r##"
        {
          "schema": "cuegate/work/v1",
          "batch": "qrstvwxz",
          "agent": "fix",
          "source": {
            "repository": "owner/name",
            "label": "agent"
          },
          "state": "interrupted",
          "reason": null,
          "budget": {
            "usd": 20.0,
            "tokens": null,
            "calls": null
          },
          "each": {
            "usd": 5.0,
            "tokens": null,
            "calls": 40
          },
          "used": {
            "usd": 1.25,
            "tokens": 0,
            "calls": 0
          },
          "tasks": [
            {
              "task": "#7",
              "issue": 7,
              "title": "Mend the login",
              "state": "failed",
              "reason": "failed",
              "run": "bcdfghjk",
              "cost_usd": 1.25,
              "released": false,
              "next": "cuegate retry bcdfghjk"
            },
            {
              "task": "#8",
              "issue": 8,
              "title": "ログインを直す",
              "state": "lost",
              "reason": "not taken: claimed by `b`, batch xyz, since noon",
              "run": null,
              "cost_usd": null,
              "released": false,
              "next": null
            },
            {
              "task": "#10",
              "issue": 10,
              "title": "Smaller",
              "state": "next",
              "reason": null
            },
            {
              "task": "#9",
              "issue": 9,
              "title": "Faster",
              "state": "skipped",
              "reason": "has the label `stuck`"
            }
          ]
        }
        "##);
    }
}
